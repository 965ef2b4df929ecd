//! What waits for a person: a yes, a no, or nobody in time.
//!
//! A yes is to one TaskSpec, by its digest, and judges it again as of now with what is in force now. What only stands
//! in the way for a while (a freeze, a canary whose slot is taken) leaves it waiting; anything else settles it.

use std::sync::Arc;

use super::act::Asking;
use super::candidate::{Asker, Candidate, Ruling};
use super::decide::{Cover, holds_until, late_reasons, people};
use super::record::{Decided, LedgerPlace, Pass};
use super::recording::{codes_of, outcomes, write_decided};
use super::sequencer::Sequencer;
use super::standing::Standing;
use super::task::Task;
use super::{EngineFault, EngineHandle};
use crate::authorization::{
    Answer, ApprovalAsk, ApprovalFault, ApprovalGranted, ApprovalRejected, Inbox, Person, Waiting, may_decide,
};
use crate::gates::{Code, Decision, Gate, Human, Outcome, Reason, decision_of};
use crate::ledger::{BatchBuilder, EntryMeta};
use crate::policy::{AgentNames, Route};
use crate::timestamp::Timestamp;
use crate::wire::{Kind, Sender};

/// Why an answer was not taken. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    Fault(ApprovalFault),
    /// It would not be allowed now, but may be later: it still waits.
    Held(Vec<Reason>),
    /// The TaskSpec that was looked at is not the one that waits.
    OtherTaskSpec,
}

/// A person's answer to a handoff that waits, with the TaskSpec as it was submitted.
#[derive(Debug, Clone)]
pub struct Answering {
    pub handoff_id: String,
    pub ask: ApprovalAsk,
    pub task_spec: Arc<str>,
    pub by: Asking,
}

impl EngineHandle {
    /// Answers what waits. The decision as it stands then: it may still wait, for a second person.
    pub fn answer(&self, answering: Answering) -> Result<Result<Arc<Decided>, Unanswered>, EngineFault> {
        self.ask_and_wait(move |sequencer, batch| sequencer.answer(&answering, batch))
    }

    /// What waits for a person.
    pub fn inbox(&self) -> Inbox {
        self.standing(|standing| standing.inbox.clone())
    }

    /// Would this answer be taken, as things stand? By the check that it is taken by.
    pub fn may_answer(
        &self,
        handoff_id: &str,
        answer: Answer,
        by: &Asking,
        now: Timestamp,
    ) -> Result<(), ApprovalFault> {
        self.standing(|standing| taken(standing, handoff_id, answer, by, now).map(drop))
    }
}

/// Who answers, and what; nothing else may be answered by them now.
fn taken(
    standing: &Standing,
    handoff_id: &str,
    answer: Answer,
    by: &Asking,
    now: Timestamp,
) -> Result<(Person, Arc<Waiting>), ApprovalFault> {
    let waiting = standing.inbox.find(handoff_id)?.clone();
    let person = by.person().cloned().ok_or(ApprovalFault::NotHuman)?;
    let record = waiting.route_key.as_deref().and_then(|key| standing.route(key));
    let names = standing.names();
    let own = ends(&waiting, record.and_then(|record| record.route()), &names);
    let since = standing.epoch.as_ref().map(|epoch| epoch.since);
    may_decide(&person, (&waiting, &own), answer, now, since)?;
    Ok((person, waiting))
}

/// Whose own it is, under every name: who hands it over, and all who may do it as the route is now.
fn ends<'w>(
    waiting: &'w Waiting,
    route: Option<&'w Route>,
    names: &'w AgentNames,
) -> Vec<(&'static str, &'w str)> {
    let Waiting { source, target, reach, .. } = waiting;
    let (source, target) = (source.as_deref(), target.as_deref());
    let named = [("source", source), ("target", target), ("fallback", reach.fallback(route))];
    let named = named.into_iter().filter_map(|(as_what, id)| Some((as_what, id?)));
    let others = reach.claimants(target, route).into_iter().map(|id| ("agent", id));
    named.chain(others).flat_map(|(as_what, id)| names.all(id).map(move |name| (as_what, name))).collect()
}

