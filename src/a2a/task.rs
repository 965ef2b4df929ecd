//! Tasks as clients of either version read them.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::id::TaskId;
use super::life::{Head, Life, Status};
use super::message::Message;
use super::part::{Content, Part};
use super::version::Version;
use crate::timestamp::Timestamp;
use crate::wire::{Artifact, Contracts, State};

/// The members of a Decision that a task shows: what was decided and why, and nothing to act on. Whether it was asked for
/// again is no part of the task.
const DECISION_MEMBERS: [&str; 10] = [
    "decision",
    "handoffId",
    "correlationId",
    "attempt",
    "decidedAt",
    "gates",
    "reasons",
    "expiresAt",
    "policyDigest",
    "ledger",
];

/// How much of a task is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'m> {
    pub version: Version,
    /// What was said, oldest first, as far as the caller may read it.
    pub history: &'m [Message],
    /// How much of that; all, if nobody says.
    pub history_length: Option<usize>,
    pub artifacts: bool,
}

impl<'m> Shown<'m> {
    /// All of it.
    pub fn whole(version: Version, history: &'m [Message]) -> Self {
        Self { version, history, history_length: None, artifacts: true }
    }
}

impl Life<'_> {
    /// The task as it is now; nothing while its stream says no state.
    pub fn to_json(&self, shown: &Shown<'_>) -> Option<Json> {
        let status = self.status.as_ref()?;
        let mut artifacts: Vec<Json> = Vec::new();
        if shown.artifacts {
            artifacts.extend(self.artifacts.iter().map(|artifact| artifact_json(artifact, shown.version)));
            if let (State::Rejected, Some(decision)) = (status.state, self.decision()) {
                artifacts.push(decision_artifact(decision, shown.version));
            }
        }
        Some(task_json(self.contracts, &self.head, status, artifacts, shown))
    }
}

/// A task whose TaskSpec could be no attempt at any handoff: it was refused, and is shown with the Decision.
pub fn rejected(id: &TaskId, context_id: &str, at: Timestamp, decision: &Json, shown: &Shown<'_>) -> Json {
    let (task_id, decision) = (id.to_string(), shown_decision(decision));
    let reasons = decision.get("reasons").and_then(Json::as_array).into_iter().flatten();
    // Each code once, in order, as the stream of a handoff tells them.
    let codes: BTreeSet<&str> =
        reasons.filter_map(|reason| reason.get("code").and_then(Json::as_str)).collect();
    let codes: Vec<&str> = codes.into_iter().collect();
    let parts = vec![Part::text(format!("rejected: {}", codes.join(", "))), Part::data(decision.clone())];
    let message = Message::from_agent(&format!("{task_id}.rejected"), parts).in_task(&task_id, context_id);
    let head = Head { task_id, context_id: context_id.to_owned(), handoff_id: None, traceparent: None };
    let status = Status { state: State::Rejected, at: Some(at), message: Some(message) };
    let artifacts =
        if shown.artifacts { vec![decision_artifact(&decision, shown.version)] } else { Vec::new() };
    task_json(Contracts::embedded(), &head, &status, artifacts, shown)
}

/// A task that was canceled before it had a TaskSpec.
pub fn canceled(id: &TaskId, context_id: &str, at: Timestamp, shown: &Shown<'_>) -> Json {
    let (task_id, context_id) = (id.to_string(), context_id.to_owned());
    let head = Head { task_id, context_id, handoff_id: None, traceparent: None };
    let status = Status { state: State::Cancelled, at: Some(at), message: None };
    task_json(Contracts::embedded(), &head, &status, Vec::new(), shown)
}

/// A task that a message without a TaskSpec began: it waits for one, and says so. `said` is the last such message.
pub fn input_required(
    id: &TaskId,
    context_id: &str,
    at: Timestamp,
    said: &Message,
    shown: &Shown<'_>,
) -> Json {
    let task_id = id.to_string();
    let parts = vec![Part::text(said.what_is_missing())];
    let message =
        Message::from_agent(&format!("{}.answer", said.message_id), parts).in_task(&task_id, context_id);
    let head = Head { task_id, context_id: context_id.to_owned(), handoff_id: None, traceparent: None };
    // The one state of a stream that is shown as input-required.
    let status = Status { state: State::Blocked, at: Some(at), message: Some(message) };
    task_json(Contracts::embedded(), &head, &status, Vec::new(), shown)
}

