//! Lists of A2A tasks: attempts at handoffs, and tasks that began without a TaskSpec, by what happened last.
//!
//! A task moves to the front when something happens to it, so one that does while a client turns pages may come a
//! second time, never not at all: what lies behind the cursor has not changed since.

use rusqlite::Connection;
use rusqlite::types::Value;

use super::cursor::{Cursor, Page};
use super::fault::ViewsFault;
use super::filter::range;
use super::messages::{AskedClaim, AskedState, asked};
use super::reader::Reader;
use super::rows::{AttemptRow, attempt, one};
use super::status::Status;
use super::words::{correlation_of, number_of};
use crate::limits;
use crate::timestamp::Timestamp;

/// Whose tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenBy<'f> {
    All,
    /// Of this source agent, or begun by this caller.
    Source {
        agent: &'f str,
        caller: &'f str,
    },
    /// Of this target agent, or begun by this caller.
    Target {
        agent: &'f str,
        caller: &'f str,
    },
    /// Those that this caller itself said something in.
    Speaker(&'f str),
}

/// Which tasks. All that is given must hold.
#[derive(Debug, Clone)]
pub struct TaskFilter<'f> {
    pub seen_by: SeenBy<'f>,
    pub context_id: Option<&'f str>,
    /// States of streams; a task without a TaskSpec counts as blocked while it waits for one.
    pub states: Option<&'f [Status]>,
    /// Something happened at this time or later.
    pub since: Option<Timestamp>,
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRow {
    Attempt {
        handoff_id: String,
        row: Box<AttemptRow>,
        /// The task that it was begun as.
        asked: Option<String>,
    },
    Asked(Box<AskedClaim>),
}

/// Conditions on one of the two tables, with what is bound to them.
struct Conditions {
    text: String,
    bound: Vec<Value>,
}

impl Conditions {
    /// The keys come first: the lowest, and the highest.
    fn new(on_updated: &str) -> Self {
        Self { text: format!("{on_updated} BETWEEN ?1 AND ?2"), bound: Vec::new() }
    }

    fn and(&mut self, condition: &str, number: impl Into<Value>) {
        self.bound.push(number.into());
        self.text.push_str(&format!(" AND {condition} ?{}", self.bound.len() + 2));
    }

    fn and_one_of(&mut self, column: &str, numbers: &[i64]) {
        let list: Vec<String> = numbers.iter().map(i64::to_string).collect();
        self.text.push_str(&format!(" AND {column} IN ({})", list.join(", ")));
    }
}

const ASKED_COLUMNS: &str = "SELECT task_id, (SELECT text FROM words WHERE id = caller), context_id,
    (SELECT text FROM words WHERE id = state), handoff_id, attempt, decided, updated FROM asked";

const BEGUN_AS: &str =
    "SELECT asked FROM messages WHERE handoff_id = ?1 AND +attempt = ?2 AND +asked IS NOT NULL LIMIT 1";

impl Reader {
    /// Tasks, those first to which something happened last; and how many there are in all.
    pub fn tasks(
        &self,
        filter: &TaskFilter<'_>,
        cursor: Option<Cursor>,
        rows_max: usize,
    ) -> Result<(Page<TaskRow>, u64), ViewsFault> {
        let moment = self.moment()?;
        let keys = range(&moment, filter.since, None, cursor.map(Cursor::number))?;
        let all = range(&moment, filter.since, None, None)?;
        let rows_max = rows_max.clamp(1, limits::VIEW_PAGE_ROWS_MAX);
        let mut total = 0;
        let mut found: Vec<(i64, Found)> = Vec::new();
        if let Some(on) = filter.on_attempts(&moment)? {
            total += on.count(&moment, "attempts a", all)?;
            let sql = format!("SELECT a.updated, a.created FROM attempts a WHERE {}", on.text);
            on.newest(&moment, &sql, "a.updated", keys, rows_max, &mut |row| {
                found.push((row.get(0)?, Found::Attempt(row.get(1)?)));
                Ok(())
            })?;
        }
        if let Some(on) = filter.on_asked(&moment)? {
            total += on.count(&moment, "asked", all)?;
            let sql = format!("{ASKED_COLUMNS} WHERE {}", on.text);
            on.newest(&moment, &sql, "updated", keys, rows_max, &mut |row| {
                let asked = asked(row)?;
                found.push((i64::try_from(asked.updated).unwrap_or(i64::MAX), Found::Asked(Box::new(asked))));
                Ok(())
            })?;
        }
        found.sort_unstable_by_key(|(updated, _)| std::cmp::Reverse(*updated));
        let more = found.len() > rows_max;
        found.truncate(rows_max);
        let next = found.last().filter(|_| more).map(|(updated, _)| Cursor::after(updated.unsigned_abs()));
        let rows: Result<Vec<TaskRow>, ViewsFault> =
            found.into_iter().map(|(_, found)| found.read(&moment)).collect();
        Ok((Page { rows: rows?, next }, total))
    }

