//! The engine: decides once, in order, durably. The only writer.
//!
//! Pure verdicts come in from many threads; one sequencer decides what may happen only once (claims) in the
//! order in which it takes them, turns each decision into Wire events, and one writer makes them durable a
//! batch at a time. While a batch is being synced the next one is prepared; if it fails, both are dropped with
//! all they claimed, and nobody is told *allowed*.
//!
//! [`EngineHandle`] is what doors hold. Deliberately absent: HTTP, files other than the log, and policy of its
//! own: what a claim means is in `claims.rs`, what a gate means is in `gates/`.

mod act;
mod again;
mod candidate;
mod claims;
mod credentials;
mod deadlines;
mod decide;
mod epoch;
mod facts;
mod freezing;
mod gathering;
mod granting;
mod health;
mod line;
mod mentioning;
mod news;
mod own;
mod past;
mod proposing;
mod pushing;
mod record;
mod recording;
mod replay;
mod report;
mod routing;
mod seen;
mod sequencer;
mod settling;
mod shelf;
mod shown;
mod speaking;
mod standing;
mod task;
mod teller;
mod threads;
mod writer;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

pub use act::Asking;
pub use candidate::{Asker, Candidate, Ruling, evidence_of};
pub use credentials::{TokenFacts, TokenHands};
pub use epoch::EpochFacts;
pub use freezing::Frozen;
pub use granting::Granted;
pub use past::{Past, ViewsPast};
pub use proposing::{Consent, Proposing};
pub use pushing::PushFact;
pub use record::{Decided, DryRun, LedgerPlace, Pass};
pub use report::{Report, ReportRefusal, ReportReply, Reported};
pub use routing::{PromotionRules, RolledBack, RouteFault, Routed};
pub use settling::{Answering, Unanswered};
pub use speaking::{Addressee, Said, SaidPlace, Saying, Uncanceled};
pub use standing::{InForce, Loading, Putting};

use crate::freeze::FreezeAsk;
use crate::ledger::{BatchBuilder, Entry, Follower, Log, Notice};
use crate::limits;
use crate::policy::PolicySet;
use crate::timestamp::Timestamp;
use health::Health;
use line::LineDesk;
use routing::Governing;
use sequencer::{Sequencer, Terms};
use shown::Shown;
use threads::{Asked, Duty, Message, SequencerDesk, Waiting, Watch};

/// Why the engine cannot answer. Nothing was allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineFault {
    /// Too many decisions are waiting; try again shortly.
    Busy,
    /// The decision could not be made durable.
    NotDurable(String),
    /// The engine has stopped.
    Stopped,
    /// The ledger that is already there cannot be understood.
    BadLedger(String),
    /// The rules that this gateway has are not those in force.
    Differs(String),
    /// The policy set that this gateway has waits for a person's yes.
    Waits(String),
}

impl std::fmt::Display for EngineFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Busy => write!(f, "too many decisions are waiting"),
            Self::NotDurable(why) => write!(f, "the decision could not be made durable: {why}"),
            Self::Stopped => write!(f, "the engine has stopped"),
            Self::BadLedger(why) => write!(f, "the ledger cannot be understood: {why}"),
            Self::Differs(why) => write!(f, "this gateway's rules are not those in force: {why}"),
            Self::Waits(why) => write!(f, "a changed policy set waits for an operator's yes: {why}"),
        }
    }
}

impl std::error::Error for EngineFault {}

/// What became of a candidate that somebody wanted to decide on their own thread.
#[derive(Debug)]
pub enum Here {
    Decided(Result<Arc<Decided>, EngineFault>),
    /// Others are in line: it has to go there.
    InLine(Box<Candidate>),
}

/// Called once with the decision, when it is durable and those who follow show it, or with why there is none.
pub type Reply = Box<dyn FnOnce(Result<Arc<Decided>, EngineFault>) + Send>;

/// Called with the decision as soon as it is durable, while those who follow are still told. Not called for one that was
/// made before, nor where there is none.
pub type Ahead = Box<dyn FnOnce(Arc<Decided>) + Send>;

/// Hears what the engine does, to count it. Called on the engine's own threads: it must not wait.
pub trait Observer: Send + Sync {
    /// A batch goes to the disk.
    fn append_begins(&self);

