//! A handoff after it was accepted: what its stream has come to, and what is still expected of it.

use super::EngineFault;
use super::facts::{Reach, Recorded};
use crate::contract::Mode;
use crate::ledger::Entry;
use crate::limits;
use crate::timestamp::Timestamp;
use crate::wire::{Admitted, Contracts, Envelope, Kind, Mark, Parties, Sender, State, TaskState};

/// An attempt at a handoff that was accepted, or waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) handoff_id: String,
    pub(super) attempt: u32,
    pub(super) route_key: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) target_agent: Option<String>,
    pub(super) reach: Reach,
    pub(super) wire: TaskState,
    /// When its last event came, by the ledger's time.
    pub(super) touched: Timestamp,
    /// The events that came after the gateway's first three, or all where the stream was read back.
    taken: Vec<Taken>,
}

/// Where a handoff goes.
pub(super) struct Ends {
    pub(super) route_key: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) target_agent: Option<String>,
    pub(super) reach: Reach,
}

/// An event that stands in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    id: Mark,
    text: Mark,
    pub(super) stream_seq: u64,
    /// Its entry in the ledger.
    pub(super) sequence: u64,
}

/// What is known of an id that an event comes with.
pub(super) enum Before<'t> {
    New,
    /// The very same event stands in the stream.
    Same(&'t Taken),
    /// Another event has the id.
    Other,
}

impl Task {
    /// One of which nothing has been heard since it was decided.
    pub(super) fn untouched(
        (handoff_id, attempt): (&str, u32),
        Ends { route_key, mode, target_agent, reach }: Ends,
        wire: TaskState,
        touched: Timestamp,
    ) -> Self {
        let (handoff_id, taken) = (handoff_id.to_owned(), Vec::new());
        Self { handoff_id, attempt, route_key, mode, target_agent, reach, wire, touched, taken }
    }

    /// One that is made again from the entries of its stream, in order.
    pub(super) fn read_back(entries: &[Entry]) -> Result<Option<Self>, EngineFault> {
        let mut task: Option<Self> = None;
        for entry in entries {
            let bad = |why: &str| EngineFault::BadLedger(format!("entry {}: {why}", entry.sequence));
            let envelope =
                Envelope::read_again(&entry.wire).ok_or_else(|| bad("it is no Wire event of ours"))?;
            let at = Timestamp::parse(&entry.consensus_timestamp).ok_or_else(|| bad("its time is none"))?;
            let next = match task {
                Some(task) => task.after(&envelope, &entry.wire, entry.sequence, at),
                None => Self::begun(&envelope, entry, at).ok_or_else(|| bad("its facts are not ours"))?,
            };
            task = Some(next.map_err(|fault| bad(&fault.to_string()))?);
        }
        Ok(task)
    }

    /// From the first event of its stream.
    fn begun(
        envelope: &Envelope<'_>,
        entry: &Entry,
        at: Timestamp,
    ) -> Option<Result<Self, crate::wire::WireFault>> {
        #[derive(serde::Deserialize)]
        struct Created {
            payload: Recorded,
        }
        let Created { payload } = serde_json::from_str(&entry.wire).ok()?;
        let (facts, _) = payload.into_facts();
        let wire = TaskState::new(envelope.stream_id(), envelope.context_id());
        let place = (facts.handoff_id.as_str(), facts.attempt);
        let reach = facts.reach();
        let ends =
            Ends { route_key: facts.route_key, mode: facts.mode, target_agent: facts.target_agent, reach };
        let task = Self::untouched(place, ends, wire, at);
        Some(task.after(envelope, &entry.wire, entry.sequence, at))
    }

    /// The same after an event that stands in the ledger, or the fault if it should not.
    pub(super) fn after(
        &self,
        envelope: &Envelope<'_>,
        text: &str,
        sequence: u64,
        at: Timestamp,
    ) -> Result<Self, crate::wire::WireFault> {
        let parties = Parties {
            source: self.wire.source.as_deref(),
            claimer: self.wire.claimer.as_deref(),
            ..Parties::default()
        };
        let known = (self.wire.stream_seq > 0).then_some(&self.wire);
        let admitted = Admitted::after(Contracts::embedded(), known, envelope, &parties)?;
        Ok(self.with(envelope, admitted, text, sequence, at))
    }

    /// The same with an event that was admitted.
    pub(super) fn with(
        &self,
        envelope: &Envelope<'_>,
        admitted: Admitted,
        text: &str,
        sequence: u64,
        at: Timestamp,
    ) -> Self {
        let mut next = self.clone();
        next.wire.take(envelope, admitted);
        next.taken.push(Taken {
            id: Mark::of(envelope.wire_id()),
            text: Mark::of(text),
            stream_seq: envelope.stream_seq(),
            sequence,
        });
        // What somebody says about the work is not the work going on.
        if envelope.kind() != Kind::MessageSent || envelope.sender() == claimer(&next.wire) {
            next.touched = at;
        }
        next
    }

    /// Was an event with this id taken before?
    pub(super) fn before(&self, wire_id: &str, text: &str) -> Before<'_> {
        let id = Mark::of(wire_id);
        match self.taken.iter().find(|taken| taken.id == id) {
            None => Before::New,
            Some(taken) if taken.text == Mark::of(text) => Before::Same(taken),
            Some(_) => Before::Other,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.mode.as_deref() == Some(Mode::Live.as_str())
    }

    /// Allowed, and not ended.
    pub(super) fn is_in_flight(&self) -> bool {
        !self.is_over() && self.wire.state != Some(State::Waiting)
    }

    pub(super) fn is_over(&self) -> bool {
        self.wire.is_terminal(Contracts::embedded())
    }

    /// Live work that is blocked stays so until somebody looks: it may have happened.
    pub(super) fn may_have_happened(&self) -> bool {
        self.is_live() && self.wire.state == Some(State::Blocked)
    }

    /// When the claimer's silence has lasted too long; nothing while nobody has claimed it, or somebody has to look at it.
    pub(super) fn lease_ends(&self) -> Option<Timestamp> {
        match self.wire.state? {
            _ if self.may_have_happened() => None,
            State::Claimed | State::Working | State::Blocked => {
                Some(self.touched.plus_seconds(limits::LEASE_S))
            }
            _ => None,
        }
    }
}

fn claimer(wire: &TaskState) -> Sender<'_> {
    wire.claimer.as_deref().map_or(Sender::System, Sender::Agent)
}
