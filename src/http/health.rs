//! Is it alive, can it decide, and what can be counted.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;

use super::App;
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::policies::pending_in_words;
use super::tls::TlsFault;
use crate::gateway::Part;
use crate::json::in_one_line;
use crate::ledger::Keeping;
use crate::limits;
use crate::os::clock;

/// `GET /healthz`: the process answers.
pub(super) async fn alive(_call: Call) -> Answer {
    Ok(json_response(StatusCode::OK, &json!({"status": "alive"})))
}

/// `GET /readyz`: 503 when it cannot decide; 200 with `degraded` when something is wrong that it survives.
pub(super) async fn ready(call: Call) -> Answer {
    let condition = look(&call.app);
    let Condition { failing, degraded } = &*condition;
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
    hint: Cow<'static, str>,
    /// Says how long or how far it has gone, which is another word with every look.
    #[serde(skip)]
    grows: bool,
    /// Callers had better ask elsewhere, and whoever asks here is answered for the time being.
    #[serde(skip)]
    lasts: bool,
}

impl Trouble {
    /// Is it the same trouble, for somebody who reads a log? Time that goes by makes no other one of it.
    fn is_like(&self, other: &Self) -> bool {
        self.what == other.what && (self.grows && other.grows || self.why == other.why)
    }
}

/// What is wrong.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    /// It cannot decide.
    failing: Vec<Trouble>,
    /// It survives that.
    degraded: Vec<Trouble>,
}

/// The condition as it was last seen, so that each trouble is logged when it begins and when it is over. A thread looks
/// every moment, so that whoever puts a file back before somebody asks `/readyz` has still left a trace; and whoever
/// asks looks, so that nothing is told there that the log does not say.
#[derive(Debug, Default)]
pub(crate) struct ConditionLog {
    last: Mutex<Arc<Condition>>,
    /// Another number whenever what is wrong has become something else.
    changes: watch::Sender<u64>,
}

