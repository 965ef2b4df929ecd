//! Room where a small batch is durable before its segment is synced.
//!
//! An append makes its file longer, and then a sync waits for the file system's own records as well. Writing over room
//! that was written before takes about half as long. So a small batch goes into its segment, unsynced, and into this
//! file, synced. One that is large, or finds no room, has the segment synced, and with it all that stands in here: the
//! next one begins from the start again.
//!
//! It holds the lines of the segment, each batch at the beginning of a page, so that no write touches a page that
//! another batch needs, and an empty line behind it. Nothing says which of them count: a batch counts if it follows on
//! the end of the ledger. What an earlier round left does not, and neither does what a power cut tore.
//!
//! Deliberately absent: any knowledge of when a segment is synced. That is for the log to know, which rewinds.

use std::io;
use std::path::{Path, PathBuf};

use super::chain::Head;
use super::disk::{Disk, FilePlace, RealDisk, Room, parent};
use super::recovery::{OpenFault, scan};
use super::segments::{inspect, name_of_log};
use crate::limits;
use crate::timestamp::Timestamp;

/// What a disk writes whole: nothing beside it is at risk.
const PAGE_BYTES: usize = 4096;

/// One that could not be made is tried again after so many batches.
const REST_BATCHES: u32 = 1_000;

/// The room of one log.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    bytes: usize,
    room: Option<Box<dyn Room>>,
    /// Which file that is.
    own: Option<FilePlace>,
    /// It could not be made, and is done without for so many batches.
    rests: u32,
    /// Where the next batch begins.
    at: usize,
    /// The pages of a batch; their room is used again.
    pages: Vec<u8>,
}

impl Journal {
    /// Room at a path; the file is made when it is first needed.
    pub(super) fn at(path: &Path) -> Self {
        let (path, bytes) = (path.to_owned(), limits::JOURNAL_BYTES);
        Self { path, bytes, room: None, own: None, rests: 0, at: 0, pages: Vec::new() }
    }

    /// Has another size; for tests.
    pub(super) fn set_bytes(&mut self, bytes: usize) {
        self.bytes = bytes;
    }

    /// Is there room for a batch of so many bytes? Makes the file, if there is none yet and the disk has room for it.
    pub(super) fn takes(&mut self, disk: &dyn Disk, bytes: usize) -> bool {
        if bytes > limits::JOURNAL_BATCH_BYTES_MAX || self.at + pages_of(bytes) > self.bytes {
            return false;
        }
        if self.room.is_none() && self.may_be_made(disk) {
            // A disk without room for it may still have room for what is to be written.
            match make(disk, &self.path, self.bytes) {
                Ok((room, own)) => (self.room, self.own) = (Some(room), Some(own)),
                Err(_) => self.rests = REST_BATCHES,
            }
        }
        self.room.is_some()
    }

    /// What it takes on a disk that is nearly full, it takes from the batches: it is for disks with room for both. Some have a
    /// quota and do not say so, and there one that could not be made is not tried again with each batch.
    fn may_be_made(&mut self, disk: &dyn Disk) -> bool {
        if self.rests > 0 {
            self.rests -= 1;
            return false;
        }
        disk.space(parent(&self.path)).is_none_or(|space| space.has(self.bytes as u64))
    }

