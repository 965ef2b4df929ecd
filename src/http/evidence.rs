//! Bounded visibility over HTTP: any packet, and the event of one handoff; and the gateway's public keys.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;

use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use crate::dispatch;
use crate::evidence::{Mode, convert as convert_packet};
use crate::ledger::EntriesFault;
use crate::proof::Digest;

/// `POST /v1/evidence/a2a`.
pub(super) async fn convert(mut call: Call) -> Answer {
    let bytes = call.json_body().await?;
    let mode = match call.query.text("mode") {
        Some("lenient") => Mode::Lenient,
        _ => Mode::Strict,
    };
    let converted = convert_packet(&bytes, mode, &call.app.settings.evidence);
    let text = match converted {
        Ok(conversion) => format!("{{\"ok\":{}}}", serde_json::to_string(&conversion).unwrap_or_default()),
        Err(error) => format!("{{\"error\":{}}}", serde_json::to_string(&error).unwrap_or_default()),
    };
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response())
}

/// `GET /v1/handoffs/{id}/evidence`: the exact bytes that were stored.
pub(super) async fn show(call: Call) -> Answer {
    let detail = call.seen().await?;
    let none = || Problem::new(Kind::NotFound, "the handoff was not allowed, so it emitted no event");
    let current = &detail.handoff.current;
    let decided = current
        .decided_sequence
        .filter(|_| current.decision.as_deref() == Some("allowed"))
        .ok_or_else(none)?;
    let ledger = call.app.gateway.ledger().clone();
    let read = tokio::task::spawn_blocking(move || -> Result<Option<String>, EntriesFault> {
        let entry = ledger.committed(decided)?;
        let wire: serde_json::Value = serde_json::from_str(&entry.wire).unwrap_or_default();
        let digest = wire.pointer("/payload/evidenceDigest").and_then(serde_json::Value::as_str);
        digest.and_then(Digest::parse).map_or(Ok(None), |digest| ledger.body(decided, digest))
    });
    match read.await {
        Ok(Ok(Some(event))) => {
            Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], event).into_response())
        }
        Ok(Ok(None)) => Err(Problem::new(Kind::NotFound, "the event is no longer kept")
            .hint("bodies are dropped when they are older than [retention] bodies says; the ledger has their digests")),
        Ok(Err(fault)) => Err(Problem::ledger_unreadable(fault)),
        Err(error) => Err(Problem::ledger_unreadable(error)),
    }
}

/// `GET /.well-known/jwks.json`.
pub(super) async fn jwks(call: Call) -> Answer {
    let public_keys = call.app.gateway.public_keys();
    Ok(json_response(StatusCode::OK, &dispatch::jwks(public_keys.iter().map(String::as_str))))
}
