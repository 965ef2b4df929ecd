//! `handoffd audit tail`: the newest entries, and each next one when it is there.

use std::time::Duration;

use clap::Args;
use serde::Deserialize;

use super::audit::{Committed, committed};
use super::printer::DIM;
use super::{Context, Exit, Failure};
use crate::gateway::Files;
use crate::json;
use crate::ledger::postgres::Database;
use crate::ledger::{EntriesFault, Entry, Source, Tail};
use crate::limits;

/// How long it rests when there is nothing new.
const REST: Duration = Duration::from_millis(100);

/// How many entries are shown before those that come.
const SHOWN_FIRST: u64 = 10;

/// Print the newest entries, and each next one when it is committed.
///
/// Ends with Ctrl-C, or when nobody reads what it prints any more. With --json each entry is a line as `audit export`
/// prints it.
#[derive(Debug, Args)]
pub(super) struct AuditTail {
    /// Begin with this entry; without it, with the last ten
    #[arg(long, value_name = "SEQUENCE")]
    from: Option<u64>,

    /// Only this event type, such as gate.decided
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,

    /// Only this handoff, every attempt at it
    #[arg(long, value_name = "ID")]
    handoff: Option<String>,

    /// Print what is there and end
    #[arg(long)]
    no_follow: bool,
}

/// What a line for people says of an event.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    stream: Stream,
    #[serde(default)]
    payload: Payload,
}

#[derive(Deserialize)]
struct Stream {
    stream_id: String,
}

#[derive(Deserialize, Default)]
struct Payload {
    decision: Option<serde_json::Value>,
    codes: Option<serde_json::Value>,
}

/// A ledger that is being followed.
enum Following {
    Files(Tail),
    /// A database, and the next entry.
    Stored(Database, u64),
}

impl Following {
    /// What was committed since the last look, in order.
    fn look(&mut self) -> Result<Vec<Entry>, EntriesFault> {
        match self {
            Self::Files(tail) => tail.look(),
            Self::Stored(database, next) => {
                let through = next.saturating_add(limits::PG_READ_ENTRIES - 1);
                let entries: Vec<Entry> = database.entries(*next, through).collect::<Result<_, _>>()?;
                *next += entries.len() as u64;
                Ok(entries)
            }
        }
    }
}

impl AuditTail {
    pub(super) fn run(&self, context: &Context, files: &Files) -> Result<Exit, Failure> {
        let Committed { topic_id, head, ledger } = committed(files)?;
        let from = self.from.unwrap_or_else(|| head.sequence.saturating_sub(SHOWN_FIRST - 1));
        let mut tail = match &ledger {
            Source::Database(database) => Following::Stored(database.clone(), from.max(1)),
            Source::Files(_) | Source::Memory(_) => Following::Files(Tail::new(&files.ledger(), from)),
        };
        loop {
            let entries = tail.look().map_err(|fault| Failure(fault.to_string()))?;
            if entries.is_empty() {
                if self.no_follow {
                    return Ok(Exit::Done);
                }
                std::thread::sleep(REST);
            }
            for entry in entries {
                let Some(text) = self.line(context, &entry, &topic_id)? else { continue };
                if !context.printer.stream(&text) {
                    // Nobody reads it any more.
                    return Ok(Exit::Done);
                }
            }
        }
    }

    /// What is printed for an entry; nothing if it is not asked for.
    fn line(&self, context: &Context, entry: &Entry, topic_id: &str) -> Result<Option<String>, Failure> {
        let unreadable = |error| Failure(format!("entry {} is no Wire event: {error}", entry.sequence));
        let event: Event = serde_json::from_str(&entry.wire).map_err(unreadable)?;
        let of_handoff = |handoff: &String| {
            let attempt =
                event.stream.stream_id.strip_prefix("task:").and_then(|rest| rest.rsplit_once(":attempt:"));
            attempt.is_some_and(|(id, _)| id == handoff)
        };
        if self.kind.as_ref().is_some_and(|kind| *kind != event.kind)
            || !self.handoff.as_ref().is_none_or(of_handoff)
        {
            return Ok(None);
        }
        if context.printer.is_json() {
            return Ok(Some(entry.to_line(topic_id)));
        }
        let text = |value: &serde_json::Value| value.as_str().map(json::printable).unwrap_or_default();
        let decision = event.payload.decision.as_ref().map(text).unwrap_or_default();
        let codes = event.payload.codes.as_ref().and_then(|codes| codes.as_array());
        let codes: Vec<String> = codes.into_iter().flatten().map(text).collect();
        let line = format!(
            "{:>8}  {DIM}{}{DIM:#}  {:<18}  {}  {decision} {}",
            entry.sequence,
            entry.consensus_timestamp,
            json::printable(&event.kind),
            json::printable(&event.stream.stream_id),
            codes.join(" "),
        );
        Ok(Some(format!("{}\n", line.trim_end())))
    }
}
