//! Which work a route takes at the stage it has reached, and the one slot of the canary.

use super::event::{CanaryOutcome, PhaseEvent};
use super::record::{Holder, RouteRecord};
use super::stage::{PromotionGate, Stage};
use crate::contract::Mode;
use crate::timestamp::Timestamp;

/// Why a route does not take a handoff of this mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageRefusal {
    /// There is no such route.
    Undeclared,
    /// It was rolled back and blocked.
    Blocked,
    NotReached {
        reached: Stage,
    },
    CanaryFull {
        holder: String,
    },
}

/// How a live handoff that held the slot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CanaryEnd<'e> {
    Completed,
    /// It failed, or was silent for too long.
    Failed {
        code: Option<&'e str>,
    },
    Cancelled,
}

/// Does the route take a handoff of this mode now?
///
/// Dev needs nothing, simulated needs G1 or a route that is declared so, live needs all gates; in canary it also needs
/// the slot, which [`take_slot`] takes.
pub fn mode_allowed(record: &RouteRecord, mode: Mode) -> Result<(), StageRefusal> {
    if record.blocked {
        return Err(StageRefusal::Blocked);
    }
    stage_reaches(record, mode)?;
    slot_free(record, mode)
}

/// Has the route come far enough for work of this mode? Whether it is blocked, or its slot taken, is not asked.
pub fn stage_reaches(record: &RouteRecord, mode: Mode) -> Result<(), StageRefusal> {
    if record.declared.is_none() {
        return Err(StageRefusal::Undeclared);
    }
    if record.stage < Stage::needed_by(mode) {
        return Err(StageRefusal::NotReached { reached: record.stage });
    }
    // INVARIANT (earned live): whatever stage the ledger tells, the gates must be there as well.
    if mode == Mode::Live && record.next_gate().is_some() {
        return Err(StageRefusal::NotReached { reached: Stage::Simulated });
    }
    Ok(())
}

/// Is there room for one more of this mode in the canary?
pub fn slot_free(record: &RouteRecord, mode: Mode) -> Result<(), StageRefusal> {
    match record.canary.as_ref().and_then(|canary| canary.holder.as_ref()).filter(|_| mode == Mode::Live) {
        Some(holder) => Err(StageRefusal::CanaryFull { holder: holder.handoff_id.clone() }),
        None => Ok(()),
    }
}

/// What is to be written when a live handoff becomes allowed; nothing outside of a canary.
pub fn take_slot(record: &RouteRecord, handoff_id: &str) -> Option<PhaseEvent> {
    let canary = record.canary.as_ref()?;
    Some(PhaseEvent::Canary {
        handoff_id: handoff_id.to_owned(),
        outcome: CanaryOutcome::Taken,
        done: canary.done,
        code: None,
        epoch: record.epoch,
    })
}

/// What is to be written when a live handoff ends; nothing if it does not hold the slot. The last one that ends well
/// makes the route fully live.
///
/// A failure starts the count again; whether it also calls for a rollback is for `calls_for_rollback` to say.
pub fn end_canary(record: &RouteRecord, handoff_id: &str, end: CanaryEnd<'_>) -> Vec<PhaseEvent> {
    let Some(canary) = &record.canary else { return Vec::new() };
    if canary.holder.as_ref().is_none_or(|holder| holder.handoff_id != handoff_id) {
        return Vec::new();
    }
    let (outcome, done, code) = match end {
        CanaryEnd::Completed => (CanaryOutcome::Completed, canary.done.saturating_add(1), None),
        CanaryEnd::Failed { code } => (CanaryOutcome::Failed, 0, code.map(str::to_owned)),
        CanaryEnd::Cancelled => (CanaryOutcome::Released, canary.done, None),
    };
    let epoch = record.epoch;
    let mut events =
        vec![PhaseEvent::Canary { handoff_id: handoff_id.to_owned(), outcome, done, code, epoch }];
    if outcome == CanaryOutcome::Completed && done >= canary.of {
        events.push(PhaseEvent::Advanced {
            from: Stage::Live,
            to: Stage::Live,
            gate: PromotionGate::G4,
            epoch,
            canary_of: None,
        });
    }
    events
}

/// The handoff that has held the slot for too long: silence is failure.
pub fn overdue(record: &RouteRecord, now: Timestamp, deadline_s: i64) -> Option<&Holder> {
    let holder = record.canary.as_ref()?.holder.as_ref()?;
    (holder.since.plus_seconds(deadline_s) <= now).then_some(holder)
}
