//! What every request passes before its handler runs: who calls, may they, how often, with which parameters.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use futures_util::StreamExt as _;

use super::App;
use super::a2a;
use super::call::{Call, RequestBody};
use super::credential::{Credential, authenticate, missing};
use super::endpoint::{EVENT_STREAM, Endpoint, Place, Voice};
use super::endpoints::ENDPOINTS;
use super::head::examine;
use super::problem::{Kind, Problem, say_when_to_come_back};
use super::query::{Query, asked_to_wait};
use super::spans::Span;
use super::trace::Trace;
use crate::ai::Models;
use crate::callers::{Caller, Role};
use crate::contract::distance;
use crate::limits;

/// All endpoints, what another door serves beside them, and what to say to those who ask for others.
pub(super) fn router(app: Arc<App>, beside: Router) -> Router {
    let mut router = Router::new();
    for endpoint in ENDPOINTS.iter() {
        let filter = MethodFilter::try_from(endpoint.method.clone()).unwrap_or(MethodFilter::GET);
        let handler = move |State(app): State<Arc<App>>, path: Captured, request: Request| {
            enter(endpoint, app, path, request)
        };
        router = router.route(endpoint.path, on(filter, handler));
    }
    let router = router.fallback(unknown_path).method_not_allowed_fallback(unknown_method).with_state(app);
    router.merge(beside)
}

/// What the path captured; an error if that is no text.
type Captured = Result<RawPathParams, RawPathParamsRejection>;

async fn enter(endpoint: &'static Endpoint, app: Arc<App>, captured: Captured, request: Request) -> Response {
    let began = Instant::now();
    let metrics = app.metrics.clone();
    let mut trace = Trace::of(request.headers());
    let version = (endpoint.voice == Voice::JsonRpc).then(|| a2a::told_in(request.headers()));
    // What needs no token is asked all the time, and a stream has no end to measure.
    let spans = app.spans.clone().filter(|_| endpoint.act.is_some() && !endpoint.is_stream);
    trace.span = spans.as_ref().map(|_| Span::begin());
    let (outgoing, traced) = (trace.outgoing.clone(), trace.clone());
    // Whoever waits for a person is not slow.
    let asked = asked_to_wait(request.uri().query().unwrap_or_default(), endpoint);
    // Nor is one for a model that thinks.
    let thinking = app.models.as_ref().filter(|_| endpoint.voice == Voice::JsonRpc).map(Models::timeout);
    let patience = app.settings.server.request_timeout * 2 + asked + thinking.unwrap_or_default();
    let handling = handle(endpoint, app, captured, request, trace);
    let result = if endpoint.is_stream {
        handling.await
    } else {
        // Reading the body has a bound of its own; the rest waits for the disk at most.
        tokio::time::timeout(patience, handling).await.unwrap_or_else(|_| {
            Err(Problem::new(Kind::NotDurable, "the answer took too long").hint(endpoint.when_unanswered()))
        })
    };
    let mut response = match result {
        Ok(response) => response,
        Err(problem) => {
            let code = problem.kind().code();
            tracing::debug!(endpoint = endpoint.id, code, "refused at the door");
            metrics.problem(code);
            match version {
                None => problem.into_response(),
                Some(version) => a2a::refused(problem, version, traced.incoming.as_deref()),
            }
        }
    };
    dress(&mut response);
    if let Some(outgoing) = outgoing {
        response.headers_mut().insert(HeaderName::from_static("traceparent"), outgoing);
    }
    metrics.request(endpoint.id, response.status().as_u16(), began.elapsed());
    if let (Some(spans), Some(span)) = (&spans, &traced.span) {
        spans.end(span, &traced, endpoint, response.status().as_u16());
    }
    response
}

/// Headers that every answer has.
fn dress(response: &mut Response) {
    say_when_to_come_back(response);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

async fn handle(
    endpoint: &'static Endpoint,
    app: Arc<App>,
    captured: Captured,
    request: Request,
    trace: Trace,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    examine(&parts, app.settings.server.header_bytes_max)?;
    let rules = app.rules.current();
    let mut body = RequestBody::Unread(body);
    let (caller, room) = match endpoint.act {
        None => {
            // Who asks does not matter here; whoever begins to say so says it whole.
            Credential::of(&parts)?;
            (None, app.bodies.of_nobody())
        }
        Some(_) => match Credential::of(&parts)? {
            None if app.lets_in(endpoint, &parts) => (None, app.bodies.of_nobody()),
            None => return Err(missing()),
            Some(credential) => {
                let headers = &parts.headers;
                let (caller, room) =
                    authenticate(&app, &rules, endpoint, credential, headers, &mut body).await?;
                app.limiter.take(caller.token_id(), Instant::now()).map_err(slow_down)?;
                check_right(endpoint, &caller)?;
                (Some(caller), room)
            }
        },
    };
    // Until it is answered, whatever becomes of the call.
    let room = Arc::new(room);
    let follower = caller.as_ref().map(Caller::token_id);
    if endpoint.may_stream() && app.following.is_full(follower) {
        return Err(follows_too_much());
    }
    let query =
        Query::read(parts.uri.query().unwrap_or_default(), endpoint, app.settings.server.query_bytes_max)?;
    let captured =
        captured.map_err(|_| Problem::new(Kind::NotFound, "the path is not percent-encoded UTF-8"))?;
    let path = captured.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (following, room_of_call) = (app.following.clone(), room.clone());
    let mut call = Call {
        app,
        endpoint,
        rules,
        caller,
        path,
        query,
        headers: parts.headers,
        body,
        room: room_of_call,
        trace,
    };
    call.refuse_body().await?;
    let response = pass_on(call).await?;
    if !endpoint.may_stream() || !is_event_stream(&response) {
        return Ok(response);
    }
    let follows = following.begin(follower);
    Ok(response.map(|body| {
        let followed = body.into_data_stream().inspect(move |_| {
            // It is followed for as long as there is something to follow.
            let _ = &follows;
        });
        Body::from_stream(followed)
    }))
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(EVENT_STREAM))
}

