//! The nonces of signed requests where gateways share a ledger: what one has taken, no other takes.
//!
//! One thread writes them to the shared tables, all that wait at once, so that many signed requests cost little more than
//! one. It waits for a server; who asks only waits for the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Sharing;
use crate::ledger::postgres::Database;
use crate::limits;

/// Half of a digest of key and nonce.
type Mark = [u8; 16];

/// The way to the nonces of all gateways.
#[derive(Debug)]
pub struct SharedNonces {
    line: Sender<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    mark: Mark,
    answer: oneshot::Sender<Option<bool>>,
}

impl SharedNonces {
    /// Ends when it is dropped.
    pub fn start(sharing: &Sharing) -> io::Result<Self> {
        let (line, waiting) = channel();
        let database = sharing.database().clone();
        std::thread::Builder::new().name("nonces".into()).spawn(move || keep(&database, &waiting))?;
        Ok(Self { line })
    }

    /// Has nobody spent this before? Nothing if nobody could be asked.
    pub async fn spend(&self, mark: Mark) -> Option<bool> {
        let (answer, answered) = oneshot::channel();
        self.line.send(Waiting { mark, answer }).ok()?;
        answered.await.ok().flatten()
    }
}

fn keep(database: &Database, waiting: &Receiver<Waiting>) {
    const EVERY: Duration = Duration::from_secs(limits::PG_NONCES_DROPPED_S);
    let mut dropped: Option<Instant> = None;
    loop {
        match waiting.recv_timeout(EVERY) {
            Ok(first) => spend(database, first, waiting),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if dropped.is_none_or(|dropped| dropped.elapsed() >= EVERY) {
            // What could not be dropped now is dropped later.
            let _ = database.forget_nonces(Duration::from_secs(limits::PG_NONCES_KEPT_S));
            dropped = Some(Instant::now());
        }
    }
}

/// One statement for all that wait.
fn spend(database: &Database, first: Waiting, waiting: &Receiver<Waiting>) {
    let mut askers: BTreeMap<Mark, Vec<oneshot::Sender<Option<bool>>>> = BTreeMap::new();
    let more = std::iter::from_fn(|| waiting.try_recv().ok());
    for Waiting { mark, answer } in std::iter::once(first).chain(more).take(limits::PG_NONCES_AT_ONCE_MAX) {
        askers.entry(mark).or_default().push(answer);
    }
    let marks: BTreeSet<Mark> = askers.keys().copied().collect();
    let new = database.spend_nonces(&marks).ok();
    for (mark, answers) in askers {
        let mut is_new = new.as_ref().map(|new| new.contains(&mark));
        for answer in answers {
            let _ = answer.send(is_new);
            // Of several that ask at once, one has it.
            is_new = is_new.map(|_| false);
        }
    }
}
