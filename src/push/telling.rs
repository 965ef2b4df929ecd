//! What is told, whatever it is told to.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::a2a::{Update, Version, send_result};
use crate::wire::Contracts;

/// One thing that a receiver is told of a task.
#[derive(Debug, Clone)]
pub struct Telling {
    pub(super) stream_seq: u64,
    pub(super) is_final: bool,
    pub(super) traceparent: Option<String>,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Update(Box<Update>),
    /// In the order of [`Version::ALL`].
    Task(Arc<[Json; 2]>),
}

impl Telling {
    /// The end of a task that never had a stream: the task itself, as each version shows it.
    pub fn ended(task: impl Fn(Version) -> Json) -> Self {
        let what = What::Task(Arc::new(Version::ALL.map(task)));
        Self { stream_seq: 1, is_final: true, traceparent: None, what }
    }

    /// Its place in what is told of the task.
    pub fn stream_seq(&self) -> u64 {
        self.stream_seq
    }

    /// As a stream of this version would carry it.
    pub(super) fn to_json(&self, version: Version) -> Json {
        match &self.what {
            What::Update(update) => update.to_json(Contracts::embedded(), version),
            What::Task(shown) => {
                let [old, new] = shown.as_ref();
                let task = match version {
                    Version::V0_3 => old,
                    Version::V1_0 => new,
                };
                send_result(task.clone(), version)
            }
        }
    }
}

impl From<Update> for Telling {
    fn from(update: Update) -> Self {
        Self {
            stream_seq: update.id(),
            is_final: update.is_final(),
            traceparent: update.traceparent().map(str::to_owned),
            what: What::Update(Box::new(update)),
        }
    }
}
