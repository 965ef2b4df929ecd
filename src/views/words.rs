//! Numbers for texts that come again and again: types, agents, routes, codes, and correlation ids.
//!
//! A row then holds a small number and an index stays small. Words are numbered in the order in which the ledger
//! first names them, a correlation id by the entry that first does, so that every rebuild gives the same numbers.

use std::collections::HashMap;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::fault::{ViewsFault, damaged};
use super::rows::one;
use super::sum::{Of, Sum, Term, text};
use crate::limits;

/// The words that were used lately, with their numbers.
#[derive(Debug, Default)]
pub(super) struct Words {
    numbers: HashMap<String, i64>,
    correlation: Option<(String, i64)>,
    /// What was changed in this transaction of what the look-ups of claims rest on. Here, because everybody who changes some
    /// of it numbers words.
    pub(super) claims: Sum,
}

impl Words {
    /// The number of a word, which is given one if it has none.
    pub(super) fn number(&mut self, store: &Connection, word: &str) -> Result<i64, ViewsFault> {
        if let Some(number) = self.numbers.get(word) {
            return Ok(*number);
        }
        let number = match number_of(store, word)? {
            Some(number) => number,
            None => {
                store.prepare_cached("INSERT INTO words (text) VALUES (?1)")?.execute([word])?;
                let number = store.last_insert_rowid();
                self.claims.put(Term::of(Of::Word, [ValueRef::Integer(number), text(Some(word))]));
                number
            }
        };
        // Senders choose some of these words, so what is kept at hand has a bound.
        if self.numbers.len() >= limits::VIEW_WORDS_AT_HAND_MAX {
            self.numbers.clear();
        }
        self.numbers.insert(word.to_owned(), number);
        Ok(number)
    }

    pub(super) fn number_if(
        &mut self,
        store: &Connection,
        word: Option<&str>,
    ) -> Result<Option<i64>, ViewsFault> {
        word.map(|word| self.number(store, word)).transpose()
    }

    /// The number of a list of words; nothing for an empty one.
    pub(super) fn list(&mut self, store: &Connection, list: &[&str]) -> Result<Option<i64>, ViewsFault> {
        if list.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_string(list).unwrap_or_default();
        self.number(store, &text).map(Some)
    }

    /// The numbers of the words in a list.
    pub(super) fn each(&mut self, store: &Connection, list: Option<i64>) -> Result<Vec<i64>, ViewsFault> {
        let Some(list) = list else { return Ok(Vec::new()) };
        let text: String = store
            .prepare_cached("SELECT text FROM words WHERE id = ?1")?
            .query_row([list], |row| row.get(0))?;
        read_list(&text)?.iter().map(|word| self.number(store, word)).collect()
    }

    /// The number of a correlation id: the first entry that names it.
    pub(super) fn correlation(
        &mut self,
        store: &Connection,
        correlation_id: &str,
        sequence: i64,
    ) -> Result<i64, ViewsFault> {
        // The entries of one decision share one, and stand side by side.
        if let Some((known, number)) = &self.correlation
            && known == correlation_id
        {
            return Ok(*number);
        }
        let number = match correlation_of(store, correlation_id)? {
            Some(number) => number,
            None => {
                store
                    .prepare_cached(
                        "INSERT INTO correlations (correlation, correlation_id, mentions) VALUES (?1, ?2, 0)",
                    )?
                    .execute((sequence, correlation_id))?;
                self.claims.put(cycle(sequence, correlation_id, 0));
                sequence
            }
        };
        self.correlation = Some((correlation_id.to_owned(), number));
        Ok(number)
    }

    /// One more mention was accepted in a correlation id.
    pub(super) fn mentioned(&mut self, store: &Connection, correlation: i64) -> Result<(), ViewsFault> {
        // Not one statement with RETURNING: for each of those SQLite keeps a journal that it gives back to the system.
        let (correlation_id, before): (String, i64) = store
            .prepare_cached("SELECT correlation_id, mentions FROM correlations WHERE correlation = ?1")?
            .query_row([correlation], |row| Ok((row.get(0)?, row.get(1)?)))?;
        store
            .prepare_cached("UPDATE correlations SET mentions = ?2 WHERE correlation = ?1")?
            .execute((correlation, before + 1))?;
        self.claims.take(cycle(correlation, &correlation_id, before));
        self.claims.put(cycle(correlation, &correlation_id, before + 1));
        Ok(())
    }

    /// Forgets what is at hand, because the numbers may have been given back.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

fn cycle(correlation: i64, correlation_id: &str, mentions: i64) -> Term {
    let id = text(Some(correlation_id));
    Term::of(Of::Correlation, [ValueRef::Integer(correlation), id, ValueRef::Integer(mentions)])
}

pub(super) const WORD: &str = "SELECT id FROM words WHERE text = ?1";
pub(super) const CORRELATION: &str = "SELECT correlation FROM correlations WHERE correlation_id = ?1";
pub(super) const HANDOFF: &str = "SELECT handoff FROM handoffs WHERE handoff_id = ?1";

/// The number of a word, if it has one.
pub(super) fn number_of(store: &Connection, word: &str) -> Result<Option<i64>, ViewsFault> {
    one(store, WORD, [word], |row| row.get(0))
}

/// The number of a correlation id, if it has one.
pub(super) fn correlation_of(store: &Connection, correlation_id: &str) -> Result<Option<i64>, ViewsFault> {
    one(store, CORRELATION, [correlation_id], |row| row.get(0))
}

/// The number of a handoffId, if it has one.
pub(super) fn handoff_of(store: &Connection, handoff_id: &str) -> Result<Option<i64>, ViewsFault> {
    one(store, HANDOFF, [handoff_id], |row| row.get(0))
}

/// The words of a list as it was stored.
pub(super) fn read_list(text: &str) -> Result<Vec<String>, ViewsFault> {
    serde_json::from_str(text).map_err(damaged)
}
