//! What the courier works with in these tests: tasks that go on when the test says so, and names that lead where it says.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use handoffd::a2a::{Life, PushConfig, TaskId, Update, Version};
use handoffd::proof::{Secret, Seed};
use handoffd::push::{
    Attempt, Book, Courier, FileShelf, Guard, Observer, Outcome, Owner, Pace, Registration, Telling,
    Unreadable, Updates,
};
use handoffd::timestamp::Timestamp;
use handoffd::web::{Client, Names, SystemNames};
use handoffd::wire::{Contracts, Envelope, Kind};
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;

/// The life of a task that ends well: each of them is shown, but for the decision.
pub(super) const WHOLE: &[&str] = &[
    "task.created",
    "gate.decided",
    "task.available",
    "task.claimed",
    "task.started",
    "artifact.ready",
    "task.complete",
];

pub(super) fn task(n: usize) -> TaskId {
    TaskId::parse(&format!("hs_20260218_push_{n:04}")).unwrap()
}

pub(super) fn now() -> Timestamp {
    Timestamp::parse("2026-02-18T19:38:00Z").unwrap()
}

/// The updates of a task whose stream has these events.
pub(super) fn updates(task: &TaskId, kinds: &[&str]) -> Vec<Update> {
    let mut life = Life::new(Contracts::embedded());
    let mut updates = Vec::new();
    for (n, kind) in kinds.iter().enumerate() {
        let kind: Kind = kind.parse().unwrap();
        let file = format!("tests/fixtures/agent-wire/v1.1/{}.valid.json", kind.as_str().replace('.', "-"));
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let mut event: Json = serde_json::from_str(&text).unwrap();
        event["stream"]["stream_id"] = json!(format!("task:{task}:attempt:1"));
        event["stream"]["stream_seq"] = json!(n + 1);
        if kind == Kind::TaskCreated {
            event["payload"]["handoff_id"] = json!(task.to_string());
            event["extensions"] =
                json!({"handoffd.traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
        }
        let text = event.to_string();
        let envelope = Envelope::parse(&text).unwrap_or_else(|faults| panic!("{text}\n{faults:?}"));
        updates.extend(life.take(&envelope, None));
    }
    updates
}

/// Tasks, as far as the test has let them come.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    told: Mutex<HashMap<TaskId, Vec<Update>>>,
    /// Who may not read them any more.
    banned: Mutex<Vec<Owner>>,
    /// How often they could not be read.
    trouble: AtomicUsize,
}

impl Tasks {
    /// Lets a task come so far.
    pub(super) fn play(&self, task: &TaskId, kinds: &[&str]) {
        self.told.lock().unwrap().insert(task.clone(), updates(task, kinds));
    }

    pub(super) fn ban(&self, owner: &Owner) {
        self.banned.lock().unwrap().push(owner.clone());
    }

    pub(super) fn trouble(&self, times: usize) {
        self.trouble.store(times, Ordering::SeqCst);
    }
}

impl Updates for Tasks {
    fn updates<'u>(
        &'u self,
        task: &'u TaskId,
        owner: &'u Owner,
        from: u64,
        count_max: usize,
    ) -> BoxFuture<'u, Result<Vec<Telling>, Unreadable>> {
        Box::pin(async move {
            if self.banned.lock().unwrap().contains(owner) {
                return Err(Unreadable::Gone);
            }
            let left = self.trouble.load(Ordering::SeqCst);
            if left > 0 {
                self.trouble.store(left - 1, Ordering::SeqCst);
                return Err(Unreadable::Later);
            }
            let told = self.told.lock().unwrap();
            let of_task = told.get(task).into_iter().flatten();
            Ok(of_task
                .filter(|update| update.id() >= from)
                .take(count_max)
                .cloned()
                .map(Telling::from)
                .collect())
        })
    }
}

/// What was heard of it.
#[derive(Debug, Default)]
pub(super) struct Ears {
    outcomes: Mutex<Vec<Outcome>>,
    ended: Mutex<Vec<String>>,
}

impl Ears {
    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.lock().unwrap().clone()
    }

    pub(super) fn ended(&self) -> Vec<String> {
        self.ended.lock().unwrap().clone()
    }
}

impl Observer for Ears {
    fn attempted(&self, attempt: &Attempt<'_>) {
        let (parent, sent) = attempt.trace.unwrap();
        assert_eq!(parent.get(..36), sent.get(..36), "the same trace");
        assert_ne!(parent, sent, "another span");
        self.outcomes.lock().unwrap().push(attempt.outcome);
    }

    fn ended(&self, registration: &Registration) {
        let told = format!("{} {}", registration.push_id, registration.delivery.as_str());
        self.ended.lock().unwrap().push(told);
    }
}

/// Names that lead where the test says, the n-th time to the n-th place, and then to the last one.
#[derive(Debug, Default)]
pub(super) struct Signposts {
    places: HashMap<String, Vec<Vec<&'static str>>>,
    asked: Mutex<HashMap<String, usize>>,
}

