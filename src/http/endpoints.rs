//! The table: every endpoint there is.

use std::sync::LazyLock;

use axum::http::Method;
use serde_json::{Value as Json, json};

use super::endpoint::{Body, Content, Endpoint, Form, Handler, Parameter, Place, Reply};
use super::{audit, batch, evidence, handoffs, health, openapi, policies, reads, streams, tokens};
use crate::callers::Act;
use crate::limits;
use crate::views::Status;

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
const CODE: Parameter = query("code", ANY, "POLICY_SELF_TEST", "Named by this code");
const CORRELATION: Parameter = query("correlationId", ANY, "swap_cycle_20260218_9001", "Of this cycle");
const HANDOFF: Parameter = path("id", Form::Text { max: 256 }, "hs_20260218_router_0001", "The handoffId");

const DECISION_WORDS: Form = Form::OneOf(|| vec!["allowed", "denied", "expired", "needs_approval"]);
const DECISION: Parameter = query("decision", DECISION_WORDS, "denied", "Decided so");

fn task_spec() -> Json {
    serde_json::from_str(include_str!("../../docs/examples/taskspec-canonical.json")).unwrap_or_default()
}

/// Wraps a handler for the table.
macro_rules! handler {
    ($handler:path) => {{
        const HANDLER: Handler = |call| Box::pin($handler(call));
        HANDLER
    }};
}

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
    }
}

/// All of them, in the order in which `/openapi.json` shows them.
pub(super) static ENDPOINTS: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
    let mut all = handoff_endpoints();
    all.extend(audit_endpoints());
    all.extend(rule_endpoints());
    all.extend(open_endpoints());
    all
});

const DECIDED: &[Reply] = &[
    json(200, "Decision", "The same key with the same content: the decision as it stands, `replayed`"),
    json(201, "Decision", "Allowed; `Location` names the handoff"),
    json(202, "Decision", "A person must say yes; `expiresAt` tells until when"),
    json(403, "Decision", "Denied or expired; `reasons` has every one"),
    json(409, "Decision", "The handoffId or the idempotencyKey stands for something else"),
    json(422, "Decision", "The TaskSpec, or its input, does not have the shape it must have"),
];

fn handoff_endpoints() -> Vec<Endpoint> {
    let spec = || Some(Body { description: "A TaskSpec", schema: "TaskSpec", example: task_spec });
    vec![
        Endpoint {
            method: Method::POST,
            description: "Asks for a handoff. The decision is durable before the answer leaves; sent again with the \
                same idempotencyKey and content it is the same decision.",
            act: Some(Act::Submit),
            body: spec(),
            answers: DECIDED.to_vec(),
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
                example: || json!([task_spec()]),
            }),
            answers: vec![json(200, "Decisions", "A Decision for each, in the same order")],
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
            description: "One handoff, every attempt at it, and the timeline of each.",
            act: Some(Act::ReadHandoffs),
            parameters: vec![HANDOFF],
            answers: vec![json(200, "HandoffDetail", "The handoff")],
            ..get("/v1/handoffs/{id}", "getHandoff", "handoffs", "Show one handoff", handler!(reads::show))
        },
        Endpoint {
            description: "The Wire events of an attempt as server-sent events; `id` is their place in the stream. \
                Ends with the event that ends the stream. `Last-Event-ID` goes on after it.",
            act: Some(Act::ReadHandoffs),
            parameters: vec![
                HANDOFF,
                query("from", SEQUENCE, "1", "Begin with this place in the stream"),
                query("attempt", SEQUENCE, "1", "Another attempt than the one that stands"),
            ],
            answers: vec![text(200, "text/event-stream", "Events as they happen")],
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
                example: || {
                    json!({"protocol": "a2a", "version": "0.3.0", "event_type": "task.requested",
                        "timestamp": "2026-02-18T19:38:00Z", "agent": {"id": "decision-router", "role": "orchestrator"},
                        "task": {"id": "hs_1", "status": "requested", "kind": "delegation"}})
                },
            }),
            answers: vec![json(200, "Evidence", "`ok`, or `error` with its kind")],
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

fn audit_endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint {
            description: "Entries of the ledger, the newest first. All filters that are given must hold.",
            act: Some(Act::ReadAudit),
            parameters: vec![
                query("type", ANY, "gate.decided", "Of this event type"),
                query("handoffId", ANY, "hs_20260218_router_0001", "Of this handoff, every attempt at it"),
                CORRELATION,
                DECISION,
                CODE,
                FROM,
                TO,
                LIMIT,
                CURSOR,
            ],
            answers: vec![json(200, "EntryPage", "A page")],
            ..get("/v1/audit", "listEntries", "audit", "Search the ledger", handler!(audit::list))
        },
        Endpoint {
            act: Some(Act::ReadAudit),
            parameters: vec![path("sequence", SEQUENCE, "1", "The entry's sequence number")],
            answers: vec![json(200, "Entry", "The entry, with its proof metadata")],
            ..get("/v1/audit/{sequence}", "getEntry", "audit", "Show one entry", handler!(audit::show))
        },
        Endpoint {
            description: "Entries as server-sent events, from now on or from a sequence number; `id` is the sequence \
                number, and `Last-Event-ID` goes on after it.",
            act: Some(Act::ReadAudit),
            parameters: vec![
                query("from", SEQUENCE, "1", "Begin with this entry"),
                query("type", ANY, "gate.decided", "Only this event type"),
            ],
            answers: vec![text(200, "text/event-stream", "Entries as they become durable")],
            is_stream: true,
            ..get("/v1/audit/stream", "streamEntries", "audit", "Follow the ledger", handler!(streams::audit))
        },
        Endpoint {
            description: "Every entry as JSON lines: the exact text that was hashed, and its proof metadata.",
            act: Some(Act::ReadAudit),
            parameters: vec![query("from", SEQUENCE, "1", "Begin with this entry")],
            answers: vec![text(200, "application/x-ndjson", "The ledger")],
            ..get("/v1/audit/export", "exportLedger", "audit", "Export the ledger", handler!(audit::export))
        },
        Endpoint {
            description: "Computes the whole chain again from the stored bytes, with code that shares nothing with the writer.",
            act: Some(Act::ReadAudit),
            answers: vec![json(200, "Verification", "Whether it holds, or the first difference")],
            is_stream: true,
            ..get("/v1/audit/verify", "verifyLedger", "audit", "Verify the ledger", handler!(audit::verify))
        },
        Endpoint {
            description: "Signs what is durable now. Keep it elsewhere: it proves that nothing before it was changed.",
            act: Some(Act::ReadAudit),
            answers: vec![
                json(200, "Checkpoint", "The checkpoint"),
                problem(404, "The ledger has no entries yet"),
            ],
            ..get(
                "/v1/audit/checkpoint",
                "getCheckpoint",
                "audit",
                "Take a checkpoint",
                handler!(audit::checkpoint),
            )
        },
    ]
}

