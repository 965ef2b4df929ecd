//! All names that were claimed, told once at a start, and whether they are those that were applied.
//!
//! What is compared is what look-ups read: each row of their tables, by the sum that was kept of them, and each index by which
//! a row is found, by what the rows say. So damage that a look-up would take for "never claimed" is found before the first one.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::claims::{Claimed, Claims};
use super::fault::{ViewsFault, damaged};
use super::filter::LAST;
use super::rows::one;
use super::sum::{Of, Sum, Term};

/// A table that look-ups read.
struct Table {
    name: &'static str,
    of: Of,
    /// Its rows as they are summed up, in the order in which they lie.
    rows: &'static str,
    indexes: &'static [Index],
}

/// An index by which look-ups find rows.
struct Index {
    /// Reads the index and nothing else: its columns, and the row that it leads to.
    sql: &'static str,
    /// The same columns among those of the table's rows.
    columns: &'static [usize],
    /// Which of those says that the row is in it; nothing if all are. A row that lacks one of the columns makes no claim.
    accepted: Option<usize>,
    names: Names,
}

/// What the entries of an index are the names of.
#[derive(Clone, Copy)]
enum Names {
    Nothing,
    Handoffs,
    Keys,
    Messages,
    Said,
    Asked,
}

const TABLES: [Table; 6] = [
    Table {
        name: "words",
        of: Of::Word,
        rows: "SELECT id, text FROM words NOT INDEXED",
        indexes: &[Index {
            sql: "SELECT text, id FROM words INDEXED BY sqlite_autoindex_words_1",
            columns: &[1, 0],
            accepted: None,
            names: Names::Nothing,
        }],
    },
    Table {
        name: "correlations",
        of: Of::Correlation,
        rows: "SELECT correlation, correlation_id, mentions FROM correlations NOT INDEXED",
        indexes: &[Index {
            sql: "SELECT correlation_id, correlation FROM correlations
                  INDEXED BY sqlite_autoindex_correlations_1",
            columns: &[1, 0],
            accepted: None,
            names: Names::Nothing,
        }],
    },
    Table {
        name: "handoffs",
        of: Of::Handoff,
        rows: "SELECT handoff, handoff_id, attempts, accepted FROM handoffs NOT INDEXED",
        indexes: &[Index {
            sql: "SELECT handoff_id, handoff FROM handoffs INDEXED BY sqlite_autoindex_handoffs_1",
            columns: &[1, 0],
            accepted: None,
            names: Names::Handoffs,
        }],
    },
    Table {
        name: "attempts",
        of: Of::Attempt,
        rows: "SELECT created, handoff, attempt, source, target, correlation, parent, idempotency_key, message_id,
               content_digest, accepted, decision, decided, gates, policy, running_hash FROM attempts NOT INDEXED",
        indexes: &[
            Index {
                sql: "SELECT idempotency_key, source, created FROM attempts INDEXED BY attempts_by_key
                      WHERE accepted = 1 AND source IS NOT NULL AND idempotency_key IS NOT NULL",
                columns: &[7, 3, 0],
                accepted: Some(10),
                names: Names::Keys,
            },
            Index {
                sql: "SELECT message_id, created FROM attempts INDEXED BY attempts_by_message
                      WHERE accepted = 1 AND message_id IS NOT NULL",
                columns: &[8, 0],
                accepted: Some(10),
                names: Names::Messages,
            },
        ],
    },
    Table {
        name: "messages",
        of: Of::Message,
        rows: "SELECT said, caller, message_id, content, asked, handoff_id, attempt FROM messages NOT INDEXED",
        indexes: &[Index {
            sql: "SELECT message_id, caller, said FROM messages INDEXED BY sqlite_autoindex_messages_1",
            columns: &[2, 1, 0],
            accepted: None,
            names: Names::Said,
        }],
    },
    Table {
        name: "asked",
        of: Of::Asked,
        rows: "SELECT began, task_id, caller, context_id, state, handoff_id, attempt, decided, updated
               FROM asked NOT INDEXED",
        indexes: &[Index {
            sql: "SELECT task_id, began FROM asked INDEXED BY sqlite_autoindex_asked_1",
            columns: &[1, 0],
            accepted: None,
            names: Names::Asked,
        }],
    },
];

/// Correlation ids with accepted mentions, which are few.
const CYCLES: &str = "SELECT (SELECT correlation_id FROM correlations c WHERE c.correlation = a.correlation)
    FROM attempts a INDEXED BY attempts_by_message WHERE accepted = 1 AND message_id IS NOT NULL";

const KEPT: &str = "SELECT claims FROM applied WHERE one = 1";
const WORD: &str = "SELECT text FROM words WHERE id = ?1";

