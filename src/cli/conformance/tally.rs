//! What the ledger says, gathered entry by entry for the lines of the check.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value as Json;

use super::super::printer::counted;
use super::Line;
use super::promotion::Walk;
use crate::contract::TaskSpec;
use crate::json::{self, printable};
use crate::ledger::{Entry, Source};
use crate::limits;
use crate::policy::PolicySet;
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::wire::{Fact, Kind, Sender, StreamId};

pub(super) struct Tally {
    ledger: Source,
    correlation: Option<String>,
    /// Handoffs that are not decided yet, by their stream.
    open: HashMap<String, Handoff>,
    accepted: u64,
    /// TaskSpecs that are still kept, and were read again.
    read_again: u64,
    delegated: u64,
    /// The handoff that each message was spent on.
    messages: HashMap<String, String>,
    walks: BTreeMap<String, Walk>,
    /// Routes that handoffs of the cycle went along.
    used: BTreeSet<String>,
    evidence: u64,
    wrong: Wrong,
}

/// What was found wrong, for each line that rests on handoffs.
#[derive(Default)]
struct Wrong {
    contract: Vec<String>,
    e2e: Vec<String>,
    promotion: Vec<String>,
    delegation: Vec<String>,
    mention: Vec<String>,
    rollback: Vec<String>,
}

/// What `task.created` says.
struct Handoff {
    created: u64,
    payload: Json,
    /// It was accepted, and a person still has to answer.
    counted: bool,
}

impl Tally {
    pub(super) fn new(ledger: Source, correlation: Option<String>) -> Self {
        Self {
            ledger,
            correlation,
            open: HashMap::new(),
            accepted: 0,
            read_again: 0,
            delegated: 0,
            messages: HashMap::new(),
            walks: BTreeMap::new(),
            used: BTreeSet::new(),
            evidence: 0,
            wrong: Wrong::default(),
        }
    }