fn rule_endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint {
            act: Some(Act::ReadState),
            answers: vec![json(200, "State", "memory/orchestration-state.json")],
            ..get("/v1/state", "getState", "state", "Show the published state", handler!(policies::state))
        },
        Endpoint {
            act: Some(Act::ReadPolicies),
            answers: vec![json(200, "Policies", "The set, its digest, and how the last load went")],
            ..get(
                "/v1/policies",
                "getPolicies",
                "state",
                "Show the policy set in force",
                handler!(policies::show),
            )
        },
        Endpoint {
            method: Method::POST,
            description: "Reads policies, keys and tokens again, now, and answers when they are in force.",
            act: Some(Act::ManageKeys),
            answers: vec![json(200, "Reloaded", "In force")],
            ..get("/v1/reload", "reload", "state", "Put changed files in force", handler!(tokens::reload))
        },
        Endpoint {
            act: Some(Act::ManageTokens),
            answers: vec![json(200, "TokenList", "Never the tokens themselves")],
            ..get("/v1/tokens", "listTokens", "callers", "List tokens", handler!(tokens::list_tokens))
        },
        Endpoint {
            method: Method::POST,
            act: Some(Act::ManageTokens),
            body: Some(Body {
                description: "Whose it is",
                schema: "NewToken",
                example: || json!({"name": "router-1", "role": "orchestrator", "agentId": "decision-router"}),
            }),
            answers: vec![json(201, "Token", "The token, this once"), problem(409, "The name is taken")],
            ..get("/v1/tokens", "makeToken", "callers", "Make a token", handler!(tokens::make_token))
        },
        Endpoint {
            method: Method::DELETE,
            act: Some(Act::ManageTokens),
            parameters: vec![path("token", Form::Text { max: 64 }, "router-1", "Its name or its id")],
            answers: vec![json(200, "Token", "Revoked"), problem(409, "It cannot be revoked")],
            ..get(
                "/v1/tokens/{token}",
                "revokeToken",
                "callers",
                "Revoke a token",
                handler!(tokens::revoke_token),
            )
        },
        Endpoint {
            act: Some(Act::ManageKeys),
            answers: vec![json(200, "KeyList", "Never the secrets")],
            ..get("/v1/keys", "listKeys", "callers", "List keys", handler!(tokens::list_keys))
        },
        Endpoint {
            method: Method::POST,
            act: Some(Act::ManageKeys),
            body: Some(Body {
                description: "Whose it is, and the secret or the public half",
                schema: "NewKey",
                example: || {
                    json!({"keyId": "user-main-2", "owner": "user:main", "algorithm": "ed25519",
                        "publicKey": "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"})
                },
            }),
            answers: vec![json(201, "Key", "In force"), problem(409, "The id is taken")],
            ..get("/v1/keys", "addKey", "callers", "Add a key", handler!(tokens::add_key))
        },
        Endpoint {
            method: Method::DELETE,
            act: Some(Act::ManageKeys),
            parameters: vec![path("key", Form::Text { max: 128 }, "user-main-2", "Its id")],
            answers: vec![json(200, "Key", "What it signed is refused from now on")],
            ..get("/v1/keys/{key}", "removeKey", "callers", "Remove a key", handler!(tokens::remove_key))
        },
    ]
}

/// Those that need no token.
fn open_endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint {
            answers: vec![json(200, "Alive", "The process answers")],
            ..get("/healthz", "alive", "health", "Is it alive?", handler!(health::alive))
        },
        Endpoint {
            description: "503 when it cannot decide; 200 with `degraded` when something is wrong that it survives.",
            answers: vec![json(200, "Ready", "It can decide"), json(503, "Ready", "It cannot, and why")],
            ..get("/readyz", "ready", "health", "Can it decide?", handler!(health::ready))
        },
        Endpoint {
            answers: vec![text(200, "application/openmetrics-text", "For Prometheus")],
            ..get("/metrics", "metrics", "health", "What is counted", handler!(health::metrics))
        },
        Endpoint {
            answers: vec![json(200, "OpenApi", "This document")],
            ..get("/openapi.json", "openapi", "health", "What there is", handler!(openapi::show))
        },
        Endpoint {
            description: "The gateway's public keys, with which receipts and checkpoints are verified.",
            answers: vec![json(200, "Jwks", "A JSON Web Key Set")],
            ..get(
                "/.well-known/jwks.json",
                "jwks",
                "evidence",
                "The gateway's public keys",
                handler!(evidence::jwks),
            )
        },
    ]
}
