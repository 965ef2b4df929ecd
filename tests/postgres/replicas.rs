//! Gateways that share a ledger: the built binary, each on a workspace of its own, over real HTTP.

use std::fs::{self, File};
use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::cluster::until;
use crate::wire::{PATIENCE, Reply, Request, read_reply};

/// The principal's key, which every replica has.
pub(crate) const SECRET: &str = "the secret of the principal user:main";

/// One gateway.
pub(crate) struct Replica {
    root: tempfile::TempDir,
    url: String,
    child: Option<Child>,
    pub(crate) address: SocketAddr,
    pub(crate) admin: String,
}

/// So many replicas of the ledger at a URL, all ready.
pub(crate) fn fleet(url: &str, replicas: usize) -> Vec<Replica> {
    fleet_with(url, replicas, |_| {})
}

/// The same; each is changed before it starts.
pub(crate) fn fleet_with(url: &str, replicas: usize, change: impl Fn(&Replica)) -> Vec<Replica> {
    let mut fleet: Vec<Replica> = (0..replicas).map(|_| Replica::lay_out(url)).collect();
    fleet.iter().for_each(change);
    fleet.iter_mut().for_each(Replica::spawn);
    fleet.iter_mut().for_each(Replica::meet);
    fleet
}

#[expect(clippy::disallowed_methods, reason = "a test lays out files")]
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::write(path, text).unwrap();
}

impl Replica {
    /// A workspace like those of all others.
    pub(crate) fn lay_out(url: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let replica = Self { root, url: url.to_owned(), child: None, address, admin: String::new() };
        fs::create_dir_all(replica.path("")).unwrap();
        replica.cli(&["init"]);
        write(&replica.path("handoffd.toml"), "[server]\nwaiting_decisions_max = 20000\n");
        let policy = replica.path("policies/delegation/user-main-v1.json");
        let mut text: Json = serde_json::from_str(&fs::read_to_string(&policy).unwrap()).unwrap();
        text["allowWithoutChannel"] = true.into();
        write(&policy, text.to_string());
        write(&replica.path("../secret"), SECRET);
        let secret = replica.path("../secret").display().to_string();
        replica.cli(&[
            "key",
            "add",
            "--owner",
            "user:main",
            "--id",
            "user-main-test",
            "--secret-file",
            &secret,
        ]);
        replica
    }

