//! The reducer: ledger entries in, the state document out.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::fragments::{ActiveHandoff, RouteState, write_map, write_promotion};
use crate::ledger::{Entry, Head};
use crate::limits;
use crate::proof::{object, write_object};
use crate::timestamp::Timestamp;
use crate::wire::StreamId;

/// The state after some entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateView {
    head: Head,
    updated_at: String,
    /// Each with its serialized form.
    handoffs: BTreeMap<String, String>,
    routes: BTreeMap<String, (RouteState, String, String)>,
    /// Serialized, oldest first, with whether it is a refusal.
    delegation_log: VecDeque<(bool, String)>,
    refusals: usize,
    /// How much all fragments hold together.
    fragment_bytes: usize,
    /// A group that has begun: the facts wait for the decision.
    created: Option<Created>,
    /// Handoffs that have ended, and the ledger's time from which on they are no longer shown.
    ended: VecDeque<(String, String)>,
}

/// An entry that the reducer cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFault {
    pub sequence: u64,
}

impl std::fmt::Display for StateFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "entry {} cannot be reduced to state", self.sequence)
    }
}

#[derive(Debug, Deserialize)]
struct Wire {
    wire_id: String,
    #[serde(rename = "type")]
    kind: String,
    payload: Json,
    stream: Stream,
}

