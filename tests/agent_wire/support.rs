//! Fixtures, and a stream of them played through the reducer.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use handoffd::wire::{Applied, Contracts, Envelope, Kind, Reducer, StreamId, TaskState, WireFault};
use serde_json::{Map, Value as Json, json};

pub(super) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The JSON files of a directory, by name.
pub(super) fn files(directory: &str) -> BTreeMap<String, Json> {
    let entries = fs::read_dir(root().join(directory)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let json = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    json.map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let value = serde_json::from_str(&fs::read_to_string(&path).unwrap());
        (name.clone(), value.unwrap_or_else(|error| panic!("{name}: {error}")))
    })
    .collect()
}

pub(super) fn fixtures() -> BTreeMap<String, Json> {
    files("tests/fixtures/agent-wire/v1.1")
}

/// The file name's first part: `task-created.valid.json` is about `task.created`.
pub(super) fn kind_of(file: &str) -> Kind {
    let stem = file.split('.').next().unwrap();
    stem.replace('-', ".").parse().unwrap_or_else(|_| panic!("{file} is about no type of event"))
}

pub(super) fn valid_fixture(fixtures: &BTreeMap<String, Json>, kind: Kind) -> Json {
    let file = format!("{}.valid.json", kind.as_str().replace('.', "-"));
    fixtures.get(&file).unwrap_or_else(|| panic!("there is no {file}")).clone()
}

/// A text of `wire_id` for the nth event.
pub(super) fn wire_id(n: usize) -> String {
    format!("wire_{n:026}")
}

/// A reducer that is fed with events as the cases write them.
pub(super) struct Stage<'c> {
    pub(super) reducer: Reducer<'c>,
    fixtures: &'c BTreeMap<String, Json>,
    closed: BTreeMap<String, TaskState>,
    /// The last number that was taken in, in each stream.
    last: BTreeMap<String, u64>,
    played: usize,
    /// What was refused: the number of the event, and why.
    pub(super) rejected: Vec<(usize, WireFault)>,
}

impl<'c> Stage<'c> {
    pub(super) fn new(contracts: &'c Contracts, fixtures: &'c BTreeMap<String, Json>) -> Self {
        Self {
            reducer: Reducer::new(contracts),
            fixtures,
            closed: BTreeMap::new(),
            last: BTreeMap::new(),
            played: 0,
            rejected: Vec::new(),
        }
    }

    /// The valid fixture of a bare name, with ids and numbers rewritten; an object says what is different.
    pub(super) fn event(&self, step: &Json) -> Json {
        let changes = step.as_object().cloned().unwrap_or_else(|| {
            let mut bare = Map::new();
            bare.insert("type".to_owned(), step.clone());
            bare
        });
        let kind: Kind = changes["type"].as_str().unwrap().parse().unwrap();
        let mut event = valid_fixture(self.fixtures, kind);
        event["wire_id"] = json!(wire_id(self.played + 1));
        if let Some(name) = changes.get("stream_id") {
            event["stream"]["stream_id"] = name.clone();
        }
        let name = event["stream"]["stream_id"].as_str().unwrap().to_owned();
        event["stream"]["stream_seq"] = json!(self.last.get(&name).copied().unwrap_or(0) + 1);
        if let (Kind::TaskCreated, Some(StreamId::Handoff { handoff_id, attempt })) =
            (kind, StreamId::parse(&name))
        {
            event["payload"]["handoff_id"] = json!(handoff_id);
            event["payload"]["attempt"] = json!(attempt);
        }
        for (member, value) in &changes {
            match member.as_str() {
                "type" | "stream_id" => {}
                "payload" => {
                    let payload = event["payload"].as_object_mut().unwrap();
                    for (name, value) in value.as_object().unwrap() {
                        // Null takes a member away.
                        payload.shift_remove(name);
                        if !value.is_null() {
                            payload.insert(name.clone(), value.clone());
                        }
                    }
                }
                "wire_id" | "sender" | "state" => event[member] = value.clone(),
                "stream_seq" | "context_id" | "reference_task_ids" | "parent_task_id" => {
                    event["stream"][member] = value.clone();
                }
                other => panic!("a case does not know `{other}`"),
            }
        }
        event
    }

    pub(super) fn play(&mut self, step: &Json) {
        let event = self.event(step);
        self.take(&event);
    }

    pub(super) fn take(&mut self, event: &Json) {
        self.played += 1;
        let text = event.to_string();
        let applied = Envelope::parse(&text)
            .map_err(|faults| faults.into_iter().next().unwrap())
            .and_then(|envelope| self.reducer.apply(&envelope));
        let name = event["stream"]["stream_id"].as_str().unwrap_or_default().to_owned();
        match applied {
            Ok(applied) => {
                self.last.insert(name.clone(), event["stream"]["stream_seq"].as_u64().unwrap());
                if let Applied::Closed(task) = applied {
                    assert!(self.closed.insert(name, *task).is_none());
                }
            }
            Err(fault) => self.rejected.push((self.played, fault)),
        }
    }

    pub(super) fn tasks(&self) -> BTreeMap<&str, &TaskState> {
        let all = self.reducer.open_tasks().chain(self.closed.values());
        all.map(|task| (task.stream_id.as_str(), task)).collect()
    }
}
