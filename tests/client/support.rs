//! A workspace, and a daemon on it, as a user has them: the built binary, real files, real sockets.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value as Json;

/// A fresh workspace, as `handoffd init` makes it, and the daemon on it while one runs.
pub(crate) struct Workspace {
    directory: tempfile::TempDir,
    daemon: Option<Child>,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let workspace = Self { directory: tempfile::tempdir().unwrap(), daemon: None };
        let made = workspace.run(&["init"]);
        assert!(made.status.success(), "{made:?}");
        workspace
    }

    pub(crate) fn served() -> Self {
        let mut workspace = Self::new();
        workspace.start();
        workspace
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
        command.current_dir(self.path()).args(arguments).env("NO_COLOR", "1");
        for variable in ["HANDOFFD_WORKSPACE", "HANDOFFD_URL", "HANDOFFD_TOKEN", "http_proxy", "HTTP_PROXY"] {
            command.env_remove(variable);
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    pub(crate) fn exit(&self, arguments: &[&str]) -> i32 {
        let output = self.run(arguments);
        output.status.code().unwrap_or_else(|| panic!("{output:?}"))
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Json {
        let output = self.run(arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    #[expect(clippy::disallowed_methods, reason = "a test lays out files")]
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path().join(path), text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).unwrap()
    }

    /// Starts a daemon and waits until it answers.
    pub(crate) fn start(&mut self) {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let id = child.id();
        self.daemon = Some(child);
        for _ in 0..600 {
            let named = fs::read_to_string(self.path().join("memory/.lock"));
            let named = named.ok().and_then(|text| serde_json::from_str::<Json>(&text).ok());
            if named.is_some_and(|holder| holder["pid"] == id) && self.answers() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the daemon does not answer");
    }

    fn answers(&self) -> bool {
        ureq::get(format!("{}/readyz", self.url())).call().is_ok()
    }

    /// Ends the daemon as an operator does, and waits for it.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.daemon.take() {
            let told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
            assert!(told.success());
            assert!(child.wait().unwrap().success());
        }
    }

    pub(crate) fn url(&self) -> String {
        let holder: Json = serde_json::from_str(&self.read("memory/.lock")).unwrap();
        format!("http://{}", holder["address"].as_str().unwrap())
    }

    pub(crate) fn admin_token(&self) -> String {
        self.read("memory/admin.token").trim().to_owned()
    }

    /// Has the daemon read all its rules again; how it answers.
    pub(crate) fn reload(&self) -> u16 {
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        let request = ureq::Agent::from(config).post(format!("{}/v1/reload", self.url()));
        let request = request.header("authorization", format!("Bearer {}", self.admin_token()));
        request.send_empty().unwrap().status().as_u16()
    }

    /// The canonical TaskSpec under another name, changed by `change`.
    pub(crate) fn spec(&self, n: usize, change: impl FnOnce(&mut Json)) -> String {
        let mut spec: Json =
            serde_json::from_str(&self.read("docs/examples/taskspec-canonical.json")).unwrap();
        spec["handoffId"] = format!("hs_20260218_router_{n:04}").into();
        spec["correlationId"] = format!("corr_cycle_{n:04}").into();
        spec["audit"]["requestId"] = format!("req_client_{n:04}").into();
        spec["audit"]["idempotencyKey"] = format!("idem_client_{n:04}").into();
        change(&mut spec);
        spec.to_string()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Some(child) = &mut self.daemon {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
