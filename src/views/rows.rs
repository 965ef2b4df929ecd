//! Rows as their readers see them, and the statements that fetch one by its key.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde::Serialize;

use super::fault::{ViewsFault, damaged};
use super::filter::TIME;
use super::status::Status;
use super::words::read_list;
use crate::limits;
use crate::proof::to_hex;
use crate::timestamp::Timestamp;
use crate::wire::StreamId;

/// An entry, without its text: the ledger has that. Doors show it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryRow {
    pub sequence: u64,
    pub consensus_timestamp: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub stream_id: String,
    pub handoff_id: Option<String>,
    pub attempt: Option<u32>,
    pub correlation_id: String,
    /// Of `gate.decided`.
    pub decision: Option<String>,
    pub codes: Vec<String>,
}

/// A handoff as it stands: its accepted attempt, or else the latest of whoever the id belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffRow {
    pub handoff_id: String,
    /// How many attempts there were; a refused handoff may be corrected and sent again.
    pub attempts: u32,
    /// When the first of them was created.
    pub created_at: String,
    pub current: AttemptRow,
}

/// An attempt at a handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    pub attempt: u32,
    pub status: Status,
    pub decision: Option<String>,
    pub codes: Vec<String>,
    pub source_agent: Option<String>,
    pub target_agent: Option<String>,
    /// Is it done in somebody's name?
    pub delegated: bool,
    /// Who else may do it then: whom that person signed for.
    pub fallback_agent: Option<String>,
    pub route_key: Option<String>,
    pub mode: Option<String>,
    pub operation: Option<String>,
    pub correlation_id: String,
    pub parent_handoff_id: Option<String>,
    pub message_id: Option<String>,
    /// The entry that created it.
    pub created_sequence: u64,
    /// The last `gate.decided` in its stream.
    pub decided_sequence: Option<u64>,
    /// The last entry in its stream.
    pub updated_sequence: u64,
    pub updated_at: String,
}

/// A handoff with its attempts and their entries, or as much of it as somebody sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffDetail {
    /// For whoever does not see the attempt that speaks for it: by those that they see.
    pub handoff: HandoffRow,
    /// In order, each with the sequences of its entries. The newest, and the one that the handoff stands by.
    pub attempts: Vec<(AttemptRow, Vec<u64>)>,
}

pub(super) const ENTRY: &str = "SELECT e.sequence, e.time, (SELECT text FROM words WHERE id = e.kind),
    (SELECT handoff_id FROM handoffs WHERE handoff = e.stream), (SELECT text FROM words WHERE id = -e.stream),
    e.attempt, (SELECT correlation_id FROM correlations WHERE correlation = e.correlation),
    (SELECT text FROM words WHERE id = e.decision), (SELECT text FROM words WHERE id = e.codes)
    FROM entries e WHERE e.sequence = ?1";

pub(super) const HANDOFF: &str = "SELECT h.handoff_id, h.attempts,
    (SELECT time FROM entries WHERE sequence = h.handoff), h.current FROM handoffs h WHERE h.handoff = ?1";

pub(super) const ATTEMPT: &str = "SELECT a.attempt, (SELECT text FROM words WHERE id = a.status),
    (SELECT text FROM words WHERE id = a.decision), (SELECT text FROM words WHERE id = a.codes),
    (SELECT text FROM words WHERE id = a.source), (SELECT text FROM words WHERE id = a.target),
    (SELECT text FROM words WHERE id = a.route), (SELECT text FROM words WHERE id = a.mode),
    (SELECT text FROM words WHERE id = a.operation),
    (SELECT correlation_id FROM correlations WHERE correlation = a.correlation),
    a.parent, a.message_id, a.created, a.decided, a.updated,
    (SELECT time FROM entries WHERE sequence = a.updated), a.delegated,
    (SELECT text FROM words WHERE id = a.fallback) FROM attempts a WHERE a.created = ?1";

pub(super) const ATTEMPTS_OF: &str =
    "SELECT created FROM attempts WHERE handoff = ?1 ORDER BY attempt DESC LIMIT ?2";

pub(super) const ENTRIES_OF: &str =
    "SELECT sequence FROM entries WHERE stream = ?1 AND sequence BETWEEN ?2 AND ?3
    AND +attempt = ?4 ORDER BY sequence LIMIT ?5";

pub(super) fn entry(store: &Connection, sequence: i64) -> Result<Option<EntryRow>, ViewsFault> {
    let mut statement = store.prepare_cached(ENTRY)?;
    let mut rows = statement.query([sequence])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (handoff_id, attempt): (Option<String>, Option<u32>) = (row.get(3)?, row.get(5)?);
    let stream_id = match (&handoff_id, attempt) {
        (Some(handoff_id), Some(attempt)) => StreamId::Handoff { handoff_id, attempt }.to_string(),
        _ => row.get(4)?,
    };
    Ok(Some(EntryRow {
        sequence: row.get(0)?,
        consensus_timestamp: time(row, 1)?,
        kind: row.get(2)?,
        stream_id,
        handoff_id,
        attempt,
        correlation_id: row.get(6)?,
        decision: row.get(7)?,
        codes: list(row, 8)?,
    }))
}

