//! What people do, each in two steps: a page that repeats what will happen, and the act itself.
//!
//! A plan is what the page shows and what the API is asked for, made together by one function, so that nobody
//! confirms one thing and does another. The first step changes nothing; the second is a form with the session's word
//! in it, and goes to the API in the person's name.

mod approvals;
mod freezes;
mod grants;
mod mentions;
mod policies;
mod routes;

pub(super) use approvals::hindrance as hindrance_to_yes;
pub(super) use freezes::{SCOPES, marked as marked_freeze};
pub(super) use grants::marked as marked_grant;

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::door::Visit;
use super::facts::{Facts, When};
use super::frame::{Frame, page, see_other};
use super::prose::Prose;
use super::shown::Markup;
use super::told::told;
use super::tree::Tree;
use crate::callers::Act;
use crate::http::{Ask, Kind, Problem};
use crate::limits;
use crate::timestamp::Timestamp;

/// What somebody is about to do.
struct Plan {
    act: Act,
    title: String,
    section: &'static str,
    /// What it is about.
    facts: Vec<(&'static str, String)>,
    /// Why it cannot be done as things stand. The page says so instead of asking; whoever does it all the same is
    /// answered by the API.
    hindrance: Option<Problem>,
    /// What will happen, a sentence each.
    happens: Vec<String>,
    /// What a dry run gives, if there is one.
    steps: Vec<Step>,
    /// Documents to read first.
    documents: Vec<(&'static str, Tree)>,
    inputs: Vec<Input>,
    /// What the form carries along.
    carried: Vec<(&'static str, String)>,
    button: &'static str,
    is_dangerous: bool,
    back: String,
    ask: Ask,
    /// Where to go when it is done, and what to say then.
    next: String,
    told: fn(&Facts<'_>) -> String,
}

/// A step of a rollback.
struct Step {
    what: String,
    outcome: String,
    why: String,
}

/// A field to fill in.
struct Input {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    value: String,
    is_needed: bool,
    is_long: bool,
}

impl Input {
    /// Why; it is kept in the ledger with the person's name.
    fn reason(visit: &Visit, is_needed: bool) -> Self {
        Self {
            name: "reason",
            label: "Reason",
            hint: "It is kept in the ledger with your name.",
            value: visit.fields.text("reason").to_owned(),
            is_needed,
            is_long: true,
        }
    }

    fn line(visit: &Visit, name: &'static str, label: &'static str, hint: &'static str) -> Self {
        let value = visit.fields.text(name).to_owned();
        Self { name, label, hint, value, is_needed: false, is_long: false }
    }
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    frame: Frame,
    name: String,
    plan: Plan,
    hindrance: Option<Json>,
    problem: Option<Json>,
}

impl ConfirmPage {
    fn reason_chars_max(&self) -> usize {
        limits::REASON_CHARS_MAX
    }

    fn facts<'j>(&self, json: &'j Json) -> Facts<'j> {
        self.frame.facts(json)
    }

    /// A fact that is a point in time is told like any other.
    fn when(&self, text: &str) -> Option<Markup<When>> {
        Timestamp::parse(text).map(|_| When::of(text, self.frame.now))
    }

    /// Does it end so soon that it is counted down? Nothing else is: what has just begun is not over.
    fn is_near(&self, label: &str, text: &str) -> bool {
        let left = Timestamp::parse(text).map(|at| at.seconds_since(self.frame.now));
        label == "Ends" && left.is_some_and(|left| (0..limits::CONSOLE_COUNTDOWN_S).contains(&left))
    }

    fn prose(&self, text: &str) -> Markup<Prose> {
        Prose::of(text)
    }

    fn said(&self, text: &str) -> Markup<Prose> {
        Prose::sentence(text)
    }
}

async fn plan(visit: &Visit, name: &str) -> Result<Plan, Problem> {
    let plan = match name {
        "approve" => approvals::plan(visit, approvals::Word::Approve).await?,
        "reject" => approvals::plan(visit, approvals::Word::Reject).await?,
        "approve-policies" => policies::plan(visit, policies::Word::Approve).await?,
        "reject-policies" => policies::plan(visit, policies::Word::Reject).await?,
        "grant" => grants::make(visit)?,
        "revoke" => grants::revoke(visit).await?,
        "gate" => routes::gate(visit).await?,
        "rollback" => routes::rollback(visit).await?,
        "block" => routes::block(visit).await?,
        "unblock" => routes::unblock(visit).await?,
        "freeze" => freezes::freeze(visit).await?,
        "unfreeze" => freezes::unfreeze(visit).await?,
        "phase" => mentions::phase(visit).await?,
        "false-positive" => mentions::mark(visit)?,
        _ => return Err(Problem::new(Kind::NotFound, "there is no such act")),
    };
    Ok(plan)
}

/// What the role must be allowed for it; asked before anything is looked up.
fn right(name: &str) -> Option<Act> {
    Some(match name {
        "approve" | "reject" => Act::Approve,
        "approve-policies" | "reject-policies" => Act::ApprovePolicies,
        "grant" | "revoke" => Act::Authorize,
        "gate" | "rollback" | "block" | "unblock" => Act::Promote,
        "freeze" => Act::Freeze,
        "unfreeze" => Act::Unfreeze,
        "phase" | "false-positive" => Act::MoveMentionPhase,
        _ => return None,
    })
}

async fn planned(visit: &Visit, name: &str) -> Result<Plan, Problem> {
    if let Some(act) = right(name).filter(|act| !visit.may(*act)) {
        let role = visit.session.caller.role().as_str();
        tracing::debug!(?act, role, "not for this role");
        return Err(Problem::new(Kind::Forbidden, format!("a token of role {role} may not do this"))
            .hint("acting is for operators, each with a token in their own name"));
    }
    let plan = plan(visit, name).await?;
    debug_assert_eq!(right(name), Some(plan.act));
    Ok(plan)
}

/// `GET /console/act/{name}`: what will happen. A form that does not say enough is given back as it was filled in.
pub(super) async fn confirm(visit: &Visit, name: &str) -> Result<Response, Problem> {
    let unfinished = match name {
        "freeze" if visit.may(Act::Freeze) => freezes::unfinished(visit),
        "grant" if visit.may(Act::Authorize) => grants::unfinished(&visit.fields, visit.now),
        _ => None,
    };
    if let Some(form) = unfinished {
        return Ok(see_other(&form));
    }
    let plan = planned(visit, name).await?;
    Ok(show(visit, name, plan, None))
}

/// `POST /console/act/{name}`: lets it happen.
pub(super) async fn perform(visit: &Visit, name: &str) -> Result<Response, Problem> {
    let mut plan = planned(visit, name).await?;
    if plan.inputs.iter().any(|input| input.is_needed && input.value.is_empty()) {
        let problem =
            Problem::new(Kind::ActInvalid, "a reason is needed: it is kept in the ledger with your name");
        return Ok(show(visit, name, plan, Some(&problem)));
    }
    let ask = std::mem::replace(&mut plan.ask, Ask::of(""));
    match visit.ask(ask).await {
        Ok(done) => {
            visit.console.flashes.put(&visit.session, (plan.told)(&Facts::of(&done, visit.now)));
            Ok(see_other(&plan.next))
        }
        Err(problem) => Ok(show(visit, name, plan, Some(&problem))),
    }
}

fn show(visit: &Visit, name: &str, plan: Plan, problem: Option<&Problem>) -> Response {
    let hindrance = plan.hindrance.as_ref();
    let status = problem.or(hindrance).map_or(StatusCode::OK, |problem| problem.kind().status());
    let frame = visit.frame(plan.title.clone(), plan.section);
    // What stands in the way is said once.
    let problem = problem.filter(|_| hindrance.is_none());
    let (hindrance, problem) = (hindrance.map(told), problem.map(told));
    page(status, &ConfirmPage { frame, name: name.to_owned(), plan, hindrance, problem })
}

/// A field that the address or the form must have.
fn needed<'v>(visit: &'v Visit, name: &str) -> Result<&'v str, Problem> {
    let missing =
        || Problem::new(Kind::RequestInvalid, format!("the field `{name}` is missing")).at(name.to_owned());
    visit.fields.get(name).ok_or_else(missing)
}
