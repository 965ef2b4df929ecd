//! The ledger: searching, following, exporting and verifying it.

use super::{ANY, CODE, CORRELATION, CURSOR, DECISION, FROM, KIND, LIMIT, SEQUENCE, STREAM_AHEAD, TO};
use super::{get, json, path, problem, query, text};
use crate::callers::Act;
use crate::http::endpoint::Endpoint;
use crate::http::{audit, streams};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint {
            description: "Entries of the ledger, the newest first. All filters that are given must hold.",
            act: Some(Act::ReadAudit),
            parameters: vec![
                query("type", KIND, "gate.decided", "Of this event type"),
                query("handoffId", ANY, "hs_20260218_router_0001", "Of this handoff, every attempt at it"),
                CORRELATION,
                query("agent", ANY, "crypto-sage", "Of handoffs from or to this agent, or sent by it"),
                query(
                    "route",
                    ANY,
                    "crypto-sage.execution-plane.v1",
                    "Of handoffs on this route, of the route itself, or of a freeze or grant that names it",
                ),
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
                number, and `Last-Event-ID` goes on after it. At most the entry after the last one can be named.",
            act: Some(Act::ReadAudit),
            parameters: vec![
                query("from", SEQUENCE, "1", "Begin with this entry"),
                query("type", KIND, "gate.decided", "Only this event type"),
            ],
            answers: vec![text(200, "text/event-stream", "Entries as they become durable"), STREAM_AHEAD],
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
