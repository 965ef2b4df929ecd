//! Durable decisions per second, beside a loop that only writes the same bytes in the same batches.
//!
//! Run: cargo bench --bench engine. Each row submits from so many threads; every submission is judged, sequenced,
//! written, synced and answered. `raw` writes what the run wrote, batch by batch, with one fdatasync each: the most
//! that the disk gives for these batches. The ratio is what everything else costs.
//!
//! Then what changes with history: the cost of a decision, start-up and memory, with old claims in the views. One
//! part alone: cargo bench --bench engine -- submitters, or active, growth, gateway. `--quick` leaves the largest out;
//! `--json FILE` writes the figures of growth and active down.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench stops at the first surprise, and prints"
)]

#[path = "load/report.rs"]
mod report;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use handoffd::engine::{Asker, Candidate, EngineFault, EngineHandle, Report, Ruling, Setup, ViewsPast};
use handoffd::gateway::Gateway;
use handoffd::ledger::{Entries, Entry, Follower, Log as _, Notice, RealDisk, Seals, SegmentLog, Source};
use handoffd::os::world::RealWorld;
use handoffd::policy::{PolicySet, Workspace};
use handoffd::proof::Seed;
use handoffd::state::{Publisher, StateFollower, StateView};
use handoffd::timestamp::Timestamp;
use handoffd::views::{FollowedViews, Reader, Views, ViewsFault};
use handoffd::wire::{SentEvent, Side};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CANONICAL: &str = include_str!("../docs/examples/taskspec-canonical.json");

fn main() {
    // Under `cargo test --benches` there is nothing to show.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [start, what, directory] = &*arguments
        && start == "start"
    {
        return start_and_say(what, Path::new(directory));
    }
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let parts = ["submitters", "active", "growth", "gateway"];
    let said: Vec<&String> = arguments.iter().filter(|argument| parts.contains(&&***argument)).collect();
    let wanted = |part: &str| said.is_empty() || said.iter().any(|argument| *argument == part);
    let policies = Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap());
    if wanted("submitters") {
        throughput(&policies);
    }
    if wanted("active") {
        active(&policies, is_quick);
    }
    if wanted("growth") {
        growth(&policies, is_quick);
    }
    if wanted("gateway") {
        gateway(&policies, is_quick);
    }
}

