//! Handoffs, filtered by everything that the API filters by.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::form::{encoded, query};
use super::super::frame::{Frame, page, see_other};
use super::next_page;
use crate::http::{Ask, Problem};
use crate::views::Status;

/// What the form and the API call the filters.
const FILTERS: [&str; 8] = ["status", "decision", "agent", "route", "code", "correlationId", "from", "to"];

#[derive(Template)]
#[template(path = "handoffs.html")]
struct HandoffsPage {
    frame: Frame,
    json: Json,
    filters: Vec<(&'static str, String)>,
    routes: Vec<String>,
    export: String,
    next: Option<String>,
    is_first: bool,
}

impl HandoffsPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
    }

    fn given(&self, name: &str) -> &str {
        self.filters.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    fn is_filtered(&self) -> bool {
        self.filters.iter().any(|(_, value)| !value.is_empty())
    }

    fn statuses(&self) -> Vec<&'static str> {
        Status::ALL.iter().map(|status| status.as_str()).collect()
    }
}

/// The filters as the API takes them: a time from a form has no zone, and is UTC.
pub(in super::super) fn filters(visit: &Visit) -> Vec<(&'static str, String)> {
    let value = |name: &'static str| {
        let text = visit.fields.text(name);
        match (name, text.len()) {
            ("from" | "to", 16) => format!("{text}:00Z"),
            ("from" | "to", 19) => format!("{text}Z"),
            _ => text.to_owned(),
        }
    };
    FILTERS.iter().map(|name| (*name, value(name))).collect()
}

pub(in super::super) async fn handoffs(visit: &Visit) -> Result<Response, Problem> {
    if let Some(id) = visit.fields.get("id") {
        return Ok(see_other(&format!("/console/handoffs/{}", encoded(id))));
    }
    let filters = filters(visit);
    let given = filters.iter().filter(|(_, value)| !value.is_empty());
    let mut asked = query(given.map(|(name, value)| (*name, value.as_str())));
    let export = asked.clone();
    if let Some(cursor) = visit.fields.get("cursor") {
        let separator = if asked.is_empty() { "" } else { "&" };
        asked.push_str(&format!("{separator}cursor={}", encoded(cursor)));
    }
    let json = visit.ask(Ask::of("listHandoffs").query(asked)).await?;
    let next = Facts::of(&json, visit.now).text("next");
    let is_first = visit.fields.get("cursor").is_none();
    let routes = visit.console.app.rules.current().in_force.policies.routes().keys().cloned().collect();
    let listed = HandoffsPage {
        // Only the first page changes under one's eyes.
        frame: Frame { is_live: is_first, ..visit.frame("Handoffs", "handoffs") },
        next: next_page("/console/handoffs", &visit.fields, &FILTERS, &next),
        json,
        filters,
        routes,
        export,
        is_first,
    };
    Ok(page(StatusCode::OK, &listed))
}
