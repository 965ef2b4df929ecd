//! A workspace that loses files under a gateway that runs: nobody is told that all is well, and nothing that was answered
//! is decided again.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use super::harness::{Daemon, eventually, location, spec, write};
use super::streams::{Events, to_the_end};
use super::wire::{Request, connect};

const SEGMENT: &str = "memory/ledger/00000000000000000001.jsonl";

/// The file as it was, the same file, and no longer than this.
fn cut(path: &Path, bytes: usize) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(bytes as u64).unwrap();
}

/// Where the last batch of a segment begins.
fn before_the_last_batch(text: &str) -> usize {
    let commits: Vec<usize> = text.match_indices("{\"commit\":").map(|(at, _)| at).collect();
    let kept = commits[commits.len() - 2];
    kept + text[kept..].find('\n').unwrap() + 1
}

#[test]
fn a_ledger_that_was_cut_while_it_is_served_is_whole_to_nobody() {
    let mut daemon = Daemon::new();
    // What it leaves behind is what the test is about.
    daemon.keeps_no_ledger();
    for n in 1..=3 {
        assert_eq!(daemon.submit(&spec(&format!("cut_{n:04}"))).status, 201);
    }
    let place = location(&spec("cut_0003"));
    assert_eq!(daemon.get(&format!("{place}/evidence")).status, 200);
    let entries = daemon.events().len();
    let verified = daemon.get("/v1/audit/verify").json();
    assert_eq!((&verified["verified"], &verified["entries"]), (&true.into(), &entries.into()), "{verified}");

    let segment = daemon.path(SEGMENT);
    let whole = fs::read_to_string(&segment).unwrap();
    for (bytes, is_left) in [(before_the_last_batch(&whole), true), (0, false)] {
        cut(&segment, bytes);
        eventually("it turns red", || (daemon.get("/readyz").status == 503).then_some(()));
        let found = daemon.get("/v1/audit/verify").json();
        assert_eq!(found["verified"], false, "{found}");
        // The first checkpoint that it does not reach: that of the first entries, where nothing is left.
        let expected = if is_left { format!("expected {entries}") } else { "after 0 entries".to_owned() };
        assert!(found["finding"].as_str().unwrap().contains(&expected), "{found}");
        for target in [
            "/v1/audit/export".to_owned(),
            format!("/v1/audit/export?from={entries}"),
            "/v1/audit/checkpoint".to_owned(),
            format!("/v1/audit/{entries}"),
            place.clone(),
            format!("{place}/evidence"),
        ] {
            let refused = daemon.get(&target);
            assert_eq!((refused.status, refused.code().as_str()), (503, "LEDGER_UNREADABLE"), "{target}");
        }
        let request = Request::new("GET", &format!("/v1/audit/stream?from={entries}")).token(&daemon.admin);
        let told = to_the_end(&mut Events::open(&daemon, &request));
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((told[0].kind.as_str(), told[0].id), ("error", None));
        assert_eq!(told[0].json()["code"], "LEDGER_UNREADABLE");
        for command in ["export", "checkpoint", "verify"] {
            let output = daemon.cli(&["audit", command]);
            let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(1), "{command}: {said}");
            let what =
                if command == "verify" { "(truncated)".to_owned() } else { format!("entry {entries}") };
            assert!(said.contains(&what), "{command}: {said}");
            assert!(!said.contains("no entries yet"), "{command}: {said}");
        }
        let exported = daemon.cli(&["audit", "export"]).stdout;
        assert_eq!(!exported.is_empty(), is_left, "what is left can be taken away");
    }
    // It cannot be served any more: that is no wrong setting.
    daemon.signal("TERM");
    assert_eq!(daemon.wait().code(), Some(3));
}

/// SQLite keeps the index of its journal in memory that it shares through a file, for commands that read the tables beside
/// the gateway. Whoever cuts that file off ends the process, as docs/operations.md says: what is held here is that it costs
/// a restart and nothing else.
#[test]
fn whoever_ends_the_process_through_the_tables_for_searches_takes_no_decision_along() {
    let mut daemon = Daemon::new();
    for n in 1..=3 {
        assert_eq!(daemon.submit(&spec(&format!("index_{n:04}"))).status, 201);
    }
    assert_eq!(daemon.get(&location(&spec("index_0003"))).status, 200);
    cut(&daemon.path("memory/views.db-shm"), 0);
    // It ends in the midst of this one.
    let request = Request::new("GET", &location(&spec("index_0003"))).token(&daemon.admin);
    let mut asks = connect(daemon.address);
    asks.write_all(&request.bytes()).unwrap();
    const SIGBUS: i32 = 7;
    assert_eq!(daemon.wait().signal(), Some(SIGBUS), "a service manager takes that for a failure");
    drop(asks);
    daemon.restart_after_stop();
    for n in 1..=3 {
        assert_eq!(daemon.submit(&spec(&format!("index_{n:04}"))).status, 200, "it was decided before");
    }
    assert_eq!(daemon.get(&location(&spec("index_0003"))).json()["attempts"], 1);
    assert_eq!(daemon.get("/v1/audit/verify").json()["verified"], true);
}

