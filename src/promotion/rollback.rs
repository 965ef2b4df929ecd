//! Rolling a route back: what is done, what is skipped and why. The same for a dry run and for the real one.

use super::definition::Definition;
use super::event::PhaseEvent;
use super::record::RouteRecord;
use super::stage::{PromotionGate, Stage};

/// The code with which live handoffs end whose route is rolled back; from the gateway, and from nobody else.
pub const ROLLED_BACK: &str = "ROUTE_ROLLED_BACK";

/// Who wants a rollback, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackAsk {
    pub by: RollbackBy,
    /// Whether to block the route; unless it is said, one that happens by itself does.
    pub block: Option<bool>,
    pub reason: String,
    /// The code and the handoff that triggered it.
    pub code: Option<String>,
    pub handoff_id: Option<String>,
}

/// Who wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RollbackBy {
    Operator(String),
    Automatic,
}

/// What a rollback comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackPlan {
    pub steps: Vec<StepTaken>,
    pub from: Stage,
    pub to: Stage,
    /// Whether the route is blocked afterwards.
    pub blocked: bool,
    /// The epoch that begins.
    pub epoch: u64,
    /// The earlier definition that is in force again.
    pub restored: Option<Definition>,
    /// Whether that one has gates of its own to earn.
    pub redefined: bool,
    /// The live handoffs that are to be marked as rolled back.
    pub rolled_back: Vec<String>,
    pub automatic: bool,
    pub reason: String,
    pub code: Option<String>,
    pub handoff_id: Option<String>,
}

/// A step of a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackStep {
    /// The route leaves live.
    Demote,
    /// It takes no handoffs at all.
    Block,
    /// The previous definition is in force again.
    Restore,
    /// Live handoffs in flight are ended.
    Mark,
}

/// A step, done or skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTaken {
    pub step: RollbackStep,
    /// Why it was skipped; nothing if it was done.
    pub why: Option<String>,
}

impl RollbackStep {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Demote => "demote",
            Self::Block => "block",
            Self::Restore => "restore",
            Self::Mark => "mark",
        }
    }
}

/// What rolling the route back comes to, with these live handoffs in flight.
pub fn plan_rollback(record: &RouteRecord, ask: &RollbackAsk, in_flight: &[String]) -> RollbackPlan {
    let automatic = ask.by == RollbackBy::Automatic;
    let wants_block = ask.block.unwrap_or(automatic);
    let from = record.stage;

    let demote = (from < Stage::Live).then(|| format!("the route stands at {from} already"));
    let block = if record.blocked {
        Some("the route is blocked already")
    } else {
        (!wants_block).then_some("it was not asked for")
    };
    let restorable = record.previous.as_ref().filter(|_| record.declared.is_some() && record.pin.is_none());
    let restore = match (restorable, &record.pin) {
        (Some(_), _) => None,
        (None, Some(_)) => Some("an earlier definition is in force already"),
        (None, None) if record.declared.is_none() => Some("the route is not declared"),
        (None, None) => Some("there is no earlier definition"),
    };
    let mark = in_flight.is_empty().then_some("no live handoff is in flight");
    let taken = |step, why: Option<&str>| StepTaken { step, why: why.map(str::to_owned) };

    // Gates belong to a definition: one with another primary, profile or capability has all of them to earn.
    let redefined = restorable.is_some_and(|restored| {
        record.definition().is_none_or(|definition| definition.digest != restored.digest)
    });
    RollbackPlan {
        steps: vec![
            StepTaken { step: RollbackStep::Demote, why: demote },
            taken(RollbackStep::Block, block),
            taken(RollbackStep::Restore, restore),
            taken(RollbackStep::Mark, mark),
        ],
        from,
        to: if redefined { Stage::Dev } else { from.min(Stage::Simulated) },
        // Only a person opens what is blocked, by lifting it.
        blocked: record.blocked || wants_block,
        epoch: record.epoch.saturating_add(1),
        restored: restorable.cloned(),
        redefined,
        rolled_back: in_flight.to_vec(),
        automatic,
        reason: ask.reason.clone(),
        code: ask.code.clone(),
        handoff_id: ask.handoff_id.clone(),
    }
}

impl RollbackPlan {
    /// The gates of this route that are to be earned again.
    pub fn gates_lost(&self, record: &RouteRecord) -> Vec<PromotionGate> {
        let is_lost = |gate: &PromotionGate| self.redefined || *gate >= PromotionGate::G3;
        record.passes.keys().copied().filter(is_lost).collect()
    }

    /// What is to be written into the route's stream, in one group. The marks go into the streams of the handoffs.
    pub fn events(&self) -> Vec<PhaseEvent> {
        let mut events = vec![PhaseEvent::RolledBack(Box::new(self.clone()))];
        if let Some(definition) = &self.restored {
            events.push(PhaseEvent::Declared(Box::new(definition.clone())));
            if self.redefined {
                events.push(PhaseEvent::Reset { from: self.to, digest: definition.digest });
            }
        }
        events
    }
}