fn throughput(policies: &Arc<PolicySet>) {
    println!(
        "submitters  decisions/s  entries/batch  p50 us  p99 us  raw batches/s  ratio to raw  with state file/s"
    );
    for submitters in [1, 16, 64, 256] {
        let decisions = if submitters == 1 { 2_000 } else { 20_000 };
        let plain = run(submitters, decisions, policies, false);
        let stated = run(submitters, decisions.min(1_000), policies, true);
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

/// The log of a workspace's memory, as the gateway opens it: full segments that are as their seals say are not read.
fn open(memory: &Path) -> (SegmentLog, Seals) {
    let (ledger, journal) = (memory.join("ledger"), memory.join("journal"));
    let kept = fs::read_to_string(memory.join("seals")).unwrap_or_default();
    let seals = Seals::read(&kept, "gw_bench", &seed().public_hex());
    let tell: &mut dyn FnMut(u64, u64) = &mut |_, _| {};
    let with = (seals.clone(), tell);
    let opened = SegmentLog::open_with_journal(Arc::new(RealDisk), &ledger, &journal, "gw_bench", &[], with);
    (opened.unwrap().0, seals)
}

/// Keeps the seals for the next start, as the gateway does.
fn keep(seals: &Seals, memory: &Path) {
    if let Some(text) = seals.news("gw_bench", &seed()) {
        let mut file = fs::File::create(memory.join("seals")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

fn seed() -> Seed {
    Seed::from_bytes(&[7; 32])
}

fn start(directory: &Path, state: bool) -> EngineHandle {
    let (log, _) = open(directory);
    let (last, head) = (log.last_timestamp(), log.head().sequence);
    let history = Entries::read(&directory.join("ledger"), 1, head).unwrap();
    let history = history.map(|entry| entry.map_err(|fault| EngineFault::BadLedger(fault.to_string())));
    let mut setup = Setup::new(Box::new(log), last, Box::new(RealWorld::default()));
    if state {
        let publisher = Publisher::new(directory.join("state.json"));
        let ledger = Source::files(&directory.join("ledger"));
        let follower = StateFollower::start(StateView::empty("gw_bench"), publisher, ledger).unwrap();
        setup = setup.followed_by(Box::new(follower));
    }
    EngineHandle::start(setup, history).unwrap()
}

fn submit(engine: &EngineHandle, policies: &Arc<PolicySet>, name: &str, n: usize) -> Duration {
    submit_as(engine, policies, name, n, "simulated")
}

/// A handoff that is allowed, or one that is refused because its route is not live.
fn submit_as(engine: &EngineHandle, policies: &Arc<PolicySet>, name: &str, n: usize, mode: &str) -> Duration {
    let id = format!("hs_{name}_{n:08}");
    let body = CANONICAL
        .replace("hs_20260218_router_0001", &id)
        .replace("idem_swap_cycle_9001", &id)
        .replace("\"mode\": \"simulated\"", &format!("\"mode\": \"{mode}\""));
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

/// The views for the engine that asks them, and how far they have come. Their file stays the same.
struct Followed {
    path: PathBuf,
    applied: Arc<AtomicU64>,
}

impl FollowedViews for Followed {
    fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    fn opening(&self) -> u64 {
        0
    }

    fn open(&self) -> Result<Reader, ViewsFault> {
        Reader::open(&self.path)
    }

    fn is_damaged(&self, _opening: u64, why: &str) {
        assert!(why.is_empty(), "the views are damaged: {why}");
    }
}

/// Applies what is durable behind the replies, as the gateway does.
struct Applying(SyncSender<Vec<Entry>>);

impl Follower for Applying {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        self.0.send(entries.to_vec()).unwrap();
        None
    }
}

/// An engine whose old claims are in the views, and the thread that applies new ones.
fn start_remembering(memory: &Path) -> (EngineHandle, JoinHandle<()>) {
    let ledger = memory.join("ledger");
    let (log, seals) = open(memory);
    let (last, head) = (log.last_timestamp(), log.head().sequence);
    let path = memory.join("views.db");
    let mut views = Views::open(&path, "gw_bench").unwrap();
    assert_eq!(views.applied().map_or(0, |(sequence, _)| sequence), head, "the views are current");
    let applied = Arc::new(AtomicU64::new(head));
    let (feed, work) = sync_channel::<Vec<Entry>>(256);
    let (told, its_memory) = (applied.clone(), memory.to_owned());
    let thread = std::thread::spawn(move || {
        while let Ok(mut entries) = work.recv() {
            entries.extend(work.try_iter().take(1_000).flatten());
            views.apply(entries).unwrap();
            told.store(views.applied().unwrap().0, Ordering::Release);
        }
        keep(&seals, &its_memory);
    });
    let followed = Box::new(Followed { path, applied });
    let past = ViewsPast::new(followed, Source::files(&ledger), "gw_bench").unwrap();
    let setup = Setup::new(Box::new(log), last, Box::new(RealWorld::default()))
        .followed_by(Box::new(Applying(feed)))
        .remembered_by(Box::new(past));
    (EngineHandle::start(setup, std::iter::empty()).unwrap(), thread)
}

/// Submits from 64 threads, numbered from `from` on.
fn submit_many(engine: &EngineHandle, policies: &Arc<PolicySet>, from: usize, decisions: usize, mode: &str) {
    each(from, decisions, |n| {
        submit_as(engine, policies, "growth", n, mode);
    });
}

/// Does it for so many numbers from `from` on, from 64 threads.
fn each(from: usize, count: usize, act: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(from);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= from + count {
                        return;
                    }
                    act(n);
                }
            });
        }
    });
}

