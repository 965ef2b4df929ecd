//! What doors may look at without waiting for the sequencer, which may be waiting for a disk or a database itself.
//!
//! It is swapped as a whole: whoever looks has what the sequencer had at one moment.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::EngineFault;
use super::standing::Standing;

#[derive(Debug)]
pub(super) struct Shown {
    /// Does a changed policy set come into force with a person's yes only?
    pub(super) asks_first: bool,
    /// Held for no longer than it takes to copy a pointer.
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    standing: Arc<Standing>,
    differs: Option<Arc<EngineFault>>,
}

impl Shown {
    pub(super) fn new(standing: Arc<Standing>, asks_first: bool) -> Self {
        Self { asks_first, seen: Mutex::new(Seen { standing, differs: None }) }
    }

    /// What is in force by the ledger, with what is being written.
    pub(super) fn standing(&self) -> Arc<Standing> {
        self.lock().standing.clone()
    }

    /// Why nothing is decided by the rules that are here, if nothing is.
    pub(super) fn differs(&self) -> Option<Arc<EngineFault>> {
        self.lock().differs.clone()
    }

    pub(super) fn set_standing(&self, standing: Arc<Standing>) {
        // The one before may be the last of its kind: it is dropped when nobody is kept waiting by that.
        let before = std::mem::replace(&mut self.lock().standing, standing);
        drop(before);
    }

    pub(super) fn set_differs(&self, differs: Option<EngineFault>) {
        self.lock().differs = differs.map(Arc::new);
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
