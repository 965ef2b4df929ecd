//! Epochs: a ledger that was restored from a backup has forgotten what was claimed after the backup was made.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;
use crate::wire::Payload;

/// The payload of `epoch.begun`: what was restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochFacts {
    /// When the backup was made.
    pub backup_time: String,
    /// The last entry that it had, and the running hash there.
    pub restored_head: u64,
    pub restored_hash: String,
}

impl EpochFacts {
    /// Writes the payload; members in the order of their names.
    pub(super) fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text("backup_time", &self.backup_time);
        payload.text("restored_hash", &self.restored_hash);
        payload.count("restored_head", self.restored_head);
    }
}

/// The epoch that a ledger is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Epoch {
    /// When it began, by the ledger's time.
    pub(super) since: Timestamp,
    pub(super) facts: EpochFacts,
}
