//! The ledger that a workspace is served on: the log to append to, and a way to read it back.

use std::sync::Arc;

use super::seals::Keeping;
use super::{
    Files, GatewayFault, Record, closed, new_topic_id, public_key, read_checkpoint, remembering, seals,
};
use crate::engine::EpochFacts;
use crate::ledger::postgres::{Database, PostgresFault, PostgresLog, anchored};
use crate::ledger::{
    Closing, Head, Log, MemoryLog, OpenFault, RealDisk, Seals, SegmentLog, Source, Torn, gateway_key_id,
    name_of_log,
};
use crate::proof::Seed;
use crate::settings::LedgerUrl;
use crate::timestamp::Timestamp;

pub(super) struct Opened {
    pub(super) log: Box<dyn Log>,
    pub(super) source: Source,
    /// The time of the last entry.
    pub(super) last_timestamp: Option<Timestamp>,
    pub(super) torn: Option<Torn>,
    /// The entry that the checkpoint speaks of, if there is one.
    pub(super) remembered: Option<Head>,
    /// The epoch that has to begin before anything else is appended.
    pub(super) epoch: Option<Epoch>,
    /// Of a ledger in files.
    pub(super) seals: Seals,
}

/// An epoch that settles what a database has lost.
pub(super) struct Epoch {
    pub(super) facts: EpochFacts,
    pub(super) database: Database,
    /// What keeps all others from appending until it has begun.
    pub(super) mark: Closing,
}

