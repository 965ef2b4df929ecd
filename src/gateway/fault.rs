//! Why a workspace does not open, in words that name the file and what to do.

use std::path::PathBuf;

use super::lock::LockFault;
use super::remembering::Record;
use crate::engine::EngineFault;
use crate::ledger::postgres::PostgresFault;
use crate::ledger::{Closing, EntriesFault, OpenFault};
use crate::state::Published;

/// Why a workspace does not open.
#[derive(Debug)]
pub enum GatewayFault {
    Lock(LockFault),
    Io {
        path: PathBuf,
        why: String,
    },
    /// The views opened, and damage was met in them afterwards.
    DamagedViews {
        path: PathBuf,
        why: String,
    },
    /// The gateway's key is not one.
    BadKey(PathBuf),
    /// The gateway's key is gone, and others know it by that key.
    LostKey(PathBuf),
    /// The gateway's key was not made yet.
    NoKey(PathBuf),
    /// The checkpoint is not signed by the gateway's key.
    BadCheckpoint(PathBuf),
    /// The gateway has signed this file with another key.
    OtherKey {
        path: PathBuf,
        key_id: String,
    },
    Ledger(OpenFault),
    /// The ledger lacks an entry that files have seen, or has another one in its place.
    Forgotten {
        by: Vec<Record>,
        fault: OpenFault,
        /// The state file alone says so, and nothing tells that the ledger is what is wrong.
        may_be_edited: bool,
    },
    /// The state file names an entry that nothing else knows of, and it is the file that is wrong.
    StateEdited {
        path: PathBuf,
        how: String,
    },
    /// The state file cannot be read or written.
    StateUnusable {
        path: PathBuf,
        why: String,
    },
    /// The state file is not what the ledger gives.
    State {
        path: PathBuf,
        published: Published,
    },
    /// A copy takes the ledger's place.
    Closed {
        path: PathBuf,
        why: Closing,
    },
    ClosedDatabase(Closing),
    /// What the workspace remembers is of another ledger than is in the database.
    OtherLedger {
        path: PathBuf,
        theirs: String,
        found: String,
    },
    /// The workspace remembers a ledger, and the database has none.
    NoLedger(PathBuf),
    Database(PostgresFault),
    /// The ledger is there, and could not be read.
    Unread(EntriesFault),
    Engine(EngineFault),
}

impl std::fmt::Display for GatewayFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const RESTORE: &str = "`handoffd state restore` puts the ledger's view back";
        const PUT_BACK: &str = "keep the directory, and put the ledger's files back as they were, or restore a backup into a \
                                new workspace";
        match self {
            Self::Lock(fault) => write!(f, "{fault}"),
            Self::Io { path, why } => write!(f, "{}: {why}", path.display()),
            Self::DamagedViews { path, why } => {
                write!(f, "{}: the views must be rebuilt: the file is damaged ({why})", path.display())
            }
            Self::BadKey(path) => write!(f, "{} is not the gateway's key", path.display()),
            Self::LostKey(path) => {
                write!(
                    f,
                    "{} is missing, and this workspace has a ledger; restore it from a backup",
                    path.display()
                )
            }
            Self::NoKey(path) => {
                write!(f, "{} is missing; `handoffd serve` makes it at the first start", path.display())
            }
            Self::BadCheckpoint(path) => {
                write!(f, "{} is not signed by this gateway's key", path.display())
            }
            Self::OtherKey { path, key_id } => write!(
                f,
                "{} was signed with another key (`{}`) than gateway.key: put the right key back from a backup, or move that file \
                 away, and all that is signed from then on is signed with another key",
                path.display(),
                crate::json::printable(key_id)
            ),
            Self::Ledger(fault @ (OpenFault::Damaged { .. } | OpenFault::Gap { .. })) => {
                write!(f, "{fault}; {PUT_BACK}")
            }
            Self::Ledger(fault @ OpenFault::Foreign { .. }) => {
                write!(f, "{fault}; move it out of that directory, which holds segments alone")
            }
            Self::Ledger(fault) => write!(f, "{fault}"),
            Self::Forgotten { by, fault, may_be_edited } => {
                write!(f, "{fault}: ")?;
                let meant = by.first().map(|record| record.head.sequence);
                for (n, record) in by.iter().enumerate() {
                    let separator = if n > 0 { ", " } else { "" };
                    write!(f, "{separator}{} has seen ", record.path.display())?;
                    match record.head.sequence {
                        _ if matches!(fault, OpenFault::Damaged { .. }) => f.write_str("one behind it")?,
                        sequence if Some(sequence) == meant => f.write_str("it")?,
                        sequence => write!(f, "entry {sequence}")?,
                    }
                }
                write!(
                    f,
                    "; {PUT_BACK}; if the entries are gone for good, `handoffd backup --keep N`, where N is the last one that \
                     is left, and `handoffd restore` go on without them in a new epoch"
                )?;
                if *may_be_edited {
                    f.write_str(
                        "; if you know that only that file is wrong, move it away: a start makes it again",
                    )?;
                }
                Ok(())
            }
            Self::StateEdited { path, how } => {
                write!(
                    f,
                    "{} {how}, and all else agrees with the ledger: somebody edited it; {RESTORE}",
                    path.display()
                )
            }
            Self::StateUnusable { path, why } => write!(
                f,
                "{}: {why}; it has to be a file that the gateway's user can read and write: correct that, or move it away, \
                 and a start makes it again",
                path.display()
            ),
            Self::State { path, published } => {
                let path = path.display();
                match published {
                    Published::Edited { sequence, difference } => {
                        write!(
                            f,
                            "{path} is not what the ledger gives at entry {sequence} ({difference}): somebody edited it; \
                             {RESTORE}, \
                             `handoffd state adopt` keeps routing edits"
                        )
                    }
                    Published::Ahead { sequence } => {
                        write!(f, "{path} goes up to entry {sequence}, which the ledger does not have")
                    }
                    Published::Missing | Published::AsOf(_) | Published::Torn | Published::Unreadable => {
                        write!(f, "{path} is not a state file: somebody edited it; {RESTORE}")
                    }
                }
            }
            Self::Closed { path, why } => {
                write!(f, "the ledger of this workspace is closed: {why} ({})", path.display())
            }
            Self::ClosedDatabase(why) => write!(f, "the ledger is closed: {why}"),
            Self::OtherLedger { path, theirs, found } => {
                let theirs = crate::json::printable(theirs);
                write!(
                    f,
                    "{} is of ledger `{theirs}`, and the database has ledger `{found}`: this workspace was served on another \
                     ledger; give the right URL, move the ledger there with `handoffd ledger copy`, or serve a new workspace",
                    path.display()
                )
            }
            Self::NoLedger(path) => write!(
                f,
                "{} is of a ledger, and the database has none: give the right URL, move the ledger there with \
                 `handoffd ledger copy`, or serve a new workspace",
                path.display()
            ),
            Self::Database(fault) => write!(f, "{fault}"),
            Self::Unread(fault) => write!(f, "{fault}"),
            Self::Engine(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for GatewayFault {}
