//! What a request task hands to the sequencer.

use std::sync::{Arc, OnceLock};

use super::epoch::Stamps;
use super::facts::Facts;
use super::standing::InForce;
use crate::contract::{RiskClass, Sealed, TaskSpec, Word as _};
use crate::evidence::{Handoff, HandoffEvidence, HandoffPacket, of_handoff};
use crate::gates::{Caller, Claims, Ground, Judgement, Verdict, judge};
use crate::json::{BodyFault, read};
use crate::limits;
use crate::policy::PolicySet;
use crate::proof::{Digest, Keyring};
use crate::timestamp::Timestamp;

/// A TaskSpec that was judged, and all that is needed to judge it again.
#[derive(Debug, Clone)]
pub struct Candidate {
    purpose: Purpose,
    pub(super) body: Arc<str>,
    pub(super) ruling: Ruling,
    /// Made when it is judged for good; a dry run makes it when something has to be compared.
    sealed: OnceLock<Sealed>,
    /// Nothing if not even a handoffId could be read.
    pub(super) facts: Option<Facts>,
    pub(super) correlation_id: Option<String>,
    pub(super) verdict: Verdict,
    pub(super) claims: Option<Claims>,
    pub(super) traceparent: Option<Box<str>>,
    pub(super) stamps: Stamps,
    /// What it emits if it is allowed; nothing while the gates are against it.
    pub(super) evidence: Option<HandoffEvidence>,
}

/// What a TaskSpec is judged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Submit,
    DryRun,
}

/// What is in force: the policy set, the keys, and who asks.
#[derive(Debug, Clone)]
pub struct Ruling {
    pub policies: Arc<PolicySet>,
    pub keyring: Arc<Keyring>,
    pub asker: Asker,
}

/// Who asks, as a candidate keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asker {
    /// Speaks for this agent and no other.
    Agent(Arc<str>),
    /// May name any source, but not for live work.
    AnySourceButLive,
    /// Only wants to know: the source is taken as stated. Never submits.
    Unchecked,
}

impl Asker {
    fn caller(&self) -> Caller<'_> {
        match self {
            Self::Agent(agent) => Caller::Agent(agent),
            Self::AnySourceButLive => Caller::AnySourceButLive,
            Self::Unchecked => Caller::Unchecked,
        }
    }
}

impl Candidate {
    /// Judges a TaskSpec that is submitted. A body that cannot be read at all is no candidate.
    pub fn judge(body: Arc<str>, ruling: Ruling, now: Timestamp) -> Result<Self, BodyFault> {
        Self::judge_for(Purpose::Submit, body, ruling, now)
    }

    /// The same for one that is only asked about: it emits nothing, whatever is said of it.
    pub fn judge_dry(body: Arc<str>, ruling: Ruling, now: Timestamp) -> Result<Self, BodyFault> {
        Self::judge_for(Purpose::DryRun, body, ruling, now)
    }

    fn judge_for(
        purpose: Purpose,
        body: Arc<str>,
        ruling: Ruling,
        now: Timestamp,
    ) -> Result<Self, BodyFault> {
        let caller = ruling.asker.caller();
        let ground = Ground { policies: &ruling.policies, keyring: &ruling.keyring, caller, now };
        // The document borrows from the body, which the candidate takes along.
        let (sealed, claims, facts, correlation_id, stamps, evidence, verdict) = {
            let document = read(body.as_bytes(), limits::TASK_SPEC)?;
            let Judgement { spec, verdict } = judge(&document, &ground);
            let sealed = match purpose {
                Purpose::Submit => OnceLock::from(Sealed::of(&document)),
                Purpose::DryRun => OnceLock::new(),
            };
            let claims = Claims::of(&spec, &verdict);
            let facts = Facts::of(&spec);
            let emits = purpose == Purpose::Submit && verdict.reasons().is_empty();
            let evidence = emits.then(|| evidence_of(&spec)).flatten();
            let correlation_id = spec.correlation_id.get().map(|id| id.to_string());
            (sealed, claims, facts, correlation_id, Stamps::of(&spec), evidence, verdict)
        };
        let traceparent = None;
        Ok(Self {
            purpose,
            body,
            ruling,
            sealed,
            facts,
            correlation_id,
            verdict,
            claims,
            traceparent,
            stamps,
            evidence,
        })
    }

