//! The rows of the table: a server each, what is asked of it, and a look at whether it does its work.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::checks::{Knows, refuses, remembers};
use super::load::daemon::Daemon;
use super::load::pgbench::{Rows, cluster::Cluster};
use super::load::process::{Process, settle, tied, usage};
use super::load::specs::{delegated, direct, sealed, workspace};
use super::load::{Load, Request, ask, load, report};
use super::options::{Options, Peer};

/// Has this program be the bare handler.
pub(crate) const BARE: &str = "HANDOFFD_BENCH_BARE";

/// handoffd has it inside; a peer reads it from its workspace.
const SCHEMA: &[u8] = include_bytes!("../../docs/schemas/task-spec.schema.json");

/// Caches are filled, and programs that compile as they run have compiled.
const WARM_UP_S: f64 = 1.0;

pub(crate) struct Row {
    pub(crate) name: String,
    /// The process that uses what is used.
    root: u32,
    server: Server,
}

enum Server {
    Http { address: String, requests: Vec<Request>, kept: Kept },
    Insert { rows: Rows },
}

/// What lives as long as the row.
enum Kept {
    Daemon(Daemon),
    Process(Process, Option<tempfile::TempDir>),
}

/// One run of one row.
pub(crate) struct Run {
    pub(crate) load: Load,
    cpu_s: f64,
    pub(crate) resident_mib: Option<f64>,
}

impl Run {
    pub(crate) fn rate(&self) -> f64 {
        self.load.rate()
    }

    pub(crate) fn cpu_s_per_1000(&self) -> f64 {
        self.cpu_s * 1000.0 / self.load.latencies.len() as f64
    }
}

impl Row {
    /// Starts everything anew, sees that it works, and warms it up. The limit comes first.
    pub(crate) fn start_all(options: &Options, connections: usize) -> Vec<Self> {
        let mut rows = vec![Self::bare()];
        let is_wanted = |name: &&str| options.only.is_empty() || options.only.iter().any(|only| only == name);
        rows.extend(["check", "submit", "send"].into_iter().filter(is_wanted).map(Self::daemon));
        rows.extend(options.builds.iter().map(|(name, program)| Self::build(name, program)));
        rows.extend(options.peers.iter().map(Self::peer));
        let warm_up = |row: &Self| {
            let run = row.run(connections, WARM_UP_S, false);
            eprintln!("{connections:>11}  {:<8}  works, {:>6.0} a second at first", row.name, run.rate());
            run.load.latencies.len()
        };
        let mut decision_bytes = 0;
        for row in &rows {
            let before = row.ledger_bytes();
            let requests = warm_up(row);
            if row.name == "submit" {
                decision_bytes = (row.ledger_bytes() - before) / requests;
            }
        }
        if options.postgres {
            eprintln!("a decision is {decision_bytes} bytes in the ledger, and so is a row of pgbench");
            report::tell("decision", json!({"bytes": decision_bytes}));
            let row = Self::insert(decision_bytes);
            warm_up(&row);
            rows.push(row);
        }
        rows
    }

    fn bare() -> Self {
        let mut command = tied(std::env::current_exe().unwrap());
        let mut process = Process::start(command.env(BARE, "1").stdout(Stdio::piped()));
        let mut address = String::new();
        BufReader::new(process.stdout()).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        let requests = even(|spec| Request::post("/", "none", spec).answered(&[200], "hs_bench_"));
        Self::http("bare", address, requests, Kept::Process(process, None))
    }

    fn daemon(name: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_handoffd");
        if name == "submit" {
            return Self::build(name, program);
        }
        let (daemon, token) = Daemon::start_with_callers(program);
        let address = daemon.address.clone();
        let requests = if name == "check" {
            let asked = |spec: &str| Request::post("/v1/handoffs/check", &token, spec);
            refuses(&address, Knows::Everything, |spec| asked(spec).answered(&[200], ""));
            even(|spec| asked(spec).answered(&[200], "\"allowed\""))
        } else {
            let asked = |spec: &str| Request::post("/rpc", &token, &message(spec));
            refuses(&address, Knows::Everything, |spec| asked(spec).answered(&[200], "\"rejected\""));
            even(|spec| asked(spec).answered(&[200], "\"submitted\""))
        };
        Self::http(name, address, requests, Kept::Daemon(daemon))
    }

    /// Durable submits: to this build of handoffd, or to another, for before and after.
    fn build(name: &str, program: &str) -> Self {
        let (daemon, token) = Daemon::start_with_callers(program);
        let address = daemon.address.clone();
        let requests = submits(&address, &token, Knows::Everything, true);
        Self::http(name, address, requests, Kept::Daemon(daemon))
    }

