//! Reading back: the head, entries in order, bodies, and the bodies that are old enough to go.

use std::collections::VecDeque;

use super::link::{Link, Row};
use super::{Database, PostgresFault, head_of, stored};
use crate::ledger::chain::{Head, RunningHash};
use crate::ledger::entries::{EntriesFault, Entry};
use crate::ledger::purge::{PurgeMode, Purged};
use crate::ledger::recorded::{Part, Recorded};
use crate::limits;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

const HEAD: &str = "select sequence, running_hash, consensus_timestamp from handoffd_entries \
     order by sequence desc limit 1";
const HASH_AT: &str = "select running_hash from handoffd_entries where sequence = $1";
const ENTRIES: &str = "select sequence, running_hash, consensus_timestamp, wire, ends_batch from handoffd_entries \
     where sequence >= $1 and sequence <= $2 order by sequence limit $3";
const BODIES: &str = "select sequence, digest, body from handoffd_bodies \
     where sequence >= $1 and sequence <= $2 order by sequence, place";
const BATCH_BEFORE: &str = "select coalesce((select sequence from handoffd_entries \
     where sequence < $1 and ends_batch order by sequence desc limit 1), 0)";
const BODY: &str = "select body from handoffd_bodies \
     where sequence > $1 and sequence <= $2 and digest = $3 order by sequence desc limit 1";
const TIME_AT: &str = "select consensus_timestamp from handoffd_entries where sequence = $1";
const COUNT_BODIES: &str = "select count(*), coalesce(sum(octet_length(body)), 0)::bigint from handoffd_bodies \
     where sequence <= $1";
const DROP_BODIES: &str = "delete from handoffd_bodies where (sequence, place) in \
     (select sequence, place from handoffd_bodies where sequence <= $1 order by sequence, place limit $2)";

/// The last entry and its time; the genesis of the topic and no time if there is none.
pub(super) async fn head(
    link: &mut Link,
    topic_id: &str,
) -> Result<(Head, Option<Timestamp>), PostgresFault> {
    let Some(row) = link.row(HEAD, &[]).await? else { return Ok((Head::genesis(topic_id), None)) };
    let head = head_of(row.count(0)?, row.get(1)?)?;
    let time = Timestamp::parse(row.get(2)?);
    time.map(|time| (head, Some(time))).ok_or(PostgresFault::Damaged { sequence: head.sequence })
}

/// Is that head in the ledger?
pub(super) async fn has(link: &mut Link, topic_id: &str, head: Head) -> Result<bool, PostgresFault> {
    if head.sequence == 0 {
        return Ok(head == Head::genesis(topic_id));
    }
    match link.row(HASH_AT, &[&stored(head.sequence)]).await? {
        Some(row) => Ok(row.get::<&[u8]>(0)? == head.running_hash.as_bytes()),
        None => Ok(false),
    }
}

/// Entries from one number through another, at most `entries_max`, and whether each ends its batch.
pub(super) async fn entries(
    link: &mut Link,
    from: u64,
    through: u64,
    entries_max: u64,
) -> Result<Vec<(Entry, bool)>, PostgresFault> {
    let rows = link.rows(ENTRIES, &[&stored(from), &stored(through), &stored(entries_max)]).await?;
    rows.iter().map(entry).collect()
}

fn entry(row: &Row) -> Result<(Entry, bool), PostgresFault> {
    let Head { sequence, running_hash } = head_of(row.count(0)?, row.get(1)?)?;
    let entry = Entry { sequence, running_hash, consensus_timestamp: row.get(2)?, wire: row.get(3)? };
    Ok((entry, row.get(4)?))
}

/// The hash that an entry has on top of another one is the one it is stored with.
pub(super) fn follows(before: RunningHash, entry: &Entry) -> bool {
    before.then(entry.sequence, &entry.consensus_timestamp, &entry.wire) == entry.running_hash
}

impl Database {
    /// The last entry and its time.
    pub fn head(&self) -> Result<(Head, Option<Timestamp>), PostgresFault> {
        self.ask(async |link| head(link, self.topic_id()).await)
    }

