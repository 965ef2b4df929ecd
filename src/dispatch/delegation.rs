//! `audit.delegation` as the gateway writes it: in the Decision, and in a payload of profile `plain`.

use serde::Serialize;

use crate::contract::TaskSpec;
use crate::timestamp::Timestamp;

/// A delegated handoff's line for the audit log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditDelegation {
    pub policy_ref: Option<String>,
    pub envelope_hash: Option<String>,
    pub risk_classification: Option<&'static str>,
    pub authorization_ref: Option<String>,
    pub decision: &'static str,
    pub validated_at: Timestamp,
    pub recorded_by: &'static str,
}

impl AuditDelegation {
    /// Nothing for a handoff that is not delegated. What the sender wrote there itself plays no part.
    pub(crate) fn of(spec: &TaskSpec<'_>, decision: &'static str, at: Timestamp) -> Option<Self> {
        if spec.is_delegated() != Some(true) {
            return None;
        }
        let delegation = &spec.authorship.delegation;
        let risk = delegation.risk.get();
        let hash = delegation.envelope.get().and_then(|envelope| envelope.proof.get()?.hash.get());
        let policy_ref = delegation.policy.get().and_then(|policy| policy.policy_ref.get());
        let authorization_ref = risk.and_then(|risk| risk.authorization_ref.get());
        Some(Self {
            policy_ref: policy_ref.map(|id| id.to_string()),
            envelope_hash: hash.map(|hash| hash.to_string()),
            risk_classification: risk.and_then(|risk| risk.classification.get()).map(|class| class.as_str()),
            authorization_ref: authorization_ref.map(|grant| grant.to_string()),
            decision,
            validated_at: at,
            recorded_by: "handoffd",
        })
    }
}