impl Signposts {
    pub(super) fn lead(mut self, name: &str, places: &[&[&'static str]]) -> Self {
        self.places.insert(name.to_owned(), places.iter().map(|place| place.to_vec()).collect());
        self
    }
}

impl Names for Signposts {
    fn look_up<'n>(&'n self, host: &'n str, port: u16) -> BoxFuture<'n, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            let Some(places) = self.places.get(host) else {
                // Numbers in any spelling are the machine's to read; no name is asked for out there.
                let is_number =
                    host.starts_with(|c: char| c.is_ascii_digit() || c == ':') || host.contains(':');
                return match is_number || host.eq_ignore_ascii_case("localhost") {
                    true => SystemNames.look_up(host, port).await,
                    false => Err(io::Error::from(io::ErrorKind::NotFound)),
                };
            };
            let mut asked = self.asked.lock().unwrap();
            let times = asked.entry(host.to_owned()).or_default();
            let place = places.get(*times).or(places.last()).unwrap();
            *times += 1;
            Ok(place.iter().map(|address| SocketAddr::new(address.parse().unwrap(), port)).collect())
        })
    }
}

pub(super) fn owner(name: &str) -> Owner {
    Owner::named(name)
}

/// As a client would set it.
pub(super) struct Setting {
    pub(super) config_id: &'static str,
    pub(super) version: Version,
    pub(super) owner: &'static str,
    pub(super) secrets: bool,
    pub(super) from: u64,
}

impl Default for Setting {
    fn default() -> Self {
        Self { config_id: "c1", version: Version::V0_3, owner: "router", secrets: false, from: 1 }
    }
}

impl Setting {
    pub(super) fn of(self, task: &TaskId, url: &str) -> Registration {
        let secret = |text: &str| self.secrets.then(|| Secret::new(text.as_bytes().to_vec()));
        let config = PushConfig {
            id: Some(self.config_id.to_owned()),
            url: url.to_owned(),
            token: secret("hush-token"),
            scheme: self.secrets.then(|| "Bearer".to_owned()),
            credentials: secret("hush-credentials"),
        };
        let push_id = format!("psh_{task}_{}_{}", self.owner, self.config_id);
        Registration::new(push_id, task.clone(), config, self.version, owner(self.owner), now(), self.from)
    }
}

pub(super) fn open_book(directory: &Path) -> Book {
    let (book, broken) = Book::open(Box::new(FileShelf::open(directory.join("push")).unwrap())).unwrap();
    assert!(broken.is_empty(), "{broken:?}");
    book
}

pub(super) fn seed() -> Arc<Seed> {
    Arc::new(Seed::from_bytes(&[7; 32]))
}

/// Quick, so that tests are.
pub(super) fn pace() -> Pace {
    Pace {
        timeout: Duration::from_millis(400),
        retry: Duration::from_secs(20),
        pause: Duration::from_millis(5),
        pause_max: Duration::from_millis(20),
    }
}

/// A courier at work.
pub(super) struct Scene {
    pub(super) courier: Arc<Courier>,
    pub(super) tasks: Arc<Tasks>,
    pub(super) ears: Arc<Ears>,
    stop: Option<oneshot::Sender<()>>,
    running: tokio::task::JoinHandle<()>,
}

impl Scene {
    pub(super) fn local(directory: &Path) -> Self {
        let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
        Self::with(open_book(directory), guard, Client::new(None).unwrap(), pace(), Arc::default())
    }

    pub(super) fn with(book: Book, guard: Guard, client: Client, pace: Pace, tasks: Arc<Tasks>) -> Self {
        let courier = Arc::new(Courier::new(book, guard, client, seed(), pace));
        let ears = Arc::new(Ears::default());
        let (stop, stopped) = oneshot::channel();
        let run = courier.clone().run(tasks.clone(), ears.clone(), async move { drop(stopped.await) });
        Self { courier, tasks, ears, stop: Some(stop), running: tokio::spawn(run) }
    }

    pub(super) fn set(&self, registration: Registration) {
        self.courier.set(registration).unwrap();
    }

    /// Lets a task come so far, and says so.
    pub(super) fn play(&self, task: &TaskId, kinds: &[&str]) {
        self.tasks.play(task, kinds);
        self.courier.wake(task);
    }

    /// The state of a config, as its owner is shown it.
    pub(super) fn state(&self, task: &TaskId, config_id: &str) -> String {
        let found = self.courier.book().get(task, &owner("router"), Some(config_id)).unwrap().unwrap();
        let shown = found.to_json(Version::V1_0);
        shown["metadata"]["delivery"]["state"].as_str().unwrap().to_owned()
    }

    /// Ends it in the middle of whatever it does, as a crash would.
    #[allow(dead_code, reason = "two test programs share it, and one of them needs this")]
    pub(super) fn kill(self) {
        self.running.abort();
    }

    pub(super) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.running.await.unwrap();
    }
}

/// Asks again and again until there is an answer; a test that waits in vain fails.
pub(super) async fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
