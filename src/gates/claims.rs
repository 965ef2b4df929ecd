//! What a handoff would claim: what may happen only once, or depends on state that moves.
//!
//! Represented here, decided by the sequencer in ledger order and nowhere else.

use super::codes::Code;
use super::risk::named_grant;
use super::verdict::{Human, Verdict};
use crate::authorization::GrantCode;
use crate::contract::{Mode, TaskSpec, intent_hash};
use crate::proof::Digest;

/// Everything the sequencer needs to decide a candidate, owned, so that it can outlive the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Claimed for ever by a handoff that is accepted or waits.
    pub handoff_id: String,
    pub correlation_id: String,
    pub source_agent_id: String,
    /// Claimed for ever, per source agent, with the content it stands for.
    pub idempotency_key: String,
    /// Stage, block, freeze and canary are looked up by these.
    pub route_key: String,
    pub mode: Mode,
    pub target_agent_id: String,
    /// The hop before this one.
    pub parent_handoff_id: Option<String>,
    /// Spent once and for ever, whatever the rest of the mention says.
    pub message_id: Option<String>,
    /// It must cover the handoff. One use of it is claimed when the handoff becomes allowed, where a yes is needed.
    pub grant: Option<GrantClaim>,
    /// A person must approve, because no grant is named.
    pub needs_approval: bool,
}

/// What a grant would have to cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantClaim {
    pub authorization_ref: String,
    pub principal_id: Option<String>,
    /// Who may do it instead, if somebody is named.
    pub fallback_agent_id: Option<String>,
    pub operation: String,
    pub channel: Option<String>,
    pub intent_hash: Digest,
}

impl Claims {
    /// The claims of a handoff that the gates let pass; one with reasons against it claims nothing.
    pub fn of(spec: &TaskSpec<'_>, verdict: &Verdict) -> Option<Self> {
        if !verdict.reasons().is_empty() {
            return None;
        }
        let owned = |text: &str| text.to_owned();
        let mention = spec.mention();
        let envelope = spec.authorship.delegation.envelope.get();
        let grant = match named_grant(spec) {
            Some(authorization_ref) => Some(GrantClaim {
                authorization_ref: owned(authorization_ref),
                principal_id: envelope
                    .and_then(|envelope| envelope.principal_id.get())
                    .map(|id| owned(id.as_str())),
                fallback_agent_id: spec.routing.fallback_agent_id.get().map(|id| owned(id.as_str())),
                operation: owned(spec.intent.operation.get()?.as_str()),
                channel: mention
                    .and_then(|mention| mention.channel.get())
                    .map(|channel| owned(channel.as_str())),
                intent_hash: intent_hash(spec.intent.block?),
            }),
            None => None,
        };
        Some(Self {
            handoff_id: owned(spec.handoff_id.get()?.as_str()),
            correlation_id: owned(spec.correlation_id.get()?.as_str()),
            source_agent_id: owned(spec.source.agent_id.get()?.as_str()),
            idempotency_key: owned(spec.audit.idempotency_key.get()?.as_str()),
            route_key: owned(spec.routing.route_key.get()?.as_str()),
            mode: spec.mode.get()?,
            target_agent_id: owned(spec.target.agent_id.get()?.as_str()),
            parent_handoff_id: spec.parent_handoff_id.get().map(|id| owned(id.as_str())),
            message_id: mention.and_then(|mention| mention.message_id.get()).map(|id| owned(id.as_str())),
            grant,
            needs_approval: *verdict.human() == Human::Approval,
        })
    }
}

impl From<GrantCode> for Code {
    fn from(code: GrantCode) -> Self {
        match code {
            GrantCode::Unknown => Self::AuthorizationUnknown,
            GrantCode::Expired => Self::AuthorizationExpired,
            GrantCode::Revoked => Self::AuthorizationRevoked,
            GrantCode::Spent => Self::AuthorizationSpent,
            GrantCode::Scope => Self::AuthorizationScope,
        }
    }
}
