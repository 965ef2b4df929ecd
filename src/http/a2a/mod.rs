//! The A2A door: the card, `/rpc`, and streams.
//!
//! A2A is a binding: a message that holds a TaskSpec goes to the same engine as `POST /v1/handoffs`, and a task is
//! what the Wire stream of that handoff tells. What is said and shown is `crate::a2a`'s; who may, and what is waited
//! for, is decided here.

mod answering;
mod delivering;
mod following;
mod models;
mod nearby;
mod pushing;
mod sending;
mod talk;
mod tasks;
mod who;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::App;
use super::call::Call;
use super::endpoint::{Answer, Endpoint};
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use crate::a2a::{self, Card, ErrorCode, Finding, Id, RpcError, Version};

use nearby::is_from_nearby;

pub(super) use answering::rpc;
pub(super) use delivering::{courier, deliver};
pub(super) use following::stream;

impl App {
    /// Does this endpoint take this request without a token?
    pub(super) fn lets_in(&self, endpoint: &Endpoint, parts: &Parts) -> bool {
        let public_url = self.settings.a2a.public_url.as_deref();
        endpoint.open_to_anyone && self.lets_anyone_in() && is_from_nearby(parts, public_url)
    }

    /// Is A2A open to everybody on this machine?
    fn lets_anyone_in(&self) -> bool {
        self.settings.a2a.anonymous && self.address.ip().is_loopback()
    }

    /// Where clients reach us.
    fn base_url(&self) -> String {
        if let Some(url) = &self.settings.a2a.public_url {
            return url.trim_end_matches('/').to_owned();
        }
        let scheme = if self.settings.tls.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

/// What the card says of this gateway, at this address.
fn card_at<'c>(app: &App, base_url: &'c str) -> Card<'c> {
    Card { base_url, version: env!("CARGO_PKG_VERSION"), push: true, ai: app.models.is_some() }
}

/// `GET /.well-known/agent-card.json`.
pub(super) async fn card(call: Call) -> Answer {
    let base_url = call.app.base_url();
    let card = card_at(&call.app, &base_url).to_json();
    let etag = a2a::etag(&card);
    let known = call.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = if known.is_some_and(|known| names(known, &etag)) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        json_response(StatusCode::OK, &card)
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    Ok(response)
}

/// Is this ETag among those that a client knows? Weak ones are as good: the card is the same or it is not.
fn names(known: &str, etag: &str) -> bool {
    known.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == etag)
}

/// The version in which whoever sent these headers is told what is wrong.
pub(super) fn told_in(headers: &HeaderMap) -> Version {
    Version::told(headers.get("a2a-version").and_then(|value| value.to_str().ok()))
}

/// What the door refuses before a request is read, as a JSON-RPC answer to nobody in particular.
///
/// The status is 200 but for what a client's HTTP library acts on by itself: who it is, and when to come back.
pub(super) fn refused(problem: Problem, version: Version, traceparent: Option<&str>) -> Response {
    let (kind, status) = (problem.kind(), problem.kind().status());
    let error = error_of(&problem).traced(traceparent);
    let headers = problem.into_response().headers().clone();
    let answer = a2a::failed(&Id::NULL, &error, version);
    let kept = matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) || kind == Kind::HeadInvalid;
    let mut response = json_response(if kept { status } else { StatusCode::OK }, &answer);
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE] {
        if let Some(value) = headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// A problem as JSON-RPC has it.
fn error_of(problem: &Problem) -> RpcError {
    let code = match problem.kind() {
        Kind::NotFound => ErrorCode::TaskNotFound,
        Kind::BodyInvalid => ErrorCode::Parse,
        Kind::MediaType => ErrorCode::ContentTypeNotSupported,
        Kind::QueryInvalid
        | Kind::UriTooLong
        | Kind::HeadInvalid
        | Kind::HeadTooLarge
        | Kind::TooLarge
        | Kind::RequestInvalid
        | Kind::Timeout => ErrorCode::InvalidRequest,
        Kind::Forbidden => ErrorCode::UnsupportedOperation,
        _ => ErrorCode::Internal,
    };
    let told = problem.to_json();
    let text = |name: &str| told.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
    let message = text("detail").unwrap_or_default();
    let finding = Finding {
        code: text("code"),
        pointer: text("pointer").unwrap_or_default(),
        message: message.clone(),
        hint: text("hint"),
    };
    RpcError { findings: vec![finding], ..RpcError::new(code, message) }
}

impl From<Problem> for RpcError {
    fn from(problem: Problem) -> Self {
        error_of(&problem)
    }
}
