//! A workspace that is being served: its lock, its key, its ledger, its state file and the engine on top.
//!
//! A hand: it puts the rooms together for the daemon and the command line. Opening compares everything that
//! remembers the ledger (checkpoint, state file) with the ledger itself, and stops where they disagree: nothing
//! that was acknowledged may be missing, doubled or quietly changed.

mod approving;
mod backup;
mod checkpoints;
mod closed;
mod fault;
mod files;
mod hub;
mod lock;
mod looks;
mod lost;
mod lost_acts;
mod moving;
mod nonces;
mod opened;
mod parts;
mod probe;
mod promotion;
mod putting;
mod remembering;
mod rules;
mod seals;
mod sharing;
mod sink;
mod snapshots;
mod views;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub use approving::{Answered, Pending};
pub use backup::{BackupFault, Manifest, ManifestFile, back_up, restore};
pub use checkpoints::{OtherCheckpoint, read_checkpoint, read_other_checkpoints};
pub use closed::closed;
pub use fault::GatewayFault;
pub use files::Files;
pub use hub::{Hub, Listener, Told};
pub use lock::{Holder, LockFault, WorkspaceLock};
pub use lost::{LostEntries, lost_entries};
pub use lost_acts::LostAct;
pub use moving::{MoveFault, Moved, Moving, Place, Replacing, Served, move_ledger};
pub use nonces::{NonceKeeper, SpendFault};
pub use opened::hold_settled;
pub use probe::Probe;
pub use promotion::{EndToEnd, GateAsk, GateDecision, LookFault, Promoter, Undecided};
pub use remembering::{Record, hold_ledger};
pub use rules::{Cause, Failed, Hindrance, Part, Put, Reloaded, RuleKeeper, Rules, Starting};
pub use sharing::Sharing;
pub use sink::{Progress as SinkProgress, Sink};
pub use views::ViewsProgress;
pub use watch::{Bell, Watch};

use crate::callers::TokenFiles;
use crate::engine::{Asking, EngineFault, EngineHandle, Observer, PromotionRules, Setup, ViewsPast};
use crate::freeze::{FreezeAsk, FreezeScope};
use crate::ledger::{Checkpoint, Head, Keeping, PurgeFault, PurgeMode, Seals, Source, Torn};
use crate::limits;
use crate::os::world::RealWorld;
use crate::os::{clock, random};
use crate::proof::{Seed, to_hex};
use crate::settings::LedgerUrl;
use crate::state::{Published, Publisher, StateFollower, StateWatch, rebuild_from};
use crate::timestamp::Timestamp;
use crate::views::{Reader, ViewsFault};
use checkpoints::Checkpointer;
use hub::HubFollower;
use opened::Opened;
use seals::SealKeeper;
use snapshots::Snapshots;
use views::{FollowedFile, Following, ViewsFollower, ViewsThread, follow};

/// A workspace that is open for decisions.
#[derive(Debug)]
pub struct Gateway {
    engine: EngineHandle,
    files: Files,
    ledger: Source,
    keeping: Keeping,
    sharing: Option<Sharing>,
    /// Before it was opened.
    was_served: bool,
    topic_id: String,
    seed: Arc<Seed>,
    torn: Option<Torn>,
    /// Which segments there are.
    seals: Seals,
    state: StateWatch,
    snapshots: Snapshots,
    hub: Hub,
    views: Arc<ViewsProgress>,
    views_thread: Mutex<Option<ViewsThread>>,
    // Held as long as the gateway is: dropped last.
    lock: Option<WorkspaceLock>,
}

/// How a workspace is opened, where it matters.
pub struct Opening {
    pub ledger: LedgerUrl,
    /// Decisions that may wait.
    pub waiting_max: usize,
    /// Who counts.
    pub observer: Option<Arc<dyn Observer>>,
    pub promotion: PromotionRules,
    /// How long a handoff waits for a person, at most, in seconds.
    pub approval_wait_s: i64,
    /// Does a changed policy set come into force with a person's yes only?
    pub asks_first: bool,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            ledger: LedgerUrl::Segments,
            waiting_max: limits::WAITING_DECISIONS_MAX,
            observer: None,
            promotion: PromotionRules::default(),
            approval_wait_s: limits::APPROVAL_WAIT_S,
            asks_first: false,
        }
    }
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opening({})", self.waiting_max)
    }
}

impl Gateway {
    /// Opens a workspace for decisions; `address` is told to whoever finds it locked.
    pub fn open(workspace: &Path, address: &str) -> Result<Self, GatewayFault> {
        Self::open_telling(workspace, address, Opening::default(), &mut |_, _| {})
    }