    /// Makes a batch durable. After an error it may be there or not: [`Self::discard`] makes sure that it is not.
    pub(super) fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        let Some(room) = &mut self.room else { return Err(io::Error::other("there is no journal")) };
        self.pages.clear();
        self.pages.extend_from_slice(batch);
        self.pages.resize(pages_of(batch.len()), b'\n');
        room.write_at(self.at as u64, &self.pages)?;
        room.sync()?;
        self.at += self.pages.len();
        Ok(())
    }

    /// Is the file where the next start looks for it? One that somebody has taken away or replaced may be gone with all that
    /// stands in it, and is given up; the next batch finds another one.
    ///
    /// One question by its path, without times, is about half a microsecond beside a sync of a hundred. Whether the open file
    /// still has a name would not do: it may be another one.
    pub(super) fn is_in_place(&mut self, disk: &dyn Disk) -> bool {
        let is_in_place = self.own.is_some() && disk.place(&self.path).ok() == self.own;
        if !is_in_place {
            (self.room, self.own, self.at) = (None, None, 0);
        }
        is_in_place
    }

    /// All that stands in it is durable elsewhere.
    pub(super) fn rewind(&mut self) {
        self.at = 0;
    }

    /// Takes the file away for good, with all that stands in it.
    pub(super) fn discard(&mut self, disk: &dyn Disk) -> io::Result<()> {
        (self.room, self.own, self.at) = (None, None, 0);
        match disk.remove(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => removed?,
        }
        disk.sync_directory(parent(&self.path))
    }

    /// What stands in the file; nothing if there is none.
    pub(super) fn read(&self, disk: &dyn Disk) -> io::Result<Vec<u8>> {
        match disk.read(&self.path) {
            Ok((text, _)) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn make(disk: &dyn Disk, path: &Path, bytes: usize) -> io::Result<(Box<dyn Room>, FilePlace)> {
    let made = disk.make_room(path, bytes).and_then(|room| {
        disk.sync_directory(parent(path))?;
        let own = room.place()?;
        Ok((room, own))
    });
    if made.is_err() {
        // Half of one is of no use, and takes the room that the next batch needs.
        let _ = disk.remove(path);
    }
    made
}

/// Whole pages for a batch and the empty line behind it.
fn pages_of(bytes: usize) -> usize {
    (bytes + 1).next_multiple_of(PAGE_BYTES)
}

/// Batches that follow on the end of a ledger.
#[derive(Debug)]
pub(super) struct Left {
    /// Their lines.
    pub(super) text: Vec<u8>,
    /// The last entry, with them.
    pub(super) head: Head,
    pub(super) last_timestamp: Option<Timestamp>,
}

/// What a journal has of the entries behind `after`. `known` is told each of them.
pub(super) fn left(journal: &[u8], topic_id: &str, after: Head, mut known: impl FnMut(Head)) -> Left {
    let mut left = Left { text: Vec::new(), head: after, last_timestamp: None };
    let mut rest = journal;
    while let Some(batch) = first_of(rest) {
        let found = scan(batch, topic_id, left.head, |_| {});
        let follows = found.bad_line.is_none()
            && found.durable_bytes == batch.len() as u64
            && found.head.sequence > left.head.sequence;
        let pages = if follows {
            scan(batch, topic_id, left.head, &mut known);
            left.text.extend_from_slice(batch);
            (left.head, left.last_timestamp) = (found.head, found.last_timestamp);
            pages_of(batch.len())
        } else {
            PAGE_BYTES
        };
        rest = rest.get(pages..).unwrap_or_default();
    }
    left
}

/// The entries in the journal of a log that follow on the last one of its segments: a start puts them back. Changes nothing.
pub fn journaled(directory: &Path, journal: &Path) -> Result<Vec<Head>, OpenFault> {
    let Some(topic_id) = name_of_log(directory, journal)? else { return Ok(Vec::new()) };
    let head = inspect(directory)?.map_or_else(|| Head::genesis(&topic_id), |(_, head)| head);
    let text = Journal::at(journal)
        .read(&RealDisk)
        .map_err(|error| OpenFault::Io { path: journal.to_owned(), error })?;
    let mut heads = Vec::new();
    left(&text, &topic_id, head, |head| heads.push(head));
    Ok(heads)
}

/// The lines from here to the first empty one, none if those are too many to be a batch; nothing at the end.
fn first_of(rest: &[u8]) -> Option<&[u8]> {
    if rest.is_empty() {
        return None;
    }
    let near = rest.get(..=limits::JOURNAL_BATCH_BYTES_MAX).unwrap_or(rest);
    let end = near.windows(2).position(|two| two == b"\n\n").map_or(0, |at| at + 1);
    Some(near.get(..end).unwrap_or_default())
}
