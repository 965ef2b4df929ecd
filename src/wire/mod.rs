//! Agent Wire v1.1: the events that the gateway writes, as canonical text.
//!
//! Owns the envelope, ids, stream names and the normalized state of each event type. An event is made once,
//! becomes text once, and that text is what the ledger hashes, so it is canonical (RFC 8785) from the start.
//!
//! Deliberately absent: reading other people's events, the state machine and the reducer, which come with the
//! lifecycle; and the ledger's own metadata, which is not part of an event.

mod event;
mod id;
mod kind;

pub use event::{Event, EventTooLarge, Lineage, Payload, Sender};
pub use id::{StreamId, WireId};
pub use kind::{Category, Kind};
