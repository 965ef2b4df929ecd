//! Segments on disk, in order: which files belong to the ledger, and where its committed part ends.
//!
//! The one file of this room that opens files.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::chain::{Chain, Head};
use super::finding::{Finding, FindingKind, LineKind};
use super::lines::{Lines, PART_BYTES_MAX, Part};
use super::{Progress, Report, body, line};

const READ_BYTES: usize = 256 * 1024;
const PROGRESS_BYTES: u64 = 16 * 1024 * 1024;

struct Segment {
    name: String,
    first: u64,
    bytes: u64,
}

/// What counts up to some place.
#[derive(Clone, Copy)]
struct Tally {
    head: Head,
    bodies: u64,
    batches: u64,
}

struct Walk<'c, 'p> {
    chain: Chain<'c>,
    /// At the last commit line.
    committed: Tally,
    /// Since then.
    bodies: u64,
    progress: &'p mut dyn FnMut(Progress),
    so_far: Progress,
}

/// How the committed part of a segment ended.
struct Tail {
    bytes: u64,
    /// What was wrong with it, beyond that no commit line follows.
    cause: Option<Finding>,
}

pub(super) fn verify(
    dir: &Path,
    chain: Chain<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, Finding> {
    let segments = segments(dir)?;
    let mut walk = Walk {
        committed: Tally { head: chain.head(), bodies: 0, batches: 0 },
        chain,
        bodies: 0,
        progress,
        so_far: Progress {
            segments_done: 0,
            segments: segments.len() as u64,
            bytes_done: 0,
            bytes: segments.iter().map(|segment| segment.bytes).sum(),
            entries: 0,
        },
    };
    let mut tail = Tail { bytes: 0, cause: None };
    for (n, segment) in segments.iter().enumerate() {
        tail = walk.segment(dir, segment, n + 1 == segments.len())?;
    }
    let Walk { chain, committed, .. } = walk;
    if let Err((sequence, kind)) = chain.finish(&committed.head) {
        // The entries that a checkpoint misses may be there and damaged: then that is the finding.
        let segment = segments.last().map(|segment| segment.name.clone());
        return Err(tail.cause.unwrap_or(Finding { segment, line: None, sequence: Some(sequence), kind }));
    }
    Ok(Report {
        bodies: committed.bodies,
        batches: committed.batches,
        uncommitted_tail_bytes: tail.bytes,
        ..chain.report(&committed.head)
    })
}

/// The files whose names end in `.jsonl`, in the order of their entries. Whatever else is in the
/// directory (tails set aside as `.torn`, for one) is not part of the ledger.
fn segments(dir: &Path) -> Result<Vec<Segment>, Finding> {
    let whole = |error: std::io::Error| Finding {
        segment: None,
        line: None,
        sequence: None,
        kind: FindingKind::from(error),
    };
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir).map_err(whole)? {
        let entry = entry.map_err(whole)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".jsonl") else { continue };
        let digits = stem.len() == 20 && stem.bytes().all(|byte| byte.is_ascii_digit());
        let Some(first) = stem.parse().ok().filter(|_| digits) else {
            return Err(in_segment(&name, FindingKind::SegmentName));
        };
        // Asked before it is opened: opening a pipe would wait for its writer.
        let metadata =
            fs::metadata(entry.path()).map_err(|error| in_segment(&name, FindingKind::from(error)))?;
        if !metadata.is_file() {
            let reason = "it is not a regular file".to_owned();
            return Err(in_segment(&name, FindingKind::Unreadable { reason }));
        }
        segments.push(Segment { name, first, bytes: metadata.len() });
    }
    segments.sort_by_key(|segment| segment.first);
    Ok(segments)
}

fn in_segment(name: &str, kind: FindingKind) -> Finding {
    Finding { segment: Some(name.to_owned()), line: None, sequence: None, kind }
}

