//! The envelope, and its canonical text.

use std::fmt;

use super::id::{StreamId, WireId};
use super::kind::Kind;
use crate::limits;
use crate::proof::{Digest, Members, canonical_json, object};
use crate::timestamp::Timestamp;

/// An event that is about to be written.
#[derive(Debug)]
pub struct Event<'e> {
    pub wire_id: WireId,
    pub kind: Kind,
    pub sender: Sender<'e>,
    pub ts: Timestamp,
    pub stream: StreamId<'e>,
    /// 1, 2, 3 … in the stream.
    pub stream_seq: u64,
    /// Groups what belongs together; the correlationId of a handoff.
    pub correlation_id: &'e str,
    pub lineage: Lineage<'e>,
    /// The W3C trace context that it came with.
    pub traceparent: Option<&'e str>,
}

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender<'e> {
    System,
    /// An operator, by the name of the token.
    Human(&'e str),
    Agent(&'e str),
    /// A test harness.
    Runner(&'e str),
}

/// What kind of sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SenderClass {
    System,
    Human,
    Agent,
    Runner,
}

impl SenderClass {
    pub const ALL: [Self; 4] = [Self::System, Self::Human, Self::Agent, Self::Runner];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Human => "human",
            Self::Agent => "agent",
            Self::Runner => "runner",
        }
    }
}

/// Where an event comes from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lineage<'e> {
    pub causation_id: Option<WireId>,
    pub parent_task_id: Option<&'e str>,
    pub reference_task_ids: &'e [&'e str],
}

/// An event that does not fit: the ledger carries facts and references, never the work itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLarge {
    pub bytes: usize,
}

impl Event<'_> {
    /// The canonical text; `payload` writes its members in the order of their names.
    pub fn to_text(&self, payload: impl FnOnce(&mut Payload<'_, '_>)) -> Result<String, EventTooLarge> {
        self.text_with(|members| members.object("payload", |members| payload(&mut Payload(members))))
    }

    /// The canonical text with a payload that was made before.
    pub fn to_text_with(&self, payload: &serde_json::Value) -> Result<String, EventTooLarge> {
        let payload = canonical_json(payload);
        self.text_with(|members| {
            members.with("payload", |text| text.push_str(&String::from_utf8_lossy(&payload)));
        })
    }

    fn text_with(&self, write_payload: impl FnOnce(&mut Members<'_>)) -> Result<String, EventTooLarge> {
        // Members in sorted order, here and below: that is what makes the text canonical.
        let text = object(768, |members| {
            if let Some(traceparent) = self.traceparent {
                members.object("extensions", |members| members.text("handoffd.traceparent", traceparent));
            }
            write_payload(members);
            members.with("sender", |text| self.sender.write(text));
            if let Some((category, terminal)) = self.kind.state() {
                members.object("state", |members| {
                    members.text("category", category.as_str());
                    members.flag("terminal", terminal);
                });
            }
            members.object("stream", |members| self.write_stream(members));
            members.text("ts", &self.ts.to_string());
            members.text("type", self.kind.as_str());
            members.text("wire", "1.1");
            members.text("wire_id", &self.wire_id.to_string());
        });
        if text.len() > limits::EVENT_BYTES_MAX {
            return Err(EventTooLarge { bytes: text.len() });
        }
        Ok(text)
    }

    fn write_stream(&self, members: &mut Members<'_>) {
        let Lineage { causation_id, parent_task_id, reference_task_ids } = self.lineage;
        if let Some(cause) = causation_id {
            members.text("causation_id", &cause.to_string());
        }
        members.text("context_id", self.correlation_id);
        members.text("correlation_id", self.correlation_id);
        members.text_if("parent_task_id", parent_task_id);
        if !reference_task_ids.is_empty() {
            members.texts("reference_task_ids", reference_task_ids);
        }
        members.text("stream_id", &self.stream.to_string());
        members.count("stream_seq", self.stream_seq);
    }
}

impl<'e> Sender<'e> {
    /// Reads `system`, `human:<name>`, `agent:<id>` or `runner:<id>`.
    pub fn parse(text: &'e str) -> Option<Self> {
        if text == "system" {
            return Some(Self::System);
        }
        match text.split_once(':')? {
            (_, "") => None,
            ("human", name) => Some(Self::Human(name)),
            ("agent", id) => Some(Self::Agent(id)),
            ("runner", id) => Some(Self::Runner(id)),
            _ => None,
        }
    }

    pub fn class(self) -> SenderClass {
        match self {
            Self::System => SenderClass::System,
            Self::Human(_) => SenderClass::Human,
            Self::Agent(_) => SenderClass::Agent,
            Self::Runner(_) => SenderClass::Runner,
        }
    }

