//! Files to take along: handoffs as a table or as JSON lines, the whole ledger, and a checkpoint of it.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value as Json;
use tokio_stream::wrappers::ReceiverStream;

use super::door::Visit;
use super::facts::Facts;
use super::pages::filters;
use crate::callers::Caller;
use crate::http::{App, Ask, Kind, Problem};
use crate::limits;
use crate::os::clock;

/// The columns of the table, by their names in the API.
const COLUMNS: [&str; 16] = [
    "handoffId",
    "attempt",
    "attempts",
    "decision",
    "status",
    "codes",
    "sourceAgent",
    "targetAgent",
    "routeKey",
    "mode",
    "operation",
    "correlationId",
    "parentHandoffId",
    "messageId",
    "createdAt",
    "updatedAt",
];

/// `GET /console/export/{what}`.
pub(super) async fn download(visit: &Visit, what: &str) -> Result<Response, Problem> {
    let (app, caller) = (&visit.console.app, &visit.session.caller);
    let (response, kind) = match what {
        "handoffs.csv" => (rows(visit, Form::Table).await?, "text/csv; charset=utf-8"),
        "handoffs.jsonl" => (rows(visit, Form::Lines).await?, "application/x-ndjson"),
        "ledger.jsonl" => (app.call(caller, Ask::of("exportLedger")).await?, "application/x-ndjson"),
        "checkpoint.json" => (app.call(caller, Ask::of("getCheckpoint")).await?, "application/json"),
        _ => return Err(Problem::new(Kind::NotFound, "there is no such file")),
    };
    let mut response = response;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{what}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Table,
    Lines,
}

/// All handoffs that the filters let through, page by page as they are taken.
async fn rows(visit: &Visit, form: Form) -> Result<Response, Problem> {
    let mut filters = filters(visit).query();
    if !filters.is_empty() {
        filters.push('&');
    }
    filters.push_str(&format!("limit={}", limits::VIEW_PAGE_ROWS_MAX));
    let (app, caller, now) = (visit.console.app.clone(), visit.session.caller.clone(), visit.now);
    // The first page before anything is answered: what is wrong with the filters is then said as such.
    let mut page = app.call_json(&caller, Ask::of("listHandoffs").query(filters.clone())).await?;
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(2);
    tokio::spawn(async move {
        let mut text = if form == Form::Table { format!("{}\n", COLUMNS.join(",")) } else { String::new() };
        loop {
            for row in Facts::of(&page, now).each("handoffs") {
                match form {
                    Form::Table => text.push_str(&table_row(&row)),
                    Form::Lines => text.push_str(&format!("{}\n", row.json())),
                }
            }
            let next = Facts::of(&page, now).link("next");
            if sender.send(Ok(std::mem::take(&mut text).into())).await.is_err() || next.is_empty() {
                return;
            }
            match next_page(&app, &caller, &format!("{filters}&cursor={next}")).await {
                Ok(found) => page = found,
                Err(_) => {
                    // The reader sees that it ended early: the last chunk never comes.
                    let _ = sender.send(Err(std::io::Error::other("the views could not be asked"))).await;
                    return;
                }
            }
        }
    });
    Ok(Body::from_stream(ReceiverStream::new(receiver)).into_response())
}

async fn next_page(app: &Arc<App>, caller: &Caller, query: &str) -> Result<Json, Problem> {
    // Whoever lost the token meanwhile gets no more, and whose token was changed what it may see now.
    let rules = app.rules.current();
    let holder = rules.roster.holder(caller.token_id(), clock::now());
    let caller = holder.ok_or_else(|| Problem::new(Kind::AuthTokenUnknown, "the token no longer counts"))?;
    app.call_json(caller, Ask::of("listHandoffs").query(query)).await
}

fn table_row(row: &Facts<'_>) -> String {
    let cells: Vec<String> = COLUMNS.iter().map(|name| cell(&row.text(name))).collect();
    format!("{}\n", cells.join(","))
}

/// What a formula begins with for one spreadsheet or another, in both widths, or what hides its beginning from a check.
const FORMULA: [char; 11] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// What other readers of tables end a cell or a line at.
const ENDS: [char; 4] = [';', '\t', '\r', '\n'];

/// A value as a cell. What a spreadsheet would take for a formula is kept from being one, also behind what it may take for
/// the end of a cell: where a semicolon or a tab is expected, quotes around a comma hold nothing together.
fn cell(text: &str) -> String {
    let mut kept = String::with_capacity(text.len() + 1);
    let mut begins = true;
    for (place, c) in text.char_indices() {
        let behind = text.get(place..).unwrap_or_default();
        // Quotes and spaces may be left out by who reads it.
        let behind = if place == 0 { behind } else { behind.trim_start_matches(['"', ' ']) };
        if begins && behind.starts_with(FORMULA) {
            kept.push('\'');
        }
        kept.push(c);
        begins = ENDS.contains(&c);
    }
    if kept.contains([',', '"', '\n', '\r']) { format!("\"{}\"", kept.replace('"', "\"\"")) } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_cell_and_no_formula() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@x,y", "\"'@x,y\""),
            ("\t=1", "'\t'=1"),
            ("\r=1", "\"'\r'=1\""),
            ("\n=1", "\"'\n'=1\""),
            ("x;=1", "x;'=1"),
            ("x\t@1", "x\t'@1"),
            ("x;\u{ff1d}1", "x;'\u{ff1d}1"),
            ("x; \"=1", "\"x;' \"\"=1\""),
            ("a,x;=1,b", "\"a,x;'=1,b\""),
            ("x; y=1;z", "x; y=1;z"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("a=1", "a=1"),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}
