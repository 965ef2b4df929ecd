//! A daemon on a workspace of its own.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value as Json;

pub(crate) const CANONICAL: &str = include_str!("../../docs/examples/taskspec-canonical.json");

pub(crate) fn handoffd(workspace: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
    command.current_dir(workspace).env_remove("HANDOFFD_WORKSPACE").env("NO_COLOR", "1");
    command
}

/// Runs a command to its end, and it must be good.
pub(crate) fn run(workspace: &Path, arguments: &[&str]) -> Output {
    let output = handoffd(workspace).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

pub(crate) struct Daemon {
    pub(crate) workspace: PathBuf,
    pub(crate) address: String,
    child: Child,
}

impl Daemon {
    /// A daemon on a workspace, with settings such as `HANDOFFD_SINK_PATH`.
    pub(crate) fn start(workspace: &Path, settings: &[(&str, &str)]) -> Self {
        let mut child = handoffd(workspace)
            .args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json"])
            .envs(settings.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The log says where it listens.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line: Json = serde_json::from_str(&line.ok()?).ok()?;
            line.get("address").and_then(Json::as_str).map(str::to_owned)
        });
        let address = address.expect("the daemon listens");
        std::thread::spawn(move || lines.count());
        Self { workspace: workspace.to_owned(), address, child }
    }

    pub(crate) fn token(&self) -> String {
        let text = std::fs::read_to_string(self.workspace.join("memory/admin.token")).unwrap();
        text.trim_end().to_owned()
    }

    /// The status and the body of an answer.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.get_traced(path, None)
    }

    pub(crate) fn get_traced(&self, path: &str, traceparent: Option<&str>) -> (u16, String) {
        let agent = agent();
        let mut request = agent
            .get(format!("http://{}{path}", self.address))
            .header("Authorization", format!("Bearer {}", self.token()));
        if let Some(traceparent) = traceparent {
            request = request.header("traceparent", traceparent);
        }
        let mut answer = request.call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    pub(crate) fn submit(&self, body: &str, traceparent: Option<&str>) -> (u16, Json) {
        self.post("/v1/handoffs", body, traceparent)
    }

    /// A JSON-RPC request.
    pub(crate) fn rpc(&self, body: &str) -> (u16, Json) {
        self.post("/rpc", body, None)
    }

    pub(crate) fn post(&self, path: &str, body: &str, traceparent: Option<&str>) -> (u16, Json) {
        let agent = agent();
        let mut request = agent
            .post(format!("http://{}{path}", self.address))
            .header("Authorization", format!("Bearer {}", self.token()))
            .header("Content-Type", "application/json");
        if let Some(traceparent) = traceparent {
            request = request.header("traceparent", traceparent);
        }
        let mut answer = request.send(body).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap())
    }

    /// The canonical handoff under another id.
    pub(crate) fn submit_as(&self, id: &str) -> u16 {
        let body = CANONICAL.replace("hs_20260218_router_0001", id).replace("idem_swap_cycle_9001", id);
        self.submit(&body, None).0
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Stops it as a service manager does; it must end well.
    pub(crate) fn stop(mut self) {
        self.signal("-TERM");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::from(ureq::Agent::config_builder().http_status_as_error(false).build())
}

/// A workspace as `handoffd init` makes it.
pub(crate) fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    run(directory.path(), &["init"]);
    directory
}

/// Waits until something is so; a test that waits for ever is stopped by the runner.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
