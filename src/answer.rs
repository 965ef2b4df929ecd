//! The Decision as callers see it: one body for the command line and every endpoint.
//!
//! Members that do not apply are absent. Schema: `docs/schemas/decision.schema.json`.

use serde::Serialize;

use crate::contract::TaskSpec;
use crate::gates::{Claims, Decision, Gate, Judgement, Outcome, Reason};
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// The answer to a TaskSpec.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    pub decision: Decision,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    pub decided_at: Timestamp,
    pub gates: Vec<GateOutcome>,
    pub reasons: Vec<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// Until when a person may say yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    pub policy_digest: Digest,
    /// What a dry run leaves undecided: the gateway decides these in ledger order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

#[derive(Debug, Serialize)]
pub struct GateOutcome {
    pub gate: Gate,
    pub outcome: Outcome,
}

/// Something that only the gateway can decide.
#[derive(Debug, Serialize)]
pub struct Claim {
    pub claim: &'static str,
    pub value: String,
}

#[derive(Debug, Serialize)]
pub struct Audit {
    pub delegation: AuditDelegation,
}

/// `audit.delegation` as the gateway writes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditDelegation {
    pub policy_ref: Option<String>,
    pub envelope_hash: Option<String>,
    pub risk_classification: Option<&'static str>,
    pub authorization_ref: Option<String>,
    pub decision: Decision,
    pub validated_at: Timestamp,
    pub recorded_by: &'static str,
}

impl Answer {
    /// The answer of a dry run: what the gates say, and what would still be claimed.
    pub fn of_check(judgement: &Judgement<'_>, claims: Option<&Claims>, now: Timestamp) -> Self {
        let Judgement { spec, verdict } = judgement;
        let decision = verdict.decision();
        Self {
            decision,
            handoff_id: spec.handoff_id.get().map(|id| id.as_str().to_owned()),
            correlation_id: spec.correlation_id.get().map(|id| id.as_str().to_owned()),
            decided_at: now,
            gates: verdict.gates().map(|(gate, outcome)| GateOutcome { gate, outcome }).collect(),
            reasons: verdict.reasons().to_vec(),
            audit: audit(spec, decision, now),
            expires_at: (decision == Decision::NeedsApproval).then(|| verdict.approval_until(now)),
            policy_digest: verdict.policy_digest(),
            claims: claims.map(list).unwrap_or_default(),
        }
    }
}

/// A delegated handoff's line for the audit log; one that waits for a person has none until it is settled.
fn audit(spec: &TaskSpec<'_>, decision: Decision, now: Timestamp) -> Option<Audit> {
    if spec.is_delegated() != Some(true) || decision == Decision::NeedsApproval {
        return None;
    }
    let delegation = &spec.authorship.delegation;
    let risk = delegation.risk.get();
    let hash = delegation.envelope.get().and_then(|envelope| envelope.proof.get()?.hash.get());
    Some(Audit {
        delegation: AuditDelegation {
            policy_ref: delegation
                .policy
                .get()
                .and_then(|policy| policy.policy_ref.get())
                .map(|id| id.to_string()),
            envelope_hash: hash.map(|hash| hash.to_string()),
            risk_classification: risk.and_then(|risk| risk.classification.get()).map(|class| class.as_str()),
            authorization_ref: risk
                .and_then(|risk| risk.authorization_ref.get())
                .map(|grant| grant.to_string()),
            decision,
            validated_at: now,
            recorded_by: "handoffd",
        },
    })
}

fn list(claims: &Claims) -> Vec<Claim> {
    let mut list = vec![
        Claim { claim: "handoffId", value: claims.handoff_id.clone() },
        Claim { claim: "idempotencyKey", value: claims.idempotency_key.clone() },
        Claim { claim: "stage", value: format!("{} on {}", claims.mode.as_str(), claims.route_key) },
    ];
    let mut also = |claim, value: Option<&String>| {
        if let Some(value) = value {
            list.push(Claim { claim, value: value.clone() });
        }
    };
    also("parentHandoffId", claims.parent_handoff_id.as_ref());
    also("messageId", claims.message_id.as_ref());
    also("authorization", claims.grant.as_ref().map(|grant| &grant.authorization_ref));
    if claims.needs_approval {
        list.push(Claim { claim: "approval", value: "a person's yes".to_owned() });
    }
    list
}
