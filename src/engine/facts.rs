//! What the ledger remembers of a handoff: facts, references and digests, never the work itself.
//!
//! What is written when a handoff is decided is what is read when the engine starts again. The digests are the
//! TaskSpec's ([`Sealed`]): a dry run has facts and makes no digest that nobody compares.

use serde::Deserialize;

use crate::contract::{Sealed, TaskSpec};
pub(super) use crate::policy::Reach;
use crate::proof::Digest;
use crate::wire::Payload;

/// What is remembered of a handoff beside its digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) attempt: u32,
    pub(super) delegation: Option<DelegationFacts>,
    pub(super) handoff_id: String,
    pub(super) idempotency_key: Option<String>,
    pub(super) message_id: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) operation: Option<String>,
    pub(super) parent_handoff_id: Option<String>,
    pub(super) route_key: Option<String>,
    pub(super) source_agent: Option<String>,
    pub(super) target_agent: Option<String>,
}

/// The payload of `task.created`, as it is read back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recorded {
    attempt: u32,
    content_digest: String,
    delegation: Option<DelegationFacts>,
    handoff_id: String,
    idempotency_key: Option<String>,
    #[serde(rename = "intent_hash")]
    _intent_hash: Option<String>,
    message_id: Option<String>,
    mode: Option<String>,
    operation: Option<String>,
    parent_handoff_id: Option<String>,
    route_key: Option<String>,
    source_agent: Option<String>,
    target_agent: Option<String>,
    #[serde(rename = "task_spec_digest")]
    _task_spec_digest: String,
}

impl Recorded {
    /// The facts, and the digest of the content that they are of; nothing if that is none.
    pub(super) fn into_facts(self) -> (Facts, Option<Digest>) {
        let content_digest = Digest::parse(&self.content_digest);
        let facts = Facts {
            attempt: self.attempt,
            delegation: self.delegation,
            handoff_id: self.handoff_id,
            idempotency_key: self.idempotency_key,
            message_id: self.message_id,
            mode: self.mode,
            operation: self.operation,
            parent_handoff_id: self.parent_handoff_id,
            route_key: self.route_key,
            source_agent: self.source_agent,
            target_agent: self.target_agent,
        };
        (facts, content_digest)
    }
}

/// What the delegation log shows of a delegated handoff.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DelegationFacts {
    pub(super) authorization_ref: Option<String>,
    pub(super) channel: Option<String>,
    pub(super) delegate_agent: Option<String>,
    pub(super) envelope_hash: Option<String>,
    /// Who may do it instead of the target; nobody, if the TaskSpec names nobody.
    pub(super) fallback_agent: Option<String>,
    pub(super) policy_ref: Option<String>,
    pub(super) principal: Option<String>,
    pub(super) risk_classification: Option<String>,
}

impl Facts {
    /// Who may do it.
    pub(super) fn reach(&self) -> Reach {
        match &self.delegation {
            None => Reach::Route,
            Some(delegation) => Reach::Named { fallback_agent: delegation.fallback_agent.clone() },
        }
    }

    /// The facts of a TaskSpec, as far as they could be read; nothing without a handoffId to put them under.
    pub(super) fn of(spec: &TaskSpec<'_>) -> Option<Self> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let mention = spec.mention();
        Some(Self {
            attempt: 1,
            delegation: (spec.is_delegated() == Some(true)).then(|| DelegationFacts::of(spec)),
            handoff_id: spec.handoff_id.get()?.to_string(),
            idempotency_key: owned(spec.audit.idempotency_key.get().map(|key| key.as_str())),
            message_id: owned(mention.and_then(|mention| mention.message_id.get()).map(|id| id.as_str())),
            mode: owned(spec.mode.get().map(|mode| mode.as_str())),
            operation: owned(spec.intent.operation.get().map(|operation| operation.as_str())),
            parent_handoff_id: owned(spec.parent_handoff_id.get().map(|id| id.as_str())),
            route_key: owned(spec.routing.route_key.get().map(|key| key.as_str())),
            source_agent: owned(spec.source.agent_id.get().map(|id| id.as_str())),
            target_agent: owned(spec.target.agent_id.get().map(|id| id.as_str())),
        })
    }

    /// Writes the payload with the digests of what it is about; members in the order of their names.
    pub(super) fn write(&self, sealed: &Sealed, payload: &mut Payload<'_, '_>) {
        payload.count("attempt", u64::from(self.attempt));
        payload.digest("content_digest", sealed.content_digest);
        match &self.delegation {
            Some(delegation) => payload.object("delegation", |payload| delegation.write(payload)),
            None => payload.text_or_null("delegation", None),
        }
        payload.text("handoff_id", &self.handoff_id);
        payload.text_or_null("idempotency_key", self.idempotency_key.as_deref());
        match sealed.intent_hash {
            Some(hash) => payload.digest("intent_hash", hash),
            None => payload.text_or_null("intent_hash", None),
        }
        payload.text_or_null("message_id", self.message_id.as_deref());
        payload.text_or_null("mode", self.mode.as_deref());
        payload.text_or_null("operation", self.operation.as_deref());
        payload.text_or_null("parent_handoff_id", self.parent_handoff_id.as_deref());
        payload.text_or_null("route_key", self.route_key.as_deref());
        payload.text_or_null("source_agent", self.source_agent.as_deref());
        payload.text_or_null("target_agent", self.target_agent.as_deref());
        payload.digest("task_spec_digest", sealed.task_spec_digest);
    }
}

impl DelegationFacts {
    fn of(spec: &TaskSpec<'_>) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let delegation = &spec.authorship.delegation;
        let (envelope, risk) = (delegation.envelope.get(), delegation.risk.get());
        let channel = spec.mention().and_then(|mention| mention.channel.get());
        let hash = envelope.and_then(|envelope| envelope.proof.get()?.hash.get());
        Self {
            authorization_ref: owned(
                risk.and_then(|risk| risk.authorization_ref.get()).map(|grant| grant.as_str()),
            ),
            channel: owned(channel.map(|channel| channel.as_str())),
            delegate_agent: owned(envelope.and_then(|e| e.delegate_agent_id.get()).map(|id| id.as_str())),
            envelope_hash: owned(hash.map(|hash| hash.as_str())),
            fallback_agent: owned(spec.routing.fallback_agent_id.get().map(|id| id.as_str())),
            policy_ref: owned(delegation.policy.get().and_then(|p| p.policy_ref.get()).map(|p| p.as_str())),
            principal: owned(envelope.and_then(|e| e.principal_id.get()).map(|id| id.as_str())),
            risk_classification: owned(risk.and_then(|r| r.classification.get()).map(|class| class.as_str())),
        }
    }

    fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text_or_null("authorization_ref", self.authorization_ref.as_deref());
        payload.text_or_null("channel", self.channel.as_deref());
        payload.text_or_null("delegate_agent", self.delegate_agent.as_deref());
        payload.text_or_null("envelope_hash", self.envelope_hash.as_deref());
        payload.text_or_null("fallback_agent", self.fallback_agent.as_deref());
        payload.text_or_null("policy_ref", self.policy_ref.as_deref());
        payload.text_or_null("principal", self.principal.as_deref());
        payload.text_or_null("risk_classification", self.risk_classification.as_deref());
    }
}
