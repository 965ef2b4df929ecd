//! Puts the document where orchestrators read it: a file aside, then a rename, so that nobody ever reads half.
//!
//! Not synced: the ledger is the record, and a file that a power cut took is made again.

use std::io;
use std::path::{Path, PathBuf};

use crate::os::files::{Stamp, read_all, replace_unsynced, stamp};

/// Publishes the state file and notices when somebody else wrote it.
#[derive(Debug)]
pub struct Publisher {
    path: PathBuf,
    /// The file as it was published.
    own: Option<Stamp>,
    /// The document; its room is used again.
    text: String,
    /// The file holds that document, unless somebody else changed it.
    is_published: bool,
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
        Self { path: path.into(), own: None, text: String::new(), is_published: false }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Is the file still the one that was published last, as far as can be told without reading it?
    pub fn is_own(&mut self) -> bool {
        self.replaced() == Replaced::No
    }

    fn replaced(&mut self) -> Replaced {
        match (self.own, stamp(&self.path)) {
            (Some(own), Ok(found)) if own == found => Replaced::No,
            // Another mode, owner or name, or an edit whose time was set back: what is in it tells.
            (Some(own), Ok(found)) if own.holds_what(&found) && self.is_unchanged() => {
                self.own = Some(found);
                Replaced::No
            }
            (Some(_), Ok(_)) => Replaced::Yes,
            (Some(_), Err(error)) if error.kind() == io::ErrorKind::NotFound => Replaced::Yes,
            _ => Replaced::No,
        }
    }

    /// Reads the file. One that could not be published the last time holds an older document, which nobody has any more.
    fn is_unchanged(&self) -> bool {
        !self.is_published || read_all(&self.path).is_ok_and(|bytes| bytes == self.text.as_bytes())
    }

    /// Replaces the file by the document that is rendered. Says whether it was still the one that was published last.
    pub fn publish(&mut self, render: impl FnOnce(&mut String)) -> io::Result<Replaced> {
        // Asked while there is still something to compare it with.
        let replaced = self.replaced();
        self.is_published = false;
        self.text.clear();
        render(&mut self.text);
        self.own = Some(replace_unsynced(&self.path, self.text.as_bytes())?);
        self.is_published = true;
        Ok(replaced)
    }

    /// What is published now; nothing if there is no file, or one that nothing is in. After a power cut it may end anywhere,
    /// also inside a character, and zeros may stand where any part of it was.
    pub fn read(&self) -> io::Result<Option<String>> {
        match read_all(&self.path) {
            Ok(bytes) if bytes.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace()) => Ok(None),
            Ok(bytes) => text_of(bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The text of a file that may have been torn. A sign that stands for half a character keeps it from being taken for a whole one.
fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).or_else(|error| {
        let is_torn = error.utf8_error().error_len().is_none() || error.as_bytes().contains(&0);
        if is_torn {
            Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, error))
        }
    })
}
