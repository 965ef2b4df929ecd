//! The second opinion on the ledger: reads all of it and computes everything again.
//!
//! Owns the reading of segments and exports, the chain, the rules of the Wire text that need no policy,
//! and checkpoints. Touches files only in `directory.rs`, and only to read them.
//!
//! INVARIANT (nothing shared): no other room of this crate is named in here, and nothing of the writer.
//! What both sides have in common is the page `docs/ledger.md`; that is why this room has limits, hex and
//! escaping of its own. A mistake that writer and verifier shared would be a mistake nobody finds.
//!
//! Every line has one spelling only. A line is read with serde, then followed from left to right as it
//! would be written; whatever differs by a byte is found, and the column with it.
//!
//! Memory: 64 KiB of a line at a time, however long a body is; 16 bytes of a SHA-256 for every `wire_id`
//! and 24 bytes for every stream. In the tables that hold them that is 20 to 39 MB for a million entries
//! and 29 to 58 MB for a million streams (they double as they grow; for that moment half as much again).
//!
//! Deliberately absent: repair, any judgement of what an event says, and whether an event refers to the
//! bodies that stand before it (retention may drop any of them).

mod body;
mod chain;
mod checkpoint;
mod directory;
mod finding;
mod line;
mod lines;
mod spelling;
mod wire;

use std::io::BufRead;
use std::path::Path;

pub use checkpoint::{Checkpoint, ClaimedCheckpoint, PublicKeys};
pub use finding::{Finding, FindingKind, LineKind};

use chain::Chain;
use lines::{Lines, Part};

/// What a ledger without a finding holds. The texts are absent when it has no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub topic_id: Option<String>,
    pub entries: u64,
    pub first_timestamp: Option<String>,
    pub last_timestamp: Option<String>,
    pub last_running_hash: Option<String>,
    /// Body lines whose digest holds; an export has none.
    pub bodies: u64,
    /// Commit lines; an export has none.
    pub batches: u64,
    /// What stands after the last commit line of the last segment. It was never acknowledged.
    pub uncommitted_tail_bytes: u64,
}

/// How far the reading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub segments_done: u64,
    pub segments: u64,
    pub bytes_done: u64,
    /// As the segments were when the reading began; a gateway at work adds to the last one.
    pub bytes: u64,
    pub entries: u64,
}

/// Verifies a directory of segments, and that it agrees with every checkpoint.
///
/// Stops at the first difference. `progress` is told after every segment and every 16 MiB.
pub fn verify_segments(
    dir: &Path,
    checkpoints: &[Checkpoint],
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, Finding> {
    directory::verify(dir, Chain::new(checkpoints), progress)
}

/// Verifies what `audit export` prints, and that it agrees with every checkpoint.
///
/// Stops at the first difference.
pub fn verify_export(reader: impl BufRead, checkpoints: &[Checkpoint]) -> Result<Report, Finding> {
    let mut chain = Chain::new(checkpoints);
    let mut lines = Lines::new(reader);
    loop {
        match export_line(&mut lines, &mut chain) {
            Ok(Part::End) => break,
            Ok(_) => {}
            Err(kind) => {
                let sequence = Some(chain.entry_of(&kind));
                return Err(Finding { segment: None, line: Some(lines.number()), sequence, kind });
            }
        }
    }
    let head = chain.head();
    chain.finish(&head).map_err(|(sequence, kind)| Finding {
        segment: None,
        line: None,
        sequence: Some(sequence),
        kind,
    })?;
    Ok(chain.report(&head))
}

fn export_line(lines: &mut Lines<impl BufRead>, chain: &mut Chain<'_>) -> Result<Part, FindingKind> {
    let part = lines.begin()?;
    match part {
        Part::Line => chain.enter(&line::event(lines.text())?)?,
        Part::More => return Err(FindingKind::LineTooLong { bytes_max: lines::PART_BYTES_MAX }),
        Part::Unended => return Err(FindingKind::LineUnended),
        Part::End => {}
    }
    Ok(part)
}
