//! The ledger: searched, and one entry with its place in the chain.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value as Json;

use super::super::door::Visit;
use super::super::facts::{Facts, grouped};
use super::super::form::{encoded, query};
use super::super::frame::{Frame, page, see_other};
use super::super::kept::{self, Link};
use super::super::tree::Tree;
use super::next_page;
use crate::http::{Ask, Problem};
use crate::wire::Kind as EventKind;

const FILTERS: [&str; 7] = ["type", "handoffId", "correlationId", "decision", "code", "from", "to"];

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    json: Json,
    filters: Vec<(&'static str, String)>,
    head: u64,
    next: Option<String>,
    is_first: bool,
}

impl AuditPage {
    fn facts(&self) -> Facts<'_> {
        self.frame.facts(&self.json)
    }

    fn given(&self, name: &str) -> &str {
        self.filters.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    fn grouped(&self, number: &u64) -> String {
        grouped(*number)
    }

    fn kinds(&self) -> Vec<&'static str> {
        EventKind::ALL.iter().map(|kind| kind.as_str()).collect()
    }
}

pub(in super::super) async fn audit(visit: &Visit) -> Result<Response, Problem> {
    if let Some(sequence) = visit.fields.get("sequence") {
        return Ok(see_other(&format!("/console/audit/{}", encoded(sequence))));
    }
    let value = |name: &'static str| {
        let text = visit.fields.text(name);
        match (name, text.len()) {
            ("from" | "to", 16) => format!("{text}:00Z"),
            ("from" | "to", 19) => format!("{text}Z"),
            _ => text.to_owned(),
        }
    };
    let filters: Vec<(&'static str, String)> = FILTERS.iter().map(|name| (*name, value(name))).collect();
    let cursor = ("cursor", visit.fields.text("cursor").to_owned());
    let given = filters.iter().chain([&cursor]).filter(|(_, value)| !value.is_empty());
    let asked = query(given.map(|(name, value)| (*name, value.as_str())));
    let json = visit.ask(Ask::of("listEntries").query(asked)).await?;
    let next = Facts::of(&json, visit.now).text("next");
    let is_first = cursor.1.is_empty();
    let listed = AuditPage {
        frame: Frame { is_live: is_first, ..visit.frame("Audit", "audit") },
        head: visit.console.app.gateway.engine().head(),
        next: next_page("/console/audit", &visit.fields, &FILTERS, &next),
        json,
        filters,
        is_first,
    };
    Ok(page(StatusCode::OK, &listed))
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
