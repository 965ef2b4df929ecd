//! The rollout of mention-triggered work: the phase, the numbers, and what was seen.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::form::encoded;
use super::super::frame::{Frame, page};
use super::next_page;
use crate::callers::Act;
use crate::http::{Ask, Problem};
use crate::mentions::Phase;

#[derive(Template)]
#[template(path = "mentions.html")]
struct MentionsPage {
    frame: Frame,
    phase: Json,
    metrics: Json,
    list: Json,
    may: bool,
    next: Option<String>,
}

/// What is counted: its name in the answer, and in words.
const COUNTED: [(&str, &str); 6] = [
    ("candidates", "Candidates"),
    ("wouldAllow", "Would be allowed"),
    ("loopsStopped", "Loops stopped"),
    ("duplicatesStopped", "Duplicates stopped"),
    ("expired", "Expired"),
    ("falsePositives", "False positives"),
];

impl MentionsPage {
    fn facts<'j>(&self, json: &'j Json) -> Facts<'j> {
        self.frame.facts(json)
    }

    fn counted(&self) -> [(&'static str, &'static str); 6] {
        COUNTED
    }

    /// Every phase, whether it is reached, and whether one may go there from here.
    fn phases(&self) -> Vec<(&'static str, &'static str, bool)> {
        let current = self.facts(&self.phase).text("phase");
        let place = |word: &str| Phase::ALL.iter().position(|phase| phase.as_str() == word).unwrap_or(0);
        let here = place(&current);
        Phase::ALL
            .iter()
            .enumerate()
            .map(|(n, phase)| {
                let status = if n == here {
                    "current"
                } else if n < here {
                    "passed"
                } else {
                    "not_yet"
                };
                (phase.as_str(), status, n != here && n <= here + 1)
            })
            .collect()
    }
}

pub(in super::super) async fn mentions(visit: &Visit) -> Result<Response, Problem> {
    let query =
        visit.fields.get("cursor").map(|cursor| format!("cursor={}", encoded(cursor))).unwrap_or_default();
    let list = visit.ask(Ask::of("listMentions").query(query)).await?;
    let next = Facts::of(&list, visit.now).text("next");
    let shown = MentionsPage {
        frame: Frame { is_live: visit.fields.get("cursor").is_none(), ..visit.frame("Mentions", "mentions") },
        phase: visit.ask(Ask::of("getMentionPhase")).await?,
        metrics: visit.ask(Ask::of("getMentionMetrics")).await?,
        may: visit.may(Act::MoveMentionPhase),
        next: next_page("/console/mentions", &visit.fields, &[], &next),
        list,
    };
    Ok(page(StatusCode::OK, &shown))
}
