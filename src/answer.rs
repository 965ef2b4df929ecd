//! The Decision as callers see it: one body for the command line and every endpoint.
//!
//! Members that do not apply are absent. Schema: `docs/schemas/decision.schema.json`.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::contract::TaskSpec;
use crate::dispatch::{self, AuditDelegation, Receipt, ReceiptFacts, Settled, receipt_until};
use crate::engine::{Decided, DryRun, Pass, evidence_of};
use crate::evidence::Handoff;
use crate::gates::{Claims, Decision, Gate, Judgement, Outcome, Reason};
use crate::limits;
use crate::policy::PolicySet;
use crate::proof::{Keyring, Seed};
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
    /// Which attempt under this handoffId.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    pub decided_at: Timestamp,
    /// The same key with the same content was decided before, and this is what was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<bool>,
    pub gates: Vec<GateOutcome>,
    pub reasons: Vec<Reason>,
    /// What was visible of the handoff: only of an allowed one, because only that one emits an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// What to send to the target: only of a committed `allowed` that may still be dispatched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<Box<RawValue>>,
    /// What lets the target check it offline; there whenever `dispatch` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// Until when a person may say yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    pub policy_digest: String,
    /// The `gate.decided` entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Place>,
    /// What a dry run leaves undecided: the gateway decides these in ledger order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

/// Where in the ledger.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    pub sequence: u64,
    pub running_hash: String,
}

/// What an allowed handoff is sent out with.
#[derive(Debug, Clone, Copy)]
pub struct Outfit<'o> {
    pub policies: &'o PolicySet,
    pub keyring: &'o Keyring,
    /// The gateway's own key, which signs receipts.
    pub seed: &'o Seed,
    pub topic_id: &'o str,
    pub now: Timestamp,
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
            handoff_id: named(spec),
            correlation_id: spec.correlation_id.get().map(|id| id.as_str().to_owned()),
            attempt: None,
            decided_at: now,
            replayed: None,
            gates: verdict.gates().map(|(gate, outcome)| GateOutcome { gate, outcome }).collect(),
            reasons: verdict.reasons().to_vec(),
            // Nothing was committed, so nothing is taken along.
            handoff: None,
            audit: audit(spec, decision, now),
            dispatch: None,
            receipt: None,
            expires_at: (decision == Decision::NeedsApproval)
                .then(|| verdict.approval_until(now, limits::APPROVAL_WAIT_S)),
            policy_digest: verdict.policy_digest().to_string(),
            ledger: None,
            claims: claims.map(list).unwrap_or_default(),
        }
    }
}

impl Answer {
    /// The answer to a submitted TaskSpec. `spec` is the one that was sent, now or the first time: their contents
    /// are the same.
    pub fn of_decided(decided: &Decided, spec: Option<&TaskSpec<'_>>, outfit: &Outfit<'_>) -> Self {
        let decided_at = Timestamp::parse(&decided.decided_at).unwrap_or(outfit.now);
        let taken_along = match (decided.pass, spec) {
            (Pass::Dispatch { until }, Some(spec)) => take_along(decided, decided_at, spec, until, outfit),
            _ => None,
        };
        Self::committed(decided, spec, decided_at, taken_along)
    }

    /// The answer to a person who said yes or no: what stands now, and nothing to take along, for the handoff is not
    /// theirs to dispatch. Whoever submitted it gets that.
    pub fn of_answered(decided: &Decided, spec: Option<&TaskSpec<'_>>, now: Timestamp) -> Self {
        let decided_at = Timestamp::parse(&decided.decided_at).unwrap_or(now);
        Self::committed(decided, spec, decided_at, None)
    }

