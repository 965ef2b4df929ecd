//! `handoffd a2a resubscribe`, and what is printed of a stream.

use clap::Args;

use super::super::printer::{BOLD, DIM};
use super::super::{Context, Exit};
use super::{exit_of, show};
use crate::a2a::client::{Client, ClientFault, Stream, Told};
use crate::json::printable;

/// Follow a task to its end, from any event on.
///
/// A stream that is cut goes on behind the last event that was seen. With --json each event is one line.
#[derive(Debug, Args)]
pub(super) struct Resubscribe {
    /// The id of the task
    #[arg(value_name = "ID")]
    id: String,

    /// Begin with this event; without it, with the task as it is
    #[arg(long, value_name = "NUMBER")]
    from: Option<u64>,
}

impl Resubscribe {
    pub(super) fn run(&self, context: &Context, client: &Client<'_>) -> Result<Exit, ClientFault> {
        tell(context, client.resubscribe(&self.id, self.from)?)
    }
}

/// Prints what comes, when it comes, and ends as the task does.
pub(super) fn tell(context: &Context, stream: Stream<'_, '_>) -> Result<Exit, ClientFault> {
    let mut last_state = None;
    for told in stream {
        let told = told?;
        let text = if context.printer.is_json() { format!("{}\n", told.json) } else { line(&told) };
        if !context.printer.stream(&text) {
            // Nobody reads it any more.
            return Ok(Exit::Done);
        }
        last_state = told.state().map(str::to_owned).or(last_state);
    }
    Ok(exit_of(last_state.as_deref()))
}

fn line(told: &Told) -> String {
    let number = told.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    let at =
        told.json.pointer("/status/timestamp").and_then(|at| at.as_str()).map(printable).unwrap_or_default();
    let what = match told.kind() {
        "artifact-update" => {
            let artifact = told.json.get("artifact").cloned().unwrap_or_default();
            format!("{BOLD}artifact{BOLD:#}  {}", show::artifact(&artifact))
        }
        "message" => show::words(&told.json).unwrap_or_default(),
        _ => {
            let said = told.json.pointer("/status/message").and_then(show::words).unwrap_or_default();
            let id = if told.kind() == "task" {
                told.task_id().map(printable).unwrap_or_default()
            } else {
                String::new()
            };
            let state = show::coloured(told.state().unwrap_or("unknown"));
            format!("{state}  {id}{}{said}", if id.is_empty() || said.is_empty() { "" } else { "  " })
        }
    };
    format!("{DIM}{number:>4}  {at:24}{DIM:#}  {}\n", what.trim_end())
}
