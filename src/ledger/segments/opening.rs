//! Opening a log: what is there is read, held against what others remember, and made ready to append to.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Sealed, Segment, SegmentLog, list, name_of};
use crate::ledger::chain::{Head, RunningHash};
use crate::ledger::disk::{Disk, hold};
use crate::ledger::purge::ASIDE;
use crate::ledger::recovery::{OpenFault, Torn, scan, set_aside};
use crate::ledger::stirring::{Judged, Stirring};
use crate::ledger::{line, search};
use crate::limits;
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
