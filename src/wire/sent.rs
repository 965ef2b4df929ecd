//! An event that somebody sent, as it goes into the ledger.

use super::envelope::Envelope;
use super::fault::{WireCode, WireFault};
use crate::limits;

/// An event that is valid against the schemas, in its canonical text: the only way to have one is
/// [`SentEvent::parse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentEvent {
    text: String,
}

impl SentEvent {
    /// Reads an event's text, or says everything that is wrong with it; never an empty list.
    pub fn parse(text: &str) -> Result<Self, Vec<WireFault>> {
        let text = Envelope::parse(text)?.to_canonical();
        if text.len() > limits::EVENT_BYTES_MAX {
            let message = format!("the event has {} bytes in its canonical form", text.len());
            let hint = format!("send references and digests; at most {} bytes", limits::EVENT_BYTES_MAX);
            return Err(vec![WireFault::new(WireCode::TooLarge, "", message, hint)]);
        }
        Ok(Self { text })
    }

    /// The canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says. It was read before, so there is always something.
    pub fn envelope(&self) -> Option<Envelope<'_>> {
        Envelope::read_again(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#" {"wire": "1.1", "wire_id": "wire_00000001", "type": "task.claimed", "ts": "2026-02-18T19:38:00Z",
        "sender": "agent:crypto-sage", "payload": {}, "state": {"category": "working", "terminal": false},
        "stream": {"stream_id": "task:hs_12345678:attempt:1", "stream_seq": 4, "context_id": "c", "correlation_id": "c"}}"#;

    #[test]
    fn what_was_sent_is_kept_in_canonical_form_and_says_the_same() {
        let sent = SentEvent::parse(EVENT).unwrap();
        let value: serde_json::Value = serde_json::from_str(EVENT).unwrap();
        assert_eq!(sent.text().as_bytes(), crate::proof::canonical_json(&value));
        let envelope = sent.envelope().unwrap();
        assert_eq!((envelope.stream_seq(), envelope.wire_id()), (4, "wire_00000001"));
    }

    #[test]
    fn what_no_schema_allows_is_not_kept() {
        let faults = SentEvent::parse(&EVENT.replace("task.claimed", "task.grabbed")).unwrap_err();
        assert_eq!(faults.first().map(|fault| fault.code), Some(WireCode::Invalid));
    }
}
