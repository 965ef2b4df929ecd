//! What the ledger says of one route.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::definition::Definition;
use super::stage::{GateStatus, PromotionGate, Stage};
use super::vouching::Voucher;
use crate::policy::Route;
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::wire::Sender;

/// What the ledger says of one route. Copies are as cheap as a reference until one of them takes another entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteRecord(pub(super) Arc<RouteFacts>);

/// All of it, to be read; it changes only by [`RouteRecord::take`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteFacts {
    /// Nothing if it was never declared, or was removed.
    pub declared: Option<Declared>,
    /// The definition before the one in force: what a rollback restores.
    pub previous: Option<Definition>,
    /// A definition that a rollback restored: the routing table's does not count until a person lifts it.
    pub pin: Option<Pin>,
    pub stage: Stage,
    /// While the route is live one handoff at a time.
    pub canary: Option<Canary>,
    pub blocked: bool,
    /// How many rollbacks it has had.
    pub epoch: u64,
    /// The gates that are passed for the definition in force.
    pub passes: BTreeMap<PromotionGate, Pass>,
    /// The entry with which the passed gates last changed.
    pub passes_changed: u64,
    /// Evidence of end-to-end runs since G1, or since the last rollback; the newest.
    pub evidence: Vec<Evidence>,
    pub status: GateStatus,
    pub last_outcome: Option<LastOutcome>,
    pub last_rollback: Option<LastRollback>,
}

/// A route that is declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    pub capability: String,
    pub primary_agent_id: String,
    pub fallback_agent_id: Option<String>,
    /// The stage it is declared for.
    pub stage: Stage,
    /// Nothing in entries of a time before definitions were recorded.
    pub definition: Option<Definition>,
    /// The entry since which the gates belong to this definition.
    pub since: u64,
    pub at: Timestamp,
}

/// A restored definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    pub definition: Definition,
    pub sequence: u64,
    pub at: Timestamp,
}

/// The canary: one live handoff at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Canary {
    /// How many have ended well in a row.
    pub done: u64,
    /// How many must.
    pub of: u64,
    pub holder: Option<Holder>,
}

/// Who holds the slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub handoff_id: String,
    pub sequence: u64,
    pub since: Timestamp,
}

/// A gate that is passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    pub sequence: u64,
    pub at: Timestamp,
    pub by: By,
    /// The ledger entries that it rests on.
    pub evidence: Vec<u64>,
    pub handoff_id: Option<String>,
    pub plan_ref: Option<String>,
}

/// Evidence of an end-to-end run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub handoff_id: String,
    pub by: By,
    #[serde(flatten)]
    pub voucher: Voucher,
    pub sequence: u64,
    pub at: Timestamp,
    pub run_id: Option<String>,
    pub trace_id: Option<String>,
    pub report: Option<String>,
}

/// How the gate that was last decided went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastOutcome {
    pub gate: PromotionGate,
    pub passed: bool,
    pub sequence: u64,
    pub at: Timestamp,
    pub by: By,
    pub reason: Option<String>,
}

/// The last rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRollback {
    pub sequence: u64,
    pub at: Timestamp,
    pub by: By,
    pub reason: String,
    pub code: Option<String>,
    /// The handoff that triggered it.
    pub handoff_id: Option<String>,
    pub from: Stage,
    /// How many live handoffs were in flight, and which; the first of them if they were many.
    pub in_flight: u64,
    pub rolled_back: Vec<String>,
    pub restored: Option<Digest>,
}

/// Who an entry is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    System,
    /// An operator, by name.
    Human(String),
    Agent(String),
    /// A registered harness.
    Runner(String),
}

impl RouteFacts {
    /// The definition in force.
    pub fn definition(&self) -> Option<&Definition> {
        self.declared.as_ref()?.definition.as_ref()
    }

    pub fn route(&self) -> Option<&Route> {
        self.definition().map(|definition| &definition.route)
    }

    pub fn pass(&self, gate: PromotionGate) -> Option<&Pass> {
        self.passes.get(&gate)
    }

    /// The first gate that is not passed.
    pub fn next_gate(&self) -> Option<PromotionGate> {
        PromotionGate::ALL.into_iter().find(|gate| !self.passes.contains_key(gate))
    }

    /// The last of those that are passed.
    pub fn last_gate_passed(&self) -> Option<PromotionGate> {
        self.passes.keys().next_back().copied()
    }

    /// The stage that it is on the way to; none once it is fully live.
    pub fn candidate_stage(&self) -> Option<Stage> {
        match self.canary {
            Some(_) => Some(Stage::Live),
            None => self.stage.next(),
        }
    }

    /// Who let it go live, and when.
    pub fn approved(&self) -> Option<(&str, Timestamp)> {
        let pass = self.pass(PromotionGate::G4)?;
        match &pass.by {
            By::Human(name) => Some((name, pass.at)),
            _ => None,
        }
    }

    /// The entry after which simulated handoffs count for G2.
    pub fn simulation_window(&self) -> Option<u64> {
        self.pass(PromotionGate::G1).map(|pass| pass.sequence)
    }

    /// The entry after which a run counts for G3: evidence from before a rollback proves nothing about what follows.
    pub fn e2e_window(&self) -> Option<u64> {
        let rollback = self.last_rollback.as_ref().map_or(0, |rollback| rollback.sequence);
        self.simulation_window().map(|window| window.max(rollback))
    }

    /// The route's rollback plan: its own, else the one that the handoff of G3 names.
    pub fn plan_ref(&self) -> Option<&str> {
        let own = self.route().and_then(|route| route.rollback_plan_ref.as_deref());
        own.or_else(|| self.pass(PromotionGate::G3)?.plan_ref.as_deref())
    }
}

impl By {
    pub(super) fn of(sender: Sender<'_>) -> Self {
        match sender {
            Sender::System => Self::System,
            Sender::Human(name) => Self::Human(name.to_owned()),
            Sender::Agent(id) => Self::Agent(id.to_owned()),
            Sender::Runner(id) => Self::Runner(id.to_owned()),
        }
    }
}

impl Deref for RouteRecord {
    type Target = RouteFacts;

    fn deref(&self) -> &RouteFacts {
        &self.0
    }
}

impl Serialize for RouteRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'d> Deserialize<'d> for RouteRecord {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        RouteFacts::deserialize(deserializer).map(|facts| Self(Arc::new(facts)))
    }
}
