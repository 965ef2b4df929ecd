//! The command line: one file per subcommand.
//!
//! A door: it reads arguments and files, asks the core, and prints. Exit codes are a contract: 0 allowed
//! or done, 1 denied, expired or failed, 2 usage or unreadable input, 3 unavailable, 4 needs approval.

mod a2a;
mod adopt;
mod approvals;
mod asking;
mod audit;
mod authorize;
mod backup;
mod check;
mod checklist;
mod checkpoint;
mod client;
mod completions;
mod conformance;
mod console;
mod daemon;
mod demo;
mod disk;
mod doctor;
mod event;
mod evidence;
mod freeze;
mod in_force;
mod init;
mod key;
mod lacking;
mod ledger;
mod ledger_copy;
mod ledger_settle;
mod logging;
mod mention;
mod notify;
mod place;
mod policy;
mod policy_set;
mod printer;
mod promote;
mod receipt;
mod rollback;
mod route;
mod serve;
mod shell;
mod sign;
mod state;
mod submit;
mod tail;
mod token;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::json::BodyFault;
use crate::limits;
use crate::os::{clock, files};
use crate::policy::{Workspace, WorkspaceFault, plain};
use crate::timestamp::Timestamp;
use client::Remote;
use printer::Printer;

/// What every command takes stands in its help behind its own options.
const COMMON: &str = "Workspace and output";

/// The policy gateway that an orchestrator asks before one AI agent hands work to another.
#[derive(Debug, Parser)]
#[command(name = "handoffd", version, max_term_width = 100, disable_help_subcommand = true)]
struct Arguments {
    /// The workspace: a directory with policies/ and memory/
    #[arg(long, global = true, help_heading = COMMON, value_name = "DIR", env = "HANDOFFD_WORKSPACE", default_value = ".")]
    workspace: PathBuf,

    /// Print JSON for programs instead of text for people
    #[arg(long, global = true, help_heading = COMMON)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Init(init::Init),
    Check(check::Check),
    Submit(submit::Submit),
    Event(event::ReportEvent),
    Sign(sign::Sign),
    /// Make, list, show and revoke grants
    #[command(after_help = authorize::EXAMPLES)]
    Authorize(client::Remote<authorize::AuthorizeCommand>),
    /// Look at what waits for a person, and approve or reject it
    #[command(after_help = approvals::EXAMPLES)]
    Approvals(client::Remote<approvals::ApprovalsCommand>),
    /// Stop decisions, and lift what was stopped
    #[command(after_help = freeze::EXAMPLES)]
    Freeze(client::Remote<freeze::FreezeCommand>),
    /// Roll mention-triggered work out, step by step
    #[command(after_help = mention::EXAMPLES)]
    Mention(client::Remote<mention::MentionCommand>),
    /// Manage the keys that prove who signed
    Key(client::Remote<key::KeyCommand>),
    /// Manage the tokens with which callers say who they are
    Token(client::Remote<token::TokenCommand>),
    /// Show where routes stand between dev and live; block and unblock them
    Route(client::Remote<route::RouteCommand>),
    Promote(promote::Promote),
    Rollback(rollback::Rollback),
    Console(console::Console),
    Conformance(conformance::Conformance),
    /// Test policies, show the set in force, and answer to a changed one that waits
    #[command(after_help = policy::EXAMPLES)]
    Policy(client::Remote<policy::PolicyCommand>),
    /// Inspect the ledger
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Look after the ledger's files
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// Show, verify, restore or adopt the published state
    #[command(subcommand)]
    State(state::StateCommand),
    /// Talk to an A2A agent: this gateway, or any other
    #[command(after_help = a2a::EXAMPLES)]
    A2a(a2a::A2a),
    /// Convert A2A packets into bounded visibility evidence
    #[command(subcommand)]
    Evidence(evidence::EvidenceCommand),
    /// Check receipts of allowed handoffs, offline
    #[command(subcommand)]
    Receipt(receipt::ReceiptCommand),
    Backup(backup::Backup),
    Restore(backup::Restore),
    /// Check Agent Wire events, and reduce them to state
    #[command(subcommand)]
    Wire(wire::WireCommand),
    Demo(demo::Demo),
    Doctor(doctor::Doctor),
    /// Print a completion script for a shell
    Completions(completions::Completions),
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Done,
    Refused,
    /// What was given cannot be used, and that has been said.
    Unusable,
    Unavailable,
    NeedsApproval,
}