fn follows_too_much() -> Problem {
    let most = limits::STREAMS_OF_ONE_CALLER_MAX;
    Problem::new(Kind::RateLimited, format!("this caller follows {most} streams, and no more at once"))
        .hint("end one of them; GET /v1/audit/stream tells of everything")
}

/// To the handler, if what the path names can be meant.
pub(super) async fn pass_on(call: Call) -> Result<Response, Problem> {
    let endpoint = call.endpoint;
    for parameter in endpoint.parameters.iter().filter(|parameter| parameter.place == Place::Path) {
        parameter.check(call.path_named(parameter.name))?;
    }
    (endpoint.handler)(call).await
}

/// May this caller ask for it?
pub(super) fn check_right(endpoint: &Endpoint, caller: &Caller) -> Result<(), Problem> {
    let Some(act) = endpoint.act.filter(|act| !caller.may(*act)) else { return Ok(()) };
    let role = caller.role().as_str();
    tracing::debug!(?act, role, "not for this role");
    let who: Vec<&str> = Role::ALL.into_iter().filter(|role| role.may(act)).map(Role::as_str).collect();
    Err(Problem::new(Kind::Forbidden, format!("a token of role {role} may not do this"))
        .hint(format!("this takes a token of role {}", who.join(" or "))))
}

pub(super) fn slow_down(wait: std::time::Duration) -> Problem {
    let seconds = wait.as_secs_f64().ceil().max(1.0);
    let value = HeaderValue::from_str(&format!("{seconds:.0}")).unwrap_or(HeaderValue::from_static("1"));
    Problem::new(Kind::RateLimited, "this caller asks more often than it may")
        .hint(format!("ask again in {seconds:.0} s"))
        .with_header(header::RETRY_AFTER, value)
}

async fn unknown_path(request: Request) -> Response {
    let path = request.uri().path();
    let mut problem = Problem::new(Kind::NotFound, "there is no such path");
    let near =
        ENDPOINTS.iter().filter(|endpoint| endpoint.path.starts_with("/v1") == path.starts_with("/v1"));
    let nearest = near
        .min_by_key(|endpoint| distance(endpoint.path, path))
        // A slip of the hand; in a short path three letters make another word.
        .filter(|endpoint| distance(endpoint.path, path) <= (path.len() / 3).min(3));
    problem = match nearest {
        _ if path == "/" => problem.hint("/console has pages for people, and /openapi.json lists the rest"),
        Some(endpoint) => problem.hint(format!("did you mean {}?", endpoint.path)),
        None => problem.hint("GET /openapi.json lists all there are"),
    };
    let mut response = problem.into_response();
    dress(&mut response);
    response
}

async fn unknown_method(request: Request) -> Response {
    let list = methods_of(request.uri().path()).join(", ");
    let mut problem =
        Problem::new(Kind::MethodNotAllowed, format!("{} is not for this path", request.method().as_str()))
            .hint(format!("use {list}"));
    if let Ok(value) = HeaderValue::from_str(&list) {
        problem = problem.with_header(header::ALLOW, value);
    }
    let mut response = problem.into_response();
    dress(&mut response);
    debug_assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    response
}

/// What may be asked at a path. One that has a name of its own is not one of those that a form captures.
fn methods_of(path: &str) -> Vec<&'static str> {
    let is_named = ENDPOINTS.iter().any(|endpoint| endpoint.path == path);
    let is_of = |form: &str| if is_named { form == path } else { matches(form, path) };
    let of_path = ENDPOINTS.iter().filter(|endpoint| is_of(endpoint.path));
    of_path.map(|endpoint| endpoint.method.as_str()).collect()
}

/// Is this a path of that form?
fn matches(form: &str, path: &str) -> bool {
    let (mut form, mut path) = (form.split('/'), path.split('/'));
    loop {
        match (form.next(), path.next()) {
            (None, None) => return true,
            (Some(part), Some(given)) if part == given || part.starts_with('{') => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::a2a::Version;

    #[test]
    fn whoever_is_told_to_come_back_is_told_when() {
        for kind in Kind::ALL {
            let told = || Problem::new(*kind, "no");
            let says_when = |mut response: Response| {
                dress(&mut response);
                response.headers().contains_key(header::RETRY_AFTER)
            };
            let returns = matches!(kind.status().as_u16(), 429 | 503);
            assert_eq!(says_when(told().into_response()), returns, "{kind:?}");
            assert_eq!(says_when(a2a::refused(told(), Version::V1_0, None)), returns, "{kind:?}");
        }
        assert_eq!(Kind::AuthNoncesExhausted.status(), StatusCode::TOO_MANY_REQUESTS);
    }

    #[test]
    fn paths_are_matched_by_their_form() {
        assert!(matches("/v1/handoffs/{id}", "/v1/handoffs/hs_1"));
        assert!(!matches("/v1/handoffs/{id}", "/v1/handoffs"));
        assert!(!matches("/v1/handoffs/{id}", "/v1/handoffs/hs_1/stream"));
    }

    #[test]
    fn a_path_with_a_name_of_its_own_is_not_one_that_a_form_captures() {
        assert_eq!(methods_of("/v1/handoffs/check"), ["POST"]);
        assert_eq!(methods_of("/v1/handoffs/hs_1"), ["GET"]);
        assert_eq!(methods_of("/v1/audit/verify"), ["GET"]);
    }
}
