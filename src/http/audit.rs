//! The ledger over HTTP: search, one entry, the whole of it, and proofs.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use futures_util::StreamExt as _;
use serde_json::{Value as Json, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio_stream::wrappers::ReceiverStream;

use super::App;
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use super::streams::Reader;
use crate::callers::Act;
use crate::gateway::{read_checkpoint, read_other_checkpoints};
use crate::ledger::{Checkpoint, Entry, verify};
use crate::limits;
use crate::views::EntryFilter;

/// `GET /v1/audit`.
pub(super) async fn list(call: Call) -> Answer {
    let query = call.query;
    let page = call
        .app
        .ask(move |reader| {
            let filter = EntryFilter {
                kind: query.text("type"),
                stream_id: None,
                handoff_id: query.text("handoffId"),
                correlation_id: query.text("correlationId"),
                code: query.text("code"),
                agent: query.text("agent"),
                route: query.text("route"),
                decision: query.text("decision"),
                from: query.time("from"),
                to: query.time("to"),
            };
            let limit = query.integer("limit").map_or(limits::PAGE_ROWS, |limit| limit as usize);
            reader.entries(&filter, query.cursor(), limit)
        })
        .await?;
    let body = json!({"entries": page.rows, "next": page.next.map(|next| next.to_string())});
    Ok(json_response(StatusCode::OK, &body))
}

/// `GET /v1/audit/{sequence}`.
pub(super) async fn show(call: Call) -> Answer {
    let sequence = call.path().parse::<u64>().unwrap_or(0);
    let app = call.app.clone();
    // One that another replica has appended just now is there when its end was looked at.
    let engine = app.gateway.engine();
    let _ = app.find_now(|| if sequence <= engine.head() { Ok(()) } else { Err(()) }).await?;
    let entry = read(&app, sequence, sequence).await?.pop().ok_or_else(|| {
        Problem::new(Kind::NotFound, format!("the ledger has {} entries", app.gateway.engine().head()))
    })?;
    let wire: Json = serde_json::from_str(&entry.wire).unwrap_or_default();
    let body = json!({
        "hcs": {
            "topic_id": app.gateway.topic_id(),
            "sequence_number": entry.sequence,
            "consensus_timestamp": entry.consensus_timestamp,
            "running_hash": entry.running_hash.to_string(),
        },
        "wire": wire,
    });
    Ok(json_response(StatusCode::OK, &body))
}

/// Entries that are durable, off the threads that serve.
async fn read(app: &Arc<App>, from: u64, through: u64) -> Result<Vec<Entry>, Problem> {
    let ledger = app.gateway.ledger().clone();
    let through = through.min(app.gateway.engine().head());
    let entries = tokio::task::spawn_blocking(move || {
        ledger.entries(from, through).and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
    });
    match entries.await {
        Ok(Ok(entries)) => Ok(entries),
        Ok(Err(fault)) => Err(Problem::ledger_unreadable(fault)),
        Err(error) => Err(Problem::ledger_unreadable(error)),
    }
}

/// `GET /v1/audit/export`: JSON lines, as they are read; a slow reader is waited for, not buffered for, and one whose token
/// no longer counts gets no more. A ledger that does not go as far as is known is found before the first line is sent.
pub(super) async fn export(call: Call) -> Answer {
    let app = call.app.clone();
    let reader = Reader::new(&app, call.caller.as_ref(), |caller, _| caller.may(Act::ReadAudit));
    let from = call.query.integer("from").unwrap_or(1);
    let through = app.gateway.engine().head();
    if from <= through {
        read(&app, through, through).await?;
        read(&app, from, from).await?;
    }
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(4);
    tokio::spawn(async move {
        let mut next = from;
        while next <= through {
            let last = through.min(next + limits::HUB_READ_ENTRIES - 1);
            let chunk = match read(&app, next, last).await {
                Ok(entries) => {
                    let topic_id = app.gateway.topic_id();
                    Ok(entries.iter().map(|entry| entry.to_line(topic_id)).collect::<String>().into())
                }
                // The reader sees that it ended early: the last chunk never comes.
                Err(_) => Err(std::io::Error::other("the ledger could not be read")),
            };
            let failed = chunk.is_err();
            if sender.send(chunk).await.is_err() || failed {
                return;
            }
            next = last + 1;
        }
    });
    // Looked at when a chunk leaves: some are read before their reader takes them.
    let chunks = ReceiverStream::new(receiver).map(move |chunk| {
        if reader.counts() { chunk } else { Err(std::io::Error::other("the token no longer counts")) }
    });
    let body = Body::from_stream(chunks);
    let kind = HeaderValue::from_static("application/x-ndjson");
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

/// `GET /v1/audit/checkpoint`: of what is durable now.
pub(super) async fn checkpoint(call: Call) -> Answer {
    let app = call.app.clone();
    let signed = tokio::task::spawn_blocking(move || app.gateway.checkpoint()).await;
    match signed {
        Ok(Ok(Some(checkpoint))) => Ok(json_response(StatusCode::OK, &checkpoint)),
        Ok(Ok(None)) => Err(Problem::new(Kind::NotFound, "the ledger has no entries yet")),
        Ok(Err(fault)) => Err(Problem::ledger_unreadable(fault)),
        Err(error) => Err(Problem::ledger_unreadable(error)),
    }
}

/// `GET /v1/audit/verify`: everything computed again. One at a time, for it reads the whole ledger.
pub(super) async fn verify(call: Call) -> Answer {
    let verifying = Verifying::begin(&call.app)?;
    match tokio::task::spawn_blocking(move || verifying.run(&mut |_| {})).await {
        Ok(body) => Ok(json_response(StatusCode::OK, &body)),
        Err(error) => Err(Problem::ledger_unreadable(error)),
    }
}

/// A verification that may begin: no other one is under way.
pub(crate) struct Verifying {
    app: Arc<App>,
    _turn: OwnedSemaphorePermit,
}

impl Verifying {
    pub(crate) fn begin(app: &Arc<App>) -> Result<Self, Problem> {
        let Ok(turn) = app.verifying.clone().try_acquire_owned() else {
            return Err(Problem::new(Kind::Busy, "the ledger is being verified already")
                .hint("try again when that is done"));
        };
        Ok(Self { app: app.clone(), _turn: turn })
    }

    /// Reads the whole ledger; `tell` hears how far it has come.
    pub(crate) fn run(self, tell: &mut dyn FnMut(verify::Progress)) -> Json {
        verified(&self.app, tell)
    }
}

fn verified(app: &App, tell: &mut dyn FnMut(verify::Progress)) -> Json {
    let files = app.gateway.files();
    let finding = |what: String| json!({"verified": false, "finding": what});
    let kept = match read_checkpoint(&files.checkpoint()) {
        Ok(kept) => kept,
        Err(fault) => return finding(fault.to_string()),
    };
    let mut kept_count = usize::from(kept.is_some());
    let mut checkpoints = Vec::new();
    // Beside the one that was left in a file, what this process knows to be in force: the ledger has to reach that, too.
    for checkpoint in kept.into_iter().chain(app.gateway.checkpoint_of_state()) {
        match signed(&checkpoint, &app.gateway.public_key()) {
            Ok(checkpoint) => checkpoints.push(checkpoint),
            Err(found) => return finding(found),
        }
    }
    match read_other_checkpoints(&files.other_checkpoints()) {
        Err(fault) => return finding(fault.to_string()),
        Ok(others) => {
            for other in others {
                match other.verified() {
                    Ok(checkpoint) => {
                        kept_count += 1;
                        checkpoints.push(checkpoint);
                    }
                    Err(found) => return finding(found.to_string()),
                }
            }
        }
    }
    let through = app.gateway.engine().head();
    match app.gateway.ledger().verify(app.gateway.topic_id(), through, &checkpoints, tell) {
        Err(found) => finding(found.to_string()),
        Ok(report) => json!({
            "verified": true,
            "topicId": report.topic_id,
            "entries": report.entries,
            "runningHash": report.last_running_hash,
            "bodies": report.bodies,
            "batches": report.batches,
            "checkpoints": kept_count,
        }),
    }
}

/// A checkpoint as the verifier takes it: signed with this key.
fn signed(checkpoint: &Checkpoint, public_key: &str) -> Result<verify::Checkpoint, String> {
    let text = serde_json::to_vec(checkpoint).unwrap_or_default();
    let claimed = verify::Checkpoint::parse(&text).map_err(|found| found.to_string())?;
    let mut keys = verify::PublicKeys::default();
    keys.add(claimed.key_id(), public_key).map_err(|error| error.to_string())?;
    claimed.verify(&keys).map_err(|found| found.to_string())
}
