//! The events that a decision is, written as one group.

use super::EngineFault;
use super::candidate::Candidate;
use super::decide::{holds_until, own_facts};
use super::facts::Facts;
use super::own::payload_of;
use super::record::{Decided, LedgerPlace, Pass};
use super::routing::mode_of;
use super::sequencer::Sequencer;
use crate::authorization::ApprovalRequested;
use crate::evidence::HandoffEvidence;
use crate::gates::{Decision, Gate, Outcome, Reason};
use crate::ledger::BatchBuilder;
use crate::timestamp::Timestamp;
use crate::wire::{Event, EventTooLarge, Fact, Kind, Lineage, Sender as WireSender, StreamId, WireId};

/// What follows for a candidate from the gates and the claims.
pub(super) struct Ruled {
    pub(super) decision: Decision,
    pub(super) gates: Vec<(Gate, Outcome)>,
    pub(super) reasons: Vec<Reason>,
    /// How many have to say yes.
    pub(super) people: u8,
}

impl Sequencer {
    /// Writes the group of events that a decision is.
    pub(super) fn record(
        &mut self,
        candidate: &Candidate,
        facts: Option<&Facts>,
        Ruled { decision, gates, reasons, people }: Ruled,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Decided, EngineFault> {
        let now = batch.time(self.now());
        let too_large =
            |fault: EventTooLarge| EngineFault::NotDurable(format!("an event has {} bytes", fault.bytes));
        let ids = [(); 3].map(|()| WireId::new(now.unix_milliseconds(), self.random()));
        let [created_id, decided_id, last_id] = ids;
        let topic_id = self.topic_id().to_owned();
        let (correlation_id, sealed) = (candidate.cycle(&topic_id), candidate.sealed());

        let stream = match facts {
            Some(facts) => StreamId::Handoff { handoff_id: &facts.handoff_id, attempt: facts.attempt },
            None => StreamId::Gateway { topic_id: &topic_id },
        };
        let event = |wire_id, kind, stream_seq, causation_id| Event {
            wire_id,
            kind,
            sender: WireSender::System,
            ts: now,
            stream,
            stream_seq,
            correlation_id,
            lineage: Lineage { causation_id, ..Lineage::default() },
            // The whole group shares it; the first event of a stream is where a reader looks.
            traceparent: candidate.traceparent.as_deref().filter(|_| causation_id.is_none()),
        };
        // All texts first: a group is written whole or not at all.
        let created = match facts {
            Some(facts) => Some(
                event(created_id, Kind::TaskCreated, 1, None)
                    .to_text(|payload| facts.write(sealed, payload))
                    .map_err(too_large)?,
            ),
            None => None,
        };
        let evidence = candidate.evidence.as_ref().filter(|_| decision == Decision::Allowed);
        let (decided_seq, cause) = match facts {
            Some(_) => (2, Some(created_id)),
            None => (self.building().gateway_seq + 1, None),
        };
        let verdict = event(decided_id, Kind::GateDecided, decided_seq, cause)
            .to_text(|payload| write_decided(payload, candidate, evidence, decision, &gates, &reasons))
            .map_err(too_large)?;
        let waits_until = candidate.verdict.approval_until(now, self.approval_wait_s());
        let asked = ApprovalRequested { approvers: Some(people), expires_at: Some(waits_until) };
        let (last_kind, codes) = match decision {
            Decision::Allowed => (Kind::TaskAvailable, None),
            Decision::NeedsApproval => (Kind::ApprovalRequested, None),
            Decision::Denied | Decision::Expired => (Kind::TaskRejected, Some(codes_of(&reasons))),
        };
        let last = match facts {
            None => None,
            Some(_) => Some(
                event(last_id, last_kind, 3, Some(decided_id))
                    .to_text(|payload| match (&codes, decision) {
                        (Some(codes), _) => payload.texts("codes", codes),
                        (None, Decision::NeedsApproval) => asked.write(payload),
                        (None, _) => {}
                    })
                    .map_err(too_large)?,
            ),
        };

        if let (Some(facts), Some(created), Some(last), Decision::NeedsApproval) =
            (facts, &created, &last, decision)
        {
            self.wait_for_people(stream_of(facts), (created, last), batch.next_sequence(), now)?;
            self.look_again(waits_until, &facts.handoff_id);
        }
        if let Some(created) = created {
            batch.body(sealed.task_spec_digest, &sealed.text);
            batch.event(created, now);
        } else {
            self.building_mut().gateway_seq = decided_seq;
        }
        if let Some(evidence) = evidence {
            batch.body(evidence.digest, &evidence.event);
        }
        let meta = batch.event(verdict, now);
        if let Some(last) = last {
            batch.event(last, now);
        }
        Ok(Decided {
            decision,
            handoff_id: facts.map(|facts| facts.handoff_id.clone()),
            correlation_id: candidate.correlation_id.clone(),
            attempt: facts.map_or(1, |facts| facts.attempt),
            decided_at: meta.consensus_timestamp,
            replayed: false,
            gates,
            reasons,
            policy_digest: candidate.verdict.policy_digest().to_string(),
            task_spec_digest: sealed.task_spec_digest,
            tag: evidence.map(|evidence| evidence.handoff),
            ledger: LedgerPlace { sequence: meta.sequence, running_hash: meta.running_hash },
            pass: match decision {
                Decision::Allowed => Pass::Dispatch { until: holds_until(candidate, self.building()) },
                Decision::NeedsApproval => Pass::Waits { until: waits_until },
                Decision::Denied | Decision::Expired => Pass::None,
            },
        })
    }

    /// Puts a handoff into the inbox, from the events that ask for it.
    fn wait_for_people(
        &mut self,
        stream: StreamId<'_>,
        (created, asked): (&str, &str),
        sequence: u64,
        at: Timestamp,
    ) -> Result<(), EngineFault> {
        let unsound = |why: &str| EngineFault::NotDurable(format!("nobody could be asked: {why}"));
        let sender = WireSender::System;
        for (kind, text, sequence) in
            [(Kind::TaskCreated, created, sequence), (Kind::ApprovalRequested, asked, sequence + 2)]
        {
            let payload = payload_of(text).ok_or_else(|| unsound("it cannot be read again"))?;
            let fact = Fact { kind, sender, stream, sequence, at, payload: &payload };
            self.building_mut().take(&fact, 0).map_err(|fault| unsound(&fault.to_string()))?;
        }
        Ok(())
    }
}

fn stream_of(facts: &Facts) -> StreamId<'_> {
    StreamId::Handoff { handoff_id: &facts.handoff_id, attempt: facts.attempt }
}

