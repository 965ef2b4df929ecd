//! Where a handoff stands, by the last event in its stream that says so.

use std::fmt;
use std::str::FromStr;

/// The state of an attempt at a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
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

impl Status {
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

    /// The state that an event of this type leads to; nothing for events that carry no state.
    ///
    /// Whether the event was in order is not asked again: the ledger took it.
    pub(super) fn after(kind: &str) -> Option<Self> {
        Some(match kind {
            "task.created" => Self::Created,
            "approval.requested" => Self::Waiting,
            "task.available" => Self::Available,
            "task.rejected" => Self::Rejected,
            "task.claimed" => Self::Claimed,
            "task.started" | "artifact.ready" => Self::Working,
            "task.blocked" => Self::Blocked,
            "task.complete" => Self::Completed,
            "task.failed" => Self::Failed,
            "task.cancelled" => Self::Cancelled,
            _ => return None,
        })
    }

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

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownStatus;

impl fmt::Display for UnknownStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a handoff is created, waiting, available, rejected, claimed, working, blocked, ")?;
        f.write_str("completed, failed or cancelled")
    }
}

impl std::error::Error for UnknownStatus {}

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(UnknownStatus)
    }
}
