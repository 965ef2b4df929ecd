//! Acts that somebody would have to do again if the ledger lost them. They are kept with their text, for then the
//! ledger can no longer say whom they were about.

use rusqlite::Connection;

use super::fault::ViewsFault;
use crate::wire::Kind;

/// What says who may do what. Agents' own words, decisions and what gateways write by themselves are not among it.
const ACTS: [Kind; 21] = [
    Kind::TaskCancelled,
    Kind::ApprovalGranted,
    Kind::ApprovalRejected,
    Kind::AuthorizationCreated,
    Kind::AuthorizationRevoked,
    Kind::PromotionDecided,
    Kind::PromotionAdvanced,
    Kind::PromotionReset,
    Kind::RollbackExecuted,
    Kind::RollbackLifted,
    Kind::FreezeSet,
    Kind::FreezeLifted,
    Kind::PolicyLoaded,
    Kind::PolicyProposed,
    Kind::PolicyApproved,
    Kind::PolicyRejected,
    Kind::MentionChanged,
    Kind::TokenCreated,
    Kind::TokenRevoked,
    Kind::KeyAdded,
    Kind::KeyRemoved,
];

/// One of them, as the ledger has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActRow {
    pub sequence: u64,
    pub wire: String,
}

pub(super) fn take(store: &Connection, kind: &str, sequence: i64, wire: &str) -> Result<(), ViewsFault> {
    if ACTS.iter().any(|act| act.as_str() == kind) {
        store
            .prepare_cached("INSERT INTO acts (sequence, wire) VALUES (?1, ?2)")?
            .execute((sequence, wire))?;
    }
    Ok(())
}

/// Those behind an entry, in order.
pub(super) fn after(store: &Connection, sequence: i64) -> Result<Vec<ActRow>, ViewsFault> {
    let mut statement =
        store.prepare_cached("SELECT sequence, wire FROM acts WHERE sequence > ?1 ORDER BY sequence")?;
    let rows =
        statement.query_map([sequence], |row| Ok(ActRow { sequence: row.get(0)?, wire: row.get(1)? }))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
