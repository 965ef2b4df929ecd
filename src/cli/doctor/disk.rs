//! Permissions, room on the disk, and what a crash left behind.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::super::printer::counted;
use super::{Findings, Ground};
use crate::limits;

/// Who may do what with a file; nothing if it is not there.
fn mode(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|metadata| metadata.mode() & 0o777)
}

const GROUP_OR_OTHERS: u32 = 0o022;
const OTHERS: u32 = 0o002;

/// Whoever may write the rules decides what is allowed, and needs no token for it.
fn rules(ground: &Ground<'_>, findings: &mut Findings) {
    let root = ground.root();
    if let Some(own) = mode(root).filter(|mode| mode & OTHERS != 0) {
        findings.fail(
            format!(
                "anybody may write to the workspace (mode {own:03o}), and so put other policies in place"
            ),
            format!("chmod o-w {}", root.display()),
        );
    }
    let writable = rule_paths(ground).into_iter().filter_map(|path| {
        let mode = mode(&path).filter(|mode| mode & GROUP_OR_OTHERS != 0)?;
        Some((path, mode))
    });
    let writable: Vec<(PathBuf, u32)> = writable.collect();
    if let Some((first, mode)) = writable.first() {
        let more = match writable.len() - 1 {
            0 => String::new(),
            more => format!(", and {} besides,", counted(more, "path", "paths")),
        };
        let paths =
            writable.iter().take(limits::MESSAGE_FAULTS_MAX).map(|(path, _)| path.display().to_string());
        findings.fail(
            format!(
                "others may write {} (mode {mode:03o}){more} and so change what is allowed",
                first.display()
            ),
            format!("chmod go-w {}", paths.collect::<Vec<_>>().join(" ")),
        );
    }
}

/// What decides: settings, policies, the schemas and plans in force with them, and the directories where those are.
fn rule_paths(ground: &Ground<'_>) -> BTreeSet<PathBuf> {
    let root = ground.root();
    let mut paths = BTreeSet::from([root.join("handoffd.toml")]);
    below(&root.join("policies"), limits::REFERENCE_LEVELS_MAX, &mut paths);
    for file in ground.policies.iter().flat_map(|policies| policies.files().keys()) {
        let inside = Path::new(file).ancestors().take_while(|path| !path.as_os_str().is_empty());
        paths.extend(inside.map(|path| root.join(path)));
    }
    paths
}

/// A directory and all that is in it.
fn below(directory: &Path, levels: usize, paths: &mut BTreeSet<PathBuf>) {
    paths.insert(directory.to_owned());
    for path in names(directory) {
        if levels > 0 && path.is_dir() && !path.is_symlink() {
            below(&path, levels - 1, paths);
        } else {
            paths.insert(path);
        }
    }
}

pub(super) fn permissions(ground: &Ground<'_>, findings: &mut Findings) -> String {
    rules(ground, findings);
    let memory = ground.root().join("memory");
    let Some(own) = mode(&memory) else {
        return findings.skip("memory/ is not there yet; the daemon makes it");
    };
    if own & GROUP_OR_OTHERS != 0 {
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
    "secrets are the daemon's alone, and nobody else may write the rules".to_owned()
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
