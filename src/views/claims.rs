//! What has been claimed: the questions that the engine asks, each one read by an index.
//!
//! A claim that is not found here may still be in entries that are not applied yet; whoever asks knows those.

use rusqlite::Connection;

use super::fault::ViewsFault;
use super::rows::{digest, list, one, time};
use crate::proof::to_hex;

/// The claims, on a writer's or a reader's connection.
#[derive(Debug, Clone, Copy)]
pub struct Claims<'c> {
    store: &'c Connection,
}

/// What is known of a handoffId: of the attempt that was accepted under it, or else of the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffClaim {
    pub source_agent: Option<String>,
    /// As its stream has it.
    pub correlation_id: String,
    pub target_agent: Option<String>,
    pub parent_handoff_id: Option<String>,
    pub attempts: u32,
    pub accepted: Option<Accepted>,
}

/// The decision on an accepted handoff, as the last `gate.decided` in its stream has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub attempt: u32,
    pub decision: String,
    pub decided_at: String,
    /// Each gate and its outcome, as `G0:pass`.
    pub gates: Vec<String>,
    pub policy_digest: Option<String>,
    /// Where in the ledger, and the running hash there in hex.
    pub sequence: u64,
    pub running_hash: String,
}

/// A name that a claim is made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Claimed<'c> {
    /// A handoffId, accepted or refused.
    Handoff(&'c str),
    /// An idempotencyKey of a source agent.
    Key {
        source_agent: &'c str,
        idempotency_key: &'c str,
    },
    Message(&'c str),
    /// A correlationId with accepted mentions.
    Cycle(&'c str),
    /// A messageId of a caller over A2A.
    Said {
        caller: &'c str,
        message_id: &'c str,
    },
    /// A task that began without a TaskSpec.
    Asked(&'c str),
}

/// What an idempotencyKey stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyClaim {
    pub content_digest: Option<String>,
    pub handoff_id: String,
}

// A row that is found and leads to none is a fault, and not a name that nobody claimed: hence the left joins, whose nulls
// cannot be read as what they should be.
pub(super) const HANDOFF: &str = "SELECT (SELECT text FROM words WHERE id = a.source),
    (SELECT correlation_id FROM correlations WHERE correlation = a.correlation),
    (SELECT text FROM words WHERE id = a.target), a.parent, h.attempts, a.accepted, a.attempt,
    (SELECT text FROM words WHERE id = a.decision), (SELECT time FROM entries WHERE sequence = a.decided),
    (SELECT text FROM words WHERE id = a.gates), (SELECT text FROM words WHERE id = a.policy), a.decided,
    a.running_hash
    FROM handoffs h LEFT JOIN attempts a ON a.created = coalesce(h.accepted, h.handoff)
    WHERE h.handoff_id = ?1";

pub(super) const KEY: &str = "SELECT a.content_digest, h.handoff_id
    FROM attempts a LEFT JOIN handoffs h ON h.handoff = a.handoff
    WHERE a.accepted = 1 AND a.source = (SELECT id FROM words WHERE text = ?1) AND a.idempotency_key = ?2
    ORDER BY a.created DESC LIMIT 1";

pub(super) const MESSAGE: &str = "SELECT h.handoff_id
    FROM attempts a LEFT JOIN handoffs h ON h.handoff = a.handoff
    WHERE a.accepted = 1 AND a.message_id = ?1 ORDER BY a.created DESC LIMIT 1";

pub(super) const MENTIONS: &str = "SELECT mentions FROM correlations WHERE correlation_id = ?1";

impl<'c> Claims<'c> {
    pub(super) fn store(&self) -> &'c Connection {
        self.store
    }

    pub(super) fn on(store: &'c Connection) -> Self {
        Self { store }
    }

    /// What is known of a handoffId.
    pub fn handoff(&self, handoff_id: &str) -> Result<Option<HandoffClaim>, ViewsFault> {
        let mut statement = self.store.prepare_cached(HANDOFF)?;
        let mut rows = statement.query([handoff_id])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let accepted = if row.get(5)? {
            Some(Accepted {
                attempt: row.get(6)?,
                decision: row.get(7)?,
                decided_at: time(row, 8)?,
                gates: list(row, 9)?,
                policy_digest: row.get(10)?,
                sequence: row.get(11)?,
                running_hash: to_hex(&row.get::<_, [u8; 32]>(12)?),
            })
        } else {
            None
        };
        Ok(Some(HandoffClaim {
            source_agent: row.get(0)?,
            correlation_id: row.get(1)?,
            target_agent: row.get(2)?,
            parent_handoff_id: row.get(3)?,
            attempts: row.get(4)?,
            accepted,
        }))
    }

    /// What a source's idempotencyKey stands for.
    pub fn key(&self, source_agent: &str, idempotency_key: &str) -> Result<Option<KeyClaim>, ViewsFault> {
        let mut statement = self.store.prepare_cached(KEY)?;
        let mut rows = statement.query((source_agent, idempotency_key))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(KeyClaim { content_digest: digest(row, 0)?, handoff_id: row.get(1)? }))
    }

    /// The handoff that a message was spent on.
    pub fn message(&self, message_id: &str) -> Result<Option<String>, ViewsFault> {
        one(self.store, MESSAGE, [message_id], |row| row.get(0))
    }

    /// Accepted mentions in a correlationId.
    pub fn mentions(&self, correlation_id: &str) -> Result<u32, ViewsFault> {
        Ok(one(self.store, MENTIONS, [correlation_id], |row| row.get(0))?.unwrap_or(0))
    }
}
