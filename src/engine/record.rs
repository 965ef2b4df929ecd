//! A decision as it stands in the ledger.

use crate::gates::{Decision, Gate, Outcome, Reason};
use crate::ledger::RunningHash;

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
    /// The `gate.decided` entry.
    pub ledger: LedgerPlace,
}

/// Where in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerPlace {
    pub sequence: u64,
    pub running_hash: RunningHash,
}
