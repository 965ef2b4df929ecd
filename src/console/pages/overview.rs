//! Is it healthy, what was refused and why, what waits for me, where does each route stand: on one page.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value as Json, json};

use super::super::chart::Chart;
use super::super::door::Visit;
use super::super::facts::{Facts, grouped};
use super::super::frame::{Frame, page};
use super::super::kept::last_checkpoint;
use super::super::prose::Prose;
use super::super::shown::Markup;
use super::is_frozen;
use crate::gates::Code;
use crate::http::{Ask, Problem};
use crate::limits;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    ready: Json,
    approvals: Json,
    routes: Json,
    /// Routes that the gateway itself took back and blocked, which wait for a person to look.
    taken_back: Vec<Json>,
    freezes: Json,
    /// The last entries that refuse something, newest first.
    refused: Vec<Json>,
    head: Json,
    checkpoint: Json,
    mentions: Json,
    /// Nothing if the views could not be asked.
    chart: Option<Chart>,
    codes: Vec<CodeCount>,
}

/// A code and how often it was given, as a part of a hundred of the most frequent one.
struct CodeCount {
    code: String,
    count: u64,
    share: u64,
}

impl OverviewPage {
    fn facts<'j>(&self, json: &'j Json) -> Facts<'j> {
        self.frame.facts(json)
    }

    /// What is wrong, but for what is frozen, which has a place of its own on the page.
    fn troubles(&self) -> Vec<(bool, Facts<'_>)> {
        let health = self.facts(&self.ready);
        let failing = health.each("failing").into_iter().map(|one| (true, one));
        let degraded = health.each("degraded").into_iter().map(|one| (false, one));
        failing.chain(degraded).filter(|(_, one)| !one.is("what", "freeze")).collect()
    }

    fn is_all_frozen(&self) -> bool {
        self.facts(&self.freezes).each("frozen").iter().any(|freeze| freeze.is("scope", "all"))
    }

    fn is_frozen(&self, route: &Facts<'_>) -> bool {
        is_frozen(&self.facts(&self.freezes), &route.text("routeKey"))
    }

    fn grouped(&self, number: &u64) -> String {
        grouped(*number)
    }

    /// What a code means, in a sentence; nothing for one that is not ours.
    fn means(&self, codes: &Facts<'_>) -> Markup<Prose> {
        let first = codes.each("codes").first().map(|code| code.text("")).unwrap_or_default();
        let known = Code::ALL.iter().find(|code| code.as_str() == first);
        Prose::of(known.map_or("", |code| code.means()))
    }

    /// Handoffs, and a policy set, that need a yes.
    fn waiting(&self) -> String {
        let handoffs = self.facts(&self.approvals).number("total");
        grouped(handoffs + u64::from(self.frame.is_set_waiting))
    }

    /// How many routes stand at each stage.
    fn stages(&self) -> Vec<(&'static str, usize)> {
        let routes = self.facts(&self.routes).each("routes");
        let at = |stage: &str| routes.iter().filter(|route| route.is("stage", stage)).count();
        ["dev", "simulated", "live"].map(|stage| (stage, at(stage))).to_vec()
    }
}

/// Of the routes that are blocked, those that nobody has blocked.
async fn taken_back(visit: &Visit, routes: &Json) -> Vec<Json> {
    let mut all = Vec::new();
    let routes = Facts::of(routes, visit.now).each("routes");
    let blocked = routes.iter().filter(|route| route.truth("blocked"));
    for route in blocked.take(limits::CONSOLE_BLOCKED_LISTED) {
        let shown =
            visit.ask(Ask::of("getRoute").at("key", &route.text("routeKey"))).await.unwrap_or_default();
        if Facts::of(&shown, visit.now).is("lastRollback/by", "system") {
            all.push(shown);
        }
    }
    all
}

/// The last refusals: of handoffs that have a stream, by its end; and of what could not even be named, by the decision.
async fn refused_last(visit: &Visit) -> Vec<Json> {
    let limit = limits::CONSOLE_REFUSED_LISTED;
    let mut all = Vec::new();
    for (kind, names_a_handoff) in [("task.rejected", true), ("gate.decided&decision=denied", false)] {
        let ask = Ask::of("listEntries").query(format!("type={kind}&limit={limit}"));
        let Ok(Json::Object(mut page)) = visit.ask(ask).await else { continue };
        if let Some(Json::Array(entries)) = page.remove("entries") {
            all.extend(entries.into_iter().filter(|entry| entry["handoffId"].is_string() == names_a_handoff));
        }
    }
    all.sort_by_key(|entry| std::cmp::Reverse(entry["sequence"].as_u64()));
    all.truncate(limit);
    all
}

pub(in super::super) async fn overview(visit: &Visit) -> Result<Response, Problem> {
    let app = &visit.console.app;
    let head = app.gateway.engine().head();
    let chart_from = visit.now.plus_seconds(-60 * limits::CONSOLE_CHART_MINUTES);
    let codes_from = visit.now.plus_seconds(-limits::CONSOLE_CODES_S);
    let counted = app
        .ask(move |reader| {
            let codes = reader.top_codes_since(codes_from, limits::CONSOLE_CODES_LISTED)?;
            Ok((reader.decisions_since(chart_from)?, codes))
        })
        .await;
    // What cannot be asked is left out: the page must say what is wrong, above all when something is.
    let (chart, codes) = match counted {
        Ok((minutes, codes)) => (Some(Chart::of(&minutes, visit.now)), codes),
        Err(_) => (None, Vec::new()),
    };
    let most = codes.first().map_or(1, |(_, count)| (*count).max(1));
    let codes = codes
        .into_iter()
        .map(|(code, count)| CodeCount { code, count, share: (count.saturating_mul(100) / most).max(1) })
        .collect();
    let ask = async |ask: Ask| visit.ask(ask).await.unwrap_or_default();
    let approvals = ask(Ask::of("listApprovals").query("limit=5")).await;
    let routes = ask(Ask::of("listRoutes")).await;
    let overview = OverviewPage {
        ready: ask(Ask::of("ready")).await,
        taken_back: taken_back(visit, &routes).await,
        routes,
        freezes: ask(Ask::of("listFreezes")).await,
        mentions: ask(Ask::of("getMentionPhase")).await,
        head: ask(Ask::of("getEntry").at("sequence", &head.to_string())).await,
        checkpoint: last_checkpoint(app).unwrap_or_else(|| json!(null)),
        frame: Frame { is_live: true, ..visit.frame("Overview", "") },
        approvals,
        refused: refused_last(visit).await,
        chart,
        codes,
    };
    Ok(page(StatusCode::OK, &overview))
}
