//! One attempt at a handoff, held while its events pass by, and the handoff it belongs to.
//!
//! INVARIANT (the id's owner): a handoff is what its accepted attempt says; before there is one, its claims are
//! those of whoever was refused first, and what lists show is the latest attempt of that one. What somebody else was
//! refused for under its id is an attempt of its own, and never how the handoff stands.

mod lists;
mod terms;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::event::Seen;
use super::fault::ViewsFault;
use super::status;
use super::sum::Sum;
use super::words::Words;
use crate::ledger::Entry;
use crate::proof::from_hex;
use lists::{AGENTS, CODES, replace};

/// An attempt, with what its handoff's row says.
#[derive(Debug)]
pub(super) struct Held {
    stream_id: String,
    /// For the row of a new handoff.
    handoff_id: String,
    is_new: bool,
    /// Accepted by an event that is not saved yet.
    newly_accepted: bool,
    /// What its rows are in the sum of claims as they stand in the file.
    saved: Sum,
    head: Head,
    row: Attempt,
}

/// The row of a handoff.
#[derive(Debug)]
pub(super) struct Head {
    /// The entry that created its first attempt.
    handoff: i64,
    attempts: u32,
    /// The attempt that lists show.
    current: i64,
    accepted: Option<i64>,
    owner: Owner,
    /// What the lists by agent and code hold of it now.
    listed: Listed,
}

/// Who sent an attempt, in which cycle: whoever the first one is of owns the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    source: Option<i64>,
    correlation: i64,
}

/// What a handoff is listed under beside the columns of its row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Listed {
    source: Option<i64>,
    target: Option<i64>,
    codes: Option<i64>,
}

#[derive(Debug)]
struct Attempt {
    created: i64,
    attempt: u32,
    status: i64,
    listed: Listed,
    route: Option<i64>,
    mode: Option<i64>,
    operation: Option<i64>,
    correlation: i64,
    parent: Option<String>,
    idempotency_key: Option<String>,
    message_id: Option<String>,
    content_digest: rusqlite::types::Value,
    accepted: bool,
    decision: Option<i64>,
    decided: Option<i64>,
    running_hash: Option<[u8; 32]>,
    gates: Option<i64>,
    policy: Option<i64>,
    updated: i64,
    /// In somebody's name, and who else that person signed for.
    delegated: bool,
    fallback: Option<i64>,
}

pub(super) const HEAD: &str =
    "SELECT h.handoff, h.attempts, h.current, h.accepted, a.source, a.target, a.codes, f.source, f.correlation
    FROM handoffs h CROSS JOIN attempts a ON a.created = h.current CROSS JOIN attempts f ON f.created = h.handoff
    WHERE h.handoff_id = ?1";

pub(super) const ATTEMPT: &str = "SELECT created, attempt, status, source, target, codes, route, mode, operation,
    correlation, parent, idempotency_key, message_id, content_digest, accepted, decision, decided, running_hash,
    gates, policy, updated, delegated, fallback FROM attempts WHERE handoff = ?1 AND attempt = ?2";

impl Held {
    pub(super) fn handoff(&self) -> i64 {
        self.head.handoff
    }

    pub(super) fn number(&self) -> u32 {
        self.row.attempt
    }

    /// Its source and its target, and its route.
    pub(super) fn ends(&self) -> ([Option<i64>; 2], Option<i64>) {
        let Attempt { listed: Listed { source, target, .. }, route, .. } = &self.row;
        ([*source, *target], *route)
    }

    pub(super) fn is_created_by(&self, sequence: i64) -> bool {
        self.row.created == sequence
    }

    pub(super) fn is_of(&self, stream_id: &str) -> bool {
        self.stream_id == stream_id
    }

    /// An attempt that was saved before; if there is none, what is known of its handoff.
    pub(super) fn load(
        store: &Connection,
        stream_id: &str,
        handoff_id: &str,
        attempt: u32,
    ) -> Result<Result<Self, Option<Head>>, ViewsFault> {
        let Some(head) = Head::load(store, handoff_id)? else { return Ok(Err(None)) };
        let row =
            store.prepare_cached(ATTEMPT)?.query_row((head.handoff, attempt), Attempt::read).optional()?;
        let Some(row) = row else { return Ok(Err(Some(head))) };
        let (stream_id, handoff_id) = (stream_id.to_owned(), handoff_id.to_owned());
        let saved = Sum::default();
        let held = Self { stream_id, handoff_id, is_new: false, newly_accepted: false, saved, head, row };
        Ok(Ok(Self { saved: held.sum(), ..held }))
    }

