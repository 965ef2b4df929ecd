//! Applies entries, one after the other, inside one transaction.

use rusqlite::Connection;

use super::acts;
use super::attempt::Held;
use super::event::{Seen, document, handoff_stream};
use super::fault::ViewsFault;
use super::messages;
use super::runs::Runs;
use super::sum::Sum;
use super::tally::Tally;
use super::words::Words;
use crate::ledger::{Entry, RunningHash};
use crate::timestamp::Timestamp;

/// How far the tables have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) sequence: u64,
    pub(super) running_hash: String,
    /// Of what the look-ups of claims rest on.
    pub(super) claims: Sum,
}

/// Follows the ledger.
///
/// The attempt whose events are passing by is held in memory and written when another one's turn comes: the
/// three entries of a decision then cost one write to its rows.
pub(super) struct Follower<'t> {
    store: &'t Connection,
    words: &'t mut Words,
    applied: Applied,
    /// Of the entry before, if there was one.
    last: Option<RunningHash>,
    held: Option<Held>,
    /// The first entry that created an attempt which there was already.
    doubled: Option<u64>,
    tally: Tally,
    runs: Runs,
}

impl<'t> Follower<'t> {
    pub(super) fn new(store: &'t Connection, words: &'t mut Words, applied: Applied) -> Self {
        let (tally, runs) = (Tally::default(), Runs::default());
        Self { store, words, applied, last: None, held: None, doubled: None, tally, runs }
    }

    pub(super) fn entry(&mut self, entry: &Entry) -> Result<(), ViewsFault> {
        let expected = self.applied.sequence + 1;
        if entry.sequence != expected {
            return Err(ViewsFault::OutOfOrder { expected, found: entry.sequence });
        }
        let bad = |what| ViewsFault::BadEntry { sequence: entry.sequence, what };
        let sequence = i64::try_from(entry.sequence).map_err(|_| bad("its number is too large"))?;
        let time = Timestamp::parse(&entry.consensus_timestamp)
            .and_then(Timestamp::unix_nanoseconds)
            .ok_or_else(|| bad("its time cannot be told"))?;
        let document = document(&entry.wire).ok_or_else(|| bad("it is no JSON"))?;
        let seen = Seen::of(document.root()).ok_or_else(|| bad("it is no Wire event"))?;

        let kind = self.words.number(self.store, seen.kind)?;
        let correlation = self.words.correlation(self.store, seen.correlation_id, sequence)?;
        let decision = self.words.number_if(self.store, seen.decision())?;
        let codes = seen.codes();
        let codes_list = self.words.list(self.store, &codes)?;
        let mut numbers = Vec::with_capacity(codes.len());
        for code in &codes {
            let code = self.words.number(self.store, code)?;
            self.store
                .prepare_cached(
                    "INSERT INTO entry_codes (code, sequence, kind, decision) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute((code, sequence, kind, decision))?;
            numbers.push(code);
        }
        if let Some(decision) = decision {
            self.tally.decided(time, decision, &numbers);
        }
        self.take_up(&seen, sequence, correlation)?;
        let (stream, attempt) = match &mut self.held {
            Some(held) if held.is_of(seen.stream_id) => {
                if seen.kind == "task.created" && !held.is_created_by(sequence) {
                    self.doubled.get_or_insert(entry.sequence);
                }
                held.event(self.store, self.words, &seen, entry, sequence)?;
                (held.handoff(), Some(held.number()))
            }
            _ => (-self.words.number(self.store, seen.stream_id)?, None),
        };
        acts::take(self.store, seen.kind, sequence, &entry.wire)?;
        let held = self.held.as_ref().filter(|_| attempt.is_some());
        self.runs.take(self.store, self.words, &seen, held, sequence)?;
        if attempt.is_none() && seen.kind == "message.sent" {
            messages::take(self.store, self.words, &seen, sequence)?;
        }
        self.store
            .prepare_cached(
                "INSERT INTO entries (sequence, time, kind, stream, attempt, correlation, decision, codes)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute((sequence, time, kind, stream, attempt, correlation, decision, codes_list))?;
        self.applied.sequence = expected;
        self.last = Some(entry.running_hash);
        Ok(())
    }

    /// Holds the attempt that an event belongs to. Streams of the gateway's own belong to none, nor does a
    /// stream that says it is a handoff's but was never created.
    fn take_up(&mut self, seen: &Seen<'_>, sequence: i64, correlation: i64) -> Result<(), ViewsFault> {
        if self.held.as_ref().is_some_and(|held| held.is_of(seen.stream_id)) {
            return Ok(());
        }
        let Some((handoff_id, number)) = handoff_stream(seen.stream_id) else { return Ok(()) };
        if let Some(held) = self.held.take() {
            held.save(self.store, self.words)?;
        }
        self.held = match Held::load(self.store, seen.stream_id, handoff_id, number)? {
            Ok(found) => Some(found),
            Err(head) if seen.kind == "task.created" => {
                let id = (handoff_id, number, head);
                Some(Held::begin(self.store, self.words, seen, id, sequence, correlation)?)
            }
            Err(_) => None,
        };
        Ok(())
    }

    /// Writes what is still held, and how far the tables have come. Says that, and the first entry that created what there
    /// was already.
    pub(super) fn finish(mut self) -> Result<(Applied, Option<u64>), ViewsFault> {
        if let Some(held) = self.held.take() {
            held.save(self.store, self.words)?;
        }
        self.tally.save(self.store)?;
        self.runs.save(self.store)?;
        self.applied.claims.add(std::mem::take(&mut self.words.claims));
        if let Some(last) = self.last {
            self.applied.running_hash = last.to_string();
            self.store
                .prepare_cached("UPDATE applied SET sequence = ?1, running_hash = ?2, claims = ?3")?
                .execute((
                    self.applied.sequence,
                    &self.applied.running_hash,
                    self.applied.claims.to_column(),
                ))?;
        }
        Ok((self.applied, self.doubled))
    }
}
