//! A log that is gone when its process ends: for demonstrations and tests, never for live work.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use super::batch::Batch;
use super::chain::Head;
use super::entries::Entry;
use super::purge::{PurgeMode, Purged};
use super::{AppendFault, Keeping, Log};
use crate::limits;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// What is kept, for those who read it back.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<RwLock<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    entries: Vec<Entry>,
    /// Each with the last entry that it stands before.
    bodies: HashMap<Digest, (u64, String)>,
    bytes: usize,
}

impl MemoryStore {
    fn read<T>(&self, look: impl FnOnce(&Kept) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn entries(&self, from: u64, through: u64) -> MemoryEntries {
        MemoryEntries { store: self.clone(), next: from.max(1), through }
    }

    pub(super) fn body(&self, digest: Digest) -> Option<String> {
        self.read(|kept| kept.bodies.get(&digest).map(|(_, body)| body.clone()))
    }

    pub(super) fn purge_bodies(&self, before: Timestamp, mode: PurgeMode) -> Purged {
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_old =
            |entry: &Entry| Timestamp::parse(&entry.consensus_timestamp).is_some_and(|time| time < before);
        let through = kept.entries.partition_point(is_old) as u64;
        let old = kept.bodies.values().filter(|(sequence, _)| *sequence <= through);
        let (bodies, bytes) = old.fold((0, 0), |(bodies, bytes), (_, body)| (bodies + 1, bytes + body.len()));
        if mode == PurgeMode::Drop {
            kept.bodies.retain(|_, (sequence, _)| *sequence > through);
            kept.bytes = kept.bytes.saturating_sub(bytes);
        }
        Purged { segments: u64::from(bodies > 0), bodies, bytes: bytes as u64 }
    }
}

/// Entries of a store, in order.
#[derive(Debug)]
pub(super) struct MemoryEntries {
    store: MemoryStore,
    next: u64,
    through: u64,
}

impl Iterator for MemoryEntries {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if self.next > self.through {
            return None;
        }
        let at = usize::try_from(self.next - 1).ok()?;
        let entry = self.store.read(|kept| kept.entries.get(at).cloned())?;
        self.next += 1;
        Some(entry)
    }
}

/// The log over a store.
#[derive(Debug)]
pub struct MemoryLog {
    topic_id: String,
    head: Head,
    store: MemoryStore,
}

impl MemoryLog {
    /// An empty one.
    pub fn new(topic_id: &str) -> Self {
        Self { topic_id: topic_id.to_owned(), head: Head::genesis(topic_id), store: MemoryStore::default() }
    }

    pub fn store(&self) -> &MemoryStore {
        &self.store
    }
}

impl Log for MemoryLog {
    fn topic_id(&self) -> &str {
        &self.topic_id
    }

    fn head(&self) -> Head {
        self.head
    }

    fn keeping(&self) -> Keeping {
        Keeping::Volatile
    }

    fn append(&mut self, after: Head, batch: &Batch) -> Result<(), AppendFault> {
        if batch.after() != after || after != self.head {
            return Err(AppendFault::Conflict { head: self.head });
        }
        let mut kept = self.store.0.write().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + batch.text().len() > limits::MEMORY_LEDGER_BYTES_MAX {
            return Err(full());
        }
        kept.bytes += batch.text().len();
        batch.bodies(|sequence, _, digest, body| {
            kept.bodies.insert(digest, (sequence, body.into_owned()));
        });
        kept.entries.extend_from_slice(batch.entries());
        self.head = batch.head();
        Ok(())
    }

    fn check(&mut self) -> Result<(), AppendFault> {
        let is_full = self.store.read(|kept| kept.bytes >= limits::MEMORY_LEDGER_BYTES_MAX);
        if is_full { Err(full()) } else { Ok(()) }
    }
}

fn full() -> AppendFault {
    let most = limits::MEMORY_LEDGER_BYTES_MAX / (1024 * 1024);
    AppendFault::NotDurable(io::Error::other(format!("a ledger in memory holds {most} MiB, and it is full")))
}
