//! A signed statement of how far the ledger had come.

use serde::{Deserialize, Serialize};

use super::chain::{Head, RunningHash};
use crate::proof::{Digest, Seed, object};
use crate::timestamp::Timestamp;

/// Whoever keeps one can tell that the ledger was cut, rewritten or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    pub topic_id: String,
    pub sequence: u64,
    pub running_hash: String,
    pub time: String,
    pub key_id: String,
    pub signature: String,
}

impl Checkpoint {
    /// Signs a head with the gateway's key.
    pub fn sign(topic_id: &str, head: Head, time: Timestamp, seed: &Seed) -> Self {
        let mut checkpoint = Self {
            topic_id: topic_id.to_owned(),
            sequence: head.sequence,
            running_hash: head.running_hash.to_string(),
            time: time.to_nanoseconds(),
            key_id: gateway_key_id(&seed.public_hex()),
            signature: String::new(),
        };
        checkpoint.signature = seed.sign(checkpoint.signed_text().as_bytes());
        checkpoint
    }

    /// What is signed: the canonical object without `signature`.
    fn signed_text(&self) -> String {
        object(256, |members| {
            members.text("key_id", &self.key_id);
            members.text("running_hash", &self.running_hash);
            members.count("sequence", self.sequence);
            members.text("time", &self.time);
            members.text("topic_id", &self.topic_id);
        })
    }

    /// The head it speaks of, if this public key (64 hex digits) signed it.
    pub fn verify(&self, public_hex: &str) -> Option<Head> {
        use crate::proof::{Key, Purpose};
        let key = Key::ed25519(&self.key_id, "gateway", Purpose::Dispatch, public_hex)?;
        key.verify(self.signed_text().as_bytes(), &self.signature).ok()?;
        let running_hash = RunningHash::from_hex(&self.running_hash)?;
        Some(Head { sequence: self.sequence, running_hash })
    }
}

/// The name of a gateway key (64 hex digits): made from its public half, so that it cannot name another one.
pub fn gateway_key_id(public_hex: &str) -> String {
    let digest = Digest::of(public_hex.as_bytes()).to_string();
    format!("gw_{}", digest.get(7..23).unwrap_or_default())
}
