//! The lists by agent and by code that a handoff is found in.

use rusqlite::Connection;

use crate::views::fault::ViewsFault;

/// Statements that take a handoff from a list, and that put it on one.
pub(super) type TakeAndPut = [&'static str; 2];

pub(super) const AGENTS: TakeAndPut = [
    "DELETE FROM handoff_agents WHERE agent = ?1 AND handoff = ?2",
    "INSERT OR IGNORE INTO handoff_agents (agent, handoff) VALUES (?1, ?2)",
];

pub(super) const CODES: TakeAndPut = [
    "DELETE FROM handoff_codes WHERE code = ?1 AND handoff = ?2",
    "INSERT OR IGNORE INTO handoff_codes (code, handoff) VALUES (?1, ?2)",
];

/// Takes a handoff from the lists that it is no longer in, and puts it on those that it was not in.
pub(super) fn replace(
    store: &Connection,
    [take, put]: TakeAndPut,
    before: &[i64],
    now: &[i64],
    handoff: i64,
) -> Result<(), ViewsFault> {
    for gone in before.iter().filter(|word| !now.contains(word)) {
        store.prepare_cached(take)?.execute((gone, handoff))?;
    }
    for new in now.iter().filter(|word| !before.contains(word)) {
        store.prepare_cached(put)?.execute((new, handoff))?;
    }
    Ok(())
}
