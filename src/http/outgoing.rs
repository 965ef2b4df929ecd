//! What is counted of requests that the gateway makes: to webhooks, and to the model gateway.

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::a2a::{Method, Version};
use crate::ai::AiFault;
use crate::push::{Delivery, Outcome};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByMethod {
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByMethodAndOutcome {
    method: &'static str,
    outcome: &'static str,
}

/// Counters of what goes out.
#[derive(Debug)]
pub(super) struct Outgoing {
    push_attempts: Family<ByOutcome, Counter>,
    push_seconds: Family<ByOutcome, Histogram>,
    push_ended: Family<ByOutcome, Counter>,
    push_open: Gauge<i64, AtomicI64>,
    ai_requests: Family<ByMethodAndOutcome, Counter>,
    ai_seconds: Family<ByMethod, Histogram>,
}

const AI_METHODS: [Method; 3] = [Method::Embeddings, Method::Rerank, Method::Chat];

impl Outgoing {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let made = Self {
            push_attempts: Family::default(),
            push_seconds: Family::new_with_constructor(histogram),
            push_ended: Family::default(),
            push_open: Gauge::default(),
            ai_requests: Family::default(),
            ai_seconds: Family::new_with_constructor(histogram),
        };
        // There from the start, at 0: whoever draws them sees that nothing happened.
        for outcome in Outcome::ALL.map(Outcome::as_str) {
            let _ = made.push_attempts.get_or_create(&ByOutcome { outcome });
            let _ = made.push_seconds.get_or_create(&ByOutcome { outcome });
        }
        for outcome in ["done", "failed"] {
            let _ = made.push_ended.get_or_create(&ByOutcome { outcome });
        }
        for method in AI_METHODS.map(word) {
            let _ = made.ai_seconds.get_or_create(&ByMethod { method });
            for outcome in AiFault::OUTCOMES {
                let _ = made.ai_requests.get_or_create(&ByMethodAndOutcome { method, outcome });
            }
        }
        registry.register(
            "push_attempts",
            "Push notifications that were sent, by what became of them",
            made.push_attempts.clone(),
        );
        registry.register_with_unit(
            "push_attempt",
            "How long receivers take for a push notification, by what became of it",
            Unit::Seconds,
            made.push_seconds.clone(),
        );
        registry.register(
            "push_configs_ended",
            "Push configs to which everything was told, or that were given up",
            made.push_ended.clone(),
        );
        registry.register(
            "push_configs_open",
            "Push configs to which this gateway may still have to tell something",
            made.push_open.clone(),
        );
        registry.register(
            "ai_requests",
            "Requests to the model gateway, by method and what became of them",
            made.ai_requests.clone(),
        );
        registry.register_with_unit(
            "ai_request",
            "How long the model gateway takes, by method",
            Unit::Seconds,
            made.ai_seconds.clone(),
        );
        made
    }

    pub(super) fn push_attempted(&self, outcome: Outcome, took: Duration) {
        let by = ByOutcome { outcome: outcome.as_str() };
        self.push_attempts.get_or_create(&by).inc();
        self.push_seconds.get_or_create(&by).observe(took.as_secs_f64());
    }

    pub(super) fn push_ended(&self, how: &Delivery) {
        self.push_ended.get_or_create(&ByOutcome { outcome: how.as_str() }).inc();
    }

    pub(super) fn push_open(&self, count: usize) {
        self.push_open.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// The model gateway was asked; a fault says why there is no answer.
    pub(super) fn ai_asked(&self, method: Method, fault: Option<&AiFault>, took: Duration) {
        let (method, outcome) = (word(method), fault.map_or("answered", AiFault::outcome));
        self.ai_requests.get_or_create(&ByMethodAndOutcome { method, outcome }).inc();
        self.ai_seconds.get_or_create(&ByMethod { method }).observe(took.as_secs_f64());
    }
}

fn word(method: Method) -> &'static str {
    method.name(Version::V0_3).unwrap_or("unknown")
}

/// From a few milliseconds to minutes: others answer in their own time.
fn histogram() -> Histogram {
    Histogram::new([
        0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0,
    ])
}
