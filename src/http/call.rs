//! A request that has passed the door: who calls, with which parameters, and its body when it is asked for.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, header};

use super::App;
use super::bodies::{NO_BODY_BYTES_MAX, Room, no_body, too_large};
use super::door::slow_down;
use super::endpoint::Endpoint;
use super::metrics::Step;
use super::problem::{Kind, Problem};
use super::query::Query;
use super::trace::Trace;
use crate::callers::Caller;
use crate::gateway::Rules;
use crate::policy::PolicySet;

/// What a handler is given.
pub(super) struct Call {
    pub(super) app: Arc<App>,
    pub(super) endpoint: &'static Endpoint,
    /// What was in force when it came in.
    pub(super) rules: Rules,
    /// Nothing where no token is needed.
    pub(super) caller: Option<Caller>,
    /// What the path's parameters stand for, in their order.
    pub(super) path: Vec<(String, String)>,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) body: RequestBody,
    /// What the body takes.
    pub(super) room: Arc<Room>,
    pub(super) trace: Trace,
}

impl Call {
    /// The path's parameter, or the first of several.
    pub(super) fn path(&self) -> &str {
        self.path.first().map_or("", |(_, value)| value)
    }

    /// The path's parameter of that name.
    pub(super) fn path_named(&self, name: &str) -> &str {
        self.path.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    /// Who calls; endpoints that need a token have one.
    pub(super) fn caller(&self) -> Result<&Caller, Problem> {
        self.caller.as_ref().ok_or_else(|| Problem::new(Kind::AuthRequired, "this needs a token"))
    }

    /// The policy set that counts: what a rollback restored stands over the files.
    pub(super) fn policies(&self) -> Arc<PolicySet> {
        self.app.gateway.engine().policies_over(&self.rules.in_force.policies)
    }

    /// Counts what this request carries beyond the one that it is itself: so many more requests of its caller.
    pub(super) fn charge(&self, more: usize) -> Result<(), Problem> {
        let Some(caller) = &self.caller else { return Ok(()) };
        self.app.limiter.take_more(caller.token_id(), more, Instant::now()).map_err(slow_down)
    }

    /// Takes the time of a step that began then, and says when the next one begins.
    pub(super) fn step(&self, step: Step, began: Instant) -> Instant {
        if let Some(span) = &self.trace.span {
            span.mark(step, began);
        }
        self.app.metrics.step(step, began)
    }

    /// Refuses a body where none is taken: whoever sends one means it to say something. Nothing and `{}` say nothing, and
    /// clients send them of their own accord.
    pub(super) async fn refuse_body(&mut self) -> Result<(), Problem> {
        if self.endpoint.body.is_some() || self.endpoint.method == Method::GET {
            return Ok(());
        }
        let patience = self.app.settings.server.request_timeout;
        let bytes = match std::mem::replace(&mut self.body, RequestBody::Read(Bytes::new())) {
            RequestBody::Unread(body) => {
                self.room.read(body, &self.headers, NO_BODY_BYTES_MAX, patience).await?
            }
            RequestBody::Read(bytes) => bytes,
        };
        match bytes.trim_ascii() {
            b"" | b"{}" => Ok(()),
            _ => Err(no_body()),
        }
    }

    /// Reads a JSON body, of at most as many bytes as the endpoint takes.
    pub(super) async fn json_body(&mut self) -> Result<Bytes, Problem> {
        check_type(&self.headers)?;
        let server = &self.app.settings.server;
        let bytes_max = self.endpoint.body_bytes_max(server);
        match std::mem::replace(&mut self.body, RequestBody::Read(Bytes::new())) {
            RequestBody::Unread(body) => {
                self.room.read(body, &self.headers, bytes_max, server.request_timeout).await
            }
            RequestBody::Read(bytes) if bytes.len() > bytes_max => Err(too_large(bytes_max)),
            RequestBody::Read(bytes) => Ok(bytes),
        }
    }
}

/// A body that may have been read already, to check its signature.
pub(super) enum RequestBody {
    Unread(Body),
    Read(Bytes),
}

/// JSON, as it is: a compressed body could be a thousand times its size.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().trim().to_ascii_lowercase();
    if let Some(encoding) = headers.get(header::CONTENT_ENCODING).map(text)
        && encoding != "identity"
    {
        return Err(Problem::new(Kind::MediaType, "compressed bodies are not taken")
            .at("Content-Encoding")
            .hint("send the body as it is"));
    }
    let expected = || Problem::new(Kind::MediaType, "the body must be JSON").at("Content-Type");
    let Some(media) = headers.get(header::CONTENT_TYPE).map(text) else {
        return Err(expected().hint("send the header Content-Type: application/json"));
    };
    let mut parts = media.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|kind| kind == "application/json");
    let is_utf_8 = parts.all(|parameter| match parameter.split_once('=') {
        Some(("charset", charset)) => charset.trim_matches('"') == "utf-8",
        _ => true,
    });
    if is_json && is_utf_8 {
        Ok(())
    } else {
        Err(expected().hint("send Content-Type: application/json, in UTF-8"))
    }
}
