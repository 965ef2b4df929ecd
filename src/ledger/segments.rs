//! The embedded log: append-only files of JSON lines, one writer, one write and one sync a batch.
//!
//! With a journal a small batch is synced there, and in its segment with others later.

mod opening;
mod rereading;
mod watching;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use opening::{has_remains, inspect, name_of_log};

use super::batch::Batch;
use super::chain::Head;
use super::disk::{Disk, DiskFile, FileIdentity, FilePlace, Space};
use super::journal::Journal;
use super::purge::ASIDE;
use super::recovery::{OpenFault, TORN};
use super::seals::{Seal, Seals};
use super::stirring::{Judged, Stirring};
use super::{AppendFault, Log};
use crate::timestamp::Timestamp;
use rereading::Rereading;

/// A log in a directory of segments.
#[derive(Debug)]
pub struct SegmentLog {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    topic_id: String,
    head: Head,
    last_timestamp: Option<Timestamp>,
    /// Segments that are full, as they were left, in order.
    sealed: Vec<Sealed>,
    /// The same for whoever keeps it over a restart.
    seals: Seals,
    /// Whether somebody touched one of them.
    stirring: Stirring,
    /// Those that are being read through because of how they look.
    rereading: Rereading,
    /// The file that was last read through and found to be another's work.
    judged: Judged,
    current: Option<Segment>,
    journal: Option<Journal>,
    /// What is durable in the journal alone.
    journaled: Journaled,
    /// A write or sync failed; what it left behind has not been cut off yet.
    broken: bool,
    segment_bytes_max: u64,
}

/// The last batches of the segment that is appended to, as long as that is not synced.
#[derive(Debug)]
struct Journaled {
    /// The last entry that is synced in a segment.
    after: Head,
    text: Vec<u8>,
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// INVARIANT (durable offset): everything before it is synced, here or in the journal; nothing after it was
    /// acknowledged.
    durable_bytes: u64,
    /// Everything before it is synced here.
    synced_bytes: u64,
    /// A sync failed: what was written since the last one may never reach the disk, whatever a later one says.
    is_doubted: bool,
    /// Which file is open; what it is long is above.
    own: Option<FilePlace>,
    /// When it was last written to, if nobody has written to it since it was asked.
    modified: Option<(i64, i64)>,
}

#[derive(Debug)]
struct Sealed {
    path: PathBuf,
    identity: FileIdentity,
    /// Its last entry.
    head: Head,
    /// It was read meanwhile, and is not what it was.
    is_bad: bool,
}

/// The file of the segment that begins with this entry.
pub(super) fn segment_name(first_sequence: u64) -> String {
    format!("{first_sequence:020}.jsonl")
}

/// The segments of a directory in order: the first entry of each, and its path.
pub(super) fn list(directory: &Path) -> Result<Vec<(u64, PathBuf)>, OpenFault> {
    let fault = |error| OpenFault::Io { path: directory.to_owned(), error };
    let mut segments = Vec::new();
    for entry in fs::read_dir(directory).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let path = entry.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(TORN) || name.ends_with(ASIDE) {
            continue;
        }
        let first = name
            .strip_suffix(".jsonl")
            .filter(|digits| digits.len() == 20)
            .and_then(|digits| digits.parse().ok());
        let first: u64 = first.ok_or_else(|| OpenFault::Foreign { path: path.clone() })?;
        // Asked before it is opened: opening a pipe would wait for its writer, and what a link leads to is not watched.
        if !entry.file_type().map_err(fault)?.is_file() {
            let why =
                "is no file of its own but a link, a pipe or the like; put the segment itself in its place";
            return Err(OpenFault::Io { path, error: io::Error::new(io::ErrorKind::InvalidInput, why) });
        }
        segments.push((first, path));
    }
    segments.sort_unstable();
    Ok(segments)
}

impl SegmentLog {
    /// The time of the last entry.
    pub fn last_timestamp(&self) -> Option<Timestamp> {
        self.last_timestamp
    }

    /// Rolls segments at another size; for tests.
    #[must_use]
    pub fn with_segment_bytes_max(mut self, bytes: u64) -> Self {
        self.segment_bytes_max = bytes;
        self
    }

