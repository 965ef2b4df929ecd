//! The ledger that a workspace is served on: the log to append to, and a way to read it back.

use std::sync::Arc;

use super::{Files, GatewayFault, closed, new_topic_id};
use crate::ledger::postgres::{Database, PostgresLog};
use crate::ledger::{Head, Log, MemoryLog, RealDisk, SegmentLog, Source, Torn};
use crate::settings::LedgerUrl;
use crate::timestamp::Timestamp;

pub(super) struct Opened {
    pub(super) log: Box<dyn Log>,
    pub(super) source: Source,
    /// The time of the last entry.
    pub(super) last_timestamp: Option<Timestamp>,
    pub(super) torn: Option<Torn>,
}

/// Opens it. `remembered` are entries that somebody has a record of: a ledger that lacks one of them does not open.
pub(super) fn open(files: &Files, url: &LedgerUrl, remembered: &[Head]) -> Result<Opened, GatewayFault> {
    let topic_id = new_topic_id()?;
    match url {
        LedgerUrl::Segments => {
            if let Some(why) = closed::closed(files)? {
                return Err(GatewayFault::Closed { path: files.closed(), why });
            }
            let directory = files.ledger();
            let (log, torn) = SegmentLog::open(Arc::new(RealDisk), &directory, &topic_id, remembered)
                .map_err(GatewayFault::Ledger)?;
            let last_timestamp = log.last_timestamp();
            Ok(Opened { log: Box::new(log), source: Source::files(&directory), last_timestamp, torn })
        }
        LedgerUrl::Memory => {
            let log = MemoryLog::new(&topic_id);
            let source = Source::Memory(log.store().clone());
            Ok(Opened { log: Box::new(log), source, last_timestamp: None, torn: None })
        }
        LedgerUrl::Postgres(url) => {
            let database = Database::open(url.expose(), &topic_id).map_err(GatewayFault::Database)?;
            if let Some(why) = database.closed().map_err(GatewayFault::Database)? {
                return Err(GatewayFault::ClosedDatabase(why));
            }
            let log = PostgresLog::open(&database, remembered).map_err(GatewayFault::Database)?;
            let log = log.keeping_turns();
            let last_timestamp = log.last_timestamp();
            Ok(Opened { log: Box::new(log), source: Source::Database(database), last_timestamp, torn: None })
        }
    }
}
