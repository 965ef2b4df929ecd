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
    pub stage: Option<String>,
    pub canary: bool,
    pub blocked: bool,
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
                self.declared = true;
                self.capability = owned("capability");
                self.primary_agent_id = owned("primary_agent_id");
                self.fallback_agent_id = owned("fallback_agent_id");
                self.stage = owned("stage");
            }
            // Gone, but not forgotten: a block and the number of rollbacks outlive a declaration.
            Kind::RouteRemoved => {
                let Self { blocked, epoch, .. } = *self;
                *self = Self { blocked, epoch, ..Self::default() };
            }
            Kind::PromotionDecided => {
                let gate = owned("gate");
                if payload.text("outcome") == Some("passed") {
                    self.gates.extend(gate);
                } else if let Some(gate) = gate {
                    self.gates.remove(&gate);
                }
            }
            Kind::PromotionAdvanced => {
                self.stage = owned("to");
                self.canary = payload.flag("canary").unwrap_or_default();
            }
            Kind::PromotionReset => {
                self.stage = Some("dev".to_owned());
                self.canary = false;
                self.gates.clear();
            }
            Kind::RollbackExecuted => {
                self.stage = owned("to");
                self.canary = false;
                self.blocked = payload.flag("blocked").unwrap_or(true);
                self.epoch = payload.count("epoch").unwrap_or(self.epoch);
                // They must be earned again.
                self.gates.retain(|gate| gate != "G3" && gate != "G4");
            }
            Kind::RollbackLifted => self.blocked = false,
            _ => {}
        }
    }

    pub fn to_json(&self) -> Json {
        json!({
            "declared": self.declared,
            "capability": self.capability,
            "primary_agent_id": self.primary_agent_id,
            "fallback_agent_id": self.fallback_agent_id,
            "stage": self.stage,
            "canary": self.canary,
            "blocked": self.blocked,
            "epoch": self.epoch,
            "gates": self.gates,
        })
    }
}
