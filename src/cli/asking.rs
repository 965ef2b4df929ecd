//! Asking the gateway for one thing and showing its answer: what the commands for people have in common.

use serde_json::Value as Json;

use super::client::{Ask, ClientFlags, Trouble, segment};
use super::printer::DIM;
use super::{Context, Exit, Failure};
use crate::json::printable;
use crate::limits;

/// Asks once. What was asked for is done at most once; whether an answer that was lost stands for something done,
/// the ledger knows, so it is not asked again.
pub(super) fn ask(
    context: &Context,
    client: &ClientFlags,
    ask: Ask<'_>,
    path: &str,
) -> Result<Result<Json, Exit>, Failure> {
    let client = match client.connect(context) {
        Ok(client) => client,
        Err(nobody) => return nobody.end(context).map(Err),
    };
    match client.ask(ask, path) {
        Ok(reply) => Ok(Ok(reply.body)),
        Err(trouble) => {
            let exit = trouble.end(context);
            if let Trouble::Told { status: 403, why } = &trouble
                && why.contains("AUTH_FORBIDDEN")
            {
                context.printer.note(
                    "this is for a person: put an operator's token into HANDOFFD_TOKEN; an admin makes one with: \
                     handoffd token new --role operator --name NAME",
                );
            }
            Ok(Err(exit))
        }
    }
}

/// Which page of a list.
#[derive(Debug, clap::Args)]
pub(super) struct Page {
    /// How many at most
    #[arg(long, value_name = "COUNT")]
    limit: Option<u32>,

    /// Where the page before this one ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl Page {
    pub(super) fn parameters(&self) -> [(&'static str, Option<String>); 2] {
        [("limit", self.limit.map(|limit| limit.to_string())), ("cursor", self.cursor.clone())]
    }
}

/// A path with the parameters that are given.
pub(super) fn with_query(path: &str, parameters: &[(&str, Option<String>)]) -> String {
    let mut out = path.to_owned();
    let given = parameters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    for (position, (name, value)) in given.enumerate() {
        out.push(if position == 0 { '?' } else { '&' });
        out.push_str(&format!("{name}={}", segment(value)));
    }
    out
}

/// A text member, fit for a terminal; a dash where there is none.
pub(super) fn text(json: &Json, name: &str) -> String {
    match json.get(name) {
        Some(Json::String(text)) => printable(text),
        Some(Json::Number(number)) => number.to_string(),
        _ => "-".to_owned(),
    }
}

/// The texts of a list member; a dash where there are none.
pub(super) fn texts(json: &Json, name: &str) -> String {
    let items = json.get(name).and_then(Json::as_array).into_iter().flatten();
    let items: Vec<String> = items.filter_map(Json::as_str).map(printable).collect();
    if items.is_empty() { "-".to_owned() } else { items.join(" ") }
}

/// The rows of a list.
pub(super) fn rows<'j>(json: &'j Json, name: &str) -> &'j [Json] {
    json.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Rows in columns, as wide as what stands in them.
pub(super) fn table(context: &Context, headings: &[&str], rows: &[Vec<String>]) {
    let widths: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(column, heading)| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([heading.chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let headings: Vec<String> = headings.iter().map(|heading| (*heading).to_owned()).collect();
    context.printer.line(&format!("{DIM}{}{DIM:#}", line(&headings)));
    for row in rows {
        context.printer.line(&line(row));
    }
}

/// A page of a list: its rows as a table, or that there are none.
pub(super) fn listing(
    context: &Context,
    page: &Json,
    (member, none): (&str, &str),
    headings: &[&str],
    cells: impl Fn(&Json) -> Vec<String>,
) {
    let rows = rows(page, member);
    if rows.is_empty() {
        context.printer.line(none);
        return;
    }
    table(context, headings, &rows.iter().map(cells).collect::<Vec<_>>());
    more(context, page);
}

/// What there is to say of one thing, a line each; what it does not have is left out.
pub(super) fn details(context: &Context, lines: &[(&str, String)]) {
    for (name, value) in lines.iter().filter(|(_, value)| value != "-") {
        context.printer.line(&format!("{DIM}{name:10}{DIM:#}  {value}"));
    }
}

/// Says how to see what is not on the page.
fn more(context: &Context, page: &Json) {
    if let Some(next) = page.get("next").and_then(Json::as_str) {
        context.printer.note(&format!("there are more: --cursor {}", printable(next)));
    }
}

/// Why somebody does something; it is kept in the ledger with their name.
pub(super) fn parse_reason(text: &str) -> Result<String, String> {
    let chars = text.chars().count();
    if !text.trim().is_empty() && chars <= limits::REASON_CHARS_MAX {
        Ok(text.to_owned())
    } else {
        Err(format!("say why, in 1 to {} characters", limits::REASON_CHARS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_given_goes_into_the_query() {
        let check = |parameters: &[(&str, Option<&str>)], expected: &str| {
            let owned: Vec<(&str, Option<String>)> =
                parameters.iter().map(|(name, value)| (*name, value.map(str::to_owned))).collect();
            assert_eq!(with_query("/v1/x", &owned), expected);
        };
        check(&[], "/v1/x");
        check(&[("a", None), ("b", Some("1 2")), ("c", Some("3"))], "/v1/x?b=1%202&c=3");
    }

    #[test]
    fn a_reason_says_something_and_fits() {
        assert!(parse_reason("because").is_ok());
        assert!(parse_reason(&"é".repeat(limits::REASON_CHARS_MAX)).is_ok());
        for bad in [String::new(), "  ".to_owned(), "é".repeat(limits::REASON_CHARS_MAX + 1)] {
            assert!(parse_reason(&bad).is_err(), "{bad}");
        }
    }
}
