//! Opening a log: what is there is read, held against what others remember, and made ready to append to.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::rereading::Rereading;
use super::{Journaled, Sealed, Segment, SegmentLog, list, name_of};
use crate::ledger::chain::{Head, RunningHash};
use crate::ledger::disk::{Disk, hold, make_directory};
use crate::ledger::journal::{Journal, Left, left};
use crate::ledger::purge::ASIDE;
use crate::ledger::recovery::{OpenFault, TORN, Torn, scan, set_aside};
use crate::ledger::seals::{Seal, Seals};
use crate::ledger::stirring::{Judged, Stirring};
use crate::ledger::{line, search};
use crate::limits;
use crate::os::files::read_all;
use crate::timestamp::Timestamp;

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
        Self::open_at(disk, directory, None, new_topic_id, remembered, (Seals::default(), &mut |_, _| {}))
    }

    /// The same with a journal at a path beside the directory, which is read for what a power cut took from the last
    /// segment. Full segments that look as their seals say are not read through; from here on the log keeps those. `tell`
    /// hears, whenever one was read through and its seal renewed, how many of how many have been seen.
    pub fn open_with_journal(
        disk: Arc<dyn Disk>,
        directory: &Path,
        journal: &Path,
        new_topic_id: &str,
        remembered: &[Head],
        (seals, tell): (Seals, &mut dyn FnMut(u64, u64)),
    ) -> Result<(Self, Option<Torn>), OpenFault> {
        let journal = Some(Journal::at(journal));
        Self::open_at(disk, directory, journal, new_topic_id, remembered, (seals, tell))
    }

    fn open_at(
        disk: Arc<dyn Disk>,
        directory: &Path,
        mut journal: Option<Journal>,
        new_topic_id: &str,
        remembered: &[Head],
        (seals, tell): (Seals, &mut dyn FnMut(u64, u64)),
    ) -> Result<(Self, Option<Torn>), OpenFault> {
        make_directory(&*disk, directory).map_err(io_at(directory))?;
        // Until it is open: which segment is the one to write to is not settled before.
        let _held = hold(directory).map_err(io_at(directory))?;
        clear_aside(&*disk, directory)?;
        // A process that was killed may have made or taken away a segment in memory alone. What a power cut would bring
        // back, or take, is not what the next entries may follow on.
        disk.sync_directory(directory).map_err(io_at(directory))?;
        // Before anything is looked at: what changes from here on is heard.
        let stirring = Stirring::of(directory);
        let mut segments = list(directory)?;
        let head = Head::genesis(new_topic_id);
        let mut log = Self {
            disk,
            directory: directory.to_owned(),
            topic_id: new_topic_id.to_owned(),
            head,
            last_timestamp: None,
            sealed: Vec::new(),
            seals,
            stirring,
            rereading: Rereading::default(),
            judged: Judged::default(),
            current: None,
            // Until it is open it is not the log's to take away.
            journal: None,
            journaled: Journaled { after: head, text: Vec::new() },
            broken: false,
            segment_bytes_max: limits::SEGMENT_BYTES_MAX,
        };
        let last = segments.pop();
        let full = segments.len() as u64;
        for (seen, (first, path)) in (1..).zip(segments) {
            log.follows_on(first, &path)?;
            if log.open_full(path, remembered)? {
                tell(seen, full);
            }
        }
        log.tell_seals();
        let torn = log.open_last(last, journal.as_ref(), remembered)?;
        if let Some(beyond) = remembered.iter().find(|head| head.sequence > log.head.sequence) {
            return Err(OpenFault::Truncated { sequence: log.head.sequence, expected: beyond.sequence });
        }
        if let Some(journal) = &mut journal {
            journal.discard(&*log.disk).map_err(io_at(journal.path()))?;
        }
        log.journal = journal;
        Ok((log, torn))
    }

    fn follows_on(&self, first: u64, path: &Path) -> Result<(), OpenFault> {
        let expected = self.head.sequence + 1;
        if first == expected { Ok(()) } else { Err(OpenFault::Gap { segment: name_of(path), expected }) }
    }

    /// Takes a full segment as it is if it looks as it did when it was good, and reads it through otherwise, which it says.
    fn open_full(&mut self, path: PathBuf, remembered: &[Head]) -> Result<bool, OpenFault> {
        let identity = self.disk.identity(&path).map_err(io_at(&path))?;
        let (topic_id, head, last_timestamp) = last_commit(&path)?;
        if self.head.sequence == 0 {
            self.head = Head::genesis(&topic_id);
            self.topic_id = topic_id;
        }
        let (seal, found) = (self.seals.behind(self.head.sequence), Seal::new(self.head, head, &identity));
        let is_read = seal != Some(found);
        if is_read {
            self.read_full(&path, head, remembered, seal.map(|seal| seal.head))?;
            self.seals.renew(found);
        }
        (self.head, self.last_timestamp) = (head, last_timestamp);
        self.sealed.push(Sealed { path, identity, head, is_bad: false });
        Ok(is_read)
    }

    /// Reads a full segment through, from the first line to the last: it must end with this entry, and have the one that it
    /// was sealed with, if it was. One that was sealed when a batch had failed may have been taken up again by a start.
    fn read_full(
        &self,
        path: &Path,
        head: Head,
        remembered: &[Head],
        sealed: Option<Head>,
    ) -> Result<(), OpenFault> {
        let (text, _) = self.disk.read(path).map_err(io_at(path))?;
        let (mut different, mut missed) = (None, sealed);
        let scan = scan(&text, &self.topic_id, self.head, |head| {
            if remembered.iter().any(|other| other.sequence == head.sequence && *other != head) {
                different = Some(head.sequence);
            }
            missed = missed.filter(|sealed| *sealed != head);
        });
        if let Some(sequence) = different {
            return Err(OpenFault::Different { sequence });
        }
        if scan.bad_line.is_some() || scan.durable_bytes != text.len() as u64 || scan.head != head {
            let line = scan.bad_line.unwrap_or_default();
            return Err(OpenFault::Damaged { segment: name_of(path), line, after: scan.head.sequence });
        }
        // A chain by itself, and not the one that was here.
        missed.map_or(Ok(()), |sealed| Err(OpenFault::Different { sequence: sealed.sequence }))
    }

    /// Reads the last segment through, sets a torn tail aside, puts back what the journal has and it has not, and gets
    /// ready to append.
    fn open_last(
        &mut self,
        last: Option<(u64, PathBuf)>,
        journal: Option<&Journal>,
        remembered: &[Head],
    ) -> Result<Option<Torn>, OpenFault> {
        let mut text = Vec::new();
        if let Some((first, path)) = &last {
            self.follows_on(*first, path)?;
            text = read_all(path).map_err(io_at(path))?;
        }
        let journal = match journal {
            Some(journal) => journal.read(&*self.disk).map_err(io_at(journal.path()))?,
            None => Vec::new(),
        };
        if self.head.sequence == 0
            && let Some(topic_id) = topic_of(&text).or_else(|| topic_of(&journal))
        {
            self.head = Head::genesis(&topic_id);
            self.topic_id = topic_id;
        }
        let mut different = None;
        let mut known = |head: Head| {
            if remembered.iter().any(|other| other.sequence == head.sequence && *other != head) {
                different = Some(head.sequence);
            }
        };
        let scan = scan(&text, &self.topic_id, self.head, &mut known);
        let left = left(&journal, &self.topic_id, scan.head, &mut known);
        if let Some(sequence) = different {
            return Err(OpenFault::Different { sequence });
        }
        let acknowledged = remembered.iter().map(|head| head.sequence).max().unwrap_or(0);
        if let Some(line) = scan.bad_line
            && (scan.commits_behind(left.head) > 1 || left.head.sequence < acknowledged)
        {
            let segment = last.map(|(_, path)| name_of(&path)).unwrap_or_default();
            return Err(OpenFault::Damaged { segment, line, after: scan.head.sequence });
        }
        (self.head, self.journaled.after) = (scan.head, scan.head);
        self.last_timestamp = scan.last_timestamp.or(self.last_timestamp);
        let durable = usize::try_from(scan.durable_bytes).unwrap_or(usize::MAX);
        let tail = text.get(durable..).unwrap_or_default();
        let mut torn = None;
        if let Some((_, path)) = last {
            if !tail.is_empty() && !is_put_back(tail, &left.text) {
                torn = Some(set_aside(&*self.disk, &self.directory, &name_of(&path), tail)?);
            }
            self.take_up(path, scan.durable_bytes, !tail.is_empty())?;
        }
        self.put_back(left).map_err(io_at(&self.directory))?;
        Ok(torn)
    }

    /// Gets a segment ready to append to, cut off where it is durable.
    fn take_up(&mut self, path: PathBuf, durable_bytes: u64, has_tail: bool) -> Result<(), OpenFault> {
        if durable_bytes == 0 {
            // Nothing in it was ever acknowledged, or the journal has it; the next append makes it anew.
            self.disk.remove(&path).map_err(io_at(&path))?;
            return self.disk.sync_directory(&self.directory).map_err(io_at(&self.directory));
        }
        let mut file = self.disk.open(&path).map_err(io_at(&path))?;
        if has_tail {
            file.set_len(durable_bytes).map_err(io_at(&path))?;
        }
        // What was read of it may be in memory alone: a process that was killed synced it in its journal, which is
        // about to be taken away, or not at all.
        file.sync().map_err(io_at(&path))?;
        self.current = Some(Segment::new(path, file, durable_bytes));
        Ok(())
    }

    /// Appends what the journal has.
    fn put_back(&mut self, left: Left) -> io::Result<()> {
        if !left.text.is_empty() {
            if self.current.is_none() {
                self.begin_segment(self.head.sequence + 1)?;
            }
            if let Some(segment) = &mut self.current {
                segment.append_synced(&left.text)?;
            }
            self.head = left.head;
            self.last_timestamp = left.last_timestamp.or(self.last_timestamp);
        }
        self.all_synced();
        Ok(())
    }
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> OpenFault {
    let path = path.to_owned();
    move |error| OpenFault::Io { path, error }
}

