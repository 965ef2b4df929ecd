//! Those who stand in line, on the sequencer's thread: decided in order, and decided again when others went first.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::EngineFault;
use super::sequencer::Sequencer;
use super::threads::{Asked, Job, Message, SequencerDesk, Waiting, Watch, Work, Written};
use super::writer::WriterDesk;
use crate::ledger::{BatchBuilder, Entry};
use crate::limits;

/// Who writes what was decided.
#[derive(Clone, Copy)]
pub(super) struct Hands<'t> {
    /// The writer itself, for those who write on their own thread.
    pub(super) pen: &'t WriterDesk,
    /// The line to the writer's thread.
    pub(super) jobs: &'t Sender<Work>,
}

pub(super) struct Line<'t> {
    desk: &'t SequencerDesk,
    topic_id: &'t str,
    /// Others append to the ledger, too.
    is_shared: bool,
    hands: Hands<'t>,
    watch: &'t Watch,
    batch: BatchBuilder<'t>,
    /// What the batch before took in memory, for the one after this.
    room: String,
    /// Those whose answers are in the batch that is being built.
    waiting: Vec<Waiting>,
    /// Those who were in a batch that came too late. They go before anybody new.
    again: VecDeque<Waiting>,
    /// What others appended while a batch was on its way, which is too late with that.
    news: Vec<Entry>,
    writing: bool,
    /// When the batch that is being written was sent out, and how many wait for it.
    shipped: Option<(Instant, usize)>,
    /// Until when more are waited for, and how many there may be.
    gathering: Option<(Instant, usize)>,
    /// The writer was overtaken and may be keeping its turn for us.
    has_turn: bool,
    stopping: bool,
    /// What others appended could not be understood: nothing more is decided.
    stuck: Option<EngineFault>,
}

impl<'t> Line<'t> {
    pub(super) fn new(
        desk: &'t SequencerDesk,
        topic_id: &'t str,
        is_shared: bool,
        hands: Hands<'t>,
        watch: &'t Watch,
    ) -> Self {
        let batch = desk.lock().new_batch(topic_id);
        Self {
            desk,
            topic_id,
            is_shared,
            hands,
            watch,
            batch,
            room: String::new(),
            waiting: Vec::new(),
            again: VecDeque::new(),
            news: Vec::new(),
            writing: false,
            shipped: None,
            gathering: None,
            has_turn: false,
            stopping: false,
            stuck: None,
        }
    }

