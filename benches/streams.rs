//! Many A2A streams at once: each follows a task of its own, in which something happens every second.
//!
//! Run: cargo bench --bench streams [-- STREAMS [SECONDS]]. Everything runs on one machine, the clients included, the
//! daemon in a process of its own. Every stream must tell every event once and in order, and then end with its task; the
//! daemon's memory must not grow with time. If not, the bench fails. It tells how much memory the daemon has before,
//! during and after, and how long an event takes from the agent who reports it to the client who reads it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a bench stops at the first surprise, and prints"
)]

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MINIMAL: &str = include_str!("../docs/examples/taskspec-minimal.json");

/// Agents that report, each for its share of the tasks.
const REPORTERS: usize = 16;

/// What a stream may cost the daemon, with its connection, and how much more it may have at the end than when the first
/// second was over: a stream that kept what it told would be far beyond.
const STREAM_KIB_MAX: f64 = 512.0;
const GROWTH_MIB_MAX: f64 = 128.0;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let (streams, seconds) = (numbers.next().unwrap_or(1_000), numbers.next().unwrap_or(60));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(streams, seconds));
}

async fn run(streams: usize, seconds: usize) {
    let daemon = Arc::new(Daemon::start().await);
    let at_start = daemon.resident_mib();
    println!("{streams} streams, an event a second in each, {seconds} s");
    println!("resident at the start      {at_start:>8.1} MiB");
    each(&daemon, streams, |agent, n| async move { agent.hand_over(n).await }).await;
    let before = daemon.resident_mib();
    println!("with the tasks             {before:>8.1} MiB");

    let board = Arc::new(Board::new(streams, seconds));
    let followers: Vec<_> =
        (0..streams).map(|n| tokio::spawn(follow(daemon.clone(), board.clone(), n))).collect();
    while board.opened.load(Ordering::SeqCst) < streams {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (cpu_before, opened) = (daemon.cpu_s(), daemon.resident_mib());
    println!("when all have just come    {opened:>8.1} MiB");

    let began = Instant::now();
    let mut first_second = 0.0;
    for round in 0..seconds {
        let told = board.clone();
        each(&daemon, streams, move |agent, n| {
            let told = told.clone();
            async move {
                told.sent(n, round);
                agent.report(n, round).await
            }
        })
        .await;
        if round == 0 {
            first_second = daemon.resident_mib();
        }
        // A machine that is too slow for a second takes longer; nothing is dropped for it.
        tokio::time::sleep_until((began + Duration::from_secs(round as u64 + 1)).into()).await;
    }
    let elapsed = began.elapsed().as_secs_f64();
    let (cpu, at_the_end) = (daemon.cpu_s() - cpu_before, daemon.resident_mib());
    each(&daemon, streams, move |agent, n| async move { agent.complete(n, seconds).await }).await;
    for follower in followers {
        follower.await.unwrap();
    }
    let events = streams * seconds;
    let mut latencies = std::mem::take(&mut *board.latencies.lock().unwrap());
    assert_eq!(latencies.len(), events, "every event is told once");
    latencies.sort_unstable();
    let percentile =
        |share: f64| f64::from(latencies[((events as f64 * share) as usize).min(events - 1)]) / 1000.0;
    let per_stream = (at_the_end - before) * 1024.0 / streams as f64;
    println!("after {events:>7} events       {at_the_end:>8.1} MiB  {per_stream:.0} KiB for each stream");
    println!("events a second            {:>8.0}", events as f64 / elapsed);
    println!("processor                  {:>8.2} s a second", cpu / elapsed);
    println!(
        "reported to read, ms       p50 {:.1}  p95 {:.1}  p99 {:.1}  max {:.1}",
        percentile(0.5),
        percentile(0.95),
        percentile(0.99),
        percentile(1.0)
    );
    tokio::time::sleep(Duration::from_millis(500)).await;
    println!("when all have ended        {:>8.1} MiB", daemon.resident_mib());
    assert!(per_stream < STREAM_KIB_MAX, "a stream costs {per_stream:.0} KiB");
    let growth = at_the_end - first_second;
    assert!(growth < GROWTH_MIB_MAX, "memory grew by {growth:.0} MiB while events went by");
}

/// What was sent when, and how long each took.
struct Board {
    rounds: usize,
    sent: Vec<Mutex<Instant>>,
    opened: AtomicUsize,
    /// In microseconds.
    latencies: Mutex<Vec<u32>>,
}

impl Board {
    fn new(streams: usize, rounds: usize) -> Self {
        let sent = (0..streams * rounds).map(|_| Mutex::new(Instant::now())).collect();
        Self { rounds, sent, opened: AtomicUsize::new(0), latencies: Mutex::default() }
    }

    fn sent(&self, n: usize, round: usize) {
        *self.sent[n * self.rounds + round].lock().unwrap() = Instant::now();
    }

    fn read(&self, n: usize, round: usize) {
        let took = self.sent[n * self.rounds + round].lock().unwrap().elapsed();
        self.latencies.lock().unwrap().push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }
}

/// The first three events are the gateway's, two more the agent's; then there is one a second, and the last.
const FIRST: u64 = 6;

fn handoff(n: usize) -> String {
    format!("hs_bench_{n:08}")
}

/// Reads a stream to its end. HTTP/1.0, so that the body is the events and nothing else.
async fn follow(daemon: Arc<Daemon>, board: Arc<Board>, n: usize) {
    let mut stream = TcpStream::connect(&daemon.address).await.unwrap();
    let request = format!(
        "GET /stream/{}?from={FIRST} HTTP/1.0\r\nHost: bench\r\nAuthorization: Bearer {}\r\n\r\n",
        handoff(n),
        daemon.token
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = Vec::new();
    let mut next = FIRST;
    let last = FIRST + board.rounds as u64;
    let mut is_open = false;
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        if read == 0 {
            break;
        }
        text.extend(&buffer[..read]);
        while let Some(end) = text.windows(2).position(|two| two == b"\n\n" || two == b"\r\r") {
            let event: Vec<u8> = text.drain(..end + 2).collect();
            let event = String::from_utf8(event).unwrap();
            let Some(id) = event.lines().find_map(|line| line.strip_prefix("id: ")) else { continue };
            assert_eq!(id.parse::<u64>().unwrap(), next, "nothing lost, nothing twice");
            if next < last {
                board.read(n, (next - FIRST) as usize);
            } else {
                assert!(event.contains("event: final"), "{event}");
            }
            next += 1;
        }
        if !is_open {
            // What is left begins with the head, which has no empty line of this kind.
            assert!(text.starts_with(b"HTTP/1.0 200") || next > FIRST, "{}", String::from_utf8_lossy(&text));
            is_open = true;
            board.opened.fetch_add(1, Ordering::SeqCst);
        }
    }
    assert_eq!(next, last + 1, "the stream of {} ended too early", handoff(n));
}

/// Has the agents do one thing for each task, each agent for its share, one after the other.
async fn each<F, Fut>(daemon: &Arc<Daemon>, streams: usize, act: F)
where
    F: Fn(Agent, usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Agent> + Send,
{
    let shares = (0..REPORTERS.min(streams)).map(|share| {
        let (daemon, act) = (daemon.clone(), act.clone());
        tokio::spawn(async move {
            let mut agent = Agent::new(&daemon).await;
            for n in (share..streams).step_by(REPORTERS) {
                agent = act(agent, n).await;
            }
        })
    });
    for share in shares.collect::<Vec<_>>() {
        share.await.unwrap();
    }
}

/// Whoever submits and reports, on one connection.
struct Agent {
    stream: TcpStream,
    token: String,
    sage: String,
}

impl Agent {
    async fn new(daemon: &Daemon) -> Self {
        let stream = TcpStream::connect(&daemon.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, token: daemon.token.clone(), sage: daemon.sage.clone() }
    }

    async fn post(&mut self, token: &str, path: &str, body: &Json) -> Json {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        loop {
            let mut buffer = [0; 16 * 1024];
            let read = self.stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the daemon closed the connection");
            answer.extend(&buffer[..read]);
            let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
            let length =
                text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if answer.len() == head + 4 + length.unwrap() {
                assert!(text.starts_with("http/1.1 201"), "{}", String::from_utf8_lossy(&answer));
                return serde_json::from_slice(&answer[head + 4..]).unwrap();
            }
        }
    }

    async fn event(&mut self, n: usize, seq: u64, kind: &str, payload: Json) {
        let is_last = kind == "task.complete";
        let event = json!({
            "wire": "1.1", "wire_id": format!("wire_bench{n:08}x{seq:06}"), "type": kind,
            "ts": "2026-02-18T19:38:05Z", "sender": "agent:crypto-sage", "payload": payload,
            "state": {"category": if is_last { "completed" } else { "working" }, "terminal": is_last},
            "stream": {"stream_id": format!("task:{}:attempt:1", handoff(n)), "stream_seq": seq,
                "context_id": format!("corr_bench_{n:08}"), "correlation_id": format!("corr_bench_{n:08}")},
        });
        let sage = self.sage.clone();
        self.post(&sage, &format!("/v1/handoffs/{}/events", handoff(n)), &event).await;
    }

    async fn hand_over(mut self, n: usize) -> Self {
        let mut spec: Json = serde_json::from_str(MINIMAL).unwrap();
        spec["handoffId"] = json!(handoff(n));
        spec["correlationId"] = json!(format!("corr_bench_{n:08}"));
        spec["audit"] =
            json!({"requestId": format!("req_bench_{n:08}"), "idempotencyKey": format!("idem_bench_{n:08}")});
        let token = self.token.clone();
        self.post(&token, "/v1/handoffs", &spec).await;
        self.event(n, FIRST - 2, "task.claimed", json!({})).await;
        self.event(n, FIRST - 1, "task.started", json!({})).await;
        self
    }

    async fn report(mut self, n: usize, round: usize) -> Self {
        let artifact = json!({"artifact_id": "report", "uri": format!("s3://reports/{n}/{round}"),
            "version": round + 1, "hash": format!("sha256:{}", "0".repeat(64))});
        self.event(n, FIRST + round as u64, "artifact.ready", artifact).await;
        self
    }

    async fn complete(mut self, n: usize, rounds: usize) -> Self {
        let payload = json!({"artifact_ids": ["report"], "verification": {"mechanical": "pass"}});
        self.event(n, FIRST + rounds as u64, "task.complete", payload).await;
        self
    }
}

struct Daemon {
    child: Child,
    address: String,
    token: String,
    sage: String,
    _workspace: tempfile::TempDir,
}

impl Daemon {
    async fn start() -> Self {
        let workspace = tempfile::tempdir().unwrap();
        let command = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
            command.current_dir(workspace.path()).stdin(Stdio::null());
            for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HANDOFFD_")) {
                command.env_remove(name);
            }
            command
        };
        assert!(command().arg("init").output().unwrap().status.success());
        let child =
            command().args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn"]).spawn().unwrap();
        let began = Instant::now();
        let (address, token) = loop {
            let holder = std::fs::read_to_string(workspace.path().join("memory/.lock")).unwrap_or_default();
            let holder: Json = serde_json::from_str(&holder).unwrap_or_default();
            let token = std::fs::read_to_string(workspace.path().join("memory/admin.token"));
            if let (Some(address), Ok(token)) = (holder["address"].as_str(), token)
                && std::net::TcpStream::connect(address).is_ok()
            {
                break (address.to_owned(), token.trim().to_owned());
            }
            assert!(began.elapsed() < Duration::from_secs(30), "the daemon did not start");
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut daemon = Self { child, address, token, sage: String::new(), _workspace: workspace };
        let new = json!({"name": "sage", "role": "agent", "agentId": "crypto-sage"});
        let mut agent = Agent::new(&daemon).await;
        let made = agent.post(&daemon.token, "/v1/tokens", &new).await;
        daemon.sage = made["token"].as_str().unwrap().to_owned();
        daemon
    }

    fn stat(&self) -> Vec<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        stat.rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(0.0))
            .collect()
    }

    /// Processor seconds used so far.
    fn cpu_s(&self) -> f64 {
        (self.stat()[11] + self.stat()[12]) / 100.0
    }

    fn resident_mib(&self) -> f64 {
        self.stat()[21] * 4096.0 / 1024.0 / 1024.0
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
