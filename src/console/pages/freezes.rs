//! The kill switch: what is frozen, and the way to freeze and to lift.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::acts::{SCOPES, marked_freeze};
use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::filters::Filters;
use super::super::form::query;
use super::super::frame::{Frame, page};
use crate::callers::Act;
use crate::http::{Ask, Problem};

#[derive(Template)]
#[template(path = "freezes.html")]
struct FreezesPage {
    frame: Frame,
    json: Json,
    routes: Vec<String>,
    /// A freeze that somebody began to ask for.
    form: Filters,
    may: bool,
    may_lift: bool,
}

impl FreezesPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
    }

    fn scopes(&self) -> [(&'static str, &'static str); 3] {
        SCOPES
    }

    /// The freeze's scope as a query.
    fn scope(&self, freeze: &Facts<'_>) -> String {
        let (scope, mode, key) = (freeze.text("scope"), freeze.text("mode"), freeze.text("routeKey"));
        let given = [("scope", scope.as_str()), ("mode", mode.as_str()), ("routeKey", key.as_str())];
        query(given.into_iter().filter(|(_, value)| !value.is_empty()))
    }
}

pub(in super::super) async fn freezes(visit: &Visit) -> Result<Response, Problem> {
    let json = visit.ask(Ask::of("listFreezes")).await?;
    let routes = visit.console.app.rules.current().in_force.policies.routes().keys().cloned().collect();
    let shown = FreezesPage {
        frame: Frame { is_live: true, ..visit.frame("Freezes", "freezes") },
        routes,
        form: marked_freeze(&visit.fields, &visit.console.app),
        may: visit.may(Act::Freeze),
        may_lift: visit.may(Act::Unfreeze),
        json,
    };
    Ok(page(StatusCode::OK, &shown))
}
