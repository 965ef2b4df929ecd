//! What the claims say about a candidate: replay, or reasons against it, in ledger order.

use std::sync::Arc;

use super::EngineFault;
use super::candidate::Candidate;
use super::claims::{Before, ClaimIndex, Known};
use super::epoch::Epoch;
use super::facts::Facts;
use super::record::Decided;
use crate::contract::Mode;
use crate::gates::{Code, Reason};
use crate::json::printable;
use crate::limits;
use crate::policy::Stage;

/// What to do with a candidate.
#[derive(Debug)]
pub(super) enum Step {
    /// The same key with the same content: the decision as it stands, and nothing is appended.
    Replay(Arc<Decided>),
    /// Decide it; these reasons come on top of the verdict's.
    Decide { reasons: Vec<Reason>, before: Before },
}

pub(super) fn step(
    candidate: &Candidate,
    index: &ClaimIndex,
    epoch: Option<&Epoch>,
    topic_id: &str,
) -> Result<Step, EngineFault> {
    let cycle = candidate.cycle(topic_id);
    let mut reasons = Reasons::default();
    let Some(facts) = own_facts(candidate) else {
        return Ok(Step::Decide { reasons: Vec::new(), before: Before::default() });
    };
    if let (Some(source), Some(key)) = (&facts.source_agent, &facts.idempotency_key)
        && let Some(claim) = index.key(source, key)?
    {
        let known = index.handoff(&claim.handoff_id)?;
        match known.as_ref().and_then(|known| known.accepted.as_ref()) {
            Some(accepted) if claim.content_digest.as_ref() == Some(&facts.content_digest) => {
                return Ok(Step::Replay(index.decided(&claim.handoff_id, accepted)?));
            }
            _ => reasons.against(
                Code::IdempotencyConflict,
                "/audit/idempotencyKey",
                format!("`{}` stands for other content", printable(key)),
                "use a new key for new content",
            ),
        }
    }
    for void in epoch.into_iter().flat_map(|epoch| candidate.stamps.void_in(epoch)) {
        reasons.against(void.code, void.path, void.message, void.hint);
    }
    let before = index.before(facts, cycle)?;
    handoff_id(facts, cycle, &before, &mut reasons);
    stage(facts, candidate, &mut reasons);
    mention(facts, index, &mut reasons)?;
    grant(candidate, &mut reasons);
    lineage(facts, cycle, index, &before, &mut reasons)?;
    Ok(Step::Decide { reasons: reasons.0, before })
}

/// The facts of a candidate whose caller may speak for its source. A stranger must not be able to use up
/// somebody else's handoffId, or to see what became of it.
pub(super) fn own_facts(candidate: &Candidate) -> Option<&Facts> {
    let foreign = candidate.verdict.reasons().iter().any(|reason| reason.code == Code::SourceMismatch);
    candidate.facts.as_ref().filter(|_| !foreign)
}

#[derive(Default)]
struct Reasons(Vec<Reason>);

impl Reasons {
    fn against(&mut self, code: Code, path: &str, message: impl Into<String>, hint: &str) {
        let (path, message, hint) = (path.to_owned(), message.into(), hint.to_owned());
        self.0.push(Reason { gate: code.gate(), code, path, message, hint });
    }
}

/// An id belongs to the handoff that was accepted under it, or to whoever was refused under it first.
fn handoff_id(facts: &Facts, cycle: &str, before: &Before, reasons: &mut Reasons) {
    let Some(known) = &before.known else { return };
    let same = known.source_agent == facts.source_agent && known.correlation_id == cycle;
    if known.accepted.is_some() || !same {
        reasons.against(
            Code::HandoffReused,
            "/handoffId",
            format!("`{}` belongs to another handoff", printable(&facts.handoff_id)),
            "use a new handoffId",
        );
    }
}

fn stage(facts: &Facts, candidate: &Candidate, reasons: &mut Reasons) {
    let Some(route) = facts.route_key.as_deref().and_then(|key| candidate.ruling.policies.route(key)) else {
        return;
    };
    let reached = match route.stage {
        Stage::Dev => Mode::Dev,
        Stage::Simulated => Mode::Simulated,
    };
    let Some(mode) = facts.mode.as_deref() else { return };
    let beyond = match mode {
        "live" => true,
        "simulated" => reached < Mode::Simulated,
        _ => false,
    };
    if beyond {
        reasons.against(
            Code::StageNotReached,
            "/mode",
            format!("the route has reached {}, not {mode}", reached.as_str()),
            "use a mode that the route has reached, or promote it",
        );
    }
}

/// A message is spent once, and mentions are only counted until an operator lets them through.
fn mention(facts: &Facts, index: &ClaimIndex, reasons: &mut Reasons) -> Result<(), EngineFault> {
    let Some(message_id) = &facts.message_id else { return Ok(()) };
    if index.is_spent(message_id)? {
        reasons.against(
            Code::MentionDuplicate,
            "/authorship/mentionDelegation/messageId",
            format!("message `{}` was used before", printable(message_id)),
            "nothing to do: the first handoff stands",
        );
    }
    reasons.against(
        Code::MentionPhase,
        "/authorship/mentionDelegationMode",
        "mentions are in phase log-only: recorded, never let through",
        "wait for an operator to raise the phase",
    );
    Ok(())
}

fn grant(candidate: &Candidate, reasons: &mut Reasons) {
    if let Some(grant) = candidate.claims.as_ref().and_then(|claims| claims.grant.as_ref()) {
        reasons.against(
            Code::AuthorizationUnknown,
            "/authorship/risk/authorizationRef",
            format!("there is no grant `{}`", printable(&grant.authorization_ref)),
            "name a grant that an operator made",
        );
    }
}

fn lineage(
    facts: &Facts,
    cycle: &str,
    index: &ClaimIndex,
    before: &Before,
    reasons: &mut Reasons,
) -> Result<(), EngineFault> {
    const PATH: &str = "/parentHandoffId";
    if facts.message_id.is_some() && before.mentions >= limits::LINEAGE_MENTIONS_MAX {
        let message = format!("this cycle has had {} mentions already", limits::LINEAGE_MENTIONS_MAX);
        reasons.against(Code::LoopDetected, "/correlationId", message, "let a person start a new cycle");
    }
    let Some(parent_id) = &facts.parent_handoff_id else { return Ok(()) };
    let sound = |parent: &Arc<Known>| {
        parent.accepted.is_some()
            && parent.correlation_id == cycle
            && parent.target_agent == facts.source_agent
    };
    let Some(parent) = index.handoff(parent_id)?.filter(sound) else {
        reasons.against(
            Code::ParentInvalid,
            PATH,
            format!("`{}` is no accepted handoff that leads here", printable(parent_id)),
            "name an accepted handoff of the same correlationId whose target is this source",
        );
        return Ok(());
    };
    let hops_max = limits::LINEAGE_HOPS_MAX as usize;
    let chain = index.ancestors(parent, hops_max + 1)?;
    if chain.len() > hops_max {
        let message = format!("the chain has more than {hops_max} hops");
        reasons.against(
            Code::LoopDetected,
            PATH,
            message,
            "let a person or the first orchestrator start afresh",
        );
    }
    let stands_in_chain = |agent: &Option<String>| {
        agent.is_some()
            && chain.iter().any(|known| known.source_agent == *agent || known.target_agent == *agent)
    };
    if facts.message_id.is_some() && stands_in_chain(&facts.target_agent) {
        reasons.against(
            Code::LoopDetected,
            "/target/agentId",
            "the target already stands in the chain that leads here",
            "let a person or the first orchestrator start afresh",
        );
    }
    Ok(())
}
