//! The replicated log: a ledger that several gateways share, in PostgreSQL.
//!
//! A hand: the only room that speaks to a database server. [`Database`] is the way to one, with a runtime of its own
//! behind it, so that it can be called from any thread that may wait; [`PostgresLog`] appends, [`PostgresTail`] follows,
//! and a [`Database`] reads back. `docs/decisions/016-postgresql.md` says why it is built like this.
//!
//! Deliberately absent: a leader, a lease, a clock. The running hash that a batch was built on is all the coordination
//! there is.

mod address;
mod attempt;
mod bell;
mod closing;
mod hints;
mod link;
mod log;
mod losses;
mod migrations;
mod nonces;
mod push;
mod reading;
mod replacing;
mod secured;
mod serving;
mod settling;
mod shared;
mod standing;
mod tail;
mod tls;
mod transaction;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

pub use log::PostgresLog;
pub(crate) use losses::Noted;
pub use losses::{Loss, Remembered, Settlement};
pub use push::{PushProgress, PushRow, PushSet, PushTeller, PushTurn};
pub use reading::StoredEntries;
pub use replacing::Taken;
pub use shared::{Shared, SharedFault, SharedKind};
pub use tail::PostgresTail;

use super::chain::Head;
use super::recovery::OpenFault;
use crate::limits;
use address::Address;
pub(crate) use address::anchored;
use link::Link;

/// A database with a ledger in it. Cheap to clone; the connections are shared.
#[derive(Clone)]
pub struct Database(Arc<Inner>);

struct Inner {
    address: Address,
    topic_id: String,
    /// Gone only while it is being dropped.
    runtime: Option<Runtime>,
    /// Connections that nobody uses just now.
    idle: Mutex<Vec<Link>>,
    /// As many may ask at a time.
    places: Semaphore,
}

/// Why a database did not do what it was asked.
#[derive(Debug)]
pub enum PostgresFault {
    /// The URL cannot be used.
    Address(String),
    /// The server could not be asked, or did not answer.
    Unreachable(String),
    /// The server could be asked, but what it would do is not good enough.
    Refused(String),
    /// The server said no.
    Server(String),
    /// Nobody has made a ledger in it.
    NoLedger,
    /// There is a row of that key already.
    Taken,
    /// What is in the tables is not what was put there.
    Damaged { sequence: u64 },
    /// An entry that somebody has seen is not there, or another one is.
    Gone { remembered: u64, found: u64 },
    /// What somebody remembers of the ledger is not in it.
    Open(OpenFault),
}