    pub(super) fn run(&mut self, messages: &Receiver<Message>) {
        const TICK: Duration = Duration::from_millis(limits::TICK_MS);
        loop {
            let mut next = if !self.again.is_empty() && !self.writing {
                None
            } else if let Some(left) = self.gathers_for() {
                match messages.recv_timeout(left) {
                    Ok(message) => Some(message),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            } else if self.desk.lock().has_deadlines() {
                match messages.recv_timeout(TICK) {
                    Ok(message) => Some(message),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            } else {
                let Ok(message) = messages.recv() else { return };
                Some(message)
            };
            // One message at a time: whoever only asks gets a turn in between.
            while let Some(message) = next {
                self.take(message);
                next = if self.has_room() && self.again.is_empty() { messages.try_recv().ok() } else { None };
            }
            while self.has_room()
                && let Some(waiting) = self.again.pop_front()
            {
                self.decide(waiting);
            }
            if !self.stopping && self.stuck.is_none() {
                self.tick();
            }
            if !self.writing && self.gathers_for().is_none() && self.ship().is_err() {
                return;
            }
            // What was written here may have left something to record, or have been the last before a stop that was heard
            // with it: no message will come of either.
            while !self.writing && !self.is_shared && (self.stopping || !self.batch.is_empty()) {
                if self.ship().is_err() {
                    return;
                }
            }
        }
    }

    /// How much longer it is worth to wait for those who were answered just now. An append to a database takes long beside
    /// what they need to ask again: without that, half of them would always wait for the other half.
    fn gathers_for(&mut self) -> Option<Duration> {
        let (until, expected) = self.gathering?;
        let left = until.saturating_duration_since(Instant::now());
        if self.waiting.len() >= expected || left.is_zero() || !self.has_room() || self.stopping {
            self.gathering = None;
            return None;
        }
        Some(left)
    }

    fn gather(&mut self) {
        let Some((began, answered)) = self.shipped.take() else { return };
        if self.is_shared && !self.waiting.is_empty() {
            let at_most = Duration::from_micros(limits::GATHER_US_MAX).min(began.elapsed() / 4);
            self.gathering = Some((Instant::now() + at_most, self.waiting.len() + answered));
        }
    }

    fn has_room(&self) -> bool {
        self.batch.text_bytes() < limits::BATCH_BYTES_MAX
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Ask(waiting) if self.stopping => self.tell(waiting, Err(EngineFault::Stopped)),
            Message::Ask(waiting) if !self.again.is_empty() => self.again.push_back(waiting),
            Message::Ask(waiting) => self.decide(waiting),
            Message::Written(Written::Durable(room)) => {
                self.writing = false;
                if room.capacity() <= limits::BATCH_ROOM_KEPT_BYTES {
                    self.room = room;
                }
                self.desk.lock().keep();
                self.gather();
                if !self.news.is_empty() {
                    let news = std::mem::take(&mut self.news);
                    self.catch_up(&news, Vec::new());
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
            Message::Written(Written::Overtaken { news, waiting }) => {
                (self.writing, self.has_turn) = (false, true);
                let mut all = std::mem::take(&mut self.news);
                all.extend(news);
                self.catch_up(&all, waiting);
            }
            // What is on its way is too late, and its writer will say so.
            Message::News(news) if self.writing => self.news.extend(news),
            Message::News(news) => self.catch_up(&news, Vec::new()),
            Message::Stop => self.stopping = true,
        }
    }

    /// Takes in what others appended. Everybody who was decided without it is decided again, in the same order.
    fn catch_up(&mut self, news: &[Entry], overtaken: Vec<Waiting>) {
        let behind = std::mem::take(&mut self.waiting);
        for one in overtaken.into_iter().chain(behind).rev() {
            self.again.push_front(one);
        }
        self.give_back();
        let taken = self.desk.lock().follow(news);
        self.batch = self.desk.lock().new_batch(self.topic_id);
        match taken {
            // A writer that has gone has nobody to tell.
            Ok(()) => drop(self.hands.jobs.send(Work::Taken)),
            Err(fault) => {
                self.watch.health.stop(&fault.to_string());
                self.stuck = Some(fault);
            }
        }
    }

    fn give_back(&mut self) {
        let mut sequencer = self.desk.lock();
        sequencer.give_back();
        self.batch = sequencer.new_batch(self.topic_id);
    }

    /// Decides one, and has it wait until that is durable.
    fn decide(&mut self, waiting: Waiting) {
        if let Some(fault) = &self.stuck {
            let fault = fault.clone();
            return self.tell(waiting, Err(fault));
        }
        let desk = self.desk;
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
        let mut sequencer = self.desk.lock();
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
            self.batch = sequencer.new_batch(self.topic_id);
            for one in std::mem::take(&mut self.waiting) {
                self.tell(one, Err(fault.clone()));
            }
        }
        sequencer.reached(&self.batch);
    }

    /// Sends out what was built. An error says that it is time to end.
    fn ship(&mut self) -> Result<(), ()> {
        if self.batch.is_empty() {
            if std::mem::take(&mut self.has_turn) {
                self.send(Work::Pass)?;
            }
            if self.waiting.is_empty() {
                return if self.stopping && self.again.is_empty() { Err(()) } else { Ok(()) };
            }
            // Only replays are waiting, and all they refer to is durable.
            let waiting = std::mem::take(&mut self.waiting);
            if self.is_shared {
                let after = self.desk.lock().shipped_head();
                self.writing = true;
                return self.send(Work::Job(Job { after, batch: None, waiting }));
            }
            for one in waiting {
                self.tell(one, Ok(()));
            }
            return Ok(());
        }
        let mut sequencer = self.desk.lock();
        let full = std::mem::replace(&mut self.batch, sequencer.new_batch(self.topic_id));
        let Some(full) = full.seal() else { return Ok(()) };
        sequencer.ship(full.head(), full.last_timestamp());
        self.batch = sequencer.new_batch(self.topic_id);
        self.batch.use_room(std::mem::take(&mut self.room));
        drop(sequencer);
        (self.writing, self.has_turn) = (true, false);
        let waiting = std::mem::take(&mut self.waiting);
        self.shipped = Some((Instant::now(), waiting.len()));
        // Those who come together are many: others may come meanwhile, and are prepared.
        let is_alone = !self.is_shared && matches!(&*waiting, [one] if !matches!(one, Waiting::Together(_)));
        let job = Job { after: full.after(), batch: Some(full), waiting };
        if is_alone {
            let pen = self.hands.pen;
            let mut take = |message| {
                self.take(message);
                Ok(())
            };
            return pen.write(job, &mut take).map_err(drop);
        }
        self.send(Work::Job(job))
    }

    fn send(&self, work: Work) -> Result<(), ()> {
        self.hands.jobs.send(work).map_err(drop)
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
