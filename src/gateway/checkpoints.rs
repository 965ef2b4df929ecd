//! The newest checkpoint, kept beside the ledger.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::GatewayFault;
use crate::ledger::{Checkpoint, Entry, Follower, Head, Notice};
use crate::limits;
use crate::os::{clock, files};
use crate::proof::Seed;

/// Leaves a checkpoint every so many entries, then hands the entries on.
pub(super) struct Checkpointer<F> {
    next: F,
    topic_id: String,
    last_sequence: u64,
    path: PathBuf,
    seed: Arc<Seed>,
}

impl<F> Checkpointer<F> {
    pub(super) fn new(next: F, topic_id: &str, sequence: u64, path: PathBuf, seed: Arc<Seed>) -> Self {
        Self { next, topic_id: topic_id.to_owned(), last_sequence: sequence, path, seed }
    }
}

impl<F: Follower> Follower for Checkpointer<F> {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        if let Some(Entry { sequence, running_hash, .. }) = entries.last()
            && *sequence >= self.last_sequence + limits::CHECKPOINT_ENTRIES
        {
            let head = Head { sequence: *sequence, running_hash: *running_hash };
            let checkpoint = Checkpoint::sign(&self.topic_id, head, clock::now(), &self.seed);
            // One that could not be written is made up for by the next; the ledger itself is durable.
            if write(&self.path, &checkpoint).is_ok() {
                self.last_sequence = *sequence;
            }
        }
        self.next.durable(entries)
    }
}

pub(super) fn write(path: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    let mut text = serde_json::to_vec(checkpoint).map_err(io::Error::other)?;
    text.push(b'\n');
    files::replace_private(path, &text)
}

/// The checkpoint in a file; nothing if there is none.
pub fn read_checkpoint(path: &Path) -> Result<Option<Checkpoint>, GatewayFault> {
    let io = |why: String| GatewayFault::Io { path: path.to_owned(), why };
    match files::read_bounded(path, 64 * 1024) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| io(format!("is not a checkpoint: {error}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(error.to_string())),
    }
}
