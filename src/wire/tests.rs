//! A ledger in a few lines, for the tests of rooms that reduce events: what they write is held to the schemas and
//! contracts, and comes back as the ledger would give it.

use serde_json::Value as Json;

use super::*;
use crate::timestamp::Timestamp;

/// Numbers events and stamps them, a second apart.
pub(crate) struct Ledger {
    sequence: u64,
    at: Timestamp,
}

/// An event that was written, and is read back.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    kind: Kind,
    sender: String,
    stream: String,
    sequence: u64,
    at: Timestamp,
    payload: Json,
}

impl Ledger {
    pub(crate) fn from(at: &str) -> Self {
        Self { sequence: 0, at: Timestamp::parse(at).unwrap() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.at
    }

    pub(crate) fn pass_seconds(&mut self, seconds: i64) {
        self.at = self.at.plus_seconds(seconds);
    }

    pub(crate) fn own(
        &mut self,
        kind: Kind,
        sender: &str,
        payload: impl FnOnce(&mut Payload<'_, '_>),
    ) -> Told {
        self.tell(kind, sender, "project:gw_tests", payload)
    }

    pub(crate) fn tell(
        &mut self,
        kind: Kind,
        sender: &str,
        stream: &str,
        payload: impl FnOnce(&mut Payload<'_, '_>),
    ) -> Told {
        self.sequence += 1;
        self.at = self.at.plus_seconds(1);
        let event = Event {
            wire_id: WireId::new(self.at.unix_milliseconds(), [7; 10]),
            kind,
            sender: Sender::parse(sender).unwrap(),
            ts: self.at,
            stream: StreamId::parse(stream).unwrap(),
            stream_seq: self.sequence,
            correlation_id: "corr_tests",
            lineage: Lineage::default(),
            traceparent: None,
        };
        let text = event.to_text(payload).unwrap();
        assert_eq!(text.as_bytes(), crate::proof::canonical_json(&serde_json::from_str(&text).unwrap()));
        let envelope = Envelope::parse(&text).unwrap_or_else(|faults| panic!("{text}\n{faults:?}"));
        let rule = Contracts::embedded().event(kind).unwrap();
        assert!(rule.senders.contains(&envelope.sender().class()), "{kind} from {sender}");
        assert!(rule.streams.contains(&event.stream.kind()), "{kind} in {stream}");
        let mut event: Json = serde_json::from_str(&text).unwrap();
        Told {
            kind,
            sender: sender.to_owned(),
            stream: stream.to_owned(),
            sequence: self.sequence,
            at: self.at,
            payload: event["payload"].take(),
        }
    }
}

impl Told {
    pub(crate) fn fact(&self) -> Fact<'_> {
        Fact {
            kind: self.kind,
            sender: Sender::parse(&self.sender).unwrap(),
            stream: StreamId::parse(&self.stream).unwrap(),
            sequence: self.sequence,
            at: self.at,
            payload: &self.payload,
        }
    }

    /// The same event from somebody else.
    pub(crate) fn from(mut self, sender: &str) -> Self {
        self.sender = sender.to_owned();
        self
    }

    /// The same event with another payload.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Json)) -> Self {
        change(&mut self.payload);
        self
    }

    /// The same event in another stream.
    pub(crate) fn within(mut self, stream: &str) -> Self {
        self.stream = stream.to_owned();
        self
    }

    /// The same event at another place of the ledger.
    pub(crate) fn numbered(mut self, sequence: u64) -> Self {
        self.sequence = sequence;
        self
    }
}
