//! One thread decides, one thread writes.
//!
//! The sequencer takes messages one by one, decides each, and adds it to the batch it is building; whenever the
//! writer is idle the batch goes out. So a batch holds all that came while the one before it was being synced.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::act::Act;
use super::candidate::Candidate;
use super::health::Health;
use super::record::Decided;
use super::sequencer::Sequencer;
use super::{EngineFault, Observer, Reply};
use crate::ledger::{Batch, BatchBuilder, Follower, Log, Notice};
use crate::limits;

pub(super) enum Message {
    Candidate(Box<Candidate>, Reply),
    /// Decided in this order and made durable together.
    Together(Vec<(Candidate, Reply)>),
    /// What agents report and operators do, and what is put in force.
    Act(Box<dyn Act>),
    /// A follower noticed something.
    Notice(Notice),
    /// The writer is done with a batch.
    Written(Result<(), String>),
    Stop,
}

/// Those who wait for the batch that is being built to be durable.
enum Waiting {
    Decision(Reply, Arc<Decided>),
    Act(Box<dyn Act>),
}

impl Waiting {
    /// The decision that is waited for, if it is one.
    fn decided(&self) -> Option<&Decided> {
        match self {
            Self::Decision(_, decided) => Some(decided),
            Self::Act(act) => act.decided(),
        }
    }

    fn tell(self, result: Result<(), EngineFault>) {
        match self {
            Self::Decision(reply, decided) => reply(result.map(|()| decided)),
            Self::Act(act) => act.tell(result),
        }
    }
}

/// A batch on its way to the disk, with those who wait for it.
struct Job {
    batch: Batch,
    waiting: Vec<Waiting>,
}

/// The sequencer, where its thread decides and doors may ask what would be decided.
pub(super) struct SequencerDesk(Mutex<Sequencer>);

impl SequencerDesk {
    pub(super) fn new(sequencer: Sequencer) -> Self {
        Self(Mutex::new(sequencer))
    }

    /// A thread that panicked in the middle of a decision left its batch unfinished; it is never written.
    pub(super) fn lock(&self) -> MutexGuard<'_, Sequencer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SequencerDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SequencerDesk")
    }
}

/// What both threads share with the doors.
#[derive(Clone)]
pub(super) struct Watch {
    pub(super) health: Arc<Health>,
    pub(super) observer: Arc<dyn Observer>,
}

/// Starts both threads.
pub(super) fn spawn(
    desk: Arc<SequencerDesk>,
    log: Box<dyn Log>,
    follower: Box<dyn Follower>,
    watch: Watch,
    inbox: Sender<Message>,
    messages: Receiver<Message>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let (jobs, work) = channel();
    let observer = watch.observer.clone();
    let writer = std::thread::Builder::new()
        .name("ledger-writer".into())
        .spawn(move || write(log, follower, &watch, &work, &inbox))?;
    let sequencer = std::thread::Builder::new()
        .name("sequencer".into())
        .spawn(move || sequence(&desk, &messages, &jobs, &*observer))?;
    Ok(vec![sequencer, writer])
}