/// Opens it, and holds what the workspace remembers against it: a ledger that lacks an entry does not open.
/// Of files, `tell` hears how many full segments of how many have been seen, and what was read of them is kept at once: a
/// start that is killed goes on where it was.
pub(super) fn open(
    files: &Files,
    url: &LedgerUrl,
    seed: &Arc<Seed>,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Opened, GatewayFault> {
    let topic_id = new_topic_id()?;
    match url {
        LedgerUrl::Segments => {
            let remembered = remembered(files, seed)?;
            if let Some(why) = closed::closed(files)? {
                return Err(GatewayFault::Closed { path: files.closed(), why });
            }
            let known_as = name_of_log(&files.ledger(), &files.journal()).map_err(GatewayFault::Ledger)?;
            let records = remembering::of_files(files, Some(&seed.public_hex()), known_as.as_deref())?;
            let heads: Vec<Head> = records.iter().map(|record| record.head).collect();
            let seals = seals::read(files, known_as.as_deref(), &seed.public_hex());
            let keeping = known_as.map(|topic_id| Keeping {
                seals: seals.clone(),
                topic_id,
                path: files.seals(),
                seed: seed.clone(),
            });
            let mut read_one = |seen, all| {
                keeping.iter().for_each(Keeping::write);
                tell(seen, all);
            };
            let (log, torn) = open_files(files, &topic_id, &heads, (seals.clone(), &mut read_one))
                .map_err(|fault| remembering::blame(files, fault, &records))?;
            if seals.read_through() > 0 {
                let segments = seals.read_through();
                tracing::info!(
                    segments,
                    "read full segments through that were touched since, or are new here"
                );
            }
            let (last_timestamp, source) = (log.last_timestamp(), Source::files(&files.ledger()));
            remembering::hold(files, &source, &records)?;
            Ok(Opened { log: Box::new(log), source, last_timestamp, torn, remembered, epoch: None, seals })
        }
        LedgerUrl::Memory => {
            let log = MemoryLog::new(&topic_id);
            let source = Source::Memory(log.store().clone());
            let (last_timestamp, torn, remembered) = (None, None, remembered(files, seed)?);
            let (epoch, seals) = (None, Seals::default());
            Ok(Opened { log: Box::new(log), source, last_timestamp, torn, remembered, epoch, seals })
        }
        LedgerUrl::Postgres(url) => {
            let url = anchored(url.expose(), files.workspace());
            // Whoever has a ledger, or has followed one, was given the wrong address, or has to copy it first.
            let database = match remembering::any(files, seed)? {
                Some(path) => Database::open_existing(&url).map_err(|fault| match fault {
                    PostgresFault::NoLedger => GatewayFault::NoLedger(path),
                    fault => GatewayFault::Database(fault),
                }),
                None => Database::open(&url, &topic_id).map_err(GatewayFault::Database),
            }?;
            remembering::hold_against(&database, files, seed)?;
            // Read again: what remembers entries that were given up has been put aside.
            let remembered = remembered(files, seed)?;
            let mark = database.closed().map_err(GatewayFault::Database)?;
            let epoch = match &mark {
                None => None,
                Some(Closing::Settled { kept, running_hash, time }) => Some(EpochFacts {
                    backup_time: time.clone(),
                    restored_head: *kept,
                    restored_hash: running_hash.clone(),
                }),
                Some(why) => return Err(GatewayFault::ClosedDatabase(why.clone())),
            };
            let log = PostgresLog::open_marked(&database, remembered.as_slice(), mark.as_ref())
                .map_err(GatewayFault::Database)?;
            let log = log.keeping_turns().noting_losses_of(&gateway_key_id(&seed.public_hex()));
            let (last_timestamp, source) = (log.last_timestamp(), Source::Database(database.clone()));
            let epoch = epoch.zip(mark).map(|(facts, mark)| Epoch { facts, database, mark });
            let (torn, seals) = (None, Seals::default());
            Ok(Opened { log: Box::new(log), source, last_timestamp, torn, remembered, epoch, seals })
        }
    }
}

fn open_files(
    files: &Files,
    topic_id: &str,
    remembered: &[Head],
    seals: (Seals, &mut dyn FnMut(u64, u64)),
) -> Result<(SegmentLog, Option<Torn>), OpenFault> {
    let (disk, directory, journal) = (Arc::new(RealDisk), files.ledger(), files.journal());
    SegmentLog::open_with_journal(disk, &directory, &journal, topic_id, remembered, seals)
}

/// Puts back into the segments what a power cut took from them and the journal has, for those who read the segments
/// alone. Whoever asks for it holds the workspace. A start is not the only one that could cut something off: what the
/// workspace remembers is held against the ledger before anything is changed.
pub(super) fn settle_journal(files: &Files) -> Result<(), GatewayFault> {
    if !files.journal().exists() {
        return Ok(());
    }
    let topic_id = name_of_log(&files.ledger(), &files.journal()).map_err(GatewayFault::Ledger)?;
    let public_hex = public_key(files).ok();
    let mut records = remembering::of_files(files, public_hex.as_deref(), topic_id.as_deref())?;
    let settle = |records: &[Record]| {
        let heads: Vec<Head> = records.iter().map(|record| record.head).collect();
        let public_hex = public_hex.as_deref().unwrap_or_default();
        let seals = seals::read(files, topic_id.as_deref(), public_hex);
        // The ledger has a name already: nothing is in a journal before there is an entry.
        open_files(files, "", &heads, (seals, &mut |_, _| {}))
            .map_err(|fault| remembering::blame(files, fault, records))
    };
    let settled = match settle(&records) {
        // That file alone is wrong, which is for others to say: all else is still held against the ledger.
        Err(GatewayFault::StateEdited { .. }) => {
            records.retain(|record| !record.is_state());
            settle(&records)
        }
        settled => settled,
    };
    settled.map(drop)
}

/// Is all there that the workspace remembers, once what a power cut took from the segments is put back into them? Whoever
/// asks for it holds the workspace.
pub fn hold_settled(files: &Files, ledger: &Source) -> Result<(), GatewayFault> {
    if let Source::Files(directory) = ledger
        && directory.is_dir()
    {
        settle_journal(files)?;
    }
    remembering::hold_ledger(files, ledger)
}

fn remembered(files: &Files, seed: &Seed) -> Result<Option<Head>, GatewayFault> {
    let Some(checkpoint) = read_checkpoint(&files.checkpoint())? else { return Ok(None) };
    let head = checkpoint.verify(&seed.public_hex());
    head.map(Some).ok_or_else(|| GatewayFault::BadCheckpoint(files.checkpoint()))
}
