//! Claims, against a model that a reader can check by eye.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::super::*;
use super::history::*;
use super::{Place, holding};

/// Maps, and what each decision does to them.
#[derive(Default)]
struct Model {
    handoffs: HashMap<String, HandoffClaim>,
    keys: HashMap<(String, String), KeyClaim>,
    messages: HashMap<String, String>,
    mentions: HashMap<String, u32>,
}

impl Model {
    /// `gate` is the entry that decided the submission.
    fn take(&mut self, submission: &Submission, gate: &Entry) {
        let (id, correlation) = (handoff_id(submission.handoff), correlation_id(submission.correlation));
        let attempts = self.handoffs.get(&id).map_or(0, |known| known.attempts) + 1;
        let accepted = matches!(submission.decision, "allowed" | "needs_approval").then(|| Accepted {
            attempt: attempts,
            decision: submission.decision.to_owned(),
            decided_at: gate.consensus_timestamp.clone(),
            gates: vec!["G0:pass".to_owned(), "safety:pass".to_owned()],
            policy_digest: Some("sha256:2".to_owned()),
            sequence: gate.sequence,
            running_hash: gate.running_hash.to_string(),
        });
        match self.handoffs.get_mut(&id) {
            // The id is already somebody's: only the attempt counts.
            Some(known) if accepted.is_none() => known.attempts = attempts,
            _ => {
                let claim = HandoffClaim {
                    source_agent: submission.source.map(agent),
                    correlation_id: correlation.clone(),
                    target_agent: Some(agent(submission.target)),
                    parent_handoff_id: submission.parent.map(handoff_id),
                    attempts,
                    accepted: accepted.clone(),
                };
                self.handoffs.insert(id.clone(), claim);
            }
        }
        if accepted.is_none() {
            return;
        }
        if let (Some(source), Some(n)) = (submission.source, submission.key) {
            let claim = KeyClaim { content_digest: Some(content(submission)), handoff_id: id.clone() };
            self.keys.insert((agent(source), key(n)), claim);
        }
        if let Some(message) = submission.message {
            self.messages.insert(message_id(message), id);
            *self.mentions.entry(correlation).or_default() += 1;
        }
    }

    /// The same attempt is decided once more: what it took stays, the decision is the new one.
    fn again(&mut self, row: &EntryRow, gate: &Entry, submissions: &[Submission]) {
        let (Some(id), Some(attempt)) = (&row.handoff_id, row.attempt) else { return };
        let accepted = matches!(row.decision.as_deref(), Some("allowed" | "needs_approval"));
        let mut same = submissions.iter().filter(|submission| handoff_id(submission.handoff) == *id);
        let submission = same.nth(attempt as usize - 1).unwrap();
        let first = matches!(submission.decision, "allowed" | "needs_approval");
        let known = self.handoffs.get_mut(id).unwrap();
        match &mut known.accepted {
            Some(decision) if decision.attempt == attempt => {
                decision.decision = row.decision.clone().unwrap();
                decision.decided_at.clone_from(&gate.consensus_timestamp);
                decision.gates.clear();
                decision.policy_digest = Some("sha256:3".to_owned());
                decision.sequence = gate.sequence;
                decision.running_hash = gate.running_hash.to_string();
            }
            // One that was refused before is not made good by being decided again; the engine never does that.
            _ => assert!(first || !accepted),
        }
    }

    /// Every name that the tables tell, and no other.
    fn names_agree_with(&self, claims: Claims<'_>) {
        let mut expected = HashSet::new();
        expected.extend(self.handoffs.keys().map(|id| format!("{:?}", Claimed::Handoff(id))));
        expected.extend(self.keys.keys().map(|(source_agent, idempotency_key)| {
            format!("{:?}", Claimed::Key { source_agent, idempotency_key })
        }));
        expected.extend(self.messages.keys().map(|id| format!("{:?}", Claimed::Message(id))));
        expected.extend(self.mentions.keys().map(|id| format!("{:?}", Claimed::Cycle(id))));
        let mut told = HashSet::new();
        claims.names(&mut |name| told.extend([format!("{name:?}")])).unwrap();
        assert_eq!(told, expected);
        assert!(told.len() as u64 <= claims.names_max().unwrap());
    }

    fn agrees_with(&self, claims: Claims<'_>) {
        for n in 0..7 {
            let (id, correlation, message) = (handoff_id(n), correlation_id(n), message_id(n));
            assert_eq!(claims.handoff(&id).unwrap().as_ref(), self.handoffs.get(&id));
            assert_eq!(claims.message(&message).unwrap().as_ref(), self.messages.get(&message));
            assert_eq!(
                claims.mentions(&correlation).unwrap(),
                self.mentions.get(&correlation).copied().unwrap_or(0)
            );
            for m in 0..4 {
                let pair = (agent(n), key(m));
                assert_eq!(claims.key(&pair.0, &pair.1).unwrap().as_ref(), self.keys.get(&pair));
            }
        }
    }
}

/// Was the attempt that a step picks accepted when it was sent?
fn was_accepted(submissions: &[Submission], handoff: u8, pick: u8) -> bool {
    let same: Vec<_> = submissions.iter().filter(|submission| submission.handoff == handoff).collect();
    let picked = same.get(usize::from(pick) % same.len().max(1));
    picked.is_some_and(|submission| matches!(submission.decision, "allowed" | "needs_approval"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn claims_are_what_the_decisions_in_the_ledger_took(steps in steps(), batch in 1..20usize) {
        let place = Place::new();
        let (mut history, mut model) = (History::default(), Model::default());
        let mut submissions = Vec::new();
        for step in &steps {
            let before = history.entries.len();
            // A refusal is final; only what was accepted is decided again.
            if matches!(step, Step::Again(h, pick, _) if !was_accepted(&submissions, *h, *pick)) {
                continue;
            }
            history.step(step);
            match step {
                Step::Submit(submission) => {
                    model.take(submission, &history.entries[before + 1]);
                    submissions.push(submission.clone());
                }
                Step::Again(..) => model.again(&history.rows[before], &history.entries[before], &submissions),
                _ => {}
            }
        }
        let mut views = holding(&place.path, &[]);
        for entries in history.entries.chunks(batch) {
            views.apply(entries.to_vec()).unwrap();
        }
        model.agrees_with(views.claims());
        model.agrees_with(Reader::open(&place.path).unwrap().claims());
        model.names_agree_with(Reader::open(&place.path).unwrap().claims());
    }
}
