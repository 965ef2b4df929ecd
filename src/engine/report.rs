//! What agents report about a handoff, and what the gateway says itself when they fall silent.

use std::sync::Arc;

use super::facts::Reach;
use super::own::payload_of;
use super::routing::mode_of;
use super::sequencer::Sequencer;
use super::standing::concerns;
use super::task::{Before, Task};
use super::{EngineFault, EngineHandle};
use crate::ledger::{BatchBuilder, EntryMeta};
use crate::limits;
use crate::promotion::RouteRecord;
use crate::timestamp::Timestamp;
use crate::wire::{
    Admitted, Contracts, Envelope, Event, Fact, Halt, Kind, Lineage, Parties, Payload, Sender, SentEvent,
    Side, State, StreamId, WireFault, WireId,
};

/// An event that somebody sent about a handoff. That its sender is who sent it is for the door to see to.
#[derive(Debug, Clone)]
pub struct Report {
    pub handoff_id: String,
    pub event: SentEvent,
    /// For which side its sender may speak, if that is an agent.
    pub side: Side,
}

/// An event that stands in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    pub handoff_id: String,
    pub attempt: u32,
    pub stream_seq: u64,
    /// Where the handoff stands now.
    pub state: State,
    pub terminal: bool,
    /// Its entry in the ledger.
    pub sequence: u64,
    /// It was there before; nothing was written.
    pub replayed: bool,
}

/// Why an event was not taken in. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportRefusal {
    /// There is no such handoff, or the sender has nothing to do with it.
    Unknown,
    Refused {
        fault: WireFault,
        /// The next number in the stream, where another one was sent.
        expected: Option<u64>,
    },
}

/// Called once with what became of a report.
pub type ReportReply = Box<dyn FnOnce(Result<Result<Reported, ReportRefusal>, EngineFault>) + Send>;

impl EngineHandle {
    /// Puts an event in line, where there is a place for it.
    pub fn report(&self, report: Report, reply: ReportReply) -> Result<(), EngineFault> {
        let place = self.take_place()?;
        let reply = move |answer| {
            drop(place);
            reply(answer);
        };
        self.ask(move |sequencer, batch| sequencer.report(&report, batch), reply)
    }

    /// The same, and waits.
    pub fn report_and_wait(&self, report: Report) -> Result<Result<Reported, ReportRefusal>, EngineFault> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.report(report, Box::new(move |answer| drop(sender.send(answer))))?;
        receiver.recv().unwrap_or(Err(EngineFault::Stopped))
    }
}

/// What callers may say; the rest is the gateway's to say, whoever may send it elsewhere.
fn is_for_callers(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::TaskClaimed
            | Kind::TaskStarted
            | Kind::TaskBlocked
            | Kind::ArtifactReady
            | Kind::TaskComplete
            | Kind::TaskFailed
            | Kind::TaskCancelled
            | Kind::MessageSent
    )
}

