//! What waits for a person, and exactly what a yes would send out.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::frame::{Frame, page};
use super::super::tree::Tree;
use super::next_page;
use crate::callers::Act;
use crate::http::{Ask, Problem};

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    frame: Frame,
    json: Json,
    may: bool,
    next: Option<String>,
}

impl ApprovalsPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
    }
}

pub(in super::super) async fn approvals(visit: &Visit) -> Result<Response, Problem> {
    let mut query = "limit=20".to_owned();
    if let Some(cursor) = visit.fields.get("cursor") {
        query.push_str(&format!("&cursor={}", super::super::form::encoded(cursor)));
    }
    let json = visit.ask(Ask::of("listApprovals").query(query)).await?;
    let next = Facts::of(&json, visit.now).text("next");
    let listed = ApprovalsPage {
        frame: Frame { is_live: true, ..visit.frame("Approvals", "approvals") },
        may: visit.may(Act::Approve),
        next: next_page("/console/approvals", &visit.fields, &[], &next),
        json,
    };
    Ok(page(StatusCode::OK, &listed))
}

#[derive(Template)]
#[template(path = "approval.html")]
struct ApprovalPage {
    frame: Frame,
    json: Json,
    payload: Option<Tree>,
    task_spec: Tree,
    may: bool,
}

impl ApprovalPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
    }
}

pub(in super::super) async fn approval(visit: &Visit, id: &str) -> Result<Response, Problem> {
    let json = visit.ask(Ask::of("getApproval").at("id", id)).await?;
    let facts = Facts::of(&json, visit.now);
    let payload = facts
        .has("wouldDispatch")
        .then(|| Tree::within(facts.at("wouldDispatch").json(), &[], visit.extent()));
    let shown = ApprovalPage {
        frame: visit.frame(id, "approvals"),
        task_spec: Tree::within(facts.at("taskSpec").json(), &[], visit.extent()),
        payload,
        may: visit.may(Act::Approve),
        json,
    };
    Ok(page(StatusCode::OK, &shown))
}
