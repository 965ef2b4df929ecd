//! A changed policy set that waits for a person's yes.
//!
//! INVARIANT (a changed set waits): where the gateway asks first, a `policy.loaded` that replaces another set stands behind a
//! `policy.approved` of the same group. The yes belongs to the set that is put in force, so whatever becomes of a
//! batch, the two are written together or not at all.

use std::sync::Arc;

use super::act::Asking;
use super::sequencer::Sequencer;
use super::standing::{InForce, Loading, Putting};
use super::{EngineFault, EngineHandle};
use crate::ledger::{BatchBuilder, Keeping};
use crate::proof::Digest;
use crate::proposal::{PolicyAnswered, PolicyProposed, Proposal, Unanswerable};
use crate::wire::{Kind, Sender};

/// A person's yes to a policy set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    by: Asking,
    reason: String,
}

impl Consent {
    /// Nothing if whoever says so is no person.
    pub fn of(by: Asking, reason: String) -> Option<Self> {
        by.person().is_some().then_some(Self { by, reason })
    }
}

/// How a set came to be proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proposing {
    /// The gateway found it when it started: what the ledger says of it still holds.
    Found,
    /// The files changed.
    Changed,
}

impl EngineHandle {
    /// Does a changed policy set come into force with a person's yes only?
    pub fn asks_first(&self) -> bool {
        self.shared.shown.asks_first
    }

    /// The digest of the policy set that the ledger says is in force; nothing in a ledger that has none yet.
    pub fn policy_digest(&self) -> Option<Digest> {
        self.standing(|standing| standing.policy_digest.as_deref().and_then(Digest::parse))
    }

    /// What was proposed with this digest over the set in force, and what was answered.
    pub fn proposal(&self, digest: Digest) -> Option<Proposal> {
        self.standing(|standing| standing.proposals.find(digest, standing.policy_digest.as_deref()).cloned())
    }

    /// Records that a set waits, unless the ledger says so already. One that would replace another set than the one in
    /// force by now is not recorded: whoever proposes it looks again.
    pub fn propose(&self, proposed: PolicyProposed, how: Proposing) -> Result<(), EngineFault> {
        self.ask_whatever_and_wait(move |sequencer, batch| sequencer.propose(&proposed, how, batch))
    }

    /// Puts a set in force that waits, with the yes that it has; the entry of that yes.
    pub fn approve_policies(&self, in_force: Arc<InForce>) -> Result<Result<u64, Unanswerable>, EngineFault> {
        self.ask_whatever_and_wait(move |sequencer, batch| sequencer.approve_policies(&in_force, batch))
    }

    /// Records a person's no to a set that waits; the entry that says so.
    pub fn reject_policies(
        &self,
        rejected: PolicyAnswered,
        by: Asking,
    ) -> Result<Result<u64, Unanswerable>, EngineFault> {
        self.ask_whatever_and_wait(move |sequencer, batch| sequencer.reject_policies(&rejected, &by, batch))
    }

    /// Goes by these rules again after a set could not be approved, and says whether it does: not if the set is in force
    /// after all.
    pub fn put_back(&self, in_force: Arc<InForce>, approved: Digest) -> Result<bool, EngineFault> {
        self.ask_whatever_and_wait(move |sequencer, batch| {
            let by_the_ledger = sequencer.building().policy_digest.as_deref();
            if by_the_ledger.is_some_and(|digest| approved.is_written(digest)) {
                return Ok(false);
            }
            sequencer.put_in_force(in_force.clone(), &Putting::default(), batch)?;
            Ok(true)
        })
    }
}

impl Sequencer {
    fn propose(
        &mut self,
        proposed: &PolicyProposed,
        how: Proposing,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let standing = self.building();
        let in_force = standing.policy_digest.as_deref();
        if !in_force.is_some_and(|digest| proposed.previous_digest.is_written(digest)) {
            return Ok(());
        }
        let is_known = match (standing.proposals.find(proposed.digest, in_force), how) {
            (None, _) => false,
            (Some(_), Proposing::Found) => true,
            // Another gateway with the same files may have proposed it.
            (Some(known), Proposing::Changed) => {
                known.rejected.is_none() && self.keeping() == Keeping::Shared
            }
        };
        if is_known {
            return Ok(());
        }
        let write = |payload: &mut crate::wire::Payload<'_, '_>| proposed.write(payload);
        self.note_own(Kind::PolicyProposed, Sender::System, batch, write).map(drop)
    }

    fn approve_policies(
        &mut self,
        in_force: &Arc<InForce>,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Result<u64, Unanswerable>, EngineFault> {
        if in_force.consent.is_none() {
            return Ok(Err(Unanswerable::NotHuman));
        }
        if let Some(why) = &in_force.withheld {
            return Err(EngineFault::Differs(why.clone()));
        }
        let standing = self.building();
        let waits =
            standing.proposals.may_answer(in_force.policies.digest(), standing.policy_digest.as_deref());
        if let Err(fault) = waits {
            return Ok(Err(fault));
        }
        let sequence = batch.next_sequence();
        // The yes is to the set; the keys that are here are whatever they are.
        let putting = Putting { policies: Loading::OverAnything, keys: Loading::Not };
        self.put_in_force(in_force.clone(), &putting, batch)?;
        Ok(Ok(sequence))
    }

    fn reject_policies(
        &mut self,
        rejected: &PolicyAnswered,
        by: &Asking,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Result<u64, Unanswerable>, EngineFault> {
        if by.person().is_none() {
            return Ok(Err(Unanswerable::NotHuman));
        }
        let standing = self.building();
        if let Err(fault) = standing.proposals.may_answer(rejected.digest, standing.policy_digest.as_deref())
        {
            return Ok(Err(fault));
        }
        let noted =
            self.note_own(Kind::PolicyRejected, by.sender(), batch, |payload| rejected.write(payload))?;
        Ok(Ok(noted.sequence))
    }

    /// Records the yes of a set that is about to be recorded as loaded.
    pub(super) fn record_consent(
        &mut self,
        in_force: &InForce,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let Some(Consent { by, reason }) = &in_force.consent else { return Ok(()) };
        let approved = PolicyAnswered { digest: in_force.policies.digest(), reason: reason.clone() };
        self.note_own(Kind::PolicyApproved, by.sender(), batch, |payload| approved.write(payload)).map(drop)
    }
}
