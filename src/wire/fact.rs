//! An event that stands in the ledger, as the rooms that reduce it to what is in force see it.
//!
//! The ledger took it, so whether it was in order is not asked again; a room takes what concerns it and passes
//! over the rest.

use std::fmt;

use serde::Deserialize;
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

    /// The payload as the type that it was written from.
    pub fn read<T: Deserialize<'f>>(&self) -> Result<T, FactFault> {
        T::deserialize(self.payload).map_err(|_| self.fault("its payload is not ours"))
    }

    /// Why this cannot be taken as it stands.
    pub fn fault(&self, why: &'static str) -> FactFault {
        FactFault { sequence: self.sequence, kind: self.kind, why }
    }
}

/// An entry that no gateway of ours would have written. A room that gives this has not put it in force; whoever
/// decides by the ledger stops, and whoever only shows it may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactFault {
    pub sequence: u64,
    pub kind: Kind,
    pub why: &'static str,
}

impl fmt::Display for FactFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sequence, kind, why } = self;
        write!(f, "entry {sequence}, {kind}: {why}")
    }
}

impl std::error::Error for FactFault {}
