//! What a stream tells of one Wire event, in both versions and in the form of `GET /stream/{id}`.

use std::fmt;

use serde_json::{Value as Json, json};

use super::life::{Head, Status};
use super::task::{Shown, artifact_json, head_metadata, status_json, task_json};
use super::version::Version;
use crate::json::printable;
use crate::wire::{Artifact, Contracts};

/// One Wire event as a stream tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    stream_seq: u64,
    head: Head,
    what: What,
    is_final: bool,
}

/// What changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// The task began.
    Task(Status),
    Status(Status),
    Artifact(Artifact),
}

/// An event of `GET /stream/{id}`: the name and data of one server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// `task`, `status`, `artifact` or `final`.
    pub event: &'static str,
    pub id: u64,
    pub data: Json,
}

impl Update {
    pub(super) fn new(stream_seq: u64, head: Head, what: What, is_final: bool) -> Self {
        Self { stream_seq, head, what, is_final }
    }

    /// The `id:` of the server-sent event: whoever has it goes on behind it.
    pub fn id(&self) -> u64 {
        self.stream_seq
    }

    /// Is it the last one, after which the stream is closed?
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// The trace that the task began in.
    pub fn traceparent(&self) -> Option<&str> {
        self.head.traceparent.as_deref()
    }

    /// The result of the JSON-RPC answer that a stream of this version carries.
    pub fn to_json(&self, contracts: &Contracts, version: Version) -> Json {
        let Head { task_id, context_id, .. } = &self.head;
        let mut metadata = head_metadata(&self.head);
        metadata.insert("streamSeq".to_owned(), json!(self.stream_seq));
        let (kind, member, mut event) = match &self.what {
            What::Task(status) => {
                let task = task_json(contracts, &self.head, status, Vec::new(), &Shown::whole(version, &[]));
                return match version {
                    Version::V0_3 => task,
                    Version::V1_0 => json!({"task": task}),
                };
            }
            What::Status(status) => {
                let status = status_json(contracts, status, version);
                let event = json!({"taskId": task_id, "contextId": context_id, "status": status, "metadata": metadata});
                ("status-update", "statusUpdate", event)
            }
            What::Artifact(artifact) => {
                let event = json!({
                    "taskId": task_id,
                    "contextId": context_id,
                    "artifact": artifact_json(artifact, version),
                    // Each version of an artifact is whole, and takes the place of the one before.
                    "append": false,
                    "lastChunk": true,
                    "metadata": metadata,
                });
                ("artifact-update", "artifactUpdate", event)
            }
        };
        match version {
            Version::V1_0 => json!({member: event}),
            Version::V0_3 => {
                if let Some(event) = event.as_object_mut() {
                    event.insert("kind".to_owned(), json!(kind));
                    if kind == "status-update" {
                        event.insert("final".to_owned(), json!(self.is_final));
                    }
                }
                event
            }
        }
    }

    /// As `GET /stream/{id}` tells it: the bare object of 0.3.
    pub fn to_stream_event(&self, contracts: &Contracts) -> StreamEvent {
        let event = match &self.what {
            _ if self.is_final => "final",
            What::Task(_) => "task",
            What::Status(_) => "status",
            What::Artifact(_) => "artifact",
        };
        StreamEvent { event, id: self.stream_seq, data: self.to_json(contracts, Version::V0_3) }
    }
}

/// A place to go on from that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeFault {
    /// The header or query parameter.
    pub name: &'static str,
    text: String,
}

impl fmt::Display for ResumeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is `{}`, which is not the number of an event", self.name, printable(&self.text))
    }
}

impl std::error::Error for ResumeFault {}

/// The first event that is told: `from` is inclusive, `Last-Event-ID` was seen already.
///
/// The header wins: a client that reconnects by itself sends it along with the address that it began with.
pub fn resume_from(from: Option<&str>, last_event_id: Option<&str>) -> Result<u64, ResumeFault> {
    let number = |name, text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u64>().ok().filter(|_| digits);
        number.ok_or_else(|| ResumeFault { name, text: text.to_owned() })
    };
    match (last_event_id.filter(|text| !text.is_empty()), from) {
        (Some(last), _) => Ok(number("Last-Event-ID", last)?.saturating_add(1)),
        (None, Some(from)) => Ok(number("from", from)?.max(1)),
        (None, None) => Ok(1),
    }
}
