//! Keeps the views up with the ledger, behind the replies.
//!
//! A thread of its own applies what has become durable, many batches in one transaction. The line to it is
//! bounded: when the views fall too far behind, the writer waits for them, and so does everybody in line;
//! nothing is skipped. While the views cannot be written nobody waits for them and nothing is kept for them: decisions go
//! on, for the ledger is the record, until memory is full of claims that the views do not have. Meanwhile it is tried
//! again and again to open them and to bring them up from the ledger (`mending.rs`).

mod catching_up;
mod mending;
mod trouble;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::remembering::{Record, Witness};
use super::snapshots::Snapshots;
use super::{Files, GatewayFault};
use crate::ledger::{Entry, Follower, Head, Notice, OpenFault, RunningHash, Source};
use crate::limits;
use crate::os::files::inode;
use crate::views::{FollowedViews, Reader, Views, ViewsFault, beside};
use catching_up::{catch_up, is_less_work, say_if_doubled};
pub(super) use catching_up::{give_up, unusable};
use mending::Mending;
pub(super) use trouble::{Trouble, trouble};

/// Hands entries on, and to the thread that applies them.
pub(super) struct ViewsFollower<F> {
    pub(super) next: F,
    pub(super) feed: Sender<Vec<Entry>>,
    pub(super) progress: Arc<ViewsProgress>,
}

impl<F: Follower> Follower for ViewsFollower<F> {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        if let Some(last) = entries.last() {
            self.progress.hand(last.sequence, || {
                // A thread that has ended takes no more; the progress says why.
                let _ = self.feed.send(entries.to_vec());
            });
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
    /// Why the views do not follow. While there is one, nothing is handed over: it is read from the ledger afterwards.
    fault: Option<String>,
    /// Which opening of the file this is: whoever has it open from before may have another file.
    opening: u64,
    /// Those that are written to.
    files: Own,
    /// What a question met that finds the file damaged. It is made again before anything more is written to it.
    damage: Option<String>,
}

/// Which files the views are in: the file itself, its journal, and the index of that. Whoever has them open goes on with
/// them whatever becomes of their names; whoever opens them by name needs all three.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Own {
    views: Option<u64>,
    beside: [Option<u64>; 2],
}

impl Own {
    fn at(path: &Path) -> Self {
        let inode = |path: &Path| inode(path).ok();
        Self { views: inode(path), beside: beside(path).map(|path| inode(&path)) }
    }
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

    /// Why the views do not follow, while they do not.
    pub fn fault(&self) -> Option<String> {
        self.lock().fault.clone()
    }

    /// Which opening of the file it is that follows; another number after the views were mended.
    pub fn opening(&self) -> u64 {
        self.lock().opening
    }

    /// Why the file has to be made again although it is written to.
    pub(super) fn damage(&self) -> Option<String> {
        self.lock().damage.clone()
    }

