//! Events in the gateway's own streams, and what they make of what is in force.
//!
//! Whatever is written is taken in from its text, as a restart would take it: what was decided and what is replayed
//! cannot differ.

use serde::Deserialize;

use super::EngineFault;
use super::sequencer::Sequencer;
use crate::ledger::{BatchBuilder, EntryMeta};
use crate::timestamp::Timestamp;
use crate::wire::{Event, EventTooLarge, Fact, Kind, Lineage, Payload, Sender, StreamId, WireId};

/// Where an event stands that was just written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noted {
    pub(super) sequence: u64,
    pub(super) at: Timestamp,
}

/// The payload of an event's text.
pub(super) fn payload_of(text: &str) -> Option<serde_json::Value> {
    #[derive(Deserialize)]
    struct Written {
        payload: serde_json::Value,
    }
    serde_json::from_str::<Written>(text).ok().map(|written| written.payload)
}

impl Sequencer {
    /// An event in the gateway's own stream.
    pub(super) fn note_own(
        &mut self,
        kind: Kind,
        sender: Sender<'_>,
        batch: &mut BatchBuilder<'_>,
        payload: impl FnOnce(&mut Payload<'_, '_>),
    ) -> Result<Noted, EngineFault> {
        let (topic_id, stream_seq) = (self.topic_id().to_owned(), self.building().gateway_seq + 1);
        let stream = StreamId::Gateway { topic_id: &topic_id };
        let noted = self.note(kind, sender, stream, stream_seq, batch, |event| event.to_text(payload))?;
        self.building_mut().gateway_seq = stream_seq;
        Ok(noted)
    }

    /// An event in a stream that is the gateway's to write; `text` makes it of its envelope.
    pub(super) fn note(
        &mut self,
        kind: Kind,
        sender: Sender<'_>,
        stream: StreamId<'_>,
        stream_seq: u64,
        batch: &mut BatchBuilder<'_>,
        text: impl FnOnce(&Event<'_>) -> Result<String, EventTooLarge>,
    ) -> Result<Noted, EngineFault> {
        let at = batch.time(self.now());
        let topic_id = self.topic_id().to_owned();
        let event = Event {
            wire_id: WireId::new(at.unix_milliseconds(), self.random()),
            kind,
            sender,
            ts: at,
            stream,
            stream_seq,
            correlation_id: &topic_id,
            lineage: Lineage::default(),
            traceparent: None,
        };
        let unsound = |why: String| EngineFault::NotDurable(format!("{kind} could not be recorded: {why}"));
        let text = text(&event).map_err(|large| unsound(format!("it has {} bytes", large.bytes)))?;
        if super::standing::concerns(kind) {
            let payload = payload_of(&text).ok_or_else(|| unsound("it cannot be read again".to_owned()))?;
            let sequence = batch.next_sequence();
            let fact = Fact { kind, sender, stream, sequence, at, payload: &payload };
            self.building_mut().take(&fact, stream_seq).map_err(|fault| unsound(fault.to_string()))?;
        }
        let EntryMeta { sequence, .. } = batch.event(text, at);
        Ok(Noted { sequence, at })
    }
}
