//! What the events in the gateway's own streams come to: the project as a whole, and each route.
//!
//! These streams never end, so all that is kept of one is what is in force.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::envelope::{Contents, Envelope};
use super::kind::Kind;
use super::task::Mark;

/// The gateway: what is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectState {
    pub policy_digest: Option<String>,
    pub mention_phase: Option<String>,
    /// What is frozen, as (route, mode); neither means everything.
    pub frozen: BTreeSet<(Option<String>, Option<String>)>,
    pub tokens: BTreeSet<String>,
    pub keys: BTreeSet<String>,
    /// Grants, and how often each may still be used.
    pub grants: BTreeMap<String, u64>,
    pub pushes: BTreeSet<String>,
}

/// A route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteState {
    pub declared: bool,
    pub capability: Option<String>,
    pub primary_agent_id: Option<String>,
    pub fallback_agent_id: Option<String>,
    /// Of the part of the definition that the gates belong to.
    pub route_digest: Option<String>,
    /// The stage it is declared for, and the one it stands at.
    pub declared_stage: Option<String>,
    pub stage: Option<String>,
    pub canary: bool,
    /// The live handoff in the canary's slot, and how many have ended well in a row.
    pub canary_holder: Option<String>,
    pub canary_done: u64,
    pub blocked: bool,
    /// Whether an earlier definition is in force, whatever the routing table says.
    pub pinned: bool,
    /// How many rollbacks it has had.
    pub epoch: u64,
    /// The gates that are passed for the route as it is defined.
    pub gates: BTreeSet<String>,
}

/// How far a stream has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub(super) stream_seq: u64,
    pub(super) last: Option<Mark>,
}

impl ProjectState {
    pub(super) fn take(&mut self, envelope: &Envelope<'_>) {
        let payload = envelope.payload();
        let owned = |name| payload.text(name).map(str::to_owned);
        match envelope.kind() {
            Kind::PolicyLoaded => self.policy_digest = owned("digest"),
            Kind::MentionChanged => self.mention_phase = owned("to"),
            Kind::FreezeSet => drop(self.frozen.insert((owned("route_key"), owned("mode")))),
            Kind::FreezeLifted => drop(self.frozen.remove(&(owned("route_key"), owned("mode")))),
            Kind::TokenCreated => self.tokens.extend(owned("token_id")),
            Kind::TokenRevoked => remove(&mut self.tokens, payload, "token_id"),
            Kind::KeyAdded => self.keys.extend(owned("key_id")),
            Kind::KeyRemoved => remove(&mut self.keys, payload, "key_id"),
            Kind::PushCreated => self.pushes.extend(owned("push_id")),
            Kind::PushRemoved => remove(&mut self.pushes, payload, "push_id"),
            Kind::AuthorizationCreated => {
                self.grants.extend(owned("authorization_ref").zip(payload.count("uses")));
            }
            Kind::AuthorizationUsed => match (owned("authorization_ref"), payload.count("remaining")) {
                (Some(grant), Some(remaining @ 1..)) => drop(self.grants.insert(grant, remaining)),
                (Some(grant), _) => drop(self.grants.remove(&grant)),
                _ => {}
            },
            Kind::AuthorizationRevoked => {
                payload.text("authorization_ref").and_then(|grant| self.grants.remove(grant));
            }
            _ => {}
        }
    }

    pub fn to_json(&self) -> Json {
        let frozen: Vec<Json> =
            self.frozen.iter().map(|(route, mode)| json!({"route_key": route, "mode": mode})).collect();
        json!({
            "policy_digest": self.policy_digest,
            "mention_phase": self.mention_phase,
            "frozen": frozen,
            "tokens": self.tokens,
            "keys": self.keys,
            "grants": self.grants,
            "pushes": self.pushes,
        })
    }
}

fn remove(names: &mut BTreeSet<String>, payload: Contents<'_>, member: &str) {
    if let Some(name) = payload.text(member) {
        names.remove(name);
    }
}

