//! What waits for a person, and exactly what a yes would send out.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::acts::said_yes;
use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::filters::Filters;
use super::super::frame::{Frame, page};
use super::super::listing::Listing;
use super::super::tree::Tree;
use crate::callers::Act;
use crate::http::{Ask, Kind, Problem};

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

    fn has_said(&self, one: &Facts<'_>) -> bool {
        self.frame.who.as_ref().is_some_and(|who| said_yes(one, &who.name))
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
    /// Does it still wait? If not, `json` is the handoff as it stands.
    waits: bool,
    /// Did the person who looks say yes to it already?
    has_said: bool,
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
    let (json, waits) = match visit.ask(Ask::of("getApproval").at("id", id)).await {
        Ok(approval) => (approval, true),
        // Whoever left the page open, or kept its address, is told what became of it.
        Err(problem) if problem.kind() == Kind::NotFound => {
            (visit.ask(Ask::of("getHandoff").at("id", id)).await.map_err(|_| problem)?, false)
        }
        Err(problem) => return Err(problem),
    };
    let facts = Facts::of(&json, visit.now);
    let payload = facts
        .has("wouldDispatch")
        .then(|| Tree::within(facts.at("wouldDispatch").json(), &[], visit.extent()));
    let shown = ApprovalPage {
        frame: Frame { is_live: true, ..visit.frame(id, "approvals") },
        task_spec: Tree::within(facts.at("taskSpec").json(), &[], visit.extent()),
        payload,
        may: visit.may(Act::Approve),
        waits,
        has_said: said_yes(&facts, visit.session.caller.name().as_str()),
        json,
    };
    Ok(page(StatusCode::OK, &shown))
}
