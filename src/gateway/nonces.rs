//! The nonces of signed requests, of which each counts once: also after a restart, and among gateways that share a
//! ledger.
//!
//! `until.rs` has the file that outlives the process. Where a ledger is shared, one thread writes the nonces to the shared
//! tables, all that wait at once, so that many signed requests cost little more than
//! one. It waits for a server; who asks only waits for the answer.

mod until;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Gateway, Sharing};
use crate::callers::{Caller, Nonces, RequestFault, Verified};
use crate::ledger::postgres::Database;
use crate::limits;
use crate::os::clock;
use crate::timestamp::Timestamp;
use until::Until;

/// Half of a digest of key and nonce.
type Mark = [u8; 16];

/// Takes signed requests, each once.
#[derive(Debug)]
pub struct NonceKeeper {
    here: Nonces,
    until: Until,
    /// Those that other gateways of the ledger have taken; nothing where there are none.
    shared: Option<SharedNonces>,
}

/// Why a signed request is not taken.
#[derive(Debug)]
pub enum SpendFault {
    Refused(RequestFault),
    /// That it was taken could not be made durable.
    NotDurable,
    /// The others could not be asked.
    NobodyToAsk,
}

impl NonceKeeper {
    /// Goes on where the process before this one may have ended.
    pub fn start(gateway: &Gateway) -> io::Result<Self> {
        let now = clock::now();
        let (until, before) = Until::start(gateway.files().signed_until(), gateway.was_served(), now)?;
        let shared = gateway.sharing().map(SharedNonces::start).transpose()?;
        Ok(Self { here: Nonces::since(now, before), until, shared })
    }

    /// Uses up a verified request's nonce, and says who asks: once it is certain that nobody else can use it again.
    pub async fn spend(&self, request: Verified<'_>, now: Timestamp) -> Result<Caller, SpendFault> {
        let mark = request.mark();
        let (key_id, signed_at) = request.signed();
        let key_id = key_id.to_owned();
        let caller = self.here.spend(request, now).map_err(SpendFault::Refused)?.clone();
        if !self.until.reach(&key_id, signed_at).await {
            return Err(SpendFault::NotDurable);
        }
        let Some(shared) = &self.shared else { return Ok(caller) };
        match shared.spend(mark).await {
            Some(true) => Ok(caller),
            Some(false) => Err(SpendFault::Refused(RequestFault::NonceReused)),
            None => Err(SpendFault::NobodyToAsk),
        }
    }

    /// Until when signed requests are refused because the clock was ahead.
    pub fn shut_until(&self) -> Option<Timestamp> {
        self.here.shut_until(clock::now())
    }

    /// Takes no more, and leaves behind how far it has come.
    pub fn finish(&self) {
        self.until.finish();
    }
}

/// The way to the nonces of all gateways.
#[derive(Debug)]
struct SharedNonces {
    line: Sender<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    mark: Mark,
    answer: oneshot::Sender<Option<bool>>,
}

impl SharedNonces {
    /// Ends when it is dropped.
    fn start(sharing: &Sharing) -> io::Result<Self> {
        let (line, waiting) = channel();
        let database = sharing.database().clone();
        std::thread::Builder::new().name("nonces".into()).spawn(move || keep(&database, &waiting))?;
        Ok(Self { line })
    }

    /// Has nobody spent this before? Nothing if nobody could be asked.
    async fn spend(&self, mark: Mark) -> Option<bool> {
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
