//! Messages that clients send over A2A: each is claimed once by who sent it, and recorded with what it led to.
//!
//! INVARIANT (one message, one effect): the claim of a messageId and what the message does, a decision included, are
//! made by the same batch. So whoever sends it again, after whatever fault, finds both or neither.
//!
//! Only the gateway's own stream tells of claims; what is said in a handoff's stream is said to those who follow it.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::act::Act;
use super::candidate::Candidate;
use super::claims::ClaimIndex;
use super::record::Decided;
use super::report::{Report, ReportRefusal};
use super::sequencer::Sequencer;
use super::{EngineFault, EngineHandle, Place};
use crate::ledger::{BatchBuilder, Entry};
use crate::proof::Digest;
use crate::views::{AskedClaim, AskedState, MessageClaim};
use crate::wire::{Event, Kind, Lineage, Sender, SentEvent, Side, StreamId, WireCode, WireFault, WireId};

/// A message as it came in.
#[derive(Debug, Clone)]
pub struct Saying {
    /// Whose messageId it is.
    pub caller: Arc<str>,
    /// As whom the ledger knows that caller, in its written form.
    pub sender: Arc<str>,
    /// For which side of a handoff it speaks.
    pub side: Side,
    pub message_id: String,
    /// Of the words, which are kept beside the ledger.
    pub content: Digest,
    pub words: Arc<str>,
    /// The payload of `message.sent`, without what comes of the message.
    pub payload: Json,
    /// Of a task that it begins.
    pub context_id: String,
    pub to: Addressee,
}

/// Whom a message is for.
#[derive(Debug, Clone)]
pub enum Addressee {
    /// The gates: it hands a TaskSpec over. `asked` is the task that it goes on with; `otherwise` names the task that
    /// it is if the TaskSpec cannot be an attempt at any handoff.
    Gates { candidate: Box<Candidate>, asked: Option<String>, otherwise: String },
    /// Nobody yet: it begins a task that waits for a TaskSpec, or goes on with one.
    Nobody { asked: String, begins: bool },
    /// Those who follow an attempt at a handoff.
    Followers { handoff_id: String, attempt: u32 },
}

/// Which task a message belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaidPlace {
    pub asked: Option<String>,
    pub handoff: Option<(String, u32)>,
}

/// What became of a message.
#[derive(Debug, Clone)]
pub enum Said {
    /// Taken in; with the decision, if it handed a TaskSpec over, and with what was written.
    Taken { place: SaidPlace, decided: Option<Arc<Decided>>, written: Vec<Entry> },
    /// It was taken in before, and changed nothing now.
    Before(SaidPlace),
    /// Its messageId stands for other content.
    OtherContent,
    /// There is no such task, or it is not this caller's.
    Unknown,
    /// The task has ended, or has its TaskSpec already.
    Over,
    /// It cannot be said now.
    Refused(WireFault),
}

/// Why a task was not canceled. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uncanceled {
    Unknown,
    /// It has ended.
    Over,
    Refused(WireFault),
}

/// Called once with what became of a message.
type SaidReply = Box<dyn FnOnce(Result<Said, EngineFault>) + Send>;

impl EngineHandle {
    /// Puts a message in line, where there is a place for it.
    pub fn say(&self, saying: Saying, reply: SaidReply) -> Result<(), EngineFault> {
        let place = self.take_place()?;
        self.send_act(Box::new(Speaking { saying, said: None, reply, _place: place }))
    }

