//! Appending: one transaction a batch, on top of the running hash that it was built on.

use std::io;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::attempt::{Attempt, Turn, Ways, attempt};
use super::bell::PostgresBell;
use super::closing;
use super::link::Link;
use super::settling::{Pending, Settled, settle, settle_once};
use super::transaction::{Ended, HEALTH, Place, Rows};
use super::{Database, PostgresFault, link, reading, tail};
use crate::ledger::batch::Batch;
use crate::ledger::chain::Head;
use crate::ledger::closing::Closing;
use crate::ledger::entries::Entry;
use crate::ledger::recovery::OpenFault;
use crate::ledger::{AppendFault, Bell, Keeping, Log};
use crate::limits;
use crate::timestamp::Timestamp;

/// A log in a database.
#[derive(Debug)]
pub struct PostgresLog {
    database: Database,
    /// The connection for appends; none before the first and after a failed one.
    link: Option<Link>,
    /// The newest entry that this log has seen to be durable.
    head: Head,
    last_timestamp: Option<Timestamp>,
    /// A batch of which it is not known whether it was committed.
    pending: Option<Pending>,
    /// Said for ever once it was found.
    gone: Option<(Head, Head)>,
    /// Whoever copies into a ledger that is closed knows the mark.
    mark: Option<String>,
    settle_ms: u64,
    /// Does it keep its turn when it comes too late?
    keeps_turns: bool,
    /// Its turn to append, kept after it came too late.
    turn: Option<Turn>,
    /// Nobody came before its last append, and nobody is expected to come before the next one.
    is_alone: bool,
    /// Drives its own connection, on the thread that appends: an answer wakes nobody but who waits for it.
    runtime: Runtime,
}

impl PostgresLog {
    /// Opens the log of a database. `remembered` are entries that somebody has a record of: one that is not there
    /// means that the ledger has lost its end, or is another one.
    pub fn open(database: &Database, remembered: &[Head]) -> Result<Self, PostgresFault> {
        Self::open_marked(database, remembered, None)
    }

