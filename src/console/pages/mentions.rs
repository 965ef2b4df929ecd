//! The rollout of mention-triggered work: the phase, the numbers, and what was seen.

use askama::Template;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::filters::Filters;
use super::super::frame::{Frame, page};
use super::super::listing::Listing;
use crate::callers::Act;
use crate::http::{Ask, Problem};
use crate::mentions::Phase;

#[derive(Template)]
#[template(path = "mentions.html")]
struct MentionsPage {
    frame: Frame,
    phase: Json,
    metrics: Json,
    list: Listing,
    may: bool,
}

/// What is counted: its name in the answer, and in words.
const COUNTED: [(&str, &str); 6] = [
    ("candidates", "Candidates"),
    ("wouldAllow", "Would be allowed"),
    ("loopsStopped", "Loops stopped"),
    ("duplicatesStopped", "Duplicates stopped"),
    ("expired", "Messages that were too old"),
    ("falsePositives", "Marked as false positives"),
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
    let filters = Filters::read("listMentions", &["from", "to"], &visit.fields);
    let list = Listing::of(visit, "listMentions", "/console/mentions", filters, "").await?;
    let shown = MentionsPage {
        frame: Frame { is_live: list.is_live(), ..visit.frame("Mentions", "mentions") },
        phase: visit.ask(Ask::of("getMentionPhase")).await?,
        metrics: visit.ask(Ask::of("getMentionMetrics")).await?,
        may: visit.may(Act::MoveMentionPhase),
        list,
    };
    Ok(page(shown.list.status(), &shown))
}
