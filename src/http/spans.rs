//! Spans for a trace collector: OTLP over HTTP, as JSON, from a thread of its own.
//!
//! A request leaves its spans in a bounded line and goes on; when the line is full, or the collector does not take
//! them, they are dropped and counted. Nobody waits for a trace.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::metrics::Step;
use super::trace::Trace;
use crate::limits;
use crate::os::{clock, random};
use crate::proof::to_hex;
use crate::settings::Otlp;
use crate::timestamp::Timestamp;

/// The way to a collector.
#[derive(Debug)]
pub(crate) struct Exporter {
    line: Mutex<Option<SyncSender<Work>>>,
    dropped: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What there is to tell.
#[derive(Debug)]
enum Work {
    Request(Request),
    Single(Single),
}

impl Work {
    fn to_json(&self) -> Vec<Json> {
        match self {
            Self::Request(request) => request.to_json(),
            Self::Single(single) => vec![single.to_json()],
        }
    }
}

/// On which side of a request the gateway stands; wire contract of OTLP.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Server = 2,
    Client = 3,
}

/// A request that the gateway made, or a stream that it told.
#[derive(Debug)]
struct Single {
    side: Side,
    trace_id: String,
    span_id: String,
    parent_id: String,
    name: &'static str,
    began_ns: i64,
    took: Duration,
    failed: bool,
    attributes: Vec<(&'static str, String)>,
}

/// What a request was, for its spans.
#[derive(Debug)]
struct Request {
    trace_id: String,
    span_id: String,
    parent_id: Option<String>,
    endpoint: &'static str,
    method: String,
    path: &'static str,
    status: u16,
    began_ns: i64,
    took: Duration,
    marks: Vec<Mark>,
    facts: Option<Facts>,
    rpc: Vec<(&'static str, i32)>,
}

/// When a step ended, counted from the beginning of the request.
#[derive(Debug)]
struct Mark {
    step: Step,
    began: Duration,
    ended: Duration,
}

/// What became of a handoff.
#[derive(Debug)]
struct Facts {
    handoff_id: Option<String>,
    decision: &'static str,
    sequence: u64,
}

/// A request that is being traced. Handlers leave marks; the door ends it.
#[derive(Debug)]
pub(super) struct Span {
    began: Instant,
    began_ns: i64,
    left: Mutex<Left>,
}

#[derive(Debug, Default)]
struct Left {
    marks: Vec<Mark>,
    facts: Option<Facts>,
    /// The JSON-RPC methods that were asked for, and the code that each was answered with.
    rpc: Vec<(&'static str, i32)>,
}

impl Span {
    pub(super) fn begin() -> Arc<Self> {
        let began_ns = clock::now().unix_nanoseconds().unwrap_or_default();
        Arc::new(Self { began: Instant::now(), began_ns, left: Mutex::default() })
    }

    pub(super) fn mark(&self, step: Step, began: Instant) {
        let mark =
            Mark { step, began: began.saturating_duration_since(self.began), ended: self.began.elapsed() };
        self.left.lock().unwrap_or_else(PoisonError::into_inner).marks.push(mark);
    }

    pub(super) fn decided(&self, decided: &crate::engine::Decided) {
        let facts = Facts {
            handoff_id: decided.handoff_id.clone(),
            decision: decided.decision.as_str(),
            sequence: decided.ledger.sequence,
        };
        self.left.lock().unwrap_or_else(PoisonError::into_inner).facts = Some(facts);
    }