    /// Has a journal of another size; for tests.
    #[must_use]
    pub fn with_journal_bytes(mut self, bytes: usize) -> Self {
        if let Some(journal) = &mut self.journal {
            journal.set_bytes(bytes);
        }
        self
    }

    /// Cuts off what a failed write left behind. The segment is not written to again: pages that failed to
    /// reach the disk once are not trusted a second time. What the journal has of them is written anew. It is done when the
    /// next batch has room and a segment to go to: whoever asks is not told that all is well before.
    fn mend(&mut self) -> io::Result<()> {
        if let Some(segment) = &mut self.current {
            let is_doubted = segment.is_doubted;
            let keep = if is_doubted { segment.synced_bytes } else { segment.durable_bytes };
            if keep == 0 {
                match self.disk.remove(&segment.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => self.current = None,
                }
                self.disk.sync_directory(&self.directory)?;
            } else {
                segment.file.set_len(keep)?;
                segment.sync()?;
                if !is_doubted {
                    self.all_synced();
                }
                self.seal_current()?;
            }
        }
        if !self.journaled.text.is_empty() {
            self.begin_segment(self.journaled.after.sequence + 1)?;
            self.broken = true;
            if let Some(segment) = &mut self.current {
                segment.append_synced(&self.journaled.text)?;
            }
            self.all_synced();
        }
        // The batch that failed may stand in it.
        if let Some(journal) = &mut self.journal {
            journal.discard(&*self.disk)?;
        }
        self.find_room()?;
        if self.current.is_none() {
            self.begin_segment(self.head.sequence + 1)?;
        }
        self.broken = false;
        Ok(())
    }

    /// On a disk that is all but full, one batch would fail and the next one not, each time with a segment of its own.
    fn find_room(&self) -> io::Result<()> {
        let shortage = self.disk.space(&self.directory).and_then(Space::shortage);
        shortage.map_or(Ok(()), |why| Err(io::Error::new(io::ErrorKind::StorageFull, why)))
    }

    /// Nothing is durable in the journal alone.
    fn all_synced(&mut self) {
        self.journaled.text.clear();
        self.journaled.after = self.head;
        if let Some(journal) = &mut self.journal {
            journal.rewind();
        }
    }

    /// Leaves the segment that is appended to, with all that is kept of it synced.
    fn seal_current(&mut self) -> io::Result<()> {
        if let Some(segment) = &self.current {
            let identity = segment.file.identity()?;
            let (path, head) = (segment.path.clone(), self.journaled.after);
            self.sealed.push(Sealed { path, identity, head, is_bad: false });
            self.current = None;
            self.tell_seals();
        }
        Ok(())
    }

    fn tell_seals(&self) {
        let mut after = Head::genesis(&self.topic_id);
        let seals = self.sealed.iter().map(|sealed| {
            let after = std::mem::replace(&mut after, sealed.head);
            Seal::new(after, sealed.head, &sealed.identity)
        });
        self.seals.set(seals.collect());
    }

    /// Has the segment that is appended to hold by itself what the journal held for it.
    fn sync_current(&mut self) -> io::Result<()> {
        if self.journaled.text.is_empty() {
            return Ok(());
        }
        if let Some(segment) = &mut self.current {
            segment.sync()?;
            segment.synced_bytes = segment.durable_bytes;
        }
        self.all_synced();
        Ok(())
    }

    /// What is durable in the journal alone is not if that was taken away.
    fn check_journal(&mut self) -> io::Result<()> {
        let holds_nothing = self.journaled.text.is_empty();
        let is_in_place = |journal: &mut Journal| holds_nothing || journal.is_in_place(&*self.disk);
        if self.journal.as_mut().is_none_or(is_in_place) {
            return Ok(());
        }
        self.sync_current().inspect_err(|_| self.broken = true)
    }

    /// Makes the segment that this entry begins.
    fn begin_segment(&mut self, first_sequence: u64) -> io::Result<()> {
        let path = self.directory.join(segment_name(first_sequence));
        let file = self.disk.create(&path).map_err(|error| told_of(&path, error))?;
        // From here on the file is ours to clean up, so it is remembered before anything else can fail.
        self.current = Some(Segment::new(path, file, 0));
        self.broken = true;
        self.disk.sync_directory(&self.directory)?;
        self.broken = false;
        Ok(())
    }

