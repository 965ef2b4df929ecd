//! The sink's file: one line for each entry, through restarts, full disks and other hands.

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::channel;

use serde_json::Value as Json;

use super::*;
use crate::engine::{Asker, Candidate, Ruling};
use crate::os::clock;
use crate::policy::Workspace;

const CANONICAL: &str = include_str!("../../../docs/examples/taskspec-canonical.json");

/// A workspace with a gateway and a place for lines beside it.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("workspace")).unwrap();
        Self { directory }
    }

    fn gateway(&self) -> Gateway {
        Gateway::open(&self.directory.path().join("workspace"), "nowhere").unwrap()
    }

    fn lines_path(&self) -> PathBuf {
        self.directory.path().join("lines.jsonl")
    }

    fn settings(&self) -> SinkSettings {
        SinkSettings { path: Some(self.lines_path()), rotate_bytes: 1 << 30, keep: 1000 }
    }

    /// All lines, the oldest first.
    fn lines(&self) -> Vec<Json> {
        let full = (1..).map(|n| file::numbered(&self.lines_path(), n)).take_while(|path| path.exists());
        let mut paths: Vec<PathBuf> = full.collect();
        paths.reverse();
        paths.push(self.lines_path());
        let text: String = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn sequences(&self) -> Vec<u64> {
        self.lines().iter().map(|line| line["sequence"].as_u64().unwrap()).collect()
    }
}

/// Decides some handoffs: `from` and so many after it.
fn decide(gateway: &Gateway, from: usize, count: usize) {
    let policies = Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap());
    let (sender, receiver) = channel();
    for n in from..from + count {
        let id = format!("hs_sink_{n:06}");
        let body = CANONICAL.replace("hs_20260218_router_0001", &id).replace("idem_swap_cycle_9001", &id);
        let asker = Asker::Agent("decision-router".into());
        let ruling = Ruling { policies: policies.clone(), keyring: Arc::default(), asker };
        let candidate = Candidate::judge(body.into(), ruling, clock::now()).unwrap();
        let sender = sender.clone();
        gateway.engine().submit(candidate, Box::new(move |result| sender.send(result).unwrap())).unwrap();
    }
    drop(sender);
    assert_eq!(receiver.iter().filter(|result| result.is_ok()).count(), count);
}

/// Waits until something is so; a test that waits for ever is stopped by the runner.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn start(gateway: &Gateway, settings: &SinkSettings) -> Sink {
    Sink::start(gateway, settings).unwrap().unwrap()
}

fn every(through: u64) -> Vec<u64> {
    (1..=through).collect()
}

#[test]
fn every_entry_is_a_line_that_says_what_happened_to_which_handoff() {
    let place = Place::new();
    let gateway = place.gateway();
    assert!(Sink::start(&gateway, &SinkSettings::default()).unwrap().is_none());
    let sink = start(&gateway, &place.settings());
    decide(&gateway, 1, 2);
    until(|| sink.progress().written == 6);
    assert_eq!(sink.progress(), Progress { written: 6, fault: None, faults: 0 });
    let lines = place.lines();
    let entry = gateway.ledger().entry(2).unwrap().unwrap();
    let expected = serde_json::json!({
        "time": entry.consensus_timestamp,
        "sequence": 2,
        "type": "gate.decided",
        "handoffId": "hs_sink_000001",
        "attempt": 1,
        "decision": "allowed",
        "codes": [],
        "source": "decision-router",
        "target": "crypto-sage",
        "route": "crypto-sage.execution-plane.v1",
        "correlationId": "corr_strategy_cycle_9001",
    });
    assert_eq!(lines[1], expected);
    let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["task.created", "gate.decided", "task.available"]);
    sink.stop();
}

#[test]
fn a_restart_goes_on_where_it_stopped() {
    let place = Place::new();
    for round in 0..3 {
        let gateway = place.gateway();
        let sink = start(&gateway, &place.settings());
        decide(&gateway, 10 * round, 5);
        gateway.finish().unwrap();
        sink.stop();
        let head = 15 * (round as u64 + 1);
        assert_eq!((sink.progress().written, place.sequences()), (head, every(head)));
    }
    // What was decided while nobody wrote lines is made up for.
    let gateway = place.gateway();
    decide(&gateway, 100, 5);
    let sink = start(&gateway, &place.settings());
    until(|| sink.progress().written == 60);
    sink.stop();
    assert_eq!(place.sequences(), every(60));
    // A position in the middle of a decision: whose it was is known all the same.
    let entry = gateway.ledger().entry(58).unwrap().unwrap();
    let position = Position {
        topic_id: gateway.topic_id().to_owned(),
        sequence: 58,
        running_hash: entry.running_hash.to_string(),
    };
    files::replace_private(&position_path(&place.lines_path()), &serde_json::to_vec(&position).unwrap())
        .unwrap();
    let sink = start(&gateway, &place.settings());
    until(|| sink.progress().written == 60);
    sink.stop();
    let lines = place.lines();
    assert_eq!(lines.len(), 62);
    assert_eq!(lines[60], lines[58]);
    assert_eq!(lines[60]["source"], "decision-router");
}

