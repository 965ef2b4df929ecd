//! The tables compared, row by row, with what the ledger gives.

use std::cmp::Ordering;
use std::fmt;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

use super::fault::{ViewsFault, damaged};
use super::words::Words;
use super::{Views, store};
use crate::json::printable;
use crate::ledger::Entry;
use crate::limits;
use crate::proof::to_hex;

/// The first place where the tables are not what the ledger gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub table: String,
    /// The row, by its key: `sequence 7`.
    pub row: String,
    pub kind: DifferenceKind,
}

/// In what way they are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The ledger gives the row, the tables do not have it.
    Missing,
    /// The tables have the row, the ledger does not give it.
    Spare,
    Value {
        column: String,
        found: String,
        expected: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the views differ from the ledger in table `{}`, {}: ", self.table, self.row)?;
        match &self.kind {
            DifferenceKind::Missing => write!(f, "the row is missing"),
            DifferenceKind::Spare => write!(f, "the ledger does not give this row"),
            DifferenceKind::Value { column, found, expected } => {
                write!(f, "`{column}` is {found}, and the ledger gives {expected}")
            }
        }
    }
}

/// Makes the tables again, aside, and says where they first differ from those in the file.
///
/// The file is taken as it is at one moment, while its writer may go on; `entries` is asked for the ledger up to
/// the entry that it had come to by then.
pub fn compare<I: IntoIterator<Item = Entry>>(
    path: &Path,
    topic_id: &str,
    entries: impl FnOnce(u64) -> I,
) -> Result<Option<Difference>, ViewsFault> {
    let connection = store::connect_to_read(path)?;
    let found = connection.unchecked_transaction()?;
    store::check_to_read(&found)?;
    let applied = store::applied(&found, topic_id)?;
    let sound: String = found.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if sound != "ok" {
        return Err(damaged(sound));
    }
    let expected = made_again(topic_id, entries(applied.sequence))?;
    let mut tables = expected.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables = tables.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    for table in tables {
        if let Some(difference) = compare_table(&table, &found, &expected)? {
            return Ok(Some(difference));
        }
    }
    Ok(None)
}

/// The tables as the entries give them, in a file without a name that goes with the connection.
fn made_again(topic_id: &str, entries: impl IntoIterator<Item = Entry>) -> Result<Connection, ViewsFault> {
    let mut connection = store::connect_to_scratch()?;
    store::migrate(&mut connection, topic_id, store::Begin::Following)?;
    let applied = store::applied(&connection, topic_id)?;
    store::begin_rebuild(&mut connection)?;
    let mut views = Views { connection, applied, words: Words::default(), doubled: None };
    let mut entries = entries.into_iter().peekable();
    while entries.peek().is_some() {
        views.apply(entries.by_ref().take(limits::VIEW_REBUILD_ENTRIES))?;
    }
    // Nobody searches it, so it is whole without its indexes.
    views.connection.execute("UPDATE applied SET rebuilding = 0", [])?;
    Ok(views.connection)
}

/// A row: its key, and all of its values.
type Row = (Vec<i64>, Vec<Value>);

fn compare_table(
    table: &str,
    found: &Connection,
    expected: &Connection,
) -> Result<Option<Difference>, ViewsFault> {
    let mut keys = expected.prepare("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?;
    let keys = keys.query_map([table], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    // Keys are whole numbers and stand first; both tables have the same columns, that was checked.
    let query = format!("SELECT * FROM {table} ORDER BY {}", keys.join(", "));
    let (mut found, mut expected) = (found.prepare(&query)?, expected.prepare(&query)?);
    let columns: Vec<String> = expected.column_names().map(str::to_owned).collect();
    let (mut found, mut expected) = (found.query([])?, expected.query([])?);
    let read = |rows: &mut rusqlite::Rows<'_>| -> Result<Option<Row>, ViewsFault> {
        let Some(row) = rows.next()? else { return Ok(None) };
        let values = (0..columns.len()).map(|n| row.get(n)).collect::<Result<Vec<Value>, _>>()?;
        let key = (0..keys.len()).map(|n| row.get(n)).collect::<Result<Vec<i64>, _>>()?;
        Ok(Some((key, values)))
    };
    let difference = |key: &[i64], kind| {
        let row: Vec<String> = keys.iter().zip(key).map(|(name, value)| format!("{name} {value}")).collect();
        Some(Difference { table: table.to_owned(), row: row.join(", "), kind })
    };
    loop {
        let (found, expected) = match (read(&mut found)?, read(&mut expected)?) {
            (None, None) => return Ok(None),
            (Some((key, _)), None) => return Ok(difference(&key, DifferenceKind::Spare)),
            (None, Some((key, _))) => return Ok(difference(&key, DifferenceKind::Missing)),
            (Some(found), Some(expected)) => (found, expected),
        };
        match found.0.cmp(&expected.0) {
            Ordering::Less => return Ok(difference(&found.0, DifferenceKind::Spare)),
            Ordering::Greater => return Ok(difference(&expected.0, DifferenceKind::Missing)),
            Ordering::Equal => {}
        }
        let mut values = columns.iter().zip(found.1.iter().zip(&expected.1));
        if let Some((column, (is, should))) = values.find(|(_, (is, should))| is != should) {
            let column = column.clone();
            let kind = DifferenceKind::Value { column, found: shown(is), expected: shown(should) };
            return Ok(difference(&found.0, kind));
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => format!("`{}`", printable(text)),
        Value::Blob(bytes) => to_hex(bytes),
    }
}
