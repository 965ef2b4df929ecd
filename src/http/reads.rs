//! Lists of handoffs, and one with its timeline.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value as Json, json};
use tokio::sync::Semaphore;

use super::App;
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use crate::callers::{Caller, Role};
use crate::ledger::{EntriesFault, Source};
use crate::limits;
use crate::policy::{PolicySet, Reach};
use crate::views::{AttemptRow, HandoffDetail, HandoffFilter, HandoffRow, Reader, ViewsFault};

/// Connections to the views: those that nobody uses at the moment, and how many more there may be.
///
/// Each has a cache of its own, so as many as there are questions would be memory without a bound: a thousand clients
/// that come back at once wait for each other instead.
#[derive(Debug)]
pub(super) struct Readers {
    idle: Mutex<Idle>,
    places: Arc<Semaphore>,
}

/// Connections to the file that is followed now: one of a file that took its place shows what was.
#[derive(Debug, Default)]
struct Idle {
    opening: u64,
    readers: Vec<Reader>,
}

impl Readers {
    fn idle(&self, opening: u64) -> MutexGuard<'_, Idle> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.opening < opening {
            *idle = Idle { opening, readers: Vec::new() };
        }
        idle
    }

    fn take(&self, opening: u64) -> Option<Reader> {
        let mut idle = self.idle(opening);
        if idle.opening == opening { idle.readers.pop() } else { None }
    }

    fn give_back(&self, opening: u64, reader: Reader) {
        let mut idle = self.idle(opening);
        if idle.opening == opening {
            idle.readers.push(reader);
        }
    }
}

impl Default for Readers {
    fn default() -> Self {
        Self { idle: Mutex::default(), places: Arc::new(Semaphore::new(limits::VIEW_READERS_MAX)) }
    }
}

impl App {
    /// Asks the views, once they show all that was durable when the question came: whoever was told of a decision
    /// finds it.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Reader) -> Result<T, ViewsFault> + Send + 'static,
    ) -> Result<T, Problem> {
        let (app, head) = (self.clone(), self.gateway.engine().head());
        let unasked = || Problem::new(Kind::ViewsBehind, "the question could not be asked");
        let place = self.readers.places.clone().acquire_owned().await.map_err(|_| unasked())?;
        let asked = tokio::task::spawn_blocking(move || {
            // Whoever asked may have gone; the place is free when the answer is there.
            let _place = place;
            let patience = Duration::from_millis(limits::VIEW_WAIT_MS);
            if !app.gateway.views().wait_for(head, patience) {
                return Err(Problem::new(Kind::ViewsBehind, "the views are behind the ledger")
                    .hint("try again shortly"));
            }
            // After the wait, so that what was waited for is in this file.
            let opening = app.gateway.views().opening();
            let reader = match app.readers.take(opening) {
                Some(reader) => reader,
                None => app.gateway.reader()?,
            };
            let answer = question(&reader)?;
            // One that failed is not used again.
            app.readers.give_back(opening, reader);
            Ok(answer)
        });
        asked.await.unwrap_or_else(|_| Err(unasked()))
    }
}

/// `GET /v1/handoffs`.
pub(super) async fn list(call: Call) -> Answer {
    let caller = call.caller()?.clone();
    let own = caller.sees_only().map(str::to_owned);
    let query = call.query;
    let page = call
        .app
        .ask(move |reader| {
            let filter = HandoffFilter {
                status: query.text("status").and_then(|status| status.parse().ok()),
                // An agent that sees only its own asks for others in vain.
                agent: own.as_deref().or(query.text("agent")),
                route: query.text("route"),
                decision: query.text("decision"),
                code: query.text("code"),
                correlation_id: query.text("correlationId"),
                handoff_id: None,
                from: query.time("from"),
                to: query.time("to"),
            };
            let limit = query.integer("limit").map_or(limits::PAGE_ROWS, |limit| limit as usize);
            let mut page = reader.handoffs(&filter, query.cursor(), limit)?;
            let asked = query.text("agent");
            page.rows.retain(|row| {
                sees(&caller, &row.current) && asked.is_none_or(|agent| names(&row.current, agent))
            });
            Ok(page)
        })
        .await?;
    let rows: Vec<Json> = page.rows.iter().map(row_to_json).collect();
    let body = json!({"handoffs": rows, "next": page.next.map(|next| next.to_string())});
    Ok(json_response(StatusCode::OK, &body))
}

