//! One thread decides, one thread writes, one thread tells.
//!
//! The sequencer's thread takes messages one by one, decides each, and adds it to the batch it is building; whenever the
//! writer is idle the batch goes out. So a batch holds all that came while the one before it was being synced, and while it
//! is written the one before it is told. One that came alone is written and told where it was decided: on the sequencer's
//! thread, or on that of whoever asked. Where others append to the ledger too, another thread waits for a hint that they
//! did.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle};

use super::act::Act;
use super::candidate::Candidate;
use super::health::Health;
use super::line::{Line, LineDesk};
use super::record::Decided;
use super::sequencer::Sequencer;
use super::teller::{TellerDesk, TellerLine};
use super::writer::{Around, Writer, WriterDesk};
use super::{Ahead, EngineFault, Observer, Reply};
use crate::ledger::{Batch, Bell, Entry, Follower, Head, Keeping, Log, Notice};
use crate::limits;

pub(super) enum Message {
    /// Somebody wants something decided.
    Ask(Waiting),
    /// The writer is done with a batch.
    Written(Written),
    /// Others have appended these.
    News(Vec<Entry>),
    /// Something is due, and was not when the line was looked at last.
    Look,
    Stop,
}

/// What became of a job.
pub(super) enum Written {
    /// The room of its lines comes back with it.
    Durable(String),
    Failed(String),
    /// Others have appended before it could be; those who wait for it are decided again.
    Overtaken {
        news: Vec<Entry>,
        overtaken: Overtaken,
    },
}

/// Those who have to be decided again.
#[derive(Default)]
pub(super) struct Overtaken {
    pub(super) waiting: Vec<Waiting>,
    /// Nothing had to be written for them, and the ledger was read up to its end after they had asked.
    pub(super) was_read: bool,
}

/// Something that was decided, or has to be, with all that is needed to decide it again.
pub(super) enum Waiting {
    Decision(Asked),
    /// Decided in this order and made durable together.
    Together(Vec<Asked>),
    /// What agents report and operators do, and what is put in force.
    Act(Box<dyn Act>),
    /// A follower noticed something; nobody waits to hear of it.
    Notice(Notice),
}

/// A candidate, and who waits for its decision.
pub(super) struct Asked {
    pub(super) candidate: Box<Candidate>,
    /// Who wants to know before those who follow are told.
    pub(super) ahead: Option<Ahead>,
    pub(super) reply: Reply,
    pub(super) decided: Option<Arc<Decided>>,
}

impl Asked {
    pub(super) fn new(candidate: Box<Candidate>, reply: Reply) -> Self {
        Self { candidate, ahead: None, reply, decided: None }
    }

    fn tell(self, result: Result<(), EngineFault>, observer: &dyn Observer) {
        let Self { ahead, reply, decided, .. } = self;
        // Whoever still waits for the first word gets the last one only.
        drop(ahead);
        let decided = result.and_then(|()| decided.ok_or(EngineFault::Stopped));
        if let Ok(decided) = &decided {
            observer.decided(decided);
        }
        reply(decided);
    }
}

impl Waiting {
    /// It is durable: whoever makes an answer ready may begin.
    pub(super) fn tell_ahead(&mut self) {
        if let Self::Decision(Asked { ahead, decided: Some(decided), .. }) = self
            && let Some(ahead) = ahead.take()
        {
            ahead(decided.clone());
        }
    }

    pub(super) fn tell(self, result: Result<(), EngineFault>, observer: &dyn Observer) {
        match self {
            Self::Decision(asked) => asked.tell(result, observer),
            Self::Together(all) => all.into_iter().for_each(|asked| asked.tell(result.clone(), observer)),
            Self::Act(act) => {
                if let (Ok(()), Some(decided)) = (&result, act.decided()) {
                    observer.decided(decided);
                }
                act.tell(result);
            }
            Self::Notice(_) => {}
        }
    }
}

/// What the writer is to do.
pub(super) enum Work {
    Job(Job),
    /// The sequencer knows what was told to it as news, up to this entry: those who follow may hear of it now.
    Taken(u64),
    /// What these are told of is known to those who follow, or about to be.
    Tell(Vec<Waiting>),
    /// There is nothing to append after all: others may go first.
    Pass,
    /// Others may have appended, up to this entry if there was a hint.
    Look(Option<u64>),
    Stop,
}

/// A batch on its way to the disk, with those who wait for it. Without one, they wait for certainty that nobody else has
/// appended since.
pub(super) struct Job {
    pub(super) after: Head,
    pub(super) batch: Option<Batch>,
    pub(super) waiting: Vec<Waiting>,
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

