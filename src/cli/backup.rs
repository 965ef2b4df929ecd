//! `handoffd backup` and `handoffd restore`: a verified copy, and its way back.

use std::path::PathBuf;

use clap::Args;

use super::printer::GREEN;
use super::{Context, Exit, Failure, place};
use crate::gateway::{Files, back_up, restore};
use crate::ledger::Source;

/// Copy what cannot be made again, and verify the copy.
///
/// Works beside a running daemon. The copy holds the ledger, a checkpoint, the gateway's key, the keyring and the token hashes: guard it like the
/// workspace. Policies and handoffd.toml are not in it; keep them where they have a history.
#[derive(Debug, Args)]
pub(super) struct Backup {
    /// A directory that is new or empty
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Copy what is left of a ledger that lacks entries for good, up to its last entry N, and give up the rest
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
}

/// Put a backup into a workspace that has no ledger yet.
///
/// All of it is verified first. What was decided after the backup is forgotten, so the gateway begins a new epoch
/// when it starts: envelopes, mentions and grants from before that are void.
#[derive(Debug, Args)]
pub(super) struct Restore {
    /// A directory that `handoffd backup` made
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
}

impl Backup {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        if let Source::Database(database) = place::ledger(context.workspace.root())? {
            return Err(Failure(format!(
                "the ledger of this workspace is in {database}: back it up with the database's own tools, and \
                 memory/gateway.key and memory/keyring.json as files"
            )));
        }
        let mut bar = context.printer.progress("verifying the copy");
        let files = Files::of(context.workspace.root());
        let made = back_up(&files, &self.to, self.keep, &mut |done, all| bar.tell(done, all));
        drop(bar);
        let manifest = made.map_err(|fault| Failure(fault.to_string()))?;
        if context.printer.is_json() {
            context.printer.value(&manifest);
        } else {
            context.printer.line(&format!(
                "{GREEN}made{GREEN:#}  {}: {} entries of {}, verified, running hash {}\n      \
                 it has secrets in it; policies/ and handoffd.toml are not in it",
                self.to.display(),
                manifest.sequence,
                manifest.topic_id,
                manifest.running_hash,
            ));
        }
        Ok(Exit::Done)
    }
}

impl Restore {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let mut bar = context.printer.progress("verifying the backup");
        let root = context.workspace.root();
        let restored = restore(&self.from, root, &mut |done, all| bar.tell(done, all));
        drop(bar);
        let manifest = restored.map_err(|fault| Failure(fault.to_string()))?;
        if context.printer.is_json() {
            context.printer.value(&manifest);
            return Ok(Exit::Done);
        }
        let policies = manifest.policy_digest.as_deref().unwrap_or("none");
        context.printer.line(&format!(
            "{GREEN}restored{GREEN:#}  {} entries of {}, as of {}\n\n\
             Before you start it:\n  \
             put policies/, what TaskSpecs refer to, and handoffd.toml back (the set in force was {policies})\n  \
             see that the gateway it was copied from never runs again\n  \
             revoke the tokens and remove the keys that were withdrawn after the backup\n\n\
             The first start begins a new epoch: envelopes, mentions and grants from before it are void.",
            manifest.sequence, manifest.topic_id, manifest.time,
        ));
        Ok(Exit::Done)
    }
}
