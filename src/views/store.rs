//! The file: opening it, its version, whom it follows, and what changes while it is being rebuilt.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::fault::{Rebuild, ViewsFault, damaged};
use super::follow::Applied;
use super::sum::Sum;
use crate::ledger::RunningHash;
use crate::limits;

/// Each brings a file from the version before it to its own; the first is version 1. Never changed, only added.
const MIGRATIONS: [&str; 8] = [
    include_str!("schema_001.sql"),
    include_str!("schema_002.sql"),
    include_str!("schema_003.sql"),
    include_str!("schema_004.sql"),
    include_str!("schema_005.sql"),
    include_str!("schema_006.sql"),
    include_str!("schema_007.sql"),
    include_str!("schema_008.sql"),
];

/// What marks a file as ours ("hofd").
const APPLICATION_ID: i64 = 0x686f_6664;

/// The writer's connection.
pub(super) fn connect(path: &Path) -> Result<Connection, ViewsFault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    regular(path)?;
    make_private(path);
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(damaged(format_args!("its journal is `{mode}`")));
    }
    // NORMAL: a power cut may lose the newest transactions, never the order; the ledger has them.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "wal_autocheckpoint", limits::VIEW_JOURNAL_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", limits::VIEW_JOURNAL_BYTES_MAX)?;
    connection.pragma_update(None, "cache_size", -limits::VIEW_CACHE_KIB)?;
    Ok(connection)
}

/// SQLite opens whatever is there, and with a pipe it waits for somebody to write into it. What is no file holds no tables, so
/// it is of no use.
fn regular(path: &Path) -> Result<(), ViewsFault> {
    let is_other = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    match [path.to_owned()].into_iter().chain(beside(path)).find(is_other) {
        Some(path) => Err(damaged(format_args!("{} is not a regular file", path.display()))),
        None => Ok(()),
    }
}

/// A new file is its owner's alone, like the ledger it is made from; SQLite gives its journal the same mode. What cannot
/// be made is for SQLite to say.
fn make_private(path: &Path) {
    let _ = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
}

/// A reader's connection. It cannot write, and in WAL mode nobody waits for it.
pub(super) fn connect_to_read(path: &Path) -> Result<Connection, ViewsFault> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    regular(path)?;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    Ok(connection)
}

/// A connection to a file of its own that has no name, and goes when the connection does.
pub(super) fn connect_to_scratch() -> Result<Connection, ViewsFault> {
    let connection = Connection::open("")?;
    prepare(&connection)?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<(), ViewsFault> {
    connection.busy_timeout(Duration::from_millis(limits::VIEW_BUSY_MS))?;
    connection.set_prepared_statement_cache_capacity(limits::VIEW_STATEMENTS_MAX);
    // One plan for one statement. Without this SQLite plans again for every value that is bound, which costs
    // more than the statements themselves.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// What a file that has nothing in it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// Tables that follow from the first entry on.
    Following,
    /// Tables of which nobody may read before they are filled.
    Rebuilding,
}

/// Brings the file to our version; one that has nothing in it starts at 0.
pub(super) fn migrate(connection: &mut Connection, topic_id: &str, begin: Begin) -> Result<(), ViewsFault> {
    let version = version(connection)?;
    if version == MIGRATIONS.len() as i64 {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for (number, migration) in (1..).zip(MIGRATIONS).filter(|(number, _)| *number > version) {
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", number)?;
    }
    if version == 0 {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.execute(
            "INSERT INTO applied (one, topic_id, sequence, running_hash, rebuilding) VALUES (1, ?1, 0, ?2, ?3)",
            (topic_id, RunningHash::genesis(topic_id).to_string(), begin == Begin::Rebuilding),
        )?;
    }
    transaction.commit()?;
    Ok(())
}

/// How far the tables say that they have come.
pub(super) fn reached(connection: &Connection) -> Result<u64, ViewsFault> {
    Ok(connection.query_row("SELECT sequence FROM applied", [], |row| row.get(0))?)
}

/// The version of the file, if it is one of ours.
pub(super) fn version(connection: &Connection) -> Result<i64, ViewsFault> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (found, application) = (number("user_version")?, number("application_id")?);
    let known = MIGRATIONS.len() as i64;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match found {
        0 if tables == 0 && application == 0 => Ok(0),
        _ if application != APPLICATION_ID => Err(damaged("it was made by another program")),
        _ if found > known => Err(ViewsFault::NeedsRebuild(Rebuild::Newer { found, known })),
        _ => Ok(found),
    }
}

/// How far the tables have come, if they follow this topic and are whole.
pub(super) fn applied(connection: &Connection, topic_id: &str) -> Result<Applied, ViewsFault> {
    let (follows, sequence, running_hash, rebuilding, claims) = connection.query_row(
        "SELECT topic_id, sequence, running_hash, rebuilding, claims FROM applied",
        [],
        |row| {
            let rebuilding: bool = row.get(3)?;
            Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?, row.get(2)?, rebuilding, row.get(4)?))
        },
    )?;
    if follows != topic_id {
        return Err(ViewsFault::NeedsRebuild(Rebuild::Foreign { topic_id: follows }));
    }
    if rebuilding {
        return Err(ViewsFault::NeedsRebuild(Rebuild::Unfinished));
    }
    if tables(connection)? != tables(&as_made()?)? {
        return Err(damaged("somebody changed its tables or indexes"));
    }
    let last: Option<u64> =
        connection.query_row("SELECT max(sequence) FROM entries", [], |row| row.get(0))?;
    if last.unwrap_or(0) != sequence {
        return Err(damaged("it does not hold the entries that it says it holds"));
    }
    Ok(Applied { sequence, running_hash, claims: Sum::from_column(claims) })
}