    /// A new attempt, with what its `task.created` says.
    pub(super) fn begin(
        store: &Connection,
        words: &mut Words,
        seen: &Seen<'_>,
        (handoff_id, attempt, head): (&str, u32, Option<Head>),
        sequence: i64,
        correlation: i64,
    ) -> Result<Self, ViewsFault> {
        let delegation = seen.delegation();
        let named = delegation.and_then(|delegation| delegation.get("fallback_agent")?.as_str());
        let fallback = words.number_if(store, named)?;
        let mut word = |name| words.number_if(store, seen.text(name));
        let owned = |name| seen.text(name).map(str::to_owned);
        let row = Attempt {
            created: sequence,
            attempt,
            status: 0,
            listed: Listed { source: word("source_agent")?, target: word("target_agent")?, codes: None },
            route: word("route_key")?,
            mode: word("mode")?,
            operation: word("operation")?,
            correlation,
            parent: owned("parent_handoff_id"),
            idempotency_key: owned("idempotency_key"),
            message_id: owned("message_id"),
            content_digest: digest_to_store(seen.text("content_digest")),
            accepted: false,
            decision: None,
            decided: None,
            running_hash: None,
            gates: None,
            policy: None,
            updated: sequence,
            delegated: delegation.is_some(),
            fallback,
        };
        let own = Owner { source: row.listed.source, correlation };
        let mut saved = Sum::default();
        if let Some(head) = &head {
            saved.put(head.term(handoff_id));
        }
        let head = match head {
            Some(head) => {
                let speaks = head.accepted.is_none() && head.owner == own;
                let current = if speaks { sequence } else { head.current };
                Head { attempts: head.attempts.max(attempt), current, ..head }
            }
            None => Head {
                handoff: sequence,
                attempts: attempt,
                current: sequence,
                accepted: None,
                owner: own,
                listed: Listed::default(),
            },
        };
        let (stream_id, handoff_id) = (seen.stream_id.to_owned(), handoff_id.to_owned());
        Ok(Self { stream_id, handoff_id, is_new: true, newly_accepted: false, saved, head, row })
    }

    /// What an event in the attempt's stream changes.
    pub(super) fn event(
        &mut self,
        store: &Connection,
        words: &mut Words,
        seen: &Seen<'_>,
        entry: &Entry,
        sequence: i64,
    ) -> Result<(), ViewsFault> {
        let row = &mut self.row;
        row.updated = sequence;
        if let Some(status) = status::after(seen.kind) {
            row.status = words.number(store, status.as_str())?;
        }
        let codes = words.list(store, &seen.codes())?;
        if codes.is_some() {
            row.listed.codes = codes;
        }
        let Some(decision) = seen.decision() else { return Ok(()) };
        row.listed.codes = codes;
        row.decision = Some(words.number(store, decision)?);
        row.decided = Some(sequence);
        row.gates = words.list(store, &seen.texts("gates"))?;
        row.policy = words.number_if(store, seen.text("policyDigest"))?;
        if matches!(decision, "allowed" | "needs_approval") && !row.accepted {
            // Taken once, and for ever: an approval that is refused later gives nothing back.
            row.accepted = true;
            self.newly_accepted = true;
            self.head.accepted = Some(row.created);
            self.head.current = row.created;
        }
        if row.accepted {
            row.running_hash = Some(*entry.running_hash.as_bytes());
        }
        Ok(())
    }

    /// Writes it, its handoff, and the lists that they are found in.
    pub(super) fn save(self, store: &Connection, words: &mut Words) -> Result<(), ViewsFault> {
        let Self { head, row, .. } = &self;
        if self.is_new {
            row.insert(store, head.handoff)?;
        } else {
            row.update(store)?;
        }
        if self.newly_accepted && row.message_id.is_some() {
            words.mentioned(store, row.correlation)?;
        }
        let shown = head.current == row.created;
        if self.is_new && head.handoff == row.created {
            store
                .prepare_cached(
                    "INSERT INTO handoffs (handoff, attempts, current, accepted, status, route, decision,
                     correlation, handoff_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                )?
                .execute(params![
                    head.handoff,
                    head.attempts,
                    head.current,
                    head.accepted,
                    row.status,
                    row.route,
                    row.decision,
                    row.correlation,
                    self.handoff_id,
                ])?;
        } else if shown {
            store
                .prepare_cached(
                    "UPDATE handoffs SET attempts = ?2, current = ?3, accepted = ?4, status = ?5, route = ?6,
                     decision = ?7, correlation = ?8 WHERE handoff = ?1",
                )?
                .execute(params![
                    head.handoff,
                    head.attempts,
                    head.current,
                    head.accepted,
                    row.status,
                    row.route,
                    row.decision,
                    row.correlation,
                ])?;
        } else {
            store
                .prepare_cached("UPDATE handoffs SET attempts = ?2 WHERE handoff = ?1")?
                .execute((head.handoff, head.attempts))?;
        }
        if shown && head.listed != row.listed {
            self.list_anew(store, words)?;
        }
        words.claims.replace(self.saved, self.sum());
        Ok(())
    }

