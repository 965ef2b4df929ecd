//! Those who stand in line: decided in order on the sequencer's thread, and decided again when others went first. Whoever
//! finds nobody else there is decided, written and answered on its own thread: waking others takes longer than that. The
//! writer's thread takes the next batch from here by itself.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::EngineFault;
use super::gathering::Gathering;
use super::sequencer::Sequencer;
use super::teller::{Floor, Tale, TellerLine};
use super::threads::{Asked, Job, Message, Overtaken, SequencerDesk, Waiting, Watch, Work, Written};
use super::writer::{Gone, Outcome, WriterDesk, tell_failed};
use crate::ledger::{BatchBuilder, Entry};
use crate::limits;

/// The line, where the sequencer's thread serves it, or somebody who finds nobody else in it.
/// When it has ended nothing of it is left: with it go the log and those who follow.
pub(super) struct LineDesk {
    line: Mutex<Option<Line>>,
    /// What the writer's thread has to say and found the line taken.
    left: Mutex<Option<Written>>,
}

/// The line, in the hands of the writer's thread.
pub(super) struct Held<'l>(MutexGuard<'l, Option<Line>>);

/// Those who wait, and the batch that is being built for them.
pub(super) struct Line {
    desk: Arc<SequencerDesk>,
    /// Others append to the ledger, too.
    is_shared: bool,
    /// The writer itself, for those who write on their own thread.
    pen: Arc<WriterDesk>,
    /// The line to the writer's thread.
    jobs: Sender<Work>,
    teller: TellerLine,
    watch: Watch,
    batch: BatchBuilder<'static>,
    /// What the batch before took in memory, for the one after this.
    room: String,
    /// Those whose answers are in the batch that is being built.
    waiting: Vec<Waiting>,
    /// Those who were in a batch that came too late. They go before anybody new.
    again: VecDeque<Waiting>,
    /// What others appended while a batch was on its way, which is too late with that.
    news: Vec<Entry>,
    writing: bool,
    /// Who is waited for before the next batch; nobody where the ledger is not shared.
    gathering: Option<Gathering>,
    /// The writer was overtaken and may be keeping its turn for us.
    has_turn: bool,
    stopping: bool,
    /// What others appended could not be taken in: nothing is decided before it is.
    stuck: Option<Stuck>,
    /// The sequencer's thread sleeps until a message comes.
    sleeps: bool,
}

/// Why nothing is decided.
struct Stuck {
    fault: EngineFault,
    /// When it is tried again; never where it would come to the same.
    again_at: Option<Instant>,
}

/// How long the sequencer's thread waits for a message.
enum Patience {
    None,
    For(Duration),
    Endless,
}

/// It is time to end.
struct Ended;

impl LineDesk {
    pub(super) fn new(line: Line) -> Self {
        Self { line: Mutex::new(Some(line)), left: Mutex::new(None) }
    }

    /// The sequencer's thread: serves whoever comes, until it is told to stop, or the engine has ended.
    pub(super) fn run(&self, messages: &Receiver<Message>) {
        let _closes = Closes(self);
        while self.turn(messages).is_ok() {}
    }

