//! One handoff: what the gates said and why, its TaskSpec, what became of it, and the proof of all that.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value as Json, json};

use super::super::door::Visit;
use super::super::facts::{Facts, Tag};
use super::super::form::encoded;
use super::super::frame::{Frame, page};
use super::super::kept::{self, Decided, Explained, Link, Why};
use super::super::shown::Markup;
use super::super::tree::Tree;
use super::is_routed;
use crate::callers::Act;
use crate::http::{Ask, Problem};
use crate::limits;
use crate::proof::Digest;

#[derive(Template)]
#[template(path = "handoff.html")]
struct HandoffPage {
    frame: Frame,
    json: Json,
    /// The attempt that is shown, with its timeline.
    attempt: Json,
    gates: Vec<GateLine>,
    /// Reasons of no gate of ours.
    others: Vec<Why>,
    /// Were reasons of the gates explained?
    is_explained: bool,
    /// Is the place of something that is wrong known?
    is_marked: bool,
    is_same_set: bool,
    /// Is its route in the table?
    is_routed: bool,
    task_spec: Option<Tree>,
    children: Vec<String>,
    evidence: Option<Tree>,
    dispatch: Option<Tree>,
    receipt: Json,
    checked: Option<Checked>,
    timeline: Vec<Event>,
    waits: bool,
    may_approve: bool,
}

/// A gate of the checklist.
struct GateLine {
    title: String,
    outcome: String,
    reasons: Vec<Why>,
}

impl GateLine {
    fn tag(&self) -> Markup<Tag> {
        Tag::of(if self.outcome == "not_applicable" { "not applicable" } else { &self.outcome })
    }
}

/// An event of the timeline.
struct Event {
    facts: Json,
    payload: Tree,
    /// Why the work ended or stopped, as whoever ended it says.
    told: Option<Told>,
}

/// The words that an event has for people.
struct Told {
    /// Nothing where none was given.
    code: String,
    words: String,
    /// What became of the handoff, as its status says it.
    status: &'static str,
}

impl Told {
    fn of(event: &Facts<'_>) -> Option<Self> {
        let status = match event.text("type").as_str() {
            "task.failed" => "failed",
            "task.cancelled" => "cancelled",
            "task.blocked" => "blocked",
            "approval.rejected" => "rejected",
            _ => return None,
        };
        let words = if event.has("payload/message") { "payload/message" } else { "payload/reason" };
        Some(Self { code: event.text("payload/code"), words: event.text(words), status })
    }

    fn tag(&self) -> Markup<Tag> {
        Tag::of(self.status)
    }

    fn link(&self) -> String {
        encoded(&self.code)
    }
}

/// What came of checking the entries of the handoff.
struct Checked {
    links: Vec<Link>,
    /// How many entries it has; those that were not found have no link.
    entries: usize,
    /// Nothing if the TaskSpec is no longer kept.
    is_body_intact: Option<bool>,
}

impl Checked {
    fn holds(&self) -> bool {
        let is_whole = !self.links.is_empty() && self.links.len() == self.entries;
        is_whole && self.links.iter().all(Link::holds) && self.is_body_intact != Some(false)
    }
}

impl HandoffPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
    }

    fn shown(&self) -> Facts<'_> {
        self.frame.facts(&self.attempt)
    }

    fn of<'j>(&self, event: &'j Event) -> Facts<'j> {
        self.frame.facts(&event.facts)
    }

    /// The event that says why the handoff stands as it does; nothing where no event does.
    fn reported(&self) -> Option<&Event> {
        let status = self.shown().text("status");
        self.timeline.iter().rev().find(|event| event.told.as_ref().is_some_and(|told| told.status == status))
    }

    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }

    fn receipt_facts(&self) -> Facts<'_> {
        self.frame.facts(&self.receipt)
    }
}

