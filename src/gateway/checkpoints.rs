//! The newest checkpoint, kept beside the ledger.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::GatewayFault;
use crate::ledger::{Checkpoint, Entry, Follower, Head, Notice, verify};
use crate::limits;
use crate::os::{clock, files};
use crate::proof::Seed;

/// Leaves a checkpoint with the first entries and then every so many, then hands the entries on. The first one says whose
/// ledger it is: from then on nobody can put another key in the place of the gateway's without a word.
pub(super) struct Checkpointer<F> {
    next: F,
    topic_id: String,
    last: Option<u64>,
    path: PathBuf,
    seed: Arc<Seed>,
}

impl<F> Checkpointer<F> {
    /// `last` is where the checkpoint that is there already stands.
    pub(super) fn new(next: F, topic_id: &str, last: Option<Head>, path: PathBuf, seed: Arc<Seed>) -> Self {
        let last = last.map(|head| head.sequence);
        Self { next, topic_id: topic_id.to_owned(), last, path, seed }
    }
}

impl<F: Follower> Follower for Checkpointer<F> {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        if let Some(Entry { sequence, running_hash, .. }) = entries.last()
            && self.last.is_none_or(|last| *sequence >= last + limits::CHECKPOINT_ENTRIES)
        {
            let head = Head { sequence: *sequence, running_hash: *running_hash };
            let checkpoint = Checkpoint::sign(&self.topic_id, head, clock::now(), &self.seed);
            // One that could not be written is made up for by the next; the ledger itself is durable.
            if write(&self.path, &checkpoint).is_ok() {
                self.last = Some(*sequence);
            }
        }
        self.next.durable(entries)
    }

    fn idle(&mut self) -> Option<Notice> {
        self.next.idle()
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
            .map_err(|error| {
                io(format!(
                    "is not a checkpoint ({error}); put the right one back from a backup, or move this one away: then it \
                     cannot show that the ledger was cut"
                ))
            }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(error.to_string())),
    }
}

/// A checkpoint that another gateway signed, and the public key it can be verified with: nobody here has that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OtherCheckpoint {
    pub checkpoint: Checkpoint,
    pub public_key: String,
}

impl OtherCheckpoint {
    /// The same for whoever computes the ledger again.
    pub fn verified(&self) -> Result<verify::Checkpoint, verify::Finding> {
        let text = serde_json::to_vec(&self.checkpoint).unwrap_or_default();
        let claimed = verify::Checkpoint::parse(&text)?;
        let mut keys = verify::PublicKeys::default();
        // A key that is none verifies nothing, and that is what will be said.
        let _ = keys.add(claimed.key_id(), &self.public_key);
        claimed.verify(&keys)
    }
}

/// What other gateways signed; nothing in most workspaces.
pub fn read_other_checkpoints(path: &Path) -> Result<Vec<OtherCheckpoint>, GatewayFault> {
    let io = |why: String| GatewayFault::Io { path: path.to_owned(), why };
    match files::read_bounded(path, limits::OTHER_CHECKPOINTS_BYTES_MAX) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| io(format!("is not a list of checkpoints: {error}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io(error.to_string())),
    }
}

/// Keeps these in the place of those that were there.
pub(super) fn write_others(path: &Path, others: &[OtherCheckpoint]) -> io::Result<()> {
    if others.is_empty() && !path.exists() {
        return Ok(());
    }
    let mut text = serde_json::to_vec_pretty(others).map_err(io::Error::other)?;
    text.push(b'\n');
    files::replace_private(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::RunningHash;

    const TOPIC: &str = "gw_test";

    struct Nobody;

    impl Follower for Nobody {
        fn durable(&mut self, _: &[Entry]) -> Option<Notice> {
            None
        }
    }

    /// A gateway starts, sees one batch that ends with this entry, and is killed; where the checkpoint stands then.
    fn live_and_be_killed(path: &Path, seed: &Arc<Seed>, sequence: u64) -> Option<u64> {
        let stands = || {
            let checkpoint = read_checkpoint(path).unwrap();
            checkpoint.map(|checkpoint| checkpoint.verify(&seed.public_hex()).unwrap())
        };
        let entry = Entry {
            sequence,
            consensus_timestamp: String::new(),
            running_hash: RunningHash::genesis(TOPIC),
            wire: String::new(),
        };
        Checkpointer::new(Nobody, TOPIC, stands(), path.to_owned(), seed.clone()).durable(&[entry]);
        stands().map(|head| head.sequence)
    }

    #[test]
    fn short_lives_do_not_put_the_checkpoint_off() {
        const EVERY: u64 = limits::CHECKPOINT_ENTRIES;
        let directory = tempfile::tempdir().unwrap();
        let (path, seed) = (directory.path().join("checkpoint"), Arc::new(Seed::from_bytes(&[7; 32])));
        let life = |sequence| live_and_be_killed(&path, &seed, sequence);
        assert_eq!(life(2), Some(2), "with the first entries");
        assert_eq!([life(EVERY / 2), life(EVERY + 1)], [Some(2); 2], "counted from the last one");
        assert_eq!(life(EVERY + 2), Some(EVERY + 2));
        assert_eq!([life(EVERY + 3), life(2 * EVERY + 1)], [Some(EVERY + 2); 2]);
        assert_eq!(life(2 * EVERY + 5), Some(2 * EVERY + 5));
    }
}
