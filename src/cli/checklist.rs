//! A route as people read it: its gates as a checklist, and what is missing for the next one.

use serde_json::Value as Json;

use super::Context;
use super::asking::rows;
use super::printer::{BOLD, DIM, GREEN, RED, YELLOW};
use crate::json::printable;

/// Prints a route as the gateway shows it.
pub(super) fn tell_route(context: &Context, route: &Json) {
    let stage = text(route, "stage");
    let way = match (flag(route, "blocked"), route.get("candidateStage").and_then(Json::as_str)) {
        (true, _) => format!("{RED}blocked{RED:#}"),
        (false, Some(next)) if next == stage => format!("{YELLOW}in canary{YELLOW:#}"),
        (false, Some(next)) => format!("{DIM}on the way to {next}{DIM:#}"),
        (false, None) => format!("{GREEN}all gates passed{GREEN:#}"),
    };
    context.printer.line(&format!("{BOLD}{}{BOLD:#}  {stage}, {way}", text(route, "routeKey")));
    let missing = rows(route, "missing");
    for gate in rows(route, "gates") {
        let name = format!("{} {:<15}", text(gate, "gate"), text(gate, "title"));
        match gate.get("status").and_then(Json::as_str) {
            Some("passed") => {
                context.printer.line(&format!("  {GREEN}✓{GREEN:#} {name} {DIM}{}{DIM:#}", passed(gate)));
            }
            Some("next") if missing.is_empty() => {
                context.printer.line(&format!("  {DIM}·{DIM:#} {name} ready to be evaluated"));
            }
            Some("next") => {
                context.printer.line(&format!("  {RED}✗{RED:#} {name} missing:"));
                tell_missing(context, missing);
            }
            _ => context.printer.line(&format!("  {DIM}· {name}{DIM:#}")),
        }
    }
    tell_rest(context, route);
}

/// Prints what is missing, one after the other.
pub(super) fn tell_missing(context: &Context, missing: &[Json]) {
    for one in missing {
        context.printer.line(&format!("      {}", text(one, "what")));
        context.printer.line(&format!("      {DIM}hint: {}{DIM:#}", text(one, "hint")));
    }
}

/// Prints what a rollback did, or would do.
pub(super) fn tell_rollback(context: &Context, key: &str, told: &Json) {
    let sequence = told.get("sequence").and_then(Json::as_u64);
    let (word, would) = match sequence {
        Some(_) => (format!("{GREEN}rolled back{GREEN:#}"), ""),
        None => (format!("{YELLOW}dry run{YELLOW:#}"), "would be "),
    };
    let blocked = if flag(told, "blocked") { " and blocked" } else { "" };
    context.printer.line(&format!(
        "{word}  {} {}{}{blocked}",
        printable(key),
        if would.is_empty() { "is at " } else { "would be at " },
        text(told, "stage")
    ));
    for step in rows(told, "steps") {
        let line = match step.get("outcome").and_then(Json::as_str) {
            Some("done") => format!("  {GREEN}✓{GREEN:#} {:<8} {would}done", text(step, "step")),
            _ => format!("  {DIM}·{DIM:#} {:<8} {would}skipped: {}", text(step, "step"), text(step, "why")),
        };
        context.printer.line(&line);
    }
    for handoff in rows(told, "rolledBack").iter().filter_map(Json::as_str) {
        context.printer.line(&format!("    {} {would}marked as rolled back", printable(handoff)));
    }
    if let Some(sequence) = sequence {
        context.printer.line(&format!("{DIM}entry {sequence} of the ledger{DIM:#}"));
    }
}

pub(super) fn text(value: &Json, name: &str) -> String {
    printable(value.get(name).and_then(Json::as_str).unwrap_or_default())
}

fn flag(value: &Json, name: &str) -> bool {
    value.get(name) == Some(&Json::Bool(true))
}

/// By whom, when, and on what it rests.
fn passed(gate: &Json) -> String {
    let mut line = format!("{} {}", text(gate, "by"), text(gate, "at"));
    let entries: Vec<String> = rows(gate, "evidence").iter().map(Json::to_string).collect();
    if !entries.is_empty() {
        line.push_str(&format!(", rests on entries {}", entries.join(", ")));
    }
    for (name, word) in [("handoffId", "handoff"), ("planRef", "plan")] {
        if let Some(value) = gate.get(name).and_then(Json::as_str) {
            line.push_str(&format!(", {word} {}", printable(value)));
        }
    }
    line
}

fn tell_rest(context: &Context, route: &Json) {
    if let Some(canary) = route.get("canary").filter(|canary| canary.is_object()) {
        let number = |name: &str| canary.get(name).and_then(Json::as_u64).unwrap_or_default();
        let holder = match canary.get("handoffId").and_then(Json::as_str) {
            Some(holder) => format!(", {} is under way since {}", printable(holder), text(canary, "since")),
            None => String::new(),
        };
        context.printer.line(&format!("  canary: {} of {}{holder}", number("done"), number("of")));
    }
    if route.get("pin").is_some_and(Json::is_object) {
        context.printer.line(
            "  an earlier definition is in force; `handoffd route unblock --what pin` lets the table count again",
        );
    }
    if let Some(last) = route.get("lastRollback").filter(|last| last.is_object()) {
        context.printer.line(&format!(
            "  last rollback: {} by {}: {}",
            text(last, "at"),
            text(last, "by"),
            text(last, "reason")
        ));
    }
    for handoff in rows(route, "inFlight").iter().filter_map(Json::as_str) {
        context.printer.line(&format!("  in flight: {}", printable(handoff)));
    }
}
