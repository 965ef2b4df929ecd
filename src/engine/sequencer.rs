//! One thread decides, one thread writes.
//!
//! The sequencer takes messages one by one, decides each, and adds it to the batch it is building; whenever the
//! writer is idle the batch goes out. So a batch holds all that came while the one before it was being synced.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use serde::Deserialize;

use super::candidate::{Candidate, Ruling};
use super::claims::ClaimIndex;
use super::decide::{Step, own_facts, step};
use super::facts::Facts;
use super::record::{Decided, LedgerPlace};
use super::{EngineFault, Reply, World};
use crate::gates::{Decision, Gate, Outcome, Reason, decision_of};
use crate::ledger::{Batch, BatchBuilder, Entry, Head, Log};
use crate::limits;
use crate::timestamp::Timestamp;
use crate::wire::{Event, EventTooLarge, Kind, Lineage, Sender as WireSender, StreamId, WireId};

pub(super) enum Message {
    Candidate(Box<Candidate>, Reply),
    /// From now on candidates are judged by this.
    InForce(Ruling),
    /// The writer is done with a batch.
    Written(Result<(), String>),
    Stop,
}

/// Replies that leave when the batch they wait for is durable.
type Replies = Vec<(Reply, Arc<Decided>)>;

pub(super) struct Sequencer {
    topic_id: String,
    index: ClaimIndex,
    /// The last entry that is durable, and its time.
    durable: (Head, Option<Timestamp>),
    /// The same, once the batch that is being written is durable.
    shipped: (Head, Option<Timestamp>),
    /// The next number in the gateway's own stream: durable, shipped, and with what is being built.
    gateway_seq: [u64; 3],
    world: Box<dyn World>,
    /// What is in force; candidates judged under another set are judged again.
    ruling: Option<Ruling>,
}

impl Sequencer {
    /// Rebuilds what has been claimed from the ledger.
    pub(super) fn rebuild(
        topic_id: &str,
        head: Head,
        last_timestamp: Option<Timestamp>,
        history: impl Iterator<Item = Result<Entry, EngineFault>>,
        world: Box<dyn World>,
    ) -> Result<Self, EngineFault> {
        let mut index = ClaimIndex::default();
        let mut gateway_seq = 0;
        let mut replay = Replay::default();
        for entry in history {
            replay.entry(&entry?, &mut index, &mut gateway_seq)?;
        }
        index.ship();
        index.keep();
        let at = (head, last_timestamp);
        let topic_id = topic_id.to_owned();
        Ok(Self {
            topic_id,
            index,
            durable: at,
            shipped: at,
            gateway_seq: [gateway_seq; 3],
            world,
            ruling: None,
        })
    }

    /// Takes a policy set into force, and says so in the ledger if it is another one.
    fn put_in_force(&mut self, ruling: Ruling, batch: &mut BatchBuilder<'_>) {
        let digest = ruling.policies.digest().to_string();
        let before = self.ruling.as_ref().map(|before| before.policies.digest().to_string());
        self.ruling = Some(ruling);
        if before.as_ref() == Some(&digest) {
            return;
        }
        let now = self.world.now();
        let topic_id = self.topic_id.clone();
        let event = Event {
            wire_id: WireId::new(now.unix_milliseconds(), self.world.random()),
            kind: Kind::PolicyLoaded,
            sender: WireSender::System,
            ts: now,
            stream: StreamId::Gateway { topic_id: &topic_id },
            stream_seq: self.gateway_seq[2] + 1,
            correlation_id: &topic_id,
            lineage: Lineage::default(),
        };
        let text = event.to_text(|payload| {
            payload.text("digest", &digest);
            payload.text_or_null("previous_digest", before.as_deref());
        });
        // Two digests always fit.
        if let Ok(text) = text {
            batch.event(&text, now);
            self.gateway_seq[2] += 1;
        }
    }

