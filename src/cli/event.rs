//! `handoffd event`: report what became of a handoff.

use clap::Args;
use serde_json::{Value as Json, json};

use super::client::{Ask, Client, ClientFlags, Trouble, segment};
use super::printer::{BOLD, DIM};
use super::{Context, Exit, Failure};
use crate::json::printable;
use crate::os::{clock, random};
use crate::wire::{Contracts, Kind, StreamId, WireId};

/// Report what became of a handoff.
///
/// Builds the Wire event: its id, its number in the stream, its state. An agent's token reports task.claimed,
/// task.started, task.blocked, artifact.ready, task.complete and task.failed; the source or an operator may send
/// task.cancelled.
///
/// Exit: 0 taken in, 2 refused, 3 unavailable.
#[derive(Debug, Args)]
pub(super) struct ReportEvent {
    #[command(flatten)]
    client: ClientFlags,

    /// The handoffId
    #[arg(value_name = "ID")]
    handoff_id: String,

    /// The type of the event, such as task.claimed
    #[arg(value_name = "TYPE", value_parser = parse_kind)]
    kind: Kind,

    /// What the event says, as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = parse_payload)]
    payload: Json,

    /// Who sends it; without it, the handoff's target, or its source for task.cancelled
    #[arg(long, value_name = "SENDER")]
    sender: Option<String>,
}

fn parse_kind(text: &str) -> Result<Kind, String> {
    text.parse().map_err(|_| "not a type of event; docs/agent-wire.md lists them".to_owned())
}

fn parse_payload(text: &str) -> Result<Json, String> {
    let payload: Json = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    if payload.is_object() {
        Ok(payload)
    } else {
        Err("not a JSON object, such as {\"reason\": \"…\"}".to_owned())
    }
}

impl ReportEvent {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let client = match self.client.connect(context) {
            Ok(client) => client,
            Err(nobody) => return nobody.end(context),
        };
        let place = format!("/v1/handoffs/{}", segment(&self.handoff_id));
        let event = match client.ask(Ask::Get, &place) {
            Ok(reply) => {
                next_event(&reply.body, &self.handoff_id, self.kind, &self.payload, self.sender.as_deref())?
            }
            Err(trouble) => return Ok(trouble.end(context)),
        };
        match send(&client, &format!("{place}/events"), &event, context) {
            Ok(reported) => {
                tell(context, self.kind, &reported);
                Ok(Exit::Done)
            }
            Err(trouble) => Ok(trouble.end(context)),
        }
    }
}

/// The event that comes next in the stream of the attempt that stands.
pub(super) fn next_event(
    handoff: &Json,
    handoff_id: &str,
    kind: Kind,
    payload: &Json,
    sender: Option<&str>,
) -> Result<Json, Failure> {
    let strange = || Failure::new("the gateway's answer is not what it should be");
    let attempt = handoff.get("attempt").and_then(Json::as_u64).ok_or_else(strange)?;
    let history = handoff.get("history").and_then(Json::as_array).ok_or_else(strange)?;
    let shown = history.iter().find(|one| one.get("attempt").and_then(Json::as_u64) == Some(attempt));
    let timeline = shown.and_then(|one| one.get("timeline")?.as_array()).ok_or_else(strange)?;
    let correlation = handoff.get("correlationId").ok_or_else(strange)?;
    let now = clock::now();
    let random = random::secret_bytes::<10>()?;
    let end = if kind == Kind::TaskCancelled { "sourceAgent" } else { "targetAgent" };
    let sender = match sender {
        Some(sender) => sender.to_owned(),
        None => format!("agent:{}", handoff.get(end).and_then(Json::as_str).ok_or_else(strange)?),
    };
    let attempt = u32::try_from(attempt).map_err(|_| strange())?;
    let mut event = json!({
        "wire": "1.1",
        "wire_id": WireId::new(now.unix_milliseconds(), *random).to_string(),
        "type": kind.as_str(),
        "ts": now.to_string(),
        "sender": sender,
        "payload": payload,
        "stream": {
            "stream_id": StreamId::Handoff { handoff_id, attempt }.to_string(),
            "stream_seq": timeline.len() + 1,
            "context_id": correlation,
            "correlation_id": correlation,
        },
    });
    if let (Some((category, terminal)), Some(members)) =
        (Contracts::embedded().state(kind), event.as_object_mut())
    {
        members.insert("state".to_owned(), json!({"category": category.as_str(), "terminal": terminal}));
    }
    Ok(event)
}

/// The same event again is taken in once, so that it can be sent until there is an answer.
fn send(client: &Client, path: &str, event: &Json, context: &Context) -> Result<Json, Trouble> {
    let body = event.to_string();
    client.ask_patiently(Ask::Event(body.as_bytes()), path, context).map(|reply| reply.body)
}

fn tell(context: &Context, kind: Kind, reported: &Json) {
    if context.printer.is_json() {
        context.printer.value(reported);
        return;
    }
    let text =
        |name: &str| printable(reported.get(name).and_then(Json::as_str).unwrap_or_default()).to_string();
    let number = |name: &str| reported.get(name).and_then(Json::as_u64).unwrap_or_default();
    context.printer.line(&format!(
        "{BOLD}{}{BOLD:#} is {} {DIM}{kind} is event {} of its stream, entry {} of the ledger{DIM:#}",
        text("handoffId"),
        text("status"),
        number("streamSeq"),
        number("sequence"),
    ));
}