    /// Puts the cancellation of an attempt in line, in somebody's name.
    pub fn cancel(
        &self,
        (handoff_id, attempt): (String, u32),
        (sender, side): (Arc<str>, Side),
        reason: &'static str,
        done: impl FnOnce(Result<Result<(), Uncanceled>, EngineFault>) + Send + 'static,
    ) -> Result<(), EngineFault> {
        let cancel = move |sequencer: &mut Sequencer, batch: &mut BatchBuilder<'_>| {
            let told = json!({"reason": reason});
            let place = (handoff_id.as_str(), attempt);
            let reported = sequencer.report_for(Kind::TaskCancelled, (&sender, side), place, &told, batch)?;
            Ok(reported.map_err(|refusal| match refusal {
                Said::Unknown => Uncanceled::Unknown,
                Said::Refused(fault) => Uncanceled::Refused(fault),
                _ => Uncanceled::Over,
            }))
        };
        self.ask(cancel, done)
    }

    /// The same for a task of this caller's that has no TaskSpec yet.
    pub fn cancel_asked(
        &self,
        task_id: String,
        caller: Option<Arc<str>>,
        done: impl FnOnce(Result<Result<(), Uncanceled>, EngineFault>) + Send + 'static,
    ) -> Result<(), EngineFault> {
        self.ask(
            move |sequencer, batch| {
                let Some(asked) = sequencer.index().asked(&task_id)? else {
                    return Ok(Err(Uncanceled::Unknown));
                };
                if caller.as_ref().is_some_and(|caller| **caller != *asked.caller) {
                    return Ok(Err(Uncanceled::Unknown));
                }
                if asked.state != AskedState::Open {
                    return Ok(Err(Uncanceled::Over));
                }
                sequencer.close_asked(asked, batch).map(Ok)
            },
            done,
        )
    }
}

/// A message in line.
struct Speaking {
    saying: Saying,
    said: Option<Result<Said, EngineFault>>,
    reply: SaidReply,
    _place: Place,
}

impl Act for Speaking {
    fn run(&mut self, sequencer: &mut Sequencer, batch: &mut BatchBuilder<'_>) -> Result<(), EngineFault> {
        let said = sequencer.hear(&self.saying, batch);
        let done = said.as_ref().map(|_| ()).map_err(EngineFault::clone);
        self.said = Some(said);
        done
    }

    fn decided(&self) -> Option<&Decided> {
        match &self.said {
            Some(Ok(Said::Taken { decided, .. })) => decided.as_deref(),
            _ => None,
        }
    }

    fn tell(self: Box<Self>, durable: Result<(), EngineFault>) {
        let Self { said, reply, .. } = *self;
        reply(durable.and_then(|()| said.unwrap_or(Err(EngineFault::Stopped))));
    }
}

impl Sequencer {
    fn hear(&mut self, saying: &Saying, batch: &mut BatchBuilder<'_>) -> Result<Said, EngineFault> {
        let Saying { caller, message_id, .. } = saying;
        if let Some(claim) = self.index().said(caller, message_id)? {
            return Ok(if claim.content.as_deref() == Some(saying.content.to_string().as_str()) {
                Said::Before(SaidPlace { asked: claim.asked, handoff: claim.handoff })
            } else {
                Said::OtherContent
            });
        }
        let goes_on_with = match &saying.to {
            Addressee::Gates { asked, .. } => asked.as_deref(),
            Addressee::Nobody { asked, begins } => (!begins).then_some(asked.as_str()),
            Addressee::Followers { .. } => None,
        };
        let mut context_id = saying.context_id.clone();
        if let Some(task_id) = goes_on_with {
            match self.index().asked(task_id)?.filter(|asked| *asked.caller == **caller) {
                None => return Ok(Said::Unknown),
                Some(asked) if asked.state != AskedState::Open => return Ok(Said::Over),
                Some(asked) => context_id = asked.context_id,
            }
        }
        self.index_mut().room()?;
        let first = batch.next_sequence();
        let (asked, state, handoff, decided) = match &saying.to {
            Addressee::Nobody { asked, .. } => (Some(asked.clone()), Some(AskedState::Open), None, None),
            Addressee::Followers { handoff_id, attempt } => {
                let (kind, place) = (Kind::MessageSent, (handoff_id.as_str(), *attempt));
                if let Err(said) =
                    self.report_for(kind, (&saying.sender, saying.side), place, &saying.payload, batch)?
                {
                    return Ok(said);
                }
                (None, None, Some((handoff_id.clone(), *attempt)), None)
            }
            Addressee::Gates { candidate, asked, otherwise } => {
                let mut candidate = (**candidate).clone();
                let decided = self.decide(&mut candidate, batch)?;
                let handoff = decided.handoff_id.clone().map(|id| (id, decided.attempt));
                let (asked, state) = match (&handoff, asked) {
                    (Some((handoff_id, attempt)), Some(asked)) => {
                        let state = AskedState::Handed { handoff_id: handoff_id.clone(), attempt: *attempt };
                        (Some(asked), Some(state))
                    }
                    (Some(_), None) => (None, None),
                    (None, asked) => {
                        let state = AskedState::Rejected { decided: decided.ledger.sequence };
                        (Some(asked.as_ref().unwrap_or(otherwise)), Some(state))
                    }
                };
                (asked.cloned(), state, handoff, Some(decided))
            }
        };
        let place = SaidPlace { asked, handoff };
        self.record_saying(saying, &context_id, &place, state, batch)?;
        // Whoever said it is shown what came of it, and need not read it back.
        let written = batch.entries_from(first).to_vec();
        Ok(Said::Taken { place, decided, written })
    }

