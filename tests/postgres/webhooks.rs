//! Push configs that gateways share: whoever is asked knows them, and each is told by one of them at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use handoffd::a2a::{TaskId, Version};
use handoffd::ledger::postgres::Database;
use handoffd::limits;
use handoffd::push::{Book, BookFault, FileShelf, Guard, SharedShelf};
use handoffd::web::Client;

use crate::TOPIC;
use crate::cluster::{Cluster, until};
use crate::receiver::{Answer, Received, Receiver};
use crate::stage::{Scene, Setting, Tasks, WHOLE, now, open_book, owner, pace, task};

const URL: &str = "https://hook.example/a";

/// The numbers of a whole life: the decision is not shown.
const ALL: [u64; 6] = [1, 3, 4, 5, 6, 7];

/// A database, and the gateways that share it.
struct Stage {
    cluster: Arc<Cluster>,
    database: String,
}

impl Stage {
    fn new() -> Self {
        let cluster = Cluster::shared();
        let database = cluster.database();
        Self { cluster, database }
    }

    fn book(&self, gateway: &str) -> Book {
        self.book_of(gateway, gateway)
    }

    /// The book of a gateway that has been started so often.
    fn book_of(&self, gateway: &str, session: &str) -> Book {
        let database = Database::open(&self.cluster.url(&self.database), TOPIC).unwrap();
        Book::shared(SharedShelf::open(database, gateway, session, pace().timeout).unwrap())
    }

    fn scene(&self, gateway: &str, tasks: &Arc<Tasks>) -> Scene {
        let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
        Scene::with(self.book(gateway), guard, Client::new(None).unwrap(), pace(), tasks.clone())
    }

    fn ask(&self, sql: &str) -> String {
        self.cluster.psql(&self.database, sql)
    }

    /// Lets as much time pass on the database's clock as a gateway may be silent for.
    fn outlast(&self, gateway: &str) {
        let sql = format!(
            "update handoffd_tellers set until = clock_timestamp() - interval '1 ms' where holder = '{gateway}'"
        );
        self.ask(&sql);
    }

    fn holder(&self) -> String {
        self.ask(
            "select string_agg(coalesce(holder, 'nobody'), ' ') from handoffd_push where ended_at is null",
        )
    }
}

fn number(received: &Received) -> u64 {
    received.json()["metadata"]["streamSeq"].as_u64().unwrap_or(1)
}

fn numbers(receiver: &Receiver) -> Vec<u64> {
    receiver.received().iter().map(number).collect()
}

/// How a config is shown to its owner.
fn shown(book: &Book, task: &TaskId) -> serde_json::Value {
    let found = book.get(task, &owner("router"), Some("c1")).unwrap().unwrap();
    found.to_json(Version::V1_0)["metadata"]["delivery"].clone()
}

#[test]
fn any_gateway_sets_shows_and_deletes_any_config() {
    let stage = Stage::new();
    let (one, other) = (stage.book("one"), stage.book("other"));
    let task = task(1);
    one.set(Setting { secrets: true, version: Version::V1_0, from: 5, ..Setting::default() }.of(&task, URL))
        .unwrap();
    other.set(Setting { config_id: "c2", ..Setting::default() }.of(&task, URL)).unwrap();
    other.set(Setting { owner: "sage", ..Setting::default() }.of(&task, URL)).unwrap();
    for book in [&one, &other] {
        let all = book.list(&task, &owner("router")).unwrap();
        let names: Vec<&str> = all.iter().map(|known| known.config_id.as_str()).collect();
        assert_eq!(names, ["c1", "c2"], "in the order in which they were set");
        assert!(book.get(&task, &owner("stranger"), None).unwrap().is_none());
        assert_eq!((all[0].delivered, all[0].version), (4, Version::V1_0));
    }
    // Set anew elsewhere it gives way, and what it was not told is told to the new one.
    let again = Setting { from: 9, ..Setting::default() }.of(&task, "https://hook.example/b");
    let mut again_elsewhere = again.clone();
    again_elsewhere.push_id.push_str("_again");
    let replaced = other.set(again_elsewhere).unwrap().unwrap();
    assert_eq!(replaced.config.url, URL);
    let found = one.get(&task, &owner("router"), Some("c1")).unwrap().unwrap();
    assert_eq!((found.config.url.as_str(), found.delivered), ("https://hook.example/b", 4));
    // Deleted anywhere it is gone everywhere, and only its owner deletes it.
    assert!(one.delete(&task, &owner("stranger"), "c1").unwrap().is_none());
    assert!(one.delete(&task, &owner("router"), "c1").unwrap().is_some());
    assert!(other.delete(&task, &owner("router"), "c1").unwrap().is_none());
    assert_eq!(other.list(&task, &owner("router")).unwrap().len(), 1);
    other.keep(now()).unwrap();
    assert_eq!(other.open_count(), 2, "it has noticed");
}

