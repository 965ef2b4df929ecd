//! Permissions, room on the disk, and what a crash left behind.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Findings, Ground};
use crate::limits;

pub(super) fn permissions(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let memory = ground.root().join("memory");
    let mode = |path: &Path| fs::metadata(path).ok().map(|metadata| metadata.mode() & 0o777);
    let Some(own) = mode(&memory) else {
        return findings.skip("memory/ is not there yet; the daemon makes it");
    };
    if own & 0o022 != 0 {
        findings.fail(
            format!(
                "others may write to memory/ (mode {own:03o}), and so replace the ledger and the secrets"
            ),
            format!("chmod 700 {}", memory.display()),
        );
    }
    if let Some(ledger) = mode(&ground.files.ledger()).filter(|mode| mode & 0o077 != 0) {
        findings.warn(
            format!("others may look into memory/ledger/ (mode {ledger:03o}), where the TaskSpecs are"),
            format!("chmod 700 {}", ground.files.ledger().display()),
        );
    }
    for path in names(&memory).filter(|path| is_secret(path)) {
        if let Some(secret) = mode(&path).filter(|mode| mode & 0o077 != 0) {
            findings.fail(
                format!("{} can be read by others (mode {secret:03o})", path.display()),
                format!("chmod 600 {}; and think of it as known", path.display()),
            );
        }
    }
    "secrets are the daemon's alone".to_owned()
}

fn is_secret(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    matches!(name, "keyring.json" | "tokens.json" | "admin.token" | "gateway.key")
        || name.ends_with(".ed25519")
}

fn names(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    names.sort();
    names.into_iter()
}

pub(super) fn room(ground: &Ground<'_>, findings: &mut Findings) -> String {
    const FIX: &str = "make room; `handoffd ledger purge --older-than 90d` drops old bodies";
    let free = match &ground.free_bytes {
        Ok(free) => *free,
        Err(error) => {
            findings.warn(format!("nobody knows how much room there is: {error}"), "look at the disk");
            return String::new();
        }
    };
    let what = format!("{} MiB are free for memory/", free / (1024 * 1024));
    if free < limits::DOCTOR_ROOM_BYTES_MIN {
        findings.fail(what.clone(), FIX);
    } else if free < limits::DOCTOR_ROOM_BYTES {
        findings.warn(what.clone(), FIX);
    }
    what
}

pub(super) fn leftovers(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let memory = ground.root().join("memory");
    for path in names(&memory).chain(names(&ground.files.ledger())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let fix = if name.contains(".torn") {
            "a crash cut it off; it was never acknowledged. Look at it, then delete it"
        } else if name.ends_with(".new") || name.ends_with(".aside") {
            "something was interrupted while it was written, and never in force; stop the daemon and delete it"
        } else {
            continue;
        };
        findings.warn(format!("{} was left behind", path.display()), fix);
    }
    "nothing was left behind".to_owned()
}
