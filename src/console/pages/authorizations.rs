//! Grants: what delegated work may do without asking a person again.

use askama::Template;
use axum::response::Response;

use super::super::acts::marked_grant;
use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::filters::Filters;
use super::super::form::Fields;
use super::super::frame::{Frame, page};
use super::super::listing::Listing;
use crate::authorization::GrantStanding;
use crate::callers::Act;
use crate::http::Problem;

#[derive(Template)]
#[template(path = "authorizations.html")]
struct AuthorizationsPage {
    frame: Frame,
    list: Listing,
    may: bool,
    routes: Vec<String>,
    /// Terms of a grant that somebody thought better of, or has not finished.
    terms: Fields,
    form: Filters,
}

impl AuthorizationsPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.list.json)
    }

    /// What was filled in before.
    fn given(&self, name: &str) -> &str {
        self.terms.text(name)
    }

    fn has_mode(&self, mode: &str) -> bool {
        self.terms.words("modes").contains(&mode)
    }

    fn holds_for(&self, minutes: &str) -> bool {
        self.terms.get("minutes").unwrap_or("60") == minutes
    }

    fn spans(&self) -> [(&'static str, &'static str); 5] {
        [("15", "15 minutes"), ("60", "1 hour"), ("480", "8 hours"), ("1440", "1 day"), ("10080", "7 days")]
    }

    fn states(&self) -> [&'static str; 4] {
        GrantStanding::ALL.map(GrantStanding::as_str)
    }
}

pub(in super::super) async fn authorizations(visit: &Visit) -> Result<Response, Problem> {
    let filters = Filters::read("listAuthorizations", &["state"], &visit.fields);
    let list = Listing::of(visit, "listAuthorizations", "/console/authorizations", filters, "").await?;
    let routes = visit.console.app.rules.current().in_force.policies.routes().keys().cloned().collect();
    let shown = AuthorizationsPage {
        frame: Frame { is_live: list.is_live(), ..visit.frame("Authorizations", "authorizations") },
        may: visit.may(Act::Authorize),
        routes,
        terms: visit.fields.clone(),
        form: match visit.fields.get("made") {
            Some(_) => marked_grant(&visit.fields, visit.now),
            None => Filters::read("", &[], &visit.fields),
        },
        list,
    };
    Ok(page(shown.list.status(), &shown))
}
