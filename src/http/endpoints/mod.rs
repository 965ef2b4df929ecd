//! The table: every endpoint there is, a file for each group.

/// Wraps a handler for the table.
macro_rules! handler {
    ($handler:path) => {{
        const HANDLER: crate::http::endpoint::Handler = |call| Box::pin($handler(call));
        HANDLER
    }};
}

mod a2a;
mod audit;
mod handoffs;
mod humans;
mod open;
mod routes;
mod rules;

use std::sync::LazyLock;

use axum::http::Method;

use super::endpoint::{Content, Endpoint, Form, Handler, Parameter, Place, Reply, Voice};
use crate::limits;
use crate::wire::Kind;

const fn query(
    name: &'static str,
    form: Form,
    example: &'static str,
    description: &'static str,
) -> Parameter {
    Parameter { name, place: Place::Query, form, description, example }
}

const fn path(name: &'static str, form: Form, example: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: Place::Path, form, description, example }
}

const fn json(status: u16, schema: &'static str, description: &'static str) -> Reply {
    Reply { status, description, content: Content::Json(schema) }
}

const fn problem(status: u16, description: &'static str) -> Reply {
    Reply { status, description, content: Content::Problem }
}

const fn text(status: u16, media: &'static str, description: &'static str) -> Reply {
    Reply { status, description, content: Content::Text(media) }
}

const fn nothing(status: u16, description: &'static str) -> Reply {
    Reply { status, description, content: Content::Nothing }
}

const STREAM_AHEAD: Reply = problem(409, "The place to begin with is behind the next event");

const SEQUENCE: Form = Form::Integer { min: 1, max: i64::MAX as u64 };
const ANY: Form = Form::Text { max: 256 };
const LIMIT: Parameter = query(
    "limit",
    Form::Integer { min: 1, max: limits::VIEW_PAGE_ROWS_MAX as u64 },
    "50",
    "Rows of the page",
);
const CURSOR: Parameter =
    query("cursor", Form::Cursor, "c2a", "Where the page before this one ended: its `next`");
const FROM: Parameter = query("from", Form::Time, "2026-02-18T19:38:00Z", "From this time on");
const TO: Parameter = query("to", Form::Time, "2026-02-19T00:00:00Z", "Before this time");
const CODE: Parameter = query("code", Form::Code, "POLICY_SELF_TEST", "Named by this code");
const KIND: Form =
    Form::Named { what: "event type", names: || Kind::ALL.iter().map(|kind| kind.as_str()).collect() };
const CORRELATION: Parameter = query("correlationId", ANY, "swap_cycle_20260218_9001", "Of this cycle");
const HANDOFF: Parameter = path("id", Form::Text { max: 256 }, "hs_20260218_router_0001", "The handoffId");

const DECISION_WORDS: Form = Form::OneOf(|| vec!["allowed", "denied", "expired", "needs_approval"]);
const DECISION: Parameter = query("decision", DECISION_WORDS, "denied", "Decided so");

/// An endpoint that reads, for a caller that may.
fn get(
    path: &'static str,
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    handler: Handler,
) -> Endpoint {
    Endpoint {
        method: Method::GET,
        path,
        id,
        tag,
        summary,
        description: summary,
        act: None,
        parameters: Vec::new(),
        body: None,
        answers: Vec::new(),
        handler,
        is_stream: false,
        voice: Voice::Problem,
        repeat: None,
        open_to_anyone: false,
    }
}

/// All of them, in the order in which `/openapi.json` shows them.
pub(super) static ENDPOINTS: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
    let groups = [
        handoffs::endpoints(),
        humans::endpoints(),
        routes::endpoints(),
        audit::endpoints(),
        rules::endpoints(),
        a2a::endpoints(),
        open::endpoints(),
    ];
    groups.into_iter().flatten().collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    /// A second grant, token, freeze or gate is one too many.
    #[test]
    fn only_what_is_known_by_a_name_is_to_be_sent_again_blindly() {
        let of = |hint: &str| -> Vec<&str> {
            let said = |endpoint: &&Endpoint| endpoint.when_unanswered().starts_with(hint);
            let acts = ENDPOINTS.iter().filter(|endpoint| endpoint.method != Method::GET);
            acts.filter(said).map(|endpoint| endpoint.id).collect()
        };
        assert_eq!(
            of("send the same"),
            ["submitHandoff", "submitBatch", "reportEvent", "rpc", "rpcWithSlash"]
        );
        assert_eq!(of("ask again"), ["checkHandoff", "convertEvidence", "reload"]);
        let looks = of("whether it was done");
        for id in ["makeAuthorization", "makeToken", "addKey", "freeze", "decideGate", "rollBackRoute"] {
            assert!(looks.contains(&id), "{id} in {looks:?}");
        }
    }
}
