//! What has been claimed: by whom, and with which decision.
//!
//! A claim asks memory, then a filter that answers "never" without a read, then the past. Everything that is taken
//! can be given back until its batch is durable; after that it is taken for ever.
//!
//! INVARIANT (live claims): a claim leaves memory only when the views have applied the entry that made it, and the
//! filter holds every name that was ever claimed. So forgetting makes no replay possible.

use std::sync::Arc;

use moka::sync::Cache;

use super::EngineFault;
use super::facts::{Facts, Reach};
use super::past::Past;
use super::record::Decided;
use super::replay;
use super::routing::mode_of;
use super::seen::Seen;
use super::shelf::{Item, Shelf};
use super::standing::Standing;
use super::task::{Ends, Task};
use crate::contract::Mode;
use crate::gates::Decision;
use crate::limits;
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::views::{AskedClaim, Claimed, HandoffClaim, MessageClaim};
use crate::wire::{State, StreamId, TaskState};

pub(super) struct ClaimIndex {
    handoffs: Shelf<Arc<Known>>,
    /// By source agent and idempotencyKey.
    keys: Shelf<KeyClaim>,
    /// Those that were spent.
    messages: Shelf<()>,
    /// Accepted mentions by correlationId.
    mentions: Shelf<u32>,
    /// By caller and messageId over A2A.
    said: Shelf<MessageClaim>,
    /// Tasks that began without a TaskSpec.
    asked: Shelf<AskedClaim>,
    seen: Seen,
    /// Nothing where all is kept in memory.
    past: Option<Box<dyn Past>>,
    /// Decisions that were read back, by their entry: what stands in the ledger never changes.
    read_back: Cache<u64, Arc<Decided>>,
    at_hand: usize,
    /// [`limits::CLAIMS_IN_MEMORY_MAX`] unless a test wants less.
    pub(super) in_memory_max: usize,
    /// What the batch that is being written, and the one behind it, would have to give back.
    in_flight: Vec<Undo>,
    building: Vec<Undo>,
}

/// What is known of a handoffId.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) source_agent: Option<String>,
    pub(super) correlation_id: String,
    pub(super) target_agent: Option<String>,
    pub(super) parent_handoff_id: Option<String>,
    pub(super) attempts: u32,
    /// The decision, if it was accepted or waits; a refused handoff claims nothing.
    pub(super) accepted: Option<Accepted>,
    pub(super) progress: Progress,
}

/// What became of an accepted handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing was heard since the decision.
    Untouched {
        route_key: Option<String>,
        mode: Option<String>,
        reach: Reach,
    },
    Moved(Arc<Task>),
    /// Its stream has to be read.
    InLedger,
}

/// Where the decision on an accepted handoff is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Accepted {
    AtHand(Arc<Decided>),
    /// In the entry of this number.
    InLedger(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyClaim {
    /// Nothing equals no content.
    pub(super) content_digest: Option<Digest>,
    pub(super) handoff_id: String,
}

/// What was known before a decision, read before it is made: taking what it claims reads nothing that could fail.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    pub(super) known: Option<Arc<Known>>,
    /// Of its cycle; only asked for a mention.
    pub(super) mentions: u32,
}

impl Before {
    /// Which attempt comes next.
    pub(super) fn next_attempt(&self) -> u32 {
        self.known.as_ref().map_or(0, |known| known.attempts) + 1
    }
}

#[derive(Debug)]
enum Undo {
    Handoff(Arc<str>, Option<Item<Arc<Known>>>),
    Key(Arc<str>, Option<Item<KeyClaim>>),
    Message(Arc<str>, Option<Item<()>>),
    Mention(Arc<str>, Option<Item<u32>>),
    Said(Arc<str>, Option<Item<MessageClaim>>),
    Asked(Arc<str>, Option<Item<AskedClaim>>),
}