    /// Notes damage in the file of that opening; another file has taken its place if that is not the last one.
    fn is_damaged(&self, opening: u64, why: &str) {
        let mut state = self.lock();
        if state.opening == opening {
            state.damage.get_or_insert_with(|| why.to_owned());
        }
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

    /// Notes that entries up to this one are durable, has them handed over if the views follow, and waits while they are too
    /// far behind.
    fn hand(&self, sequence: u64, send: impl FnOnce()) {
        let mut state = self.lock();
        state.handed = sequence;
        if state.fault.is_some() {
            return;
        }
        // Under the lock: what is not sent was handed before the views follow again, so they read it.
        send();
        if state.is_due() {
            self.due.notify_one();
        }
        let full = |state: &mut State| {
            sequence.saturating_sub(state.applied) > limits::VIEW_ENTRIES_BEHIND_MAX && state.fault.is_none()
        };
        drop(self.moved.wait_while(state, full).unwrap_or_else(PoisonError::into_inner));
    }

    /// From now on nobody waits for the views, and nothing is handed over to them.
    fn fails(&self, why: String) {
        self.set(|state| state.fault = Some(why));
    }

    /// From now on entries are handed over again, unless the views lack more than one transaction holds. Says the last entry
    /// that was not handed over: those up to it are the ledger's to tell.
    fn follows_again(&self, applied: u64, files: Own) -> Result<u64, u64> {
        let mut state = self.lock();
        if state.handed.saturating_sub(applied) > limits::VIEW_GATHER_ENTRIES as u64 {
            return Err(state.handed);
        }
        state.applied = applied;
        state.fault = None;
        state.opening += 1;
        state.files = files;
        state.damage = None;
        let handed = state.handed;
        drop(state);
        self.moved.notify_all();
        Ok(handed)
    }

    fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// Waits for so long, and says whether to go on then.
    fn rest(&self, pause: Duration) -> bool {
        let waited = self.due.wait_timeout_while(self.lock(), pause, |state| !state.closing);
        !waited.unwrap_or_else(PoisonError::into_inner).0.closing
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
    pub(super) thread: ViewsThread,
}

/// The thread that applies entries, until nobody hands any over. Whoever lets go of it may have the file deleted: nothing
/// writes to it after that.
#[derive(Debug)]
pub(super) struct ViewsThread(Option<JoinHandle<()>>);

impl Drop for ViewsThread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// What is known of the past is in the file that the views are written to now.
pub(super) struct FollowedFile {
    pub(super) path: PathBuf,
    pub(super) progress: Arc<ViewsProgress>,
}

impl FollowedViews for FollowedFile {
    fn applied(&self) -> u64 {
        self.progress.applied()
    }

    fn opening(&self) -> u64 {
        self.progress.opening()
    }

    fn open(&self) -> Result<Reader, ViewsFault> {
        Reader::open(&self.path)
    }

    fn is_damaged(&self, opening: u64, why: &str) {
        self.progress.is_damaged(opening, why);
    }
}

/// Brings the views up to `head`, rebuilding them where they are missing, damaged, of another ledger or far behind, and
/// starts to follow. Those of this ledger that are ahead of it, or have another entry than it, are a fault. `tell` hears how
/// many entries of how many are done.
pub(super) fn follow(
    files: &Files,
    ledger: &Source,
    topic_id: &str,
    head: Head,
    snapshots: Snapshots,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Following, GatewayFault> {
    agree(&files.views(), ledger, topic_id, head)?;
    let mut go_on = |done, all| {
        tell(done, all);
        true
    };
    let views = catch_up(&files.views(), ledger, topic_id, head.sequence, is_less_work, &mut go_on)?;
    let progress = Arc::new(ViewsProgress::default());
    progress.set(|state| {
        state.applied = head.sequence;
        state.handed = head.sequence;
        state.files = Own::at(&files.views());
    });
    let (feed, work) = channel();
    let mending = Mending {
        path: files.views(),
        ledger: ledger.clone(),
        topic_id: topic_id.to_owned(),
        progress: progress.clone(),
    };
    let thread = std::thread::Builder::new()
        .name("views".into())
        .spawn(move || apply_all(views, &work, &mending, snapshots))
        .map_err(|error| GatewayFault::Io { path: files.views(), why: error.to_string() })?;
    Ok(Following { feed, progress, thread: ViewsThread(Some(thread)) })
}

/// Is the last entry that the views hold the ledger's? If not the ledger has lost it: views take nothing in before it is
/// durable. Those that have to be made again say nothing.
fn agree(path: &Path, ledger: &Source, topic_id: &str, head: Head) -> Result<(), GatewayFault> {
    let views = match Views::open(path, topic_id) {
        Err(ViewsFault::NeedsRebuild(_)) => return Ok(()),
        opened => {
            opened.map_err(|fault| GatewayFault::Io { path: path.to_owned(), why: fault.to_string() })?
        }
    };
    let Some((sequence, hash)) = views.applied() else { return Ok(()) };
    let running_hash = RunningHash::from_hex(&hash);
    let seen = Head { sequence, running_hash: running_hash.unwrap_or(head.running_hash) };
    let by = || vec![Record::new(path.to_owned(), seen, Witness::Views)];
    let lost = |fault| Err(GatewayFault::Forgotten { by: by(), fault, may_be_edited: false });
    if sequence > head.sequence {
        return lost(OpenFault::Truncated { sequence: head.sequence, expected: sequence });
    }
    match ledger.entry(sequence).map_err(GatewayFault::Unread)? {
        Some(entry) if entry.running_hash.to_string() == hash => Ok(()),
        _ => lost(OpenFault::Different { sequence }),
    }
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
fn apply_all(mut views: Views, work: &Receiver<Vec<Entry>>, mending: &Mending, mut snapshots: Snapshots) {
    let progress = &*mending.progress;
    let _ended = Ended(progress);
    while let Ok(mut entries) = work.recv() {
        gather(&mut entries, work, progress);
        let trouble = trouble(&mending.path, progress);
        let why = match &trouble {
            Some(trouble) => Some(trouble.to_string()),
            None => apply(&mut views, &entries, progress).err().map(|fault| fault.to_string()),
        };
        if let Some(why) = why {
            drop(entries);
            let anew = matches!(trouble, Some(Trouble::JournalGone | Trouble::Damaged(_)));
            match mending.mend(views, why, anew, work) {
                Some(mended) => views = mended,
                // The next start brings them up.
                None => return,
            }
        }
        say_if_doubled(&mut views);
        let applied = views.applied().map_or(0, |(sequence, _)| sequence);
        progress.set(|state| state.applied = applied);
        snapshots.reached(applied);
    }
}

/// A disk that is full or busy may have room again in a moment, and nobody has to hear of it then.
fn apply(views: &mut Views, entries: &[Entry], progress: &ViewsProgress) -> Result<(), ViewsFault> {
    let pause = Duration::from_millis(limits::VIEW_PAUSE_MS);
    for _ in 1..limits::VIEW_TRIES_MAX {
        match views.apply(entries) {
            Err(ViewsFault::Store(_)) if progress.rest(pause) => {}
            result => return result.map(drop),
        }
    }
    views.apply(entries).map(drop)
}

#[cfg(test)]
mod tests;