pub(in super::super) async fn handoff(visit: &Visit, id: &str) -> Result<Response, Problem> {
    let app = &visit.console.app;
    let json = visit.ask(Ask::of("getHandoff").at("id", id)).await?;
    let facts = Facts::of(&json, visit.now);
    let history = facts.each("history");
    let wanted = visit.fields.get("attempt").map_or_else(|| facts.text("attempt"), str::to_owned);
    let attempt = history.iter().find(|attempt| attempt.is("attempt", &wanted)).or(history.last());
    let attempt = attempt.map_or(Json::Null, |attempt| attempt.json().clone());
    let shown = Facts::of(&attempt, visit.now);
    let timeline = shown.each("timeline");
    let of_kind = |kind: &str| timeline.iter().rev().find(|event| event.is("type", kind)).copied();

    let created = of_kind("task.created");
    let digest = created.map(|created| created.text("payload/task_spec_digest")).unwrap_or_default();
    let body = match created {
        Some(created) => kept::task_spec(app, created.number("sequence"), &digest).await?,
        None => None,
    };
    let decided = of_kind("gate.decided");
    let explained = decided.map_or_else(Explained::default, |event| {
        let codes = event.each("payload/codes").iter().map(|code| code.text("")).collect();
        let policy_digest = event.text("payload/policyDigest");
        kept::explain(app, body.as_deref(), &Decided { at: event.text("at"), policy_digest, codes })
    });
    let outcomes: Vec<(String, String)> = decided
        .map(|event| event.each("payload/gates"))
        .unwrap_or_default()
        .iter()
        .filter_map(|line| {
            line.text("").split_once(':').map(|(id, outcome)| (id.to_owned(), outcome.to_owned()))
        })
        .collect();
    let (gates, others) = sorted(&outcomes, &explained.reasons);

    let marks: Vec<(String, String)> = explained
        .reasons
        .iter()
        .filter_map(|why| Some((why.path.clone()?, format!("{}: {}", why.code, why.message))))
        .collect();
    let spec: Option<Json> = body.as_deref().and_then(|body| serde_json::from_str(body).ok());
    let is_allowed = shown.is("decision", "allowed");
    let sent = body.as_deref().zip(decided).filter(|_| is_allowed).and_then(|(body, event)| {
        kept::sent(app, body, &event.text("at"), &event.text("runningHash"), visit.now)
    });
    let evidence = match is_allowed {
        true => visit.ask(Ask::of("getEvidence").at("id", id)).await.ok(),
        false => None,
    };
    let receipt = decided.filter(|_| is_allowed).map_or(Json::Null, |event| {
        json!({
            "handoffId": id, "decision": "allowed", "target": shown.text("targetAgent"), "taskSpecDigest": digest,
            "sequence": event.number("sequence"), "runningHash": event.text("runningHash"),
            "dispatchDigest": sent.as_ref().and_then(|sent| sent.digest.as_ref()),
        })
    });
    let checked = match visit.fields.get("verify") {
        None => None,
        Some(_) => {
            let sequences: Vec<u64> = timeline.iter().map(|event| event.number("sequence")).collect();
            let entries = sequences.len();
            let is_body_intact =
                body.as_deref().map(|body| Digest::of(body.as_bytes()).to_string() == digest);
            Some(Checked { links: kept::links(app, sequences).await?, entries, is_body_intact })
        }
    };
    let asked = id.to_owned();
    let children = app.ask(move |reader| reader.children_of(&asked, limits::CONSOLE_CHILDREN_LISTED)).await?;
    let events = timeline
        .iter()
        .map(|event| Event {
            facts: event.json().clone(),
            payload: Tree::of(event.at("payload").json()),
            told: Told::of(event),
        })
        .collect();
    let may_approve = visit.may(Act::Approve);
    let waits = app.gateway.engine().inbox().find(id).is_ok();
    let about_it = HandoffPage {
        frame: Frame { is_live: true, ..visit.frame(id, "handoffs") },
        gates,
        others,
        is_explained: !explained.reasons.is_empty(),
        is_marked: !marks.is_empty(),
        is_same_set: explained.is_same_set,
        is_routed: is_routed(visit, &shown.text("routeKey")),
        task_spec: spec.as_ref().map(|spec| Tree::within(spec, &marks, visit.extent())),
        children,
        evidence: evidence.as_ref().map(Tree::of),
        dispatch: sent.as_ref().map(|sent| Tree::within(&sent.payload, &[], visit.extent())),
        receipt,
        checked,
        timeline: events,
        waits,
        may_approve,
        attempt,
        json,
    };
    Ok(page(StatusCode::OK, &about_it))
}

/// The checklist with each reason at its gate, and what belongs to none.
fn sorted(outcomes: &[(String, String)], reasons: &[Why]) -> (Vec<GateLine>, Vec<Why>) {
    let gates: Vec<GateLine> = outcomes
        .iter()
        .map(|(id, outcome)| GateLine {
            title: kept::gate_title(id),
            outcome: outcome.clone(),
            reasons: reasons.iter().filter(|why| why.gate == Some(id)).cloned().collect(),
        })
        .collect();
    let listed = |why: &&Why| outcomes.iter().any(|(id, _)| why.gate == Some(id));
    let others = reasons.iter().filter(|why| !listed(why)).cloned().collect();
    (gates, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_found_is_verified() {
        let link = |computed: &str| Link {
            sequence: 7,
            before: "0".to_owned(),
            stored: "1".to_owned(),
            computed: computed.to_owned(),
        };
        let holds =
            |links: Vec<Link>, entries, is_body_intact| Checked { links, entries, is_body_intact }.holds();
        assert!(holds(vec![link("1")], 1, Some(true)) && holds(vec![link("1")], 1, None));
        assert!(!holds(vec![link("2")], 1, None), "it does not follow");
        assert!(!holds(vec![link("1")], 2, Some(true)), "one was not found");
        assert!(!holds(Vec::new(), 0, Some(true)), "there was nothing to verify");
        assert!(!holds(vec![link("1")], 1, Some(false)), "another TaskSpec");
    }
}
