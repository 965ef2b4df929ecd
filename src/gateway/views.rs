//! Keeps the views up with the ledger, behind the replies.
//!
//! A thread of its own applies what has become durable, many batches in one transaction. The line to it is
//! bounded: when the views fall too far behind, the writer waits for them, and so does everybody in line;
//! nothing is skipped. Views that cannot be written any more are given up until the next start, which rebuilds
//! them; decisions go on, for the ledger is the record, until memory is full of claims that the views do not have.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::snapshots::Snapshots;
use super::{Files, GatewayFault};
use crate::engine::EngineFault;
use crate::ledger::{EntriesFault, Entry, Follower, Head, Notice, Source};
use crate::limits;
use crate::views::{Views, ViewsFault};

/// Hands entries on, and to the thread that applies them.
pub(super) struct ViewsFollower<F> {
    pub(super) next: F,
    pub(super) feed: Sender<Vec<Entry>>,
    pub(super) progress: Arc<ViewsProgress>,
}

impl<F: Follower> Follower for ViewsFollower<F> {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        // A thread that has given up takes no more; the progress says why.
        let _ = self.feed.send(entries.to_vec());
        if let Some(last) = entries.last() {
            self.progress.handed(last.sequence);
        }
        self.next.durable(entries)
    }

    fn idle(&mut self) -> Option<Notice> {
        self.next.idle()
    }
}

/// Nothing more is handed over: what was gathered is applied at once.
impl<F> Drop for ViewsFollower<F> {
    fn drop(&mut self) {
        self.progress.lock().closing = true;
        self.progress.due.notify_one();
    }
}

/// How far the views have come.
#[derive(Debug, Default)]
pub struct ViewsProgress {
    state: Mutex<State>,
    /// More was applied, or nothing will be any more.
    moved: Condvar,
    /// There is a reason to apply what was gathered.
    due: Condvar,
}

#[derive(Debug, Default)]
struct State {
    applied: u64,
    /// The last entry that was handed over.
    handed: u64,
    /// The last entry that somebody waits for.
    wanted: u64,
    /// Nothing more will be handed over.
    closing: bool,
    fault: Option<String>,
}

impl State {
    /// Does somebody wait for what is not applied yet, is there enough for a transaction, or will there be no more?
    fn is_due(&self) -> bool {
        self.closing
            || self.wanted > self.applied
            || self.handed.saturating_sub(self.applied) >= limits::VIEW_GATHER_ENTRIES as u64
    }
}

