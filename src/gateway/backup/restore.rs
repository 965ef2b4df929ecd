//! Restoring a backup into a workspace that has no ledger yet.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::make::copy_private;
use super::{
    BackupFault, CHECKPOINT, FORMAT, GATEWAY_KEY, LEDGER, MANIFEST, Manifest, OPTIONAL, io_fault, measure,
    verify_ledger,
};
use crate::engine::EpochFacts;
use crate::gateway::{Files, GatewayFault, gateway_seed, read_checkpoint};
use crate::ledger::{Head, copy_segments};
use crate::limits;
use crate::os::files;

/// What belongs to a gateway; a workspace that has any of it is somebody's.
const TAKEN: [&str; 12] = [
    LEDGER,
    "journal",
    "state.snapshot",
    "seals",
    CHECKPOINT,
    "checkpoints.json",
    GATEWAY_KEY,
    "keyring.json",
    "tokens.json",
    "admin.token",
    "orchestration-state.json",
    "views.db",
];

/// Verifies a backup from end to end, then puts it into a workspace without a ledger. The next gateway that opens
/// the workspace begins a new epoch.
pub fn restore(
    from: &Path,
    workspace: &Path,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Manifest, BackupFault> {
    let manifest = read_manifest(from)?;
    let head = verify_whole(from, &manifest, tell)?;
    let target = Files::of(workspace);
    let memory = target.memory();
    for name in TAKEN {
        let path = memory.join(name);
        if fs::symlink_metadata(&path).is_ok() {
            return Err(BackupFault::NotEmpty(path));
        }
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(target.ledger()).map_err(io_fault(memory))?;

    // The marker before all: whatever is restored is never taken for a workspace that was simply moved. The
    // checkpoint before the ledger: half a ledger does not open.
    let epoch = EpochFacts {
        backup_time: manifest.time.clone(),
        restored_head: head.sequence,
        restored_hash: manifest.running_hash.clone(),
    };
    let text = serde_json::to_vec(&epoch).map_err(|error| io_fault(&target.restored())(error.into()))?;
    files::replace_private(&target.restored(), &text).map_err(io_fault(&target.restored()))?;
    for name in [GATEWAY_KEY, CHECKPOINT].into_iter().chain(OPTIONAL) {
        copy_private(&from.join(name), &memory.join(name))?;
    }
    copy_segments(&from.join(LEDGER), &target.ledger(), head).map_err(BackupFault::Copy)?;
    Ok(manifest)
}

fn read_manifest(from: &Path) -> Result<Manifest, BackupFault> {
    let path = from.join(MANIFEST);
    let not = |why: String| BackupFault::NotABackup { path: from.to_owned(), why };
    let bytes = files::read_bounded(&path, limits::BACKUP_MANIFEST_BYTES_MAX).map_err(|error| match error
        .kind()
    {
        io::ErrorKind::NotFound => not(format!("there is no {MANIFEST}")),
        _ => not(error.to_string()),
    })?;
    let manifest: Manifest =
        serde_json::from_slice(&bytes).map_err(|error| not(format!("{MANIFEST}: {error}")))?;
    if manifest.format != FORMAT {
        let found = crate::json::printable(&manifest.format).to_string();
        return Err(not(format!("its format is `{found}`, and this handoffd reads `{FORMAT}`")));
    }
    Ok(manifest)
}

/// Every file is what the manifest says, there is no other one in the ledger, and the chain holds up to the head.
fn verify_whole(
    from: &Path,
    manifest: &Manifest,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Head, BackupFault> {
    let known = |path: &str| {
        let segment = path.strip_prefix("ledger/").is_some_and(|name| {
            name.strip_suffix(".jsonl").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        });
        segment || path == CHECKPOINT || path == GATEWAY_KEY || OPTIONAL.contains(&path)
    };
    for file in &manifest.files {
        if !known(&file.path) {
            let why = format!("it names `{}`", crate::json::printable(&file.path));
            return Err(BackupFault::NotABackup { path: from.to_owned(), why });
        }
        if measure(from, &file.path)? != *file {
            return Err(BackupFault::Changed { path: file.path.clone() });
        }
    }
    let named = |path: &str| manifest.files.iter().any(|file| file.path == path);
    for path in [CHECKPOINT, GATEWAY_KEY].into_iter().chain(OPTIONAL) {
        let needed = !OPTIONAL.contains(&path) || from.join(path).exists();
        if needed && !named(path) {
            let why = format!("the manifest does not name `{path}`");
            return Err(BackupFault::NotABackup { path: from.to_owned(), why });
        }
    }
    let seed = gateway_seed(&from.join(GATEWAY_KEY)).map_err(BackupFault::Gateway)?;
    let report = verify_ledger(from, &seed.public_hex(), tell)?;
    let checkpoint = read_checkpoint(&from.join(CHECKPOINT)).map_err(BackupFault::Gateway)?;
    let head = checkpoint.and_then(|checkpoint| checkpoint.verify(&seed.public_hex()));
    let same = |head: &Head| {
        head.sequence == manifest.sequence
            && head.running_hash.to_string() == manifest.running_hash
            && report.entries == manifest.sequence
            && report.topic_id.as_ref() == Some(&manifest.topic_id)
    };
    head.filter(same).ok_or(BackupFault::OtherHead)
}

/// The epoch that a restored workspace has yet to begin.
pub(in crate::gateway) fn epoch_to_begin(files: &Files) -> Result<Option<EpochFacts>, GatewayFault> {
    let path = files.restored();
    let fault = |why: String| GatewayFault::Io { path: path.clone(), why };
    match files::read_private(&path, 4096) {
        Ok(bytes) => {
            let facts = serde_json::from_slice(&bytes);
            facts.map(Some).map_err(|error| fault(format!("is not the mark of a restored backup: {error}")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault(error.to_string())),
    }
}

/// The ledger says it now, durably, so the mark has done its work. One that comes back after a power cut is found
/// to be recorded already.
pub(in crate::gateway) fn epoch_is_recorded(files: &Files) -> Result<(), GatewayFault> {
    let path = files.restored();
    fs::remove_file(&path).map_err(|error| GatewayFault::Io { path, why: error.to_string() })
}
