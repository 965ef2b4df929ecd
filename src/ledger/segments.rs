//! The embedded log: append-only files of JSON lines, one writer, one write and one sync a batch.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::batch::Batch;
use super::chain::Head;
use super::disk::{Disk, DiskFile, FileIdentity, hold};
use super::purge::ASIDE;
use super::recovery::{OpenFault, Torn, scan, set_aside};
use super::stirring::{Judged, Stirring};
use super::{AppendFault, Log, line, search};
use crate::limits;
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
    /// Opens the log in a directory, making it with `new_topic_id` if it is empty.
    ///
    /// `remembered` are entries that somebody has a record of: the checkpoint, the state file, the views. A log
    /// that lacks one of them, or has another in its place, does not open.
    pub fn open(
        disk: Arc<dyn Disk>,
        directory: &Path,
        new_topic_id: &str,
        remembered: &[Head],
    ) -> Result<(Self, Option<Torn>), OpenFault> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| OpenFault::Io { path, error }
        };
        fs::create_dir_all(directory).map_err(io(directory))?;
        // Until it is open: which segment is the one to write to is not settled before.
        let _held = hold(directory).map_err(io(directory))?;
        clear_aside(&*disk, directory)?;
        // Before anything is looked at: what changes from here on is heard.
        let stirring = Stirring::of(directory);
        let mut segments = list(directory)?;
        let mut log = Self {
            disk,
            directory: directory.to_owned(),
            topic_id: new_topic_id.to_owned(),
            head: Head::genesis(new_topic_id),
            last_timestamp: None,
            sealed: Vec::new(),
            stirring,
            judged: Judged::default(),
            current: None,
            broken: false,
            segment_bytes_max: limits::SEGMENT_BYTES_MAX,
        };
        let mut torn = None;
        if let Some((first, path)) = segments.pop() {
            for (first, path) in segments {
                if first != log.head.sequence + 1 {
                    return Err(OpenFault::Gap { segment: name_of(&path), expected: log.head.sequence + 1 });
                }
                let identity = log.disk.identity(&path).map_err(io(&path))?;
                (log.topic_id, log.head, log.last_timestamp) = last_commit(&path)?;
                log.sealed.push(Sealed { path, identity, head: log.head });
            }
            torn = log.open_last(first, path, remembered)?;
        }
        if let Some(beyond) = remembered.iter().find(|head| head.sequence > log.head.sequence) {
            return Err(OpenFault::Truncated { sequence: log.head.sequence, expected: beyond.sequence });
        }
        Ok((log, torn))
    }

    /// Reads the last segment through, sets a torn tail aside, and gets ready to append.
    fn open_last(
        &mut self,
        first: u64,
        path: PathBuf,
        remembered: &[Head],
    ) -> Result<Option<Torn>, OpenFault> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| OpenFault::Io { path, error }
        };
        let name = name_of(&path);
        if first != self.head.sequence + 1 {
            return Err(OpenFault::Gap { segment: name, expected: self.head.sequence + 1 });
        }
        let text = fs::read(&path).map_err(io(&path))?;
        if self.head.sequence == 0
            && let Some(topic_id) = topic_of(&text)
        {
            self.head = Head::genesis(&topic_id);
            self.topic_id = topic_id;
        }
        let mut different = None;
        let scan = scan(&text, &self.topic_id, self.head, |head| {
            if remembered.iter().any(|other| other.sequence == head.sequence && *other != head) {
                different = Some(head.sequence);
            }
        });
        if let Some(sequence) = different {
            return Err(OpenFault::Different { sequence });
        }
        let acknowledged = remembered.iter().map(|head| head.sequence).max().unwrap_or(0);
        if let Some(line) = scan.bad_line
            && (scan.commits_behind > 1 || scan.head.sequence < acknowledged)
        {
            return Err(OpenFault::Damaged { segment: name, line, after: scan.head.sequence });
        }
        let durable = usize::try_from(scan.durable_bytes).unwrap_or(usize::MAX);
        let tail = text.get(durable..).unwrap_or_default();
        let torn =
            if tail.is_empty() { None } else { Some(set_aside(&*self.disk, &self.directory, &name, tail)?) };
        self.head = scan.head;
        self.last_timestamp = scan.last_timestamp.or(self.last_timestamp);
        if scan.durable_bytes == 0 {
            // Nothing in it was ever acknowledged; the next append makes it anew.
            self.disk.remove(&path).map_err(io(&path))?;
            self.disk.sync_directory(&self.directory).map_err(io(&self.directory))?;
            return Ok(torn);
        }
        let mut file = self.disk.open(&path).map_err(io(&path))?;
        if torn.is_some() {
            file.set_len(scan.durable_bytes).and_then(|()| file.sync()).map_err(io(&path))?;
        }
        let modified = file.identity().ok().map(|own| own.modified);
        self.current = Some(Segment { path, file, durable_bytes: scan.durable_bytes, modified });
        Ok(torn)
    }

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

    /// Are all files still the ones that were written, and as they were left? Full segments are asked when something
    /// stirred in the directory, and every so often.
    fn check_files(&mut self) -> Result<(), AppendFault> {
        let own = self.current.as_ref().and_then(|segment| segment.path.file_name()?.to_str());
        if self.stirring.is_due(own) {
            self.check_sealed()?;
            self.stirring.looked();
        }
        self.check_current()
    }

    fn check_sealed(&mut self) -> Result<(), AppendFault> {
        let mut before = Head::genesis(&self.topic_id);
        for at in 0..self.sealed.len() {
            let Some(Sealed { path, identity, head }) = self.sealed.get(at) else { break };
            let (expected, head) = (*identity, *head);
            let found = self.identity(path)?;
            if !found.holds_what(&expected) {
                if found.bytes >= expected.bytes || !self.is_the_same_chain(path, found, before, head)? {
                    return Err(changed(path, found, expected));
                }
                if let Some(sealed) = self.sealed.get_mut(at) {
                    sealed.identity = found;
                }
            }
            before = head;
        }
        Ok(())
    }

    /// The segment that is appended to. One that somebody else wrote to must still be the same from end to end.
    fn check_current(&mut self) -> Result<(), AppendFault> {
        let Some(segment) = &self.current else { return Ok(()) };
        // The file that is open cannot lose its inode to another one.
        let own = segment.file.identity().map_err(AppendFault::NotDurable)?;
        let found = self.identity(&segment.path)?;
        let expected = FileIdentity { bytes: segment.durable_bytes, ..own };
        if (found.device, found.inode, found.bytes) != (own.device, own.inode, segment.durable_bytes) {
            return Err(changed(&segment.path, found, expected));
        }
        if segment.modified.is_some_and(|modified| modified != found.modified) {
            let before =
                self.sealed.last().map_or_else(|| Head::genesis(&self.topic_id), |sealed| sealed.head);
            if !self.is_the_same_chain(&segment.path, found, before, self.head)? {
                return Err(changed(&segment.path, found, expected));
            }
            if let Some(segment) = &mut self.current {
                segment.modified = Some(found.modified);
            }
        }
        Ok(())
    }

    /// Followed through it, the chain ends where it did, and every body that is left is the one it says it is: retention
    /// drops bodies from full segments, and somebody may have put right what they had touched.
    fn is_the_same_chain(
        &self,
        path: &Path,
        found: FileIdentity,
        before: Head,
        head: Head,
    ) -> Result<bool, AppendFault> {
        if self.judged.is_known_to_be_bad(found) {
            return Ok(false);
        }
        let began = Instant::now();
        let (text, own) = self.disk.read(path).map_err(AppendFault::NotDurable)?;
        let scan = scan(&text, &self.topic_id, before, |_| {});
        let whole = scan.bad_line.is_none() && scan.durable_bytes == text.len() as u64 && scan.head == head;
        if !whole && own == found {
            self.judged.is_bad(found, began);
        }
        Ok(whole && own == found)
    }

    fn identity(&self, path: &Path) -> Result<FileIdentity, AppendFault> {
        self.disk.identity(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => AppendFault::Tampered(format!("{} is gone", name_of(path))),
            _ => AppendFault::NotDurable(error),
        })
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

