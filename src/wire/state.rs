//! The states of a task stream.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// Where an attempt at a handoff stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Created,
    Waiting,
    Available,
    Rejected,
    Claimed,
    Working,
    Blocked,
    Completed,
    Failed,
    Cancelled,
}

impl State {
    pub const ALL: [Self; 10] = [
        Self::Created,
        Self::Waiting,
        Self::Available,
        Self::Rejected,
        Self::Claimed,
        Self::Working,
        Self::Blocked,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Waiting => "waiting",
            Self::Available => "available",
            Self::Rejected => "rejected",
            Self::Claimed => "claimed",
            Self::Working => "working",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownState;

impl fmt::Display for UnknownState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a handoff is created, waiting, available, rejected, claimed, working, blocked, ")?;
        f.write_str("completed, failed or cancelled")
    }
}

impl std::error::Error for UnknownState {}

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or(UnknownState)
    }
}
