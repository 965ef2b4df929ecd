//! What an endpoint is: one entry of a table from which the router, the checks before a handler runs, and
//! `/openapi.json` are made. What is not in the table does not exist.

use std::future::Future;
use std::pin::Pin;

use axum::http::Method;
use axum::response::Response;

use super::bodies::NO_BODY_BYTES_MAX;
use super::call::Call;
use super::problem::Problem;
use crate::callers::Act;
use crate::limits;
use crate::settings::Server;

/// To whoever does not know whether an act was done: it has no idempotencyKey.
pub(super) const LOOK_FIRST: &str = "whether it was done is in the ledger: look before you ask for it again";

/// What a stream of events is sent as.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// What a handler gives back.
pub(super) type Answer = Result<Response, Problem>;

/// A handler, as the table holds it.
pub(super) type Handler = fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One method on one path.
pub(super) struct Endpoint {
    pub(super) method: Method,
    /// Parameters in braces.
    pub(super) path: &'static str,
    /// The name that generated clients give it.
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    /// What the caller must be allowed to do; nothing where no token is needed.
    pub(super) act: Option<Act>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) answers: Vec<Reply>,
    pub(super) handler: Handler,
    /// A stream stays open; everything else has to be done in time.
    pub(super) is_stream: bool,
    /// How it is told what the door refuses.
    pub(super) voice: Voice,
    /// What it comes to if a request is sent twice, where its method does not tell.
    pub(super) repeat: Option<Repeat>,
    /// Whether a caller without a token gets in, where the operator has opened A2A to everybody on this machine.
    pub(super) open_to_anyone: bool,
}

/// What it comes to if a request is sent twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Nothing is changed by it.
    Harmless,
    /// It carries a name by which the second one is known.
    Once,
    /// It may be done twice.
    Twice,
}

/// How a refusal at the door is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Problem,
    JsonRpc,
}

/// A parameter in the query or in the path.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) form: Form,
    pub(super) description: &'static str,
    pub(super) example: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
}

/// What a parameter's text may be.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// So many characters at most, at least one.
    Text {
        max: usize,
    },
    Integer {
        min: u64,
        max: u64,
    },
    /// RFC 3339.
    Time,
    /// Whole seconds to wait, such as `30s`, at most [`crate::limits::WAIT_S_MAX`].
    Wait,
    /// A page's cursor.
    Cursor,
    OneOf(fn() -> Vec<&'static str>),
    /// As codes are spelled: the gateway's own, or one that an agent has for its failures.
    Code,
    /// One of so many that only the nearest are named to whoever misses it.
    Named {
        what: &'static str,
        names: fn() -> Vec<&'static str>,
    },
}

/// What a request carries.
pub(super) struct Body {
    pub(super) description: &'static str,
    /// The name of a schema in `/openapi.json`.
    pub(super) schema: &'static str,
    pub(super) weight: Weight,
    pub(super) example: fn() -> serde_json::Value,
}

/// What a body may weigh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// As much as a TaskSpec.
    Document,
    Batch,
    Event,
    Act,
    Rpc,
}

impl Weight {
    fn bytes_max(self, server: &Server) -> usize {
        match self {
            Self::Document => server.body_bytes_max,
            Self::Batch => server.batch_bytes_max,
            // Spaces are the sender's to spend; what counts is the canonical form.
            Self::Event => 2 * limits::EVENT_BYTES_MAX,
            Self::Act => limits::ACT.bytes_max,
            Self::Rpc => limits::A2A_BODY.bytes_max,
        }
    }
}

/// One answer that an endpoint may give, beside the problems that every endpoint shares.
#[derive(Clone, Copy)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) description: &'static str,
    pub(super) content: Content,
}

/// What an answer carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// A schema in `/openapi.json`, as JSON.
    Json(&'static str),
    Problem,
    /// Text of this media type.
    Text(&'static str),
    /// No body.
    Nothing,
}

impl Endpoint {
    /// What a request to it may carry; next to nothing where it takes no body.
    pub(super) fn body_bytes_max(&self, server: &Server) -> usize {
        let none = if self.method == Method::GET { 0 } else { NO_BODY_BYTES_MAX };
        self.body.as_ref().map_or(none, |body| body.weight.bytes_max(server))
    }

    /// What its caller can do who does not know whether a request was carried out.
    pub(super) fn when_unanswered(&self) -> &'static str {
        let by_method = if self.method == Method::GET { Repeat::Harmless } else { Repeat::Twice };
        match self.repeat.unwrap_or(by_method) {
            Repeat::Harmless => "ask again",
            Repeat::Once => "send the same request again: it is decided once, however often it is sent",
            Repeat::Twice => LOOK_FIRST,
        }
    }

    /// May an answer be one that does not end?
    pub(super) fn may_stream(&self) -> bool {
        self.answers.iter().any(|reply| reply.content == Content::Text(EVENT_STREAM))
    }

    pub(super) fn query(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.place == Place::Query)
    }
}
