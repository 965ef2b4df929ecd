//! `handoffd authorize`: grants, which a person gives beforehand.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::asking::{Page, ask, details, listing, parse_reason, text, texts, with_query};
use super::client::{Ask, ClientFlags, segment};
use super::printer::{BOLD, DIM};
use super::sign::parse_seconds;
use super::{Context, Exit, Failure, body_failure, read_task_spec};
use crate::contract::intent_hash;
use crate::json;
use crate::limits;
use crate::os::clock;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

pub(super) const EXAMPLES: &str = "\
Examples:
  handoffd authorize new --principal user:main --agent blockchain-operator \\
      --operation transfer --mode simulated
  handoffd authorize new --principal user:main --agent crypto-sage \\
      --operation swap.jupiter --mode live --expires 30m --intent taskspec.json
  handoffd authorize list --state in_force
  handoffd authorize revoke authz_01KHSA7E5V0000000000000004 --reason closed

Making and revoking is for a person: put an operator's token into HANDOFFD_TOKEN.";

/// Make, list, show and revoke grants.
#[derive(Debug, Subcommand)]
pub(super) enum AuthorizeCommand {
    New(New),
    /// List grants, the newest first
    List(List),
    /// Show one grant
    Show(Show),
    /// Take a grant back
    Revoke(Revoke),
}

/// Make a grant, and print its name.
///
/// A grant says what a delegated handoff may do without asking a person again. Standard output is its name alone, for the TaskSpec's authorship.risk.authorizationRef. Nobody makes one for
/// themselves.
///
/// Exit: 0 made, 2 refused, 3 unavailable.
#[derive(Debug, Args)]
pub(super) struct New {
    /// The principal in whose name the work is done
    #[arg(long, value_name = "ID")]
    principal: String,

    /// An agent that may be handed the work; give it again for more
    #[arg(long = "agent", value_name = "AGENT", required = true)]
    agents: Vec<String>,

    /// An operation; give it again for more
    #[arg(long = "operation", value_name = "OPERATION", required = true)]
    operations: Vec<String>,

    /// dev, simulated or live; give it again for more
    #[arg(long = "mode", value_name = "MODE", required = true)]
    modes: Vec<String>,

    /// A channel that the mention must come from; give it again for more, leave it out for any
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,

    /// The one route it is for
    #[arg(long, value_name = "ROUTE")]
    route: Option<String>,

    /// When it ends: a time, or how long from now, such as 30m, 2h or 1d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_expiry)]
    expires: Expiry,

    /// How often it may be used
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    uses: u32,

    /// The one intent it is for: a TaskSpec whose intent is meant, or its hash (sha256:…)
    #[arg(long, value_name = "FILE|HASH")]
    intent: Option<String>,
}

/// When a grant ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry {
    At(Timestamp),
    In(i64),
}