impl ClaimIndex {
    /// What is in the past, and nothing in memory yet. `at_hand` claims of a kind stay in memory when they could go.
    pub(super) fn on(past: Option<Box<dyn Past>>, at_hand: usize) -> Result<Self, EngineFault> {
        let names = past.as_ref().map_or(Ok(0), |past| past.names_max())?;
        let mut seen = Seen::with_room_for(usize::try_from(names).unwrap_or(0));
        if let Some(past) = &past {
            past.names(&mut |name| seen.add(&name))?;
        }
        Ok(Self {
            handoffs: Shelf::default(),
            keys: Shelf::default(),
            messages: Shelf::default(),
            mentions: Shelf::default(),
            said: Shelf::default(),
            asked: Shelf::default(),
            seen,
            past,
            read_back: Cache::new(limits::DECISIONS_READ_BACK),
            at_hand,
            in_memory_max: limits::CLAIMS_IN_MEMORY_MAX,
            in_flight: Vec::new(),
            building: Vec::new(),
        })
    }

    /// The past, if it may know this name.
    fn past_of(&self, name: &Claimed<'_>) -> Option<&dyn Past> {
        self.past.as_deref().filter(|_| self.seen.may_hold(name))
    }

    pub(super) fn handoff(&self, handoff_id: &str) -> Result<Option<Arc<Known>>, EngineFault> {
        if let Some(known) = self.handoffs.get(handoff_id) {
            return Ok(Some(known.clone()));
        }
        let Some(past) = self.past_of(&Claimed::Handoff(handoff_id)) else { return Ok(None) };
        Ok(past.handoff(handoff_id)?.map(|claim| Arc::new(Known::from(claim))))
    }

    pub(super) fn key(
        &self,
        source_agent: &str,
        idempotency_key: &str,
    ) -> Result<Option<KeyClaim>, EngineFault> {
        if let Some(claim) = self.keys.get(&pair(source_agent, idempotency_key)) {
            return Ok(Some(claim.clone()));
        }
        let name = Claimed::Key { source_agent, idempotency_key };
        let Some(past) = self.past_of(&name) else { return Ok(None) };
        let claim = past.key(source_agent, idempotency_key)?;
        Ok(claim.map(|claim| KeyClaim {
            content_digest: claim.content_digest.as_deref().and_then(Digest::parse),
            handoff_id: claim.handoff_id,
        }))
    }

    /// Was a message spent?
    pub(super) fn is_spent(&self, message_id: &str) -> Result<bool, EngineFault> {
        if self.messages.get(message_id).is_some() {
            return Ok(true);
        }
        let Some(past) = self.past_of(&Claimed::Message(message_id)) else { return Ok(false) };
        Ok(past.message(message_id)?.is_some())
    }

    /// What a caller's messageId stands for.
    pub(super) fn said(&self, caller: &str, message_id: &str) -> Result<Option<MessageClaim>, EngineFault> {
        if let Some(claim) = self.said.get(&pair(caller, message_id)) {
            return Ok(Some(claim.clone()));
        }
        let Some(past) = self.past_of(&Claimed::Said { caller, message_id }) else { return Ok(None) };
        past.said(caller, message_id)
    }

    /// A task that began without a TaskSpec.
    pub(super) fn asked(&self, task_id: &str) -> Result<Option<AskedClaim>, EngineFault> {
        if let Some(asked) = self.asked.get(task_id) {
            return Ok(Some(asked.clone()));
        }
        let Some(past) = self.past_of(&Claimed::Asked(task_id)) else { return Ok(None) };
        past.asked(task_id)
    }

    /// Takes a messageId, which entry `sequence` claims.
    pub(super) fn take_said(&mut self, caller: &str, message_id: &str, claim: MessageClaim, sequence: u64) {
        self.seen.add(&Claimed::Said { caller, message_id });
        let name = pair(caller, message_id).into();
        let was = self.said.put(&name, sequence, claim);
        self.building.push(Undo::Said(name, was));
    }

    /// Takes where a task without a TaskSpec stands, by what its claim says happened last.
    pub(super) fn put_asked(&mut self, asked: AskedClaim) {
        self.seen.add(&Claimed::Asked(&asked.task_id));
        let name = asked.task_id.as_str().into();
        let was = self.asked.put(&name, asked.updated, asked);
        self.building.push(Undo::Asked(name, was));
    }

    fn mentions(&self, correlation_id: &str) -> Result<u32, EngineFault> {
        if let Some(count) = self.mentions.get(correlation_id) {
            return Ok(*count);
        }
        let Some(past) = self.past_of(&Claimed::Cycle(correlation_id)) else { return Ok(0) };
        past.mentions(correlation_id)
    }

