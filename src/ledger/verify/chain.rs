//! The chain: entry after entry, each held against the one before it and against the checkpoints.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Report;
use super::checkpoint::Checkpoint;
use super::finding::{FindingKind, LineKind};
use super::line::{Commit, Event};
use super::spelling::{hex, hex_text};
use super::wire;

/// Enough of a SHA-256 that nobody finds a second text for it; a false alarm is all that could come of it.
type ShortDigest = [u8; 16];

/// `2026-05-06T16:00:01.123456789Z`. All are of one length, so they sort as texts.
type Nanoseconds = [u8; 30];

/// Where the chain has come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) entries: u64,
    running_hash: [u8; 32],
    timestamp: Nanoseconds,
}

pub(super) struct Chain<'c> {
    head: Head,
    topic_id: String,
    first_timestamp: Nanoseconds,
    /// Each with its stream.
    wire_ids: HashSet<ShortDigest>,
    streams: HashMap<ShortDigest, u64>,
    /// In the order in which the chain comes by them.
    checkpoints: Vec<&'c Checkpoint>,
    passed: usize,
}

impl<'c> Chain<'c> {
    pub(super) fn new(checkpoints: &'c [Checkpoint]) -> Self {
        let mut checkpoints: Vec<&Checkpoint> = checkpoints.iter().collect();
        checkpoints.sort_by_key(|checkpoint| checkpoint.sequence());
        Self {
            head: Head { entries: 0, running_hash: [0; 32], timestamp: [0; 30] },
            topic_id: String::new(),
            first_timestamp: [0; 30],
            wire_ids: HashSet::new(),
            streams: HashMap::new(),
            checkpoints,
            passed: 0,
        }
    }

    pub(super) fn head(&self) -> Head {
        self.head
    }

    /// The entry that a finding at this place is about.
    pub(super) fn entry_of(&self, kind: &FindingKind) -> u64 {
        match kind {
            FindingKind::CommitEmpty
            | FindingKind::CommitSequence { .. }
            | FindingKind::CommitHash { .. }
            // An entry is the head already when it meets its checkpoint.
            | FindingKind::CheckpointHash { .. }
            | FindingKind::LineForm { line: LineKind::Commit, .. } => self.head.entries,
            _ => self.head.entries + 1,
        }
    }

    /// Holds an event against everything before it and makes it the head.
    pub(super) fn enter(&mut self, event: &Event<'_>) -> Result<(), FindingKind> {
        let hcs = &event.hcs;
        if self.head.entries == 0 {
            self.begin(&hcs.topic_id)?;
        } else if hcs.topic_id != self.topic_id {
            return Err(FindingKind::Topic);
        }
        let expected = self.head.entries + 1;
        if hcs.sequence_number != expected {
            return Err(FindingKind::Sequence { expected, found: hcs.sequence_number });
        }
        let timestamp = nanoseconds(hcs.consensus_timestamp).ok_or(FindingKind::TimestampForm)?;
        if timestamp <= self.head.timestamp {
            return Err(FindingKind::TimestampOrder);
        }
        let running_hash = self.running_hash(expected, &timestamp, &event.wire);
        if hcs.running_hash.as_bytes() != hex(&running_hash) {
            return Err(FindingKind::RunningHash { expected: hex_text(&running_hash) });
        }
        self.place(&wire::place(&event.wire)?)?;
        if expected == 1 {
            self.first_timestamp = timestamp;
        }
        self.head = Head { entries: expected, running_hash, timestamp };
        self.pass_checkpoints()
    }

    fn begin(&mut self, topic_id: &str) -> Result<(), FindingKind> {
        if let Some(other) = self.checkpoints.iter().find(|checkpoint| checkpoint.topic_id() != topic_id) {
            return Err(FindingKind::CheckpointTopic { sequence: other.sequence() });
        }
        topic_id.clone_into(&mut self.topic_id);
        self.head.running_hash = genesis(topic_id);
        self.pass_checkpoints()
    }

    fn running_hash(&self, sequence: u64, timestamp: &Nanoseconds, wire: &str) -> [u8; 32] {
        Sha256::new()
            .chain_update(self.head.running_hash)
            .chain_update(sequence.to_be_bytes())
            .chain_update(timestamp)
            .chain_update(Sha256::digest(wire))
            .finalize()
            .into()
    }

