//! What a workspace remembers of its ledger: the last entry that each of its files has seen.
//!
//! A ledger may be put back from a backup, cut or replaced behind its back, so every record is held against it. A workspace
//! that has records of another ledger in a database is not let near this one.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Files, GatewayFault, closed, public_key, read_checkpoint, read_other_checkpoints, seals};
use crate::ledger::postgres::{Database, Noted, PostgresFault, Remembered};
use crate::ledger::{
    Head, OpenFault, RunningHash, Source, gateway_key_id, has_remains, journaled, name_of_log,
};
use crate::limits;
use crate::os::{clock, files};
use crate::proof::Seed;
use crate::state::{Publisher, rebuild, signed_head};
use crate::timestamp::Timestamp;
use crate::views::{follows, follows_any};

/// An entry that was there, by a file that has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub path: PathBuf,
    pub head: Head,
    by: Witness,
}

/// What remembers an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Witness {
    /// The checkpoint, a snapshot or seals: the gateway's key vouches for what it says.
    Signed,
    Views,
    /// Names an entry in plain text, which anybody can edit.
    State,
}

impl Record {
    pub(super) fn new(path: PathBuf, head: Head, by: Witness) -> Self {
        Self { path, head, by }
    }

    /// Is it the state file that says so?
    pub(super) fn is_state(&self) -> bool {
        self.by == Witness::State
    }
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
    let mut has_seen = |path: PathBuf, head: Head, by: Witness| {
        if head.sequence > 0 {
            records.push(Record { path, head, by });
        }
    };
    if let Some(public_hex) = public_hex {
        if let Some(checkpoint) = read_checkpoint(&files_of.checkpoint())? {
            let head = checkpoint.verify(public_hex);
            let head = head.ok_or_else(|| GatewayFault::BadCheckpoint(files_of.checkpoint()))?;
            has_seen(files_of.checkpoint(), head, Witness::Signed);
        }
        let text = files::read_bounded(&files_of.state_snapshot(), limits::SNAPSHOT_BYTES_MAX).ok();
        let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        if let Some((_, head)) = signed_head(&text, public_hex).filter(|(theirs, _)| is_meant(theirs)) {
            has_seen(files_of.state_snapshot(), head, Witness::Signed);
        }
        if let Some(head) = topic_id.and_then(|_| seals::read(files_of, topic_id, public_hex).newest()) {
            has_seen(files_of.seals(), head, Witness::Signed);
        }
    }
    for other in read_other_checkpoints(&files_of.other_checkpoints())? {
        let path = files_of.other_checkpoints();
        match other.checkpoint.verify(&other.public_key) {
            None => return Err(GatewayFault::BadCheckpoint(path)),
            Some(head) if is_meant(&other.checkpoint.topic_id) => has_seen(path, head, Witness::Signed),
            Some(_) => {}
        }
    }
    if let Some((_, views)) = follows_any(&files_of.views()).filter(|(theirs, _)| is_meant(theirs))
        && let Some(running_hash) = RunningHash::from_hex(&views.running_hash)
    {
        has_seen(files_of.views(), Head { sequence: views.sequence, running_hash }, Witness::Views);
    }
    if let Some(published) = published(files_of) {
        has_seen(files_of.state(), published.head, Witness::State);
    }
    Ok(records)
}

/// Why a ledger in files does not open, with whoever remembers what it lacks. The log names one entry; here every record
/// is held against it by itself, also against what its journal would put back.
pub(super) fn blame(files_of: &Files, fault: OpenFault, records: &[Record]) -> GatewayFault {
    let by = match &fault {
        OpenFault::Truncated { .. } | OpenFault::Different { .. } => {
            let source = Source::files(&files_of.ledger());
            let journaled = journaled(&files_of.ledger(), &files_of.journal()).unwrap_or_default();
            let lacks = |record: &&Record| {
                // What cannot be read there is no evidence against a record.
                !journaled.contains(&record.head) && source.has(record.head).is_ok_and(|has| !has)
            };
            let lacking: Vec<Record> = records.iter().filter(lacks).cloned().collect();
            if !lacking.is_empty() {
                let last = journaled.last().copied();
                return judge(files_of, &source, last, lacking, records);
            }
            // What no record says, only the seals can.
            vec![Record::new(files_of.seals(), Head::genesis(""), Witness::Signed)]
        }
        OpenFault::Damaged { after, .. } => {
            let newest = records.iter().max_by_key(|record| record.head.sequence);
            newest.filter(|record| record.head.sequence > *after).cloned().into_iter().collect()
        }
        OpenFault::Io { .. } | OpenFault::Gap { .. } | OpenFault::Foreign { .. } => Vec::new(),
    };
    if by.is_empty() { GatewayFault::Ledger(fault) } else { forgotten(files_of, by, fault) }
}

/// Is all of it there? A log that opens looks at its last segment; this looks at the others, too.
pub(super) fn hold(files_of: &Files, ledger: &Source, records: &[Record]) -> Result<(), GatewayFault> {
    let mut lacking = Vec::new();
    for record in records {
        if !ledger.has(record.head).map_err(GatewayFault::Unread)? {
            lacking.push(record.clone());
        }
    }
    if lacking.is_empty() { Ok(()) } else { Err(judge(files_of, ledger, None, lacking, records)) }
}