    /// Waits for messages, as long as that is worth it, and does what they want.
    fn turn(&self, messages: &Receiver<Message>) -> Result<(), Ended> {
        let patience = self.lock()?.as_mut().ok_or(Ended)?.patience();
        let mut next = match patience {
            Patience::None => None,
            Patience::For(time) => match messages.recv_timeout(time) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Err(Ended),
            },
            Patience::Endless => Some(messages.recv().map_err(|_| Ended)?),
        };
        let mut desk = self.lock()?;
        let line = desk.as_mut().ok_or(Ended)?;
        // One message at a time: whoever only asks gets a turn in between, and a disk that is free is not kept waiting.
        while let Some(message) = next {
            line.take(message);
            if self.take_left(line) {
                break;
            }
            next = if line.has_room() && line.again.is_empty() { messages.try_recv().ok() } else { None };
        }
        self.take_left(line);
        line.work(None)
    }

    /// A line that somebody panicked in is left as it is, and nobody is decided any more.
    fn lock(&self) -> Result<MutexGuard<'_, Option<Line>>, Ended> {
        self.line.lock().map_err(|_| Ended)
    }

    /// Hears what the writer's thread has left here, if it has.
    fn take_left(&self, line: &mut Line) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).take();
        left.map(|written| line.take(Message::Written(written))).is_some()
    }

    /// For the writer's thread: leaves what it has to say to whoever has the line. It has to be woken, should it sleep by now.
    pub(super) fn leave(&self, written: Written) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
    }

    /// For the writer's thread: the line, if nobody else has it.
    pub(super) fn try_hold(&self) -> Result<Option<Held<'_>>, Gone> {
        match self.line.try_lock() {
            Ok(line) if line.is_some() => Ok(Some(Held(line))),
            Err(TryLockError::WouldBlock) => Ok(None),
            _ => Err(Gone),
        }
    }

    /// Serves one on the caller's thread, if nobody else is in line or being told anything: it has been told what became of
    /// it when this returns, unless it has to be decided again. Otherwise it is given back. Whether the sequencer's thread
    /// has to look, because it sleeps and something is due.
    pub(super) fn serve_alone(&self, waiting: Waiting) -> Result<bool, Waiting> {
        let mut desk = self.line.try_lock().ok();
        let line = desk.as_mut().and_then(|desk| desk.as_mut()).filter(|line| line.is_idle());
        let Some(line) = line else { return Err(waiting) };
        let teller = line.teller.clone();
        // Before it is decided: from then on nobody else may take it, or it would have to be written and told on another
        // thread, behind the back of whoever waits here.
        let Some(floor) = teller.floor() else { return Err(waiting) };
        line.decide(waiting);
        // One that has ended tells everybody who waits in it.
        let _ = line.work(Some(floor));
        let is_due = !line.again.is_empty() || line.desk.lock().has_deadlines();
        Ok(line.sleeps && is_due)
    }
}

/// Leaves nothing of the line, however the sequencer's thread ends: whoever still waits there is told so.
struct Closes<'l>(&'l LineDesk);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        *self.0.line.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Held<'_> {
    /// Hears what became of the last batch, and gives the one that was built meanwhile.
    pub(super) fn next(&mut self, written: Written) -> Option<Job> {
        let line = self.0.as_mut()?;
        line.take(Message::Written(written));
        line.seal()
    }

    /// Those for whom nothing has to be written.
    pub(super) fn replays(&mut self) -> Vec<Waiting> {
        self.0.as_mut().map(|line| std::mem::take(&mut line.waiting)).unwrap_or_default()
    }

    /// Is there something for the sequencer's thread to do: to decide those who found no room, or to end?
    pub(super) fn wants_the_sequencer(&self) -> bool {
        self.0.as_ref().is_none_or(|line| line.stopping || !line.again.is_empty())
    }
}

impl std::fmt::Debug for LineDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LineDesk")
    }
}

impl Line {
    pub(super) fn new(
        desk: Arc<SequencerDesk>,
        is_shared: bool,
        pen: Arc<WriterDesk>,
        jobs: Sender<Work>,
        teller: TellerLine,
        watch: Watch,
    ) -> Self {
        let batch = desk.lock().new_batch();
        Self {
            desk,
            is_shared,
            pen,
            jobs,
            teller,
            watch,
            batch,
            room: String::new(),
            waiting: Vec::new(),
            again: VecDeque::new(),
            news: Vec::new(),
            writing: false,
            gathering: is_shared.then(Gathering::default),
            has_turn: false,
            stopping: false,
            stuck: None,
            sleeps: false,
        }
    }

    fn patience(&mut self) -> Patience {
        const TICK: Duration = Duration::from_millis(limits::TICK_MS);
        self.sleeps = false;
        if !self.again.is_empty() && self.has_room() {
            Patience::None
        } else if let Some(at) = self.stuck.as_ref().and_then(|stuck| stuck.again_at) {
            Patience::For(at.saturating_duration_since(Instant::now()))
        } else if let Some(left) = self.gathers_for() {
            Patience::For(left)
        } else if self.desk.lock().has_deadlines() {
            Patience::For(TICK)
        } else {
            self.sleeps = true;
            Patience::Endless
        }
    }