    /// What is known before a handoff is decided.
    pub(super) fn before(&self, facts: &Facts, correlation_id: &str) -> Result<Before, EngineFault> {
        let known = self.handoff(&facts.handoff_id)?;
        let mentions = if facts.message_id.is_some() { self.mentions(correlation_id)? } else { 0 };
        Ok(Before { known, mentions })
    }

    /// The decision on an accepted handoff.
    pub(super) fn decided(&self, handoff_id: &str, accepted: &Accepted) -> Result<Arc<Decided>, EngineFault> {
        let sequence = match accepted {
            Accepted::AtHand(decided) => return Ok(decided.clone()),
            Accepted::InLedger(sequence) => *sequence,
        };
        if let Some(decided) = self.read_back.get(&sequence) {
            return Ok(decided);
        }
        let lost =
            || EngineFault::BadLedger(format!("entry {sequence} is not the decision that it should be"));
        let entry = self.past.as_ref().ok_or_else(lost)?.entry(sequence)?;
        let decided = replay::decision_in(&entry)?.ok_or_else(lost)?;
        if decided.handoff_id.as_deref() != Some(handoff_id) {
            return Err(lost());
        }
        let decided = Arc::new(decided);
        self.read_back.insert(sequence, decided.clone());
        Ok(decided)
    }

    /// An accepted handoff as its stream has it.
    pub(super) fn task(&self, handoff_id: &str) -> Result<Option<Arc<Task>>, EngineFault> {
        let Some(known) = self.handoff(handoff_id)? else { return Ok(None) };
        let Some(accepted) = &known.accepted else { return Ok(None) };
        if let Progress::Moved(task) = &known.progress {
            return Ok(Some(task.clone()));
        }
        let decided = self.decided(handoff_id, accepted)?;
        let stream_id = StreamId::Handoff { handoff_id, attempt: decided.attempt }.to_string();
        let lost = || EngineFault::BadLedger(format!("the stream {stream_id} is not what it should be"));
        let task = match &known.progress {
            Progress::Untouched { route_key, mode, reach } => {
                let state = match decided.decision {
                    Decision::NeedsApproval => State::Waiting,
                    _ => State::Available,
                };
                let source = known.source_agent.as_deref();
                let wire = TaskState::accepted(&stream_id, &known.correlation_id, source, state);
                let ends = Ends {
                    route_key: route_key.clone(),
                    mode: mode.clone(),
                    target_agent: known.target_agent.clone(),
                    reach: reach.clone(),
                };
                let decided_at = Timestamp::parse(&decided.decided_at).ok_or_else(lost)?;
                Task::untouched((handoff_id, decided.attempt), ends, wire, decided_at)
            }
            _ => {
                let entries = self.past.as_ref().ok_or_else(lost)?.stream(&stream_id)?;
                Task::read_back(&entries)?.ok_or_else(lost)?
            }
        };
        Ok(Some(Arc::new(task)))
    }

    /// Takes how far a task has come by entry `sequence`.
    pub(super) fn put_task(&mut self, task: Arc<Task>, sequence: u64) -> Result<(), EngineFault> {
        let known = self.handoff(&task.handoff_id)?;
        let known =
            known.ok_or_else(|| EngineFault::BadLedger("an event of an unknown handoff".to_owned()))?;
        let handoff_id: Arc<str> = task.handoff_id.as_str().into();
        let known = Known { progress: Progress::Moved(task), ..Arc::unwrap_or_clone(known) };
        let was = self.handoffs.put(&handoff_id, sequence, Arc::new(known));
        self.building.push(Undo::Handoff(handoff_id, was));
        Ok(())
    }

    /// Takes what was decided about a handoff that waited, and how far its stream has come by entry `sequence`.
    pub(super) fn put_decided(
        &mut self,
        task: Arc<Task>,
        decided: Arc<Decided>,
        sequence: u64,
    ) -> Result<(), EngineFault> {
        let known = self.handoff(&task.handoff_id)?;
        let known =
            known.ok_or_else(|| EngineFault::BadLedger("an event of an unknown handoff".to_owned()))?;
        let handoff_id: Arc<str> = task.handoff_id.as_str().into();
        let (accepted, progress) = (Some(Accepted::AtHand(decided)), Progress::Moved(task));
        let known = Known { accepted, progress, ..Arc::unwrap_or_clone(known) };
        let was = self.handoffs.put(&handoff_id, sequence, Arc::new(known));
        self.building.push(Undo::Handoff(handoff_id, was));
        Ok(())
    }

