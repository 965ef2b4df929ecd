//! `handoffd rollback`: takes a route out of live, or shows what that would come to.

use clap::Args;
use serde_json::json;

use super::checklist::tell_rollback;
use super::client::{Ask, ClientFlags};
use super::route::place;
use super::{Context, Exit, Failure};

/// Take a route out of live, or show what that would do.
///
/// It takes an operator's token. Demotes the route to simulated, restores the definition before this one, and ends live handoffs in flight. G3 and G4 must
/// be earned again.
///
/// Exit: 0 done, 2 refused, 3 unavailable.
#[derive(Debug, Args)]
pub(super) struct Rollback {
    #[command(flatten)]
    client: ClientFlags,

    /// The routeKey
    #[arg(value_name = "KEY")]
    key: String,

    /// What happened, for the ledger
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Also let nothing pass until somebody unblocks it
    #[arg(long)]
    block: bool,

    /// Show each step and what would come of it, and do nothing
    #[arg(long)]
    dry_run: bool,
}

impl Rollback {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let client = match self.client.connect(context) {
            Ok(client) => client,
            Err(nobody) => return nobody.end(context),
        };
        let body = json!({"reason": self.reason, "block": self.block, "dryRun": self.dry_run}).to_string();
        let path = format!("{}/rollback", place(&self.key));
        match client.ask(Ask::Post(Some(body.as_bytes())), &path) {
            Ok(reply) if context.printer.is_json() => context.printer.value(&reply.body),
            Ok(reply) => tell_rollback(context, &self.key, &reply.body),
            Err(trouble) => return Ok(trouble.end(context)),
        }
        Ok(Exit::Done)
    }
}
