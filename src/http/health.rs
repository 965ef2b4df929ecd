//! Is it alive, can it decide, and what can be counted.

use std::collections::BTreeSet;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use serde::Serialize;
use serde_json::json;

use super::App;
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::policies::pending_in_words;
use crate::json::printable;
use crate::ledger::Keeping;
use crate::limits;

/// `GET /healthz`: the process answers.
pub(super) async fn alive(_call: Call) -> Answer {
    Ok(json_response(StatusCode::OK, &json!({"status": "alive"})))
}

/// `GET /readyz`: 503 when it cannot decide; 200 with `degraded` when something is wrong that it survives.
pub(super) async fn ready(call: Call) -> Answer {
    let Condition { failing, degraded } = condition(&call.app);
    let status = if failing.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "status": if !failing.is_empty() { "failing" } else if !degraded.is_empty() { "degraded" } else { "ready" },
        "failing": failing,
        "degraded": degraded,
        "ledger": {"sequence": call.app.gateway.engine().head()},
        "policyDigest": call.app.rules.digest().to_string(),
    });
    Ok(json_response(status, &body))
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Trouble {
    what: &'static str,
    why: String,
    hint: &'static str,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Condition {
    /// It cannot decide.
    failing: Vec<Trouble>,
    /// It survives that.
    degraded: Vec<Trouble>,
}

/// What was said of the condition last, so that each trouble is logged when it begins and when it is over. Whoever puts
/// a file back before somebody asks `/readyz` has still left a trace.
#[derive(Debug, Default)]
pub(crate) struct ConditionLog {
    failing: BTreeSet<&'static str>,
    degraded: BTreeSet<&'static str>,
    /// In all its words.
    last: Condition,
}

impl ConditionLog {
    /// Logs what has changed since, and tells those who watch that something has.
    pub(crate) fn look(&mut self, app: &App) {
        let last = condition(app);
        if last != self.last {
            app.condition.send_modify(|number| *number += 1);
        }
        let Condition { failing, degraded } = &last;
        for Trouble { what, why, hint } in failing {
            if !self.failing.contains(what) {
                tracing::error!(what, why = %printable(why), hint, "nothing is decided");
            }
        }
        for Trouble { what, why, hint } in degraded {
            if !self.degraded.contains(what) {
                tracing::warn!(what, why = %printable(why), hint, "something is wrong, and decisions go on");
            }
        }
        let names = |troubles: &[Trouble]| troubles.iter().map(|trouble| trouble.what).collect();
        let now = (names(failing), names(degraded));
        let over = |before: &BTreeSet<&'static str>, now: &BTreeSet<&'static str>| {
            before.difference(now).for_each(|what| tracing::info!(what, "well again"));
        };
        over(&self.failing, &now.0);
        over(&self.degraded, &now.1);
        *self = Self { failing: now.0, degraded: now.1, last };
    }
}

fn condition(app: &App) -> Condition {
    let (mut failing, mut degraded) = (Vec::new(), Vec::new());
    let one = |what, why, hint| Trouble { what, why, hint };
    if let Some(why) = app.gateway.engine().fault() {
        failing.push(one(
            "ledger",
            why,
            "nothing is allowed until the ledger can be written; see docs/operations.md",
        ));
    }
    if let Some(behind) =
        app.gateway.engine().behind_for().filter(|behind| behind.as_millis() > limits::BEHIND_MS_MAX)
    {
        failing.push(one(
            "replica",
            format!("it has not seen the end of the ledger for {} s", behind.as_secs()),
            "ask another replica; this one is ready when it has caught up",
        ));
    }
    let pending = app.rules.proposed();
    let waiting = pending.as_ref().map(|(pending, proposal)| pending_in_words(pending, proposal.as_ref()));
    let mut differs = app.rules.differs().or_else(|| app.gateway.engine().differs());
    if let Some(why) = waiting {
        // Alone, what is here differs from what is in force only because it waits.
        let decides = differs.is_none() || app.gateway.sharing().is_some();
        if decides {
            let hint =
                "the set before it stays in force; an operator answers: handoffd policy approve, or reject";
            degraded.push(one("policies", why, hint));
        } else {
            differs = None;
            failing.push(one(
                "policies",
                format!("{why}; the set in force is no longer on disk, so nothing is decided"),
                "an operator says yes to it: handoffd policy approve; or put the files back as they were",
            ));
        }
    }
    if let Some(why) = differs {
        failing.push(one(
            "rules",
            why,
            "bring the files of all replicas to the same contents, or start one with `serve --put-in-force`",
        ));
    }
    if app.gateway.keeping() == Keeping::Volatile {
        degraded.push(one(
            "ledger",
            "it is kept in memory: every decision is forgotten when the gateway stops, and live work is refused".to_owned(),
            "serve the workspace on segments or on a database",
        ));
    }
    if let Some(why) = app.probe.disk() {
        failing.push(one("disk", why, "make room, or make memory/ writable again; it recovers by itself"));
    }
    if let Some(why) = app.probe.clock() {
        degraded.push(one("clock", why, "decisions go on by the ledger's own time; set the clock right"));
    }
    if let Some(why) = app.gateway.state().fault() {
        degraded.push(one(
            "state",
            why,
            "memory/orchestration-state.json is behind; the ledger is the record",
        ));
    }
    if let Some(why) = app.gateway.views().fault() {
        degraded.push(one("views", why, "searches fail until the next start, which rebuilds them"));
    } else if !app.gateway.views_in_place() {
        let why = "memory/views.db was deleted, replaced or emptied while in use".to_owned();
        degraded.push(one("views", why, "some searches fail until the next start, which makes it again"));
    }
    if let Some(why) = app.sink().and_then(|sink| sink.progress().fault) {
        degraded.push(one(
            "sink",
            why,
            "the lines for log shippers are behind; no line is lost, and decisions go on",
        ));
    }
    if let Some(failed) = app.rules.failed() {
        degraded.push(one("policies", failed.why, "the set before it stays in force; correct the file"));
    }
    for freeze in app.gateway.engine().freezes().all() {
        // Who and why is not for everybody who may ask whether the gateway is ready.
        degraded.push(one(
            "freeze",
            format!("frozen: {} since {}", freeze.scope, freeze.at),
            "an operator lifts it when it is safe: handoffd freeze lift",
        ));
    }
    Condition { failing, degraded }
}

/// `GET /metrics`.
pub(super) async fn metrics(call: Call) -> Answer {
    let text = call.app.metrics.render(&call.app);
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
