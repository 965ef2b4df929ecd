//! The newest snapshot of the state, kept beside the ledger.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Files, GatewayFault};
use crate::ledger::{Source, gateway_key_id};
use crate::limits;
use crate::os::files;
use crate::proof::Seed;
use crate::state::{StateView, StateWatch, named_key, names_entry, open_snapshot, signed_head};

/// Leaves a snapshot every so many entries: a large one more rarely, so that snapshots never weigh more than a small part
/// of the ledger.
#[derive(Debug)]
pub(super) struct Snapshots {
    state: StateWatch,
    topic_id: String,
    /// The entry from which on the next one is due.
    next_sequence: u64,
    path: PathBuf,
    seed: Arc<Seed>,
}

/// The snapshot that a start began from: its entry, and how large it is. Nothing of both where there is none that fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Last {
    sequence: u64,
    bytes: usize,
}

impl Snapshots {
    /// Counted from the last one and not from this start, so that being killed often does not put the next one off.
    pub(super) fn new(state: StateWatch, topic_id: &str, last: Last, path: PathBuf, seed: Arc<Seed>) -> Self {
        let next_sequence = next_after(last.sequence, last.bytes);
        Self { state, topic_id: topic_id.to_owned(), next_sequence, path, seed }
    }

    pub(super) fn is_due_at(&self, sequence: u64) -> bool {
        sequence >= self.next_sequence
    }

    /// The ledger has come so far, at least.
    pub(super) fn reached(&mut self, sequence: u64) {
        // One that could not be written is made up for by the next; without any the ledger is read.
        if self.is_due_at(sequence) {
            let bytes = self.write().unwrap_or_default();
            self.next_sequence = next_after(sequence, bytes);
        }
    }

    /// Leaves one now, and says how large it is; nothing where the state is too large to be worth it.
    pub(super) fn write(&self) -> io::Result<usize> {
        match self.state.snapshot(&self.topic_id, &self.seed) {
            Some(text) => files::replace_private(&self.path, text.as_bytes()).map(|()| text.len()),
            None => Ok(limits::SNAPSHOT_BYTES_MAX),
        }
    }
}

/// When the next one is due after one of so many bytes.
fn next_after(sequence: u64, bytes: usize) -> u64 {
    sequence + limits::SNAPSHOT_ENTRIES.max(bytes as u64 / limits::SNAPSHOT_BYTES_PER_ENTRY)
}

/// The view to start from: the snapshot's if it is of this very ledger and not ahead of what was published. With it, what
/// the next one is counted from.
pub(super) fn start_from(
    files: &Files,
    ledger: &Source,
    topic_id: &str,
    seed: &Seed,
    published: Option<&str>,
) -> Result<(StateView, Last), GatewayFault> {
    let empty = (StateView::empty(topic_id), Last::default());
    let text = files::read_bounded(&files.state_snapshot(), limits::SNAPSHOT_BYTES_MAX).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    // Whoever put another key here may have taken the checkpoint away, which would say so.
    let own = gateway_key_id(&seed.public_hex());
    if let Some(key_id) = named_key(&text).filter(|key_id| *key_id != own) {
        return Err(GatewayFault::OtherKey { path: files.state_snapshot(), key_id });
    }
    let Some(view) = open_snapshot(&text, topic_id, &seed.public_hex()) else {
        if !text.is_empty() && signed_head(&text, &seed.public_hex()).is_none() {
            let file = files.state_snapshot();
            tracing::warn!(file = %file.display(), "the snapshot is not signed by this gateway's key; it is not used, and the ledger is read");
        }
        return Ok(empty);
    };
    let head = view.head();
    if published.and_then(names_entry).is_some_and(|named| named < head.sequence) {
        return Ok(empty);
    }
    let last = Last { sequence: head.sequence, bytes: text.len() };
    Ok(if ledger.has(head).map_err(GatewayFault::Unread)? { (view, last) } else { empty })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_snapshot_is_followed_by_the_next_one_later() {
        assert_eq!(next_after(7, 0), 7 + limits::SNAPSHOT_ENTRIES);
        assert_eq!(next_after(7, 1_000_000), 7 + limits::SNAPSHOT_ENTRIES);
        let largest = next_after(0, limits::SNAPSHOT_BYTES_MAX);
        assert_eq!(largest, limits::SNAPSHOT_BYTES_MAX as u64 / limits::SNAPSHOT_BYTES_PER_ENTRY);
        assert!(largest <= 300_000, "as many entries as a start reads in a second or so");
    }
}
