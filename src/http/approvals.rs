//! The inbox over HTTP: what waits for a person, exactly what would be dispatched, and the person's answer.
//!
//! What would be dispatched is shown without `auth` and without a receipt: whoever looks at it can do nothing with it.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value as Json, json};

use super::App;
use super::acts::{asking, done, reasons_to_json};
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::{json_response, with_spec};
use super::problem::{Kind, Problem};
use crate::answer::Answer as Decision;
use crate::authorization::{Answer as Said, ApprovalAsk, ApprovalFault, Waiting};
use crate::callers::Caller;
use crate::dispatch::preview;
use crate::engine::{Answering, Unanswered};
use crate::ledger::{EntriesFault, Source};
use crate::limits;
use crate::os::clock;
use crate::policy::PolicySet;
use crate::timestamp::Timestamp;

/// `GET /v1/approvals`: what ends first comes first.
pub(super) async fn list(call: Call) -> Answer {
    let after = match call.query.text("cursor") {
        None => None,
        Some(text) => Some(place(text).ok_or_else(|| {
            Problem::new(Kind::QueryInvalid, "expected what the page before this one gave as `next`")
                .at("cursor")
        })?),
    };
    let limit = call.query.integer("limit").map_or(limits::PAGE_ROWS, |limit| limit as usize);
    let inbox = call.app.gateway.engine().inbox();
    let is_before = |waiting: &&Arc<Waiting>| {
        after.as_ref().is_some_and(|(until, id)| (waiting.until, &*waiting.handoff_id) <= (*until, id))
    };
    let mut found: Vec<Arc<Waiting>> =
        inbox.by_end().skip_while(is_before).take(limit + 1).cloned().collect();
    let mut more = found.len() > limit;
    found.truncate(limit);
    let (ledger, policies) = (call.app.gateway.ledger().clone(), call.policies());
    let total = inbox.count();
    let read = tokio::task::spawn_blocking(move || -> Result<Json, EntriesFault> {
        let (mut rows, mut bytes, mut last) = (Vec::new(), 0, None);
        for waiting in &found {
            if bytes > limits::APPROVALS_PAGE_BYTES {
                more = true;
                break;
            }
            let body = task_spec(&ledger, waiting)?;
            bytes += body.as_ref().map_or(0, String::len);
            rows.push(to_json(waiting, body.as_deref(), &policies));
            last = Some(waiting);
        }
        let next = last.filter(|_| more).map(|waiting| cursor(waiting));
        Ok(json!({"approvals": rows, "total": total, "next": next}))
    });
    match read.await {
        Ok(Ok(page)) => Ok(json_response(StatusCode::OK, &page)),
        Ok(Err(fault)) => Err(Problem::ledger_unreadable(fault)),
        Err(error) => Err(Problem::ledger_unreadable(error)),
    }
}

/// `GET /v1/approvals/{id}`.
pub(super) async fn show(call: Call) -> Answer {
    let (engine, handoff_id) = (call.app.gateway.engine().clone(), call.path().to_owned());
    let waiting = call.app.find_now(|| engine.inbox().find(&handoff_id).cloned()).await?;
    let waiting =
        waiting.map_err(|fault| Problem::new(Kind::NotFound, fault.to_string()).hint(fault.hint()))?;
    let (ledger, policies) = (call.app.gateway.ledger().clone(), call.policies());
    let read = tokio::task::spawn_blocking(move || {
        task_spec(&ledger, &waiting).map(|body| to_json(&waiting, body.as_deref(), &policies))
    });
    match read.await {
        Ok(Ok(shown)) => Ok(json_response(StatusCode::OK, &shown)),
        Ok(Err(fault)) => Err(Problem::ledger_unreadable(fault)),
        Err(error) => Err(Problem::ledger_unreadable(error)),
    }
}

/// `POST /v1/approvals/{id}`.
pub(super) async fn answer(mut call: Call) -> Answer {
    let by = call.asking()?;
    let ask = call.act(ApprovalAsk::read).await?;
    let handoff_id = call.path().to_owned();
    let engine = call.app.gateway.engine().clone();
    let waiting = call.app.find_now(|| engine.inbox().find(&handoff_id).cloned()).await?.map_err(refused)?;
    let ledger = call.app.gateway.ledger().clone();
    let read = tokio::task::spawn_blocking(move || task_spec(&ledger, &waiting)).await;
    let body: Arc<str> = match (read, ask.answer) {
        (Ok(Ok(Some(body))), _) => body.into(),
        // Saying no is always possible.
        (_, Said::Reject) => "".into(),
        (Ok(Ok(None)), Said::Approve) => {
            return Err(Problem::new(
                Kind::ApprovalOtherTaskSpec,
                "the TaskSpec that waits is no longer kept",
            )
            .hint("nobody can see what they would approve; reject it, and let it be sent again"));
        }
        (Ok(Err(fault)), Said::Approve) => return Err(Problem::ledger_unreadable(fault)),
        (Err(error), Said::Approve) => return Err(Problem::ledger_unreadable(error)),
    };
    let answering = Answering { handoff_id, ask, task_spec: body.clone(), by };
    let decided = done(move || engine.answer(answering)).await?.map_err(unanswered)?;
    let now = clock::now();
    let shown = if body.is_empty() {
        Decision::of_answered(&decided, None, now)
    } else {
        with_spec(&body, |spec| Decision::of_answered(&decided, spec, now))
    };
    Ok(json_response(StatusCode::OK, &shown))
}

