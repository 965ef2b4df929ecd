//! What the gates found, and what follows from it.

use serde::Serialize;

use super::codes::Code;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// The gates, in the order in which an answer lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    Contract,
    Safety,
    Policy,
    Envelope,
    Risk,
    Mention,
    Stage,
    Lineage,
    Freeze,
    Identity,
}

impl Gate {
    /// The gates that need no ledger.
    pub const PURE: [Self; 6] =
        [Self::Contract, Self::Safety, Self::Policy, Self::Envelope, Self::Risk, Self::Mention];

    /// All gates: those that need no ledger, and the claims that are decided in its order.
    pub const ALL: [Self; 10] = [
        Self::Contract,
        Self::Safety,
        Self::Policy,
        Self::Envelope,
        Self::Risk,
        Self::Mention,
        Self::Stage,
        Self::Lineage,
        Self::Freeze,
        Self::Identity,
    ];

    /// The name in answers and ledger entries.
    pub fn id(self) -> &'static str {
        match self {
            Self::Contract => "G0",
            Self::Safety => "safety",
            Self::Policy => "D1",
            Self::Envelope => "D2",
            Self::Risk => "D3",
            Self::Mention => "D4",
            Self::Stage => "stage",
            Self::Lineage => "lineage",
            Self::Freeze => "freeze",
            Self::Identity => "identity",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Contract => "G0 contract",
            Self::Safety => "safety",
            Self::Policy => "D1 policy",
            Self::Envelope => "D2 envelope",
            Self::Risk => "D3 risk",
            Self::Mention => "D4 mention",
            Self::Stage => "stage",
            Self::Lineage => "lineage",
            Self::Freeze => "freeze",
            Self::Identity => "identity",
        }
    }
}

impl Serialize for Gate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// What a gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Pass,
    Fail,
    NotApplicable,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotApplicable => "not_applicable",
        }
    }
}

/// The answer to an orchestrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allowed,
    Denied,
    Expired,
    NeedsApproval,
}

impl Decision {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::NeedsApproval => "needs_approval",
        }
    }
}

/// One reason against a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub gate: Gate,
    pub code: Code,
    /// JSON pointer into the TaskSpec.
    pub path: String,
    pub message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

/// Whose yes a handoff needs beyond the gates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Human {
    NotNeeded,
    /// The grant that the sender names must cover it.
    Grant(String),
    /// A person must approve it.
    Approval,
}

/// What all gates say together. Only the gates can make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    outcomes: [Outcome; 6],
    reasons: Vec<Reason>,
    human: Human,
    proven: bool,
    holds_until: Option<Timestamp>,
    policy_digest: Digest,
}

impl Verdict {
    /// What follows before anything is claimed: any reason that is not an expiry denies; only expiries
    /// expire; else a person may still have to say yes.
    pub fn decision(&self) -> Decision {
        decision_of(&self.reasons, &self.human)
    }

    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    pub fn human(&self) -> &Human {
        &self.human
    }

    pub fn gates(&self) -> impl Iterator<Item = (Gate, Outcome)> + '_ {
        Gate::PURE.into_iter().zip(self.outcomes)
    }

    pub fn outcome(&self, gate: Gate) -> Outcome {
        self.gates().find(|(other, _)| *other == gate).map_or(Outcome::NotApplicable, |(_, outcome)| outcome)
    }

    /// Did the principal's proof verify, whatever else is wrong?
    pub fn is_proven(&self) -> bool {
        self.proven
    }

    /// The earliest instant at which a pass stops being true; judged again from then on.
    pub fn holds_until(&self) -> Option<Timestamp> {
        self.holds_until
    }

    /// The policy set it was judged under.
    pub fn policy_digest(&self) -> Digest {
        self.policy_digest
    }

    /// Until when a person may say yes, if one was asked at `now` and is given so long.
    pub fn approval_until(&self, now: Timestamp, wait_s: i64) -> Timestamp {
        let wait = now.plus_seconds(wait_s);
        self.holds_until.map_or(wait, |until| wait.min(until))
    }
}

/// What follows from all reasons, and from whose yes is still needed.
pub(crate) fn decision_of(reasons: &[Reason], human: &Human) -> Decision {
    if reasons.iter().any(|reason| !reason.code.is_expiry()) {
        Decision::Denied
    } else if !reasons.is_empty() {
        Decision::Expired
    } else if *human != Human::NotNeeded {
        Decision::NeedsApproval
    } else {
        Decision::Allowed
    }
}

/// Collects reasons while the gates run.
#[derive(Debug)]
pub(super) struct Findings {
    gate: Gate,
    outcomes: [Outcome; 6],
    reasons: Vec<Reason>,
    proven: bool,
}

impl Default for Findings {
    fn default() -> Self {
        let outcomes = [Outcome::NotApplicable; 6];
        Self { gate: Gate::Contract, outcomes, reasons: Vec::new(), proven: false }
    }
}

impl Findings {
    /// The gate that speaks from now on; it passes unless it finds something.
    pub(super) fn enter(&mut self, gate: Gate) {
        self.gate = gate;
        self.set(Outcome::Pass);
    }

    fn set(&mut self, outcome: Outcome) {
        if let Some(place) = self.outcomes.get_mut(self.gate as usize) {
            *place = outcome;
        }
    }

    pub(super) fn refuse(
        &mut self,
        code: Code,
        path: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.set(Outcome::Fail);
        let (path, message, hint) = (path.into(), message.into(), hint.into());
        self.reasons.push(Reason { gate: self.gate, code, path, message, hint });
    }

    /// The principal's proof verified.
    pub(super) fn prove(&mut self) {
        self.proven = true;
    }

    /// Has the current gate said anything against this path?
    pub(super) fn refused_at(&self, path: &str) -> bool {
        self.reasons.iter().any(|reason| reason.gate == self.gate && reason.path == path)
    }

    pub(super) fn into_verdict(
        self,
        human: Human,
        holds_until: Option<Timestamp>,
        policy_digest: Digest,
    ) -> Verdict {
        let Self { outcomes, reasons, proven, .. } = self;
        Verdict { outcomes, reasons, human, proven, holds_until, policy_digest }
    }
}

pub(super) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
