//! Batches as they stand in a log, with their bodies in place: what a copy is made of.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use super::batch::{Batch, BatchBuilder};
use super::chain::Head;
use super::entries::{EntriesFault, Entry, damaged_at};
use super::line::{self, Line};
use super::search;
use super::segments::list;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

const READ_BYTES: usize = 256 * 1024;

/// One batch, in the order in which it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Body(Digest, String),
    Entry(Entry),
}

impl Recorded {
    /// The number of its last entry.
    pub(crate) fn last_sequence(&self) -> Option<u64> {
        self.entries().last().map(|entry| entry.sequence)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.parts.iter().filter_map(|part| match part {
            Part::Entry(entry) => Some(entry),
            Part::Body(..) => None,
        })
    }

    /// The same batch, to be appended elsewhere; the number of an entry that does not follow from `after` if there is
    /// one.
    pub(crate) fn again(
        self,
        topic_id: &str,
        after: Head,
        last_timestamp: Option<Timestamp>,
    ) -> Result<Batch, u64> {
        let mut builder = BatchBuilder::new(topic_id, after, last_timestamp);
        for part in self.parts {
            match part {
                Part::Body(digest, body) => builder.body(digest, &body),
                Part::Entry(Entry { sequence, consensus_timestamp, running_hash, wire }) => {
                    let time = Timestamp::parse(&consensus_timestamp).ok_or(sequence)?;
                    // The builder counts and hashes by itself; it has to arrive at the same entry.
                    if builder.event(wire, time).running_hash != running_hash {
                        return Err(sequence);
                    }
                }
            }
        }
        builder.seal().ok_or(after.sequence + 1)
    }
}

/// Reads the batches of a directory in order, from the one after a given entry on. Nothing may be appending to it.
#[derive(Debug)]
pub(crate) struct RecordedSegments {
    segments: std::vec::IntoIter<(u64, PathBuf)>,
    reader: Option<(PathBuf, BufReader<File>, u64, u64)>,
    after: u64,
}

impl RecordedSegments {
    /// Begins with the batch that follows entry `after`, which must end one.
    pub(crate) fn after(directory: &Path, after: u64) -> Result<Self, EntriesFault> {
        let mut segments = list(directory).map_err(EntriesFault::Open)?;
        let before = segments.partition_point(|(first, _)| *first <= after + 1).saturating_sub(1);
        segments.drain(..before);
        Ok(Self { segments: segments.into_iter(), reader: None, after })
    }

    fn open(&mut self) -> Result<bool, EntriesFault> {
        let Some((first, path)) = self.segments.next() else { return Ok(false) };
        let file = File::open(&path).map_err(EntriesFault::Io)?;
        let at = if self.after >= first {
            search::find(&file, self.after, search::WINDOW_BYTES).map_err(EntriesFault::Io)?
        } else {
            0
        };
        let mut reader = BufReader::with_capacity(READ_BYTES, file);
        std::io::Seek::seek(&mut reader, std::io::SeekFrom::Start(at)).map_err(EntriesFault::Io)?;
        self.reader = Some((path, reader, at, 0));
        Ok(true)
    }

    fn read(&mut self) -> Result<Option<Recorded>, EntriesFault> {
        let mut parts = Vec::new();
        let mut text = Vec::new();
        loop {
            let Some((path, reader, at, lines)) = &mut self.reader else {
                if self.open()? {
                    continue;
                }
                return Ok(None);
            };
            text.clear();
            if reader.read_until(b'\n', &mut text).map_err(EntriesFault::Io)? == 0 {
                // What no commit line follows never happened.
                parts.clear();
                self.reader = None;
                continue;
            }
            *lines += 1;
            let damaged = || damaged_at(path, *at, *lines);
            match text.strip_suffix(b"\n").and_then(line::read) {
                Some(Line::Body(body)) => {
                    let (digest, body) = body.sound().ok_or_else(damaged)?;
                    parts.push(Part::Body(digest, body.into_owned()));
                }
                Some(Line::Event(event)) => parts.push(Part::Entry(Entry::of(event).ok_or_else(damaged)?)),
                Some(Line::Commit { sequence, .. }) if sequence <= self.after => parts.clear(),
                Some(Line::Commit { sequence, .. }) => {
                    self.after = sequence;
                    return Ok(Some(Recorded { parts }));
                }
                None if text.ends_with(b"\n") => return Err(damaged()),
                // A torn line at the very end.
                None => {}
            }
        }
    }
}

impl Iterator for RecordedSegments {
    type Item = Result<Recorded, EntriesFault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
