//! What was decided, for people.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value as Json;

use super::super::printer::{BOLD, DIM, GREEN, RED, YELLOW};
use super::{Outcome, What};
use crate::json::printable;

/// A line for each; with the reasons under it, if they are few.
pub(super) fn table(outcomes: &[Outcome], explains: bool) -> String {
    let mut text = String::new();
    let names = names(outcomes);
    let is_nameless = outcomes.iter().any(|outcome| outcome.handoff_id.is_none());
    let title = if is_nameless { "handoffId or file" } else { "handoffId" };
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let width = longest.clamp(title.len(), NAME_CHARS_MAX);
    let _ = writeln!(text, "{DIM}{title:width$}  {:14}  codes{DIM:#}", "decision");
    for (outcome, name) in outcomes.iter().zip(&names) {
        let style = match outcome.what {
            What::Allowed => GREEN,
            What::NeedsApproval | What::Unknown => YELLOW,
            What::Expired | What::Denied | What::Unreadable | What::TurnedAway => RED,
        };
        let codes = outcome.codes.join(" ");
        let line = format!("{name:width$}  {style}{:14}{style:#}  {codes}", outcome.what.as_str());
        let _ = writeln!(text, "{}", line.trim_end());
        if explains {
            explain(&mut text, &outcome.answer);
        }
    }
    if outcomes.len() > 1 {
        let counted = What::ALL.into_iter().filter_map(|what| {
            let count = outcomes.iter().filter(|outcome| outcome.what == what).count();
            (count > 0).then(|| format!("{count} {}", what.as_str()))
        });
        let counted: Vec<String> = counted.collect();
        let _ = writeln!(text, "\n{BOLD}{}{BOLD:#} in all: {}", outcomes.len(), counted.join(", "));
    }
    text
}

/// How wide the first column gets; an id that is longer is shown whole all the same.
const NAME_CHARS_MAX: usize = 48;

/// A file in that column: where there is no room for its path, the end of it, which tells it from its neighbours.
fn fitting(path: &str) -> String {
    match path.chars().count().saturating_sub(NAME_CHARS_MAX) {
        0 => path.to_owned(),
        over => format!("…{}", path.chars().skip(over + 1).collect::<String>()),
    }
}

/// What each row is about: the handoff; and where that names none, or more than one of them, where it came from.
fn names(outcomes: &[Outcome]) -> Vec<String> {
    let mut rows: HashMap<&str, usize> = HashMap::new();
    for id in outcomes.iter().filter_map(|outcome| outcome.handoff_id.as_deref()) {
        *rows.entry(id).or_default() += 1;
    }
    let of = |outcome: &Outcome| {
        let from = fitting(&outcome.name.split(' ').map(printable).collect::<Vec<_>>().join(" "));
        match &outcome.handoff_id {
            None => from,
            Some(id) if rows.get(id.as_str()).is_some_and(|rows| *rows > 1) => format!("{id} ({from})"),
            Some(id) => id.clone(),
        }
    };
    outcomes.iter().map(of).collect()
}

fn explain(text: &mut String, answer: &Json) {
    for reason in answer.get("reasons").and_then(Json::as_array).into_iter().flatten() {
        let member = |name: &str| reason.get(name).and_then(Json::as_str).map(printable).unwrap_or_default();
        let (path, hint) = (member("path"), member("hint"));
        let path = if path.is_empty() { "the document" } else { &path };
        let _ = writeln!(text, "    {RED}{}{RED:#} at {path}: {}", member("code"), member("message"));
        if !hint.is_empty() {
            let _ = writeln!(text, "      {DIM}hint:{DIM:#} {hint}");
        }
    }
    if let Some(until) = answer.get("expiresAt").and_then(Json::as_str) {
        let _ = writeln!(text, "    a person must say yes before {}", printable(until));
    }
}
