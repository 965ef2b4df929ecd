//! How long every page of the console takes with a long ledger behind it.
//!
//! Run: cargo bench --bench console [-- ENTRIES]. The daemon runs in a process of its own. A million entries are handed in
//! over the API: a third of the handoffs refused, for several reasons, the rest under way; a route is brought to live, with
//! two hundred handoffs that wait for a person, and as many grants. Then an operator opens every page, and every list
//! under filters that match much, little and nothing, ten times each. If a page ever takes 200 ms, the bench fails.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a bench stops at the first surprise, and prints"
)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use handoffd::timestamp::Timestamp;
use serde_json::{Value as Json, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MINIMAL: &str = include_str!("../docs/examples/taskspec-minimal.json");
const KEY: &str = "crypto-sage.execution-plane.v1";
const BATCH: usize = 1_000;
const WAITING: usize = 200;
const TIMES: usize = 10;
const PAGE_MS_MAX: f64 = 200.0;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let entries = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let mut daemon = Daemon::start();
    let began = Instant::now();
    daemon.go_live();
    daemon.fill(entries);
    let head = daemon.head();
    println!(
        "{head} entries, handed in in {:.0} s; the daemon has {:.0} MiB",
        began.elapsed().as_secs_f64(),
        daemon.resident_mib()
    );
    println!("first ms  median ms  worst ms   KiB  page");
    let cookie = daemon.log_in();
    let mut worst: f64 = 0.0;
    for page in daemon.pages(head) {
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..TIMES {
            let asked = Instant::now();
            let shown =
                daemon.wire.ask(&format!("GET {page} HTTP/1.1\r\nHost: bench\r\nCookie: {cookie}\r\n\r\n"));
            times.push(asked.elapsed().as_secs_f64() * 1_000.0);
            assert_eq!(shown.status, 200, "{page}: {}", String::from_utf8_lossy(&shown.body));
            bytes = shown.body.len();
        }
        let first = times[0];
        times.sort_by(f64::total_cmp);
        let (median, last) = (times[TIMES / 2], times[TIMES - 1]);
        worst = worst.max(last);
        println!("{first:>8.1}  {median:>9.1}  {last:>8.1}  {:>4}  {page}", bytes / 1024);
    }
    println!("the slowest page took {worst:.1} ms");
    assert!(worst < PAGE_MS_MAX, "a page took {worst:.1} ms");
}

struct Daemon {
    child: Child,
    wire: Wire,
    admin: String,
    rita: String,
    sage: String,
    _workspace: tempfile::TempDir,
}

