//! What was seen of mentions, in numbers.

use super::facts::MentionObserved;

/// What an operator looks at before raising the phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Mentions that were judged.
    pub candidates: u64,
    /// Of those, the ones that nothing but the phase and a person stood against.
    pub would_allow: u64,
    /// A bot that mentioned itself, or a chain of handoffs that came back.
    pub loops_stopped: u64,
    /// A message that was used before, or would have been.
    pub duplicates_stopped: u64,
    /// A mention whose time had run out.
    pub expired: u64,
    /// Marked by an operator as no mention.
    pub false_positives: u64,
}

impl Counters {
    pub(super) fn observe(&mut self, observed: &MentionObserved) {
        let has = |wanted: &[&str]| observed.codes.iter().any(|code| wanted.contains(&code.as_str()));
        let mut count = |counter: fn(&mut Self) -> &mut u64, it: bool| *counter(self) += u64::from(it);
        count(|all| &mut all.candidates, true);
        count(|all| &mut all.would_allow, observed.would_pass());
        count(|all| &mut all.loops_stopped, has(&["POLICY_MENTION_LOOP", "POLICY_LOOP_DETECTED"]));
        count(|all| &mut all.duplicates_stopped, has(&["POLICY_MENTION_DUPLICATE"]));
        count(|all| &mut all.expired, has(&["POLICY_MENTION_EXPIRED"]));
    }
}
