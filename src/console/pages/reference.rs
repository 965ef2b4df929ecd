//! What decisions rest on: the policy set in force, and what every code means.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value as Json, json};

use super::super::changes::{Changed, fields_changed};
use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::frame::{Frame, page};
use super::super::prose::Prose;
use super::super::shown::Markup;
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
    declared: Vec<Declared>,
    answers: Json,
    may: bool,
    routes: Vec<(String, Tree)>,
    delegation: Vec<(String, Tree)>,
    /// What the set that waits would change; nothing if that is not known.
    proposed: Option<Vec<Changed>>,
    /// What changed with the set that is here; nothing if that is not known.
    replaced: Option<Vec<Changed>>,
}

/// An entry about the definition of a route.
struct Declared {
    entry: Json,
    route_key: String,
    /// What is not as it was declared before.
    changed: Vec<Markup<Prose>>,
    is_first: bool,
    /// The declaration before it was found.
    is_compared: bool,
}

impl Declared {
    fn is_removed(&self) -> bool {
        self.entry.pointer("/wire/type").is_some_and(|kind| kind == "route.removed")
    }
}

impl PoliciesPage {
    fn facts<'j>(&self, json: &'j Json) -> Facts<'j> {
        self.frame.facts(json)
    }

    /// What changed with this load, where it is known.
    fn changes_of(&self, load: &Facts<'_>) -> Option<&[Changed]> {
        let set = self.facts(&self.json);
        let is_it = load.text("wire/payload/digest") == set.text("digest")
            && load.text("wire/payload/previous_digest") == set.text("replaced/digest");
        self.replaced.as_deref().filter(|_| is_it)
    }
}

const SHOWN: usize = 10;

/// How many declarations are looked through for the one before.
const COMPARED: usize = 100;

/// Does it begin the stream of its route?
fn is_first(entry: &Json) -> bool {
    entry.pointer("/wire/stream/stream_seq").and_then(Json::as_u64) == Some(1)
}

/// The last entries about definitions of routes, each with what is not as it was declared before.
async fn declared(visit: &Visit) -> Result<Vec<Declared>, Problem> {
    // By type alone: of one route, a search would go through all that was ever decided on it.
    let last = async |kind: &str, limit: usize| -> Result<Vec<(u64, String)>, Problem> {
        let list = visit.ask(Ask::of("listEntries").query(format!("type={kind}&limit={limit}"))).await?;
        let found = Facts::of(&list, visit.now).each("entries");
        Ok(found.iter().map(|row| (row.number("sequence"), row.text("streamId"))).collect())
    };
    let declared = last("route.declared", COMPARED).await?;
    let mut rows = last("route.removed", SHOWN).await?;
    rows.extend_from_slice(&declared);
    rows.sort_unstable_by(|one, other| other.cmp(one));
    let entry =
        async |sequence: u64| visit.ask(Ask::of("getEntry").at("sequence", &sequence.to_string())).await;
    let mut all = Vec::new();
    for (sequence, stream) in rows.into_iter().take(SHOWN) {
        let route_key = stream.strip_prefix("phase:").unwrap_or(&stream).to_owned();
        let before = declared.iter().find(|(before, of)| *before < sequence && *of == stream);
        let now = entry(sequence).await?;
        let before = match before {
            Some((before, _)) => Some(entry(*before).await?),
            None => None,
        };
        let definition =
            |entry: &Json| entry.pointer("/wire/payload/definition").cloned().unwrap_or_default();
        let changed = match &before {
            Some(before) => fields_changed(&definition(before), &definition(&now)),
            None => Vec::new(),
        };
        all.push(Declared {
            is_first: is_first(&now),
            is_compared: before.is_some(),
            entry: now,
            route_key,
            changed: changed.into_iter().map(Prose::of).collect(),
        });
    }
    Ok(all)
}

pub(in super::super) async fn policies(visit: &Visit) -> Result<Response, Problem> {
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
    let json = visit.ask(Ask::of("getPolicies")).await?;
    let delegation = Facts::of(&json, visit.now).each("delegation");
    let delegation =
        delegation.iter().map(|one| (one.text("policyRef"), Tree::of(one.at("definition").json()))).collect();
    let known = |path: &str| {
        let changes = Facts::of(&json, visit.now).at(path);
        changes.json().is_array().then(|| Changed::all(&changes))
    };
    let shown = PoliciesPage {
        proposed: known("pending/changes"),
        replaced: known("replaced/changes"),
        loads: recent(&["policy.loaded"]).await?,
        declared: declared(visit).await?,
        answers: recent(&["policy.approved", "policy.rejected"]).await?,
        may: visit.may(Act::ApprovePolicies),
        frame: Frame { is_live: true, ..visit.frame("Policies", "policies") },
        routes,
        delegation,
        json,
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
    fn prose(&self, text: &str) -> Markup<Prose> {
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
