//! One gateway per workspace.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The lock; given back when it is dropped, or when the process ends.
#[derive(Debug)]
pub struct WorkspaceLock {
    _file: File,
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
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                let held = || LockFault::Held { path: path.to_owned(), holder: None };
                serde_json::from_str(&text).map(Some).map_err(|_| held())
            }
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
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
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // A holder that has not written its name yet is still a holder.
                let _ = file.read_to_string(&mut text);
                return Err(LockFault::Held {
                    path: path.to_owned(),
                    holder: serde_json::from_str(&text).ok(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let holder = Holder { pid: std::process::id(), address: address.to_owned() };
        let text = serde_json::to_string(&holder).unwrap_or_default();
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(io)?;
        Ok(Self { _file: file })
    }
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
}
