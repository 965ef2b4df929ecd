//! Whom entries concern: agents, and routes. Kept as runs of entries that stand side by side.
//!
//! An entry concerns the source and the target of the attempt in whose stream it stands, and the agent that sent it; it
//! concerns that attempt's route, the route whose own stream it stands in, or the one that the gateway names in its own
//! stream (a freeze, a grant). What an agent writes into a payload makes it nobody else's.
//!
//! The entries of a decision are written together, so that a run costs one row where each entry would cost four.

use std::collections::HashMap;

use rusqlite::Connection;

use super::attempt::Held;
use super::event::Seen;
use super::fault::ViewsFault;
use super::rows::one;
use super::words::Words;
use crate::limits;
use crate::wire::{Sender, StreamId};

/// The newest run of each agent and route that has come up since the last time they were written.
#[derive(Debug, Default)]
pub(super) struct Runs(HashMap<i64, Run>);

#[derive(Debug, Clone, Copy)]
struct Run {
    first: i64,
    last: i64,
}

pub(super) const NEWEST: &str = "SELECT first, last FROM runs WHERE whose = ?1 ORDER BY first DESC LIMIT 1";

/// Agents have the numbers of their names; routes have those with the sign turned, for one text may name both.
pub(super) fn route(word: i64) -> i64 {
    -word
}

impl Runs {
    /// Notes whom an entry concerns; `held` is the attempt in whose stream it stands.
    pub(super) fn take(
        &mut self,
        store: &Connection,
        words: &mut Words,
        seen: &Seen<'_>,
        held: Option<&Held>,
        sequence: i64,
    ) -> Result<(), ViewsFault> {
        if let Some(held) = held {
            let (agents, of_route) = held.ends();
            for agent in agents.into_iter().flatten() {
                self.note(store, agent, sequence)?;
            }
            if let Some(word) = of_route {
                self.note(store, route(word), sequence)?;
            }
        } else {
            let named = match StreamId::parse(seen.stream_id) {
                Some(StreamId::Route { route_key }) => Some(route_key),
                Some(StreamId::Gateway { .. }) => seen.text("route_key"),
                Some(StreamId::Handoff { .. }) | None => None,
            };
            if let Some(word) = words.number_if(store, named)? {
                self.note(store, route(word), sequence)?;
            }
        }
        if let Some(Sender::Agent(agent)) = seen.sender.and_then(Sender::parse) {
            let agent = words.number(store, agent)?;
            self.note(store, agent, sequence)?;
        }
        Ok(())
    }

    fn note(&mut self, store: &Connection, whose: i64, sequence: i64) -> Result<(), ViewsFault> {
        if self.0.len() >= limits::VIEW_RUNS_AT_HAND_MAX && !self.0.contains_key(&whose) {
            std::mem::take(self).save(store)?;
        }
        let known = match self.0.get(&whose) {
            Some(run) => Some(*run),
            None => one(store, NEWEST, [whose], |row| Ok(Run { first: row.get(0)?, last: row.get(1)? }))?,
        };
        let run = match known {
            Some(Run { first, last }) if last + 1 >= sequence => Run { first, last: sequence },
            Some(run) => {
                save(store, whose, run)?;
                Run { first: sequence, last: sequence }
            }
            None => Run { first: sequence, last: sequence },
        };
        self.0.insert(whose, run);
        Ok(())
    }

    pub(super) fn save(self, store: &Connection) -> Result<(), ViewsFault> {
        self.0.into_iter().try_for_each(|(whose, run)| save(store, whose, run))
    }
}

fn save(store: &Connection, whose: i64, Run { first, last }: Run) -> Result<(), ViewsFault> {
    store
        .prepare_cached(
            "INSERT INTO runs (whose, first, last) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET last = excluded.last",
        )?
        .execute((whose, first, last))?;
    Ok(())
}
