//! What a request task hands to the sequencer.

use std::sync::Arc;

use super::facts::Facts;
use super::standing::InForce;
use crate::contract::Sealed;
use crate::gates::{Caller, Claims, Ground, Judgement, Verdict, judge};
use crate::json::read;
use crate::limits;
use crate::policy::PolicySet;
use crate::proof::Keyring;
use crate::timestamp::Timestamp;

/// A TaskSpec that was judged, and all that is needed to judge it again.
#[derive(Debug)]
pub struct Candidate {
    pub(super) body: Arc<str>,
    pub(super) ruling: Ruling,
    pub(super) sealed: Sealed,
    /// Nothing if not even a handoffId could be read.
    pub(super) facts: Option<Facts>,
    pub(super) correlation_id: Option<String>,
    pub(super) verdict: Verdict,
    pub(super) claims: Option<Claims>,
    pub(super) traceparent: Option<Box<str>>,
}

/// What is in force: the policy set, the keys, and who asks.
#[derive(Debug, Clone)]
pub struct Ruling {
    pub policies: Arc<PolicySet>,
    pub keyring: Arc<Keyring>,
    /// The agent that the caller speaks for; nothing for one that may name any source but for live work.
    pub caller: Option<Arc<str>>,
}

impl Candidate {
    /// Judges a TaskSpec. The body must have been read before: one that cannot be read is no candidate.
    pub fn judge(body: Arc<str>, ruling: Ruling, now: Timestamp) -> Option<Self> {
        let caller = ruling.caller.as_deref().map_or(Caller::AnySourceButLive, Caller::Agent);
        let ground = Ground { policies: &ruling.policies, keyring: &ruling.keyring, caller, now };
        // The document borrows from the body, which the candidate takes along.
        let (sealed, claims, facts, correlation_id, verdict) = {
            let document = read(body.as_bytes(), limits::TASK_SPEC).ok()?;
            let Judgement { spec, verdict } = judge(&document, &ground);
            let sealed = Sealed::of(&document);
            let claims = Claims::of(&sealed, &spec, &verdict);
            let facts = Facts::of(&sealed, &spec);
            (sealed, claims, facts, spec.correlation_id.get().map(|id| id.to_string()), verdict)
        };
        Some(Self { body, ruling, sealed, facts, correlation_id, verdict, claims, traceparent: None })
    }

    /// Remembers the W3C trace context that it came with.
    #[must_use]
    pub fn traced(self, traceparent: Option<&str>) -> Self {
        Self { traceparent: traceparent.map(Box::from), ..self }
    }

    /// What the pure gates say.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The cycle it belongs to: its correlationId, or the gateway's own where none could be read. The ledger has
    /// no other word for it, so a restart must come to the same one.
    pub(super) fn cycle<'c>(&'c self, topic_id: &'c str) -> &'c str {
        self.correlation_id.as_deref().unwrap_or(topic_id)
    }

    /// Does the verdict still hold, under what is in force and at this time?
    ///
    /// Keys are compared as the very same ring: one that was revoked leaves the policy set's digest as it was.
    pub(super) fn still_holds(&self, in_force: Option<&InForce>, now: Timestamp) -> bool {
        let same = in_force.is_none_or(|in_force| {
            in_force.policies.digest() == self.verdict.policy_digest()
                && Arc::ptr_eq(&in_force.keyring, &self.ruling.keyring)
        });
        same && self.verdict.holds_until().is_none_or(|until| now < until)
    }

    /// The same TaskSpec, judged with what is in force now.
    pub(super) fn judged_again(self, in_force: Option<&InForce>, now: Timestamp) -> Option<Self> {
        let ruling = match in_force {
            Some(in_force) => Ruling {
                policies: in_force.policies.clone(),
                keyring: in_force.keyring.clone(),
                caller: self.ruling.caller,
            },
            None => self.ruling,
        };
        let traceparent = self.traceparent;
        Self::judge(self.body, ruling, now).map(|again| Self { traceparent, ..again })
    }
}