#[test]
fn there_are_as_many_configs_of_a_task_and_of_an_owner_as_one_gateway_would_have() {
    let stage = Stage::new();
    let (one, other) = (stage.book("one"), stage.book("other"));
    let names = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"];
    assert_eq!(names.len(), limits::PUSH_CONFIGS_OF_TASK_MAX);
    for (n, config_id) in names.into_iter().enumerate() {
        let book = if n % 2 == 0 { &one } else { &other };
        book.set(Setting { config_id, ..Setting::default() }.of(&task(1), URL)).unwrap();
    }
    let more = || Setting { config_id: "one more", ..Setting::default() };
    for book in [&one, &other] {
        let full = book.set(more().of(&task(1), URL)).unwrap_err();
        assert!(matches!(full, BookFault::Full("this task")), "{full}");
        book.set(more().of(&task(2), URL)).map(drop).unwrap();
        book.delete(&task(2), &owner("router"), "one more").unwrap().unwrap();
    }
    stage.ask(&format!(
        "insert into handoffd_push (push_id, task_id, owner, config_id, document, delivered) \
         select 'push_' || n, 'hs_' || n, 'router', 'c1', '{{}}', 0 from generate_series(1, {}) n",
        limits::PUSH_CONFIGS_OF_OWNER_MAX - names.len()
    ));
    let full = other.set(more().of(&task(2), URL)).unwrap_err();
    assert!(matches!(full, BookFault::Full("this caller")), "{full}");
    other.set(Setting { owner: "sage", ..Setting::default() }.of(&task(2), URL)).unwrap();
}

#[test]
fn one_gateway_tells_and_another_when_that_one_is_gone() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let (stage, tasks, receiver) = (Stage::new(), Arc::<Tasks>::default(), Receiver::willing());
    let (one, other) = (stage.scene("one", &tasks), stage.scene("other", &tasks));
    let task = task(1);
    one.set(Setting { secrets: true, ..Setting::default() }.of(&task, &receiver.url("/hook")));
    let play = |step: usize| {
        tasks.play(&task, &WHOLE[..step]);
        one.courier.wake(&task);
        other.courier.wake(&task);
    };
    play(4);
    until(|| receiver.received().len() == 3);
    // How it goes is seen from the other one, and who it is.
    until(|| shown(other.courier.book(), &task)["deliveredSeq"] == 4);
    assert_eq!((stage.holder().as_str(), other.courier.book().open_count()), ("one", 0));
    play(5);
    until(|| shown(other.courier.book(), &task)["deliveredSeq"] == 5);
    one.kill();
    tasks.play(&task, WHOLE);
    other.courier.wake(&task);
    assert_eq!(stage.holder(), "one", "it may only be slow");
    stage.outlast("one");
    until(|| shown(other.courier.book(), &task)["state"] == "done");
    assert_eq!(numbers(&receiver), ALL);
    for told in receiver.received() {
        assert_eq!(told.header("x-a2a-notification-token"), Some("hush-token"));
        assert_eq!(told.header("authorization"), Some("Bearer hush-credentials"));
    }
    assert_eq!(other.ears.ended(), [format!("psh_{task}_router_c1 done")]);
    // What is of no more use is gone from the table.
    let document = stage.ask("select document from handoffd_push");
    assert!(!document.contains("hush") && document.contains("ended"), "{document}");
    runtime.block_on(other.stop());
}