    /// Is nobody in it, and nothing under way? What others append is for the sequencer's thread to hear.
    fn is_idle(&self) -> bool {
        let is_free = !self.is_shared && !self.writing && !self.stopping && self.stuck.is_none();
        let is_free = is_free && self.watch.health.ended().is_none();
        let is_empty = self.waiting.is_empty() && self.again.is_empty() && self.batch.is_empty();
        is_free && is_empty
    }

    /// Decides those who have to be decided again, looks at what is due, and sends out what was built. The floor is for what
    /// goes out first, if somebody has it.
    fn work(&mut self, floor: Option<Floor<'_>>) -> Result<(), Ended> {
        // Others may have left something half done, or there may be nobody left to write.
        if self.watch.health.ended().is_some() {
            return Err(Ended);
        }
        if self.stuck.as_ref().and_then(|stuck| stuck.again_at).is_some_and(|at| at <= Instant::now()) {
            let news = std::mem::take(&mut self.news);
            self.catch_up(news, Overtaken::default());
        }
        self.decide_again();
        if !self.stopping && self.stuck.is_none() {
            self.tick();
        }
        if !self.writing && self.gathers_for().is_none() {
            self.ship(floor)?;
        }
        // What was written here may have left something to record, or have been the last before a stop that was heard
        // with it: no message will come of either.
        while !self.writing && !self.is_shared && (self.stopping || !self.batch.is_empty()) {
            // There was no room for them before it was written.
            self.decide_again();
            self.ship(None)?;
        }
        Ok(())
    }

    /// Decides those who have waited for it longest, as far as there is room.
    fn decide_again(&mut self) {
        while self.has_room()
            && let Some(waiting) = self.again.pop_front()
        {
            self.decide(waiting);
        }
    }

    /// How much longer to wait for those who were answered just now. Only an append to a database takes long enough for that.
    fn gathers_for(&mut self) -> Option<Duration> {
        if !self.has_room() || self.stopping {
            return None;
        }
        self.gathering.as_mut()?.left(Instant::now(), self.waiting.len())
    }