fn changed(path: &Path, found: FileIdentity, expected: FileIdentity) -> AppendFault {
    let name = name_of(path);
    AppendFault::Tampered(if (found.device, found.inode) != (expected.device, expected.inode) {
        format!("{name} was replaced")
    } else if found.bytes != expected.bytes {
        format!("{name} has {} bytes instead of {}", found.bytes, expected.bytes)
    } else {
        format!("{name} was written to")
    })
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

/// The topic and the last committed entry of a log that may be in use; nothing if it has none. Changes nothing.
pub fn inspect(directory: &Path) -> Result<Option<(String, Head)>, OpenFault> {
    let mut segments = list(directory)?;
    let Some((_, path)) = segments.pop() else { return Ok(None) };
    let text = fs::read(&path).map_err(|error| OpenFault::Io { path: path.clone(), error })?;
    let (topic_id, head) = match segments.last() {
        Some((_, before)) => {
            let (topic_id, head, _) = last_commit(before)?;
            (topic_id, head)
        }
        None => {
            let Some(topic_id) = topic_of(&text) else { return Ok(None) };
            let head = Head::genesis(&topic_id);
            (topic_id, head)
        }
    };
    let head = scan(&text, &topic_id, head, |_| {}).head;
    Ok((head.sequence > 0).then_some((topic_id, head)))
}

/// The topic that a segment's first event names.
fn topic_of(text: &[u8]) -> Option<String> {
    text.split(|byte| *byte == b'\n').find_map(|line| match line::read(line) {
        Some(line::Line::Event(event)) => Some(event.topic_id.into_owned()),
        _ => None,
    })
}

/// The commit line that ends a full segment, and the entry before it: what the next one builds on.
fn last_commit(path: &Path) -> Result<(String, Head, Option<Timestamp>), OpenFault> {
    let io = |error| OpenFault::Io { path: path.to_owned(), error };
    let file = File::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    let mut committed: Option<Head> = None;
    let found = search::backwards(&file, bytes, |_, text| {
        match (text.strip_suffix(b"\n").and_then(line::read), committed) {
            (Some(line::Line::Commit { sequence, running_hash }), None) => {
                let hash = super::RunningHash::from_hex(&running_hash);
                committed = hash.map(|running_hash| Head { sequence, running_hash });
                if committed.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(None) }
            }
            (Some(line::Line::Event(event)), Some(head)) if event.sequence == head.sequence => {
                let time = Timestamp::parse(&event.consensus_timestamp);
                ControlFlow::Break(Some((event.topic_id.into_owned(), head, time)))
            }
            _ => ControlFlow::Break(None),
        }
    });
    let damaged = || OpenFault::Damaged { segment: name_of(path), line: 0, after: 0 };
    found.map_err(io)?.flatten().ok_or_else(damaged)
}

/// Removes what a purge that was cut short left behind.
fn clear_aside(disk: &dyn Disk, directory: &Path) -> Result<(), OpenFault> {
    let fault = |error| OpenFault::Io { path: directory.to_owned(), error };
    for entry in fs::read_dir(directory).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if name_of(&path).ends_with(ASIDE) {
            disk.remove(&path).map_err(fault)?;
            disk.sync_directory(directory).map_err(fault)?;
        }
    }
    Ok(())
}
