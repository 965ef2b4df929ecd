//! Where entries and bodies are read back from, whichever log they were appended to.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bodies::read_body;
use super::chain::Head;
use super::disk::RealDisk;
use super::entries::{Entries, EntriesFault, Entry};
use super::memory::{MemoryEntries, MemoryStore};
use super::postgres::{Database, StoredEntries};
use super::purge::{PurgeFault, PurgeMode, Purged, purge_bodies};
use super::recovery::OpenFault;
use super::seals::Seals;
use super::segments::{inspect, list};
use super::verify;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// A ledger, for those who read it. Cheap to clone. Reading may wait for a disk or a server.
#[derive(Debug, Clone)]
pub enum Source {
    /// Segments in a directory.
    Files(Arc<Path>),
    Memory(MemoryStore),
    Database(Database),
}

impl Source {
    /// The segments in a directory.
    pub fn files(directory: &Path) -> Self {
        Self::Files(directory.into())
    }

    /// The entries from number `from` through number `through`, which must be committed: a ledger that ends before is a
    /// fault.
    pub fn entries(&self, from: u64, through: u64) -> Result<SourceEntries, EntriesFault> {
        let kept = match self {
            Self::Files(directory) => Kept::Files(Entries::read(directory, from, through)?),
            Self::Memory(store) => Kept::Memory(store.entries(from, through)),
            Self::Database(database) => Kept::Database(database.entries(from, through)),
        };
        Ok(SourceEntries { kept, next: from.max(1), through })
    }

    /// The entry of this number; nothing if the ledger does not go so far.
    pub fn entry(&self, sequence: u64) -> Result<Option<Entry>, EntriesFault> {
        match self.entries(sequence, sequence)?.next().transpose() {
            Err(EntriesFault::Ended { .. }) => Ok(None),
            read => read,
        }
    }

    /// The entry of this number, which must be committed.
    pub fn committed(&self, sequence: u64) -> Result<Entry, EntriesFault> {
        self.entry(sequence)?.ok_or(EntriesFault::Ended { before: sequence })
    }

    /// What lies among the segments and is none, if something does. `seals` are those of the log that is appended to.
    pub fn stray(&self, seals: &Seals) -> Option<PathBuf> {
        let Self::Files(directory) = self else { return None };
        match list(directory) {
            // Listed first: a segment is made when those before it are sealed.
            Ok(segments) => {
                segments.into_iter().find(|(first, _)| !seals.has_segment(*first)).map(|(_, path)| path)
            }
            Err(OpenFault::Foreign { path }) => Some(path),
            Err(_) => None,
        }
    }

    /// Where its files are, if it is kept in files.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Files(directory) => Some(directory),
            Self::Memory(_) | Self::Database(_) => None,
        }
    }

    /// What the ledger is called and its last committed entry; nothing if it has none.
    pub fn end(&self) -> Result<Option<(String, Head)>, EntriesFault> {
        match self {
            Self::Files(directory) if directory.is_dir() => inspect(directory).map_err(EntriesFault::Open),
            Self::Files(_) | Self::Memory(_) => Ok(None),
            Self::Database(database) => {
                let (head, _) = database.head().map_err(EntriesFault::Database)?;
                Ok((head.sequence > 0).then(|| (database.topic_id().to_owned(), head)))
            }
        }
    }

    /// Is that very entry in the ledger?
    pub fn has(&self, head: Head) -> Result<bool, EntriesFault> {
        if let Self::Files(directory) = self
            && !directory.is_dir()
        {
            return Ok(false);
        }
        Ok(self.entry(head.sequence)?.is_some_and(|entry| entry.running_hash == head.running_hash))
    }

    /// The body with this digest that entry `sequence`, which must be committed, refers to; nothing if it was purged.
    pub fn body(&self, sequence: u64, digest: Digest) -> Result<Option<String>, EntriesFault> {
        match self {
            Self::Files(directory) => read_body(directory, sequence, digest),
            Self::Memory(store) => Ok(store.body(digest)),
            Self::Database(database) => database.read_body(sequence, digest).map_err(EntriesFault::Database),
        }
    }

    /// Drops the bodies of entries older than `before`; the chain stays as it is.
    pub fn purge_bodies(&self, before: Timestamp, mode: PurgeMode) -> Result<Purged, PurgeFault> {
        match self {
            Self::Files(directory) => purge_bodies(&RealDisk, directory, before, mode),
            Self::Memory(store) => Ok(store.purge_bodies(before, mode)),
            Self::Database(database) => database
                .purge_bodies(before, mode)
                .map_err(|fault| PurgeFault::Ledger(EntriesFault::Database(fault))),
        }
    }

    /// Computes everything again up to entry `through`, with code that shares nothing with what wrote it. Files are read
    /// as they are, and `tell` hears how far; of a database, the entries are.
    pub fn verify(
        &self,
        topic_id: &str,
        through: u64,
        checkpoints: &[verify::Checkpoint],
        mut tell: &mut dyn FnMut(verify::Progress),
    ) -> Result<verify::Report, verify::Finding> {
        match self {
            Self::Files(directory) => verify::verify_segments(directory, checkpoints, &mut tell),
            Self::Memory(_) | Self::Database(_) => {
                let text =
                    ExportText { entries: self.entries(1, through), topic_id, line: io::Cursor::default() };
                verify::verify_export(BufReader::with_capacity(256 * 1024, text), checkpoints)
            }
        }
    }
}

/// Iterates over committed entries, all that were asked for or a fault.
#[derive(Debug)]
pub struct SourceEntries {
    kept: Kept,
    next: u64,
    through: u64,
}

#[derive(Debug)]
enum Kept {
    Files(Entries),
    Memory(MemoryEntries),
    Database(StoredEntries),
}

impl Iterator for SourceEntries {
    type Item = Result<Entry, EntriesFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match &mut self.kept {
            Kept::Files(entries) => entries.next(),
            Kept::Memory(entries) => entries.next().map(Ok),
            Kept::Database(entries) => entries.next(),
        };
        match &next {
            Some(Ok(entry)) => self.next = entry.sequence + 1,
            None if self.next <= self.through => {
                let before = self.next;
                // Said once.
                self.through = 0;
                return Some(Err(EntriesFault::Ended { before }));
            }
            Some(Err(_)) => self.through = 0,
            None => {}
        }
        next
    }
}

/// Entries as an export has them, made while they are read.
struct ExportText<'t> {
    entries: Result<SourceEntries, EntriesFault>,
    topic_id: &'t str,
    line: io::Cursor<Vec<u8>>,
}

impl Read for ExportText<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.line.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let entries = self.entries.as_mut().map_err(|fault| io::Error::other(fault.to_string()))?;
            match entries.next().transpose().map_err(|fault| io::Error::other(fault.to_string()))? {
                Some(entry) => self.line = io::Cursor::new(entry.to_line(self.topic_id).into_bytes()),
                None => return Ok(0),
            }
        }
    }
}
