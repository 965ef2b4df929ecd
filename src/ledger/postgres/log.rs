//! Appending: one transaction a batch, on top of the running hash that it was built on.

use std::io;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::attempt::{Attempt, Turn, Ways, attempt};
use super::bell::PostgresBell;
use super::link::Link;
use super::losses::{Noted, Remembered};
use super::secured::Secured;
use super::settling::{self, Pending, Settled, settle, settle_once};
use super::standing::Standing;
use super::transaction::{Ended, Place, Rows};
use super::{Database, PostgresFault, reading, tail};
use crate::ledger::batch::Batch;
use crate::ledger::chain::Head;
use crate::ledger::closing::{Closing, parse};
use crate::ledger::entries::Entry;
use crate::ledger::recovery::OpenFault;
use crate::ledger::{AppendFault, Bell, Keeping, Log, Secure};
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
    /// The last entry of which it knows the time.
    seen: Option<Remembered>,
    /// What it remembers is not there. Nothing is appended while that is so.
    gone: Option<Gone>,
    /// Who says so to all others; nobody if it is not to be said.
    gateway: Option<String>,
    /// Whoever copies into a ledger that is closed, or begins the epoch that opens it again, knows the mark.
    mark: Option<String>,
    settle_ms: u64,
    /// Does it keep its turn when it comes too late?
    keeps_turns: bool,
    /// Its turn to append, kept after it came too late.
    turn: Option<Turn>,
    /// Nobody came before its last append, and nobody is expected to come before the next one.
    is_alone: bool,
    /// What is known to be on a synchronous standby, where there has to be one.
    secured: Secured,
    /// Drives its own connection, on the thread that appends: an answer wakes nobody but who waits for it.
    runtime: Runtime,
}

/// An entry that is gone.
#[derive(Debug, Clone, Copy)]
struct Gone {
    after: Head,
    found: Head,
    /// An epoch that began after it gave it up.
    given_up: bool,
    /// All others have been told.
    noted: bool,
}