impl Sequencer {
    fn answer(
        &mut self,
        answering: &Answering,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Result<Arc<Decided>, Unanswered>, EngineFault> {
        let Answering { handoff_id, ask, task_spec, by } = answering;
        let now = batch.time(self.now());
        let (person, waiting) = match taken(self.building(), handoff_id, ask.answer, by, now) {
            Ok(taken) => taken,
            Err(fault) => return Ok(Err(Unanswered::Fault(fault))),
        };
        let task = self.waiting_task(handoff_id)?;
        if ask.answer == Answer::Reject {
            let reason = reason(
                Code::ApprovalRejected,
                format!("{} said no", person.name()),
                "ask them what would have to change, and hand it over under a new handoffId",
            );
            let no = ApprovalRejected {
                code: Code::ApprovalRejected.as_str().to_owned(),
                reason: Some(ask.reason.clone()),
            };
            let task = self.tell_task(&task, Kind::ApprovalRejected, by.sender(), batch, |p| no.write(p))?;
            return self.settle_unheard(&task, reason, batch).map(Ok);
        }
        // Judged as of the decision's own entry, which comes right after the one that says yes.
        let decided_at = now.plus_nanosecond();
        let candidate = match self.judged_now(&waiting, task_spec, decided_at) {
            Some(candidate) => candidate,
            None => return Ok(Err(Unanswered::OtherTaskSpec)),
        };
        let late = late_reasons(&candidate, self.building(), decided_at)?;
        let mut reasons = candidate.verdict.reasons().to_vec();
        reasons.extend(late.reasons);
        if !reasons.is_empty() && reasons.iter().all(|reason| reason.code.passes()) {
            return Ok(Err(Unanswered::Held(reasons)));
        }
        // The route may ask for more people by now than when this was asked. For fewer it is not asked again.
        let needed = waiting.needed.max(people(&candidate, late.cover.as_ref()));
        let remaining = waiting.after_yes(&person, needed);
        let yes = ApprovalGranted {
            principal: person.principal().map(str::to_owned),
            reason: Some(ask.reason.clone()),
            remaining: Some(remaining),
            task_spec_digest: waiting.task_spec_digest,
        };
        let task = self.tell_task(&task, Kind::ApprovalGranted, by.sender(), batch, |p| yes.write(p))?;
        if reasons.is_empty() && remaining > 0 {
            // Another person has to say it too.
            return Ok(Ok(Arc::new(self.as_it_waits(&task, waiting.until)?)));
        }
        self.settle(&task, &candidate, reasons, late.cover, batch).map(Ok)
    }

    fn waiting_task(&self, handoff_id: &str) -> Result<Arc<Task>, EngineFault> {
        let lost = || EngineFault::BadLedger(format!("{handoff_id} waits, and was never accepted"));
        self.index().task(handoff_id)?.ok_or_else(lost)
    }

    /// The TaskSpec that waits, judged as if its source sent it now.
    fn judged_now(&self, waiting: &Waiting, task_spec: &Arc<str>, now: Timestamp) -> Option<Candidate> {
        let in_force = self.in_force()?;
        let ruling = Ruling {
            policies: in_force.policies.clone(),
            keyring: in_force.keyring.clone(),
            asker: Asker::Agent(waiting.source.as_deref().unwrap_or_default().into()),
        };
        let candidate = Candidate::judge(task_spec.clone(), ruling, now).ok()?;
        (candidate.sealed().task_spec_digest == waiting.task_spec_digest).then_some(candidate)
    }

    fn as_it_waits(&self, task: &Task, until: Timestamp) -> Result<Decided, EngineFault> {
        let decided = self.index().decided_of(&task.handoff_id)?;
        Ok(Decided { pass: Pass::Waits { until }, ..(*decided).clone() })
    }

    /// Everybody who had to has said yes: what is decided now.
    fn settle(
        &mut self,
        task: &Arc<Task>,
        candidate: &Candidate,
        reasons: Vec<Reason>,
        cover: Option<Cover>,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Arc<Decided>, EngineFault> {
        let decision = decision_of(&reasons, &Human::NotNeeded);
        let gates = outcomes(candidate, &reasons);
        let evidence = candidate.evidence.as_ref().filter(|_| decision == Decision::Allowed);
        if let Some(evidence) = evidence {
            batch.body(evidence.digest, &evidence.event);
        }
        let (task, meta) =
            self.tell_task_meta(task, Kind::GateDecided, Sender::System, batch, |payload| {
                write_decided(payload, candidate, evidence, decision, &gates, &reasons);
            })?;
        let decided = Arc::new(Decided {
            decision,
            handoff_id: Some(task.handoff_id.clone()),
            correlation_id: candidate.correlation_id.clone(),
            attempt: task.attempt,
            decided_at: meta.consensus_timestamp.clone(),
            replayed: false,
            gates,
            policy_digest: candidate.verdict.policy_digest().to_string(),
            task_spec_digest: candidate.sealed().task_spec_digest,
            tag: evidence.map(|evidence| evidence.handoff),
            ledger: LedgerPlace { sequence: meta.sequence, running_hash: meta.running_hash },
            pass: match decision {
                Decision::Allowed => Pass::Dispatch { until: holds_until(candidate, self.building()) },
                _ => Pass::None,
            },
            reasons,
        });
        self.conclude(&task, &decided, batch)?;
        if let (Decision::Allowed, true, Some(route_key)) = (decision, task.is_live(), &task.route_key) {
            self.goes_live(route_key, &task.handoff_id, batch)?;
        }
        if let (Decision::Allowed, Some(Cover { authorization_ref, remaining })) = (decision, cover) {
            self.use_grant(&authorization_ref, &task.handoff_id, remaining, batch)?;
        }
        Ok(decided)
    }

    /// A person said no, or nobody said yes in time.
    fn settle_unheard(
        &mut self,
        task: &Arc<Task>,
        reason: Reason,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Arc<Decided>, EngineFault> {
        let before = self.index().decided_of(&task.handoff_id)?;
        let reasons = vec![reason];
        let decision = decision_of(&reasons, &Human::NotNeeded);
        let gates: Vec<(Gate, Outcome)> = before
            .gates
            .iter()
            .map(|(gate, outcome)| (*gate, if *gate == Gate::Risk { Outcome::Fail } else { *outcome }))
            .collect();
        let (policy_digest, task_spec_digest) = (before.policy_digest.clone(), before.task_spec_digest);
        let (task, meta) =
            self.tell_task_meta(task, Kind::GateDecided, Sender::System, batch, |payload| {
                let shown: Vec<String> = gates
                    .iter()
                    .map(|(gate, outcome)| format!("{}:{}", gate.id(), outcome.as_str()))
                    .collect();
                payload.texts("codes", &codes_of(&reasons));
                payload.text("decision", decision.as_str());
                payload.texts("gates", &shown);
                payload.text("policyDigest", &policy_digest);
                payload.text("taskSpecDigest", &task_spec_digest.to_string());
            })?;
        let decided = Arc::new(Decided {
            decision,
            decided_at: meta.consensus_timestamp.clone(),
            gates,
            reasons,
            tag: None,
            ledger: LedgerPlace { sequence: meta.sequence, running_hash: meta.running_hash },
            pass: Pass::None,
            ..(*before).clone()
        });
        self.conclude(&task, &decided, batch)?;
        Ok(decided)
    }

    /// The last event of a settlement, and what is known of the handoff from then on.
    fn conclude(
        &mut self,
        task: &Arc<Task>,
        decided: &Arc<Decided>,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let codes = codes_of(&decided.reasons);
        let task = if decided.decision == Decision::Allowed {
            self.tell_task(task, Kind::TaskAvailable, Sender::System, batch, |_| {})?
        } else {
            self.tell_task(task, Kind::TaskRejected, Sender::System, batch, |p| p.texts("codes", &codes))?
        };
        self.index_mut().put_decided(task, decided.clone(), decided.ledger.sequence)
    }

    /// Ends what nobody answered in time.
    pub(super) fn expire(
        &mut self,
        task: &Arc<Task>,
        until: Timestamp,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let no = ApprovalRejected { code: Code::ApprovalExpired.as_str().to_owned(), reason: None };
        let task = self.tell_task(task, Kind::ApprovalRejected, Sender::System, batch, |p| no.write(p))?;
        let reason = reason(
            Code::ApprovalExpired,
            format!("nobody said yes until {until}"),
            "hand it over again under a new handoffId, when somebody is there to approve it",
        );
        self.settle_unheard(&task, reason, batch).map(drop)
    }

    /// The gateway's word in a task's stream, with all that the ledger says of its entry.
    fn tell_task_meta(
        &mut self,
        task: &Task,
        kind: Kind,
        sender: Sender<'_>,
        batch: &mut BatchBuilder<'_>,
        payload: impl FnOnce(&mut crate::wire::Payload<'_, '_>),
    ) -> Result<(Arc<Task>, EntryMeta), EngineFault> {
        let next = self.tell_task(task, kind, sender, batch, payload)?;
        let meta =
            batch.last_meta().ok_or_else(|| EngineFault::NotDurable("nothing was written".to_owned()))?;
        Ok((next, meta))
    }
}

fn reason(code: Code, message: String, hint: &str) -> Reason {
    let (path, hint) = (String::new(), hint.to_owned());
    Reason { gate: code.gate(), code, path, message, hint }
}
