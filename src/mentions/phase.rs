//! The phases, and the ways from one to another.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::contract::RiskClass;

/// How far mention-triggered work has been rolled out; later ones let more through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Phase {
    /// Recorded, never let through.
    #[default]
    LogOnly,
    /// Read and diagnostic work.
    GatedRead,
    /// Everything that the gates and a person allow.
    GatedLive,
}

impl Phase {
    pub const ALL: [Self; 3] = [Self::LogOnly, Self::GatedRead, Self::GatedLive];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::LogOnly => "log-only",
            Self::GatedRead => "gated-read",
            Self::GatedLive => "gated-live",
        }
    }

    /// Does a mention for work of this class get through? Every other gate still has its say.
    pub fn lets_through(self, class: RiskClass) -> bool {
        match self {
            Self::LogOnly => false,
            Self::GatedRead => !class.needs_a_person(),
            Self::GatedLive => true,
        }
    }

    /// The phase after this one, if there is one.
    pub fn up(self) -> Option<Self> {
        match self {
            Self::LogOnly => Some(Self::GatedRead),
            Self::GatedRead => Some(Self::GatedLive),
            Self::GatedLive => None,
        }
    }

    /// The phase before this one, if there is one.
    pub fn down(self) -> Option<Self> {
        match self {
            Self::LogOnly => None,
            Self::GatedRead => Some(Self::LogOnly),
            Self::GatedLive => Some(Self::GatedRead),
        }
    }

    /// May an operator move it so? One step up at a time, down at will.
    pub fn may_move(self, to: Self) -> Result<(), PhaseFault> {
        if to == self {
            Err(PhaseFault::Same(to))
        } else if to > self && self.up() != Some(to) {
            Err(PhaseFault::Skips { from: self, to })
        } else {
            Ok(())
        }
    }
}

/// Where the phase falls to by itself, and the code that made it, when a mention was refused.
///
/// `reasons` are the gate and the code of each reason, as answers write them. In `gated-live` any refusal by D1 to D4
/// counts, if the envelope's proof verified: what anybody could make up proves nothing about those who are trusted.
/// A message that is delivered again exactly as before is the channel's doing and does not count either.
pub fn falls_back<'r>(
    phase: Phase,
    reasons: impl IntoIterator<Item = (&'r str, &'r str)>,
    proof_verified: bool,
    identical_replay: bool,
) -> Option<(Phase, &'r str)> {
    if phase != Phase::GatedLive || !proof_verified || identical_replay {
        return None;
    }
    let (_, code) = reasons.into_iter().find(|(gate, _)| matches!(*gate, "D1" | "D2" | "D3" | "D4"))?;
    phase.down().map(|to| (to, code))
}

/// Why the phase is not moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseFault {
    Same(Phase),
    Skips { from: Phase, to: Phase },
}

impl PhaseFault {
    /// Wire contract: a code is never renamed and never reused.
    pub fn code(self) -> &'static str {
        match self {
            Self::Same(_) => "MENTION_PHASE_SAME",
            Self::Skips { .. } => "MENTION_PHASE_SKIPPED",
        }
    }

    pub fn hint(self) -> &'static str {
        match self {
            Self::Same(_) => "nothing to do",
            Self::Skips { .. } => "go one step up, look at the counters for a while, then take the next",
        }
    }
}

impl fmt::Display for PhaseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(phase) => write!(f, "mentions are in phase {phase} already"),
            Self::Skips { from, to } => {
                write!(f, "from {from} to {to} is more than one step up")
            }
        }
    }
}

impl std::error::Error for PhaseFault {}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAPhase;

impl FromStr for Phase {
    type Err = NotAPhase;

    fn from_str(word: &str) -> Result<Self, NotAPhase> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == word).ok_or(NotAPhase)
    }
}

impl<'d> Deserialize<'d> for Phase {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<str>::deserialize(deserializer)?;
        word.parse().map_err(|NotAPhase| D::Error::custom("not a mention phase"))
    }
}
