//! An event that stands in the ledger, as the rooms that reduce it to what is in force see it.
//!
//! The ledger took it, so whether it was in order is not asked again; a room takes what concerns it and passes
//! over the rest.

use serde_json::Value as Json;

use super::event::Sender;
use super::id::StreamId;
use super::kind::Kind;
use crate::timestamp::Timestamp;

/// What an entry of the ledger says.
#[derive(Debug, Clone, Copy)]
pub struct Fact<'f> {
    pub kind: Kind,
    pub sender: Sender<'f>,
    pub stream: StreamId<'f>,
    /// The entry's number in the ledger.
    pub sequence: u64,
    /// The ledger's time.
    pub at: Timestamp,
    pub payload: &'f Json,
}

impl<'f> Fact<'f> {
    /// A text in the payload.
    pub fn text(&self, name: &str) -> Option<&'f str> {
        self.payload.get(name)?.as_str()
    }
}
