//! What is counted, for Prometheus. `docs/operations.md` says what each one means.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::App;
use super::exposition::in_order;
use super::outgoing::Outgoing;
use crate::engine::{Appended, Decided, Observer};
use crate::gates::Decision;

/// A stage of the way that a submitted TaskSpec goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Read,
    Judge,
    Commit,
    Answer,
}

impl Step {
    /// The name of its span, and of its series.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Judge => "judge",
            Self::Commit => "commit",
            Self::Answer => "answer",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStep {
    step: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByDecision {
    decision: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    gate: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCode {
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEndpoint {
    endpoint: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCounter {
    counter: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByMethod {
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnswer {
    method: &'static str,
    /// 0 for a result.
    error: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyInfo {
    digest: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByState {
    state: &'static str,
}

/// All that is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    decisions: [Counter; 4],
    replays: Counter,
    reasons: Family<ByReason, Counter>,
    claims_refused: Counter,
    problems: Family<ByCode, Counter>,
    unreadable: Counter,
    requests: Family<ByEndpoint, Counter>,
    request_seconds: Histogram,
    steps: [Histogram; 4],
    append_seconds: Histogram,
    append_began: Mutex<Option<Instant>>,
    batch_entries: Histogram,
    entries: Counter,
    ledger_bytes: Counter,
    append_faults: Counter,
    overtaken: Counter,
    waiting: Gauge,
    head: Gauge<u64, AtomicU64>,
    views_behind: Gauge<u64, AtomicU64>,
    connections: Gauge<i64, AtomicI64>,
    policy: Family<PolicyInfo, Gauge>,
    reload_faults: Counter,
    reload_failing: Gauge,
    policy_pending: Family<ByState, Gauge>,
    sink_behind: Gauge<u64, AtomicU64>,
    sink_faults: Counter,
    spans_dropped: Counter,
    approvals_waiting: Gauge,
    freezes: Gauge,
    mentions: Family<ByCounter, Counter>,
    rpc_requests: Family<ByAnswer, Counter>,
    rpc_seconds: Family<ByMethod, Histogram>,
    streams: Gauge<i64, AtomicI64>,
    stream_seconds: Histogram,
    stream_event_seconds: Histogram,
    /// Requests that the gateway itself makes.
    pub(super) outgoing: Outgoing,
    /// Two who ask at once must not both add what was counted elsewhere.
    rendering: Mutex<()>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("handoffd");
        let decisions = Family::<ByDecision, Counter>::default();
        let steps = Family::<ByStep, Histogram>::new_with_constructor(histogram);
        let outgoing = Outgoing::register(&mut registry);
        let made = Self {
            decisions: [Decision::Allowed, Decision::Denied, Decision::Expired, Decision::NeedsApproval]
                .map(|decision| decisions.get_or_create(&ByDecision { decision: decision.as_str() }).clone()),
            steps: [Step::Read, Step::Judge, Step::Commit, Step::Answer]
                .map(|step| steps.get_or_create(&ByStep { step: step.name() }).clone()),
            replays: Counter::default(),
            reasons: Family::default(),
            claims_refused: Counter::default(),
            problems: Family::default(),
            unreadable: Counter::default(),
            requests: Family::default(),
            request_seconds: histogram(),
            append_seconds: histogram(),
            append_began: Mutex::new(None),
            batch_entries: Histogram::new([1.0, 3.0, 9.0, 30.0, 90.0, 300.0, 900.0, 3_000.0]),
            entries: Counter::default(),
            ledger_bytes: Counter::default(),
            append_faults: Counter::default(),
            overtaken: Counter::default(),
            waiting: Gauge::default(),
            head: Gauge::default(),
            views_behind: Gauge::default(),
            connections: Gauge::default(),
            policy: Family::default(),
            reload_faults: Counter::default(),
            reload_failing: Gauge::default(),
            policy_pending: Family::default(),
            sink_behind: Gauge::default(),
            sink_faults: Counter::default(),
            spans_dropped: Counter::default(),
            approvals_waiting: Gauge::default(),
            freezes: Gauge::default(),
            mentions: Family::default(),
            rpc_requests: Family::default(),
            rpc_seconds: Family::new_with_constructor(histogram),
            streams: Gauge::default(),
            stream_seconds: lasting(),
            stream_event_seconds: histogram(),
            outgoing,
            rendering: Mutex::default(),
            registry: Registry::default(),
        };
        registry.register(
            "decisions",
            "Decisions by outcome; one given again is not counted again",
            decisions,
        );
        registry.register("replays", "Answers that were given again for the same key", made.replays.clone());
        registry.register("reasons", "Reasons for refusals, by gate and code", made.reasons.clone());
        registry.register(
            "claims_refused",
            "Refusals for something that was taken already or not reached",
            made.claims_refused.clone(),
        );
        registry.register("problems", "Requests that ended in a problem, by its code", made.problems.clone());
        registry.register(
            "bodies_unreadable",
            "Bodies that could not be read at all; not in the ledger",
            made.unreadable.clone(),
        );
        registry.register("http_requests", "Requests by endpoint and status", made.requests.clone());
        registry.register_with_unit(
            "http_request",
            "How long requests take",
            Unit::Seconds,
            made.request_seconds.clone(),
        );
        registry.register_with_unit(
            "step",
            "How long each step of a submitted TaskSpec takes",
            Unit::Seconds,
            steps,
        );
        registry.register_with_unit(
            "append",
            "How long a batch takes to be durable",
            Unit::Seconds,
            made.append_seconds.clone(),
        );
        registry.register("batch_entries", "Entries in a batch", made.batch_entries.clone());
        registry.register("ledger_entries", "Entries made durable since the start", made.entries.clone());
        registry.register_with_unit(
            "ledger_written",
            "What was written to the ledger since the start",
            Unit::Bytes,
            made.ledger_bytes.clone(),
        );
        registry.register(
            "append_faults",
            "Batches that could not be made durable",
            made.append_faults.clone(),
        );
        registry.register(
            "appends_overtaken",
            "Batches that were decided again, because another replica had appended first",
            made.overtaken.clone(),
        );
        registry.register("decisions_waiting", "Decisions that wait to be durable", made.waiting.clone());
        registry.register("ledger_head", "The last entry", made.head.clone());
        registry.register(
            "views_behind_entries",
            "Entries that the views do not show yet",
            made.views_behind.clone(),
        );
        registry.register("connections", "Open connections", made.connections.clone());
        registry.register("policy", "The policy set in force: 1 for its digest", made.policy.clone());
        registry.register(
            "policy_reload_faults",
            "Changed policies, keys or tokens that could not be put in force",
            made.reload_faults.clone(),
        );
        registry.register(
            "policy_reload_failing",
            "1 while the files are not what is in force",
            made.reload_failing.clone(),
        );
        registry.register(
            "policy_pending",
            "1 while a changed policy set waits for an operator's yes, or was rejected and is still what the files have",
            made.policy_pending.clone(),
        );
        registry.register(
            "sink_behind_entries",
            "Entries whose lines for log shippers are not written yet; 0 without a sink",
            made.sink_behind.clone(),
        );
        registry.register(
            "sink_faults",
            "Attempts to write lines for log shippers that failed",
            made.sink_faults.clone(),
        );
        registry.register(
            "spans_dropped",
            "Traced requests whose spans the collector did not get",
            made.spans_dropped.clone(),
        );
        registry.register(
            "approvals_waiting",
            "Handoffs that wait for a person",
            made.approvals_waiting.clone(),
        );
        registry.register("freezes", "Freezes that hold", made.freezes.clone());
        registry.register(
            "mentions",
            "Mentions that were judged, by what was counted of them, in the whole ledger",
            made.mentions.clone(),
        );
        registry.register(
            "a2a_requests",
            "JSON-RPC requests by method and error code; 0 is a result",
            made.rpc_requests.clone(),
        );
        registry.register_with_unit(
            "a2a_request",
            "How long JSON-RPC requests take, by method",
            Unit::Seconds,
            made.rpc_seconds.clone(),
        );
        registry.register("a2a_streams", "Open A2A streams", made.streams.clone());
        registry.register_with_unit(
            "a2a_stream",
            "How long A2A streams were open, when they end",
            Unit::Seconds,
            made.stream_seconds.clone(),
        );
        registry.register_with_unit(
            "a2a_stream_event",
            "From an event being durable to its update being on the way to a client",
            Unit::Seconds,
            made.stream_event_seconds.clone(),
        );
        registry.register(
            "build",
            "What is running",
            Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]),
        );
        Self { registry, ..made }
    }

    /// Takes the time of a step that began then, and says when the next one begins.
    pub(super) fn step(&self, step: Step, began: Instant) -> Instant {
        let now = Instant::now();
        if let Some(histogram) = self.steps.get(step as usize) {
            histogram.observe((now - began).as_secs_f64());
        }
        now
    }

    pub(super) fn unreadable(&self) {
        self.unreadable.inc();
    }

    pub(super) fn problem(&self, code: &'static str) {
        self.problems.get_or_create(&ByCode { code }).inc();
    }

    pub(crate) fn request(&self, endpoint: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&ByEndpoint { endpoint, status }).inc();
        self.request_seconds.observe(took.as_secs_f64());
    }

    /// A JSON-RPC request was answered; error 0 is a result.
    pub(super) fn rpc(&self, method: &'static str, error: i32, began: Instant) {
        self.rpc_requests.get_or_create(&ByAnswer { method, error }).inc();
        self.rpc_seconds.get_or_create(&ByMethod { method }).observe(began.elapsed().as_secs_f64());
    }

    /// An A2A stream began; it is counted as long as what is given back lives.
    pub(super) fn stream_opened(&self) -> OpenStream {
        self.streams.inc();
        OpenStream { open: self.streams.clone(), seconds: self.stream_seconds.clone(), began: Instant::now() }
    }

    /// An update is on its way, so many seconds after its event was durable.
    pub(super) fn stream_told(&self, seconds: f64) {
        self.stream_event_seconds.observe(seconds);
    }

    pub(super) fn connected(&self) {
        self.connections.inc();
    }

    pub(super) fn disconnected(&self) {
        self.connections.dec();
    }

    /// Changed rules could, or could not, be put in force.
    pub fn reloaded(&self, ok: bool) {
        if !ok {
            self.reload_faults.inc();
        }
        self.reload_failing.set(i64::from(!ok));
    }

    /// The text that Prometheus reads, with what is only known when it asks.
    pub(super) fn render(&self, app: &App) -> String {
        let _turn = self.rendering.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = app.gateway.engine();
        let head = engine.head();
        self.waiting.set(i64::try_from(engine.waiting()).unwrap_or(i64::MAX));
        self.head.set(head);
        self.views_behind.set(head.saturating_sub(app.gateway.views().applied()));
        if let Some(sink) = app.sink() {
            let progress = sink.progress();
            self.sink_behind.set(head.saturating_sub(progress.written));
            let counted = self.sink_faults.get();
            self.sink_faults.inc_by(progress.faults.saturating_sub(counted));
        }
        if let Some(spans) = &app.spans {
            let counted = self.spans_dropped.get();
            self.spans_dropped.inc_by(spans.dropped().saturating_sub(counted));
        }
        self.approvals_waiting.set(i64::try_from(engine.inbox().count()).unwrap_or(i64::MAX));
        self.outgoing.push_open(app.courier.book().open_count());
        self.freezes.set(i64::try_from(engine.freezes().all().count()).unwrap_or(i64::MAX));
        let seen = *engine.mentions().total();
        let counted = [
            ("candidates", seen.candidates),
            ("would_allow", seen.would_allow),
            ("loops_stopped", seen.loops_stopped),
            ("duplicates_stopped", seen.duplicates_stopped),
            ("expired", seen.expired),
            ("false_positives", seen.false_positives),
        ];
        for (name, number) in counted {
            let counter = self.mentions.get_or_create(&ByCounter { counter: name });
            counter.inc_by(number.saturating_sub(counter.get()));
        }
        let digest = app.rules.digest().to_string();
        self.policy.clear();
        self.policy.get_or_create(&PolicyInfo { digest }).set(1);
        let pending = app.rules.proposed();
        let rejected = pending
            .as_ref()
            .map(|(_, proposal)| proposal.as_ref().is_some_and(|proposal| proposal.rejected.is_some()));
        for (state, is_so) in [("waiting", rejected == Some(false)), ("rejected", rejected == Some(true))] {
            self.policy_pending.get_or_create(&ByState { state }).set(i64::from(is_so));
        }
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        in_order(&text)
    }
}

/// A stream that is counted, and measured when it ends.
#[derive(Debug)]
pub(super) struct OpenStream {
    open: Gauge<i64, AtomicI64>,
    seconds: Histogram,
    began: Instant,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.open.dec();
        self.seconds.observe(self.began.elapsed().as_secs_f64());
    }
}

/// From a twentieth of a second to a day, for what stays open.
fn lasting() -> Histogram {
    Histogram::new([0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0])
}

/// From a quarter of a millisecond to ten seconds.
fn histogram() -> Histogram {
    Histogram::new([
        0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
        2.5, 10.0,
    ])
}

impl Observer for Metrics {
    fn append_begins(&self) {
        *self.append_began.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn append_ended(&self, ended: Appended) {
        if let Some(began) = self.append_began.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.append_seconds.observe(began.elapsed().as_secs_f64());
        }
        match ended {
            Appended::Durable { entries, bytes } => {
                self.batch_entries.observe(entries as f64);
                self.entries.inc_by(entries as u64);
                self.ledger_bytes.inc_by(bytes as u64);
            }
            Appended::Overtaken => drop(self.overtaken.inc()),
            Appended::Failed => drop(self.append_faults.inc()),
        }
    }

    fn decided(&self, decided: &Decided) {
        if decided.replayed {
            self.replays.inc();
            return;
        }
        let place = match decided.decision {
            Decision::Allowed => 0,
            Decision::Denied => 1,
            Decision::Expired => 2,
            Decision::NeedsApproval => 3,
        };
        if let Some(counter) = self.decisions.get(place) {
            counter.inc();
        }
        let mut claims = false;
        for reason in &decided.reasons {
            self.reasons
                .get_or_create(&ByReason { gate: reason.gate.id(), code: reason.code.as_str() })
                .inc();
            claims |= !crate::gates::Gate::PURE.contains(&reason.gate);
        }
        if claims {
            self.claims_refused.inc();
        }
    }
}
