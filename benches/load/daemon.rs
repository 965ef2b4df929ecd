//! handoffd on a workspace of its own.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::process::{Process, tied};
use super::specs::{Callers, workspace};
use super::{Request, ask};

pub(crate) struct Daemon {
    pub(crate) process: Process,
    pub(crate) address: String,
    /// The administrator's.
    pub(crate) token: String,
    workspace: tempfile::TempDir,
}

impl Daemon {
    /// Starts one with these arguments of `serve`, and waits until it is ready.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_program(env!("CARGO_BIN_EXE_handoffd"), arguments)
    }

    /// The same of another build.
    pub(crate) fn start_program(program: &str, arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), program, arguments)
    }

    /// One that takes what is sent in a person's name, and the token of the orchestrator who sends it.
    pub(crate) fn start_with_callers(program: &str) -> (Self, String) {
        let root = tempfile::tempdir().unwrap();
        let Callers { orchestrator, operator } = workspace(root.path());
        let daemon = Self::start_in(root, program, &[]);
        let phase = r#"{"phase": "gated-read", "reason": "the load has mentions in it"}"#;
        let (status, answer) =
            ask(&daemon.address, &Request::of("PUT", "/v1/mentions/phase", &operator, phase));
        assert_eq!(status, 200, "{answer}");
        (daemon, orchestrator)
    }

    fn start_in(workspace: tempfile::TempDir, program: &str, arguments: &[&str]) -> Self {
        // Whose ledger is in a database gets no example set by itself.
        let mut init = tied(program);
        init.args(["init", "--workspace"]).arg(workspace.path()).stdout(Stdio::null());
        assert!(init.status().unwrap().success(), "init");
        let mut command = tied(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--workspace"]);
        let process = Process::start(command.arg(workspace.path()).args(arguments));
        let mut daemon = Self { process, address: String::new(), token: String::new(), workspace };
        let began = Instant::now();
        while !daemon.is_ready() {
            assert!(daemon.process.lives(), "the daemon ended");
            assert!(began.elapsed() < Duration::from_secs(60), "the daemon did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon
    }

    fn is_ready(&mut self) -> bool {
        let memory = self.workspace.path().join("memory");
        let holder = std::fs::read_to_string(memory.join(".lock")).unwrap_or_default();
        let holder: serde_json::Value = serde_json::from_str(&holder).unwrap_or_default();
        let token = std::fs::read_to_string(memory.join("admin.token")).unwrap_or_default();
        self.address = holder["address"].as_str().unwrap_or_default().to_owned();
        self.token = token.trim().to_owned();
        !self.token.is_empty() && self.get("/readyz").contains("200 OK")
    }

    pub(crate) fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// An answer with its head, or nothing if there is none.
    pub(crate) fn get(&self, path: &str) -> String {
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
}
