//! Backups: a verified copy of what cannot be made again, and its way back.
//!
//! A backup is a directory: the ledger up to one committed entry, a checkpoint signed for that entry, the gateway's
//! key, the keyring and the token hashes, and `manifest.json`, which is written last: a backup without it is not
//! whole. It is made beside a running gateway and verified before it counts. The state file and the views are left
//! out, for they are made from the ledger; so are policies and settings, which their own history keeps, and
//! `admin.token`, which a restored gateway makes anew.
//!
//! What was decided after a backup is forgotten by whoever restores it, so a restored workspace begins a new epoch:
//! `memory/restored.json` says so until the ledger does.

mod extent;
mod make;
mod restore;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use make::back_up;
pub use restore::restore;
pub(super) use restore::{epoch_is_recorded, epoch_to_begin};

use super::GatewayFault;
use crate::ledger::verify::{self, Finding, Report};
use crate::ledger::{CopyFault, EntriesFault, OpenFault};
use crate::proof::Digest;

const FORMAT: &str = "handoffd-backup/1";
const MANIFEST: &str = "manifest.json";
const LEDGER: &str = "ledger";
const CHECKPOINT: &str = "checkpoint";
const GATEWAY_KEY: &str = "gateway.key";
/// Files that a workspace may do without.
const OPTIONAL: [&str; 3] = ["keyring.json", "tokens.json", OTHER_CHECKPOINTS];
const OTHER_CHECKPOINTS: &str = "checkpoints.json";

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    pub format: String,
    /// The handoffd that made it.
    pub version: String,
    pub time: String,
    pub topic_id: String,
    /// The last entry, and the running hash there.
    pub sequence: u64,
    pub running_hash: String,
    /// The policy set that was in force there; policies are not part of a backup.
    pub policy_digest: Option<String>,
    pub files: Vec<ManifestFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// Below the backup's directory, and below `memory/` once restored.
    pub path: String,
    pub bytes: u64,
    pub digest: String,
}

/// Why there is no backup, or none was restored.
#[derive(Debug)]
pub enum BackupFault {
    Io {
        path: PathBuf,
        why: String,
    },
    /// There is nothing to copy yet.
    Empty(PathBuf),
    /// The target has something in it already.
    NotEmpty(PathBuf),
    Open(OpenFault),
    /// Entries were to be given up, and this is the last one that is left; whether others are missing at all.
    NotTheLast {
        last: u64,
        is_whole: bool,
    },
    Copy(CopyFault),
    Entries(EntriesFault),
    Gateway(GatewayFault),
    /// The directory is no backup, or not a whole one.
    NotABackup {
        path: PathBuf,
        why: String,
    },
    /// A file is not what the manifest says.
    Changed {
        path: String,
    },
    /// The chain does not hold.
    Chain(Finding),
    /// The chain holds, and is not the one that the manifest speaks of.
    OtherHead,
}

impl std::fmt::Display for BackupFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Empty(path) => write!(f, "{} has no entries yet", path.display()),
            Self::NotEmpty(path) => {
                write!(f, "{} is not empty; take a directory that is new", path.display())
            }
            Self::Open(fault) => write!(f, "{fault}"),
            Self::NotTheLast { last, is_whole: true } => {
                write!(
                    f,
                    "nothing is missing up to entry {last}, the last one; make the backup without `--keep`"
                )
            }
            Self::NotTheLast { last, is_whole: false } => {
                write!(f, "what is left ends at entry {last}; nothing was copied")
            }
            Self::Copy(fault) => write!(f, "{fault}; make the backup again"),
            Self::Entries(fault) => write!(f, "{fault}"),
            Self::Gateway(fault) => write!(f, "{fault}"),
            Self::NotABackup { path, why } => write!(f, "{} is not a whole backup: {why}", path.display()),
            Self::Changed { path } => {
                write!(f, "`{path}` in the backup is not what its manifest says; nothing was restored")
            }
            Self::Chain(finding) => write!(f, "the ledger in the backup does not verify: {finding}"),
            Self::OtherHead => {
                write!(f, "the ledger in the backup ends with another entry than its manifest says")
            }
        }
    }
}

impl std::error::Error for BackupFault {}

fn io_fault(path: &Path) -> impl Fn(std::io::Error) -> BackupFault + '_ {
    move |error| BackupFault::Io { path: path.to_owned(), why: error.to_string() }
}

/// The bytes and the digest of a file.
fn measure(directory: &Path, path: &str) -> Result<ManifestFile, BackupFault> {
    let full = directory.join(path);
    let file = std::fs::File::open(&full).map_err(io_fault(&full))?;
    let (digest, bytes) = Digest::of_stream(file).map_err(io_fault(&full))?;
    Ok(ManifestFile { path: path.to_owned(), bytes, digest: digest.to_string() })
}

/// Computes the chain of a backup's ledger again, with the verifier that shares nothing with the writer, and holds
/// it against the backup's checkpoint.
fn verify_ledger(
    directory: &Path,
    public_key: &str,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Report, BackupFault> {
    let path = directory.join(CHECKPOINT);
    let bytes = crate::os::files::read_private(&path, 64 * 1024).map_err(io_fault(&path))?;
    let claimed = verify::Checkpoint::parse(&bytes).map_err(BackupFault::Chain)?;
    let mut keys = verify::PublicKeys::default();
    keys.add(claimed.key_id(), public_key)
        .map_err(|error| BackupFault::Io { path: path.clone(), why: error.to_string() })?;
    let checkpoint = claimed.verify(&keys).map_err(BackupFault::Chain)?;
    let mut progress = |progress: verify::Progress| tell(progress.bytes_done, progress.bytes);
    verify::verify_segments(&directory.join(LEDGER), &[checkpoint], &mut progress).map_err(BackupFault::Chain)
}

#[cfg(test)]
mod tests;