impl Walk<'_, '_> {
    fn segment(&mut self, dir: &Path, segment: &Segment, last: bool) -> Result<Tail, Finding> {
        let name = &segment.name;
        let expected = self.committed.head.entries + 1;
        if segment.first != expected {
            let kind = FindingKind::SegmentStart { expected, found: segment.first };
            return Err(Finding { sequence: Some(expected), ..in_segment(name, kind) });
        }
        let unreadable = |error: std::io::Error| in_segment(name, FindingKind::from(error));
        let file = File::open(dir.join(name)).map_err(unreadable)?;
        let mut lines = Lines::new(BufReader::with_capacity(READ_BYTES, file));
        let mut committed_bytes = 0;
        let mut told_bytes = 0;
        let cause = loop {
            match self.line(&mut lines) {
                Ok(Read::Commit) => committed_bytes = lines.offset(),
                Ok(Read::Other) => {}
                Ok(Read::End) => break None,
                Err(kind) => {
                    let finding = self.finding(name, &lines, kind);
                    // Torn is only what no commit line follows: whatever stands before one was whole once.
                    if last && !commit_follows(&mut lines, &finding.kind).map_err(unreadable)? {
                        break Some(finding);
                    }
                    return Err(finding);
                }
            }
            if lines.offset() - told_bytes >= PROGRESS_BYTES {
                told_bytes = lines.offset();
                self.tell(told_bytes);
            }
        };
        let tail = Tail { bytes: lines.offset() - committed_bytes, cause };
        if !last && self.chain.head().entries > self.committed.head.entries {
            let committed = self.committed.head.entries;
            let kind = FindingKind::SegmentUncommitted { committed };
            return Err(Finding { sequence: Some(committed + 1), ..self.finding(name, &lines, kind) });
        }
        if !last {
            self.committed.bodies += std::mem::take(&mut self.bodies);
        }
        self.so_far.segments_done += 1;
        self.tell(lines.offset());
        self.so_far.bytes_done += lines.offset();
        Ok(tail)
    }

    fn line(&mut self, lines: &mut Lines<impl BufRead>) -> Result<Read, FindingKind> {
        let part = lines.begin()?;
        match part {
            Part::End => return Ok(Read::End),
            Part::Unended => return Err(FindingKind::LineUnended),
            Part::Line | Part::More => {}
        }
        match line::kind(lines.text()) {
            Some(LineKind::Body) => {
                body::check(lines, part)?;
                self.bodies += 1;
            }
            _ if part == Part::More => return Err(FindingKind::LineTooLong { bytes_max: PART_BYTES_MAX }),
            Some(LineKind::Event) => self.chain.enter(&line::event(lines.text())?)?,
            Some(LineKind::Commit) => {
                self.chain.commit(&line::commit(lines.text())?, &self.committed.head)?;
                self.committed = Tally {
                    head: self.chain.head(),
                    bodies: self.committed.bodies + std::mem::take(&mut self.bodies),
                    batches: self.committed.batches + 1,
                };
                return Ok(Read::Commit);
            }
            None => return Err(FindingKind::LineUnknown),
        }
        Ok(Read::Other)
    }

    fn finding(&self, name: &str, lines: &Lines<impl BufRead>, kind: FindingKind) -> Finding {
        let sequence = Some(self.chain.entry_of(&kind));
        Finding { line: Some(lines.number()), sequence, ..in_segment(name, kind) }
    }

    fn tell(&mut self, offset: u64) {
        let bytes_done = self.so_far.bytes_done + offset;
        (self.progress)(Progress { bytes_done, entries: self.committed.head.entries, ..self.so_far });
    }
}

enum Read {
    Commit,
    Other,
    End,
}

/// Is the line that was refused a commit line, or does any come after it?
fn commit_follows(lines: &mut Lines<impl BufRead>, refused: &FindingKind) -> std::io::Result<bool> {
    if matches!(
        refused,
        FindingKind::Unreadable { .. }
            | FindingKind::CommitEmpty
            | FindingKind::CommitSequence { .. }
            | FindingKind::CommitHash { .. }
    ) {
        return Ok(true);
    }
    loop {
        match lines.begin()? {
            Part::End => return Ok(false),
            Part::Line if line::commit(lines.text()).is_ok() => return Ok(true),
            Part::Line | Part::More | Part::Unended => {}
        }
    }
}