    /// Takes in the next entry.
    pub(super) fn take(&mut self, entry: &Entry) -> Result<(), String> {
        let bad = || format!("entry {} is no Wire event", entry.sequence);
        let wire: Json = serde_json::from_str(&entry.wire).map_err(|_| bad())?;
        let text = |pointer: &str| wire.pointer(pointer).and_then(Json::as_str);
        let stream_id = text("/stream/stream_id").ok_or_else(bad)?;
        let kind: Kind = text("/type").and_then(|kind| kind.parse().ok()).ok_or_else(bad)?;
        let payload = wire.get("payload").unwrap_or(&Json::Null);
        match StreamId::parse(stream_id).ok_or_else(bad)? {
            StreamId::Route { route_key } => {
                let fact = Fact {
                    kind,
                    sender: text("/sender").and_then(Sender::parse).ok_or_else(bad)?,
                    stream: StreamId::Route { route_key },
                    sequence: entry.sequence,
                    at: Timestamp::parse(&entry.consensus_timestamp).ok_or_else(bad)?,
                    payload,
                };
                self.evidence += u64::from(kind == Kind::PromotionEvidence);
                self.walks.entry(route_key.to_owned()).or_default().take(&fact);
            }
            StreamId::Handoff { .. } => {
                let other =
                    self.correlation.as_deref().is_some_and(|id| text("/stream/correlation_id") != Some(id));
                if !other {
                    self.handoff(entry, kind, stream_id, payload)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn handoff(&mut self, entry: &Entry, kind: Kind, stream_id: &str, payload: &Json) -> Result<(), String> {
        match kind {
            Kind::TaskCreated => {
                let handoff = Handoff { created: entry.sequence, payload: payload.clone(), counted: false };
                self.open.insert(stream_id.to_owned(), handoff);
            }
            Kind::GateDecided => {
                let Some(mut handoff) = self.open.remove(stream_id) else {
                    let why = format!("entry {} decides what was never created", entry.sequence);
                    self.wrong.contract.push(why);
                    return Ok(());
                };
                match payload.get("decision").and_then(Json::as_str) {
                    Some("allowed") => self.passed(&handoff, entry.sequence, payload, true)?,
                    Some("needs_approval") => {
                        self.passed(&handoff, entry.sequence, payload, false)?;
                        handoff.counted = true;
                        self.open.insert(stream_id.to_owned(), handoff);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A handoff that passed its gates.
    fn passed(
        &mut self,
        handoff: &Handoff,
        sequence: u64,
        decided: &Json,
        allowed: bool,
    ) -> Result<(), String> {
        let text = |name: &str| handoff.payload.get(name).and_then(Json::as_str);
        let id = printable(text("handoff_id").unwrap_or_default());
        let gates: Vec<&str> = strings(decided.get("gates"));
        let has = |gate: &str| gates.contains(&format!("{gate}:pass").as_str());
        let codes = strings(decided.get("codes"));
        if !codes.is_empty() || !has("G0") {
            self.wrong.contract.push(format!("`{id}` was accepted without passing G0, entry {sequence}"));
        }
        if !has("safety") {
            self.wrong
                .rollback
                .push(format!("`{id}` was accepted without a rollback plan, entry {sequence}"));
        }
        let route_key = text("route_key").unwrap_or_default();
        self.used.insert(route_key.to_owned());
        if allowed && text("mode") == Some("live") && !self.walks.get(route_key).is_some_and(Walk::is_live) {
            let why = format!("`{id}` was allowed in live while its route was not, entry {sequence}");
            self.wrong.promotion.push(why);
        }
        if handoff.counted {
            return Ok(());
        }
        self.accepted += 1;
        self.read_spec(handoff, &id)?;
        self.delegation(handoff, &id, &has);
        if let Some(message) = text("message_id") {
            if !has("D4") {
                self.wrong.mention.push(format!("`{id}` was accepted without passing D4, entry {sequence}"));
            }
            let before = self.messages.insert(message.to_owned(), id.clone());
            if let Some(before) = before.filter(|before| *before != id) {
                let message = printable(message);
                self.wrong.mention.push(format!("message {message} was spent on `{before}` and on `{id}`"));
            }
        }
        Ok(())
    }

    /// Reads the TaskSpec again, if it is still kept.
    fn read_spec(&mut self, handoff: &Handoff, id: &str) -> Result<(), String> {
        let digest = handoff.payload.get("task_spec_digest").and_then(Json::as_str).and_then(Digest::parse);
        let Some(digest) = digest else {
            self.wrong.contract.push(format!("`{id}` has no digest of its TaskSpec"));
            return Ok(());
        };
        let body = self.ledger.body(handoff.created, digest).map_err(|fault| fault.to_string())?;
        let Some(body) = body else { return Ok(()) };
        self.read_again += 1;
        let Ok(document) = json::read(body.as_bytes(), limits::TASK_SPEC) else {
            self.wrong.contract.push(format!("the TaskSpec of `{id}` cannot be read"));
            return Ok(());
        };
        if !TaskSpec::read(&document).1 {
            self.wrong.contract.push(format!("the TaskSpec of `{id}` is not valid"));
        }
        let actor = document.root().get("safety").and_then(|safety| safety.get("e2eActor")?.as_str());
        if !matches!(actor, Some("human" | "authorized-harness")) {
            let actor = printable(actor.unwrap_or("nobody"));
            self.wrong.e2e.push(format!("`{id}` names `{actor}` as its e2eActor"));
        }
        Ok(())
    }

    fn delegation(&mut self, handoff: &Handoff, id: &str, has: &dyn Fn(&str) -> bool) {
        let Some(delegation) = handoff.payload.get("delegation").filter(|facts| facts.is_object()) else {
            return;
        };
        self.delegated += 1;
        for (gate, what) in [("D1", "policy"), ("D2", "envelope"), ("D3", "risk")] {
            if !has(gate) {
                self.wrong.delegation.push(format!("`{id}` was accepted without passing {gate} {what}"));
            }
        }
        let text = |name: &str| delegation.get(name).and_then(Json::as_str);
        let mut wanted =
            vec!["policy_ref", "envelope_hash", "principal", "delegate_agent", "risk_classification"];
        if matches!(text("risk_classification"), Some("sensitive" | "live")) {
            wanted.push("authorization_ref");
        }
        for name in wanted.into_iter().filter(|name| text(name).is_none()) {
            self.wrong.delegation.push(format!("the audit of `{id}` has no {name}"));
        }
    }

    /// The lines, all but the state file's.
    pub(super) fn lines(self, policies: &PolicySet) -> Vec<Line> {
        let Wrong { contract, mut e2e, mut promotion, delegation, mention, mut rollback } = self.wrong;
        let everything = self.correlation.is_none();
        let routes: Vec<(&String, &Walk)> =
            self.walks.iter().filter(|(key, _)| everything || self.used.contains(*key)).collect();
        let (mut plans, mut passed) = (0, 0);
        for (key, walk) in &routes {
            e2e.extend(walk.bad_evidence.iter().map(|why| format!("{}: {why}", printable(key))));
            promotion.extend(walk.out_of_order.iter().map(|why| format!("{}: {why}", printable(key))));
            passed += walk.passed;
            match walk.plan(policies) {
                Ok(sound) => plans += u64::from(sound),
                Err(why) => rollback.extend(why.into_iter().map(|why| format!("{}: {why}", printable(key)))),
            }
        }
        let (accepted, read_again) = (self.accepted, self.read_again);
        vec![
            Line {
                what: "every handoff uses a valid TaskSpec",
                wrong: contract,
                rests_on: format!(
                    "{accepted} accepted, {read_again} of their TaskSpecs are kept and were read again"
                ),
            },
            Line {
                what: "E2E is a human's or an authorized harness's",
                wrong: e2e,
                rests_on: format!(
                    "{}, {}",
                    counted(read_again, "TaskSpec", "TaskSpecs"),
                    counted(self.evidence, "piece of evidence", "pieces of evidence")
                ),
            },
            Line {
                what: "promotion goes through gates G0 to G4",
                wrong: promotion,
                rests_on: format!(
                    "{}, {} passed in order",
                    counted(routes.len(), "route", "routes"),
                    counted(passed, "gate", "gates")
                ),
            },
            Line {
                what: "rollback is documented and tested",
                wrong: rollback,
                rests_on: format!(
                    "{} a plan whose dry run succeeds, and every handoff names one",
                    counted(plans, "route has", "routes have")
                ),
            },
            Line {
                what: "delegated-human-proxy has policy, envelope, risk and audit",
                wrong: delegation,
                rests_on: format!(
                    "{} accepted",
                    counted(self.delegated, "delegated handoff", "delegated handoffs")
                ),
            },
            Line {
                what: "gated mentions passed anti-loop, dedupe by messageId and TTL",
                wrong: mention,
                rests_on: format!("{} accepted", counted(self.messages.len(), "mention", "mentions")),
            },
        ]
    }
}

fn strings(value: Option<&Json>) -> Vec<&str> {
    value.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
}
