//! A2A: the card, JSON-RPC, and streams of single tasks.

use axum::http::Method;
use serde_json::json;

use super::{ANY, get, json, nothing, path, query, text};
use crate::callers::Act;
use crate::http::a2a;
use crate::http::endpoint::{Body, Endpoint, Form, Parameter, Repeat, Voice, Weight};

const VERSION: Parameter =
    query("A2A-Version", ANY, "1.0", "The protocol's version, where the header of that name is not sent");

/// Clients that count from 0 mean the beginning, as they do with `tasks/resubscribe`.
const PLACE: Form = Form::Integer { min: 0, max: i64::MAX as u64 };

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint {
            description: "The agent card, for clients of protocol 0.3 and 1.0.",
            answers: vec![json(200, "AgentCard", "The card"), nothing(304, "It is the one of this ETag")],
            ..get(
                "/.well-known/agent-card.json",
                "agentCard",
                "a2a",
                "What this agent is and how to talk to it",
                handler!(a2a::card),
            )
        },
        rpc("/rpc", "rpc"),
        rpc("/rpc/", "rpcWithSlash"),
        Endpoint {
            description: "The updates of one task as server-sent events of protocol 0.3, numbered by their place in the \
                Wire stream. Ends with the `final` one. `Last-Event-ID` goes on after it.",
            act: Some(Act::SpeakA2a),
            open_to_anyone: true,
            parameters: vec![
                path("id", Form::Text { max: 256 }, "hs_20260218_router_0001", "The id of the task"),
                query("from", PLACE, "1", "Begin with this place in the stream; 0 is the beginning too"),
            ],
            answers: vec![text(200, "text/event-stream", "Updates as they happen")],
            is_stream: true,
            ..get("/stream/{id}", "streamTask", "a2a", "Follow one task", handler!(a2a::stream))
        },
    ]
}

/// Clients spell it with and without the slash, and do not follow redirects.
fn rpc(path: &'static str, id: &'static str) -> Endpoint {
    Endpoint {
        method: Method::POST,
        description: "JSON-RPC 2.0: requests, batches and notifications of A2A 0.3 (`message/send`) and 1.0 \
            (`SendMessage`); docs/a2a.md has them all. Errors are answers too, with status 200; streams are \
            server-sent events.",
        act: Some(Act::SpeakA2a),
        voice: Voice::JsonRpc,
        open_to_anyone: true,
        parameters: vec![VERSION],
        body: Some(Body {
            description: "A request, or an array of requests",
            schema: "RpcRequest",
            weight: Weight::Rpc,
            example: || json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "hs_20260218_router_0001"}}),
        }),
        answers: vec![
            json(200, "RpcAnswer", "The answer, or the answers; a stream of them where that was asked for"),
            text(200, "text/event-stream", "Answers as they come"),
            nothing(202, "Nothing to answer: all that was sent were notifications"),
            json(400, "RpcAnswer", "A header is missing, or there twice"),
            json(401, "RpcAnswer", "No token, or one that does not count"),
            json(429, "RpcAnswer", "Too many requests from this caller; wait as long as Retry-After says"),
            json(503, "RpcAnswer", "It cannot be answered now; try again"),
        ],
        repeat: Some(Repeat::Once),
        ..get(path, id, "a2a", "Talk A2A", handler!(a2a::rpc))
    }
}
