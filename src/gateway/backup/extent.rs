//! Up to which entry a ledger is copied.

use std::time::{Duration, Instant};

use super::BackupFault;
use crate::gateway::opened::settle_journal;
use crate::gateway::remembering::{hold_ledger, newest_seen};
use crate::gateway::{Files, GatewayFault, LockFault, WorkspaceLock};
use crate::ledger::{EntriesFault, Head, RecordedSegments, Source, inspect, name_of_log};

/// How long a gateway is given to tell others of what it has written, and how often they are asked.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// What the ledger is called, and the last entry to copy; nothing if it has none. One that lacks entries is copied only by
/// whoever names the last one that is left.
pub(super) fn through(source: &Files, keep: Option<u64>) -> Result<Option<(String, Head)>, BackupFault> {
    let found = found(source);
    let Some(keep) = keep else { return found };
    if let Err(fault) = &found
        && !is_of_the_ledger(fault)
    {
        return found;
    }
    let Some((topic_id, left)) = left(source)? else { return Ok(None) };
    let is_whole = matches!(&found, Ok(Some((_, head))) if *head == left);
    if is_whole || left.sequence != keep || keep == 0 {
        return Err(BackupFault::NotTheLast { last: left.sequence, is_whole });
    }
    Ok(Some((topic_id, left)))
}

fn found(source: &Files) -> Result<Option<(String, Head)>, BackupFault> {
    // A gateway that starts meanwhile goes on behind what is copied.
    match WorkspaceLock::take(&source.lock(), "backup") {
        Ok(_held) => {
            settle_journal(source).map_err(BackupFault::Gateway)?;
            match hold_ledger(source, &Source::files(&source.ledger())) {
                // That file is wrong and nothing else, and it is not copied.
                Ok(()) | Err(GatewayFault::StateEdited { .. }) => {}
                Err(fault) => return Err(BackupFault::Gateway(fault)),
            }
            inspect(&source.ledger()).map_err(BackupFault::Open)
        }
        // Or the workspace cannot be written to, and what its journal has not be put back.
        Err(LockFault::Held { .. } | LockFault::Io { .. }) => acknowledged(source),
    }
}

/// Of a ledger that a gateway appends to: a batch is in its segment before it is durable, and is cut off again if that fails.
/// So it is copied as far as somebody has seen it, which all that was acknowledged before comes to in a moment.
fn acknowledged(source: &Files) -> Result<Option<(String, Head)>, BackupFault> {
    let ledger = source.ledger();
    let Some((topic_id, written)) = inspect(&ledger).map_err(BackupFault::Open)? else { return Ok(None) };
    let until = Instant::now() + PATIENCE;
    loop {
        let seen = newest_seen(source, &Source::files(&ledger));
        match seen {
            Ok(Some(seen)) if seen.sequence >= written.sequence => return Ok(Some((topic_id, seen))),
            Ok(seen) if Instant::now() >= until => return Ok(seen.map(|seen| (topic_id, seen))),
            // The gateway puts an edited state file right by itself.
            Err(fault) if !matches!(fault, GatewayFault::StateEdited { .. }) || Instant::now() >= until => {
                return Err(BackupFault::Gateway(fault));
            }
            Ok(_) | Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Is it the ledger that is not as it was, and not something that keeps it from being looked at?
fn is_of_the_ledger(fault: &BackupFault) -> bool {
    match fault {
        BackupFault::Gateway(fault) => matches!(
            fault,
            GatewayFault::Ledger(_)
                | GatewayFault::Forgotten { .. }
                | GatewayFault::Unread(EntriesFault::Damaged { .. } | EntriesFault::Hole { .. })
        ),
        fault => matches!(fault, BackupFault::Open(_)),
    }
}

/// The end of the last batch up to which the chain holds. Nothing is changed: what is wrong with the ledger stays there to be
/// looked at.
fn left(source: &Files) -> Result<Option<(String, Head)>, BackupFault> {
    // A gateway that is at work on it knows better.
    let _held = WorkspaceLock::take(&source.lock(), "backup")
        .map_err(|fault| BackupFault::Gateway(GatewayFault::Lock(fault)))?;
    let ledger = source.ledger();
    let topic_id = name_of_log(&ledger, &source.journal()).map_err(BackupFault::Open)?;
    let Some(topic_id) = topic_id else { return Ok(None) };
    let (mut head, mut last_timestamp) = (Head::genesis(&topic_id), None);
    let batches = RecordedSegments::after(&ledger, 0).map_err(BackupFault::Entries)?;
    for batch in batches.map_while(Result::ok) {
        let Ok(batch) = batch.again(&topic_id, head, last_timestamp) else { break };
        (head, last_timestamp) = (batch.head(), Some(batch.last_timestamp()));
    }
    Ok(Some((topic_id, head)))
}
