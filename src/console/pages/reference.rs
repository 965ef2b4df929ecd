//! What decisions rest on: the policy set in force, and what every code means.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value as Json, json};

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::frame::{Frame, page};
use super::super::prose::Prose;
use super::super::tree::Tree;
use crate::callers::Act;
use crate::gates::Code;
use crate::http::{Ask, Problem};

#[derive(Template)]
#[template(path = "policies.html")]
struct PoliciesPage {
    frame: Frame,
    json: Json,
    loads: Json,
    declared: Json,
    answers: Json,
    may: bool,
    routes: Vec<(String, Tree)>,
}

impl PoliciesPage {
    fn facts<'j>(&self, json: &'j Json) -> Facts<'j> {
        self.frame.facts(json)
    }
}

pub(in super::super) async fn policies(visit: &Visit) -> Result<Response, Problem> {
    const SHOWN: usize = 10;
    let recent = async |kinds: &[&str]| -> Result<Json, Problem> {
        let mut sequences = Vec::new();
        for kind in kinds {
            let list = visit.ask(Ask::of("listEntries").query(format!("type={kind}&limit={SHOWN}"))).await?;
            let rows = Facts::of(&list, visit.now).each("entries");
            sequences.extend(rows.iter().map(|row| row.number("sequence")));
        }
        sequences.sort_unstable_by(|one, other| other.cmp(one));
        let mut entries = Vec::new();
        for sequence in sequences.iter().take(SHOWN) {
            entries.push(visit.ask(Ask::of("getEntry").at("sequence", &sequence.to_string())).await?);
        }
        Ok(json!({"entries": entries}))
    };
    let set = visit.console.app.rules.current().in_force.policies.clone();
    let routes = set
        .routes()
        .iter()
        .map(|(key, route)| {
            let definition = serde_json::from_slice(&route.to_canonical()).unwrap_or_default();
            (key.clone(), Tree::of(&definition))
        })
        .collect();
    let shown = PoliciesPage {
        json: visit.ask(Ask::of("getPolicies")).await?,
        loads: recent(&["policy.loaded"]).await?,
        declared: recent(&["route.declared"]).await?,
        answers: recent(&["policy.approved", "policy.rejected"]).await?,
        may: visit.may(Act::ApprovePolicies),
        frame: Frame { is_live: true, ..visit.frame("Policies", "policies") },
        routes,
    };
    Ok(page(StatusCode::OK, &shown))
}

#[derive(Template)]
#[template(path = "codes.html")]
struct CodesPage {
    frame: Frame,
    codes: Vec<Code>,
    wanted: String,
}

impl CodesPage {
    fn prose(&self, text: &str) -> Prose {
        Prose::of(text)
    }
}

pub(in super::super) async fn codes(visit: &Visit) -> Result<Response, Problem> {
    let wanted = visit.fields.text("q").to_owned();
    let low = wanted.to_lowercase();
    let matches = |code: &&Code| {
        let texts = [code.as_str(), code.means(), code.fix(), code.gate().title()];
        texts.iter().any(|text| text.to_lowercase().contains(&low))
    };
    let codes = Code::ALL.iter().filter(matches).copied().collect();
    Ok(page(StatusCode::OK, &CodesPage { frame: visit.frame("Codes", "codes"), codes, wanted }))
}
