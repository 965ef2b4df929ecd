//! Mention-triggered work is rolled out in steps: which phase it is in, what the phase lets through, and what was seen.
//!
//! A mention is only a trigger, and a bot that reads it wrongly does so a thousand times. So mentions are first only
//! looked at (`log-only`), then let through where they read (`gated-read`), then for everything that the gates and
//! a person allow (`gated-live`). An operator raises the phase one step at a time with the counters in view; anybody's
//! violation in `gated-live` takes it back a step by itself.
//!
//! Every mention that is judged gives one `mention.observed`, in every phase, and the counters are made of nothing
//! else. What was judged says what it was, the phase left aside, so the numbers of a phase that lets nothing through
//! are those that the next one would have had.
//!
//! Deliberately absent: the gate itself (D4 in `gates`), and the claim on a message, which is the sequencer's and
//! lasts for ever. The **shadow claims** here are for counting, never for deciding: they are made for messages that
//! only the phase held back, and the oldest are forgotten when there are too many.

mod ask;
mod counters;
mod facts;
mod phase;
mod rollout;
mod shadows;

pub use ask::{FALSE_POSITIVE_BODY, FalsePositiveAsk, PHASE_BODY, PhaseAsk};
pub use counters::Counters;
pub use facts::{MentionChanged, MentionMarked, MentionObserved};
pub use phase::{Phase, PhaseFault, falls_back};
pub use rollout::{MarkedAlready, Moved, Rollout};
pub use shadows::Shadow;

#[cfg(test)]
mod tests;
