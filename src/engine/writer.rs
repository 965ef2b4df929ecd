//! The writer: one batch after the other.
//!
//! It has a thread of its own, so that the next batch is prepared while the last one syncs, and takes that batch by itself
//! when it is done: a disk that waits for two threads to wake is idle for as long as it takes to write. Where nobody else
//! is in line there is nothing to prepare, and the sequencer's thread writes, or that of whoever asked.
//!
//! INVARIANT (taken in first): entries of others are told to those who follow only when the sequencer has taken them in,
//! so that nothing it reads from the views is ahead of what it knows.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::line::LineDesk;
use super::teller::{NobodyTells, Tale, TellerLine};
use super::threads::{Job, Message, Overtaken, Waiting, Watch, Work, Written};
use super::{Appended, EngineFault};
use crate::ledger::{AppendFault, Entry, Head, Log, Notice, Secure};
use crate::limits;

pub(super) struct Writer {
    log: Box<dyn Log>,
    watch: Watch,
    /// Is there a look in line, or under way?
    looking: Arc<AtomicBool>,
    /// The last entry that was appended, or handed to the sequencer.
    known: Head,
    /// What was handed to the sequencer and not yet to those who follow.
    untold: Untold,
    /// Why what can be seen of the ledger is not known to be everywhere where it has to be.
    unproven: Option<String>,
}

/// Looks whose entries the sequencer has not taken in, as far as is known.
#[derive(Default)]
struct Untold(VecDeque<Seen>);

/// What one look found that others had appended; never nothing.
struct Seen {
    entries: Vec<Entry>,
    last: u64,
    /// When it was read, if it went up to the end of the ledger.
    at_the_end: Option<Instant>,
}

/// What became of a job.
pub(super) enum Outcome {
    /// It is durable: what there is to tell, and the room that its lines took.
    Durable(Tale, String),
    Failed(String, Vec<Waiting>),
    /// Others have appended before it could be; those who wait for it are decided again.
    Overtaken(Vec<Entry>, Overtaken),
}

/// The sequencer has gone, or the teller.
pub(super) struct Gone;

impl From<NobodyTells> for Gone {
    fn from(_: NobodyTells) -> Self {
        Self
    }
}

/// The writer, where its own thread writes or somebody who is alone, one at a time.
pub(super) struct WriterDesk(Mutex<Writer>);

impl WriterDesk {
    pub(super) fn new(writer: Writer) -> Self {
        Self(Mutex::new(writer))
    }

    /// A thread that panicked in the middle of an append left a batch that nobody was told of, and nothing is written
    /// behind it: where it is durable is for the next start to see.
    fn lock(&self) -> Result<MutexGuard<'_, Writer>, Gone> {
        self.0.lock().map_err(|_| Gone)
    }

    /// Writes a batch on the caller's thread.
    pub(super) fn write(&self, job: Job) -> Outcome {
        match self.lock() {
            Ok(mut writer) => writer.job(job),
            Err(Gone) => Outcome::Failed("whoever wrote has panicked".to_owned(), job.waiting),
        }
    }

    /// The writer's own thread: does what comes, until there is nobody to tell.
    pub(super) fn run(&self, work: &Receiver<Work>, around: &Around) {
        const IDLE: Duration = Duration::from_millis(limits::IDLE_CHECK_MS);
        loop {
            let done = match work.recv_timeout(IDLE) {
                Ok(Work::Job(job)) => self.write_all(job, around),
                Ok(Work::Taken(through)) => self.lock().and_then(|mut writer| writer.taken(through, around)),
                Ok(Work::Tell(waiting)) => {
                    around.teller.hand_over(Tale::Replays(waiting)).map_err(Gone::from)
                }
                Ok(Work::Pass) => self.lock().map(|mut writer| writer.log.pass()),
                Ok(Work::Look(hint)) => self.lock().and_then(|mut writer| writer.look(hint, around)),
                // Nothing to write: a good time to see whether it could be.
                Err(RecvTimeoutError::Timeout) => self.lock().and_then(|mut writer| writer.idle(around)),
                Ok(Work::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            };
            if done.is_err() {
                return;
            }
        }
    }

    /// Writes a batch, and then those that were prepared meanwhile.
    fn write_all(&self, job: Job, around: &Around) -> Result<(), Gone> {
        let mut next = Some(job);
        while let Some(job) = next {
            // The writer is let go of before the line is asked for: whoever has that may want the writer.
            let outcome = self.write(job);
            next = around.settle(outcome)?;
        }
        Ok(())
    }
}

/// Who is around the writer's thread.
pub(super) struct Around {
    pub(super) line: Arc<LineDesk>,
    pub(super) teller: TellerLine,
    pub(super) inbox: Sender<Message>,
    pub(super) watch: Watch,
    /// Others append to the ledger, too.
    pub(super) is_shared: bool,
}

impl Around {
    fn send(&self, message: Message) -> Result<(), Gone> {
        self.inbox.send(message).map_err(|_| Gone)
    }

