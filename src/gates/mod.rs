//! The gates: may this handoff pass, and if not, every reason why.
//!
//! A gate is a pure function of the TaskSpec, the policy snapshot, the keys and the time. No I/O, no
//! locks, no log lines; the daemon, the command line and the tests all call [`judge`]. All gates run on
//! whatever could be read, so that an honest sender sees every finding in one answer; an empty table or a
//! missing policy means no.
//!
//! What depends on order or on state that moves (a used id, a blocked route, a grant) is not decided here
//! but listed in [`Claims`], for the one sequencer to decide.

mod claims;
mod codes;
mod contract;
mod envelope;
mod mention;
mod policy;
mod risk;
mod safety;
mod verdict;

pub use claims::{Claims, GrantClaim};
pub use codes::{Code, codes_markdown};
pub(crate) use verdict::decision_of;
pub use verdict::{Decision, Gate, Human, Outcome, Reason, Verdict};

use crate::contract::TaskSpec;
use crate::json::Document;
use crate::policy::PolicySet;
use crate::proof::Keyring;
use crate::timestamp::Timestamp;
use verdict::{Findings, earliest};

/// What a verdict rests on besides the TaskSpec.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'g> {
    pub policies: &'g PolicySet,
    pub keyring: &'g Keyring,
    pub caller: Caller<'g>,
    pub now: Timestamp,
}

/// Who submits the TaskSpec.
#[derive(Debug, Clone, Copy)]
pub enum Caller<'g> {
    /// An orchestrator: it speaks for this agent and no other.
    Agent(&'g str),
    /// May name any source, but not for live work: an administrator, or an anonymous local caller.
    AnySourceButLive,
    /// Nobody submits: the source is taken as stated, as `handoffd check` does.
    Unchecked,
}

/// A TaskSpec and the verdict on it.
#[derive(Debug)]
pub struct Judgement<'d> {
    pub spec: TaskSpec<'d>,
    pub verdict: Verdict,
}

/// Runs every gate.
pub fn judge<'d>(document: &'d Document<'_>, ground: &Ground<'_>) -> Judgement<'d> {
    let (spec, sound) = TaskSpec::read(document);
    let mut findings = Findings::default();

    findings.enter(Gate::Contract);
    let mut holds_until = contract::judge(document, &spec, sound, ground, &mut findings);
    findings.enter(Gate::Safety);
    safety::judge(&spec, ground.policies, &mut findings);

    if spec.is_delegated() == Some(true) {
        findings.enter(Gate::Policy);
        let file = policy::judge(&spec, ground.policies, &mut findings);
        findings.enter(Gate::Envelope);
        let envelope_until = envelope::judge(&spec, file, ground, &mut findings);
        findings.enter(Gate::Risk);
        risk::judge(&spec, file, &mut findings);
        holds_until = earliest(holds_until, envelope_until);
    }
    if spec.is_gated() == Some(true) {
        findings.enter(Gate::Mention);
        let mention_until = mention::judge(&spec, ground.policies, ground.now, &mut findings);
        holds_until = earliest(holds_until, mention_until);
    }

    let human = risk::human(&spec);
    let verdict = findings.into_verdict(human, holds_until, ground.policies.digest());
    Judgement { spec, verdict }
}

#[cfg(test)]
mod tests;
