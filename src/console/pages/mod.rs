//! The pages: each asks the API for what it shows, and hands that to its template.

mod approvals;
mod audit;
mod authorizations;
mod freezes;
mod handoff;
mod handoffs;
mod mentions;
mod overview;
mod reference;
mod routes;

pub(super) use approvals::{approval, approvals};
pub(super) use audit::{audit, entry};
pub(super) use authorizations::authorizations;
pub(super) use freezes::freezes;
pub(super) use handoff::handoff;
pub(super) use handoffs::{filters, handoffs};
pub(super) use mentions::mentions;
pub(super) use overview::overview;
pub(super) use reference::{codes, policies};
pub(super) use routes::{route, routes};

use serde_json::Value as Json;

use super::door::Visit;
use super::facts::Facts;
use crate::http::{Kind, Problem};

/// Is this route frozen, by itself or with everything? A mode that is frozen is no matter of one route.
fn is_frozen(freezes: &Facts<'_>, key: &str) -> bool {
    let holds = |freeze: &Facts<'_>| freeze.is("scope", "all") || freeze.is("routeKey", key);
    freezes.each("frozen").iter().any(holds)
}

/// Is there a page for this route? Handoffs name what they like.
fn is_routed(visit: &Visit, key: &str) -> bool {
    visit.console.app.rules.current().in_force.policies.route(key).is_some()
}

/// Was there something to show? Whatever else went wrong stays what it is.
fn is_there(answer: Result<Json, Problem>) -> Result<bool, Problem> {
    match answer {
        Ok(_) => Ok(true),
        Err(problem) if problem.kind() == Kind::NotFound => Ok(false),
        Err(problem) => Err(problem),
    }
}