#[test]
fn a_position_in_another_ledger_says_nothing() {
    let (place, other) = (Place::new(), Place::new());
    let gateway = place.gateway();
    decide(&gateway, 1, 1);
    let sink = start(&gateway, &place.settings());
    until(|| sink.progress().written == 3);
    sink.stop();
    let elsewhere = other.gateway();
    decide(&elsewhere, 1, 1);
    let sink = start(&elsewhere, &place.settings());
    until(|| sink.progress().written == 3);
    sink.stop();
    assert_eq!(place.sequences(), [1, 2, 3, 1, 2, 3]);
}

#[test]
fn a_full_file_is_followed_by_a_new_one_and_the_oldest_goes() {
    let place = Place::new();
    let gateway = place.gateway();
    let settings = SinkSettings { rotate_bytes: 2000, keep: 1000, ..place.settings() };
    let sink = start(&gateway, &settings);
    decide(&gateway, 1, 40);
    until(|| sink.progress().written == 120);
    sink.stop();
    assert_eq!(place.sequences(), every(120));
    let sizes: BTreeMap<PathBuf, u64> = fs::read_dir(place.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_str().unwrap().starts_with("lines.jsonl."))
        .map(|entry| (entry.path(), entry.metadata().unwrap().len()))
        .collect();
    assert!(sizes.len() > 10, "{sizes:?}");
    assert!(sizes.values().all(|bytes| *bytes <= 2000), "{sizes:?}");

    let few = Place::new();
    let gateway = few.gateway();
    let sink = start(&gateway, &SinkSettings { rotate_bytes: 2000, keep: 2, ..few.settings() });
    decide(&gateway, 1, 40);
    until(|| sink.progress().written == 120);
    sink.stop();
    assert!(file::numbered(&few.lines_path(), 2).exists());
    assert!(!file::numbered(&few.lines_path(), 3).exists());
    let kept = few.sequences();
    assert_eq!(kept, (kept[0]..=120).collect::<Vec<_>>());
}

/// `/dev/full` is a disk without room.
#[test]
fn a_full_disk_holds_up_the_lines_and_nothing_else() {
    let place = Place::new();
    let gateway = place.gateway();
    std::os::unix::fs::symlink("/dev/full", place.lines_path()).unwrap();
    let sink = start(&gateway, &place.settings());
    decide(&gateway, 1, 500);
    until(|| sink.progress().faults > 1);
    let Progress { written, fault, .. } = sink.progress();
    assert_eq!(written, 0);
    assert!(fault.unwrap().starts_with("lines cannot be written: "));
    decide(&gateway, 1000, 500);
    fs::remove_file(place.lines_path()).unwrap();
    until(|| sink.progress().written == 3000);
    assert_eq!(sink.progress().fault, None);
    sink.stop();
    assert_eq!(place.sequences(), every(3000));
}

#[test]
fn a_sink_that_cannot_write_does_not_keep_the_gateway_from_stopping() {
    let place = Place::new();
    let gateway = place.gateway();
    let missing =
        SinkSettings { path: Some(place.directory.path().join("no/such/lines")), ..place.settings() };
    let sink = start(&gateway, &missing);
    decide(&gateway, 1, 1);
    until(|| sink.progress().faults > 0);
    gateway.finish().unwrap();
    sink.stop();
    assert_eq!(sink.progress().written, 0);
}

#[test]
fn half_a_line_that_a_crash_left_is_written_again() {
    let place = Place::new();
    let gateway = place.gateway();
    let half = format!("{{\"sequence\":0}}\n{{\"half\":\"{}", "x".repeat(100_000));
    files::create_private(&place.lines_path(), half.as_bytes()).unwrap();
    let sink = start(&gateway, &place.settings());
    decide(&gateway, 1, 1);
    until(|| sink.progress().written == 3);
    sink.stop();
    assert_eq!(place.sequences(), [0, 1, 2, 3]);
}

#[test]
fn a_file_that_somebody_moves_away_is_made_again() {
    let place = Place::new();
    let gateway = place.gateway();
    let sink = start(&gateway, &place.settings());
    decide(&gateway, 1, 1);
    until(|| sink.progress().written == 3);
    files::rename(&place.lines_path(), &place.directory.path().join("moved")).unwrap();
    decide(&gateway, 2, 1);
    until(|| sink.progress().written == 6);
    sink.stop();
    assert_eq!(place.sequences(), [4, 5, 6]);
}

/// More than the line to the listeners holds, all at once and with nobody reading.
#[test]
fn a_huge_backlog_is_written_in_order() {
    let place = Place::new();
    let gateway = place.gateway();
    for round in 0..4 {
        decide(&gateway, 10_000 * round, 2500);
    }
    let sink = start(&gateway, &SinkSettings { rotate_bytes: 1 << 20, ..place.settings() });
    decide(&gateway, 90_000, 100);
    until(|| sink.progress().written == 30_300);
    sink.stop();
    assert_eq!(place.sequences(), every(30_300));
}

#[test]
fn lines_are_not_written_where_they_would_be_rules() {
    let place = Place::new();
    let gateway = place.gateway();
    let check = |path: &str, good: bool| {
        let settings = SinkSettings { path: Some(path.into()), ..place.settings() };
        let started = Sink::start(&gateway, &settings);
        assert_eq!(started.is_ok(), good, "{path}: {started:?}");
    };
    fs::create_dir(place.directory.path().join("workspace/policies")).unwrap();
    check("lines.jsonl", false);
    check("policies/lines.jsonl", false);
    check("memory/ledger/lines.jsonl", false);
    check("memory/lines.jsonl", true);
    check("../lines.jsonl", true);
}
