//! One gateway per workspace.
//!
//! The lock is a file that says who holds it, and the directory that the file is in: whoever deletes the file does not let
//! a second gateway in, which would take the journal away under the first one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The lock; given back when it is dropped, or when the process ends.
#[derive(Debug)]
pub struct WorkspaceLock {
    _file: File,
    _directory: File,
}

/// Who holds it, for whoever finds it taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub address: String,
}

/// Why the lock could not be taken.
#[derive(Debug)]
pub enum LockFault {
    Held { path: PathBuf, holder: Option<Holder> },
    Io { path: PathBuf, error: std::io::Error },
}

impl std::fmt::Display for LockFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Held { path, holder: Some(Holder { pid, address }) } => {
                write!(
                    f,
                    "{} is held by process {pid} at {address}: one gateway per workspace",
                    path.display()
                )
            }
            Self::Held { path, holder: None } => {
                write!(f, "{} is held by another process: one gateway per workspace", path.display())
            }
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

/// How often the lock is tried, and how long between: somebody may just be looking whether it is held.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(10);

impl WorkspaceLock {
    /// Who holds the lock now; nothing if nobody does, whatever the file says of an earlier holder.
    pub fn holder(path: &Path) -> Result<Option<Holder>, LockFault> {
        let io = |error| LockFault::Io { path: path.to_owned(), error };
        let is_held = |path: &Path| match File::open(path) {
            Ok(file) => match file.try_lock_shared() {
                Ok(()) => Ok(false),
                Err(TryLockError::WouldBlock) => Ok(true),
                Err(TryLockError::Error(error)) => Err(io(error)),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(io(error)),
        };
        if !is_held(directory_of(path))? && !is_held(path)? {
            return Ok(None);
        }
        let held = || LockFault::Held { path: path.to_owned(), holder: None };
        said(path).map(Some).ok_or_else(held)
    }

    /// Takes the lock and says who holds it.
    pub fn take(path: &Path, address: &str) -> Result<Self, LockFault> {
        for _ in 1..TRIES {
            match Self::try_take(path, address) {
                Err(LockFault::Held { .. }) => std::thread::sleep(PAUSE),
                other => return other,
            }
        }
        Self::try_take(path, address)
    }

    fn try_take(path: &Path, address: &str) -> Result<Self, LockFault> {
        let io = |error| LockFault::Io { path: path.to_owned(), error };
        let lock = |file: &File| match file.try_lock() {
            Ok(()) => Ok(()),
            // A holder that has not written its name yet is still a holder.
            Err(TryLockError::WouldBlock) => {
                Err(LockFault::Held { path: path.to_owned(), holder: said(path) })
            }
            Err(TryLockError::Error(error)) => Err(io(error)),
        };
        // Before the file: whoever is refused leaves none that nobody holds.
        let directory = File::open(directory_of(path)).map_err(io)?;
        lock(&directory)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io)?;
        lock(&file)?;
        let holder = Holder { pid: std::process::id(), address: address.to_owned() };
        let text = serde_json::to_string(&holder).unwrap_or_default();
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(io)?;
        Ok(Self { _file: file, _directory: directory })
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Who holds it, by the file.
fn said(path: &Path) -> Option<Holder> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_known_only_while_it_holds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".lock");
        assert_eq!(WorkspaceLock::holder(&path).unwrap(), None);
        let lock = WorkspaceLock::take(&path, "127.0.0.1:7420").unwrap();
        let holder = WorkspaceLock::holder(&path).unwrap().unwrap();
        assert_eq!((holder.pid, holder.address.as_str()), (std::process::id(), "127.0.0.1:7420"));
        drop(lock);
        // The file still names it.
        assert!(std::fs::read_to_string(&path).unwrap().contains("127.0.0.1:7420"));
        assert_eq!(WorkspaceLock::holder(&path).unwrap(), None);
    }

    #[test]
    fn a_lock_whose_file_was_deleted_is_held_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".lock");
        let lock = WorkspaceLock::take(&path, "127.0.0.1:7420").unwrap();
        std::fs::remove_file(&path).unwrap();
        let refused = WorkspaceLock::take(&path, "127.0.0.1:7421").unwrap_err();
        assert!(matches!(refused, LockFault::Held { holder: None, .. }), "{refused}");
        assert!(!path.exists(), "whoever is refused leaves nothing behind");
        assert!(matches!(WorkspaceLock::holder(&path), Err(LockFault::Held { .. })));
        drop(lock);
        assert_eq!(WorkspaceLock::holder(&path).unwrap(), None);
        WorkspaceLock::take(&path, "127.0.0.1:7421").unwrap();
    }
}