    /// Writes the message into the gateway's own stream, and takes what it claims.
    fn record_saying(
        &mut self,
        saying: &Saying,
        context_id: &str,
        place: &SaidPlace,
        state: Option<AskedState>,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let content = saying.content.to_string();
        let mut payload = saying.payload.clone();
        if let Some(facts) = payload.get_mut("metadata").and_then(Json::as_object_mut) {
            let mut fact = |name: &str, value: Json| drop(facts.insert(format!("a2a.{name}"), value));
            fact("caller", json!(&*saying.caller));
            fact("content", json!(content));
            fact("context", json!(context_id));
            if let Some((handoff_id, attempt)) = &place.handoff {
                fact("handoff", json!(handoff_id));
                fact("attempt", json!(attempt));
            }
            if let Some(asked) = &place.asked {
                fact("task", json!(asked));
            }
            if let Some(state) = &state {
                fact("state", json!(state.as_str()));
            }
            if let Some(AskedState::Rejected { decided }) = &state {
                fact("decided", json!(decided));
            }
        }
        batch.body(saying.content, &saying.words);
        let sender = Sender::parse(&saying.sender).unwrap_or(Sender::System);
        self.note_message(sender, &payload, batch)
    }

    /// The gateway's own word that a task is not going to have a TaskSpec.
    fn close_asked(&mut self, asked: AskedClaim, batch: &mut BatchBuilder<'_>) -> Result<(), EngineFault> {
        const WORDS: &str = "the client canceled it";
        let digest = Digest::of(WORDS.as_bytes());
        let wire_id = WireId::new(self.now().unix_milliseconds(), self.random());
        let payload = json!({
            "message_id": wire_id.to_string(),
            "metadata": {"a2a.state": AskedState::Canceled.as_str(), "a2a.task": asked.task_id},
            "parts": [{"kind": "text", "digest": digest.to_string(), "bytes": WORDS.len()}],
            "role": "system",
        });
        batch.body(digest, WORDS);
        self.note_message(Sender::System, &payload, batch)
    }

    fn note_message(
        &mut self,
        sender: Sender<'_>,
        payload: &Json,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let (topic_id, stream_seq) = (self.topic_id().to_owned(), self.building().gateway_seq + 1);
        let stream = StreamId::Gateway { topic_id: &topic_id };
        let text = |event: &Event<'_>| event.to_text_with(payload);
        let noted = self.note(Kind::MessageSent, sender, stream, stream_seq, batch, text)?;
        self.building_mut().gateway_seq = stream_seq;
        take_in(noted.sequence, payload, self.index_mut())
    }