    /// Is that very entry in the ledger?
    pub fn has(&self, wanted: Head) -> Result<bool, PostgresFault> {
        self.ask(async |link| has(link, self.topic_id(), wanted).await)
    }

    /// Iterates over the entries from number `from` through number `through`.
    pub fn entries(&self, from: u64, through: u64) -> StoredEntries {
        let next = from.max(1);
        StoredEntries { database: self.clone(), next, through, before: None, ready: VecDeque::new() }
    }

    /// The body with this digest that entry `sequence` refers to; nothing if it was purged. Like in files, it stands
    /// in the same batch.
    pub fn read_body(&self, sequence: u64, digest: Digest) -> Result<Option<String>, PostgresFault> {
        let damaged = || PostgresFault::Damaged { sequence };
        let body = self.ask(async |link| {
            let before = batch_before(link, sequence).await?;
            let wanted = digest.as_bytes().as_slice();
            let row = link.row(BODY, &[&before, &stored(sequence), &wanted]).await?;
            row.map(|row| row.get::<Vec<u8>>(0)).transpose()
        })?;
        let Some(body) = body else { return Ok(None) };
        if Digest::of(&body) != digest {
            return Err(damaged());
        }
        String::from_utf8(body).map(Some).map_err(|_| damaged())
    }

    /// Drops the bodies of all batches whose entries are older than `before`.
    pub fn purge_bodies(&self, before: Timestamp, mode: PurgeMode) -> Result<Purged, PostgresFault> {
        let through = self.ask(async |link| last_older(link, self.topic_id(), before).await)?;
        let (bodies, bytes) = self.ask(async |link| {
            let row = link.row(COUNT_BODIES, &[&through]).await?;
            row.map_or(Ok((0, 0)), |row| Ok((row.count(0)?, row.count(1)?)))
        })?;
        let at_once = stored(limits::PG_PURGE_ROWS);
        // In parts, so that nobody who appends waits behind it for long. Doing a part twice does no harm.
        while mode == PurgeMode::Drop
            && self.ask(async |link| link.change(DROP_BODIES, &[&through, &at_once]).await)? > 0
        {}
        Ok(Purged { segments: u64::from(bodies > 0), bodies, bytes })
    }

    /// Iterates over the batches behind entry `after`, with their bodies, as they were appended.
    pub(crate) fn batches(&self, after: u64) -> StoredBatches {
        StoredBatches { database: self.clone(), after, ready: VecDeque::new() }
    }

    /// Whole batches behind entry `after`, as many as are read at once. Empty at the end of the ledger.
    fn recorded(&self, after: u64) -> Result<Vec<Recorded>, PostgresFault> {
        self.ask(async |link| {
            let mut entries_max = limits::PG_READ_ENTRIES;
            let (mut read, last) = loop {
                let read = entries(link, after + 1, u64::MAX, entries_max).await?;
                let last = read.iter().rfind(|(_, ends)| *ends).map(|(entry, _)| entry.sequence);
                match (last, read.last()) {
                    (Some(last), _) => break (VecDeque::from(read), last),
                    (None, None) => return Ok(Vec::new()),
                    // A batch with more entries than that: it is read whole.
                    (None, Some(_)) if read.len() as u64 == entries_max => entries_max *= 2,
                    // The last entry of all ends a batch.
                    (None, Some((entry, _))) => {
                        return Err(PostgresFault::Damaged { sequence: entry.sequence });
                    }
                }
            };
            let rows = link.rows(BODIES, &[&stored(after + 1), &stored(last)]).await?;
            let bodies: Result<Vec<(u64, Part)>, _> = rows.iter().map(body_part).collect();
            let mut bodies = bodies?.into_iter().peekable();
            let (mut batches, mut parts) = (Vec::new(), Vec::new());
            while let Some((entry, ends)) = read.pop_front().filter(|(entry, _)| entry.sequence <= last) {
                let sequence = entry.sequence;
                while let Some((_, body)) = bodies.next_if(|(before, _)| *before == sequence) {
                    parts.push(body);
                }
                parts.push(Part::Entry(entry));
                if ends {
                    batches.push(Recorded { parts: std::mem::take(&mut parts) });
                }
            }
            Ok(batches)
        })
    }
}

