//! Where a workspace keeps what is the gateway's.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::GatewayFault;
use crate::ledger::name_of_log;

/// The files in `memory/`.
#[derive(Debug, Clone)]
pub struct Files {
    workspace: PathBuf,
    memory: PathBuf,
    /// What follows the ledger: beside the rest, or apart from it where the ledger is gone with the process.
    following: PathBuf,
}

impl Files {
    pub fn of(workspace: &Path) -> Self {
        let memory = workspace.join("memory");
        Self { workspace: workspace.to_owned(), following: memory.clone(), memory }
    }

    /// The same for a ledger that is gone when the process ends: what follows it must not take the place of what follows
    /// the workspace's own.
    pub fn volatile(workspace: &Path) -> Self {
        let following = workspace.join("memory/volatile");
        Self { following, ..Self::of(workspace) }
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
        self.following.join("ledger")
    }

    /// Where small batches are durable before their segment is synced; there while a gateway runs.
    pub fn journal(&self) -> PathBuf {
        self.following.join("journal")
    }

    pub fn state(&self) -> PathBuf {
        self.following.join("orchestration-state.json")
    }

    /// The state at an entry, to start from.
    pub fn state_snapshot(&self) -> PathBuf {
        self.following.join("state.snapshot")
    }

    /// What full segments were like when they were last known to be good.
    pub fn seals(&self) -> PathBuf {
        self.following.join("seals")
    }

    /// There while nothing may be appended to the segments.
    pub fn closed(&self) -> PathBuf {
        self.memory.join("ledger.closed")
    }

    /// The tables that follow the ledger.
    pub fn views(&self) -> PathBuf {
        self.following.join("views.db")
    }

    pub fn checkpoint(&self) -> PathBuf {
        self.following.join("checkpoint")
    }

    /// The checkpoints of other gateways that came home with the ledger from a database, with their public keys.
    pub fn other_checkpoints(&self) -> PathBuf {
        self.following.join("checkpoints.json")
    }

    /// What the policy set in force consists of.
    pub fn policy_files(&self) -> PathBuf {
        self.following.join("policy-files.json")
    }

    /// Up to which timestamps signed requests may have been taken. Of the door and not of a ledger, so it stays when one is gone.
    pub fn signed_until(&self) -> PathBuf {
        self.memory.join("signed-until.json")
    }

    /// The certificate that the running gateway speaks TLS with; there only if it does.
    pub fn served_certificate(&self) -> PathBuf {
        self.memory.join("served.pem")
    }

    pub fn gateway_key(&self) -> PathBuf {
        self.memory.join("gateway.key")
    }

    /// Is the key missing in a workspace that has a ledger? A new one would sign in another name. A ledger that was copied or
    /// restored into a new workspace came with a key.
    pub(super) fn has_lost_its_key(&self) -> bool {
        // The workspace's own ledger, also where this one is gone with the process.
        let own = Self::of(&self.workspace);
        // One that cannot be read is one.
        let has_entries = || !matches!(name_of_log(&own.ledger(), &own.journal()), Ok(None));
        !is_there(&own.gateway_key())
            && (is_there(&own.checkpoint()) || (own.ledger().is_dir() && has_entries()))
    }

    /// Is there no key, nor anything that says that a gateway was served here with one?
    pub(super) fn has_had_no_key(&self) -> bool {
        let traces =
            [self.gateway_key(), self.checkpoint(), self.state(), self.views(), self.state_snapshot()];
        !traces.iter().any(|path| is_there(path))
    }

    /// Something that only a gateway which was served here leaves behind, if it is there. What cannot be looked at may be.
    pub fn trace_of_service(&self) -> Option<PathBuf> {
        let is_missing =
            |path: &Path| fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        let is_empty = |path: &Path| match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == ErrorKind::NotFound && is_missing(path),
        };
        // The workspace's own, also where this ledger is gone with the process.
        let own = Self::of(&self.workspace);
        if !is_empty(&own.ledger()) {
            return Some(own.ledger());
        }
        let traces = [
            own.gateway_key(),
            own.checkpoint(),
            own.other_checkpoints(),
            own.state(),
            own.state_snapshot(),
            own.views(),
            own.journal(),
            own.seals(),
            own.closed(),
            own.policy_files(),
            own.signed_until(),
        ];
        traces.into_iter().find(|path| !is_missing(path))
    }

    /// Who is to be told about which task, with what they gave for it.
    pub fn push(&self) -> PathBuf {
        self.memory.join("push")
    }

    pub fn lock(&self) -> PathBuf {
        self.memory.join(".lock")
    }

    /// Removes what another process left of a ledger that is gone.
    pub(super) fn clear_volatile(&self) -> Result<(), GatewayFault> {
        if self.following == self.memory {
            return Ok(());
        }
        let path = self.following.clone();
        let cleared = fs::remove_dir_all(&path);
        cleared.map_err(|error| GatewayFault::Io { path, why: error.to_string() })?;
        self.make_directories()
    }

    pub(super) fn make_directories(&self) -> Result<(), GatewayFault> {
        let path = self.ledger();
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| GatewayFault::Io { path, why: error.to_string() })
    }
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