/// The writer: one batch after the other, and nobody is answered before it is durable.
fn write(
    mut log: Box<dyn Log>,
    mut follower: Box<dyn Follower>,
    watch: &Watch,
    work: &Receiver<Job>,
    done: &Sender<Message>,
) {
    const IDLE: Duration = Duration::from_millis(limits::IDLE_CHECK_MS);
    loop {
        let Job { batch, waiting } = match work.recv_timeout(IDLE) {
            Ok(job) => job,
            // Nothing to write: a good time to see whether it could be.
            Err(RecvTimeoutError::Timeout) => {
                watch.health.set(log.check().map_err(|fault| fault.to_string()));
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        watch.observer.append_begins(batch.entries().len(), batch.text().len());
        let result = log.append(batch.after(), &batch).map_err(|fault| fault.to_string());
        watch.observer.append_ended(result.is_ok());
        watch.health.set(result.clone());
        if result.is_ok() {
            watch.health.set_head(batch.head().sequence, batch.last_timestamp());
        }
        // What a reply says is already where followers show it.
        let notice = result.as_ref().ok().and_then(|()| follower.durable(batch.entries()));
        // A failure is the sequencer's to hear first: whoever is told and tries again at once must find everything
        // given back. A success is told to those who wait first.
        if result.is_err() && done.send(Message::Written(result.clone())).is_err() {
            return;
        }
        for one in waiting {
            if let (Some(decided), Ok(())) = (one.decided(), &result) {
                watch.observer.decided(decided);
            }
            one.tell(result.clone().map_err(EngineFault::NotDurable));
        }
        if let Some(notice) = notice {
            // A sequencer that has gone has nothing left to record.
            let _ = done.send(Message::Notice(notice));
        }
        if result.is_ok() && done.send(Message::Written(result)).is_err() {
            return;
        }
    }
}

/// Gives up the batch that is being built, with all it claimed; whoever waits for it is told.
fn drop_batch<'t>(
    sequencer: &mut Sequencer,
    topic_id: &'t str,
    batch: &mut BatchBuilder<'t>,
    waiting: &mut Vec<Waiting>,
    fault: &EngineFault,
) {
    sequencer.drop_building();
    *batch = sequencer.new_batch(topic_id);
    for one in waiting.drain(..) {
        one.tell(Err(fault.clone()));
    }
}

/// The sequencer's loop.
fn sequence(desk: &SequencerDesk, messages: &Receiver<Message>, jobs: &Sender<Job>, observer: &dyn Observer) {
    const TICK: Duration = Duration::from_millis(limits::TICK_MS);
    let topic_id = desk.lock().topic_id().to_owned();
    let mut batch = desk.lock().new_batch(&topic_id);
    let mut waiting: Vec<Waiting> = Vec::new();
    let (mut writing, mut stopping) = (false, false);
    loop {
        let mut next = if desk.lock().has_deadlines() {
            match messages.recv_timeout(TICK) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        } else {
            let Ok(message) = messages.recv() else { return };
            Some(message)
        };
        while let Some(message) = next {
            // One message at a time: whoever only asks gets a turn in between.
            let mut sequencer = desk.lock();
            let began = batch.next_sequence();
            let mut failed: Option<EngineFault> = None;
            match message {
                Message::Candidate(_, reply) if stopping => reply(Err(EngineFault::Stopped)),
                Message::Candidate(candidate, reply) => match sequencer.decide(*candidate, &mut batch) {
                    Ok(decided) => waiting.push(Waiting::Decision(reply, decided)),
                    Err(fault) => {
                        failed = Some(fault.clone());
                        reply(Err(fault));
                    }
                },
                Message::Together(candidates) => {
                    for (candidate, reply) in candidates {
                        if stopping {
                            reply(Err(EngineFault::Stopped));
                            continue;
                        }
                        match sequencer.decide(candidate, &mut batch) {
                            Ok(decided) => waiting.push(Waiting::Decision(reply, decided)),
                            Err(fault) => {
                                failed = Some(fault.clone());
                                reply(Err(fault));
                            }
                        }
                    }
                }
                Message::Act(act) if stopping => act.tell(Err(EngineFault::Stopped)),
                Message::Act(mut act) => match act.run(&mut sequencer, &mut batch) {
                    Ok(()) => waiting.push(Waiting::Act(act)),
                    Err(fault) => {
                        failed = Some(fault);
                        act.tell(Ok(()));
                    }
                },
                Message::Notice(notice) => failed = sequencer.record_notice(notice, &mut batch).err(),
                Message::Written(Ok(())) => {
                    writing = false;
                    sequencer.keep();
                }
                Message::Written(Err(why)) => {
                    // What was built on the failed batch falls with it.
                    writing = false;
                    sequencer.give_back();
                    batch = sequencer.new_batch(&topic_id);
                    for one in waiting.drain(..) {
                        one.tell(Err(EngineFault::NotDurable(why.clone())));
                    }
                }
                Message::Stop => stopping = true,
            }
            // A group is written whole or not at all: what a fault left half done takes the whole batch with it.
            if let Some(fault) = failed.filter(|_| batch.next_sequence() != began) {
                drop_batch(&mut sequencer, &topic_id, &mut batch, &mut waiting, &fault);
            }
            sequencer.reached(&batch);
            drop(sequencer);
            next = if batch.text_bytes() < limits::BATCH_BYTES_MAX { messages.try_recv().ok() } else { None };
        }
        if !stopping {
            let mut sequencer = desk.lock();
            if sequencer.has_deadlines() {
                let began = batch.next_sequence();
                if let Err(fault) = sequencer.tick(&mut batch)
                    && batch.next_sequence() != began
                {
                    drop_batch(&mut sequencer, &topic_id, &mut batch, &mut waiting, &fault);
                }
                sequencer.reached(&batch);
            }
        }
        if !writing {
            if batch.is_empty() {
                // Only replays are waiting, and all they refer to is durable.
                for one in waiting.drain(..) {
                    if let Some(decided) = one.decided() {
                        observer.decided(decided);
                    }
                    one.tell(Ok(()));
                }
                if stopping {
                    return;
                }
            } else {
                let mut sequencer = desk.lock();
                let full = std::mem::replace(&mut batch, sequencer.new_batch(&topic_id));
                if let Some(full) = full.seal() {
                    sequencer.ship(full.head(), full.last_timestamp());
                    batch = sequencer.new_batch(&topic_id);
                    writing = true;
                    let job = Job { batch: full, waiting: std::mem::take(&mut waiting) };
                    if jobs.send(job).is_err() {
                        return;
                    }
                }
            }
        }
    }
}