    /// The decision on a handoff that was accepted, as it stands.
    pub(super) fn decided_of(&self, handoff_id: &str) -> Result<Arc<Decided>, EngineFault> {
        let lost = || EngineFault::BadLedger(format!("{handoff_id} was never accepted"));
        let known = self.handoff(handoff_id)?.ok_or_else(lost)?;
        self.decided(handoff_id, known.accepted.as_ref().ok_or_else(lost)?)
    }

    /// Live handoffs that have not ended. Their route may be another one by now, or gone: a rollback ends them all the same.
    pub(super) fn in_flight(&self, standing: &mut Standing) -> Result<(), EngineFault> {
        let route_keys: Vec<String> = standing.routes_once_live().map(str::to_owned).collect();
        for route_key in route_keys {
            let past =
                self.past.as_ref().map_or_else(|| Ok(Vec::new()), |past| past.in_flight(&route_key))?;
            let at_hand = self.handoffs.names().filter(|(_, known)| known.is_live_on(&route_key));
            let names: Vec<String> =
                past.into_iter().chain(at_hand.map(|(name, _)| name.to_owned())).collect();
            for handoff_id in names {
                if self.task(&handoff_id)?.is_some_and(|task| task.is_in_flight()) {
                    standing.take_off(&route_key, &handoff_id);
                }
            }
        }
        Ok(())
    }

    /// The handoffs that somebody has claimed and not ended, as far as is known; some may have ended since.
    pub(super) fn under_way(&self) -> Result<Vec<String>, EngineFault> {
        let mut names = self.past.as_ref().map_or_else(|| Ok(Vec::new()), |past| past.under_way())?;
        let moved = self.handoffs.names().filter(|(_, known)| matches!(known.progress, Progress::Moved(_)));
        names.extend(moved.map(|(name, _)| name.to_owned()));
        Ok(names)
    }

    /// The handoffs before this one, nearest first, at most so many; ends where the chain does.
    pub(super) fn ancestors(
        &self,
        parent: Arc<Known>,
        hops_max: usize,
    ) -> Result<Vec<Arc<Known>>, EngineFault> {
        let mut chain = Vec::new();
        let mut next = Some(parent);
        while let Some(known) = next
            && chain.len() < hops_max
        {
            next = known.parent_handoff_id.as_deref().map_or(Ok(None), |parent| self.handoff(parent))?;
            chain.push(known);
        }
        Ok(chain)
    }

    /// Is there room for another claim? There is none when the views have not been written for long: what they have not
    /// applied cannot leave memory, and memory is bounded.
    pub(super) fn room(&mut self) -> Result<(), EngineFault> {
        let claims = |index: &Self| index.handoffs.len().max(index.said.len());
        if claims(self) < self.in_memory_max {
            return Ok(());
        }
        let Some(applied) = self.forget() else { return Ok(()) };
        if claims(self) < self.in_memory_max {
            return Ok(());
        }
        Err(EngineFault::NotDurable(format!(
            "the views have stopped at entry {applied} and memory holds no more claims; it goes on when they can be \
             written again, see /readyz"
        )))
    }

