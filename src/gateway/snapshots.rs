//! The newest snapshot of the state, kept beside the ledger.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Files, GatewayFault, bad_ledger};
use crate::ledger::Source;
use crate::limits;
use crate::os::files;
use crate::proof::Seed;
use crate::state::{StateView, StateWatch, names_entry, open_snapshot};

/// Leaves a snapshot every so many entries.
#[derive(Debug)]
pub(super) struct Snapshots {
    state: StateWatch,
    topic_id: String,
    last_sequence: u64,
    path: PathBuf,
    seed: Arc<Seed>,
}

impl Snapshots {
    pub(super) fn new(
        state: StateWatch,
        topic_id: &str,
        sequence: u64,
        path: PathBuf,
        seed: Arc<Seed>,
    ) -> Self {
        Self { state, topic_id: topic_id.to_owned(), last_sequence: sequence, path, seed }
    }

    /// The ledger has come so far, at least.
    pub(super) fn reached(&mut self, sequence: u64) {
        // One that could not be written is made up for by the next; without any the ledger is read.
        if sequence >= self.last_sequence + limits::SNAPSHOT_ENTRIES {
            self.last_sequence = sequence;
            let _ = self.write();
        }
    }

    pub(super) fn write(&self) -> io::Result<()> {
        match self.state.snapshot(&self.topic_id, &self.seed) {
            Some(text) => files::replace_private(&self.path, text.as_bytes()),
            None => Ok(()),
        }
    }
}

/// The view to start from: the snapshot's if it is of this very ledger and not ahead of what was published.
pub(super) fn start_from(
    files: &Files,
    ledger: &Source,
    topic_id: &str,
    seed: &Seed,
    published: Option<&str>,
) -> Result<StateView, GatewayFault> {
    let empty = StateView::empty(topic_id);
    let text = files::read_bounded(&files.state_snapshot(), limits::SNAPSHOT_BYTES_MAX).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    let view = text.and_then(|text| open_snapshot(&text, topic_id, &seed.public_hex()));
    let Some(view) = view else { return Ok(empty) };
    let head = view.head();
    if published.and_then(names_entry).is_some_and(|named| named < head.sequence) {
        return Ok(empty);
    }
    Ok(if ledger.has(head).map_err(bad_ledger)? { view } else { empty })
}
