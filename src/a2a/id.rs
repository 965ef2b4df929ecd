//! The ids of tasks: a handoff's, or that of a message which still has to become one.

use std::fmt;

use crate::contract::{HandoffId, Text as _};
use crate::wire::{StreamId, Ulid};

/// Which task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TaskId {
    /// An attempt at a handoff: its handoffId, with `~n` after the first.
    Attempt { handoff_id: String, attempt: u32 },
    /// What a message without a TaskSpec began: `task_` and a ULID.
    Asked(Ulid),
}

impl TaskId {
    /// Reads an id as it is written; there is one way to write each.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(ulid) = text.strip_prefix("task_") {
            return Ulid::parse(ulid).map(Self::Asked);
        }
        let (handoff_id, attempt) = match text.split_once('~') {
            None => (text, 1),
            Some((handoff_id, number)) => {
                let attempt: u32 = number.parse().ok()?;
                (attempt > 1 && attempt.to_string() == number).then_some((handoff_id, attempt))?
            }
        };
        HandoffId::parse(handoff_id)?;
        Some(Self::Attempt { handoff_id: handoff_id.to_owned(), attempt })
    }

    /// The task that a Wire stream is.
    pub fn of_stream(stream_id: &str) -> Option<Self> {
        match StreamId::parse(stream_id)? {
            StreamId::Handoff { handoff_id, attempt } => {
                Some(Self::Attempt { handoff_id: handoff_id.to_owned(), attempt })
            }
            StreamId::Route { .. } | StreamId::Gateway { .. } => None,
        }
    }

    /// The handoff that it is an attempt at.
    pub fn handoff_id(&self) -> Option<&str> {
        match self {
            Self::Attempt { handoff_id, .. } => Some(handoff_id),
            Self::Asked(_) => None,
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attempt { handoff_id, attempt: 0 | 1 } => f.write_str(handoff_id),
            Self::Attempt { handoff_id, attempt } => write!(f, "{handoff_id}~{attempt}"),
            Self::Asked(ulid) => write!(f, "task_{ulid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_one_id_and_an_id_one_task() {
        let ulid = Ulid::new(1_469_918_176_385, [7; 10]);
        for text in ["hs_12345678", "hs_12345678~2", "hs_a:attempt:1~17", &format!("task_{ulid}")] {
            let id = TaskId::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(id.to_string(), text);
        }
        for text in [
            "",
            "12345678",
            "hs_1234567",
            "hs_12345678~",
            "hs_12345678~0",
            "hs_12345678~1",
            "hs_12345678~02",
            "hs_12345678~+2",
            "hs_12345678~2~2",
            "hs_12345678~4294967296",
            "task_",
            "task_1",
            "TASK_",
        ] {
            assert_eq!(TaskId::parse(text), None, "{text}");
        }
        let of = |stream| TaskId::of_stream(stream).map(|id| id.to_string());
        assert_eq!(of("task:hs_12345678:attempt:1").as_deref(), Some("hs_12345678"));
        assert_eq!(of("task:hs_12345678:attempt:3").as_deref(), Some("hs_12345678~3"));
        assert_eq!(of("phase:route.v1"), None);
    }
}