/// Why this caller's yes would not be taken, as things stand; nothing if nothing is known to stand in its way.
pub(crate) fn hindrance_to_yes(app: &App, caller: &Caller, handoff_id: &str) -> Option<Problem> {
    let taken = app.gateway.engine().may_answer(handoff_id, Said::Approve, &asking(caller), clock::now());
    taken.err().map(refused)
}

/// The TaskSpec as it was submitted; nothing if it is no longer kept.
fn task_spec(ledger: &Source, waiting: &Waiting) -> Result<Option<String>, EntriesFault> {
    ledger.body(waiting.created_sequence, waiting.task_spec_digest)
}

fn to_json(waiting: &Waiting, body: Option<&str>, policies: &PolicySet) -> Json {
    let spec: Json = body.and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
    let said = |pointer: &str| spec.pointer(pointer).cloned().unwrap_or_default();
    let route = waiting.route_key.as_deref().and_then(|key| policies.route(key));
    let payload = body.zip(route).and_then(|(body, route)| {
        with_spec(body, |spec| spec.and_then(|spec| preview(spec, route, clock::now())))
    });
    json!({
        "handoffId": &*waiting.handoff_id,
        "attempt": waiting.attempt,
        "correlationId": said("/correlationId"),
        "sourceAgent": waiting.source,
        "targetAgent": waiting.target,
        "principal": waiting.principal,
        "routeKey": waiting.route_key,
        "mode": said("/mode"),
        "operation": said("/intent/operation"),
        "summary": said("/intent/summary"),
        "askedAt": waiting.asked_at,
        "expiresAt": waiting.until,
        "needed": waiting.needed,
        "saidYes": waiting.said_yes.iter().map(|person| person.name()).collect::<Vec<_>>(),
        "taskSpecDigest": waiting.task_spec_digest.to_string(),
        "taskSpec": spec,
        "wouldDispatch": payload,
    })
}

/// Where a page ends: what comes after it ends later, or at the same time and has a later id.
fn cursor(waiting: &Waiting) -> String {
    format!("{}.{}", waiting.until.unix_nanoseconds().unwrap_or(i64::MAX), waiting.handoff_id)
}

fn place(text: &str) -> Option<(Timestamp, String)> {
    let (nanoseconds, handoff_id) = text.split_once('.')?;
    Some((Timestamp::from_unix_nanoseconds(nanoseconds.parse().ok()?), handoff_id.to_owned()))
}

fn refused(fault: ApprovalFault) -> Problem {
    let kind = match fault {
        ApprovalFault::NotHuman => Kind::ApprovalNotHuman,
        ApprovalFault::NotWaiting { .. } => Kind::ApprovalNotWaiting,
        ApprovalFault::Expired { .. } => Kind::ApprovalExpired,
        ApprovalFault::Own { .. } => Kind::ApprovalOwn,
        ApprovalFault::Twice { .. } => Kind::ApprovalTwice,
        ApprovalFault::Full => Kind::ApprovalFull,
    };
    Problem::new(kind, fault.to_string()).hint(fault.hint())
}

fn unanswered(unanswered: Unanswered) -> Problem {
    match unanswered {
        Unanswered::Fault(fault) => refused(fault),
        Unanswered::Held(reasons) => {
            let codes: Vec<&str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
            let detail = format!("it would not be allowed now ({}), and still waits", codes.join(", "));
            Problem::new(Kind::ApprovalHeld, detail)
                .hint("`reasons` says what stands in the way; approve it when that is gone, or reject it")
                .with("reasons", reasons_to_json(&reasons))
        }
        Unanswered::OtherTaskSpec => {
            Problem::new(Kind::ApprovalOtherTaskSpec, "what waits is not the TaskSpec that was looked at")
                .hint("look at it again")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_keeps_its_code_on_the_way_to_the_caller() {
        let until = Timestamp::from_unix_nanoseconds(0);
        let faults = [
            ApprovalFault::NotHuman,
            ApprovalFault::NotWaiting { handoff_id: "hs_1".to_owned() },
            ApprovalFault::Expired { until },
            ApprovalFault::Own { as_what: "source", id: "router".to_owned() },
            ApprovalFault::Twice { name: "rita".to_owned() },
            ApprovalFault::Full,
        ];
        for fault in faults {
            let code = fault.code();
            assert_eq!(refused(fault).kind().code(), code);
        }
    }

    #[test]
    fn a_cursor_is_read_back_as_it_was_written() {
        let place_of = |text: &str| place(text).map(|(until, id)| (until.unix_nanoseconds(), id));
        assert_eq!(place_of("17.hs_a.b"), Some((Some(17), "hs_a.b".to_owned())));
        for bad in ["", "17", "x.hs_a", ".hs_a"] {
            assert_eq!(place_of(bad), None, "{bad}");
        }
    }
}
