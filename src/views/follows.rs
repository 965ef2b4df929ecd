//! What a file of views says of itself, for whoever must not change it.

use std::path::Path;

use super::store;
use crate::timestamp::Timestamp;

/// The last entry that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follows {
    pub sequence: u64,
    pub running_hash: String,
    pub time: Option<Timestamp>,
}

/// How far views of this topic have come; nothing if there are none, or if they are of another one or not whole.
pub fn follows(path: &Path, topic_id: &str) -> Option<Follows> {
    follows_any(path).filter(|(follows, _)| follows == topic_id).map(|(_, how_far)| how_far)
}

/// Whatever topic they are of, and how far they have come.
pub fn follows_any(path: &Path) -> Option<(String, Follows)> {
    if store::holds_nothing(path) {
        return None;
    }
    let connection = store::connect_to_read(path).ok()?;
    let topic_id: String = connection.query_row("SELECT topic_id FROM applied", [], |row| row.get(0)).ok()?;
    let applied = store::applied(&connection, &topic_id).ok().filter(|applied| applied.sequence > 0)?;
    let time =
        connection.query_row("SELECT time FROM entries WHERE sequence = ?1", [applied.sequence], |row| {
            row.get::<_, i64>(0)
        });
    let time = time.ok().map(Timestamp::from_unix_nanoseconds);
    Some((topic_id, Follows { sequence: applied.sequence, running_hash: applied.running_hash, time }))
}
