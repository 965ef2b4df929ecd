//! Routes in ledger order: what the routing table declares, gates that were decided, the canary, rollback.
//!
//! What a route is and what follows for it is `promotion`'s to say; here it is written down, in the order of
//! everything else. INVARIANT (rollback wins): a gate's answer that was evaluated before a rollback is not recorded.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::act::Asking;
use super::own::Noted;
use super::sequencer::Sequencer;
use super::standing::InForce;
use super::task::Task;
use super::{EngineFault, EngineHandle};
use crate::contract::{Mode, Word as _};
use crate::ledger::BatchBuilder;
use crate::limits;
use crate::policy::PolicySet;
use crate::promotion::{
    Attached, AutomaticRollback, CanaryEnd, GateAnswer, Lift, LiveEnd, LiveOutcome, PhaseEvent, ROLLED_BACK,
    RollbackAsk, RollbackPlan, RouteRecord, Superseded, Voucher, calls_for_rollback, declare, end_canary,
    overdue, plan_rollback, record_gate, take_slot,
};
use crate::timestamp::Timestamp;
use crate::wire::{Envelope, Event, Kind, Sender, StreamId};

/// The code of a canary handoff that nothing was heard of.
const SILENT: &str = "CANARY_DEADLINE_EXCEEDED";
/// The code of a handoff that was cancelled, as the state file has it.
const CANCELLED: &str = "TASK_CANCELLED";

/// What an operator can set about promotion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromotionRules {
    /// Live handoffs that must end well, one at a time.
    pub canary_of: u64,
    /// How long each may take, in seconds.
    pub canary_deadline_s: i64,
    pub automatic: AutomaticRollback,
}

impl Default for PromotionRules {
    fn default() -> Self {
        Self {
            canary_of: limits::CANARY_RUNS as u64,
            canary_deadline_s: limits::CANARY_DEADLINE_S,
            automatic: AutomaticRollback::default(),
        }
    }
}

/// What the sequencer decides by, for whoever builds answers: asked with every one of them, so that nothing is locked
/// where it is what the asker has at hand.
#[derive(Debug, Default)]
pub(super) struct Governing {
    /// Where it lies in memory; nothing else can lie there while somebody has it.
    at: AtomicUsize,
    is_overlaid: AtomicBool,
    in_force: Mutex<Option<Arc<InForce>>>,
}

impl Governing {
    /// What is in force, to somebody who knows what was.
    pub(super) fn now(&self, known: &Arc<InForce>) -> Arc<InForce> {
        if self.at.load(Ordering::Acquire) == Arc::as_ptr(known).addr() {
            return known.clone();
        }
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_else(|| known.clone())
    }

    /// The policy set with the routes that a rollback restored over those of the files; nothing where none were.
    pub(super) fn overlaid(&self) -> Option<Arc<PolicySet>> {
        if !self.is_overlaid.load(Ordering::Acquire) {
            return None;
        }
        let in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        in_force.as_ref().filter(|in_force| in_force.overlaid).map(|in_force| in_force.policies.clone())
    }

    pub(super) fn set(&self, in_force: Arc<InForce>) {
        let mut held = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_overlaid.store(in_force.overlaid, Ordering::Release);
        self.at.store(Arc::as_ptr(&in_force).addr(), Ordering::Release);
        *held = Some(in_force);
    }
}

/// Why nothing was done to a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteFault {
    /// There is no such route.
    Unknown,
    /// Something happened since the gate was evaluated.
    Superseded(Superseded),
    /// A handoff on the route ended since the gate was evaluated: look again.
    Moved,
    /// There is nothing to lift.
    NotBlocked,
}

/// A route as it stands after an act, and the entry that made it so.
#[derive(Debug, Clone, PartialEq)]
pub struct Routed {
    pub record: RouteRecord,
    pub sequence: u64,
}

/// What a rollback came to.
#[derive(Debug, Clone, PartialEq)]
pub struct RolledBack {
    pub plan: RollbackPlan,
    pub record: RouteRecord,
    /// The entry that says so; nothing in a dry run.
    pub sequence: Option<u64>,
}