    /// The sequencer, unless whoever has it keeps it for much longer than a decision takes.
    pub(super) fn lock_soon(&self) -> Option<MutexGuard<'_, Sequencer>> {
        for _ in 0..limits::SEQUENCER_LOOKS {
            match self.0.try_lock() {
                Ok(sequencer) => return Some(sequencer),
                Err(TryLockError::Poisoned(left)) => return Some(left.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }
}

impl std::fmt::Debug for SequencerDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SequencerDesk")
    }
}

/// What the threads share with the doors.
#[derive(Clone)]
pub(super) struct Watch {
    pub(super) health: Arc<Health>,
    pub(super) observer: Arc<dyn Observer>,
}

/// Whoever does the engine's work. Should it panic the engine has ended: what it had in hand is left as it is, nothing is
/// decided on top of that, and whoever waits is told so.
pub(super) struct Duty<'e> {
    who: &'static str,
    health: &'e Health,
    inbox: &'e Sender<Message>,
}

impl<'e> Duty<'e> {
    pub(super) fn of(who: &'static str, health: &'e Health, inbox: &'e Sender<Message>) -> Self {
        Self { who, health, inbox }
    }
}

impl Drop for Duty<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.health.end(&format!("{} has panicked", self.who));
            // The sequencer's thread ends when it looks, and with it the line; gone if it was that one.
            let _ = self.inbox.send(Message::Look);
        }
    }
}

/// Sends the writer home, however the sequencer's thread ends: others may hold an end of its line.
struct SendsHome(Sender<Work>);

impl Drop for SendsHome {
    fn drop(&mut self) {
        // Gone if the writer has ended before.
        let _ = self.0.send(Work::Stop);
    }
}

/// Starts the threads, and returns the line, with those that end when the engine stops.
pub(super) fn spawn(
    desk: Arc<SequencerDesk>,
    log: Box<dyn Log>,
    follower: Box<dyn Follower>,
    watch: Watch,
    inbox: Sender<Message>,
    messages: Receiver<Message>,
) -> io::Result<(Arc<LineDesk>, Vec<JoinHandle<()>>)> {
    let (jobs, work) = channel();
    let named = |name: &str| Builder::new().name(name.to_owned());
    let is_shared = log.keeping() == Keeping::Shared;
    let looking = Arc::new(AtomicBool::new(false));
    if let Some(bell) = log.bell() {
        let (jobs, looking, health, inbox) =
            (jobs.clone(), looking.clone(), watch.health.clone(), inbox.clone());
        named("ledger-bell").spawn(move || {
            let _duty = Duty::of("who waits for others' entries", &health, &inbox);
            ring(bell, &jobs, &looking, &health);
        })?;
    }
    let (tales, told) = sync_channel(limits::TALES_WAITING_MAX);
    let telling = Arc::new(TellerDesk::new(follower, watch.clone()));
    let (own, noticed, health) = (telling.clone(), inbox.clone(), watch.health.clone());
    let telling_thread = named("teller").spawn(move || {
        let _duty = Duty::of("the teller", &health, &noticed);
        own.run(&told, &noticed);
    })?;
    let teller = TellerLine::new(telling, tales);
    let pen = Arc::new(WriterDesk::new(Writer::new(log, watch.clone(), looking)));
    let line = Line::new(desk, is_shared, pen.clone(), jobs.clone(), teller.clone(), watch.clone());
    let line = Arc::new(LineDesk::new(line));
    let (own, health, noticed) = (line.clone(), watch.health.clone(), inbox.clone());
    let around = Around { line: line.clone(), teller, inbox, watch, is_shared };
    let writer = named("ledger-writer").spawn(move || {
        let _duty = Duty::of("the writer", &around.watch.health, &around.inbox);
        pen.run(&work, &around);
    })?;
    let sequencer = named("sequencer").spawn(move || {
        let _home = SendsHome(jobs);
        let _duty = Duty::of("the sequencer", &health, &noticed);
        own.run(&messages);
    })?;
    // Each ends when the one before it has.
    Ok((line, vec![sequencer, writer, telling_thread]))
}

/// Has the writer look whenever others may have appended what it has not seen; one look at a time.
fn ring(mut bell: Box<dyn Bell>, jobs: &Sender<Work>, looking: &AtomicBool, health: &Health) {
    loop {
        let hint = bell.wait();
        let is_news = hint.is_none_or(|sequence| sequence > health.head());
        if is_news && !looking.swap(true, Ordering::AcqRel) && jobs.send(Work::Look(hint)).is_err() {
            return;
        }
    }
}
