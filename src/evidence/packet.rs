//! The upstream packet as it was sent.
//!
//! Owns the nine top-level keys that the adapter knows, and the count of the others. A known key with a
//! value of the wrong JSON type is the same as absent; an empty string is present; nothing is trimmed or
//! folded. A packet that is no object has nothing. Deliberately absent: which of these a packet needs
//! (`protocol.rs`, `completion.rs`).

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, MapAccess};
use serde_json::Value;

use super::attributes::Attributes;
use super::error::EvidenceError;
use super::parts::{Agent, Artifact, Message, Task};
use super::typed::{Anything, Hope, Key, Read, Text, Typed};

#[derive(Debug, Default)]
pub(super) struct Packet<'b> {
    pub(super) protocol: Option<Cow<'b, str>>,
    pub(super) version: Option<Cow<'b, str>>,
    pub(super) event_type: Option<Cow<'b, str>>,
    pub(super) timestamp: Option<Cow<'b, str>>,
    pub(super) agent: Option<Agent>,
    pub(super) task: Option<Task>,
    pub(super) artifact: Option<Artifact>,
    pub(super) message: Option<Message>,
    /// Of any JSON type, null included; see `attributes.rs`.
    pub(super) attributes: Option<Attributes>,
    /// Different top-level keys that are none of the above.
    pub(super) unknown_keys: usize,
}

impl<'b> Packet<'b> {
    pub(super) fn read(bytes: &'b [u8]) -> Result<Self, EvidenceError> {
        // One check of the encoding for all is cheaper than one for each string. Where it fails, the parser
        // says what is wrong, and that may well be something before the encoding.
        match str::from_utf8(bytes) {
            Ok(text) => Self::parse(serde_json::Deserializer::from_str(text)),
            Err(_) => Self::parse(serde_json::Deserializer::from_slice(bytes)),
        }
    }

    fn parse<R: serde_json::de::Read<'b>>(
        mut json: serde_json::Deserializer<R>,
    ) -> Result<Self, EvidenceError> {
        Read::<Root>::new()
            .deserialize(&mut json)
            .and_then(|packet| json.end().map(|()| packet))
            .map_err(|error| EvidenceError::not_json(&error))
    }
}

struct Root;

impl<'de> Hope<'de> for Root {
    type Found = Packet<'de>;

    fn absent() -> Packet<'de> {
        Packet::default()
    }

    fn object<A: MapAccess<'de>>(mut members: A) -> Result<Packet<'de>, A::Error> {
        let mut packet = Packet::default();
        let mut unknown = Vec::new();
        while let Some(key) = members.next_key_seed(Key)? {
            match key.as_ref() {
                "protocol" => packet.protocol = members.next_value_seed(Read::<Text>::new())?,
                "version" => packet.version = members.next_value_seed(Read::<Text>::new())?,
                "event_type" => packet.event_type = members.next_value_seed(Read::<Text>::new())?,
                "timestamp" => packet.timestamp = members.next_value_seed(Read::<Text>::new())?,
                "agent" => packet.agent = members.next_value_seed(Read::<Typed<Agent>>::new())?,
                "task" => packet.task = members.next_value_seed(Read::<Typed<Task>>::new())?,
                "artifact" => packet.artifact = members.next_value_seed(Read::<Typed<Artifact>>::new())?,
                "message" => packet.message = members.next_value_seed(Read::<Typed<Message>>::new())?,
                "attributes" => {
                    let value = members.next_value_seed(PhantomData::<Value>)?;
                    packet.attributes = Some(Attributes::sorted(value));
                }
                _ => {
                    unknown.push(key);
                    members.next_value_seed(Read::<Anything>::new())?;
                }
            }
        }
        packet.unknown_keys = count_different(unknown);
        Ok(packet)
    }
}

/// A key that was sent twice is one key.
fn count_different(mut keys: Vec<Cow<'_, str>>) -> usize {
    keys.sort_unstable();
    keys.dedup();
    keys.len()
}