impl EngineHandle {
    /// What the ledger says of every route.
    pub fn routes(&self) -> Vec<(String, RouteRecord)> {
        self.standing(|standing| {
            standing.routes().map(|(key, record)| (key.to_owned(), record.clone())).collect()
        })
    }

    /// What the ledger says of a route.
    pub fn route(&self, route_key: &str) -> Option<RouteRecord> {
        self.standing(|standing| standing.route(route_key).cloned())
    }

    /// Live handoffs on a route that have not ended.
    pub fn in_flight(&self, route_key: &str) -> Vec<String> {
        self.standing(|standing| standing.in_flight(route_key))
    }

    /// Does something to a route, if there is such a one.
    fn on_route<T: Send + 'static>(
        &self,
        route_key: String,
        mut act: impl FnMut(
            &str,
            &RouteRecord,
            &mut Sequencer,
            &mut BatchBuilder<'_>,
        ) -> Result<Result<T, RouteFault>, EngineFault>
        + Send
        + 'static,
    ) -> Result<Result<T, RouteFault>, EngineFault> {
        self.ask_and_wait(move |sequencer, batch| match sequencer.building().route(&route_key).cloned() {
            Some(record) => act(&route_key, &record, sequencer, batch),
            None => Ok(Err(RouteFault::Unknown)),
        })
    }

    /// Records what came of a gate that was evaluated when the ledger had come to `as_of`.
    pub fn decide_gate(
        &self,
        route_key: String,
        answer: GateAnswer,
        as_of: u64,
        by: Asking,
    ) -> Result<Result<Routed, RouteFault>, EngineFault> {
        self.on_route(route_key, move |route_key, record, sequencer, batch| {
            if sequencer.building().last_outcome(route_key) > as_of {
                return Ok(Err(RouteFault::Moved));
            }
            let events = match record_gate(record, &answer, sequencer.promotion().canary_of) {
                Ok(events) => events,
                Err(superseded) => return Ok(Err(RouteFault::Superseded(superseded))),
            };
            sequencer.tell_route_all(route_key, &events, by.sender(), batch).map(Ok)
        })
    }

    /// Records evidence of an end-to-end run, and who stands behind it.
    pub fn attach_evidence(
        &self,
        route_key: String,
        (handoff_id, attached, voucher): (String, Attached, Voucher),
        by: Asking,
    ) -> Result<Result<Routed, RouteFault>, EngineFault> {
        self.on_route(route_key, move |route_key, _, sequencer, batch| {
            let (handoff_id, attached) = (handoff_id.clone(), attached.clone());
            let event = PhaseEvent::Evidence { handoff_id, attached, voucher: voucher.clone() };
            sequencer.tell_route_all(route_key, &[event], by.sender(), batch).map(Ok)
        })
    }

    /// Rolls a route back, or says what that would come to.
    pub fn roll_back(
        &self,
        route_key: String,
        ask: RollbackAsk,
        dry_run: bool,
        by: Asking,
    ) -> Result<Result<RolledBack, RouteFault>, EngineFault> {
        self.on_route(route_key, move |route_key, _, sequencer, batch| {
            sequencer.roll_back(route_key, &ask, dry_run, by.sender(), batch).map(Ok)
        })
    }

    /// Opens a route that was blocked, or lets the routing table count again.
    pub fn lift(
        &self,
        route_key: String,
        what: Lift,
        reason: String,
        by: Asking,
    ) -> Result<Result<Routed, RouteFault>, EngineFault> {
        self.on_route(route_key, move |route_key, record, sequencer, batch| {
            let is_there = match what {
                Lift::Block => record.blocked,
                Lift::Pin => record.pin.is_some(),
                Lift::Both => record.blocked || record.pin.is_some(),
            };
            if !is_there {
                return Ok(Err(RouteFault::NotBlocked));
            }
            let event = PhaseEvent::Lifted { what, reason: reason.clone() };
            let routed = sequencer.tell_route_all(route_key, &[event], by.sender(), batch)?;
            // What the table says counts again.
            sequencer.declare_route(route_key, batch)?;
            sequencer.overlay_pins();
            Ok(Ok(routed))
        })
    }
}

