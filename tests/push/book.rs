//! Configs as they are kept: whose they are, how many there may be, and what of them outlives a restart.

use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use handoffd::a2a::Version;
use handoffd::limits;
use handoffd::push::{Book, BookFault, FileShelf, Registration};

use super::stage::{Setting, open_book, owner, task};

const URL: &str = "https://hook.example/a";

#[test]
fn a_config_is_its_owners_and_no_one_elses() {
    let directory = tempfile::tempdir().unwrap();
    let book = open_book(directory.path());
    let (task, other_task) = (task(1), task(2));
    book.set(Setting::default().of(&task, URL)).unwrap();
    book.set(Setting { config_id: "c2", ..Setting::default() }.of(&task, URL)).unwrap();
    book.set(Setting { owner: "other", ..Setting::default() }.of(&task, "https://other.example")).unwrap();

    let names = |of: &str| -> Vec<String> {
        book.list(&task, &owner(of))
            .unwrap()
            .iter()
            .map(|known| format!("{} {}", known.config_id, known.config.url))
            .collect()
    };
    assert_eq!(names("router"), ["c1 https://hook.example/a", "c2 https://hook.example/a"]);
    assert_eq!(names("other"), ["c1 https://other.example"]);
    assert!(names("stranger").is_empty());
    assert!(book.list(&other_task, &owner("router")).unwrap().is_empty());

    assert!(book.get(&task, &owner("stranger"), Some("c1")).unwrap().is_none());
    assert!(book.get(&task, &owner("other"), Some("c2")).unwrap().is_none());
    assert_eq!(book.get(&task, &owner("router"), None).unwrap().unwrap().config_id, "c1");

    assert!(book.delete(&task, &owner("stranger"), "c1").unwrap().is_none());
    assert!(book.delete(&task, &owner("other"), "c1").unwrap().is_some());
    assert!(book.delete(&task, &owner("other"), "c1").unwrap().is_none());
    assert_eq!(names("router").len(), 2);
}

#[test]
fn what_is_set_is_there_after_a_restart_and_what_is_deleted_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let book = open_book(directory.path());
    let setting = Setting { secrets: true, version: Version::V1_0, from: 5, ..Setting::default() };
    book.set(setting.of(&task(1), URL)).unwrap();
    book.set(Setting::default().of(&task(2), URL)).unwrap();
    book.delete(&task(2), &owner("router"), "c1").unwrap().unwrap();
    drop(book);

    let file = directory.path().join("push/hs_20260218_push_0001.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!directory.path().join("push/hs_20260218_push_0002.json").exists());

    let book = open_book(directory.path());
    let found = book.get(&task(1), &owner("router"), Some("c1")).unwrap().unwrap();
    assert_eq!((found.version, found.delivered, found.config.url.as_str()), (Version::V1_0, 4, URL));
    assert!(found.config.token.is_some() && found.config.credentials.is_some());
    assert!(book.list(&task(2), &owner("router")).unwrap().is_empty());
}

#[test]
fn a_document_that_cannot_be_read_is_named_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let book = open_book(directory.path());
    for n in 1..=3 {
        book.set(Setting::default().of(&task(n), URL)).unwrap();
    }
    drop(book);
    let path = |name: &str| directory.path().join("push").join(name);
    // One is cut off, and one has the name of another.
    let text = std::fs::read(path("hs_20260218_push_0001.json")).unwrap();
    let file = std::fs::File::options().write(true).open(path("hs_20260218_push_0001.json")).unwrap();
    file.set_len(text.len() as u64 / 2).unwrap();
    std::fs::copy(path("hs_20260218_push_0002.json"), path("hs_20260218_push_0009.json")).unwrap();
    // What a crash leaves of a write is no document.
    std::fs::copy(path("hs_20260218_push_0002.json"), path("hs_20260218_push_0002.new")).unwrap();

    let shelf = FileShelf::open(directory.path().join("push")).unwrap();
    let (book, broken) = Book::open(Box::new(shelf)).unwrap();
    assert_eq!(broken, ["hs_20260218_push_0001", "hs_20260218_push_0009"]);
    assert_eq!(book.open_count(), 2);
    assert!(path("hs_20260218_push_0001.json").exists());
}

