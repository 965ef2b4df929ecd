//! Keeps the state file up with the ledger.
//!
//! While the document is small it is published with every batch, before anybody is answered. A large one would
//! cost every batch more than the batch itself, so it is published by a thread of its own, at most
//! [`limits::STATE_INTERVAL_MS`] behind, or nine times as long as a document takes that takes longer;
//! `ledger.sequence` in it tells how far it goes.
//!
//! Entries are taken in one after the other. Should one be missing in what is told, it is read from the ledger: the state
//! does not stay behind for ever because of a word that was lost.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::publish::{Publisher, Replaced};
use super::snapshot::seal_snapshot;
use super::view::{StateFault, StateView};
use crate::ledger::{Entry, Follower, Head, Notice, Source};
use crate::limits;
use crate::proof::Seed;

/// Follows the log and publishes the state.
#[derive(Debug)]
pub struct StateFollower {
    shared: Arc<Shared>,
    /// Where entries are read that were not told.
    ledger: Source,
    /// The last entry that was told.
    told: u64,
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
    press: Mutex<Publisher>,
}

#[derive(Debug)]
struct Desk {
    view: StateView,
    /// Why entries that are durable are not in the view, if some are not. Publishing the view does not make that well.
    stuck: Option<String>,
    /// Why the view could not be published the last time.
    unpublished: Option<String>,
    replaced: bool,
}

impl Desk {
    /// How large the document is that could not be published the last time, if it could not.
    fn unpublished_bytes(&self) -> Option<usize> {
        self.unpublished.as_ref().map(|_| self.view.bytes())
    }

    /// Takes in those that it does not have yet. Unless they follow on what it has, it takes none.
    fn take_in(&mut self, entries: &[Entry]) -> Result<(), StateFault> {
        let has = self.view.head().sequence;
        entries.iter().filter(|entry| entry.sequence > has).try_for_each(|entry| self.view.apply(entry))
    }
}

impl Shared {
    fn publish(&self) {
        self.publish_with(|_| None::<()>);
    }

    /// Publishes the view as it stands, and gives what is made of that very view.
    fn publish_with<T>(&self, make: impl FnOnce(&StateView) -> Option<T>) -> Option<T> {
        // In this order everywhere, so that a later document is never followed by an earlier one.
        let mut press = lock(&self.press);
        let mut made = None;
        let published = press.publish(|text| {
            let desk = lock(&self.desk);
            desk.view.render_into(text);
            made = make(&desk.view);
        });
        let mut desk = lock(&self.desk);
        match published {
            Ok(replaced) => {
                desk.unpublished = None;
                desk.replaced |= replaced == Replaced::Yes;
            }
            // The decision is durable all the same: the reply leaves, and readiness says what is wrong.
            Err(error) => desk.unpublished = Some(error.to_string()),
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
    /// Starts to follow `ledger` from `view` on, and publishes it.
    pub fn start(view: StateView, publisher: Publisher, ledger: Source) -> io::Result<Self> {
        let told = view.head().sequence;
        let desk = Mutex::new(Desk { view, stuck: None, unpublished: None, replaced: false });
        let shared = Arc::new(Shared { desk, press: Mutex::new(publisher) });
        shared.publish();
        let (wake, wakes) = sync_channel(1);
        let large = shared.clone();
        let thread = std::thread::Builder::new()
            .name("state-publisher".into())
            .spawn(move || publish_large(&large, &wakes))?;
        Ok(Self { shared, ledger, told, wake: Some(wake), thread: Some(thread) })
    }

    /// Takes in what was told, and has what came of it published.
    fn take(&mut self, entries: &[Entry]) {
        match self.take_in(entries) {
            Ok(bytes) => self.publish(bytes),
            // It is tried again with the next entries, and when there are none.
            Err(why) => lock(&self.shared.desk).stuck = Some(why),
        }
    }

    /// Has a document of this size published.
    fn publish(&self, bytes: usize) {
        if bytes <= limits::STATE_BYTES_EACH_BATCH {
            self.shared.publish();
        } else if let Some(wake) = &self.wake {
            // Full means that it is awake already.
            let _ = wake.try_send(());
        }
    }

    /// How large the document has become.
    fn take_in(&mut self, entries: &[Entry]) -> Result<usize, String> {
        self.told = entries.last().map_or(self.told, |last| self.told.max(last.sequence));
        let mut desk = lock(&self.shared.desk);
        if entries.first().is_some_and(|first| first.sequence <= desk.view.head().sequence + 1) {
            desk.take_in(entries).map_err(|fault| fault.to_string())?;
        } else {
            // Whoever wants to see the document does not wait for the ledger to be read.
            drop(desk);
            self.catch_up()?;
            desk = lock(&self.shared.desk);
        }
        desk.stuck = None;
        Ok(desk.view.bytes())
    }

    /// Reads from the ledger what is missing of what was told.
    fn catch_up(&self) -> Result<(), String> {
        let next = lock(&self.shared.desk).view.head().sequence + 1;
        for entry in self.ledger.entries(next, self.told).map_err(|fault| fault.to_string())? {
            let entry = entry.map_err(|fault| fault.to_string())?;
            let taken = lock(&self.shared.desk).take_in(std::slice::from_ref(&entry));
            taken.map_err(|fault| fault.to_string())?;
        }
        let has = lock(&self.shared.desk).view.head().sequence;
        if has < self.told { Err(format!("the ledger does not give entry {}", has + 1)) } else { Ok(()) }
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

    /// The last entry that the view has taken in.
    pub fn head(&self) -> Head {
        lock(&self.shared.desk).view.head()
    }

    /// The view as it stands, to start from next time; nothing if it is too large to be worth it. Published first:
    /// a file that is behind its snapshot could not be measured from there.
    pub fn snapshot(&self, topic_id: &str, seed: &Seed) -> Option<String> {
        self.shared.publish_with(|view| seal_snapshot(view, topic_id, seed))
    }

    /// Why the file is not what it should be, if it is not.
    pub fn fault(&self) -> Option<String> {
        let desk = lock(&self.shared.desk);
        desk.stuck.as_ref().or(desk.unpublished.as_ref()).cloned()
    }
}

impl Follower for StateFollower {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        self.take(entries);
        self.shared.noticed()
    }

    fn idle(&mut self) -> Option<Notice> {
        let is_behind = lock(&self.shared.desk).view.head().sequence < self.told;
        if is_behind {
            self.take(&[]);
        }
        // The disk may have room again, and no entry need come for a long time.
        let unpublished = lock(&self.shared.desk).unpublished_bytes();
        if let Some(bytes) = unpublished {
            self.publish(bytes);
        }
        // Whoever publishes at this very moment sees for himself.
        let is_own = self.shared.press.try_lock().map_or(true, |mut press| press.is_own());
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
