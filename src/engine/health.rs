//! Whether the ledger takes what is written to it, as of the last append or the last look at it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Shared by the writer, which knows, and the doors, which ask.
#[derive(Debug, Default)]
pub(super) struct Health {
    head: AtomicU64,
    failing: AtomicBool,
    fault: Mutex<Option<String>>,
}

impl Health {
    pub(super) fn at(head: u64) -> Self {
        Self { head: AtomicU64::new(head), ..Self::default() }
    }

    pub(super) fn set(&self, result: Result<(), String>) {
        // The usual case takes no lock: good before, good now.
        if result.is_ok() && !self.failing.load(Ordering::Acquire) {
            return;
        }
        self.failing.store(result.is_err(), Ordering::Release);
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = result.err();
    }

    pub(super) fn set_head(&self, sequence: u64) {
        self.head.store(sequence, Ordering::Release);
    }

    pub(super) fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    pub(super) fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
