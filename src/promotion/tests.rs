//! Routes whose streams are written and taken as the sequencer does it.

mod gates;
mod model;
mod plans;
mod properties;
mod reduction;
mod rollback;

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::*;
use crate::contract::Mode;
use crate::policy::{AgentNames, Route};
use crate::timestamp::Timestamp;
use crate::wire::{Fact, Kind, Sender, StreamId};

const KEY: &str = "crypto-sage.execution-plane.v1";

const RITA: Option<Operator<'_>> = Some(Operator { name: "rita", principal: Some("user:rita") });

/// Kind, sender, sequence, payload.
type Entry = (Kind, String, u64, Json);

/// A route's stream: what was written, and the record of it.
#[derive(Debug, Clone, Default)]
struct Stream {
    record: RouteRecord,
    sequence: u64,
    written: Vec<Arc<Entry>>,
}

fn at(sequence: u64) -> Timestamp {
    Timestamp::parse("2026-02-18T19:38:00Z").unwrap().plus_seconds(i64::try_from(sequence).unwrap())
}

fn take(record: &mut RouteRecord, (kind, sender, sequence, payload): &Entry) {
    record.take(&Fact {
        kind: *kind,
        sender: Sender::parse(sender).unwrap(),
        stream: StreamId::Route { route_key: KEY },
        sequence: *sequence,
        at: at(*sequence),
        payload,
    });
}

impl Stream {
    /// Something happened elsewhere in the ledger.
    fn elsewhere(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn write(&mut self, sender: &str, events: impl IntoIterator<Item = PhaseEvent>) {
        for event in events {
            let sender = match event.sender(Sender::parse(sender).unwrap()) {
                Sender::System => "system",
                _ => sender,
            };
            let entry = (event.kind(), sender.to_owned(), self.elsewhere(), event.payload());
            take(&mut self.record, &entry);
            self.written.push(Arc::new(entry));
        }
    }

    fn load(&mut self, table: Option<&Route>) -> Option<RouteChange> {
        let change = declare(&self.record, table);
        self.write("system", change.clone().into_iter().flat_map(RouteChange::events));
        change
    }

    fn declared(route: &Json) -> Self {
        let mut stream = Self::default();
        stream.load(Some(&route_of(route)));
        stream
    }

    /// Evaluates a gate and records it.
    fn decide(&mut self, sender: &str, findings: &Findings<'_>) -> GateOutcome {
        let answer = evaluate(&self.record, findings).unwrap();
        let events = record_gate(&self.record, &answer, 2).unwrap();
        self.write(sender, events);
        answer.outcome
    }

    /// Passes the next gate with what is enough for it.
    fn pass_next(&mut self) {
        let (answered, none) = (Probe::Answered { status: 200 }, Probe::NotConfigured);
        let outcome = match self.record.next_gate().unwrap() {
            PromotionGate::G0 => {
                let sequence = self.elsewhere();
                let decision = ContractDecision { handoff_id: "hs_contract".into(), sequence, codes: vec![] };
                self.decide("human:rita", &Findings::Contract(&[decision]))
            }
            PromotionGate::G1 => {
                self.decide("human:rita", &Findings::Routing(&Probes { primary: answered, fallback: none }))
            }
            PromotionGate::G2 => {
                let outcomes = [self.completed("hs_simulated")];
                self.decide(
                    "human:rita",
                    &Findings::Simulation(Simulation { needed: 1, outcomes: &outcomes }),
                )
            }
            PromotionGate::G3 => {
                let handoff = self.run("hs_e2e_0001");
                self.attach("human:rita", "hs_e2e_0001");
                self.decide(
                    "human:rita",
                    &Findings::E2e { handoffs: &[handoff], names: &AgentNames::default() },
                )
            }
            PromotionGate::G4 => {
                let plan = Ok(Plan { plan_ref: "plans/back.md".into(), form: PlanForm::Document });
                let names = AgentNames::default();
                self.decide("human:rita", &Findings::Live { operator: RITA, names: &names, plan: &plan })
            }
        };
        assert!(outcome.passed, "{outcome:?}");
    }

    fn up_to(route: &Json, gate: PromotionGate) -> Self {
        let mut stream = Self::declared(route);
        while stream.record.last_gate_passed() < Some(gate) {
            stream.pass_next();
        }
        stream
    }

    fn completed(&mut self, handoff_id: &str) -> SimulatedOutcome {
        let (accepted, ended) = (self.elsewhere(), self.elsewhere());
        let end = SimulatedEnd::Completed { side_effects: vec![] };
        SimulatedOutcome { handoff_id: handoff_id.into(), accepted, ended, end }
    }

    fn run(&mut self, handoff_id: &str) -> E2eHandoff {
        E2eHandoff {
            handoff_id: handoff_id.into(),
            mode: Some(Mode::Simulated),
            completed: Some(self.elsewhere()),
            source_agent: "router".into(),
            target_agent: "worker".into(),
            claimed_by: Some("worker".into()),
            e2e_actor: "authorized-harness".into(),
            plan_ref: Some("plans/of-the-handoff.md".into()),
        }
    }

    fn attach(&mut self, sender: &str, handoff_id: &str) {
        self.attach_as(sender, Voucher::default(), handoff_id);
    }

    fn attach_as(&mut self, sender: &str, voucher: Voucher, handoff_id: &str) {
        let attached = Attached { run_id: Some("run_1".into()), ..Attached::default() };
        self.write(sender, [PhaseEvent::Evidence { handoff_id: handoff_id.into(), attached, voucher }]);
    }

    fn roll_back(&mut self, block: Option<bool>, in_flight: &[&str]) -> RollbackPlan {
        let in_flight: Vec<String> = in_flight.iter().map(|id| (*id).to_owned()).collect();
        let ask = RollbackAsk {
            by: RollbackBy::Operator("rita".into()),
            block,
            reason: "a wrong amount".into(),
            code: None,
            handoff_id: None,
        };
        let plan = plan_rollback(&self.record, &ask, &in_flight);
        self.write("human:rita", plan.events());
        plan
    }

    fn replayed(&self) -> RouteRecord {
        let mut record = RouteRecord::default();
        self.written.iter().for_each(|entry| take(&mut record, entry));
        record
    }
}

fn route_of(route: &Json) -> Route {
    serde_json::from_value(route.clone()).unwrap()
}

/// A route with all that the gates ask for.
fn worker() -> Json {
    json!({
        "capability": "work",
        "primaryAgentId": "worker",
        "probeUrl": "http://127.0.0.1:9/health",
        "rollbackPlanRef": "plans/back.md",
    })
}

fn with(mut route: Json, change: Json) -> Json {
    for (name, value) in change.as_object().unwrap() {
        match value {
            Json::Null => drop(route.as_object_mut().unwrap().shift_remove(name)),
            value => drop(route.as_object_mut().unwrap().insert(name.clone(), value.clone())),
        }
    }
    route
}