    fn write(self, text: &mut String) {
        match self {
            // Nearly every event.
            Self::System => text.push_str("\"system\""),
            other => crate::proof::write_text(text, &other.to_string()),
        }
    }
}

impl fmt::Display for Sender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Human(name) => write!(f, "human:{name}"),
            Self::Agent(name) => write!(f, "agent:{name}"),
            Self::Runner(name) => write!(f, "runner:{name}"),
        }
    }
}

/// The payload of an event that is being written. Members come in the order of their names.
#[derive(Debug)]
pub struct Payload<'p, 't>(&'p mut Members<'t>);

impl Payload<'_, '_> {
    pub fn text(&mut self, name: &'static str, value: &str) {
        self.0.text(name, value);
    }

    pub fn text_or_null(&mut self, name: &'static str, value: Option<&str>) {
        self.0.text_or_null(name, value);
    }

    pub fn text_if(&mut self, name: &'static str, value: Option<&str>) {
        self.0.text_if(name, value);
    }

    pub fn texts(&mut self, name: &'static str, values: &[impl AsRef<str>]) {
        self.0.texts(name, values);
    }

    pub fn digest(&mut self, name: &'static str, digest: Digest) {
        self.0.digest(name, digest);
    }

    pub fn count(&mut self, name: &'static str, value: u64) {
        self.0.count(name, value);
    }

    pub fn object(&mut self, name: &'static str, write: impl FnOnce(&mut Payload<'_, '_>)) {
        self.0.object(name, |members| write(&mut Payload(members)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event<'e>() -> Event<'e> {
        Event {
            wire_id: WireId::new(1_469_918_176_385, [7; 10]),
            kind: Kind::TaskCreated,
            sender: Sender::Agent("decision \"router\" é"),
            ts: Timestamp::parse("2026-02-18T19:38:00Z").unwrap(),
            stream: StreamId::Handoff { handoff_id: "hs_12345678", attempt: 1 },
            stream_seq: 1,
            correlation_id: "corr_1",
            lineage: Lineage {
                causation_id: Some(WireId::new(0, [0; 10])),
                parent_task_id: Some("hs_00000000"),
                reference_task_ids: &["hs_00000001"],
            },
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        }
    }

    #[test]
    fn an_event_is_canonical_text_with_every_member_in_place() {
        for kind in Kind::ALL.iter().copied() {
            let text = Event { kind, ..event() }
                .to_text(|payload| {
                    payload.count("attempt", 1);
                    payload.texts("codes", &["A", "B"]);
                    payload.text("mode", "dev\n");
                    payload.text_or_null("principal", None);
                })
                .unwrap();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(text.as_bytes(), canonical_json(&value), "{text}");
            let again = Event { kind, ..event() }.to_text_with(&value["payload"]).unwrap();
            assert_eq!(again, text);
            assert_eq!((value["wire"].as_str(), value["type"].as_str()), (Some("1.1"), Some(kind.as_str())));
            assert_eq!(value["sender"], "agent:decision \"router\" é");
            assert_eq!(value["stream"]["stream_id"], "task:hs_12345678:attempt:1");
            assert!(value["extensions"]["handoffd.traceparent"].is_string());
            assert_eq!(value.get("state").is_some(), kind.state().is_some());
        }
        let text =
            Event { sender: Sender::System, lineage: Lineage::default(), traceparent: None, ..event() }
                .to_text(|_| {})
                .unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["sender"], "system");
        assert_eq!(value["stream"].as_object().unwrap().len(), 4);
    }

    #[test]
    fn a_sender_is_read_as_it_is_written() {
        for text in ["system", "human:rita", "agent:crypto-sage", "runner:a:b"] {
            let sender = Sender::parse(text).unwrap();
            let mut written = String::new();
            sender.write(&mut written);
            assert_eq!(written, format!("\"{text}\""));
            assert_eq!(text.split(':').next(), Some(sender.class().as_str()));
        }
        for text in ["", "System", "system:", "agent", "agent:", "robot:x"] {
            assert_eq!(Sender::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_event_that_carries_the_work_itself_is_refused() {
        let sized = |bytes: usize| event().to_text(|payload| payload.text("x", &"y".repeat(bytes)));
        let overhead = sized(0).unwrap().len();
        assert!(sized(limits::EVENT_BYTES_MAX - overhead).is_ok());
        let bytes = limits::EVENT_BYTES_MAX + 1;
        assert_eq!(sized(bytes - overhead), Err(EventTooLarge { bytes }));
    }
}