/// What a decision costs when there are many already, and how long a restart takes. Start-up and memory are of the ledger as
/// it is named. Rounds add to it, so a small one is put back before each, and a large one becomes longer by a fifth at most.
fn growth(policies: &Arc<PolicySet>, is_quick: bool) {
    const ROUNDS: usize = 7;
    const DECISIONS_MAX: usize = 3_000;
    println!(
        "\nentries  decisions a round  decisions/s at 64 (median of {ROUNDS})  CPU us/decision  start-up ms  resident MiB then"
    );
    let directory = tempfile::tempdir_in(".").unwrap();
    let memory = directory.path().join("memory");
    let mut total = 0;
    let targets = [1_000, 100_000_usize, 1_000_000];
    for target in &targets[..targets.len() - usize::from(is_quick)] {
        let (engine, thread) = start_remembering(&memory);
        let missing = (target / 3).saturating_sub(total);
        submit_many(&engine, policies, total, missing, "simulated");
        total += missing;
        engine.stop();
        thread.join().unwrap();
        let at = total * 3;
        let (started, resident) = in_a_process_of_its_own("engine", directory.path());
        let is_small = *target < 10_000;
        let decisions = if is_small { target / 3 } else { (target / 100).min(DECISIONS_MAX) };
        let mut spent = 0;
        let mut rates: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let copy = tempfile::tempdir_in(".").unwrap();
                let here = if is_small { copy.path() } else { &memory };
                if is_small {
                    copy_files(&memory, here);
                }
                let (engine, thread) = start_remembering(here);
                let (before, begun) = (cpu_ms(), Instant::now());
                submit_many(&engine, policies, total, decisions, "simulated");
                let rate = rate(decisions, begun.elapsed());
                engine.stop();
                thread.join().unwrap();
                spent += cpu_ms() - before;
                total += if is_small { 0 } else { decisions };
                rate
            })
            .collect();
        let spent = spent * 1_000 / (ROUNDS * decisions) as u64;
        rates.sort_unstable_by(f64::total_cmp);
        println!(
            "{at:>7}  {decisions:>17}  {:>30.0}  {spent:>15}  {started:>11}  {resident:>17}",
            rates[ROUNDS / 2]
        );
        report::tell(
            "growth",
            json!({"entries": at, "decisions": decisions, "rounds": ROUNDS, "rate": rates[ROUNDS / 2],
                "rate_min": rates[0], "rate_max": rates[ROUNDS - 1], "cpu_us": spent, "start_ms": started,
                "resident_mib": resident}),
        );
    }
}

/// A directory with all that is in it.
fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let there = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_files(&path, &there);
        } else {
            fs::copy(&path, &there).unwrap();
        }
    }
}

/// What this process has used of its processors: judging, deciding, writing and the views, and nobody else.
fn cpu_ms() -> u64 {
    // In hundredths of a second, the 14th and the 15th field; the second one is a name in brackets.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = stat.rsplit_once(')').unwrap().1;
    behind_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum()
}

/// A whole gateway with a million entries: 10,000 handoffs under way, and refused ones.
fn gateway(policies: &Arc<PolicySet>, is_quick: bool) {
    let (active, decisions) = if is_quick { (100, 1_000) } else { (10_000, 333_334) };
    println!("\na gateway with {} entries, {active} active handoffs", 3 * decisions);
    let directory = tempfile::tempdir_in(".").unwrap();
    let (engine, thread) = start_remembering(&directory.path().join("memory"));
    submit_many(&engine, policies, 0, active, "simulated");
    submit_many(&engine, policies, active, decisions - active, "live");
    engine.stop();
    thread.join().unwrap();
    // A gateway does not start on a ledger whose key is gone, and the engine alone makes none.
    let key = tempfile::tempdir_in(".").unwrap();
    Gateway::open(key.path(), "bench").unwrap().close().unwrap();
    fs::copy(key.path().join("memory/gateway.key"), directory.path().join("memory/gateway.key")).unwrap();
    for start in ["without a snapshot", "with everything current", "once more"] {
        let (started, resident) = in_a_process_of_its_own("gateway", directory.path());
        println!("{start:>24}: started in {started} ms, {resident} MiB resident");
    }
    fs::remove_file(directory.path().join("memory/views.db")).unwrap();
    let (started, resident) = in_a_process_of_its_own("gateway", directory.path());
    println!("{:>24}: started in {started} ms, {resident} MiB resident", "with views made again");
}

