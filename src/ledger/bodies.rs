//! Bodies, found by the entry that refers to them.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use super::entries::{EntriesFault, damaged_at, hole};
use super::line::{self, Line};
use super::search;
use super::segments::list;
use crate::proof::Digest;

/// The body with this digest that entry `sequence`, which must be committed, refers to; nothing if it was purged. An entry
/// that is not there is a fault, for its body was not purged.
///
/// A body stands before the entry that refers to it, in the same batch, so no more is read than that batch.
pub fn read_body(directory: &Path, sequence: u64, digest: Digest) -> Result<Option<String>, EntriesFault> {
    let segments = list(directory).map_err(EntriesFault::Open)?;
    let before = segments.partition_point(|(first, _)| *first <= sequence);
    let missing = || match segments.get(before) {
        Some((first, next)) => hole(next, sequence, *first),
        None => EntriesFault::Ended { before: sequence },
    };
    let Some((_, path)) = before.checked_sub(1).and_then(|last| segments.get(last)) else {
        return Err(missing());
    };
    let file = File::open(path).map_err(EntriesFault::Io)?;
    let event_at = event_at(&file, path, sequence)?.ok_or_else(missing)?;
    let wanted = format!("{{\"digest\":\"{digest}\",");
    let found = search::backwards(&file, event_at, |at, line| {
        if line.starts_with(b"{\"commit\"") {
            return ControlFlow::Break(Ok(None));
        }
        if !line.starts_with(wanted.as_bytes()) {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(match line.strip_suffix(b"\n").and_then(line::read) {
            Some(Line::Body(body)) => body.sound().map(|(_, body)| Some(body.into_owned())).ok_or(at),
            _ => Err(at),
        })
    });
    match found.map_err(EntriesFault::Io)? {
        Some(Ok(body)) => Ok(body),
        Some(Err(at)) => Err(damaged_at(path, at, 1)),
        None => Ok(None),
    }
}

/// Where the line of an event begins.
fn event_at(file: &File, path: &Path, sequence: u64) -> Result<Option<u64>, EntriesFault> {
    let mut at = search::find(file, sequence, search::WINDOW_BYTES).map_err(EntriesFault::Io)?;
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(at)).map_err(EntriesFault::Io)?;
    let mut text = Vec::new();
    loop {
        text.clear();
        let bytes = reader.read_until(b'\n', &mut text).map_err(EntriesFault::Io)?;
        // The end, or what is being written there.
        let Some(line) = text.strip_suffix(b"\n") else { return Ok(None) };
        match line::read(line) {
            Some(Line::Event(event)) if event.sequence == sequence => return Ok(Some(at)),
            Some(Line::Event(event)) if event.sequence > sequence => return Err(damaged_at(path, at, 1)),
            Some(_) => at += bytes as u64,
            None => return Err(damaged_at(path, at, 1)),
        }
    }
}