impl Sequencer {
    /// Writes events of a route's stream; the route as it is then, and the first of their entries.
    fn tell_route_all(
        &mut self,
        route_key: &str,
        events: &[PhaseEvent],
        asked: Sender<'_>,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Routed, EngineFault> {
        let mut first = None;
        for event in events {
            let noted = self.tell_route(route_key, event, asked, batch)?;
            first.get_or_insert(noted.sequence);
        }
        let record = self.building().route(route_key).cloned().unwrap_or_default();
        Ok(Routed { record, sequence: first.unwrap_or_default() })
    }

    fn tell_route(
        &mut self,
        route_key: &str,
        event: &PhaseEvent,
        asked: Sender<'_>,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Noted, EngineFault> {
        let stream_seq = self.building().route_seq(route_key) + 1;
        let stream = StreamId::Route { route_key };
        let payload = event.payload();
        let text = |event: &Event<'_>| event.to_text_with(&payload);
        self.note(event.kind(), event.sender(asked), stream, stream_seq, batch, text)
    }

    /// Writes what the routing table says of a route, where the ledger says otherwise.
    pub(super) fn declare_route(
        &mut self,
        route_key: &str,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let Some(policies) = self.table() else { return Ok(()) };
        let record = self.building().route(route_key).cloned().unwrap_or_default();
        let Some(change) = declare(&record, policies.route(route_key)) else { return Ok(()) };
        self.tell_route_all(route_key, &change.events(), Sender::System, batch).map(drop)
    }

