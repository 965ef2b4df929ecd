//! Submitting and checking one TaskSpec.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use tokio::sync::oneshot;

use super::App;
use super::call::Call;
use super::endpoint::Answer as HttpAnswer;
use super::metrics::Step;
use super::problem::{Kind, Problem};
use crate::answer::{Answer, Outfit};
use crate::callers::{Caller, Role};
use crate::contract::TaskSpec;
use crate::engine::{Asker, Candidate, Decided, DryRun, EngineFault, Here, InForce, Ruling};
use crate::gates::{Code, Decision, Reason};
use crate::gateway::{Gateway, Rules};
use crate::json::read;
use crate::limits;
use crate::os::clock;
use crate::policy::PolicySet;
use crate::wire::StreamId;

/// `POST /v1/handoffs`.
pub(super) async fn submit(mut call: Call) -> HttpAnswer {
    let began = Instant::now();
    let bytes = call.json_body().await?;
    let metrics = call.app.metrics.clone();
    let began = call.step(Step::Read, began);
    let body = text_of(&bytes).inspect_err(|_| metrics.unreadable())?;
    let judged_by = ruling(&call.rules, asker(call.caller()?, Purpose::Submit));
    let candidate = Candidate::judge(body.clone(), judged_by, clock::now()).map_err(|fault| {
        metrics.unreadable();
        Problem::from(&fault)
    })?;
    let candidate = candidate.traced(call.trace.incoming.as_deref());
    let delegated = candidate.is_delegated();
    let began = call.step(Step::Judge, began);
    // INVARIANT (one worker waits for the disk): whoever is alone is decided here, on the worker's own thread.
    let engine = call.app.gateway.engine();
    let (mut decided, shown) = match call.app.alone.does(|| engine.decide_here(candidate.into())) {
        Here::Decided(result) => (result?, None),
        Here::InLine(candidate) => {
            // A caller that has gone away is told nothing; the decision stands all the same.
            let (ahead, durable) = oneshot::channel();
            let (sender, shown) = oneshot::channel();
            let ahead = Box::new(move |decided| drop(ahead.send(decided)));
            let reply = Box::new(move |result| drop(sender.send(result)));
            engine.submit_ahead(candidate, ahead, reply)?;
            match durable.await {
                Ok(decided) => (decided, Some(shown)),
                // It was decided before, or not at all.
                Err(_) => (told(shown).await?, None),
            }
        }
    };
    let began = call.step(Step::Commit, began);
    let patience = call.query.wait();
    if decided.decision == Decision::NeedsApproval && !patience.is_zero() {
        until_answered(&call.app, &decided, patience).await;
        call.rules = call.app.rules.current();
        still_counts(call.caller()?, &call.rules)?;
        let judged_by = ruling(&call.rules, asker(call.caller()?, Purpose::Submit));
        let again = Candidate::judge(body.clone(), judged_by, clock::now());
        let again = again.map_err(|fault| Problem::from(&fault))?;
        decided = as_it_stands(&call.app, again, &decided).await?;
    }
    if let Some(span) = &call.trace.span {
        span.decided(&decided);
    }
    let answer = answer(&decided, &body, delegated, &call.rules, &call.app.gateway);
    let response = respond(status(&decided), &answer, decided.handoff_id.as_deref());
    // What it says is in the state file when it leaves.
    if let Some(shown) = shown {
        told(shown).await?;
    }
    call.step(Step::Answer, began);
    Ok(response)
}

/// Waits for the engine's last word.
async fn told(
    word: oneshot::Receiver<Result<Arc<Decided>, EngineFault>>,
) -> Result<Arc<Decided>, EngineFault> {
    word.await.unwrap_or(Err(EngineFault::Stopped))
}

/// Waits until somebody has answered what waits, the time is over, or the gateway stops.
async fn until_answered(app: &App, decided: &Decided, patience: Duration) {
    let Some(handoff_id) = decided.handoff_id.as_deref() else { return };
    let (gateway, stream) = (&app.gateway, StreamId::Handoff { handoff_id, attempt: decided.attempt });
    let stream_id = stream.to_string();
    // In this order: an answer that comes in between is heard, and one that came before is seen.
    let mut listener = gateway.listen(gateway.engine().head() + 1);
    if gateway.engine().inbox().find(handoff_id).is_err() {
        return;
    }
    let mut stopping = app.stopping.subscribe();
    let answered = async {
        while let Some(told) = listener.next().await {
            let ends = matches!(told.kind.as_str(), "task.available" | "task.rejected" | "task.cancelled");
            if ends && told.stream_id == stream_id {
                return;
            }
        }
    };
    tokio::select! {
        () = answered => {}
        _ = stopping.wait_for(|stopping| *stopping) => {}
        () = tokio::time::sleep(patience) => {}
    }
}

/// What a TaskSpec that was decided before has come to. The same key and content is decided once, so asking again
/// changes nothing; for this caller it is still the first answer.
async fn as_it_stands(app: &App, again: Candidate, first: &Decided) -> Result<Arc<Decided>, Problem> {
    let (sender, receiver) = oneshot::channel();
    app.gateway.engine().submit(again, Box::new(move |result| drop(sender.send(result))))?;
    let decided = told(receiver).await?;
    Ok(Arc::new(Decided { replayed: first.replayed, ..(*decided).clone() }))
}

/// Whoever waited may have lost its token meanwhile, and must not be handed what was allowed.
fn still_counts(caller: &Caller, rules: &Rules) -> Result<(), Problem> {
    if rules.roster.counts(caller.token_id(), clock::now()) {
        Ok(())
    } else {
        Err(Problem::new(Kind::AuthTokenUnknown, "the token no longer counts"))
    }
}

