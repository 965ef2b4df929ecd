//! A batch: entries and bodies on top of a head, rendered once as the lines that are written.

use std::borrow::Cow;

use super::chain::{Head, RunningHash};
use super::entries::Entry;
use super::line::{self, Line};
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// What is appended at once. It ends with a commit line, so that half of one is never taken for a whole.
#[derive(Debug)]
pub struct Batch {
    pub(super) after: Head,
    pub(super) head: Head,
    pub(super) last_timestamp: Timestamp,
    pub(super) text: String,
    pub(super) entries: Vec<Entry>,
}

/// What the ledger knows of an entry beside its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryMeta {
    pub sequence: u64,
    pub consensus_timestamp: String,
    pub running_hash: RunningHash,
}

impl Batch {
    /// The head it was built on.
    pub fn after(&self) -> Head {
        self.after
    }

    /// The head once it is durable.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The time of its last entry.
    pub fn last_timestamp(&self) -> Timestamp {
        self.last_timestamp
    }

    /// The lines.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Tells each body: the number of the entry that it stands before, its place among those before that entry, its
    /// digest, and its text.
    pub fn bodies<'b>(&'b self, mut tell: impl FnMut(u64, usize, Digest, Cow<'b, str>)) {
        let (mut sequence, mut place) = (self.after.sequence + 1, 0);
        for line in self.text.lines() {
            if line.starts_with("{\"hcs\"") {
                (sequence, place) = ((sequence + 1).min(self.head.sequence), 0);
            } else if let Some(Line::Body(body)) =
                line.starts_with("{\"digest\"").then(|| line::read(line.as_bytes())).flatten()
                && let Some((digest, body)) = body.sound()
            {
                tell(sequence, place, digest, body);
                place += 1;
            }
        }
    }

    /// The entries, and the room that its lines took, to be used again.
    pub fn into_parts(self) -> (Vec<Entry>, String) {
        let mut room = self.text;
        room.clear();
        (self.entries, room)
    }

    /// The entries, for those who follow the log.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// Puts a batch together.
#[derive(Debug)]
pub struct BatchBuilder<'t> {
    topic_id: Cow<'t, str>,
    after: Head,
    head: Head,
    last_timestamp: Option<Timestamp>,
    text: String,
    entries: Vec<Entry>,
}

impl<'t> BatchBuilder<'t> {
    /// Starts on top of `after`, whose entry has `last_timestamp`.
    pub fn new(topic_id: impl Into<Cow<'t, str>>, after: Head, last_timestamp: Option<Timestamp>) -> Self {
        let topic_id = topic_id.into();
        Self { topic_id, after, head: after, last_timestamp, text: String::new(), entries: Vec::new() }
    }

    /// Writes into room that another batch took. Memory that is new costs more to touch than the lines to write.
    pub fn use_room(&mut self, room: String) {
        if self.text.is_empty() && room.is_empty() && room.capacity() > self.text.capacity() {
            self.text = room;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.head == self.after
    }

    /// The time that the next entry would have: the clock's, or just after the last entry's. A clock that is set
    /// back revives nothing.
    pub fn time(&self, clock: Timestamp) -> Timestamp {
        self.last_timestamp.map_or(clock, |last| clock.max(last.plus_nanosecond()))
    }

    /// The time of the last entry so far.
    pub fn last_timestamp(&self) -> Option<Timestamp> {
        self.last_timestamp
    }

    /// How much it holds.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// A body that an entry after it refers to by digest.
    pub fn body(&mut self, digest: Digest, body: &str) {
        line::write_body(&mut self.text, digest, body);
    }

    /// The number of the entry that comes next.
    pub fn next_sequence(&self) -> u64 {
        self.head.sequence + 1
    }

    /// An entry, at the ledger's time.
    pub fn event(&mut self, wire: String, now: Timestamp) -> EntryMeta {
        let time = self.time(now);
        let consensus_timestamp = time.to_nanoseconds();
        let sequence = self.head.sequence + 1;
        let running_hash = self.head.running_hash.then(sequence, &consensus_timestamp, &wire);
        line::write_event(
            &mut self.text,
            &self.topic_id,
            sequence,
            &consensus_timestamp,
            running_hash,
            &wire,
        );
        self.head = Head { sequence, running_hash };
        self.last_timestamp = Some(time);
        let meta = EntryMeta { sequence, consensus_timestamp: consensus_timestamp.clone(), running_hash };
        self.entries.push(Entry { sequence, consensus_timestamp, running_hash, wire });
        meta
    }

    /// The entries that were added, from this number on.
    pub fn entries_from(&self, sequence: u64) -> &[Entry] {
        let before = self.entries.partition_point(|entry| entry.sequence < sequence);
        self.entries.get(before..).unwrap_or_default()
    }

    /// The entry that was added last.
    pub fn last_meta(&self) -> Option<EntryMeta> {
        let Entry { sequence, consensus_timestamp, running_hash, .. } = self.entries.last()?;
        let (sequence, running_hash) = (*sequence, *running_hash);
        Some(EntryMeta { sequence, consensus_timestamp: consensus_timestamp.clone(), running_hash })
    }

    /// Ends the batch; nothing if it has no entry.
    pub fn seal(mut self) -> Option<Batch> {
        let last_timestamp = self.last_timestamp?;
        if self.is_empty() {
            return None;
        }
        line::write_commit(&mut self.text, self.head);
        let Self { after, head, text, entries, .. } = self;
        Some(Batch { after, head, last_timestamp, text, entries })
    }
}