    /// Remembers the W3C trace context that it came with.
    #[must_use]
    pub fn traced(self, traceparent: Option<&str>) -> Self {
        Self { traceparent: traceparent.map(Box::from), ..self }
    }

    /// Is it in somebody's name? Then its answer has a line for the delegation log.
    pub fn is_delegated(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.delegation.is_some())
    }

    /// The canonical form, and the digests that it goes by.
    pub(super) fn sealed(&self) -> &Sealed {
        self.sealed.get_or_init(|| match read(self.body.as_bytes(), limits::TASK_SPEC) {
            Ok(document) => Sealed::of(&document),
            // What was read once is read again; if it were not, it would equal nothing.
            Err(_) => {
                let digest = Digest::of(self.body.as_bytes());
                Sealed {
                    text: self.body.as_ref().to_owned(),
                    task_spec_digest: digest,
                    content_digest: digest,
                    intent_hash: None,
                }
            }
        })
    }

    /// What the pure gates say.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The class of risk that it states.
    pub(super) fn risk_class(&self) -> Option<RiskClass> {
        let stated = self.facts.as_ref()?.delegation.as_ref()?.risk_classification.as_deref()?;
        RiskClass::from_word(stated)
    }

    /// What an observer would see of it, also where the gates are against it by now: an answer that is given again
    /// says what the first one said.
    pub(super) fn tag(&self) -> Option<Handoff> {
        if let Some(evidence) = &self.evidence {
            return Some(evidence.handoff);
        }
        let document = read(self.body.as_bytes(), limits::TASK_SPEC).ok()?;
        evidence_of(&TaskSpec::read(&document).0).map(|evidence| evidence.handoff)
    }

    /// The cycle it belongs to: its correlationId, or the gateway's own where none could be read. The ledger has
    /// no other word for it, so a restart must come to the same one.
    pub(super) fn cycle<'c>(&'c self, topic_id: &'c str) -> &'c str {
        self.correlation_id.as_deref().unwrap_or(topic_id)
    }

    /// Does the verdict still hold, under what is in force and at this time?
    ///
    /// Both are compared as the very same ones: a key that was revoked, or routes that a rollback restored, leave the
    /// policy set's digest as it was.
    pub(super) fn still_holds(&self, in_force: Option<&InForce>, now: Timestamp) -> bool {
        let same = in_force.is_none_or(|in_force| {
            Arc::ptr_eq(&in_force.policies, &self.ruling.policies)
                && Arc::ptr_eq(&in_force.keyring, &self.ruling.keyring)
        });
        same && self.verdict.holds_until().is_none_or(|until| now < until)
    }

    /// The same TaskSpec, judged with what is in force now.
    pub(super) fn judged_again(&self, in_force: Option<&InForce>, now: Timestamp) -> Option<Self> {
        let ruling = match in_force {
            Some(in_force) => Ruling {
                policies: in_force.policies.clone(),
                keyring: in_force.keyring.clone(),
                asker: self.ruling.asker.clone(),
            },
            None => self.ruling.clone(),
        };
        let traceparent = self.traceparent.clone();
        Self::judge_for(self.purpose, self.body.clone(), ruling, now)
            .ok()
            .map(|again| Self { traceparent, ..again })
    }
}

/// What an allowed handoff emits: its packet, through the same adapter as any other.
pub fn evidence_of(spec: &TaskSpec<'_>) -> Option<HandoffEvidence> {
    let created_at = spec.created_at.get()?.to_string();
    let message_id = spec.mention().and_then(|mention| mention.message_id.get()).map(|id| id.as_str());
    let (handoff_id, source_agent) = (spec.handoff_id.get()?.as_str(), spec.source.agent_id.get()?.as_str());
    of_handoff(&HandoffPacket { handoff_id, source_agent, created_at: &created_at, message_id }).ok()
}