/// Throughput with the state file, when so many handoffs are in it. Each that is allowed is cancelled at once, so that there
/// stay as many as there were, and one more for each thread at most.
fn active(policies: &Arc<PolicySet>, is_quick: bool) {
    const DECISIONS: usize = 3_000;
    println!("\nactive handoffs  allowed and cancelled/s at 64 with the state file (median of 5)");
    let counts = [10, 1_000, 10_000_usize];
    for count in &counts[..counts.len() - usize::from(is_quick)] {
        let count = *count;
        let mut rates: Vec<f64> = (0..5)
            .map(|_| {
                let directory = tempfile::tempdir_in(".").unwrap();
                let engine = start(directory.path(), true);
                submit_many(&engine, policies, 0, count, "simulated");
                let begun = Instant::now();
                each(count, DECISIONS, |n| {
                    submit_as(&engine, policies, "growth", n, "simulated");
                    cancel(&engine, "growth", n);
                });
                let rate = rate(DECISIONS, begun.elapsed());
                engine.stop();
                rate
            })
            .collect();
        rates.sort_unstable_by(f64::total_cmp);
        println!("{count:>15}  {:>59.0}", rates[2]);
        report::tell(
            "active",
            json!({"handoffs": count, "decisions": DECISIONS, "rate": rates[2], "rate_min": rates[0], "rate_max": rates[4]}),
        );
    }
}

/// The source takes back what was allowed.
fn cancel(engine: &EngineHandle, name: &str, n: usize) {
    let handoff_id = format!("hs_{name}_{n:08}");
    let event = json!({
        "wire": "1.1", "wire_id": format!("wire_{name}{n:08}"), "type": "task.cancelled", "ts": "2026-02-18T19:38:05Z",
        "sender": "agent:decision-router", "payload": {"reason": "not needed"},
        "state": {"category": "canceled", "terminal": true},
        "stream": {"stream_id": format!("task:{handoff_id}:attempt:1"), "stream_seq": 4,
            "context_id": "corr_strategy_cycle_9001", "correlation_id": "corr_strategy_cycle_9001"},
    });
    let event = SentEvent::parse(&event.to_string()).unwrap();
    engine.report_and_wait(Report { handoff_id, event, side: Side::Source }).unwrap().unwrap();
}

/// Starts this program again to start the engine or a gateway there, and reads how long it took, in
/// milliseconds, and its resident memory then, in MiB.
fn in_a_process_of_its_own(what: &str, directory: &Path) -> (u64, u64) {
    let output = Command::new(std::env::current_exe().unwrap()).args(["start", what]).arg(directory).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut words = text.split_whitespace().map(|word| word.parse().unwrap());
    (words.next().unwrap(), words.next().unwrap())
}

/// That process.
fn start_and_say(what: &str, directory: &Path) {
    let begun = Instant::now();
    let say = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: u64 = resident.split_whitespace().next().unwrap().parse().unwrap();
        println!("{} {}", begun.elapsed().as_millis(), kib / 1024);
    };
    if what == "gateway" {
        let gateway = Gateway::open(directory, "bench").unwrap();
        say();
        gateway.close().unwrap();
    } else {
        let (engine, thread) = start_remembering(&directory.join("memory"));
        say();
        engine.stop();
        thread.join().unwrap();
    }
}
