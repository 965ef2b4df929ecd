//! Brings views up to an entry of the ledger: by what is missing, or made again from the first entry.

use std::path::Path;

use super::super::GatewayFault;
use crate::engine::EngineFault;
use crate::ledger::{EntriesFault, Entry, Source};
use crate::limits;
use crate::views::{Rebuild, Views, ViewsFault, delete, holds_nothing};

/// Opens the views and applies what they lack, through entry `through`. Views that are missing, damaged, of another ledger
/// or not near (told what they have and what they should) are made again. `go_on` hears how many entries of how many are done, and whether it ends there is its to say.
pub(super) fn catch_up(
    path: &Path,
    ledger: &Source,
    topic_id: &str,
    through: u64,
    is_near: impl Fn(u64, u64) -> bool,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Views, GatewayFault> {
    let fault = |fault| unusable(path, fault);
    // Entries one by one; the first that cannot be read ends them, and is told afterwards.
    let mut unread = None;
    let mut entries = |from: u64, unread: &mut Option<EntriesFault>| -> Result<Vec<Entry>, GatewayFault> {
        if !go_on(from - 1, through) {
            return Err(GatewayFault::Engine(EngineFault::Stopped));
        }
        let last = through.min(from + limits::VIEW_REBUILD_ENTRIES as u64 - 1);
        let read = ledger.entries(from, last).map_err(GatewayFault::Unread)?;
        Ok(read.map_while(|entry| entry.map_err(|fault| *unread = Some(fault)).ok()).collect())
    };
    // One that is opened where there is none is whole, and holds nothing: whoever reads it meanwhile would believe that.
    let is_new = through > 0 && holds_nothing(path);
    let opened = if is_new {
        None
    } else {
        match Views::open(path, topic_id) {
            Ok(views) if is_near(reached(&views), through) && agrees(&views, ledger, through)? => Some(views),
            Ok(_) | Err(ViewsFault::NeedsRebuild(_)) => None,
            Err(other) => return Err(fault(other)),
        }
    };
    let mut views = match opened {
        Some(views) => views,
        None => {
            let mut next = 1;
            let mut failed = None;
            let chunks = std::iter::from_fn(|| {
                if next > through || failed.is_some() || unread.is_some() {
                    return None;
                }
                let chunk = entries(next, &mut unread).map_err(|error| failed = Some(error)).ok()?;
                next += limits::VIEW_REBUILD_ENTRIES as u64;
                Some(chunk)
            });
            let rebuilt = Views::rebuild(path, topic_id, chunks.flatten()).map_err(fault)?;
            if let Some(error) = failed {
                return Err(error);
            }
            rebuilt
        }
    };
    while unread.is_none() {
        let next = views.applied().map_or(1, |(sequence, _)| sequence + 1);
        if next > through {
            say_if_doubled(&mut views);
            return Ok(views);
        }
        let chunk = entries(next, &mut unread)?;
        views.apply(chunk).map_err(fault)?;
    }
    Err(unread.map_or_else(|| GatewayFault::Engine(EngineFault::Stopped), GatewayFault::Unread))
}

/// Why the views are of no use; whether they have to be made again is for who opens them to see.
pub(in crate::gateway) fn unusable(path: &Path, fault: ViewsFault) -> GatewayFault {
    let path = path.to_owned();
    match fault {
        ViewsFault::NeedsRebuild(Rebuild::Damaged(why)) => GatewayFault::DamagedViews { path, why },
        fault => GatewayFault::Io { path, why: fault.to_string() },
    }
}

/// Deletes views whose damage was met behind their opening, so that the next opening makes them again.
pub(in crate::gateway) fn give_up(path: &Path, why: &str) -> Result<(), GatewayFault> {
    tracing::warn!(file = %path.display(), why, "the views are damaged; they are made again from the ledger");
    delete(path).map_err(|fault| unusable(path, fault))
}

/// Nothing is done about it, for the ledger is what it is; but nobody should have to find it by accident.
pub(super) fn say_if_doubled(views: &mut Views) {
    if let Some(entry) = views.take_doubled() {
        tracing::error!(
            entry,
            "the ledger creates an attempt that it had created before: something was decided twice; see `handoffd audit verify`"
        );
    }
}

fn reached(views: &Views) -> u64 {
    views.applied().map_or(0, |(sequence, _)| sequence)
}

/// Is it less work to apply what is missing than to make everything again?
///
/// A rebuild makes the indexes when the rows are there, which costs a fraction of keeping them up with each row. It
/// is worth it where nothing is applied, and where more than a fifth of a long ledger is not.
pub(super) fn is_less_work(applied: u64, head: u64) -> bool {
    let missing = head.saturating_sub(applied);
    missing == 0 || (applied > 0 && (missing <= limits::VIEW_CATCH_UP_MAX || missing <= applied / 4))
}

/// Is the last entry that the views hold the ledger's?
fn agrees(views: &Views, ledger: &Source, through: u64) -> Result<bool, GatewayFault> {
    let Some((sequence, hash)) = views.applied() else { return Ok(true) };
    if sequence > through {
        return Ok(false);
    }
    let entry = ledger.entry(sequence).map_err(GatewayFault::Unread)?;
    Ok(entry.is_some_and(|entry| entry.running_hash.to_string() == hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_made_again_where_that_is_less_work_than_going_on() {
        const MAX: u64 = limits::VIEW_CATCH_UP_MAX;
        let check =
            |applied, head, near| assert_eq!(is_less_work(applied, head), near, "{applied} of {head}");
        // An empty ledger is followed as it is; of any other at least something must be there.
        check(0, 0, true);
        check(0, 1, false);
        check(1, 1, true);
        // A few are applied whatever there was before, and many only to many more.
        check(1, MAX + 1, true);
        check(1, MAX + 2, false);
        check(8 * MAX, 10 * MAX, true);
        check(8 * MAX, 10 * MAX + 1, false);
        // Views that are ahead are found by the running hash that the ledger does not have.
        check(2, 1, true);
    }
}
