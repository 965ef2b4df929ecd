//! What the views read of a Wire event. Of a type they do not know, they keep what every event has.

use crate::json::{Bounds, Document, Value, read};
use crate::limits;
use crate::wire::StreamId;

const EVENT: Bounds = Bounds { bytes_max: limits::EVENT_BYTES_MAX, levels_max: limits::EVENT_LEVELS_MAX };

/// An event's text as a tree.
pub(super) fn document(wire: &str) -> Option<Document<'_>> {
    read(wire.as_bytes(), EVENT).ok()
}

/// An event as far as the views care.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'d> {
    pub(super) kind: &'d str,
    pub(super) stream_id: &'d str,
    pub(super) correlation_id: &'d str,
    /// Who says so; nothing if it is no text.
    pub(super) sender: Option<&'d str>,
    payload: Option<Value<'d>>,
}

impl<'d> Seen<'d> {
    pub(super) fn of(root: Value<'d>) -> Option<Self> {
        let stream = root.get("stream")?;
        Some(Self {
            kind: root.get("type")?.as_str()?,
            stream_id: stream.get("stream_id")?.as_str()?,
            correlation_id: stream.get("correlation_id")?.as_str()?,
            sender: root.get("sender").and_then(Value::as_str),
            payload: root.get("payload"),
        })
    }

    /// A text in the payload.
    pub(super) fn text(&self, name: &str) -> Option<&'d str> {
        self.payload?.get(name)?.as_str()
    }

    /// In whose name it is done, and how, if in anybody's.
    pub(super) fn delegation(&self) -> Option<Value<'d>> {
        self.payload?.get("delegation").filter(|delegation| delegation.is_object())
    }

    /// A short fact about a message.
    pub(super) fn fact(&self, name: &str) -> Option<Value<'d>> {
        self.payload?.get("metadata")?.get(name)
    }

    /// A list of texts in the payload.
    pub(super) fn texts(&self, name: &str) -> Vec<&'d str> {
        let list = self.payload.and_then(|payload| payload.get(name));
        list.map(|list| list.items().filter_map(Value::as_str).collect()).unwrap_or_default()
    }

    /// The codes that the event names: `codes` of a decision or a rejection, `code` of a failure. Each once.
    pub(super) fn codes(&self) -> Vec<&'d str> {
        let mut codes = self.texts("codes");
        codes.extend(self.text("code"));
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// The decision, if the event is one.
    pub(super) fn decision(&self) -> Option<&'d str> {
        self.text("decision").filter(|_| self.kind == "gate.decided")
    }
}

/// The handoffId and the attempt that a stream's name says, if it is the stream of a handoff.
pub(super) fn handoff_stream(stream_id: &str) -> Option<(&str, u32)> {
    match StreamId::parse(stream_id)? {
        StreamId::Handoff { handoff_id, attempt } => Some((handoff_id, attempt)),
        StreamId::Route { .. } | StreamId::Gateway { .. } => None,
    }
}