impl ViewsProgress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last entry that queries see.
    pub fn applied(&self) -> u64 {
        self.lock().applied
    }

    /// Why the views no longer follow, if they do not.
    pub fn fault(&self) -> Option<String> {
        self.lock().fault.clone()
    }

    /// Waits until queries see an entry, so that one made right after a reply finds its decision. False if they
    /// do not within `patience`.
    pub fn wait_for(&self, sequence: u64, patience: Duration) -> bool {
        let behind = |state: &mut State| state.applied < sequence && state.fault.is_none();
        let mut state = self.lock();
        if state.wanted < sequence {
            state.wanted = sequence;
            self.due.notify_one();
        }
        let waited = self.moved.wait_timeout_while(state, patience, behind);
        waited.unwrap_or_else(PoisonError::into_inner).0.applied >= sequence
    }

    /// Notes that entries up to this one were handed over, and waits while the views are too far behind them, unless they
    /// follow no more.
    fn handed(&self, sequence: u64) {
        let mut state = self.lock();
        state.handed = sequence;
        if state.is_due() {
            self.due.notify_one();
        }
        let full = |state: &mut State| {
            sequence.saturating_sub(state.applied) > limits::VIEW_ENTRIES_BEHIND_MAX && state.fault.is_none()
        };
        drop(self.moved.wait_while(state, full).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until what was handed over is to be applied. Not for the entries themselves: whoever hands them over would
    /// wake this thread with every batch.
    fn gather(&self, patience: Duration) {
        let waited = self.due.wait_timeout_while(self.lock(), patience, |state| !state.is_due());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.moved.notify_all();
    }
}

/// Views that follow, and the thread that makes them.
pub(super) struct Following {
    pub(super) feed: Sender<Vec<Entry>>,
    pub(super) progress: Arc<ViewsProgress>,
    pub(super) thread: JoinHandle<()>,
}

/// Brings the views up to `head`, rebuilding them where they are missing, damaged, of another ledger or far behind, and
/// starts to follow. `tell` hears how many entries of how many are done.
pub(super) fn follow(
    files: &Files,
    ledger: &Source,
    topic_id: &str,
    head: Head,
    snapshots: Snapshots,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Following, GatewayFault> {
    let views = catch_up(&files.views(), ledger, topic_id, head, tell)?;
    let progress = Arc::new(ViewsProgress::default());
    progress.set(|state| state.applied = head.sequence);
    let (feed, work) = channel();
    let shared = progress.clone();
    let thread = std::thread::Builder::new()
        .name("views".into())
        .spawn(move || apply_all(views, &work, &shared, snapshots))
        .map_err(|error| GatewayFault::Io { path: files.views(), why: error.to_string() })?;
    Ok(Following { feed, progress, thread })
}

fn catch_up(
    path: &Path,
    ledger: &Source,
    topic_id: &str,
    head: Head,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Views, GatewayFault> {
    let fault = |fault: ViewsFault| GatewayFault::Io { path: path.to_owned(), why: fault.to_string() };
    let bad = |fault: EntriesFault| GatewayFault::Engine(EngineFault::BadLedger(fault.to_string()));
    // Entries one by one; the first that cannot be read ends them, and is told afterwards.
    let mut unread = None;
    let mut entries = |from: u64, unread: &mut Option<EntriesFault>| -> Result<Vec<Entry>, GatewayFault> {
        let through = head.sequence.min(from + limits::VIEW_REBUILD_ENTRIES as u64 - 1);
        tell(from - 1, head.sequence);
        let read = ledger.entries(from, through).map_err(bad)?;
        Ok(read.map_while(|entry| entry.map_err(|fault| *unread = Some(fault)).ok()).collect())
    };
    let opened = match Views::open(path, topic_id) {
        Ok(views) if is_near(&views, head) && agrees(&views, ledger, head)? => Some(views),
        Ok(_) | Err(ViewsFault::NeedsRebuild(_)) => None,
        Err(other) => return Err(fault(other)),
    };
    let mut views = match opened {
        Some(views) => views,
        None => {
            let mut next = 1;
            let mut failed = None;
            let chunks = std::iter::from_fn(|| {
                if next > head.sequence || failed.is_some() || unread.is_some() {
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
        if next > head.sequence {
            return Ok(views);
        }
        let chunk = entries(next, &mut unread)?;
        views.apply(chunk).map_err(fault)?;
    }
    Err(unread.map_or_else(|| GatewayFault::Engine(EngineFault::Stopped), bad))
}

/// Is it less work to apply what is missing than to make everything again?
fn is_near(views: &Views, head: Head) -> bool {
    is_near_to(views.applied().map_or(0, |(sequence, _)| sequence), head.sequence)
}

/// A rebuild makes the indexes when the rows are there, which costs a fraction of keeping them up with each row. It
/// is worth it where nothing is applied, and where more than a fifth of a long ledger is not.
fn is_near_to(applied: u64, head: u64) -> bool {
    let missing = head.saturating_sub(applied);
    missing == 0 || (applied > 0 && (missing <= limits::VIEW_CATCH_UP_MAX || missing <= applied / 4))
}

/// Is the last entry that the views hold the ledger's?
fn agrees(views: &Views, ledger: &Source, head: Head) -> Result<bool, GatewayFault> {
    let Some((sequence, hash)) = views.applied() else { return Ok(true) };
    if sequence > head.sequence {
        return Ok(false);
    }
    let bad = |fault: EntriesFault| GatewayFault::Engine(EngineFault::BadLedger(fault.to_string()));
    let entry = ledger.entry(sequence).map_err(bad)?;
    Ok(entry.is_some_and(|entry| entry.running_hash.to_string() == hash))
}

/// Tells those who wait that nobody applies anything any more, should the thread end by a panic.
struct Ended<'p>(&'p ViewsProgress);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set(|state| state.fault = Some("the thread that applies entries has ended".to_owned()));
        }
    }
}

/// Gathers entries for a while, unless somebody waits for them: a transaction writes every page that it touched, so
/// few large ones cost far less than many small ones.
fn gather(entries: &mut Vec<Entry>, work: &Receiver<Vec<Entry>>, progress: &ViewsProgress) {
    progress.gather(Duration::from_millis(limits::VIEW_GATHER_MS));
    while entries.len() < limits::VIEW_REBUILD_ENTRIES
        && let Ok(more) = work.try_recv()
    {
        entries.extend(more);
    }
}

/// The thread: takes all that is waiting, applies it in one transaction, and goes on.
fn apply_all(
    mut views: Views,
    work: &Receiver<Vec<Entry>>,
    progress: &ViewsProgress,
    mut snapshots: Snapshots,
) {
    let _ended = Ended(progress);
    while let Ok(mut entries) = work.recv() {
        gather(&mut entries, work, progress);
        if let Err(fault) = apply(&mut views, &entries) {
            progress.set(|state| state.fault = Some(fault.to_string()));
            return;
        }
        let applied = views.applied().map_or(0, |(sequence, _)| sequence);
        progress.set(|state| state.applied = applied);
        snapshots.reached(applied);
    }
}

/// A full disk may have room again in a moment; anything else will not go away.
fn apply(views: &mut Views, entries: &[Entry]) -> Result<(), ViewsFault> {
    const PAUSE: Duration = Duration::from_millis(200);
    for _ in 0..limits::VIEW_TRIES_MAX {
        match views.apply(entries) {
            Ok(_) => return Ok(()),
            Err(ViewsFault::Store(_)) => std::thread::sleep(PAUSE),
            Err(other) => return Err(other),
        }
    }
    views.apply(entries).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_made_again_where_that_is_less_work_than_going_on() {
        const MAX: u64 = limits::VIEW_CATCH_UP_MAX;
        let check = |applied, head, near| assert_eq!(is_near_to(applied, head), near, "{applied} of {head}");
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