/// The tables and indexes that there are.
fn tables(connection: &Connection) -> Result<Vec<(String, Option<String>)>, ViewsFault> {
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")?;
    let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(tables.collect::<Result<_, _>>()?)
}

/// The tables and indexes that there should be, in memory and empty.
fn as_made() -> Result<Connection, ViewsFault> {
    let connection = Connection::open_in_memory()?;
    for migration in MIGRATIONS {
        connection.execute_batch(migration)?;
    }
    Ok(connection)
}

/// A reader asks less: its version, and whether it is whole.
pub(super) fn check_to_read(connection: &Connection) -> Result<(), ViewsFault> {
    match version(connection)? {
        0 => return Err(ViewsFault::NeedsRebuild(Rebuild::Unmade)),
        found if found != MIGRATIONS.len() as i64 => {
            return Err(damaged("its tables are of an earlier version"));
        }
        _ => {}
    }
    let rebuilding: bool = connection.query_row("SELECT rebuilding FROM applied", [], |row| row.get(0))?;
    if rebuilding { Err(ViewsFault::NeedsRebuild(Rebuild::Unfinished)) } else { Ok(()) }
}

/// Is there no file, or one without a byte in it? What lies beside it is then of a file that is gone. SQLite deletes
/// such a journal, but not its index, which it takes as true while another process still has the old file open: it
/// then looks for pages in a journal that has none.
pub(crate) fn holds_nothing(path: &Path) -> bool {
    std::fs::metadata(path).map_or_else(
        |error| error.kind() == std::io::ErrorKind::NotFound,
        |metadata| metadata.is_file() && metadata.len() == 0,
    )
}

/// What SQLite keeps beside the file: its journal, and the index of that, which connections share.
pub(crate) fn beside(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}

/// Deletes the file and what SQLite keeps beside it.
pub(crate) fn delete(path: &Path) -> Result<(), ViewsFault> {
    // The file itself goes first: a journal without its file is nothing, a file without its journal is damaged.
    for path in [path.to_owned()].into_iter().chain(beside(path)) {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(ViewsFault::Io(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Takes the indexes away, and says in the file that it is unfinished.
pub(super) fn begin_rebuild(connection: &mut Connection) -> Result<Vec<String>, ViewsFault> {
    connection.pragma_update(None, "cache_size", -limits::VIEW_REBUILD_CACHE_KIB)?;
    let transaction = connection.transaction()?;
    transaction.execute("UPDATE applied SET rebuilding = 1", [])?;
    // What belongs to a table's own definition has no text here, and stays: rows are looked up by it.
    let indexes: Vec<(String, String)> = transaction
        .prepare(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (name, _) in &indexes {
        transaction.execute_batch(&format!("DROP INDEX {name}"))?;
    }
    transaction.commit()?;
    Ok(indexes.into_iter().map(|(_, sql)| sql).collect())
}

/// Puts the indexes back, one transaction each so that the journal stays small, and only then says it is whole.
pub(super) fn end_rebuild(connection: &mut Connection, indexes: &[String]) -> Result<(), ViewsFault> {
    for index in indexes {
        connection.execute_batch(index)?;
    }
    connection.execute("UPDATE applied SET rebuilding = 0", [])?;
    // Moves the journal into the file; a reader that stands in the way only puts it off.
    let _busy: Option<i64> =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).optional()?;
    connection.pragma_update(None, "cache_size", -limits::VIEW_CACHE_KIB)?;
    Ok(())
}
