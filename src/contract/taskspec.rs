//! The typed TaskSpec. Every leaf is a [`Field`]: the gates run on whatever could be read.

use super::field::Field;
use super::text::{
    AgentId, AlgorithmName, AuthorizationRef, BotId, Capability, Channel, CorrelationId, E2eActor, HandoffId,
    HashText, IdempotencyKey, IntentHash, KeyId, LoopId, MessageId, Operation, PlanRef, PolicyRef,
    PrincipalId, ProposedBy, RequestId, RouteKey, SchemaRef, SessionId, SignatureText,
};
use crate::json::Value;
use crate::timestamp::Timestamp;

/// A handoff that an orchestrator asks for, as far as it could be read.
#[derive(Debug, Default)]
pub struct TaskSpec<'d> {
    /// The whole of it, for what is dispatched as it came.
    pub block: Option<Value<'d>>,
    pub version: Field<Version>,
    pub handoff_id: Field<HandoffId<'d>>,
    pub parent_handoff_id: Field<HandoffId<'d>>,
    pub correlation_id: Field<CorrelationId<'d>>,
    pub created_at: Field<Timestamp>,
    pub review: Review<'d>,
    pub source: Source<'d>,
    pub target: Target<'d>,
    pub routing: Routing<'d>,
    pub mode: Field<Mode>,
    pub authorship: Authorship<'d>,
    pub intent: Intent<'d>,
    pub safety: Safety<'d>,
    pub rollback: Field<Rollback<'d>>,
    pub audit: Audit<'d>,
}

/// The contract's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V1_0,
    V1_1,
}

/// How real the work is; later ones are more real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    Dev,
    Simulated,
    Live,
}

/// How the target was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    Direct,
    Capability,
}

/// What version 1.1 adds: recorded, never acted on.
#[derive(Debug, Default)]
pub struct Review<'d> {
    pub loop_id: Field<LoopId<'d>>,
    pub proposed_by: Field<ProposedBy<'d>>,
}

#[derive(Debug, Default)]
pub struct Source<'d> {
    pub agent_id: Field<AgentId<'d>>,
    pub session_id: Field<SessionId<'d>>,
}

#[derive(Debug, Default)]
pub struct Target<'d> {
    pub agent_id: Field<AgentId<'d>>,
    pub capability: Field<Capability<'d>>,
}

#[derive(Debug, Default)]
pub struct Routing<'d> {
    pub strategy: Field<Strategy>,
    pub route_key: Field<RouteKey<'d>>,
    pub fallback_agent_id: Field<AgentId<'d>>,
}

#[derive(Debug, Default)]
pub struct Intent<'d> {
    /// The whole block, for its hash.
    pub block: Option<Value<'d>>,
    pub operation: Field<Operation<'d>>,
    pub input_schema_ref: Field<SchemaRef<'d>>,
    pub input: Field<Value<'d>>,
}

#[derive(Debug, Default)]
pub struct Safety<'d> {
    pub e2e_actor: Field<E2eActor<'d>>,
    pub allow_external_side_effects: Field<bool>,
    pub requires_human_approval: Field<bool>,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Rollback<'d> {
    pub required: Field<bool>,
    pub plan_ref: Field<PlanRef<'d>>,
}

#[derive(Debug, Default)]
pub struct Audit<'d> {
    pub request_id: Field<RequestId<'d>>,
    pub idempotency_key: Field<IdempotencyKey<'d>>,
    pub delegation: Field<AuditDelegation<'d>>,
}

/// What the sender states about the delegation.
#[derive(Debug, Default, Clone, Copy)]
pub struct AuditDelegation<'d> {
    pub policy_ref: Field<PolicyRef<'d>>,
    pub envelope_hash: Field<HashText<'d>>,
    pub risk_classification: Field<RiskClass>,
    /// `null` and absent are the same here: there is none.
    pub authorization_ref: Field<Option<&'d str>>,
}

/// In whose name the work is handed over.
#[derive(Debug, Default)]
pub struct Authorship<'d> {
    pub mode: Field<AuthorshipMode>,
    pub mention_mode: Field<MentionMode>,
    pub delegation: Delegation<'d>,
    pub mention: Field<Mention<'d>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorshipMode {
    Direct,
    DelegatedHumanProxy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MentionMode {
    Disabled,
    Gated,
}

/// The blocks of a delegated handoff.
#[derive(Debug, Default)]
pub struct Delegation<'d> {
    pub policy: Field<Policy<'d>>,
    pub envelope: Field<Envelope<'d>>,
    pub risk: Field<Risk<'d>>,
}