#[derive(Debug, Deserialize)]
struct Stream {
    stream_id: String,
    stream_seq: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Created {
    handoff_id: String,
    mode: Option<String>,
    operation: Option<String>,
    route_key: Option<String>,
    source_agent: Option<String>,
    target_agent: Option<String>,
    delegation: Option<Delegation>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Delegation {
    authorization_ref: Option<String>,
    delegate_agent: Option<String>,
    envelope_hash: Option<String>,
    policy_ref: Option<String>,
    principal: Option<String>,
    risk_classification: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RouteDeclared {
    capability: String,
    fallback_agent_id: Option<String>,
    primary_agent_id: String,
    stage: String,
}

/// The handoff that a stream is about.
fn handoff_of(stream_id: &str) -> Option<&str> {
    match StreamId::parse(stream_id)? {
        StreamId::Handoff { handoff_id, .. } => Some(handoff_id),
        _ => None,
    }
}

impl StateView {
    /// The state of a ledger without entries.
    pub fn empty(topic_id: &str) -> Self {
        Self {
            head: Head::genesis(topic_id),
            updated_at: "1970-01-01T00:00:00.000000000Z".to_owned(),
            handoffs: BTreeMap::new(),
            routes: BTreeMap::new(),
            delegation_log: VecDeque::new(),
            refusals: 0,
            fragment_bytes: 0,
            created: None,
            ended: VecDeque::new(),
        }
    }

    /// Up to which entry it goes.
    pub fn head(&self) -> Head {
        self.head
    }

    /// About how large the document is.
    pub fn bytes(&self) -> usize {
        self.fragment_bytes + 1024
    }

    /// Takes the next entry in.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), StateFault> {
        let fault = || StateFault { sequence: entry.sequence };
        if entry.sequence != self.head.sequence + 1 {
            return Err(fault());
        }
        let wire: Wire = serde_json::from_str(&entry.wire).map_err(|_| fault())?;
        self.forget_ended(&entry.consensus_timestamp);
        match wire.kind.as_str() {
            "task.created" => self.created = Some(serde_json::from_value(wire.payload).map_err(|_| fault())?),
            "gate.decided" => self.decided(&wire, entry),
            "route.declared" => {
                let key = wire.stream.stream_id.strip_prefix("phase:").ok_or_else(fault)?.to_owned();
                let route: RouteDeclared = serde_json::from_value(wire.payload).map_err(|_| fault())?;
                let state = RouteState {
                    capability: route.capability,
                    primary_agent_id: route.primary_agent_id,
                    fallback_agent_id: route.fallback_agent_id,
                    stage: route.stage,
                };
                let (route, promotion) = (state.render_route(), state.render_promotion());
                self.routes.insert(key, (state, route, promotion));
            }
            "route.removed" => {
                let key = wire.stream.stream_id.strip_prefix("phase:").ok_or_else(fault)?;
                self.routes.remove(key);
            }
            "task.claimed" | "task.started" | "artifact.ready" => self.moved(&wire, entry, "running", None),
            "task.blocked" => self.moved(&wire, entry, "blocked", None),
            // The third event of a stream is part of the decision; a later one gives the handoff back.
            "task.available" if wire.stream.stream_seq > 3 => self.moved(&wire, entry, "queued", None),
            "task.complete" => self.ended(&wire, entry, "done", None),
            "task.failed" => {
                let code = wire.payload.get("code").and_then(Json::as_str).map(str::to_owned);
                self.ended(&wire, entry, "failed", code);
            }
            "task.cancelled" => self.ended(&wire, entry, "failed", Some("TASK_CANCELLED".to_owned())),
            _ => {}
        }
        self.head = Head { sequence: entry.sequence, running_hash: entry.running_hash };
        self.updated_at.clone_from(&entry.consensus_timestamp);
        Ok(())
    }

    fn decided(&mut self, wire: &Wire, entry: &Entry) {
        // A refusal without a handoffId has no facts; the ledger has it, the state does not.
        let Some(created) = self.created.take() else { return };
        let decision = wire.payload.get("decision").and_then(Json::as_str).unwrap_or_default();
        let status = match decision {
            "allowed" => Some("queued"),
            "needs_approval" => Some("needs_approval"),
            _ => None,
        };
        if let Some(delegation) = &created.delegation
            && status != Some("needs_approval")
        {
            self.log_delegation(wire, &created, delegation, decision, entry);
        }
        if let Some(status) = status {
            let handoff = ActiveHandoff {
                status: status.into(),
                mode: created.mode.unwrap_or_default(),
                source_agent: created.source_agent.unwrap_or_default(),
                target_agent: created.target_agent.unwrap_or_default(),
                route_key: created.route_key.unwrap_or_default(),
                last_updated_at: entry.consensus_timestamp.clone(),
                last_error_code: None,
            };
            let fragment = handoff.render();
            self.fragment_bytes += fragment.len() + created.handoff_id.len();
            let id_bytes = created.handoff_id.len();
            if let Some(before) = self.handoffs.insert(created.handoff_id, fragment) {
                self.fragment_bytes -= before.len() + id_bytes;
            }
        }
    }

    /// What an event in a handoff's stream makes of it. One that is not shown any more stays so.
    fn moved(&mut self, wire: &Wire, entry: &Entry, status: &'static str, code: Option<String>) {
        let Some(handoff_id) = handoff_of(&wire.stream.stream_id) else { return };
        let Some(fragment) = self.handoffs.get_mut(handoff_id) else { return };
        let Ok(mut handoff) = serde_json::from_str::<ActiveHandoff>(fragment) else { return };
        handoff.status = status.into();
        handoff.last_error_code = code;
        handoff.last_updated_at.clone_from(&entry.consensus_timestamp);
        self.fragment_bytes -= fragment.len();
        *fragment = handoff.render();
        self.fragment_bytes += fragment.len();
    }

    /// The same for its last event; it is shown for a while longer.
    fn ended(&mut self, wire: &Wire, entry: &Entry, status: &'static str, code: Option<String>) {
        self.moved(wire, entry, status, code);
        let at = Timestamp::parse(&entry.consensus_timestamp);
        if let (Some(handoff_id), Some(at)) = (handoff_of(&wire.stream.stream_id), at) {
            let until = at.plus_seconds(limits::ENDED_SHOWN_S).to_nanoseconds();
            self.ended.push_back((until, handoff_id.to_owned()));
        }
    }

    /// Times are in one form and of one length, so that their texts are in the order of time.
    fn forget_ended(&mut self, now: &str) {
        while let Some((until, _)) = self.ended.front()
            && until.as_str() <= now
            && let Some((_, handoff_id)) = self.ended.pop_front()
        {
            if let Some(fragment) = self.handoffs.remove(&handoff_id) {
                self.fragment_bytes -= fragment.len() + handoff_id.len();
            }
        }
    }

    /// The newest ones, of which refusals may take at most half: a flood of them pushes no decision out.
    fn log_delegation(
        &mut self,
        wire: &Wire,
        created: &Created,
        row: &Delegation,
        decision: &str,
        entry: &Entry,
    ) {
        let text = object(384, |members| {
            members.text_or_null("authorizationRef", row.authorization_ref.as_deref());
            members.text("decision", decision);
            members.text_or_null("delegateAgent", row.delegate_agent.as_deref());
            members.text_or_null("envelopeHash", row.envelope_hash.as_deref());
            members.text("eventId", &wire.wire_id);
            members.text("handoffId", &created.handoff_id);
            members.text_or_null("policyRef", row.policy_ref.as_deref());
            members.text_or_null("principal", row.principal.as_deref());
            members.text("recordedAt", &entry.consensus_timestamp);
            members.text_or_null("riskClassification", row.risk_classification.as_deref());
            members.text_or_null("task", created.operation.as_deref());
        });
        let refused = decision != "allowed";
        self.refusals += usize::from(refused);
        self.fragment_bytes += text.len();
        self.delegation_log.push_back((refused, text));
        let oldest = if self.refusals > limits::DELEGATION_LOG_MAX / 2 {
            self.delegation_log.iter().position(|(refused, _)| *refused)
        } else {
            (self.delegation_log.len() > limits::DELEGATION_LOG_MAX).then_some(0)
        };
        if let Some((refused, text)) = oldest.and_then(|at| self.delegation_log.remove(at)) {
            self.refusals -= usize::from(refused);
            self.fragment_bytes -= text.len();
        }
    }

    /// The document, valid against `docs/schemas/orchestration-state.schema.json`.
    pub fn render(&self) -> String {
        let mut text = String::new();
        self.render_into(&mut text);
        text
    }

    /// The same, at the end of a text whose room is used again.
    pub(super) fn render_into(&self, text: &mut String) {
        text.reserve(self.bytes() + 4096);
        let least = self.routes.values().map(|(state, ..)| state).min_by_key(|route| route.rank());
        write_object(text, |members| {
            members.with("activeHandoffs", |text| {
                write_map(text, self.handoffs.iter().map(|(id, fragment)| (id.as_str(), fragment.as_str())));
            });
            members.with("delegationAuditLog", |text| {
                text.push('[');
                for (n, (_, row)) in self.delegation_log.iter().enumerate() {
                    text.push_str(if n > 0 { "," } else { "" });
                    text.push_str(row);
                }
                text.push(']');
            });
            members.object("ledger", |members| {
                members.hex("runningHash", self.head.running_hash.as_bytes());
                members.count("sequence", self.head.sequence);
            });
            members.with("promotion", |text| {
                let routes =
                    self.routes.iter().map(|(key, (_, _, promotion))| (key.as_str(), promotion.as_str()));
                write_promotion(text, least, routes);
            });
            members.with("rollback", |text| {
                write_object(text, |members| {
                    members.null("lastRollbackAt");
                    members.null("lastRollbackReason");
                    members.null("planRef");
                    members.flag("required", true);
                });
            });
            members.with("routingTable", |text| {
                write_map(
                    text,
                    self.routes.iter().map(|(key, (_, route, _))| (key.as_str(), route.as_str())),
                );
            });
            members.text("schemaVersion", "1.0");
            members.text("updatedAt", &self.updated_at);
        });
        text.push('\n');
    }
}
