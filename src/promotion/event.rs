//! What is to be written into a route's stream.
//!
//! The payloads of `docs/schemas/agent-wire/v1.1/`, and who each event is from.

use serde_json::{Map, Value as Json, json};

use super::definition::Definition;
use super::evaluate::GateAnswer;
use super::rollback::RollbackPlan;
use super::stage::{PromotionGate, Stage};
use super::vouching::Voucher;
use crate::limits;
use crate::proof::Digest;
use crate::wire::{Kind, Sender};

/// An event of a route's stream that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhaseEvent {
    Declared(Box<Definition>),
    Removed,
    /// The definition is another one.
    Reset {
        from: Stage,
        digest: Digest,
    },
    Decided(Box<GateAnswer>),
    Advanced {
        from: Stage,
        to: Stage,
        gate: PromotionGate,
        epoch: u64,
        /// How many live handoffs must end well, if it is live in canary from now on.
        canary_of: Option<u64>,
    },
    Canary {
        handoff_id: String,
        outcome: CanaryOutcome,
        /// How many have ended well in a row, with this one.
        done: u64,
        code: Option<String>,
        epoch: u64,
    },
    Evidence {
        handoff_id: String,
        attached: Attached,
        voucher: Voucher,
    },
    RolledBack(Box<RollbackPlan>),
    Lifted {
        what: Lift,
        reason: String,
    },
}

/// What happened to the canary's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CanaryOutcome {
    Taken,
    Completed,
    /// It ended badly, or not in time.
    Failed,
    /// It was cancelled, which counts for nothing.
    Released,
}

/// What shows that an end-to-end run took place; at least one of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attached {
    pub run_id: Option<String>,
    pub trace_id: Option<String>,
    pub report: Option<String>,
}

/// What a person lifts after a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lift {
    Block,
    Pin,
    Both,
}

impl PhaseEvent {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Declared(_) => Kind::RouteDeclared,
            Self::Removed => Kind::RouteRemoved,
            Self::Reset { .. } => Kind::PromotionReset,
            Self::Decided(_) => Kind::PromotionDecided,
            Self::Advanced { .. } => Kind::PromotionAdvanced,
            Self::Canary { .. } => Kind::PromotionCanary,
            Self::Evidence { .. } => Kind::PromotionEvidence,
            Self::RolledBack(_) => Kind::RollbackExecuted,
            Self::Lifted { .. } => Kind::RollbackLifted,
        }
    }

    /// Who the event is from, if this is who asked: what follows by itself is the gateway's word.
    pub fn sender<'s>(&self, asked: Sender<'s>) -> Sender<'s> {
        match self {
            Self::Declared(_) | Self::Removed | Self::Reset { .. } | Self::Canary { .. } => Sender::System,
            Self::Decided(_)
            | Self::Advanced { .. }
            | Self::Evidence { .. }
            | Self::RolledBack(_)
            | Self::Lifted { .. } => asked,
        }
    }

    /// The payload, as the event's schema asks for it.
    pub fn payload(&self) -> Json {
        match self {
            Self::Declared(definition) => {
                let route = &definition.route;
                json!({
                    "capability": route.capability,
                    "definition": route,
                    "fallback_agent_id": route.fallback_agent_id,
                    "primary_agent_id": route.primary_agent_id,
                    "route_digest": definition.digest,
                    "stage": Stage::from(route.stage),
                })
            }
            Self::Removed => json!({}),
            Self::Reset { from, digest } => json!({"from": from, "route_digest": digest}),
            Self::Decided(answer) => decided(answer),
            Self::Advanced { from, to, gate, epoch, canary_of } => without_nulls(json!({
                "canary": canary_of.is_some(),
                "canary_of": canary_of,
                "epoch": epoch,
                "from": from,
                "gate": gate,
                "to": to,
            })),
            Self::Canary { handoff_id, outcome, done, code, epoch } => without_nulls(json!({
                "code": code,
                "done": done,
                "epoch": epoch,
                "handoff_id": handoff_id,
                "outcome": outcome.as_str(),
            })),
            Self::Evidence { handoff_id, attached, voucher } => {
                let Attached { run_id, trace_id, report } = attached;
                let Voucher { agent_id, registered_by, principal } = voucher;
                without_nulls(json!({
                    "agent_id": agent_id,
                    "handoff_id": handoff_id,
                    "principal": principal,
                    "registered_by": registered_by,
                    "report": report,
                    "run_id": run_id,
                    "trace_id": trace_id,
                }))
            }
            Self::RolledBack(plan) => rolled_back(plan),
            Self::Lifted { what, reason } => json!({"lifted": what.words(), "reason": bounded(reason)}),
        }
    }
}

impl CanaryOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Released => "released",
        }
    }
}

impl Lift {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Block => &["block"],
            Self::Pin => &["pin"],
            Self::Both => &["block", "pin"],
        }
    }
}

fn decided(answer: &GateAnswer) -> Json {
    let outcome = &answer.outcome;
    let missing: Vec<&str> = outcome.missing.iter().map(|missing| missing.what.as_str()).collect();
    let told = (!missing.is_empty()).then(|| missing.join("; "));
    let reason = told.or_else(|| answer.reason.clone()).map(|text| bounded(&text));
    let mut evidence = outcome.evidence.clone();
    evidence.sort_unstable();
    evidence.dedup();
    evidence.truncate(limits::GATE_EVIDENCE_MAX);
    without_nulls(json!({
        "epoch": answer.epoch,
        "evidence": evidence,
        "gate": answer.gate,
        "handoff_id": answer.handoff_id,
        "outcome": if outcome.passed { "passed" } else { "failed" },
        "plan_ref": answer.plan_ref,
        "reason": reason,
        "route_digest": answer.digest,
    }))
}

fn rolled_back(plan: &RollbackPlan) -> Json {
    let steps: Vec<Json> = plan
        .steps
        .iter()
        .map(|taken| {
            let outcome = if taken.why.is_none() { "done" } else { "skipped" };
            without_nulls(json!({"outcome": outcome, "step": taken.step.as_str(), "why": taken.why}))
        })
        .collect();
    let listed: Vec<_> = plan.rolled_back.iter().take(limits::ROLLED_BACK_LISTED_MAX).collect();
    without_nulls(json!({
        "blocked": plan.blocked,
        "code": plan.code,
        "epoch": plan.epoch,
        "from": plan.from,
        "handoff_id": plan.handoff_id,
        "in_flight": plan.rolled_back.len(),
        "reason": bounded(&plan.reason),
        "restored": plan.restored.as_ref().map(Definition::whole_digest),
        "rolled_back": listed,
        "steps": steps,
        "to": plan.to,
        "trigger": if plan.automatic { "automatic" } else { "operator" },
    }))
}

/// Free text as an event may have it: not empty, and not too long.
fn bounded(text: &str) -> String {
    if text.is_empty() {
        return "no reason given".to_owned();
    }
    if text.chars().count() <= limits::EVENT_TEXT_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(limits::EVENT_TEXT_CHARS_MAX - 1).chain(['…']).collect()
}

/// An absent member is left out, where a payload has no null.
fn without_nulls(value: Json) -> Json {
    match value {
        Json::Object(members) => {
            members.into_iter().filter(|(_, member)| !member.is_null()).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}
