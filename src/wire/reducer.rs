//! The reducer: events in order, exact state out. Pure, total, deterministic.
//!
//! An event that may not come where it stands is refused, with the reason, and changes nothing. What is refused
//! is looked at in this order: whether it belongs into its stream and the stream is open, its sender, its id, its
//! number, the transition, what it refers to. Streams do not know of each other, so their order among themselves does not matter.
//!
//! INVARIANT (small when closed): of a stream that has ended, its mark and its last state are kept and nothing
//! else; its state is handed out once, with the event that ended it. So memory grows with what is open.

use std::collections::BTreeMap;

use super::contracts::Contracts;
use super::envelope::Envelope;
use super::fault::{WireCode, WireFault};
use super::id::StreamId;
use super::kind::Kind;
use super::lifecycle::{Parties, may_send};
use super::own::{Progress, ProjectState, RouteState};
use super::state::State;
use super::step::{Admitted, duplicate, next_in_stream, terminal};
use super::task::{Mark, TaskState};

/// Everything that the events so far come to.
#[derive(Debug, Clone)]
pub struct Reducer<'c> {
    contracts: &'c Contracts,
    open: BTreeMap<String, TaskState>,
    closed: BTreeMap<Mark, State>,
    projects: BTreeMap<String, (Progress, ProjectState)>,
    routes: BTreeMap<String, (Progress, RouteState)>,
}

/// What an event did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// It changed a task that is still open, or the gateway's own state.
    Open,
    /// It ended a task, which is this.
    Closed(Box<TaskState>),
}

impl<'c> Reducer<'c> {
    pub fn new(contracts: &'c Contracts) -> Self {
        Self {
            contracts,
            open: BTreeMap::new(),
            closed: BTreeMap::new(),
            projects: BTreeMap::new(),
            routes: BTreeMap::new(),
        }
    }

    /// Takes the next event in, or says why not and stays as it is.
    pub fn apply(&mut self, envelope: &Envelope<'_>) -> Result<Applied, WireFault> {
        let kind = envelope.kind();
        let name = envelope.stream_id();
        let streams = self.contracts.event(kind).map(|rule| rule.streams.as_slice()).unwrap_or_default();
        let stream = StreamId::parse(name).filter(|stream| streams.contains(&stream.kind()));
        let progress = match stream {
            None => return Err(wrong_stream(kind, streams)),
            Some(StreamId::Handoff { .. }) => return self.apply_to_task(envelope),
            Some(StreamId::Route { .. }) => self.routes.get(name).map(|(progress, _)| progress),
            Some(StreamId::Gateway { .. }) => self.projects.get(name).map(|(progress, _)| progress),
        };
        may_send(self.contracts, kind, envelope.sender(), &Parties::default())?;
        let mark = Mark::of(envelope.wire_id());
        if progress.is_some_and(|progress| progress.last == Some(mark)) {
            return Err(duplicate(envelope));
        }
        next_in_stream(envelope, progress.map_or(0, |progress| progress.stream_seq))?;
        let progress = Progress { stream_seq: envelope.stream_seq(), last: Some(mark) };
        if let Some(StreamId::Route { .. }) = stream {
            let route = self.routes.entry(name.to_owned()).or_default();
            route.0 = progress;
            route.1.take(envelope);
        } else {
            let project = self.projects.entry(name.to_owned()).or_default();
            project.0 = progress;
            project.1.take(envelope);
        }
        Ok(Applied::Open)
    }

    fn apply_to_task(&mut self, envelope: &Envelope<'_>) -> Result<Applied, WireFault> {
        let name = envelope.stream_id();
        let known = self.open.get(name);
        // What has ended takes nothing from anybody, and has forgotten who was who.
        if known.is_none()
            && let Some(state) = self.closed.get(&Mark::of(name))
        {
            return Err(terminal(*state));
        }
        let parties = Parties {
            source: known.and_then(|task| task.source.as_deref()),
            claimer: known.and_then(|task| task.claimer.as_deref()),
            ..Parties::default()
        };
        let admitted = Admitted::after(self.contracts, known, envelope, &parties)?;
        let new = || TaskState::new(name, envelope.context_id());
        let task = self.open.entry(name.to_owned()).or_insert_with(new);
        task.take(envelope, admitted);
        let Some(state) = task.state.filter(|state| self.contracts.is_terminal(*state)) else {
            return Ok(Applied::Open);
        };
        self.closed.insert(Mark::of(name), state);
        let mut closed = self.open.remove(name).unwrap_or_else(new);
        closed.seen = Vec::new();
        Ok(Applied::Closed(Box::new(closed)))
    }

    /// The tasks that are open, in the order of their names.
    pub fn open_tasks(&self) -> impl Iterator<Item = &TaskState> {
        self.open.values()
    }

    /// A task that is open.
    pub fn open_task(&self, stream_id: &str) -> Option<&TaskState> {
        self.open.get(stream_id)
    }

    /// The state in which a task ended.
    pub fn closed_as(&self, stream_id: &str) -> Option<State> {
        self.closed.get(&Mark::of(stream_id)).copied()
    }

    /// How many tasks have ended.
    pub fn closed_count(&self) -> usize {
        self.closed.len()
    }

    /// The gateway's own streams with their last number and what is in force by them.
    pub fn projects(&self) -> impl Iterator<Item = (&str, u64, &ProjectState)> {
        self.projects.iter().map(|(name, (progress, state))| (name.as_str(), progress.stream_seq, state))
    }

    /// The routes' streams with their last number and what they come to.
    pub fn routes(&self) -> impl Iterator<Item = (&str, u64, &RouteState)> {
        self.routes.iter().map(|(name, (progress, state))| (name.as_str(), progress.stream_seq, state))
    }
}

fn wrong_stream(kind: Kind, streams: &[super::id::StreamKind]) -> WireFault {
    let words: Vec<String> = streams.iter().map(|kind| format!("`{}:`", kind.as_str())).collect();
    WireFault::new(
        WireCode::Stream,
        "/stream/stream_id",
        format!("{kind} does not belong into this stream"),
        format!("its stream begins with {}", words.join(" or ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A B-tree's leaf has room for 11 and is at least half full: what one entry can take, with a third of it
    /// again for the levels above.
    #[test]
    fn a_stream_that_has_ended_takes_at_most_48_bytes() {
        let entry = size_of::<Mark>() + size_of::<State>();
        let leaf = 11 * entry + 16;
        let leaf_share = leaf as f64 / 6.0;
        let above_share = (leaf + 12 * size_of::<usize>()) as f64 / 36.0;
        assert!(leaf_share + above_share <= 48.0, "{leaf_share} and {above_share}");
    }
}
