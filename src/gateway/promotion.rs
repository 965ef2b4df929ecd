//! What the gates of promotion rest on, gathered: from the views and the ledger, from the policy set, and by asking the
//! agents themselves.
//!
//! A hand: it finds out and hands over; what follows from it is `promotion`'s to say, and recording it is the engine's.
//! Only agents that the route's definition in force names are asked, and nothing they answer is read but the status.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;

use super::Gateway;
use crate::authorization::Person;
use crate::contract::{Mode, Word as _};
use crate::engine::{Asking, EngineFault, RouteFault, Routed};
use crate::limits;
use crate::policy::{AgentNames, PolicySet, Route};
use crate::promotion::{
    ContractDecision, E2eHandoff, Findings, GateAnswer, NotNow, Operator, Plan, PlanFault, Probe, Probes,
    PromotionGate, RouteRecord, SimulatedEnd, SimulatedOutcome, Simulation, Stage, evaluate, may_ask,
    read_plan,
};
use crate::proof::Digest;
use crate::settings;
use crate::timestamp::Timestamp;
use crate::views::{
    AttemptRow, Cursor, EntryFilter, EntryRow, HandoffFilter, HandoffRow, Page, Reader, ViewsFault,
};
use crate::wire::{Kind, State};

/// Evaluates the gates of routes.
#[derive(Debug)]
pub struct Promoter<'g> {
    gateway: &'g Gateway,
    policies: Arc<PolicySet>,
    simulated_runs: usize,
    probe_timeout: Duration,
}

/// What is asked about a gate.
#[derive(Debug, Clone)]
pub struct GateAsk {
    pub route_key: String,
    pub gate: PromotionGate,
    /// The handoff that it is to rest on; any, if none is named.
    pub handoff_id: Option<String>,
    pub reason: Option<String>,
}

/// A gate that was decided, and the route as it is then.
#[derive(Debug, Clone)]
pub struct GateDecision {
    pub answer: GateAnswer,
    pub routed: Routed,
}

/// Why a gate was not decided. Nothing was recorded.
#[derive(Debug)]
pub enum Undecided {
    NotNow(NotNow),
    Route(RouteFault),
    Look(LookFault),
    Engine(EngineFault),
}

/// Why nothing could be found out.
#[derive(Debug)]
pub enum LookFault {
    /// The views do not show what is durable.
    Behind,
    Views(ViewsFault),
    Ledger(String),
    /// More has happened than somebody who only looks is told.
    TooMuch,
}

/// A handoff that somebody may have evidence of, and its route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndToEnd {
    pub route_key: Option<String>,
    pub handoff: E2eHandoff,
}

/// What was found out for one gate.
enum Gathered {
    Contract(Vec<ContractDecision>),
    Routing(Probes),
    Simulation(Vec<SimulatedOutcome>),
    E2e(Vec<E2eHandoff>),
    Live(Result<Plan, PlanFault>),
}

impl From<ViewsFault> for LookFault {
    fn from(fault: ViewsFault) -> Self {
        Self::Views(fault)
    }
}

impl From<LookFault> for Undecided {
    fn from(fault: LookFault) -> Self {
        Self::Look(fault)
    }
}

impl<'g> Promoter<'g> {
    /// `policies` are the ones in force as the files have them; what a rollback restored over them counts before.
    pub fn new(gateway: &'g Gateway, policies: Arc<PolicySet>, settings: &settings::Promotion) -> Self {
        let policies = gateway.engine().policies_over(&policies);
        let (simulated_runs, probe_timeout) = (settings.simulated_runs, settings.probe_timeout);
        Self { gateway, policies, simulated_runs, probe_timeout }
    }

    /// What would come of the next gate, as things stand. No agent is asked, and nothing is recorded.
    pub fn glance(
        &self,
        route_key: &str,
        record: &RouteRecord,
        gate: PromotionGate,
    ) -> Result<Result<GateAnswer, NotNow>, LookFault> {
        if let Err(not_now) = may_ask(record, gate) {
            return Ok(Err(not_now));
        }
        let ask = GateAsk { route_key: route_key.to_owned(), gate, handoff_id: None, reason: None };
        self.catch_up()?;
        let gathered = self.gather(&ask, record, not_asked(), Some(limits::GATE_GLANCE_ENTRIES))?;
        Ok(evaluate(record, &self.findings(&gathered, None)))
    }

