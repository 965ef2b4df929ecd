//! The ledger: searched, and one entry with its place in the chain.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::door::Visit;
use super::super::facts::{Facts, grouped};
use super::super::filters::{DECISIONS, Filters};
use super::super::form::encoded;
use super::super::frame::{Frame, page, see_other};
use super::super::kept::{self, Link};
use super::super::listing::Listing;
use super::super::tree::Tree;
use super::is_there;
use crate::http::{Ask, Problem};
use crate::wire::Kind as EventKind;

/// What the form and the API call the filters; the last opens one entry.
const FILTERS: [&str; 10] =
    ["type", "handoffId", "correlationId", "agent", "route", "decision", "code", "from", "to", "sequence"];

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    list: Listing,
    head: u64,
}

impl AuditPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.list.json)
    }

    fn grouped(&self, number: &u64) -> String {
        grouped(*number)
    }

    fn decisions(&self) -> [&'static str; 4] {
        DECISIONS
    }

    fn kinds(&self) -> Vec<&'static str> {
        EventKind::ALL.iter().map(|kind| kind.as_str()).collect()
    }
}

pub(in super::super) async fn audit(visit: &Visit) -> Result<Response, Problem> {
    let head = visit.console.app.gateway.engine().head();
    let mut filters = Filters::read("listEntries", &FILTERS, &visit.fields);
    if let Some(sequence) = visit.fields.get("sequence") {
        if is_there(visit.ask(Ask::of("getEntry").at("sequence", sequence)).await)? {
            return Ok(see_other(&format!("/console/audit/{}", encoded(sequence))));
        }
        filters.refuse("sequence", &format!("there is no such entry: they go from 1 to {head}"));
    }
    // The API takes any type, and finds nothing; here it is chosen from a list.
    if visit.fields.get("type").is_some_and(|kind| EventKind::ALL.iter().all(|known| known.as_str() != kind))
    {
        filters.refuse("type", "there is no such type");
    }
    let list = Listing::of(visit, "listEntries", "/console/audit", filters, "").await?;
    let frame = Frame { is_live: list.is_live(), ..visit.frame("Audit", "audit") };
    Ok(page(list.status(), &AuditPage { frame, list, head }))
}

#[derive(Template)]
#[template(path = "entry.html")]
struct EntryPage {
    frame: Frame,
    json: Json,
    wire: Tree,
    link: Option<Link>,
    handoff_id: Option<String>,
    sequence: u64,
    head: u64,
}

impl EntryPage {
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }

    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
    }
}

pub(in super::super) async fn entry(visit: &Visit, sequence: &str) -> Result<Response, Problem> {
    let app = &visit.console.app;
    let json = visit.ask(Ask::of("getEntry").at("sequence", sequence)).await?;
    let number = Facts::of(&json, visit.now).number("hcs/sequence_number");
    let row = app.ask(move |reader| reader.entry(number)).await?;
    let shown = EntryPage {
        frame: visit.frame(format!("Entry {number}"), "audit"),
        wire: Tree::of(Facts::of(&json, visit.now).at("wire").json()),
        link: kept::links(app, vec![number]).await?.pop(),
        handoff_id: row.and_then(|row| row.handoff_id),
        sequence: number,
        head: app.gateway.engine().head(),
        json,
    };
    Ok(page(StatusCode::OK, &shown))
}
