//! The hash chain: what each entry commits to.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::proof::hex_digits;

/// The hash over an entry and everything before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RunningHash([u8; 32]);

impl From<RunningHash> for String {
    fn from(hash: RunningHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for RunningHash {
    type Error = &'static str;

    fn try_from(hex: String) -> Result<Self, Self::Error> {
        Self::from_hex(&hex).ok_or("is not a running hash in hex")
    }
}

impl RunningHash {
    /// The hash before the first entry of a topic.
    pub fn genesis(topic_id: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"handoffd/ledger/v1");
        hash.update(topic_id.as_bytes());
        Self(hash.finalize().into())
    }

    /// The hash of the next entry.
    pub fn then(self, sequence: u64, consensus_timestamp: &str, wire: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(sequence.to_be_bytes());
        hash.update(consensus_timestamp.as_bytes());
        hash.update(Sha256::digest(wire.as_bytes()));
        Self(hash.finalize().into())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(super) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn is_written(&self, hex: &str) -> bool {
        hex_digits(&self.0).as_flattened() == hex.as_bytes()
    }

    pub(crate) fn from_hex(hex: &str) -> Option<Self> {
        crate::proof::from_hex(hex).map(Self)
    }
}

impl fmt::Display for RunningHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(hex_digits(&self.0).as_flattened()).unwrap_or_default())
    }
}

impl fmt::Debug for RunningHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The last entry of a log: its number, and the hash over all that came before. 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub sequence: u64,
    pub running_hash: RunningHash,
}

impl Head {
    pub fn genesis(topic_id: &str) -> Self {
        Self { sequence: 0, running_hash: RunningHash::genesis(topic_id) }
    }
}
