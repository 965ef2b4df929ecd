//! Epochs: a ledger that was restored from a backup has forgotten what was claimed after the backup was made, and one that
//! lost its end and goes on without it what was claimed in the lost entries.

use serde::{Deserialize, Serialize};

use crate::contract::TaskSpec;
use crate::gates::Code;
use crate::limits;
use crate::timestamp::Timestamp;
use crate::wire::Payload;

/// The payload of `epoch.begun`: what was restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochFacts {
    /// When the backup was made.
    pub backup_time: String,
    /// The last entry that it had, and the running hash there.
    pub restored_head: u64,
    pub restored_hash: String,
}

impl EpochFacts {
    /// Writes the payload; members in the order of their names.
    pub(super) fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text("backup_time", &self.backup_time);
        payload.text("restored_hash", &self.restored_hash);
        payload.count("restored_head", self.restored_head);
    }
}

/// The epoch that a ledger is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Epoch {
    /// When it began, by the ledger's time.
    pub(super) since: Timestamp,
    pub(super) facts: EpochFacts,
}

impl Epoch {
    /// What senders and principals stamped before this may have been used in what is forgotten: stamps of clocks that run
    /// ahead are taken (`docs/decisions/004-time.md`). What the ledger itself stamped is never ahead of it.
    fn stamps_from(&self) -> Timestamp {
        self.since.plus_seconds(limits::SKEW_S)
    }
}

/// When what a handoff rests on was made, by the word of who made it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamps {
    envelope: Option<Timestamp>,
    mention: Option<Timestamp>,
}

impl Stamps {
    pub(super) fn of(spec: &TaskSpec<'_>) -> Self {
        let delegated = spec.is_delegated() == Some(true);
        let envelope = spec.authorship.delegation.envelope.get().filter(|_| delegated);
        Self {
            envelope: envelope.and_then(|envelope| envelope.issued_at.get()),
            mention: spec.mention().and_then(|mention| mention.observed_at.get()),
        }
    }

    /// What of it is void, because it may have been taken before the epoch: where it was used is forgotten.
    pub(super) fn void_in(self, epoch: &Epoch) -> impl Iterator<Item = Void> {
        let (since, from) = (epoch.since, epoch.stamps_from());
        let before = move |at: Option<Timestamp>| at.filter(|at| *at < from);
        let envelope = before(self.envelope).map(|at| Void {
            code: Code::EnvelopeExpired,
            path: "/authorship/envelope/ttl/issuedAt",
            message: format!("the envelope is of {at}; {}", restored(since, from)),
            hint: "ask the principal for a new envelope, issued when that time has come",
        });
        let mention = before(self.mention).map(|at| Void {
            code: Code::MentionExpired,
            path: "/authorship/mentionDelegation/observedAt",
            message: format!("the mention was seen at {at}; {}", restored(since, from)),
            hint: "have the person mention the bot again when that time has come",
        });
        envelope.into_iter().chain(mention)
    }
}

fn restored(since: Timestamp, from: Timestamp) -> String {
    format!(
        "the ledger has forgotten claims and began a new epoch at {since}; what was stamped before {from} may have been used \
         before that, and is void"
    )
}

/// Something that no longer counts.
#[derive(Debug)]
pub(super) struct Void {
    pub(super) code: Code,
    pub(super) path: &'static str,
    pub(super) message: String,
    pub(super) hint: &'static str,
}
