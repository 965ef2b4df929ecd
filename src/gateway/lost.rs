//! What a workspace knows of entries that a database has lost: its views have followed them.

use super::lost_acts::LostAct;
use super::{Files, GatewayFault};
use crate::ledger::Source;
use crate::ledger::postgres::Database;
use crate::limits;
use crate::timestamp::Timestamp;
use crate::views::{EntryFilter, EntryRow, Reader, ViewsFault, follows};

/// Entries that views have and the ledger does not.
#[derive(Debug)]
pub struct LostEntries {
    /// The last entry that both have.
    pub after: u64,
    /// The last that the views have.
    pub through: u64,
    /// The decisions among them, the newest first; at most as many as a page has.
    pub decisions: Vec<EntryRow>,
    /// What people did beside them, in order.
    pub acts: Vec<LostAct>,
}

/// What the views of a workspace say of entries that the ledger does not have; nothing if they know of none.
pub fn lost_entries(files: &Files, database: &Database) -> Result<Option<LostEntries>, GatewayFault> {
    let unread = |fault: ViewsFault| GatewayFault::Io { path: files.views(), why: fault.to_string() };
    let Some(views) = follows(&files.views(), database.topic_id()) else { return Ok(None) };
    let reader = Reader::open(&files.views()).map_err(unread)?;
    let (head, _) = database.head().map_err(GatewayFault::Database)?;
    let ledger = Source::Database(database.clone());
    // Views keep no running hash of each entry; times are the ledger's own, to the nanosecond, and rise.
    let time_in_views = |sequence| {
        let row = reader.entry(sequence).map_err(unread)?;
        Ok::<_, GatewayFault>(row.and_then(|row| Timestamp::parse(&row.consensus_timestamp)))
    };
    let is_common = |sequence| {
        let entry = ledger.entry(sequence).map_err(GatewayFault::Unread)?;
        let time = entry.and_then(|entry| Timestamp::parse(&entry.consensus_timestamp));
        Ok::<_, GatewayFault>(time.is_some() && time == time_in_views(sequence)?)
    };
    let (mut after, mut not) = (0, views.sequence.min(head.sequence) + 1);
    while not - after > 1 {
        let sequence = after + (not - after) / 2;
        if is_common(sequence)? { after = sequence } else { not = sequence }
    }
    let through = views.sequence;
    if after == through {
        return Ok(None);
    }
    let filter =
        EntryFilter { kind: Some("gate.decided"), from: time_in_views(after + 1)?, ..EntryFilter::default() };
    let page = reader.entries(&filter, None, limits::VIEW_PAGE_ROWS_MAX).map_err(unread)?;
    let acts = reader.acts_after(after).map_err(unread)?;
    let acts = acts.iter().filter_map(LostAct::read).collect();
    Ok(Some(LostEntries { after, through, decisions: page.rows, acts }))
}
