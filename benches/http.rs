//! Requests per second over HTTP: `check` and durable `submit`, beside a bare axum handler that reads the same body
//! and parses its JSON, which is the most that this stack can give.
//!
//! Run: cargo bench --bench http [-- SECONDS]. Everything runs on one machine, the load included, each server in a
//! process of its own; the three take turns, several rounds each, so that what else the machine does hits all alike.
//! Read the ratios. A duplicate is never sent: every submit is a new handoff.
//!
//! cargo bench --bench http -- memory [REQUESTS] tells how much memory the daemon has after a tenth, a half and all of
//! so many requests, half of them checks and half submits that are refused: a handoff that is under way is kept in the
//! state, so allowed ones would only show that there are more of them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a bench stops at the first surprise, and prints"
)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CANONICAL: &str = include_str!("../docs/examples/taskspec-canonical.json");
const BARE: &str = "HANDOFFD_BENCH_BARE";
const ROUNDS: usize = 3;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    if std::env::var_os(BARE).is_some() {
        return bare();
    }
    let number: Option<f64> = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let workspace = tempfile::tempdir().unwrap();
    let daemon = Server::daemon(workspace.path());
    if std::env::args().any(|argument| argument == "memory") {
        return memory(&daemon, number.unwrap_or(1e6) as usize);
    }
    let seconds = number.unwrap_or(3.0);
    let bare = Server::bare();
    println!(
        "connections  what    requests/s  ratio to bare  p50 us  p99 us  p99.9 us  CPU s/1000  resident MiB"
    );
    for connections in [1, 16, 64, 256] {
        let mut runs: [Vec<Run>; 3] = Default::default();
        for _ in 0..ROUNDS {
            runs[0].push(load(&bare, &request(&bare, "/", "simulated"), connections, seconds));
            let check = request(&daemon, "/v1/handoffs/check", "simulated");
            runs[1].push(load(&daemon, &check, connections, seconds));
            let submit = request(&daemon, "/v1/handoffs", "simulated");
            runs[2].push(load(&daemon, &submit, connections, seconds));
        }
        let limit = median(&runs[0], |run| run.rate);
        for (name, runs) in ["bare", "check", "submit"].iter().zip(&runs) {
            let rate = median(runs, |run| run.rate);
            println!(
                "{connections:>11}  {name:<6}  {rate:>10.0}  {:>13.2}  {:>6.0}  {:>6.0}  {:>8.0}  {:>10.3}  {:>12.1}",
                rate / limit,
                median(runs, |run| run.percentile(0.5)),
                median(runs, |run| run.percentile(0.99)),
                median(runs, |run| run.percentile(0.999)),
                median(runs, |run| run.cpu / run.latencies.len() as f64 * 1000.0),
                runs.last().unwrap().resident,
            );
        }
    }
}

/// Resident memory as requests go by, all of the same mix.
fn memory(daemon: &Server, requests: usize) {
    println!("  requests  resident MiB");
    let kinds = ["/v1/handoffs/check", "/v1/handoffs"].map(|path| request(daemon, path, "live"));
    let mut sent = [0; 2];
    for mark in [requests / 10, requests / 2, requests] {
        while sent.iter().sum::<usize>() < mark {
            // Whichever is behind, for a while.
            let next = usize::from(sent[1] < sent[0]);
            sent[next] += load(daemon, &kinds[next], 64, 0.5).latencies.len();
        }
        println!("{:>10}  {:>12.1}", sent.iter().sum::<usize>(), daemon.usage().1);
    }
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut figures: Vec<f64> = runs.iter().map(of).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// What a team would write first: read the body, parse it, answer.
fn bare() {
    use axum::routing::post;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let handler = |body: axum::body::Bytes| async move {
            let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let id = value["handoffId"].as_str().unwrap_or_default().to_owned();
            ([("content-type", "application/json")], format!("{{\"handoffId\":\"{id}\"}}"))
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        axum::serve(listener, axum::Router::new().route("/", post(handler))).await.unwrap();
    });
}

struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    fn bare() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(BARE, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned(), token: "none".to_owned() }
    }

    fn daemon(workspace: &std::path::Path) -> Self {
        let mut server = Self {
            child: Command::new(env!("CARGO_BIN_EXE_handoffd"))
                .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--workspace"])
                .arg(workspace)
                .spawn()
                .unwrap(),
            address: String::new(),
            token: String::new(),
        };
        let lock = workspace.join("memory/.lock");
        let began = Instant::now();
        loop {
            let holder = std::fs::read_to_string(&lock).unwrap_or_default();
            let holder: serde_json::Value = serde_json::from_str(&holder).unwrap_or_default();
            let token = std::fs::read_to_string(workspace.join("memory/admin.token"));
            if let (Some(address), Ok(token)) = (holder["address"].as_str(), token)
                && std::net::TcpStream::connect(address).is_ok()
            {
                std::thread::sleep(Duration::from_millis(300));
                (server.address, server.token) = (address.to_owned(), token.trim().to_owned());
                return server;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "the daemon did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Processor seconds used so far, and resident MiB.
    fn usage(&self) -> (f64, f64) {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        let pages: f64 = fields[21].parse().unwrap();
        (ticks / 100.0, pages * 4096.0 / 1024.0 / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Run {
    rate: f64,
    /// Sorted, in microseconds.
    latencies: Vec<u32>,
    cpu: f64,
    resident: f64,
}

impl Run {
    fn percentile(&self, share: f64) -> f64 {
        let place = (self.latencies.len() as f64 * share) as usize;
        f64::from(self.latencies[place.min(self.latencies.len() - 1)])
    }
}

fn load(server: &Server, request: &Request, connections: usize, seconds: f64) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (cpu_before, _) = server.usage();
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let began = Instant::now();
    let latencies = runtime.block_on(async {
        let tasks: Vec<_> = (0..connections)
            .map(|_| tokio::spawn(client(server.address.clone(), request.clone(), until)))
            .collect();
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.unwrap());
        }
        all
    });
    let elapsed = began.elapsed().as_secs_f64();
    let (cpu_after, resident) = server.usage();
    let mut latencies = latencies;
    latencies.sort_unstable();
    Run { rate: latencies.len() as f64 / elapsed, latencies, cpu: cpu_after - cpu_before, resident }
}

/// A request with room for a number in every id, and where those rooms are.
#[derive(Clone)]
struct Request {
    bytes: Vec<u8>,
    numbers: Arc<[usize]>,
    /// What it may be answered with.
    statuses: [&'static [u8]; 2],
}

const NUMBER: &str = "0000000000";

fn request(server: &Server, path: &str, mode: &str) -> Request {
    let body = CANONICAL
        .replace("hs_20260218_router_0001", &format!("hs_bench_{NUMBER}"))
        .replace("idem_swap_cycle_9001", &format!("idem_bench_{NUMBER}"))
        .replace("\"mode\": \"simulated\"", &format!("\"mode\": \"{mode}\""));
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        server.token,
        body.len()
    );
    let text = head + &body;
    let numbers = text.match_indices(NUMBER).map(|(place, _)| place).collect();
    // No route is live.
    let statuses: [&[u8]; 2] = if mode == "live" { [b"200", b"403"] } else { [b"200", b"201"] };
    Request { bytes: text.into_bytes(), numbers, statuses }
}

static NEXT: AtomicU64 = AtomicU64::new(0);

async fn client(address: String, mut request: Request, until: Instant) -> Vec<u32> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut latencies = Vec::new();
    let mut answer = vec![0; 64 * 1024];
    while Instant::now() < until {
        let number = format!("{:010}", NEXT.fetch_add(1, Ordering::Relaxed));
        for place in request.numbers.iter() {
            request.bytes[*place..place + 10].copy_from_slice(number.as_bytes());
        }
        let began = Instant::now();
        stream.write_all(&request.bytes).await.unwrap();
        let mut filled = 0;
        loop {
            let read = stream.read(&mut answer[filled..]).await.unwrap();
            assert!(read > 0, "the server closed the connection");
            filled += read;
            if let Some(whole) = whole(&answer[..filled]) {
                assert_eq!(filled, whole, "one answer for one request");
                break;
            }
        }
        latencies.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
        let status = &answer[9..12];
        assert!(request.statuses.contains(&status), "{}", String::from_utf8_lossy(&answer[..filled]));
    }
    latencies
}

/// How long the answer is, once its head is there.
fn whole(answer: &[u8]) -> Option<usize> {
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&answer[..head]).unwrap().to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let all = head + 4 + length.unwrap();
    (answer.len() >= all).then_some(all)
}
