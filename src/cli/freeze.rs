//! `handoffd freeze`: the kill switch.

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::asking::{ask, parse_reason, rows, table, text};
use super::client::{Ask, ClientFlags};
use super::printer::{BOLD, GREEN, RED};
use super::{Context, Exit, Failure};

pub(super) const EXAMPLES: &str = "\
Examples:
  handoffd freeze set --all --reason 'wrong balances on the exchange'
  handoffd freeze set --mode live --reason 'month end'
  handoffd freeze set --route crypto-sage.execution-plane.v1 \\
      --reason 'the agent answers twice'
  handoffd freeze list
  handoffd freeze lift --mode live --reason 'month end is over'

An operator or an admin may freeze; lifting is for a person: put an operator's token into HANDOFFD_TOKEN.";

/// Stop decisions, and let them go on.
#[derive(Debug, Subcommand)]
pub(super) enum FreezeCommand {
    /// Stop decisions: everything, a mode or a route
    Set(Scoped),
    /// Lift exactly what was frozen
    Lift(Scoped),
    /// List what is frozen
    List,
}

#[derive(Debug, Args)]
pub(super) struct Scoped {
    #[command(flatten)]
    scope: Scope,

    /// Why; it is kept in the ledger with your name
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Scope {
    /// Everything
    #[arg(long)]
    all: bool,

    /// A mode: dev, simulated or live
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,

    /// A route
    #[arg(long, value_name = "ROUTE")]
    route: Option<String>,
}

impl Scoped {
    fn request(&self) -> String {
        let Scope { all: _, mode, route } = &self.scope;
        let reason = &self.reason;
        match (mode, route) {
            (Some(mode), _) => json!({"scope": "mode", "mode": mode, "reason": reason}),
            (None, Some(route)) => json!({"scope": "route", "routeKey": route, "reason": reason}),
            (None, None) => json!({"scope": "all", "reason": reason}),
        }
        .to_string()
    }
}

impl FreezeCommand {
    pub(super) fn run(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        const PATH: &str = "/v1/freeze";
        let asked = match self {
            Self::Set(scoped) => ask(context, client, Ask::Post(Some(scoped.request().as_bytes())), PATH),
            Self::Lift(scoped) => ask(context, client, Ask::DeleteWith(scoped.request().as_bytes()), PATH),
            Self::List => ask(context, client, Ask::Get, PATH),
        };
        let body = match asked? {
            Ok(body) => body,
            Err(exit) => return Ok(exit),
        };
        match (self, context.printer.is_json()) {
            (_, true) => context.printer.value(&body),
            (Self::List, _) => list(context, &body),
            (Self::Set(_), _) => {
                let before = body.get("heldBefore").and_then(Json::as_bool).unwrap_or_default();
                let word = if before { "was frozen before" } else { "is frozen" };
                let line = format!("{BOLD}{}{BOLD:#} {RED}{word}{RED:#}", scope(&body));
                context.printer.line(&format!("{line} from entry {} on", text(&body, "fromSequence")));
                in_flight(context, &body);
            }
            (Self::Lift(_), _) => {
                let line = format!("{BOLD}{}{BOLD:#} {GREEN}goes on{GREEN:#}", scope(&body));
                context.printer.line(&format!("{line} from entry {} on", text(&body, "fromSequence")));
            }
        }
        Ok(Exit::Done)
    }
}

/// What a freeze is about, in words.
fn scope(freeze: &Json) -> String {
    match freeze.get("scope").and_then(Json::as_str) {
        Some("mode") => format!("mode {}", text(freeze, "mode")),
        Some("route") => format!("route {}", text(freeze, "routeKey")),
        _ => "everything".to_owned(),
    }
}

fn list(context: &Context, body: &Json) {
    let frozen = rows(body, "frozen");
    if frozen.is_empty() {
        context.printer.line("nothing is frozen");
        return;
    }
    let cells: Vec<Vec<String>> = frozen
        .iter()
        .map(|freeze| {
            vec![
                scope(freeze),
                text(freeze, "at"),
                text(freeze, "fromSequence"),
                text(freeze, "by"),
                text(freeze, "reason"),
            ]
        })
        .collect();
    table(context, &["frozen", "since", "entry", "by", "why"], &cells);
}

/// What was under way already: somebody has to look after it.
fn in_flight(context: &Context, body: &Json) {
    let Some(total) = body.get("inFlightTotal").and_then(Json::as_u64) else {
        context.printer.note("what is in flight could not be found out; see: handoffd doctor");
        return;
    };
    if total == 0 {
        context.printer.line("nothing was in flight");
        return;
    }
    let cells: Vec<Vec<String>> = rows(body, "inFlight")
        .iter()
        .map(|row| {
            vec![
                text(row, "handoffId"),
                text(row, "status"),
                text(row, "mode"),
                text(row, "routeKey"),
                text(row, "targetAgent"),
                text(row, "updatedAt"),
            ]
        })
        .collect();
    context.printer.line(&format!("{total} in flight, not stopped by this:"));
    table(context, &["handoffId", "status", "mode", "route", "target", "updated"], &cells);
}
