//! The writer: one batch after the other, and nobody is answered before it is durable.
//!
//! It has a thread of its own, so that the next batch is prepared while the last one syncs. Where nobody else is in line
//! there is nothing to prepare, and the sequencer's thread writes by itself: waking another thread twice would take
//! about as long as the disk.
//!
//! INVARIANT (taken in first): entries of others are told to those who follow only when the sequencer has taken them in,
//! so that nothing it reads from the views is ahead of what it knows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::threads::{Job, Message, Waiting, Watch, Work, Written};
use super::{Appended, EngineFault};
use crate::ledger::{AppendFault, Batch, Entry, Follower, Head, Log};
use crate::limits;
use crate::timestamp::Timestamp;

pub(super) struct Writer {
    log: Box<dyn Log>,
    follower: Box<dyn Follower>,
    watch: Watch,
    /// Is there a look in line, or under way?
    looking: Arc<AtomicBool>,
    /// The last entry that was appended, or handed to the sequencer.
    known: Head,
    /// What was handed to the sequencer and not yet to those who follow.
    untold: Vec<Entry>,
    /// When that was read, if it went up to the end of the ledger.
    end_seen: Option<Instant>,
}

/// The sequencer has gone.
pub(super) struct Gone;

/// How the sequencer hears what became of its work.
type Tell<'t> = &'t mut dyn FnMut(Message) -> Result<(), Gone>;

/// The writer, where its own thread or the sequencer's writes, one at a time.
pub(super) struct WriterDesk(Mutex<Writer>);

impl WriterDesk {
    pub(super) fn new(writer: Writer) -> Self {
        Self(Mutex::new(writer))
    }

    /// A thread that panicked in the middle of an append left a batch that nobody was told of; the log knows where it
    /// is durable.
    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a batch on the caller's thread.
    pub(super) fn write(&self, job: Job, tell: Tell<'_>) -> Result<(), Gone> {
        self.lock().job(job, tell)
    }

    /// The writer's own thread: does what comes, until there is nobody to tell.
    pub(super) fn run(&self, work: &Receiver<Work>, done: &Sender<Message>) {
        const IDLE: Duration = Duration::from_millis(limits::IDLE_CHECK_MS);
        let tell = &mut |message| done.send(message).map_err(|_| Gone);
        loop {
            let work = work.recv_timeout(IDLE);
            let mut writer = self.lock();
            let done = match work {
                Ok(Work::Job(job)) => writer.job(job, tell),
                Ok(Work::Taken) => writer.taken(tell),
                Ok(Work::Pass) => {
                    writer.log.pass();
                    Ok(())
                }
                Ok(Work::Look(hint)) => {
                    writer.looking.store(false, Ordering::Release);
                    if hint.is_none_or(|sequence| sequence > writer.known.sequence) {
                        writer.look(tell)
                    } else {
                        Ok(())
                    }
                }
                // Nothing to write: a good time to see whether it could be.
                Err(RecvTimeoutError::Timeout) => writer.idle(tell),
                Ok(Work::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            };
            if done.is_err() {
                return;
            }
        }
    }
}

impl Writer {
    pub(super) fn new(
        log: Box<dyn Log>,
        follower: Box<dyn Follower>,
        watch: Watch,
        looking: Arc<AtomicBool>,
    ) -> Self {
        let known = log.head();
        Self { log, follower, watch, looking, known, untold: Vec::new(), end_seen: None }
    }

    fn job(&mut self, Job { after, batch, waiting }: Job, tell: Tell<'_>) -> Result<(), Gone> {
        if after != self.known {
            // The sequencer was told of what came before it, and has not heard it yet.
            return overtaken(Vec::new(), waiting, tell);
        }
        let Some(batch) = batch else { return self.confirm(waiting, tell) };
        self.watch.observer.append_begins();
        match self.log.append(after, &batch) {
            Ok(()) => self.durable(batch, waiting, tell),
            Err(AppendFault::Conflict { .. }) => {
                self.watch.observer.append_ended(Appended::Overtaken);
                match self.behind() {
                    Ok(news) => overtaken(news, waiting, tell),
                    Err(why) => self.failed(why, waiting, tell),
                }
            }
            Err(fault) => {
                self.watch.observer.append_ended(Appended::Failed);
                self.failed(fault.to_string(), waiting, tell)
            }
        }
    }

