//! Handoffs: asking for them, looking at them, and what becomes of them.

use axum::http::Method;
use serde_json::{Value as Json, json};

use super::{ANY, CODE, CORRELATION, CURSOR, DECISION, FROM, HANDOFF, LIMIT, SEQUENCE, STREAM_AHEAD, TO};
use super::{get, json, problem, query, text};
use crate::callers::Act;
use crate::http::endpoint::{Body, Endpoint, Form, Repeat, Reply, Weight};
use crate::http::{batch, events, evidence, handoffs, reads, streams};
use crate::views::Status;

fn task_spec() -> Json {
    serde_json::from_str(include_str!("../../../docs/examples/taskspec-canonical.json")).unwrap_or_default()
}

fn wire_event() -> Json {
    json!({
        "wire": "1.1", "wire_id": "wire_01J9ZKQ4M2V7", "type": "task.claimed", "ts": "2026-02-18T19:38:05Z",
        "sender": "agent:crypto-sage", "payload": {},
        "state": {"category": "working", "terminal": false},
        "stream": {"stream_id": "task:hs_20260218_router_0001:attempt:1", "stream_seq": 4,
            "context_id": "swap_cycle_20260218_9001", "correlation_id": "swap_cycle_20260218_9001"},
    })
}

const DECIDED: &[Reply] = &[
    json(200, "Decision", "The same key with the same content: the decision as it stands, `replayed`"),
    json(201, "Decision", "Allowed; `Location` names the handoff"),
    json(202, "Decision", "A person must say yes; `expiresAt` tells until when"),
    json(403, "Decision", "Denied or expired; `reasons` has every one"),
    json(409, "Decision", "The handoffId or the idempotencyKey stands for something else"),
    json(422, "Decision", "The TaskSpec, or its input, does not have the shape it must have"),
];

