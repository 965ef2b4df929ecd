//! Entries of a route's stream in, what they say of the route out.
//!
//! Total: the ledger took the entry, so nothing is refused here. What does not fit (a gate decided for another
//! definition, a canary that is over) changes nothing, and nothing makes a route more open than an entry says.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;

use super::definition::Definition;
use super::record::{
    By, Canary, Declared, Evidence, Holder, LastOutcome, LastRollback, Pass, Pin, RouteFacts, RouteRecord,
};
use super::stage::{GateStatus, PromotionGate, Stage};
use super::vouching::Voucher;
use crate::limits;
use crate::policy::Route;
use crate::proof::Digest;
use crate::wire::{Fact, Kind, Sender};

impl RouteRecord {
    /// Takes the next entry of the route's stream.
    pub fn take(&mut self, fact: &Fact<'_>) {
        let step = match fact.kind {
            Kind::RouteDeclared => RouteFacts::declared,
            Kind::RouteRemoved => RouteFacts::removed,
            Kind::PromotionDecided => RouteFacts::decided,
            Kind::PromotionAdvanced => RouteFacts::advanced,
            Kind::PromotionCanary => RouteFacts::canary,
            Kind::PromotionReset => RouteFacts::reset,
            Kind::PromotionEvidence => RouteFacts::evidence,
            Kind::RollbackExecuted => RouteFacts::rolled_back,
            Kind::RollbackLifted => RouteFacts::lifted,
            _ => return,
        };
        step(Arc::make_mut(&mut self.0), fact);
    }
}

impl RouteFacts {
    fn declared(&mut self, fact: &Fact<'_>) {
        let route = fact.payload.get("definition").and_then(|definition| Route::deserialize(definition).ok());
        let definition = route.map(Definition::from);
        let digest = definition.as_ref().map(|definition| definition.digest);
        let stage = word(fact, "stage").unwrap_or(Stage::Dev);
        let mut since = fact.sequence;
        match self.declared.take() {
            None => {
                self.stage = stage;
                if self.previous == definition {
                    self.previous = None;
                }
            }
            Some(before) => {
                let digest_before = before.definition.as_ref().map(|definition| definition.digest);
                if digest_before.is_some() && digest_before != digest {
                    self.set_back(fact.sequence);
                } else {
                    since = before.since;
                    // Declared for more than before; what was earned is not lowered by what is declared, and what a
                    // rollback restores raises nothing.
                    if before.stage < stage && self.pin.is_none() {
                        self.stage = self.stage.max(stage);
                    }
                }
                // What was rolled back is never what a rollback restores.
                if self.pin.is_none() && before.definition != definition && before.definition.is_some() {
                    self.previous = before.definition;
                }
            }
        }
        self.declared = Some(Declared {
            capability: owned(fact, "capability").unwrap_or_default(),
            primary_agent_id: owned(fact, "primary_agent_id").unwrap_or_default(),
            fallback_agent_id: owned(fact, "fallback_agent_id"),
            stage,
            definition,
            since,
            at: fact.at,
        });
        self.settle();
    }

    /// Gone, but not forgotten: a block, a pin and the rollbacks outlive a declaration.
    fn removed(&mut self, fact: &Fact<'_>) {
        let last = self.declared.take().and_then(|declared| declared.definition);
        if self.pin.is_none() && last.is_some() {
            self.previous = last;
        }
        self.set_back(fact.sequence);
        self.status = GateStatus::Pending;
        self.last_outcome = None;
    }

    fn decided(&mut self, fact: &Fact<'_>) {
        let Some(gate) = word::<PromotionGate>(fact, "gate") else { return };
        let digest = fact.text("route_digest").and_then(Digest::parse);
        if digest.is_none() || digest != self.definition().map(|definition| definition.digest) {
            return;
        }
        let passed = fact.text("outcome") == Some("passed");
        // Nobody but a person lets a route go live.
        if passed && gate == PromotionGate::G4 && !matches!(fact.sender, Sender::Human(_)) {
            return;
        }
        if passed || self.passes.contains_key(&gate) {
            // Those behind it rested on it.
            self.passes.retain(|other, _| *other < gate);
            self.passes_changed = fact.sequence;
        }
        if passed {
            let pass = Pass {
                sequence: fact.sequence,
                at: fact.at,
                by: By::of(fact.sender),
                evidence: counts(fact, "evidence"),
                handoff_id: owned(fact, "handoff_id"),
                plan_ref: owned(fact, "plan_ref"),
            };
            self.passes.insert(gate, pass);
            if gate <= PromotionGate::G1 {
                self.evidence.clear();
            }
        }
        self.status = if passed { GateStatus::Passed } else { GateStatus::Failed };
        self.last_outcome = Some(LastOutcome {
            gate,
            passed,
            sequence: fact.sequence,
            at: fact.at,
            by: By::of(fact.sender),
            reason: owned(fact, "reason"),
        });
        self.settle();
    }

    fn advanced(&mut self, fact: &Fact<'_>) {
        let Some(to) = word(fact, "to") else { return };
        self.stage = to;
        let in_canary = flag(fact, "canary").unwrap_or(to == Stage::Live);
        self.canary = in_canary.then(|| Canary {
            done: 0,
            of: count(fact, "canary_of").unwrap_or(limits::CANARY_RUNS as u64),
            holder: None,
        });
        if to == Stage::Live {
            self.status = if in_canary { GateStatus::Pending } else { GateStatus::Passed };
        }
    }