    /// A JSON-RPC method was answered; 0 is a result.
    pub(super) fn answered(&self, method: &'static str, code: i32) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).rpc.push((method, code));
    }
}

impl Exporter {
    /// Starts to export; nothing if no collector is set.
    pub(super) fn start(settings: &Otlp) -> std::io::Result<Option<Self>> {
        let Some(endpoint) = &settings.endpoint else { return Ok(None) };
        let (line, work) = sync_channel(limits::SPAN_REQUESTS_WAITING_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let sender = Sender {
            url: format!("{}/v1/traces", endpoint.trim_end_matches('/')),
            headers: settings
                .headers
                .iter()
                .map(|header| {
                    (header.name.clone(), zeroize::Zeroizing::new(header.value.expose().to_owned()))
                })
                .collect(),
            service_name: settings.service_name.clone(),
            agent: ureq::Agent::from(
                ureq::Agent::config_builder()
                    .timeout_global(Some(Duration::from_millis(limits::SPAN_POST_MS)))
                    .max_redirects(0)
                    .http_status_as_error(false)
                    .build(),
            ),
            dropped: dropped.clone(),
        };
        let thread = std::thread::Builder::new().name("spans".into()).spawn(move || sender.run(&work))?;
        Ok(Some(Self { line: Mutex::new(Some(line)), dropped, thread: Mutex::new(Some(thread)) }))
    }

    /// Spans of so many requests were not taken by the collector.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Hands a request's spans over, unless its caller does not sample.
    pub(super) fn end(&self, span: &Span, trace: &Trace, endpoint: &super::endpoint::Endpoint, status: u16) {
        let Some(trace) = Ids::of(trace) else { return };
        let Left { marks, facts, rpc } =
            std::mem::take(&mut *span.left.lock().unwrap_or_else(PoisonError::into_inner));
        let Ids { trace_id, span_id, parent_id } = trace;
        let request = Request {
            trace_id,
            span_id,
            parent_id,
            endpoint: endpoint.id,
            method: endpoint.method.to_string(),
            path: endpoint.path,
            status,
            began_ns: span.began_ns,
            took: span.began.elapsed(),
            marks,
            facts,
            rpc,
        };
        self.hand_over(Work::Request(request));
    }

    /// Hands the span of a request over that the gateway made, or of a stream that it told: in the trace of `parent`, a
    /// `traceparent`, as the span that `own` names; unless the trace is not sampled.
    pub(super) fn single(
        &self,
        (side, name): (Side, &'static str),
        (parent, own): (&str, &str),
        (began, took): (Timestamp, Duration),
        failed: bool,
        attributes: Vec<(&'static str, String)>,
    ) {
        let part = |text: &str, place: std::ops::Range<usize>| text.get(place).map(str::to_owned);
        let flags = parent.get(53..55).and_then(|flags| u8::from_str_radix(flags, 16).ok());
        let ids = (part(own, 3..35), part(own, 36..52), part(parent, 36..52));
        let ((Some(trace_id), Some(span_id), Some(parent_id)), Some(flags)) = (ids, flags) else { return };
        if flags & 1 == 0 {
            return;
        }
        let began_ns = began.unix_nanoseconds().unwrap_or_default();
        let single = Single { side, trace_id, span_id, parent_id, name, began_ns, took, failed, attributes };
        self.hand_over(Work::Single(single));
    }

    fn hand_over(&self, work: Work) {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        // Full, or at its end: nobody waits for a trace.
        if line.as_ref().is_some_and(|line| line.try_send(work).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends what is waiting, once, and ends.
    pub(crate) fn stop(&self) {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// Where a span stands.
struct Ids {
    trace_id: String,
    span_id: String,
    parent_id: Option<String>,
}

impl Ids {
    /// The ids of what was passed on; a root of our own where nothing came in; nothing where the caller says that
    /// the trace is not sampled.
    fn of(trace: &Trace) -> Option<Self> {
        let outgoing = trace.outgoing.as_ref().and_then(|value| value.to_str().ok());
        let Some((incoming, outgoing)) = trace.incoming.as_deref().zip(outgoing) else {
            let (trace_id, span_id) = (random::secret_bytes::<16>().ok()?, random::secret_bytes::<8>().ok()?);
            let (trace_id, span_id) = (to_hex(trace_id.as_slice()), to_hex(span_id.as_slice()));
            return Some(Self { trace_id, span_id, parent_id: None });
        };
        let flags = u8::from_str_radix(incoming.get(53..55)?, 16).ok()?;
        (flags & 1 == 1).then_some(())?;
        Some(Self {
            trace_id: outgoing.get(3..35)?.to_owned(),
            span_id: outgoing.get(36..52)?.to_owned(),
            parent_id: incoming.get(36..52).map(str::to_owned),
        })
    }
}

/// What the thread has.
struct Sender {
    url: String,
    headers: Vec<(String, zeroize::Zeroizing<String>)>,
    service_name: String,
    agent: ureq::Agent,
    dropped: Arc<AtomicU64>,
}

impl Sender {
    fn run(self, work: &Receiver<Work>) {
        let mut failing = false;
        let mut open = true;
        while open {
            let Ok(first) = work.recv() else { return };
            let mut requests = vec![first];
            // A moment for others to come along.
            let until = Instant::now() + Duration::from_millis(limits::SPAN_GATHER_MS);
            while requests.len() < limits::SPAN_REQUESTS_AT_ONCE {
                match work.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(request) => requests.push(request),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => {
                        open = false;
                        break;
                    }
                }
            }
            match self.post(&requests) {
                Ok(()) => failing = false,
                Err(why) => {
                    self.dropped.fetch_add(requests.len() as u64, Ordering::Relaxed);
                    // Said once, until it works again.
                    if !failing {
                        tracing::warn!(why, "the collector does not take spans; they are dropped");
                    }
                    failing = true;
                }
            }
        }
    }

    fn post(&self, requests: &[Work]) -> Result<(), String> {
        let spans: Vec<Json> = requests.iter().flat_map(Work::to_json).collect();
        let body = json!({"resourceSpans": [{
            "resource": {"attributes": [
                text("service.name", &self.service_name),
                text("service.version", env!("CARGO_PKG_VERSION")),
            ]},
            "scopeSpans": [{"scope": {"name": "handoffd"}, "spans": spans}],
        }]});
        let mut post = self.agent.post(&self.url).header("Content-Type", "application/json");
        for (name, value) in &self.headers {
            post = post.header(name.as_str(), value.as_str());
        }
        // ureq's errors name the host at most; a header's value is not in them.
        let answer = post.send(body.to_string()).map_err(|error| error.to_string())?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("it answered {}", answer.status())),
        }
    }
}

impl Request {
    /// The request's span, and one for each step.
    fn to_json(&self) -> Vec<Json> {
        const INTERNAL: u8 = 1;
        let mut attributes = vec![
            text("http.request.method", &self.method),
            text("http.route", self.path),
            number("http.response.status_code", u64::from(self.status)),
        ];
        if let Some(facts) = &self.facts {
            attributes.push(text("handoffd.decision", facts.decision));
            attributes.push(number("handoffd.ledger.sequence", facts.sequence));
            if let Some(handoff_id) = &facts.handoff_id {
                attributes.push(text("handoffd.handoff_id", handoff_id));
            }
        }
        // A batch has several.
        for (method, code) in &self.rpc {
            attributes.push(text("rpc.method", method));
            attributes
                .push(json!({"key": "rpc.jsonrpc.error_code", "value": {"intValue": code.to_string()}}));
        }
        let mut spans = vec![json!({
            "traceId": self.trace_id,
            "spanId": self.span_id,
            "parentSpanId": self.parent_id.as_deref().unwrap_or_default(),
            "name": self.endpoint,
            "kind": Side::Server as u8,
            "startTimeUnixNano": self.at(Duration::ZERO),
            "endTimeUnixNano": self.at(self.took),
            "attributes": attributes,
            // 2 is an error: ours, not the caller's.
            "status": {"code": if self.status >= 500 { 2 } else { 0 }},
        })];
        for Mark { step, began, ended } in &self.marks {
            let Ok(span_id) = random::secret_bytes::<8>() else { continue };
            spans.push(json!({
                "traceId": self.trace_id,
                "spanId": to_hex(span_id.as_slice()),
                "parentSpanId": self.span_id,
                "name": step.name(),
                "kind": INTERNAL,
                "startTimeUnixNano": self.at(*began),
                "endTimeUnixNano": self.at(*ended),
            }));
        }
        spans
    }

    fn at(&self, after: Duration) -> String {
        time(self.began_ns, after)
    }
}

impl Single {
    fn to_json(&self) -> Json {
        let attributes: Vec<Json> = self.attributes.iter().map(|(key, value)| text(key, value)).collect();
        json!({
            "traceId": self.trace_id,
            "spanId": self.span_id,
            "parentSpanId": self.parent_id,
            "name": self.name,
            "kind": self.side as u8,
            "startTimeUnixNano": time(self.began_ns, Duration::ZERO),
            "endTimeUnixNano": time(self.began_ns, self.took),
            "attributes": attributes,
            "status": {"code": if self.failed { 2 } else { 0 }},
        })
    }
}

/// A time as OTLP writes it: a text, for JSON numbers are too small for it.
fn time(began_ns: i64, after: Duration) -> String {
    let after = i64::try_from(after.as_nanos()).unwrap_or(i64::MAX);
    began_ns.saturating_add(after).to_string()
}

fn text(key: &str, value: &str) -> Json {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u64) -> Json {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}