fn parse_expiry(text: &str) -> Result<Expiry, String> {
    if let Some(time) = Timestamp::parse(text) {
        return Ok(Expiry::At(time));
    }
    match parse_seconds(text) {
        Ok(seconds @ 1..=limits::GRANT_S_MAX) => Ok(Expiry::In(seconds)),
        Ok(_) => Err(format!("between 1 second and {} days", limits::GRANT_S_MAX / 86_400)),
        Err(_) => Err("neither a time such as 2026-02-18T21:00:00Z nor 30m, 2h or 1d".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only those that are in_force, spent, revoked or expired
    #[arg(long, value_name = "STATE")]
    state: Option<String>,

    #[command(flatten)]
    page: Page,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The grant's name (authz_…)
    #[arg(value_name = "REF")]
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// The grant's name (authz_…)
    #[arg(value_name = "REF")]
    name: String,

    /// Why; it is kept in the ledger with your name
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: Option<String>,
}

impl AuthorizeCommand {
    pub(super) fn run(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        let (method, path) = match self {
            Self::New(new) => return new.run(context, client),
            Self::List(List { state, page }) => {
                let [limit, cursor] = page.parameters();
                let query = [("state", state.clone()), limit, cursor];
                (Ask::Get, with_query("/v1/authorizations", &query))
            }
            Self::Show(show) => (Ask::Get, format!("/v1/authorizations/{}", segment(&show.name))),
            Self::Revoke(Revoke { name, reason }) => {
                let path = format!("/v1/authorizations/{}", segment(name));
                (Ask::Delete, with_query(&path, &[("reason", reason.clone())]))
            }
        };
        let body = match ask(context, client, method, &path)? {
            Ok(body) => body,
            Err(exit) => return Ok(exit),
        };
        if context.printer.is_json() {
            context.printer.value(&body);
            return Ok(Exit::Done);
        }
        match self {
            Self::New(_) => {}
            Self::List(_) => list(context, &body),
            Self::Show(_) => show(context, &body),
            Self::Revoke(_) => {
                let line = format!("revoked {BOLD}{}{BOLD:#}", text(&body, "authorizationRef"));
                context.printer.line(&format!("{line} {DIM}entry {}{DIM:#}", text(&body, "sequence")));
            }
        }
        Ok(Exit::Done)
    }
}

impl New {
    fn run(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        let request = self.request()?.to_string();
        let made = match ask(context, client, Ask::Post(Some(request.as_bytes())), "/v1/authorizations")? {
            Ok(made) => made,
            Err(exit) => return Ok(exit),
        };
        if context.printer.is_json() {
            context.printer.value(&made);
        } else {
            context.printer.line(&text(&made, "authorizationRef"));
            context.printer.note(&format!(
                "it counts until {}; uses: {}",
                text(&made, "expiresAt"),
                text(&made, "uses")
            ));
        }
        Ok(Exit::Done)
    }

    fn request(&self) -> Result<Json, Failure> {
        let until = match self.expires {
            Expiry::At(time) => time,
            Expiry::In(seconds) => clock::now().plus_seconds(seconds),
        };
        let mut request = json!({
            "principal": self.principal,
            "agents": self.agents,
            "operations": self.operations,
            "modes": self.modes,
            "expiresAt": until,
            "uses": self.uses,
        });
        let intent = self.intent.as_deref().map(intent).transpose()?;
        if let Some(members) = request.as_object_mut() {
            if !self.channels.is_empty() {
                members.insert("channels".to_owned(), self.channels.clone().into());
            }
            members.extend(self.route.as_ref().map(|route| ("routeKey".to_owned(), route.as_str().into())));
            members.extend(intent.map(|hash| ("intentHash".to_owned(), hash.to_string().into())));
        }
        Ok(request)
    }
}

/// A hash as it is given, or that of the intent in a TaskSpec.
fn intent(given: &str) -> Result<Digest, Failure> {
    if given.starts_with("sha256:") {
        return Digest::parse(given)
            .ok_or_else(|| Failure::new("--intent: a hash is sha256: and 64 lower-case hex digits"));
    }
    let path: PathBuf = Path::new(given).to_owned();
    let body = read_task_spec(&path)?;
    let document = json::read(&body, limits::TASK_SPEC).map_err(|fault| body_failure(&path, &fault))?;
    let intent = document.root().get("intent");
    intent.map(intent_hash).ok_or_else(|| Failure(format!("{}: has no `intent`", path.display())))
}

fn list(context: &Context, page: &Json) {
    let headings = ["grant", "state", "used", "principal", "operations", "agents", "modes", "until"];
    listing(context, page, ("authorizations", "no grants"), &headings, |grant| {
        vec![
            text(grant, "authorizationRef"),
            text(grant, "state"),
            format!("{} of {}", text(grant, "used"), text(grant, "uses")),
            text(grant, "principal"),
            texts(grant, "operations"),
            texts(grant, "agents"),
            texts(grant, "modes"),
            text(grant, "expiresAt"),
        ]
    });
}

fn show(context: &Context, grant: &Json) {
    let lines = [
        ("grant", text(grant, "authorizationRef")),
        ("state", text(grant, "state")),
        ("used", format!("{} of {}", text(grant, "used"), text(grant, "uses"))),
        ("principal", text(grant, "principal")),
        ("agents", texts(grant, "agents")),
        ("operations", texts(grant, "operations")),
        ("modes", texts(grant, "modes")),
        ("channels", texts(grant, "channels")),
        ("route", text(grant, "routeKey")),
        ("intent", text(grant, "intentHash")),
        ("until", text(grant, "expiresAt")),
        ("made", format!("{} by {}", text(grant, "madeAt"), text(grant, "madeBy"))),
        ("revoked", text(grant, "revokedAt")),
    ];
    details(context, &lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_ends_at_a_time_or_after_a_while() {
        let at = Timestamp::parse("2026-02-18T21:00:00Z").unwrap();
        assert_eq!(parse_expiry("2026-02-18T21:00:00Z"), Ok(Expiry::At(at)));
        assert_eq!(parse_expiry("2h"), Ok(Expiry::In(7200)));
        for bad in ["", "soon", "0s", "31d", "2h30m"] {
            assert!(parse_expiry(bad).is_err(), "{bad}");
        }
    }
}
