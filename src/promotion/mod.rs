//! Promotion and rollback: how a route comes from `dev` to `live` through the gates G0 to G4, and how it goes back.
//!
//! What a route is, [`RouteRecord`], follows from the events of its stream in the ledger and from nothing else. Every
//! function here takes a record and what a door has gathered, and says what would be true: which events a new routing
//! table, a gate, a canary handoff or a rollback comes to ([`PhaseEvent`]). Whoever has the ledger writes them, and the
//! record takes them like any other; so what was decided and what is replayed cannot differ.
//!
//! INVARIANT (earned live): a route is live only with G0 to G4 passed in this order for its definition, and since its
//! last rollback G3 and G4. INVARIANT (rollback wins): an answer of a gate belongs to the epoch, the definition and the
//! gates that it was evaluated under, and is not recorded under others. INVARIANT (a block holds): only a person's
//! `rollback.lifted` opens a blocked route.
//!
//! Deliberately absent: probing, reading files, the clock, and who a caller is.

mod canary;
mod declare;
mod definition;
mod evaluate;
mod event;
mod findings;
mod plan;
mod record;
mod reduce;
mod rehearse;
mod rollback;
mod stage;
mod trigger;
mod vouching;

pub use canary::{
    CanaryEnd, StageRefusal, end_canary, mode_allowed, overdue, slot_free, stage_reaches, take_slot,
};
pub use declare::{RouteChange, declare};
pub use definition::Definition;
#[cfg(test)]
pub(crate) use evaluate::breaks_contract;
pub use evaluate::{
    GateAnswer, GateOutcome, Missing, NotNow, Superseded, evaluate, may_ask, may_record, record_gate,
};
pub use event::{Attached, CanaryOutcome, Lift, PhaseEvent};
pub use findings::{
    ContractDecision, E2eHandoff, Findings, Operator, Probe, Probes, SimulatedEnd, SimulatedOutcome,
    Simulation,
};
pub use plan::{Act, Plan, PlanFault, PlanForm, PlanStep, PlanTrigger, ROLLBACK_PLAN_SCHEMA, read_plan};
pub use record::{
    By, Canary, Declared, Evidence, Holder, LastOutcome, LastRollback, Pass, Pin, RouteFacts, RouteRecord,
};
pub use rehearse::{DryOutcome, DryRun, DryStep, dry_run};
pub use rollback::{
    ROLLED_BACK, RollbackAsk, RollbackBy, RollbackPlan, RollbackStep, StepTaken, plan_rollback,
};
pub use stage::{GateStatus, PromotionGate, Stage, UnknownWord};
pub use trigger::{AutomaticRollback, LiveEnd, LiveOutcome, Trigger, calls_for_rollback};
pub use vouching::Voucher;

#[cfg(test)]
mod tests;