pub(super) fn handoff(store: &Connection, handoff: i64) -> Result<Option<HandoffRow>, ViewsFault> {
    let mut statement = store.prepare_cached(HANDOFF)?;
    let mut rows = statement.query([handoff])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(HandoffRow {
        handoff_id: row.get(0)?,
        attempts: row.get(1)?,
        created_at: time(row, 2)?,
        current: attempt(store, row.get(3)?)?,
    }))
}

pub(super) fn attempt(store: &Connection, created: i64) -> Result<AttemptRow, ViewsFault> {
    let mut statement = store.prepare_cached(ATTEMPT)?;
    let mut rows = statement.query([created])?;
    let row = rows.next()?.ok_or_else(|| damaged("an attempt is missing"))?;
    Ok(AttemptRow {
        attempt: row.get(0)?,
        status: row.get::<_, String>(1)?.parse().map_err(damaged)?,
        decision: row.get(2)?,
        codes: list(row, 3)?,
        source_agent: row.get(4)?,
        target_agent: row.get(5)?,
        delegated: row.get(16)?,
        fallback_agent: row.get(17)?,
        route_key: row.get(6)?,
        mode: row.get(7)?,
        operation: row.get(8)?,
        correlation_id: row.get(9)?,
        parent_handoff_id: row.get(10)?,
        message_id: row.get(11)?,
        created_sequence: row.get(12)?,
        decided_sequence: row.get(13)?,
        updated_sequence: row.get(14)?,
        updated_at: time(row, 15)?,
    })
}

/// The handoff by the attempts that `sees` says yes to; nothing if there is none.
pub(super) fn detail(
    store: &Connection,
    number: i64,
    sees: &dyn Fn(&AttemptRow) -> bool,
) -> Result<Option<HandoffDetail>, ViewsFault> {
    let Some(mut handoff) = handoff(store, number)? else { return Ok(None) };
    let speaks = handoff.current.attempt;
    let mut rows: Vec<AttemptRow> = Vec::new();
    let mut statement = store.prepare_cached(ATTEMPTS_OF)?;
    let mut newest = statement.query((number, limits::VIEW_ATTEMPTS_MAX as i64))?;
    while let Some(row) = newest.next()? {
        rows.push(attempt(store, row.get(0)?)?);
    }
    // However often others have tried since.
    if rows.iter().all(|row| row.attempt != speaks) {
        rows.push(handoff.current.clone());
    }
    rows.reverse();
    rows.retain(sees);
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(None) };
    if !sees(&handoff.current) {
        let created = i64::try_from(first.created_sequence).map_err(damaged)?;
        handoff.created_at = one(store, TIME, [created], |row| Ok(time(row, 0)))?
            .ok_or_else(|| damaged("an entry is missing"))??;
        handoff.attempts = last.attempt;
        handoff.current = last.clone();
    }
    let mut attempts: Vec<(AttemptRow, Vec<u64>)> = rows.into_iter().map(|row| (row, Vec::new())).collect();
    // Its own entries come first, so that no number of refusals leaves out what became of it.
    let mut places: Vec<&mut (AttemptRow, Vec<u64>)> = attempts.iter_mut().collect();
    places.sort_by_key(|(row, _)| row.attempt != handoff.current.attempt);
    let mut left = limits::VIEW_HANDOFF_ENTRIES_MAX;
    let mut statement = store.prepare_cached(ENTRIES_OF)?;
    for (row, sequences) in places {
        let mut found = statement.query((
            number,
            row.created_sequence,
            row.updated_sequence,
            row.attempt,
            left as i64,
        ))?;
        while let Some(entry) = found.next()? {
            sequences.push(entry.get(0)?);
        }
        left = left.saturating_sub(sequences.len());
    }
    Ok(Some(HandoffDetail { handoff, attempts }))
}

/// A time in the form of the ledger.
pub(super) fn time(row: &Row<'_>, column: usize) -> Result<String, ViewsFault> {
    Ok(Timestamp::from_unix_nanoseconds(row.get(column)?).to_nanoseconds())
}

/// A list of words; empty where there is none.
pub(super) fn list(row: &Row<'_>, column: usize) -> Result<Vec<String>, ViewsFault> {
    row.get::<_, Option<String>>(column)?.map_or(Ok(Vec::new()), |text| read_list(&text))
}

/// A digest in the form that it had in the ledger.
pub(super) fn digest(row: &Row<'_>, column: usize) -> Result<Option<String>, ViewsFault> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Blob(bytes) => Ok(Some(format!("sha256:{}", to_hex(bytes)))),
        other => Ok(Some(other.as_str().map_err(damaged)?.to_owned())),
    }
}

/// One row or none, of a statement that asks by key.
pub(super) fn one<T>(
    store: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, ViewsFault> {
    Ok(store.prepare_cached(sql)?.query_row(parameters, read).optional()?)
}