    /// Takes what a decision claims, which entry `sequence` makes. A refused handoff only uses up an attempt.
    pub(super) fn take(
        &mut self,
        facts: &Facts,
        content_digest: Option<Digest>,
        correlation_id: &str,
        accepted: Option<Arc<Decided>>,
        before: Before,
        sequence: u64,
    ) {
        let is_accepted = accepted.is_some();
        let known = match before.known {
            // The id is already somebody's: only the attempt counts.
            Some(known) if !is_accepted => Known { attempts: facts.attempt, ..Arc::unwrap_or_clone(known) },
            _ => Known {
                source_agent: facts.source_agent.clone(),
                correlation_id: correlation_id.to_owned(),
                target_agent: facts.target_agent.clone(),
                parent_handoff_id: facts.parent_handoff_id.clone(),
                attempts: facts.attempt,
                accepted: accepted.map(Accepted::AtHand),
                progress: Progress::Untouched {
                    route_key: facts.route_key.clone(),
                    mode: facts.mode.clone(),
                    reach: facts.reach(),
                },
            },
        };
        let handoff_id: Arc<str> = facts.handoff_id.as_str().into();
        self.seen.add(&Claimed::Handoff(&handoff_id));
        let was = self.handoffs.put(&handoff_id, sequence, Arc::new(known));
        self.building.push(Undo::Handoff(handoff_id, was));
        if !is_accepted {
            return;
        }
        if let (Some(source_agent), Some(idempotency_key)) = (&facts.source_agent, &facts.idempotency_key) {
            self.seen.add(&Claimed::Key { source_agent, idempotency_key });
            let name = pair(source_agent, idempotency_key).into();
            let claim = KeyClaim { content_digest, handoff_id: facts.handoff_id.clone() };
            let was = self.keys.put(&name, sequence, claim);
            self.building.push(Undo::Key(name, was));
        }
        if let Some(message_id) = &facts.message_id {
            self.seen.add(&Claimed::Message(message_id));
            let name = message_id.as_str().into();
            let was = self.messages.put(&name, sequence, ());
            self.building.push(Undo::Message(name, was));
            self.seen.add(&Claimed::Cycle(correlation_id));
            let name = correlation_id.into();
            let was = self.mentions.put(&name, sequence, before.mentions + 1);
            self.building.push(Undo::Mention(name, was));
        }
    }

    /// The batch goes to the writer.
    pub(super) fn ship(&mut self) {
        self.in_flight = std::mem::take(&mut self.building);
    }

    /// It is durable: nothing of it is given back any more.
    pub(super) fn keep(&mut self) {
        self.in_flight.clear();
        self.forget();
    }

    /// Lets go of what the views have applied, but for what is at hand. Says how far they have come.
    fn forget(&mut self) -> Option<u64> {
        let applied = self.past.as_ref()?.applied();
        self.handoffs.forget(applied, self.at_hand);
        self.keys.forget(applied, self.at_hand);
        self.messages.forget(applied, self.at_hand);
        self.mentions.forget(applied, self.at_hand);
        self.said.forget(applied, self.at_hand);
        self.asked.forget(applied, self.at_hand);
        Some(applied)
    }

    /// It failed: it and what was built on it give back what they took.
    pub(super) fn give_back(&mut self) {
        let mut taken = std::mem::take(&mut self.in_flight);
        taken.append(&mut self.building);
        self.undo(taken);
    }

    /// What is being built is not going to be written: it gives back what it took.
    pub(super) fn drop_building(&mut self) {
        let taken = std::mem::take(&mut self.building);
        self.undo(taken);
    }

    fn undo(&mut self, taken: Vec<Undo>) {
        for undo in taken.into_iter().rev() {
            match undo {
                Undo::Handoff(name, was) => self.handoffs.restore(name, was),
                Undo::Key(name, was) => self.keys.restore(name, was),
                Undo::Message(name, was) => self.messages.restore(name, was),
                Undo::Mention(name, was) => self.mentions.restore(name, was),
                Undo::Said(name, was) => self.said.restore(name, was),
                Undo::Asked(name, was) => self.asked.restore(name, was),
            }
        }
    }
}

/// One name for both; the length keeps `ab` and `c` apart from `a` and `bc`.
fn pair(whose: &str, name: &str) -> String {
    format!("{} {whose}{name}", whose.len())
}

impl Known {
    /// Was it accepted for live work on this route, as far as memory knows?
    fn is_live_on(&self, route_key: &str) -> bool {
        let (key, mode) = match &self.progress {
            Progress::Untouched { route_key, mode, .. } => (route_key, mode),
            Progress::Moved(task) => (&task.route_key, &task.mode),
            Progress::InLedger => return false,
        };
        self.accepted.is_some()
            && key.as_deref() == Some(route_key)
            && mode_of(mode.as_deref()) == Some(Mode::Live)
    }
}

impl From<HandoffClaim> for Known {
    fn from(claim: HandoffClaim) -> Self {
        let HandoffClaim {
            source_agent,
            correlation_id,
            target_agent,
            parent_handoff_id,
            attempts,
            accepted,
        } = claim;
        let accepted = accepted.map(|accepted| Accepted::InLedger(accepted.sequence));
        let progress = Progress::InLedger;
        Self { source_agent, correlation_id, target_agent, parent_handoff_id, attempts, accepted, progress }
    }
}
