//! What the events of a task stream come to.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::contracts::Contracts;
use super::state::State;
use crate::proof::Digest;

/// A task: one attempt at a handoff, as its stream tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    pub stream_id: String,
    pub context_id: String,
    /// Nothing while only messages have come.
    pub state: Option<State>,
    /// The number of its last event.
    pub stream_seq: u64,
    /// Who handed over.
    pub source: Option<String>,
    /// Who has claimed it.
    pub claimer: Option<String>,
    /// In the order in which they first became ready.
    pub artifacts: Vec<Artifact>,
    /// What `verification.mechanical` says.
    pub verification: Option<String>,
    /// Of a failure or a rejection.
    pub codes: Vec<String>,
    pub parent_task_id: Option<String>,
    pub reference_task_ids: Vec<String>,
    /// The ids of its events, while it is open.
    pub(super) seen: Vec<Mark>,
}

/// Something that can be fetched; never the thing itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    pub artifact_id: String,
    pub uri: String,
    pub version: u64,
    pub hash: String,
    pub is_final: bool,
    /// The artifacts it was made from.
    pub lineage: Vec<String>,
}

/// A name, as short as it can be without being taken for another: half a SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark([u8; 16]);

impl Mark {
    pub fn of(name: &str) -> Self {
        let digest = Digest::of(name.as_bytes());
        Self(digest.as_bytes().first_chunk().copied().unwrap_or_default())
    }
}

impl TaskState {
    /// A task before its first event.
    pub fn new(stream_id: &str, context_id: &str) -> Self {
        Self {
            stream_id: stream_id.to_owned(),
            context_id: context_id.to_owned(),
            state: None,
            stream_seq: 0,
            source: None,
            claimer: None,
            artifacts: Vec::new(),
            verification: None,
            codes: Vec::new(),
            parent_task_id: None,
            reference_task_ids: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// A task whose first three events, the gateway's own, have come: it was created, decided, and is available or
    /// waits for a person.
    pub fn accepted(stream_id: &str, context_id: &str, source: Option<&str>, state: State) -> Self {
        let source = source.map(str::to_owned);
        Self { state: Some(state), stream_seq: 3, source, ..Self::new(stream_id, context_id) }
    }

    pub fn is_terminal(&self, contracts: &Contracts) -> bool {
        self.state.is_some_and(|state| contracts.is_terminal(state))
    }

    /// As `wire reduce` prints it.
    pub fn to_json(&self, contracts: &Contracts) -> Json {
        let ids: Vec<&str> = self.artifacts.iter().map(|artifact| artifact.artifact_id.as_str()).collect();
        json!({
            "task_state": self.state.map(State::as_str),
            "terminal": self.is_terminal(contracts),
            "artifact_count": ids.len(),
            "artifact_ids": ids,
            "blocked": self.state == Some(State::Blocked),
            "verification": self.verification.as_ref().map(|word| json!({"mechanical": word})),
            "context_id": self.context_id,
            "stream_seq": self.stream_seq,
            "claimer": self.claimer,
            "codes": self.codes,
            "parent_task_id": self.parent_task_id,
            "reference_task_ids": self.reference_task_ids,
        })
    }
}

/// What the tasks of one context come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextState {
    pub tasks: usize,
    pub open: usize,
    pub blocked: usize,
    pub artifacts: usize,
    /// Tasks by the state they are in.
    pub states: BTreeMap<State, usize>,
}

impl ContextState {
    /// The contexts of these tasks.
    pub fn of<'t>(
        tasks: impl IntoIterator<Item = &'t TaskState>,
        contracts: &Contracts,
    ) -> BTreeMap<&'t str, Self> {
        let mut contexts: BTreeMap<&str, Self> = BTreeMap::new();
        for task in tasks {
            let context = contexts.entry(&task.context_id).or_default();
            context.tasks += 1;
            context.open += usize::from(!task.is_terminal(contracts));
            context.blocked += usize::from(task.state == Some(State::Blocked));
            context.artifacts += task.artifacts.len();
            if let Some(state) = task.state {
                *context.states.entry(state).or_default() += 1;
            }
        }
        contexts
    }

    pub fn to_json(&self) -> Json {
        let states: BTreeMap<&str, usize> =
            self.states.iter().map(|(state, count)| (state.as_str(), *count)).collect();
        json!({
            "tasks": self.tasks,
            "open": self.open,
            "blocked": self.blocked,
            "artifact_count": self.artifacts,
            "states": states,
        })
    }
}
