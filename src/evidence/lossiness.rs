//! What did not survive the conversion, counted and named.
//!
//! Owns the count, the level it amounts to, the notes, and the reference to the raw bytes. Deliberately
//! absent: any influence on `handoff` or `discovery`. The count is a number about the adapter, not a signal
//! about the packet.

use serde::Serialize;

use super::canonical::{Members, Sha256Digest};

const MEDIA_TYPE: &str = "application/json";

/// The losses of one conversion while it is under way.
#[derive(Debug)]
pub(super) struct Losses {
    count: usize,
    notes: Vec<&'static str>,
}

impl Losses {
    /// Starts from the top-level keys that the adapter does not know.
    pub(super) fn starting_at(unknown_keys: usize) -> Self {
        Self { count: unknown_keys, notes: Vec::new() }
    }

    /// Counts one substitution and says which.
    pub(super) fn record(&mut self, note: &'static str) {
        self.count += 1;
        self.notes.push(note);
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// How much was lost, as emitted beside the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lossiness {
    lossiness_level: LossinessLevel,
    unmapped_fields_count: usize,
    raw_payload_ref: RawPayloadRef,
    notes: Vec<&'static str>,
}

/// The count in three steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LossinessLevel {
    /// Nothing was lost.
    None,
    /// One or two.
    Low,
    /// Three or more.
    High,
}

/// Which bytes were converted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RawPayloadRef {
    sha256: Sha256Digest,
    size_bytes: usize,
    media_type: &'static str,
}

impl LossinessLevel {
    fn of(count: usize) -> Self {
        match count {
            0 => Self::None,
            1 | 2 => Self::Low,
            _ => Self::High,
        }
    }

    /// The level as it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::High => "high",
        }
    }
}

impl Lossiness {
    pub(super) fn new(losses: Losses, raw: &[u8]) -> Self {
        Self {
            lossiness_level: LossinessLevel::of(losses.count),
            unmapped_fields_count: losses.count,
            raw_payload_ref: RawPayloadRef {
                sha256: Sha256Digest::of(raw),
                size_bytes: raw.len(),
                media_type: MEDIA_TYPE,
            },
            notes: losses.notes,
        }
    }

    /// The level that the count amounts to.
    pub fn level(&self) -> LossinessLevel {
        self.lossiness_level
    }

    /// Unknown top-level keys plus substitutions.
    pub fn unmapped_fields_count(&self) -> usize {
        self.unmapped_fields_count
    }

    /// The converted bytes.
    pub fn raw_payload_ref(&self) -> &RawPayloadRef {
        &self.raw_payload_ref
    }

    /// One note for each substitution, in the order they were made.
    pub fn notes(&self) -> &[&'static str] {
        &self.notes
    }

    pub(super) fn write_canonical(&self, members: &mut Members<'_>) {
        members.text("lossiness_level", self.lossiness_level.as_str());
        members.texts("notes", &self.notes);
        members.object("raw_payload_ref", |members| {
            members.text("media_type", self.raw_payload_ref.media_type);
            members.hex("sha256", self.raw_payload_ref.sha256.as_bytes());
            members.count("size_bytes", self.raw_payload_ref.size_bytes as u64);
        });
        members.count("unmapped_fields_count", self.unmapped_fields_count as u64);
    }
}

impl RawPayloadRef {
    /// SHA-256 over the bytes as they came.
    pub fn sha256(&self) -> Sha256Digest {
        self.sha256
    }

    /// How many bytes came.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