impl ConditionLog {
    /// Tells whenever something has become wrong or well.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// Looks at what is wrong now, logs what has changed since the last look, and tells those who watch that something has.
pub(crate) fn look(app: &App) -> Arc<Condition> {
    // Held over the look itself: of two who look at once, the later one has the later condition.
    let mut last = app.condition.last.lock().unwrap_or_else(PoisonError::into_inner);
    let now = condition(app);
    if now == **last {
        return last.clone();
    }
    for Trouble { what, why, hint, lasts, .. } in begun(&last.failing, &now.failing) {
        let why = for_the_log(why);
        if *lasts {
            tracing::error!(what, %why, %hint, "soon nothing can be decided");
        } else {
            tracing::error!(what, %why, %hint, "nothing is decided");
        }
    }
    for Trouble { what, why, hint, .. } in begun(&last.degraded, &now.degraded) {
        tracing::warn!(what, why = %for_the_log(why), %hint, "something is wrong, and decisions go on");
    }
    for (before, now) in [(&last.failing, &now.failing), (&last.degraded, &now.degraded)] {
        over(before, now).into_iter().for_each(|what| tracing::info!(what, "well again"));
    }
    *last = Arc::new(now);
    app.condition.changes.send_modify(|number| *number += 1);
    last.clone()
}

/// Why something is wrong, in one line of the log that has all of it.
pub(crate) fn for_the_log(why: &str) -> String {
    in_one_line(why, limits::LOG_WHY_CHARS_MAX, limits::MESSAGE_FAULTS_MAX)
}

/// Those that do not stand among the ones before: what is wrong with the same thing may become something else.
fn begun<'c>(before: &'c [Trouble], now: &'c [Trouble]) -> impl Iterator<Item = &'c Trouble> {
    now.iter().filter(|trouble| before.iter().all(|one| !one.is_like(trouble)))
}

/// The names of what was wrong before and no longer is.
fn over<'c>(before: &'c [Trouble], now: &'c [Trouble]) -> BTreeSet<&'static str> {
    let gone = before.iter().filter(|trouble| now.iter().all(|one| one.what != trouble.what));
    gone.map(|trouble| trouble.what).collect()
}

fn one(what: &'static str, why: String, hint: impl Into<Cow<'static, str>>) -> Trouble {
    Trouble { what, why, hint: hint.into(), grows: false, lasts: false }
}

/// What keeps anything from being written; beside others also that this one may not know what they wrote.
fn ledger(app: &App) -> Option<Trouble> {
    let engine = app.gateway.engine();
    let hint = "nothing is allowed until the ledger can be written; see docs/operations.md";
    if let Some(why) = engine.fault() {
        return Some(one("ledger", why, hint));
    }
    let behind = engine.behind_for().filter(|time| time.as_millis() > limits::BEHIND_MS_MAX)?;
    // Whoever asks and is not answered is not to blame for it, and no other replica knows more. It asks a little later than
    // it last knew.
    let unanswered = engine.unanswered_for().filter(|time| time.as_millis() > limits::BEHIND_MS_MAX / 2);
    let trouble = match unanswered {
        Some(time) => {
            one("ledger", format!("the ledger's database has not answered for {} s", time.as_secs()), hint)
        }
        None => one(
            "replica",
            format!("it has not seen the end of the ledger for {} s", behind.as_secs()),
            "ask another replica; this one is ready when it has caught up",
        ),
    };
    Some(Trouble { grows: true, ..trouble })
}

fn condition(app: &App) -> Condition {
    let (mut failing, mut degraded) = (Vec::new(), Vec::new());
    if let Some(why) = app.gateway.engine().ended() {
        let hint = "nothing is decided any more, and the gateway stops with exit code 3; its log says where it panicked";
        failing.push(one("engine", why.to_owned(), hint));
    }
    let growing = |trouble| Trouble { grows: true, ..trouble };
    failing.extend(ledger(app));
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
    } else if let Some(why) = app.probe.room() {
        let hint =
            "make room now: decisions go on until a write fails, and then only when there is room again";
        failing.push(Trouble { lasts: true, ..one("disk", why, hint) });
    }
    if let Some(why) = app.probe.time() {
        failing.push(one(
            "clock",
            why,
            "no entry can have that time, so nothing is decided; set the clock right",
        ));
    }
    if let Some(why) = app.probe.clock() {
        degraded.push(growing(one(
            "clock",
            why,
            "decisions go on by the ledger's own time; set the clock right",
        )));
    }
    if let Some(until) = app.nonces.shut_until() {
        let hint = "callers show tokens meanwhile; where only the gateway's clock was wrong: set it right, stop the gateway, \
                    delete memory/signed-until.json, and start it";
        let why = format!("the clock was ahead: signed requests may be refused until {until}");
        degraded.push(one("callers", why, hint));
    }
    if let Some(why) = app.gateway.state().fault() {
        degraded.push(one(
            "state",
            why,
            "memory/orchestration-state.json is behind; the ledger is the record",
        ));
    }
    if let Some(why) = app.gateway.views().fault() {
        let hint = "searches fail until the tables can be written again; it is tried until they can";
        degraded.push(one("views", why, hint));
    } else if let Some(why) = app.gateway.views_trouble() {
        degraded.push(one(
            "views",
            why,
            "some searches fail until the next entry, with which it is made again, or tried until it can be read",
        ));
    }
    if let Some(why) = app.probe.stray() {
        degraded.push(one(
            "ledger",
            why,
            "decisions go on, and the next start refuses the ledger; move that file out of its directory",
        ));
    }
    if let Some(why) = app.sink().and_then(|sink| sink.progress().fault) {
        degraded.push(one(
            "sink",
            why,
            "the lines for log shippers are behind; no line is lost, and decisions go on",
        ));
    }
    if let Some(failed) = app.rules.failed() {
        for (part, why) in failed.broken {
            degraded.push(match part {
                Part::Policies => one("policies", why, "the set before it stays in force; correct the file"),
                Part::Keys => {
                    one("keys", why, "the keys before stay in force; correct the file, or put it back")
                }
                Part::Tokens => {
                    one("tokens", why, "the tokens before stay in force; correct the file, or put it back")
                }
            });
        }
        if let Some(why) = failed.unanswered {
            degraded.push(one("tokens", why, "the tokens before stay in force, and the files are not to blame; it is tried again until the database answers"));
        }
        if let Some(why) = failed.unrecorded {
            degraded.push(one("rules", why, "what changed is put in force when the ledger can be written"));
        }
    }
    for TlsFault { why, fix } in app.certificates.iter().flat_map(|tls| tls.faults(clock::now())) {
        degraded.push(one("tls", why, fix));
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
