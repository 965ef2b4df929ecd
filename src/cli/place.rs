//! Where a workspace's ledger and its tokens are, as its settings say: in files, or in a database.

use std::path::Path;

use super::{Context, Failure};
use crate::callers::TokenFiles;
use crate::gateway::{Files, Sharing, closed, public_key};
use crate::ledger::postgres::{Database, anchored};
use crate::ledger::{Closing, Source};
use crate::settings::{Effective, LedgerUrl, Problem};

/// The ledger of a workspace. One that was served in memory has left nothing; its files are the workspace's own.
///
/// Files that were copied to a database are not it any more: what they say may be long out of date.
pub(super) fn ledger(workspace: &Path) -> Result<Source, Failure> {
    match ledger_or_left_behind(workspace)? {
        (ledger, None) => Ok(ledger),
        (_, Some(why)) => Err(Failure(why)),
    }
}

/// The same, or the files that were left behind when they were copied to a database, and a word on that.
pub(super) fn ledger_or_left_behind(workspace: &Path) -> Result<(Source, Option<String>), Failure> {
    let effective = Effective::load(workspace, Vec::new())
        .map_err(|found| unusable(&found, "it is not known where the ledger is"))?;
    match effective.settings.ledger.url {
        LedgerUrl::Segments | LedgerUrl::Memory => {
            let files = Files::of(workspace);
            let mark = closed(&files).map_err(|fault| Failure(fault.to_string()))?;
            Ok((Source::files(&files.ledger()), mark.as_ref().and_then(left_behind)))
        }
        LedgerUrl::Postgres(url) => {
            let database = Database::open_existing(&anchored(url.expose(), workspace));
            database
                .map(|database| (Source::Database(database), None))
                .map_err(|fault| Failure(fault.to_string()))
        }
    }
}

/// Is the ledger of a workspace in a database?
pub(super) fn is_database(workspace: &Path) -> bool {
    Effective::load(workspace, Vec::new())
        .is_ok_and(|effective| matches!(effective.settings.ledger.url, LedgerUrl::Postgres(_)))
}

/// Settings that cannot be used, with everything that is wrong with them, and what follows from that.
pub(super) fn unusable(found: &[Problem], so: &str) -> Failure {
    let lines: Vec<String> = found.iter().map(|problem| format!("\n  {problem}")).collect();
    Failure(format!("the settings cannot be used, so {so}{}", lines.concat()))
}

fn left_behind(mark: &Closing) -> Option<String> {
    match mark {
        Closing::Copied { to } if to.starts_with("postgres://") => Some(format!(
            "the ledger of this workspace is closed: {mark}; set HANDOFFD_LEDGER_URL or `[ledger] url` in handoffd.toml to it"
        )),
        Closing::Copied { .. }
        | Closing::Unfinished { .. }
        | Closing::Lost { .. }
        | Closing::Settled { .. } => None,
    }
}

/// The tokens of a workspace.
pub(super) fn tokens(context: &Context) -> Result<TokenFiles, Failure> {
    let root = context.workspace.root();
    let files = TokenFiles::of(root);
    match Sharing::of(&ledger(root)?) {
        None => Ok(files),
        Some(sharing) => {
            let key = public_key(&Files::of(root)).map_err(|fault| Failure(fault.to_string()))?;
            Ok(sharing.tokens(files, &key))
        }
    }
}
