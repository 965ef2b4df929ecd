//! Keeps the state file up with the ledger.
//!
//! While the document is small it is published with every batch, before anybody is answered. A large one would
//! cost every batch more than the batch itself, so it is published by a thread of its own, at most
//! [`limits::STATE_INTERVAL_MS`] behind, or nine times as long as a document takes that takes longer;
//! `ledger.sequence` in it tells how far it goes.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::publish::{Publisher, Replaced};
use super::snapshot::seal_snapshot;
use super::view::StateView;
use crate::ledger::{Entry, Follower, Notice};
use crate::limits;
use crate::proof::Seed;

/// Follows the log and publishes the state.
#[derive(Debug)]
pub struct StateFollower {
    shared: Arc<Shared>,
    /// Wakes the thread that publishes a large document; one wake-up is enough for any number of batches.
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Whoever lets go of it may give the workspace to somebody else: nothing is published after that.
impl Drop for StateFollower {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Shared {
    desk: Mutex<Desk>,
    /// Held while a document is written, never while entries are taken in: a large one must not hold up the log.
    press: Mutex<Press>,
}

#[derive(Debug)]
struct Desk {
    view: StateView,
    /// An entry that the view could not take in, or why the last publish failed; nothing if all is well.
    fault: Option<String>,
    replaced: bool,
}

#[derive(Debug)]
struct Press {
    publisher: Publisher,
    /// The document that was published last; its room is used again.
    text: String,
}

impl Shared {
    fn publish(&self) {
        self.publish_with(|_| {});
    }

    /// Publishes the view as it stands, and gives what is made of that very view.
    fn publish_with<T>(&self, make: impl FnOnce(&StateView) -> T) -> T {
        // In this order everywhere, so that a later document is never followed by an earlier one.
        let mut press = lock(&self.press);
        let Press { publisher, text } = &mut *press;
        text.clear();
        let desk = lock(&self.desk);
        desk.view.render_into(text);
        let made = make(&desk.view);
        drop(desk);
        let published = publisher.publish(text);
        let mut desk = lock(&self.desk);
        match published {
            Ok(replaced) => {
                desk.fault = None;
                desk.replaced |= replaced == Replaced::Yes;
            }
            // The decision is durable all the same: the reply leaves, and readiness says what is wrong.
            Err(error) => desk.fault = Some(error.to_string()),
        }
        made
    }

    /// What is to be recorded, once.
    fn noticed(&self) -> Option<Notice> {
        std::mem::take(&mut lock(&self.desk).replaced).then_some(Notice::StateReplaced)
    }
}

/// A thread that panicked while it held something left it whole: entries are taken in one by one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StateFollower {
    /// Starts to follow from `view` on, and publishes it.
    pub fn start(view: StateView, publisher: Publisher) -> io::Result<Self> {
        let desk = Mutex::new(Desk { view, fault: None, replaced: false });
        let press = Mutex::new(Press { publisher, text: String::new() });
        let shared = Arc::new(Shared { desk, press });
        shared.publish();
        let (wake, wakes) = sync_channel(1);
        let large = shared.clone();
        let thread = std::thread::Builder::new()
            .name("state-publisher".into())
            .spawn(move || publish_large(&large, &wakes))?;
        Ok(Self { shared, wake: Some(wake), thread: Some(thread) })
    }

    /// For those who want to know how it goes.
    pub fn watch(&self) -> StateWatch {
        StateWatch { shared: self.shared.clone() }
    }
}

/// The state as it stands, for those who show it.
#[derive(Debug, Clone)]
pub struct StateWatch {
    shared: Arc<Shared>,
}

impl StateWatch {
    /// The document, as the file has it or is about to.
    pub fn document(&self) -> String {
        lock(&self.shared.desk).view.render()
    }

    /// The view as it stands, to start from next time; nothing if it is too large to be worth it. Published first:
    /// a file that is behind its snapshot could not be measured from there.
    pub fn snapshot(&self, topic_id: &str, seed: &Seed) -> Option<String> {
        self.shared.publish_with(|view| seal_snapshot(view, topic_id, seed))
    }

    /// Why the file is not what it should be, if it is not.
    pub fn fault(&self) -> Option<String> {
        lock(&self.shared.desk).fault.clone()
    }
}

impl Follower for StateFollower {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        let mut desk = lock(&self.shared.desk);
        for entry in entries {
            if let Err(fault) = desk.view.apply(entry) {
                desk.fault = Some(fault.to_string());
                return None;
            }
        }
        let is_small = desk.view.bytes() <= limits::STATE_BYTES_EACH_BATCH;
        drop(desk);
        if is_small {
            self.shared.publish();
        } else if let Some(wake) = &self.wake {
            // Full means that it is awake already.
            let _ = wake.try_send(());
        }
        self.shared.noticed()
    }

    fn idle(&mut self) -> Option<Notice> {
        // Whoever publishes at this very moment sees for himself.
        let is_own = self.shared.press.try_lock().map_or(true, |press| press.publisher.is_own());
        if !is_own {
            self.shared.publish();
        }
        self.shared.noticed()
    }
}

/// Publishes whenever something changed, then rests: so it is never further behind than one rest.
fn publish_large(shared: &Shared, wakes: &Receiver<()>) {
    while wakes.recv().is_ok() {
        let began = Instant::now();
        shared.publish();
        std::thread::sleep(rest_after(began.elapsed()));
    }
}

/// How long to rest after a document that took so long. One of many megabytes would otherwise take a processor of its
/// own from those who decide: it takes at most a tenth of one.
fn rest_after(took: Duration) -> Duration {
    Duration::from_millis(limits::STATE_INTERVAL_MS).max(took * limits::STATE_RESTS_PER_PUBLISH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_takes_long_is_published_less_often() {
        let check = |took_ms, rest_ms| {
            assert_eq!(rest_after(Duration::from_millis(took_ms)), Duration::from_millis(rest_ms));
        };
        check(0, limits::STATE_INTERVAL_MS);
        check(5, limits::STATE_INTERVAL_MS);
        check(40, 360);
    }
}
