//! The reducer: ledger entries in, the state document out.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::fragments::{
    ActiveHandoff, render_promotion, render_route, write_map, write_promotion, write_rollback,
};
use crate::ledger::{Entry, Head};
use crate::limits;
use crate::promotion::RouteRecord;
use crate::proof::{object, write_object};
use crate::timestamp::Timestamp;
use crate::wire::{Fact, Sender, StreamId};

/// The state after some entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateView {
    head: Head,
    updated_at: String,
    /// Each with its serialized form.
    handoffs: BTreeMap<String, String>,
    /// Each with its serialized forms: as it is routed, if it is declared, and how far it has come.
    routes: BTreeMap<String, (RouteRecord, Option<String>, String)>,
    /// Delegated handoffs that wait for a person: the log has them when they are settled.
    waiting: BTreeMap<String, Created>,
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
    sender: String,
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
            waiting: BTreeMap::new(),
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
            "gate.decided" if wire.stream.stream_seq > 2 && wire.stream.stream_id.starts_with("task:") => {
                self.settled(&wire, entry);
            }
            "gate.decided" => self.decided(&wire, entry),
            "task.claimed" | "task.started" | "artifact.ready" => self.moved(&wire, entry, "running", None),
            "task.blocked" => self.moved(&wire, entry, "blocked", None),
            // The third event of a stream is part of the decision; a later one gives the handoff back.
            "task.available" if wire.stream.stream_seq > 3 => self.moved(&wire, entry, "queued", None),
            "task.complete" => self.ended(&wire, entry, "done", None),
            "task.failed" => {
                let code = wire.payload.get("code").and_then(Json::as_str).map(str::to_owned);
                let rolled_back = code.as_deref() == Some("ROUTE_ROLLED_BACK") && wire.sender == "system";
                self.ended(&wire, entry, if rolled_back { "rolled_back" } else { "failed" }, code);
            }
            "task.cancelled" => {
                if let Some(handoff_id) = handoff_of(&wire.stream.stream_id) {
                    self.waiting.remove(handoff_id);
                }
                self.ended(&wire, entry, "failed", Some("TASK_CANCELLED".to_owned()));
            }
            _ => self.routed(&wire, entry).ok_or_else(fault)?,
        }
        self.head = Head { sequence: entry.sequence, running_hash: entry.running_hash };
        self.updated_at.clone_from(&entry.consensus_timestamp);
        Ok(())
    }

    /// What an event in a route's stream makes of it.
    fn routed(&mut self, wire: &Wire, entry: &Entry) -> Option<()> {
        let stream = StreamId::parse(&wire.stream.stream_id)?;
        let StreamId::Route { route_key } = stream else { return Some(()) };
        let fact = Fact {
            kind: wire.kind.parse().ok()?,
            sender: Sender::parse(&wire.sender)?,
            stream,
            sequence: entry.sequence,
            at: Timestamp::parse(&entry.consensus_timestamp)?,
            payload: &wire.payload,
        };
        let (record, route, promotion) = self.routes.entry(route_key.to_owned()).or_default();
        record.take(&fact);
        *route = record.declared.as_ref().map(render_route);
        *promotion = render_promotion(record);
        Some(())
    }

    /// What was decided about a handoff that waited for a person.
    fn settled(&mut self, wire: &Wire, entry: &Entry) {
        let Some(handoff_id) = handoff_of(&wire.stream.stream_id) else { return };
        let decision = wire.payload.get("decision").and_then(Json::as_str).unwrap_or_default();
        if let Some(created) = self.waiting.remove(handoff_id)
            && let Some(delegation) = &created.delegation
        {
            self.log_delegation(wire, &created, delegation, decision, entry);
        }
        if decision != "allowed" {
            let codes = wire.payload.get("codes").and_then(Json::as_array);
            let code = codes.and_then(|codes| codes.first()?.as_str()).map(str::to_owned);
            self.ended(wire, entry, "failed", code);
        }
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
            let shown = |text: &Option<String>| text.clone().unwrap_or_default();
            let handoff = ActiveHandoff {
                status: status.into(),
                mode: shown(&created.mode),
                source_agent: shown(&created.source_agent),
                target_agent: shown(&created.target_agent),
                route_key: shown(&created.route_key),
                last_updated_at: entry.consensus_timestamp.clone(),
                last_error_code: None,
            };
            let fragment = handoff.render();
            self.fragment_bytes += fragment.len() + created.handoff_id.len();
            let id_bytes = created.handoff_id.len();
            if let Some(before) = self.handoffs.insert(created.handoff_id.clone(), fragment) {
                self.fragment_bytes -= before.len() + id_bytes;
            }
            if status == "needs_approval" && created.delegation.is_some() {
                self.waiting.insert(created.handoff_id.clone(), created);
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
        let records = || self.routes.values().map(|(record, ..)| record);
        let declared = || records().filter(|record| record.declared.is_some());
        let least = declared().filter(|record| !record.blocked).min_by_key(|record| record.stage);
        let newest = records().max_by_key(|record| record.last_rollback.as_ref().map(|last| last.sequence));
        let newest = newest.filter(|record| record.last_rollback.is_some()).or(least);
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
                let routes = self.routes.iter().filter(|(_, (record, ..))| record.declared.is_some());
                let routes = routes.map(|(key, (_, _, promotion))| (key.as_str(), promotion.as_str()));
                write_promotion(text, least, routes);
            });
            members.with("rollback", |text| write_rollback(text, newest));
            members.with("routingTable", |text| {
                let routes = self.routes.iter();
                write_map(
                    text,
                    routes.filter_map(|(key, (_, route, _))| Some((key.as_str(), route.as_deref()?))),
                );
            });
            members.text("schemaVersion", "1.0");
            members.text("updatedAt", &self.updated_at);
        });
        text.push('\n');
    }
}
