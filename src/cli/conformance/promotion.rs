//! A route's way through the gates, followed apart from the room that decides about it.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::policy::PolicySet;
use crate::promotion::{DryOutcome, PromotionGate, RouteRecord, Stage, dry_run, read_plan};
use crate::wire::{Fact, Kind, Sender};

#[derive(Default)]
pub(super) struct Walk {
    record: RouteRecord,
    /// Gates that are passed, by this room's own count.
    gates: BTreeSet<PromotionGate>,
    is_live: bool,
    /// How many times a gate was passed.
    pub(super) passed: u64,
    pub(super) out_of_order: Vec<String>,
    pub(super) bad_evidence: Vec<String>,
}

impl Walk {
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    pub(super) fn take(&mut self, fact: &Fact<'_>) {
        self.record.take(fact);
        let sequence = fact.sequence;
        let gate = || fact.text("gate").and_then(|gate| gate.parse::<PromotionGate>().ok());
        match fact.kind {
            Kind::PromotionDecided if fact.text("outcome") == Some("passed") => {
                let Some(gate) = gate() else { return };
                let before = PromotionGate::ALL.into_iter().filter(|other| *other < gate);
                let skipped: Vec<_> = before.filter(|other| !self.gates.contains(other)).collect();
                if let Some(first) = skipped.first() {
                    self.out_of_order.push(format!("{gate} was passed before {first}, entry {sequence}"));
                }
                if gate == PromotionGate::G4 && !matches!(fact.sender, Sender::Human(_)) {
                    self.out_of_order.push(format!("G4 was not passed by a person, entry {sequence}"));
                }
                self.passed += 1;
                self.gates.retain(|other| *other < gate);
                self.gates.insert(gate);
            }
            Kind::PromotionAdvanced if fact.text("to") == Some(Stage::Live.as_str()) => {
                if self.gates.len() < PromotionGate::ALL.len() {
                    self.out_of_order.push(format!("it went live without all gates, entry {sequence}"));
                }
                self.is_live = true;
            }
            Kind::PromotionReset | Kind::RouteRemoved => {
                self.gates.clear();
                self.is_live = false;
            }
            Kind::RollbackExecuted => {
                self.gates.remove(&PromotionGate::G3);
                self.gates.remove(&PromotionGate::G4);
                self.is_live = false;
            }
            Kind::PromotionEvidence if !matches!(fact.sender, Sender::Human(_) | Sender::Runner(_)) => {
                let id = fact.payload.get("handoff_id").and_then(Json::as_str).unwrap_or_default();
                let id = crate::json::printable(id);
                self.bad_evidence.push(format!("an agent vouched for `{id}`, entry {sequence}"));
            }
            _ => {}
        }
    }

    /// Whether the route has a plan of its own whose dry run succeeds; or what is wrong with it. A route that is not live
    /// may do without: each TaskSpec names one.
    pub(super) fn plan(&self, policies: &PolicySet) -> Result<bool, Vec<String>> {
        if self.record.declared.is_none() || (!self.is_live && self.record.plan_ref().is_none()) {
            return Ok(false);
        }
        let plan = read_plan(policies.references(), self.record.plan_ref())
            .map_err(|fault| vec![fault.to_string()])?;
        let run = dry_run(&self.record, &plan);
        let failed = run.steps.iter().filter(|step| step.outcome == DryOutcome::Failed);
        let wrong: Vec<String> = failed
            .map(|step| format!("the dry run of its plan fails at `{}`", crate::json::printable(&step.step)))
            .collect();
        if wrong.is_empty() { Ok(true) } else { Err(wrong) }
    }
}
