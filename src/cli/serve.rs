//! `handoffd serve`: not built yet, and says so.

use clap::Args;

use super::{Context, Exit, Failure};

/// Run the gateway.
#[derive(Debug, Args)]
pub(super) struct Serve {}

impl Serve {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        // A workspace that could not be served is worth knowing about today.
        let policies = context.workspace.load_policies()?;
        context.workspace.load_keyring()?;
        context.printer.note(&format!(
            "the daemon comes next; the workspace is sound: {} route(s), {} delegation policy(ies), {}",
            policies.routes().len(),
            policies.policy_refs().count(),
            policies.digest(),
        ));
        context.printer.note("until then: handoffd check docs/examples/taskspec-canonical.json");
        Ok(Exit::Unavailable)
    }
}
