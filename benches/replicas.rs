//! Durable decisions per second of 1, 2 and 3 replicas on one PostgreSQL, 64 connections each, beside pgbench with 64
//! clients that inserts a row of the same size with the same durability into the same server.
//!
//! Run: cargo bench --bench replicas [-- SECONDS]. Everything runs on one machine, the load and the server included; all
//! take turns, several rounds each, so that what else the machine does hits all alike. Read the ratios.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "a bench stops at the first surprise, and prints; it uses a part of what the tests have"
)]

#[path = "../tests/postgres/cluster.rs"]
mod cluster;

use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cluster::{Cluster, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CANONICAL: &str = include_str!("../docs/examples/taskspec-canonical.json");
const CONNECTIONS: usize = 64;
const ROUNDS: usize = 3;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let number: Option<f64> = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let seconds = number.unwrap_or(5.0);
    let cluster = Cluster::start();
    let database = cluster.database();
    let url = cluster.url(&database);
    let replicas: Vec<Replica> = (0..3).map(|_| Replica::start(&url)).collect();
    // Caches are filled, connections made, and the size of a decision is known.
    load(&replicas[..1], 1.0);
    let size = "select (sum(octet_length(wire) + octet_length(consensus_timestamp) + 32) \
        + (select sum(octet_length(body) + 32) from handoffd_bodies)) / count(*) filter (where wire like '%\"type\":\"gate.decided\"%') \
        from handoffd_entries";
    let bytes: usize = cluster.psql(&database, size).split('.').next().unwrap().parse().unwrap();
    let rows = cluster.database();
    cluster.psql(&rows, "create table rows (id bigserial primary key, body bytea not null)");
    cluster.psql(&rows, "alter table rows alter column body set storage external");
    println!("a decision is {bytes} bytes in the database, and so is a row of pgbench");
    println!("what         per second  ratio to pgbench  p50 ms  p99 ms  decided again");
    let mut runs: [Vec<Run>; 4] = Default::default();
    for _ in 0..ROUNDS {
        runs[0].push(pgbench(&cluster, &rows, bytes, seconds));
        for (n, run) in runs.iter_mut().enumerate().skip(1) {
            run.push(load(&replicas[..n], seconds));
        }
    }
    let middle = |runs: &[Run], of: fn(&Run) -> f64| {
        let mut all: Vec<f64> = runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let base = middle(&runs[0], |run| run.rate);
    for (n, run) in runs.iter().enumerate() {
        let name = if n == 0 { "pgbench".to_owned() } else { format!("{n} replica(s)") };
        let (rate, p50, p99) =
            (middle(run, |run| run.rate), middle(run, |run| run.p50), middle(run, |run| run.p99));
        let again = middle(run, |run| run.again);
        println!("{name:<12} {rate:>10.0} {:>17.2} {p50:>7.1} {p99:>7.1} {again:>14.2}", rate / base);
    }
}

struct Run {
    rate: f64,
    p50: f64,
    p99: f64,
    /// Batches that another replica came before, for each that was appended.
    again: f64,
}

/// One replica, and a workspace for it.
struct Replica {
    child: Child,
    address: String,
    token: String,
    _workspace: tempfile::TempDir,
}

impl Replica {
    fn start(url: &str) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        let root = workspace.path().to_owned();
        let child = Command::new(env!("CARGO_BIN_EXE_handoffd"))
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--ledger", url, "--workspace"])
            .arg(&root)
            .spawn()
            .unwrap();
        let mut replica = Self { child, address: String::new(), token: String::new(), _workspace: workspace };
        until(|| {
            let holder = std::fs::read_to_string(root.join("memory/.lock")).unwrap_or_default();
            let holder: serde_json::Value = serde_json::from_str(&holder).unwrap_or_default();
            let token = std::fs::read_to_string(root.join("memory/admin.token")).unwrap_or_default();
            replica.address = holder["address"].as_str().unwrap_or_default().to_owned();
            replica.token = token.trim().to_owned();
            !replica.token.is_empty() && replica.get("/readyz").contains("200 OK")
        });
        replica
    }

    fn get(&self, path: &str) -> String {
        use std::io::{Read as _, Write as _};
        let Ok(mut stream) = std::net::TcpStream::connect(&self.address) else { return String::new() };
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.token
        );
        let mut text = String::new();
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.read_to_string(&mut text);
        text
    }

    fn counted(&self, name: &str) -> f64 {
        let text = self.get("/metrics");
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).unwrap_or(0.0)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn load(replicas: &[Replica], seconds: f64) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let again = || replicas.iter().map(|one| one.counted("handoffd_appends_overtaken_total")).sum::<f64>();
    let appends = || replicas.iter().map(|one| one.counted("handoffd_batch_entries_count")).sum::<f64>();
    let before = (again(), appends());
    let (began, end) = (Instant::now(), Instant::now() + Duration::from_secs_f64(seconds));
    let mut latencies: Vec<u32> = runtime.block_on(async {
        let tasks: Vec<_> = replicas
            .iter()
            .flat_map(|replica| (0..CONNECTIONS).map(move |_| replica))
            .map(|replica| tokio::spawn(client(replica.address.clone(), replica.token.clone(), end)))
            .collect();
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.unwrap());
        }
        all
    });
    let elapsed = began.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |share: f64| f64::from(latencies[(latencies.len() as f64 * share) as usize]) / 1000.0;
    let again = (again() - before.0) / (appends() - before.1).max(1.0);
    Run { rate: latencies.len() as f64 / elapsed, p50: at(0.5), p99: at(0.99), again }
}

static NEXT: AtomicU64 = AtomicU64::new(0);

async fn client(address: String, token: String, end: Instant) -> Vec<u32> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut latencies, mut answer) = (Vec::new(), vec![0; 64 * 1024]);
    while Instant::now() < end {
        let number = format!("{:010}", NEXT.fetch_add(1, Ordering::Relaxed));
        let body = CANONICAL
            .replace("hs_20260218_router_0001", &format!("hs_bench_{number}"))
            .replace("idem_swap_cycle_9001", &format!("idem_bench_{number}"));
        let request = format!(
            "POST /v1/handoffs HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let began = Instant::now();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut filled = 0;
        loop {
            let read = stream.read(&mut answer[filled..]).await.unwrap();
            assert!(read > 0, "the server closed the connection");
            filled += read;
            if is_whole(&answer[..filled]) {
                break;
            }
        }
        latencies.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
        assert_eq!(&answer[9..12], b"201", "{}", String::from_utf8_lossy(&answer[..filled]));
    }
    latencies
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let text = std::str::from_utf8(&answer[..head]).unwrap().to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    answer.len() >= head + 4 + length.unwrap()
}

/// One row a transaction, 64 clients.
fn pgbench(cluster: &Cluster, database: &str, bytes: usize, seconds: f64) -> Run {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("insert.sql");
    let sixteens = bytes / 16;
    let insert =
        format!("insert into rows (body) values (decode(repeat(md5(random()::text), {sixteens}), 'hex'));\n");
    std::io::Write::write_all(&mut std::fs::File::create(&script).unwrap(), insert.as_bytes()).unwrap();
    let run = Command::new(cluster::binary("pgbench"))
        .args(["-n", "-M", "prepared", "-c", "64", "-j", "2", "-h", "127.0.0.1", "-U", "handoffd"])
        .args(["-T", &format!("{}", seconds.ceil()), "-p", &cluster.port.to_string(), "-f"])
        .arg(&script)
        .arg(database)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{run:?}");
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0.0)
    };
    let latency = value("latency average");
    Run { rate: value("tps"), p50: latency, p99: latency, again: 0.0 }
}
