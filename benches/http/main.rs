//! Requests per second over HTTP: `check`, durable `submit` and A2A's `message/send`, beside a bare axum handler that reads
//! the same body and parses its JSON, which is the most that this stack can give; and, if told so, beside other services.
//!
//! Run: cargo bench --bench http [-- OPTIONS]; scripts/bench runs it with everything.
//!
//! | | |
//! | --- | --- |
//! | `SECONDS` | how long each run takes, 3 if not given |
//! | `--rounds N`, `--connections N,N` | 3; 1,16,64,256 |
//! | `--only NAME,NAME` | of `check`, `submit` and `send` only these |
//! | `--service NAME=COMMAND` | a durable service: a shell command that gets PORT, HANDOFFD_WORKSPACE and TOKENS |
//! | `--engine NAME=COMMAND` | one that only judges |
//! | `--build NAME=PROGRAM` | durable submits to another build of handoffd, for before and after in one run |
//! | `--postgres` | durable inserts of a row as large as a decision, by pgbench |
//! | `--stream` | then from a commit to a client of `/v1/audit/stream` |
//! | `--json FILE` | all figures, a line each |
//! | `memory [REQUESTS]` | nothing but the daemon's memory after a tenth, a half and all of so many requests |
//!
//! Everything runs on one machine, the load included, each server in a process of its own. For each number of connections
//! they all start anew; then they take turns, in several rounds, so that what else the machine does hits all alike. Read the
//! ratios. A duplicate is never sent: every submit is a new handoff. Half of what is sent is in the orchestrator's own name,
//! half in that of a person who signed for it: once when a server starts, and that holds for an hour, so rounds that take
//! longer are refused.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "a bench stops at the first surprise, and prints; it uses a part of what the tests have"
)]

mod checks;
#[path = "../load/mod.rs"]
mod load;
mod memory;
mod options;
mod rows;
mod stream;

use std::io::Write as _;
use std::time::Instant;

use serde_json::json;

use load::{Load, median, report};
use options::Options;
use rows::{Row, Run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    if std::env::var_os(rows::BARE).is_some() {
        return rows::bare();
    }
    let options = Options::from_arguments();
    if let Some(requests) = options.memory {
        return memory::run(requests);
    }
    disk();
    println!(
        "connections  what      requests/s  ratio to bare (spread)  p50 us  p99 us  p99.9 us  CPU s/1000  resident MiB"
    );
    for connections in &options.connections {
        table(&options, *connections);
    }
    if options.stream {
        stream::run(options.seconds.max(2.0));
    }
}

/// What a durable write costs at least: 4 KiB behind the others, and an fdatasync.
fn disk() {
    let mut file = tempfile::tempfile().unwrap();
    let mut latencies: Vec<f64> = (0..500)
        .map(|_| {
            let began = Instant::now();
            file.write_all(&[b'x'; 4096]).unwrap();
            file.sync_data().unwrap();
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    latencies.sort_by(f64::total_cmp);
    let (p50, p99) = (latencies[250], latencies[495]);
    println!("4 KiB and fdatasync: p50 {p50:.0} us, p99 {p99:.0} us\n");
    report::tell("disk", json!({"p50_us": p50, "p99_us": p99}));
}

/// All rows for one number of connections.
fn table(options: &Options, connections: usize) {
    let rows = Row::start_all(options, connections);
    let mut runs: Vec<Vec<Run>> = rows.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        // Each round begins with another one: nobody always comes behind the same.
        for turn in 0..rows.len() {
            let place = (round + turn) % rows.len();
            let is_last = round + 1 == options.rounds;
            runs[place].push(rows[place].run(connections, options.seconds, is_last));
        }
    }
    let limits: Vec<f64> = runs[0].iter().map(Run::rate).collect();
    for (row, runs) in rows.iter().zip(&runs) {
        let ratios = runs.iter().zip(&limits).map(|(run, limit)| run.rate() / limit);
        let (low, high) =
            ratios.clone().fold((f64::MAX, 0.0), |(low, high), ratio| (ratio.min(low), ratio.max(high)));
        let of = |figure: &dyn Fn(&Run) -> f64| median(runs.iter().map(figure));
        let (rate, ratio) = (of(&Run::rate), median(ratios));
        let all = Load::all(runs.iter().map(|run| &run.load));
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| all.percentile(share));
        let cpu = of(&Run::cpu_s_per_1000);
        let resident = runs.last().and_then(|run| run.resident_mib).unwrap_or_default();
        let spread = format!("{ratio:.2} ({low:.2}..{high:.2})");
        let name = &row.name;
        println!(
            "{connections:>11}  {name:<8}  {rate:>10.0}  {spread:>22}  {p50:>6.0}  {p99:>6.0}  {p999:>8.0}  {cpu:>10.3}  {resident:>12.1}"
        );
        report::tell(
            "row",
            json!({
                "connections": connections, "name": name, "rate": rate, "ratio": ratio, "ratio_min": low,
                "ratio_max": high, "p50_us": p50, "p99_us": p99, "p999_us": p999, "cpu_s_per_1000": cpu,
                "resident_mib": resident, "rates": runs.iter().map(Run::rate).collect::<Vec<_>>(),
                "requests": all.latencies.len(),
            }),
        );
    }
}