impl RouteState {
    pub(super) fn take(&mut self, envelope: &Envelope<'_>) {
        let payload = envelope.payload();
        let owned = |name| payload.text(name).map(str::to_owned);
        match envelope.kind() {
            Kind::RouteDeclared => {
                let digest = owned("route_digest");
                let stage = owned("stage");
                if self.route_digest.is_some() && self.route_digest != digest {
                    self.set_back();
                } else if !self.declared {
                    self.stage.clone_from(&stage);
                } else if is_simulated(&stage)
                    && !is_simulated(&self.declared_stage)
                    && self.stage.as_deref() == Some("dev")
                    && !self.pinned
                {
                    // Declared for more than before; what was earned is not lowered by what is declared, and what a
                    // rollback restores raises nothing.
                    self.stage.clone_from(&stage);
                }
                self.declared = true;
                self.capability = owned("capability");
                self.primary_agent_id = owned("primary_agent_id");
                self.fallback_agent_id = owned("fallback_agent_id");
                self.route_digest = digest;
                self.declared_stage = stage;
                self.settle();
            }
            // Gone, but not forgotten: a block, a pin and the number of rollbacks outlive a declaration.
            Kind::RouteRemoved => {
                let Self { blocked, pinned, epoch, .. } = *self;
                *self = Self { blocked, pinned, epoch, ..Self::default() };
            }
            Kind::PromotionDecided => {
                let Some(gate) = owned("gate") else { return };
                // Those behind it rested on it.
                self.gates.retain(|passed| *passed < gate);
                if payload.text("outcome") == Some("passed") {
                    self.gates.insert(gate);
                }
                self.settle();
            }
            Kind::PromotionAdvanced => {
                self.stage = owned("to");
                self.canary = payload.flag("canary").unwrap_or_default();
                self.canary_holder = None;
                self.canary_done = 0;
            }
            Kind::PromotionCanary => {
                self.canary_done = payload.count("done").unwrap_or_default();
                let taken = payload.text("outcome") == Some("taken");
                self.canary_holder = owned("handoff_id").filter(|_| taken);
            }
            Kind::PromotionReset => self.set_back(),
            Kind::RollbackExecuted => {
                self.stage = owned("to");
                self.leave_canary();
                // Only a person opens what is blocked, by lifting it.
                self.blocked |= payload.flag("blocked").unwrap_or(true);
                self.pinned |= payload.text("restored").is_some();
                self.epoch = payload.count("epoch").unwrap_or(self.epoch);
                // They must be earned again.
                self.gates.retain(|gate| gate != "G3" && gate != "G4");
            }
            Kind::RollbackLifted => {
                let lifted: Vec<_> = payload.texts("lifted").collect();
                let lifts = |what| lifted.is_empty() || lifted.contains(&what);
                self.blocked &= !lifts("block");
                self.pinned &= !lifts("pin");
            }
            _ => {}
        }
    }

    /// Another definition: back to dev, with every gate to be passed again.
    fn set_back(&mut self) {
        self.stage = Some("dev".to_owned());
        self.leave_canary();
        self.gates.clear();
    }

    fn leave_canary(&mut self) {
        self.canary = false;
        self.canary_holder = None;
        self.canary_done = 0;
    }

    /// Simulated work needs G1, or a route that is declared for it.
    fn settle(&mut self) {
        if is_simulated(&self.stage) && !self.gates.contains("G1") && !is_simulated(&self.declared_stage) {
            self.stage = Some("dev".to_owned());
        }
    }

    pub fn to_json(&self) -> Json {
        json!({
            "declared": self.declared,
            "capability": self.capability,
            "primary_agent_id": self.primary_agent_id,
            "fallback_agent_id": self.fallback_agent_id,
            "route_digest": self.route_digest,
            "declared_stage": self.declared_stage,
            "stage": self.stage,
            "canary": self.canary,
            "canary_holder": self.canary_holder,
            "canary_done": self.canary_done,
            "blocked": self.blocked,
            "pinned": self.pinned,
            "epoch": self.epoch,
            "gates": self.gates,
        })
    }
}

fn is_simulated(stage: &Option<String>) -> bool {
    stage.as_deref() == Some("simulated")
}
