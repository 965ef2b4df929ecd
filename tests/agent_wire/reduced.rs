//! A ledger's entries, each held to the published schemas and reduced by the contracts, and what they come to compared with
//! what the views and the state file say. Neither of those two uses the reducer.

use std::collections::{BTreeMap, BTreeSet};

use handoffd::ledger::Entry;
use handoffd::views::Reader;
use handoffd::wire::{Applied, Contracts, Envelope, Kind, Reducer, State, StreamId, TaskState};
use serde_json::Value as Json;

/// What the entries so far come to.
pub(crate) struct Reduced {
    pub(crate) reducer: Reducer<'static>,
    pub(crate) closed: Vec<TaskState>,
    pub(crate) kinds: BTreeSet<Kind>,
}

impl Reduced {
    pub(crate) fn new() -> Self {
        let reducer = Reducer::new(Contracts::embedded());
        Self { reducer, closed: Vec::new(), kinds: BTreeSet::new() }
    }

    /// Takes the next entry in, which must be valid and in order.
    pub(crate) fn take(&mut self, entry: &Entry) {
        let wire = &entry.wire;
        let envelope = Envelope::parse(wire).unwrap_or_else(|faults| panic!("{wire}\n{faults:?}"));
        self.kinds.insert(envelope.kind());
        match self.reducer.apply(&envelope) {
            Ok(Applied::Open) => {}
            Ok(Applied::Closed(task)) => self.closed.push(*task),
            Err(fault) => panic!("{wire}\n{fault}"),
        }
    }

    /// Every attempt, with the handoff that it is at.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = (&str, u32, &TaskState)> {
        self.reducer.open_tasks().chain(&self.closed).map(|task| match StreamId::parse(&task.stream_id) {
            Some(StreamId::Handoff { handoff_id, attempt }) => (handoff_id, attempt, task),
            _ => panic!("{} is no attempt", task.stream_id),
        })
    }

    /// The views say of every attempt what its events come to. They show the newest ones of a handoff.
    pub(crate) fn agrees_with_views(&self, reader: &Reader) {
        let mut of_handoff = BTreeMap::<&str, BTreeMap<u32, &TaskState>>::new();
        for (handoff_id, attempt, task) in self.attempts() {
            of_handoff.entry(handoff_id).or_default().insert(attempt, task);
        }
        for (handoff_id, attempts) in of_handoff {
            let shown = reader.handoff(handoff_id).unwrap();
            let shown = shown.unwrap_or_else(|| panic!("the views lack {handoff_id}"));
            assert_eq!(shown.handoff.attempts as usize, attempts.len(), "attempts at {handoff_id}");
            assert!(!shown.attempts.is_empty(), "the views show no attempt at {handoff_id}");
            for (row, _) in shown.attempts {
                let task = attempts[&row.attempt];
                assert_eq!(Some(row.status), task.state, "{}", task.stream_id);
            }
        }
    }

    /// The state says of every handoff that was not refused, and of every route, what their events come to. One that has
    /// ended is shown for a while and then no longer.
    pub(crate) fn agrees_with_state(&self, state: &Json) {
        let mut accepted = BTreeMap::<&str, (u32, &TaskState)>::new();
        for (handoff_id, attempt, task) in self.attempts() {
            // The third event refuses what never waited: such an attempt is no part of the state.
            let refused = task.state == Some(State::Rejected) && task.stream_seq <= 3;
            if !refused && accepted.get(handoff_id).is_none_or(|(other, _)| *other < attempt) {
                accepted.insert(handoff_id, (attempt, task));
            }
        }
        let shown = state["activeHandoffs"].as_object().unwrap();
        for (handoff_id, row) in shown {
            let (_, task) =
                accepted.get(handoff_id.as_str()).unwrap_or_else(|| panic!("{handoff_id}: {row}"));
            let words = words(task.state.unwrap());
            assert!(words.contains(&row["status"].as_str().unwrap()), "{}: {row}", task.stream_id);
        }
        for (handoff_id, (_, task)) in &accepted {
            let open = self.reducer.open_task(&task.stream_id).is_some();
            assert!(!open || shown.contains_key(*handoff_id), "the state lacks {}", task.stream_id);
        }
        let routes = &state["promotion"]["routes"];
        let mut declared = BTreeSet::new();
        for (stream_id, _, route) in self.reducer.routes().filter(|(_, _, route)| route.declared) {
            let key = stream_id.strip_prefix("phase:").unwrap();
            let is = (route.stage.as_deref(), Some(route.blocked), Some(route.canary));
            let row = &routes[key];
            let says = (row["currentStage"].as_str(), row["blocked"].as_bool(), row["canary"].as_bool());
            assert_eq!(is, says, "{stream_id}: {row}");
            declared.insert(key);
        }
        for table in [routes, &state["routingTable"]] {
            let named: BTreeSet<&str> = table.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(named, declared);
        }
    }
}

/// What the state file calls it.
fn words(state: State) -> &'static [&'static str] {
    match state {
        // Whoever sees a handoff sees it decided.
        State::Created => &[],
        State::Available => &["queued"],
        State::Waiting => &["needs_approval"],
        State::Claimed | State::Working => &["running"],
        State::Blocked => &["blocked"],
        State::Completed => &["done"],
        State::Rejected | State::Cancelled => &["failed"],
        State::Failed => &["failed", "rolled_back"],
    }
}
