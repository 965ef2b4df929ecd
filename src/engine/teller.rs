//! Tells what is durable: first those who follow, then those who wait, in the order of the ledger.
//!
//! Telling wakes as many threads as there are callers, and each of them has an answer to make. So while there is a next
//! batch to write, a thread of its own tells, and the disk is not kept waiting. Where there is none, whoever wrote tells
//! as well: waking one more thread would only take longer.
//!
//! INVARIANT (told in order): what is told went through the line to the teller's thread, or is told by somebody who has
//! the floor, which is given only when nothing is in that line and goes before all that comes into it. A batch has its
//! place in that order before the line of those who wait hears that it is durable: whatever is decided on top of it can
//! only come behind it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard};

use super::threads::{Message, Waiting, Watch};
use crate::ledger::{Entry, Follower, Notice};
use crate::timestamp::Timestamp;

/// What there is to tell.
pub(super) enum Tale {
    /// A batch is durable.
    Batch { entries: Vec<Entry>, waiting: Vec<Waiting> },
    /// Others have appended these, and the sequencer has taken them in.
    News(Vec<Entry>),
    /// Nothing was written for these; what they are told of is durable.
    Replays(Vec<Waiting>),
}

struct Teller {
    follower: Box<dyn Follower>,
    watch: Watch,
}

/// The teller, where its own thread tells, or whoever wrote.
pub(super) struct TellerDesk {
    teller: Mutex<Teller>,
    /// How much was handed over and is not told yet.
    untold: AtomicUsize,
}

/// The way to the teller, for those who write.
#[derive(Clone)]
pub(super) struct TellerLine {
    desk: Arc<TellerDesk>,
    /// Short: whoever hands over waits while the teller is behind, so that what is durable and not told stays bounded.
    line: SyncSender<Tale>,
}

/// The teller's thread has gone.
pub(super) struct NobodyTells;

/// Everything that was handed over before is told, and nothing else is while this is held.
pub(super) struct Floor<'t> {
    line: &'t TellerLine,
    /// Nothing once it was passed on.
    teller: Option<MutexGuard<'t, Teller>>,
}

/// A tale that has its place in the order.
pub(super) enum Placed<'t> {
    /// Whoever holds it tells it, and nobody else tells anything before.
    Here(Floor<'t>, Tale),
    /// The teller's thread has it.
    There(&'t TellerLine),
}

impl Placed<'_> {
    /// Has the teller's thread tell it.
    pub(super) fn pass_on(self) -> Result<(), NobodyTells> {
        match self {
            Self::Here(floor, tale) => floor.pass_on(tale),
            Self::There(_) => Ok(()),
        }
    }

    /// Has it told, and behind it those for whom nothing had to be written. Those who follow may want something recorded.
    pub(super) fn tell(self, replays: Vec<Waiting>) -> Result<Option<Notice>, NobodyTells> {
        match self {
            Self::Here(mut floor, tale) => {
                let notice = floor.tell(tale);
                floor.tell(Tale::Replays(replays));
                Ok(notice)
            }
            Self::There(_) if replays.is_empty() => Ok(None),
            Self::There(line) => line.hand_over(Tale::Replays(replays)).map(|()| None),
        }
    }
}

impl Drop for Floor<'_> {
    fn drop(&mut self) {
        if self.teller.take().is_some() {
            self.line.desk.untold.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Floor<'_> {
    /// Tells it now. Those who follow may want something recorded.
    pub(super) fn tell(&mut self, tale: Tale) -> Option<Notice> {
        self.teller.as_mut()?.tell(tale)
    }

    /// Has the teller's thread tell it, in this place: nobody hands anything over while the writer's thread, or whoever has
    /// the line, has the floor.
    fn pass_on(mut self, tale: Tale) -> Result<(), NobodyTells> {
        // Its place stays taken, and the thread must not wait for it.
        self.teller = None;
        self.line.line.send(tale).map_err(|_| NobodyTells)
    }
}

impl TellerDesk {
    pub(super) fn new(follower: Box<dyn Follower>, watch: Watch) -> Self {
        Self { teller: Mutex::new(Teller { follower, watch }), untold: AtomicUsize::new(0) }
    }

    /// One that panicked in the middle of a tale has told a part of it, and nobody tells what comes behind that.
    fn lock(&self) -> Result<MutexGuard<'_, Teller>, NobodyTells> {
        self.teller.lock().map_err(|_| NobodyTells)
    }

    /// The teller's own thread: tells what comes, until nobody is left who could hand anything over.
    pub(super) fn run(&self, line: &Receiver<Tale>, noticed: &Sender<Message>) {
        while let Ok(tale) = line.recv() {
            let Ok(mut teller) = self.lock() else { return };
            let notice = teller.tell(tale);
            drop(teller);
            self.untold.fetch_sub(1, Ordering::AcqRel);
            if let Some(notice) = notice {
                // A line that has ended records nothing more.
                let _ = noticed.send(Message::Ask(Waiting::Notice(notice)));
            }
        }
    }
}

impl TellerLine {
    pub(super) fn new(desk: Arc<TellerDesk>, line: SyncSender<Tale>) -> Self {
        Self { desk, line }
    }

    /// The floor, if everything is told.
    pub(super) fn floor(&self) -> Option<Floor<'_>> {
        let untold = &self.desk.untold;
        untold.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).ok()?;
        // Where nobody tells any more, nothing is ever told again.
        Some(Floor { line: self, teller: Some(self.desk.lock().ok()?) })
    }

    /// Gives a tale its place: to be told here if everything is told, otherwise by the teller's thread.
    pub(super) fn place(&self, tale: Tale) -> Result<Placed<'_>, NobodyTells> {
        match self.floor() {
            Some(floor) => Ok(Placed::Here(floor, tale)),
            None => self.hand_over(tale).map(|()| Placed::There(self)),
        }
    }

    /// Has the teller's thread tell it, behind all that was handed over before.
    pub(super) fn hand_over(&self, tale: Tale) -> Result<(), NobodyTells> {
        self.desk.untold.fetch_add(1, Ordering::AcqRel);
        self.line.send(tale).map_err(|_| NobodyTells)
    }

    /// Nothing was appended for a moment: those who follow may look after what they keep.
    pub(super) fn idle(&self) -> Option<Notice> {
        self.floor()?.teller.as_mut()?.follower.idle()
    }
}

impl Teller {
    fn tell(&mut self, tale: Tale) -> Option<Notice> {
        match tale {
            Tale::Batch { entries, mut waiting } => {
                self.reached(&entries);
                // Answers are made ready on other threads while this one tells those who follow.
                waiting.iter_mut().for_each(Waiting::tell_ahead);
                // What a reply says is already where followers show it.
                let notice = self.follower.durable(&entries);
                self.reply(waiting);
                notice
            }
            Tale::News(entries) => {
                self.reached(&entries);
                self.follower.durable(&entries)
            }
            Tale::Replays(waiting) => {
                self.reply(waiting);
                None
            }
        }
    }

    fn reached(&self, entries: &[Entry]) {
        if let Some(last) = entries.last()
            && let Some(time) = Timestamp::parse(&last.consensus_timestamp)
        {
            self.watch.health.set_head(last.sequence, time);
        }
    }

    fn reply(&self, waiting: Vec<Waiting>) {
        for one in waiting {
            one.tell(Ok(()), &*self.watch.observer);
        }
    }
}
