//! The API from inside: another door asks for an operation in the name of a caller that it knows.
//!
//! It is the same table, the same rights, the same checks of parameters and the same handler. What the console shows
//! and does is therefore what the API would have answered and done, and there is no second way to do anything.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value as Json;

use super::App;
use super::call::{Call, RequestBody};
use super::door::{check_right, pass_on, slow_down};
use super::endpoints::ENDPOINTS;
use super::problem::{Kind, Problem};
use super::query::Query;
use super::trace::Trace;
use crate::callers::Caller;
use crate::limits;

/// An operation with what it is given.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    /// Its id in `/openapi.json`.
    operation: &'static str,
    path: Vec<(String, String)>,
    /// As in an address, percent-encoded.
    query: String,
    body: Option<Json>,
}

impl Ask {
    pub(crate) fn of(operation: &'static str) -> Self {
        Self { operation, ..Self::default() }
    }

    /// What a parameter of the path stands for.
    #[must_use]
    pub(crate) fn at(mut self, name: &str, value: &str) -> Self {
        self.path.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub(crate) fn query(mut self, query: impl Into<String>) -> Self {
        self.query = query.into();
        self
    }

    #[must_use]
    pub(crate) fn body(mut self, body: Json) -> Self {
        self.body = Some(body);
        self
    }
}

/// What is wrong with a value for a parameter of an operation's query; nothing if it is right.
pub(crate) fn fault_of(operation: &str, name: &str, value: &str) -> Option<Problem> {
    let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.id == operation)?;
    endpoint.query().find(|parameter| parameter.name == name)?.check(value).err()
}

impl App {
    /// Counts a request of this caller, who may ask so often and no more.
    pub(crate) fn take_turn(&self, caller: &Caller) -> Result<(), Problem> {
        self.limiter.take(caller.token_id(), Instant::now()).map_err(slow_down)
    }

    /// Asks as this caller, and gives the answer as it is.
    pub(crate) async fn call(self: &Arc<Self>, caller: &Caller, ask: Ask) -> Result<Response, Problem> {
        let Some(endpoint) = ENDPOINTS.iter().find(|endpoint| endpoint.id == ask.operation) else {
            return Err(Problem::new(Kind::NotFound, "there is no such operation"));
        };
        check_right(endpoint, caller)?;
        let query = Query::read(&ask.query, endpoint, self.settings.server.query_bytes_max)?;
        let mut headers = HeaderMap::new();
        let trace = Trace::of(&headers);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = ask.body.map_or_else(Bytes::new, |body| body.to_string().into());
        let call = Call {
            app: self.clone(),
            endpoint,
            rules: self.rules.current(),
            caller: Some(caller.clone()),
            path: ask.path,
            query,
            headers,
            body: RequestBody::Read(body),
            room: Arc::new(self.bodies.of_caller(caller.token_id())),
            trace,
        };
        pass_on(call).await
    }

    /// Asks as this caller for an answer that is JSON.
    pub(crate) async fn call_json(self: &Arc<Self>, caller: &Caller, ask: Ask) -> Result<Json, Problem> {
        let response = self.call(caller, ask).await?;
        let bytes_max = usize::try_from(limits::CLIENT_ANSWER_BYTES_MAX).unwrap_or(usize::MAX);
        let body = Limited::new(response.into_body(), bytes_max).collect().await;
        let bytes = body.map(|body| body.to_bytes()).unwrap_or_default();
        serde_json::from_slice(&bytes).map_err(|_| Problem::new(Kind::ViewsBehind, "the answer is not JSON"))
    }
}