    /// The segment that the next batch goes to.
    fn make_ready(&mut self) -> io::Result<()> {
        if self.current.as_ref().is_some_and(|segment| segment.durable_bytes >= self.segment_bytes_max) {
            self.sync_current().inspect_err(|_| self.broken = true)?;
            self.seal_current()?;
        }
        if self.current.is_none() {
            // Whoever looks meanwhile whether a batch could be appended is to hear that this one could not.
            self.begin_segment(self.head.sequence + 1).inspect_err(|_| self.broken = true)?;
        }
        Ok(())
    }

    /// Makes a batch durable, in the journal if that takes it.
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let text = batch.text().as_bytes();
        let Some(segment) = &mut self.current else { return Err(io::Error::other("there is no segment")) };
        segment.file.append(text)?;
        let is_heard = self.stirring.has_heard_own(segment.name());
        let is_journaled =
            self.journal.as_mut().is_some_and(|journal| journal.takes(&*self.disk, text.len()));
        let is_journaled = match &mut self.journal {
            Some(journal) if is_journaled => {
                journal.write(text)?;
                // Asked last: what was taken away before anybody is told holds nothing.
                journal.is_in_place(&*self.disk)
            }
            _ => false,
        };
        if !is_journaled {
            segment.sync()?;
        }
        segment.durable_bytes += text.len() as u64;
        // It is durable whether or not this can be told.
        segment.modified = if is_heard { None } else { segment.file.identity().ok().map(|own| own.modified) };
        self.head = batch.head();
        self.last_timestamp = Some(batch.last_timestamp());
        if is_journaled {
            self.journaled.text.extend_from_slice(text);
        } else {
            segment.synced_bytes = segment.durable_bytes;
            self.all_synced();
        }
        Ok(())
    }
}

impl Segment {
    /// One whose bytes are all synced.
    fn new(path: PathBuf, file: Box<dyn DiskFile>, bytes: u64) -> Self {
        let modified = (bytes > 0).then(|| file.identity().ok()).flatten().map(|own| own.modified);
        Self { path, file, durable_bytes: bytes, synced_bytes: bytes, is_doubted: false, own: None, modified }
    }

    fn name(&self) -> Option<&str> {
        self.path.file_name()?.to_str()
    }

    /// Appends what is durable elsewhere, so that it is here, too.
    fn append_synced(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.append(text)?;
        self.sync()?;
        self.durable_bytes += text.len() as u64;
        self.synced_bytes = self.durable_bytes;
        self.modified = self.file.identity().ok().map(|own| own.modified);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync().inspect_err(|_| self.is_doubted = true)
    }
}

/// At rest the segments are all there is. Whatever keeps them from it keeps the journal, for whoever opens them next.
impl Drop for SegmentLog {
    fn drop(&mut self) {
        if self.journal.is_some()
            && self.check().is_ok()
            && self.sync_current().is_ok()
            && let Some(journal) = &mut self.journal
        {
            // One that stays is behind the segments, and is passed over.
            let _ = journal.discard(&*self.disk);
        }
    }
}

/// Why a segment could not be made, with what to do where somebody else has taken its name.
fn told_of(path: &Path, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::AlreadyExists {
        return error;
    }
    let why =
        format!("{} is there, and the ledger did not make it; move it out of the ledger", name_of(path));
    io::Error::new(io::ErrorKind::AlreadyExists, why)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Log for SegmentLog {
    fn topic_id(&self) -> &str {
        &self.topic_id
    }

    fn head(&self) -> Head {
        self.head
    }

    fn check(&mut self) -> Result<(), AppendFault> {
        if self.broken {
            self.mend().map_err(AppendFault::NotDurable)?;
        }
        self.check_files()?;
        self.check_journal().map_err(AppendFault::NotDurable)
    }

    fn append(&mut self, after: Head, batch: &Batch) -> Result<(), AppendFault> {
        if after != self.head || batch.after() != after {
            return Err(AppendFault::Conflict { head: self.head });
        }
        if self.broken {
            self.mend().map_err(AppendFault::NotDurable)?;
        }
        self.check_files()?;
        self.make_ready().map_err(AppendFault::NotDurable)?;
        self.write(batch).map_err(|error| {
            self.broken = true;
            // At once if it can be done, so that a restart does not find what nobody was told of.
            let _ = self.mend();
            AppendFault::NotDurable(error)
        })
    }
}
