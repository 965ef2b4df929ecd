//! `handoffd route`: where routes stand, and blocking and unblocking them.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value as Json, json};

use super::asking::rows;
use super::checklist::{tell_rollback, tell_route, text};
use super::client::{Ask, ClientFlags, segment};
use super::printer::{DIM, GREEN};
use super::{Context, Exit, Failure};

/// Show where routes stand between dev and live; block and unblock them.
#[derive(Debug, Subcommand)]
pub(super) enum RouteCommand {
    /// List the routes and their stages
    List,
    /// Show a route: its gates as a checklist, and what is missing for the next one
    Show(Show),
    /// Roll a route back and let nothing pass; with an operator's token
    Block(Block),
    /// Open a route that was blocked; with an operator's token
    Unblock(Unblock),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The routeKey
    #[arg(value_name = "KEY")]
    key: String,
}

#[derive(Debug, Args)]
pub(super) struct Block {
    /// The routeKey
    #[arg(value_name = "KEY")]
    key: String,

    /// Why, for the ledger
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
pub(super) struct Unblock {
    /// The routeKey
    #[arg(value_name = "KEY")]
    key: String,

    /// Why, for the ledger
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// What is lifted: the block, the definition that a rollback restored, or both
    #[arg(long, value_name = "WHAT", default_value = "block")]
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Block,
    Pin,
    Both,
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Pin => "pin",
            Self::Both => "both",
        }
    }
}

/// Where a route is found.
pub(super) fn place(key: &str) -> String {
    format!("/v1/routes/{}", segment(key))
}

impl RouteCommand {
    pub(super) fn run(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        let client = match client.connect(context) {
            Ok(client) => client,
            Err(nobody) => return nobody.end(context),
        };
        let answer = match self {
            Self::List => client.ask(Ask::Get, "/v1/routes"),
            Self::Show(show) => client.ask(Ask::Get, &place(&show.key)),
            Self::Block(block) => {
                let body = json!({"reason": block.reason}).to_string();
                client.ask(Ask::Post(Some(body.as_bytes())), &format!("{}/block", place(&block.key)))
            }
            Self::Unblock(unblock) => {
                let body = json!({"reason": unblock.reason, "what": unblock.what.as_str()}).to_string();
                client.ask(Ask::Post(Some(body.as_bytes())), &format!("{}/unblock", place(&unblock.key)))
            }
        };
        let told = match answer {
            Ok(reply) => reply.body,
            Err(trouble) => return Ok(trouble.end(context)),
        };
        if context.printer.is_json() {
            context.printer.value(&told);
            return Ok(Exit::Done);
        }
        match self {
            Self::List => tell_list(context, rows(&told, "routes")),
            Self::Show(_) => tell_route(context, &told),
            Self::Block(block) => tell_rollback(context, &block.key, &told),
            Self::Unblock(unblock) => {
                let sequence = told.get("sequence").and_then(Json::as_u64).unwrap_or_default();
                context.printer.line(&format!(
                    "{GREEN}lifted{GREEN:#}  {} is at {} {DIM}entry {sequence} of the ledger{DIM:#}",
                    crate::json::printable(&unblock.key),
                    text(&told, "stage")
                ));
            }
        }
        Ok(Exit::Done)
    }
}

fn tell_list(context: &Context, routes: &[Json]) {
    let width = routes.iter().map(|route| text(route, "routeKey").chars().count()).max().unwrap_or(0);
    for route in routes {
        let next = match (text(route, "nextGate").as_str(), rows(route, "missing")) {
            _ if route.get("blocked") == Some(&Json::Bool(true)) => "blocked".to_owned(),
            ("", _) if route.get("canary").is_some_and(Json::is_object) => "in canary".to_owned(),
            ("", _) => "all gates passed".to_owned(),
            (next, []) => format!("{next} is next"),
            (next, [first, ..]) => format!("{next} is next: {}", text(first, "what")),
        };
        let key = text(route, "routeKey");
        context.printer.line(&format!("{key:<width$}  {:<9}  {DIM}{next}{DIM:#}", text(route, "stage")));
    }
}