    /// Evaluates a gate and has the answer recorded. Where a handoff on the route ends meanwhile, it looks again.
    pub fn decide(&self, ask: &GateAsk, by: &Asking) -> Result<GateDecision, Undecided> {
        let mut probes: Option<(Digest, Probes)> = None;
        for _ in 0..limits::GATE_TRIES_MAX {
            // The head comes first: what the record says beyond it, the engine finds out when it records the answer.
            let as_of = self.catch_up()?;
            let record =
                self.gateway.engine().route(&ask.route_key).ok_or(Undecided::Route(RouteFault::Unknown))?;
            may_ask(&record, ask.gate).map_err(Undecided::NotNow)?;
            // Agents are asked once for each definition, however often the rest is looked at.
            if let (PromotionGate::G1, Some(definition)) = (ask.gate, record.definition())
                && probes.as_ref().is_none_or(|(of, _)| *of != definition.whole_digest())
            {
                let answered = self.probe(&definition.route, record.stage);
                probes = Some((definition.whole_digest(), answered));
            }
            let asked = probes.as_ref().map_or_else(not_asked, |(_, asked)| asked.clone());
            let gathered = self.gather(ask, &record, asked, None)?;
            let findings = self.findings(&gathered, by.person());
            let mut answer = evaluate(&record, &findings).map_err(Undecided::NotNow)?;
            answer.reason.clone_from(&ask.reason);
            let recorded = self
                .gateway
                .engine()
                .decide_gate(ask.route_key.clone(), answer.clone(), as_of, by.clone())
                .map_err(Undecided::Engine)?;
            match recorded {
                Ok(routed) => return Ok(GateDecision { answer, routed }),
                Err(RouteFault::Moved) => {}
                Err(other) => return Err(Undecided::Route(other)),
            }
        }
        Err(Undecided::Route(RouteFault::Moved))
    }

    /// A handoff as evidence of an end-to-end run would need it; nothing if there is none.
    pub fn end_to_end(&self, handoff_id: &str) -> Result<Option<EndToEnd>, LookFault> {
        self.catch_up()?;
        self.read_end_to_end(&self.gateway.reader()?, handoff_id)
    }

    /// What agents are called now.
    pub fn names(&self) -> &AgentNames {
        self.policies.names()
    }

