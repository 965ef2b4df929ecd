//! `handoffd check`: what the gates say about TaskSpecs, offline.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;

use super::printer::{BOLD, DIM, RED, decision, outcome};
use super::{Context, Exit, Failure, body_failure, parse_time, read_task_spec};
use crate::answer::Answer;
use crate::gates::{Caller, Claims, Decision, Ground, judge};
use crate::json;
use crate::limits;
use crate::os::clock;
use crate::timestamp::Timestamp;

/// Run the gates on TaskSpecs, without submitting them.
///
/// Every gate that needs no ledger runs, and every reason is listed. What only the gateway can decide (used ids, the
/// route's stage, grants) is listed as claims.
///
/// Exit: 0 allowed, 1 denied or expired, 2 unreadable, 4 needs approval.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// TaskSpec files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Judge as of this time instead of now
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    now: Option<Timestamp>,

    /// Judge as if this agent's orchestrator submitted it
    #[arg(long = "as", value_name = "AGENT")]
    caller: Option<String>,
}

impl Check {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let policies = context.workspace.load_policies()?;
        let keyring = context.workspace.load_keyring()?;
        let now = self.now.unwrap_or_else(clock::now);
        let caller = self.caller.as_deref().map_or(Caller::Unchecked, Caller::Agent);
        let ground = Ground { policies: &policies, keyring: &keyring, caller, now };

        // All are read before any is answered: nothing half done.
        let mut answers = Vec::with_capacity(self.files.len());
        for path in &self.files {
            let body = read_task_spec(path)?;
            let document =
                json::read(&body, limits::TASK_SPEC).map_err(|fault| body_failure(path, &fault))?;
            let judgement = judge(&document, &ground);
            let claims = Claims::of(&judgement.spec, &judgement.verdict);
            answers.push(Answer::of_check(&judgement, claims.as_ref(), now));
        }

        let printer = &context.printer;
        match answers.as_slice() {
            [answer] if printer.is_json() => printer.value(answer),
            answers if printer.is_json() => printer.value(&answers),
            answers => {
                for (n, (path, answer)) in self.files.iter().zip(answers).enumerate() {
                    if n > 0 {
                        printer.line("");
                    }
                    printer.line(report(&path.display().to_string(), answer).trim_end());
                }
            }
        }
        Ok(exit(&answers))
    }
}

/// The gravest of several answers: one that was refused counts more than one that waits.
fn exit(answers: &[Answer]) -> Exit {
    let any = |wanted: &[Decision]| answers.iter().any(|answer| wanted.contains(&answer.decision));
    if any(&[Decision::Denied, Decision::Expired]) {
        Exit::Refused
    } else if any(&[Decision::NeedsApproval]) {
        Exit::NeedsApproval
    } else {
        Exit::Done
    }
}

fn report(path: &str, answer: &Answer) -> String {
    let mut text = String::new();
    let id = answer.handoff_id.as_deref().unwrap_or("no handoffId");
    let _ = writeln!(text, "{BOLD}{path}{BOLD:#}  {id}");
    for gate in &answer.gates {
        let _ = writeln!(text, "  {:<12} {}", gate.gate.title(), outcome(gate.outcome));
    }
    let _ = writeln!(
        text,
        "  {:<12} {} {DIM}at {}{DIM:#}",
        "decision",
        decision(answer.decision),
        answer.decided_at
    );
    if let Some(until) = answer.expires_at {
        let _ = writeln!(text, "  {:<12} a person must say yes before {until}", "");
    }
    for reason in &answer.reasons {
        let path = if reason.path.is_empty() { "the document" } else { &reason.path };
        let _ = writeln!(text, "\n  {RED}{}{RED:#} at {path}", reason.code);
        let _ = writeln!(text, "    {}", reason.message);
        if !reason.hint.is_empty() {
            let _ = writeln!(text, "    {DIM}hint:{DIM:#} {}", reason.hint);
        }
    }
    if !answer.claims.is_empty() {
        let _ = writeln!(text, "\n  {DIM}the gateway still decides:{DIM:#}");
        for claim in &answer.claims {
            let _ = writeln!(text, "    {:<15} {}", claim.claim, json::printable(&claim.value));
        }
    }
    text
}
