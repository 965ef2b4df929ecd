//! What `serve` does in a workspace without policies: an example for one that nobody has used yet, and a no for all others.
//!
//! No policy means that nothing is allowed. An example in the place of rules that are gone (a mount that failed, a directory
//! that was moved) would allow its own routes, so it is put only where there cannot have been any.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::client::workspace_flag;
use super::{Context, Failure, init};
use crate::gateway::Files;
use crate::settings::LedgerUrl;

const ROUTES: &str = "policies/routes.json";

/// Sees to it that there are policies to start with. The failure says what to do.
pub(super) fn policies(context: &Context, ledger: &LedgerUrl) -> Result<(), Failure> {
    let root = context.workspace.root();
    // What is there and cannot be read is for whoever reads it to say.
    if !is_missing(&root.join(ROUTES)) {
        return Ok(());
    }
    if let Some(why) = why_no_example(root, ledger) {
        return Err(Failure(format!(
            "{} is missing, and {why}: put policies/ back as they were; if you want the shipped example instead, make it \
             with: handoffd init{}",
            root.join(ROUTES).display(),
            workspace_flag(context)
        )));
    }
    let made = init::scaffold(root)?.made.len();
    tracing::info!(
        files = made,
        "nobody has used this workspace yet and it has no policies; it has an example to start from now"
    );
    Ok(())
}

/// Why an example would stand in the place of somebody's rules; nothing if it would not.
fn why_no_example(root: &Path, ledger: &LedgerUrl) -> Option<String> {
    let files = Files::of(root);
    if !is_missing(&files.restored()) {
        return Some("this workspace was restored from a backup, which has no policies".to_owned());
    }
    if let Some(trace) = files.trace_of_service() {
        return Some(format!("this workspace has been served before ({} is there)", trace.display()));
    }
    if matches!(ledger, LedgerUrl::Postgres(_)) {
        return Some(
            "a gateway whose ledger is in a database needs the policies of all its replicas".to_owned(),
        );
    }
    foreign(root, &root.join("policies"))
        .map(|path| format!("{} is not of the shipped example", path.display()))
}

/// Something below a directory that the example does not have as it is; what cannot be read counts as such. Of an example
/// that was written by half, by a start that was killed, the rest may follow.
fn foreign(root: &Path, directory: &Path) -> Option<PathBuf> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound && is_missing(directory) => return None,
        Err(_) => return Some(directory.to_owned()),
    };
    for entry in entries {
        let Ok(entry) = entry else { return Some(directory.to_owned()) };
        let path = entry.path();
        let found = match entry.file_type() {
            Ok(kind) if kind.is_dir() => foreign(root, &path),
            Ok(kind) if kind.is_file() && init::is_shipped(root, &path) => None,
            _ => Some(path),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Is there nothing of that name? What cannot be looked at may be there.
fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}
