//! `handoffd mention`: the rollout of mention-triggered work.

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::asking::{Page, ask, listing, parse_reason, table, text, texts, with_query};
use super::client::{Ask, ClientFlags, segment};
use super::printer::BOLD;
use super::{Context, Exit, Failure};

pub(super) const EXAMPLES: &str = "\
Examples:
  handoffd mention phase
  handoffd mention metrics
  handoffd mention phase set gated-read --reason 'no false positive for a week'
  handoffd mention list --limit 10
  handoffd mention false-positive 1473395000000000002 --reason 'it was a joke'

Moving the phase and marking is for a person: put an operator's token into HANDOFFD_TOKEN.";

/// Roll mention-triggered work out, step by step.
#[derive(Debug, Subcommand)]
pub(super) enum MentionCommand {
    /// Show the phase, or move it
    Phase(Phase),
    /// List mentions that were judged, the newest first, with what each would have been
    List(Page),
    /// Show what was seen, in numbers
    Metrics,
    /// Record that a message was no mention, or meant no work
    FalsePositive(FalsePositive),
}

#[derive(Debug, Args)]
pub(super) struct Phase {
    #[command(subcommand)]
    command: Option<PhaseCommand>,
}

#[derive(Debug, Subcommand)]
enum PhaseCommand {
    /// Move it: up one step at a time, down at will
    Set(Set),
}

#[derive(Debug, Args)]
struct Set {
    /// log-only, gated-read or gated-live
    #[arg(value_name = "PHASE")]
    phase: String,

    /// Why; it is kept in the ledger with your name
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: String,
}

#[derive(Debug, Args)]
pub(super) struct FalsePositive {
    /// The messageId
    #[arg(value_name = "MESSAGE")]
    message_id: String,

    /// Which handoff, where the message led to several
    #[arg(long, value_name = "ID")]
    handoff: Option<String>,

    /// Why; it is kept in the ledger with your name
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: String,
}

impl MentionCommand {
    pub(super) fn run(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        let asked = match self {
            Self::Phase(Phase { command: None }) => ask(context, client, Ask::Get, "/v1/mentions/phase"),
            Self::Phase(Phase { command: Some(PhaseCommand::Set(Set { phase, reason })) }) => {
                let body = json!({"phase": phase, "reason": reason}).to_string();
                ask(context, client, Ask::Put(body.as_bytes()), "/v1/mentions/phase")
            }
            Self::List(page) => {
                ask(context, client, Ask::Get, &with_query("/v1/mentions", &page.parameters()))
            }
            Self::Metrics => ask(context, client, Ask::Get, "/v1/mentions/metrics"),
            Self::FalsePositive(FalsePositive { message_id, handoff, reason }) => {
                let mut body = json!({"reason": reason});
                if let (Some(handoff), Some(members)) = (handoff, body.as_object_mut()) {
                    members.insert("handoffId".to_owned(), handoff.as_str().into());
                }
                let path = format!("/v1/mentions/{}/false-positive", segment(message_id));
                ask(context, client, Ask::Post(Some(body.to_string().as_bytes())), &path)
            }
        };
        let body = match asked? {
            Ok(body) => body,
            Err(exit) => return Ok(exit),
        };
        match (self, context.printer.is_json()) {
            (_, true) => context.printer.value(&body),
            (Self::Phase(_), _) => phase(context, &body),
            (Self::List(_), _) => list(context, &body),
            (Self::Metrics, _) => metrics(context, &body),
            (Self::FalsePositive(_), _) => context.printer.line(&format!(
                "marked {BOLD}{}{BOLD:#} as a false positive, entry {}",
                text(&body, "handoffId"),
                text(&body, "sequence")
            )),
        }
        Ok(Exit::Done)
    }
}

fn phase(context: &Context, body: &Json) {
    context.printer.line(&format!("mentions are in phase {BOLD}{}{BOLD:#}", text(body, "phase")));
    let Some(moved) = body.get("moved").filter(|moved| !moved.is_null()) else {
        context.printer.line("as from the start");
        return;
    };
    let by = match moved.get("by").and_then(Json::as_str) {
        Some(_) => format!("by {}", text(moved, "by")),
        None => format!("by itself, for {}", text(moved, "code")),
    };
    let (from, at, reason) = (text(moved, "from"), text(moved, "at"), text(moved, "reason"));
    context.printer.line(&format!("from {from}, {at}, {by}: {reason}"));
}

fn list(context: &Context, page: &Json) {
    let headings = ["at", "message", "handoffId", "phase", "risk", "would be", "codes"];
    listing(context, page, ("mentions", "no mention was judged yet"), &headings, |mention| {
        vec![
            text(mention, "at"),
            text(mention, "messageId"),
            text(mention, "handoffId"),
            text(mention, "phase"),
            text(mention, "riskClassification"),
            text(mention, "wouldBe"),
            texts(mention, "codes"),
        ]
    });
}

fn metrics(context: &Context, body: &Json) {
    let count = |part: &str, name: &str| body.get(part).map_or("-".to_owned(), |part| text(part, name));
    let rows: Vec<Vec<String>> = [
        ("candidates", "candidates"),
        ("would allow", "wouldAllow"),
        ("loops stopped", "loopsStopped"),
        ("duplicates stopped", "duplicatesStopped"),
        ("expired", "expired"),
        ("false positives", "falsePositives"),
    ]
    .iter()
    .map(|(shown, name)| vec![(*shown).to_owned(), count("inPhase", name), count("total", name)])
    .collect();
    table(context, &["mentions", &format!("in {}", text(body, "phase")), "in all"], &rows);
}
