//! `handoffd serve`: reads the settings and shows them; the daemon itself is not built yet, and says so.

use clap::Args;

use super::{Context, Exit, Failure};
use crate::settings::{Effective, Flag, Problem};

/// Run the gateway.
#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    settings: SettingFlags,

    /// Print the settings in force and where each came from, secrets masked, and exit
    #[arg(long)]
    print_config: bool,
}

/// Settings that have a flag. What they take is for `settings` to say, so that a wrong one is reported
/// together with whatever else is wrong.
#[derive(Args)]
struct SettingFlags {
    /// Where to listen: an IP address and a port
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,

    /// Where the ledger is kept: segments, memory or a postgres:// URL
    #[arg(long, value_name = "URL")]
    ledger: Option<String>,

    /// How log lines look: auto, text or json
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,

    /// What is logged: error, warn, info, debug, trace, or directives such as info,handoffd=debug
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
}

impl std::fmt::Debug for SettingFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A ledger's URL may have a password in it.
        f.write_str("SettingFlags([secret])")
    }
}

impl SettingFlags {
    fn given(&self) -> Vec<Flag> {
        let all = [
            ("--listen", &self.listen),
            ("--ledger", &self.ledger),
            ("--log-format", &self.log_format),
            ("--log-level", &self.log_level),
        ];
        let given = all.into_iter().filter_map(|(name, value)| Some(Flag { name, value: value.clone()? }));
        given.collect()
    }
}

impl Serve {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let effective = Effective::load(context.workspace.root(), self.settings.given())
            .map_err(|found| problems(&found))?;
        for warning in &effective.warnings {
            context.printer.note(warning);
        }
        if self.print_config {
            if context.printer.is_json() {
                context.printer.value(&effective.to_json());
            } else {
                context.printer.raw(effective.to_toml().as_bytes());
            }
            return Ok(Exit::Done);
        }
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

fn problems(found: &[Problem]) -> Failure {
    let lines: Vec<String> = found.iter().map(|problem| format!("\n  {problem}")).collect();
    Failure::new(format!("the settings cannot be used, so nothing is started{}", lines.concat()))
}
