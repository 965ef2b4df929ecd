//! K1-A: the `handoff` object.
//!
//! Owns the one rule that makes it non-default: the packet maps to `task.requested` and its typed
//! `task.kind` is the string `delegation`. Present on every event, with all defaults when the rule does not
//! hold. Every flag says that something was visible in the packet, and no more.
//!
//! Deliberately absent: `attributes`, `discovery`, the count of unmapped fields, `agent.role`, artifacts and
//! generic messages as sources; `task.updated`, until a later freeze widens the rule; and any word on who
//! the target is or how the handoff went.

use std::sync::LazyLock;

use serde::Serialize;

use super::canonical::{self, Members, Sha256Digest};
use super::mapping::EventKind;
use super::parts::{Message, Task};

const DELEGATION: &str = "delegation";

/// What of a handoff was visible in the packet.
///
/// The fields are private: the rule in this file is the only way to set one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Handoff {
    visible: bool,
    source_kind: HandoffSourceKind,
    task_ref_visible: bool,
    message_ref_visible: bool,
}

/// Which class of source made the handoff visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffSourceKind {
    /// The typed task of a task request.
    TypedPayload,
    /// None: nothing was visible.
    Unknown,
}

impl HandoffSourceKind {
    /// The kind as it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TypedPayload => "typed_payload",
            Self::Unknown => "unknown",
        }
    }
}

impl Handoff {
    const DEFAULT: Self = Self {
        visible: false,
        source_kind: HandoffSourceKind::Unknown,
        task_ref_visible: false,
        message_ref_visible: false,
    };

    /// Every object there is.
    const ALL: [Self; 5] = [
        Self::DEFAULT,
        Self::seen(false, false),
        Self::seen(true, false),
        Self::seen(false, true),
        Self::seen(true, true),
    ];

    const fn seen(task_ref_visible: bool, message_ref_visible: bool) -> Self {
        Self {
            visible: true,
            source_kind: HandoffSourceKind::TypedPayload,
            task_ref_visible,
            message_ref_visible,
        }
    }

    /// Observes the packet as it was sent.
    ///
    /// INVARIANT (observed first): `task` and `message` hold no placeholder yet, so an id that is there came
    /// from upstream, even one that reads `unknown-task`.
    pub(super) fn observe(kind: Option<EventKind>, task: Option<&Task>, message: Option<&Message>) -> Self {
        match (kind, task) {
            (Some(EventKind::TaskRequested), Some(task)) if task.kind.as_deref() == Some(DELEGATION) => {
                Self::seen(task.id.is_some(), message.is_some_and(|message| message.id.is_some()))
            }
            _ => Self::DEFAULT,
        }
    }

    /// A delegation was visible in a typed task request.
    pub fn visible(&self) -> bool {
        self.visible
    }

    /// Which class of source that was seen in.
    pub fn source_kind(&self) -> HandoffSourceKind {
        self.source_kind
    }

    /// The upstream packet carried a task id, on a visible handoff.
    pub fn task_ref_visible(&self) -> bool {
        self.task_ref_visible
    }

    /// The upstream packet carried a message id, on a visible handoff.
    pub fn message_ref_visible(&self) -> bool {
        self.message_ref_visible
    }

    /// SHA-256 over the canonical object; looked up, since each of the few is hashed only once.
    pub(super) fn digest(&self) -> Sha256Digest {
        static DIGESTS: LazyLock<[Sha256Digest; 5]> =
            LazyLock::new(|| Handoff::ALL.map(|object| object.hash()));
        let known = Self::ALL.iter().zip(DIGESTS.iter()).find(|(object, _)| *object == self);
        known.map_or_else(|| self.hash(), |(_, digest)| *digest)
    }

    fn hash(&self) -> Sha256Digest {
        canonical::digest(|members| self.write_canonical(members))
    }

    pub(super) fn write_canonical(&self, members: &mut Members<'_>) {
        members.flag("message_ref_visible", self.message_ref_visible);
        members.text("source_kind", self.source_kind.as_str());
        members.flag("task_ref_visible", self.task_ref_visible);
        members.flag("visible", self.visible);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: Option<&str>, kind: &str) -> Task {
        let mut task = Task::default();
        task.id = id.map(str::to_owned);
        task.kind = Some(kind.to_owned());
        task
    }

    fn message() -> Message {
        let mut message = Message::default();
        message.id = Some("m".to_owned());
        message
    }

    #[test]
    fn only_a_task_request_of_kind_delegation_is_visible() {
        let every_kind = [
            None,
            Some(EventKind::AgentCapabilities),
            Some(EventKind::TaskRequested),
            Some(EventKind::TaskUpdated),
            Some(EventKind::ArtifactShared),
            Some(EventKind::Message),
        ];
        for kind in every_kind {
            let seen = Handoff::observe(kind, Some(&task(Some("t"), "delegation")), Some(&message()));
            assert_eq!(seen.visible(), kind == Some(EventKind::TaskRequested), "{kind:?}");
            assert_eq!(seen == Handoff::DEFAULT, !seen.visible(), "{kind:?}");
        }
        let requested = Some(EventKind::TaskRequested);
        for other in ["", "Delegation", "delegation ", "analysis"] {
            let seen = Handoff::observe(requested, Some(&task(Some("t"), other)), Some(&message()));
            assert_eq!(seen, Handoff::DEFAULT, "`{other}`");
        }
        assert_eq!(Handoff::observe(requested, None, Some(&message())), Handoff::DEFAULT);
        assert_eq!(Handoff::observe(requested, Some(&Task::default()), None), Handoff::DEFAULT);
    }

    #[test]
    fn a_reference_is_visible_exactly_when_its_id_was_sent() {
        let requested = Some(EventKind::TaskRequested);
        let without_id = task(None, "delegation");
        let seen = Handoff::observe(requested, Some(&without_id), Some(&Message::default()));
        assert!(seen.visible() && !seen.task_ref_visible() && !seen.message_ref_visible());

        let literal = task(Some("unknown-task"), "delegation");
        let seen = Handoff::observe(requested, Some(&literal), Some(&message()));
        assert!(seen.task_ref_visible() && seen.message_ref_visible());
    }
}
