//! Checkpoints: what the gateway once signed, and so cannot take back.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use ed25519_dalek::{Signature, VerifyingKey};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::finding::{Finding, FindingKind};
use super::spelling::from_hex;

/// Beyond it RFC 8785 no longer writes a whole number with all its digits.
const SEQUENCE_MAX: u64 = (1 << 53) - 1;

/// A checkpoint whose signature was verified; there is no other way to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    topic_id: String,
    sequence: u64,
    running_hash: [u8; 32],
    time: String,
}

/// What a checkpoint file says, before anybody asked who signed it.
#[derive(Debug, Clone)]
pub struct ClaimedCheckpoint {
    members: Members,
    running_hash: [u8; 32],
    signature: [u8; 64],
}

/// The gateway's public keys, by `key_id`.
#[derive(Debug, Clone, Default)]
pub struct PublicKeys(BTreeMap<String, VerifyingKey>);

/// A text that is not a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAPublicKey;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    topic_id: String,
    sequence: u64,
    running_hash: String,
    time: String,
    key_id: String,
    signature: String,
}

/// What is signed. The members stand in the order in which RFC 8785 sorts them, and serde_json writes
/// strings and whole numbers as it does.
#[derive(Serialize)]
struct Signed<'c> {
    key_id: &'c str,
    running_hash: &'c str,
    sequence: u64,
    time: &'c str,
    topic_id: &'c str,
}

impl Checkpoint {
    /// Reads a checkpoint file: one JSON object, spelled in any way.
    pub fn parse(bytes: &[u8]) -> Result<ClaimedCheckpoint, Finding> {
        let malformed = |sequence| about(sequence, FindingKind::CheckpointForm);
        let Object(members) =
            serde_json::from_slice::<Object<Members>>(bytes).map_err(|_| malformed(None))?;
        let sequence = Some(members.sequence);
        if members.sequence > SEQUENCE_MAX {
            return Err(malformed(sequence));
        }
        let running_hash = from_hex(&members.running_hash).ok_or_else(|| malformed(sequence))?;
        let signature = from_hex(&members.signature).ok_or_else(|| malformed(sequence))?;
        Ok(ClaimedCheckpoint { members, running_hash, signature })
    }

    pub fn topic_id(&self) -> &str {
        &self.topic_id
    }

    /// The last entry that the checkpoint speaks for; 0 if it was signed before the first.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    pub fn running_hash(&self) -> &[u8; 32] {
        &self.running_hash
    }

    /// When it was signed, in the signer's words.
    pub fn time(&self) -> &str {
        &self.time
    }
}

impl ClaimedCheckpoint {
    pub fn key_id(&self) -> &str {
        &self.members.key_id
    }

    /// Did the key that it names sign it?
    pub fn verify(self, keys: &PublicKeys) -> Result<Checkpoint, Finding> {
        let Members { topic_id, sequence, running_hash, time, key_id, .. } = self.members;
        let finding = |kind| about(Some(sequence), kind);
        let key = keys.0.get(&key_id).ok_or_else(|| finding(FindingKind::CheckpointKey))?;
        let signed = Signed {
            key_id: &key_id,
            running_hash: &running_hash,
            sequence,
            time: &time,
            topic_id: &topic_id,
        };
        let message = serde_json::to_vec(&signed).map_err(|_| finding(FindingKind::CheckpointForm))?;
        // Strict: no second encoding of a signature passes as another one.
        key.verify_strict(&message, &Signature::from_bytes(&self.signature))
            .map_err(|_| finding(FindingKind::CheckpointSignature))?;
        Ok(Checkpoint { topic_id, sequence, running_hash: self.running_hash, time })
    }
}

impl PublicKeys {
    /// Adds an Ed25519 key by its public half, 64 lower-case hex digits.
    pub fn add(&mut self, key_id: &str, public_hex: &str) -> Result<(), NotAPublicKey> {
        let bytes = from_hex(public_hex).ok_or(NotAPublicKey)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| NotAPublicKey)?;
        // A weak key would verify signatures that nobody made.
        if key.is_weak() {
            return Err(NotAPublicKey);
        }
        self.0.insert(key_id.to_owned(), key);
        Ok(())
    }
}

impl fmt::Display for NotAPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an Ed25519 public key of 64 lower-case hex digits")
    }
}

impl std::error::Error for NotAPublicKey {}

fn about(sequence: Option<u64>, kind: FindingKind) -> Finding {
    Finding { segment: None, line: None, sequence, kind }
}

/// A JSON object and nothing else: serde's derived structs would take an array of their values as well.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyMembers<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for AnyMembers<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(Object)
            }
        }
        deserializer.deserialize_map(AnyMembers(PhantomData))
    }
}