    /// The same; `tell` hears how many of the full segments have been read that have to be, and then how many entries of how
    /// many the views have caught up with.
    pub fn open_telling(
        workspace: &Path,
        address: &str,
        opening: Opening,
        tell: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GatewayFault> {
        let files = match opening.ledger {
            LedgerUrl::Memory => Files::volatile(workspace),
            LedgerUrl::Segments | LedgerUrl::Postgres(_) => Files::of(workspace),
        };
        files.make_directories()?;
        let lock = WorkspaceLock::take(&files.lock(), address).map_err(GatewayFault::Lock)?;
        files.clear_volatile()?;
        let mut opened = Self::open_held(&files, &opening, tell);
        if let Err(GatewayFault::DamagedViews { path, why }) = &opened {
            // Nothing was decided by them yet, and the ledger has all of it.
            views::give_up(path, why)?;
            opened = Self::open_held(&files, &opening, tell);
        }
        let mut gateway = opened?;
        gateway.lock = Some(lock);
        Ok(gateway)
    }

    /// Opens a workspace that nobody else can open meanwhile.
    fn open_held(
        files: &Files,
        opening: &Opening,
        tell: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GatewayFault> {
        if files.has_lost_its_key() {
            return Err(GatewayFault::LostKey(files.gateway_key()));
        }
        let was_served = files.trace_of_service().is_some();
        let seed = Arc::new(gateway_seed(&files.gateway_key())?);
        let Opened { log, source: ledger, last_timestamp, torn, remembered, epoch, seals } =
            opened::open(files, &opening.ledger, &seed, tell)?;
        let (topic_id, head, keeping) = (log.topic_id().to_owned(), log.head(), log.keeping());
        let behind =
            |sequence: u64| ledger.entries(sequence + 1, head.sequence).map_err(GatewayFault::Unread);

        let publisher = Publisher::new(files.state());
        let io = |why: std::io::Error| {
            let why = crate::policy::plain(&why);
            GatewayFault::StateUnusable { path: files.state(), why }
        };
        let text = publisher.read().map_err(io)?;
        let (view, last_snapshot) = snapshots::start_from(files, &ledger, &topic_id, &seed, text.as_deref())?;
        let entries = behind(view.head().sequence)?;
        let (view, published) = rebuild_from(view, entries, text.as_deref())
            .map_err(|fault| GatewayFault::Engine(EngineFault::BadLedger(fault.to_string())))?;
        if !matches!(published, Published::Missing | Published::Torn | Published::AsOf(_)) {
            return Err(GatewayFault::State { path: files.state(), published });
        }
        tell_of_state(files, head, &published);
        let state = StateFollower::start(view, publisher, ledger.clone()).map_err(io)?;
        let state_watch = state.watch();
        let hub = Hub::new(ledger.clone());
        let snapshots = || {
            let (path, seed) = (files.state_snapshot(), seed.clone());
            Snapshots::new(state_watch.clone(), &topic_id, last_snapshot, path, seed)
        };
        // Dropped after all that hands entries over to it: it ends then, and is waited for.
        let Following { thread, feed, progress } =
            follow(files, &ledger, &topic_id, head, snapshots(), tell)?;
        // Counted from the checkpoint and not from this start, so that being killed often does not put the next one off.
        let follower = Checkpointer::new(state, &topic_id, remembered, files.checkpoint(), seed.clone());
        let (seal_path, seal_seed) = (files.seals(), seed.clone());
        let kept_seals = seals.clone();
        let seals = seals::Keeping { seals, topic_id: topic_id.clone(), path: seal_path, seed: seal_seed };
        // Before anything is decided: a start that is killed soon does not have to read as much again.
        seals.write();
        let follower = SealKeeper::new(follower, seals);
        let follower = ViewsFollower { next: follower, feed, progress: progress.clone() };
        let follower = HubFollower { next: follower, hub: hub.clone() };
        let followed = FollowedFile { path: files.views(), progress: progress.clone() };
        let past = ViewsPast::new(Box::new(followed), ledger.clone(), &topic_id)
            .map_err(|fault| views::unusable(&files.views(), fault))?;
        let entries = behind(progress.applied())?;
        let mut setup = Setup::new(log, last_timestamp, Box::new(RealWorld::default()))
            .followed_by(Box::new(follower))
            .remembered_by(Box::new(past));
        setup.waiting_max = opening.waiting_max;
        setup.promotion = opening.promotion.clone();
        setup.approval_wait_s = opening.approval_wait_s;
        setup.asks_first = opening.asks_first;
        if let Some(observer) = &opening.observer {
            setup = setup.observed_by(observer.clone());
        }
        let entries = entries.map(|entry| entry.map_err(|fault| EngineFault::BadLedger(fault.to_string())));
        let engine = EngineHandle::start(setup, entries).map_err(|fault| match progress.damage() {
            Some(why) => GatewayFault::DamagedViews { path: files.views(), why },
            None => GatewayFault::Engine(fault),
        })?;
        if let Some(epoch) = backup::epoch_to_begin(files)? {
            engine.begin_epoch_and_wait(epoch).map_err(GatewayFault::Engine)?;
            backup::epoch_is_recorded(files)?;
        }
        if let Some(epoch) = epoch {
            // INVARIANT (a lost restriction fails closed): what took something away is forgotten with the rest, and nothing
            // passes until a person says that it was done again.
            let reason = format!(
                "entries after {} were given up, and with them freezes, revocations and whatever else people did there: do again \
                 what has to hold, then lift this",
                epoch.facts.restored_head
            );
            let freeze = FreezeAsk { scope: FreezeScope::ALL, reason };
            let by = Asking::token("ledger settle");
            engine.begin_frozen_epoch_and_wait(epoch.facts, freeze, by).map_err(GatewayFault::Engine)?;
            epoch.database.epoch_begun(&epoch.mark).map_err(GatewayFault::Database)?;
        }
        let sharing = Sharing::of(&ledger);
        if let Some(sharing) = &sharing {
            sharing.share_public_key(&seed.public_hex()).map_err(GatewayFault::Database)?;
        }
        let snapshots = snapshots();
        Ok(Self {
            engine,
            files: files.clone(),
            ledger,
            keeping,
            sharing,
            was_served,
            topic_id,
            seed,
            torn,
            seals: kept_seals,
            state: state_watch,
            snapshots,
            hub,
            views: progress,
            views_thread: Mutex::new(Some(thread)),
            lock: None,
        })
    }

    pub fn engine(&self) -> &EngineHandle {
        &self.engine
    }

    pub fn topic_id(&self) -> &str {
        &self.topic_id
    }

    /// The gateway's public key, 64 hex digits.
    pub fn public_key(&self) -> String {
        self.seed.public_hex()
    }

    /// The public keys of all gateways that append to the ledger; one that was added just now may be missing.
    pub fn public_keys(&self) -> Vec<String> {
        let mut keys = self.sharing.as_ref().map(Sharing::public_keys).unwrap_or_default();
        let own = self.public_key();
        if !keys.contains(&own) {
            keys.insert(0, own);
        }
        keys
    }

    /// What is shared with other gateways; nothing where there are none.
    pub fn sharing(&self) -> Option<&Sharing> {
        self.sharing.as_ref()
    }

    /// Had a gateway been served in this workspace before?
    pub fn was_served(&self) -> bool {
        self.was_served
    }

    /// Where the tokens are that let callers in.
    pub fn tokens(&self) -> TokenFiles {
        let files = TokenFiles::of(self.files.workspace());
        match &self.sharing {
            Some(sharing) => sharing.tokens(files, &self.public_key()),
            None => files,
        }
    }

    /// What a crash had left behind the last commit, if anything.
    pub fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    /// The published state.
    pub fn state(&self) -> &StateWatch {
        &self.state
    }

    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The ledger, to read it back. It may wait for a disk or a server.
    pub fn ledger(&self) -> &Source {
        &self.ledger
    }

    /// What becomes of the ledger.
    pub fn keeping(&self) -> Keeping {
        self.keeping
    }

    /// A listener that hears every entry from number `from` on.
    pub fn listen(&self, from: u64) -> Listener {
        let engine = self.engine.clone();
        self.hub.listen(from, move || engine.head())
    }

    /// A checkpoint of what is durable now, signed; nothing if the ledger is empty.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>, GatewayFault> {
        let last = self.engine.head();
        if last == 0 {
            return Ok(None);
        }
        let entry = self.ledger.committed(last).map_err(GatewayFault::Unread)?;
        let head = Head { sequence: entry.sequence, running_hash: entry.running_hash };
        Ok(Some(Checkpoint::sign(&self.topic_id, head, clock::now(), &self.seed)))
    }

    /// A checkpoint of what this process has taken in, whatever became of the ledger; nothing before the first entry.
    pub fn checkpoint_of_state(&self) -> Option<Checkpoint> {
        let head = self.state.head();
        (head.sequence > 0).then(|| Checkpoint::sign(&self.topic_id, head, clock::now(), &self.seed))
    }

    /// Drops the bodies of entries older than this, and says how many; the chain stays as it is.
    pub fn drop_bodies(&self, before: Timestamp) -> Result<u64, PurgeFault> {
        self.ledger.purge_bodies(before, PurgeMode::Drop).map(|purged| purged.bodies)
    }

    /// The gateway's own key, for receipts.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }

    /// The same, for those who sign beside the door.
    pub fn shared_seed(&self) -> Arc<Seed> {
        self.seed.clone()
    }

    /// How far the views have come.
    pub fn views(&self) -> &ViewsProgress {
        &self.views
    }

    /// Why nobody could open the views now, though they follow; nothing if anybody could.
    pub fn views_trouble(&self) -> Option<String> {
        views::trouble(&self.files.views(), &self.views).map(|trouble| trouble.to_string())
    }

    /// A connection for queries.
    pub fn reader(&self) -> Result<Reader, ViewsFault> {
        Reader::open(&self.files.views())
    }

    fn stop(&self) {
        self.engine.stop();
        // The writer has let go of its end of the line, so the thread ends when all is applied.
        let thread = self.views_thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(thread);
    }

    /// Decides what is in line, and leaves a checkpoint of the very end, and a snapshot to start from. The workspace
    /// stays locked until the gateway is dropped.
    pub fn finish(&self) -> Result<Option<Checkpoint>, GatewayFault> {
        self.stop();
        // What a panic left of the state is for nobody to start from. Without one the next start reads the ledger.
        if self.engine.ended().is_none() {
            let _ = self.snapshots.write();
        }
        let Some(checkpoint) = self.checkpoint()? else { return Ok(None) };
        checkpoints::write(&self.files.checkpoint(), &checkpoint)
            .map_err(|error| GatewayFault::Io { path: self.files.checkpoint(), why: error.to_string() })?;
        self.share_checkpoint();
        Ok(Some(checkpoint))
    }

    /// Leaves the newest checkpoint beside a ledger that is shared, too. Asks a server: not for whoever decides.
    pub fn share_checkpoint(&self) {
        let Some(sharing) = &self.sharing else { return };
        if let Ok(Some(checkpoint)) = read_checkpoint(&self.files.checkpoint()) {
            // One that could not be left is made up for by the next.
            let _ = sharing.keep_checkpoint(&checkpoint);
        }
    }

    /// The same, and gives the workspace back.
    pub fn close(self) -> Result<Option<Checkpoint>, GatewayFault> {
        self.finish()
    }
}

/// Nobody else may open the workspace while something is still being written.
impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Says that the state file is made again where there was one to lose: somebody cut it, or a power cut did.
fn tell_of_state(files: &Files, head: Head, published: &Published) {
    let is_there = |path: PathBuf| std::fs::symlink_metadata(path).is_ok();
    let what = match published {
        Published::Torn => "it ends in the middle",
        Published::Missing if is_there(files.state()) => "it holds nothing",
        // A workspace that was copied or restored, or is a new replica's, had none.
        Published::Missing if is_there(files.state_snapshot()) || is_there(files.views()) => "it is gone",
        _ => return,
    };
    if head.sequence > 0 {
        let file = files.state();
        tracing::warn!(file = %file.display(), what, "the state file is made again from the ledger");
    }
}

/// The gateway's own key, made at the first start.
fn gateway_seed(path: &Path) -> Result<Seed, GatewayFault> {
    use crate::os::files::{create_private, read_private};
    use crate::proof::Secret;
    let io = |error: std::io::Error| GatewayFault::Io { path: path.to_owned(), why: error.to_string() };
    match read_private(path, 4096) {
        Ok(bytes) => {
            let secret = Secret::from_file_bytes(bytes);
            Seed::from_secret(&secret).ok_or_else(|| GatewayFault::BadKey(path.to_owned()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let bytes = random::secret_bytes::<32>().map_err(io)?;
            let mut text = zeroize::Zeroizing::new(to_hex(bytes.as_slice()).into_bytes());
            text.push(b'\n');
            create_private(path, &text).map_err(io)?;
            Ok(Seed::from_bytes(&bytes))
        }
        Err(error) => Err(io(error)),
    }
}

/// The gateway's public key, for those who may read its private one.
pub fn public_key(files: &Files) -> Result<String, GatewayFault> {
    let path = files.gateway_key();
    if files.has_lost_its_key() {
        return Err(GatewayFault::LostKey(path));
    }
    if !path.is_file() {
        return Err(GatewayFault::NoKey(path));
    }
    gateway_seed(&path).map(|seed| seed.public_hex())
}

/// A name for a new ledger that no other has.
fn new_topic_id() -> Result<String, GatewayFault> {
    let bytes = random::secret_bytes::<8>()
        .map_err(|error| GatewayFault::Io { path: PathBuf::from("randomness"), why: error.to_string() })?;
    Ok(format!("gw_{}", to_hex(bytes.as_slice())))
}

#[cfg(test)]
mod tests;
