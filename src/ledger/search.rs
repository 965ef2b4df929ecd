//! Finds an entry in a segment without reading all that stands before it.
//!
//! Lines stand in the order of their entries, so half of what is left can be ruled out by looking at one event
//! line. A line break inside a text is escaped, so the byte `\n` always ends a line, wherever one begins to look.

use std::io::{self, BufRead as _, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use super::line::{self, Line};

/// What a probe reads at once: about as much as the entries of one decision and their body.
const PROBE_BYTES: usize = 8 * 1024;

/// What is left is read line by line once it is this short: another probe would cost as much.
pub(super) const WINDOW_BYTES: u64 = 16 * 1024;

/// Where to begin to read in order to meet event `sequence`: the start of a line, with no later event before it.
///
/// Damage ends the search early: whoever reads on from there comes upon it and says where it is.
pub(super) fn find(segment: impl Read + Seek, sequence: u64, window_bytes: u64) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(PROBE_BYTES, segment);
    // INVARIANT: the event is at or after `low`, where a line begins; no line that begins at or after `high` is it.
    let (mut low, mut high) = (0, reader.seek(SeekFrom::End(0))?);
    while high.saturating_sub(low) > window_bytes {
        let middle = low + (high - low) / 2;
        match probe(&mut reader, middle, high)? {
            Probe::Event { at, sequence: found } if found < sequence => low = at,
            Probe::Event { at, sequence: found } if found == sequence => return Ok(at),
            // All events that begin between `middle` and `high` come later, or there are none.
            Probe::Event { .. } | Probe::Nothing => high = middle + 1,
            Probe::Damaged => break,
        }
        if high <= low + 1 {
            break;
        }
    }
    Ok(low)
}

enum Probe {
    /// The first event line that begins behind the place, and where.
    Event {
        at: u64,
        sequence: u64,
    },
    /// None begins before the limit.
    Nothing,
    Damaged,
}

fn probe<R: Read + Seek>(reader: &mut BufReader<R>, place: u64, limit: u64) -> io::Result<Probe> {
    reader.seek(SeekFrom::Start(place))?;
    // The line that the place is in began before it.
    let mut at = place + reader.skip_until(b'\n')? as u64;
    let mut text = Vec::new();
    while at < limit {
        if reader.fill_buf()?.starts_with(b"{\"digest\"") {
            // A body may be long, and says nothing about the order.
            at += reader.skip_until(b'\n')? as u64;
            continue;
        }
        text.clear();
        let bytes = reader.read_until(b'\n', &mut text)?;
        let Some(line) = text.strip_suffix(b"\n") else {
            // The end, or a line that is being written: whatever it is, it is not committed.
            return Ok(Probe::Nothing);
        };
        match line::read(line) {
            Some(Line::Event(event)) => return Ok(Probe::Event { at, sequence: event.sequence }),
            Some(Line::Body(_) | Line::Commit { .. }) => at += bytes as u64,
            None => return Ok(Probe::Damaged),
        }
    }
    Ok(Probe::Nothing)
}

/// Goes through the lines before `end`, the last one first, each with where it begins, until `tell` breaks off.
pub(super) fn backwards<T>(
    mut segment: impl Read + Seek,
    mut end: u64,
    mut tell: impl FnMut(u64, &[u8]) -> ControlFlow<T>,
) -> io::Result<Option<T>> {
    let mut bytes = WINDOW_BYTES;
    let mut text = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(bytes);
        segment.seek(SeekFrom::Start(start))?;
        text.clear();
        segment.by_ref().take(end - start).read_to_end(&mut text)?;
        let mut rest = text.as_slice();
        loop {
            let before = rest.strip_suffix(b"\n").unwrap_or(rest).iter().rposition(|byte| *byte == b'\n');
            // A line that the window begins in the middle of is for the next window.
            let Some(begins) = before.map(|at| at + 1).or((start == 0 && !rest.is_empty()).then_some(0))
            else {
                break;
            };
            let (earlier, line) = rest.split_at(begins);
            if let ControlFlow::Break(answer) = tell(start + begins as u64, line) {
                return Ok(Some(answer));
            }
            rest = earlier;
        }
        if rest.len() == text.len() {
            bytes = bytes.saturating_mul(2);
        }
        end = start + rest.len() as u64;
    }
    Ok(None)
}
