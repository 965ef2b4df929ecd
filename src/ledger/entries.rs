//! Reads entries back, in order, from any point on.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::chain::RunningHash;
use super::line::{self, EventLine, Line};
use super::postgres::PostgresFault;
use super::recovery::OpenFault;
use super::search;
use super::segments::{list, segment_name};

const READ_BYTES: usize = 256 * 1024;

/// An entry: a Wire event and what the ledger says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub sequence: u64,
    pub consensus_timestamp: String,
    pub running_hash: RunningHash,
    /// The event's exact canonical text.
    pub wire: String,
}

/// Why reading stopped.
#[derive(Debug)]
pub enum EntriesFault {
    Open(OpenFault),
    Io(std::io::Error),
    /// A line that is none of ours, or an entry out of order.
    Damaged {
        segment: String,
        line: u64,
    },
    /// Entries that were read were taken back by the writer: they had never become durable.
    CutBack {
        through: u64,
    },
    /// The segment that should hold these entries is not there.
    Hole {
        segment: PathBuf,
        from: u64,
        through: u64,
    },
    /// The ledger ends before an entry that was there.
    Ended {
        before: u64,
    },
    /// They are in a database.
    Database(PostgresFault),
}

impl std::fmt::Display for EntriesFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Open(fault) => write!(f, "{fault}"),
            Self::Io(error) => write!(f, "the ledger could not be read: {error}"),
            Self::Damaged { segment, line } => write!(f, "the ledger is damaged in {segment}, line {line}"),
            Self::Hole { segment, from, through } => write!(
                f,
                "entries {from} to {through} are missing: there is no {}; put that segment back as it was, or restore a backup",
                segment.display()
            ),
            Self::Ended { before } => {
                write!(f, "the ledger ends before entry {before}, which was in it: it was cut or replaced")
            }
            Self::Database(fault) => write!(f, "{fault}"),
            Self::CutBack { through } => write!(
                f,
                "the writer took back entries up to {through} because the disk failed; what they said did not happen"
            ),
        }
    }
}

impl std::error::Error for EntriesFault {}

/// Iterates over committed entries.
#[derive(Debug)]
pub struct Entries {
    segments: std::vec::IntoIter<(u64, PathBuf)>,
    reader: Option<Segment>,
    next: u64,
    through: u64,
    line: Vec<u8>,
}

/// The segment that is being read.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    reader: BufReader<File>,
    /// Where reading began, and how many lines were read since.
    begun_at: u64,
    lines: u64,
}

impl Segment {
    /// Opens a segment where the entry `next` can be reached soonest.
    fn open(path: PathBuf, first: u64, next: u64) -> io::Result<Self> {
        let file = File::open(&path)?;
        let begun_at = if next > first { search::find(&file, next, search::WINDOW_BYTES)? } else { 0 };
        let mut reader = BufReader::with_capacity(READ_BYTES, file);
        reader.seek(SeekFrom::Start(begun_at))?;
        Ok(Self { path, reader, begun_at, lines: 0 })
    }

    /// The line that was read last is not as it should be.
    fn damaged(&self) -> EntriesFault {
        damaged_at(&self.path, self.begun_at, self.lines)
    }
}

/// Entries from number `from` on should stand before a segment that begins with number `first`.
pub(super) fn hole(next: &Path, from: u64, first: u64) -> EntriesFault {
    EntriesFault::Hole { segment: next.with_file_name(segment_name(from)), from, through: first - 1 }
}

/// The line that is number `line` from a place on is not as it should be. The lines before that place are counted
/// only now, when somebody wants to know.
pub(super) fn damaged_at(path: &Path, place: u64, line: u64) -> EntriesFault {
    let before = File::open(path).and_then(|file| {
        let (mut lines, mut before) = (0, BufReader::with_capacity(READ_BYTES, file.take(place)));
        while before.skip_until(b'\n')? > 0 {
            lines += 1;
        }
        Ok(lines)
    });
    let segment = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    before.map_or_else(EntriesFault::Io, |before: u64| EntriesFault::Damaged { segment, line: before + line })
}

impl Entries {
    /// The entries of a directory from number `from` through number `through`, which must be committed: a
    /// reader never looks behind the head, where a writer may be at work.
    pub fn read(directory: &Path, from: u64, through: u64) -> Result<Self, EntriesFault> {
        let mut segments = list(directory).map_err(EntriesFault::Open)?;
        let from = from.max(1);
        // The last segment that begins at or before `from` is the first one to read.
        let before = segments.partition_point(|(first, _)| *first <= from).saturating_sub(1);
        segments.drain(..before);
        Ok(Self { segments: segments.into_iter(), reader: None, next: from, through, line: Vec::new() })
    }

    fn read_next(&mut self) -> Result<Option<Entry>, EntriesFault> {
        while self.next <= self.through {
            let Some(segment) = &mut self.reader else {
                let Some((first, path)) = self.segments.next() else { return Ok(None) };
                if first > self.next {
                    return Err(hole(&path, self.next, first));
                }
                self.reader = Some(Segment::open(path, first, self.next).map_err(EntriesFault::Io)?);
                continue;
            };
            self.line.clear();
            if segment.reader.read_until(b'\n', &mut self.line).map_err(EntriesFault::Io)? == 0 {
                self.reader = None;
                continue;
            }
            segment.lines += 1;
            let read = self.line.strip_suffix(b"\n").and_then(line::read);
            let Line::Event(event) = read.ok_or_else(|| segment.damaged())? else { continue };
            if event.sequence < self.next {
                continue;
            }
            if event.sequence > self.next {
                return Err(segment.damaged());
            }
            self.next += 1;
            return Entry::of(event).ok_or_else(|| segment.damaged()).map(Some);
        }
        Ok(None)
    }
}

impl Entry {
    pub(super) fn of(event: EventLine<'_>) -> Option<Self> {
        Some(Self {
            sequence: event.sequence,
            running_hash: RunningHash::from_hex(&event.running_hash)?,
            consensus_timestamp: event.consensus_timestamp.into_owned(),
            wire: event.wire.into_owned(),
        })
    }

    /// The line that stands for it in a segment and in an export.
    pub fn to_line(&self, topic_id: &str) -> String {
        let mut text = String::with_capacity(self.wire.len() * 5 / 4 + 256);
        let Self { sequence, consensus_timestamp, running_hash, wire } = self;
        line::write_event(&mut text, topic_id, *sequence, consensus_timestamp, *running_hash, wire);
        text
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, EntriesFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.read_next().transpose();
        if matches!(next, Some(Err(_))) {
            // One fault ends it: what comes after a damaged line is not to be trusted.
            self.through = 0;
        }
        next
    }
}