/// Every gate's outcome, with what the claims say on top. Claims are only asked of a handoff that can be named.
pub(super) fn outcomes(candidate: &Candidate, claims_say: &[Reason]) -> Vec<(Gate, Outcome)> {
    let facts = own_facts(candidate);
    let of = |gate: Gate| {
        if claims_say.iter().any(|reason| reason.gate == gate) {
            return Outcome::Fail;
        }
        let asked = match gate {
            // A route that there is, and a mode that is one.
            Gate::Stage => facts.is_some_and(|facts| {
                let route = facts.route_key.as_deref().and_then(|key| candidate.ruling.policies.route(key));
                route.is_some() && mode_of(facts.mode.as_deref()).is_some()
            }),
            Gate::Lineage => {
                facts.is_some_and(|facts| facts.parent_handoff_id.is_some() || facts.message_id.is_some())
            }
            Gate::Freeze | Gate::Identity => facts.is_some(),
            _ => return candidate.verdict.outcome(gate),
        };
        if asked { Outcome::Pass } else { Outcome::NotApplicable }
    };
    Gate::ALL.into_iter().map(|gate| (gate, of(gate))).collect()
}

pub(super) fn codes_of(reasons: &[Reason]) -> Vec<&'static str> {
    let mut codes: Vec<&'static str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

pub(super) fn write_decided(
    payload: &mut crate::wire::Payload<'_, '_>,
    candidate: &Candidate,
    evidence: Option<&HandoffEvidence>,
    decision: Decision,
    gates: &[(Gate, Outcome)],
    reasons: &[Reason],
) {
    let outcomes: Vec<String> =
        gates.iter().map(|(gate, outcome)| format!("{}:{}", gate.id(), outcome.as_str())).collect();
    payload.texts("codes", &codes_of(reasons));
    payload.text("decision", decision.as_str());
    if let Some(evidence) = evidence {
        payload.digest("evidenceDigest", evidence.digest);
    }
    payload.texts("gates", &outcomes);
    payload.digest("policyDigest", candidate.verdict.policy_digest());
    payload.digest("taskSpecDigest", candidate.sealed().task_spec_digest);
}
