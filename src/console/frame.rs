//! What every page has around it, and pages as answers.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::assets::{ASSETS, Assets};
use super::facts::{Facts, When};
use super::prose::Prose;
use super::shown::{Markup, Shown};
use super::told::told;
use crate::callers::Session;
use crate::http::Problem;
use crate::limits;
use crate::timestamp::Timestamp;
use serde_json::Value as Json;

/// Sections of the console: where they are, and their name.
pub(super) const SECTIONS: [(&str, &str); 10] = [
    ("", "Overview"),
    ("handoffs", "Handoffs"),
    ("approvals", "Approvals"),
    ("authorizations", "Authorizations"),
    ("routes", "Routes"),
    ("freezes", "Freezes"),
    ("mentions", "Mentions"),
    ("audit", "Audit"),
    ("policies", "Policies"),
    ("codes", "Codes"),
];

/// What stands around a page.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) title: String,
    /// The section it belongs to; none of them for what comes before a session.
    pub(super) section: &'static str,
    pub(super) who: Option<Who>,
    pub(super) flash: Option<String>,
    /// How many handoffs wait for a person, and what is frozen.
    pub(super) waiting: usize,
    pub(super) frozen: Vec<String>,
    /// Does a changed policy set wait for a person?
    pub(super) is_set_waiting: bool,
    /// Does the page keep itself up to date, where there is a script?
    pub(super) is_live: bool,
    pub(super) now: Timestamp,
    pub(super) assets: &'static Assets,
}

/// Who looks at it.
#[derive(Debug)]
pub(super) struct Who {
    pub(super) name: String,
    pub(super) role: &'static str,
    pub(super) form_word: String,
}

impl Who {
    pub(super) fn of(session: &Session) -> Self {
        Self {
            name: session.caller.name().to_string(),
            role: session.caller.role().as_str(),
            form_word: session.form_word.clone(),
        }
    }
}

impl Frame {
    /// For somebody who is not known yet.
    pub(super) fn outside(title: &str, now: Timestamp) -> Self {
        Self {
            title: title.to_owned(),
            section: "-",
            who: None,
            flash: None,
            waiting: 0,
            frozen: Vec::new(),
            is_set_waiting: false,
            is_live: false,
            now,
            assets: &ASSETS,
        }
    }

    pub(super) fn sections(&self) -> &'static [(&'static str, &'static str)] {
        &SECTIONS
    }

    /// The word that a form must carry; empty for who may not act anyway.
    pub(super) fn form_word(&self) -> &str {
        self.who.as_ref().map_or("", |who| &who.form_word)
    }

    pub(super) fn facts<'j>(&self, json: &'j Json) -> Facts<'j> {
        Facts::of(json, self.now)
    }

    /// A value as a page shows it.
    pub(super) fn shown(&self, text: &str) -> Markup<Shown> {
        Shown::of(text)
    }

    /// What is frozen, in words: all of it if it is little.
    pub(super) fn frozen_words(&self) -> Markup<Prose> {
        Prose::of(match self.frozen.as_slice() {
            few @ ([_] | [_, _]) => few.join(", "),
            [first, second, rest @ ..] => format!("{first}, {second} and {} more", rest.len()),
            [] => String::new(),
        })
    }

    /// When the page was made.
    pub(super) fn made(&self) -> Markup<When> {
        When::of(&self.exact_now(), self.now)
    }

    /// How often an open page hears that its gateway is there.
    pub(super) fn beat_s(&self) -> u64 {
        limits::STREAM_HEARTBEAT_S
    }

    pub(super) fn exact_now(&self) -> String {
        self.now.to_milliseconds()
    }
}

/// A page as an answer.
pub(super) fn page(status: StatusCode, page: &impl Template) -> Response {
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    match page.render() {
        Ok(text) => (status, [(header::CONTENT_TYPE, html)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be made");
            (StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made").into_response()
        }
    }
}

/// What went wrong, as a page.
#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    problem: Json,
}

pub(super) fn problem_page(mut frame: Frame, problem: &Problem) -> Response {
    frame.title = problem.kind().title().to_owned();
    let mut response = page(problem.kind().status(), &ProblemPage { frame, problem: told(problem) });
    if let Some((name, value)) = problem.header() {
        response.headers_mut().insert(name, value.clone());
    }
    response
}

/// Elsewhere, by GET.
pub(super) fn see_other(location: &str) -> Response {
    match HeaderValue::from_str(location) {
        Ok(value) => (StatusCode::SEE_OTHER, [(header::LOCATION, value)]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}
