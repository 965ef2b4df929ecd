//! `handoffd approvals`: what waits for a person.

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::asking::{Page, ask, details, listing, parse_reason, rows, text, texts, with_query};
use super::client::{Ask, ClientFlags, segment};
use super::printer::{BOLD, GREEN, RED, YELLOW};
use super::{Context, Exit, Failure};
use crate::json::printable;

pub(super) const EXAMPLES: &str = "\
Examples:
  handoffd approvals list
  handoffd approvals show hs_20260218_router_0001
  handoffd approvals approve hs_20260218_router_0001 --reason 'desk agrees'
  handoffd approvals reject hs_20260218_router_0001 --reason 'not today'

Answering is for a person: put an operator's token into HANDOFFD_TOKEN.";

/// Look at what waits for a person, and approve or reject it.
#[derive(Debug, Subcommand)]
pub(super) enum ApprovalsCommand {
    /// List what waits, soonest to expire first
    List(Page),
    /// Show exactly what would be dispatched
    Show(Show),
    /// Approve it. Exit: 0 allowed, 1 denied or expired after all, 4 another person must approve, too
    Approve(Answer),
    /// Reject it
    Reject(Answer),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The handoffId
    #[arg(value_name = "ID")]
    handoff_id: String,
}

#[derive(Debug, Args)]
pub(super) struct Answer {
    /// The handoffId
    #[arg(value_name = "ID")]
    handoff_id: String,

    /// Why; it is kept in the ledger with your name
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: String,
}

impl ApprovalsCommand {
    pub(super) fn run(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        let of = |handoff_id: &str| format!("/v1/approvals/{}", segment(handoff_id));
        let asked = match self {
            Self::List(page) => {
                ask(context, client, Ask::Get, &with_query("/v1/approvals", &page.parameters()))
            }
            Self::Show(show) => ask(context, client, Ask::Get, &of(&show.handoff_id)),
            Self::Approve(Answer { handoff_id, reason }) => {
                let body = json!({"decision": "approve", "reason": reason}).to_string();
                ask(context, client, Ask::Post(Some(body.as_bytes())), &of(handoff_id))
            }
            Self::Reject(Answer { handoff_id, reason }) => {
                let body = json!({"decision": "reject", "reason": reason}).to_string();
                ask(context, client, Ask::Post(Some(body.as_bytes())), &of(handoff_id))
            }
        };
        let body = match asked? {
            Ok(body) => body,
            Err(exit) => return Ok(exit),
        };
        match (self, context.printer.is_json()) {
            (_, true) => context.printer.value(&body),
            (Self::List(_), _) => list(context, &body),
            (Self::Show(_), _) => show(context, &body),
            (Self::Approve(_) | Self::Reject(_), _) => tell(context, &body),
        }
        Ok(match self {
            Self::Approve(_) => exit_of(&body),
            Self::List(_) | Self::Show(_) | Self::Reject(_) => Exit::Done,
        })
    }
}

/// What became of a yes.
fn exit_of(decision: &Json) -> Exit {
    match decision.get("decision").and_then(Json::as_str) {
        Some("allowed") => Exit::Done,
        Some("needs_approval") => Exit::NeedsApproval,
        _ => Exit::Refused,
    }
}

fn said_yes(approval: &Json) -> String {
    let said = approval.get("saidYes").and_then(Json::as_array).map_or(0, Vec::len);
    format!("{said} of {}", text(approval, "needed"))
}

fn list(context: &Context, page: &Json) {
    let headings = ["handoffId", "mode", "operation", "from and to", "principal", "yes", "until", "summary"];
    listing(context, page, ("approvals", "nothing waits for a person"), &headings, |approval| {
        vec![
            text(approval, "handoffId"),
            text(approval, "mode"),
            text(approval, "operation"),
            format!("{} to {}", text(approval, "sourceAgent"), text(approval, "targetAgent")),
            text(approval, "principal"),
            said_yes(approval),
            text(approval, "expiresAt"),
            text(approval, "summary"),
        ]
    });
}

fn show(context: &Context, approval: &Json) {
    let lines = [
        ("handoff", text(approval, "handoffId")),
        ("from", text(approval, "sourceAgent")),
        ("to", text(approval, "targetAgent")),
        ("principal", text(approval, "principal")),
        ("route", text(approval, "routeKey")),
        ("mode", text(approval, "mode")),
        ("operation", text(approval, "operation")),
        ("summary", text(approval, "summary")),
        ("asked", text(approval, "askedAt")),
        ("until", text(approval, "expiresAt")),
        ("yes", format!("{} ({})", said_yes(approval), texts(approval, "saidYes"))),
        ("digest", text(approval, "taskSpecDigest")),
    ];
    details(context, &lines);
    match approval.get("wouldDispatch").filter(|payload| !payload.is_null()) {
        None => context.printer.note("what would be dispatched is no longer kept, so it cannot be approved"),
        Some(payload) => {
            context.printer.line(&format!("\n{BOLD}what the target would be sent{BOLD:#}"));
            context.printer.value(payload);
        }
    }
}

/// The decision as it now stands.
fn tell(context: &Context, decision: &Json) {
    let word = text(decision, "decision");
    let style = match exit_of(decision) {
        Exit::Done => GREEN,
        Exit::NeedsApproval => YELLOW,
        _ => RED,
    };
    context.printer.line(&format!("{BOLD}{}{BOLD:#} is {style}{word}{style:#}", text(decision, "handoffId")));
    for reason in rows(decision, "reasons") {
        let (code, message) = (text(reason, "code"), text(reason, "message"));
        context.printer.line(&format!("    {RED}{code}{RED:#}: {message}"));
    }
    if let Some(until) = decision.get("expiresAt").and_then(Json::as_str) {
        context.printer.line(&format!("    another person must say yes before {}", printable(until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yes_ends_as_its_decision_does() {
        let check = |word: &str, expected: Exit| assert_eq!(exit_of(&json!({"decision": word})), expected);
        check("allowed", Exit::Done);
        check("needs_approval", Exit::NeedsApproval);
        check("denied", Exit::Refused);
        check("expired", Exit::Refused);
    }
}
