//! The reducer: ledger entries in, the state document out.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::event::{Created, Decided, Delegation, Event, Why, payload};
use super::fragments::{
    ActiveHandoff, Shown, render_promotion, render_route, write_map, write_promotion, write_rollback,
    write_shown,
};
use crate::ledger::{Entry, Head};
use crate::limits;
use crate::promotion::{ROLLED_BACK, RouteRecord};
use crate::proof::{object, write_object};
use crate::timestamp::Timestamp;
use crate::wire::{Fact, Sender, StreamId};

/// The state after some entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateView {
    head: Head,
    updated_at: String,
    /// Each with its serialized form, the name in front: publishing looks at nothing else.
    handoffs: BTreeMap<String, Shown>,
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

/// What was not told is shown as an empty text.
fn shown(text: Option<&str>) -> Cow<'_, str> {
    text.unwrap_or_default().into()
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
        let event = Event::of(entry)?;
        self.forget_ended(&entry.consensus_timestamp);
        match &*event.kind {
            "task.created" => self.created = Some(payload(entry)?),
            "gate.decided" if event.stream.stream_seq > 2 && event.stream.stream_id.starts_with("task:") => {
                self.settled(&event, entry);
            }
            "gate.decided" => self.decided(&event, entry),
            "task.claimed" | "task.started" | "artifact.ready" => self.moved(&event, entry, "running", None),
            "task.blocked" => self.moved(&event, entry, "blocked", None),
            // The third event of a stream is part of the decision; a later one gives the handoff back.
            "task.available" if event.stream.stream_seq > 3 => self.moved(&event, entry, "queued", None),
            "task.complete" => self.ended(&event, entry, "done", None),
            "task.failed" => {
                let code = payload::<Why>(entry).unwrap_or_default().code();
                let rolled_back = code.as_deref() == Some(ROLLED_BACK) && event.sender == "system";
                self.ended(&event, entry, if rolled_back { "rolled_back" } else { "failed" }, code);
            }
            "task.cancelled" => {
                if let Some(handoff_id) = event.handoff_id() {
                    self.waiting.remove(handoff_id);
                }
                self.ended(&event, entry, "failed", Some("TASK_CANCELLED".to_owned()));
            }
            _ => self.routed(&event, entry).ok_or_else(fault)?,
        }
        self.head = Head { sequence: entry.sequence, running_hash: entry.running_hash };
        self.updated_at.clone_from(&entry.consensus_timestamp);
        Ok(())
    }

    /// What an event in a route's stream makes of it.
    fn routed(&mut self, event: &Event<'_>, entry: &Entry) -> Option<()> {
        let stream = StreamId::parse(&event.stream.stream_id)?;
        let StreamId::Route { route_key } = stream else { return Some(()) };
        let said: Json = payload(entry).ok()?;
        let fact = Fact {
            kind: event.kind.parse().ok()?,
            sender: Sender::parse(&event.sender)?,
            stream,
            sequence: entry.sequence,
            at: Timestamp::parse(&entry.consensus_timestamp)?,
            payload: &said,
        };
        let (record, route, promotion) = self.routes.entry(route_key.to_owned()).or_default();
        record.take(&fact);
        *route = record.declared.as_ref().map(render_route);
        *promotion = render_promotion(record);
        Some(())
    }

    /// What was decided about a handoff that waited for a person.
    fn settled(&mut self, event: &Event<'_>, entry: &Entry) {
        let Some(handoff_id) = event.handoff_id() else { return };
        let Decided { decision } = payload(entry).unwrap_or_default();
        if let Some(created) = self.waiting.remove(handoff_id)
            && let Some(delegation) = &created.delegation
        {
            self.log_delegation(event, &created, delegation, &decision, entry);
        }
        if decision != "allowed" {
            let code = payload::<Why>(entry).unwrap_or_default().first_code();
            self.ended(event, entry, "failed", code);
        }
    }

    fn decided(&mut self, event: &Event<'_>, entry: &Entry) {
        // A refusal without a handoffId has no facts; the ledger has it, the state does not.
        let Some(created) = self.created.take() else { return };
        let Decided { decision } = payload(entry).unwrap_or_default();
        let status = match &*decision {
            "allowed" => Some("queued"),
            "needs_approval" => Some("needs_approval"),
            _ => None,
        };
        if let Some(delegation) = &created.delegation
            && status != Some("needs_approval")
        {
            self.log_delegation(event, &created, delegation, &decision, entry);
        }
        if let Some(status) = status {
            let handoff = ActiveHandoff {
                status: status.into(),
                mode: shown(created.mode.as_deref()),
                source_agent: shown(created.source_agent.as_deref()),
                target_agent: shown(created.target_agent.as_deref()),
                route_key: shown(created.route_key.as_deref()),
                last_updated_at: entry.consensus_timestamp.as_str().into(),
                last_error_code: None,
            };
            let fragment = handoff.show(&created.handoff_id);
            self.fragment_bytes += fragment.bytes();
            if let Some(before) = self.handoffs.insert(created.handoff_id.clone(), fragment) {
                self.fragment_bytes -= before.bytes();
            }
            if status == "needs_approval" && created.delegation.is_some() {
                self.waiting.insert(created.handoff_id.clone(), created);
            }
        }
    }

    /// What an event in a handoff's stream makes of it. One that is not shown any more stays so.
    fn moved(&mut self, event: &Event<'_>, entry: &Entry, status: &'static str, code: Option<String>) {
        let Some(handoff_id) = event.handoff_id() else { return };
        let Some(fragment) = self.handoffs.get_mut(handoff_id) else { return };
        let Some(mut handoff) = fragment.read() else { return };
        handoff.status = status.into();
        handoff.last_error_code = code;
        handoff.last_updated_at = entry.consensus_timestamp.as_str().into();
        let now = handoff.show(handoff_id);
        self.fragment_bytes = self.fragment_bytes - fragment.bytes() + now.bytes();
        *fragment = now;
    }

    /// The same for its last event; it is shown for a while longer.
    fn ended(&mut self, event: &Event<'_>, entry: &Entry, status: &'static str, code: Option<String>) {
        self.moved(event, entry, status, code);
        let at = Timestamp::parse(&entry.consensus_timestamp);
        if let (Some(handoff_id), Some(at)) = (event.handoff_id(), at) {
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
                self.fragment_bytes -= fragment.bytes();
            }
        }
    }

    /// The newest ones, of which refusals may take at most half: a flood of them pushes no decision out.
    fn log_delegation(
        &mut self,
        event: &Event<'_>,
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
            members.text("eventId", &event.wire_id);
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
    pub fn render_into(&self, text: &mut String) {
        text.reserve(self.bytes() + 4096);
        let records = || self.routes.values().map(|(record, ..)| record);
        let declared = || records().filter(|record| record.declared.is_some());
        let least = declared().filter(|record| !record.blocked).min_by_key(|record| record.stage);
        let newest = records().max_by_key(|record| record.last_rollback.as_ref().map(|last| last.sequence));
        let newest = newest.filter(|record| record.last_rollback.is_some()).or(least);
        write_object(text, |members| {
            members.with("activeHandoffs", |text| write_shown(text, self.handoffs.values()));
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
