//! A problem as a page tells it: the API's words, but for hints that name a path of the API.
//!
//! Whoever reads a page has its sections and no client at hand.

use serde_json::Value as Json;

use crate::http::{Kind, Problem};

pub(super) fn told(problem: &Problem) -> Json {
    let mut json = problem.to_json();
    let said = json.get("hint").and_then(Json::as_str).unwrap_or_default();
    let is_for_programs = ["GET /", "POST /", "/readyz", "`reasons`"].iter().any(|part| said.contains(part));
    if let (true, Some(members)) = (is_for_programs, json.as_object_mut()) {
        match hint(problem.kind()) {
            Some(hint) => members.insert("hint".to_owned(), hint.into()),
            None => members.remove("hint"),
        };
    }
    json
}

/// What a person can do at the console about a problem of this kind.
fn hint(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::ApprovalNotWaiting => {
            "Approvals lists what waits; the page of the handoff says what became of it"
        }
        Kind::ApprovalHeld => {
            "what stands in the way is listed here; approve it when that is gone, or reject it"
        }
        Kind::AuthorizationUnknown => "Authorizations lists all grants",
        Kind::PolicyWaits => {
            "nothing is decided until an operator says yes to it on the page Policies, or the files are put back"
        }
        Kind::RulesDiffer => "ask another replica; the overview says which file differs",
        Kind::LedgerUnreadable => {
            "the overview says whether the ledger was changed; on the gateway's machine, run: handoffd audit verify"
        }
        Kind::ViewsBehind => {
            "decisions go on meanwhile; the overview says what is wrong, and when it is over"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_no_path_of_the_api() {
        let hint = |kind: Kind, hint: &str| {
            let told = told(&Problem::new(kind, "why").hint(hint));
            told.get("hint").and_then(Json::as_str).unwrap_or("none").to_owned()
        };
        assert_eq!(hint(Kind::ApprovalTwice, "ask another operator"), "ask another operator");
        let lists = hint(Kind::ApprovalNotWaiting, "GET /v1/approvals lists what waits");
        assert!(lists.starts_with("Approvals lists what waits"), "{lists}");
        assert_eq!(hint(Kind::RequestInvalid, "GET /openapi.json has its shape"), "none");
        for kind in Kind::ALL {
            let hint = hint(*kind, "see GET /v1/nothing");
            assert!(!hint.contains('/'), "{hint}");
        }
    }
}
