//! The file: how it fills, what is noticed when it is opened, and who waits for whom.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use proptest::prelude::*;

use super::super::*;
use super::history::*;
use super::{Place, TOPIC, dump, holding};

fn some_history() -> History {
    let submission = |handoff, decision| {
        Step::Submit(Submission {
            handoff,
            source: Some(0),
            target: 1,
            route: Some(0),
            correlation: handoff,
            key: Some(handoff),
            message: None,
            parent: None,
            decision,
            codes: Vec::new(),
        })
    };
    let steps: Vec<Step> = (0..200).map(|n| submission(n, DECISIONS[usize::from(n) % 4])).collect();
    History::of(&steps)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_batching_gives_the_same_tables(
        steps in steps(),
        batches in prop::collection::vec(1..9usize, 1..6),
        reopen in any::<bool>(),
    ) {
        let history = History::of(&steps);
        let (one, many, rebuilt) = (Place::new(), Place::new(), Place::new());
        let at_once = holding(&one.path, &history.entries);
        let mut piecewise = holding(&many.path, &[]);
        let mut left = history.entries.as_slice();
        for batch in batches.iter().cycle() {
            let (now, later) = left.split_at(left.len().min(*batch));
            piecewise.apply(now.to_vec()).unwrap();
            left = later;
            if left.is_empty() {
                break;
            }
            if reopen {
                drop(piecewise);
                piecewise = Views::open(&many.path, TOPIC).unwrap();
            }
        }
        let again = Views::rebuild(&rebuilt.path, TOPIC, history.entries.clone()).unwrap();
        let last = history.entries.last().map(|entry| (entry.sequence, entry.running_hash.to_string()));
        for views in [&at_once, &piecewise, &again] {
            assert_eq!(views.applied(), last);
            assert_eq!(dump(&views.connection), dump(&at_once.connection));
        }
    }
}

#[test]
fn only_the_next_entry_is_applied_and_a_refused_batch_leaves_nothing_behind() {
    let (place, history) = (Place::new(), some_history());
    let entries = &history.entries;
    let mut views = holding(&place.path, &entries[..10]);
    let before = dump(&views.connection);
    let mut check = |batch: &[usize], expected: u64, found: u64| {
        let batch: Vec<Entry> = batch.iter().map(|n| entries[*n].clone()).collect();
        let fault = views.apply(batch).unwrap_err();
        assert!(
            matches!(fault, ViewsFault::OutOfOrder { expected: e, found: f } if (e, f) == (expected, found)),
            "{fault}"
        );
        assert_eq!(dump(&views.connection), before);
    };
    check(&[11], 11, 12);
    check(&[9], 11, 10);
    check(&[0], 11, 1);
    check(&[10, 11, 11], 13, 12);
    check(&[10, 11, 12, 50], 14, 51);
    for (wire, time) in [
        ("{}", "2026-02-18T19:38:00Z"),
        ("no JSON", "2026-02-18T19:38:00Z"),
        (entries[10].wire.as_str(), "yesterday"),
        (entries[10].wire.as_str(), "9999-02-18T19:38:00Z"),
    ] {
        let bad =
            Entry { wire: wire.to_owned(), consensus_timestamp: time.to_owned(), ..entries[10].clone() };
        let fault = views.apply([bad]).unwrap_err();
        assert!(matches!(fault, ViewsFault::BadEntry { sequence: 11, .. }), "{fault}");
    }
    assert_eq!(dump(&views.connection), before);
    // And then it goes on as if nothing had happened.
    views.apply(entries[10..].to_vec()).unwrap();
    let place = Place::new();
    assert_eq!(dump(&views.connection), dump(&holding(&place.path, entries).connection));
}

