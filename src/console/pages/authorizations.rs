//! Grants: what delegated work may do without asking a person again.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::door::Visit;
use super::super::facts::Facts;
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
}

impl AuthorizationsPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
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
        json,
    };
    Ok(page(StatusCode::OK, &listed))
}
