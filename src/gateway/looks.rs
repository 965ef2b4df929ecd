//! Looks at what gateways share, and those who wait for the next one.
//!
//! There are a few in a second, whoever waits: a stranger who makes tokens up keeps no database busy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::limits;

#[derive(Debug)]
pub(super) struct Looks {
    begun: AtomicU64,
    /// The last look that was answered.
    answered: watch::Sender<u64>,
}

impl Default for Looks {
    fn default() -> Self {
        Self { begun: AtomicU64::new(0), answered: watch::Sender::new(0) }
    }
}

impl Looks {
    /// Begins a look, one at a time; its number.
    pub(super) fn begin(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// It was answered, and what it found is in force.
    pub(super) fn answered(&self, look: u64) {
        self.answered.send_modify(|last| *last = look);
    }

    /// Waits for the answer to one that begins after this. False if none comes in time.
    pub(super) async fn next(&self) -> bool {
        const PATIENCE: Duration = Duration::from_millis(limits::LOOKOUT_WAIT_MS);
        let begun = self.begun.load(Ordering::Acquire);
        let mut answered = self.answered.subscribe();
        let next = answered.wait_for(|last| *last > begun);
        matches!(tokio::time::timeout(PATIENCE, next).await, Ok(Ok(_)))
    }
}
