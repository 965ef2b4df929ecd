//! Policy sets that wait for a person's yes: what the files have, what it would change, and the answer.
//!
//! The set in force stays as it was read; the one that waits is kept beside it, and it is that very set that comes into
//! force, if the files still say the same when the answer comes. After a start there is no set in force to go by, for only
//! its digest is in the ledger: then nothing is decided until somebody answers, or the files are put back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use super::Files;
use super::rules::{Cause, Hindrance, Part, RuleKeeper, Rules, with_policies};
use crate::engine::{Asking, Consent, EngineFault, Proposing};
use crate::limits;
use crate::os::{clock, files};
use crate::policy::{Change, PolicySet, changes};
use crate::proof::Digest;
use crate::proposal::{Answer, PolicyAnswered, PolicyProposed, Proposal, ProposalAsk, Unanswerable};
use crate::timestamp::Timestamp;

/// A policy set that the files have and that is not in force.
#[derive(Debug)]
pub struct Pending {
    policies: Arc<PolicySet>,
    /// The digest of the set in force, which it would replace.
    pub previous: Digest,
    /// The files that are not the same in both; nothing if it is no longer known what the set in force consists of.
    pub files: Option<Vec<String>>,
    found_at: Timestamp,
}

impl Pending {
    pub fn digest(&self) -> Digest {
        self.policies.digest()
    }

    /// What would be different from this set, if that is the one in force.
    pub fn changes_from(&self, in_force: &PolicySet) -> Option<Vec<Change>> {
        (in_force.digest() == self.previous).then(|| changes(in_force, &self.policies))
    }

    /// Since when it waits, by what the ledger says of it.
    pub fn since(&self, proposal: Option<&Proposal>) -> Timestamp {
        proposal.map_or(self.found_at, |proposal| proposal.at)
    }
}

/// What an answer came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub digest: Digest,
    /// The set that was in force when it was asked.
    pub previous: Digest,
    /// The entry that says so.
    pub sequence: u64,
}

impl RuleKeeper {
    /// The set that waits for a person's yes, or was given a no.
    pub fn pending(&self) -> Option<Arc<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same, with what the ledger says of it.
    pub fn proposed(&self) -> Option<(Arc<Pending>, Option<Proposal>)> {
        let pending = self.pending()?;
        let proposal = self.engine.proposal(pending.digest());
        Some((pending, proposal))
    }

    pub fn asks_first(&self) -> bool {
        self.asks_first
    }

    /// The digest of the set in force: of the one that is here, unless that waits.
    pub fn digest(&self) -> Digest {
        let here = self.current().in_force.policies.clone();
        let waits = self.waits(&here);
        self.engine.policy_digest().filter(|_| waits).unwrap_or_else(|| here.digest())
    }

