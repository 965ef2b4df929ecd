//! The words of promotion: stages, gates, and how the last gate went.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::contract::Mode;
use crate::policy;

/// How far a route has come; later ones are more real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    #[default]
    Dev,
    Simulated,
    Live,
}

/// A gate between the stages; they are passed in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PromotionGate {
    G0,
    G1,
    G2,
    G3,
    G4,
}

/// What became of the gate that was last decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateStatus {
    /// None was decided, or G4 was passed and the canary has not ended.
    #[default]
    Pending,
    Passed,
    Failed,
    RolledBack,
}

/// A word that names none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownWord;

impl Stage {
    pub const ALL: [Self; 3] = [Self::Dev, Self::Simulated, Self::Live];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Simulated => "simulated",
            Self::Live => "live",
        }
    }

    /// The stage after this one.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Dev => Some(Self::Simulated),
            Self::Simulated => Some(Self::Live),
            Self::Live => None,
        }
    }

    /// The stage that work of this mode needs.
    pub fn needed_by(mode: Mode) -> Self {
        match mode {
            Mode::Dev => Self::Dev,
            Mode::Simulated => Self::Simulated,
            Mode::Live => Self::Live,
        }
    }
}

impl From<policy::Stage> for Stage {
    fn from(declared: policy::Stage) -> Self {
        match declared {
            policy::Stage::Dev => Self::Dev,
            policy::Stage::Simulated => Self::Simulated,
        }
    }
}

impl PromotionGate {
    pub const ALL: [Self; 5] = [Self::G0, Self::G1, Self::G2, Self::G3, Self::G4];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::G0 => "G0",
            Self::G1 => "G1",
            Self::G2 => "G2",
            Self::G3 => "G3",
            Self::G4 => "G4",
        }
    }

    /// The name that the standard gives it.
    pub fn title(self) -> &'static str {
        match self {
            Self::G0 => "contract",
            Self::G1 => "routing",
            Self::G2 => "simulation",
            Self::G3 => "authorized E2E",
            Self::G4 => "live",
        }
    }
}

impl GateStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::RolledBack => "rolled_back",
        }
    }
}

impl FromStr for Stage {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == text).ok_or(UnknownWord)
    }
}

impl FromStr for PromotionGate {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::ALL.into_iter().find(|gate| gate.as_str() == text).ok_or(UnknownWord)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for PromotionGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_as_it_is_written_and_kept() {
        for stage in Stage::ALL {
            assert_eq!(stage.as_str().parse(), Ok(stage));
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.as_str());
        }
        for gate in PromotionGate::ALL {
            assert_eq!(gate.as_str().parse(), Ok(gate));
            assert_eq!(serde_json::to_value(gate).unwrap(), gate.as_str());
        }
        for status in [GateStatus::Pending, GateStatus::Passed, GateStatus::Failed, GateStatus::RolledBack] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        for word in ["", "Dev", "g0", "G5", "production"] {
            assert_eq!(
                (word.parse::<Stage>(), word.parse::<PromotionGate>()),
                (Err(UnknownWord), Err(UnknownWord))
            );
        }
    }

    #[test]
    fn a_mode_needs_the_stage_of_its_name_and_stages_stand_in_order() {
        let needed = [Mode::Dev, Mode::Simulated, Mode::Live].map(Stage::needed_by);
        assert_eq!(needed, Stage::ALL);
        assert!(needed.is_sorted());
        assert_eq!(needed.map(Stage::next), [Some(Stage::Simulated), Some(Stage::Live), None]);
    }
}