    pub(crate) fn open_marked(
        database: &Database,
        remembered: &[Head],
        mark: Option<&Closing>,
    ) -> Result<Self, PostgresFault> {
        let (head, last_timestamp) = database.head()?;
        for one in remembered {
            if one.sequence > head.sequence {
                let fault = OpenFault::Truncated { sequence: head.sequence, expected: one.sequence };
                return Err(PostgresFault::Open(fault));
            }
            if !database.has(*one)? {
                return Err(PostgresFault::Open(OpenFault::Different { sequence: one.sequence }));
            }
        }
        let database = database.clone();
        let mark = mark.map(Closing::to_text);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| PostgresFault::Unreachable(error.to_string()))?;
        Ok(Self {
            database,
            link: None,
            head,
            last_timestamp,
            pending: None,
            gone: None,
            mark,
            settle_ms: limits::PG_SETTLE_MS,
            keeps_turns: false,
            turn: None,
            is_alone: false,
            runtime,
        })
    }

    /// Gives up sooner, or later, on finding out what became of a batch.
    #[must_use]
    pub fn with_settle_ms(self, settle_ms: u64) -> Self {
        Self { settle_ms, ..self }
    }

    /// Keeps its turn when an append comes too late, so that the next one does not: without that, whoever has just
    /// appended would have the next batch ready first, again and again. Whoever uses this appends or passes at once.
    #[must_use]
    pub fn keeping_turns(self) -> Self {
        Self { keeps_turns: true, ..self }
    }

    /// The time of the last entry.
    pub fn last_timestamp(&self) -> Option<Timestamp> {
        self.last_timestamp
    }

    /// Appends several batches in one transaction; each stays a batch of its own.
    pub(crate) fn append_all(&mut self, after: Head, batches: &[Batch]) -> Result<(), AppendFault> {
        match self.append_once(after, batches)? {
            Settled::Landed => Ok(()),
            // It is known that nothing was committed, so it may be tried again; once.
            Settled::NotLanded if self.keeps_turns => match self.append_once(after, batches)? {
                Settled::Landed => Ok(()),
                Settled::NotLanded => Err(not_landed()),
            },
            Settled::NotLanded => Err(not_landed()),
        }
    }

    fn append_once(&mut self, after: Head, batches: &[Batch]) -> Result<Settled, AppendFault> {
        if let Some((after, found)) = self.gone {
            return Err(AppendFault::HeadGone { after, found });
        }
        let mut on = after;
        for batch in batches {
            if batch.after() != on {
                return Err(AppendFault::Conflict { head: self.head });
            }
            on = batch.head();
        }
        let Some(last) = batches.last() else { return Ok(Settled::Landed) };
        self.settle_pending()?;
        let rows = Rows::of(batches);
        let (topic_id, mark) = (self.database.topic_id().to_owned(), self.mark.clone());
        let place = Place { topic_id: &topic_id, after, head: last.head(), mark: mark.as_deref() };
        let (turn, kept) = (self.turn.take(), self.link.take());
        let was_late = turn.is_some();
        let outcome = self.runtime.block_on(attempt(
            &self.database,
            &rows,
            place,
            Ways {
                turn: turn.filter(|turn| !turn.link.is_closed()),
                kept: kept.filter(|link| !link.is_closed()),
                is_alone: self.is_alone,
            },
        ));
        self.is_alone = !was_late && matches!(outcome, Ok(Attempt::Committed(_)));
        let outcome = outcome.map(|attempt| match attempt {
            Attempt::Committed(link) => {
                self.link = Some(link);
                Ok(())
            }
            Attempt::TooLate(turn) => {
                let head = turn.last;
                self.turn = Some(turn);
                if !self.keeps_turns {
                    self.pass();
                }
                Err(Ended::Found(AppendFault::Conflict { head }))
            }
            Attempt::Ended(link, ended) => {
                self.link = link;
                Err(ended)
            }
        });
        match outcome {
            Ok(Ok(())) => self.reached(last),
            Ok(Err(Ended::Unknown(why))) => {
                self.pending = Some(Pending { head: last.head(), why });
                match self.settle_pending()? {
                    Some(Settled::Landed) => self.reached(last),
                    _ => return Ok(Settled::NotLanded),
                }
            }
            Ok(Err(Ended::Found(fault))) => return Err(self.found(fault)),
            Err(fault) => return Err(not_durable(fault)),
        }
        Ok(Settled::Landed)
    }

    fn reached(&mut self, last: &Batch) {
        self.head = last.head();
        self.last_timestamp = Some(last.last_timestamp());
    }

    /// Keeps what a failed append found.
    fn found(&mut self, fault: AppendFault) -> AppendFault {
        match fault {
            AppendFault::HeadGone { after, found } => self.gone = Some((after, found)),
            AppendFault::Conflict { head } => self.head = head,
            _ => {}
        }
        fault
    }

    /// Finds out about a batch whose commit was not answered. What is not settled in time stays pending.
    fn settle_pending(&mut self) -> Result<Option<Settled>, AppendFault> {
        let Some(pending) = &self.pending else { return Ok(None) };
        let (database, within) = (&self.database, Duration::from_millis(self.settle_ms));
        let settled = database.wait(async { Ok(settle(&database.0.address, pending, within).await) });
        self.end_pending(settled)
    }

    fn end_pending(
        &mut self,
        settled: Result<Option<Settled>, PostgresFault>,
    ) -> Result<Option<Settled>, AppendFault> {
        let Some(pending) = &self.pending else { return Ok(None) };
        match settled {
            Ok(Some(settled)) => {
                if settled == Settled::Landed {
                    self.head = pending.head;
                }
                self.pending = None;
                Ok(Some(settled))
            }
            Ok(None) => Err(AppendFault::Unsettled(pending.why.clone())),
            Err(fault) => Err(AppendFault::Unsettled(fault.to_string())),
        }
    }
}

impl Log for PostgresLog {
    fn topic_id(&self) -> &str {
        self.database.topic_id()
    }

    fn head(&self) -> Head {
        self.head
    }

    fn keeping(&self) -> Keeping {
        Keeping::Shared
    }

