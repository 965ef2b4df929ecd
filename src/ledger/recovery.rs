//! What a log finds when it is opened: the last segment read through, and what a crash left set aside.
//!
//! Only what was never acknowledged is set aside: everything after the last good commit line. A batch is
//! written only when the one before it is durable, here or in the journal, so at most one commit line can stand behind
//! a torn place and be of a batch that the journal lacks; two mean that the file was damaged, not torn, and the log does
//! not open.

use std::io;
use std::path::{Path, PathBuf};

use super::chain::Head;
use super::disk::Disk;
use super::line::{self, Line};
use super::segments::segment_name;
use crate::timestamp::Timestamp;

/// What the files end with that tails are set aside in.
pub(super) const TORN: &str = ".torn";

/// A tail that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    pub bytes: u64,
    /// Where it is kept.
    pub file: PathBuf,
}

/// Why a log does not open. Nothing was changed.
#[derive(Debug)]
pub enum OpenFault {
    Io {
        path: PathBuf,
        error: io::Error,
    },
    /// An entry that was acknowledged is damaged.
    Damaged {
        segment: String,
        line: u64,
        after: u64,
    },
    /// The log ends before an entry that somebody has a record of.
    Truncated {
        sequence: u64,
        expected: u64,
    },
    /// The log has another entry than the one somebody has a record of.
    Different {
        sequence: u64,
    },
    /// A segment does not continue the one before it.
    Gap {
        segment: String,
        expected: u64,
    },
    /// A file that does not belong there.
    Foreign {
        path: PathBuf,
    },
}

impl std::fmt::Display for OpenFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Damaged { segment, line, after } => {
                write!(
                    f,
                    "the ledger is damaged in {segment}, line {line}: the last good entry before it is {after}"
                )
            }
            Self::Truncated { sequence, expected } => {
                write!(f, "the ledger ends at entry {sequence}, but entry {expected} was acknowledged")
            }
            Self::Different { sequence } => {
                write!(f, "entry {sequence} is not the one that was acknowledged")
            }
            Self::Gap { segment, expected } => {
                let first = segment.split('.').next().and_then(|digits| digits.parse::<u64>().ok());
                match first.filter(|first| first > expected) {
                    Some(first) => write!(
                        f,
                        "entries {expected} to {} are missing: there is no segment {}, and {segment} comes next",
                        first - 1,
                        segment_name(*expected)
                    ),
                    None => write!(f, "segment {segment} begins before entry {expected}, which comes next"),
                }
            }
            Self::Foreign { path } => write!(f, "{} does not belong into the ledger", path.display()),
        }
    }
}

impl std::error::Error for OpenFault {}

/// What reading a segment through found.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) head: Head,
    pub(super) last_timestamp: Option<Timestamp>,
    /// Where the last good commit line ends.
    pub(super) durable_bytes: u64,
    /// The first line that is not good, if there is one.
    pub(super) bad_line: Option<u64>,
    /// The entries that commit lines behind the last good one name.
    behind: Vec<u64>,
}

impl Scan {
    /// How many batches stand behind the last good one that are not put back up to `head`.
    pub(super) fn commits_behind(&self, head: Head) -> usize {
        self.behind.iter().filter(|sequence| **sequence > head.sequence).count()
    }
}

/// Reads a segment through from `head`, the last entry of the segment before it.
///
/// `known` is told each entry whose hash is good, so that it can be compared with what others remember.
pub(super) fn scan(text: &[u8], topic_id: &str, head: Head, mut known: impl FnMut(Head)) -> Scan {
    let mut scan = Scan { head, last_timestamp: None, durable_bytes: 0, bad_line: None, behind: Vec::new() };
    let (mut next, mut next_timestamp) = (head, None);
    let mut uncommitted = Vec::new();
    let mut at = 0;
    for (n, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        at += line.len() as u64;
        let read = line.strip_suffix(b"\n").and_then(line::read);
        if scan.bad_line.is_some() {
            if let Some(Line::Commit { sequence, .. }) = read {
                scan.behind.push(sequence);
            }
            continue;
        }
        let good = match read {
            Some(Line::Event(event)) => {
                let sequence = next.sequence + 1;
                let running_hash = next.running_hash.then(sequence, &event.consensus_timestamp, &event.wire);
                let timestamp = Timestamp::parse(&event.consensus_timestamp);
                let good = event.sequence == sequence
                    && event.topic_id == topic_id
                    && running_hash.is_written(&event.running_hash)
                    && timestamp.is_some();
                next = Head { sequence, running_hash };
                next_timestamp = timestamp;
                uncommitted.push(next);
                good
            }
            Some(Line::Body(body)) => body.sound().is_some(),
            Some(Line::Commit { sequence, running_hash }) => {
                let good = sequence == next.sequence && next.running_hash.is_written(&running_hash);
                if good {
                    scan.head = next;
                    scan.last_timestamp = next_timestamp.or(scan.last_timestamp);
                    scan.durable_bytes = at;
                    uncommitted.drain(..).for_each(&mut known);
                } else {
                    scan.behind.push(sequence);
                }
                good
            }
            None => false,
        };
        if !good {
            scan.bad_line = Some(n as u64 + 1);
        }
    }
    scan
}

/// Keeps a torn tail in a file of its own, durable before it is cut off.
pub(super) fn set_aside(
    disk: &dyn Disk,
    directory: &Path,
    segment: &str,
    tail: &[u8],
) -> Result<Torn, OpenFault> {
    let fault = |path: &Path, error| OpenFault::Io { path: path.to_owned(), error };
    for n in 1_u32.. {
        let file = directory.join(format!("{segment}.{n}{TORN}"));
        let mut kept = match disk.create(&file) {
            Ok(kept) => kept,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(fault(&file, error)),
        };
        kept.append(tail).and_then(|()| kept.sync()).map_err(|error| fault(&file, error))?;
        disk.sync_directory(directory).map_err(|error| fault(directory, error))?;
        return Ok(Torn { bytes: tail.len() as u64, file });
    }
    Err(fault(directory, io::Error::other("too many torn files")))
}