/// What is wrong: the ledger, which lacks entries, or the state file alone.
fn judge(
    files_of: &Files,
    ledger: &Source,
    journaled: Option<Head>,
    mut lacking: Vec<Record>,
    records: &[Record],
) -> GatewayFault {
    lacking.sort_by_key(|record| std::cmp::Reverse(record.head.sequence));
    let last = match (journaled, ledger.end()) {
        (Some(head), _) | (None, Ok(Some((_, head)))) => head.sequence,
        (None, Ok(None)) => 0,
        (None, Err(fault)) => return GatewayFault::Unread(fault),
    };
    if let [state] = lacking.as_slice()
        && state.by == Witness::State
        && let Some(how) = edited(files_of, ledger, last, state.head, records)
    {
        return GatewayFault::StateEdited { path: state.path.clone(), how };
    }
    let sequence = lacking.first().map_or(0, |record| record.head.sequence);
    let fault = if sequence > last {
        OpenFault::Truncated { sequence: last, expected: sequence }
    } else {
        OpenFault::Different { sequence }
    };
    forgotten(files_of, lacking, fault)
}

/// The ledger lacks what these have seen. May the state file, which anybody can edit, be all that is wrong? Not where there
/// are remains of what it speaks of: without it they count as torn, and what was decided there is decided again.
pub(super) fn forgotten(files_of: &Files, by: Vec<Record>, fault: OpenFault) -> GatewayFault {
    let may_be_edited = match fault {
        OpenFault::Truncated { .. } => !has_remains(&files_of.ledger()),
        OpenFault::Different { .. } => true,
        _ => false,
    };
    let may_be_edited = may_be_edited && by.iter().all(|record| record.by == Witness::State);
    GatewayFault::Forgotten { by, fault, may_be_edited }
}

/// How it is known that somebody edited the entry which the state file names, where all others agree with the ledger; nothing
/// if the file may as well be all that still tells of entries that are lost.
fn edited(files_of: &Files, ledger: &Source, last: u64, named: Head, records: &[Record]) -> Option<String> {
    let Head { sequence, .. } = named;
    // No two entries have the same running hash: whoever changed the number left it standing.
    let mut entries = ledger.entries(1, last).ok()?.map_while(Result::ok);
    if let Some(entry) = entries.find(|entry| entry.running_hash == named.running_hash) {
        return Some(format!("names entry {sequence} with the running hash of entry {}", entry.sequence));
    }
    if sequence > last {
        return None;
    }
    let vouches = |record: &&Record| record.by == Witness::Signed && record.head.sequence >= sequence;
    if let Some(Record { path, .. }) = records.iter().find(vouches) {
        let path = path.display();
        return Some(format!(
            "has another running hash for entry {sequence} than the ledger, which {path} vouches for"
        ));
    }
    is_right_but_for_its_hash(files_of, ledger, named)
        .then(|| format!("is what the ledger gives at entry {sequence}, but for the running hash"))
}

/// The file of another entry of that number would have the time of that one, at least.
fn is_right_but_for_its_hash(files_of: &Files, ledger: &Source, named: Head) -> bool {
    let text = Publisher::new(files_of.state()).read().ok().flatten();
    let topic_id = name_of_log(&files_of.ledger(), &files_of.journal()).ok().flatten();
    let entries = ledger.entries(1, named.sequence).ok();
    let (Some(text), Some(topic_id), Some(entries)) = (text, topic_id, entries) else { return false };
    rebuild(&topic_id, entries, None).is_ok_and(|(view, _)| {
        let own = view.head().running_hash.to_string();
        text.replace(&named.running_hash.to_string(), &own) == view.render()
    })
}

/// Is all there that the workspace remembers of its ledger? For those who are about to put something in the place of what
/// remembers it, or to tell how far it goes. Beside a gateway, too: what remembers entries is read before the ledger is.
pub fn hold_ledger(files_of: &Files, ledger: &Source) -> Result<(), GatewayFault> {
    held(files_of, ledger).map(drop)
}

/// The newest entry that somebody has seen in the ledger, which holds all that others remember: they are told only of what is
/// durable, so nobody takes it back. Nothing if nobody has seen any.
pub(super) fn newest_seen(files_of: &Files, ledger: &Source) -> Result<Option<Head>, GatewayFault> {
    let heads = held(files_of, ledger)?.into_iter().map(|record| record.head);
    Ok(heads.max_by_key(|head| head.sequence))
}

fn held(files_of: &Files, ledger: &Source) -> Result<Vec<Record>, GatewayFault> {
    let topic_id = match ledger {
        Source::Files(directory) if directory.is_dir() => {
            name_of_log(directory, &files_of.journal()).map_err(GatewayFault::Ledger)?
        }
        // Whatever is remembered is of a ledger that is gone.
        Source::Files(_) => None,
        Source::Database(database) => Some(database.topic_id().to_owned()),
        Source::Memory(_) => return Ok(Vec::new()),
    };
    let public_hex = public_key(files_of).ok();
    let records = of_files(files_of, public_hex.as_deref(), topic_id.as_deref())?;
    hold(files_of, ledger, &records).map(|()| records)
}

/// The same for whoever takes the ledger elsewhere, where nobody would remember.
pub(super) fn hold_before_leaving(files_of: &Files) -> Result<(), GatewayFault> {
    let topic_id = name_of_log(&files_of.ledger(), &files_of.journal()).map_err(GatewayFault::Ledger)?;
    // Of a copy that was closed others have seen more, and it says so itself.
    if topic_id.is_none() || closed(files_of)?.is_some() {
        return Ok(());
    }
    hold_ledger(files_of, &Source::files(&files_of.ledger()))
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
        files_of.other_checkpoints(),
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
