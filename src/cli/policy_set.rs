//! `handoffd policy show`, `approve` and `reject`: the set in force, and the one that waits for a person's yes.

use clap::Args;
use serde_json::{Value as Json, json};

use super::asking::{ask, details, parse_reason, rows, text, texts};
use super::client::{Ask, ClientFlags};
use super::printer::{BOLD, GREEN, RED, YELLOW};
use super::{Context, Exit, Failure};
use crate::json::printable;
use crate::proof::Digest;

/// An answer to the set that waits.
#[derive(Debug, Args)]
pub(super) struct Answer {
    /// The digest of the set that you looked at, as `policy show` prints it
    #[arg(value_name = "DIGEST", value_parser = parse_digest)]
    digest: String,

    /// Why; it is kept in the ledger with your name
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: String,
}

/// A yes to half a digest would be a yes to several sets.
fn parse_digest(text: &str) -> Result<String, String> {
    match Digest::parse(text) {
        Some(digest) => Ok(digest.to_string()),
        None => Err("give the whole digest: sha256: and 64 lower-case hex digits".to_owned()),
    }
}

pub(super) fn show(context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
    let body = match ask(context, client, Ask::Get, "/v1/policies")? {
        Ok(body) => body,
        Err(exit) => return Ok(exit),
    };
    if context.printer.is_json() {
        context.printer.value(&body);
    } else {
        in_words(context, &body);
    }
    Ok(Exit::Done)
}

fn in_words(context: &Context, body: &Json) {
    let last = body.get("lastLoad").unwrap_or(&Json::Null);
    let last = match text(last, "outcome").as_str() {
        "failed" => format!("{RED}failed{RED:#} at {}: {}", text(last, "at"), text(last, "why")),
        word => format!("{word} at {}", text(last, "at")),
    };
    let lines = [
        ("in force", text(body, "inForce")),
        ("routes", texts(body, "routes")),
        ("policies", texts(body, "policies")),
        ("last load", last),
        ("approval", text(body, "approval")),
    ];
    details(context, &lines);
    let pending = body.get("pending").filter(|pending| !pending.is_null());
    if let Some(why) = body.get("withheld").and_then(Json::as_str) {
        let why = match pending {
            None => printable(why),
            Some(_) => "until an operator says yes to what waits, or the files are those in force".to_owned(),
        };
        context.printer.line(&format!("{RED}nothing is decided{RED:#}  {why}"));
    }
    let Some(pending) = pending else {
        context.printer.line("nothing waits");
        return;
    };
    let state = text(pending, "state");
    let style = if state == "rejected" { RED } else { YELLOW };
    context.printer.line(&format!("\n{style}{state}{style:#}  {BOLD}{}{BOLD:#}", text(pending, "digest")));
    let mut lines = vec![("since", text(pending, "since")), ("entry", text(pending, "sequence"))];
    if let Some(no) = pending.get("rejected").filter(|no| !no.is_null()) {
        lines.push((
            "rejected",
            format!("by {} at {}: {}", text(no, "by"), text(no, "at"), text(no, "reason")),
        ));
    }
    details(context, &lines);
    changed(context, pending);
    if state != "rejected" {
        let digest = text(pending, "digest");
        context.printer.note(&format!(
            "an operator answers: handoffd policy approve {digest} --reason …, or policy reject"
        ));
    }
}

fn changed(context: &Context, pending: &Json) {
    let Some(total) = pending.get("filesTotal").and_then(Json::as_u64) else {
        context.printer.line("which files changed is not known any more");
        return;
    };
    let files = rows(pending, "files");
    for file in files.iter().filter_map(Json::as_str) {
        context.printer.line(&format!("  {}", printable(file)));
    }
    if total > files.len() as u64 {
        context.printer.line(&format!("  and {} more", total - files.len() as u64));
    }
}

impl Answer {
    /// `decision` is approve or reject.
    pub(super) fn give(
        &self,
        context: &Context,
        client: &ClientFlags,
        decision: &str,
    ) -> Result<Exit, Failure> {
        let body = json!({"digest": self.digest, "decision": decision, "reason": self.reason}).to_string();
        let asked = ask(context, client, Ask::Post(Some(body.as_bytes())), "/v1/policies/approval");
        let body = match asked? {
            Ok(body) => body,
            Err(exit) => return Ok(exit),
        };
        if context.printer.is_json() {
            context.printer.value(&body);
            return Ok(Exit::Done);
        }
        let (digest, entry) = (text(&body, "digest"), text(&body, "sequence"));
        context.printer.line(&match decision {
            "approve" => format!("{BOLD}{digest}{BOLD:#} {GREEN}is in force{GREEN:#}, entry {entry}"),
            _ => format!(
                "{BOLD}{digest}{BOLD:#} {RED}is rejected{RED:#}, entry {entry}; it stays out of force until the files change"
            ),
        });
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_digest_is_taken() {
        let whole = Digest::of(b"a set").to_string();
        assert_eq!(parse_digest(&whole), Ok(whole.clone()));
        let bare = whole.replace("sha256:", "");
        for bad in ["", "sha256:", &whole[..20], &whole.to_uppercase(), &bare] {
            assert!(parse_digest(bad).is_err(), "{bad}");
        }
    }
}
