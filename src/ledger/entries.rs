//! Reads entries back, in order, from any point on.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use super::chain::RunningHash;
use super::line::{self, Line};
use super::recovery::OpenFault;
use super::segments::list;

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
}

impl std::fmt::Display for EntriesFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Open(fault) => write!(f, "{fault}"),
            Self::Io(error) => write!(f, "the ledger could not be read: {error}"),
            Self::Damaged { segment, line } => write!(f, "the ledger is damaged in {segment}, line {line}"),
        }
    }
}

impl std::error::Error for EntriesFault {}

/// Iterates over committed entries.
#[derive(Debug)]
pub struct Entries {
    segments: std::vec::IntoIter<(u64, PathBuf)>,
    reader: Option<(String, BufReader<File>, u64)>,
    next: u64,
    through: u64,
    line: Vec<u8>,
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
            let Some((name, reader, number)) = &mut self.reader else {
                let Some((_, path)) = self.segments.next() else { return Ok(None) };
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let file = File::open(&path).map_err(EntriesFault::Io)?;
                self.reader = Some((name, BufReader::with_capacity(256 * 1024, file), 0));
                continue;
            };
            self.line.clear();
            if reader.read_until(b'\n', &mut self.line).map_err(EntriesFault::Io)? == 0 {
                self.reader = None;
                continue;
            }
            *number += 1;
            let damaged = || EntriesFault::Damaged { segment: name.clone(), line: *number };
            let line = self.line.strip_suffix(b"\n").ok_or_else(damaged)?;
            let Line::Event(event) = line::read(line).ok_or_else(damaged)? else { continue };
            if event.sequence < self.next {
                continue;
            }
            if event.sequence > self.next {
                return Err(damaged());
            }
            self.next += 1;
            return Ok(Some(Entry {
                sequence: event.sequence,
                running_hash: RunningHash::from_hex(&event.running_hash).ok_or_else(damaged)?,
                consensus_timestamp: event.consensus_timestamp.into_owned(),
                wire: event.wire.into_owned(),
            }));
        }
        Ok(None)
    }
}

impl Entry {
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
