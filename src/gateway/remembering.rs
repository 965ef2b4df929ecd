//! What a workspace remembers of a ledger that is kept elsewhere: the last entry that each of its files has seen.
//!
//! The ledger may be put back from a backup behind its back, so every record is held against it. A workspace that has
//! records of another ledger is not let near this one.

use serde::Deserialize;

use super::{Files, GatewayFault, read_checkpoint};
use crate::ledger::postgres::{Database, Noted, PostgresFault, Remembered};
use crate::ledger::{Head, RunningHash, gateway_key_id};
use crate::os::{clock, files};
use crate::proof::Seed;
use crate::state::Publisher;
use crate::timestamp::Timestamp;
use crate::views::follows;

/// Is all there that the workspace remembers? If entries of it were given up when a new epoch began, puts aside what
/// remembers them. If they are lost, closes the ledger to everybody.
pub(super) fn hold_against(database: &Database, files: &Files, seed: &Seed) -> Result<(), GatewayFault> {
    let records = records(files, seed, database.topic_id())?;
    for record in records {
        if database.has(record.head).map_err(GatewayFault::Database)? {
            continue;
        }
        let gateway = gateway_key_id(&seed.public_hex());
        match database.note_loss(&gateway, record).map_err(GatewayFault::Database)? {
            Noted::NotLost => {}
            Noted::GivenUp => return put_aside(files),
            Noted::Closed => {
                let (found, _) = database.head().map_err(GatewayFault::Database)?;
                let (remembered, found) = (record.head.sequence, found.sequence);
                return Err(GatewayFault::Database(PostgresFault::Gone { remembered, found }));
            }
        }
    }
    Ok(())
}

/// What the files say, of this ledger only.
fn records(files: &Files, seed: &Seed, topic_id: &str) -> Result<Vec<Remembered>, GatewayFault> {
    let mut records = Vec::new();
    if let Some(checkpoint) = read_checkpoint(&files.checkpoint())? {
        let head = checkpoint.verify(&seed.public_hex());
        let head = head.ok_or_else(|| GatewayFault::BadCheckpoint(files.checkpoint()))?;
        if checkpoint.topic_id != topic_id {
            return Err(GatewayFault::OtherLedger {
                path: files.checkpoint(),
                theirs: checkpoint.topic_id,
                found: topic_id.to_owned(),
            });
        }
        records.push(Remembered { head, time: Timestamp::parse(&checkpoint.time) });
    }
    // Views of another ledger are made anew.
    if let Some(follows) = follows(&files.views(), topic_id)
        && let Some(running_hash) = RunningHash::from_hex(&follows.running_hash)
    {
        records
            .push(Remembered { head: Head { sequence: follows.sequence, running_hash }, time: follows.time });
    }
    // The state file does not say which ledger it is of: it counts beside something that does.
    if !records.is_empty() {
        records.extend(published(files));
    }
    Ok(records)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    ledger: Place,
    updated_at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    sequence: u64,
    running_hash: String,
}

/// The entry that the state file names. One that cannot be read is somebody else's to complain about.
fn published(files_of: &Files) -> Option<Remembered> {
    let text = Publisher::new(files_of.state()).read().ok()??;
    let Published { ledger, updated_at } = serde_json::from_str(&text).ok()?;
    let running_hash = RunningHash::from_hex(&ledger.running_hash)?;
    let head = Head { sequence: ledger.sequence, running_hash };
    (head.sequence > 0).then(|| Remembered { head, time: Timestamp::parse(&updated_at) })
}

/// Moves what follows the ledger into a directory of its own, for the record: all of it is made again.
fn put_aside(files_of: &Files) -> Result<(), GatewayFault> {
    let aside = files_of.memory().join(format!("given-up-{}", clock::now().unix_milliseconds()));
    let io = |path: &std::path::Path| {
        let path = path.to_owned();
        move |error: std::io::Error| GatewayFault::Io { path, why: error.to_string() }
    };
    files::make_private_directory(&aside).map_err(io(&aside))?;
    // The checkpoint last: while it is there, whatever was left behind is found again.
    let views = files_of.views();
    let beside = |suffix: &str| views.with_file_name(format!("views.db{suffix}"));
    for path in [
        files_of.state(),
        files_of.state_snapshot(),
        // What lies beside them is of no use without them, and is taken for that.
        views.clone(),
        beside("-wal"),
        beside("-shm"),
        files_of.checkpoint(),
    ] {
        let Some(name) = path.file_name().filter(|_| std::fs::symlink_metadata(&path).is_ok()) else {
            continue;
        };
        files::rename(&path, &aside.join(name)).map_err(io(&path))?;
    }
    tracing::warn!(
        directory = %aside.display(),
        "entries that this workspace remembers were given up when a new epoch began; what it had of them was put aside"
    );
    Ok(())
}
