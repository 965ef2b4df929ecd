//! Where a workspace's ledger and its tokens are, as its settings say: in files, or in a database.

use std::path::Path;

use super::{Context, Failure};
use crate::callers::TokenFiles;
use crate::gateway::{Files, Sharing, public_key};
use crate::ledger::Source;
use crate::ledger::postgres::Database;
use crate::settings::{Effective, LedgerUrl};

/// The ledger of a workspace. One that was served in memory has left nothing; its files are the workspace's own.
pub(super) fn ledger(workspace: &Path) -> Result<Source, Failure> {
    // Settings that cannot be read are for `serve` to report; the files are where they are.
    let url = Effective::load(workspace, Vec::new()).map(|effective| effective.settings.ledger.url);
    match url.unwrap_or_default() {
        LedgerUrl::Segments | LedgerUrl::Memory => Ok(Source::files(&Files::of(workspace).ledger())),
        LedgerUrl::Postgres(url) => {
            let database = Database::open_existing(url.expose());
            database.map(Source::Database).map_err(|fault| Failure(fault.to_string()))
        }
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
