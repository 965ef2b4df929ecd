//! The gates: what is missing, and whether an answer may still be recorded.

use std::collections::BTreeMap;

use super::event::PhaseEvent;
use super::findings::{
    ContractDecision, Findings, Operator, Probe, Probes, SimulatedEnd, SimulatedOutcome, Simulation,
};
use super::plan::{Plan, PlanFault};
use super::record::RouteRecord;
use super::rehearse::{DryOutcome, dry_run};
use super::stage::{PromotionGate, Stage};
use super::vouching::end_to_end;
use crate::json::printable;
use crate::limits;
use crate::policy::{AgentNames, Route};
use crate::proof::Digest;

/// What came of evaluating a gate, and what it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateAnswer {
    pub gate: PromotionGate,
    pub outcome: GateOutcome,
    /// The rollback epoch, what the gates belong to, the whole definition, and the entry with which the passed gates last
    /// changed, as they were.
    pub epoch: u64,
    pub digest: Digest,
    pub definition: Digest,
    pub passes_changed: u64,
    /// The handoff that it rests on.
    pub handoff_id: Option<String>,
    /// Of G3 the plan that its handoff names, of G4 the one whose dry run succeeded.
    pub plan_ref: Option<String>,
    /// What whoever asked for it has to say about it.
    pub reason: Option<String>,
}

/// Passed or not, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateOutcome {
    pub passed: bool,
    /// What is missing; nothing if it is passed.
    pub missing: Vec<Missing>,
    /// The ledger entries that it rests on.
    pub evidence: Vec<u64>,
}

/// One thing that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub what: String,
    pub hint: String,
}

/// Why a gate is not evaluated at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotNow {
    /// There is no such route, or the ledger does not have its definition yet.
    Undeclared,
    /// It was rolled back and blocked: somebody lifts that first.
    Blocked,
    /// It is not its turn; which one's it is, or none if the route is live.
    OutOfOrder { next: Option<PromotionGate> },
}

/// What happened between evaluating a gate and recording it, so that it is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Superseded {
    /// The route was removed.
    Undeclared,
    /// Its definition was edited: what was looked at (a probe, a fallback, a plan) may not be what it is now.
    Redefined,
    /// It was rolled back.
    RolledBack { epoch: u64 },
    /// It is blocked.
    Blocked,
    /// Another gate was decided.
    Decided,
}

/// May this gate be evaluated now? It must be the next one, or one before that, as long as the route is not live: passing
/// a gate again starts its window anew, and what lies behind it must be earned again.
pub fn may_ask(record: &RouteRecord, gate: PromotionGate) -> Result<(), NotNow> {
    if record.definition().is_none() {
        return Err(NotNow::Undeclared);
    }
    if record.blocked {
        return Err(NotNow::Blocked);
    }
    match record.next_gate() {
        Some(next) if gate <= next && record.stage != Stage::Live => Ok(()),
        next => Err(NotNow::OutOfOrder { next }),
    }
}

/// Evaluates a gate from what was found out.
pub fn evaluate(record: &RouteRecord, findings: &Findings<'_>) -> Result<GateAnswer, NotNow> {
    let gate = findings.gate();
    may_ask(record, gate)?;
    let Some(definition) = record.definition() else { return Err(NotNow::Undeclared) };
    let mut found = Found::default();
    match *findings {
        Findings::Contract(decisions) => contract(record, decisions, &mut found),
        Findings::Routing(probes) => routing(&definition.route, probes, &mut found),
        Findings::Simulation(simulation) => simulated(record, simulation, &mut found),
        Findings::E2e { handoffs, names } => end_to_end(record, handoffs, names, &mut found),
        Findings::Live { operator, names, plan } => {
            approved(&definition.route, operator, names, &mut found);
            live(record, plan, &mut found);
        }
    }
    let Found { mut missing, evidence, handoff_id, plan_ref } = found;
    missing.truncate(limits::GATE_MISSING_MAX);
    Ok(GateAnswer {
        gate,
        outcome: GateOutcome { passed: missing.is_empty(), missing, evidence },
        epoch: record.epoch,
        digest: definition.digest,
        definition: definition.whole_digest(),
        passes_changed: record.passes_changed,
        handoff_id,
        plan_ref,
        reason: None,
    })
}

