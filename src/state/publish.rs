//! Puts the document where orchestrators read it: a file aside, then a rename, so that nobody ever reads half.
//!
//! Not synced: the ledger is the record, and a file that a power cut took is made again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::os::files::{Stamp, replace_unsynced, stamp};

/// Publishes the state file and notices when somebody else wrote it.
#[derive(Debug)]
pub struct Publisher {
    path: PathBuf,
    /// The file as it was published.
    own: Option<Stamp>,
}

/// Did somebody else change the file since it was published?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    No,
    Yes,
}

impl Publisher {
    /// A publisher for this file, which it has not written yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), own: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Is the file still the one that was published last, as far as can be told without reading it?
    pub fn is_own(&self) -> bool {
        self.replaced() == Replaced::No
    }

    fn replaced(&self) -> Replaced {
        match (&self.own, stamp(&self.path)) {
            (Some(own), Ok(found)) if *own != found => Replaced::Yes,
            (Some(_), Err(error)) if error.kind() == io::ErrorKind::NotFound => Replaced::Yes,
            _ => Replaced::No,
        }
    }

    /// Replaces the file. Says whether it was still the one that was published last.
    pub fn publish(&mut self, text: &str) -> io::Result<Replaced> {
        let replaced = self.replaced();
        self.own = Some(replace_unsynced(&self.path, text.as_bytes())?);
        Ok(replaced)
    }

    /// What is published now; nothing if there is no file, or an empty one.
    pub fn read(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(&self.path) {
            Ok(text) if text.trim().is_empty() => Ok(None),
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
