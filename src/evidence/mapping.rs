//! Which event an upstream `event_type` becomes.
//!
//! Owns the five event kinds and the exact spelling of their names. Deliberately absent: case folding,
//! trimming, prefixes or aliases. What is not spelled exactly is not mapped.

/// The kind of an emitted event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// An agent says what it can do.
    AgentCapabilities,
    /// Work is asked for.
    TaskRequested,
    /// Work has moved on.
    TaskUpdated,
    /// A result is handed over.
    ArtifactShared,
    /// Anything else; lenient mode only.
    Message,
}

impl EventKind {
    /// The kind that this upstream type maps to, if it maps at all. Nothing maps to [`EventKind::Message`]:
    /// that one is what lenient mode falls back to.
    pub(super) fn of_upstream(event_type: Option<&str>) -> Option<Self> {
        match event_type? {
            "agent.capabilities" => Some(Self::AgentCapabilities),
            "task.requested" => Some(Self::TaskRequested),
            "task.updated" => Some(Self::TaskUpdated),
            "artifact.shared" => Some(Self::ArtifactShared),
            _ => None,
        }
    }

    /// The canonical event type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentCapabilities => "assay.adapter.a2a.agent.capabilities",
            Self::TaskRequested => "assay.adapter.a2a.task.requested",
            Self::TaskUpdated => "assay.adapter.a2a.task.updated",
            Self::ArtifactShared => "assay.adapter.a2a.artifact.shared",
            Self::Message => "assay.adapter.a2a.message",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_type_maps_only_when_it_is_spelled_exactly() {
        for name in ["agent.capabilities", "task.requested", "task.updated", "artifact.shared"] {
            let kind = EventKind::of_upstream(Some(name)).unwrap();
            assert_eq!(kind.as_str(), format!("assay.adapter.a2a.{name}"));
        }
        for name in ["", "message", "Task.requested", " task.requested", "task.requested ", "task.", "task"] {
            assert_eq!(EventKind::of_upstream(Some(name)), None, "`{name}`");
        }
        assert_eq!(EventKind::of_upstream(None), None);
    }
}