#[expect(clippy::disallowed_methods, reason = "a test damages files")]
fn overwrite(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_file_that_is_of_no_use_is_noticed_and_can_be_made_anew() {
    let history = some_history();
    let check = |name: &str, spoil: &dyn Fn(&Path), expected: &str| {
        let place = Place::new();
        drop(holding(&place.path, &history.entries));
        assert!(Views::open(&place.path, TOPIC).unwrap().applied().is_some());
        spoil(&place.path);
        let fault = Views::open(&place.path, TOPIC).unwrap_err();
        assert!(matches!(fault, ViewsFault::NeedsRebuild(_)), "{name}: {fault}");
        assert!(fault.to_string().contains(expected), "{name}: {fault}");
        let views = Views::recreate(&place.path, TOPIC).unwrap();
        assert_eq!(views.applied(), None);
        drop(views);
        let views = Views::rebuild(&place.path, TOPIC, history.entries.clone()).unwrap();
        assert_eq!(views.applied().map(|(sequence, _)| sequence), Some(history.entries.len() as u64));
    };
    let bytes = |path: &Path| fs::read(path).unwrap();
    let sql = |path: &Path, sql: &str| Connection::open(path).unwrap().execute_batch(sql).unwrap();
    check(
        "another file",
        &|path| overwrite(path, &b"not a database, but long enough".repeat(200)),
        "damaged",
    );
    check("its beginning is gone", &|path| overwrite(path, &bytes(path)[100..]), "damaged");
    check("its end is gone", &|path| overwrite(path, &bytes(path)[..bytes(path).len() / 2]), "damaged");
    check("nearly all is gone", &|path| overwrite(path, &bytes(path)[..4096]), "damaged");
    check(
        "no table is readable",
        &|path| overwrite(path, &[&bytes(path)[..100], &vec![0xff; bytes(path).len() - 100]].concat()),
        "damaged",
    );
    check("no row", &|path| sql(path, "DELETE FROM applied"), "damaged");
    check("no table", &|path| sql(path, "DROP TABLE entries"), "damaged");
    check("an index is gone", &|path| sql(path, "DROP INDEX handoffs_by_route"), "changed its tables");
    check("another table", &|path| sql(path, "CREATE TABLE mine (x)"), "changed its tables");
    check("ahead of itself", &|path| sql(path, "UPDATE applied SET sequence = sequence + 1"), "damaged");
    check("behind itself", &|path| sql(path, "DELETE FROM entries WHERE sequence > 9"), "damaged");
    check("of another program", &|path| sql(path, "PRAGMA application_id = 7"), "another program");
    check("newer", &|path| sql(path, "PRAGMA user_version = 99"), "of version 99, newer than 8");
    check("of another ledger", &|path| sql(path, "UPDATE applied SET topic_id = 'gw_x'"), "`gw_x`");
    check(
        "before it was kept whom entries concern",
        &|path| {
            sql(
                path,
                &format!(
                    "{WITHOUT_CLAIMS} {WITHOUT_REACH} DROP TABLE runs; DROP TABLE acts; PRAGMA user_version = 4"
                ),
            )
        },
        "not come to its end",
    );
    check(
        "before the text of acts was kept",
        &|path| {
            sql(path, &format!("{WITHOUT_CLAIMS} {WITHOUT_REACH} DROP TABLE acts; PRAGMA user_version = 5"))
        },
        "not come to its end",
    );
    check(
        "before it was kept who may do the work",
        &|path| sql(path, &format!("{WITHOUT_CLAIMS} {WITHOUT_REACH} PRAGMA user_version = 6")),
        "not come to its end",
    );
    check(
        "before claims were summed up",
        &|path| sql(path, &format!("{WITHOUT_CLAIMS} PRAGMA user_version = 7")),
        "not come to its end",
    );
    check("unfinished", &|path| sql(path, "UPDATE applied SET rebuilding = 1"), "not come to its end");
}

#[test]
fn a_missing_or_empty_file_is_made() {
    let place = Place::new();
    assert!(Reader::open(&place.path).is_err(), "a reader makes none");
    let views = Views::open(&place.path, TOPIC).unwrap();
    assert_eq!(views.applied(), None);
    for file in [place.path.clone(), place.path.with_extension("db-wal")] {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    drop(views);
    drop(Reader::open(&place.path).unwrap());
    let place = Place::new();
    overwrite(&place.path, b"");
    assert_eq!(Views::open(&place.path, TOPIC).unwrap().applied(), None);
    let nowhere = place.path.join("nowhere");
    assert!(matches!(Views::open(&nowhere, TOPIC), Err(ViewsFault::Store(_))));
}

#[test]
fn a_rebuild_that_was_cut_short_is_noticed_and_nobody_reads_it_meanwhile() {
    let (place, history) = (Place::new(), some_history());
    let unfinished = |fault: ViewsFault| {
        assert!(matches!(fault, ViewsFault::NeedsRebuild(Rebuild::Unfinished)), "{fault}");
    };
    let asked = std::cell::Cell::new(false);
    let entries = history.entries.iter().filter(|entry| entry.sequence != 500).cloned().inspect(|entry| {
        if entry.sequence == 400 {
            unfinished(Reader::open(&place.path).unwrap_err());
            asked.set(true);
        }
    });
    let fault = Views::rebuild(&place.path, TOPIC, entries).unwrap_err();
    assert!(matches!(fault, ViewsFault::OutOfOrder { expected: 500, found: 501 }), "{fault}");
    assert!(asked.get());
    // What was made of it is of no use to anybody, and gives its room back.
    assert!(!place.path.exists() && !place.path.with_extension("db-wal").exists());
    drop(Views::rebuild(&place.path, TOPIC, history.entries).unwrap());
    assert!(Reader::open(&place.path).is_ok());
}

/// What has not been put into it yet would read as what never was.
#[test]
fn nobody_reads_a_file_that_is_about_to_be_filled() {
    let place = Place::new();
    let begun = Views::begin_anew(&place.path, TOPIC).unwrap();
    let fault = Reader::open(&place.path).unwrap_err();
    assert!(matches!(fault, ViewsFault::NeedsRebuild(Rebuild::Unfinished)), "{fault}");
    assert_eq!(begun.applied(), None);
}

#[test]
fn readers_do_not_block_the_writer_and_never_see_half_a_batch() {
    let (place, history) = (Place::new(), some_history());
    let mut views = holding(&place.path, &history.entries[..300]);
    // Whoever had to wait would fail at once.
    views.connection.busy_timeout(Duration::ZERO).unwrap();
    let readers: Vec<Reader> = (0..8).map(|_| Reader::open(&place.path).unwrap()).collect();
    let count = |reader: &Reader| -> u64 {
        reader.connection().query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).unwrap()
    };
    let moments: Vec<_> = readers
        .iter()
        .map(|reader| {
            let moment = reader.connection().unchecked_transaction().unwrap();
            assert_eq!(count(reader), 300);
            moment
        })
        .collect();
    let mut asked = 0;
    let entries = history.entries[300..].iter().cloned().inspect(|entry| {
        // In the middle of the writer's transaction: the reader goes on, and sees nothing of it.
        if entry.sequence % 50 == 0 {
            let reader = Reader::open(&place.path).unwrap();
            let page = reader.entries(&EntryFilter::default(), None, 1).unwrap();
            assert_eq!(page.rows[0].sequence, 300);
            asked += 1;
        }
    });
    views.apply(entries).unwrap();
    assert!(asked > 0);
    assert!(readers.iter().all(|reader| count(reader) == 300), "each answer is of one moment");
    drop(moments);
    assert!(readers.iter().all(|reader| count(reader) == history.entries.len() as u64));
    assert!(readers[0].connection().execute("DELETE FROM entries", []).is_err(), "a reader cannot write");
}

/// What a file of a version before 8 lacks.
const WITHOUT_CLAIMS: &str = "ALTER TABLE applied DROP COLUMN claims;";

/// What a file of a version before 7 lacks.
const WITHOUT_REACH: &str =
    "ALTER TABLE attempts DROP COLUMN delegated; ALTER TABLE attempts DROP COLUMN fallback;";

/// Names the file that a second process of the test below is to hold.
const HELD: &str = "HANDOFFD_TEST_VIEWS_HELD";

/// Deleting or emptying the file alone is enough to have it made again, whoever still reads what it was. Such a reader
/// keeps the index of the journal alive, and it speaks of a journal that is no more.
#[test]
fn whoever_still_reads_a_file_that_is_gone_does_not_spoil_the_next_one() {
    if let Some(path) = std::env::var_os(HELD) {
        let reader = Reader::open(Path::new(&path)).unwrap();
        assert!(reader.entry(1).unwrap().is_some());
        writeln!(std::io::stdout(), "held").unwrap();
        // Until the first process is done, and closes its end.
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
        return;
    }
    let history = some_history();
    let check = |spoil: &dyn Fn(&Path)| {
        let place = Place::new();
        let views = holding(&place.path, &history.entries);
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["whoever_still_reads_a_file_that_is_gone", "--nocapture"])
            .env(HELD, &place.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(told.any(|line| line.ends_with("held")));
        drop(views);
        assert!(place.path.with_extension("db-shm").exists(), "it is held");
        spoil(&place.path);
        let mut views = Views::open(&place.path, TOPIC).unwrap();
        assert_eq!(views.applied(), None);
        views.apply(history.entries.clone()).unwrap();
        drop(views);
        assert!(Views::open(&place.path, TOPIC).unwrap().applied().is_some());
        drop(holder.stdin.take());
        assert!(holder.wait().unwrap().success());
    };
    check(&|path| fs::remove_file(path).unwrap());
    check(&|path| overwrite(path, b""));
}

/// A file or journal that ends too early gets no longer by waiting; a disk that is full may have room again.
#[test]
fn what_was_cut_off_is_made_anew_and_what_could_not_be_written_is_tried_again() {
    use rusqlite::ffi;
    let fault = |code| ViewsFault::from(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
    assert!(matches!(fault(ffi::SQLITE_IOERR_SHORT_READ), ViewsFault::NeedsRebuild(_)));
    assert!(matches!(fault(ffi::SQLITE_IOERR_WRITE), ViewsFault::Store(_)));
    assert!(matches!(fault(ffi::SQLITE_FULL), ViewsFault::Store(_)));
}

/// SQLite would wait for somebody to write into a pipe.
#[test]
fn what_is_no_file_is_made_again() {
    let (place, history) = (Place::new(), some_history());
    drop(holding(&place.path, &history.entries));
    let [journal, index] = beside(&place.path);
    for path in [&place.path, &journal, &index] {
        let _ = fs::remove_file(path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        let is_of_no_use = |fault: ViewsFault| {
            let why = fault.to_string();
            assert!(
                matches!(fault, ViewsFault::NeedsRebuild(_)) && why.contains("not a regular file"),
                "{why}"
            );
        };
        is_of_no_use(Views::open(&place.path, TOPIC).unwrap_err());
        is_of_no_use(Reader::open(&place.path).unwrap_err());
        assert_eq!(follows(&place.path, TOPIC), None);
        let again = Views::rebuild(&place.path, TOPIC, history.entries.clone()).unwrap();
        assert_eq!(again.applied().map(|(sequence, _)| sequence), Some(history.entries.len() as u64));
    }
}
