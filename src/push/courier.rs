//! Tells.
//!
//! One loop knows which configs are being served; each of those is a task of its own that reads what is to be told next,
//! sends it, and waits when its receiver does not take it. Only so many requests are under way at once, of all owners and
//! of each, so a receiver that is slow or gone holds up nobody else's; and whoever waits for the next try holds nothing but
//! its place. Updates are read again for every round: none is kept in memory for a receiver that does not take it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use hyper::StatusCode;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use super::book::{Book, BookFault};
use super::guard::{Guard, Target, Unfit};
use super::letter::{Letter, SIGNATURE_HEADER};
use super::owner::Owner;
use super::registration::{Delivery, Registration};
use super::telling::Telling;
use crate::a2a::TaskId;
use crate::ledger::postgres::PushTurn;
use crate::limits;
use crate::os::{clock, random};
use crate::proof::Seed;
use crate::timestamp::Timestamp;
use crate::web::{Client, Post, WebFault, next_span};

/// Where updates come from.
pub trait Updates: fmt::Debug + Send + Sync {
    /// What is told of a task to an owner from this number on, in order, at most so many.
    fn updates<'u>(
        &'u self,
        task: &'u TaskId,
        owner: &'u Owner,
        from: u64,
        count_max: usize,
    ) -> BoxFuture<'u, Result<Vec<Telling>, Unreadable>>;
}

/// Why there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The owner may not read the task any more, or nobody can.
    Gone,
    /// Not now; there is another try.
    Later,
}

/// Who hears how it goes.
pub trait Observer: fmt::Debug + Send + Sync {
    fn attempted(&self, attempt: &Attempt<'_>);

    /// Nothing more is told to this one.
    fn ended(&self, registration: &Registration);
}

/// One request to a receiver.
#[derive(Debug)]
pub struct Attempt<'a> {
    pub registration: &'a Registration,
    pub stream_seq: u64,
    pub outcome: Outcome,
    /// What the receiver answered, if it did.
    pub status: Option<u16>,
    pub began: Timestamp,
    pub took: Duration,
    /// The trace that the task began in, and what was sent along.
    pub trace: Option<(&'a str, &'a str)>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Delivered,
    /// Another answer than yes.
    Refused,
    TimedOut,
    Unreachable,
    /// The address may not be dialled (any more).
    Forbidden,
}

impl Outcome {
    pub const ALL: [Self; 5] =
        [Self::Delivered, Self::Refused, Self::TimedOut, Self::Unreachable, Self::Forbidden];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::Unreachable => "unreachable",
            Self::Forbidden => "forbidden",
        }
    }
}

/// How long is waited for what.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// For one request.
    pub timeout: Duration,
    /// How long one update is tried.
    pub retry: Duration,
    /// Between the first two tries; twice as long each time, up to the most.
    pub pause: Duration,
    pub pause_max: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(limits::PUSH_TIMEOUT_MS),
            retry: Duration::from_millis(limits::PUSH_RETRY_MS),
            pause: Duration::from_millis(limits::PUSH_PAUSE_MS),
            pause_max: Duration::from_millis(limits::PUSH_PAUSE_MS_MAX),
        }
    }
}

/// Tells clients about their tasks.
#[derive(Debug)]
pub struct Courier {
    book: Book,
    guard: Guard,
    client: Client,
    seed: Arc<Seed>,
    pace: Pace,
    /// Tasks of which there may be something to tell; at most those in the book.
    woken: Mutex<HashSet<TaskId>>,
    bell: Notify,
    /// Rung when somebody asks to be told.
    asked: Notify,
    at_once: Semaphore,
    reading: Semaphore,
    of_owners: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Whether how far it came could not be written down the last time: that is said once.
    is_stuck: AtomicBool,
}

/// What one round came to.
enum Round {
    /// There is nothing to tell, or nobody to be told.
    Idle,
    /// There may be more.
    More,
    /// An update was not taken; `moved` if one before it was.
    Failed { why: String, is_final: bool, moved: bool },
    /// What is to be told cannot be read; that is not the receiver's fault.
    NotNow,
}