impl std::fmt::Display for PostgresFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(why) => write!(f, "the ledger's URL {why}"),
            Self::Unreachable(why) => write!(f, "the ledger's database could not be asked: {why}"),
            Self::Refused(why) => write!(f, "the ledger's database is not used: {why}"),
            Self::Server(why) => write!(f, "the ledger's database refused: {why}"),
            Self::NoLedger => write!(f, "the ledger's database is not used: it has no ledger"),
            Self::Taken => write!(f, "the ledger's database has that row already"),
            Self::Damaged { sequence: 0 } => write!(f, "the ledger's tables are not this ledger's"),
            Self::Damaged { sequence } => {
                write!(
                    f,
                    "the ledger is damaged at entry {sequence}: it does not follow from the one before it"
                )
            }
            Self::Gone { remembered, found } => f.write_str(&gone(*remembered, *found)),
            Self::Open(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for PostgresFault {}

/// What to say when the ledger has lost its end.
pub(super) fn gone(remembered: u64, found: u64) -> String {
    let what = if found < remembered {
        format!("the database ends at entry {found}, and entry {remembered} was there")
    } else {
        format!("entry {remembered} in the database is another one than was there")
    };
    format!(
        "{what}: it was put back from a backup, or a failover lost its end; nothing is written before `handoffd ledger settle` says which history counts"
    )
}

/// What a server said, with the causes that a driver hides behind its error.
fn said(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    if let Some(told) = error.as_db_error() {
        return with(format!("{} ({})", told.message(), told.code().code()), hints::for_answer(told.code()));
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    let hint = hints::for_words(&text);
    with(text, hint)
}

fn with(text: String, hint: Option<&str>) -> String {
    hint.map_or_else(|| text.clone(), |hint| format!("{text}; {hint}"))
}

/// The same fault with the place where it was met, which nobody knows who has only just named it.
fn met_at(address: &Address, fault: PostgresFault) -> PostgresFault {
    let at = |why: String| format!("{address}: {why}");
    match fault {
        PostgresFault::Unreachable(why) => PostgresFault::Unreachable(at(why)),
        PostgresFault::Refused(why) => PostgresFault::Refused(at(why)),
        PostgresFault::Server(why) => PostgresFault::Server(at(why)),
        fault => fault,
    }
}

impl Database {
    /// Connects, brings the tables up to date, and makes an empty ledger `new_topic_id`'s.
    pub fn open(url: &str, new_topic_id: &str) -> Result<Self, PostgresFault> {
        Self::connect(url, Some(new_topic_id))
    }

    /// Connects to a ledger that is there already.
    pub fn open_existing(url: &str) -> Result<Self, PostgresFault> {
        Self::connect(url, None)
    }

    fn connect(url: &str, new_topic_id: Option<&str>) -> Result<Self, PostgresFault> {
        let address = Address::read(url)?;
        // Connections are served behind the back of whoever waits, so one thread is enough.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("postgres")
            .enable_all()
            .build()
            .map_err(|error| PostgresFault::Unreachable(error.to_string()))?;
        let opened = runtime.block_on(async {
            let mut link = Link::make(&address).await?;
            let topic_id = migrations::migrate(&mut link, new_topic_id).await?;
            Ok::<_, PostgresFault>((link, topic_id))
        });
        let (link, topic_id) = opened.map_err(|fault| met_at(&address, fault))?;
        let (idle, places) = (Mutex::new(vec![link]), Semaphore::new(limits::PG_ASKING_LINKS_MAX));
        Ok(Self(Arc::new(Inner { address, topic_id, runtime: Some(runtime), idle, places })))
    }

    /// The ledger's own name; part of every hash.
    pub fn topic_id(&self) -> &str {
        &self.0.topic_id
    }

    /// Waits for a future, on whatever thread asks: never one that other futures run on.
    fn wait<T>(&self, future: impl Future<Output = Result<T, PostgresFault>>) -> Result<T, PostgresFault> {
        match &self.0.runtime {
            Some(runtime) => runtime.block_on(future),
            None => Err(PostgresFault::Unreachable("it was let go".to_owned())),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn link(&self) -> Result<Link, PostgresFault> {
        loop {
            let kept = self.idle().pop();
            match kept {
                Some(link) if link.is_closed() => {}
                Some(link) => return Ok(link),
                None => return Link::make(&self.0.address).await,
            }
        }
    }

    /// Keeps a connection for the next who needs one. One on which something failed is not given back.
    fn give_back(&self, link: Link) {
        let mut idle = self.idle();
        if idle.len() < limits::PG_ASKING_LINKS_MAX && !link.is_closed() {
            idle.push(link);
        }
    }

    /// Asks something that may be asked twice, when there is a connection for it: a server has few, and who reads must not
    /// take those of who appends. Whoever waits too long is told so.
    ///
    /// A connection that broke while it was idle is no fault of the question: it is asked once more, on a new one.
    fn ask<T>(
        &self,
        question: impl AsyncFn(&mut Link) -> Result<T, PostgresFault>,
    ) -> Result<T, PostgresFault> {
        const PATIENCE: Duration = Duration::from_millis(limits::PG_ANSWER_MS);
        self.wait(async {
            let place = tokio::time::timeout(PATIENCE, self.0.places.acquire()).await;
            let _place = place
                .ok()
                .and_then(Result::ok)
                .ok_or_else(|| PostgresFault::Unreachable("too many are asking it".to_owned()))?;
            self.ask_now(question).await
        })
    }

    /// The same for whoever appends, and does not wait behind those who read.
    fn ask_at_once<T>(
        &self,
        question: impl AsyncFn(&mut Link) -> Result<T, PostgresFault>,
    ) -> Result<T, PostgresFault> {
        self.wait(self.ask_now(question))
    }

    async fn ask_now<T>(
        &self,
        question: impl AsyncFn(&mut Link) -> Result<T, PostgresFault>,
    ) -> Result<T, PostgresFault> {
        let mut link = self.link().await?;
        let answer = match question(&mut link).await {
            Err(PostgresFault::Unreachable(_)) => {
                self.idle().clear();
                link = Link::make(&self.0.address).await?;
                question(&mut link).await
            }
            answer => answer,
        };
        if answer.is_ok() {
            self.give_back(link);
        }
        answer
    }
}

/// Where it is, without user and password.
impl std::fmt::Display for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.address)
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Database({})", self.0.address)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It may be dropped on a thread that futures run on, where waiting is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A pause between two tries.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(limits::PG_RETRY_MS)).await;
}

/// A number as a database keeps it.
fn stored(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

/// A head as a database returns it.
fn head_of(sequence: u64, running_hash: &[u8]) -> Result<Head, PostgresFault> {
    let running_hash =
        super::RunningHash::from_slice(running_hash).ok_or(PostgresFault::Damaged { sequence })?;
    Ok(Head { sequence, running_hash })
}
