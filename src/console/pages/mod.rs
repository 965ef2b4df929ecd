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

use super::facts::Facts;
use super::form::Fields;

/// Is this route frozen, by itself or with everything? A mode that is frozen is no matter of one route.
fn is_frozen(freezes: &Facts<'_>, key: &str) -> bool {
    let holds = |freeze: &Facts<'_>| freeze.is("scope", "all") || freeze.is("routeKey", key);
    freezes.each("frozen").iter().any(holds)
}

/// The way to the next page of a list, with the same filters; nothing on the last.
fn next_page(base: &str, fields: &Fields, filters: &[&str], next: &str) -> Option<String> {
    if next.is_empty() {
        return None;
    }
    let mut query = fields.query_of(filters);
    if !query.is_empty() {
        query.push('&');
    }
    Some(format!("{base}?{query}cursor={}", super::form::encoded(next)))
}
