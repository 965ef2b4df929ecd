//! The Decision as callers see it: one body for the command line and every endpoint.
//!
//! Members that do not apply are absent. Schema: `docs/schemas/decision.schema.json`.

use serde::Serialize;

use crate::contract::TaskSpec;
use crate::dispatch::{AuditDelegation, Receipt};
use crate::evidence::Handoff;
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
    /// What was visible of the handoff: only of an allowed one, because only that one emits an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// What to send to the target: only of a committed `allowed` that may still be dispatched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<serde_json::Value>,
    /// What lets the target check it offline; there whenever `dispatch` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
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
            // Nothing was committed, so nothing is taken along.
            handoff: None,
            audit: audit(spec, decision, now),
            dispatch: None,
            receipt: None,
            expires_at: (decision == Decision::NeedsApproval).then(|| verdict.approval_until(now)),
            policy_digest: verdict.policy_digest(),
            claims: claims.map(list).unwrap_or_default(),
        }
    }
}

/// A delegated handoff's line for the audit log; one that waits for a person has none until it is settled.
fn audit(spec: &TaskSpec<'_>, decision: Decision, now: Timestamp) -> Option<Audit> {
    if decision == Decision::NeedsApproval {
        return None;
    }
    AuditDelegation::of(spec, decision.as_str(), now).map(|delegation| Audit { delegation })
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
