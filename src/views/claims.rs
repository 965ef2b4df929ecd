//! What has been claimed: the questions that the engine asks, each one read by an index.
//!
//! A claim that is not found here may still be in entries that are not applied yet; whoever asks knows those.

use rusqlite::{Connection, Row};

use super::fault::{ViewsFault, damaged};
use super::filter::LAST;
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

pub(super) const HANDOFF: &str = "SELECT (SELECT text FROM words WHERE id = a.source),
    (SELECT correlation_id FROM correlations WHERE correlation = a.correlation),
    (SELECT text FROM words WHERE id = a.target), a.parent, h.attempts, a.accepted, a.attempt,
    (SELECT text FROM words WHERE id = a.decision), (SELECT time FROM entries WHERE sequence = a.decided),
    (SELECT text FROM words WHERE id = a.gates), (SELECT text FROM words WHERE id = a.policy), a.decided,
    a.running_hash
    FROM handoffs h CROSS JOIN attempts a ON a.created = coalesce(h.accepted, h.handoff)
    WHERE h.handoff_id = ?1";

pub(super) const KEY: &str = "SELECT a.content_digest, h.handoff_id
    FROM attempts a CROSS JOIN handoffs h ON h.handoff = a.handoff
    WHERE a.accepted = 1 AND a.source = (SELECT id FROM words WHERE text = ?1) AND a.idempotency_key = ?2
    ORDER BY a.created DESC LIMIT 1";

pub(super) const MESSAGE: &str = "SELECT h.handoff_id
    FROM attempts a CROSS JOIN handoffs h ON h.handoff = a.handoff
    WHERE a.accepted = 1 AND a.message_id = ?1 ORDER BY a.created DESC LIMIT 1";

pub(super) const MENTIONS: &str = "SELECT mentions FROM correlations WHERE correlation_id = ?1";

/// All names. All but mentions, which are few, are each read from one index and nothing else.
pub(super) const NAMES: [&str; 6] = [
    "SELECT handoff_id FROM handoffs INDEXED BY sqlite_autoindex_handoffs_1",
    "SELECT idempotency_key, source FROM attempts INDEXED BY attempts_by_key
     WHERE accepted = 1 AND source IS NOT NULL AND idempotency_key IS NOT NULL",
    "SELECT message_id FROM attempts INDEXED BY attempts_by_message
     WHERE accepted = 1 AND message_id IS NOT NULL",
    "SELECT (SELECT correlation_id FROM correlations c WHERE c.correlation = a.correlation)
     FROM attempts a INDEXED BY attempts_by_message WHERE accepted = 1 AND message_id IS NOT NULL",
    "SELECT message_id, caller FROM messages INDEXED BY sqlite_autoindex_messages_1",
    "SELECT task_id FROM asked INDEXED BY sqlite_autoindex_asked_1",
];

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

    /// How many names there may be, at most.
    pub fn names_max(&self) -> Result<u64, ViewsFault> {
        // Three entries make a decision, which claims four names at most. Where there are many messages the filter
        // grows.
        let last: u64 = one(self.store, LAST, [], |row| row.get(0))?.unwrap_or(0);
        Ok(last / 3 * 4 + 4)
    }

    /// Tells every name that a claim was made on.
    pub fn names(&self, tell: &mut dyn FnMut(Claimed<'_>)) -> Result<(), ViewsFault> {
        let moment = self.store.unchecked_transaction()?;
        let [handoffs, keys, messages, cycles, said, asked] = NAMES;
        each(&moment, handoffs, &mut |_, handoff_id| {
            tell(Claimed::Handoff(handoff_id));
            Ok(())
        })?;
        each_of_word(&moment, keys, &mut |source_agent, idempotency_key| {
            tell(Claimed::Key { source_agent, idempotency_key });
        })?;
        each(&moment, messages, &mut |_, message_id| {
            tell(Claimed::Message(message_id));
            Ok(())
        })?;
        each(&moment, cycles, &mut |_, correlation_id| {
            tell(Claimed::Cycle(correlation_id));
            Ok(())
        })?;
        each_of_word(&moment, said, &mut |caller, message_id| tell(Claimed::Said { caller, message_id }))?;
        each(&moment, asked, &mut |_, task_id| {
            tell(Claimed::Asked(task_id));
            Ok(())
        })
    }
}

/// Each row of a statement, with the word that it belongs to and the text that it begins with. The index is in the
/// order of words, so each is looked up once.
fn each_of_word(store: &Connection, sql: &str, tell: &mut dyn FnMut(&str, &str)) -> Result<(), ViewsFault> {
    let mut word: (i64, String) = (0, String::new());
    each(store, sql, &mut |row, text| {
        let number = row.get(1)?;
        if word.0 != number {
            let found: Option<String> =
                one(store, "SELECT text FROM words WHERE id = ?1", [number], |row| row.get(0))?;
            word = (number, found.ok_or_else(|| damaged("a word is missing"))?);
        }
        tell(&word.1, text);
        Ok(())
    })
}

/// Each row of a statement, with the text that it begins with.
fn each(
    store: &Connection,
    sql: &str,
    tell: &mut dyn FnMut(&Row<'_>, &str) -> Result<(), ViewsFault>,
) -> Result<(), ViewsFault> {
    let mut statement = store.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text = row.get_ref(0)?.as_str().map_err(damaged)?;
        tell(row, text)?;
    }
    Ok(())
}
