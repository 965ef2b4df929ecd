//! `handoffd conformance`: the seven lines of the standard's quick check, each with pass or fail and why.
//!
//! Works from what is on disk, beside a running gateway or without one: the ledger from its first entry, the TaskSpecs
//! that are still kept, the state file, and the policy set as its files have it now.

mod promotion;
mod tally;

use clap::Args;
use serde_json::json;

use super::audit::{Committed, committed};
use super::printer::{BOLD, DIM, GREEN, RED};
use super::{Context, Exit, Failure, state};
use crate::gateway::Files;
use crate::state::Published;
use tally::Tally;

/// Check whether the workspace follows the handoff standard, in seven lines.
///
/// Reads the whole ledger; with --correlation only the handoffs of that cycle, and the routes they went along.
///
/// Exit: 0 all seven pass, 1 one of them does not.
#[derive(Debug, Args)]
pub(super) struct Conformance {
    /// Only this correlationId
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
}

/// One line of the check.
#[derive(Debug)]
struct Line {
    what: &'static str,
    /// What was found wrong, in the order of the ledger.
    wrong: Vec<String>,
    /// What the line rests on if nothing is wrong.
    rests_on: String,
}

/// What is said of a line that fails; the rest is counted.
const SHOWN_MAX: usize = 5;

impl Conformance {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let files = Files::of(context.workspace.root());
        let Committed { head, ledger, .. } = committed(&files)?;
        let mut tally = Tally::new(ledger.clone(), self.correlation.clone());
        let unread = |fault: crate::ledger::EntriesFault| Failure(fault.to_string());
        for entry in ledger.entries(1, head.sequence).map_err(unread)? {
            tally.take(&entry.map_err(unread)?).map_err(Failure)?;
        }
        let policies = context.workspace.load_policies()?;
        let mut lines = tally.lines(&policies);
        lines.insert(1, state_line(&files)?);
        let conforms = lines.iter().all(|line| line.wrong.is_empty());
        self.tell(context, &lines, conforms);
        Ok(if conforms { Exit::Done } else { Exit::Refused })
    }

    fn tell(&self, context: &Context, lines: &[Line], conforms: bool) {
        if context.printer.is_json() {
            let rows: Vec<_> = (1..)
                .zip(lines)
                .map(|(n, line)| {
                    let outcome = if line.wrong.is_empty() { "pass" } else { "fail" };
                    json!({"line": n, "what": line.what, "outcome": outcome, "why": line.why()})
                })
                .collect();
            context.printer.value(&json!({"conforms": conforms, "lines": rows}));
            return;
        }
        for (n, line) in (1..).zip(lines) {
            let (style, mark) = if line.wrong.is_empty() { (GREEN, "✓") } else { (RED, "✗") };
            context.printer.line(&format!("{style}{mark}{style:#} {BOLD}{n} {}{BOLD:#}", line.what));
            for why in line.why() {
                context.printer.line(&format!("    {DIM}{why}{DIM:#}"));
            }
        }
    }
}

impl Line {
    fn why(&self) -> Vec<String> {
        if self.wrong.is_empty() {
            return vec![self.rests_on.clone()];
        }
        let mut why: Vec<String> = self.wrong.iter().take(SHOWN_MAX).cloned().collect();
        let more = self.wrong.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            why.push(format!("and {more} more"));
        }
        why
    }
}

/// The state file is what the ledger gives, and nothing else.
fn state_line(files: &Files) -> Result<Line, Failure> {
    let (wrong, rests_on) = match state::published(files)? {
        Published::AsOf(sequence) => {
            (Vec::new(), format!("the file is what the ledger gives at entry {sequence}"))
        }
        Published::Missing => (vec!["there is no state file".to_owned()], String::new()),
        Published::Torn => (vec!["the file ends in the middle".to_owned()], String::new()),
        Published::Unreadable => (vec!["the file is not a state file".to_owned()], String::new()),
        Published::Edited { sequence, difference } => {
            let wrong = format!("the file is not what the ledger gives at entry {sequence}: {difference}");
            (vec![wrong], String::new())
        }
        Published::Ahead { sequence } => {
            (vec![format!("the file names entry {sequence}, which the ledger does not have")], String::new())
        }
    };
    Ok(Line { what: "memory/orchestration-state.json is the only source of state", wrong, rests_on })
}

#[cfg(test)]
mod tests;
