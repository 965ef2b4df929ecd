//! Who is to be told what, and how far that has come.
//!
//! Everything is in memory, within bounds, and on a [`Shelf`]: a document for each task when a config is set, deleted or
//! has ended, which is there for good before anybody is answered; and one document for how far telling has come, written
//! every so often. Whoever is cut off in between is told a few updates once more.
//!
//! Gateways that share a ledger share a [`SharedShelf`]. Then all that is shown comes from there, and in memory is what this
//! gateway tells, for as long as it is its own to tell (`shared_book.rs`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::owner::Owner;
use super::registration::{Delivery, Registration};
use super::shared::SharedShelf;
use super::shelf::{Kept, Shelf};
use super::stored;
use crate::a2a::TaskId;
use crate::ledger::postgres::PushTurn;
use crate::limits;
use crate::timestamp::Timestamp;

/// The configs of all tasks.
#[derive(Debug)]
pub struct Book {
    place: Place,
    pub(super) state: Mutex<State>,
    /// Documents are written one after the other: an older one never takes the place of a newer.
    writing: Mutex<()>,
}

/// Where configs are kept.
#[derive(Debug)]
enum Place {
    Own(Box<dyn Shelf>),
    Shared(SharedShelf),
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) tasks: HashMap<TaskId, Vec<Registration>>,
    /// Configs of which more is known than is written down.
    pub(super) ahead: HashSet<String>,
    /// How often it was written down.
    pub(super) kept: u64,
    /// What is shared and cannot be read.
    pub(super) broken: HashSet<String>,
}

/// Why a config is not set or deleted.
#[derive(Debug)]
pub enum BookFault {
    /// The task, the owner, or the gateway has as many as it may.
    Full(&'static str),
    Io(io::Error),
}

impl fmt::Display for BookFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(whose) => write!(f, "{whose} has as many push configs as it may have"),
            Self::Io(error) => write!(f, "push configs cannot be written: {error}"),
        }
    }
}

impl std::error::Error for BookFault {}

/// The document that says how far telling has come. No task has this id.
const PROGRESS: &str = "progress";

impl Book {
    /// Opens what is on the shelf. What cannot be read is named, and left where it is.
    pub fn open(shelf: Box<dyn Shelf>) -> io::Result<(Self, Vec<String>)> {
        let mut state = State::default();
        let mut progress: BTreeMap<String, u64> = BTreeMap::new();
        let mut broken = Vec::new();
        for Kept { name, document } in shelf.all()? {
            let document = document.ok();
            if name == PROGRESS {
                progress =
                    document.and_then(|document| serde_json::from_slice(&document).ok()).unwrap_or_default();
                continue;
            }
            match document.as_ref().and_then(|document| stored::read(document)) {
                Some((task, registrations)) if task.to_string() == name => {
                    state.tasks.insert(task, registrations);
                }
                _ => broken.push(name),
            }
        }
        for registration in state.tasks.values_mut().flatten() {
            let told = progress.get(&registration.push_id).copied().unwrap_or_default();
            registration.delivered = registration.delivered.max(told);
        }
        Ok((Self { place: Place::Own(shelf), state: Mutex::new(state), writing: Mutex::default() }, broken))
    }

    /// What gateways share. Nothing is told before it was looked at what there is, by [`Self::keep`].
    pub fn shared(shelf: SharedShelf) -> Self {
        Self { place: Place::Shared(shelf), state: Mutex::default(), writing: Mutex::default() }
    }

    /// Moves what a gateway had for itself to where it is shared.
    pub fn take_over(&self, own: &Self) -> io::Result<()> {
        let (Place::Shared(shared), Place::Own(files)) = (&self.place, &own.place) else { return Ok(()) };
        let tasks = std::mem::take(&mut lock(&own.state).tasks);
        for (task, registrations) in tasks {
            registrations.iter().try_for_each(|registration| shared.add(registration))?;
            files.remove(&task.to_string())?;
        }
        files.remove(PROGRESS)
    }

    /// Sets a config. One of the same owner and name gives way to it, and what that one was not told yet is told to it.
    /// Returns the one that gave way.
    pub fn set(&self, mut registration: Registration) -> Result<Option<Registration>, BookFault> {
        let _turn = lock(&self.writing);
        if let Place::Shared(shelf) = &self.place {
            return self.set_shared(shelf, registration);
        }
        let (task, push_id) = (registration.task.clone(), registration.push_id.clone());
        let (replaced, dropped) = {
            let mut state = lock(&self.state);
            let of_task = state.tasks.entry(task.clone()).or_default();
            let is_same = |known: &Registration| {
                known.config_id == registration.config_id && known.owner == registration.owner
            };
            let replaced = of_task.iter().position(is_same).map(|at| of_task.remove(at));
            let dropped = match &replaced {
                Some(known) => {
                    registration.delivered = registration.delivered.min(known.delivered);
                    Vec::new()
                }
                None => state.make_room(&registration)?,
            };
            state.tasks.entry(task.clone()).or_default().push(registration);
            (replaced, dropped)
        };
        if let Err(error) = self.write(&task) {
            self.undo(&task, &push_id, replaced);
            return Err(BookFault::Io(error));
        }
        for task in dropped {
            // One that stays behind ended long ago, and goes when it is next looked at.
            let _ = self.write(&task);
        }
        Ok(replaced)
    }