/// May an answer still be recorded, as the route now is?
///
/// INVARIANT (rollback wins): a rollback, another definition or another gate in between, and it may not.
pub fn may_record(now: &RouteRecord, answer: &GateAnswer) -> Result<(), Superseded> {
    if now.epoch != answer.epoch {
        return Err(Superseded::RolledBack { epoch: now.epoch });
    }
    match now.definition() {
        None => return Err(Superseded::Undeclared),
        Some(definition) if definition.whole_digest() != answer.definition => {
            return Err(Superseded::Redefined);
        }
        Some(_) => {}
    }
    if now.blocked {
        return Err(Superseded::Blocked);
    }
    if now.passes_changed != answer.passes_changed || may_ask(now, answer.gate).is_err() {
        return Err(Superseded::Decided);
    }
    Ok(())
}

/// What is to be written for an answer, in one group: that the gate was decided, and the stage that it opens.
pub fn record_gate(
    now: &RouteRecord,
    answer: &GateAnswer,
    canary_of: u64,
) -> Result<Vec<PhaseEvent>, Superseded> {
    may_record(now, answer)?;
    let mut events = vec![PhaseEvent::Decided(Box::new(answer.clone()))];
    let opens = match answer.gate {
        PromotionGate::G1 if now.stage == Stage::Dev => Some((Stage::Simulated, None)),
        PromotionGate::G4 => Some((Stage::Live, Some(canary_of))),
        _ => None,
    };
    if let Some((to, canary_of)) = opens.filter(|_| answer.outcome.passed) {
        let (from, gate, epoch) = (now.stage, answer.gate, now.epoch);
        events.push(PhaseEvent::Advanced { from, to, gate, epoch, canary_of });
    }
    Ok(events)
}

#[derive(Default)]
pub(super) struct Found {
    missing: Vec<Missing>,
    pub(super) evidence: Vec<u64>,
    pub(super) handoff_id: Option<String>,
    pub(super) plan_ref: Option<String>,
}

impl Found {
    pub(super) fn lacks(&mut self, what: impl Into<String>, hint: impl Into<String>) {
        self.missing.push(Missing { what: what.into(), hint: hint.into() });
    }
}

/// The codes of what the TaskSpec's schema states beside its shape (`$defs/rules`): whoever has one of them sent a TaskSpec
/// that is not valid.
const SCHEMA_RULES: [&str; 7] = [
    "POLICY_APPROVAL_REQUIRED",
    "POLICY_AUTHORIZATION_MISSING",
    "POLICY_CONFIRMATION_REQUIRED",
    "POLICY_MENTION_NOT_DELEGATED",
    "POLICY_ROLLBACK_PLAN_MISSING",
    "POLICY_SELF_TEST",
    "POLICY_SIDE_EFFECTS",
];

/// Does this code say that a TaskSpec does not keep its contract?
pub(crate) fn breaks_contract(code: &str) -> bool {
    ["A2A_", "EXECUTION_SCHEMA_"].iter().any(|family| code.starts_with(family))
        || SCHEMA_RULES.contains(&code)
}

/// G0: a handoff on this route passed every contract check. One that was refused for another reason did, too.
fn contract(record: &RouteRecord, decisions: &[ContractDecision], found: &mut Found) {
    let since = record.declared.as_ref().map_or(u64::MAX, |declared| declared.since);
    let is_sound = |decision: &&ContractDecision| !decision.codes.iter().any(|code| breaks_contract(code));
    let sound = decisions
        .iter()
        .filter(|decision| decision.sequence > since)
        .filter(is_sound)
        .max_by_key(|decision| decision.sequence);
    match sound {
        Some(decision) => {
            found.evidence.push(decision.sequence);
            found.handoff_id = Some(decision.handoff_id.clone());
        }
        None => found.lacks(
            "no handoff on this route has passed every contract check since it was defined",
            "submit a TaskSpec for the route in mode `dev`; `handoffd check` says what is wrong with one",
        ),
    }
}

/// G1: the primary answers; a critical capability has a fallback, which answers too if it can be asked.
fn routing(route: &Route, probes: &Probes, found: &mut Found) {
    let primary = printable(&route.primary_agent_id);
    match (&route.probe_url, &probes.primary) {
        (None, _) | (_, Probe::NotConfigured) => found.lacks(
            "the route has no `probeUrl`, so nobody can tell whether the primary answers",
            "give the route a `probeUrl` in policies/routes.json",
        ),
        (_, probe) => answers(&format!("the primary `{primary}`"), probe, found),
    }
    match &route.fallback_agent_id {
        None if route.critical => found.lacks(
            "the capability is critical and the route has no fallback",
            "give the route a `fallbackAgentId` in policies/routes.json",
        ),
        Some(fallback) if route.critical && route.fallback_probe_url.is_some() => {
            answers(&format!("the fallback `{}`", printable(fallback)), &probes.fallback, found);
        }
        _ => {}
    }
}

