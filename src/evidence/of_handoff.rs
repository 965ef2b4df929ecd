//! The evidence of an allowed handoff: the packet that an upstream would have sent, through the same adapter.
//!
//! Owns the packet's form and nothing else: which flags are set is for [`convert`](super::convert) to say, as with any packet.
//! Plain texts come in, because this room knows nothing of TaskSpecs. Deliberately absent: whether the handoff
//! was allowed; one that was not has no evidence, and nobody asks for it here.

use super::handoff::Handoff;
use super::{BATCH_BYTES_USUAL, EvidenceError, Limits, Mode, PAYLOAD_BYTES_USUAL, canonical, observe};
use crate::proof::Digest;

const PACKET_BYTES_USUAL: usize = 512;

/// What the packet is made of.
#[derive(Debug, Clone, Copy)]
pub struct HandoffPacket<'a> {
    pub handoff_id: &'a str,
    pub source_agent: &'a str,
    /// The TaskSpec's createdAt, RFC 3339.
    pub created_at: &'a str,
    /// The id of the message that there was upstream, if there was one: the mention's, or the one of the A2A
    /// message that brought the TaskSpec.
    pub message_id: Option<&'a str>,
}

/// The emitted event of an allowed handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffEvidence {
    /// The tag in the decision.
    pub handoff: Handoff,
    /// The event in its canonical form (see `canonical.rs` for which).
    pub event: String,
    /// Over the event's text, as the ledger names it.
    pub digest: Digest,
}

/// Sends the packet of an allowed handoff through the adapter, in strict mode.
pub fn of_handoff(packet: &HandoffPacket<'_>) -> Result<HandoffEvidence, EvidenceError> {
    // Of the digests that a conversion has, nobody asks for those of a handoff.
    let (event, _) = observe(packet.text().as_bytes(), Mode::Strict, &Limits::default())?;
    let data = canonical::object(PAYLOAD_BYTES_USUAL, |members| event.data().write_canonical(members));
    let text = canonical::object(BATCH_BYTES_USUAL, |members| event.write_canonical(members, &data));
    let digest = Digest::of(text.as_bytes());
    Ok(HandoffEvidence { handoff: *event.data().handoff(), event: text, digest })
}

impl HandoffPacket<'_> {
    fn text(&self) -> String {
        canonical::object(PACKET_BYTES_USUAL, |members| {
            members.object("agent", |agent| {
                agent.text("id", self.source_agent);
                agent.text("role", "orchestrator");
            });
            members.text("event_type", "task.requested");
            if let Some(id) = self.message_id {
                members.object("message", |message| message.text("id", id));
            }
            members.text("protocol", "a2a");
            members.object("task", |task| {
                task.text("id", self.handoff_id);
                task.text("kind", "delegation");
                task.text("status", "requested");
            });
            members.text("timestamp", self.created_at);
            members.text("version", "0.3.0");
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::convert;
    use super::*;

    fn packet(message_id: Option<&str>) -> HandoffPacket<'_> {
        HandoffPacket {
            handoff_id: "hs_20260218_0001",
            source_agent: "decision-\"router\"\n",
            created_at: "2026-02-18T21:30:00.5+02:00",
            message_id,
        }
    }

    #[test]
    fn a_message_is_visible_only_where_there_was_one() {
        for message_id in [None, Some("1473395000000000002"), Some("")] {
            let evidence = of_handoff(&packet(message_id)).unwrap();
            let handoff = evidence.handoff;
            assert!(handoff.visible() && handoff.task_ref_visible());
            assert_eq!(handoff.message_ref_visible(), message_id.is_some());
        }
    }

    #[test]
    fn the_event_is_the_one_that_the_adapter_emits_for_the_packet() {
        let packet = packet(Some("1473395000000000002"));
        let evidence = of_handoff(&packet).unwrap();
        let written: serde_json::Value = serde_json::from_str(&evidence.event).unwrap();
        let text = serde_json::json!({
            "protocol": "a2a", "version": "0.3.0", "event_type": "task.requested",
            "timestamp": "2026-02-18T19:30:00.5Z",
            "agent": {"id": "decision-\"router\"\n", "role": "orchestrator"},
            "task": {"id": "hs_20260218_0001", "status": "requested", "kind": "delegation"},
            "message": {"id": "1473395000000000002"},
        });
        let conversion = convert(text.to_string().as_bytes(), Mode::Lenient, &Limits::default()).unwrap();
        assert_eq!(written, serde_json::to_value(conversion.event()).unwrap());
        assert_eq!(written["data"]["handoff"], serde_json::to_value(evidence.handoff).unwrap());
        assert_eq!(written["data"]["unmapped_fields_count"], 0);
        assert_eq!(written["subject"], "hs_20260218_0001");
        assert_eq!(written["time"], "2026-02-18T19:30:00.500Z");
        assert_eq!(evidence.digest, Digest::of(evidence.event.as_bytes()));
    }

    #[test]
    fn the_same_handoff_gives_the_same_bytes() {
        assert_eq!(of_handoff(&packet(None)), of_handoff(&packet(None)));
        assert_ne!(of_handoff(&packet(None)).unwrap().digest, of_handoff(&packet(Some("x"))).unwrap().digest);
    }
}