impl Daemon {
    fn start() -> Self {
        let workspace = tempfile::tempdir_in(".").unwrap();
        let command = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
            command.current_dir(workspace.path()).stdin(Stdio::null());
            for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HANDOFFD_")) {
                command.env_remove(name);
            }
            command
        };
        assert!(command().arg("init").output().unwrap().status.success());
        // Nothing is known of the route yet, and its agent answers.
        let agent = TcpListener::bind("127.0.0.1:0").unwrap();
        let probe = format!("http://{}/health", agent.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut asked in agent.incoming().map_while(Result::ok) {
                let _ = asked.read(&mut [0; 4096]);
                let _ = asked.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        let path = workspace.path().join("policies/routes.json");
        let mut table: Json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let route = table["routes"][KEY].as_object_mut().unwrap();
        route.retain(|name, _| name != "stage" && name != "signingKeyId");
        route.extend([("requireSignature".to_owned(), json!(false)), ("probeUrl".to_owned(), json!(probe))]);
        std::fs::File::create(&path).unwrap().write_all(table.to_string().as_bytes()).unwrap();
        let child =
            command().args(["serve", "--listen", "127.0.0.1:0", "--log-level", "error"]).spawn().unwrap();
        let began = Instant::now();
        let (address, admin) = loop {
            let holder = std::fs::read_to_string(workspace.path().join("memory/.lock")).unwrap_or_default();
            let holder: Json = serde_json::from_str(&holder).unwrap_or_default();
            let token = std::fs::read_to_string(workspace.path().join("memory/admin.token"));
            if let (Some(address), Ok(token)) = (holder["address"].as_str(), token)
                && TcpStream::connect(address).is_ok()
            {
                break (address.to_owned(), token.trim().to_owned());
            }
            assert!(began.elapsed() < Duration::from_secs(30), "the daemon did not start");
            std::thread::sleep(Duration::from_millis(20));
        };
        let wire = Wire(TcpStream::connect(address).unwrap());
        wire.0.set_nodelay(true).unwrap();
        let (rita, sage) = (String::new(), String::new());
        let mut daemon = Self { child, wire, admin, rita, sage, _workspace: workspace };
        let mut token = |body: Json| {
            let admin = daemon.admin.clone();
            let made = daemon.post(&admin, "/v1/tokens", &body);
            made["token"].as_str().unwrap().to_owned()
        };
        let rita = token(json!({"name": "rita", "role": "operator"}));
        let sage = token(json!({"name": "sage", "role": "agent", "agentId": "crypto-sage"}));
        (daemon.rita, daemon.sage) = (rita, sage);
        daemon
    }

    fn post(&mut self, token: &str, path: &str, body: &Json) -> Json {
        let body = body.to_string();
        let answer = self.wire.ask(&format!(
            "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let text = String::from_utf8_lossy(&answer.body);
        assert!((200..300).contains(&answer.status), "{path}: {} {text}", answer.status);
        serde_json::from_str(&text).unwrap()
    }

    fn get(&mut self, path: &str) -> Json {
        let token = self.admin.clone();
        let asked = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n");
        serde_json::from_slice(&self.wire.ask(&asked).body).unwrap()
    }

    /// Brings the route to live, leaves handoffs waiting for a person, and makes grants.
    fn go_live(&mut self) {
        let (admin, rita) = (self.admin.clone(), self.rita.clone());
        let gate = |daemon: &mut Self, gate: &str, body: Json| {
            let decided = daemon.post(&rita, &format!("/v1/routes/{KEY}/gates/{gate}"), &body);
            assert_eq!(decided["status"], "passed", "{decided}");
        };
        self.work("dev_0001", "dev");
        gate(self, "G0", json!({}));
        gate(self, "G1", json!({}));
        for n in 1..=3 {
            self.work(&format!("sim_000{n}"), "simulated");
        }
        gate(self, "G2", json!({}));
        let evidence = json!({"handoffId": "hs_bench_sim_0003", "evidence": {"runId": "run-1"}});
        gate(self, "G3", evidence);
        gate(self, "G4", json!({}));
        let token = json!({"name": "router", "role": "orchestrator", "agentId": "decision-router"});
        let router = self.post(&admin, "/v1/tokens", &token)["token"].as_str().unwrap().to_owned();
        let rita = self.rita.clone();
        let last = self.get("/v1/audit?limit=1")["entries"][0]["consensusTimestamp"].clone();
        let ends =
            Timestamp::parse(last.as_str().unwrap()).unwrap().plus_seconds(24 * 3_600).to_milliseconds();
        for n in 0..WAITING {
            let mut live = spec(&format!("live_{n:04}"), "live");
            live["safety"]["requiresHumanApproval"] = json!(true);
            assert_eq!(self.post(&router, "/v1/handoffs", &live)["decision"], "needs_approval");
            let grant = json!({"principal": "user:main", "agents": ["blockchain-operator"], "operations": ["transfer"],
                "modes": ["simulated"], "expiresAt": ends, "uses": 3});
            self.post(&rita, "/v1/authorizations", &grant);
        }
    }

    /// A handoff from its decision to its completion.
    fn work(&mut self, name: &str, mode: &str) {
        let (admin, sage) = (self.admin.clone(), self.sage.clone());
        self.post(&admin, "/v1/handoffs", &spec(name, mode));
        let artifact = json!({"artifact_id": "report", "uri": "s3://reports/1", "version": 1,
            "hash": format!("sha256:{}", "0".repeat(64))});
        let done = json!({"artifact_ids": ["report"], "verification": {"mechanical": "pass"}});
        let events = [
            ("task.claimed", json!({})),
            ("task.started", json!({})),
            ("artifact.ready", artifact),
            ("task.complete", done),
        ];
        for (n, (kind, payload)) in events.into_iter().enumerate() {
            let is_last = kind == "task.complete";
            let event = json!({
                "wire": "1.1", "wire_id": format!("wire_{}x{n:08}", name.replace('_', "")), "type": kind,
                "ts": "2026-02-18T19:38:05Z", "sender": "agent:crypto-sage", "payload": payload,
                "state": {"category": if is_last { "completed" } else { "working" }, "terminal": is_last},
                "stream": {"stream_id": format!("task:hs_bench_{name}:attempt:1"), "stream_seq": n + 4,
                    "context_id": format!("corr_{name}"), "correlation_id": format!("corr_{name}")},
            });
            self.post(&sage, &format!("/v1/handoffs/hs_bench_{name}/events"), &event);
        }
    }

    fn fill(&mut self, entries: usize) {
        let admin = self.admin.clone();
        let mut n = 0;
        while self.head() < entries {
            let batch: Vec<Json> = (n..n + BATCH).map(one_of_many).collect();
            n += BATCH;
            self.post(&admin, "/v1/handoffs/batch", &Json::Array(batch));
        }
    }

    fn head(&mut self) -> usize {
        let page = self.get("/v1/audit?limit=1");
        usize::try_from(page["entries"][0]["sequence"].as_u64().unwrap()).unwrap()
    }

    fn log_in(&mut self) -> String {
        let body = format!("token={}", self.rita);
        let entered = self.wire.ask(&format!(
            "POST /console/login HTTP/1.1\r\nHost: bench\r\nOrigin: http://bench\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        assert_eq!(entered.status, 303);
        let cookie = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Every page, and every list under filters that match much, little and nothing.
    fn pages(&mut self, head: usize) -> Vec<String> {
        let mut newest = |filter: &str| {
            let list = self.get(&format!("/v1/handoffs?limit=1{filter}"));
            list["handoffs"][0]["handoffId"].as_str().unwrap().to_owned()
        };
        let (allowed, denied) = (newest("&decision=allowed"), newest("&decision=denied"));
        let grants = self.get("/v1/authorizations?limit=1");
        let grant = grants["authorizations"][0]["authorizationRef"].as_str().unwrap();
        let middle = head / 2;
        let pages = [
            String::new(),
            "/handoffs".into(),
            "/handoffs?decision=denied".into(),
            "/handoffs?decision=expired".into(),
            "/handoffs?status=completed".into(),
            "/handoffs?agent=crypto-sage".into(),
            "/handoffs?agent=nobody".into(),
            format!("/handoffs?route={KEY}"),
            "/handoffs?code=A2A_ROUTE_UNKNOWN".into(),
            "/handoffs?correlationId=corr_nothing".into(),
            "/handoffs?from=2026-01-01T00:00&to=2026-01-02T00:00".into(),
            format!("/handoffs?decision=denied&agent=crypto-sage&route={KEY}&code=POLICY_SELF_TEST"),
            format!("/handoffs?status=rejected&route={KEY}&code=A2A_ROUTE_UNKNOWN"),
            format!("/handoffs/{allowed}"),
            format!("/handoffs/{denied}?verify=yes"),
            "/approvals".into(),
            "/approvals/hs_bench_live_0007".into(),
            "/act/approve?id=hs_bench_live_0007".into(),
            "/authorizations".into(),
            "/authorizations?state=revoked".into(),
            format!("/act/revoke?ref={grant}"),
            "/routes".into(),
            format!("/routes/{KEY}"),
            format!("/act/rollback?key={KEY}"),
            "/freezes".into(),
            "/act/freeze?scope=all".into(),
            format!("/act/freeze?scope=route&routeKey={KEY}"),
            "/mentions".into(),
            "/audit".into(),
            "/audit?type=gate.decided".into(),
            "/audit?type=freeze.set".into(),
            "/audit?decision=denied&code=POLICY_SELF_TEST".into(),
            "/audit?code=NOTHING".into(),
            "/audit?agent=crypto-sage".into(),
            "/audit?agent=nobody".into(),
            format!("/audit?route={KEY}"),
            format!("/audit?handoffId={denied}"),
            "/audit?type=gate.decided&decision=allowed&code=A2A_ROUTE_UNKNOWN".into(),
            "/audit/1".into(),
            format!("/audit/{middle}"),
            "/audit/verify".into(),
            "/policies".into(),
            "/codes".into(),
        ];
        pages.iter().map(|page| format!("/console{page}")).collect()
    }

    fn resident_mib(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let pages = stat.rsplit(')').next().unwrap().split_whitespace().nth(21).unwrap();
        pages.parse::<f64>().unwrap() * 4096.0 / 1024.0 / 1024.0
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spec(name: &str, mode: &str) -> Json {
    let mut spec: Json = serde_json::from_str(MINIMAL).unwrap();
    spec["handoffId"] = json!(format!("hs_bench_{name}"));
    spec["correlationId"] = json!(format!("corr_{name}"));
    spec["audit"] = json!({"requestId": format!("req_{name}"), "idempotencyKey": format!("idem_{name}")});
    spec["mode"] = json!(mode);
    spec
}

/// Under ids that follow no order, as those of several senders do.
fn one_of_many(n: usize) -> Json {
    let number = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut spec = spec(&format!("{number:016x}"), if n.is_multiple_of(2) { "dev" } else { "simulated" });
    if n.is_multiple_of(5) {
        spec["routing"]["routeKey"] = json!(format!("nowhere-{}.execution-plane.v1", n % 40));
    } else if n.is_multiple_of(7) {
        spec["safety"]["e2eActor"] = json!("myself");
    }
    spec
}

/// One connection, one request after the other.
struct Wire(TcpStream);

struct Answer {
    status: u16,
    /// In lower case but for values.
    head: String,
    body: Vec<u8>,
}

impl Wire {
    fn ask(&mut self, request: &str) -> Answer {
        self.0.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let read = self.0.read(&mut buffer).unwrap();
            assert!(read > 0, "the daemon closed the connection: {}", String::from_utf8_lossy(&bytes));
            bytes.extend(&buffer[..read]);
            let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let length: usize = length.parse().unwrap();
            if bytes.len() == end + 4 + length {
                let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
                return Answer { status, head, body: bytes[end + 4..].to_vec() };
            }
        }
    }
}
