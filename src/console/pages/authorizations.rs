//! Grants: what delegated work may do without asking a person again.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::form::Fields;
use super::super::frame::{Frame, page};
use super::next_page;
use crate::authorization::GrantStanding;
use crate::callers::Act;
use crate::http::{Ask, Problem};

#[derive(Template)]
#[template(path = "authorizations.html")]
struct AuthorizationsPage {
    frame: Frame,
    json: Json,
    state: String,
    may: bool,
    next: Option<String>,
    routes: Vec<String>,
    /// Terms of a grant that somebody thought better of.
    terms: Fields,
}

impl AuthorizationsPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
    }

    /// What was filled in before.
    fn given(&self, name: &str) -> &str {
        self.terms.text(name)
    }

    fn has_mode(&self, mode: &str) -> bool {
        self.terms.words("modes").contains(&mode)
    }

    fn holds_for(&self, minutes: &str) -> bool {
        self.terms.get("minutes").unwrap_or("60") == minutes
    }

    fn spans(&self) -> [(&'static str, &'static str); 5] {
        [("15", "15 minutes"), ("60", "1 hour"), ("480", "8 hours"), ("1440", "1 day"), ("10080", "7 days")]
    }

    fn states(&self) -> [&'static str; 4] {
        GrantStanding::ALL.map(GrantStanding::as_str)
    }
}

pub(in super::super) async fn authorizations(visit: &Visit) -> Result<Response, Problem> {
    let query = visit.fields.query_of(&["state", "cursor"]);
    let json = visit.ask(Ask::of("listAuthorizations").query(query)).await?;
    let next = Facts::of(&json, visit.now).text("next");
    let routes = visit.console.app.rules.current().in_force.policies.routes().keys().cloned().collect();
    let listed = AuthorizationsPage {
        frame: Frame {
            is_live: visit.fields.get("cursor").is_none(),
            ..visit.frame("Authorizations", "authorizations")
        },
        state: visit.fields.text("state").to_owned(),
        may: visit.may(Act::Authorize),
        next: next_page("/console/authorizations", &visit.fields, &["state"], &next),
        routes,
        terms: visit.fields.clone(),
        json,
    };
    Ok(page(StatusCode::OK, &listed))
}
