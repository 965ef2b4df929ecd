//! The views: SQLite tables that follow the ledger, so that people can search it and claims can be asked.
//!
//! Owns `views.db`: one row per entry, per attempt and per handoff, with an index for every filter. [`Views`] is
//! the one writer, applied behind the replies in large transactions; a [`Reader`] has its own connection and
//! never waits for it. A hand: through SQLite it touches one file and the two beside it.
//!
//! INVARIANT (views follow): everything here is a function of the ledger's entries in order. The tables remember
//! the last entry they hold and its running hash, are the same however the entries were batched, and can be
//! deleted at any time.
//!
//! Deliberately absent: the text of entries (the ledger has it) but for the few of `acts.rs`, and any judgement. What cannot be read back is
//! never mended, only rebuilt. SQLite keeps no checksums: a flipped bit in what claims rest on is found by the sum of it
//! when names are told (`names.rs`), one elsewhere by comparing with the ledger.

mod acts;
mod attempt;
mod claims;
mod compare;
mod cursor;
mod event;
mod fault;
mod filter;
mod follow;
mod follows;
mod messages;
mod names;
mod query;
mod reader;
mod rows;
mod runs;
mod standing;
mod status;
mod store;
mod sum;
mod tally;
mod tasks;
mod words;

use std::borrow::Borrow;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

pub use acts::ActRow;
pub use claims::{Accepted, Claimed, Claims, HandoffClaim, KeyClaim};
pub use compare::{Difference, DifferenceKind, compare};
pub use cursor::{BadCursor, Cursor, Page};
pub use fault::{Rebuild, ViewsFault};
pub use filter::{EntryFilter, HandoffFilter};
pub use follows::{Follows, follows, follows_any};
pub use messages::{AskedClaim, AskedState, MessageClaim, MessageRow};
pub use reader::{FollowedViews, Reader};
pub use rows::{AttemptRow, EntryRow, HandoffDetail, HandoffRow};
pub use status::{Status, UnknownStatus};
pub(crate) use store::{beside, delete, holds_nothing};
pub use tally::DecisionMinute;
pub use tasks::{SeenBy, TaskFilter, TaskRow};

use crate::ledger::{Entry, RunningHash};
use crate::limits;
use follow::{Applied, Follower};
use store::Begin;
use sum::Sum;
use words::Words;

/// The tables, and the only connection that writes to them.
#[derive(Debug)]
pub struct Views {
    connection: Connection,
    applied: Applied,
    words: Words,
    /// The first entry that created an attempt which there was already.
    doubled: Option<u64>,
}

impl Views {
    /// Opens the tables of a topic, or makes them where there is no file.
    pub fn open(path: &Path, topic_id: &str) -> Result<Self, ViewsFault> {
        if store::holds_nothing(path) {
            // What stands in the way of that stands in the way of opening too, which says so.
            let _ = store::delete(path);
        }
        let mut connection = store::connect(path)?;
        store::migrate(&mut connection, topic_id, Begin::Following)?;
        let applied = store::applied(&connection, topic_id)?;
        Ok(Self { connection, applied, words: Words::default(), doubled: None })
    }

    /// Deletes whatever is there and starts empty.
    pub fn recreate(path: &Path, topic_id: &str) -> Result<Self, ViewsFault> {
        store::delete(path)?;
        Self::open(path, topic_id)
    }

    /// Deletes whatever is there and applies the whole ledger, which is faster than applying it piece by piece:
    /// indexes are made at the end. Until then the file says of itself that it is unfinished.
    pub fn rebuild(
        path: &Path,
        topic_id: &str,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<Self, ViewsFault> {
        let mut views = Self::begin_anew(path, topic_id)?;
        if let Err(fault) = views.fill(entries) {
            // Half of it is of no use, and would keep the room that others may be short of.
            drop(views);
            let _ = store::delete(path);
            return Err(fault);
        }
        Ok(views)
    }

    /// Deletes whatever is there. Nobody reads of the new file before it is said to be whole: what has not been put into it yet
    /// would read as what never was.
    fn begin_anew(path: &Path, topic_id: &str) -> Result<Self, ViewsFault> {
        store::delete(path)?;
        let mut connection = store::connect(path)?;
        store::migrate(&mut connection, topic_id, Begin::Rebuilding)?;
        let running_hash = RunningHash::genesis(topic_id).to_string();
        let applied = Applied { sequence: 0, running_hash, claims: Sum::default() };
        Ok(Self { connection, applied, words: Words::default(), doubled: None })
    }

    fn fill(&mut self, entries: impl IntoIterator<Item = Entry>) -> Result<(), ViewsFault> {
        let indexes = store::begin_rebuild(&mut self.connection)?;
        let mut entries = entries.into_iter().peekable();
        while entries.peek().is_some() {
            self.apply(entries.by_ref().take(limits::VIEW_REBUILD_ENTRIES))?;
        }
        store::end_rebuild(&mut self.connection, &indexes)
    }

    /// The last entry that the tables hold, and its running hash in hex.
    pub fn applied(&self) -> Option<(u64, String)> {
        (self.applied.sequence > 0).then(|| (self.applied.sequence, self.applied.running_hash.clone()))
    }

    /// Applies the next entries in one transaction, and says how many. After a fault none of them is applied.
    pub fn apply<E: Borrow<Entry>>(
        &mut self,
        entries: impl IntoIterator<Item = E>,
    ) -> Result<u64, ViewsFault> {
        let before = self.applied.sequence;
        match self.follow(entries) {
            Ok(applied) => {
                self.applied = applied;
                Ok(self.applied.sequence - before)
            }
            Err(fault) => {
                // Words that were numbered in this transaction have no number any more.
                self.words.forget();
                Err(fault)
            }
        }
    }

    fn follow<E: Borrow<Entry>>(
        &mut self,
        entries: impl IntoIterator<Item = E>,
    ) -> Result<Applied, ViewsFault> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut follower = Follower::new(&transaction, &mut self.words, self.applied.clone());
        for entry in entries {
            follower.entry(entry.borrow())?;
        }
        let (applied, doubled) = follower.finish()?;
        transaction.commit()?;
        self.doubled = self.doubled.or(doubled);
        Ok(applied)
    }

    /// The first entry applied since this was asked that creates an attempt which there was already: the ledger decides
    /// something twice. The tables take it as one more event of that attempt.
    pub fn take_doubled(&mut self) -> Option<u64> {
        self.doubled.take()
    }

    /// What has been claimed, as far as it is applied.
    pub fn claims(&self) -> Claims<'_> {
        Claims::on(&self.connection)
    }
}

#[cfg(test)]
mod tests;