    fn append_ended(&self, ended: Appended);

    /// A decision is durable, and its reply is about to leave.
    fn decided(&self, decided: &Decided);
}

/// How an append ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    Durable {
        entries: usize,
        bytes: usize,
    },
    /// Others have appended before; it is tried again.
    Overtaken,
    Failed,
}

/// Nobody counts.
struct Uncounted;

impl Observer for Uncounted {
    fn append_begins(&self) {}
    fn append_ended(&self, _ended: Appended) {}
    fn decided(&self, _decided: &Decided) {}
}

/// What the engine takes from the world: time, and randomness for event ids.
pub trait World: Send {
    fn now(&self) -> Timestamp;
    fn random(&mut self) -> [u8; 10];
}

/// What an engine is started with.
pub struct Setup {
    pub log: Box<dyn Log>,
    /// The time of the log's last entry.
    pub last_timestamp: Option<Timestamp>,
    pub world: Box<dyn World>,
    pub follower: Box<dyn Follower>,
    pub observer: Arc<dyn Observer>,
    /// Decisions that may wait; [`limits::WAITING_DECISIONS_MAX`] unless a test wants less.
    pub waiting_max: usize,
    /// What was claimed in entries that are not in the history; all are, where there is none.
    pub past: Option<Box<dyn Past>>,
    /// Claims of a kind that stay in memory; [`limits::CLAIMS_AT_HAND`] unless a test wants less.
    pub claims_at_hand: usize,
    pub promotion: PromotionRules,
    /// How long a handoff waits for a person, at most; [`limits::APPROVAL_WAIT_S`] unless an operator sets it.
    pub approval_wait_s: i64,
    /// Does a changed policy set come into force with a person's yes only?
    pub asks_first: bool,
}

impl Setup {
    pub fn new(log: Box<dyn Log>, last_timestamp: Option<Timestamp>, world: Box<dyn World>) -> Self {
        let waiting_max = limits::WAITING_DECISIONS_MAX;
        let (follower, observer) = (Box::new(Nobody), Arc::new(Uncounted));
        let (past, claims_at_hand) = (None, limits::CLAIMS_AT_HAND);
        Self {
            log,
            last_timestamp,
            world,
            follower,
            observer,
            waiting_max,
            past,
            claims_at_hand,
            promotion: PromotionRules::default(),
            approval_wait_s: limits::APPROVAL_WAIT_S,
            asks_first: false,
        }
    }

    /// Has somebody count what happens.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// Leaves what is old to the views; the history then begins behind what they have applied.
    #[must_use]
    pub fn remembered_by(mut self, past: Box<dyn Past>) -> Self {
        self.past = Some(past);
        self
    }

    /// Has somebody follow the log.
    #[must_use]
    pub fn followed_by(mut self, follower: Box<dyn Follower>) -> Self {
        self.follower = follower;
        self
    }
}

/// Nobody follows.
struct Nobody;

impl Follower for Nobody {
    fn durable(&mut self, _entries: &[Entry]) -> Option<Notice> {
        None
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Setup({})", self.log.topic_id())
    }
}

