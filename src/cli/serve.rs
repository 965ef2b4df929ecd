//! `handoffd serve`: reads the settings, opens the workspace and serves it.

use std::io::IsTerminal as _;
use std::path::Path;

use clap::Args;

use super::client::{GatewayBase, workspace_flag};
use super::daemon::Daemon;
use super::printer::{BOLD, GREEN};
use super::{Context, Exit, Failure, disk, lacking, logging, notify, place, shell};
use crate::callers::AdminFile;
use crate::gateway::Starting;
use crate::ledger::Keeping;
use crate::settings::{Effective, Flag};

/// Run the gateway.
///
/// A directory that nobody has used yet is filled with an example first; one that does not exist is made by `handoffd init DIR`.
/// Policies, keys and tokens are read again when they change and on SIGHUP, certificates too; SIGTERM, Ctrl-C and the end of the
/// terminal that it was started in finish what is under way and stop. A second SIGTERM or Ctrl-C waits for no request; what was
/// acknowledged is kept.
///
/// Exit: 0 stopped, 2 wrong settings, 3 the workspace cannot be served, or not any longer.
#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    settings: SettingFlags,

    /// Put the policies and keys of this workspace in force for all replicas, if they differ from those in force
    #[arg(long)]
    put_in_force: bool,

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
        if !self.print_config
            && let Err(failure) = exists(context)
        {
            return Ok(unavailable(context, failure));
        }
        let effective = Effective::load(context.workspace.root(), self.settings.given())
            .map_err(|found| place::unusable(&found, "nothing is started"))?;
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
        logging::start(&effective.settings.log)?;
        if let Err(failure) = lacking::policies(context, &effective.settings.ledger.url) {
            return Ok(unavailable(context, failure));
        }
        let starting = if self.put_in_force { Starting::Load } else { Starting::Join };
        let mut bar = context.printer.progress("reading the ledger");
        let opened = Daemon::open(&context.workspace, effective.settings, starting, &mut |done, all| {
            bar.tell(done, all);
            notify::takes_longer();
        });
        drop(bar);
        let daemon = match opened {
            Ok(daemon) => daemon,
            Err(failure) => return Ok(unavailable(context, failure)),
        };
        daemon.run(|daemon| greet(context, daemon)).or_else(|failure| Ok(unavailable(context, failure)))
    }
}

/// A name that was mistyped would otherwise be a workspace of its own, with the example's policies.
fn exists(context: &Context) -> Result<(), Failure> {
    let root = context.workspace.root();
    if root.is_dir() {
        return Ok(());
    }
    let why = if root.exists() { "is not a directory" } else { "does not exist" };
    let (shown, word) = (root.display(), shell::word(root));
    Err(Failure(format!(
        "{shown} {why}, so nothing is served; to make a workspace there: handoffd init {word}"
    )))
}

/// Says where it listens and what to try; for people only.
fn greet(context: &Context, daemon: &Daemon) {
    let address = daemon.address();
    let digest = daemon.app().rules().digest().to_string();
    tracing::info!(%address, policies = digest, version = env!("CARGO_PKG_VERSION"), "listening");
    let volatile = daemon.app().gateway().keeping() == Keeping::Volatile;
    if volatile {
        tracing::warn!(
            "the ledger is kept in memory: every decision is forgotten when the gateway stops, and live work is refused"
        );
    }
    if !std::io::stderr().is_terminal() {
        return;
    }
    let root = context.workspace.root();
    let at = |path: &str| {
        if root == Path::new(".") { shell::word(Path::new(path)) } else { shell::word(&root.join(path)) }
    };
    let certificates = daemon.app().certificates.as_ref().map(|certificates| certificates.loaded());
    let own = certificates.as_ref().and_then(|loaded| loaded.own.as_ref());
    let base = GatewayBase::of(address, certificates.is_some(), own).text;
    let trusting = match certificates {
        Some(_) => format!(" --cacert {}", at("memory/served.pem")),
        None => String::new(),
    };
    let (token, workspace) = (at("memory/admin.token"), workspace_flag(context));
    let from_file = format!("$(cat {token})");
    let (which, shown) = match daemon.admin {
        AdminFile::Made => (" (just made, for you alone)", from_file.as_str()),
        AdminFile::Kept => ("", from_file.as_str()),
        AdminFile::Retired => {
            (" holds one that counts no longer; put another admin's into HANDOFFD_TOKEN", "$HANDOFFD_TOKEN")
        }
    };
    context.printer.say(&format!(
        "\n{BOLD}handoffd{BOLD:#} listens on {GREEN}{base}{GREEN:#}\n\n  \
         admin token    {token}{which}\n  \
         for people     {base}/console, opened with: handoffd console{workspace}\n  \
         for programs   {base}/openapi.json\n\n\
         Ask for a handoff:\n\n  \
         curl -s{trusting} {base}/v1/handoffs -H \"Authorization: Bearer {shown}\" \\\n    \
         -H 'Content-Type: application/json' --data @{}\n\n\
         Stop with Ctrl-C.\n",
        at("docs/examples/taskspec-canonical.json"),
    ));
}

/// Says why it cannot be served any more or at all, and what to do where that is the disk's.
fn unavailable(context: &Context, Failure(why): Failure) -> Exit {
    context.printer.error(&why);
    if let Some(remedy) = disk::remedy(context.workspace.root()) {
        context.printer.note(&remedy);
    }
    Exit::Unavailable
}