fn answers(who: &str, probe: &Probe, found: &mut Found) {
    match probe {
        Probe::Answered { status: 200..=299 } => {}
        Probe::Answered { status } => {
            found.lacks(format!("{who} answered {status}"), "it must answer the probe with 2xx");
        }
        Probe::Silent { why } => found.lacks(
            format!("{who} did not answer: {}", printable(why)),
            "it must answer the probe with 2xx, in time",
        ),
        Probe::NotConfigured | Probe::NotAsked => {
            found.lacks(
                format!("{who} has not been asked yet"),
                "evaluate the gate, and it is asked at its probe URL",
            );
        }
    }
}

/// G2: enough simulated handoffs accepted and completed since G1, and nothing among the outcomes that speaks against it.
fn simulated(record: &RouteRecord, simulation: Simulation<'_>, found: &mut Found) {
    let window = record.simulation_window().unwrap_or(u64::MAX);
    let since = || simulation.outcomes.iter().filter(move |outcome| outcome.ended > window);
    // A handoff counts once.
    let completed: BTreeMap<&str, u64> = since()
        .filter(|outcome| outcome.accepted > window && outcome.end.is_clean())
        .map(|outcome| (outcome.handoff_id.as_str(), outcome.ended))
        .collect();
    if completed.len() < simulation.needed {
        let (done, needed) = (completed.len(), simulation.needed);
        found.lacks(
            format!("{done} of {needed} simulated handoffs were accepted and completed since G1"),
            "submit TaskSpecs in mode `simulated` and have the target report them complete",
        );
    }
    for SimulatedOutcome { handoff_id, end, .. } in since() {
        let id = printable(handoff_id);
        match end {
            SimulatedEnd::Completed { side_effects } if !side_effects.is_empty() => found.lacks(
                format!("`{id}` reported a side effect: `{}`", printable(&side_effects.join(", "))),
                "simulated work changes nothing outside; repair it, then pass G1 again to start anew",
            ),
            SimulatedEnd::Failed { code } if speaks_against(code) => found.lacks(
                format!("`{id}` failed with {}", printable(code)),
                "repair the cause, then pass G1 again to start anew",
            ),
            _ => {}
        }
    }
    found.evidence.extend(completed.into_values());
}

fn speaks_against(code: &str) -> bool {
    ["EXECUTION_SCHEMA_", "A2A_", "POLICY_"].iter().any(|family| code.starts_with(family))
}

/// G4: a named operator approves, who is no agent of the route.
fn approved(route: &Route, operator: Option<Operator<'_>>, names: &AgentNames, found: &mut Found) {
    let Some(operator) = operator.filter(|operator| !operator.name.is_empty()) else {
        return found.lacks(
            "no operator approves it by name",
            "an operator asks for G4 with a token of their own; an admin or an agent is no person",
        );
    };
    let mut agents = route.agents().flat_map(|agent| names.all(agent));
    if let Some(own) = agents.find(|name| *name == operator.name || Some(*name) == operator.principal) {
        found.lacks(
            format!(
                "the operator `{}` is an agent of the route: `{}`",
                printable(operator.name),
                printable(own)
            ),
            "have an operator approve it who does none of its work",
        );
    }
}

/// G4: a rollback plan that can be carried out.
fn live(record: &RouteRecord, plan: &Result<Plan, PlanFault>, found: &mut Found) {
    let plan = match plan {
        Ok(plan) if record.plan_ref() == Some(&plan.plan_ref) => plan,
        Ok(plan) => {
            let hint = "the route's `rollbackPlanRef` counts, else the plan that the handoff of G3 names";
            found.lacks(format!("`{}` is not the route's rollback plan", printable(&plan.plan_ref)), hint);
            return;
        }
        Err(fault) => return found.lacks(fault.to_string(), fault.hint()),
    };
    let run = dry_run(record, plan);
    for step in run.steps.iter().filter(|step| step.outcome == DryOutcome::Failed) {
        let why = step.why.as_deref().unwrap_or("it failed");
        found.lacks(
            format!("the dry run of the rollback plan fails at `{}`: {why}", printable(&step.step)),
            "see `docs/schemas/rollback-plan.schema.json` for what a plan says",
        );
    }
    found.plan_ref = Some(plan.plan_ref.clone());
    found.evidence.extend(record.pass(PromotionGate::G3).map(|pass| pass.sequence));
}