/// The writer goes on with the file that it has open, so nobody else would notice.
#[test]
fn searches_come_back_when_the_journal_of_their_file_is_gone() {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("journal_0001")).status, 201);
    assert_eq!(daemon.get(&location(&spec("journal_0001"))).json()["attempts"], 1);
    fs::remove_file(daemon.path("memory/views.db-wal")).unwrap();
    let found = eventually("it is said", || {
        let found = daemon.get("/readyz").json();
        (found["status"] == "degraded").then_some(found)
    });
    assert_eq!(found["degraded"][0]["what"], "views", "{found}");
    assert!(found["degraded"][0]["why"].as_str().unwrap().contains("views.db-wal"), "{found}");
    assert_eq!(daemon.submit(&spec("journal_0002")).status, 201);
    for name in ["journal_0001", "journal_0002"] {
        eventually("it is found again", || {
            let reply = daemon.get(&location(&spec(name)));
            (reply.status == 200 && reply.json()["attempts"] == 1).then_some(())
        });
    }
    eventually("it turns green", || (daemon.get("/readyz").json()["status"] == "ready").then_some(()));
}

#[test]
fn what_a_start_would_stumble_over_is_said_before_it_does() {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("stray_0001")).status, 201);
    for name in ["notes.txt", "00000000000000000200.jsonl", "00000000000000000002.jsonl"] {
        let stray = daemon.path("memory/ledger").join(name);
        write(&stray, "x");
        let found = eventually("it is said", || {
            let found = daemon.get("/readyz").json();
            (found["status"] == "degraded").then_some(found)
        });
        let said = &found["degraded"][0];
        assert_eq!(said["what"], "ledger", "{found}");
        assert!(said["why"].as_str().unwrap().contains(&format!("`{name}` in memory/ledger")), "{found}");
        fs::remove_file(stray).unwrap();
        eventually("it turns green", || (daemon.get("/readyz").json()["status"] == "ready").then_some(()));
    }
}

/// The ledger has all of it, so it is made again; whoever reads the log knows that somebody, or a power cut, took it.
#[test]
fn a_state_file_that_is_made_again_leaves_a_word() {
    type Change = fn(&Path);
    let changes: [(Change, &str); 3] = [
        (|state| fs::remove_file(state).unwrap(), "it is gone"),
        (|state| write(state, ""), "it holds nothing"),
        (
            |state| {
                let text = fs::read_to_string(state).unwrap();
                write(state, &text[..text.len() / 2]);
            },
            "it ends in the middle",
        ),
    ];
    let mut daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("again_0001")).status, 201);
    let state = daemon.path("memory/orchestration-state.json");
    for (change, what) in changes {
        daemon.signal("TERM");
        assert!(daemon.wait().success());
        let whole = fs::read(&state).unwrap();
        assert!(!daemon.log().contains(what), "{}", daemon.log());
        change(&state);
        daemon.restart_after_stop();
        let log = daemon.log();
        let line = log.lines().find(|line| line.contains(what));
        assert!(line.is_some_and(|line| line.contains("WARN") && line.contains("made again")), "{log}");
        assert_eq!(fs::read(&state).unwrap(), whole);
    }
}

/// A snapshot that somebody changed is not used, which costs a start some time; whoever reads the log knows why.
#[test]
fn a_snapshot_that_somebody_changed_is_passed_over_with_a_word() {
    let mut daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("snapshot_0001")).status, 201);
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let snapshot = daemon.path("memory/state.snapshot");
    let text = fs::read_to_string(&snapshot).unwrap();
    write(&snapshot, text.replacen("\"signature\":\"", "\"signature\":\"00", 1));
    daemon.restart_after_stop();
    assert!(daemon.log().contains("the snapshot is not signed by this gateway's key"), "{}", daemon.log());
}
