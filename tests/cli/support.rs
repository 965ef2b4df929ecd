//! A workspace, and what is asked of the program in it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

pub(super) const NOW: &str = "2026-02-18T19:38:00Z";

/// A fresh workspace, as `handoffd init` makes it.
pub(super) struct Workspace(pub(super) tempfile::TempDir);

impl Workspace {
    pub(super) fn new() -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        let made = workspace.run(&["init"]);
        assert!(made.status.success(), "{made:?}");
        workspace
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
        command
            .current_dir(self.path())
            .args(arguments)
            .env_remove("HANDOFFD_WORKSPACE")
            .env("NO_COLOR", "1");
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    pub(super) fn exit(&self, arguments: &[&str]) -> i32 {
        self.run(arguments).status.code().unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "a test lays out files")]
    pub(super) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path().join(path), text).unwrap();
    }

    pub(super) fn json(&self, arguments: &[&str]) -> Json {
        let output = self.run(arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    pub(super) fn add_demo_key(&self) {
        self.add_demo_key_to(&[], "docs/examples/demo.key");
    }

    /// The same in the workspace that these arguments name.
    pub(super) fn add_demo_key_to(&self, workspace: &[&str], file: &str) {
        let add = ["key", "add", "--owner", "user:main", "--id", "demo-user-main-1", "--secret-file", file];
        assert_eq!(self.exit(&[workspace, &add].concat()), 0);
    }

    /// The key with which the shipped route signs what it sends.
    pub(super) fn add_dispatch_key(&self) {
        let arguments = [
            "key",
            "add",
            "--purpose",
            "dispatch",
            "--owner",
            "crypto-sage",
            "--id",
            "crypto-sage-dispatch-1",
        ];
        assert_eq!(self.exit(&arguments), 0);
    }
}

pub(super) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(super) fn codes(decision: &Json) -> Vec<&str> {
    decision["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap()).collect()
}

pub(super) fn outcome<'j>(decision: &'j Json, gate: &str) -> &'j str {
    let gates = decision["gates"].as_array().unwrap();
    gates.iter().find(|entry| entry["gate"] == gate).unwrap()["outcome"].as_str().unwrap()
}
