//! A list of the API as a page shows it: filtered, page by page, or not at all where it was not understood.

use axum::http::StatusCode;
use serde_json::Value as Json;

use super::door::Visit;
use super::facts::Facts;
use super::filters::Filters;
use super::form::encoded;
use super::paging::Paging;
use crate::http::{Ask, Kind, Problem, fault_of};

/// One page of a list.
#[derive(Debug)]
pub(super) struct Listing {
    /// The answer; null if it was not asked for, because the filters or the page were not understood.
    pub(super) json: Json,
    pub(super) filters: Filters,
    pub(super) paging: Paging,
    is_page_known: bool,
}

impl Listing {
    /// Asks for the page that the address names. `also` is asked for, too, and is nobody's to choose.
    pub(super) async fn of(
        visit: &Visit,
        operation: &'static str,
        base: &str,
        filters: Filters,
        also: &str,
    ) -> Result<Self, Problem> {
        let cursor = visit.fields.text("cursor");
        let mut is_page_known = cursor.is_empty() || fault_of(operation, "cursor", cursor).is_none();
        let mut json = Json::Null;
        if is_page_known && filters.are_right() {
            let cursor =
                if cursor.is_empty() { String::new() } else { format!("cursor={}", encoded(cursor)) };
            let parts = [filters.query(), also.to_owned(), cursor];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            match visit.ask(Ask::of(operation).query(parts.join("&"))).await {
                Ok(answer) => json = answer,
                // What a place in a list is, some lists say only when they are asked for it.
                Err(problem) if problem.kind() == Kind::QueryInvalid => is_page_known = false,
                Err(problem) => return Err(problem),
            }
        }
        let next = Facts::of(&json, visit.now).text("next");
        let paging = Paging::of(base, &filters.right(), &visit.fields, &next);
        Ok(Self { json, filters, paging, is_page_known })
    }

    pub(super) fn is_understood(&self) -> bool {
        self.is_page_known && self.filters.are_right()
    }

    pub(super) fn status(&self) -> StatusCode {
        if self.is_understood() { StatusCode::OK } else { StatusCode::BAD_REQUEST }
    }

    /// Only the first page changes under one's eyes.
    pub(super) fn is_live(&self) -> bool {
        self.is_understood() && self.paging.is_first()
    }
}