    fn peer(peer: &Peer) -> Self {
        let root = tempfile::tempdir().unwrap();
        let token = workspace(root.path()).orchestrator;
        let schemas = root.path().join("docs/schemas");
        std::fs::create_dir_all(&schemas).unwrap();
        let mut schema = std::fs::File::create(schemas.join("task-spec.schema.json")).unwrap();
        schema.write_all(SCHEMA).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut command = tied("sh");
        command.arg("-c").arg(format!("exec {}", peer.command)).stdout(Stdio::null());
        command.env("HANDOFFD_WORKSPACE", root.path()).env("PORT", port.to_string());
        command.env("TOKENS", json!({&token: "decision-router"}).to_string());
        let mut process = Process::start(&mut command);
        let began = Instant::now();
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(process.lives(), "{} ended: {}", peer.name, peer.command);
            assert!(began.elapsed() < Duration::from_secs(60), "{} did not start", peer.name);
            std::thread::sleep(Duration::from_millis(50));
        }
        let knows = if peer.is_durable { Knows::Everything } else { Knows::Policy };
        let requests = submits(&address, &token, knows, peer.is_durable);
        Self::http(&peer.name, address, requests, Kept::Process(process, Some(root)))
    }

    /// One that allows what is to be measured.
    fn http(name: &str, address: String, mut requests: Vec<Request>, kept: Kept) -> Self {
        for request in &mut requests {
            request.renew();
            let (status, answer) = ask(&address, request);
            request.hold(status, answer.as_bytes(), true);
        }
        let root = match &kept {
            Kept::Daemon(daemon) => daemon.process.id(),
            Kept::Process(process, _) => process.id(),
        };
        Self { name: name.to_owned(), root, server: Server::Http { address, requests, kept } }
    }

    fn insert(bytes: usize) -> Self {
        // As Debian sets it up, but with room for all connections.
        let cluster = Arc::new(Cluster::start_with(&["shared_buffers=128MB", "max_connections=300"]));
        // Whose first line is the process above all of the server's others.
        let holder = std::fs::read_to_string(cluster.data().join("postmaster.pid")).unwrap();
        let root = holder.lines().next().and_then(|line| line.trim().parse().ok()).unwrap();
        Self { name: "insert".to_owned(), root, server: Server::Insert { rows: Rows::new(cluster, bytes) } }
    }

    /// Loads it, waits until it has done what it does behind its answers, and tells what all of that cost.
    pub(crate) fn run(&self, connections: usize, seconds: f64, with_memory: bool) -> Run {
        let before = usage(self.root);
        let (load, resident_mib) = std::thread::scope(|scope| {
            // While the connections are there, but near the end.
            let watch = with_memory.then(|| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_secs_f64(seconds * 0.9));
                    usage(self.root).resident_mib
                })
            });
            let load = match &self.server {
                Server::Http { address, requests, .. } => load(&[(address, requests)], connections, seconds),
                Server::Insert { rows } => rows.insert(connections, seconds),
            };
            (load, watch.map(|watch| watch.join().unwrap()))
        });
        let cpu_s = settle(self.root).cpu_s - before.cpu_s;
        Run { load, cpu_s, resident_mib }
    }

    /// What a daemon has written into its ledger; a file may be longer than what is in it.
    fn ledger_bytes(&self) -> usize {
        let Server::Http { kept: Kept::Daemon(daemon), .. } = &self.server else { return 0 };
        let files = std::fs::read_dir(daemon.workspace().join("memory/ledger")).unwrap();
        let files = files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        files.map(|path| std::fs::read(path).unwrap().iter().filter(|byte| **byte != 0).count()).sum()
    }
}

/// One request in the orchestrator's own name, and one in a person's, for the load to send in turn.
fn even(asked: impl Fn(&str) -> Request) -> Vec<Request> {
    vec![asked(&direct("simulated")), asked(&sealed(delegated()).to_string())]
}

/// Those of a server that is asked as handoffd is, once it was seen that it refuses what it should, and remembers.
fn submits(address: &str, token: &str, knows: Knows, is_durable: bool) -> Vec<Request> {
    let asked = |spec: &str| Request::post("/v1/handoffs", token, spec);
    refuses(address, knows, |spec| asked(spec).answered(&[403, 422], ""));
    let allows: &[u16] = if is_durable { &[201] } else { &[200] };
    let requests = even(|spec| asked(spec).answered(allows, "\"allowed\""));
    if is_durable {
        remembers(address, &requests, asked);
    }
    requests
}

/// What a team would write first: read the body, parse it, answer.
pub(crate) fn bare() {
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

/// An A2A message that holds a TaskSpec, and does not wait for what becomes of it.
fn message(spec: &str) -> String {
    let number = spec.split("hs_bench_").nth(1).and_then(|rest| rest.get(..10)).unwrap();
    let spec: serde_json::Value = serde_json::from_str(spec).unwrap();
    json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {
        "configuration": {"blocking": false},
        "message": {"kind": "message", "role": "user", "messageId": format!("msg_{number}"),
            "parts": [{"kind": "data", "data": spec}]},
    }})
    .to_string()
}
