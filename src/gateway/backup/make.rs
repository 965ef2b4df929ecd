//! Making a backup.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::extent;
use super::{
    BackupFault, CHECKPOINT, FORMAT, GATEWAY_KEY, LEDGER, MANIFEST, Manifest, OPTIONAL, OTHER_CHECKPOINTS,
    io_fault, measure, verify_ledger,
};
use crate::gateway::{Files, checkpoints, gateway_seed};
use crate::ledger::{Checkpoint, Entries, Head, copy_segments};
use crate::limits;
use crate::os::{clock, files};

/// Copies what cannot be made again into a new directory, and verifies the copy. Of a ledger that lacks entries nothing is
/// copied, unless `keep` names the last one that is left. `tell` hears how far the verification has come.
pub fn back_up(
    source: &Files,
    to: &Path,
    keep: Option<u64>,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Manifest, BackupFault> {
    let ledger = source.ledger();
    if !ledger.is_dir() {
        return Err(BackupFault::Empty(ledger));
    }
    let Some((topic_id, head)) = extent::through(source, keep)? else {
        return Err(BackupFault::Empty(ledger));
    };
    let key_path = source.gateway_key();
    if !key_path.is_file() {
        return Err(BackupFault::Io { path: key_path, why: "does not exist".to_owned() });
    }
    let seed = gateway_seed(&key_path).map_err(BackupFault::Gateway)?;

    make_empty(to)?;
    let copied_ledger = to.join(LEDGER);
    fs::DirBuilder::new().mode(0o700).create(&copied_ledger).map_err(io_fault(&copied_ledger))?;
    let names = copy_segments(&ledger, &copied_ledger, head).map_err(BackupFault::Copy)?;
    let mut paths: Vec<String> = names.iter().map(|name| format!("{LEDGER}/{name}")).collect();

    // One for this very entry: the workspace's own may be behind it, or ahead by now.
    let time = clock::now();
    let checkpoint = Checkpoint::sign(&topic_id, head, time, &seed);
    checkpoints::write(&to.join(CHECKPOINT), &checkpoint).map_err(io_fault(&to.join(CHECKPOINT)))?;
    paths.push(CHECKPOINT.to_owned());
    // What others signed of entries that are given up would keep a restored workspace from opening.
    let is_wanted = |name: &&str| keep.is_none() || *name != OTHER_CHECKPOINTS;
    for name in [GATEWAY_KEY].into_iter().chain(OPTIONAL).filter(is_wanted) {
        if copy_private(&source.memory().join(name), &to.join(name))? {
            paths.push(name.to_owned());
        }
    }

    let report = verify_ledger(to, &seed.public_hex(), tell)?;
    let running_hash = head.running_hash.to_string();
    if report.entries != head.sequence || report.last_running_hash.as_ref() != Some(&running_hash) {
        return Err(BackupFault::OtherHead);
    }
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time: time.to_nanoseconds(),
        topic_id,
        sequence: head.sequence,
        running_hash,
        policy_digest: policy_digest(&copied_ledger, head)?,
        files: paths.iter().map(|path| measure(to, path)).collect::<Result<_, _>>()?,
    };
    let path = to.join(MANIFEST);
    let mut text = serde_json::to_vec_pretty(&manifest).map_err(|error| io_fault(&path)(error.into()))?;
    text.push(b'\n');
    files::create_private(&path, &text).map_err(io_fault(&path))?;
    Ok(manifest)
}

/// Makes the directory; one that is there must be empty.
fn make_empty(path: &Path) -> Result<(), BackupFault> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            match fs::read_dir(path).map_err(io_fault(path))?.next() {
                None => Ok(()),
                Some(_) => Err(BackupFault::NotEmpty(path.to_owned())),
            }
        }
        Err(error) => Err(io_fault(path)(error)),
    }
}

/// Copies a file that only its owner may read; false if there is none.
pub(super) fn copy_private(from: &Path, to: &Path) -> Result<bool, BackupFault> {
    match files::read_private(from, limits::TOKENS_FILE.bytes_max) {
        Ok(bytes) => {
            let bytes = zeroize::Zeroizing::new(bytes);
            files::create_private(to, &bytes).map_err(io_fault(to))?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io_fault(from)(error)),
    }
}

/// The policy set that the ledger says is in force.
fn policy_digest(ledger: &Path, head: Head) -> Result<Option<String>, BackupFault> {
    #[derive(serde::Deserialize)]
    struct Wire {
        payload: Loaded,
    }
    #[derive(serde::Deserialize)]
    struct Loaded {
        digest: String,
    }
    let mut digest = None;
    for entry in Entries::read(ledger, 1, head.sequence).map_err(BackupFault::Entries)? {
        let entry = entry.map_err(BackupFault::Entries)?;
        if entry.wire.contains("\"type\":\"policy.loaded\"")
            && let Ok(wire) = serde_json::from_str::<Wire>(&entry.wire)
        {
            digest = Some(wire.payload.digest);
        }
    }
    Ok(digest)
}
