//! Two programs that change the same file take turns; the second one sees what the first one did.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// A turn; over when it is dropped, or when the process ends.
#[derive(Debug)]
pub(crate) struct Turn {
    _file: File,
}

/// Waits for a turn at what `memory/<lock>` guards; makes `memory/` in a workspace that has none.
pub(crate) fn take(workspace: &Path, lock: &str) -> io::Result<Turn> {
    if !workspace.is_dir() {
        let message = format!("{} is not a directory", workspace.display());
        return Err(io::Error::new(io::ErrorKind::NotADirectory, message));
    }
    let memory = workspace.join("memory");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&memory)?;
    let path = memory.join(lock);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
    file.lock()?;
    Ok(Turn { _file: file })
}