impl Courier {
    pub fn new(book: Book, guard: Guard, client: Client, seed: Arc<Seed>, pace: Pace) -> Self {
        Self {
            book,
            guard,
            client,
            seed,
            pace,
            woken: Mutex::default(),
            bell: Notify::new(),
            asked: Notify::new(),
            at_once: Semaphore::new(limits::PUSH_AT_ONCE_MAX),
            reading: Semaphore::new(limits::PUSH_READS_AT_ONCE),
            of_owners: Mutex::default(),
            is_stuck: AtomicBool::new(false),
        }
    }

    pub fn book(&self) -> &Book {
        &self.book
    }

    /// May this address be told? Looks up where it leads; nothing is dialled.
    pub async fn admit(&self, url: &str) -> Result<(), Unfit> {
        let target = Target::parse(url)?;
        let admits = |address| self.guard.admits(&target, address);
        let found = self.client.look_up(target.address(), self.pace.timeout, admits).await;
        found.map(drop).map_err(|_| Unfit::Place)
    }

    /// Sets a config, and begins to tell. Returns the one that gave way to it. Waits for a disk or a server.
    pub fn set(&self, registration: Registration) -> Result<Option<Registration>, BookFault> {
        let task = registration.task.clone();
        let replaced = self.book.set(registration)?;
        self.asked.notify_one();
        self.wake(&task);
        Ok(replaced)
    }

    /// Returns when there is anybody to be told.
    pub async fn wanted(&self) {
        while self.book.open_count() == 0 {
            self.asked.notified().await;
        }
    }

    /// There may be something to tell about any task.
    pub fn wake_all(&self) {
        for task in self.book.open_tasks() {
            self.wake(&task);
        }
    }

    /// There may be something to tell about a task.
    pub fn wake(&self, task: &TaskId) {
        if self.book.knows(task) {
            lock(&self.woken).insert(task.clone());
            self.bell.notify_one();
        }
    }