    fn set_pending(&self, pending: Option<Pending>) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = pending.map(Arc::new);
    }

    /// Must somebody say yes before this set comes into force?
    pub(super) fn waits(&self, policies: &PolicySet) -> bool {
        self.asks_first && self.engine.policy_digest().is_some_and(|digest| digest != policies.digest())
    }

    /// Is another set in force than the one that the pending one was proposed over?
    pub(super) fn is_outdated(&self) -> bool {
        self.pending().is_some_and(|pending| self.engine.policy_digest() != Some(pending.previous))
    }

    /// What of the rules that were found may come into force now, and the policy set that has to wait.
    pub(super) fn hold_back(&self, found: Rules, before: &Rules) -> (Rules, Option<Arc<PolicySet>>) {
        let (proposed, kept) = (found.in_force.policies.clone(), before.in_force.policies.clone());
        if !self.waits(&proposed) {
            return (found, None);
        }
        let is_pending = self.pending().is_some_and(|pending| pending.digest() == proposed.digest());
        // Others have put another set in force, and the files here have not changed: there is nothing to propose.
        if self.sharing.is_some() && proposed.digest() == kept.digest() && !is_pending {
            return (found, None);
        }
        // After a start there is no set to go by, and nothing is decided by any.
        let kept = if self.sharing.is_none() && self.waits(&kept) { proposed.clone() } else { kept };
        let in_force = Arc::new(with_policies(&found.in_force, kept));
        (Rules { in_force, ..found }, Some(proposed))
    }

    /// Has a set wait that was held back; its digest if it did not wait before. Nothing waits where none was.
    pub(super) fn pend(
        &self,
        held: Option<Arc<PolicySet>>,
        how: Proposing,
    ) -> Result<Option<Digest>, String> {
        let Some((policies, previous)) = held.zip(self.engine.policy_digest()) else {
            self.set_pending(None);
            return Ok(None);
        };
        let digest = policies.digest();
        if self.pending().is_some_and(|known| known.digest() == digest && known.previous == previous) {
            return Ok(None);
        }
        let proposed = PolicyProposed { digest, previous_digest: previous };
        self.engine.propose(proposed, how).map_err(|fault| fault.to_string())?;
        let files = self.files_of(previous).map(|before| differing(&before, policies.files()));
        self.set_pending(Some(Pending { policies, previous, files, found_at: clock::now() }));
        Ok(Some(digest))
    }

    /// What a set that is, or was, in force consists of. Whoever says so must be right about its digest.
    fn files_of(&self, digest: Digest) -> Option<BTreeMap<String, Digest>> {
        let current = self.current().in_force.policies.clone();
        if current.digest() == digest {
            return Some(current.files().clone());
        }
        let shared = || -> Option<BTreeMap<String, Digest>> {
            let told = self.sharing.as_ref()?.files_in_force().ok()??;
            told.into_iter().map(|(path, digest)| Some((path, Digest::parse(&digest)?))).collect()
        };
        let right = |files: &BTreeMap<String, Digest>| PolicySet::digest_of(files) == digest;
        self.file_list.read().filter(right).or_else(|| shared().filter(right))
    }

    /// Takes a person's answer to the set that waits: exactly that one, and only if the files still have it. Blocks until
    /// the ledger has it.
    pub fn answer(
        &self,
        ask: ProposalAsk,
        by: Asking,
    ) -> Result<Result<Answered, Unanswerable>, EngineFault> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let ProposalAsk { digest, decision, reason } = ask;
        // The answer is to policies; keys and tokens that cannot be read are no reason to have them wait.
        match self.reload_in_turn(Cause::Noticed).failed.and_then(|failed| failed.hinders(Part::Policies)) {
            Some(Hindrance::Broken(why)) => return Ok(Err(Unanswerable::Unreadable { asked: digest, why })),
            Some(Hindrance::Unanswered(why) | Hindrance::Unrecorded(why)) => {
                return Err(EngineFault::NotDurable(why));
            }
            None => {}
        }
        let Some(pending) = self.pending() else {
            let is_in_force = self.engine.policy_digest() == Some(digest);
            return Ok(Err(Unanswerable::NotWaiting { asked: digest, is_in_force }));
        };
        if pending.digest() != digest {
            return Ok(Err(Unanswerable::OtherSet { asked: digest, waiting: pending.digest() }));
        }
        let answered = match decision {
            Answer::Reject => self.engine.reject_policies(PolicyAnswered { digest, reason }, by)?,
            Answer::Approve => match Consent::of(by, reason) {
                Some(consent) => self.approve(&pending, consent)?,
                None => Err(Unanswerable::NotHuman),
            },
        };
        Ok(answered.map(|sequence| Answered { digest, previous: pending.previous, sequence }))
    }

    fn approve(&self, pending: &Pending, consent: Consent) -> Result<Result<u64, Unanswerable>, EngineFault> {
        let not_durable = |why: String| EngineFault::NotDurable(why);
        let before = self.current();
        let digest = pending.digest();
        // Whoever may not answer any more must not have others told what is in force.
        if let Some(Proposal { rejected: Some(no), .. }) = self.engine.proposal(digest) {
            return Ok(Err(Unanswerable::Rejected { asked: digest, at: no.at }));
        }
        let mut in_force = with_policies(&before.in_force, pending.policies.clone());
        in_force.consent = Some(consent);
        let mut rules = Rules { in_force: Arc::new(in_force), loaded_at: clock::now(), ..before.clone() };
        self.withhold(&mut rules).map_err(not_durable)?;
        self.say_what_is_in_force(&rules, (true, false)).map_err(|fault| not_durable(fault.to_string()))?;
        let approved = self.engine.approve_policies(rules.in_force.clone());
        let is_in_force = match &approved {
            Ok(Ok(_)) => true,
            // The sequencer may go by it already; unless the ledger says so, it goes by the one before again.
            Ok(Err(_)) | Err(_) => !self.engine.put_back(before.in_force.clone(), digest)?,
        };
        if is_in_force {
            self.set(rules);
            self.set_pending(None);
        }
        self.compare();
        approved
    }
}

/// The names that are not the same in both.
fn differing(these: &BTreeMap<String, Digest>, those: &BTreeMap<String, Digest>) -> Vec<String> {
    let names: BTreeSet<&String> = these.keys().chain(those.keys()).collect();
    names.into_iter().filter(|name| these.get(*name) != those.get(*name)).cloned().collect()
}

/// What the set in force consists of, in a file: after a start, it tells which files have changed. It proves itself, for
/// the digest of a set is made of this; one that is wrong or gone costs the names.
#[derive(Debug)]
pub(super) struct FileList(PathBuf);

impl FileList {
    pub(super) fn of(files: &Files) -> Self {
        Self(files.policy_files())
    }

    pub(super) fn keep(&self, policies: &PolicySet) {
        if self.read().as_ref() == Some(policies.files()) {
            return;
        }
        let text = serde_json::to_vec(policies.files()).unwrap_or_default();
        if let Err(error) = files::replace_private(&self.0, &text) {
            tracing::warn!(%error, file = %self.0.display(), "which files are in force could not be kept");
        }
    }

    fn read(&self) -> Option<BTreeMap<String, Digest>> {
        let text = files::read_bounded(&self.0, limits::FILE_LIST_BYTES_MAX).ok()?;
        serde_json::from_slice(&text).ok()
    }
}
