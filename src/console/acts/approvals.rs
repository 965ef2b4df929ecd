//! Saying yes or no to a handoff that waits.

use serde_json::json;

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::form::encoded;
use super::super::tree::Tree;
use super::{Input, Plan, needed};
use crate::callers::Act;
use crate::http::{Ask, Kind, Problem, hindrance_to_yes};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Approve,
    Reject,
}

/// What stands in the way of a yes by the person who looks; nothing if nothing does. The same check as the answer's, so
/// nobody is invited to a yes that will not be taken.
pub(in super::super) fn hindrance(visit: &Visit, id: &str) -> Option<Problem> {
    let problem = hindrance_to_yes(&visit.console.app, &visit.session.caller, id)?;
    Some(match problem.kind() {
        Kind::ApprovalTwice => Problem::new(Kind::ApprovalTwice, "you said yes; another person must")
            .hint("saying no is still open to you"),
        _ => problem,
    })
}

pub(super) async fn plan(visit: &Visit, word: Word) -> Result<Plan, Problem> {
    let id = needed(visit, "id")?;
    let approval =
        visit.ask(Ask::of("getApproval").at("id", id)).await.map_err(|problem| match problem.kind() {
            Kind::NotFound => {
                Problem::new(Kind::ApprovalNotWaiting, problem.detail().to_owned()).with("handoffId", id)
            }
            _ => problem,
        })?;
    let facts = Facts::of(&approval, visit.now);
    let digest = facts.text("taskSpecDigest");
    if visit.fields.get("digest").is_some_and(|looked_at| looked_at != digest) {
        return Err(Problem::new(
            Kind::ApprovalOtherTaskSpec,
            "what waits is not the TaskSpec that was looked at",
        )
        .hint("look at it again"));
    }
    let is_yes = word == Word::Approve;
    let said = facts.each("saidYes").len() as u64;
    let more = facts.number("needed").saturating_sub(said + 1);
    let hindrance = if is_yes { hindrance(visit, id) } else { None };
    let happens = match (word, more == 0) {
        (Word::Approve, true) => vec![
            format!(
                "The whole handoff is judged once more, as of now. If every gate still passes, it is allowed and {} is sent the payload below.",
                facts.text("targetAgent")
            ),
            "The yes counts once, for exactly this TaskSpec.".to_owned(),
        ],
        (Word::Approve, false) => {
            let needed = match more {
                1 => "One more yes is needed, of another person, before anything is sent.".to_owned(),
                more => format!("{more} more people must say yes before anything is sent."),
            };
            vec!["Your yes is recorded. Nothing is sent yet.".to_owned(), needed]
        }
        (Word::Reject, _) => vec![
            "The handoff is rejected for good. Nothing is sent, and nobody can approve it later.".to_owned(),
        ],
    };
    let documents = match (is_yes, facts.has("wouldDispatch")) {
        (true, true) => {
            let payload = Tree::within(facts.at("wouldDispatch").json(), &[], visit.extent());
            vec![("What the target would be sent", payload)]
        }
        _ => Vec::new(),
    };
    Ok(Plan {
        act: Act::Approve,
        title: format!("{} {id}", if is_yes { "Approve" } else { "Reject" }),
        section: "approvals",
        facts: vec![
            ("Operation", facts.text("operation")),
            ("Mode", facts.text("mode")),
            ("From", facts.text("sourceAgent")),
            ("To", facts.text("targetAgent")),
            ("In the name of", facts.or("principal", "nobody: it is direct")),
            ("Route", facts.text("routeKey")),
            (
                "Yes so far",
                format!("{said} of {} {}", facts.number("needed"), facts.text("saidYes")).trim().to_owned(),
            ),
            ("Ends", facts.text("expiresAt")),
            ("TaskSpec", digest.clone()),
        ],
        hindrance,
        happens,
        steps: Vec::new(),
        documents,
        inputs: vec![Input::reason(visit, true)],
        carried: vec![("id", id.to_owned()), ("digest", digest)],
        button: if is_yes { "Yes, approve" } else { "Yes, reject" },
        is_dangerous: !is_yes,
        back: format!("/console/approvals/{}", encoded(id)),
        ask: Ask::of("answerApproval").at("id", id).body(json!({
            "decision": if is_yes { "approve" } else { "reject" },
            "reason": visit.fields.text("reason"),
        })),
        next: format!("/console/handoffs/{}", encoded(id)),
        told: |done| {
            let (id, decision) = (done.text("handoffId"), done.text("decision"));
            match decision.as_str() {
                "needs_approval" => format!("Your yes to {id} is recorded; another person must say yes too."),
                word => format!("{id} is {word}."),
            }
        },
    })
}