/// Is a tail nothing but what is put back, as far as it reached the disk?
fn is_put_back(tail: &[u8], text: &[u8]) -> bool {
    tail.len() <= text.len() && tail.iter().zip(text).all(|(found, put)| found == put || *found == 0)
}

/// The topic of a log that may be in use, by its first entry; nothing if there is none, in the journal neither. Reads no
/// further, and changes nothing.
pub fn name_of_log(directory: &Path, journal: &Path) -> Result<Option<String>, OpenFault> {
    for (_, path) in list(directory)? {
        let mut lines = BufReader::new(File::open(&path).map_err(io_at(&path))?);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(io_at(&path))? > 0 {
            let topic_id = topic_of(&line);
            if topic_id.is_some() {
                return Ok(topic_id);
            }
            line.clear();
        }
    }
    match read_all(journal) {
        Ok(text) => Ok(topic_of(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_at(journal)(error)),
    }
}

/// The topic and the last committed entry of a log that may be in use; nothing if it has none. Changes nothing.
pub fn inspect(directory: &Path) -> Result<Option<(String, Head)>, OpenFault> {
    let end = end_of(directory)?.filter(|(_, head, _)| head.sequence > 0);
    Ok(end.map(|(topic_id, head, _)| (topic_id, head)))
}

/// Is there anything left of entries that are not in the ledger, behind its last good commit line or set aside from there?
/// What cannot be read may be.
pub fn has_remains(directory: &Path) -> bool {
    let has_torn = fs::read_dir(directory).is_ok_and(|entries| {
        entries.map_while(Result::ok).any(|entry| name_of(&entry.path()).ends_with(TORN))
    });
    has_torn || end_of(directory).map_or(true, |end| end.is_some_and(|(_, _, is_clean)| !is_clean))
}

/// The topic of a log, its last committed entry, and whether nothing follows on that; nothing if it has no topic.
fn end_of(directory: &Path) -> Result<Option<(String, Head, bool)>, OpenFault> {
    let mut segments = list(directory)?;
    let Some((_, path)) = segments.pop() else { return Ok(None) };
    let text = read_all(&path).map_err(|error| OpenFault::Io { path: path.clone(), error })?;
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
    let scan = scan(&text, &topic_id, head, |_| {});
    Ok(Some((topic_id, scan.head, scan.durable_bytes == text.len() as u64)))
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
                let hash = RunningHash::from_hex(&running_hash);
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

/// Removes what a purge that was cut short left behind; the names are synced by the caller.
fn clear_aside(disk: &dyn Disk, directory: &Path) -> Result<(), OpenFault> {
    let fault = |error| OpenFault::Io { path: directory.to_owned(), error };
    for entry in fs::read_dir(directory).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if name_of(&path).ends_with(ASIDE) {
            disk.remove(&path).map_err(fault)?;
        }
    }
    Ok(())
}