pub(super) fn endpoints() -> Vec<Endpoint> {
    let spec = || {
        Some(Body {
            description: "A TaskSpec",
            schema: "TaskSpec",
            weight: Weight::Document,
            example: task_spec,
        })
    };
    vec![
        Endpoint {
            method: Method::POST,
            description: "Asks for a handoff. The decision is durable before the answer leaves; sent again with the \
                same idempotencyKey and content it is the same decision.",
            act: Some(Act::Submit),
            parameters: vec![query(
                "wait",
                Form::Wait,
                "30s",
                "How long to wait where a person must say yes: the answer is then what became of it by that time",
            )],
            body: spec(),
            answers: DECIDED.to_vec(),
            repeat: Some(Repeat::Once),
            ..get(
                "/v1/handoffs",
                "submitHandoff",
                "handoffs",
                "Ask for a handoff",
                handler!(handoffs::submit),
            )
        },
        Endpoint {
            method: Method::POST,
            description: "Says what would be decided now. Nothing is claimed, written or dispatched.",
            act: Some(Act::Check),
            body: spec(),
            answers: vec![json(200, "Decision", "What would be decided, whatever it is")],
            repeat: Some(Repeat::Harmless),
            ..get(
                "/v1/handoffs/check",
                "checkHandoff",
                "handoffs",
                "Ask without asking for it",
                handler!(handoffs::check),
            )
        },
        Endpoint {
            method: Method::POST,
            description: "Up to 1,000 TaskSpecs, decided in this order and made durable together.",
            act: Some(Act::Submit),
            body: Some(Body {
                description: "TaskSpecs",
                schema: "TaskSpecs",
                weight: Weight::Batch,
                example: || json!([task_spec()]),
            }),
            answers: vec![json(200, "Decisions", "A Decision for each, in the same order")],
            repeat: Some(Repeat::Once),
            ..get(
                "/v1/handoffs/batch",
                "submitBatch",
                "handoffs",
                "Ask for many handoffs",
                handler!(batch::submit),
            )
        },
        Endpoint {
            description: "Handoffs as they stand, the newest first. All filters that are given must hold.",
            act: Some(Act::ReadHandoffs),
            parameters: vec![
                query(
                    "status",
                    Form::OneOf(|| Status::ALL.map(Status::as_str).to_vec()),
                    "available",
                    "Where it stands",
                ),
                query("agent", ANY, "crypto-sage", "Its source or its target"),
                query("route", ANY, "crypto-sage.execution-plane.v1", "On this route"),
                DECISION,
                CODE,
                CORRELATION,
                FROM,
                TO,
                LIMIT,
                CURSOR,
            ],
            answers: vec![json(200, "HandoffPage", "A page")],
            ..get("/v1/handoffs", "listHandoffs", "handoffs", "List handoffs", handler!(reads::list))
        },
        Endpoint {
            description: "One handoff, every attempt at it that the caller may see, and the timeline of each.",
            act: Some(Act::ReadHandoffs),
            parameters: vec![HANDOFF],
            answers: vec![json(200, "HandoffDetail", "The handoff")],
            ..get("/v1/handoffs/{id}", "getHandoff", "handoffs", "Show one handoff", handler!(reads::show))
        },
        Endpoint {
            description: "The Wire events of an attempt as server-sent events; `id` is their place in the stream. \
                Ends with the event that ends the stream. `Last-Event-ID` goes on after it. At most the place after the last \
                event can be named.",
            act: Some(Act::ReadHandoffs),
            parameters: vec![
                HANDOFF,
                query("from", SEQUENCE, "1", "Begin with this place in the stream"),
                query("attempt", SEQUENCE, "1", "Another attempt than the one that stands"),
            ],
            answers: vec![text(200, "text/event-stream", "Events as they happen"), STREAM_AHEAD],
            is_stream: true,
            ..get(
                "/v1/handoffs/{id}/stream",
                "streamHandoff",
                "handoffs",
                "Follow one handoff",
                handler!(streams::handoff),
            )
        },
        Endpoint {
            method: Method::POST,
            description: "Reports what became of a handoff, as a Wire event whose `stream_seq` is the next in its stream: \
                its target claims it, starts, is blocked, has artifacts ready, completes or fails; its source or an \
                operator cancels it. The same event again is answered with 200 and changes nothing.",
            act: Some(Act::ReportEvent),
            parameters: vec![HANDOFF],
            body: Some(Body {
                description: "A Wire v1.1 event",
                schema: "WireEvent",
                weight: Weight::Event,
                example: wire_event,
            }),
            answers: vec![
                json(200, "Reported", "The event stood there before"),
                json(201, "Reported", "Taken in, and durable"),
                problem(403, "The event is not for this caller to send"),
                problem(409, "It does not follow: `expected` is the next number where another one was sent"),
                problem(422, "It is not an event of this stream; `faults` has everything that is wrong"),
            ],
            repeat: Some(Repeat::Once),
            ..get(
                "/v1/handoffs/{id}/events",
                "reportEvent",
                "handoffs",
                "Report what became of it",
                handler!(events::report),
            )
        },
        Endpoint {
            description: "The event that an allowed handoff emitted: what was visible on it, and nothing more.",
            act: Some(Act::ReadHandoffs),
            parameters: vec![HANDOFF],
            answers: vec![
                json(200, "EvidenceEvent", "The canonical event"),
                problem(404, "No such handoff, or it was not allowed and so has none"),
            ],
            ..get(
                "/v1/handoffs/{id}/evidence",
                "getEvidence",
                "evidence",
                "Show the event of one handoff",
                handler!(evidence::show),
            )
        },
        Endpoint {
            method: Method::POST,
            description: "Converts any A2A packet as an allowed handoff's is. Nothing is kept.",
            act: Some(Act::ConvertEvidence),
            parameters: vec![query(
                "mode",
                Form::OneOf(|| vec!["strict", "lenient"]),
                "strict",
                "Default: strict",
            )],
            body: Some(Body {
                description: "An A2A packet",
                schema: "Packet",
                weight: Weight::Document,
                example: || {
                    json!({"protocol": "a2a", "version": "0.3.0", "event_type": "task.requested",
                        "timestamp": "2026-02-18T19:38:00Z", "agent": {"id": "decision-router", "role": "orchestrator"},
                        "task": {"id": "hs_1", "status": "requested", "kind": "delegation"}})
                },
            }),
            answers: vec![json(200, "Evidence", "`ok`, or `error` with its kind")],
            repeat: Some(Repeat::Harmless),
            ..get(
                "/v1/evidence/a2a",
                "convertEvidence",
                "evidence",
                "Convert an A2A packet",
                handler!(evidence::convert),
            )
        },
    ]
}