    /// Moves the handoff in the lists by agent and by code.
    fn list_anew(&self, store: &Connection, words: &mut Words) -> Result<(), ViewsFault> {
        let Self { head: Head { handoff, listed: before, .. }, row: Attempt { listed: now, .. }, .. } = self;
        let agents =
            |listed: &Listed| -> Vec<i64> { listed.source.into_iter().chain(listed.target).collect() };
        replace(store, AGENTS, &agents(before), &agents(now), *handoff)?;
        let (before, now) = (words.each(store, before.codes)?, words.each(store, now.codes)?);
        replace(store, CODES, &before, &now, *handoff)
    }
}

impl Head {
    fn load(store: &Connection, handoff_id: &str) -> Result<Option<Self>, ViewsFault> {
        let mut statement = store.prepare_cached(HEAD)?;
        let head = statement.query_row([handoff_id], |row| {
            Ok(Self {
                handoff: row.get(0)?,
                attempts: row.get(1)?,
                current: row.get(2)?,
                accepted: row.get(3)?,
                listed: Listed { source: row.get(4)?, target: row.get(5)?, codes: row.get(6)? },
                owner: Owner { source: row.get(7)?, correlation: row.get(8)? },
            })
        });
        Ok(head.optional()?)
    }
}

impl Attempt {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            created: row.get(0)?,
            attempt: row.get(1)?,
            status: row.get(2)?,
            listed: Listed { source: row.get(3)?, target: row.get(4)?, codes: row.get(5)? },
            route: row.get(6)?,
            mode: row.get(7)?,
            operation: row.get(8)?,
            correlation: row.get(9)?,
            parent: row.get(10)?,
            idempotency_key: row.get(11)?,
            message_id: row.get(12)?,
            content_digest: row.get(13)?,
            accepted: row.get(14)?,
            decision: row.get(15)?,
            decided: row.get(16)?,
            running_hash: row.get(17)?,
            gates: row.get(18)?,
            policy: row.get(19)?,
            updated: row.get(20)?,
            delegated: row.get(21)?,
            fallback: row.get(22)?,
        })
    }

    fn insert(&self, store: &Connection, handoff: i64) -> Result<(), ViewsFault> {
        store
            .prepare_cached(
                "INSERT INTO attempts (created, handoff, attempt, status, source, target, codes, route, mode,
                 operation, correlation, parent, idempotency_key, message_id, content_digest, accepted, decision,
                 decided, running_hash, gates, policy, updated, delegated, fallback) VALUES (?1, ?2, ?3, ?4, ?5, ?6,
                 ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
            )?
            .execute(params![
                self.created, handoff, self.attempt, self.status, self.listed.source, self.listed.target,
                self.listed.codes, self.route, self.mode, self.operation, self.correlation, self.parent,
                self.idempotency_key, self.message_id, self.content_digest, self.accepted, self.decision,
                self.decided, self.running_hash, self.gates, self.policy, self.updated, self.delegated,
                self.fallback,
            ])?;
        Ok(())
    }

    /// Only what events after the first one can change.
    fn update(&self, store: &Connection) -> Result<(), ViewsFault> {
        store
            .prepare_cached(
                "UPDATE attempts SET status = ?2, codes = ?3, accepted = ?4, decision = ?5, decided = ?6,
                 running_hash = ?7, gates = ?8, policy = ?9, updated = ?10 WHERE created = ?1",
            )?
            .execute(params![
                self.created,
                self.status,
                self.listed.codes,
                self.accepted,
                self.decision,
                self.decided,
                self.running_hash,
                self.gates,
                self.policy,
                self.updated,
            ])?;
        Ok(())
    }
}

/// A SHA-256 as its 32 bytes; anything else as the text it is.
pub(super) fn digest_to_store(text: Option<&str>) -> rusqlite::types::Value {
    use rusqlite::types::Value;
    let Some(text) = text else { return Value::Null };
    match text.strip_prefix("sha256:").and_then(from_hex::<32>) {
        Some(bytes) => Value::Blob(bytes.to_vec()),
        None => Value::Text(text.to_owned()),
    }
}
