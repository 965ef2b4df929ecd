//! The writer: one batch after the other, and nobody is answered before it is durable.
//!
//! INVARIANT (taken in first): entries of others are told to those who follow only when the sequencer has taken them in,
//! so that nothing it reads from the views is ahead of what it knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

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
    done: Sender<Message>,
    /// The last entry that was appended, or handed to the sequencer.
    known: Head,
    /// What was handed to the sequencer and not yet to those who follow.
    untold: Vec<Entry>,
}

/// The sequencer has gone.
struct Gone;

impl Writer {
    pub(super) fn new(
        log: Box<dyn Log>,
        follower: Box<dyn Follower>,
        watch: Watch,
        looking: Arc<AtomicBool>,
        done: Sender<Message>,
    ) -> Self {
        let known = log.head();
        Self { log, follower, watch, looking, done, known, untold: Vec::new() }
    }

    pub(super) fn run(mut self, work: &Receiver<Work>) {
        const IDLE: Duration = Duration::from_millis(limits::IDLE_CHECK_MS);
        loop {
            let done = match work.recv_timeout(IDLE) {
                Ok(Work::Job(job)) => self.job(job),
                Ok(Work::Taken) => self.taken(),
                Ok(Work::Pass) => {
                    self.log.pass();
                    Ok(())
                }
                Ok(Work::Look(hint)) => {
                    self.looking.store(false, Ordering::Release);
                    if hint.is_none_or(|sequence| sequence > self.known.sequence) {
                        self.look()
                    } else {
                        Ok(())
                    }
                }
                // Nothing to write: a good time to see whether it could be.
                Err(RecvTimeoutError::Timeout) => {
                    self.watch.health.set(self.log.check().map_err(|fault| fault.to_string()));
                    Ok(())
                }
                Ok(Work::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            };
            if done.is_err() {
                return;
            }
        }
    }

    fn job(&mut self, Job { after, batch, waiting }: Job) -> Result<(), Gone> {
        if after != self.known {
            // The sequencer was told of what came before it, and has not heard it yet.
            return self.overtaken(Vec::new(), waiting);
        }
        let Some(batch) = batch else { return self.confirm(waiting) };
        self.watch.observer.append_begins();
        match self.log.append(after, &batch) {
            Ok(()) => self.durable(batch, waiting),
            Err(AppendFault::Conflict { .. }) => {
                self.watch.observer.append_ended(Appended::Overtaken);
                match self.behind() {
                    Ok(news) => self.overtaken(news, waiting),
                    Err(why) => self.failed(why, waiting),
                }
            }
            Err(fault) => {
                self.watch.observer.append_ended(Appended::Failed);
                self.failed(fault.to_string(), waiting)
            }
        }
    }

    fn durable(&mut self, batch: Batch, waiting: Vec<Waiting>) -> Result<(), Gone> {
        let (entries, bytes) = (batch.entries().len(), batch.text().len());
        self.watch.observer.append_ended(Appended::Durable { entries, bytes });
        self.watch.health.set(Ok(()));
        self.watch.health.is_current();
        self.known = batch.head();
        self.watch.health.set_head(batch.head().sequence, batch.last_timestamp());
        // What a reply says is already where followers show it.
        let notice = self.follower.durable(batch.entries());
        for one in waiting {
            one.tell(Ok(()), &*self.watch.observer);
        }
        if let Some(notice) = notice {
            self.send(Message::Ask(Waiting::Notice(notice)))?;
        }
        self.send(Message::Written(Written::Durable(batch.into_room())))
    }

    /// A failure is the sequencer's to hear first: whoever is told and tries again at once must find everything given
    /// back. A success is told to those who wait first.
    fn failed(&mut self, why: String, waiting: Vec<Waiting>) -> Result<(), Gone> {
        self.watch.health.set(Err(why.clone()));
        let sent = self.send(Message::Written(Written::Failed(why.clone())));
        for one in waiting {
            one.tell(Err(EngineFault::NotDurable(why.clone())), &*self.watch.observer);
        }
        sent
    }

    fn overtaken(&mut self, news: Vec<Entry>, waiting: Vec<Waiting>) -> Result<(), Gone> {
        self.send(Message::Written(Written::Overtaken { news, waiting }))
    }

    /// Nothing is to be written, but what is said must be true of the ledger as it is now.
    fn confirm(&mut self, waiting: Vec<Waiting>) -> Result<(), Gone> {
        match self.behind() {
            Ok(news) if news.is_empty() => {
                for one in waiting {
                    one.tell(Ok(()), &*self.watch.observer);
                }
                self.send(Message::Written(Written::Durable(String::new())))
            }
            Ok(news) => self.overtaken(news, waiting),
            Err(why) => self.failed(why, waiting),
        }
    }

    /// What others have appended since; it is on its way to the sequencer when this returns.
    fn behind(&mut self) -> Result<Vec<Entry>, String> {
        let behind = self.log.behind(self.known);
        self.watch.health.set(behind.as_ref().map(drop).map_err(ToString::to_string));
        let news = behind.map_err(|fault| fault.to_string())?;
        match news.last() {
            None => self.watch.health.is_current(),
            Some(last) => {
                self.known = Head { sequence: last.sequence, running_hash: last.running_hash };
                self.untold.extend_from_slice(&news);
            }
        }
        Ok(news)
    }

    fn look(&mut self) -> Result<(), Gone> {
        // One that could not look tries again soon; its health says so meanwhile.
        match self.behind() {
            Ok(news) if !news.is_empty() => self.send(Message::News(news)),
            _ => Ok(()),
        }
    }

    /// Tells those who follow, and looks whether that was all.
    fn taken(&mut self) -> Result<(), Gone> {
        let untold = std::mem::take(&mut self.untold);
        let Some(last) = untold.last() else { return Ok(()) };
        if let Some(time) = Timestamp::parse(&last.consensus_timestamp) {
            self.watch.health.set_head(last.sequence, time);
        }
        if let Some(notice) = self.follower.durable(&untold) {
            self.send(Message::Ask(Waiting::Notice(notice)))?;
        }
        Ok(())
    }

    fn send(&self, message: Message) -> Result<(), Gone> {
        self.done.send(message).map_err(|_| Gone)
    }
}
