//! What waits for a person, and exactly what a yes would send out.

use std::collections::BTreeMap;

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::acts::hindrance_to_yes;
use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::filters::Filters;
use super::super::frame::{Frame, page};
use super::super::listing::Listing;
use super::super::prose::Prose;
use super::super::shown::Markup;
use super::super::tree::Tree;
use super::is_routed;
use crate::callers::Act;
use crate::http::{Ask, Kind, Problem};

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    frame: Frame,
    list: Listing,
    may: bool,
    /// Why the person who looks cannot say yes, for those that they cannot say yes to.
    hindrances: BTreeMap<String, Problem>,
}

impl ApprovalsPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.list.json)
    }

    /// Why the person who looks cannot say yes to it; nothing if they can.
    fn hindrance(&self, one: &Facts<'_>) -> Option<Markup<Prose>> {
        let problem = self.hindrances.get(&one.text("handoffId"))?;
        Some(Prose::sentence(problem.detail()))
    }
}

pub(in super::super) async fn approvals(visit: &Visit) -> Result<Response, Problem> {
    let filters = Filters::read("listApprovals", &[], &visit.fields);
    let list = Listing::of(visit, "listApprovals", "/console/approvals", filters, "limit=20").await?;
    let may = visit.may(Act::Approve);
    let rows = Facts::of(&list.json, visit.now).each("approvals");
    let ids = rows.iter().filter(|_| may).map(|one| one.text("handoffId"));
    let hindrances = ids.filter_map(|id| Some((id.clone(), hindrance_to_yes(visit, &id)?))).collect();
    let shown = ApprovalsPage {
        // What waits there ends by itself, on any page of it.
        frame: Frame { is_live: list.is_understood(), ..visit.frame("Approvals", "approvals") },
        may,
        hindrances,
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
    /// Why the person who looks cannot say yes to it.
    hindrance: Option<Problem>,
    /// Is its route in the table?
    is_routed: bool,
    payload: Option<Tree>,
    task_spec: Tree,
    may: bool,
}

impl ApprovalPage {
    /// Whoever has a part in it, or said yes to it, can still say no; nobody can when the time is over.
    fn may_say_no(&self) -> bool {
        let is_open = |problem: &Problem| matches!(problem.kind(), Kind::ApprovalOwn | Kind::ApprovalTwice);
        self.may && self.waits && self.hindrance.as_ref().is_none_or(is_open)
    }

    fn hindrance_words(&self) -> Option<Markup<Prose>> {
        self.hindrance.as_ref().map(|problem| Prose::sentence(problem.detail()))
    }

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
    let may = visit.may(Act::Approve);
    let shown = ApprovalPage {
        frame: Frame { is_live: true, ..visit.frame(id, "approvals") },
        task_spec: Tree::within(facts.at("taskSpec").json(), &[], visit.extent()),
        payload,
        may,
        waits,
        hindrance: if waits && may { hindrance_to_yes(visit, id) } else { None },
        is_routed: is_routed(visit, &facts.text("routeKey")),
        json,
    };
    Ok(page(StatusCode::OK, &shown))
}
