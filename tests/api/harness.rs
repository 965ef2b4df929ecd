//! A daemon on a workspace of its own, gone when the test is done.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::contract::Contract;
use super::left;
use super::wire::{PATIENCE, Reply, Request, send};

/// The daemon, and what a test needs to talk to it.
pub(crate) struct Daemon {
    root: tempfile::TempDir,
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: String,
    contract: Option<Contract>,
    keeps_ledger: bool,
}

/// What the shipped workspace names as its orchestrator.
pub(crate) const ROUTER: &str = "decision-router";

impl Daemon {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// With these settings.
    pub(crate) fn with(settings: &str) -> Self {
        Self::in_directory(tempfile::tempdir().unwrap(), settings)
    }

    pub(crate) fn in_directory(root: tempfile::TempDir, settings: &str) -> Self {
        Self::prepared(root, settings, |_| {})
    }

    /// Lays out the workspace, lets the test change it, and starts.
    pub(crate) fn prepared(root: tempfile::TempDir, settings: &str, prepare: impl FnOnce(&Path)) -> Self {
        let workspace = root.path().join("workspace");
        let made = command(&workspace, &["init"]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        write(&workspace.join("handoffd.toml"), settings);
        prepare(&workspace);
        let child = spawn(root.path());
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut daemon =
            Self { root, child, address, admin: String::new(), contract: None, keeps_ledger: true };
        daemon.meet((!settings.contains("[tls]")).then_some(200));
        daemon
    }

    /// Finds out where it listens, and waits until it is ready to decide, or says that it is not.
    fn meet(&mut self, ready: Option<u16>) {
        let pid = u64::from(self.child.id());
        let lock = self.path("memory/.lock");
        (self.address, self.admin) = eventually("the daemon is there", || {
            let gone = self.child.try_wait().unwrap();
            assert!(gone.is_none(), "{gone:?}: {}", self.log());
            let holder: Json = serde_json::from_slice(&fs::read(&lock).ok()?).ok()?;
            let address = holder["address"].as_str()?.parse().ok()?;
            let token = fs::read_to_string(self.path("memory/admin.token")).ok()?;
            let is_there = holder["pid"] == pid && self.log().contains("listening");
            is_there.then_some((address, token.trim().to_owned()))
        });
        if let Some(status) = ready {
            eventually("the daemon is ready", || (self.raw("GET", "/readyz").status == status).then_some(()));
            self.contract = Some(Contract::of(self.raw("GET", "/openapi.json").json()));
        }
    }

    fn raw(&self, method: &str, target: &str) -> Reply {
        send(self.address, &Request::new(method, target))
    }

    pub(crate) fn contract(&self) -> &Contract {
        self.contract.as_ref().unwrap()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.workspace().join(below)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that it has logged since it was first started.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.root.path().join("log")).unwrap()).into_owned()
    }

    /// Sends a request and compares the answer with the document.
    pub(crate) fn send(&self, request: &Request) -> Reply {
        let reply = send(self.address, request);
        self.contract().check(request, &reply);
        reply
    }

    pub(crate) fn get_as(&self, token: &str, target: &str) -> Reply {
        self.send(&Request::new("GET", target).token(token))
    }

    pub(crate) fn get(&self, target: &str) -> Reply {
        self.get_as(&self.admin, target)
    }

    pub(crate) fn post_as(&self, token: &str, target: &str, body: impl ToString) -> Reply {
        self.send(&Request::new("POST", target).token(token).json(body.to_string()))
    }

    pub(crate) fn post(&self, target: &str, body: impl ToString) -> Reply {
        self.post_as(&self.admin, target, body)
    }

    /// Submits a TaskSpec as the administrator.
    pub(crate) fn submit(&self, spec: &Json) -> Reply {
        self.post("/v1/handoffs", spec)
    }

    /// Makes a token over HTTP, and gives its text.
    pub(crate) fn token(&self, name: &str, role: &str, agent: Option<&str>) -> String {
        let mut new = serde_json::json!({"name": name, "role": role});
        if let Some(agent) = agent {
            new["agentId"] = agent.into();
        }
        let made = self.post("/v1/tokens", new);
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["token"].as_str().unwrap().to_owned()
    }

    /// The token of an operator who also is this principal.
    pub(crate) fn person(&self, name: &str, principal: &str) -> String {
        let new = serde_json::json!({"name": name, "role": "operator", "principal": principal});
        self.post("/v1/tokens", new).json()["token"].as_str().unwrap().to_owned()
    }

    /// Runs another command on the workspace.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Output {
        command(&self.workspace(), arguments).output().unwrap()
    }

    pub(crate) fn cli_ok(&self, arguments: &[&str]) -> String {
        let output = self.cli(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until it has gone.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        eventually("the daemon stops", || self.child.try_wait().unwrap())
    }

    /// Starts one that has stopped again, on the same workspace.
    pub(crate) fn restart_after_stop(&mut self) {
        self.restart_after_stop_as(200);
    }

    /// The same, where `/readyz` then has this status.
    pub(crate) fn restart_after_stop_as(&mut self, ready: u16) {
        self.child = spawn(self.root.path());
        self.meet(Some(ready));
    }

    /// Stops it in order, and starts it again.
    pub(crate) fn restart(&mut self, ready: u16) {
        self.signal("TERM");
        assert!(self.wait().success(), "{}", self.log());
        self.restart_after_stop_as(ready);
    }

    /// The exact lines of the first segment of the ledger.
    pub(crate) fn segment(&self) -> Vec<String> {
        let path = self.path("memory/ledger/00000000000000000001.jsonl");
        fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    /// The Wire events of the ledger, in its order.
    pub(crate) fn events(&self) -> Vec<Json> {
        let lines = self.get("/v1/audit/export");
        assert_eq!(lines.status, 200);
        let event = |line: &str| {
            let line: Json = serde_json::from_str(line).unwrap();
            serde_json::from_str(line["wire"].as_str().unwrap()).unwrap()
        };
        lines.text().lines().map(event).collect()
    }

    /// Says that it will leave no ledger behind. That of every other daemon is looked at in the end.
    pub(crate) fn keeps_no_ledger(&mut self) {
        self.keeps_ledger = false;
    }

    /// What `/metrics` says of a line that begins like this; nothing if there is no such line.
    pub(crate) fn metric(&self, begins: &str) -> Option<f64> {
        let text = self.get("/metrics").text();
        let line = text.lines().find(|line| line.starts_with(begins))?;
        Some(line.rsplit(' ').next()?.parse().unwrap())
    }

    /// What it keeps in memory, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the daemon\n{}", self.log());
        } else if self.keeps_ledger {
            left::check(&self.workspace());
        }
    }
}