#[test]
fn a_task_has_so_many_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let book = open_book(directory.path());
    let names: Vec<&'static str> =
        (0..=limits::PUSH_CONFIGS_OF_TASK_MAX).map(|n| &*format!("c{n}").leak()).collect();
    for config_id in &names[..limits::PUSH_CONFIGS_OF_TASK_MAX] {
        book.set(Setting { config_id, ..Setting::default() }.of(&task(1), URL)).unwrap();
    }
    let last = names[limits::PUSH_CONFIGS_OF_TASK_MAX];
    let refused = book.set(Setting { config_id: last, ..Setting::default() }.of(&task(1), URL));
    assert!(matches!(refused, Err(BookFault::Full("this task"))), "{refused:?}");
    // One that is there can be set again.
    book.set(Setting { config_id: "c3", ..Setting::default() }.of(&task(1), "https://new.example")).unwrap();
    assert_eq!(book.list(&task(1), &owner("router")).unwrap().len(), limits::PUSH_CONFIGS_OF_TASK_MAX);
}

/// Fills a directory with so many tasks of ten configs each, without waiting for the disk each time.
fn fill(directory: &Path, tasks: usize, owner_of: impl Fn(usize) -> String, end_first: bool) {
    let book = open_book(directory);
    let names: Vec<&'static str> =
        (0..limits::PUSH_CONFIGS_OF_TASK_MAX).map(|n| &*format!("c{n}").leak()).collect();
    for config_id in names {
        book.set(Setting { config_id, ..Setting::default() }.of(&task(0), URL)).unwrap();
    }
    let first = directory.join("push").join(format!("{}.json", task(0)));
    let text = std::fs::read_to_string(&first).unwrap();
    std::fs::remove_file(&first).unwrap();
    for n in 0..tasks {
        let mut text = text.replace(&task(0).to_string(), &task(n).to_string());
        text = text.replace("\"router\"", &format!("\"{}\"", owner_of(n)));
        if end_first && n == 0 {
            // One of its ten has ended.
            text = text.replacen(
                "\"delivered\":0",
                "\"delivered\":7,\"ended\":{\"at\":\"2026-02-18T19:38:00Z\"}",
                1,
            );
        }
        let path = directory.join("push").join(format!("{}.json", task(n)));
        let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

#[test]
fn an_owner_has_so_many_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path(), limits::PUSH_CONFIGS_OF_OWNER_MAX / 10, |_| "router".to_owned(), false);
    let book = open_book(directory.path());
    assert_eq!(book.open_count(), limits::PUSH_CONFIGS_OF_OWNER_MAX);
    let refused = book.set(Setting::default().of(&task(9_000), URL));
    assert!(matches!(refused, Err(BookFault::Full("this caller"))), "{refused:?}");
    assert!(book.list(&task(9_000), &owner("router")).unwrap().is_empty());
    book.set(Setting { owner: "other", ..Setting::default() }.of(&task(9_000), URL)).unwrap();
    // One that is deleted makes room.
    book.delete(&task(1), &owner("router"), "c1").unwrap().unwrap();
    book.set(Setting::default().of(&task(9_000), URL)).unwrap();
}

#[test]
fn all_together_have_so_many_and_what_has_ended_gives_way() {
    for end_first in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let tasks = limits::PUSH_CONFIGS_MAX / 10;
        fill(directory.path(), tasks, |n| format!("router-{}", n % 8), end_first);
        let book = open_book(directory.path());
        let set = book.set(Setting::default().of(&task(9_000), URL));
        assert_eq!(set.is_ok(), end_first, "{set:?}");
        let of_first = book.list(&task(0), &owner("router-0")).unwrap().len();
        assert_eq!(of_first, if end_first { 9 } else { 10 });
        if !end_first {
            assert!(matches!(set, Err(BookFault::Full("this gateway"))));
        }
    }
}

#[test]
fn a_text_that_no_header_can_carry_is_refused() {
    let check = |change: &dyn Fn(&mut Registration), expected: Result<(), &'static str>| {
        let mut registration = Setting { secrets: true, ..Setting::default() }.of(&task(1), URL);
        change(&mut registration);
        assert_eq!(Registration::check_headers(&registration.config), expected);
    };
    let secret = |text: &str| Some(handoffd::proof::Secret::new(text.as_bytes().to_vec()));
    check(&|_| {}, Ok(()));
    check(&|one| one.config.token = secret("a\r\nX-Other: b"), Err("token"));
    check(&|one| one.config.token = secret("ü"), Err("token"));
    check(&|one| one.config.credentials = secret("a\nb"), Err("authentication"));
    check(&|one| one.config.credentials = secret(&"a".repeat(5_000)), Err("authentication"));
    check(&|one| one.config.scheme = Some("Bearer x".to_owned()), Err("authentication"));
}
