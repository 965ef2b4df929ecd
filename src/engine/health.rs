//! Whether the ledger takes what is written to it, as of the last append or the last look at it, and whether there is still
//! somebody to write it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::ledger::Keeping;
use crate::timestamp::Timestamp;

/// Shared by the writer, which knows, and the doors, which ask.
#[derive(Debug)]
pub(super) struct Health {
    head: AtomicU64,
    /// The time of the last entry, in nanoseconds since 1970; the smallest number if there is none.
    time: AtomicI64,
    failing: AtomicBool,
    fault: Mutex<Option<String>>,
    /// Why nothing more is decided, for now or for ever.
    stopped: Mutex<Option<String>>,
    /// When the end of a ledger that others append to was last seen.
    current: Option<Mutex<Instant>>,
    /// Since when the ledger has been asked something that it has not answered.
    asked: Mutex<Option<Instant>>,
    /// Why the engine has ended before it was told to.
    ended: OnceLock<String>,
    on_end: Mutex<OnEnd>,
}

/// Tells somebody why.
type Tell = Box<dyn FnOnce(&str) + Send>;

/// Who wants to hear of the end.
#[derive(Default)]
struct OnEnd(Option<Tell>);

impl std::fmt::Debug for OnEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OnEnd({})", self.0.is_some())
    }
}

impl Health {
    pub(super) fn at(head: u64, time: Option<Timestamp>, keeping: Keeping) -> Self {
        let time = time.and_then(Timestamp::unix_nanoseconds).unwrap_or(i64::MIN);
        Self {
            head: AtomicU64::new(head),
            time: AtomicI64::new(time),
            failing: AtomicBool::new(false),
            fault: Mutex::new(None),
            stopped: Mutex::new(None),
            current: (keeping == Keeping::Shared).then(|| Mutex::new(Instant::now())),
            asked: Mutex::default(),
            ended: OnceLock::new(),
            on_end: Mutex::default(),
        }
    }

    /// The engine has ended, and nobody told it to.
    pub(super) fn end(&self, why: &str) {
        // What comes later comes of what came first.
        if self.ended.set(why.to_owned()).is_ok() {
            // In this order: whoever asks to hear of it looks behind this lock whether it was too late.
            let tell = self.on_end.lock().unwrap_or_else(PoisonError::into_inner).0.take();
            if let Some(tell) = tell {
                tell(why);
            }
        }
    }

    /// Tells one when the engine has ended, or at once if it has already.
    pub(super) fn when_ended(&self, tell: Tell) {
        let mut on_end = self.on_end.lock().unwrap_or_else(PoisonError::into_inner);
        match self.ended.get() {
            Some(why) => {
                drop(on_end);
                tell(why);
            }
            None => on_end.0 = Some(tell),
        }
    }

    pub(super) fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// The end of the ledger was seen just now.
    pub(super) fn is_current(&self) {
        if let Some(current) = &self.current {
            *current.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    }

    /// It was seen then, and what there was has been taken in since.
    pub(super) fn was_current(&self, then: Instant) {
        if let Some(current) = &self.current {
            let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
            *current = then.max(*current);
        }
    }

    pub(super) fn behind_for(&self) -> Option<Duration> {
        let current = self.current.as_ref()?;
        Some(current.lock().unwrap_or_else(PoisonError::into_inner).elapsed())
    }

    /// The ledger is being asked, or has answered.
    pub(super) fn set_asked(&self, asked: Option<Instant>) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = asked;
    }

    /// For how long the ledger has not answered what it was asked; nothing if it is not being asked.
    pub(super) fn unanswered_for(&self) -> Option<Duration> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).map(|asked| asked.elapsed())
    }

    /// Nothing more is decided.
    pub(super) fn stop(&self, why: &str) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
    }

    /// It was only for a while.
    pub(super) fn go_on(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn set(&self, result: Result<(), String>) {
        // The usual case takes no lock: good before, good now.
        if result.is_ok() && !self.failing.load(Ordering::Acquire) {
            return;
        }
        self.failing.store(result.is_err(), Ordering::Release);
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = result.err();
    }

    pub(super) fn set_head(&self, sequence: u64, time: Timestamp) {
        self.head.fetch_max(sequence, Ordering::Release);
        if let Some(nanoseconds) = time.unix_nanoseconds() {
            self.time.fetch_max(nanoseconds, Ordering::Release);
        }
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        let time = self.time.load(Ordering::Acquire);
        (time != i64::MIN).then(|| Timestamp::from_unix_nanoseconds(time))
    }

    pub(super) fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    pub(super) fn fault(&self) -> Option<String> {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner).clone();
        stopped.or_else(|| self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}
