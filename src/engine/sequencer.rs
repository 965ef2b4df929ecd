//! One thread decides, one thread writes.
//!
//! The sequencer takes messages one by one, decides each, and adds it to the batch it is building; whenever the
//! writer is idle the batch goes out. So a batch holds all that came while the one before it was being synced.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::candidate::{Candidate, Ruling};
use super::claims::ClaimIndex;
use super::decide::{Step, own_facts, step};
use super::facts::Facts;
use super::record::{Decided, LedgerPlace};
use super::replay::Replay;
use super::standing::{RouteChange, Standing};
use super::{EngineFault, Reply, World};
use crate::gates::{Decision, Gate, Outcome, Reason, decision_of};
use crate::ledger::{Batch, BatchBuilder, Entry, Follower, Head, Log, Notice};
use crate::limits;
use crate::timestamp::Timestamp;
use crate::wire::{Event, EventTooLarge, Kind, Lineage, Sender as WireSender, StreamId, WireId};

pub(super) enum Message {
    Candidate(Box<Candidate>, Reply),
    /// From now on candidates are judged by this.
    InForce(Ruling),
    /// A follower noticed something.
    Notice(Notice),
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
    /// What is in force by the ledger: durable, with what is being written, and with what is being built.
    standing: [Standing; 3],
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
        let mut standing = Standing::default();
        let mut replay = Replay::default();
        for entry in history {
            replay.entry(&entry?, &mut index, &mut standing)?;
        }
        index.ship();
        index.keep();
        let at = (head, last_timestamp);
        let topic_id = topic_id.to_owned();
        let standing = [standing.clone(), standing.clone(), standing];
        Ok(Self { topic_id, index, durable: at, shipped: at, standing, world, ruling: None })
    }

    /// Records what is in force, if the ledger says otherwise: after a change, at the first start, and again when
    /// the batch that said so failed.
    fn record_standing(&mut self, batch: &mut BatchBuilder<'_>) {
        let Some(ruling) = &self.ruling else { return };
        let policies = ruling.policies.clone();
        let digest = policies.digest().to_string();
        let [.., building] = &mut self.standing;
        let before = building.policy_digest.clone();
        if before.as_ref() == Some(&digest) {
            return;
        }
        let changes = building.adopt(&policies);
        let gateway_seq = building.next_gateway_seq();
        let topic_id = self.topic_id.clone();
        let stream = StreamId::Gateway { topic_id: &topic_id };
        self.note(Kind::PolicyLoaded, stream, gateway_seq, batch, |payload| {
            payload.text("digest", &digest);
            payload.text_or_null("previous_digest", before.as_deref());
        });
        for RouteChange { route_key, stream_seq, facts } in changes {
            let kind = if facts.is_some() { Kind::RouteDeclared } else { Kind::RouteRemoved };
            self.note(kind, StreamId::Route { route_key: &route_key }, stream_seq, batch, |payload| {
                if let Some(facts) = &facts {
                    facts.write(payload);
                }
            });
        }
    }

    /// Records something that a follower noticed.
    fn record_notice(&mut self, notice: Notice, batch: &mut BatchBuilder<'_>) {
        let [.., building] = &mut self.standing;
        let gateway_seq = building.next_gateway_seq();
        let topic_id = self.topic_id.clone();
        let kind = match notice {
            Notice::StateReplaced => Kind::StateReplaced,
        };
        self.note(kind, StreamId::Gateway { topic_id: &topic_id }, gateway_seq, batch, |_| {});
    }

    /// An event of the gateway's own.
    fn note(
        &mut self,
        kind: Kind,
        stream: StreamId<'_>,
        stream_seq: u64,
        batch: &mut BatchBuilder<'_>,
        payload: impl FnOnce(&mut crate::wire::Payload<'_, '_>),
    ) {
        let now = batch.time(self.world.now());
        let event = Event {
            wire_id: WireId::new(now.unix_milliseconds(), self.world.random()),
            kind,
            sender: WireSender::System,
            ts: now,
            stream,
            stream_seq,
            correlation_id: &self.topic_id,
            lineage: Lineage::default(),
        };
        // The names of a route and its agents are bounded by their schema, far below what an event may hold.
        if let Ok(text) = event.to_text(payload) {
            batch.event(text, now);
        }
    }

    /// Decides a candidate and adds what it gives to the batch; a replay adds nothing.
    fn decide(
        &mut self,
        candidate: Candidate,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Arc<Decided>, EngineFault> {
        self.record_standing(batch);
        let now = batch.time(self.world.now());
        let candidate = self.as_of(now, candidate)?;
        let claims_say = match step(&candidate, &self.index, &self.topic_id) {
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
            self.index.take(facts, candidate.cycle(&self.topic_id), accepted);
        }
        Ok(decided)
    }

    /// The sequencer has the last word: a verdict that no longer holds, by the ledger's own time, is given again.
    fn as_of(&self, now: Timestamp, candidate: Candidate) -> Result<Candidate, EngineFault> {
        if candidate.still_holds(self.ruling.as_ref(), now) {
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
        let now = batch.time(self.world.now());
        let too_large =
            |fault: EventTooLarge| EngineFault::NotDurable(format!("an event has {} bytes", fault.bytes));
        let ids = [(); 3].map(|()| WireId::new(now.unix_milliseconds(), self.world.random()));
        let [created_id, decided_id, last_id] = ids;
        let topic_id = self.topic_id.clone();
        let correlation_id = candidate.cycle(&topic_id);
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
        let [.., building] = &self.standing;
        let (decided_seq, cause) = match facts {
            Some(_) => (2, Some(created_id)),
            None => (building.gateway_seq + 1, None),
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
            batch.event(created, now);
        } else {
            let [.., building] = &mut self.standing;
            building.gateway_seq = decided_seq;
        }
        let meta = batch.event(verdict, now);
        if let Some(last) = last {
            batch.event(last, now);
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
        let [_, shipped, building] = &mut self.standing;
        *shipped = building.clone();
    }

    fn keep(&mut self) {
        self.index.keep();
        self.durable = self.shipped;
        let [durable, shipped, _] = &mut self.standing;
        *durable = shipped.clone();
    }

    fn give_back(&mut self) {
        self.index.give_back();
        self.shipped = self.durable;
        let [durable, shipped, building] = &mut self.standing;
        shipped.clone_from(durable);
        building.clone_from(durable);
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

/// A batch on its way to the disk, with those who wait for it.
struct Job {
    batch: Batch,
    replies: Replies,
}

/// Starts both threads.
pub(super) fn spawn(
    sequencer: Sequencer,
    log: Box<dyn Log>,
    follower: Box<dyn Follower>,
    inbox: Sender<Message>,
    messages: Receiver<Message>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let (jobs, work) = channel();
    let writer = std::thread::Builder::new()
        .name("ledger-writer".into())
        .spawn(move || write(log, follower, &work, &inbox))?;
    let sequencer = std::thread::Builder::new()
        .name("sequencer".into())
        .spawn(move || sequence(sequencer, &messages, &jobs))?;
    Ok(vec![sequencer, writer])
}

/// The writer: one batch after the other, and nobody is answered before it is durable.
fn write(
    mut log: Box<dyn Log>,
    mut follower: Box<dyn Follower>,
    work: &Receiver<Job>,
    done: &Sender<Message>,
) {
    while let Ok(Job { batch, replies }) = work.recv() {
        let result = log.append(batch.after(), &batch).map_err(|fault| fault.to_string());
        // What a reply says is already where followers show it.
        let notice = result.as_ref().ok().and_then(|()| follower.durable(batch.entries()));
        for (reply, decided) in replies {
            reply(match &result {
                Ok(()) => Ok(decided),
                Err(why) => Err(EngineFault::NotDurable(why.clone())),
            });
        }
        if let Some(notice) = notice {
            // A sequencer that has gone has nothing left to record.
            let _ = done.send(Message::Notice(notice));
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
                Message::InForce(ruling) => {
                    sequencer.ruling = Some(ruling);
                    sequencer.record_standing(&mut batch);
                }
                Message::Notice(notice) => sequencer.record_notice(notice, &mut batch),
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