#[test]
fn a_gateway_that_stops_leaves_the_telling_to_others_at_once() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let (stage, tasks, receiver) = (Stage::new(), Arc::<Tasks>::default(), Receiver::willing());
    let (one, other) = (stage.scene("one", &tasks), stage.scene("other", &tasks));
    let task = task(1);
    one.set(Setting::default().of(&task, &receiver.url("/hook")));
    one.play(&task, &WHOLE[..4]);
    until(|| receiver.received().len() == 3);
    runtime.block_on(one.stop());
    assert_eq!(stage.ask("select count(*) from handoffd_tellers where holder = 'one'"), "0");
    until(|| stage.holder() == "other");
    other.play(&task, WHOLE);
    until(|| shown(other.courier.book(), &task)["state"] == "done");
    assert_eq!(numbers(&receiver), ALL, "nothing twice: it had written down how far it came");
    runtime.block_on(other.stop());
}

#[test]
fn a_gateway_that_was_asleep_does_not_tell_what_is_anothers_by_now() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let (stage, tasks, receiver) = (Stage::new(), Arc::<Tasks>::default(), Receiver::willing());
    let (sleeper, other) = (stage.book("sleeper"), stage.scene("other", &tasks));
    let task = task(1);
    sleeper.set(Setting::default().of(&task, &receiver.url("/hook"))).unwrap();
    stage.outlast("sleeper");
    until(|| stage.holder() == "other");
    other.play(&task, &WHOLE[..5]);
    until(|| receiver.received().len() == 4);
    // It wakes, believes that it has something to tell, and asks first.
    assert_eq!(sleeper.open_count(), 1);
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    let awake = Scene::with(sleeper, guard, Client::new(None).unwrap(), pace(), tasks.clone());
    awake.courier.wake(&task);
    until(|| awake.courier.book().open_count() == 0);
    other.play(&task, WHOLE);
    awake.courier.wake(&task);
    until(|| shown(other.courier.book(), &task)["state"] == "done");
    assert_eq!((numbers(&receiver), awake.ears.outcomes()), (ALL.to_vec(), Vec::new()));
    runtime.block_on(awake.stop());
    runtime.block_on(other.stop());
}

#[test]
fn a_receiver_that_does_not_take_it_is_seen_to_from_everywhere() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let willing = Arc::new(AtomicBool::new(false));
    let is_willing = willing.clone();
    let receiver = Receiver::start(move |_, _| {
        Answer::Status(if is_willing.load(Ordering::Acquire) { 204 } else { 503 })
    });
    let (stage, tasks) = (Stage::new(), Arc::<Tasks>::default());
    let (one, other) = (stage.scene("one", &tasks), stage.book("other"));
    let task = task(1);
    one.set(Setting::default().of(&task, &receiver.url("/hook")));
    one.play(&task, &WHOLE[..1]);
    until(|| shown(&other, &task)["state"] == "retrying");
    let seen = shown(&other, &task);
    assert_eq!((&seen["lastError"], &seen["deliveredSeq"]), (&"it answered 503".into(), &0.into()));
    assert!(seen["attempts"].as_u64().unwrap() > 0 && seen["at"].is_string(), "{seen}");
    willing.store(true, Ordering::Release);
    until(|| shown(&other, &task)["state"] == "active");
    assert_eq!(shown(&other, &task)["deliveredSeq"], 1);
    // Deleted elsewhere, it hears nothing more.
    other.delete(&task, &owner("router"), "c1").unwrap().unwrap();
    let heard = receiver.received().len();
    one.play(&task, WHOLE);
    until(|| one.courier.book().open_count() == 0);
    runtime.block_on(one.stop());
    assert_eq!(receiver.received().len(), heard);
}