    /// Tells until `stop` is ready. What is under way then is told again after the next start.
    pub async fn run(
        self: Arc<Self>,
        source: Arc<dyn Updates>,
        observer: Arc<dyn Observer>,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let mut serving: HashMap<String, bool> = HashMap::new();
        let mut rounds = JoinSet::new();
        let mut keeping = tokio::time::interval(Duration::from_millis(limits::PUSH_PROGRESS_MS));
        keeping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.wake_all();
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = self.bell.notified() => {
                    let woken = std::mem::take(&mut *lock(&self.woken));
                    for task in woken {
                        for push_id in self.book.open_of(&task) {
                            if let Some(again) = serving.get_mut(&push_id) {
                                *again = true;
                                continue;
                            }
                            serving.insert(push_id.clone(), false);
                            let (courier, source, observer) = (self.clone(), source.clone(), observer.clone());
                            let task = task.clone();
                            rounds.spawn(async move {
                                courier.serve(&task, &push_id, &*source, &*observer).await;
                                (task, push_id)
                            });
                        }
                    }
                }
                Some(ended) = rounds.join_next(), if !rounds.is_empty() => {
                    // Something came while it was at it: what it read may have been from before.
                    if let Ok((task, push_id)) = ended && serving.remove(&push_id) == Some(true) {
                        self.wake(&task);
                    }
                }
                _ = keeping.tick() => self.keep().await,
            }
        }
        rounds.shutdown().await;
        self.keep().await;
        let courier = self.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || courier.book.let_go()).await {
            tracing::warn!(%error, "other gateways tell webhooks in this one's place only after a while");
        }
    }

    async fn keep(self: &Arc<Self>) {
        let courier = self.clone();
        let kept = tokio::task::spawn_blocking(move || courier.book.keep(clock::now())).await;
        match kept {
            Ok(Ok(taken)) => {
                self.is_stuck.store(false, Ordering::Relaxed);
                if !taken.is_empty() {
                    self.asked.notify_one();
                }
                taken.iter().for_each(|task| self.wake(task));
            }
            Ok(Err(error)) if !self.is_stuck.swap(true, Ordering::Relaxed) => {
                tracing::error!(%error, "how far push notifications have come cannot be written down");
            }
            Ok(Err(_)) | Err(_) => {}
        }
    }

    /// May a config be told now? Always, where nobody else could.
    async fn turn(self: &Arc<Self>, task: &TaskId, push_id: &str) -> PushTurn {
        if !self.book.is_shared() {
            return PushTurn::Yes;
        }
        let Ok(_turn) = self.reading.acquire().await else { return PushTurn::Later };
        let (courier, task, push_id) = (self.clone(), task.clone(), push_id.to_owned());
        let asked = tokio::task::spawn_blocking(move || courier.book.turn(&task, &push_id)).await;
        asked.unwrap_or(PushTurn::Later)
    }

    /// Tells one config whatever there is to tell.
    async fn serve(
        self: &Arc<Self>,
        task: &TaskId,
        push_id: &str,
        source: &dyn Updates,
        observer: &dyn Observer,
    ) {
        let mut pause = self.pace.pause;
        let mut failing_since: Option<Instant> = None;
        loop {
            // On the heap, and gone when it is over: whoever waits for the next try holds none of what it took.
            match Box::pin(self.round(task, push_id, source, observer)).await {
                Round::Idle => return,
                Round::More => {
                    pause = self.pace.pause;
                    failing_since = None;
                    continue;
                }
                Round::Failed { why, is_final, moved } => {
                    if moved {
                        pause = self.pace.pause;
                        failing_since = None;
                    }
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    let at = clock::now();
                    if is_final || since.elapsed() >= self.pace.retry {
                        let how = Delivery::Failed { why, at };
                        return self.end(task, push_id, how, observer).await;
                    }
                    self.book.retrying(task, push_id, why, at);
                }
                Round::NotNow => {}
            }
            tokio::time::sleep(with_jitter(pause)).await;
            pause = (pause * 2).min(self.pace.pause_max);
        }
    }

    /// Reads what is next and sends it, while it is taken.
    async fn round(
        self: &Arc<Self>,
        task: &TaskId,
        push_id: &str,
        source: &dyn Updates,
        observer: &dyn Observer,
    ) -> Round {
        let Some(registration) = self.book.open_one(task, push_id) else { return Round::Idle };
        // The owner's own first: whoever waits for that takes nobody else's place.
        let of_owner = self.of_owner(&registration.owner);
        let Ok(_own_place) = of_owner.acquire().await else { return Round::Idle };
        let Ok(_place) = self.at_once.acquire().await else { return Round::Idle };
        let (owner, from) = (&registration.owner, registration.delivered + 1);
        let read = {
            let Ok(_turn) = self.reading.acquire().await else { return Round::Idle };
            source.updates(task, owner, from, limits::PUSH_UPDATES_AT_ONCE).await
        };
        let updates = match read {
            Ok(updates) if updates.is_empty() => return Round::Idle,
            Ok(updates) => updates,
            Err(Unreadable::Later) => return Round::NotNow,
            Err(Unreadable::Gone) => {
                let why = "who set it may not read the task any more".to_owned();
                return Round::Failed { why, is_final: true, moved: false };
            }
        };
        let mut moved = false;
        for telling in updates {
            // It may have been deleted, or set anew, while others were told.
            if self.book.open_one(task, push_id).is_none() {
                return Round::Idle;
            }
            match self.turn(task, push_id).await {
                PushTurn::Yes => {}
                PushTurn::Later => return Round::NotNow,
                PushTurn::No => return Round::Idle,
            }
            if let Err((why, is_final)) = self.tell(&registration, &telling, observer).await {
                return Round::Failed { why, is_final, moved };
            }
            moved = true;
            self.book.told(task, push_id, telling.stream_seq);
            if telling.is_final {
                self.end(task, push_id, Delivery::Done { at: clock::now() }, observer).await;
                return Round::Idle;
            }
        }
        Round::More
    }

    /// Sends one update; or says why it was not taken, and whether that is the last word.
    async fn tell(
        &self,
        registration: &Registration,
        telling: &Telling,
        observer: &dyn Observer,
    ) -> Result<(), (String, bool)> {
        let (began, since) = (clock::now(), Instant::now());
        let config = &registration.config;
        let traceparent = telling.traceparent.as_deref().and_then(next_span);
        let target = Target::parse(&config.url);
        let sent = match &target {
            // It could be parsed when it was set; the rules of a later version may be stricter.
            Err(_) => Err(WebFault::Forbidden),
            Ok(target) => {
                let letter = Letter::write(registration, telling, &self.seed, began);
                let mut post = Post {
                    address: target.address(),
                    headers: hyper::HeaderMap::new(),
                    body: letter.body,
                    timeout: self.pace.timeout,
                    answer_bytes_max: None,
                }
                .with("content-type", letter.content_type)
                .with("user-agent", concat!("handoffd/", env!("CARGO_PKG_VERSION")))
                .with(SIGNATURE_HEADER, &letter.signature);
                if let Some(traceparent) = &traceparent {
                    post = post.with("traceparent", traceparent);
                }
                if let Some(token) = &config.token {
                    post = post.with_secret("x-a2a-notification-token", token.expose());
                }
                if let (Some(scheme), Some(credentials)) = (&config.scheme, &config.credentials) {
                    let mut value = zeroize::Zeroizing::new(scheme.clone().into_bytes());
                    value.push(b' ');
                    value.extend_from_slice(credentials.expose());
                    post = post.with_secret("authorization", &value);
                }
                self.client.post(post, |address| self.guard.admits(target, address)).await
            }
        };
        let status = sent.as_ref().ok().map(|reply| reply.status);
        let (outcome, told) = judge(sent.map(|reply| reply.status));
        observer.attempted(&Attempt {
            registration,
            stream_seq: telling.stream_seq,
            outcome,
            status: status.map(|status| status.as_u16()),
            began,
            took: since.elapsed(),
            trace: telling.traceparent.as_deref().zip(traceparent.as_deref()),
        });
        told
    }

    async fn end(self: &Arc<Self>, task: &TaskId, push_id: &str, how: Delivery, observer: &dyn Observer) {
        let (courier, task, push_id) = (self.clone(), task.clone(), push_id.to_owned());
        let ended = tokio::task::spawn_blocking(move || courier.book.ended(&task, &push_id, how)).await;
        if let Ok(Some(registration)) = ended {
            if let Delivery::Failed { why, .. } = &registration.delivery {
                let (task, push_id) = (&registration.task, &registration.push_id);
                tracing::warn!(%task, push_id, why, "a push notification is given up");
            }
            observer.ended(&registration);
        }
    }

    fn of_owner(&self, owner: &Owner) -> Arc<Semaphore> {
        let mut of_owners = lock(&self.of_owners);
        // Whoever is not being told anything needs no place.
        of_owners.retain(|_, places| Arc::strong_count(places) > 1);
        let new = || Arc::new(Semaphore::new(limits::PUSH_AT_ONCE_OF_OWNER_MAX));
        of_owners.entry(owner.as_str().to_owned()).or_insert_with(new).clone()
    }
}

