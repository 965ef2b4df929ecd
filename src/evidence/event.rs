//! The envelope around the payload: CloudEvents 1.0 with the contract's extension attributes.
//!
//! Owns ids, subject and the constant members. One packet makes one event, so the sequence number is always
//! 0. Deliberately absent: an inspection for personal data or secrets. `assaypii` and `assaysecrets` are
//! constants of the envelope; they do not say that anybody looked.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::canonical::Members;
use super::mapping::EventKind;
use super::payload::Payload;

const SPEC_VERSION: &str = "1.0";
/// Names the seam that the contracts describe, not the program that speaks through it.
const SOURCE: &str = "urn:assay:adapter:a2a";
const CONTENT_TYPE: &str = "application/json";
const SEQUENCE: usize = 0;
const PRODUCER: &str = "handoffd";
const PRODUCER_VERSION: &str = env!("CARGO_PKG_VERSION");
const GIT: &str = "unknown";
const PII: bool = false;
const SECRETS: bool = false;
/// Written as null: the digests beside the event do that work.
const CONTENT_HASH: () = ();

const RUN_PREFIX: &str = "a2a:";
const SEQUENCE_SUFFIX: &str = ":0";

/// One emitted event. Holds what differs between events; the constants are added when it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    kind: EventKind,
    /// `a2a:<subject>:0`, which holds the run id and the subject as well.
    id: String,
    time: Cow<'static, str>,
    data: Payload,
}

impl Event {
    /// `id` comes from [`Event::id_about`].
    pub(super) fn new(kind: EventKind, id: String, time: Cow<'static, str>, data: Payload) -> Self {
        Self { kind, id, time, data }
    }

    /// The id of an event about the agent, task, artifact or message with this id.
    pub(super) fn id_about(primary_id: &str) -> String {
        [RUN_PREFIX, primary_id, SEQUENCE_SUFFIX].concat()
    }

    /// What kind of event the packet became.
    pub fn kind(&self) -> EventKind {
        self.kind
    }

    /// The event's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of the agent, task, artifact or message that the event is about.
    pub fn subject(&self) -> &str {
        let run_id = self.run_id();
        run_id.strip_prefix(RUN_PREFIX).unwrap_or(run_id)
    }

    /// The packet's time in UTC, or the contract's default.
    pub fn time(&self) -> &str {
        &self.time
    }

    /// What the adapter says about the packet.
    pub fn data(&self) -> &Payload {
        &self.data
    }

    fn run_id(&self) -> &str {
        self.id.strip_suffix(SEQUENCE_SUFFIX).unwrap_or(&self.id)
    }

    /// `data` is the payload's canonical text, so that it is written once and used for both digests.
    pub(super) fn write_canonical(&self, members: &mut Members<'_>, data: &str) {
        members.null("assaycontenthash");
        members.text("assaygit", GIT);
        members.flag("assaypii", PII);
        members.text("assayproducer", PRODUCER);
        members.text("assayproducerversion", PRODUCER_VERSION);
        members.text("assayrunid", self.run_id());
        members.flag("assaysecrets", SECRETS);
        members.count("assayseq", SEQUENCE as u64);
        members.with("data", |text| text.push_str(data));
        members.text("datacontenttype", CONTENT_TYPE);
        members.text("id", &self.id);
        members.text("source", SOURCE);
        members.text("specversion", SPEC_VERSION);
        members.text("subject", self.subject());
        members.text("time", &self.time);
        members.text("type", self.kind.as_str());
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut event = serializer.serialize_struct("Event", 16)?;
        event.serialize_field("specversion", SPEC_VERSION)?;
        event.serialize_field("type", self.kind.as_str())?;
        event.serialize_field("source", SOURCE)?;
        event.serialize_field("id", &self.id)?;
        event.serialize_field("time", &self.time)?;
        event.serialize_field("datacontenttype", CONTENT_TYPE)?;
        event.serialize_field("subject", self.subject())?;
        event.serialize_field("assayrunid", self.run_id())?;
        event.serialize_field("assayseq", &SEQUENCE)?;
        event.serialize_field("assayproducer", PRODUCER)?;
        event.serialize_field("assayproducerversion", PRODUCER_VERSION)?;
        event.serialize_field("assaygit", GIT)?;
        event.serialize_field("assaypii", &PII)?;
        event.serialize_field("assaysecrets", &SECRETS)?;
        event.serialize_field("assaycontenthash", &CONTENT_HASH)?;
        event.serialize_field("data", &self.data)?;
        event.end()
    }
}