    /// The same for every route that there is, or was.
    pub(super) fn declare_routes(&mut self, batch: &mut BatchBuilder<'_>) -> Result<(), EngineFault> {
        let Some(policies) = self.table() else { return Ok(()) };
        let mut keys: Vec<String> = self.building().routes().map(|(key, _)| key.to_owned()).collect();
        keys.extend(policies.routes().keys().cloned());
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            self.declare_route(&key, batch)?;
        }
        self.overlay_pins();
        Ok(())
    }

    /// Puts definitions that a rollback restored in force over those of the table.
    pub(super) fn overlay_pins(&mut self) {
        let Some(table) = self.table() else { return };
        let pins: Vec<_> = self
            .building()
            .routes()
            .filter_map(|(key, record)| Some((key.to_owned(), record.pin.as_ref()?.definition.route.clone())))
            .collect();
        let overlaid: Option<Arc<PolicySet>> =
            (!pins.is_empty()).then(|| Arc::new(table.with_routes(pins.into_iter())));
        self.overlay(overlaid);
    }

    /// Takes the canary's slot for a live handoff that becomes allowed.
    pub(super) fn goes_live(
        &mut self,
        route_key: &str,
        handoff_id: &str,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        self.building_mut().take_off(route_key, handoff_id);
        let Some(record) = self.building().route(route_key) else { return Ok(()) };
        let Some(event) = take_slot(record, handoff_id) else { return Ok(()) };
        let noted = self.tell_route(route_key, &event, Sender::System, batch)?;
        let deadline = noted.at.plus_seconds(self.promotion().canary_deadline_s);
        self.look_again(deadline, handoff_id);
        Ok(())
    }

    /// What follows for the route when a handoff ends.
    pub(super) fn landed(
        &mut self,
        task: &Task,
        envelope: &Envelope<'_>,
        sequence: u64,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let Some(route_key) = task.route_key.as_deref().filter(|_| task.is_over()) else { return Ok(()) };
        self.building_mut().land(route_key, &task.handoff_id, sequence);
        if !task.is_live() {
            return Ok(());
        }
        let payload = envelope.payload();
        let code = payload.text("code").unwrap_or_default();
        // These codes are the gateway's own; an agent that sends one has failed like any other.
        let own = envelope.sender() == Sender::System;
        let (end, canary_end) = match envelope.kind() {
            Kind::TaskComplete => (LiveEnd::Completed, CanaryEnd::Completed),
            Kind::TaskFailed if own && code == SILENT => {
                (LiveEnd::Silent, CanaryEnd::Failed { code: Some(SILENT) })
            }
            // Marked by the rollback itself, which has the slot's end in its own event.
            Kind::TaskFailed if own && code == ROLLED_BACK => return Ok(()),
            Kind::TaskFailed => {
                let critical = payload.flag("critical").unwrap_or(false);
                (LiveEnd::Failed { code, critical }, CanaryEnd::Failed { code: Some(code) })
            }
            _ if task.wire.claimer.is_some() && matches!(envelope.sender(), Sender::Agent(_)) => {
                (LiveEnd::Withdrawn, CanaryEnd::Failed { code: Some(CANCELLED) })
            }
            _ => (LiveEnd::Cancelled, CanaryEnd::Cancelled),
        };
        let Some(record) = self.building().route(route_key).cloned() else { return Ok(()) };
        let (handoff_id, agent) = (task.handoff_id.as_str(), task.wire.claimer.as_deref());
        let outcome = LiveOutcome { handoff_id, mode: Mode::Live, agent, end };
        let trigger = calls_for_rollback(&self.promotion().automatic, &record, &outcome);
        let events = end_canary(&record, handoff_id, canary_end);
        self.tell_route_all(route_key, &events, Sender::System, batch)?;
        if let Some(trigger) = trigger {
            self.roll_back(route_key, &trigger.ask(), false, Sender::System, batch)?;
        }
        Ok(())
    }

    fn roll_back(
        &mut self,
        route_key: &str,
        ask: &RollbackAsk,
        dry_run: bool,
        asked: Sender<'_>,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<RolledBack, EngineFault> {
        let record = self.building().route(route_key).cloned().unwrap_or_default();
        let in_flight = self.building().in_flight(route_key);
        let plan = plan_rollback(&record, ask, &in_flight);
        if dry_run {
            return Ok(RolledBack { plan, record, sequence: None });
        }
        let routed = self.tell_route_all(route_key, &plan.events(), asked, batch)?;
        for handoff_id in &in_flight {
            let Some(task) = self.index().task(handoff_id)? else { continue };
            if task.is_over() {
                continue;
            }
            let message = format!("route {route_key} was rolled back");
            self.tell_task(&task, Kind::TaskFailed, Sender::System, batch, |payload| {
                payload.text("code", ROLLED_BACK);
                payload.text("message", &message);
            })?;
        }
        self.overlay_pins();
        Ok(RolledBack { plan, record: routed.record, sequence: Some(routed.sequence) })
    }

    /// Ends a canary handoff that nothing was heard of in time; says when to look again otherwise.
    pub(super) fn look_at_canary(
        &mut self,
        task: &Task,
        now: Timestamp,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Option<Timestamp>, EngineFault> {
        let deadline_s = self.promotion().canary_deadline_s;
        let record = task.route_key.as_deref().and_then(|key| self.building().route(key)).cloned();
        let holder = record.as_ref().and_then(|record| record.canary.as_ref()?.holder.clone());
        let Some(holder) = holder.filter(|holder| holder.handoff_id == task.handoff_id && !task.is_over())
        else {
            return Ok(None);
        };
        if record.as_ref().and_then(|record| overdue(record, now, deadline_s)).is_none() {
            return Ok(Some(holder.since.plus_seconds(deadline_s)));
        }
        self.tell_task(task, Kind::TaskFailed, Sender::System, batch, |payload| {
            payload.text("code", SILENT);
            payload.text("message", "nothing was heard of it by the canary's deadline");
        })?;
        Ok(None)
    }
}

/// The mode that a stored word names.
pub(super) fn mode_of(word: Option<&str>) -> Option<Mode> {
    Mode::from_word(word?)
}