/// Why a command could not do its work: one clear line, exit 2.
#[derive(Debug)]
struct Failure(String);

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl From<WorkspaceFault> for Failure {
    fn from(fault: WorkspaceFault) -> Self {
        Self(fault.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// What every command is given.
#[derive(Debug)]
struct Context {
    workspace: Workspace,
    printer: Printer,
}

/// Parses the command line and runs the command.
pub fn run() -> ExitCode {
    let matches = Arguments::command().get_matches();
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    let context =
        Context { workspace: Workspace::new(arguments.workspace), printer: Printer::new(arguments.json) };
    let result = match arguments.command {
        Command::Serve(command) => command.run(&context),
        Command::Init(command) => command.run(&context),
        Command::Check(command) => command.run(&context),
        Command::Submit(command) => command.run(&context),
        Command::Event(command) => command.run(&context),
        Command::Sign(command) => command.run(&context),
        Command::Authorize(Remote { client, command }) => command.run(&context, &client),
        Command::Approvals(Remote { client, command }) => command.run(&context, &client),
        Command::Freeze(Remote { client, command }) => command.run(&context, &client),
        Command::Mention(Remote { client, command }) => command.run(&context, &client),
        Command::Key(Remote { client, command }) => command.run(&context, &client),
        Command::Token(Remote { client, command }) => command.run(&context, &client),
        Command::Route(Remote { client, command }) => command.run(&context, &client),
        Command::Promote(command) => command.run(&context),
        Command::Rollback(command) => command.run(&context),
        Command::Console(command) => command.run(&context),
        Command::Conformance(command) => command.run(&context),
        Command::Policy(Remote { client, command }) => command.run(&context, &client),
        Command::Audit(command) => command.run(&context),
        Command::Ledger(command) => command.run(&context),
        Command::State(command) => command.run(&context),
        Command::A2a(command) => command.run(&context),
        Command::Evidence(command) => command.run(&context),
        Command::Receipt(command) => command.run(&context),
        Command::Backup(command) => command.run(&context),
        Command::Restore(command) => command.run(&context),
        Command::Wire(command) => command.run(&context),
        Command::Demo(command) => command.run(&context),
        Command::Doctor(command) => command.run(&context),
        Command::Completions(command) => command.run(&context),
    };
    match result {
        Ok(Exit::Done) => ExitCode::SUCCESS,
        Ok(Exit::Refused) => ExitCode::from(1),
        Ok(Exit::Unusable) => ExitCode::from(2),
        Ok(Exit::Unavailable) => ExitCode::from(3),
        Ok(Exit::NeedsApproval) => ExitCode::from(4),
        Err(Failure(message)) => {
            context.printer.error(&message);
            ExitCode::from(2)
        }
    }
}

/// Reads a TaskSpec's bytes from a file, or from standard input for `-`.
fn read_task_spec(path: &Path) -> Result<Vec<u8>, Failure> {
    read_input(path, limits::TASK_SPEC.bytes_max)
}

/// Reads a file, or standard input for `-`.
fn read_input(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let read = if path == Path::new("-") {
        files::read_stream(std::io::stdin().lock(), bytes_max)
    } else {
        files::read_bounded(path, bytes_max)
    };
    read.map_err(|error| Failure(format!("{}: {}", path.display(), plain(&error))))
}

fn body_failure(path: &Path, fault: &BodyFault) -> Failure {
    let at = if fault.pointer.is_empty() { String::new() } else { format!(" at {}", fault.pointer) };
    Failure(format!("{}: {fault}{at}; {} [A2A_BODY_INVALID]", path.display(), fault.hint()))
}

/// Reads a point in time from the command line.
fn parse_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "not an RFC 3339 date-time, such as 2026-02-18T19:38:00Z".to_owned())
}

/// Reads a point in time that is still to come, which may be said as how long from now.
fn parse_when(text: &str) -> Result<Timestamp, String> {
    const DAYS_MAX: i64 = 3_650;
    if let Some(time) = Timestamp::parse(text) {
        return Ok(time);
    }
    match sign::parse_seconds(text) {
        Ok(seconds) if (1..=DAYS_MAX * 86_400).contains(&seconds) => Ok(clock::now().plus_seconds(seconds)),
        Ok(_) => Err(format!("between 1 second and {DAYS_MAX} days from now")),
        Err(_) => Err("neither a time such as 2026-02-18T21:00:00Z nor 30m, 2h or 1d".to_owned()),
    }
}