impl Sequencer {
    pub(super) fn report(
        &mut self,
        report: &Report,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Result<Reported, ReportRefusal>, EngineFault> {
        let Report { handoff_id, event, side } = report;
        let Some(task) = self.index().task(handoff_id)? else { return Ok(Err(ReportRefusal::Unknown)) };
        let unread = || EngineFault::NotDurable("the event could not be read again".to_owned());
        let envelope = event.envelope().ok_or_else(unread)?;
        let (reach, route) = self.reach_of(&task)?;
        let route = route.as_ref().and_then(|record| record.route());
        let claimants = reach.claimants(task.target_agent.as_deref(), route);
        let parties = Parties {
            source: task.wire.source.as_deref(),
            claimants: Some(&claimants),
            claimer: task.wire.claimer.as_deref(),
            halt: self.halt(&task),
        };
        let is_agent = match envelope.sender() {
            Sender::Agent(agent) if !side.is_of(agent, &parties) => return Ok(Err(ReportRefusal::Unknown)),
            sender => matches!(sender, Sender::Agent(_)),
        };
        let refused = |fault| Ok(Err(ReportRefusal::Refused { fault, expected: None }));
        if !is_for_callers(envelope.kind()) {
            return refused(WireFault::not_for_callers(envelope.kind()));
        }
        if is_agent && let Err(fault) = side.may_say(envelope.kind()) {
            return refused(fault);
        }
        let stream = StreamId::Handoff { handoff_id, attempt: task.attempt }.to_string();
        if envelope.stream_id() != stream {
            return refused(WireFault::other_stream(&stream));
        }
        match task.before(envelope.wire_id(), event.text()) {
            Before::New => {}
            Before::Same(taken) => return Ok(Ok(reported(&task, taken.stream_seq, taken.sequence, true))),
            Before::Other => return refused(WireFault::id_taken(envelope.wire_id())),
        }
        let next_seq = task.wire.stream_seq + 1;
        let admitted = match Admitted::after(Contracts::embedded(), Some(&task.wire), &envelope, &parties) {
            Ok(admitted) => admitted,
            Err(fault) => {
                let expected = fault.is_sequence().then_some(next_seq);
                return Ok(Err(ReportRefusal::Refused { fault, expected }));
            }
        };
        if next_seq > limits::STREAM_EVENTS_MAX && !ends(envelope.kind()) {
            return refused(WireFault::stream_full(limits::STREAM_EVENTS_MAX));
        }
        self.index_mut().room()?;
        let now = batch.time(self.now());
        let meta = batch.event(event.text().to_owned(), now);
        let next = Arc::new(task.with(&envelope, admitted, event.text(), meta.sequence, now));
        self.take_in(&next, &envelope, event.text(), meta.sequence, now)?;
        let answer = reported(&next, next.wire.stream_seq, meta.sequence, false);
        self.moved(next.clone(), meta.sequence)?;
        self.landed(&next, &envelope, meta.sequence, batch)?;
        Ok(Ok(answer))
    }

    /// Who may do a handoff, and the route that says so, as the ledger has it. Live work is done by those whom the gates have
    /// tried: where its route has become another one, by its target alone, under the names that the route had for it then.
    fn reach_of(&self, task: &Task) -> Result<(Reach, Option<RouteRecord>), EngineFault> {
        let Some(key) = task.route_key.as_deref() else { return Ok((task.reach.clone(), None)) };
        let standing = self.building();
        if task.is_live() {
            let decided_in = self.index().decided_of(&task.handoff_id)?.ledger.sequence;
            if standing.is_another_since(key, decided_in) {
                return Ok((task.reach.named(), standing.former(key, decided_in).cloned()));
            }
        }
        Ok((task.reach.clone(), standing.route(key).cloned()))
    }

    /// Why nothing is taken in about a handoff.
    pub(super) fn halt(&self, task: &Task) -> Option<Halt> {
        let (route_key, mode) = (task.route_key.as_deref()?, mode_of(task.mode.as_deref())?);
        let blocked = self.building().route(route_key).is_some_and(|route| route.blocked);
        let frozen = self.building().freezes.halts(Some(route_key), Some(mode)).map(|_| Halt::Frozen);
        frozen.or(blocked.then_some(Halt::Blocked))
    }

    /// Remembers how far a task has come, and when to look at it again.
    fn moved(&mut self, task: Arc<Task>, sequence: u64) -> Result<(), EngineFault> {
        if let Some(ends) = task.lease_ends() {
            self.look_again(ends, &task.handoff_id);
        }
        self.index_mut().put_task(task, sequence)
    }

    /// What is in force follows what happens to handoffs, too: who waits, and who no longer does.
    fn take_in(
        &mut self,
        task: &Task,
        envelope: &Envelope<'_>,
        text: &str,
        sequence: u64,
        at: Timestamp,
    ) -> Result<(), EngineFault> {
        let kind = envelope.kind();
        if !concerns(kind) {
            return Ok(());
        }
        let unsound = |why: String| EngineFault::NotDurable(format!("{kind} could not be recorded: {why}"));
        let payload = payload_of(text).ok_or_else(|| unsound("it cannot be read again".to_owned()))?;
        let stream = StreamId::Handoff { handoff_id: &task.handoff_id, attempt: task.attempt };
        let fact = Fact { kind, sender: envelope.sender(), stream, sequence, at, payload: &payload };
        self.building_mut().take(&fact, envelope.stream_seq()).map_err(|fault| unsound(fault.to_string()))
    }

    /// Looks at the handoffs whose time has come, a few at a time so that nobody waits long for it.
    pub(super) fn tick(&mut self, batch: &mut BatchBuilder<'_>) -> Result<(), EngineFault> {
        let now = batch.time(self.now());
        for _ in 0..limits::TICK_LOOKS_MAX {
            let Some(handoff_id) = self.due(now) else { break };
            let began = batch.next_sequence();
            let looked = self.look_at(&handoff_id, now, batch);
            if batch.next_sequence() != began {
                self.has_looked_at(handoff_id.clone());
            }
            if let Err(fault) = looked {
                // What cannot be read now may be readable soon.
                self.look_again(now.plus_seconds(1), &handoff_id);
                return Err(fault);
            }
        }
        Ok(())
    }

    fn look_at(
        &mut self,
        handoff_id: &str,
        now: Timestamp,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let Some(task) = self.index().task(handoff_id)? else { return Ok(()) };
        if let Ok(waiting) = self.building().inbox.find(handoff_id).cloned() {
            let since = self.building().epoch.as_ref().map(|epoch| epoch.since);
            if waiting.is_over(now, since) {
                return self.expire(&task, waiting.until, batch);
            }
            self.look_again(waiting.until, handoff_id);
            return Ok(());
        }
        if let Some(later) = self.look_at_canary(&task, now, batch)? {
            self.look_again(later, handoff_id);
        }
        let Some(task) = self.index().task(handoff_id)? else { return Ok(()) };
        match task.lease_ends() {
            None => Ok(()),
            Some(ends) if now < ends => {
                self.look_again(ends, handoff_id);
                Ok(())
            }
            Some(_) => {
                let claimer = task.wire.claimer.as_deref().unwrap_or_default();
                let reason = format!("nothing was heard from {claimer} for {} minutes", limits::LEASE_S / 60);
                // Live work may have happened: nobody else is given it until a person has looked.
                let kind = if task.is_live() { Kind::TaskBlocked } else { Kind::TaskAvailable };
                let told = |payload: &mut Payload<'_, '_>| payload.text("reason", &reason);
                self.tell_task(&task, kind, Sender::System, batch, told).map(drop)
            }
        }
    }

    /// An event in a task's stream that the gateway writes, in its own name or in a person's.
    pub(super) fn tell_task(
        &mut self,
        task: &Task,
        kind: Kind,
        sender: Sender<'_>,
        batch: &mut BatchBuilder<'_>,
        payload: impl FnOnce(&mut Payload<'_, '_>),
    ) -> Result<Arc<Task>, EngineFault> {
        self.index_mut().room()?;
        let now = batch.time(self.now());
        let event = Event {
            wire_id: WireId::new(now.unix_milliseconds(), self.random()),
            kind,
            sender,
            ts: now,
            stream: StreamId::Handoff { handoff_id: &task.handoff_id, attempt: task.attempt },
            stream_seq: task.wire.stream_seq + 1,
            correlation_id: &task.wire.context_id,
            lineage: Lineage::default(),
            traceparent: None,
        };
        let unsound = |why: String| EngineFault::NotDurable(format!("{kind}: {why}"));
        let text = event.to_text(payload).map_err(|large| unsound(format!("{} bytes", large.bytes)))?;
        let envelope = Envelope::read_again(&text);
        let envelope = envelope.ok_or_else(|| unsound("it cannot be read again".to_owned()))?;
        let next = task.after(&envelope, &text, batch.next_sequence(), now);
        let next = Arc::new(next.map_err(|fault| unsound(fault.to_string()))?);
        self.take_in(&next, &envelope, &text, batch.next_sequence(), now)?;
        let EntryMeta { sequence, .. } = batch.event(text.clone(), now);
        self.moved(next.clone(), sequence)?;
        self.landed(&next, &envelope, sequence, batch)?;
        Ok(next)
    }
}

fn ends(kind: Kind) -> bool {
    kind.state().is_some_and(|(_, terminal)| terminal)
}

fn reported(task: &Task, stream_seq: u64, sequence: u64, replayed: bool) -> Reported {
    Reported {
        handoff_id: task.handoff_id.clone(),
        attempt: task.attempt,
        stream_seq,
        state: task.wire.state.unwrap_or(State::Created),
        terminal: task.is_over(),
        sequence,
        replayed,
    }
}
