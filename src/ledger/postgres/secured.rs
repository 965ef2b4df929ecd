//! What is known to be on a synchronous standby.
//!
//! An entry can be seen before a standby has it: the session that waited for the standby was ended, or the server was
//! restarted meanwhile. A commit that comes later waits for everything before it, so one of our own says what is safe.

use std::time::{Duration, Instant};

use crate::ledger::Secure;
use crate::limits;

#[derive(Debug, Default)]
pub(super) struct Secured {
    /// Does a commit wait for a standby, as of the last look? Where it does not, what can be seen is as safe as it gets.
    pub(super) is_asked_for: bool,
    /// The last entry before which a commit of ours has ended well.
    through: u64,
    /// When one was last tried.
    tried: Option<Instant>,
}

impl Secured {
    /// A commit of ours has ended well when this entry was there.
    pub(super) fn has(&mut self, sequence: u64) {
        self.through = self.through.max(sequence);
        self.tried();
    }

    pub(super) fn tried(&mut self) {
        self.tried = Some(Instant::now());
    }

    /// What is known without asking; of an entry, or, without one, by what was tried lately.
    pub(super) fn known(&self, through: Option<u64>) -> Option<Secure> {
        const OFTEN: Duration = Duration::from_millis(limits::PG_PROVE_MS);
        let is_safe = through.is_some_and(|sequence| sequence <= self.through);
        let is_recent = through.is_none() && self.tried.is_some_and(|tried| tried.elapsed() < OFTEN);
        if !self.is_asked_for {
            return Some(Secure::Now);
        }
        (is_safe || is_recent).then_some(Secure::Before)
    }
}