impl Gone {
    fn fault(self) -> AppendFault {
        let Self { after, found, given_up, .. } = self;
        if given_up { AppendFault::GivenUp { after } } else { AppendFault::HeadGone { after, found } }
    }
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
        let seen = last_timestamp.map(|time| Remembered { head, time: Some(time) });
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
            seen,
            gone: None,
            gateway: None,
            mark,
            settle_ms: limits::PG_SETTLE_MS,
            keeps_turns: false,
            turn: None,
            is_alone: false,
            secured: Secured::default(),
            runtime,
        })
    }

    /// Gives up sooner, or later, on finding out what became of a batch.
    #[must_use]
    pub fn with_settle_ms(self, settle_ms: u64) -> Self {
        Self { settle_ms, ..self }
    }

    /// Closes the ledger to everybody when it finds that it has lost its end, in this gateway's name.
    #[must_use]
    pub fn noting_losses_of(self, gateway: &str) -> Self {
        Self { gateway: Some(gateway.to_owned()), ..self }
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
        let had_mark = self.mark.is_some();
        match self.append_or_settle(after, batches) {
            // What it knew the mark for is done.
            Err(AppendFault::Closed(_)) if had_mark && self.check().is_ok() && self.mark.is_none() => {
                self.append_or_settle(after, batches)
            }
            appended => appended,
        }
    }

    fn append_or_settle(&mut self, after: Head, batches: &[Batch]) -> Result<(), AppendFault> {
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
        if let Some(gone) = self.gone {
            return Err(gone.fault());
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
        self.secured.has(last.head().sequence);
        self.head = last.head();
        self.last_timestamp = Some(last.last_timestamp());
        self.seen = Some(Remembered { head: last.head(), time: Some(last.last_timestamp()) });
    }

    /// Keeps what a failed append found.
    fn found(&mut self, fault: AppendFault) -> AppendFault {
        match fault {
            AppendFault::HeadGone { after, found } => return self.lost(after, found, None),
            AppendFault::Conflict { head } => self.head = head,
            _ => {}
        }
        fault
    }

    /// An entry that it has seen is not there: tells all others, unless they know or it was given up.
    fn lost(&mut self, after: Head, found: Head, standing: Option<&Standing>) -> AppendFault {
        // Whoever has a turn would wait for itself.
        self.pass();
        let time = self.seen.filter(|seen| seen.head == after).and_then(|seen| seen.time);
        let noted = self.gone.is_some_and(|gone| gone.noted && gone.after == after);
        let mut gone = Gone { after, found, given_up: false, noted };
        match (standing, &self.gateway) {
            (Some(standing), _) if standing.is_settled() => gone.given_up = true,
            (Some(standing), _) if !standing.is_closed() && standing.gave_up(time) => gone.given_up = true,
            (Some(standing), _) if standing.is_closed() && noted => {}
            (_, Some(gateway)) => match self.database.note_loss(gateway, Remembered { head: after, time }) {
                Ok(Noted::Closed) => gone.noted = true,
                Ok(Noted::GivenUp) => gone.given_up = true,
                // The next look finds it, or tries again to say so.
                Ok(Noted::NotLost) | Err(_) => {}
            },
            (_, None) => {}
        }
        self.gone = Some(gone);
        gone.fault()
    }

    /// Has the epoch begun for which it knew the mark? Then it goes on without one.
    fn was_opened(&mut self, standing: &Standing) -> bool {
        let mark = self.mark.as_deref().and_then(parse);
        let was_opened = matches!(mark, Some(Closing::Settled { .. })) && !standing.is_closed();
        if was_opened {
            self.mark = None;
        }
        was_opened
    }

    /// What others appended behind an entry, once it is known that nothing is lost and that it may be appended to.
    fn look(&mut self, after: Head, what: Looking) -> Result<Vec<Entry>, AppendFault> {
        let (database, head) = (self.database.clone(), self.head);
        let (topic_id, mark) = (database.topic_id(), self.mark.clone());
        let found = match &mut self.turn {
            Some(turn) => self.runtime.block_on(look(&mut turn.link, topic_id, [after, head], what)),
            None => database.ask_at_once(async |link| look(link, topic_id, [after, head], what).await),
        };
        let (standing, found) = found.map_err(not_durable)?;
        standing.server()?;
        self.secured.is_asked_for = standing.has_standby;
        let entries = match found {
            Ok(entries) => entries,
            Err(Lost::Gone { after, found }) => return Err(self.lost(after, found, Some(&standing))),
            Err(Lost::Damaged(sequence)) => {
                let what = format!("entry {sequence} does not follow from the one before it");
                return Err(AppendFault::Tampered(what));
            }
        };
        // It is all there, or there again.
        self.gone = None;
        // What is said of a ledger that goes on elsewhere may no longer be so.
        if let Err(fault) = standing.closed(mark.as_deref())
            && !self.was_opened(&standing)
        {
            return Err(fault);
        }
        if let Some(last) = entries.last() {
            let head = Head { sequence: last.sequence, running_hash: last.running_hash };
            self.seen = Some(Remembered { head, time: Timestamp::parse(&last.consensus_timestamp) });
        }
        Ok(entries)
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
                    self.secured.has(pending.head.sequence);
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
        self.look(after, Looking::Read)
    }

    fn secure(&mut self, through: Option<u64>) -> Result<Secure, AppendFault> {
        if let Some(known) = self.secured.known(through) {
            return Ok(known);
        }
        self.secured.tried();
        // Whoever only looks how it stands must not keep those waiting for long who want something.
        let within = if through.is_some() { limits::PG_COMMIT_MS } else { limits::PG_PROVE_MS };
        let upto = through.unwrap_or(self.head.sequence);
        settling::prove(&self.database, upto, Duration::from_millis(within)).map_err(not_durable)?;
        self.secured.has(upto);
        Ok(Secure::Now)
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
        if let Some(pending) = &self.pending {
            let database = &self.database;
            // Once only: whoever asks how it stands does not want to wait.
            let settled = database.wait(async { settle_once(&database.0.address, pending).await.map(Some) });
            self.end_pending(settled)?;
        }
        let after = self.gone.map_or(self.head, |gone| gone.after);
        self.look(after, Looking::Only).map(drop)
    }
}

/// Are entries to be read, or is it enough to know that nothing is gone?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looking {
    Read,
    Only,
}

enum Lost {
    Gone { after: Head, found: Head },
    Damaged(u64),
}

/// How the ledger stands, and what others appended behind the first of these entries, or which of them is gone.
async fn look(
    link: &mut Link,
    topic_id: &str,
    known: [Head; 2],
    what: Looking,
) -> Result<(Standing, Result<Vec<Entry>, Lost>), PostgresFault> {
    let standing = Standing::ask(link).await?;
    let [after, head] = known;
    let entries = match what {
        Looking::Read => tail::look(link, topic_id, after).await,
        Looking::Only if reading::has(link, topic_id, after).await? => Ok(Vec::new()),
        Looking::Only => Err(PostgresFault::Gone { remembered: after.sequence, found: 0 }),
    };
    let gone = match &entries {
        Err(PostgresFault::Gone { .. }) => Some(after),
        // Seen, and not read yet or only now.
        Ok(entries)
            if head.sequence > after.sequence
                && entries.iter().all(|entry| entry.running_hash != head.running_hash)
                && !reading::has(link, topic_id, head).await? =>
        {
            Some(head)
        }
        _ => None,
    };
    if let Some(after) = gone {
        let (found, _) = reading::head(link, topic_id).await?;
        return Ok((standing, Err(Lost::Gone { after, found })));
    }
    match entries {
        Ok(entries) => Ok((standing, Ok(entries))),
        Err(PostgresFault::Damaged { sequence }) => Ok((standing, Err(Lost::Damaged(sequence)))),
        Err(fault) => Err(fault),
    }
}

fn not_landed() -> AppendFault {
    not_durable("the connection broke, and nothing was committed")
}

pub(super) fn not_durable(why: impl std::fmt::Display) -> AppendFault {
    AppendFault::NotDurable(io::Error::other(why.to_string()))
}
