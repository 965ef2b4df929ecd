//! Where the rollout stands: what the ledger's mention events come to.

use std::fmt;
use std::sync::Arc;

use super::counters::Counters;
use super::facts::{MentionChanged, MentionMarked, MentionObserved};
use super::phase::Phase;
use super::shadows::{Newest, Shadow, Shadows};
use crate::json::printable;
use crate::limits;
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::wire::{Fact, FactFault, Kind, Sender};

/// The phase that mentions are in, how it came to that, and what was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollout {
    phase: Phase,
    moved: Option<Arc<Moved>>,
    total: Counters,
    in_phase: Counters,
    shadows: Shadows,
    /// Handoffs that were marked as false positives.
    marked: Newest<()>,
}

/// How the phase became what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub from: Phase,
    /// The operator's name; nobody if it fell by itself.
    pub by: Option<String>,
    pub at: Timestamp,
    pub reason: String,
    /// The refusal that dropped it.
    pub code: Option<String>,
    /// The entry that says so.
    pub sequence: u64,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            phase: Phase::default(),
            moved: None,
            total: Counters::default(),
            in_phase: Counters::default(),
            shadows: Newest::at_most(limits::SHADOW_CLAIMS_MAX),
            marked: Newest::at_most(limits::MARKED_MENTIONS_MAX),
        }
    }
}

impl Rollout {
    /// Takes in what the ledger says. The phase never rises by more than one step, whoever wrote it.
    pub fn take(&mut self, fact: &Fact<'_>) -> Result<(), FactFault> {
        match fact.kind {
            Kind::MentionObserved => self.observe(&fact.read()?, fact.sequence),
            Kind::MentionChanged => return self.change(fact),
            Kind::MentionMarked => {
                let marked: MentionMarked = fact.read()?;
                if self.may_mark(&marked.handoff_id).is_ok() {
                    self.marked.add(&marked.handoff_id, (), fact.sequence);
                    self.total.false_positives += 1;
                    self.in_phase.false_positives += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn observe(&mut self, observed: &MentionObserved, sequence: u64) {
        self.total.observe(observed);
        self.in_phase.observe(observed);
        if let (true, Some(message_id), Some(digest)) =
            (observed.is_held_back(), &observed.message_id, observed.content_digest)
        {
            self.shadows.add(message_id, digest, sequence);
        }
    }

    fn change(&mut self, fact: &Fact<'_>) -> Result<(), FactFault> {
        let MentionChanged { code, from, reason, to } = fact.read()?;
        if from != self.phase {
            return Err(fact.fault("mentions were in another phase before"));
        }
        if self.phase.may_move(to).is_err() {
            return Err(fact.fault("the phase moves one step up at a time, or down"));
        }
        let by = match fact.sender {
            Sender::Human(name) => Some(name.to_owned()),
            // Falling needs nobody; rising is a person's act.
            _ if to < self.phase => None,
            _ => return Err(fact.fault("no person raised the phase")),
        };
        let (at, sequence) = (fact.at, fact.sequence);
        self.moved = Some(Arc::new(Moved { from, by, at, reason, code, sequence }));
        self.phase = to;
        self.in_phase = Counters::default();
        Ok(())
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// How the phase became what it is; nothing if it is what it was from the start.
    pub fn moved(&self) -> Option<&Moved> {
        self.moved.as_deref()
    }

    /// What was seen in all.
    pub fn total(&self) -> &Counters {
        &self.total
    }

    /// What was seen since the phase became what it is.
    pub fn in_phase(&self) -> &Counters {
        &self.in_phase
    }

    /// Would this message have been used before? Asked for a mention that the phase holds back, and only to count it.
    pub fn shadow(&self, message_id: &str, content_digest: Digest) -> Shadow {
        match self.shadows.get(message_id) {
            None => Shadow::First,
            Some(digest) if *digest == content_digest => Shadow::Same,
            Some(_) => Shadow::Duplicate,
        }
    }

    /// How many shadow claims are kept.
    pub fn shadows(&self) -> usize {
        self.shadows.count()
    }

    /// May this handoff's mention be marked as a false positive? Once.
    pub fn may_mark(&self, handoff_id: &str) -> Result<(), MarkedAlready> {
        match self.marked.get(handoff_id) {
            None => Ok(()),
            Some(()) => Err(MarkedAlready { handoff_id: handoff_id.to_owned() }),
        }
    }
}

/// Somebody marked it before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedAlready {
    pub handoff_id: String,
}

impl MarkedAlready {
    /// Wire contract: a code is never renamed and never reused.
    pub fn code(&self) -> &'static str {
        "MENTION_MARKED_ALREADY"
    }

    pub fn hint(&self) -> &'static str {
        "nothing to do"
    }
}

impl fmt::Display for MarkedAlready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the mention of `{}` was marked as a false positive before", printable(&self.handoff_id))
    }
}

impl std::error::Error for MarkedAlready {}