    /// Deletes a config, and returns it; nothing if its owner has none of that name.
    pub fn delete(
        &self,
        task: &TaskId,
        owner: &Owner,
        config_id: &str,
    ) -> Result<Option<Registration>, BookFault> {
        let _turn = lock(&self.writing);
        if let Place::Shared(shelf) = &self.place {
            let removed = shelf.remove(task, owner, config_id).map_err(BookFault::Io)?;
            removed.iter().for_each(|known| self.drop_one(&known.task, &known.push_id));
            return Ok(removed);
        }
        let taken = {
            let mut state = lock(&self.state);
            let Some(of_task) = state.tasks.get_mut(task) else { return Ok(None) };
            let at = of_task.iter().position(|known| known.config_id == config_id && known.owner == *owner);
            let Some(at) = at else { return Ok(None) };
            of_task.remove(at)
        };
        if let Err(error) = self.write(task) {
            lock(&self.state).tasks.entry(task.clone()).or_default().push(taken);
            return Err(BookFault::Io(error));
        }
        Ok(Some(taken))
    }

    /// The owner's config of that name; its first one if none is named.
    pub fn get(
        &self,
        task: &TaskId,
        owner: &Owner,
        config_id: Option<&str>,
    ) -> io::Result<Option<Registration>> {
        let named = |known: &Registration| config_id.is_none_or(|config_id| known.config_id == config_id);
        Ok(self.list(task, owner)?.into_iter().find(named))
    }

    /// The owner's configs of a task, in the order in which they were set.
    pub fn list(&self, task: &TaskId, owner: &Owner) -> io::Result<Vec<Registration>> {
        if let Place::Shared(shelf) = &self.place {
            return self.list_shared(shelf, task, owner);
        }
        let state = lock(&self.state);
        let of_task = state.tasks.get(task).into_iter().flatten();
        Ok(of_task.filter(|known| known.owner == *owner).cloned().collect())
    }

    /// Configs to which this gateway may still have to tell something.
    pub fn open_count(&self) -> usize {
        let state = lock(&self.state);
        state.tasks.values().flatten().filter(|known| known.delivery.is_open()).count()
    }

    /// Has anybody asked to be told about this task?
    pub(super) fn knows(&self, task: &TaskId) -> bool {
        lock(&self.state).tasks.contains_key(task)
    }

    /// May something still have to be told about this task?
    pub fn is_open(&self, task: &TaskId) -> bool {
        lock(&self.state).tasks.get(task).into_iter().flatten().any(|known| known.delivery.is_open())
    }

    /// Tasks of which something may still have to be told.
    pub(super) fn open_tasks(&self) -> Vec<TaskId> {
        let state = lock(&self.state);
        let is_open = |of_task: &[Registration]| of_task.iter().any(|known| known.delivery.is_open());
        state.tasks.iter().filter(|(_, of_task)| is_open(of_task)).map(|(task, _)| task.clone()).collect()
    }

    /// The configs of a task to which something may still have to be told.
    pub(super) fn open_of(&self, task: &TaskId) -> Vec<String> {
        let state = lock(&self.state);
        let of_task = state.tasks.get(task).into_iter().flatten();
        of_task.filter(|known| known.delivery.is_open()).map(|known| known.push_id.clone()).collect()
    }

    /// A config to which something may still have to be told.
    pub(super) fn open_one(&self, task: &TaskId, push_id: &str) -> Option<Registration> {
        let state = lock(&self.state);
        let mut of_task = state.tasks.get(task).into_iter().flatten();
        of_task.find(|known| known.push_id == push_id && known.delivery.is_open()).cloned()
    }

    /// Its receiver has taken the update of this number.
    pub(super) fn told(&self, task: &TaskId, push_id: &str, stream_seq: u64) {
        self.change(task, push_id, |known| {
            known.delivered = known.delivered.max(stream_seq);
            known.attempts += 1;
            known.delivery = Delivery::Active;
        });
    }

    /// Its receiver has not taken an update; there will be another try.
    pub(super) fn retrying(&self, task: &TaskId, push_id: &str, why: String, at: Timestamp) {
        self.change(task, push_id, |known| {
            known.attempts += 1;
            known.delivery = Delivery::Retrying { why, at };
        });
    }

    /// Nothing more is told to it. Returns it, if it was still open.
    pub(super) fn ended(&self, task: &TaskId, push_id: &str, how: Delivery) -> Option<Registration> {
        let _turn = lock(&self.writing);
        if let Place::Shared(shelf) = &self.place {
            return self.end_shared(shelf, task, push_id, how);
        }
        let mut ended = None;
        self.change(task, push_id, |known| {
            known.delivery = how;
            known.forget_secrets();
            ended = Some(known.clone());
        });
        // Should that fail, it is told once more after a restart.
        let _ = ended.as_ref().map(|_| self.write(task));
        ended
    }

