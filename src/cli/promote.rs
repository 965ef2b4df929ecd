//! `handoffd promote`: a route's gates as a checklist, and evaluating the next one.

use std::io::IsTerminal as _;

use clap::Args;
use serde_json::{Map, Value as Json, json};

use super::asking::rows;
use super::checklist::{tell_missing, tell_route, text};
use super::client::{Ask, Client, ClientFlags, Trouble};
use super::printer::{BOLD, DIM, GREEN, RED};
use super::route::place;
use super::{Context, Exit, Failure};
use crate::promotion::PromotionGate;

/// Evaluate a gate of a route, and record what came of it.
///
/// Without GATE: shows the checklist and evaluates the next gate after asking. It takes an operator's token, in
/// HANDOFFD_TOKEN; a harness may attach evidence with G3.
///
/// Exit: 0 passed, 1 failed, 2 refused, 3 unavailable.
#[derive(Debug, Args)]
pub(super) struct Promote {
    #[command(flatten)]
    client: ClientFlags,

    /// The routeKey
    #[arg(value_name = "KEY")]
    key: String,

    /// The gate, G0 to G4; the next one if it is not given
    #[arg(value_name = "GATE", value_parser = parse_gate)]
    gate: Option<PromotionGate>,

    /// The handoff that G0 or G3 shall rest on
    #[arg(long, value_name = "ID")]
    handoff: Option<String>,

    /// Id of the run that the evidence describes
    #[arg(long, value_name = "ID", requires = "handoff")]
    run_id: Option<String>,

    /// Id of the trace that the evidence describes, 32 hex digits
    #[arg(long, value_name = "ID", requires = "handoff")]
    trace_id: Option<String>,

    /// Where to find the report that the evidence describes
    #[arg(long, value_name = "REF", requires = "handoff")]
    report: Option<String>,

    /// Why, for the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Evaluate the next gate without asking
    #[arg(long)]
    yes: bool,
}

fn parse_gate(text: &str) -> Result<PromotionGate, String> {
    text.to_ascii_uppercase().parse().map_err(|_| "G0, G1, G2, G3 or G4".to_owned())
}

impl Promote {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let client = match self.client.connect(context) {
            Ok(client) => client,
            Err(nobody) => return nobody.end(context),
        };
        let gate = match self.gate {
            Some(gate) => gate,
            None => match self.next(context, &client)? {
                Ok(gate) => gate,
                Err(exit) => return Ok(exit),
            },
        };
        match self.evaluate(&client, gate) {
            Ok(told) => Ok(tell(context, &told)),
            Err(trouble) => Ok(trouble.end(context)),
        }
    }

    /// The next gate, once somebody has seen the checklist and wants it evaluated.
    fn next(&self, context: &Context, client: &Client) -> Result<Result<PromotionGate, Exit>, Failure> {
        let route = match client.ask(Ask::Get, &place(&self.key)) {
            Ok(reply) => reply.body,
            Err(trouble) => return Ok(Err(trouble.end(context))),
        };
        let next = route.get("nextGate").and_then(Json::as_str).and_then(|gate| gate.parse().ok());
        let show = || match context.printer.is_json() {
            true => context.printer.value(&route),
            false => tell_route(context, &route),
        };
        let Some(gate) = next else {
            show();
            return Ok(Err(Exit::Done));
        };
        if self.yes {
            return Ok(Ok(gate));
        }
        show();
        if context.printer.is_json() || !std::io::stdin().is_terminal() {
            context.printer.note(&format!("nobody can be asked here; give {gate} or --yes to evaluate it"));
            return Ok(Err(Exit::Done));
        }
        context.printer.line(&format!("Evaluate {gate} now? [y/N]"));
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok(if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(gate) } else { Err(Exit::Done) })
    }

    fn evaluate(&self, client: &Client, gate: PromotionGate) -> Result<Json, Trouble> {
        let mut evidence = Map::new();
        for (name, value) in [("runId", &self.run_id), ("traceId", &self.trace_id), ("report", &self.report)]
        {
            if let Some(value) = value {
                evidence.insert(name.to_owned(), value.as_str().into());
            }
        }
        let mut body = Map::new();
        for (name, value) in [("handoffId", &self.handoff), ("reason", &self.reason)] {
            if let Some(value) = value {
                body.insert(name.to_owned(), value.as_str().into());
            }
        }
        if !evidence.is_empty() {
            body.insert("evidence".to_owned(), evidence.into());
        }
        let body = json!(body).to_string();
        let path = format!("{}/gates/{gate}", place(&self.key));
        client.ask(Ask::Post(Some(body.as_bytes())), &path).map(|reply| reply.body)
    }
}

fn tell(context: &Context, told: &Json) -> Exit {
    let status = text(told, "status");
    let exit = if status == "failed" { Exit::Refused } else { Exit::Done };
    if context.printer.is_json() {
        context.printer.value(told);
        return exit;
    }
    let (style, mark) = if exit == Exit::Done { (GREEN, "✓") } else { (RED, "✗") };
    let sequence = told.get("sequence").and_then(Json::as_u64).unwrap_or_default();
    context.printer.line(&format!(
        "{style}{mark}{style:#} {BOLD}{}{BOLD:#} {status}; the route is at {} {DIM}entry {sequence} of the ledger{DIM:#}",
        text(told, "gate"),
        text(told, "stage"),
    ));
    tell_missing(context, rows(told, "missing"));
    exit
}
