//! The state document, the policy set in force, and the one that waits for a person's yes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use serde_json::{Value as Json, json};

use super::App;
use super::acts::done;
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use crate::gateway::{Hindrance, Part, Pending};
use crate::limits;
use crate::policy::{Change, PolicySet, changes};
use crate::proposal::{self, Proposal, ProposalAsk, Unanswerable};

/// `GET /v1/state`.
pub(super) async fn state(call: Call) -> Answer {
    let app = call.app.clone();
    let document = tokio::task::spawn_blocking(move || app.gateway.state().document()).await;
    let document = document.map_err(|_| Problem::new(Kind::ViewsBehind, "the state could not be read"))?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], document).into_response())
}

/// `GET /v1/policies`.
pub(super) async fn show(call: Call) -> Answer {
    let in_force = &call.rules.in_force;
    let failed =
        call.app.rules.failed().and_then(|failed| Some((failed.hinders(Part::Policies)?, failed.at)));
    let engine = call.app.gateway.engine();
    let by_the_ledger = engine.policy_digest().map(|digest| digest.to_string());
    let body = json!({
        "digest": in_force.policies.digest().to_string(),
        "inForce": by_the_ledger,
        "withheld": engine.differs(),
        "loadedAt": call.rules.loaded_at.to_string(),
        "routes": in_force.policies.routes().keys().collect::<Vec<_>>(),
        "policies": in_force.policies.policy_refs().collect::<Vec<_>>(),
        "delegation": delegation(&in_force.policies),
        "lastLoad": match failed {
            None => json!({"outcome": "loaded", "at": call.rules.loaded_at.to_string()}),
            Some((
                Hindrance::Broken(why) | Hindrance::Unanswered(why) | Hindrance::Unrecorded(why),
                at,
            )) => {
                json!({"outcome": "failed", "at": at.to_string(), "why": why})
            }
        },
        "approval": if call.app.rules.asks_first() { "operator" } else { "auto" },
        "replaced": call.app.rules.replaced().map(|replaced| {
            let changes = changes(&replaced, &in_force.policies);
            json!({
                "digest": replaced.digest().to_string(),
                "changes": listed(&changes),
                "changesTotal": changes.len(),
            })
        }),
        "pending": pending_to_json(&call.app),
    });
    Ok(json_response(StatusCode::OK, &body))
}

/// `POST /v1/policies/approval`.
pub(super) async fn answer(mut call: Call) -> Answer {
    let by = call.asking()?;
    let ask = call.act(ProposalAsk::read).await?;
    let (app, decision) = (call.app.clone(), ask.decision);
    let answered = done(move || app.rules.answer(ask, by)).await?.map_err(|fault| unanswerable(&fault))?;
    let digest = answered.digest.to_string();
    let word = match decision {
        proposal::Answer::Approve => "approved",
        proposal::Answer::Reject => "rejected",
    };
    tracing::info!(digest, "the policy set that waited was {word}");
    let in_force = call.app.gateway.engine().policy_digest().map(|digest| digest.to_string());
    let body = json!({
        "digest": digest,
        "previousDigest": answered.previous.to_string(),
        "decision": word,
        "inForce": in_force,
        "sequence": answered.sequence,
    });
    Ok(json_response(StatusCode::OK, &body))
}

/// What every delegation policy of the set says, in the order of their files.
fn delegation(set: &PolicySet) -> Vec<Json> {
    let definition = |policy_ref: &str| set.policy(policy_ref).and_then(|it| serde_json::to_value(it).ok());
    set.policy_refs().map(|it| json!({"policyRef": it, "definition": definition(it)})).collect()
}

/// What waits, or was given a no; null where the files are what is in force.
fn pending_to_json(app: &App) -> Json {
    let Some((pending, proposal)) = app.rules.proposed() else { return Json::Null };
    let rejected = proposal.as_ref().and_then(|proposal| proposal.rejected.as_ref());
    let files = pending.files.as_deref();
    let changes = pending.changes_from(&app.rules.current().in_force.policies);
    json!({
        "digest": pending.digest().to_string(),
        "previousDigest": pending.previous.to_string(),
        "state": if rejected.is_some() { "rejected" } else { "waiting" },
        "since": pending.since(proposal.as_ref()).to_string(),
        "files": files.map(|files| files.iter().take(limits::CHANGED_FILES_LISTED_MAX).collect::<Vec<_>>()),
        "filesTotal": files.map(<[String]>::len),
        "changes": changes.as_deref().map(listed),
        "changesTotal": changes.as_ref().map(Vec::len),
        "sequence": proposal.as_ref().map(|proposal| proposal.sequence),
        "rejected": rejected.map(|no| json!({
            "by": no.by, "at": no.at.to_string(), "reason": no.reason, "sequence": no.sequence,
        })),
    })
}

fn listed(changes: &[Change]) -> &[Change] {
    changes.get(..limits::CHANGED_FILES_LISTED_MAX).unwrap_or(changes)
}

/// A set that waits, for everybody who may ask whether the gateway is ready: not who said no, nor why.
pub(super) fn pending_in_words(pending: &Pending, proposal: Option<&Proposal>) -> String {
    const NAMED: usize = 5;
    let became = match proposal.and_then(|proposal| proposal.rejected.as_ref()) {
        None => "waits for an operator's yes".to_owned(),
        Some(no) => format!("was rejected at {}", no.at),
    };
    let files = pending.files.as_deref();
    let named: Vec<String> =
        files.unwrap_or_default().iter().take(NAMED).map(|file| crate::json::printable(file)).collect();
    let changed = match files.map(<[String]>::len) {
        None => "which files changed is not known".to_owned(),
        Some(total) if total > NAMED => format!("changed: {} and {} more", named.join(", "), total - NAMED),
        Some(_) => format!("changed: {}", named.join(", ")),
    };
    format!("the policy set {} {became}; {changed}", pending.digest())
}

fn unanswerable(fault: &Unanswerable) -> Problem {
    let kind = match fault {
        Unanswerable::NotHuman => Kind::PolicyNotHuman,
        Unanswerable::NotWaiting { .. } => Kind::PolicyNotWaiting,
        Unanswerable::OtherSet { .. } | Unanswerable::Unreadable { .. } => Kind::PolicyOtherSet,
        Unanswerable::Rejected { .. } => Kind::PolicyRejected,
    };
    let problem = Problem::new(kind, fault.to_string()).hint(fault.hint());
    match fault {
        Unanswerable::OtherSet { waiting, .. } => problem.at("/digest").with("pending", waiting.to_string()),
        Unanswerable::NotWaiting { .. } => problem.at("/digest"),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Digest;
    use crate::timestamp::Timestamp;

    #[test]
    fn a_fault_keeps_its_code_on_the_way_to_the_caller() {
        let (asked, waiting) = (Digest::of(b"a"), Digest::of(b"b"));
        let at = Timestamp::parse("2026-02-18T19:38:01Z").unwrap();
        let faults = [
            Unanswerable::NotHuman,
            Unanswerable::NotWaiting { asked, is_in_force: true },
            Unanswerable::NotWaiting { asked, is_in_force: false },
            Unanswerable::OtherSet { asked, waiting },
            Unanswerable::Unreadable { asked, why: "policies/routes.json does not exist".to_owned() },
            Unanswerable::Rejected { asked, at },
        ];
        for fault in faults {
            assert_eq!(unanswerable(&fault).kind().code(), fault.code());
        }
        let shown = unanswerable(&Unanswerable::OtherSet { asked, waiting }).to_json();
        assert_eq!((&shown["pointer"], &shown["pending"]), (&json!("/digest"), &json!(waiting.to_string())));
    }
}