    fn committed(
        decided: &Decided,
        spec: Option<&TaskSpec<'_>>,
        decided_at: Timestamp,
        taken_along: Option<(Box<RawValue>, Receipt)>,
    ) -> Self {
        let (dispatch, receipt) =
            taken_along.map_or((None, None), |(dispatch, receipt)| (Some(dispatch), Some(receipt)));
        let handoff = match decided.decision {
            // One that was decided before a restart is tagged again by the same adapter.
            Decision::Allowed => decided.tag.or_else(|| evidence_of(spec?).map(|evidence| evidence.handoff)),
            _ => None,
        };
        Self {
            decision: decided.decision,
            // One that is not this caller's to name is not under that id in the ledger. The answer says whose it is all the
            // same: it is what the caller sent, and tells it nothing of what stands there.
            handoff_id: decided.handoff_id.clone().or_else(|| spec.and_then(named)),
            correlation_id: decided.correlation_id.clone(),
            attempt: Some(decided.attempt),
            decided_at,
            replayed: Some(decided.replayed),
            gates: outcomes(&decided.gates),
            reasons: decided.reasons.clone(),
            handoff,
            audit: spec.and_then(|spec| audit(spec, decided.decision, decided_at)),
            dispatch,
            receipt,
            expires_at: match decided.pass {
                Pass::Waits { until } => Some(until),
                _ => None,
            },
            policy_digest: decided.policy_digest.clone(),
            ledger: Some(Place {
                sequence: decided.ledger.sequence,
                running_hash: decided.ledger.running_hash.to_string(),
            }),
            claims: Vec::new(),
        }
    }

    /// The answer to a check that saw the claims: what would be decided, and nothing to take along.
    pub fn of_dry_run(run: &DryRun, spec: Option<&TaskSpec<'_>>) -> Self {
        Self {
            decision: run.replay_of.as_ref().map_or(run.decision, |decided| decided.decision),
            handoff_id: run.handoff_id.clone(),
            correlation_id: run.correlation_id.clone(),
            attempt: Some(run.replay_of.as_ref().map_or(run.attempt, |decided| decided.attempt)),
            decided_at: run.at,
            replayed: Some(run.replay_of.is_some()),
            gates: outcomes(&run.gates),
            reasons: run.reasons.clone(),
            handoff: None,
            audit: spec.and_then(|spec| audit(spec, run.decision, run.at)),
            dispatch: None,
            receipt: None,
            expires_at: run.waits_until,
            policy_digest: run.policy_digest.clone(),
            ledger: None,
            claims: Vec::new(),
        }
    }
}

fn outcomes(gates: &[(Gate, Outcome)]) -> Vec<GateOutcome> {
    gates.iter().map(|(gate, outcome)| GateOutcome { gate: *gate, outcome: *outcome }).collect()
}

/// What to send to the target, and the receipt for it; nothing if it cannot be made any more, so that nobody is
/// handed half of it.
fn take_along(
    decided: &Decided,
    decided_at: Timestamp,
    spec: &TaskSpec<'_>,
    until: Option<Timestamp>,
    outfit: &Outfit<'_>,
) -> Option<(Box<RawValue>, Receipt)> {
    let route = outfit.policies.route(spec.routing.route_key.get()?.as_str())?;
    let settled = Settled { decided_at, running_hash: decided.ledger.running_hash };
    let dispatch = dispatch::payload(spec, route, &settled, outfit.keyring, outfit.now).ok()?;
    let facts = ReceiptFacts {
        handoff_id: decided.handoff_id.as_deref()?,
        task_spec_digest: decided.task_spec_digest,
        dispatch_digest: dispatch.digest(),
        target: spec.target.agent_id.get()?.as_str(),
        sequence: decided.ledger.sequence,
        running_hash: decided.ledger.running_hash,
        topic_id: Some(outfit.topic_id),
        expires_at: receipt_until(outfit.now, until),
    };
    let receipt = Receipt::sign(&facts, outfit.seed);
    Some((dispatch.into_raw()?, receipt))
}

/// The handoffId that a TaskSpec has, if it can be read.
fn named(spec: &TaskSpec<'_>) -> Option<String> {
    spec.handoff_id.get().map(|id| id.as_str().to_owned())
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
