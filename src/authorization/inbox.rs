//! What waits for a person, and who may answer.
//!
//! A tree whose copies share what did not change, for the reason that `book.rs` gives: a flood of live handoffs can
//! make thousands wait.

use std::sync::Arc;

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use serde::Deserialize;

use super::approval::{Answer, ApprovalFault, ApprovalGranted, ApprovalRequested};
use super::person::Person;
use crate::limits;
use crate::policy::Reach;
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::wire::{Fact, FactFault, Kind, StreamId};

/// A handoff that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub handoff_id: Arc<str>,
    pub attempt: u32,
    /// The entry that created it; the TaskSpec is kept before it.
    pub created_sequence: u64,
    /// What is approved: this TaskSpec and no other.
    pub task_spec_digest: Digest,
    pub route_key: Option<String>,
    pub source: Option<String>,
    pub target: Option<String>,
    pub principal: Option<String>,
    /// Who may do it, beside the target.
    pub reach: Reach,
    /// How many people must say yes: as many as the route asked for when it was asked, or at a yes since then if that
    /// was more.
    pub needed: u8,
    pub said_yes: Vec<Person>,
    pub asked_at: Timestamp,
    /// An answer at this instant comes too late.
    pub until: Timestamp,
}

/// Everything that waits, by its handoffId.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inbox {
    waiting: RedBlackTreeMapSync<Arc<str>, Arc<Waiting>>,
    /// The same, by when it ends.
    ends: RedBlackTreeSetSync<(Timestamp, Arc<str>)>,
    /// The handoff that was created last: the events of a decision stand together, so the next request is about it.
    created: Option<Arc<Created>>,
}

/// What is known of a handoff when somebody is asked about it.
#[derive(Debug, PartialEq)]
struct Created {
    handoff_id: Arc<str>,
    attempt: u32,
    sequence: u64,
    facts: CreatedFacts,
}

/// What matters here of the payload of `task.created`.
#[derive(Debug, PartialEq, Deserialize)]
struct CreatedFacts {
    delegation: Option<Delegation>,
    route_key: Option<String>,
    source_agent: Option<String>,
    target_agent: Option<String>,
    task_spec_digest: Digest,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Delegation {
    fallback_agent: Option<String>,
    principal: Option<String>,
}

impl Waiting {
    /// How many more people must say yes.
    pub fn missing(&self) -> u8 {
        self.needed.saturating_sub(self.yeses())
    }

    /// How many more once this person has said yes, if so many must by now.
    pub fn after_yes(&self, person: &Person, needed: u8) -> u8 {
        let counts = !self.said_yes.iter().any(|other| other.is(person));
        needed.saturating_sub(self.yeses()).saturating_sub(u8::from(counts))
    }

    fn yeses(&self) -> u8 {
        u8::try_from(self.said_yes.len()).unwrap_or(u8::MAX)
    }