impl Claims<'_> {
    /// How many names there may be, at most.
    pub fn names_max(&self) -> Result<u64, ViewsFault> {
        // Three entries make a decision, which claims four names at most. Where there are many messages the filter
        // grows.
        let last: u64 = one(self.store(), LAST, [], |row| row.get(0))?.unwrap_or(0);
        Ok(last / 3 * 4 + 4)
    }

    /// Tells every name that a claim was made on. Those of a file that does not hold what was applied to it are of no use:
    /// that is a fault in the end.
    pub fn names(&self, tell: &mut dyn FnMut(Claimed<'_>)) -> Result<(), ViewsFault> {
        let moment = self.store().unchecked_transaction()?;
        let kept = one(&moment, KEPT, [], |row| row.get(0))?.map_or(Sum::default(), Sum::from_column);
        let mut found = Sum::default();
        for table in &TABLES {
            let expected = table.sum(&moment, &mut found)?;
            for (index, expected) in table.indexes.iter().zip(expected) {
                if index.tell(&moment, tell)? != expected {
                    return Err(damaged(format_args!(
                        "an index of `{}` is not that of its rows",
                        table.name
                    )));
                }
            }
        }
        if found != kept {
            return Err(damaged("the claims in it are not those that were applied"));
        }
        each(&moment, CYCLES, &mut |row| {
            tell(Claimed::Cycle(first(row)?));
            Ok(())
        })
    }
}

impl Table {
    /// Adds its rows to the sum of all, and says what each of its indexes comes to by them.
    fn sum(&self, store: &Connection, all: &mut Sum) -> Result<Vec<Sum>, ViewsFault> {
        let mut sums = vec![Sum::default(); self.indexes.len()];
        each(store, self.rows, &mut |row| {
            all.put(term(self.of, row)?);
            for (sum, index) in sums.iter_mut().zip(self.indexes) {
                if let Some(entry) = index.entry_of(row)? {
                    sum.put(entry);
                }
            }
            Ok(())
        })?;
        Ok(sums)
    }
}

impl Index {
    /// What a row of the table is in the index; nothing if it is not in it.
    fn entry_of(&self, row: &Row<'_>) -> Result<Option<Term>, ViewsFault> {
        if let Some(accepted) = self.accepted
            && row.get_ref(accepted)? != ValueRef::Integer(1)
        {
            return Ok(None);
        }
        let mut entry = Term::new(Of::Name);
        for column in self.columns {
            match row.get_ref(*column)? {
                ValueRef::Null => return Ok(None),
                value => entry = entry.with(value),
            }
        }
        Ok(Some(entry))
    }

    /// Tells what is in it, and says what it comes to.
    fn tell(&self, store: &Connection, tell: &mut dyn FnMut(Claimed<'_>)) -> Result<Sum, ViewsFault> {
        let mut sum = Sum::default();
        let mut word = (0, String::new());
        each(store, self.sql, &mut |row| {
            sum.put(term(Of::Name, row)?);
            match self.names {
                Names::Nothing => {}
                Names::Handoffs => tell(Claimed::Handoff(first(row)?)),
                Names::Messages => tell(Claimed::Message(first(row)?)),
                Names::Asked => tell(Claimed::Asked(first(row)?)),
                Names::Keys => {
                    let source_agent = word_of(store, row, &mut word)?;
                    tell(Claimed::Key { source_agent, idempotency_key: first(row)? });
                }
                Names::Said => {
                    let caller = word_of(store, row, &mut word)?;
                    tell(Claimed::Said { caller, message_id: first(row)? });
                }
            }
            Ok(())
        })?;
        Ok(sum)
    }
}

/// All that a row has.
fn term(of: Of, row: &Row<'_>) -> Result<Term, ViewsFault> {
    let mut term = Term::new(of);
    for column in 0..row.as_ref().column_count() {
        term = term.with(row.get_ref(column)?);
    }
    Ok(term)
}

/// The text that a row begins with.
fn first<'r>(row: &'r Row<'_>) -> Result<&'r str, ViewsFault> {
    row.get_ref(0)?.as_str().map_err(damaged)
}

/// The word whose number stands second. The index is in the order of words, so each is looked up once.
fn word_of<'w>(
    store: &Connection,
    row: &Row<'_>,
    (number, word): &'w mut (i64, String),
) -> Result<&'w str, ViewsFault> {
    let wanted = row.get(1)?;
    if *number != wanted {
        let found: Option<String> = one(store, WORD, [wanted], |row| row.get(0))?;
        (*number, *word) = (wanted, found.ok_or_else(|| damaged("a word is missing"))?);
    }
    Ok(word)
}

/// Each row of a statement.
fn each(
    store: &Connection,
    sql: &str,
    take: &mut dyn FnMut(&Row<'_>) -> Result<(), ViewsFault>,
) -> Result<(), ViewsFault> {
    let mut statement = store.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) fn statements_of_indexes() -> impl Iterator<Item = &'static str> {
    TABLES.iter().flat_map(|table| table.indexes).map(|index| index.sql).chain([CYCLES])
}

#[cfg(test)]
pub(super) fn statements_of_rows() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|table| table.rows)
}
