//! Sees to it that the packet has what its event needs.
//!
//! Owns the difference between the two modes. Strict refuses the packet at the first thing missing; lenient
//! puts a placeholder in its place, counts it and notes it. Deliberately absent: a mark on the placeholder.
//! Downstream it looks like any id, which is why `handoff` is observed before this runs.

use super::Mode;
use super::error::EvidenceError;
use super::event::Event;
use super::lossiness::Losses;
use super::mapping::EventKind;
use super::packet::Packet;

/// What the packet turned out to be about.
#[derive(Debug)]
pub(super) struct Completed {
    pub(super) kind: EventKind,
    /// Made from the id of the agent, task, artifact or message that the event is about.
    pub(super) event_id: String,
    pub(super) losses: Losses,
}

/// An id that an event cannot do without.
struct RequiredId {
    path: &'static str,
    placeholder: &'static str,
    note: &'static str,
}

const AGENT_ID: RequiredId = RequiredId {
    path: "agent.id",
    placeholder: "unknown-agent",
    note: "missing agent.id -> substituted unknown-agent",
};
const TASK_ID: RequiredId = RequiredId {
    path: "task.id",
    placeholder: "unknown-task",
    note: "missing task.id -> substituted unknown-task",
};
const ARTIFACT_ID: RequiredId = RequiredId {
    path: "artifact.id",
    placeholder: "unknown-artifact",
    note: "missing artifact.id -> substituted unknown-artifact",
};
const MESSAGE_ID: RequiredId = RequiredId {
    path: "message.id",
    placeholder: "unknown-message",
    note: "missing message.id -> substituted unknown-message",
};
const FALLBACK_NOTE: &str = "unsupported event_type -> emitted generic A2A message event";

pub(super) fn complete(
    packet: &mut Packet<'_>,
    mapped: Option<EventKind>,
    mode: Mode,
) -> Result<Completed, EvidenceError> {
    let mut gaps = Gaps { mode, losses: Losses::starting_at(packet.unknown_keys) };
    let agent_id = gaps.fill(&mut packet.agent.get_or_insert_default().id, &AGENT_ID)?;
    let kind = gaps.fall_back(mapped)?;
    let primary_id = match kind {
        EventKind::AgentCapabilities => agent_id,
        EventKind::TaskRequested | EventKind::TaskUpdated => {
            gaps.fill(&mut packet.task.get_or_insert_default().id, &TASK_ID)?
        }
        EventKind::ArtifactShared => {
            gaps.fill(&mut packet.artifact.get_or_insert_default().id, &ARTIFACT_ID)?
        }
        EventKind::Message => gaps.fill(&mut packet.message.get_or_insert_default().id, &MESSAGE_ID)?,
    };
    Ok(Completed { kind, event_id: Event::id_about(primary_id), losses: gaps.losses })
}

struct Gaps {
    mode: Mode,
    losses: Losses,
}

impl Gaps {
    /// The id as it will be emitted.
    fn fill<'p>(
        &mut self,
        id: &'p mut Option<String>,
        required: &RequiredId,
    ) -> Result<&'p str, EvidenceError> {
        if id.is_none() {
            match self.mode {
                Mode::Strict => return Err(EvidenceError::missing(required.path)),
                Mode::Lenient => self.losses.record(required.note),
            }
        }
        Ok(id.get_or_insert_with(|| required.placeholder.to_owned()))
    }

    /// The kind of the event, which is the generic message where nothing is mapped.
    fn fall_back(&mut self, mapped: Option<EventKind>) -> Result<EventKind, EvidenceError> {
        match (mapped, self.mode) {
            (Some(kind), _) => Ok(kind),
            (None, Mode::Strict) => Err(EvidenceError::unsupported_event_type()),
            (None, Mode::Lenient) => {
                self.losses.record(FALLBACK_NOTE);
                Ok(EventKind::Message)
            }
        }
    }
}
