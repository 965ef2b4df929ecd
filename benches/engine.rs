//! Durable decisions per second, beside a loop that only writes the same bytes in the same batches.
//!
//! Run: cargo bench --bench engine. Each row submits from so many threads; every submission is judged, sequenced,
//! written, synced and answered. `raw` writes what the run wrote, batch by batch, with one fdatasync each: the most
//! that the disk gives for these batches. The ratio is what everything else costs.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench stops at the first surprise, and prints"
)]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use handoffd::engine::{Asker, Candidate, EngineFault, EngineHandle, Ruling, Setup};
use handoffd::ledger::{Entries, Log as _, RealDisk, SegmentLog};
use handoffd::os::world::RealWorld;
use handoffd::policy::{PolicySet, Workspace};
use handoffd::state::{Publisher, StateFollower, StateView};
use handoffd::timestamp::Timestamp;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CANONICAL: &str = include_str!("../docs/examples/taskspec-canonical.json");

fn main() {
    // Under `cargo test --benches` there is nothing to show.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let policies = Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap());
    println!(
        "submitters  decisions/s  entries/batch  p50 us  p99 us  raw batches/s  ratio to raw  with state file/s"
    );
    for submitters in [1, 16, 64, 256] {
        let decisions = if submitters == 1 { 2_000 } else { 20_000 };
        let plain = run(submitters, decisions, &policies, false);
        let stated = run(submitters, decisions.min(1_000), &policies, true);
        let raw = raw(&plain.batches);
        println!(
            "{submitters:>10}  {:>11.0}  {:>13.1}  {:>6}  {:>6}  {:>13.0}  {:>12.2}  {:>17.0}",
            rate(decisions, plain.elapsed),
            3.0 * decisions as f64 / plain.batches.len() as f64,
            plain.latencies[decisions / 2].as_micros(),
            plain.latencies[decisions * 99 / 100].as_micros(),
            rate(plain.batches.len(), raw),
            raw.as_secs_f64() / plain.elapsed.as_secs_f64(),
            rate(decisions.min(1_000), stated.elapsed),
        );
    }
    growth(&policies);
}

fn rate(count: usize, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

struct Run {
    elapsed: Duration,
    /// Sorted.
    latencies: Vec<Duration>,
    /// The bytes of each batch.
    batches: Vec<Vec<u8>>,
}

fn start(directory: &Path, state: bool) -> EngineHandle {
    let (log, _) = SegmentLog::open(Arc::new(RealDisk), &directory.join("ledger"), "gw_bench", &[]).unwrap();
    let (last, head) = (log.last_timestamp(), log.head().sequence);
    let history = Entries::read(&directory.join("ledger"), 1, head).unwrap();
    let history = history.map(|entry| entry.map_err(|fault| EngineFault::BadLedger(fault.to_string())));
    let mut setup = Setup::new(Box::new(log), last, Box::new(RealWorld::default()));
    if state {
        let publisher = Publisher::new(directory.join("state.json"));
        let follower = StateFollower::start(StateView::empty("gw_bench"), publisher).unwrap();
        setup = setup.followed_by(Box::new(follower));
    }
    EngineHandle::start(setup, history).unwrap()
}

fn submit(engine: &EngineHandle, policies: &Arc<PolicySet>, name: &str, n: usize) -> Duration {
    let id = format!("hs_{name}_{n:08}");
    let body = CANONICAL.replace("hs_20260218_router_0001", &id).replace("idem_swap_cycle_9001", &id);
    let ruling = Ruling {
        policies: policies.clone(),
        keyring: Arc::default(),
        asker: Asker::Agent("decision-router".into()),
    };
    let now = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
    let begun = Instant::now();
    let candidate = Candidate::judge(body.into(), ruling, now).unwrap();
    engine.submit_and_wait(candidate).unwrap();
    begun.elapsed()
}

fn run(submitters: usize, decisions: usize, policies: &Arc<PolicySet>, state: bool) -> Run {
    let directory = tempfile::tempdir_in(".").unwrap();
    let engine = start(directory.path(), state);
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    let mut latencies: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..submitters)
            .map(|_| {
                scope.spawn(|| {
                    let mut own = Vec::new();
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= decisions {
                            return own;
                        }
                        own.push(submit(&engine, policies, "bench", n));
                    }
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let elapsed = begun.elapsed();
    engine.stop();
    latencies.sort_unstable();
    Run { elapsed, latencies, batches: batches(&directory.path().join("ledger")) }
}

/// What the run wrote, cut behind each commit line.
fn batches(ledger: &Path) -> Vec<Vec<u8>> {
    let mut files: Vec<_> = fs::read_dir(ledger).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut batches = vec![Vec::new()];
    for file in files {
        for line in fs::read(file).unwrap().split_inclusive(|byte| *byte == b'\n') {
            batches.last_mut().unwrap().extend_from_slice(line);
            if line.starts_with(b"{\"commit\"") {
                batches.push(Vec::new());
            }
        }
    }
    batches.pop();
    batches
}

/// The same bytes in the same batches, and nothing else.
fn raw(batches: &[Vec<u8>]) -> Duration {
    let mut file = tempfile::tempfile_in(".").unwrap();
    let begun = Instant::now();
    for batch in batches {
        file.write_all(batch).unwrap();
        file.sync_data().unwrap();
    }
    begun.elapsed()
}

/// What a decision costs when there are many already, and how long a restart takes.
fn growth(policies: &Arc<PolicySet>) {
    println!("\nentries so far  decisions/s at 64  start-up ms");
    let directory = tempfile::tempdir_in(".").unwrap();
    let mut total = 0;
    for target in [1_000, 100_000_usize] {
        let mut elapsed = Duration::ZERO;
        let mut last = 0;
        let engine = start(directory.path(), false);
        while total < target / 3 {
            let decisions = (target / 3 - total).min(20_000);
            let next = AtomicUsize::new(0);
            let begun = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..64 {
                    scope.spawn(|| {
                        loop {
                            let n = next.fetch_add(1, Ordering::Relaxed);
                            if n >= decisions {
                                return;
                            }
                            submit(&engine, policies, "growth", total + n);
                        }
                    });
                }
            });
            elapsed = begun.elapsed();
            last = decisions;
            total += decisions;
        }
        engine.stop();
        let begun = Instant::now();
        let engine = start(directory.path(), false);
        let started = begun.elapsed();
        engine.stop();
        println!("{:>14}  {:>17.0}  {:>11}", total * 3, rate(last, elapsed), started.as_millis());
    }
}
