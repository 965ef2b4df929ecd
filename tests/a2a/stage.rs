//! A Wire stream of the fixtures, played through the reducer and into a [`Life`]; and golden files.

use std::fs;
use std::path::PathBuf;

use handoffd::a2a::{Life, Message, Update};
use handoffd::wire::{Contracts, Envelope, Kind, Reducer, State};
use serde_json::{Value as Json, json};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A stream, and what a client has been shown of it.
pub(super) struct Stage {
    reducer: Reducer<'static>,
    pub(super) life: Life<'static>,
    pub(super) updates: Vec<Update>,
    stream: &'static str,
    taken: u64,
}

impl Stage {
    pub(super) fn new(life: Life<'static>) -> Self {
        Self::in_stream(life, "task:hs_20260218_router_0001:attempt:1")
    }

    pub(super) fn in_stream(life: Life<'static>, stream: &'static str) -> Self {
        Self { reducer: Reducer::new(Contracts::embedded()), life, updates: Vec::new(), stream, taken: 0 }
    }

    /// Plays events as `type`, or `type by sender`, with the payloads of the fixtures; panics if one may not come.
    pub(super) fn play(&mut self, steps: &[&str]) -> &mut Self {
        for step in steps {
            assert!(self.try_play(step, None), "{step} was refused");
        }
        self
    }

    pub(super) fn try_play(&mut self, step: &str, words: Option<&Message>) -> bool {
        let (kind, sender) =
            step.split_once(" by ").map_or((step, None), |(kind, sender)| (kind, Some(sender)));
        let mut event = fixture(kind.parse().unwrap());
        if let Some(sender) = sender {
            event["sender"] = json!(sender);
        }
        self.take(event, words)
    }

    /// Takes an event in, if the reducer does; numbers and ids are rewritten.
    pub(super) fn take(&mut self, mut event: Json, words: Option<&Message>) -> bool {
        let next = self.taken + 1;
        event["wire_id"] = json!(format!("wire_{next:026}"));
        event["ts"] = json!(format!("2026-02-18T19:{:02}:{:02}Z", 38 + next / 60, next % 60));
        event["stream"]["stream_id"] = json!(self.stream);
        event["stream"]["stream_seq"] = json!(next);
        if event["type"] == "task.created" {
            let (handoff, attempt) =
                self.stream.strip_prefix("task:").unwrap().split_once(":attempt:").unwrap();
            event["payload"]["handoff_id"] = json!(handoff);
            event["payload"]["attempt"] = json!(attempt.parse::<u32>().unwrap());
            event["extensions"] =
                json!({"handoffd.traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
        }
        if event["type"] == "artifact.ready" {
            event["payload"]["version"] = json!(next);
        }
        let text = event.to_string();
        let envelope = Envelope::parse(&text).unwrap_or_else(|faults| panic!("{text}\n{faults:?}"));
        if self.reducer.apply(&envelope).is_err() {
            return false;
        }
        self.taken = next;
        self.updates.extend(self.life.take(&envelope, words));
        true
    }

    /// The state of the stream itself.
    pub(super) fn stream_state(&self) -> Option<State> {
        let open = self.reducer.open_task(self.stream).and_then(|task| task.state);
        open.or_else(|| self.reducer.closed_as(self.stream))
    }
}

pub(super) fn fixture(kind: Kind) -> Json {
    let file = format!("tests/fixtures/agent-wire/v1.1/{}.valid.json", kind.as_str().replace('.', "-"));
    serde_json::from_str(&fs::read_to_string(root().join(file)).unwrap()).unwrap()
}

/// Compares with a golden file, or writes it if UPDATE is set.
pub(super) fn golden(name: &str, made: &Json) {
    let path = root().join("tests/golden/a2a").join(name);
    let mut made = serde_json::to_string_pretty(made).unwrap();
    made.push('\n');
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == made, "{name} is not what is made now; run: UPDATE=1 cargo test --test a2a");
}
