//! What a workspace remembers of its ledger: the last entry that each of its files has seen.
//!
//! A ledger may be put back from a backup, cut or replaced behind its back, so every record is held against it. A workspace
//! that has records of another ledger in a database is not let near this one.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Files, GatewayFault, closed, public_key, read_checkpoint};
use crate::ledger::postgres::{Database, Noted, PostgresFault, Remembered};
use crate::ledger::{Head, OpenFault, RunningHash, Source, gateway_key_id, name_of_log};
use crate::limits;
use crate::os::{clock, files};
use crate::proof::Seed;
use crate::state::{Publisher, signed_head};
use crate::timestamp::Timestamp;
use crate::views::{follows, follows_any};

/// An entry that was there, by a file that has seen it.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) path: PathBuf,
    pub(super) head: Head,
}

/// What a workspace remembers of the ledger in its own files; of any ledger, where it has none. Views of another topic
/// follow something else, and so does a snapshot.
pub(super) fn of_files(
    files_of: &Files,
    public_hex: Option<&str>,
    topic_id: Option<&str>,
) -> Result<Vec<Record>, GatewayFault> {
    let is_meant = |theirs: &str| topic_id.is_none_or(|topic_id| topic_id == theirs);
    let mut records = Vec::new();
    let mut has_seen = |path: PathBuf, head: Head| {
        if head.sequence > 0 {
            records.push(Record { path, head });
        }
    };
    if let Some(public_hex) = public_hex {
        if let Some(checkpoint) = read_checkpoint(&files_of.checkpoint())? {
            let head = checkpoint.verify(public_hex);
            has_seen(
                files_of.checkpoint(),
                head.ok_or_else(|| GatewayFault::BadCheckpoint(files_of.checkpoint()))?,
            );
        }
        let text = files::read_bounded(&files_of.state_snapshot(), limits::SNAPSHOT_BYTES_MAX).ok();
        let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        if let Some((_, head)) = signed_head(&text, public_hex).filter(|(theirs, _)| is_meant(theirs)) {
            has_seen(files_of.state_snapshot(), head);
        }
    }
    if let Some((_, views)) = follows_any(&files_of.views()).filter(|(theirs, _)| is_meant(theirs))
        && let Some(running_hash) = RunningHash::from_hex(&views.running_hash)
    {
        has_seen(files_of.views(), Head { sequence: views.sequence, running_hash });
    }
    if let Some(published) = published(files_of) {
        has_seen(files_of.state(), published.head);
    }
    Ok(records)
}

/// Why a ledger in files does not open, with whoever remembers what it lacks.
pub(super) fn blame(fault: OpenFault, records: &[Record]) -> GatewayFault {
    let newest = || records.iter().max_by_key(|record| record.head.sequence);
    let by = match &fault {
        OpenFault::Truncated { expected: sequence, .. } | OpenFault::Different { sequence } => {
            records.iter().find(|record| record.head.sequence == *sequence)
        }
        OpenFault::Damaged { after, .. } => newest().filter(|record| record.head.sequence > *after),
        OpenFault::Io { .. } | OpenFault::Gap { .. } | OpenFault::Foreign { .. } => None,
    };
    match by {
        Some(Record { path, .. }) => GatewayFault::Forgotten { path: path.clone(), fault },
        None => GatewayFault::Ledger(fault),
    }
}

/// Is all of it there? A log that opens looks at its last segment; this looks at the others, too.
pub(super) fn hold_files(ledger: &Source, records: &[Record]) -> Result<(), GatewayFault> {
    for Record { path, head } in records {
        if !ledger.has(*head).map_err(GatewayFault::Unread)? {
            let fault = OpenFault::Different { sequence: head.sequence };
            return Err(GatewayFault::Forgotten { path: path.clone(), fault });
        }
    }
    Ok(())
}

/// The same for whoever takes the ledger elsewhere, where nobody would remember.
pub(super) fn hold_before_leaving(files_of: &Files) -> Result<(), GatewayFault> {
    let topic_id = name_of_log(&files_of.ledger(), &files_of.journal()).map_err(GatewayFault::Ledger)?;
    // Of a copy that was closed others have seen more, and it says so itself.
    if topic_id.is_none() || closed(files_of)?.is_some() {
        return Ok(());
    }
    let public_hex = public_key(files_of).ok();
    let records = of_files(files_of, public_hex.as_deref(), topic_id.as_deref())?;
    hold_files(&Source::files(&files_of.ledger()), &records)
}

/// What says that the workspace has or had a ledger, whatever it is called and wherever it is; nothing in a new one. One in
/// its files that cannot be read is one.
pub(super) fn any(files_of: &Files, seed: &Seed) -> Result<Option<PathBuf>, GatewayFault> {
    let records = of_files(files_of, Some(&seed.public_hex()), None)?;
    if let Some(record) = records.into_iter().next() {
        return Ok(Some(record.path));
    }
    let has_entries = !matches!(name_of_log(&files_of.ledger(), &files_of.journal()), Ok(None));
    Ok(if has_entries {
        Some(files_of.ledger())
    } else {
        Some(files_of.journal()).filter(|journal| journal.exists())
    })
}

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
    if let Ok(Some(theirs)) = name_of_log(&files.ledger(), &files.journal())
        && theirs != topic_id
    {
        return Err(GatewayFault::OtherLedger { path: files.ledger(), theirs, found: topic_id.to_owned() });
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
