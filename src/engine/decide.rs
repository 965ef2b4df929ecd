//! What the claims say about a candidate: replay, or reasons against it, in ledger order.

use std::sync::Arc;

use super::EngineFault;
use super::candidate::Candidate;
use super::claims::{Before, ClaimIndex, Known};
use super::facts::Facts;
use super::record::Decided;
use super::routing::mode_of;
use super::standing::Standing;
use crate::authorization::{GrantCode, GrantRefusal, Use, people_needed};
use crate::contract::Mode;
use crate::gates::{Code, Decision, Human, Reason};
use crate::json::printable;
use crate::ledger::Keeping;
use crate::limits;
use crate::mentions::Phase;
use crate::policy::PolicySet;
use crate::promotion::{Stage, StageRefusal, slot_free, stage_reaches};
use crate::timestamp::Timestamp;

/// What to do with a candidate.
#[derive(Debug)]
pub(super) enum Step {
    /// The same key with the same content: the decision as it stands, and nothing is appended.
    Replay(Arc<Decided>),
    /// Decide it; these reasons come on top of the verdict's.
    Decide { reasons: Vec<Reason>, before: Before, cover: Option<Cover> },
}

/// A grant that carries the handoff, and how often it may be used after that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cover {
    pub(super) authorization_ref: String,
    pub(super) remaining: u32,
}

/// What is asked of a handoff again when a person has said yes to it: all that moves.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) reasons: Vec<Reason>,
    pub(super) cover: Option<Cover>,
}

pub(super) fn late_reasons(
    candidate: &Candidate,
    standing: &Standing,
    now: Timestamp,
) -> Result<Late, EngineFault> {
    let mut reasons = Reasons::default();
    for void in standing.epoch.iter().flat_map(|epoch| candidate.stamps.void_in(epoch)) {
        reasons.against(void.code, void.path, void.message, void.hint);
    }
    let mut cover = None;
    if let Some(facts) = own_facts(candidate) {
        stage(facts, candidate, standing, &mut reasons);
        frozen(facts, standing, &mut reasons);
        phase(facts, candidate, standing, &mut reasons);
        cover = grant(candidate, standing, now, &mut reasons);
    }
    Ok(Late { reasons: reasons.0, cover })
}

