//! What the views promise, over made-up ledgers.

mod cases;
mod claims;
mod compare;
mod damage;
mod files;
mod history;
mod plans;
mod search;
mod tally;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::Value;

use super::*;

const TOPIC: &str = "gw_test \"é\"";

/// A directory that goes when the test ends, and the file in it.
struct Place {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("views.db");
        Self { _directory: directory, path }
    }
}

/// Tables that hold these entries.
fn holding(path: &Path, entries: &[Entry]) -> Views {
    let mut views = Views::open(path, TOPIC).unwrap();
    assert_eq!(views.apply(entries.to_vec()).unwrap(), entries.len() as u64);
    views
}

/// Every table, index and row, in an order of its own.
fn dump(connection: &Connection) -> Vec<String> {
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut lines = texts(
        "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY type, name",
    );
    for table in texts("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<Value> = (0..columns).map(|column| row.get(column).unwrap()).collect();
            lines.push(format!("{table} {values:?}"));
        }
    }
    lines
}
