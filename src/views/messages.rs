//! What was said over A2A, and the tasks that began without a TaskSpec: claims, and what their readers ask.
//!
//! Only the gateway's own stream is believed: in the stream of a handoff anybody who has a part in it may say anything.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::attempt::digest_to_store;
use super::claims::Claims;
use super::event::Seen;
use super::fault::{ViewsFault, damaged};
use super::reader::Reader;
use super::rows::{digest, one};
use super::sum::{self, Of, Sum, Term};
use super::words::{Words, number_of};
use crate::json::Value;
use crate::limits;

/// What a caller's messageId stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageClaim {
    pub content: Option<String>,
    pub asked: Option<String>,
    /// The handoff and the attempt at it that the message led to, or belongs to.
    pub handoff: Option<(String, u32)>,
}

/// A task that began without a TaskSpec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedClaim {
    pub task_id: String,
    pub caller: String,
    pub context_id: String,
    pub state: AskedState,
    /// The last entry that says something of it.
    pub updated: u64,
}

/// Where such a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedState {
    /// It waits for its TaskSpec.
    Open,
    /// It is an attempt at a handoff.
    Handed {
        handoff_id: String,
        attempt: u32,
    },
    /// What came could not be an attempt at any handoff; the entry that refused it.
    Rejected {
        decided: u64,
    },
    Canceled,
}

impl AskedState {
    /// The word in `message.sent`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "input-required",
            Self::Handed { .. } => "handed-over",
            Self::Rejected { .. } => "rejected",
            Self::Canceled => "canceled",
        }
    }
}

/// A message, by where its words are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// The entry that records it.
    pub said: u64,
    pub caller: String,
    pub message_id: String,
    /// Of its words.
    pub content: Option<String>,
}

/// Takes in a message that the gateway's own stream tells of.
pub(super) fn take(
    store: &Connection,
    words: &mut Words,
    seen: &Seen<'_>,
    sequence: i64,
) -> Result<(), ViewsFault> {
    let text = |name: &str| seen.fact(name).and_then(Value::as_str);
    let number = |name: &str| seen.fact(name).and_then(Value::as_integer);
    let (asked, handoff_id, attempt) = (text("a2a.task"), text("a2a.handoff"), number("a2a.attempt"));
    if let (Some(caller), Some(message_id)) = (text("a2a.caller"), seen.text("message_id")) {
        let caller = words.number(store, caller)?;
        let content = digest_to_store(text("a2a.content").or(Some("")));
        let inserted = store
            .prepare_cached(
                "INSERT OR IGNORE INTO messages (said, caller, message_id, content, asked, handoff_id, attempt)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(rusqlite::params![sequence, caller, message_id, content, asked, handoff_id, attempt])?;
        if inserted > 0 {
            let (said, caller) = (ValueRef::Integer(sequence), ValueRef::Integer(caller));
            let values = [said, caller, sum::text(Some(message_id)), ValueRef::from(&content)];
            let led_to = [sum::text(asked), sum::text(handoff_id), sum::number(attempt)];
            words.claims.put(Term::of(Of::Message, values.into_iter().chain(led_to)));
        }
        if let (Some(asked), Some(context_id)) = (asked, text("a2a.context")) {
            let open = words.number(store, AskedState::Open.as_str())?;
            let inserted = store
                .prepare_cached(
                    "INSERT OR IGNORE INTO asked (began, task_id, caller, context_id, state, updated)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?1)",
                )?
                .execute((sequence, asked, caller, context_id, open))?;
            if inserted > 0 {
                words.claims.add(sum_of_asked(store, asked)?);
            }
        }
    }
    if let (Some(asked), Some(state)) = (asked, text("a2a.state")) {
        let state = words.number(store, state)?;
        let before = sum_of_asked(store, asked)?;
        store
            .prepare_cached(
                "UPDATE asked SET state = ?2, handoff_id = ?3, attempt = ?4, decided = ?5, updated = ?6
                 WHERE task_id = ?1",
            )?
            .execute((asked, state, handoff_id, attempt, number("a2a.decided"), sequence))?;
        words.claims.replace(before, sum_of_asked(store, asked)?);
    }
    Ok(())
}

/// What a task without a TaskSpec is in the sum of claims, as it stands in the file; nothing if there is none.
fn sum_of_asked(store: &Connection, task_id: &str) -> Result<Sum, ViewsFault> {
    let term = one(store, ASKED_ROW, [task_id], |row| {
        (0..9).try_fold(Term::new(Of::Asked), |term, column| Ok(term.with(row.get_ref(column)?)))
    })?;
    let mut sum = Sum::default();
    if let Some(term) = term {
        sum.put(term);
    }
    Ok(sum)
}

/// As it is summed up: see `names.rs`.
pub(super) const ASKED_ROW: &str =
    "SELECT began, task_id, caller, context_id, state, handoff_id, attempt, decided,
    updated FROM asked WHERE task_id = ?1";

pub(super) const SAID: &str = "SELECT content, asked, handoff_id, attempt FROM messages
    WHERE caller = (SELECT id FROM words WHERE text = ?1) AND message_id = ?2";

pub(super) const ASKED: &str = "SELECT task_id, (SELECT text FROM words WHERE id = caller), context_id,
    (SELECT text FROM words WHERE id = state), handoff_id, attempt, decided, updated FROM asked WHERE task_id = ?1";

/// The first parameter is a task without a TaskSpec, the second a handoff.
pub(super) const OF_TASK: [&str; 2] = [
    "SELECT said, (SELECT text FROM words WHERE id = caller), message_id, content FROM messages
     WHERE asked = ?1 ORDER BY said DESC LIMIT ?2",
    "SELECT said, (SELECT text FROM words WHERE id = caller), message_id, content FROM messages
     WHERE handoff_id = ?1 AND +attempt = ?3 ORDER BY said DESC LIMIT ?2",
];

pub(super) const IS_OF: &str = "SELECT 1 FROM messages WHERE handoff_id = ?2 AND +attempt = ?3
    AND +caller = (SELECT id FROM words WHERE text = ?1) LIMIT 1";

impl Claims<'_> {
    /// What a caller's messageId stands for.
    pub fn said(&self, caller: &str, message_id: &str) -> Result<Option<MessageClaim>, ViewsFault> {
        let mut statement = self.store().prepare_cached(SAID)?;
        let mut rows = statement.query((caller, message_id))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(MessageClaim { content: digest(row, 0)?, asked: row.get(1)?, handoff: handoff(row, 2)? }))
    }

    /// A task that began without a TaskSpec.
    pub fn asked(&self, task_id: &str) -> Result<Option<AskedClaim>, ViewsFault> {
        let mut statement = self.store().prepare_cached(ASKED)?;
        let mut rows = statement.query([task_id])?;
        rows.next()?.map_or(Ok(None), |row| asked(row).map(Some))
    }
}

