//! Searching: lists page by page, and one handoff or entry.

use std::path::Path;

use rusqlite::{Connection, Transaction};

use super::acts::{self, ActRow};
use super::claims::Claims;
use super::cursor::{Cursor, Page};
use super::fault::{ViewsFault, damaged};
use super::filter::{ENTRIES, EntryFilter, HANDOFFS, HandoffFilter, range};
use super::query::{List, Wanted};
use super::rows::{AttemptRow, EntryRow, HandoffDetail, HandoffRow, detail, entry, handoff};
use super::store;
use super::words::handoff_of;
use crate::limits;

/// The views that somebody keeps up with the ledger.
pub trait FollowedViews: Send {
    /// The last entry that is in them. Never goes back.
    fn applied(&self) -> u64;

    /// Which opening of their file it is that says so: when that changes, the file may be another one.
    fn opening(&self) -> u64;

    fn open(&self) -> Result<Reader, ViewsFault>;

    /// A reader of that opening has met damage: the file has to be made again.
    fn is_damaged(&self, opening: u64, why: &str);
}

/// A connection that reads. Each answer is of one moment, and the writer goes on meanwhile.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
}

impl Reader {
    /// Opens tables that a writer has made.
    pub fn open(path: &Path) -> Result<Self, ViewsFault> {
        let connection = store::connect_to_read(path)?;
        store::check_to_read(&connection)?;
        Ok(Self { connection })
    }

    /// The same, where entries up to this one are known to be in them: a file that lacks some of those is an older one that was
    /// put there, or is not filled yet, and does not know what was claimed.
    pub fn holds(self, sequence: u64) -> Result<Self, ViewsFault> {
        let reached = store::reached(&self.connection)?;
        if reached >= sequence {
            return Ok(self);
        }
        Err(damaged(format_args!("it holds entries up to {reached}, and {sequence} were applied")))
    }

    /// Handoffs, the newest first by when they were first created.
    pub fn handoffs(
        &self,
        filter: &HandoffFilter<'_>,
        cursor: Option<Cursor>,
        rows_max: usize,
    ) -> Result<Page<HandoffRow>, ViewsFault> {
        let moment = self.moment()?;
        let Some(wanted) = filter.resolve(&moment)? else { return Ok(Page::empty()) };
        let keys = range(&moment, filter.from, filter.to, cursor.map(Cursor::number))?;
        page(&moment, HANDOFFS, &wanted, keys, rows_max, handoff)
    }

    /// A handoff with its attempts and their entries.
    pub fn handoff(&self, handoff_id: &str) -> Result<Option<HandoffDetail>, ViewsFault> {
        self.handoff_by(handoff_id, &|_| true)
    }

    /// The same for whoever sees only some of the attempts under this id; nothing for whoever sees none.
    pub fn handoff_by(
        &self,
        handoff_id: &str,
        sees: &dyn Fn(&AttemptRow) -> bool,
    ) -> Result<Option<HandoffDetail>, ViewsFault> {
        let moment = self.moment()?;
        handoff_of(&moment, handoff_id)?.map_or(Ok(None), |number| detail(&moment, number, sees))
    }

    /// Entries, the newest first.
    pub fn entries(
        &self,
        filter: &EntryFilter<'_>,
        cursor: Option<Cursor>,
        rows_max: usize,
    ) -> Result<Page<EntryRow>, ViewsFault> {
        let moment = self.moment()?;
        let Some(wanted) = filter.resolve(&moment)? else { return Ok(Page::empty()) };
        let keys = range(&moment, filter.from, filter.to, cursor.map(Cursor::number))?;
        page(&moment, ENTRIES, &wanted, keys, rows_max, entry)
    }

    /// The entry of that number.
    pub fn entry(&self, sequence: u64) -> Result<Option<EntryRow>, ViewsFault> {
        let moment = self.moment()?;
        i64::try_from(sequence).map_or(Ok(None), |sequence| entry(&moment, sequence))
    }

    /// The acts behind an entry, in order.
    pub fn acts_after(&self, sequence: u64) -> Result<Vec<ActRow>, ViewsFault> {
        acts::after(&self.connection, i64::try_from(sequence).unwrap_or(i64::MAX))
    }

    /// What has been claimed, as far as it is applied.
    pub fn claims(&self) -> Claims<'_> {
        Claims::on(&self.connection)
    }

    /// The tables as they are at one moment.
    pub(super) fn moment(&self) -> Result<Transaction<'_>, ViewsFault> {
        Ok(self.connection.unchecked_transaction()?)
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// At most so many rows, and where the next page begins.
fn page<T>(
    store: &Connection,
    list: List,
    wanted: &Wanted,
    (lowest, highest): (i64, i64),
    rows_max: usize,
    read: fn(&Connection, i64) -> Result<Option<T>, ViewsFault>,
) -> Result<Page<T>, ViewsFault> {
    let rows_max = rows_max.clamp(1, limits::VIEW_PAGE_ROWS_MAX);
    let mut page = Page::empty();
    let mut last = 0;
    let mut statement = store.prepare_cached(&list.statement(wanted))?;
    // One more than asked for tells whether there is a next page.
    let bounds = [lowest, highest, rows_max as i64 + 1];
    let parameters = bounds.into_iter().chain(wanted.iter().map(|(_, number)| *number));
    let mut keys = statement.query(rusqlite::params_from_iter(parameters))?;
    while let Some(row) = keys.next()? {
        if page.rows.len() == rows_max {
            page.next = Some(Cursor::after(last));
            break;
        }
        last = row.get(0)?;
        page.rows.extend(read(store, row.get(0)?)?);
    }
    Ok(page)
}