    /// Writes down how far telling has come, and drops what ended long ago. Returns tasks that are this gateway's to tell
    /// from now on.
    pub fn keep(&self, now: Timestamp) -> io::Result<Vec<TaskId>> {
        let _turn = lock(&self.writing);
        match &self.place {
            Place::Own(shelf) => self.keep_own(&**shelf, now).map(|()| Vec::new()),
            Place::Shared(shelf) => self.keep_shared(shelf),
        }
    }

    /// Leaves it to others to go on.
    pub(super) fn let_go(&self) -> io::Result<()> {
        let _turn = lock(&self.writing);
        match &self.place {
            Place::Own(_) => Ok(()),
            Place::Shared(shelf) => shelf.let_go(),
        }
    }

    /// Is there anybody else who could tell?
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.place, Place::Shared(_))
    }

    /// May a config be told now? One that is not this gateway's any more is dropped.
    pub(super) fn turn(&self, task: &TaskId, push_id: &str) -> PushTurn {
        let Place::Shared(shelf) = &self.place else { return PushTurn::Yes };
        let turn = shelf.turn(push_id);
        if turn == PushTurn::No {
            self.drop_one(task, push_id);
        }
        turn
    }

    fn keep_own(&self, shelf: &dyn Shelf, now: Timestamp) -> io::Result<()> {
        let old = {
            let mut state = lock(&self.state);
            let before = now.plus_seconds(-limits::PUSH_ENDED_SHOWN_S);
            state.drop_ended(|at| at < before)
        };
        for task in old {
            self.write(&task)?;
        }
        let progress: BTreeMap<String, u64> = {
            let mut state = lock(&self.state);
            if std::mem::take(&mut state.ahead).is_empty() {
                return Ok(());
            }
            let open = state.tasks.values().flatten().filter(|known| known.delivery.is_open());
            open.map(|known| (known.push_id.clone(), known.delivered)).collect()
        };
        let document = serde_json::to_vec(&progress).map_err(io::Error::other)?;
        shelf.put(PROGRESS, &document).inspect_err(|_| lock(&self.state).ahead.extend(progress.into_keys()))
    }

    fn change(&self, task: &TaskId, push_id: &str, change: impl FnOnce(&mut Registration)) {
        let mut state = lock(&self.state);
        let mut of_task = state.tasks.get_mut(task).into_iter().flatten();
        if let Some(known) = of_task.find(|known| known.push_id == push_id && known.delivery.is_open()) {
            change(known);
            state.ahead.insert(push_id.to_owned());
        }
    }

    fn undo(&self, task: &TaskId, push_id: &str, replaced: Option<Registration>) {
        let mut state = lock(&self.state);
        let of_task = state.tasks.entry(task.clone()).or_default();
        of_task.retain(|known| known.push_id != push_id);
        of_task.extend(replaced);
        if of_task.is_empty() {
            state.tasks.remove(task);
        }
    }

    /// Writes the document of a task as it is now; a task without configs has none.
    fn write(&self, task: &TaskId) -> io::Result<()> {
        let document = {
            let mut state = lock(&self.state);
            if state.tasks.get(task).is_some_and(Vec::is_empty) {
                state.tasks.remove(task);
            }
            state.tasks.get(task).map(|of_task| stored::write(task, of_task))
        };
        match (&self.place, document) {
            (Place::Own(shelf), Some(document)) => shelf.put(&task.to_string(), &document),
            (Place::Own(shelf), None) => shelf.remove(&task.to_string()),
            (Place::Shared(_), _) => Ok(()),
        }
    }
}

impl State {
    /// Is there a place for one more? What ended first gives way; the tasks that it was of are returned.
    fn make_room(&mut self, registration: &Registration) -> Result<Vec<TaskId>, BookFault> {
        let of_task = self.tasks.get(&registration.task).map_or(0, Vec::len);
        if of_task >= limits::PUSH_CONFIGS_OF_TASK_MAX {
            return Err(BookFault::Full("this task"));
        }
        let all = || self.tasks.values().flatten();
        let is_open = |known: &&Registration| known.delivery.is_open();
        let owned = all().filter(is_open).filter(|known| known.owner == registration.owner).count();
        if owned >= limits::PUSH_CONFIGS_OF_OWNER_MAX {
            return Err(BookFault::Full("this caller"));
        }
        if all().filter(is_open).count() >= limits::PUSH_CONFIGS_MAX {
            return Err(BookFault::Full("this gateway"));
        }
        if all().count() < limits::PUSH_CONFIGS_MAX {
            return Ok(Vec::new());
        }
        let oldest = all().filter_map(|known| known.delivery.ended_at()).min();
        Ok(self.drop_ended(|at| Some(at) <= oldest))
    }

    /// Drops what ended at such a time, and says of which tasks.
    fn drop_ended(&mut self, is_old: impl Fn(Timestamp) -> bool) -> Vec<TaskId> {
        let mut touched = Vec::new();
        for (task, of_task) in &mut self.tasks {
            let before = of_task.len();
            of_task.retain(|known| !known.delivery.ended_at().is_some_and(&is_old));
            if of_task.len() < before {
                touched.push(task.clone());
            }
        }
        touched
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
