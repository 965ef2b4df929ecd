//! Appending: one transaction a batch, on top of the running hash that it was built on.

use std::io;
use std::time::Duration;

use super::closing;
use super::link::Link;
use super::settling::{Pending, Settled, settle, settle_once};
use super::transaction::{Ended, HEALTH, Outcome, Rows, look, put};
use super::{Database, PostgresFault, link, reading};
use crate::ledger::batch::Batch;
use crate::ledger::chain::Head;
use crate::ledger::closing::Closing;
use crate::ledger::recovery::OpenFault;
use crate::ledger::{AppendFault, Log};
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
        Ok(Self {
            database,
            link: None,
            head,
            last_timestamp,
            pending: None,
            gone: None,
            mark,
            settle_ms: limits::PG_SETTLE_MS,
        })
    }

    /// Gives up sooner, or later, on finding out what became of a batch.
    #[must_use]
    pub fn with_settle_ms(self, settle_ms: u64) -> Self {
        Self { settle_ms, ..self }
    }

    /// The time of the last entry.
    pub fn last_timestamp(&self) -> Option<Timestamp> {
        self.last_timestamp
    }

    /// Appends several batches in one transaction; each stays a batch of its own.
    pub(crate) fn append_all(&mut self, after: Head, batches: &[Batch]) -> Result<(), AppendFault> {
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
        let Some(last) = batches.last() else { return Ok(()) };
        self.settle_pending()?;
        let rows = Rows::of(batches);
        let database = self.database.clone();
        let outcome = database.wait(async {
            let kept = self.link.take().filter(|link| !link.is_closed());
            let mut is_new = kept.is_none();
            let mut link = match kept {
                Some(link) => link,
                None => Link::make(&database.0.address).await?,
            };
            loop {
                let put =
                    put(&mut link, &rows, after, last.head(), self.mark.as_deref(), database.topic_id());
                let ended = match put.await {
                    Outcome::Committed => Ok(()),
                    Outcome::Refused => {
                        Err(look(&mut link, database.topic_id(), after, self.mark.as_deref()).await?)
                    }
                    Outcome::Unknown(why) => return Ok(Err(Ended::Unknown(why))),
                    // A connection that broke while nobody used it; `commit` was not sent on it.
                    Outcome::Failed(PostgresFault::Unreachable(_)) if !is_new => {
                        link = Link::make(&database.0.address).await?;
                        is_new = true;
                        continue;
                    }
                    Outcome::Failed(fault) => return Err(fault),
                };
                self.link = Some(link);
                return Ok(ended);
            }
        });
        match outcome {
            Ok(Ok(())) => self.reached(last),
            Ok(Err(Ended::Unknown(why))) => {
                self.pending = Some(Pending { head: last.head(), why });
                match self.settle_pending()? {
                    Some(Settled::Landed) => self.reached(last),
                    _ => return Err(not_durable("the connection broke, and nothing was committed")),
                }
            }
            Ok(Err(Ended::Found(fault))) => return Err(self.found(fault)),
            Err(fault) => return Err(not_durable(fault)),
        }
        Ok(())
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

pub(super) fn not_durable(why: impl std::fmt::Display) -> AppendFault {
    AppendFault::NotDurable(io::Error::other(why.to_string()))
}
