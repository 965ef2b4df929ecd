//! Keeps the state file up with the ledger.
//!
//! While the document is small it is published with every batch, before anybody is answered. A large one would
//! cost every batch more than the batch itself, so it is published by a thread of its own, at most
//! [`limits::STATE_INTERVAL_MS`] behind; `ledger.sequence` in it tells how far it goes.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::publish::{Publisher, Replaced};
use super::view::StateView;
use crate::ledger::{Entry, Follower, Notice};
use crate::limits;

/// Follows the log and publishes the state.
#[derive(Debug)]
pub struct StateFollower {
    desk: Arc<Mutex<Desk>>,
    /// Wakes the thread that publishes a large document; one wake-up is enough for any number of batches.
    wake: SyncSender<()>,
}

#[derive(Debug)]
struct Desk {
    view: StateView,
    publisher: Publisher,
    /// Why the last publish failed; nothing if it did not.
    fault: Option<String>,
    replaced: bool,
}

impl Desk {
    fn publish(&mut self) {
        let text = self.view.render();
        match self.publisher.publish(&text) {
            Ok(replaced) => {
                self.fault = None;
                self.replaced |= replaced == Replaced::Yes;
            }
            // The decision is durable all the same: the reply leaves, and readiness says what is wrong.
            Err(error) => self.fault = Some(error.to_string()),
        }
    }
}

/// A thread that panicked while it held the desk left a view that is whole: entries are taken in one by one.
fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StateFollower {
    /// Starts to follow from `view` on, and publishes it.
    pub fn start(view: StateView, publisher: Publisher) -> io::Result<Self> {
        let mut desk = Desk { view, publisher, fault: None, replaced: false };
        desk.publish();
        let desk = Arc::new(Mutex::new(desk));
        let (wake, wakes) = sync_channel(1);
        let shared = desk.clone();
        std::thread::Builder::new()
            .name("state-publisher".into())
            .spawn(move || publish_large(&shared, &wakes))?;
        Ok(Self { desk, wake })
    }

    /// For those who want to know how it goes.
    pub fn watch(&self) -> StateWatch {
        StateWatch { desk: self.desk.clone() }
    }
}

/// The state as it stands, for those who show it.
#[derive(Debug, Clone)]
pub struct StateWatch {
    desk: Arc<Mutex<Desk>>,
}

impl StateWatch {
    /// The document, as the file has it or is about to.
    pub fn document(&self) -> String {
        lock(&self.desk).view.render()
    }

    /// Why the file is not what it should be, if it is not.
    pub fn fault(&self) -> Option<String> {
        lock(&self.desk).fault.clone()
    }
}

impl Follower for StateFollower {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        let mut desk = lock(&self.desk);
        for entry in entries {
            if let Err(fault) = desk.view.apply(entry) {
                desk.fault = Some(fault.to_string());
                return None;
            }
        }
        if desk.view.bytes() <= limits::STATE_BYTES_EACH_BATCH {
            desk.publish();
        } else {
            // Full means that it is awake already.
            let _ = self.wake.try_send(());
        }
        std::mem::take(&mut desk.replaced).then_some(Notice::StateReplaced)
    }
}

/// Publishes whenever something changed, then rests: so it is never further behind than one rest.
fn publish_large(desk: &Mutex<Desk>, wakes: &Receiver<()>) {
    while wakes.recv().is_ok() {
        lock(desk).publish();
        std::thread::sleep(Duration::from_millis(limits::STATE_INTERVAL_MS));
    }
}