/// What `message/send` answers with: the task itself in 0.3, in 1.0 a member that says it is one.
pub fn send_result(task: Json, version: Version) -> Json {
    match version {
        Version::V0_3 => task,
        Version::V1_0 => json!({"task": task}),
    }
}

/// A Decision as a task shows it: without the dispatch, the receipt and whatever else its submitter alone is handed.
pub fn shown_decision(answer: &Json) -> Json {
    let members =
        DECISION_MEMBERS.iter().filter_map(|name| Some(((*name).to_owned(), answer.get(name)?.clone())));
    Json::Object(members.collect())
}

pub(super) fn task_json(
    contracts: &Contracts,
    head: &Head,
    status: &Status,
    artifacts: Vec<Json>,
    shown: &Shown<'_>,
) -> Json {
    let mut task = Map::new();
    if shown.version == Version::V0_3 {
        task.insert("kind".to_owned(), json!("task"));
    }
    task.insert("id".to_owned(), json!(head.task_id));
    task.insert("contextId".to_owned(), json!(head.context_id));
    task.insert("status".to_owned(), status_json(contracts, status, shown.version));
    if !artifacts.is_empty() {
        task.insert("artifacts".to_owned(), json!(artifacts));
    }
    let skipped = shown.history_length.map_or(0, |length| shown.history.len().saturating_sub(length));
    let history: Vec<Json> =
        shown.history.iter().skip(skipped).map(|message| message.to_json(shown.version)).collect();
    if !history.is_empty() {
        task.insert("history".to_owned(), json!(history));
    }
    let mut metadata = head_metadata(head);
    if status.state == State::Cancelled {
        metadata.insert("canceled".to_owned(), json!(true));
    }
    if !metadata.is_empty() {
        task.insert("metadata".to_owned(), Json::Object(metadata));
    }
    Json::Object(task)
}

pub(super) fn head_metadata(head: &Head) -> Map<String, Json> {
    let mut metadata = Map::new();
    metadata.extend(head.handoff_id.as_ref().map(|id| ("handoffId".to_owned(), json!(id))));
    metadata.extend(head.traceparent.as_ref().map(|text| ("traceparent".to_owned(), json!(text))));
    metadata
}

pub(super) fn status_json(contracts: &Contracts, status: &Status, version: Version) -> Json {
    let word = contracts.a2a_state(status.state).map(|state| match version {
        Version::V0_3 => state.v0_3.as_str(),
        Version::V1_0 => state.v1_0.as_str(),
    });
    let mut shown = Map::new();
    shown.insert("state".to_owned(), json!(word));
    shown.extend(status.message.as_ref().map(|message| ("message".to_owned(), message.to_json(version))));
    shown.extend(status.at.map(|at| ("timestamp".to_owned(), json!(at.to_milliseconds()))));
    Json::Object(shown)
}

/// An artifact is where it can be fetched, with what tells whether it is the right one.
pub(super) fn artifact_json(artifact: &Artifact, version: Version) -> Json {
    let mut metadata =
        json!({"version": artifact.version, "hash": artifact.hash, "final": artifact.is_final});
    if let (Some(metadata), false) = (metadata.as_object_mut(), artifact.lineage.is_empty()) {
        metadata.insert("lineage".to_owned(), json!(artifact.lineage));
    }
    json!({
        "artifactId": artifact.artifact_id,
        "name": artifact.artifact_id,
        "parts": [Part::from(Content::Url(artifact.uri.clone())).to_json(version)],
        "metadata": metadata,
    })
}

fn decision_artifact(decision: &Json, version: Version) -> Json {
    json!({
        "artifactId": "decision",
        "name": "Decision",
        "description": "what the gates decided, and every reason",
        "parts": [Part::data(decision.clone()).to_json(version)],
    })
}