pub(super) fn step(
    candidate: &Candidate,
    index: &ClaimIndex,
    standing: &Standing,
    topic_id: &str,
    keeping: Keeping,
    now: Timestamp,
) -> Result<Step, EngineFault> {
    let cycle = candidate.cycle(topic_id);
    let epoch = standing.epoch.as_deref();
    let mut reasons = Reasons::default();
    let Some(facts) = own_facts(candidate) else {
        return Ok(Step::Decide { reasons: Vec::new(), before: Before::default(), cover: None });
    };
    if let (Some(source), Some(key)) = (&facts.source_agent, &facts.idempotency_key)
        && let Some(claim) = index.key(source, key)?
    {
        let known = index.handoff(&claim.handoff_id)?;
        match known.as_ref().and_then(|known| known.accepted.as_ref()) {
            Some(accepted) if claim.content_digest == Some(candidate.sealed().content_digest) => {
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
    volatile(facts, keeping, &mut reasons);
    stage(facts, candidate, standing, &mut reasons);
    frozen(facts, standing, &mut reasons);
    mention(facts, index, &mut reasons)?;
    phase(facts, candidate, standing, &mut reasons);
    let cover = grant(candidate, standing, now, &mut reasons);
    lineage(facts, (cycle, &before), index, &candidate.ruling.policies, &mut reasons)?;
    Ok(Step::Decide { reasons: reasons.0, before, cover })
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

/// Does the route take work of this mode now? One that the table does not have is refused by its gate.
fn stage(facts: &Facts, candidate: &Candidate, standing: &Standing, reasons: &mut Reasons) {
    let Some(key) = facts.route_key.as_deref() else { return };
    if candidate.ruling.policies.route(key).is_none() {
        return;
    }
    let record = standing.route(key);
    if record.is_some_and(|record| record.blocked) {
        reasons.against(
            Code::RouteBlocked,
            "/routing/routeKey",
            "the route is blocked",
            "wait until an operator has looked and opens it",
        );
    }
    let Some(mode) = mode_of(facts.mode.as_deref()) else { return };
    let free = || record.map_or(Ok(()), |record| slot_free(record, mode));
    match reaches(key, mode, candidate, standing).and_then(|()| free()) {
        Ok(()) | Err(StageRefusal::Undeclared | StageRefusal::Blocked) => {}
        Err(StageRefusal::NotReached { reached }) => reasons.against(
            Code::StageNotReached,
            "/mode",
            format!("the route has reached {reached}, not {}", mode.as_str()),
            "use a mode that the route has reached, or promote it",
        ),
        Err(StageRefusal::CanaryFull { .. }) => reasons.against(
            Code::CanaryFull,
            "/mode",
            "the route is live one handoff at a time, and another one is under way",
            "wait until it has ended",
        ),
    }
}

/// Has the route come far enough for work of this mode? One that the ledger does not have yet has come as far as it is
/// declared for, which is never live.
pub(super) fn reaches(
    key: &str,
    mode: Mode,
    candidate: &Candidate,
    standing: &Standing,
) -> Result<(), StageRefusal> {
    match standing.route(key).map(|route| stage_reaches(route, mode)) {
        None | Some(Err(StageRefusal::Undeclared)) => {
            let declared = candidate.ruling.policies.route(key).ok_or(StageRefusal::Undeclared)?;
            let reached = Stage::from(declared.stage);
            if reached < Stage::needed_by(mode) { Err(StageRefusal::NotReached { reached }) } else { Ok(()) }
        }
        Some(reached) => reached,
    }
}

/// Live work is not recorded where the record is gone with the process.
fn volatile(facts: &Facts, keeping: Keeping, reasons: &mut Reasons) {
    if keeping == Keeping::Volatile && mode_of(facts.mode.as_deref()) == Some(Mode::Live) {
        reasons.against(
            Code::StageNotReached,
            "/mode",
            "this gateway keeps its ledger in memory, and takes no live work",
            "serve it on segments or on a database",
        );
    }
}

/// An operator stopped this route, this mode, or everything. Where one of the two cannot be read, the others still hold.
fn frozen(facts: &Facts, standing: &Standing, reasons: &mut Reasons) {
    let (route_key, mode) = (facts.route_key.as_deref(), mode_of(facts.mode.as_deref()));
    if let Some(freeze) = standing.freezes.halts(route_key, mode) {
        reasons.against(
            Code::Frozen,
            "",
            format!("{} is frozen since {}", freeze.scope, freeze.at),
            "wait until an operator lifts the freeze",
        );
    }
}

/// A message is spent once.
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
    Ok(())
}

/// Mentions are let through as far as an operator has raised the phase.
fn phase(facts: &Facts, candidate: &Candidate, standing: &Standing, reasons: &mut Reasons) {
    let phase = standing.mentions.phase();
    let lets_through = candidate.risk_class().is_some_and(|class| phase.lets_through(class));
    if facts.message_id.is_none() || lets_through {
        return;
    }
    let what = match phase {
        Phase::LogOnly => "recorded, never let through",
        Phase::GatedRead | Phase::GatedLive => "only reading and diagnosing are let through",
    };
    reasons.against(
        Code::MentionPhase,
        "/authorship/mentionDelegationMode",
        format!("mentions are in phase {phase}: {what}"),
        "wait for an operator to raise the phase",
    );
}

/// Does the grant that is named carry the handoff? Asked whether a person's yes is needed or not, but only of a handoff
/// that the gates let pass: another one claims nothing, and must not learn what grants there are. Where no yes is needed
/// nothing of the grant is used.
fn grant(candidate: &Candidate, standing: &Standing, now: Timestamp, reasons: &mut Reasons) -> Option<Cover> {
    match covered(candidate, standing, now)? {
        Ok(_) if *candidate.verdict.human() == Human::NotNeeded => None,
        Ok(cover) => Some(cover),
        Err(refusals) => {
            for GrantRefusal { code, path, message, hint } in refusals {
                reasons.against(code.into(), path, message, hint);
            }
            None
        }
    }
}

/// Does the grant still carry a handoff that was allowed under it? That it is spent does not matter: the use is its own.
pub(super) fn still_covered(candidate: &Candidate, standing: &Standing, now: Timestamp) -> bool {
    covered(candidate, standing, now)
        .and_then(Result::err)
        .is_none_or(|refusals| refusals.iter().all(|refusal| refusal.code == GrantCode::Spent))
}

/// The earliest instant at which something that lets it go out stops being true: of what the gates found, or the grant that
/// it names.
pub(super) fn holds_until(candidate: &Candidate, standing: &Standing) -> Option<Timestamp> {
    let named = candidate.claims.as_ref().and_then(|claims| claims.grant.as_ref());
    let held = named.and_then(|grant| standing.grants.find(&grant.authorization_ref));
    let ends = held.map(|held| held.grant.terms.expires_at);
    candidate.verdict.holds_until().into_iter().chain(ends).min()
}

/// Whether the grant that is named carries the handoff; nothing where none is named.
fn covered(
    candidate: &Candidate,
    standing: &Standing,
    now: Timestamp,
) -> Option<Result<Cover, Vec<GrantRefusal>>> {
    let claims = candidate.claims.as_ref()?;
    let grant = claims.grant.as_ref()?;
    let asked = Use {
        authorization_ref: &grant.authorization_ref,
        principal: grant.principal_id.as_deref(),
        source_agent: &claims.source_agent_id,
        target_agent: &claims.target_agent_id,
        names: candidate.ruling.policies.names(),
        fallback_agent: grant.fallback_agent_id.as_deref(),
        operation: &grant.operation,
        channel: grant.channel.as_deref(),
        mode: claims.mode,
        route_key: &claims.route_key,
        intent_hash: grant.intent_hash,
        at: now,
    };
    let remaining = standing.grants.covers(&asked, standing.epoch.as_ref().map(|epoch| epoch.since));
    let authorization_ref = grant.authorization_ref.clone();
    Some(remaining.map(|remaining| Cover { authorization_ref, remaining }))
}

/// How many people must still say yes to the handoff itself.
pub(super) fn people(candidate: &Candidate, cover: Option<&Cover>) -> u8 {
    let Some(claims) = &candidate.claims else { return 0 };
    if *candidate.verdict.human() == Human::NotNeeded {
        return 0;
    }
    let route = candidate.ruling.policies.route(&claims.route_key);
    people_needed(claims.mode, cover.is_some(), route.map_or(1, |route| route.approvers))
}

fn lineage(
    facts: &Facts,
    (cycle, before): (&str, &Before),
    index: &ClaimIndex,
    policies: &PolicySet,
    reasons: &mut Reasons,
) -> Result<(), EngineFault> {
    const PATH: &str = "/parentHandoffId";
    if facts.message_id.is_some() && before.mentions >= limits::LINEAGE_MENTIONS_MAX {
        let message = format!("this cycle has had {} mentions already", limits::LINEAGE_MENTIONS_MAX);
        reasons.against(Code::LoopDetected, "/correlationId", message, "let a person start a new cycle");
    }
    let Some(parent_id) = &facts.parent_handoff_id else { return Ok(()) };
    let leads_here =
        |parent: &Arc<Known>| parent.correlation_id == cycle && parent.target_agent == facts.source_agent;
    let parent = index.handoff(parent_id)?.filter(leads_here);
    // One that waits for a person, or was turned down by one, has handed nothing on.
    let allowed = match parent.as_ref().and_then(|parent| parent.accepted.as_ref()) {
        Some(accepted) => index.decided(parent_id, accepted)?.decision == Decision::Allowed,
        None => false,
    };
    let Some(parent) = parent.filter(|_| allowed) else {
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
    // Under whichever of its names.
    let stands_in_chain = |agent: &str| {
        let ends = chain.iter().flat_map(|known| known.source_agent.iter().chain(&known.target_agent));
        policies.names().all(agent).any(|name| ends.clone().any(|end| end == name))
    };
    if facts.message_id.is_some() && facts.target_agent.as_deref().is_some_and(stands_in_chain) {
        reasons.against(
            Code::LoopDetected,
            "/target/agentId",
            "the target already stands in the chain that leads here",
            "let a person or the first orchestrator start afresh",
        );
    }
    Ok(())
}