    /// As the gate takes it, where this person asks.
    fn findings<'f>(&'f self, gathered: &'f Gathered, asks: Option<&'f Person>) -> Findings<'f> {
        let names = self.policies.names();
        match gathered {
            Gathered::Contract(decisions) => Findings::Contract(decisions),
            Gathered::Routing(probes) => Findings::Routing(probes),
            Gathered::Simulation(outcomes) => {
                Findings::Simulation(Simulation { needed: self.simulated_runs, outcomes })
            }
            Gathered::E2e(handoffs) => Findings::E2e { handoffs, names },
            Gathered::Live(plan) => {
                let operator = asks.map(|by| Operator { name: by.name(), principal: by.principal() });
                Findings::Live { operator, names, plan }
            }
        }
    }

    /// Waits until the views show all that is durable now, and says up to where that is.
    fn catch_up(&self) -> Result<u64, LookFault> {
        let head = self.gateway.engine().head();
        let patience = Duration::from_millis(limits::VIEW_WAIT_MS);
        if self.gateway.views().wait_for(head, patience) { Ok(head) } else { Err(LookFault::Behind) }
    }

    fn gather(
        &self,
        ask: &GateAsk,
        record: &RouteRecord,
        probes: Probes,
        entries_max: Option<usize>,
    ) -> Result<Gathered, LookFault> {
        let reader = self.gateway.reader()?;
        Ok(match ask.gate {
            PromotionGate::G0 => Gathered::Contract(contract(&reader, ask)?),
            PromotionGate::G1 => Gathered::Routing(probes),
            PromotionGate::G2 => {
                Gathered::Simulation(self.simulated(&reader, &ask.route_key, record, entries_max)?)
            }
            PromotionGate::G3 => Gathered::E2e(self.run(&reader, ask, record)?),
            PromotionGate::G4 => Gathered::Live(read_plan(self.policies.references(), record.plan_ref())),
        })
    }

    /// Asks the agents of the route whether they are there, in the mode that it has reached.
    fn probe(&self, route: &Route, stage: Stage) -> Probes {
        let ask = |url: &Option<String>| match url {
            Some(url) => probe(url, stage, self.probe_timeout),
            None => Probe::NotConfigured,
        };
        let fallback = match route.critical {
            true => ask(&route.fallback_probe_url),
            false => Probe::NotConfigured,
        };
        Probes { primary: ask(&route.probe_url), fallback }
    }

    /// How accepted simulated handoffs on the route have ended since G1.
    fn simulated(
        &self,
        reader: &Reader,
        route_key: &str,
        record: &RouteRecord,
        entries_max: Option<usize>,
    ) -> Result<Vec<SimulatedOutcome>, LookFault> {
        let Some(since) = record.pass(PromotionGate::G1) else { return Ok(Vec::new()) };
        let mut outcomes = Vec::new();
        let mut looked = 0;
        for kind in [Kind::TaskComplete, Kind::TaskFailed, Kind::TaskCancelled] {
            let mut cursor = None;
            loop {
                let Page { rows, next } = ends(reader, kind, since.at, cursor)?;
                looked += rows.len();
                if entries_max.is_some_and(|max| looked > max) {
                    return Err(LookFault::TooMuch);
                }
                for EntryRow { handoff_id, sequence: ended, .. } in rows {
                    let Some(handoff_id) = handoff_id else { continue };
                    if let Some(accepted) = simulated_on(reader, route_key, &handoff_id)? {
                        let end = self.end(kind, ended)?;
                        outcomes.push(SimulatedOutcome { handoff_id, accepted, ended, end });
                    }
                }
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(outcomes)
    }

    fn end(&self, kind: Kind, sequence: u64) -> Result<SimulatedEnd, LookFault> {
        let wire = self.wire(sequence)?;
        Ok(match kind {
            Kind::TaskComplete => {
                let effects = wire.pointer("/payload/side_effects").and_then(Json::as_array);
                let side_effects = effects.into_iter().flatten().map(shown).collect();
                SimulatedEnd::Completed { side_effects }
            }
            Kind::TaskFailed => {
                SimulatedEnd::Failed { code: text(&wire, "/payload/code").unwrap_or_default() }
            }
            _ => SimulatedEnd::Cancelled,
        })
    }

    /// The handoffs on the route that evidence is attached to.
    fn run(
        &self,
        reader: &Reader,
        ask: &GateAsk,
        record: &RouteRecord,
    ) -> Result<Vec<E2eHandoff>, LookFault> {
        let wanted = |id: &&str| ask.handoff_id.as_deref().is_none_or(|only| only == *id);
        let ids: BTreeSet<&str> =
            record.evidence.iter().map(|evidence| evidence.handoff_id.as_str()).filter(wanted).collect();
        let mut handoffs = Vec::new();
        for id in ids {
            let found = self.read_end_to_end(reader, id)?;
            let on_route = |one: &EndToEnd| one.route_key.as_deref() == Some(&ask.route_key);
            handoffs.extend(found.filter(on_route).map(|one| one.handoff));
        }
        Ok(handoffs)
    }

    fn read_end_to_end(&self, reader: &Reader, handoff_id: &str) -> Result<Option<EndToEnd>, LookFault> {
        let Some(detail) = reader.handoff(handoff_id)? else { return Ok(None) };
        let current = &detail.handoff.current;
        let own = |(row, _): &&(AttemptRow, Vec<u64>)| row.attempt == current.attempt;
        let sequences = detail.attempts.iter().find(own).map(|(_, sequences)| sequences.as_slice());
        let mut claimed_by = None;
        for sequence in sequences.unwrap_or_default() {
            let entry = reader.entry(*sequence)?;
            if entry.is_some_and(|entry| entry.kind == Kind::TaskClaimed.as_str()) {
                claimed_by = text(&self.wire(*sequence)?, "/sender")
                    .and_then(|sender| sender.strip_prefix("agent:").map(str::to_owned));
            }
        }
        let spec = self.task_spec(current)?;
        let handoff = E2eHandoff {
            handoff_id: handoff_id.to_owned(),
            mode: current.mode.as_deref().and_then(Mode::from_word),
            completed: (current.status == State::Completed).then_some(current.updated_sequence),
            source_agent: current.source_agent.clone().unwrap_or_default(),
            target_agent: current.target_agent.clone().unwrap_or_default(),
            claimed_by,
            e2e_actor: text(&spec, "/safety/e2eActor").unwrap_or_default(),
            plan_ref: text(&spec, "/rollback/planRef"),
        };
        Ok(Some(EndToEnd { route_key: current.route_key.clone(), handoff }))
    }

    /// The TaskSpec as it was submitted; null once it is no longer kept, and then it says nothing.
    fn task_spec(&self, row: &AttemptRow) -> Result<Json, LookFault> {
        let created = self.wire(row.created_sequence)?;
        let digest = text(&created, "/payload/task_spec_digest").as_deref().and_then(Digest::parse);
        let Some(digest) = digest else { return Ok(Json::Null) };
        let body = self.gateway.ledger().body(row.created_sequence, digest).map_err(unread)?;
        Ok(body.and_then(|body| serde_json::from_str(&body).ok()).unwrap_or_default())
    }

    /// The event of an entry.
    fn wire(&self, sequence: u64) -> Result<Json, LookFault> {
        let entry = self.gateway.ledger().entry(sequence).map_err(unread)?;
        let entry = entry.ok_or_else(|| LookFault::Ledger(format!("entry {sequence} is missing")))?;
        serde_json::from_str(&entry.wire).map_err(|error| LookFault::Ledger(error.to_string()))
    }
}

fn not_asked() -> Probes {
    Probes { primary: Probe::NotAsked, fallback: Probe::NotAsked }
}

/// What was decided about handoffs on the route: the newest that were allowed, and the newest of all.
fn contract(reader: &Reader, ask: &GateAsk) -> Result<Vec<ContractDecision>, LookFault> {
    let any = HandoffFilter {
        route: Some(&ask.route_key),
        handoff_id: ask.handoff_id.as_deref(),
        ..HandoffFilter::default()
    };
    let mut decisions = Vec::new();
    for filter in [HandoffFilter { decision: Some("allowed"), ..any }, any] {
        for row in reader.handoffs(&filter, None, limits::GATE_HANDOFFS_MAX)?.rows {
            let Some(sequence) = row.current.decided_sequence else { continue };
            // The row's codes may be of what happened since; the decision has its own.
            if let Some(entry) = reader.entry(sequence)? {
                let HandoffRow { handoff_id, .. } = row;
                decisions.push(ContractDecision { handoff_id, sequence, codes: entry.codes });
            }
        }
    }
    Ok(decisions)
}

/// A page of entries with which handoffs ended.
fn ends(
    reader: &Reader,
    kind: Kind,
    since: Timestamp,
    cursor: Option<Cursor>,
) -> Result<Page<EntryRow>, LookFault> {
    let filter = EntryFilter { kind: Some(kind.as_str()), from: Some(since), ..EntryFilter::default() };
    Ok(reader.entries(&filter, cursor, limits::VIEW_PAGE_ROWS_MAX)?)
}

/// The entry with which it was accepted, if it is a simulated handoff on the route.
fn simulated_on(reader: &Reader, route_key: &str, handoff_id: &str) -> Result<Option<u64>, LookFault> {
    let filter = HandoffFilter {
        route: Some(route_key),
        handoff_id: Some(handoff_id),
        decision: Some("allowed"),
        ..HandoffFilter::default()
    };
    let found = reader.handoffs(&filter, None, 1)?.rows.into_iter().next();
    let simulated = found.filter(|row| row.current.mode.as_deref() == Some(Stage::Simulated.as_str()));
    Ok(simulated.and_then(|row| row.current.decided_sequence))
}

/// Asks one agent. Nobody on the way may point elsewhere, and of the answer only its status is looked at.
fn probe(url: &str, stage: Stage, patience: Duration) -> Probe {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(patience))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(None)
        .user_agent(concat!("handoffd/", env!("CARGO_PKG_VERSION")))
        .build();
    let agent: ureq::Agent = config.into();
    match agent.get(url).header("handoff-mode", stage.as_str()).call() {
        Ok(response) => Probe::Answered { status: response.status().as_u16() },
        Err(error) => Probe::Silent { why: error.to_string() },
    }
}

fn shown(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(value: &Json, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Json::as_str).map(str::to_owned)
}

fn unread(fault: impl std::fmt::Display) -> LookFault {
    LookFault::Ledger(fault.to_string())
}
