//! A decision as it stands in the ledger, and what a dry run says instead.

use std::sync::Arc;

use crate::evidence::Handoff;
use crate::gates::{Decision, Gate, Outcome, Reason};
use crate::ledger::RunningHash;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// A decision that is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub decision: Decision,
    pub handoff_id: Option<String>,
    pub correlation_id: Option<String>,
    /// Which attempt under this handoffId; a refused handoff may be corrected and sent again.
    pub attempt: u32,
    pub decided_at: String,
    /// The answer to the same key with the same content: nothing was decided anew.
    pub replayed: bool,
    pub gates: Vec<(Gate, Outcome)>,
    pub reasons: Vec<Reason>,
    pub policy_digest: String,
    /// Of the TaskSpec as it was first submitted.
    pub task_spec_digest: Digest,
    /// What was visible of an allowed handoff; nothing for others.
    pub tag: Option<Handoff>,
    /// The `gate.decided` entry.
    pub ledger: LedgerPlace,
    pub pass: Pass,
}

/// What an accepted handoff may do as of the answer. An answer given again is no longer what it was when the
/// envelope has run out or the route is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Refused: nothing.
    None,
    /// May be dispatched, until this time if there is one.
    Dispatch { until: Option<Timestamp> },
    /// Was allowed, and may not be dispatched any more.
    Withheld,
    /// Waits for a person, at most until then.
    Waits { until: Timestamp },
}

/// Where in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerPlace {
    pub sequence: u64,
    pub running_hash: RunningHash,
}

/// What would be decided, if it were submitted now. Nothing is claimed or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRun {
    pub decision: Decision,
    pub handoff_id: Option<String>,
    pub correlation_id: Option<String>,
    pub attempt: u32,
    pub at: Timestamp,
    pub gates: Vec<(Gate, Outcome)>,
    pub reasons: Vec<Reason>,
    pub policy_digest: String,
    /// Until when a person could say yes.
    pub waits_until: Option<Timestamp>,
    /// The decision that would be given again.
    pub replay_of: Option<Arc<Decided>>,
}
