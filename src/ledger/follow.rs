//! Those who follow the log: the state file, the views, checkpoints.

use super::entries::Entry;

/// Somebody who follows the log: told of entries when they are durable, before any answer leaves.
pub trait Follower: Send {
    /// Takes the entries in. May ask for a notice to be recorded.
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice>;

    /// Nothing was appended for a moment: a good time to see whether all is as it was left. May ask for a notice to be
    /// recorded.
    fn idle(&mut self) -> Option<Notice> {
        None
    }
}

/// Something that a follower noticed and the ledger should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Somebody else changed the state file; it was put right again.
    StateReplaced,
}
