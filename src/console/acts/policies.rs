//! Saying yes or no to a changed policy set that waits.

use serde_json::{Value as Json, json};

use super::super::changes::Changed;
use super::super::door::Visit;
use super::super::facts::Facts;
use super::{Input, Plan, needed};
use crate::callers::Act;
use crate::http::{Ask, Kind, Problem};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Approve,
    Reject,
}

pub(super) async fn plan(visit: &Visit, word: Word) -> Result<Plan, Problem> {
    let looked_at = needed(visit, "digest")?;
    let set = visit.ask(Ask::of("getPolicies")).await?;
    let facts = Facts::of(&set, visit.now);
    let pending = facts.at("pending");
    if !pending.is("digest", looked_at) {
        let problem = match pending.has("digest") {
            true => Problem::new(Kind::PolicyOtherSet, "what waits is not the set that was looked at"),
            false => {
                Problem::new(Kind::PolicyNotWaiting, "the set that was looked at does not wait any more")
            }
        };
        return Err(problem.hint("look at the policies again"));
    }
    let is_yes = word == Word::Approve;
    let happens = match word {
        Word::Approve => vec![
            "Exactly this set is in force from the next decision on, if the files still have it.".to_owned(),
            "What was decided before stays as it was decided.".to_owned(),
        ],
        Word::Reject => vec![
            "This set stays out of force until the files change.".to_owned(),
            match facts.has("withheld") {
                true => "Nothing is decided meanwhile: the set in force is no longer on disk.".to_owned(),
                false => "The set before it goes on deciding.".to_owned(),
            },
        ],
    };
    let happens: Vec<String> = happens.into_iter().chain(changes(&pending)).collect();
    Ok(Plan {
        act: Act::ApprovePolicies,
        title: format!("{} the changed policies", if is_yes { "Approve" } else { "Reject" }),
        section: "policies",
        facts: vec![
            ("Set", pending.text("digest")),
            ("Instead of", pending.text("previousDigest")),
            ("Waits since", pending.text("since")),
            ("Changed files", changed(&pending)),
        ],
        hindrance: None,
        happens,
        steps: Vec::new(),
        documents: Vec::new(),
        inputs: vec![Input::reason(visit, true)],
        carried: vec![("digest", looked_at.to_owned())],
        button: if is_yes { "Yes, approve" } else { "Yes, reject" },
        is_dangerous: !is_yes,
        back: "/console/policies".to_owned(),
        ask: Ask::of("answerPolicies").body(json!({
            "digest": looked_at,
            "decision": if is_yes { "approve" } else { "reject" },
            "reason": visit.fields.text("reason"),
        })),
        next: "/console/policies".to_owned(),
        told: |done| match done.text("decision").as_str() {
            "approved" => format!("{} is in force, entry {}.", done.text("digest"), done.text("sequence")),
            _ => format!("{} is rejected, entry {}.", done.text("digest"), done.text("sequence")),
        },
    })
}

/// What would be different, a sentence for each route or file.
fn changes(pending: &Facts<'_>) -> Vec<String> {
    let changes = pending.at("changes");
    if !changes.json().is_array() {
        return vec!["What it would change is not known since the gateway was started.".to_owned()];
    }
    let sentence = |one: Changed| {
        let what = if one.route_key.is_empty() { &one.file } else { &one.route_key };
        match one.words() {
            [] => format!("`{what}` is {}.", one.change),
            fields => format!("`{what}` is {}: {}.", one.change, fields.join("; ")),
        }
    };
    Changed::all(&changes).into_iter().map(sentence).collect()
}

fn changed(pending: &Facts<'_>) -> String {
    if matches!(pending.at("filesTotal").json(), Json::Null) {
        return "which ones is not known any more".to_owned();
    }
    let (named, total) = (pending.each("files").len() as u64, pending.number("filesTotal"));
    let more = if total > named { format!(" and {} more", total - named) } else { String::new() };
    format!("{}{more}", pending.text("files"))
}
