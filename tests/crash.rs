//! kill -9 in a loop under load: what was acknowledged is in the ledger afterwards, once.
//!
//! The process that is killed is this test binary itself, started again as a child. 10 rounds; 200 with LONG=1
//! in the environment.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use handoffd::engine::{Asker, Candidate, EngineFault, EngineHandle, Ruling, Setup};
use handoffd::gates::Decision;
use handoffd::ledger::{Entries, Log as _, RealDisk, Seals, SegmentLog};
use handoffd::os::world::RealWorld;
use handoffd::policy::Workspace;
use handoffd::timestamp::Timestamp;

const DIRECTORY: &str = "HANDOFFD_CRASH_DIRECTORY";
const ROUND: &str = "HANDOFFD_CRASH_ROUND";
const CANONICAL: &str = include_str!("../docs/examples/taskspec-canonical.json");

fn segments(directory: &Path) -> PathBuf {
    directory.join("ledger")
}

fn open(directory: &Path) -> SegmentLog {
    let (segments, journal) = (segments(directory), directory.join("journal"));
    let (log, _torn) = SegmentLog::open_with_journal(
        Arc::new(RealDisk),
        &segments,
        &journal,
        "gw_crash",
        &[],
        (Seals::default(), &mut |_, _| {}),
    )
    .unwrap();
    log.with_segment_bytes_max(256 * 1024)
}

fn start(directory: &Path) -> EngineHandle {
    let log = open(directory);
    let last = log.last_timestamp();
    let history = Entries::read(&segments(directory), 1, log.head().sequence).unwrap();
    let history = history.map(|entry| entry.map_err(|fault| EngineFault::BadLedger(fault.to_string())));
    EngineHandle::start(Setup::new(Box::new(log), last, Box::new(RealWorld::default())), history).unwrap()
}

/// The child: submits as fast as it can from several threads, and says each decision aloud once it has it.
#[test]
fn child_that_is_killed() {
    let (Some(directory), Ok(round)) = (std::env::var_os(DIRECTORY), std::env::var(ROUND)) else { return };
    let engine = start(Path::new(&directory));
    let policies = Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (engine, policies, round) = (engine.clone(), policies.clone(), round.as_str());
            scope.spawn(move || {
                for n in 0.. {
                    let id = format!("hs_{round}_{thread}_{n:06}");
                    let body = CANONICAL
                        .replace("hs_20260218_router_0001", &id)
                        .replace("idem_swap_cycle_9001", &id);
                    let ruling = Ruling {
                        policies: policies.clone(),
                        keyring: Arc::default(),
                        asker: Asker::Agent("decision-router".into()),
                    };
                    let now = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
                    let candidate = Candidate::judge(body.into(), ruling, now).unwrap();
                    let decided = engine.submit_and_wait(candidate).unwrap();
                    assert_eq!(decided.decision, Decision::Allowed);
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "ack {id} {}", decided.ledger.sequence).unwrap();
                    out.flush().unwrap();
                }
            });
        }
    });
}

#[test]
fn every_acknowledged_decision_survives_a_kill_and_none_is_doubled() {
    if std::env::var_os(DIRECTORY).is_some() {
        return;
    }
    let rounds = if std::env::var_os("LONG").is_some() { 200 } else { 10 };
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged: HashMap<String, u64> = HashMap::new();
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_is_killed", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .env(ROUND, format!("{round:04}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut heard = 0;
        // Killed after another number of answers each round, so that it dies in ever other places.
        let enough = 20 + (round * 37) % 150;
        for line in lines.map_while(Result::ok) {
            let mut words = line.split(' ').skip_while(|word| !word.ends_with("ack"));
            if let (Some(_), Some(id), Some(sequence)) = (words.next(), words.next(), words.next()) {
                acknowledged.insert(id.to_owned(), sequence.parse().unwrap());
                heard += 1;
            }
            if heard == enough {
                // Not waited for, so that what is in the pipe still counts as acknowledged.
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(heard >= enough, "round {round}: the child answered {heard} times");
    }

    let log = open(directory.path());
    let mut seen: HashSet<String> = HashSet::new();
    let mut decided_at: HashMap<String, u64> = HashMap::new();
    for entry in Entries::read(&segments(directory.path()), 1, log.head().sequence).unwrap() {
        let entry = entry.unwrap();
        let wire: serde_json::Value = serde_json::from_str(&entry.wire).unwrap();
        let stream = wire["stream"]["stream_id"].as_str().unwrap();
        let id = stream.split(':').nth(1).unwrap().to_owned();
        match wire["type"].as_str().unwrap() {
            "task.created" => assert!(seen.insert(id), "{stream} was created twice"),
            "gate.decided" => drop(decided_at.insert(id, entry.sequence)),
            _ => {}
        }
    }
    for (id, sequence) in &acknowledged {
        assert_eq!(decided_at.get(id), Some(sequence), "{id} was acknowledged");
    }
    assert!(acknowledged.len() >= rounds * 20);
}