/// `GET /v1/handoffs/{id}`.
pub(super) async fn show(call: Call) -> Answer {
    let detail = call.seen().await?;
    let ledger = call.app.gateway.ledger().clone();
    let shown = tokio::task::spawn_blocking(move || detail_to_json(&ledger, &detail)).await;
    match shown {
        Ok(Ok(body)) => Ok(json_response(StatusCode::OK, &body)),
        Ok(Err(fault)) => Err(Problem::ledger_unreadable(fault)),
        Err(error) => Err(Problem::ledger_unreadable(error)),
    }
}

/// The handoff that the path names, by the attempts that this caller may see. A stranger cannot tell one that is not
/// there from one that is not theirs; whoever was refused under somebody else's id sees what it sent itself.
async fn visible(
    app: Arc<App>,
    caller: Caller,
    policies: Arc<PolicySet>,
    id: String,
) -> Result<HandoffDetail, Problem> {
    // One that is not theirs is looked for like one that is not there, or the time that takes would tell them apart.
    let detail = app.find(move |reader| reader.handoff_by(&id, &|row| may_see(&caller, row, &policies)));
    detail.await?.ok_or_else(|| Problem::not_found("handoff"))
}

impl Call {
    /// The handoff that the path names, as far as this caller may see it.
    pub(super) fn seen(&self) -> impl Future<Output = Result<HandoffDetail, Problem>> + Send + use<> {
        let (app, caller, id) = (self.app.clone(), self.caller().cloned(), self.path().to_owned());
        let policies = self.rules.in_force.policies.clone();
        async move { visible(app, caller?, policies, id).await }
    }
}

/// Does this caller see an attempt? Its ends do, those who may see all, and an agent that may do it instead of the target.
pub(super) fn may_see(caller: &Caller, row: &AttemptRow, policies: &PolicySet) -> bool {
    let may_claim = || {
        let route = row.route_key.as_deref().and_then(|key| policies.route(key));
        let fallback_agent = row.fallback_agent.clone();
        let reach = if row.delegated { Reach::Named { fallback_agent } } else { Reach::Route };
        let claimants = reach.claimants(row.target_agent.as_deref(), route);
        caller.role() == Role::Agent && caller.agent_id().is_some_and(|agent| claimants.contains(&agent))
    };
    sees(caller, row) || may_claim()
}

fn sees(caller: &Caller, row: &AttemptRow) -> bool {
    let [source, target] =
        [&row.source_agent, &row.target_agent].map(|end| end.as_deref().unwrap_or_default());
    caller.sees(source, target)
}

/// Is this agent its source or its target?
fn names(row: &AttemptRow, agent: &str) -> bool {
    [&row.source_agent, &row.target_agent].into_iter().any(|end| end.as_deref() == Some(agent))
}

fn row_to_json(row: &HandoffRow) -> Json {
    let mut json = attempt_to_json(&row.current);
    if let Some(members) = json.as_object_mut() {
        members.insert("handoffId".to_owned(), row.handoff_id.clone().into());
        members.insert("attempts".to_owned(), row.attempts.into());
        members.insert("createdAt".to_owned(), row.created_at.clone().into());
    }
    json
}

fn attempt_to_json(row: &AttemptRow) -> Json {
    json!({
        "attempt": row.attempt,
        "status": row.status.as_str(),
        "decision": row.decision,
        "codes": row.codes,
        "sourceAgent": row.source_agent,
        "targetAgent": row.target_agent,
        "routeKey": row.route_key,
        "mode": row.mode,
        "operation": row.operation,
        "correlationId": row.correlation_id,
        "parentHandoffId": row.parent_handoff_id,
        "messageId": row.message_id,
        "createdSequence": row.created_sequence,
        "decidedSequence": row.decided_sequence,
        "updatedAt": row.updated_at,
    })
}

fn detail_to_json(ledger: &Source, detail: &HandoffDetail) -> Result<Json, EntriesFault> {
    let mut attempts = Vec::new();
    for (row, sequences) in &detail.attempts {
        let mut timeline = Vec::new();
        for sequence in sequences {
            let entry = ledger.committed(*sequence)?;
            let wire: Json = serde_json::from_str(&entry.wire).unwrap_or_default();
            timeline.push(json!({
                "sequence": entry.sequence,
                "at": entry.consensus_timestamp,
                "runningHash": entry.running_hash.to_string(),
                "type": wire.get("type"),
                "streamSeq": wire.pointer("/stream/stream_seq"),
                "sender": wire.get("sender"),
                "payload": wire.get("payload"),
            }));
        }
        let mut attempt = attempt_to_json(row);
        if let Some(members) = attempt.as_object_mut() {
            members.insert("timeline".to_owned(), timeline.into());
        }
        attempts.push(attempt);
    }
    let mut json = row_to_json(&detail.handoff);
    if let Some(members) = json.as_object_mut() {
        members.insert("history".to_owned(), attempts.into());
    }
    Ok(json)
}