/// A running engine, as doors hold it.
#[derive(Debug, Clone)]
pub struct EngineHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    inbox: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    waiting_max: usize,
    health: Arc<Health>,
    desk: Arc<SequencerDesk>,
    line: Arc<LineDesk>,
    governing: Arc<Governing>,
    shown: Arc<Shown>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl EngineHandle {
    /// Starts an engine on a log. `history` are its entries so far: all of them, or those behind what the past has
    /// applied.
    pub fn start(
        setup: Setup,
        history: impl Iterator<Item = Result<Entry, EngineFault>>,
    ) -> Result<Self, EngineFault> {
        let Setup {
            log,
            last_timestamp,
            world,
            follower,
            observer,
            waiting_max,
            past,
            claims_at_hand,
            promotion,
            approval_wait_s,
            asks_first,
        } = setup;
        let (inbox, messages) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (topic_id, head, past) = (log.topic_id(), log.head(), (past, claims_at_hand));
        let terms = Terms { promotion, approval_wait_s, keeping: log.keeping(), asks_first };
        let sequencer = Sequencer::rebuild(topic_id, head, last_timestamp, past, terms, history, world)?;
        let health = Arc::new(Health::at(log.head().sequence, last_timestamp, log.keeping()));
        let watch = Watch { health: health.clone(), observer };
        let (governing, shown) = (sequencer.watch_governing(), sequencer.watch());
        let desk = Arc::new(SequencerDesk::new(sequencer));
        let spawned = threads::spawn(desk.clone(), log, follower, watch, inbox.clone(), messages);
        let (line, threads) = spawned.map_err(|error| EngineFault::NotDurable(error.to_string()))?;
        let threads = Mutex::new(threads);
        let shared = Shared { inbox, waiting, waiting_max, health, desk, line, governing, shown, threads };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Is there nobody in line? Then [`Self::decide_here`] is worth a try.
    pub fn is_idle(&self) -> bool {
        self.waiting() == 0
    }

    /// Decides on the caller's thread, if nobody else is in line, and returns when that is durable and shown by those who
    /// follow; otherwise gives the candidate back. It waits for the disk, so it is not for a thread that others need.
    pub fn decide_here(&self, candidate: Box<Candidate>) -> Here {
        if !self.is_idle() || self.take_places(1).is_err() {
            return Here::InLine(candidate);
        }
        let (sender, receiver) = channel();
        let reply = self.counted(Box::new(move |result| drop(sender.send(result))));
        let _duty = Duty::of("who was decided alone", &self.shared.health, &self.shared.inbox);
        match self.shared.line.serve_alone(Waiting::Decision(Asked::new(candidate, reply))) {
            Ok(due) => {
                if due {
                    // One that has ended has nothing due.
                    let _ = self.send(Message::Look);
                }
                // Told by now, unless it has to be decided again: then the sequencer's thread does that.
                Here::Decided(receiver.recv().unwrap_or(Err(EngineFault::Stopped)))
            }
            Err(Waiting::Decision(asked)) => Here::InLine(asked.candidate),
            Err(_) => Here::Decided(Err(EngineFault::Stopped)),
        }
    }

    /// Puts a candidate in line. Fails at once when the line is too long, so that memory stays bounded.
    pub fn submit(&self, candidate: impl Into<Box<Candidate>>, reply: Reply) -> Result<(), EngineFault> {
        self.take_places(1)?;
        let asked = Asked::new(candidate.into(), self.counted(reply));
        self.send(Message::Ask(Waiting::Decision(asked)))
    }

    /// The same for somebody who makes an answer ready while the state file is being published. It may leave only when
    /// `reply` was called.
    pub fn submit_ahead(
        &self,
        candidate: Box<Candidate>,
        ahead: Ahead,
        reply: Reply,
    ) -> Result<(), EngineFault> {
        self.take_places(1)?;
        let asked = Asked { ahead: Some(ahead), ..Asked::new(candidate, self.counted(reply)) };
        self.send(Message::Ask(Waiting::Decision(asked)))
    }

    /// Puts several in line, to be decided in this order and made durable together: all of them or none.
    pub fn submit_together(&self, candidates: Vec<(Candidate, Reply)>) -> Result<(), EngineFault> {
        self.take_places(candidates.len())?;
        let asked = candidates
            .into_iter()
            .map(|(candidate, reply)| Asked::new(candidate.into(), self.counted(reply)));
        self.send(Message::Ask(Waiting::Together(asked.collect())))
    }

    /// What would be decided now, with all that is claimed so far. Nothing is claimed or written, so it does not
    /// stand in line: it only waits for the decision that is being made. That may be waiting for a disk or a database
    /// itself, so it is not for a thread that others need.
    pub fn dry_run(&self, mut candidate: Candidate) -> Result<DryRun, EngineFault> {
        self.shared.desk.lock().dry_run(&mut candidate)
    }

    /// The same, if the decision that is being made is made in a moment; otherwise nothing.
    pub fn dry_run_soon(&self, candidate: &mut Candidate) -> Option<Result<DryRun, EngineFault>> {
        Some(self.shared.desk.lock_soon()?.dry_run(candidate))
    }

    /// Places in line, or a fault at once.
    fn take_places(&self, places: usize) -> Result<(), EngineFault> {
        let shared = &self.shared;
        let before = shared.waiting.fetch_add(places, Ordering::AcqRel);
        // Many who come together and find nobody in line may all come in: otherwise they never could.
        if before > 0 && before + places > shared.waiting_max {
            shared.waiting.fetch_sub(places, Ordering::AcqRel);
            return Err(EngineFault::Busy);
        }
        Ok(())
    }

    /// A place in line that was taken; it is given back when this is dropped.
    fn place(&self) -> Place {
        Place(self.shared.waiting.clone())
    }

    /// One place in line, or a fault at once.
    fn take_place(&self) -> Result<Place, EngineFault> {
        self.take_places(1)?;
        Ok(self.place())
    }

    /// A reply that gives its place in line back.
    fn counted(&self, reply: Reply) -> Reply {
        let place = self.place();
        Box::new(move |result| {
            drop(place);
            reply(result);
        })
    }

    fn send_act(&self, act: Box<dyn act::Act>) -> Result<(), EngineFault> {
        self.send(Message::Ask(Waiting::Act(act)))
    }

    fn send(&self, message: Message) -> Result<(), EngineFault> {
        self.shared.inbox.send(message).map_err(|_| EngineFault::Stopped)
    }

    /// How many decisions wait to be made durable.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Acquire)
    }

    /// How many may.
    pub fn waiting_max(&self) -> usize {
        self.shared.waiting_max
    }

    /// The last entry that is durable.
    pub fn head(&self) -> u64 {
        self.shared.health.head()
    }

    /// When the last entry was made, by the ledger's time.
    pub fn ledger_time(&self) -> Option<Timestamp> {
        self.shared.health.time()
    }

    /// The policy set that counts: the files', or that with the routes which a rollback restored.
    pub fn policies_over(&self, files: &Arc<PolicySet>) -> Arc<PolicySet> {
        self.overlaid_policies().unwrap_or_else(|| files.clone())
    }

    /// What a decision and the dispatch that goes with it rest on now. `known` is what the asker read before: the
    /// sequencer may have decided by something newer already.
    pub fn governing(&self, known: &Arc<InForce>) -> Arc<InForce> {
        self.shared.governing.now(known)
    }

    fn overlaid_policies(&self) -> Option<Arc<PolicySet>> {
        self.shared.governing.overlaid()
    }

    /// For how long it is not known whether others have appended what is not seen here; nothing where nobody else does.
    pub fn behind_for(&self) -> Option<Duration> {
        self.shared.health.behind_for()
    }

    /// For how long the ledger has not answered; nothing while nobody asks it.
    pub fn unanswered_for(&self) -> Option<Duration> {
        self.shared.health.unanswered_for()
    }

    /// Why the ledger does not take what is written to it, if it does not.
    pub fn fault(&self) -> Option<String> {
        self.shared.health.fault()
    }

    /// Why the engine has ended, if nobody told it to: whoever did its work has panicked. It does not begin again.
    pub fn ended(&self) -> Option<&str> {
        self.shared.health.ended()
    }

    /// Tells one when that happens, or at once if it has. Called on the thread that panicked: it must not wait.
    pub fn when_ended(&self, tell: impl FnOnce(&str) + Send + 'static) {
        self.shared.health.when_ended(Box::new(tell));
    }

    /// Puts a candidate in line and waits for its decision.
    pub fn submit_and_wait(&self, candidate: Candidate) -> Result<Arc<Decided>, EngineFault> {
        let candidate = match self.decide_here(candidate.into()) {
            Here::Decided(result) => return result,
            Here::InLine(candidate) => candidate,
        };
        let (sender, receiver) = channel();
        // A receiver that has gone away was told `Stopped`; there is nobody left to tell.
        self.submit(candidate, Box::new(move |result| drop(sender.send(result))))?;
        receiver.recv().unwrap_or(Err(EngineFault::Stopped))
    }

    /// Puts policies, keys and tokens in force: every candidate sequenced after this is judged by them. What
    /// changed is recorded in the ledger; `done` hears when that is durable.
    pub fn put_in_force(
        &self,
        in_force: Arc<InForce>,
        done: impl FnOnce(Result<(), EngineFault>) + Send + 'static,
    ) -> Result<(), EngineFault> {
        let run = move |sequencer: &mut Sequencer, batch: &mut BatchBuilder<'_>| {
            sequencer.put_in_force(in_force.clone(), &Putting::EVERYTHING, batch)
        };
        self.ask_whatever(run, done)
    }

    /// The same, and waits.
    pub fn put_in_force_and_wait(&self, in_force: Arc<InForce>) -> Result<(), EngineFault> {
        self.put_and_wait(in_force, Putting::EVERYTHING)
    }

    /// Goes by policies, keys and tokens that were found here. Where several gateways share the ledger and it says
    /// otherwise, nothing is decided until they are the same.
    pub fn join_and_wait(&self, in_force: Arc<InForce>) -> Result<(), EngineFault> {
        self.put_and_wait(in_force, Putting::default())
    }

    /// Puts in force for everybody what `putting` says, and goes by the rest like [`Self::join_and_wait`].
    pub fn put_and_wait(&self, in_force: Arc<InForce>, putting: Putting) -> Result<(), EngineFault> {
        self.ask_whatever_and_wait(move |sequencer, batch| {
            sequencer.put_in_force(in_force.clone(), &putting, batch)
        })
    }

    /// Would this put another policy set, or keys, in force for everybody, as far as is known now?
    pub fn would_load(&self, in_force: &InForce, putting: &Putting) -> (bool, bool) {
        self.standing(|standing| {
            (standing.loads_policies(in_force, putting), standing.loads_keys(in_force, putting))
        })
    }

    /// Are this policy set, and these keys, those that the ledger says are in force?
    pub fn has_parts_of(&self, in_force: &InForce) -> (bool, bool) {
        self.standing(|standing| (standing.has_policies_of(in_force), standing.has_keys_of(in_force)))
    }

    /// Does the ledger say something else of the key of this name than the keyring does?
    pub fn key_differs(&self, keyring: &crate::proof::Keyring, key_id: &str) -> bool {
        self.standing(|standing| standing.credentials.differing_keys(keyring).iter().any(|id| id == key_id))
    }

    /// Why the rules that this gateway has are not those in force; nothing if they are.
    pub fn differs(&self) -> Option<String> {
        self.shared.shown.differs().map(|fault| fault.to_string())
    }

    /// Takes in what others have appended until now; `done` hears of it when whoever follows does.
    pub fn take_in(
        &self,
        done: impl FnOnce(Result<(), EngineFault>) + Send + 'static,
    ) -> Result<(), EngineFault> {
        // What appends nothing is answered only when it is known that nobody else has appended.
        self.ask_whatever(|_, _| Ok(()), done)
    }

    /// Begins a new epoch, for a ledger that was restored from a backup, and waits until that is durable. One that
    /// the ledger has already is not begun again.
    pub fn begin_epoch_and_wait(&self, facts: EpochFacts) -> Result<(), EngineFault> {
        self.ask_whatever_and_wait(move |sequencer, batch| sequencer.begin_epoch(&facts, batch).map(drop))
    }

    /// The same for one that begins with a freeze, in the same group: whoever knows of the epoch knows of that. Once it was
    /// lifted, it is not set again.
    pub fn begin_frozen_epoch_and_wait(
        &self,
        facts: EpochFacts,
        freeze: FreezeAsk,
        by: Asking,
    ) -> Result<(), EngineFault> {
        self.ask_whatever_and_wait(move |sequencer, batch| {
            if sequencer.begin_epoch(&facts, batch)? {
                sequencer.freeze(&freeze, &by, batch)?;
            }
            Ok(())
        })
    }

    /// Decides what is in line, makes it durable, and stops.
    pub fn stop(&self) {
        // Already stopped is as good.
        let _ = self.shared.inbox.send(Message::Stop);
        let threads = self.shared.threads.lock().map(|mut threads| std::mem::take(&mut *threads));
        for thread in threads.unwrap_or_default() {
            let _ = thread.join();
        }
    }
}

/// A place in line.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The last handle is gone: nobody can be answered any more, so the threads end.
impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.inbox.send(Message::Stop);
    }
}

#[cfg(test)]
mod tests;
