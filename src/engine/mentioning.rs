//! Mentions: what was judged is observed, and the phase moves by people's acts and falls by itself.

use super::act::Asking;
use super::candidate::Candidate;
use super::facts::Facts;
use super::sequencer::Sequencer;
use super::{EngineFault, EngineHandle};
use crate::gates::{Code, Decision, Gate, Human, Reason, decision_of};
use crate::ledger::BatchBuilder;
use crate::mentions::{
    FalsePositiveAsk, MarkedAlready, MentionChanged, MentionMarked, MentionObserved, PhaseAsk, PhaseFault,
    Rollout, Shadow, falls_back,
};
use crate::wire::{Kind, Sender};

impl EngineHandle {
    /// Puts mentions into another phase; the entry that says so.
    pub fn move_phase(&self, ask: PhaseAsk, by: Asking) -> Result<Result<u64, PhaseFault>, EngineFault> {
        self.ask_and_wait(move |sequencer, batch| {
            let from = sequencer.building().mentions.phase();
            if let Err(fault) = from.may_move(ask.phase) {
                return Ok(Err(fault));
            }
            let changed = MentionChanged { code: None, from, reason: ask.reason.clone(), to: ask.phase };
            let noted = sequencer
                .note_own(Kind::MentionChanged, by.sender(), batch, |payload| changed.write(payload))?;
            Ok(Ok(noted.sequence))
        })
    }

    /// Records that a mention was none; the entry that says so.
    pub fn mark_mention(
        &self,
        (handoff_id, message_id): (String, String),
        ask: FalsePositiveAsk,
        by: Asking,
    ) -> Result<Result<u64, MarkedAlready>, EngineFault> {
        self.ask_and_wait(move |sequencer, batch| {
            if let Err(fault) = sequencer.building().mentions.may_mark(&handoff_id) {
                return Ok(Err(fault));
            }
            let marked = MentionMarked {
                handoff_id: handoff_id.clone(),
                message_id: Some(message_id.clone()),
                reason: Some(ask.reason.clone()),
            };
            let noted = sequencer
                .note_own(Kind::MentionMarked, by.sender(), batch, |payload| marked.write(payload))?;
            Ok(Ok(noted.sequence))
        })
    }

    /// Where the rollout of mentions stands.
    pub fn mentions(&self) -> Rollout {
        self.standing(|standing| standing.mentions.clone())
    }
}

impl Sequencer {
    /// What was seen of a mention that was judged, and whether the phase falls for it.
    pub(super) fn observe_mention(
        &mut self,
        candidate: &Candidate,
        facts: &Facts,
        reasons: &[Reason],
        human: &Human,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let Some(message_id) = &facts.message_id else { return Ok(()) };
        let rollout = &self.building().mentions;
        let mut but_the_phase: Vec<Reason> =
            reasons.iter().filter(|reason| reason.code != Code::MentionPhase).cloned().collect();
        let held_back = but_the_phase.len() < reasons.len();
        let content_digest = candidate.sealed().content_digest;
        let mut codes: Vec<String> =
            but_the_phase.iter().map(|reason| reason.code.as_str().to_owned()).collect();
        let mut would_be = decision_of(&but_the_phase, human);
        if held_back {
            match rollout.shadow(message_id, content_digest) {
                // A sender that was refused tries again; that is no second mention.
                Shadow::Same => return Ok(()),
                Shadow::Duplicate => {
                    codes.push(Code::MentionDuplicate.as_str().to_owned());
                    would_be = Decision::Denied;
                }
                Shadow::First => {}
            }
        }
        codes.sort_unstable();
        codes.dedup();
        let phase = rollout.phase();
        let observed = MentionObserved {
            codes,
            content_digest: Some(content_digest),
            handoff_id: facts.handoff_id.clone(),
            message_id: Some(message_id.clone()),
            phase: Some(phase),
            risk_classification: candidate.risk_class(),
            would_be: would_be.as_str().to_owned(),
        };
        self.note_own(Kind::MentionObserved, Sender::System, batch, |payload| observed.write(payload))?;
        but_the_phase.retain(|reason| {
            matches!(reason.gate, Gate::Policy | Gate::Envelope | Gate::Risk | Gate::Mention)
        });
        // Without a proof that verified anybody could have sent it; with one, no other fault excuses the principal's.
        let verified = candidate.verdict.is_proven();
        let named = but_the_phase.iter().map(|reason| (reason.gate.id(), reason.code.as_str()));
        if let Some((to, code)) = falls_back(phase, named, verified, false) {
            let reason = format!("{} was refused", facts.handoff_id);
            let changed = MentionChanged { code: Some(code.to_owned()), from: phase, reason, to };
            self.note_own(Kind::MentionChanged, Sender::System, batch, |payload| changed.write(payload))?;
        }
        Ok(())
    }
}
