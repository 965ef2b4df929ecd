//! The engine: decides once, in order, durably. The only writer.
//!
//! Pure verdicts come in from many threads; one sequencer decides what may happen only once (claims) in the
//! order in which it takes them, turns each decision into Wire events, and one writer makes them durable a
//! batch at a time. While a batch is being synced the next one is prepared; if it fails, both are dropped with
//! all they claimed, and nobody is told *allowed*.
//!
//! [`EngineHandle`] is what doors hold. Deliberately absent: HTTP, files other than the log, and policy of its
//! own: what a claim means is in `claims.rs`, what a gate means is in `gates/`.

mod candidate;
mod claims;
mod decide;
mod facts;
mod record;
mod replay;
mod sequencer;
mod standing;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub use candidate::{Candidate, Ruling};
pub use record::{Decided, LedgerPlace};

use crate::ledger::{Entry, Follower, Log, Notice};
use crate::limits;
use crate::policy::PolicySet;
use crate::proof::Keyring;
use crate::timestamp::Timestamp;
use sequencer::{Message, Sequencer};

/// Why the engine cannot answer. Nothing was allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineFault {
    /// Too many decisions are waiting; try again shortly.
    Busy,
    /// The decision could not be made durable.
    NotDurable(String),
    /// The engine has stopped.
    Stopped,
    /// The ledger that is already there cannot be understood.
    BadLedger(String),
}

impl std::fmt::Display for EngineFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Busy => write!(f, "too many decisions are waiting"),
            Self::NotDurable(why) => write!(f, "the decision could not be made durable: {why}"),
            Self::Stopped => write!(f, "the engine has stopped"),
            Self::BadLedger(why) => write!(f, "the ledger cannot be understood: {why}"),
        }
    }
}

impl std::error::Error for EngineFault {}

/// Called once with the decision, when it is durable, or with why there is none.
pub type Reply = Box<dyn FnOnce(Result<Arc<Decided>, EngineFault>) + Send>;

/// What the engine takes from the world: time, and randomness for event ids.
pub trait World: Send {
    fn now(&self) -> Timestamp;
    fn random(&mut self) -> [u8; 10];
}

/// What an engine is started with.
pub struct Setup {
    pub log: Box<dyn Log>,
    /// The time of the log's last entry.
    pub last_timestamp: Option<Timestamp>,
    pub world: Box<dyn World>,
    pub follower: Box<dyn Follower>,
    /// Decisions that may wait; [`limits::WAITING_DECISIONS_MAX`] unless a test wants less.
    pub waiting_max: usize,
}

impl Setup {
    pub fn new(log: Box<dyn Log>, last_timestamp: Option<Timestamp>, world: Box<dyn World>) -> Self {
        let waiting_max = limits::WAITING_DECISIONS_MAX;
        Self { log, last_timestamp, world, follower: Box::new(Nobody), waiting_max }
    }

    /// Has somebody follow the log.
    #[must_use]
    pub fn followed_by(mut self, follower: Box<dyn Follower>) -> Self {
        self.follower = follower;
        self
    }
}

/// Nobody follows.
struct Nobody;

impl Follower for Nobody {
    fn durable(&mut self, _entries: &[Entry]) -> Option<Notice> {
        None
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Setup({})", self.log.topic_id())
    }
}

/// A running engine, as doors hold it.
#[derive(Debug, Clone)]
pub struct EngineHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    inbox: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    waiting_max: usize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl EngineHandle {
    /// Starts an engine on a log whose entries so far are `history`.
    pub fn start(
        setup: Setup,
        history: impl Iterator<Item = Result<Entry, EngineFault>>,
    ) -> Result<Self, EngineFault> {
        let Setup { log, last_timestamp, world, follower, waiting_max } = setup;
        let (inbox, messages) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let sequencer = Sequencer::rebuild(log.topic_id(), log.head(), last_timestamp, history, world)?;
        let threads = sequencer::spawn(sequencer, log, follower, inbox.clone(), messages);
        let threads = Mutex::new(threads.map_err(|error| EngineFault::NotDurable(error.to_string()))?);
        let shared = Shared { inbox, waiting, waiting_max, threads };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Puts a candidate in line. Fails at once when the line is too long, so that memory stays bounded.
    pub fn submit(&self, candidate: Candidate, reply: Reply) -> Result<(), EngineFault> {
        let shared = &self.shared;
        if shared.waiting.fetch_add(1, Ordering::AcqRel) >= shared.waiting_max {
            shared.waiting.fetch_sub(1, Ordering::AcqRel);
            return Err(EngineFault::Busy);
        }
        let waiting = shared.waiting.clone();
        let reply: Reply = Box::new(move |result| {
            waiting.fetch_sub(1, Ordering::AcqRel);
            reply(result);
        });
        let message = Message::Candidate(Box::new(candidate), reply);
        shared.inbox.send(message).map_err(|_| EngineFault::Stopped)
    }

    /// Puts a candidate in line and waits for its decision.
    pub fn submit_and_wait(&self, candidate: Candidate) -> Result<Arc<Decided>, EngineFault> {
        let (sender, receiver) = channel();
        // A receiver that has gone away was told `Stopped`; there is nobody left to tell.
        self.submit(candidate, Box::new(move |result| drop(sender.send(result))))?;
        receiver.recv().unwrap_or(Err(EngineFault::Stopped))
    }

    /// Puts a policy set and keys in force: every candidate sequenced after this is judged by them. Recorded in
    /// the ledger.
    pub fn put_in_force(&self, policies: Arc<PolicySet>, keyring: Arc<Keyring>) -> Result<(), EngineFault> {
        let ruling = Ruling { policies, keyring, caller: None };
        self.shared.inbox.send(Message::InForce(ruling)).map_err(|_| EngineFault::Stopped)
    }

    /// Decides what is in line, makes it durable, and stops.
    pub fn stop(&self) {
        // Already stopped is as good.
        let _ = self.shared.inbox.send(Message::Stop);
        let threads = self.shared.threads.lock().map(|mut threads| std::mem::take(&mut *threads));
        for thread in threads.unwrap_or_default() {
            let _ = thread.join();
        }
    }
}

/// The last handle is gone: nobody can be answered any more, so the threads end.
impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.inbox.send(Message::Stop);
    }
}

#[cfg(test)]
mod tests;