    fn has_room(&self) -> bool {
        self.batch.text_bytes() < limits::BATCH_BYTES_MAX
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Ask(waiting) if self.stopping => self.tell(waiting, Err(EngineFault::Stopped)),
            // Behind those who are decided again, or while a full batch waits for the disk.
            Message::Ask(waiting) if !self.again.is_empty() || !self.has_room() => {
                self.again.push_back(waiting)
            }
            Message::Ask(waiting) => self.decide(waiting),
            Message::Written(Written::Durable(room)) => {
                self.writing = false;
                if room.capacity() <= limits::BATCH_ROOM_KEPT_BYTES {
                    self.room = room;
                }
                self.desk.lock().keep();
                if let Some(gathering) = &mut self.gathering {
                    gathering.begins(Instant::now(), self.waiting.len());
                }
                if !self.news.is_empty() {
                    let news = std::mem::take(&mut self.news);
                    self.catch_up(news, Overtaken::default());
                }
            }
            Message::Written(Written::Failed(why)) => {
                // What was built on the failed batch falls with it.
                self.writing = false;
                self.give_back();
                let fault = EngineFault::NotDurable(why);
                for one in std::mem::take(&mut self.waiting) {
                    self.tell(one, Err(fault.clone()));
                }
            }
            Message::Written(Written::Overtaken { news, overtaken }) => {
                (self.writing, self.has_turn) = (false, true);
                let mut all = std::mem::take(&mut self.news);
                all.extend(news);
                self.catch_up(all, overtaken);
            }
            // What is on its way is too late, and its writer will say so.
            Message::News(news) if self.writing || self.stuck.is_some() => self.news.extend(news),
            Message::News(news) => self.catch_up(news, Overtaken::default()),
            Message::Stop => self.stopping = true,
            // Whoever sent it wants it to look at what is due, which it does after every message.
            Message::Look => {}
        }
    }

    /// Takes in what others appended. Everybody who was decided without it is decided again, in the same order.
    fn catch_up(&mut self, news: Vec<Entry>, Overtaken { mut waiting, was_read }: Overtaken) {
        let behind = std::mem::take(&mut self.waiting);
        behind.into_iter().rev().for_each(|one| self.again.push_front(one));
        self.give_back();
        let taken = self.desk.lock().follow(&news);
        self.batch = self.desk.lock().new_batch();
        match taken {
            Ok(()) => {
                if self.stuck.take().is_some() {
                    self.watch.health.go_on();
                }
                if let Some(last) = news.last() {
                    // A writer that has gone has nobody to tell.
                    let _ = self.jobs.send(Work::Taken(last.sequence));
                }
                if was_read {
                    self.answer_as_read(std::mem::take(&mut waiting));
                }
            }
            Err(fault) => {
                self.watch.health.stop(&fault.to_string());
                // What could not be read may be there in a moment; what cannot be understood will not change.
                let is_passing = matches!(fault, EngineFault::NotDurable(_));
                let pause = Duration::from_millis(limits::PG_POLL_MS);
                self.stuck = Some(Stuck { fault, again_at: is_passing.then(|| Instant::now() + pause) });
                self.news = news;
            }
        }
        waiting.into_iter().rev().for_each(|one| self.again.push_front(one));
    }

    /// Answers those for whom nothing has to be written by what was read after they had asked: true as of then. They would
    /// wait for ever for a look that finds nothing new, while others append all the time.
    fn answer_as_read(&mut self, waiting: Vec<Waiting>) {
        waiting.into_iter().for_each(|one| self.decide(one));
        if self.batch.is_empty() {
            // Behind what it refers to, so through the writer.
            let _ = self.jobs.send(Work::Tell(std::mem::take(&mut self.waiting)));
        }
    }

    fn give_back(&mut self) {
        let mut sequencer = self.desk.lock();
        sequencer.give_back();
        self.batch = sequencer.new_batch();
    }

    /// Decides one, and has it wait until that is durable.
    fn decide(&mut self, waiting: Waiting) {
        if let Some(Stuck { fault, .. }) = &self.stuck {
            let fault = fault.clone();
            return self.tell(waiting, Err(fault));
        }
        let desk = self.desk.clone();
        let mut sequencer = desk.lock();
        let began = self.batch.next_sequence();
        let failed = match waiting {
            Waiting::Decision(asked) => match decided(asked, &mut sequencer, &mut self.batch) {
                Ok(asked) => {
                    self.waiting.push(Waiting::Decision(asked));
                    None
                }
                Err(fault) => Some(fault),
            },
            Waiting::Together(all) => {
                let (mut failed, mut together) = (None, Vec::with_capacity(all.len()));
                for asked in all {
                    match decided(asked, &mut sequencer, &mut self.batch) {
                        Ok(asked) => together.push(asked),
                        Err(fault) => failed = Some(fault),
                    }
                }
                self.waiting.push(Waiting::Together(together));
                failed
            }
            Waiting::Act(mut act) => match act.run(&mut sequencer, &mut self.batch) {
                Ok(()) => {
                    self.waiting.push(Waiting::Act(act));
                    None
                }
                Err(fault) => {
                    act.tell(Ok(()));
                    Some(fault)
                }
            },
            Waiting::Notice(notice) => {
                let failed = sequencer.record_notice(notice, &mut self.batch).err();
                self.waiting.push(Waiting::Notice(notice));
                failed
            }
        };
        self.end(&mut sequencer, began, failed);
    }

    fn tick(&mut self) {
        let desk = self.desk.clone();
        let mut sequencer = desk.lock();
        if sequencer.has_deadlines() {
            let began = self.batch.next_sequence();
            let failed = sequencer.tick(&mut self.batch).err();
            self.end(&mut sequencer, began, failed);
        }
    }

    /// A group is written whole or not at all: what a fault left half done takes the whole batch with it, with all it
    /// claimed, and whoever waits for it is told.
    fn end(&mut self, sequencer: &mut Sequencer, began: u64, failed: Option<EngineFault>) {
        if let Some(fault) = failed.filter(|_| self.batch.next_sequence() != began) {
            sequencer.drop_building();
            self.batch = sequencer.new_batch();
            for one in std::mem::take(&mut self.waiting) {
                self.tell(one, Err(fault.clone()));
            }
        }
        sequencer.reached(&self.batch);
    }

    /// Sends out what was built. An error says that it is time to end.
    fn ship(&mut self, floor: Option<Floor<'_>>) -> Result<(), Ended> {
        let Some(job) = self.seal() else {
            if std::mem::take(&mut self.has_turn) {
                self.send(Work::Pass)?;
            }
            if self.waiting.is_empty() {
                return if self.stopping && self.again.is_empty() { Err(Ended) } else { Ok(()) };
            }
            // Only replays are waiting, and all they refer to is durable.
            let waiting = std::mem::take(&mut self.waiting);
            if self.is_shared {
                let after = self.desk.lock().shipped_head();
                self.writing = true;
                return self.send(Work::Job(Job { after, batch: None, waiting }));
            }
            let tale = Tale::Replays(waiting);
            return match floor.or_else(|| self.teller.floor()) {
                Some(mut floor) => {
                    floor.tell(tale);
                    Ok(())
                }
                None => self.teller.hand_over(tale).map_err(|_| Ended),
            };
        };
        // Those who come together are many: others may come meanwhile, and are prepared.
        let is_alone =
            !self.is_shared && matches!(&*job.waiting, [one] if !matches!(one, Waiting::Together(_)));
        if !is_alone {
            return self.send(Work::Job(job));
        }
        let teller = self.teller.clone();
        match floor.or_else(|| teller.floor()) {
            Some(floor) => {
                self.write_here(job, floor);
                Ok(())
            }
            None => self.send(Work::Job(job)),
        }
    }

    /// What was built, on its way to the writer; nothing if there is nothing to write.
    fn seal(&mut self) -> Option<Job> {
        let mut sequencer = self.desk.lock();
        if self.batch.is_empty() {
            return None;
        }
        let full = std::mem::replace(&mut self.batch, sequencer.new_batch()).seal()?;
        sequencer.ship(full.head(), full.last_timestamp());
        self.batch = sequencer.new_batch();
        self.batch.use_room(std::mem::take(&mut self.room));
        drop(sequencer);
        (self.writing, self.has_turn) = (true, false);
        let waiting = std::mem::take(&mut self.waiting);
        if let Some(gathering) = &mut self.gathering {
            gathering.sends(Instant::now(), waiting.len());
        }
        Some(Job { after: full.after(), batch: Some(full), waiting })
    }

    /// Writes and tells on this thread.
    fn write_here(&mut self, job: Job, mut floor: Floor<'_>) {
        match self.pen.write(job) {
            Outcome::Durable(tale, room) => {
                let notice = floor.tell(tale);
                drop(floor);
                self.take(Message::Written(Written::Durable(room)));
                if let Some(notice) = notice {
                    self.take(Message::Ask(Waiting::Notice(notice)));
                }
            }
            Outcome::Failed(why, waiting) => {
                self.take(Message::Written(Written::Failed(why.clone())));
                tell_failed(why, waiting, &self.watch);
            }
            Outcome::Overtaken(news, overtaken) => {
                self.take(Message::Written(Written::Overtaken { news, overtaken }));
            }
        }
    }

    fn send(&self, work: Work) -> Result<(), Ended> {
        self.jobs.send(work).map_err(|_| Ended)
    }

    fn tell(&self, waiting: Waiting, result: Result<(), EngineFault>) {
        waiting.tell(result, &*self.watch.observer);
    }
}

/// A candidate with its decision; one that cannot be decided is told so.
fn decided(
    mut asked: Asked,
    sequencer: &mut Sequencer,
    batch: &mut BatchBuilder<'_>,
) -> Result<Asked, EngineFault> {
    match sequencer.decide(&mut asked.candidate, batch) {
        Ok(decided) => {
            asked.decided = Some(decided);
            Ok(asked)
        }
        Err(fault) => {
            (asked.reply)(Err(fault.clone()));
            Err(fault)
        }
    }
}

#[cfg(test)]
mod tests;