    /// Reports an event about an attempt in somebody's name, as if they had sent it themselves.
    fn report_for(
        &mut self,
        kind: Kind,
        (sender, side): (&str, Side),
        (handoff_id, attempt): (&str, u32),
        payload: &Json,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Result<(), Said>, EngineFault> {
        let Some(task) = self.index().task(handoff_id)?.filter(|task| task.attempt == attempt) else {
            // An attempt that was refused has ended; whether there was one is for the door to know.
            return Ok(Err(Said::Over));
        };
        if task.is_over() {
            return Ok(Err(Said::Over));
        }
        let unsound = |why: String| EngineFault::NotDurable(format!("{kind} could not be recorded: {why}"));
        let now = batch.time(self.now());
        let event = Event {
            wire_id: WireId::new(now.unix_milliseconds(), self.random()),
            kind,
            sender: Sender::parse(sender).ok_or_else(|| unsound("nobody sent it".to_owned()))?,
            ts: now,
            stream: StreamId::Handoff { handoff_id, attempt },
            stream_seq: task.wire.stream_seq + 1,
            correlation_id: &task.wire.context_id,
            lineage: Lineage::default(),
            traceparent: None,
        };
        let text = event.to_text_with(payload).map_err(|large| unsound(format!("{} bytes", large.bytes)))?;
        let event = match SentEvent::parse(&text) {
            Ok(event) => event,
            Err(faults) => {
                let first = faults.into_iter().next();
                return first.map_or_else(
                    || Err(unsound("no fault".to_owned())),
                    |fault| Ok(Err(Said::Refused(fault))),
                );
            }
        };
        let report = Report { handoff_id: handoff_id.to_owned(), event, side };
        Ok(match self.report(&report, batch)? {
            Ok(_) => Ok(()),
            Err(ReportRefusal::Unknown) => Err(Said::Unknown),
            Err(ReportRefusal::Refused { fault, .. }) if fault.code == WireCode::Terminal => Err(Said::Over),
            Err(ReportRefusal::Refused { fault, .. }) => Err(Said::Refused(fault)),
        })
    }
}

/// Takes in what a message in the gateway's own stream claims, as it was written.
pub(super) fn take_in(sequence: u64, payload: &Json, index: &mut ClaimIndex) -> Result<(), EngineFault> {
    let fact = |name: &str| payload.get("metadata")?.get(format!("a2a.{name}"));
    let text = |name: &str| fact(name).and_then(Json::as_str).map(str::to_owned);
    let number = |name: &str| fact(name).and_then(Json::as_u64);
    let (caller, asked) = (text("caller"), text("task"));
    let attempt = number("attempt").and_then(|attempt| u32::try_from(attempt).ok());
    let handoff = text("handoff").zip(attempt);
    if let (Some(caller), Some(message_id)) = (&caller, payload.get("message_id").and_then(Json::as_str)) {
        let claim = MessageClaim { content: text("content"), asked: asked.clone(), handoff: handoff.clone() };
        index.take_said(caller, message_id, claim, sequence);
    }
    let (Some(task_id), Some(state)) = (asked, text("state")) else { return Ok(()) };
    let bad = || EngineFault::BadLedger(format!("entry {sequence}: its task is not ours"));
    let before = index.asked(&task_id)?;
    let (caller, context_id) = match before {
        Some(before) => (before.caller, before.context_id),
        None => (caller.ok_or_else(bad)?, text("context").ok_or_else(bad)?),
    };
    let state = match (state.as_str(), handoff, number("decided")) {
        ("input-required", ..) => AskedState::Open,
        ("handed-over", Some((handoff_id, attempt)), _) => AskedState::Handed { handoff_id, attempt },
        ("rejected", _, Some(decided)) => AskedState::Rejected { decided },
        ("canceled", ..) => AskedState::Canceled,
        _ => return Err(bad()),
    };
    index.put_asked(AskedClaim { task_id, caller, context_id, state, updated: sequence });
    Ok(())
}