    fn place(&mut self, place: &wire::Place<'_>) -> Result<(), FindingKind> {
        // Whoever reports chooses the id, and is held to it in the stream that is reported to.
        if !self.wire_ids.insert(short_digest(&format!("{} {}", place.wire_id, place.stream_id))) {
            return Err(FindingKind::WireIdRepeated);
        }
        let last = self.streams.entry(short_digest(&place.stream_id)).or_default();
        let expected = *last + 1;
        if place.stream_seq != expected {
            return Err(FindingKind::StreamSeq { expected, found: place.stream_seq });
        }
        *last = expected;
        Ok(())
    }

    fn pass_checkpoints(&mut self) -> Result<(), FindingKind> {
        while let Some(checkpoint) = self.checkpoints.get(self.passed)
            && checkpoint.sequence() == self.head.entries
        {
            if *checkpoint.running_hash() != self.head.running_hash {
                return Err(FindingKind::CheckpointHash { expected: hex_text(checkpoint.running_hash()) });
            }
            self.passed += 1;
        }
        Ok(())
    }

    /// Holds a commit line against the head. `committed` is what the commit line before it had reached.
    pub(super) fn commit(&self, commit: &Commit<'_>, committed: &Head) -> Result<(), FindingKind> {
        if self.head.entries == committed.entries {
            return Err(FindingKind::CommitEmpty);
        }
        if commit.sequence != self.head.entries {
            return Err(FindingKind::CommitSequence { expected: self.head.entries, found: commit.sequence });
        }
        if commit.running_hash.as_bytes() != hex(&self.head.running_hash) {
            return Err(FindingKind::CommitHash { expected: hex_text(&self.head.running_hash) });
        }
        Ok(())
    }

    /// The ledger ends at `head`: does any checkpoint know more? Says at which entry, and why.
    pub(super) fn finish(&self, head: &Head) -> Result<(), (u64, FindingKind)> {
        for checkpoint in &self.checkpoints {
            let sequence = checkpoint.sequence();
            if sequence > head.entries {
                return Err((head.entries + 1, FindingKind::Truncated { entries: head.entries, sequence }));
            }
            // One that was signed before the first entry, and there still is none.
            if head.entries == 0 && *checkpoint.running_hash() != genesis(checkpoint.topic_id()) {
                let expected = hex_text(checkpoint.running_hash());
                return Err((0, FindingKind::CheckpointHash { expected }));
            }
        }
        Ok(())
    }

    /// What there is up to `head`; bodies and batches are the caller's to add.
    pub(super) fn report(&self, head: &Head) -> Report {
        let known = head.entries > 0;
        let text = |timestamp: &Nanoseconds| timestamp.iter().copied().map(char::from).collect();
        Report {
            topic_id: known.then(|| self.topic_id.clone()),
            entries: head.entries,
            first_timestamp: known.then(|| text(&self.first_timestamp)),
            last_timestamp: known.then(|| text(&head.timestamp)),
            last_running_hash: known.then(|| hex_text(&head.running_hash)),
            bodies: 0,
            batches: 0,
            uncommitted_tail_bytes: 0,
        }
    }
}

fn genesis(topic_id: &str) -> [u8; 32] {
    Sha256::new().chain_update("handoffd/ledger/v1").chain_update(topic_id).finalize().into()
}

fn short_digest(text: &str) -> ShortDigest {
    let digest: [u8; 32] = Sha256::digest(text).into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// RFC 3339 in UTC, nine fraction digits, `Z`, of a day and a second that exist.
fn nanoseconds(text: &str) -> Option<Nanoseconds> {
    let bytes: &Nanoseconds = text.as_bytes().try_into().ok()?;
    let template = b"0000-00-00T00:00:00.000000000Z";
    let fits = bytes.iter().zip(template).all(|(byte, like)| match like {
        b'0' => byte.is_ascii_digit(),
        mark => byte == mark,
    });
    // The parser takes a leap second, which no other clock in the ledger knows.
    let leap = bytes.get(17) == Some(&b'6');
    (fits && !leap && OffsetDateTime::parse(text, &Rfc3339).is_ok()).then_some(*bytes)
}