/// A body and the number of the entry that it stands before.
fn body_part(row: &Row) -> Result<(u64, Part), PostgresFault> {
    let (sequence, bytes): (u64, &[u8]) = (row.count(0)?, row.get(2)?);
    let digest = Digest::of(bytes);
    match std::str::from_utf8(bytes) {
        Ok(body) if row.get::<&[u8]>(1)? == digest.as_bytes() => {
            Ok((sequence, Part::Body(digest, body.to_owned())))
        }
        _ => Err(PostgresFault::Damaged { sequence }),
    }
}

/// The last entry of the batch before the one that an entry is in.
async fn batch_before(link: &mut Link, sequence: u64) -> Result<i64, PostgresFault> {
    let row = link.row(BATCH_BEFORE, &[&stored(sequence)]).await?;
    row.map_or(Ok(0), |row| row.get(0))
}

/// The last entry of the last batch that is older than `before`. Entries are in the order of their times, so it is
/// found by halving.
async fn last_older(link: &mut Link, topic_id: &str, before: Timestamp) -> Result<i64, PostgresFault> {
    let (head, _) = head(link, topic_id).await?;
    let (mut older, mut younger) = (0, head.sequence + 1);
    while younger - older > 1 {
        let sequence = older + (younger - older) / 2;
        let damaged = || PostgresFault::Damaged { sequence };
        let row = link.row(TIME_AT, &[&stored(sequence)]).await?.ok_or_else(damaged)?;
        let time = Timestamp::parse(row.get(0)?).ok_or_else(damaged)?;
        if time < before { older = sequence } else { younger = sequence }
    }
    batch_before(link, older + 1).await
}

/// Batches of a database, in order. Nothing is hashed: whoever appends them elsewhere does.
#[derive(Debug)]
pub(crate) struct StoredBatches {
    database: Database,
    after: u64,
    ready: VecDeque<Recorded>,
}

impl Iterator for StoredBatches {
    type Item = Result<Recorded, PostgresFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            match self.database.recorded(self.after) {
                Ok(batches) => self.ready = batches.into(),
                Err(fault) => return Some(Err(fault)),
            }
            self.after = self.ready.back().and_then(Recorded::last_sequence).unwrap_or(self.after);
        }
        self.ready.pop_front().map(Ok)
    }
}

/// Entries of a database, in order. Each is hashed onto the one before it.
#[derive(Debug)]
pub struct StoredEntries {
    database: Database,
    next: u64,
    through: u64,
    /// The hash of the entry before the next one, once one was read.
    before: Option<RunningHash>,
    ready: VecDeque<Entry>,
}

impl StoredEntries {
    fn read(&mut self) -> Result<(), PostgresFault> {
        let (from, through) = (self.next, self.through);
        let read =
            self.database.ask(async |link| entries(link, from, through, limits::PG_READ_ENTRIES).await)?;
        self.ready = read.into_iter().map(|(entry, _)| entry).collect();
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Entry>, PostgresFault> {
        if self.next > self.through {
            return Ok(None);
        }
        if self.before.is_none() && self.next == 1 {
            self.before = Some(RunningHash::genesis(self.database.topic_id()));
        }
        if self.ready.is_empty() {
            self.read()?;
        }
        let Some(entry) = self.ready.pop_front() else { return Ok(None) };
        if entry.sequence != self.next || self.before.is_some_and(|before| !follows(before, &entry)) {
            return Err(PostgresFault::Damaged { sequence: self.next });
        }
        self.next += 1;
        self.before = Some(entry.running_hash);
        Ok(Some(entry))
    }
}

impl Iterator for StoredEntries {
    type Item = Result<Entry, EntriesFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let taken = self.take().map_err(EntriesFault::Database).transpose();
        if matches!(taken, Some(Err(_))) {
            // One fault ends it, as with files.
            self.through = 0;
        }
        taken
    }
}