/// `POST /v1/handoffs/check`.
pub(super) async fn check(mut call: Call) -> HttpAnswer {
    let bytes = call.json_body().await?;
    let body = text_of(&bytes).inspect_err(|_| call.app.metrics.unreadable())?;
    let ruling = ruling(&call.rules, asker(call.caller()?, Purpose::Check));
    let mut candidate =
        Candidate::judge_dry(body.clone(), ruling, clock::now()).map_err(|fault| Problem::from(&fault))?;
    let delegated = candidate.is_delegated();
    let run = match call.app.gateway.engine().dry_run_soon(&mut candidate) {
        Some(run) => run?,
        None => dry_run_later(call.app.clone(), candidate).await?,
    };
    let answer = if delegated {
        with_spec(&body, |spec| Answer::of_dry_run(&run, spec))
    } else {
        Answer::of_dry_run(&run, None)
    };
    Ok(respond(StatusCode::OK, &answer, None))
}

/// Waits for whoever decides, off the threads that serve.
async fn dry_run_later(app: Arc<App>, candidate: Candidate) -> Result<DryRun, EngineFault> {
    let run = tokio::task::spawn_blocking(move || app.gateway.engine().dry_run(candidate));
    run.await.unwrap_or(Err(EngineFault::Stopped))
}

/// What a TaskSpec is handed in for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Submit,
    Check,
}

/// In whose name the caller asks.
pub(super) fn asker(caller: &Caller, purpose: Purpose) -> Asker {
    match (caller.role(), caller.agent_id(), purpose) {
        (Role::Admin, ..) => Asker::AnySourceButLive,
        (_, Some(agent), _) => Asker::Agent(agent.into()),
        (_, None, Purpose::Check) => Asker::Unchecked,
        // Nobody without an agent may submit; one that did would be nobody's.
        (_, None, Purpose::Submit) => Asker::Agent("".into()),
    }
}

pub(super) fn ruling(rules: &Rules, asker: Asker) -> Ruling {
    let in_force = &rules.in_force;
    Ruling { policies: in_force.policies.clone(), keyring: in_force.keyring.clone(), asker }
}

/// A body as text. What is wrong with one that is none is for the reader to say, with the place.
pub(super) fn text_of(bytes: &Bytes) -> Result<Arc<str>, Problem> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(_) => Err(match read(bytes, limits::TASK_SPEC) {
            Err(fault) => Problem::from(&fault),
            Ok(_) => Problem::new(Kind::BodyInvalid, "the body is not UTF-8"),
        }),
    }
}

/// The Decision as the caller gets it. The TaskSpec is read again only where the answer says something of it.
pub(super) fn answer(
    decided: &Decided,
    body: &str,
    delegated: bool,
    rules: &Rules,
    gateway: &Gateway,
) -> Answer {
    let governing = gateway.engine().governing(&rules.in_force);
    let outfit = Outfit {
        policies: dispatched_by(decided, &rules.in_force, &governing),
        // A key that was taken away signs nothing any more.
        keyring: &governing.keyring,
        seed: gateway.seed(),
        topic_id: gateway.topic_id(),
        now: clock::now(),
    };
    if delegated || decided.decision == Decision::Allowed || decided.handoff_id.is_none() {
        with_spec(body, |spec| Answer::of_decided(decided, spec, &outfit))
    } else {
        Answer::of_decided(decided, None, &outfit)
    }
}

/// The set in whose form a handoff is sent out: the one that it was decided by, where that is still at hand; else the one
/// in force, with what a rollback restored in it, as for whoever asks again.
fn dispatched_by<'r>(decided: &Decided, known: &'r InForce, governing: &'r InForce) -> &'r PolicySet {
    let is_older = !decided.replayed
        && !governing.overlaid
        && !Arc::ptr_eq(&known.policies, &governing.policies)
        && decided.policy_digest == known.policies.digest().to_string();
    if is_older { &known.policies } else { &governing.policies }
}

/// Reads a body that was read before once more, for what the answer says of it.
pub(super) fn with_spec<T>(body: &str, f: impl FnOnce(Option<&TaskSpec<'_>>) -> T) -> T {
    match read(body.as_bytes(), limits::TASK_SPEC) {
        Ok(document) => {
            let (spec, _) = TaskSpec::read(&document);
            f(Some(&spec))
        }
        Err(_) => f(None),
    }
}

/// A refusal is 422 for the contract, else 409 for an identity, else 403.
fn status(decided: &Decided) -> StatusCode {
    if decided.replayed {
        return StatusCode::OK;
    }
    match decided.decision {
        Decision::Allowed => StatusCode::CREATED,
        Decision::NeedsApproval => StatusCode::ACCEPTED,
        Decision::Denied | Decision::Expired => refusal_status(&decided.reasons),
    }
}

fn refusal_status(reasons: &[Reason]) -> StatusCode {
    let any = |is: fn(Code) -> bool| reasons.iter().any(|reason| is(reason.code));
    if any(|code| code == Code::TaskspecInvalid || code.as_str().starts_with("EXECUTION_SCHEMA_")) {
        StatusCode::UNPROCESSABLE_ENTITY
    } else if any(|code| matches!(code, Code::HandoffReused | Code::IdempotencyConflict)) {
        StatusCode::CONFLICT
    } else {
        StatusCode::FORBIDDEN
    }
}

fn respond(status: StatusCode, answer: &Answer, handoff_id: Option<&str>) -> Response {
    let mut response = json_response(status, answer);
    if status == StatusCode::CREATED
        && let Some(location) =
            handoff_id.and_then(|id| HeaderValue::from_str(&format!("/v1/handoffs/{id}")).ok())
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// A value as a JSON response.
pub(super) fn json_response(status: StatusCode, value: &impl serde::Serialize) -> Response {
    let text = serde_json::to_vec(value).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}