/// The sender's words about the policy: they may narrow the file's, never widen it.
#[derive(Debug, Default, Clone, Copy)]
pub struct Policy<'d> {
    pub policy_ref: Field<PolicyRef<'d>>,
    pub allow_agents: Field<Value<'d>>,
    pub allow_channels: Field<Value<'d>>,
    pub allow_tasks: Field<Value<'d>>,
}

/// What the principal signed.
#[derive(Debug, Default, Clone, Copy)]
pub struct Envelope<'d> {
    /// The whole block, for its canonical form.
    pub block: Option<Value<'d>>,
    pub principal_id: Field<PrincipalId<'d>>,
    pub delegate_agent_id: Field<AgentId<'d>>,
    pub delegate_session_id: Field<SessionId<'d>>,
    pub scope_agents: Field<Value<'d>>,
    pub scope_channels: Field<Value<'d>>,
    pub scope_tasks: Field<Value<'d>>,
    pub issued_at: Field<Timestamp>,
    pub expires_at: Field<Timestamp>,
    pub binding: Field<Binding<'d>>,
    pub proof: Field<Proof<'d>>,
}

/// What else the signature covers.
#[derive(Debug, Default, Clone, Copy)]
pub struct Binding<'d> {
    pub handoff_id: Field<HandoffId<'d>>,
    pub intent_hash: Field<IntentHash<'d>>,
    pub message_id: Field<MessageId<'d>>,
    pub channel: Field<Channel<'d>>,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Proof<'d> {
    pub algorithm: Field<AlgorithmName<'d>>,
    pub signature: Field<SignatureText<'d>>,
    pub hash: Field<HashText<'d>>,
    pub key_id: Field<KeyId<'d>>,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Risk<'d> {
    pub classification: Field<RiskClass>,
    pub requires_confirmation: Field<bool>,
    pub authorization_ref: Field<AuthorizationRef<'d>>,
}

/// How much is at stake; later ones are graver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RiskClass {
    Read,
    Diagnostic,
    Sensitive,
    Live,
}

/// The mention that triggered a delegated handoff.
#[derive(Debug, Default, Clone, Copy)]
pub struct Mention<'d> {
    pub channel: Field<Channel<'d>>,
    pub message_id: Field<MessageId<'d>>,
    pub origin_bot_id: Field<BotId<'d>>,
    pub target_bot_id: Field<BotId<'d>>,
    pub observed_at: Field<Timestamp>,
    /// As it was written, for the receiver that is stricter about its form.
    pub observed_at_text: Option<&'d str>,
    pub ttl_seconds: Field<i64>,
}

/// A choice among a few words.
pub trait Word: Sized + Copy + 'static {
    const WORDS: &'static [(&'static str, Self)];

    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
    }
}

macro_rules! words {
    ($name:ident { $($word:literal => $variant:ident,)* }) => {
        impl Word for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),*];
        }

        impl $name {
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }

        impl<'w> serde::Deserialize<'w> for $name {
            fn deserialize<D: serde::Deserializer<'w>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<str>::deserialize(deserializer)?;
                Self::from_word(&word).ok_or_else(|| serde::de::Error::custom("not one of the words"))
            }
        }
    };
}

words!(Version { "1.0" => V1_0, "1.1" => V1_1, });
words!(Mode { "dev" => Dev, "simulated" => Simulated, "live" => Live, });
words!(Strategy { "direct" => Direct, "capability" => Capability, });
words!(AuthorshipMode { "direct" => Direct, "delegated-human-proxy" => DelegatedHumanProxy, });
words!(MentionMode { "disabled" => Disabled, "gated" => Gated, });
words!(RiskClass { "read" => Read, "diagnostic" => Diagnostic, "sensitive" => Sensitive, "live" => Live, });

impl RiskClass {
    /// Must a person have said yes?
    pub fn needs_a_person(self) -> bool {
        self >= Self::Sensitive
    }
}

impl<'d> TaskSpec<'d> {
    /// Is it handed over in a person's name? Not known if the block could not be read.
    pub fn is_delegated(&self) -> Option<bool> {
        self.authorship
            .mode
            .or_default_to(AuthorshipMode::Direct)
            .map(|mode| mode == AuthorshipMode::DelegatedHumanProxy)
    }

    /// Was it triggered by a mention? Not known if the block could not be read.
    pub fn is_gated(&self) -> Option<bool> {
        self.authorship
            .mention_mode
            .or_default_to(MentionMode::Disabled)
            .map(|mode| mode == MentionMode::Gated)
    }

    /// The mention of a delegated, gated handoff.
    pub fn mention(&self) -> Option<Mention<'d>> {
        if self.is_gated() == Some(true) { self.authorship.mention.get() } else { None }
    }
}
