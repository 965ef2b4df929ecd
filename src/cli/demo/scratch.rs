//! A directory for a while: nobody else's to look into, and gone when it is dropped.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::os::random;
use crate::proof::to_hex;

#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn make() -> io::Result<Self> {
        let name = to_hex(random::secret_bytes::<8>()?.as_slice());
        let path = std::env::temp_dir().join(format!("handoffd-demo-{name}"));
        // Not one that is there already: somebody else may have put it there.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A thread that is about to end may still put a file there.
        for _ in 0..50 {
            match fs::remove_dir_all(&self.0) {
                Ok(()) => return,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return,
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}