    /// Has everybody hear what became of a job, and gives the next one, if there is one already.
    fn settle(&self, outcome: Outcome) -> Result<Option<Job>, Gone> {
        match outcome {
            Outcome::Durable(tale, room) if self.is_shared => {
                self.teller.hand_over(tale)?;
                self.send(Message::Written(Written::Durable(room)))?;
            }
            Outcome::Durable(tale, room) => return self.go_on(tale, Written::Durable(room)),
            Outcome::Failed(why, waiting) => {
                // The sequencer hears it first: whoever is told and tries again at once must find everything given back.
                self.send(Message::Written(Written::Failed(why.clone())))?;
                tell_failed(why, waiting, &self.watch);
            }
            Outcome::Overtaken(news, overtaken) => {
                self.send(Message::Written(Written::Overtaken { news, overtaken }))?;
            }
        }
        Ok(None)
    }

    /// Takes the next batch, and has the one that is durable told: by the teller's thread if there is more to write, or
    /// if others are still being told.
    fn go_on(&self, tale: Tale, written: Written) -> Result<Option<Job>, Gone> {
        // INVARIANT (told in order): before the line hears of it. Whoever has that then may decide, write and tell what
        // builds on this, and would be told first.
        let placed = self.teller.place(tale)?;
        let mut line = match self.line.try_hold() {
            Ok(Some(line)) => line,
            Ok(None) => {
                // Whoever has it is deciding, so there will be more.
                placed.pass_on()?;
                self.line.leave(written);
                return self.send(Message::Look).map(|()| None);
            }
            Err(gone) => {
                // Durable all the same, and the last to be told.
                placed.tell(Vec::new())?;
                return Err(gone);
            }
        };
        let next = line.next(written);
        let woken = if line.wants_the_sequencer() { self.send(Message::Look) } else { Ok(()) };
        if next.is_some() {
            placed.pass_on()?;
        } else {
            // What is asked for again refers to what is told here, so it is told behind it.
            let replays = line.replays();
            drop(line);
            let notice = placed.tell(replays)?;
            self.record(notice)?;
        }
        woken.map(|()| next)
    }

    fn record(&self, notice: Option<Notice>) -> Result<(), Gone> {
        notice.map_or(Ok(()), |notice| self.send(Message::Ask(Waiting::Notice(notice))))
    }
}

/// Asks the ledger; whoever wonders meanwhile why nothing is heard of it is told for how long.
fn asking<T>(watch: &Watch, ask: impl FnOnce() -> T) -> T {
    watch.health.set_asked(Some(Instant::now()));
    let answer = ask();
    watch.health.set_asked(None);
    answer
}

/// Tells those who wait for a batch that failed.
pub(super) fn tell_failed(why: String, waiting: Vec<Waiting>, watch: &Watch) {
    let fault = EngineFault::NotDurable(why);
    for one in waiting {
        one.tell(Err(fault.clone()), &*watch.observer);
    }
}

impl Untold {
    fn add(&mut self, news: &[Entry], at_the_end: Option<Instant>) {
        if let Some(Entry { sequence: last, .. }) = news.last() {
            self.0.push_back(Seen { entries: news.to_vec(), last: *last, at_the_end });
        }
    }

    /// The first look, once the sequencer has taken in all of it, which goes up to this entry.
    fn known(&mut self, through: u64) -> Option<Seen> {
        if self.0.front()?.last <= through { self.0.pop_front() } else { None }
    }

    fn is_full(&self) -> bool {
        self.0.len() >= limits::PG_LOOKS_UNTAKEN_MAX
    }

    /// Did the last look go up to the end of the ledger?
    fn is_at_the_end(&self) -> bool {
        self.0.back().is_some_and(|seen| seen.at_the_end.is_some())
    }
}

impl Writer {
    pub(super) fn new(log: Box<dyn Log>, watch: Watch, looking: Arc<AtomicBool>) -> Self {
        let known = log.head();
        Self { log, watch, looking, known, untold: Untold::default(), unproven: None }
    }

    fn job(&mut self, Job { after, batch, waiting }: Job) -> Outcome {
        if after != self.known {
            // The sequencer was told of what came before it, and has not heard it yet.
            return Outcome::Overtaken(Vec::new(), Overtaken { waiting, was_read: false });
        }
        let Some(batch) = batch else { return self.confirm(waiting) };
        if batch.last_timestamp().unix_nanoseconds().is_none() {
            // An entry that the views cannot take in would be there for ever, and no start could pass it. The clock is not the
            // ledger's fault, so readiness says it elsewhere.
            let why = format!(
                "the clock says that it is {}, a time that no entry can have",
                batch.last_timestamp()
            );
            return Outcome::Failed(why, waiting);
        }
        let (watch, entries, bytes) = (&self.watch, batch.entries().len(), batch.text().len());
        watch.observer.append_begins();
        let appended = asking(watch, || self.log.append(after, &batch));
        match appended {
            Ok(()) => {
                watch.observer.append_ended(Appended::Durable { entries, bytes });
                watch.health.set(Ok(()));
                self.unproven = None;
                watch.health.is_current();
                self.known = batch.head();
                let (entries, room) = batch.into_parts();
                Outcome::Durable(Tale::Batch { entries, waiting }, room)
            }
            Err(AppendFault::Conflict { .. }) => {
                watch.observer.append_ended(Appended::Overtaken);
                match self.behind() {
                    Ok(news) => Outcome::Overtaken(news, Overtaken { waiting, was_read: false }),
                    Err(why) => self.failed(why, waiting),
                }
            }
            Err(fault) => {
                watch.observer.append_ended(Appended::Failed);
                self.failed(fault.to_string(), waiting)
            }
        }
    }

