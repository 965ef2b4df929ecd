//! Follows a log through its files, as they grow under somebody else's hands.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::entries::{EntriesFault, Entry, damaged_at, hole};
use super::line::{self, Line};
use super::search;
use super::segments::{list, segment_name};

const READ_BYTES: usize = 256 * 1024;

/// Entries that one look hands out, give or take a batch.
const ENTRIES_AT_ONCE: usize = 1_000;

/// A reader that stands at the end of a log and waits for more.
///
/// It goes by commit lines: what no commit line follows has not happened. A batch can be seen for a moment before
/// its writer knows that it is durable; if that fails the file is cut back, and the next look says so.
#[derive(Debug)]
pub struct Tail {
    directory: PathBuf,
    segment: Option<Open>,
    /// The next entry to hand out.
    next: u64,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    /// Where the next batch begins.
    offset: u64,
    /// The last entry that a commit line was read for, in this segment.
    committed: Option<u64>,
}

impl Tail {
    /// Stands before entry `from`, which need not be there yet.
    pub fn new(directory: &Path, from: u64) -> Self {
        Self { directory: directory.to_owned(), segment: None, next: from.max(1) }
    }

    /// The entries that were committed since the last look, in order. Empty if there are none yet, and only then.
    pub fn look(&mut self) -> Result<Vec<Entry>, EntriesFault> {
        let mut entries = Vec::new();
        while entries.len() < ENTRIES_AT_ONCE {
            let segment = match &mut self.segment {
                Some(segment) => segment,
                None => {
                    let Some(segment) = Open::at(&self.directory, self.next)? else { break };
                    self.segment.insert(segment)
                }
            };
            let from = self.next;
            segment.read(&mut |entry| {
                if entry.sequence >= from {
                    entries.push(entry);
                }
                entries.len() < ENTRIES_AT_ONCE
            })?;
            self.next = entries.last().map_or(self.next, |entry| entry.sequence + 1);
            if entries.len() >= ENTRIES_AT_ONCE {
                break;
            }
            let Some(committed) = segment.committed else {
                // Its first batch may be cut off again, and the file with it: it is opened anew next time.
                self.segment = None;
                break;
            };
            // The next segment is named after its first entry, so once it is there this one is at its end.
            let path = self.directory.join(segment_name(committed + 1));
            match File::open(&path) {
                Ok(file) => self.segment = Some(Open { path, file, offset: 0, committed: None }),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    let Some((first, later)) = segment_behind(&self.directory, committed + 1)? else { break };
                    if first == committed + 1 {
                        // Made just now.
                        continue;
                    }
                    // A later one is there, so this one is full by now, and its end may have come since it was read.
                    let offset = segment.offset;
                    segment.read(&mut |entry| {
                        if entry.sequence >= self.next {
                            entries.push(entry);
                        }
                        true
                    })?;
                    if segment.offset == offset {
                        // What was read before it is handed out first.
                        return if entries.is_empty() {
                            Err(hole(&later, committed + 1, first))
                        } else {
                            Ok(entries)
                        };
                    }
                    self.next = entries.last().map_or(self.next, |entry| entry.sequence + 1);
                }
                Err(error) => return Err(EntriesFault::Io(error)),
            }
        }
        Ok(entries)
    }
}

/// The first segment that begins with this entry or a later one.
fn segment_behind(directory: &Path, sequence: u64) -> Result<Option<(u64, PathBuf)>, EntriesFault> {
    let segments = list(directory).map_err(EntriesFault::Open)?;
    Ok(segments.into_iter().find(|(first, _)| *first >= sequence))
}

impl Open {
    /// The segment that has or will have an entry, opened near it.
    fn at(directory: &Path, sequence: u64) -> Result<Option<Self>, EntriesFault> {
        let segments = list(directory).map_err(EntriesFault::Open)?;
        let before = segments.partition_point(|(first, _)| *first <= sequence);
        let Some((_, path)) = before.checked_sub(1).and_then(|last| segments.get(last)) else {
            return match segments.get(before) {
                Some((first, later)) => Err(hole(later, sequence, *first)),
                None => Ok(None),
            };
        };
        let file = match File::open(path) {
            Ok(file) => file,
            // Its first batch was cut off again, just now.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(EntriesFault::Io(error)),
        };
        let offset = search::find(&file, sequence, search::WINDOW_BYTES).map_err(EntriesFault::Io)?;
        Ok(Some(Self { path: path.clone(), file, offset, committed: None }))
    }

    /// Reads batch after batch, as long as `take` wants more.
    fn read(&mut self, take: &mut dyn FnMut(Entry) -> bool) -> Result<(), EntriesFault> {
        if self.file.metadata().map_err(EntriesFault::Io)?.len() < self.offset {
            return Err(EntriesFault::CutBack { through: self.committed.unwrap_or(0) });
        }
        let mut reader = BufReader::with_capacity(READ_BYTES, &self.file);
        reader.seek(SeekFrom::Start(self.offset)).map_err(EntriesFault::Io)?;
        let (mut at, mut batch, mut text) = (self.offset, Vec::<Entry>::new(), Vec::new());
        let mut wanted = true;
        while wanted {
            text.clear();
            let bytes = reader.read_until(b'\n', &mut text).map_err(EntriesFault::Io)?;
            // The end, or a line that is being written.
            let Some(line) = text.strip_suffix(b"\n") else { return Ok(()) };
            match line::read(line) {
                Some(Line::Event(event)) => {
                    let before = batch.last().map(|entry| entry.sequence).or(self.committed);
                    let follows = before.is_none_or(|before| event.sequence == before + 1);
                    let entry = Entry::of(event).filter(|_| follows);
                    batch.push(entry.ok_or_else(|| damaged_at(&self.path, at, 1))?);
                }
                Some(Line::Body(_)) => {}
                Some(Line::Commit { sequence, running_hash }) => {
                    let last = batch.last().map(|entry| (entry.sequence, entry.running_hash));
                    // One that was begun in the middle may have no entry left of its batch.
                    let first = batch.is_empty() && self.committed.is_none();
                    let names =
                        last.is_some_and(|(last, hash)| last == sequence && hash.is_written(&running_hash));
                    if !first && !names {
                        return Err(damaged_at(&self.path, at, 1));
                    }
                    self.committed = Some(sequence);
                    self.offset = at + bytes as u64;
                    for entry in batch.drain(..) {
                        wanted &= take(entry);
                    }
                }
                // A torn tail that waits to be set aside, unless a commit line follows.
                None => {
                    return if commit_follows(&mut reader)? {
                        Err(damaged_at(&self.path, at, 1))
                    } else {
                        Ok(())
                    };
                }
            }
            at += bytes as u64;
        }
        Ok(())
    }
}

fn commit_follows(reader: &mut BufReader<&File>) -> Result<bool, EntriesFault> {
    let mut text = Vec::new();
    loop {
        text.clear();
        reader.read_until(b'\n', &mut text).map_err(EntriesFault::Io)?;
        let Some(line) = text.strip_suffix(b"\n") else { return Ok(false) };
        if matches!(line::read(line), Some(Line::Commit { .. })) {
            return Ok(true);
        }
    }
}
