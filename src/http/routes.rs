//! Routes over HTTP: where they stand, their gates, rollback, block and unblock.
//!
//! What a gate rests on is gathered by the gateway's `Promoter`; what follows from it is decided in ledger order.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::App;
use super::acts::asking;
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use super::route_view::{Shown, canary, missing, route};
use super::tokens::{body, wrong};
use super::vouching::{EvidenceBody, attach, read_evidence};
use crate::callers::Act;
use crate::engine::{RolledBack, RouteFault, Routed};
use crate::gateway::{GateAsk, GateDecision, LookFault, Promoter, Undecided};
use crate::limits;
use crate::promotion::{Lift, NotNow, PromotionGate, RollbackAsk, RollbackBy, RouteRecord, Superseded};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct GateBody {
    handoff_id: Option<String>,
    evidence: Option<EvidenceBody>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RollbackBody {
    reason: String,
    block: Option<bool>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockBody {
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnblockBody {
    reason: String,
    what: Option<String>,
}

/// `GET /v1/routes`.
pub(super) async fn list(call: Call) -> Answer {
    let sees_all = call.caller()?.sees_only().is_none();
    let shown = blocking(&call, move |app, promoter| {
        let mut routes = Vec::new();
        for (key, record) in app.gateway.engine().routes() {
            if record.declared.is_some() {
                let missing = if sees_all { Some(lacking(promoter, &key, &record)?) } else { None };
                routes.push(route(&key, &record, Shown { missing, details: None }));
            }
        }
        Ok(routes)
    });
    Ok(json_response(StatusCode::OK, &json!({"routes": shown.await?})))
}

/// `GET /v1/routes/{key}`.
pub(super) async fn show(call: Call) -> Answer {
    let sees_all = call.caller()?.sees_only().is_none();
    let key = call.path().to_owned();
    let shown = blocking(&call, move |app, promoter| {
        let engine = app.gateway.engine();
        let record = engine.route(&key).ok_or_else(|| Problem::not_found("route"))?;
        let shown = match sees_all {
            true => Shown {
                missing: Some(lacking(promoter, &key, &record)?),
                details: Some(engine.in_flight(&key)),
            },
            false => Shown { missing: None, details: None },
        };
        Ok(route(&key, &record, shown))
    });
    Ok(json_response(StatusCode::OK, &shown.await?))
}

/// `POST /v1/routes/{key}/gates/{gate}`.
pub(super) async fn decide_gate(mut call: Call) -> Answer {
    let GateBody { handoff_id, evidence, reason } = body(&mut call).await?;
    let route_key = call.path_named("key").to_owned();
    let gate: PromotionGate = call.path_named("gate").parse().map_err(|_| Problem::not_found("gate"))?;
    let caller = call.caller()?.clone();
    if let Some(reason) = &reason {
        said("/reason", reason)?;
    }
    if handoff_id.is_some() && !matches!(gate, PromotionGate::G0 | PromotionGate::G3) {
        return Err(wrong("/handoffId", format!("{gate} does not rest on one handoff")));
    }
    let attached =
        evidence.map(|evidence| read_evidence(gate, handoff_id.as_deref(), evidence)).transpose()?;
    if attached.is_none() && !caller.may(Act::Promote) {
        return Err(Problem::new(Kind::Forbidden, "a harness attaches evidence, and does not decide gates")
            .at("/evidence")
            .hint("send `handoffId` and `evidence` with gate G3"));
    }
    let ask = GateAsk { route_key, gate, handoff_id, reason };
    let decided = blocking(&call, move |app, promoter| {
        let mut attached_at = None;
        if let (Some(attached), Some(handoff_id)) = (attached, &ask.handoff_id) {
            let routed = attach(app, promoter, &caller, &ask, handoff_id, attached)?;
            attached_at = Some(routed.sequence);
            if !caller.may(Act::Promote) {
                return Ok(json!({
                    "gate": ask.gate, "status": "attached", "missing": [], "stage": routed.record.stage,
                    "attached": routed.sequence, "sequence": routed.sequence,
                }));
            }
        }
        let decision = promoter.decide(&ask, &asking(&caller)).map_err(undecided)?;
        let GateDecision { answer, routed } = decision;
        let mut told = json!({
            "gate": answer.gate,
            "status": if answer.outcome.passed { "passed" } else { "failed" },
            "missing": missing(&answer.outcome.missing),
            "evidence": answer.outcome.evidence,
            "stage": routed.record.stage,
            "canary": canary(&routed.record, true),
            "sequence": routed.sequence,
        });
        if let (Some(sequence), Some(members)) = (attached_at, told.as_object_mut()) {
            members.insert("attached".to_owned(), sequence.into());
        }
        Ok(told)
    });
    Ok(json_response(StatusCode::OK, &decided.await?))
}

/// `POST /v1/routes/{key}/rollback`.
pub(super) async fn roll_back(mut call: Call) -> Answer {
    let RollbackBody { reason, block, dry_run } = body(&mut call).await?;
    rolled_back(call, reason, block, dry_run).await
}

/// `POST /v1/routes/{key}/block`.
pub(super) async fn block(mut call: Call) -> Answer {
    let BlockBody { reason } = body(&mut call).await?;
    rolled_back(call, reason, Some(true), false).await
}

/// `POST /v1/routes/{key}/unblock`.
pub(super) async fn unblock(mut call: Call) -> Answer {
    let UnblockBody { reason, what } = body(&mut call).await?;
    said("/reason", &reason)?;
    let what = match what.as_deref() {
        None | Some("block") => Lift::Block,
        Some("pin") => Lift::Pin,
        Some("both") => Lift::Both,
        Some(_) => return Err(wrong("/what", "`block`, `pin` or `both`")),
    };
    let (key, by) = (call.path().to_owned(), asking(call.caller()?));
    let Routed { record, sequence } = blocking(&call, move |app, _| {
        app.gateway.engine().lift(key, what, reason, by)?.map_err(|fault| route_fault(&fault))
    })
    .await?;
    let told = json!({
        "stage": record.stage, "blocked": record.blocked, "pinned": record.pin.is_some(), "sequence": sequence,
    });
    Ok(json_response(StatusCode::OK, &told))
}

async fn rolled_back(call: Call, reason: String, block: Option<bool>, dry_run: bool) -> Answer {
    said("/reason", &reason)?;
    let (key, caller) = (call.path().to_owned(), call.caller()?.clone());
    let RolledBack { plan, record, sequence } = blocking(&call, move |app, _| {
        let by = RollbackBy::Operator(caller.name().to_string());
        let ask = RollbackAsk { by, block, reason, code: None, handoff_id: None };
        let done = app.gateway.engine().roll_back(key, ask, dry_run, asking(&caller))?;
        done.map_err(|fault| route_fault(&fault))
    })
    .await?;
    let steps: Vec<_> = plan
        .steps
        .iter()
        .map(|taken| match &taken.why {
            None => json!({"step": taken.step.as_str(), "outcome": "done"}),
            Some(why) => json!({"step": taken.step.as_str(), "outcome": "skipped", "why": why}),
        })
        .collect();
    let (stage, blocked) = match dry_run {
        true => (plan.to, plan.blocked),
        false => (record.stage, record.blocked),
    };
    let mut told = json!({
        "stage": stage, "blocked": blocked, "steps": steps, "rolledBack": plan.rolled_back,
        "restored": plan.restored.as_ref().map(|definition| &definition.route),
    });
    if let (true, Some(members)) = (dry_run, told.as_object_mut()) {
        members.insert("gatesLost".to_owned(), json!(plan.gates_lost(&record)));
    }
    if let (Some(sequence), Some(members)) = (sequence, told.as_object_mut()) {
        members.insert("sequence".to_owned(), sequence.into());
    }
    Ok(json_response(StatusCode::OK, &told))
}

/// Everything here waits for the ledger, the views or an agent, so it is done where waiting holds nobody up.
fn blocking<T, W>(call: &Call, work: W) -> impl Future<Output = Result<T, Problem>> + Send + use<T, W>
where
    T: Send + 'static,
    W: FnOnce(&Arc<App>, &Promoter<'_>) -> Result<T, Problem> + Send + 'static,
{
    let (app, policies) = (call.app.clone(), call.rules.in_force.policies.clone());
    let done = tokio::task::spawn_blocking(move || {
        let promoter = Promoter::new(&app.gateway, policies, &app.settings.promotion);
        work(&app, &promoter)
    });
    async move {
        let unasked = |_| Err(Problem::new(Kind::NotDurable, "the route could not be asked"));
        done.await.unwrap_or_else(unasked)
    }
}

/// What is missing for the next gate, as things stand.
fn lacking(
    promoter: &Promoter<'_>,
    key: &str,
    record: &RouteRecord,
) -> Result<Vec<serde_json::Value>, Problem> {
    let one = |what: &str, hint: &str| vec![json!({"what": what, "hint": hint})];
    let Some(gate) = record.next_gate() else { return Ok(Vec::new()) };
    Ok(match promoter.glance(key, record, gate) {
        Ok(Ok(answer)) => missing(&answer.outcome.missing),
        Ok(Err(NotNow::Blocked)) => one("the route is blocked", "an operator unblocks it"),
        Ok(Err(NotNow::Undeclared)) => one("the route is not declared", "declare it in policies/routes.json"),
        Ok(Err(NotNow::OutOfOrder { .. })) => Vec::new(),
        Err(LookFault::TooMuch) => {
            one("more has ended since G1 than is looked at here", "evaluate the gate to see what comes of it")
        }
        Err(fault) => return Err(unseen(fault)),
    })
}

/// Words for the ledger.
fn said(pointer: &str, text: &str) -> Result<(), Problem> {
    let max = limits::REASON_CHARS_MAX;
    let blank = text.trim().is_empty();
    if !blank && text.chars().count() <= max && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(wrong(pointer, format!("1 to {max} characters, no control characters")))
}

pub(super) fn not_now(why: NotNow) -> Problem {
    match why {
        NotNow::Undeclared => undeclared(),
        NotNow::Blocked => blocked(),
        NotNow::OutOfOrder { next: Some(next) } => {
            Problem::new(Kind::RouteGateOutOfOrder, format!("the next gate of this route is {next}"))
                .hint("gates are passed in order, and none is skipped")
                .with("next", next.as_str())
        }
        NotNow::OutOfOrder { next: None } => {
            Problem::new(Kind::RouteGateOutOfOrder, "the route has passed every gate")
                .hint("roll it back to start again")
                .with("next", serde_json::Value::Null)
        }
    }
}

fn undeclared() -> Problem {
    Problem::new(Kind::RouteUndeclared, "the route is not in the routing table")
        .hint("declare it in policies/routes.json")
}

fn blocked() -> Problem {
    Problem::new(Kind::RouteBlocked, "the route is blocked").hint("an operator unblocks it first")
}

pub(super) fn route_fault(fault: &RouteFault) -> Problem {
    const AGAIN: &str = "look at the route as it is now, and ask again";
    match fault {
        RouteFault::Unknown => Problem::not_found("route"),
        RouteFault::Superseded(Superseded::Undeclared) => undeclared(),
        RouteFault::Superseded(Superseded::Blocked) => blocked(),
        RouteFault::Superseded(why) => {
            let what = match why {
                Superseded::Redefined => "its definition was edited",
                Superseded::RolledBack { .. } => "it was rolled back",
                Superseded::Undeclared | Superseded::Blocked | Superseded::Decided => {
                    "another gate was decided"
                }
            };
            Problem::new(Kind::RouteSuperseded, format!("{what} meanwhile; nothing is recorded")).hint(AGAIN)
        }
        RouteFault::Moved => {
            Problem::new(Kind::RouteMoved, "handoffs on the route ended while the gate was looked at")
                .hint("ask again in a moment")
        }
        RouteFault::NotBlocked => Problem::new(Kind::RouteNotBlocked, "there is nothing to lift"),
    }
}

fn undecided(undecided: Undecided) -> Problem {
    match undecided {
        Undecided::NotNow(why) => not_now(why),
        Undecided::Route(fault) => route_fault(&fault),
        Undecided::Look(fault) => unseen(fault),
        Undecided::Engine(fault) => fault.into(),
    }
}

pub(super) fn unseen(fault: LookFault) -> Problem {
    match fault {
        LookFault::Behind | LookFault::TooMuch => {
            Problem::new(Kind::ViewsBehind, "the views are behind the ledger").hint("try again shortly")
        }
        LookFault::Views(fault) => fault.into(),
        LookFault::Ledger(why) => Problem::ledger_unreadable(why),
    }
}