    /// The task that an attempt was begun as, if it was one without a TaskSpec.
    pub fn begun_as(&self, handoff_id: &str, attempt: u32) -> Result<Option<String>, ViewsFault> {
        one(&*self.moment()?, BEGUN_AS, (handoff_id, attempt), |row| row.get(0))
    }
}

enum Found {
    Attempt(i64),
    Asked(Box<AskedClaim>),
}

impl Found {
    fn read(self, store: &Connection) -> Result<TaskRow, ViewsFault> {
        match self {
            Self::Asked(asked) => Ok(TaskRow::Asked(asked)),
            Self::Attempt(created) => {
                let row = Box::new(attempt(store, created)?);
                let handoff_id: String = store
                    .prepare_cached(
                        "SELECT handoff_id FROM handoffs WHERE handoff = (SELECT handoff FROM attempts WHERE created = ?1)",
                    )?
                    .query_row([created], |row| row.get(0))?;
                let asked = one(store, BEGUN_AS, (&handoff_id, row.attempt), |row| row.get(0))?;
                Ok(TaskRow::Attempt { handoff_id, row, asked })
            }
        }
    }
}

impl TaskFilter<'_> {
    /// Nothing if no attempt can meet them.
    fn on_attempts(&self, store: &Connection) -> Result<Option<Conditions>, ViewsFault> {
        let mut on = Conditions::new("a.updated");
        match self.seen_by {
            SeenBy::All => {}
            SeenBy::Source { agent, .. } => {
                let Some(agent) = number_of(store, agent)? else { return Ok(None) };
                on.and("a.source =", agent);
            }
            SeenBy::Target { agent, .. } => {
                let Some(agent) = number_of(store, agent)? else { return Ok(None) };
                on.and("a.target =", agent);
            }
            SeenBy::Speaker(caller) => {
                let Some(caller) = number_of(store, caller)? else { return Ok(None) };
                on.text.push_str(
                    " AND EXISTS (SELECT 1 FROM messages m WHERE m.handoff_id = (SELECT handoff_id FROM handoffs h \
                     WHERE h.handoff = a.handoff) AND +m.attempt = a.attempt",
                );
                on.and("+m.caller =", caller);
                on.text.push(')');
            }
        }
        if let Some(context_id) = self.context_id {
            let Some(correlation) = correlation_of(store, context_id)? else { return Ok(None) };
            on.and("+a.correlation =", correlation);
        }
        if let Some(states) = self.states {
            let numbers = states.iter().filter_map(|state| number_of(store, state.as_str()).transpose());
            on.and_one_of("+a.status", &numbers.collect::<Result<Vec<i64>, _>>()?);
        }
        Ok(Some(on))
    }

    fn on_asked(&self, store: &Connection) -> Result<Option<Conditions>, ViewsFault> {
        let mut on = Conditions::new("updated");
        match self.seen_by {
            SeenBy::All => {}
            SeenBy::Source { caller, .. } | SeenBy::Target { caller, .. } | SeenBy::Speaker(caller) => {
                let Some(caller) = number_of(store, caller)? else { return Ok(None) };
                on.and("caller =", caller);
            }
        }
        if let Some(context_id) = self.context_id {
            on.and("+context_id =", context_id.to_owned());
        }
        // What was handed over is listed as the attempt that it is.
        let shown = [
            (AskedState::Open, Status::Blocked),
            (AskedState::Rejected { decided: 0 }, Status::Rejected),
            (AskedState::Canceled, Status::Cancelled),
        ];
        let wanted = |status: &Status| self.states.is_none_or(|states| states.contains(status));
        let mut numbers = Vec::new();
        for (state, _) in shown.iter().filter(|(_, status)| wanted(status)) {
            numbers.extend(number_of(store, state.as_str())?);
        }
        on.and_one_of("+state", &numbers);
        Ok(Some(on))
    }
}

impl Conditions {
    fn parameters(&self, (lowest, highest): (i64, i64)) -> Vec<Value> {
        let keys = [Value::Integer(lowest), Value::Integer(highest)];
        keys.into_iter().chain(self.bound.iter().cloned()).collect()
    }

    fn count(&self, store: &Connection, table: &str, keys: (i64, i64)) -> Result<u64, ViewsFault> {
        let sql = format!("SELECT count(*) FROM {table} WHERE {}", self.text);
        let parameters = rusqlite::params_from_iter(self.parameters(keys));
        Ok(store.prepare_cached(&sql)?.query_row(parameters, |row| row.get(0))?)
    }

    /// One more than asked for tells whether there is a next page.
    fn newest(
        &self,
        store: &Connection,
        sql: &str,
        order: &str,
        keys: (i64, i64),
        rows_max: usize,
        tell: &mut dyn FnMut(&rusqlite::Row<'_>) -> Result<(), ViewsFault>,
    ) -> Result<(), ViewsFault> {
        let sql = format!("{sql} ORDER BY {order} DESC LIMIT {}", rows_max + 1);
        let mut statement = store.prepare_cached(&sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(self.parameters(keys)))?;
        while let Some(row) = rows.next()? {
            tell(row)?;
        }
        Ok(())
    }
}
