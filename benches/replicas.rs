//! Durable decisions per second of 1, 2 and 3 replicas on one PostgreSQL, 64 connections each, beside pgbench with 64
//! clients that inserts a row of the same size with the same durability into the same server.
//!
//! Run: cargo bench --bench replicas [-- SECONDS] [--standby MS] [--beside PROGRAM]. Everything runs on one machine, the
//! load and the server included; all take turns, several rounds each, so that what else the machine does hits all alike.
//! Read the ratios. With `--standby` every commit, pgbench's too, waits for a real standby that is so many milliseconds
//! away in each direction; with `--beside` one replica of another build takes turns with them, on a ledger of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "a bench stops at the first surprise, and prints; it uses a part of what the tests have"
)]

mod load;

use std::sync::Arc;
use std::time::Duration;

use load::daemon::Daemon;
use load::pgbench::Rows;
use load::pgbench::cluster::{self, Cluster};
use load::slow_link::slow_link;
use load::specs::direct;
use load::{Load, Request, load, median};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONNECTIONS: usize = 64;
const ROUNDS: usize = 3;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let behind = |flag: &str| {
        arguments.iter().position(|argument| argument == flag).map(|place| arguments[place + 1].clone())
    };
    let seconds: f64 = arguments.first().and_then(|argument| argument.parse().ok()).unwrap_or(5.0);
    let cluster = Arc::new(Cluster::start());
    let _standby = behind("--standby").map(|ms| {
        let each_way = Duration::from_secs_f64(ms.parse::<f64>().unwrap() / 1000.0);
        let standby = cluster.standby_through(slow_link(cluster.port, each_way));
        cluster.set("synchronous_standby_names", "*");
        let streams = "select count(*) from pg_stat_replication where sync_state = 'sync'";
        cluster::until(|| cluster.psql("postgres", streams) == "1");
        println!("every commit waits for a standby that is {ms} ms away");
        standby
    });
    // Each on a ledger of its own: a replica that only follows costs those who decide something, too.
    let fleet = |replicas: usize, program: &str| {
        let database = cluster.database();
        let url = cluster.url(&database);
        let replicas = (0..replicas).map(|_| Daemon::start_program(program, &["--ledger", &url]));
        (replicas.collect::<Vec<_>>(), database)
    };
    let mut fleets = Vec::from([1, 2, 3].map(|replicas| fleet(replicas, env!("CARGO_BIN_EXE_handoffd"))));
    fleets.extend(behind("--beside").map(|program| fleet(1, &program)));
    // Caches are filled, connections made, and the size of a decision is known.
    for (replicas, _) in &fleets {
        submit(replicas, 1.0);
    }
    let database = &fleets[0].1;
    let size = "select (sum(octet_length(wire) + octet_length(consensus_timestamp) + 32) \
        + (select sum(octet_length(body) + 32) from handoffd_bodies)) / count(*) filter (where wire like '%\"type\":\"gate.decided\"%') \
        from handoffd_entries";
    let bytes: usize = cluster.psql(database, size).split('.').next().unwrap().parse().unwrap();
    let rows = Rows::new(cluster, bytes);
    println!("a decision is {bytes} bytes in the database, and so is a row of pgbench");
    println!("what         per second  ratio to pgbench  p50 ms  p99 ms  decided again");
    let mut runs: [Vec<Run>; 5] = Default::default();
    for _ in 0..ROUNDS {
        runs[0].push(Run { load: rows.insert(CONNECTIONS, seconds), again: 0.0 });
        for (run, (replicas, _)) in runs[1..].iter_mut().zip(&fleets) {
            run.push(submit(replicas, seconds));
        }
    }
    let of = |runs: &[Run], figure: &dyn Fn(&Run) -> f64| median(runs.iter().map(figure));
    let base = of(&runs[0], &|run| run.load.rate());
    let names = ["pgbench", "1 replica", "2 replicas", "3 replicas", "beside"];
    for (name, runs) in names.iter().zip(&runs).filter(|(_, runs)| !runs.is_empty()) {
        let rate = of(runs, &|run| run.load.rate());
        let [p50, p99] = [0.5, 0.99].map(|share| of(runs, &|run| run.load.percentile(share) / 1000.0));
        let again = of(runs, &|run| run.again);
        println!("{name:<12} {rate:>10.0} {:>17.2} {p50:>7.1} {p99:>7.1} {again:>14.2}", rate / base);
    }
    // Before their database, or they say that it is gone.
    drop(fleets);
}

struct Run {
    load: Load,
    /// Batches that another replica came before, for each that was appended.
    again: f64,
}

fn counted(replica: &Daemon, name: &str) -> f64 {
    let text = replica.get("/metrics");
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).unwrap_or(0.0)
}

/// So many connections to each.
fn submit(replicas: &[Daemon], seconds: f64) -> Run {
    let sum = |name: &str| replicas.iter().map(|one| counted(one, name)).sum::<f64>();
    let (again, appends) = ("handoffd_appends_overtaken_total", "handoffd_batch_entries_count");
    let before = (sum(again), sum(appends));
    let requests: Vec<Request> = replicas
        .iter()
        .map(|one| {
            Request::post("/v1/handoffs", &one.token, &direct("simulated")).answered(&[201], "\"allowed\"")
        })
        .collect();
    let servers: Vec<(&str, &[Request])> =
        replicas.iter().zip(requests.chunks(1)).map(|(one, request)| (&*one.address, request)).collect();
    let load = load(&servers, CONNECTIONS, seconds);
    Run { load, again: (sum(again) - before.0) / (sum(appends) - before.1).max(1.0) }
}
