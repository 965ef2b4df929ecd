//! Made-up ledgers, and what a reader should see of them, worked out without any table.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{AttemptRow, EntryRow, HandoffRow, Status};
use super::TOPIC;
use crate::ledger::{Entry, RunningHash};
use crate::proof::canonical_json;
use crate::timestamp::Timestamp;

/// Something that happens.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Submit(Submission),
    /// An event in the stream of an attempt that there is; `.1` picks which.
    Event(u8, u8, &'static str),
    /// The same attempt is decided once more, as an approval does.
    Again(u8, u8, &'static str),
    /// A refusal without a handoff of its own.
    Stranger(u8, Vec<&'static str>),
    PolicyLoaded,
    /// Something in the stream of a route.
    Declared(u8),
    /// Something in the gateway's own stream that names a route.
    Frozen(u8),
    /// A stream that looks like a handoff's, and is not.
    Message(u8),
}

#[derive(Debug, Clone)]
pub(super) struct Submission {
    pub(super) handoff: u8,
    pub(super) source: Option<u8>,
    pub(super) target: u8,
    pub(super) route: Option<u8>,
    pub(super) correlation: u8,
    pub(super) key: Option<u8>,
    pub(super) message: Option<u8>,
    pub(super) parent: Option<u8>,
    pub(super) decision: &'static str,
    pub(super) codes: Vec<&'static str>,
}

pub(super) const DECISIONS: [&str; 4] = ["allowed", "needs_approval", "denied", "expired"];
const CODES: [&str; 3] = ["A2A_ROUTE_UNKNOWN", "POLICY_AGENT_DENIED", "a \"code\", of somebody's"];
const EVENTS: [&str; 10] = [
    "approval.granted",
    "task.available",
    "task.claimed",
    "task.started",
    "artifact.ready",
    "task.blocked",
    "task.complete",
    "task.failed",
    "task.cancelled",
    "something.new",
];

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let codes = || prop::sample::subsequence(CODES.to_vec(), 0..=CODES.len());
    let few = || prop::option::weighted(0.8, 0..3u8);
    let submission = (0..6u8, few(), 0..3u8, few(), 0..4u8, few(), few(), few(), 0..4usize, codes())
        .prop_map(|(handoff, source, target, route, correlation, key, message, parent, decision, codes)| {
            let decision = DECISIONS[decision];
            let codes = if matches!(decision, "allowed" | "needs_approval") { Vec::new() } else { codes };
            Step::Submit(Submission {
                handoff,
                source,
                target,
                route,
                correlation,
                key,
                message,
                parent,
                decision,
                codes,
            })
        });
    let step = prop_oneof![
        4 => submission,
        4 => (0..6u8, any::<u8>(), prop::sample::select(&EVENTS[..])).prop_map(|(h, a, e)| Step::Event(h, a, e)),
        1 => (0..6u8, any::<u8>(), 0..4usize).prop_map(|(h, a, d)| Step::Again(h, a, DECISIONS[d])),
        1 => (0..5u8, codes()).prop_map(|(correlation, codes)| Step::Stranger(correlation, codes)),
        1 => Just(Step::PolicyLoaded),
        1 => (0..4u8).prop_map(Step::Declared),
        1 => (0..4u8).prop_map(Step::Frozen),
        1 => (0..3u8).prop_map(Step::Message),
    ];
    prop::collection::vec(step, 1..40)
}

/// A ledger, and what is to be seen of it.
#[derive(Default)]
pub(super) struct History {
    pub(super) entries: Vec<Entry>,
    pub(super) rows: Vec<EntryRow>,
    /// Whom each of them concerns: agents, and routes.
    pub(super) concerned: Vec<(Vec<String>, Vec<String>)>,
    handoffs: BTreeMap<String, Known>,
}

#[derive(Default)]
struct Known {
    first: u64,
    accepted: Option<usize>,
    /// Attempts that were accepted at some time.
    taken: Vec<usize>,
    attempts: Attempts,
}

/// Attempts, each with the sequences of its entries.
type Attempts = Vec<(AttemptRow, Vec<u64>)>;

impl History {
    pub(super) fn of(steps: &[Step]) -> Self {
        let mut history = Self::default();
        steps.iter().for_each(|step| history.step(step));
        history
    }

    pub(super) fn step(&mut self, step: &Step) {
        let gateway = format!("project:{TOPIC}");
        match step {
            Step::Submit(submission) => self.submit(submission),
            Step::Event(handoff, pick, kind) => {
                let failed = *kind == "task.failed";
                // What an agent says of routes is nothing to go by.
                let payload = if failed {
                    json!({"code": CODES[2], "message": "no"})
                } else {
                    json!({"route_key": route(3)})
                };
                let sender = format!("agent:{}", agent(pick % 4));
                let sender = if kind.starts_with("task.") { &sender } else { "human:agent-0" };
                self.later(&handoff_id(*handoff), *pick, kind, sender, payload);
            }
            Step::Again(handoff, pick, decision) => {
                let payload =
                    json!({"codes": [], "decision": decision, "gates": [], "policyDigest": "sha256:3"});
                self.later(&handoff_id(*handoff), *pick, "gate.decided", "system", payload);
            }
            Step::Stranger(correlation, codes) => {
                let payload = json!({"codes": codes, "decision": "denied", "gates": ["G0:fail"]});
                self.write("gate.decided", &gateway, &correlation_id(*correlation), payload);
            }
            Step::PolicyLoaded => {
                self.write("policy.loaded", &gateway, TOPIC, json!({"digest": "sha256:0", "decision": "no"}));
            }
            Step::Declared(n) => {
                let stream = format!("phase:{}", route(*n));
                self.write("route.declared", &stream, TOPIC, json!({"route_key": "another"}));
            }
            Step::Frozen(n) => self.write("freeze.set", &gateway, TOPIC, json!({"route_key": route(*n)})),
            Step::Message(n) => {
                let stream = format!("task:task_{n}:attempt:1");
                let payload = json!({"code": 7, "route_key": route(*n)});
                self.write_as(
                    &format!("agent:{}", agent(*n)),
                    "message.sent",
                    &stream,
                    &correlation_id(*n),
                    payload,
                );
            }
        }
    }

    fn submit(&mut self, submission: &Submission) {
        let id = handoff_id(submission.handoff);
        let attempt = self.handoffs.get(&id).map_or(0, |known| known.attempts.len()) + 1;
        let correlation = correlation_id(submission.correlation);
        let row = AttemptRow {
            attempt: attempt as u32,
            status: Status::Created,
            decision: None,
            codes: Vec::new(),
            source_agent: submission.source.map(agent),
            target_agent: Some(agent(submission.target)),
            delegated: !submission.handoff.is_multiple_of(3),
            fallback_agent: (submission.handoff % 3 == 2).then(|| agent(submission.target)),
            route_key: submission.route.map(route),
            mode: Some("dev".to_owned()),
            operation: Some("swap.prepare".to_owned()),
            correlation_id: correlation.clone(),
            parent_handoff_id: submission.parent.map(handoff_id),
            message_id: submission.message.map(message_id),
            created_sequence: self.entries.len() as u64 + 1,
            decided_sequence: None,
            updated_sequence: 0,
            updated_at: String::new(),
        };
        let named = json!({"fallback_agent": row.fallback_agent, "principal": "user:main"});
        let delegation = if row.delegated { named } else { Value::Null };
        let payload = json!({
            "attempt": attempt, "content_digest": content(submission), "delegation": delegation, "handoff_id": id,
            "idempotency_key": submission.key.map(key), "intent_hash": null, "message_id": row.message_id,
            "mode": row.mode, "operation": row.operation, "parent_handoff_id": row.parent_handoff_id,
            "route_key": row.route_key, "source_agent": row.source_agent, "target_agent": row.target_agent,
            "task_spec_digest": "sha256:1",
        });
        let first = row.created_sequence;
        let known = self.handoffs.entry(id.clone()).or_insert(Known { first, ..Known::default() });
        known.attempts.push((row, Vec::new()));
        let stream = format!("task:{id}:attempt:{attempt}");
        self.write("task.created", &stream, &correlation, payload);
        let payload = json!({
            "codes": submission.codes, "decision": submission.decision, "gates": ["G0:pass", "safety:pass"],
            "policyDigest": "sha256:2", "taskSpecDigest": "sha256:1",
        });
        self.write("gate.decided", &stream, &correlation, payload);
        let (last, payload) = match submission.decision {
            "allowed" => ("task.available", json!({})),
            "needs_approval" => ("approval.requested", json!({})),
            _ => ("task.rejected", json!({"codes": submission.codes})),
        };
        self.write(last, &stream, &correlation, payload);
    }

    fn later(&mut self, id: &str, pick: u8, kind: &str, sender: &str, payload: Value) {
        let Some(known) = self.handoffs.get(id) else { return };
        let attempt = usize::from(pick) % known.attempts.len();
        let correlation = known.attempts[attempt].0.correlation_id.clone();
        self.write_as(sender, kind, &format!("task:{id}:attempt:{}", attempt + 1), &correlation, payload);
    }

    fn write(&mut self, kind: &str, stream_id: &str, correlation_id: &str, payload: Value) {
        self.write_as("system", kind, stream_id, correlation_id, payload);
    }

    /// Writes an event, and notes what it means.
    fn write_as(&mut self, sender: &str, kind: &str, stream_id: &str, correlation_id: &str, payload: Value) {
        let codes: Vec<String> = match (&payload["codes"], &payload["code"]) {
            (Value::Array(codes), _) => codes.iter().map(|code| code.as_str().unwrap().to_owned()).collect(),
            (_, Value::String(code)) => vec![code.clone()],
            _ => Vec::new(),
        };
        let decision =
            if kind == "gate.decided" { payload["decision"].as_str().map(str::to_owned) } else { None };
        let wire_payload = payload.clone();
        let wire = json!({
            "payload": payload, "sender": sender, "stream": {"context_id": correlation_id,
            "correlation_id": correlation_id, "stream_id": stream_id, "stream_seq": 1}, "type": kind, "wire": "1.1",
        });
        let wire = String::from_utf8(canonical_json(&wire)).unwrap();
        let sequence = self.entries.len() as u64 + 1;
        let consensus_timestamp = time_of(sequence).to_nanoseconds();
        let before = self.entries.last().map_or(RunningHash::genesis(TOPIC), |entry| entry.running_hash);
        let running_hash = before.then(sequence, &consensus_timestamp, &wire);

        let place = stream_id.strip_prefix("task:hs_").and_then(|rest| rest.rsplit_once(":attempt:"));
        let place = place.map(|(id, attempt)| (format!("hs_{id}"), attempt.parse::<u32>().unwrap()));
        let mut agents: Vec<String> = sender.strip_prefix("agent:").map(str::to_owned).into_iter().collect();
        let mut routes: Vec<String> =
            stream_id.strip_prefix("phase:").map(str::to_owned).into_iter().collect();
        if stream_id.starts_with("project:") {
            routes.extend(wire_payload["route_key"].as_str().map(str::to_owned));
        }
        if let Some((id, attempt)) = &place {
            let known = self.handoffs.get_mut(id).unwrap();
            let index = *attempt as usize - 1;
            let (row, sequences) = &mut known.attempts[index];
            sequences.push(sequence);
            agents.extend(row.source_agent.iter().chain(&row.target_agent).cloned());
            routes.extend(row.route_key.clone());
            row.updated_sequence = sequence;
            row.updated_at.clone_from(&consensus_timestamp);
            row.status = super::super::status::after(kind).unwrap_or(row.status);
            if decision.is_some() {
                row.decision.clone_from(&decision);
                row.decided_sequence = Some(sequence);
            }
            if decision.is_some() || !codes.is_empty() {
                row.codes.clone_from(&codes);
            }
            if matches!(decision.as_deref(), Some("allowed" | "needs_approval"))
                && !known.taken.contains(&index)
            {
                known.taken.push(index);
                known.accepted = Some(index);
            }
        }
        self.concerned.push((agents, routes));
        let (handoff_id, attempt) = place.unzip();
        self.rows.push(EntryRow {
            sequence,
            consensus_timestamp: consensus_timestamp.clone(),
            kind: kind.to_owned(),
            stream_id: stream_id.to_owned(),
            handoff_id,
            attempt,
            correlation_id: correlation_id.to_owned(),
            decision,
            codes,
        });
        self.entries.push(Entry { sequence, consensus_timestamp, running_hash, wire });
    }

    /// Handoffs as they stand, each with its attempts, newest first.
    pub(super) fn handoffs(&self) -> Vec<(HandoffRow, Attempts)> {
        let mut all: Vec<_> = self.handoffs.iter().collect();
        all.sort_by_key(|(_, known)| std::cmp::Reverse(known.first));
        let row = |(id, known): (&String, &Known)| {
            let own = |row: &AttemptRow| (row.source_agent.clone(), row.correlation_id.clone());
            let owner = own(&known.attempts[0].0);
            let latest = known.attempts.iter().rposition(|(row, _)| own(row) == owner);
            let current = known.accepted.or(latest).unwrap();
            let row = HandoffRow {
                handoff_id: id.clone(),
                attempts: known.attempts.len() as u32,
                created_at: time_of(known.first).to_nanoseconds(),
                current: known.attempts[current].0.clone(),
            };
            (row, known.attempts.clone())
        };
        all.into_iter().map(row).collect()
    }
}

pub(super) fn time_of(sequence: u64) -> Timestamp {
    Timestamp::parse("2026-02-18T19:38:00.5Z").unwrap().plus_seconds(sequence as i64 * 7)
}

pub(super) fn handoff_id(n: u8) -> String {
    format!("hs_:attempt:{n}")
}

pub(super) fn correlation_id(n: u8) -> String {
    format!("corr \"{n}\" é")
}

pub(super) fn agent(n: u8) -> String {
    format!("agent-{n}")
}

pub(super) fn route(n: u8) -> String {
    format!("route-{n}.v1")
}

pub(super) fn message_id(n: u8) -> String {
    format!("10000{n}")
}

pub(super) fn key(n: u8) -> String {
    format!("idem_{n}")
}

/// A SHA-256 for some, and for others a text that is none.
pub(super) fn content(submission: &Submission) -> String {
    match submission.target {
        0 => format!("sha256:{:064x}", submission.handoff),
        1 => format!("sha256:{:064X}", u64::MAX),
        _ => "another digest".to_owned(),
    }
}
