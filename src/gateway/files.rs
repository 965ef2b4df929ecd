//! Where a workspace keeps what is the gateway's.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::GatewayFault;

/// The files in `memory/`.
#[derive(Debug, Clone)]
pub struct Files {
    workspace: PathBuf,
    memory: PathBuf,
}

impl Files {
    pub fn of(workspace: &Path) -> Self {
        Self { workspace: workspace.to_owned(), memory: workspace.join("memory") }
    }

    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// `memory/`, where all of them are.
    pub fn memory(&self) -> &Path {
        &self.memory
    }

    /// There in a restored workspace until the ledger says that a new epoch has begun.
    pub fn restored(&self) -> PathBuf {
        self.memory.join("restored.json")
    }

    /// What is written to see whether anything can be.
    pub fn probe(&self) -> PathBuf {
        self.memory.join(".probe")
    }

    /// The segments of the ledger.
    pub fn ledger(&self) -> PathBuf {
        self.memory.join("ledger")
    }

    pub fn state(&self) -> PathBuf {
        self.memory.join("orchestration-state.json")
    }

    /// The state at an entry, to start from.
    pub fn state_snapshot(&self) -> PathBuf {
        self.memory.join("state.snapshot")
    }

    /// There while nothing may be appended to the segments.
    pub fn closed(&self) -> PathBuf {
        self.memory.join("ledger.closed")
    }

    /// The tables that follow the ledger.
    pub fn views(&self) -> PathBuf {
        self.memory.join("views.db")
    }

    pub fn checkpoint(&self) -> PathBuf {
        self.memory.join("checkpoint")
    }

    pub fn gateway_key(&self) -> PathBuf {
        self.memory.join("gateway.key")
    }

    pub fn lock(&self) -> PathBuf {
        self.memory.join(".lock")
    }

    pub(super) fn make_directories(&self) -> Result<(), GatewayFault> {
        let path = self.ledger();
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| GatewayFault::Io { path, why: error.to_string() })
    }
}
