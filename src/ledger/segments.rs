//! The embedded log: append-only files of JSON lines, one writer, one write and one sync a batch.

mod opening;
mod watching;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use opening::inspect;

use super::batch::Batch;
use super::chain::Head;
use super::disk::{Disk, DiskFile, FileIdentity};
use super::purge::ASIDE;
use super::recovery::OpenFault;
use super::stirring::{Judged, Stirring};
use super::{AppendFault, Log};
use crate::timestamp::Timestamp;

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
    /// Whether somebody touched one of them.
    stirring: Stirring,
    /// The file that was last read through and found to be another's work.
    judged: Judged,
    current: Option<Segment>,
    /// A write or sync failed; what it left behind has not been cut off yet.
    broken: bool,
    segment_bytes_max: u64,
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// INVARIANT (durable offset): everything before it is synced, nothing after it was acknowledged.
    durable_bytes: u64,
    /// When it was last written to, if that is known: by us, unless somebody else did it since.
    modified: Option<(i64, i64)>,
}

#[derive(Debug)]
struct Sealed {
    path: PathBuf,
    identity: FileIdentity,
    /// Its last entry.
    head: Head,
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
        let path = entry.map_err(fault)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(".torn") || name.ends_with(ASIDE) {
            continue;
        }
        let first = name
            .strip_suffix(".jsonl")
            .filter(|digits| digits.len() == 20)
            .and_then(|digits| digits.parse().ok());
        let first: u64 = first.ok_or_else(|| OpenFault::Foreign { name: name.to_owned() })?;
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

    /// Cuts off what a failed write left behind. The segment is not written to again: pages that failed to
    /// reach the disk once are not trusted a second time.
    fn mend(&mut self) -> Result<(), AppendFault> {
        let Some(segment) = &mut self.current else {
            self.broken = false;
            return Ok(());
        };
        if segment.durable_bytes == 0 {
            match self.disk.remove(&segment.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(AppendFault::NotDurable(error));
                }
                _ => self.current = None,
            }
            self.disk.sync_directory(&self.directory).map_err(AppendFault::NotDurable)?;
        } else {
            segment.file.set_len(segment.durable_bytes).map_err(AppendFault::NotDurable)?;
            segment.file.sync().map_err(AppendFault::NotDurable)?;
            self.seal_current()?;
        }
        self.broken = false;
        Ok(())
    }

    fn seal_current(&mut self) -> Result<(), AppendFault> {
        if let Some(segment) = &self.current {
            let identity = segment.file.identity().map_err(AppendFault::NotDurable)?;
            self.sealed.push(Sealed { path: segment.path.clone(), identity, head: self.head });
            self.current = None;
        }
        Ok(())
    }

    /// Makes the segment that the next entry begins.
    fn begin_segment(&mut self) -> Result<(), AppendFault> {
        let path = self.directory.join(segment_name(self.head.sequence + 1));
        let file = self.disk.create(&path).map_err(AppendFault::NotDurable)?;
        // From here on the file is ours to clean up, so it is remembered before anything else can fail.
        self.current = Some(Segment { path, file, durable_bytes: 0, modified: None });
        self.broken = true;
        self.disk.sync_directory(&self.directory).map_err(AppendFault::NotDurable)?;
        self.broken = false;
        Ok(())
    }
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
            self.mend()?;
        }
        self.check_files()
    }

    fn append(&mut self, after: Head, batch: &Batch) -> Result<(), AppendFault> {
        if after != self.head || batch.after() != after {
            return Err(AppendFault::Conflict { head: self.head });
        }
        if self.broken {
            self.mend()?;
        }
        self.check_files()?;
        if self.current.as_ref().is_some_and(|segment| segment.durable_bytes >= self.segment_bytes_max) {
            self.seal_current()?;
        }
        if self.current.is_none() {
            self.begin_segment()?;
        }
        let Some(segment) = &mut self.current else {
            return Err(AppendFault::NotDurable(std::io::Error::other("there is no segment")));
        };
        let text = batch.text().as_bytes();
        if let Err(error) = segment.file.append(text).and_then(|()| segment.file.sync()) {
            self.broken = true;
            // At once if it can be done, so that a restart does not find what nobody was told of.
            let _ = self.mend();
            return Err(AppendFault::NotDurable(error));
        }
        segment.durable_bytes += text.len() as u64;
        // It is durable whether or not this can be told.
        segment.modified = segment.file.identity().ok().map(|own| own.modified);
        self.head = batch.head();
        self.last_timestamp = Some(batch.last_timestamp());
        Ok(())
    }
}