    /// Is it too late to answer? `since` is when the ledger's epoch began: what was asked before it may have been
    /// answered in what is forgotten, so it is void like the grants from before.
    pub fn is_over(&self, at: Timestamp, since: Option<Timestamp>) -> bool {
        self.until <= at || since.is_some_and(|since| self.asked_at < since)
    }
}

/// May this person answer so?
///
/// Saying no only stops work, so whoever may answer at all may say it: also somebody who has a part in the handoff,
/// or who said yes before. Yes is for those who have no part in it, each once. Of those who have one, `ends` are the agents,
/// by every name that they go by.
pub fn may_decide(
    person: &Person,
    (waiting, ends): (&Waiting, &[(&'static str, &str)]),
    answer: Answer,
    at: Timestamp,
    since: Option<Timestamp>,
) -> Result<(), ApprovalFault> {
    if waiting.missing() == 0 {
        return Err(ApprovalFault::NotWaiting { handoff_id: waiting.handoff_id.to_string() });
    }
    if waiting.is_over(at, since) {
        return Err(ApprovalFault::Expired { until: waiting.until });
    }
    if answer == Answer::Reject {
        return Ok(());
    }
    let own = [("source", &waiting.source), ("principal", &waiting.principal), ("target", &waiting.target)];
    let own = own.iter().filter_map(|(as_what, id)| Some((*as_what, id.as_deref()?)));
    if let Some((as_what, id)) = own.chain(ends.iter().copied()).find(|(_, id)| person.goes_by(id)) {
        return Err(ApprovalFault::Own { as_what, id: id.to_owned() });
    }
    if waiting.said_yes.iter().any(|other| other.is(person)) {
        return Err(ApprovalFault::Twice { name: person.name().to_owned() });
    }
    Ok(())
}

impl Inbox {
    /// Takes in what the ledger says.
    pub fn take(&mut self, fact: &Fact<'_>) -> Result<(), FactFault> {
        let StreamId::Handoff { handoff_id, attempt } = fact.stream else { return Ok(()) };
        match fact.kind {
            Kind::TaskCreated => {
                let (handoff_id, sequence) = (Arc::from(handoff_id), fact.sequence);
                self.created = Some(Arc::new(Created { handoff_id, attempt, sequence, facts: fact.read()? }));
            }
            Kind::ApprovalRequested => {
                let asked: ApprovalRequested = fact.read()?;
                let created = self.created.take();
                let created = created.filter(|it| *it.handoff_id == *handoff_id && it.attempt == attempt);
                let created = created.ok_or_else(|| fact.fault("nothing was created before it"))?;
                self.ask(waiting(&created, &asked, fact.at));
            }
            Kind::ApprovalGranted => return self.say_yes(fact, handoff_id, attempt),
            Kind::TaskAvailable | Kind::TaskRejected | Kind::TaskCancelled | Kind::ApprovalRejected => {
                self.created = None;
                self.settle(handoff_id, attempt);
            }
            _ => {}
        }
        Ok(())
    }

    fn ask(&mut self, waiting: Waiting) {
        self.settle(&waiting.handoff_id, waiting.attempt);
        self.ends.insert_mut((waiting.until, waiting.handoff_id.clone()));
        self.waiting.insert_mut(waiting.handoff_id.clone(), Arc::new(waiting));
    }

    /// A yes counts for the TaskSpec that it names, and once for each person.
    fn say_yes(&mut self, fact: &Fact<'_>, handoff_id: &str, attempt: u32) -> Result<(), FactFault> {
        let granted: ApprovalGranted = fact.read()?;
        let person = Person::of(fact.sender, granted.principal.as_deref());
        let person = person.ok_or_else(|| fact.fault("no person said it"))?;
        let waiting = self.waiting.get(handoff_id).filter(|waiting| waiting.attempt == attempt);
        let waiting = waiting.ok_or_else(|| fact.fault("it does not wait"))?;
        if waiting.task_spec_digest != granted.task_spec_digest {
            return Err(fact.fault("it is a yes to another TaskSpec"));
        }
        if waiting.said_yes.iter().any(|other| other.is(&person)) {
            return Err(fact.fault("the same person said yes before"));
        }
        let mut waiting = Waiting::clone(waiting);
        waiting.said_yes.push(person);
        let asked_for = waiting.yeses().saturating_add(granted.remaining.unwrap_or(0));
        waiting.needed = waiting.needed.max(asked_for);
        self.waiting.insert_mut(waiting.handoff_id.clone(), Arc::new(waiting));
        Ok(())
    }

    /// This attempt no longer waits. What became of another one, such as a refusal of somebody who sent the id once
    /// more, says nothing about it.
    fn settle(&mut self, handoff_id: &str, attempt: u32) {
        // Nearly every handoff is settled without having waited.
        let waiting = self.waiting.get(handoff_id).filter(|waiting| waiting.attempt == attempt);
        if let Some(waiting) = waiting.cloned() {
            self.ends.remove_mut(&(waiting.until, waiting.handoff_id.clone()));
            self.waiting.remove_mut(handoff_id);
        }
    }

    /// The handoff of that id, if it waits.
    pub fn find(&self, handoff_id: &str) -> Result<&Arc<Waiting>, ApprovalFault> {
        let not_waiting = || ApprovalFault::NotWaiting { handoff_id: handoff_id.to_owned() };
        self.waiting.get(handoff_id).ok_or_else(not_waiting)
    }

    /// All that waits, what ends first coming first.
    pub fn by_end(&self) -> impl Iterator<Item = &Arc<Waiting>> {
        self.ends.iter().filter_map(|(_, handoff_id)| self.waiting.get(handoff_id))
    }

    /// What nobody answered in time, and what a restored ledger has made void.
    pub fn over(&self, at: Timestamp, since: Option<Timestamp>) -> impl Iterator<Item = &Arc<Waiting>> {
        // Sorted by when it ends, so the first one that ends later is the last to look at, but for what is void.
        self.by_end()
            .take_while(move |waiting| since.is_some() || waiting.until <= at)
            .filter(move |waiting| waiting.is_over(at, since))
    }

    pub fn count(&self) -> usize {
        self.waiting.size()
    }

    /// Is there room for one more?
    pub fn room(&self) -> Result<(), ApprovalFault> {
        if self.count() < limits::WAITING_APPROVALS_MAX { Ok(()) } else { Err(ApprovalFault::Full) }
    }
}

fn waiting(created: &Created, asked: &ApprovalRequested, at: Timestamp) -> Waiting {
    let Created { handoff_id, attempt, sequence, facts } = created;
    let delegation = facts.delegation.as_ref();
    Waiting {
        handoff_id: handoff_id.clone(),
        attempt: *attempt,
        created_sequence: *sequence,
        task_spec_digest: facts.task_spec_digest,
        route_key: facts.route_key.clone(),
        source: facts.source_agent.clone(),
        target: facts.target_agent.clone(),
        principal: delegation.and_then(|delegation| delegation.principal.clone()),
        reach: delegation.map_or(Reach::Route, |delegation| Reach::Named {
            fallback_agent: delegation.fallback_agent.clone(),
        }),
        needed: asked.approvers.unwrap_or(1).max(1),
        said_yes: Vec::new(),
        asked_at: at,
        until: asked.expires_at.unwrap_or_else(|| at.plus_seconds(limits::APPROVAL_WAIT_S)),
    }
}