fn spawn(root: &Path) -> Child {
    let log = File::options().create(true).append(true).open(root.join("log")).unwrap();
    // A daemon that was here before must not look as if it were this one.
    log.set_len(0).unwrap();
    let serve = command(&root.join("workspace"), &["serve", "--listen", "127.0.0.1:0"]);
    // A write beyond a limit on the size of files is to fail, as on a full disk, and not to end the process.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(serve.get_program()).args(serve.get_args());
    shell.current_dir(root.join("workspace")).env("NO_COLOR", "1").stdin(Stdio::null()).stderr(log);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HANDOFFD_")) {
        shell.env_remove(name);
    }
    shell.spawn().unwrap()
}

/// The built binary on a workspace, with nothing from the environment.
pub(crate) fn command(workspace: &Path, arguments: &[&str]) -> Command {
    fs::create_dir_all(workspace).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HANDOFFD_")) {
        command.env_remove(name);
    }
    command.current_dir(workspace).args(arguments).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

#[expect(clippy::disallowed_methods, reason = "a test lays out files")]
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::write(path, text).unwrap();
}

/// Asks again and again until there is an answer; a test that waits in vain fails.
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The long forms of the tests are run with LONG=1.
pub(crate) fn short_or_long(short: usize, long: usize) -> usize {
    if std::env::var_os("LONG").is_some_and(|value| value == "1") { long } else { short }
}

/// A TaskSpec that the shipped workspace allows, with ids of its own.
pub(crate) fn spec(name: &str) -> Json {
    let text = include_str!("../../docs/examples/taskspec-minimal.json");
    let mut spec: Json = serde_json::from_str(text).unwrap();
    spec["handoffId"] = format!("hs_20260218_{name}").into();
    spec["correlationId"] = format!("corr_{name}").into();
    spec["audit"]["requestId"] = format!("req_{name}").into();
    spec["audit"]["idempotencyKey"] = format!("idem_{name}").into();
    spec
}

/// One that is denied: its route does not exist.
pub(crate) fn lost_spec(name: &str) -> Json {
    let mut spec = spec(name);
    spec["routing"]["routeKey"] = "nowhere.execution-plane.v1".into();
    spec
}

/// Where a TaskSpec is found.
pub(crate) fn location(spec: &Json) -> String {
    format!("/v1/handoffs/{}", spec["handoffId"].as_str().unwrap())
}