    fn behind(&mut self, after: Head) -> Result<Vec<Entry>, AppendFault> {
        if let Some((after, found)) = self.gone {
            return Err(AppendFault::HeadGone { after, found });
        }
        let (database, topic_id) = (self.database.clone(), self.database.topic_id().to_owned());
        let found = match &mut self.turn {
            Some(turn) => self.runtime.block_on(behind(&mut turn.link, &topic_id, after)),
            None => database.ask(async |link| behind(link, &topic_id, after).await),
        };
        match found {
            Ok(Ok(entries)) => Ok(entries),
            Ok(Err(fault)) => Err(self.found(fault)),
            Err(fault) => Err(not_durable(fault)),
        }
    }

    fn pass(&mut self) {
        let Some(Turn { link, .. }) = self.turn.take() else { return };
        // A connection that cannot be asked is let go, and the turn with it.
        if self.runtime.block_on(link.batch("rollback")).is_ok() {
            self.link = Some(link);
        }
    }

    fn bell(&self) -> Option<Box<dyn Bell>> {
        Some(Box::new(PostgresBell::new(&self.database)))
    }

    fn append(&mut self, after: Head, batch: &Batch) -> Result<(), AppendFault> {
        if batch.after() != after {
            return Err(AppendFault::Conflict { head: self.head });
        }
        self.append_all(after, std::slice::from_ref(batch))
    }

    fn check(&mut self) -> Result<(), AppendFault> {
        if let Some((after, found)) = self.gone {
            return Err(AppendFault::HeadGone { after, found });
        }
        if let Some(pending) = &self.pending {
            let database = &self.database;
            // Once only: whoever asks how it stands does not want to wait.
            let settled = database.wait(async { settle_once(&database.0.address, pending).await.map(Some) });
            self.end_pending(settled)?;
        }
        let (database, head) = (self.database.clone(), self.head);
        let found = database.ask(async |link| {
            let row = link.the_row(HEALTH).await?;
            if row.get(0)? {
                return Ok(Some(not_durable("the database has become a standby")));
            }
            if row.get::<&str>(1)? == "off" {
                return Ok(Some(not_durable(link::FSYNC_OFF)));
            }
            if let Some(closed) = row.get::<Option<&str>>(2)? {
                return Ok(Some(AppendFault::Closed(closing::sentence(closed))));
            }
            if reading::has(link, self.database.topic_id(), head).await? {
                return Ok(None);
            }
            let (found, _) = reading::head(link, self.database.topic_id()).await?;
            Ok(Some(AppendFault::HeadGone { after: head, found }))
        });
        match found {
            Ok(None) => Ok(()),
            Ok(Some(fault)) => Err(self.found(fault)),
            Err(fault) => Err(not_durable(fault)),
        }
    }
}

/// What others appended behind an entry, or that it is no longer there.
async fn behind(
    link: &mut Link,
    topic_id: &str,
    after: Head,
) -> Result<Result<Vec<Entry>, AppendFault>, PostgresFault> {
    let row = link.the_row(HEALTH).await?;
    if row.get(0)? {
        return Ok(Err(not_durable("the database has become a standby")));
    }
    if row.get::<&str>(1)? == "off" {
        return Ok(Err(not_durable(link::FSYNC_OFF)));
    }
    // What is said of a ledger that goes on elsewhere may no longer be so.
    if let Some(closed) = row.get::<Option<&str>>(2)? {
        return Ok(Err(AppendFault::Closed(closing::sentence(closed))));
    }
    match tail::look(link, topic_id, after).await {
        Ok(entries) => Ok(Ok(entries)),
        Err(PostgresFault::Gone { .. }) => {
            let (found, _) = reading::head(link, topic_id).await?;
            Ok(Err(AppendFault::HeadGone { after, found }))
        }
        Err(PostgresFault::Damaged { sequence }) => {
            Ok(Err(AppendFault::Tampered(format!("entry {sequence} does not follow from the one before it"))))
        }
        Err(fault) => Err(fault),
    }
}

fn not_landed() -> AppendFault {
    not_durable("the connection broke, and nothing was committed")
}

pub(super) fn not_durable(why: impl std::fmt::Display) -> AppendFault {
    AppendFault::NotDurable(io::Error::other(why.to_string()))
}
