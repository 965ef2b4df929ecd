//! Evidence: turns one upstream A2A packet into one event that carries the frozen K1-A `handoff` and G4-A
//! `discovery` objects.
//!
//! This room owns the packet reader, the two contracts, the account of what was lost on the way
//! (lossiness) and the digests over what is emitted. It is pure: bytes in, a [`Conversion`] or an
//! [`EvidenceError`] out. The types here serialise themselves, which our domain types usually do not:
//! the emitted object *is* the contract, and there is nothing behind it to translate from.
//!
//! The order in [`convert`] is part of the contract. Both objects are observed on the packet *as it was
//! sent*, before lenient mode fills any gap, so a placeholder can never become a visible reference.
//!
//! Deliberately absent: files, clock, log lines, policy. And any judgement: a flag says that something was
//! visible in the packet, never that it was right, allowed, genuine or complete. `docs/evidence.md` says
//! what each field may and may not be read as.

mod attributes;
mod canonical;
mod completion;
mod discovery;
mod error;
mod event;
mod handoff;
mod limits;
mod lossiness;
mod mapping;
mod of_handoff;
mod packet;
mod parts;
mod payload;
mod protocol;
mod timestamp;
mod typed;

use serde::Serialize;

pub use self::canonical::Sha256Digest;
pub use self::discovery::{AgentCardSourceKind, Discovery};
pub use self::error::{ErrorKind, EvidenceError};
pub use self::event::Event;
pub use self::handoff::{Handoff, HandoffSourceKind};
pub use self::limits::Limits;
pub use self::lossiness::{Lossiness, LossinessLevel, RawPayloadRef};
pub use self::mapping::EventKind;
pub use self::of_handoff::{HandoffEvidence, HandoffPacket, of_handoff};
pub use self::payload::Payload;

use self::packet::Packet;
use crate::proof::write_object;

/// Enough for a usual packet, so that its canonical texts grow without being moved.
const PAYLOAD_BYTES_USUAL: usize = 1024;
const BATCH_BYTES_USUAL: usize = 2048;

/// What happens when a packet lacks something that its event needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The packet is refused.
    Strict,
    /// A placeholder is put in its place, counted and noted.
    Lenient,
}

/// Converts one upstream packet.
///
/// The checks run in a fixed order and the first that fails answers: size, JSON, depth and arrays, protocol,
/// version; then, in strict mode only, agent id, event type, and the id that the event is about.
pub fn convert(bytes: &[u8], mode: Mode, limits: &Limits) -> Result<Conversion, EvidenceError> {
    observe(bytes, mode, limits).map(|(event, lossiness)| Conversion::seal(event, lossiness))
}

/// The same, before anything is hashed.
fn observe(bytes: &[u8], mode: Mode, limits: &Limits) -> Result<(Event, Lossiness), EvidenceError> {
    limits.admit_size(bytes)?;
    let mut packet = Packet::read(bytes)?;
    limits.admit_shape(bytes)?;
    let version = protocol::supported_version(&packet)?;

    let mapped = EventKind::of_upstream(packet.event_type.as_deref());
    let handoff = Handoff::observe(mapped, packet.task.as_ref(), packet.message.as_ref());
    let discovery = Discovery::observe(packet.attributes.as_ref());

    // INVARIANT (observed first): nothing above this line has seen a placeholder.
    let completed = completion::complete(&mut packet, mapped, mode)?;

    let time = timestamp::utc_or_default(packet.timestamp.as_deref());
    let data = Payload::build(packet, version, handoff, discovery, completed.losses.count());
    let event = Event::new(completed.kind, completed.event_id, time, data);
    let lossiness = Lossiness::new(completed.losses, bytes);
    Ok((event, lossiness))
}

/// One converted packet: the event, what was lost, and the digests over both.
///
/// Can only be had from [`convert`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conversion {
    /// An array because consumers expect a batch; of one, because a packet makes exactly one event.
    events: [Event; 1],
    lossiness: Lossiness,
    digests: Digests,
}

impl Conversion {
    fn seal(event: Event, lossiness: Lossiness) -> Self {
        let digests = Digests::over(&event, &lossiness);
        Self { events: [event], lossiness, digests }
    }

    /// The emitted event.
    pub fn event(&self) -> &Event {
        let [event] = &self.events;
        event
    }

    /// What the packet had that the event has not, and the other way round.
    pub fn lossiness(&self) -> &Lossiness {
        &self.lossiness
    }

    /// SHA-256 over the canonical texts.
    pub fn digests(&self) -> &Digests {
        &self.digests
    }
}

/// SHA-256 over canonical JSON (see `canonical.rs` for which canonical form).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Digests {
    batch_sha256: Sha256Digest,
    payload_sha256: Sha256Digest,
    handoff_sha256: Sha256Digest,
    discovery_sha256: Sha256Digest,
    payload_canonical: String,
}

impl Digests {
    fn over(event: &Event, lossiness: &Lossiness) -> Self {
        let data = event.data();
        let payload = canonical::object(PAYLOAD_BYTES_USUAL, |members| data.write_canonical(members));
        let batch = canonical::object(BATCH_BYTES_USUAL, |members| {
            members.array("events", &[event], |text, event| {
                write_object(text, |members| event.write_canonical(members, &payload));
            });
            members.object("lossiness", |members| lossiness.write_canonical(members));
        });
        Self {
            batch_sha256: Sha256Digest::of(batch.as_bytes()),
            payload_sha256: Sha256Digest::of(payload.as_bytes()),
            handoff_sha256: data.handoff().digest(),
            discovery_sha256: data.discovery().digest(),
            payload_canonical: payload,
        }
    }

    /// Over `{events, lossiness}`.
    pub fn batch(&self) -> Sha256Digest {
        self.batch_sha256
    }

    /// Over the event's `data`.
    pub fn payload(&self) -> Sha256Digest {
        self.payload_sha256
    }

    /// Over the `handoff` object alone.
    pub fn handoff(&self) -> Sha256Digest {
        self.handoff_sha256
    }

    /// Over the `discovery` object alone.
    pub fn discovery(&self) -> Sha256Digest {
        self.discovery_sha256
    }

    /// The text that [`Digests::payload`] is taken over.
    pub fn payload_canonical(&self) -> &str {
        &self.payload_canonical
    }
}