    fn failed(&self, why: String, waiting: Vec<Waiting>) -> Outcome {
        self.watch.health.set(Err(why.clone()));
        Outcome::Failed(why, waiting)
    }

    /// Those who follow look after what they keep only while it could be recorded.
    fn idle(&mut self, around: &Around) -> Result<(), Gone> {
        let health = asking(&self.watch, || self.log.check()).map_err(|fault| fault.to_string());
        let notice = if health.is_ok() { around.teller.idle() } else { None };
        self.heard(health);
        around.record(notice)
    }

    /// Nothing is to be written, but what is said must be true of the ledger as it is now.
    fn confirm(&mut self, waiting: Vec<Waiting>) -> Outcome {
        let news = match self.behind() {
            Ok(news) => news,
            Err(why) => return self.failed(why, waiting),
        };
        // What can be seen may not be where it has to be yet; whoever hears of it takes it as said for good.
        let secured = self.secure(Some(self.known.sequence));
        if !news.is_empty() {
            let was_read = secured.is_ok() && self.untold.is_at_the_end();
            return Outcome::Overtaken(news, Overtaken { waiting, was_read });
        }
        match secured {
            Ok(()) => Outcome::Durable(Tale::Replays(waiting), String::new()),
            Err(why) => self.failed(why, waiting),
        }
    }

    /// What others have appended since; it is on its way to the sequencer when the caller returns.
    fn behind(&mut self) -> Result<Vec<Entry>, String> {
        let began = Instant::now();
        let behind = asking(&self.watch, || self.log.behind(self.known));
        self.heard(behind.as_ref().map(drop).map_err(ToString::to_string));
        let news = behind.map_err(|fault| fault.to_string())?;
        match news.last() {
            None => self.watch.health.is_current(),
            Some(last) => {
                self.known = Head { sequence: last.sequence, running_hash: last.running_hash };
                // Others may append all the time, so that no look finds nothing new.
                let at_the_end = ((news.len() as u64) < limits::PG_READ_ENTRIES).then_some(began);
                self.untold.add(&news, at_the_end);
            }
        }
        Ok(news)
    }

    fn look(&mut self, hint: Option<u64>, around: &Around) -> Result<(), Gone> {
        self.looking.store(false, Ordering::Release);
        // One that cannot take in what was found is not given ever more of it.
        if self.untold.is_full() || hint.is_some_and(|sequence| sequence <= self.known.sequence) {
            return Ok(());
        }
        // One that could not look tries again soon; its health says so meanwhile.
        let Ok(news) = self.behind() else { return Ok(()) };
        // Where a standby has to have what is written, one that is gone is noticed before anybody writes.
        let _ = self.secure(None);
        if news.is_empty() { Ok(()) } else { around.send(Message::News(news)) }
    }

    fn secure(&mut self, through: Option<u64>) -> Result<(), String> {
        match asking(&self.watch, || self.log.secure(through)) {
            Ok(Secure::Now) => self.unproven = None,
            Ok(Secure::Before) => return Ok(()),
            Err(fault) => self.unproven = Some(fault.to_string()),
        }
        let proven = self.unproven.clone().map_or(Ok(()), Err);
        self.heard(proven.clone());
        proven
    }

    /// A ledger that can be read, and is not where it has to be, is not well.
    fn heard(&self, health: Result<(), String>) {
        self.watch.health.set(health.and_then(|()| self.unproven.clone().map_or(Ok(()), Err)));
    }

    /// Has those who follow hear what the sequencer has taken in, and no more.
    fn taken(&mut self, through: u64, around: &Around) -> Result<(), Gone> {
        while let Some(seen) = self.untold.known(through) {
            if let Some(then) = seen.at_the_end {
                self.watch.health.was_current(then);
            }
            around.teller.hand_over(Tale::News(seen.entries))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::RunningHash;

    #[test]
    fn those_who_follow_are_told_of_a_look_when_all_of_it_is_known() {
        let entry = |sequence| Entry {
            sequence,
            consensus_timestamp: String::new(),
            running_hash: RunningHash::genesis("gw_test"),
            wire: String::new(),
        };
        let mut untold = Untold::default();
        untold.add(&[entry(1), entry(2)], None);
        untold.add(&[entry(3), entry(4)], None);
        let known = |untold: &mut Untold, through| {
            std::iter::from_fn(|| untold.known(through)).map(|seen| seen.last).collect::<Vec<_>>()
        };
        assert_eq!(known(&mut untold, 1), [0; 0], "half a look is known");
        assert_eq!(known(&mut untold, 2), [2], "the second look is not");
        assert_eq!(known(&mut untold, 4), [4]);
    }
}
