//! An event that somebody else wrote, read strictly.

use std::fmt;

use super::event::Sender;
use super::fault::{WireCode, WireFault};
use super::id::StreamId;
use super::kind::Kind;
use super::schemas;
use crate::json::{BodyFaultKind, Bounds, Document, Value, read};
use crate::limits;
use crate::proof::canonical;
use crate::timestamp::Timestamp;

const EVENT: Bounds = Bounds { bytes_max: limits::EVENT_BYTES_MAX, levels_max: limits::EVENT_LEVELS_MAX };

/// An event that is valid against the schemas: the only way to have one is [`Envelope::parse`].
///
/// That says nothing about its place: whether it may come now, and from this sender, is the reducer's matter.
pub struct Envelope<'t> {
    document: Document<'t>,
    kind: Kind,
    stream_seq: u64,
}

impl<'t> Envelope<'t> {
    /// Reads an event's text, or says everything that is wrong with it; never an empty list.
    pub fn parse(text: &'t str) -> Result<Self, Vec<WireFault>> {
        let document = read(text.as_bytes(), EVENT).map_err(|fault| vec![unreadable(&fault)])?;
        let root = document.root();
        let name = root.get("type").and_then(Value::as_str);
        let kind: Option<Kind> = name.and_then(|name| name.parse().ok());
        let mut faults = schemas::findings(kind, root);
        let Some(kind) = kind else {
            if faults.is_empty() {
                let shown = crate::json::printable(name.unwrap_or_default());
                faults.push(WireFault::new(
                    WireCode::Invalid,
                    "/type",
                    format!("`{shown}` is no type of event"),
                    "docs/agent-wire.md lists the types",
                ));
            }
            return Err(faults);
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let envelope = Self::of(document, kind);
        // The pattern counts digits; the number must also fit.
        let stream_id = envelope.stream_id();
        if stream_id.starts_with("task:") && StreamId::parse(stream_id).is_none() {
            return Err(vec![WireFault::new(
                WireCode::Invalid,
                "/stream/stream_id",
                "the attempt is beyond all bounds",
                "count attempts 1, 2, 3 …",
            )]);
        }
        Ok(envelope)
    }

    /// Reads an event that was valid when it was taken in, as all are that stand in the ledger: the schemas are not
    /// asked again.
    pub(crate) fn read_again(text: &'t str) -> Option<Self> {
        let document = read(text.as_bytes(), EVENT).ok()?;
        let kind = document.root().get("type")?.as_str()?.parse().ok()?;
        Some(Self::of(document, kind))
    }

    fn of(document: Document<'t>, kind: Kind) -> Self {
        let stream = document.root().get("stream");
        let seq = stream.and_then(|stream| stream.get("stream_seq")).and_then(Value::as_integer);
        let stream_seq = seq.and_then(|seq| u64::try_from(seq).ok()).unwrap_or_default();
        Self { document, kind, stream_seq }
    }

    /// The canonical text, which is what a ledger holds.
    pub fn to_canonical(&self) -> String {
        String::from_utf8(canonical(self.document.root())).unwrap_or_default()
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn wire_id(&self) -> &str {
        self.text("wire_id")
    }

    pub fn sender(&self) -> Sender<'_> {
        Sender::parse(self.text("sender")).unwrap_or(Sender::System)
    }

    pub fn ts(&self) -> Option<Timestamp> {
        Timestamp::parse(self.text("ts"))
    }

    pub fn stream_id(&self) -> &str {
        self.in_stream("stream_id").unwrap_or_default()
    }

    pub fn stream_seq(&self) -> u64 {
        self.stream_seq
    }

    pub fn context_id(&self) -> &str {
        self.in_stream("context_id").unwrap_or_default()
    }

    pub fn parent_task_id(&self) -> Option<&str> {
        self.in_stream("parent_task_id")
    }

    pub fn reference_task_ids(&self) -> impl Iterator<Item = &str> {
        let list = self.document.root().get("stream").and_then(|stream| stream.get("reference_task_ids"));
        list.into_iter().flat_map(Value::items).filter_map(Value::as_str)
    }

    /// The W3C trace context that it came with.
    pub fn traceparent(&self) -> Option<&str> {
        self.document.root().get("extensions")?.get("handoffd.traceparent")?.as_str()
    }

    pub fn payload(&self) -> Contents<'_> {
        Contents(self.document.root().get("payload"))
    }

    // The schema was asked: what it requires is there, and an empty text only satisfies totality.
    fn text(&self, name: &str) -> &str {
        self.document.root().get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn in_stream(&self, name: &str) -> Option<&str> {
        self.document.root().get("stream")?.get(name)?.as_str()
    }
}

/// Shows where it stands, not what it says.
impl fmt::Debug for Envelope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Envelope({} #{} of {})", self.kind, self.stream_seq, self.stream_id())
    }
}

/// What an event's type adds.
#[derive(Debug, Clone, Copy)]
pub struct Contents<'e>(Option<Value<'e>>);

impl<'e> Contents<'e> {
    pub fn text(self, name: &str) -> Option<&'e str> {
        self.0?.get(name)?.as_str()
    }

    pub fn texts(self, name: &str) -> impl Iterator<Item = &'e str> {
        let list = self.0.and_then(|payload| payload.get(name));
        list.into_iter().flat_map(Value::items).filter_map(Value::as_str)
    }

    pub fn count(self, name: &str) -> Option<u64> {
        self.0?.get(name)?.as_integer().and_then(|count| u64::try_from(count).ok())
    }

    pub fn flag(self, name: &str) -> Option<bool> {
        self.0?.get(name)?.as_bool()
    }

    /// What stands inside one of its members.
    pub fn inside(self, name: &str) -> Self {
        Self(self.0.and_then(|payload| payload.get(name)))
    }
}

fn unreadable(fault: &crate::json::BodyFault) -> WireFault {
    let (code, hint) = match fault.kind {
        BodyFaultKind::TooLarge { .. } => (
            WireCode::TooLarge,
            "send references and digests: what an event is about is kept beside the ledger",
        ),
        _ => (WireCode::Invalid, fault.hint()),
    };
    WireFault::new(code, fault.pointer.clone(), fault.to_string(), hint)
}
