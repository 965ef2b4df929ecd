//! Claims, against a model that a reader can check by eye.

use std::collections::HashMap;

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn claims_are_what_the_decisions_in_the_ledger_took(steps in steps(), batch in 1..20usize) {
        let place = Place::new();
        let (mut history, mut model) = (History::default(), Model::default());
        for step in &steps {
            let before = history.entries.len();
            history.step(step);
            if let Step::Submit(submission) = step {
                model.take(submission, &history.entries[before + 1]);
            }
        }
        let mut views = holding(&place.path, &[]);
        for entries in history.entries.chunks(batch) {
            views.apply(entries.to_vec()).unwrap();
        }
        model.agrees_with(views.claims());
        model.agrees_with(Reader::open(&place.path).unwrap().claims());
    }
}
