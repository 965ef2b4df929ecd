//! One step of one task: whether an event may come now, and what it changes.
//!
//! Whoever holds a task can take it a step further: the reducer, which holds all of them, and the gateway, which
//! looks at one. All that can refuse an event comes before the first change.

use super::contracts::{Contracts, NoTransition};
use super::envelope::Envelope;
use super::event::Sender;
use super::fault::{WireCode, WireFault};
use super::id::StreamId;
use super::kind::Kind;
use super::lifecycle::{Parties, announced, completes, may_send};
use super::state::State;
use super::task::{Artifact, Mark, TaskState};
use crate::json::printable;

/// That an event may come after what a task is, and what follows from it.
#[derive(Debug)]
pub struct Admitted {
    state: Option<State>,
    mark: Mark,
    /// The artifact that is announced, and which one it takes the place of.
    announcement: Option<(Option<usize>, Artifact)>,
}

impl Admitted {
    /// Looks at sender, id, number, transition and references, in this order. `known` is nothing before the first
    /// event of the stream; `parties` says who has to do with it.
    pub fn after(
        contracts: &Contracts,
        known: Option<&TaskState>,
        envelope: &Envelope<'_>,
        parties: &Parties<'_>,
    ) -> Result<Self, WireFault> {
        let kind = envelope.kind();
        may_send(contracts, kind, envelope.sender(), parties)?;
        let mark = Mark::of(envelope.wire_id());
        if known.is_some_and(|task| task.seen.contains(&mark)) {
            return Err(duplicate(envelope));
        }
        next_in_stream(envelope, known.map_or(0, |task| task.stream_seq))?;
        if let Some(task) = known
            && task.context_id != envelope.context_id()
        {
            return Err(WireFault::new(
                WireCode::Stream,
                "/stream/context_id",
                "the stream belongs to another context",
                format!("send `{}`, as the events before it", printable(&task.context_id)),
            ));
        }
        let state = state_after(contracts, known.and_then(|task| task.state), envelope)?;
        let ready = known.map(|task| task.artifacts.as_slice()).unwrap_or_default();
        let mut announcement = None;
        match (kind, StreamId::parse(envelope.stream_id())) {
            (Kind::TaskCreated, Some(StreamId::Handoff { handoff_id, attempt })) => {
                let payload = envelope.payload();
                of_this_stream("handoff_id", payload.text("handoff_id") == Some(handoff_id))?;
                of_this_stream("attempt", payload.count("attempt") == Some(attempt.into()))?;
            }
            (Kind::ArtifactReady, _) => announcement = Some(announced(envelope, ready)?),
            (Kind::TaskComplete, _) => completes(envelope, ready)?,
            _ => {}
        }
        Ok(Self { state, mark, announcement })
    }
}

impl TaskState {
    /// Takes an event in that was admitted after this very state.
    pub fn take(&mut self, envelope: &Envelope<'_>, admitted: Admitted) {
        let Admitted { state, mark, announcement } = admitted;
        self.state = state;
        self.stream_seq = envelope.stream_seq();
        self.seen.push(mark);
        let payload = envelope.payload();
        let owned = |name| payload.text(name).map(str::to_owned);
        match envelope.kind() {
            Kind::TaskCreated => {
                self.source = owned("source_agent");
                self.parent_task_id = envelope.parent_task_id().map(str::to_owned);
                self.reference_task_ids = envelope.reference_task_ids().map(str::to_owned).collect();
            }
            // Given back, if somebody had it.
            Kind::TaskAvailable => self.claimer = None,
            Kind::TaskClaimed => {
                if let Sender::Agent(agent) = envelope.sender() {
                    self.claimer = Some(agent.to_owned());
                }
            }
            Kind::TaskComplete => {
                self.verification = payload.inside("verification").text("mechanical").map(str::to_owned);
            }
            Kind::TaskRejected => self.codes = payload.texts("codes").map(str::to_owned).collect(),
            Kind::TaskFailed => self.codes = owned("code").into_iter().collect(),
            _ => {}
        }
        match announcement {
            Some((Some(at), artifact)) => {
                if let Some(slot) = self.artifacts.get_mut(at) {
                    *slot = artifact;
                }
            }
            Some((None, artifact)) => self.artifacts.push(artifact),
            None => {}
        }
    }
}

fn state_after(
    contracts: &Contracts,
    from: Option<State>,
    envelope: &Envelope<'_>,
) -> Result<Option<State>, WireFault> {
    let kind = envelope.kind();
    let after = if contracts.state(kind).is_some() {
        contracts.transition(from, kind, envelope.sender().class()).map(Some)
    } else {
        contracts.may_come(from, kind).map(|()| from)
    };
    after.map_err(|why| {
        let here = from.map_or("not created", State::as_str);
        let (message, hint) = match (why, from) {
            (NoTransition::Terminal, Some(state)) => return terminal(state),
            (NoTransition::NotBySender, _) => {
                (format!("{kind} is for the gateway while a task is {here}"), "claim the task first")
            }
            _ => (
                format!("{kind} does not follow while a task is {here}"),
                "docs/agent-wire.md has what follows",
            ),
        };
        WireFault::new(WireCode::Transition, "/type", message, hint)
    })
}

pub(super) fn terminal(state: State) -> WireFault {
    WireFault::new(
        WireCode::Terminal,
        "/stream/stream_id",
        format!("the stream has ended: its task is {state}"),
        "begin a new stream that names this task in reference_task_ids",
    )
}

pub(super) fn duplicate(envelope: &Envelope<'_>) -> WireFault {
    WireFault::new(
        WireCode::Duplicate,
        "/wire_id",
        format!("`{}` was used before in this stream", printable(envelope.wire_id())),
        "an event that was taken in need not be sent again; another one needs an id of its own",
    )
}

pub(super) fn next_in_stream(envelope: &Envelope<'_>, last: u64) -> Result<(), WireFault> {
    let (seq, next) = (envelope.stream_seq(), last + 1);
    if seq == next {
        return Ok(());
    }
    Err(WireFault::new(
        WireCode::Sequence,
        "/stream/stream_seq",
        format!("{seq} is not the next number in the stream"),
        format!("send {next}, after looking at what has come meanwhile"),
    ))
}

fn of_this_stream(member: &str, is: bool) -> Result<(), WireFault> {
    if is {
        return Ok(());
    }
    Err(WireFault::new(
        WireCode::Stream,
        format!("/payload/{member}"),
        format!("`{member}` is not what the stream's name says"),
        "name the stream `task:<handoff_id>:attempt:<attempt>`",
    ))
}
