//! What a door gathers before a gate is evaluated: from the views, by probing, from the policy set.

use super::plan::{Plan, PlanFault};
use super::stage::PromotionGate;
use crate::contract::Mode;
use crate::policy::AgentNames;

/// What was found out for one gate.
#[derive(Debug, Clone, Copy)]
pub enum Findings<'f> {
    /// G0: decisions about handoffs on the route.
    Contract(&'f [ContractDecision]),
    /// G1: whether the agents answer.
    Routing(&'f Probes),
    /// G2: how accepted simulated handoffs ended.
    Simulation(Simulation<'f>),
    /// G3: the handoffs that evidence was attached to.
    E2e { handoffs: &'f [E2eHandoff], names: &'f AgentNames },
    /// G4: which operator approves, and the route's rollback plan.
    Live { operator: Option<Operator<'f>>, names: &'f AgentNames, plan: &'f Result<Plan, PlanFault> },
}

/// A person who lets a route go live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operator<'f> {
    pub name: &'f str,
    /// The principal that the person also is.
    pub principal: Option<&'f str>,
}

/// What was decided about a handoff on the route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractDecision {
    pub handoff_id: String,
    /// The entry of `gate.decided`.
    pub sequence: u64,
    /// Its codes; none if it was accepted.
    pub codes: Vec<String>,
}

/// Whether the agents of the route answer, in the mode that the route has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probes {
    pub primary: Probe,
    pub fallback: Probe,
}

/// What came of asking an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// There is no URL to ask.
    NotConfigured,
    /// Somebody only wants to see what is missing, and asks nobody for that.
    NotAsked,
    Answered {
        status: u16,
    },
    /// It did not answer, and why.
    Silent {
        why: String,
    },
}

/// How accepted simulated handoffs ended.
#[derive(Debug, Clone, Copy)]
pub struct Simulation<'f> {
    /// How many must have been completed.
    pub needed: usize,
    pub outcomes: &'f [SimulatedOutcome],
}

/// An accepted simulated handoff that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedOutcome {
    pub handoff_id: String,
    /// The entries with which it was accepted and with which it ended.
    pub accepted: u64,
    pub ended: u64,
    pub end: SimulatedEnd,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulatedEnd {
    Completed { side_effects: Vec<String> },
    Failed { code: String },
    Cancelled,
}

/// A handoff that evidence was attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct E2eHandoff {
    pub handoff_id: String,
    pub mode: Option<Mode>,
    /// The entry with which it was completed.
    pub completed: Option<u64>,
    pub source_agent: String,
    pub target_agent: String,
    /// Who did the work.
    pub claimed_by: Option<String>,
    /// `safety.e2eActor` of its TaskSpec.
    pub e2e_actor: String,
    pub plan_ref: Option<String>,
}

impl SimulatedEnd {
    /// It was completed, and nothing outside was changed.
    pub(super) fn is_clean(&self) -> bool {
        matches!(self, Self::Completed { side_effects } if side_effects.is_empty())
    }
}

impl Findings<'_> {
    pub fn gate(&self) -> PromotionGate {
        match self {
            Self::Contract(_) => PromotionGate::G0,
            Self::Routing(_) => PromotionGate::G1,
            Self::Simulation(_) => PromotionGate::G2,
            Self::E2e { .. } => PromotionGate::G3,
            Self::Live { .. } => PromotionGate::G4,
        }
    }
}
