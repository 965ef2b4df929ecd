//! A route as it is shown over HTTP.

use serde_json::{Map, Value as Json, json};

use crate::promotion::{By, Missing, PromotionGate, RouteRecord};

/// What is shown beside where the route stands.
pub(super) struct Shown {
    /// What is missing for the next gate; for those who see every handoff.
    pub(super) missing: Option<Vec<Json>>,
    /// All the rest, with the live handoffs that have not ended; for those who see every handoff.
    pub(super) details: Option<Vec<String>>,
}

pub(super) fn route(key: &str, record: &RouteRecord, shown: Shown) -> Json {
    let sees_all = shown.missing.is_some();
    let gates: Vec<Json> =
        PromotionGate::ALL.into_iter().map(|gate| one_gate(record, gate, sees_all)).collect();
    let mut json = json!({
        "routeKey": key,
        "declared": record.declared.is_some(),
        "stage": record.stage,
        "candidateStage": record.candidate_stage(),
        "gateStatus": record.status,
        "lastGatePassed": record.last_gate_passed(),
        "nextGate": record.next_gate(),
        "blocked": record.blocked,
        "canary": canary(record, sees_all),
        "gates": gates,
    });
    if let Some(members) = json.as_object_mut() {
        if let Some(missing) = shown.missing {
            members.insert("missing".to_owned(), missing.into());
        }
        if let Some(in_flight) = shown.details {
            members.extend(details(record, in_flight));
        }
    }
    json
}

/// The canary's progress, and for some who holds its slot.
pub(super) fn canary(record: &RouteRecord, sees_all: bool) -> Json {
    let Some(canary) = &record.canary else { return Json::Null };
    let mut json = json!({"done": canary.done, "of": canary.of});
    if let (true, Some(members)) = (sees_all, json.as_object_mut()) {
        let holder = canary.holder.as_ref();
        members.insert("handoffId".to_owned(), json!(holder.map(|holder| &holder.handoff_id)));
        members.insert("since".to_owned(), json!(holder.map(|holder| holder.since.to_string())));
    }
    json
}

/// What is missing, as it is shown.
pub(super) fn missing(missing: &[Missing]) -> Vec<Json> {
    missing.iter().map(|one| json!({"what": one.what, "hint": one.hint})).collect()
}

fn one_gate(record: &RouteRecord, gate: PromotionGate, sees_all: bool) -> Json {
    let status = match record.pass(gate) {
        Some(_) => "passed",
        None if record.next_gate() == Some(gate) => "next",
        None => "not_yet",
    };
    let mut json = json!({"gate": gate, "title": gate.title(), "status": status});
    if let (Some(pass), true, Some(members)) = (record.pass(gate), sees_all, json.as_object_mut()) {
        let facts = [
            ("sequence", json!(pass.sequence)),
            ("at", json!(pass.at.to_string())),
            ("by", by(&pass.by).into()),
            ("evidence", json!(pass.evidence)),
            ("handoffId", json!(pass.handoff_id)),
            ("planRef", json!(pass.plan_ref)),
        ];
        members.extend(facts.map(|(name, value)| (name.to_owned(), value)));
    }
    json
}

fn details(record: &RouteRecord, in_flight: Vec<String>) -> Map<String, Json> {
    let definition = record.definition();
    let approved = record.approved();
    let evidence: Vec<Json> = record
        .evidence
        .iter()
        .map(|one| {
            json!({
                "handoffId": one.handoff_id, "by": by(&one.by), "sequence": one.sequence,
                "at": one.at.to_string(), "runId": one.run_id, "traceId": one.trace_id, "report": one.report,
            })
        })
        .collect();
    let facts = json!({
        "epoch": record.epoch,
        "definition": definition.map(|definition| &definition.route),
        "definitionDigest": definition.map(|definition| definition.whole_digest().to_string()),
        "gatesDigest": definition.map(|definition| definition.digest.to_string()),
        "planRef": record.plan_ref(),
        "pin": record.pin.as_ref().map(|pin| json!({
            "definitionDigest": pin.definition.whole_digest().to_string(),
            "sequence": pin.sequence,
            "at": pin.at.to_string(),
        })),
        "lastOutcome": record.last_outcome.as_ref().map(|last| json!({
            "gate": last.gate, "status": if last.passed { "passed" } else { "failed" }, "by": by(&last.by),
            "sequence": last.sequence, "at": last.at.to_string(), "reason": last.reason,
        })),
        "lastRollback": record.last_rollback.as_ref().map(|last| json!({
            "sequence": last.sequence, "at": last.at.to_string(), "by": by(&last.by), "reason": last.reason,
            "code": last.code, "handoffId": last.handoff_id, "from": last.from, "inFlight": last.in_flight,
            "rolledBack": last.rolled_back, "restored": last.restored.map(|digest| digest.to_string()),
        })),
        "approvedBy": approved.map(|(name, _)| name),
        "approvedAt": approved.map(|(_, at)| at.to_string()),
        "evidence": evidence,
        "inFlight": in_flight,
    });
    match facts {
        Json::Object(members) => members,
        _ => Map::new(),
    }
}

/// Who an entry is from, as the ledger writes it.
fn by(by: &By) -> String {
    match by {
        By::System => "system".to_owned(),
        By::Human(name) => format!("human:{name}"),
        By::Agent(id) => format!("agent:{id}"),
        By::Runner(id) => format!("runner:{id}"),
    }
}
