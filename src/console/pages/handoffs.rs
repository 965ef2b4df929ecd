//! Handoffs, filtered by everything that the API filters by.

use askama::Template;
use axum::response::Response;

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::filters::{DECISIONS, Filters};
use super::super::form::encoded;
use super::super::frame::{Frame, page, see_other};
use super::super::listing::Listing;
use super::is_there;
use crate::http::{Ask, Problem};
use crate::views::Status;

/// What the form and the API call the filters; the last opens one handoff.
const FILTERS: [&str; 9] =
    ["status", "decision", "agent", "route", "code", "correlationId", "from", "to", "id"];

#[derive(Template)]
#[template(path = "handoffs.html")]
struct HandoffsPage {
    frame: Frame,
    list: Listing,
    routes: Vec<String>,
}

impl HandoffsPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.list.json)
    }

    fn decisions(&self) -> [&'static str; 4] {
        DECISIONS
    }

    fn statuses(&self) -> Vec<&'static str> {
        Status::ALL.iter().map(|status| status.as_str()).collect()
    }
}

pub(in super::super) fn filters(visit: &Visit) -> Filters {
    Filters::read("listHandoffs", &FILTERS, &visit.fields)
}

pub(in super::super) async fn handoffs(visit: &Visit) -> Result<Response, Problem> {
    let mut filters = filters(visit);
    if let Some(id) = visit.fields.get("id") {
        if is_there(visit.ask(Ask::of("getHandoff").at("id", id)).await)? {
            return Ok(see_other(&format!("/console/handoffs/{}", encoded(id))));
        }
        filters.refuse("id", "there is no such handoff");
    }
    let list = Listing::of(visit, "listHandoffs", "/console/handoffs", filters, "").await?;
    let routes = visit.console.app.rules.current().in_force.policies.routes().keys().cloned().collect();
    let frame = Frame { is_live: list.is_live(), ..visit.frame("Handoffs", "handoffs") };
    Ok(page(list.status(), &HandoffsPage { frame, list, routes }))
}