    /// Those who follow look after what they keep only while it could be recorded.
    fn idle(&mut self, tell: Tell<'_>) -> Result<(), Gone> {
        let health = self.log.check().map_err(|fault| fault.to_string());
        let notice = if health.is_ok() { self.follower.idle() } else { None };
        self.watch.health.set(health);
        notice.map_or(Ok(()), |notice| tell(Message::Ask(Waiting::Notice(notice))))
    }

    fn durable(&mut self, batch: Batch, mut waiting: Vec<Waiting>, tell: Tell<'_>) -> Result<(), Gone> {
        let (entries, bytes) = (batch.entries().len(), batch.text().len());
        self.watch.observer.append_ended(Appended::Durable { entries, bytes });
        self.watch.health.set(Ok(()));
        self.watch.health.is_current();
        self.known = batch.head();
        self.watch.health.set_head(batch.head().sequence, batch.last_timestamp());
        // Answers are made ready on other threads while this one tells those who follow.
        waiting.iter_mut().for_each(Waiting::tell_ahead);
        // What a reply says is already where followers show it.
        let notice = self.follower.durable(batch.entries());
        for one in waiting {
            one.tell(Ok(()), &*self.watch.observer);
        }
        if let Some(notice) = notice {
            tell(Message::Ask(Waiting::Notice(notice)))?;
        }
        tell(Message::Written(Written::Durable(batch.into_room())))
    }

    /// A failure is the sequencer's to hear first: whoever is told and tries again at once must find everything given
    /// back. A success is told to those who wait first.
    fn failed(&mut self, why: String, waiting: Vec<Waiting>, tell: Tell<'_>) -> Result<(), Gone> {
        self.watch.health.set(Err(why.clone()));
        let sent = tell(Message::Written(Written::Failed(why.clone())));
        for one in waiting {
            one.tell(Err(EngineFault::NotDurable(why.clone())), &*self.watch.observer);
        }
        sent
    }

    /// Nothing is to be written, but what is said must be true of the ledger as it is now.
    fn confirm(&mut self, waiting: Vec<Waiting>, tell: Tell<'_>) -> Result<(), Gone> {
        match self.behind() {
            Ok(news) if news.is_empty() => {
                for one in waiting {
                    one.tell(Ok(()), &*self.watch.observer);
                }
                tell(Message::Written(Written::Durable(String::new())))
            }
            Ok(news) => overtaken(news, waiting, tell),
            Err(why) => self.failed(why, waiting, tell),
        }
    }

    /// What others have appended since; it is on its way to the sequencer when this returns.
    fn behind(&mut self) -> Result<Vec<Entry>, String> {
        let began = Instant::now();
        let behind = self.log.behind(self.known);
        self.watch.health.set(behind.as_ref().map(drop).map_err(ToString::to_string));
        let news = behind.map_err(|fault| fault.to_string())?;
        match news.last() {
            None => self.watch.health.is_current(),
            Some(last) => {
                self.known = Head { sequence: last.sequence, running_hash: last.running_hash };
                self.untold.extend_from_slice(&news);
                // Others may append all the time, so that no look finds nothing new.
                self.end_seen = ((news.len() as u64) < limits::PG_READ_ENTRIES).then_some(began);
            }
        }
        Ok(news)
    }

    fn look(&mut self, tell: Tell<'_>) -> Result<(), Gone> {
        // One that could not look tries again soon; its health says so meanwhile.
        match self.behind() {
            Ok(news) if !news.is_empty() => tell(Message::News(news)),
            _ => Ok(()),
        }
    }

    /// Tells those who follow, and looks whether that was all.
    fn taken(&mut self, tell: Tell<'_>) -> Result<(), Gone> {
        let untold = std::mem::take(&mut self.untold);
        let Some(last) = untold.last() else { return Ok(()) };
        if let Some(then) = self.end_seen.take() {
            self.watch.health.was_current(then);
        }
        if let Some(time) = Timestamp::parse(&last.consensus_timestamp) {
            self.watch.health.set_head(last.sequence, time);
        }
        if let Some(notice) = self.follower.durable(&untold) {
            tell(Message::Ask(Waiting::Notice(notice)))?;
        }
        Ok(())
    }
}

fn overtaken(news: Vec<Entry>, waiting: Vec<Waiting>, tell: Tell<'_>) -> Result<(), Gone> {
    tell(Message::Written(Written::Overtaken { news, waiting }))
}
