//! `handoffd ledger`: what is done to the ledger's files, as against what is in them.

use clap::{Args, Subcommand};
use serde_json::json;

use super::printer::{GREEN, counted};
use super::sign::parse_seconds;
use super::{Context, Exit, Failure, place};
use crate::ledger::{PurgeMode, Source};
use crate::os::clock;

/// Look after the ledger's files.
#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    Purge(Purge),
    Copy(super::ledger_copy::Copy),
    Settle(super::ledger_settle::Settle),
}

/// Drop the bodies of old entries; the chain stays as it is.
///
/// A body is the TaskSpec that a decision was about. Entries, their hashes and the digests of the bodies stay, so
/// everything still verifies. The segment that is being written is left alone, whatever its age.
/// Works beside a running daemon.
#[derive(Debug, Args)]
pub(super) struct Purge {
    /// How old the entries must be, such as 12h or 90d
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    older_than: i64,

    /// Say what would be dropped, and drop nothing
    #[arg(long)]
    dry_run: bool,
}

impl LedgerCommand {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Purge(purge) => purge.run(context),
            Self::Copy(copy) => copy.run(context),
            Self::Settle(settle) => settle.run(context),
        }
    }
}

impl Purge {
    fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let ledger = place::ledger(context.workspace.root())?;
        if let Source::Files(directory) = &ledger
            && !directory.is_dir()
        {
            return Err(Failure(format!("{} has no entries yet", directory.display())));
        }
        let before = clock::now().plus_seconds(-self.older_than);
        let mode = if self.dry_run { PurgeMode::Count } else { PurgeMode::Drop };
        let purged = ledger.purge_bodies(before, mode).map_err(|fault| Failure(fault.to_string()))?;
        if context.printer.is_json() {
            context.printer.value(&json!({
                "dryRun": self.dry_run,
                "before": before.to_nanoseconds(),
                "segments": purged.segments,
                "bodies": purged.bodies,
                "bytes": purged.bytes,
            }));
        } else {
            let word = if self.dry_run { "would drop" } else { "dropped" };
            context.printer.line(&format!(
                "{GREEN}{word}{GREEN:#} {}, {} bytes, from {}: entries before {}",
                counted(purged.bodies, "body", "bodies"),
                purged.bytes,
                counted(purged.segments, "segment", "segments"),
                before.to_nanoseconds(),
            ));
        }
        Ok(Exit::Done)
    }
}

fn parse_age(text: &str) -> Result<i64, String> {
    match parse_seconds(text)? {
        seconds @ 1..=3_153_600_000 => Ok(seconds),
        _ => Err("between 1 second and 36500 days".to_owned()),
    }
}
