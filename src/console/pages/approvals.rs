//! What waits for a person, and exactly what a yes would send out.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::filters::Filters;
use super::super::frame::{Frame, page};
use super::super::listing::Listing;
use super::super::tree::Tree;
use crate::callers::Act;
use crate::http::{Ask, Problem};

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    frame: Frame,
    list: Listing,
    may: bool,
}

impl ApprovalsPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.list.json)
    }
}

pub(in super::super) async fn approvals(visit: &Visit) -> Result<Response, Problem> {
    let filters = Filters::read("listApprovals", &[], &visit.fields);
    let list = Listing::of(visit, "listApprovals", "/console/approvals", filters, "limit=20").await?;
    let shown = ApprovalsPage {
        // What waits there ends by itself, on any page of it.
        frame: Frame { is_live: list.is_understood(), ..visit.frame("Approvals", "approvals") },
        may: visit.may(Act::Approve),
        list,
    };
    Ok(page(shown.list.status(), &shown))
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