    /// The same workspace, given another address.
    pub(crate) fn at(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HANDOFFD_")) {
            command.env_remove(name);
        }
        command.current_dir(self.path("")).args(arguments).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    #[track_caller]
    pub(crate) fn cli(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// How a command ends, and what it prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.path().join("workspace").join(below)
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.root.path().join("log")).unwrap()).into_owned()
    }

    /// Starts the process.
    pub(crate) fn spawn(&mut self) {
        self.spawn_with(&[]);
    }

    pub(crate) fn spawn_with(&mut self, more: &[&str]) {
        let log = File::create(self.root.path().join("log")).unwrap();
        let mut serve = self.command(&["serve", "--listen", "127.0.0.1:0", "--ledger", &self.url]);
        self.child = Some(serve.args(more).stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    /// Starts the process in a terminal, as a person would, until it listens; what is seen there.
    pub(crate) fn seen_to_start(&self) -> String {
        let program = env!("CARGO_BIN_EXE_handoffd");
        let seen = self.root.path().join("seen");
        let serve = format!("exec '{program}' serve --listen 127.0.0.1:0 --ledger '{}'", self.url);
        let mut terminal = Command::new("script");
        terminal.args(["--quiet", "--flush", "--return", "--command", &serve]).arg(&seen);
        terminal.current_dir(self.path("")).env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = terminal.spawn().unwrap();
        let text = || String::from_utf8_lossy(&fs::read(&seen).unwrap_or_default()).into_owned();
        until(|| text().contains("listening"));
        // The terminal goes, and takes what runs in it along.
        let holder: Json = serde_json::from_slice(&fs::read(self.path("memory/.lock")).unwrap()).unwrap();
        let sent = Command::new("kill").args(["-s", "TERM", &holder["pid"].to_string()]).status().unwrap();
        assert!(sent.success());
        assert!(child.wait().unwrap().success());
        text()
    }

    /// Waits until it listens.
    pub(crate) fn hear(&mut self) {
        let pid = u64::from(self.pid());
        let (mut found, mut token) = (None, String::new());
        until(|| {
            let gone = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
            assert!(gone.is_none(), "{gone:?}: {}", self.log());
            let Some(holder) = fs::read(self.path("memory/.lock"))
                .ok()
                .and_then(|text| serde_json::from_slice::<Json>(&text).ok())
            else {
                return false;
            };
            token = fs::read_to_string(self.path("memory/admin.token")).unwrap_or_default();
            found = holder["address"].as_str().and_then(|address| address.parse().ok());
            holder["pid"] == pid && self.log().contains("listening") && !token.is_empty()
        });
        (self.address, self.admin) = (found.unwrap(), token.trim().to_owned());
    }

    /// Waits until it can decide.
    pub(crate) fn meet(&mut self) {
        self.hear();
        until(|| self.get("/readyz").is_some_and(|reply| reply.status == 200));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Waits until the process has ended, and gives what it logged.
    pub(crate) fn ended(&mut self) -> String {
        until(|| self.child.as_mut().unwrap().try_wait().unwrap().is_some());
        self.child = None;
        self.log()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Kills it at once, and starts it again.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.spawn();
        self.meet();
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection::to(self.address, &self.admin)
    }

    /// An answer, if one came.
    pub(crate) fn get(&self, target: &str) -> Option<Reply> {
        self.connection().ask(&Request::new("GET", target).token(&self.admin))
    }

    #[track_caller]
    pub(crate) fn json(&self, target: &str) -> Json {
        let reply = self.get(target).unwrap();
        assert_eq!(reply.status, 200, "{target}: {reply:?}");
        reply.json()
    }

    pub(crate) fn ready(&self) -> (u16, Json) {
        self.get("/readyz").map_or((0, Json::Null), |reply| (reply.status, reply.json()))
    }

    pub(crate) fn post(&self, target: &str, body: &Json) -> Reply {
        self.connection().post(target, &body.to_string()).unwrap()
    }

    /// A token of a named operator.
    pub(crate) fn operator(&self, name: &str) -> String {
        self.token(&json!({"name": name, "role": "operator"}))
    }

    pub(crate) fn token(&self, what: &Json) -> String {
        let made = self.post("/v1/tokens", what);
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["token"].as_str().unwrap().to_owned()
    }

    /// Appends to its settings.
    pub(crate) fn set(&self, settings: &str) {
        let path = self.path("handoffd.toml");
        let before = fs::read_to_string(&path).unwrap();
        write(&path, format!("{before}{settings}"));
    }

    /// The last entry that it has seen.
    pub(crate) fn head(&self) -> u64 {
        self.ready().1["ledger"]["sequence"].as_u64().unwrap_or(0)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- log of a replica\n{}", self.log());
        }
    }
}

/// A connection that is kept, and made again when it is gone.
pub(crate) struct Connection {
    address: SocketAddr,
    admin: String,
    stream: Option<BufReader<TcpStream>>,
    patience: Duration,
}

impl Connection {
    pub(crate) fn to(address: SocketAddr, admin: &str) -> Self {
        Self { address, admin: admin.to_owned(), stream: None, patience: PATIENCE }
    }

    /// Gives up sooner.
    pub(crate) fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    pub(crate) fn post(&mut self, target: &str, body: &str) -> Option<Reply> {
        self.ask(&self.to_post(target, body))
    }

    pub(crate) fn to_post(&self, target: &str, body: &str) -> Request {
        Request::new("POST", target).token(&self.admin).json(body)
    }

    /// The answer; nothing if none came.
    pub(crate) fn ask(&mut self, request: &Request) -> Option<Reply> {
        self.send(request)?;
        self.hear()
    }

    /// Asks, and does not wait.
    pub(crate) fn send(&mut self, request: &Request) -> Option<()> {
        if self.stream.is_none() {
            let stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(2)).ok()?;
            stream.set_read_timeout(Some(self.patience)).unwrap();
            stream.set_nodelay(true).unwrap();
            self.stream = Some(BufReader::new(stream));
        }
        let sent = self.stream.as_mut()?.get_mut().write_all(&request.bytes());
        if sent.is_err() {
            self.stream = None;
        }
        sent.ok()
    }

    /// Waits for the answer to what was sent.
    pub(crate) fn hear(&mut self) -> Option<Reply> {
        let mut stream = self.stream.take()?;
        let reply = read_reply(&mut stream)?;
        self.stream = Some(stream);
        Some(reply)
    }
}

/// All replicas have the same entries, the same state and a chain that holds; their number.
#[track_caller]
pub(crate) fn all_agree(fleet: &[Replica]) -> Vec<Json> {
    let mut last = 0;
    until(|| {
        last = fleet.iter().map(Replica::head).max().unwrap();
        last > 0 && fleet.iter().all(|replica| replica.head() == last)
    });
    let export = |replica: &Replica| replica.get("/v1/audit/export").unwrap().text();
    let (text, state) = (export(&fleet[0]), fleet[0].json("/v1/state"));
    for replica in fleet {
        assert_eq!(export(replica), text);
        let verified = replica.json("/v1/audit/verify");
        assert_eq!((&verified["verified"], &verified["entries"]), (&true.into(), &last.into()), "{verified}");
        until(|| replica.json("/v1/state")["ledger"] == state["ledger"]);
        let mut other = replica.json("/v1/state");
        // When it was published is each replica's own.
        other["updatedAt"] = state["updatedAt"].clone();
        assert_eq!(other, state);
    }
    let event = |line: &str| {
        let line: Json = serde_json::from_str(line).unwrap();
        serde_json::from_str(line["wire"].as_str().unwrap()).unwrap()
    };
    text.lines().map(event).collect()
}
