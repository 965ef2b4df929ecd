//! `handoffd audit`: the ledger, as auditors take it away.

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::{Context, Exit, Failure};
use crate::gateway::{Files, read_checkpoint};
use crate::ledger::{Entries, Head, inspect};

/// Inspect the ledger; works beside a running daemon.
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Print every entry as JSON lines: the exact text that was hashed, and its proof metadata
    Export(Export),
    /// Show one entry
    Show(Show),
    /// Print the newest signed checkpoint
    Checkpoint,
}

#[derive(Debug, Args)]
pub(super) struct Export {
    /// Begin with this entry
    #[arg(long, value_name = "SEQUENCE", default_value_t = 1)]
    from: u64,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The entry's sequence number
    sequence: u64,
}

/// How far a ledger has come.
pub(super) struct Committed {
    pub(super) topic_id: String,
    pub(super) head: Head,
}

/// The committed part of the workspace's ledger.
pub(super) fn committed(files: &Files) -> Result<Committed, Failure> {
    let none = || Failure(format!("{} has no entries yet", files.ledger().display()));
    if !files.ledger().is_dir() {
        return Err(none());
    }
    let found = inspect(&files.ledger()).map_err(|fault| Failure(fault.to_string()))?;
    let (topic_id, head) = found.ok_or_else(none)?;
    Ok(Committed { topic_id, head })
}

impl AuditCommand {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let files = Files::of(context.workspace.root());
        match self {
            Self::Export(export) => export.run(context, &files),
            Self::Show(show) => show.run(context, &files),
            Self::Checkpoint => {
                let checkpoint =
                    read_checkpoint(&files.checkpoint()).map_err(|fault| Failure(fault.to_string()))?;
                let checkpoint = checkpoint.ok_or_else(|| Failure::new("there is no checkpoint yet"))?;
                context.printer.value(&checkpoint);
                Ok(Exit::Done)
            }
        }
    }
}

impl Export {
    fn run(&self, context: &Context, files: &Files) -> Result<Exit, Failure> {
        let Committed { topic_id, head } = committed(files)?;
        let entries = Entries::read(&files.ledger(), self.from, head.sequence);
        for entry in entries.map_err(|fault| Failure(fault.to_string()))? {
            let entry = entry.map_err(|fault| Failure(fault.to_string()))?;
            context.printer.raw(entry.to_line(&topic_id).as_bytes());
        }
        Ok(Exit::Done)
    }
}

impl Show {
    fn run(&self, context: &Context, files: &Files) -> Result<Exit, Failure> {
        let Committed { topic_id, head } = committed(files)?;
        let missing =
            || Failure(format!("there is no entry {}; the ledger has {}", self.sequence, head.sequence));
        if !(1..=head.sequence).contains(&self.sequence) {
            return Err(missing());
        }
        let mut entries = Entries::read(&files.ledger(), self.sequence, self.sequence)
            .map_err(|fault| Failure(fault.to_string()))?;
        let entry = entries.next().ok_or_else(missing)?.map_err(|fault| Failure(fault.to_string()))?;
        let wire: Json = serde_json::from_str(&entry.wire).map_err(|error| Failure(error.to_string()))?;
        context.printer.value(&json!({
            "hcs": {
                "topic_id": topic_id,
                "sequence_number": entry.sequence,
                "consensus_timestamp": entry.consensus_timestamp,
                "running_hash": entry.running_hash.to_string(),
            },
            "wire": wire,
        }));
        Ok(Exit::Done)
    }
}