/// What an answer means. Only a receiver that says that it is gone for good is not asked again.
fn judge(sent: Result<StatusCode, WebFault>) -> (Outcome, Result<(), (String, bool)>) {
    match sent {
        Ok(status) if status.is_success() => (Outcome::Delivered, Ok(())),
        Ok(status) => {
            let why = match status.is_redirection() {
                true => format!("it answered {}, and redirects are not followed", status.as_u16()),
                false => format!("it answered {}", status.as_u16()),
            };
            (Outcome::Refused, Err((why, status == StatusCode::GONE)))
        }
        Err(fault) => {
            let outcome = match &fault {
                WebFault::TimedOut => Outcome::TimedOut,
                WebFault::Forbidden => Outcome::Forbidden,
                WebFault::NoSuchName
                | WebFault::Unreachable(_)
                | WebFault::Tls(_)
                | WebFault::Broken(_)
                | WebFault::TooLarge => Outcome::Unreachable,
            };
            (outcome, Err((fault.to_string(), false)))
        }
    }
}

/// Between half of it and all of it, so that those who failed together do not come back together.
fn with_jitter(pause: Duration) -> Duration {
    let byte = random::secret_bytes::<1>().map_or(255, |bytes| bytes.first().copied().unwrap_or(255));
    pause.mul_f64(0.5 + f64::from(byte) / 510.0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