    fn canary(&mut self, fact: &Fact<'_>) {
        let (Some(canary), Some(handoff_id)) = (&mut self.canary, owned(fact, "handoff_id")) else { return };
        if count(fact, "epoch") != Some(self.epoch) {
            return;
        }
        if fact.text("outcome") == Some("taken") {
            canary.holder = Some(Holder { handoff_id, sequence: fact.sequence, since: fact.at });
        } else if canary.holder.as_ref().is_some_and(|holder| holder.handoff_id == handoff_id) {
            canary.holder = None;
            canary.done = count(fact, "done").unwrap_or_default();
        }
    }

    fn reset(&mut self, fact: &Fact<'_>) {
        self.set_back(fact.sequence);
        // That it was rolled back stays to be seen until a gate is decided again.
        if self.status != GateStatus::RolledBack {
            self.status = GateStatus::Pending;
        }
        self.last_outcome = None;
    }

    fn evidence(&mut self, fact: &Fact<'_>) {
        let (Some(_), Some(handoff_id)) = (&self.declared, owned(fact, "handoff_id")) else { return };
        if self.evidence.len() == limits::ROUTE_EVIDENCE_MAX {
            self.evidence.remove(0);
        }
        self.evidence.push(Evidence {
            handoff_id,
            by: By::of(fact.sender),
            voucher: Voucher {
                agent_id: owned(fact, "agent_id"),
                registered_by: owned(fact, "registered_by"),
                principal: owned(fact, "principal"),
            },
            sequence: fact.sequence,
            at: fact.at,
            run_id: owned(fact, "run_id"),
            trace_id: owned(fact, "trace_id"),
            report: owned(fact, "report"),
        });
    }

    fn rolled_back(&mut self, fact: &Fact<'_>) {
        let from = self.stage;
        self.stage = from.min(word(fact, "to").unwrap_or(Stage::Dev)).min(Stage::Simulated);
        self.canary = None;
        self.blocked |= flag(fact, "blocked").unwrap_or(true);
        self.epoch = count(fact, "epoch").unwrap_or_default().max(self.epoch.saturating_add(1));
        // They must be earned again.
        self.passes.retain(|gate, _| *gate < PromotionGate::G3);
        self.passes_changed = fact.sequence;
        self.evidence.clear();
        self.status = GateStatus::RolledBack;
        self.last_outcome = None;
        let restored = fact.text("restored").and_then(Digest::parse);
        let previous = self.previous.take_if(|previous| restored == Some(previous.whole_digest()));
        if let Some(definition) = previous {
            self.pin = Some(Pin { definition, sequence: fact.sequence, at: fact.at });
        }
        self.last_rollback = Some(LastRollback {
            sequence: fact.sequence,
            at: fact.at,
            by: By::of(fact.sender),
            reason: owned(fact, "reason").unwrap_or_default(),
            code: owned(fact, "code"),
            handoff_id: owned(fact, "handoff_id"),
            from,
            in_flight: count(fact, "in_flight").unwrap_or_default(),
            rolled_back: texts(fact, "rolled_back"),
            restored,
        });
    }

    fn lifted(&mut self, fact: &Fact<'_>) {
        let lifted = texts(fact, "lifted");
        let lifts = |what: &str| lifted.is_empty() || lifted.iter().any(|word| word == what);
        self.blocked &= !lifts("block");
        if lifts("pin") {
            self.pin = None;
        }
    }

    /// Back to dev, with every gate to be passed again.
    fn set_back(&mut self, sequence: u64) {
        self.stage = Stage::Dev;
        self.canary = None;
        self.passes.clear();
        self.passes_changed = sequence;
        self.evidence.clear();
    }

    /// Simulated work needs G1, or a route that is declared for it.
    fn settle(&mut self) {
        let declared = self.declared.as_ref().map_or(Stage::Dev, |declared| declared.stage);
        if self.stage == Stage::Simulated
            && declared == Stage::Dev
            && !self.passes.contains_key(&PromotionGate::G1)
        {
            self.stage = Stage::Dev;
        }
    }
}

fn owned(fact: &Fact<'_>, name: &str) -> Option<String> {
    fact.text(name).map(str::to_owned)
}

fn word<T: std::str::FromStr>(fact: &Fact<'_>, name: &str) -> Option<T> {
    fact.text(name)?.parse().ok()
}

fn count(fact: &Fact<'_>, name: &str) -> Option<u64> {
    fact.payload.get(name)?.as_u64()
}

fn flag(fact: &Fact<'_>, name: &str) -> Option<bool> {
    fact.payload.get(name)?.as_bool()
}

fn counts(fact: &Fact<'_>, name: &str) -> Vec<u64> {
    items(fact, name).filter_map(Json::as_u64).collect()
}

fn texts(fact: &Fact<'_>, name: &str) -> Vec<String> {
    items(fact, name).filter_map(Json::as_str).map(str::to_owned).collect()
}

fn items<'f>(fact: &Fact<'f>, name: &str) -> impl Iterator<Item = &'f Json> {
    fact.payload.get(name).and_then(Json::as_array).into_iter().flatten()
}