#[test]
fn what_a_process_held_is_given_up_by_the_next_one_of_its_gateway() {
    let stage = Stage::new();
    let before = stage.book_of("one", "first");
    before.set(Setting::default().of(&task(1), URL)).unwrap();
    let after = stage.book_of("one", "second");
    assert_eq!(after.keep(now()).unwrap(), [task(1)]);
    assert_eq!((stage.holder().as_str(), after.open_count()), ("second", 1));
    assert!(after.keep(now()).unwrap().is_empty(), "what it has is nothing new");
    // Should the first one live, it finds out; nobody has both.
    before.keep(now()).unwrap();
    assert_eq!((before.open_count(), after.open_count()), (0, 1));
}

#[test]
fn what_a_gateway_had_alone_comes_along_when_it_shares_a_ledger() {
    let stage = Stage::new();
    let directory = tempfile::tempdir().unwrap();
    let own = open_book(directory.path());
    own.set(Setting { secrets: true, from: 4, ..Setting::default() }.of(&task(1), URL)).unwrap();
    own.set(Setting::default().of(&task(2), URL)).unwrap();
    let shared = stage.book("one");
    // One of the same name that is there already counts.
    let mut known = Setting::default().of(&task(2), "https://hook.example/known");
    known.push_id = "push_known".to_owned();
    shared.set(known).unwrap();
    shared.take_over(&own).unwrap();
    assert_eq!(std::fs::read_dir(directory.path().join("push")).unwrap().count(), 0);
    assert_eq!(shared.keep(now()).unwrap(), [task(1)]);
    let found = shared.get(&task(1), &owner("router"), Some("c1")).unwrap().unwrap();
    assert_eq!((found.config.url.as_str(), found.delivered), (URL, 3));
    assert!(found.config.token.is_some() && found.config.credentials.is_some());
    let kept = shared.get(&task(2), &owner("router"), Some("c1")).unwrap().unwrap();
    assert_eq!(kept.config.url, "https://hook.example/known");
    let (empty, _) = Book::open(Box::new(FileShelf::open(directory.path().join("push")).unwrap())).unwrap();
    assert_eq!(empty.open_count(), 0);
}

#[test]
fn what_ended_long_ago_goes_and_what_cannot_be_read_is_left_alone() {
    let stage = Stage::new();
    let book = stage.book("one");
    stage.ask(
        "insert into handoffd_push (push_id, task_id, owner, config_id, document, delivered, ended_at) values \
         ('push_old', 'hs_1', 'router', 'c1', '{}', 0, clock_timestamp() - interval '25 h'), \
         ('push_new', 'hs_2', 'router', 'c1', '{}', 0, clock_timestamp() - interval '23 h'), \
         ('push_bad', 'hs_3', 'router', 'c1', '{}', 0, null)",
    );
    assert!(book.keep(now()).unwrap().is_empty());
    assert!(book.keep(now()).unwrap().is_empty());
    assert_eq!(book.open_count(), 0);
    assert_eq!(
        stage.ask("select string_agg(push_id, ' ' order by push_id) from handoffd_push"),
        "push_bad push_new"
    );
}

#[test]
fn without_the_database_nothing_is_told_and_nothing_is_lost() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let cluster = Arc::new(Cluster::start());
    let database = cluster.database();
    let stage = Stage { cluster, database };
    let (tasks, receiver) = (Arc::<Tasks>::default(), Receiver::willing());
    let one = stage.scene("one", &tasks);
    let task = task(1);
    one.set(Setting::default().of(&task, &receiver.url("/hook")));
    one.play(&task, &WHOLE[..4]);
    until(|| receiver.received().len() == 3);
    stage.cluster.crash();
    one.play(&task, WHOLE);
    until(|| shown(one.courier.book(), &task)["state"] == "done");
    assert_eq!(numbers(&receiver), ALL);
    runtime.block_on(one.stop());
}