impl Reader {
    /// What was said in a task, the oldest first: the newest of it, where it is very much.
    pub fn messages(
        &self,
        asked: Option<&str>,
        handoff: Option<(&str, u32)>,
    ) -> Result<Vec<MessageRow>, ViewsFault> {
        let moment = self.moment()?;
        let [of_asked, of_handoff] = OF_TASK;
        let rows_max = limits::A2A_HISTORY_MAX as i64;
        let mut messages: Vec<MessageRow> = Vec::new();
        let mut read = |row: &Row<'_>| -> Result<(), ViewsFault> {
            let row = MessageRow {
                said: row.get(0)?,
                caller: row.get(1)?,
                message_id: row.get(2)?,
                content: digest(row, 3)?,
            };
            // What handed a task over belongs to both.
            if messages.iter().all(|known| known.said != row.said) {
                messages.push(row);
            }
            Ok(())
        };
        if let Some(task_id) = asked {
            let mut statement = moment.prepare_cached(of_asked)?;
            let mut rows = statement.query((task_id, rows_max))?;
            while let Some(row) = rows.next()? {
                read(row)?;
            }
        }
        if let Some((handoff_id, attempt)) = handoff {
            let mut statement = moment.prepare_cached(of_handoff)?;
            let mut rows = statement.query((handoff_id, rows_max, attempt))?;
            while let Some(row) = rows.next()? {
                read(row)?;
            }
        }
        messages.sort_unstable_by_key(|row| row.said);
        Ok(messages)
    }

    /// A task that began without a TaskSpec.
    pub fn asked(&self, task_id: &str) -> Result<Option<AskedClaim>, ViewsFault> {
        self.claims().asked(task_id)
    }

    /// Did this caller hand the attempt over, or say anything in it?
    pub fn has_said(&self, caller: &str, handoff_id: &str, attempt: u32) -> Result<bool, ViewsFault> {
        let moment = self.moment()?;
        if number_of(&moment, caller)?.is_none() {
            return Ok(false);
        }
        Ok(one(&moment, IS_OF, (caller, handoff_id, attempt), |_| Ok(()))?.is_some())
    }
}

/// A row of the columns that [`ASKED`] names.
pub(super) fn asked(row: &Row<'_>) -> Result<AskedClaim, ViewsFault> {
    let state: String = row.get(3)?;
    let state = match (state.as_str(), handoff(row, 4)?, row.get::<_, Option<u64>>(6)?) {
        ("input-required", ..) => AskedState::Open,
        ("handed-over", Some((handoff_id, attempt)), _) => AskedState::Handed { handoff_id, attempt },
        ("rejected", _, Some(decided)) => AskedState::Rejected { decided },
        ("canceled", ..) => AskedState::Canceled,
        _ => return Err(damaged("a task is in no state")),
    };
    Ok(AskedClaim {
        task_id: row.get(0)?,
        caller: row.get(1)?,
        context_id: row.get(2)?,
        state,
        updated: row.get(7)?,
    })
}

/// A handoffId and an attempt, side by side.
fn handoff(row: &Row<'_>, column: usize) -> Result<Option<(String, u32)>, ViewsFault> {
    let (handoff_id, attempt): (Option<String>, Option<u32>) = (row.get(column)?, row.get(column + 1)?);
    Ok(handoff_id.zip(attempt))
}