    /// Decides a candidate and adds what it gives to the batch; a replay adds nothing.
    fn decide(
        &mut self,
        candidate: Candidate,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Arc<Decided>, EngineFault> {
        let candidate = self.as_of_now(candidate)?;
        let claims_say = match step(&candidate, &self.index) {
            Step::Replay(decided) => return Ok(Arc::new(Decided { replayed: true, ..(*decided).clone() })),
            Step::Decide(reasons) => reasons,
        };
        let mut reasons = candidate.verdict.reasons().to_vec();
        reasons.extend(claims_say);
        let decision = decision_of(&reasons, candidate.verdict.human());
        let facts = own_facts(&candidate).map(|facts| {
            let attempts = self.index.handoff(&facts.handoff_id).map_or(0, |known| known.attempts);
            Facts { attempt: attempts + 1, ..facts.clone() }
        });
        let decided = Arc::new(self.record(&candidate, facts.as_ref(), decision, reasons, batch)?);
        if let Some(facts) = &facts {
            let accepted =
                matches!(decision, Decision::Allowed | Decision::NeedsApproval).then(|| decided.clone());
            self.index.take(facts, candidate.correlation_id.as_deref(), accepted);
        }
        Ok(decided)
    }

    /// The sequencer has the last word: a verdict that no longer holds is given again.
    fn as_of_now(&self, candidate: Candidate) -> Result<Candidate, EngineFault> {
        let now = self.world.now();
        let digest = self.ruling.as_ref().unwrap_or(&candidate.ruling).policies.digest();
        if candidate.still_holds(digest, now) {
            return Ok(candidate);
        }
        let again = candidate.judged_again(self.ruling.clone(), now);
        again.ok_or_else(|| EngineFault::NotDurable("the TaskSpec could not be read again".to_owned()))
    }

    /// Writes the group of events that a decision is.
    fn record(
        &mut self,
        candidate: &Candidate,
        facts: Option<&Facts>,
        decision: Decision,
        reasons: Vec<Reason>,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Decided, EngineFault> {
        let now = self.world.now();
        let too_large =
            |fault: EventTooLarge| EngineFault::NotDurable(format!("an event has {} bytes", fault.bytes));
        let ids = [(); 3].map(|()| WireId::new(now.unix_milliseconds(), self.world.random()));
        let [created_id, decided_id, last_id] = ids;
        let topic_id = self.topic_id.clone();
        let correlation_id = candidate.correlation_id.as_deref().unwrap_or(&topic_id);
        let gates: Vec<(Gate, Outcome)> = candidate.verdict.gates().collect();

        let stream = match facts {
            Some(facts) => StreamId::Handoff { handoff_id: &facts.handoff_id, attempt: facts.attempt },
            None => StreamId::Gateway { topic_id: &topic_id },
        };
        let event = |wire_id, kind, stream_seq, causation_id| Event {
            wire_id,
            kind,
            sender: WireSender::System,
            ts: now,
            stream,
            stream_seq,
            correlation_id,
            lineage: Lineage { causation_id, ..Lineage::default() },
        };
        // All texts first: a group is written whole or not at all.
        let created = match facts {
            Some(facts) => Some(
                event(created_id, Kind::TaskCreated, 1, None)
                    .to_text(|p| facts.write(p))
                    .map_err(too_large)?,
            ),
            None => None,
        };
        let (decided_seq, cause) = match facts {
            Some(_) => (2, Some(created_id)),
            None => (self.gateway_seq[2] + 1, None),
        };
        let verdict = event(decided_id, Kind::GateDecided, decided_seq, cause)
            .to_text(|payload| write_decided(payload, candidate, decision, &gates, &reasons))
            .map_err(too_large)?;
        let (last_kind, codes) = match decision {
            Decision::Allowed => (Kind::TaskAvailable, None),
            Decision::NeedsApproval => (Kind::ApprovalRequested, None),
            Decision::Denied | Decision::Expired => (Kind::TaskRejected, Some(codes_of(&reasons))),
        };
        let last = match facts {
            None => None,
            Some(_) => Some(
                event(last_id, last_kind, 3, Some(decided_id))
                    .to_text(|payload| {
                        if let Some(codes) = &codes {
                            payload.texts("codes", codes);
                        }
                    })
                    .map_err(too_large)?,
            ),
        };

        if let Some(created) = created {
            batch.body(candidate.sealed.task_spec_digest, &candidate.sealed.text);
            batch.event(&created, now);
        } else {
            self.gateway_seq[2] = decided_seq;
        }
        let meta = batch.event(&verdict, now);
        if let Some(last) = last {
            batch.event(&last, now);
        }
        Ok(Decided {
            decision,
            handoff_id: facts.map(|facts| facts.handoff_id.clone()),
            correlation_id: candidate.correlation_id.clone(),
            attempt: facts.map_or(1, |facts| facts.attempt),
            decided_at: meta.consensus_timestamp,
            replayed: false,
            gates,
            reasons,
            policy_digest: candidate.verdict.policy_digest().to_string(),
            ledger: LedgerPlace { sequence: meta.sequence, running_hash: meta.running_hash },
        })
    }

    fn ship(&mut self, head: Head, time: Timestamp) {
        self.index.ship();
        self.shipped = (head, Some(time));
        self.gateway_seq[1] = self.gateway_seq[2];
    }

    fn keep(&mut self) {
        self.index.keep();
        self.durable = self.shipped;
        self.gateway_seq[0] = self.gateway_seq[1];
    }

    fn give_back(&mut self) {
        self.index.give_back();
        self.shipped = self.durable;
        self.gateway_seq = [self.gateway_seq[0]; 3];
    }
}

fn codes_of(reasons: &[Reason]) -> Vec<&'static str> {
    let mut codes: Vec<&'static str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

fn write_decided(
    payload: &mut crate::wire::Payload<'_, '_>,
    candidate: &Candidate,
    decision: Decision,
    gates: &[(Gate, Outcome)],
    reasons: &[Reason],
) {
    let outcomes: Vec<String> =
        gates.iter().map(|(gate, outcome)| format!("{}:{}", gate.id(), outcome.as_str())).collect();
    payload.texts("codes", &codes_of(reasons));
    payload.text("decision", decision.as_str());
    payload.texts("gates", &outcomes);
    payload.text("policyDigest", &candidate.verdict.policy_digest().to_string());
    payload.text("taskSpecDigest", &candidate.sealed.task_spec_digest.to_string());
}

/// Reads decisions back from the ledger, group by group.
#[derive(Default)]
struct Replay {
    created: Option<(Facts, String)>,
}

#[derive(Deserialize)]
struct WireText {
    #[serde(rename = "type")]
    kind: String,
    stream: WireStream,
    payload: serde_json::Value,
}

#[derive(Deserialize)]
struct WireStream {
    stream_id: String,
    stream_seq: u64,
    correlation_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DecidedPayload {
    decision: String,
    gates: Vec<String>,
    policy_digest: String,
}

impl Replay {
    fn entry(
        &mut self,
        entry: &Entry,
        index: &mut ClaimIndex,
        gateway_seq: &mut u64,
    ) -> Result<(), EngineFault> {
        let bad = |what: &str| EngineFault::BadLedger(format!("entry {}: {what}", entry.sequence));
        let wire: WireText = serde_json::from_str(&entry.wire).map_err(|_| bad("it is no Wire event"))?;
        if wire.stream.stream_id.starts_with("project:") {
            *gateway_seq = wire.stream.stream_seq;
            return Ok(());
        }
        match wire.kind.as_str() {
            "task.created" => {
                let facts =
                    serde_json::from_value(wire.payload).map_err(|_| bad("its facts are not ours"))?;
                self.created = Some((facts, wire.stream.correlation_id));
            }
            "gate.decided" => {
                let payload: DecidedPayload =
                    serde_json::from_value(wire.payload).map_err(|_| bad("its decision is not ours"))?;
                let (facts, correlation_id) =
                    self.created.take().ok_or_else(|| bad("nothing was created before it"))?;
                let accepted = match payload.decision.as_str() {
                    "allowed" => Some(Decision::Allowed),
                    "needs_approval" => Some(Decision::NeedsApproval),
                    _ => None,
                };
                let decided = accepted.map(|decision| {
                    Arc::new(Decided {
                        decision,
                        handoff_id: Some(facts.handoff_id.clone()),
                        correlation_id: Some(correlation_id.clone()),
                        attempt: facts.attempt,
                        decided_at: entry.consensus_timestamp.clone(),
                        replayed: false,
                        gates: payload.gates.iter().filter_map(|text| read_outcome(text)).collect(),
                        reasons: Vec::new(),
                        policy_digest: payload.policy_digest,
                        ledger: LedgerPlace { sequence: entry.sequence, running_hash: entry.running_hash },
                    })
                });
                index.take(&facts, Some(&correlation_id), decided);
            }
            _ => {}
        }
        Ok(())
    }
}

fn read_outcome(text: &str) -> Option<(Gate, Outcome)> {
    let (gate, outcome) = text.split_once(':')?;
    let gate = Gate::PURE.into_iter().find(|other| other.id() == gate)?;
    let outcomes = [Outcome::Pass, Outcome::Fail, Outcome::NotApplicable];
    Some((gate, outcomes.into_iter().find(|other| other.as_str() == outcome)?))
}

/// A batch on its way to the disk, with those who wait for it.
struct Job {
    batch: Batch,
    replies: Replies,
}

/// Starts both threads.
pub(super) fn spawn(
    sequencer: Sequencer,
    log: Box<dyn Log>,
    inbox: Sender<Message>,
    messages: Receiver<Message>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let (jobs, work) = channel();
    let writer =
        std::thread::Builder::new().name("ledger-writer".into()).spawn(move || write(log, &work, &inbox))?;
    let sequencer = std::thread::Builder::new()
        .name("sequencer".into())
        .spawn(move || sequence(sequencer, &messages, &jobs))?;
    Ok(vec![sequencer, writer])
}

/// The writer: one batch after the other, and nobody is answered before it is durable.
fn write(mut log: Box<dyn Log>, work: &Receiver<Job>, done: &Sender<Message>) {
    while let Ok(Job { batch, replies }) = work.recv() {
        let result = log.append(batch.after(), &batch).map_err(|fault| fault.to_string());
        for (reply, decided) in replies {
            reply(match &result {
                Ok(()) => Ok(decided),
                Err(why) => Err(EngineFault::NotDurable(why.clone())),
            });
        }
        if done.send(Message::Written(result)).is_err() {
            return;
        }
    }
}

/// The sequencer's loop.
fn sequence(mut sequencer: Sequencer, messages: &Receiver<Message>, jobs: &Sender<Job>) {
    let topic_id = sequencer.topic_id.clone();
    let new_batch = |sequencer: &Sequencer| {
        let (head, time) = sequencer.shipped;
        BatchBuilder::new(&topic_id, head, time)
    };
    let mut batch = new_batch(&sequencer);
    let mut replies: Replies = Vec::new();
    let (mut writing, mut stopping) = (false, false);
    loop {
        let Ok(message) = messages.recv() else { return };
        let mut next = Some(message);
        while let Some(message) = next {
            match message {
                Message::Candidate(candidate, reply) if stopping => {
                    drop(candidate);
                    reply(Err(EngineFault::Stopped));
                }
                Message::Candidate(candidate, reply) => match sequencer.decide(*candidate, &mut batch) {
                    Ok(decided) => replies.push((reply, decided)),
                    Err(fault) => reply(Err(fault)),
                },
                Message::InForce(ruling) => sequencer.put_in_force(ruling, &mut batch),
                Message::Written(Ok(())) => {
                    writing = false;
                    sequencer.keep();
                }
                Message::Written(Err(why)) => {
                    // What was built on the failed batch falls with it.
                    writing = false;
                    sequencer.give_back();
                    batch = new_batch(&sequencer);
                    for (reply, _) in replies.drain(..) {
                        reply(Err(EngineFault::NotDurable(why.clone())));
                    }
                }
                Message::Stop => stopping = true,
            }
            next = if batch.text_bytes() < limits::BATCH_BYTES_MAX { messages.try_recv().ok() } else { None };
        }
        if !writing {
            if batch.is_empty() {
                // Only replays are waiting, and all they refer to is durable.
                replies.drain(..).for_each(|(reply, decided)| reply(Ok(decided)));
                if stopping {
                    return;
                }
            } else {
                let full = std::mem::replace(&mut batch, new_batch(&sequencer));
                if let Some(full) = full.seal() {
                    sequencer.ship(full.head(), full.last_timestamp());
                    batch = new_batch(&sequencer);
                    writing = true;
                    let job = Job { batch: full, replies: std::mem::take(&mut replies) };
                    if jobs.send(job).is_err() {
                        return;
                    }
                }
            }
        }
    }
}
