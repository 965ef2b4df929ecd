//! Routes: where each stands between dev and live, what it rests on, and what is missing.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::frame::{Frame, page};
use super::super::tree::Tree;
use super::is_frozen;
use crate::callers::Act;
use crate::http::{Ask, Problem};

#[derive(Template)]
#[template(path = "routes.html")]
struct RoutesPage {
    frame: Frame,
    json: Json,
    freezes: Json,
}

impl RoutesPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
    }

    fn is_frozen(&self, route: &Facts<'_>) -> bool {
        is_frozen(&self.frame.facts(&self.freezes), &route.text("routeKey"))
    }
}

pub(in super::super) async fn routes(visit: &Visit) -> Result<Response, Problem> {
    let json = visit.ask(Ask::of("listRoutes")).await?;
    let freezes = visit.ask(Ask::of("listFreezes")).await?;
    let frame = Frame { is_live: true, ..visit.frame("Routes", "routes") };
    Ok(page(StatusCode::OK, &RoutesPage { frame, json, freezes }))
}

#[derive(Template)]
#[template(path = "route.html")]
struct RoutePage {
    frame: Frame,
    json: Json,
    freezes: Json,
    definition: Tree,
    may: bool,
    may_freeze: bool,
}

impl RoutePage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
    }

    /// Is exactly this route frozen?
    fn is_frozen(&self) -> bool {
        let key = self.facts().text("routeKey");
        self.frame.facts(&self.freezes).each("frozen").iter().any(|freeze| freeze.is("routeKey", &key))
    }
}

pub(in super::super) async fn route(visit: &Visit, key: &str) -> Result<Response, Problem> {
    let json = visit.ask(Ask::of("getRoute").at("key", key)).await?;
    let shown = RoutePage {
        frame: Frame { is_live: true, ..visit.frame(key, "routes") },
        freezes: visit.ask(Ask::of("listFreezes")).await?,
        definition: Tree::of(Facts::of(&json, visit.now).at("definition").json()),
        may: visit.may(Act::Promote),
        may_freeze: visit.may(Act::Freeze),
        json,
    };
    Ok(page(StatusCode::OK, &shown))
}
