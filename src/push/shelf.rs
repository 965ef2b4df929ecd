//! Where documents with secrets in them are kept, by name.
//!
//! A gateway on its own keeps them as files, [`FileShelf`]. Gateways that share a ledger share these too, and bring a
//! shelf of their own.

use std::fmt;
use std::io;
use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::limits;
use crate::os::files;

/// What is kept under a name; or why it cannot be read.
#[derive(Debug)]
pub struct Kept {
    pub name: String,
    pub document: io::Result<Zeroizing<Vec<u8>>>,
}

/// Keeps documents. Names are the ids of tasks, which have no slash and no leading dot.
pub trait Shelf: fmt::Debug + Send + Sync {
    /// All that are kept, by name.
    fn all(&self) -> io::Result<Vec<Kept>>;

    /// Keeps a document in the place of the one of that name, for good when it returns.
    fn put(&self, name: &str, document: &[u8]) -> io::Result<()>;

    /// Takes a document away for good; one that is not there is gone already.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A directory with a file for each document, which only its owner can read.
#[derive(Debug)]
pub struct FileShelf {
    directory: PathBuf,
}

const ENDING: &str = ".json";

impl FileShelf {
    /// The directory is made if it is not there.
    pub fn open(directory: PathBuf) -> io::Result<Self> {
        files::make_private_directory(&directory)?;
        Ok(Self { directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}{ENDING}"))
    }
}

impl Shelf for FileShelf {
    fn all(&self) -> io::Result<Vec<Kept>> {
        let names = files::names_in(&self.directory)?;
        // What does not end so is the half of a document that a crash left.
        let names = names.iter().filter_map(|name| name.strip_suffix(ENDING));
        let read = |name: &str| {
            let document = files::read_private(&self.path(name), limits::PUSH_DOCUMENT_BYTES_MAX);
            Kept { name: name.to_owned(), document: document.map(Zeroizing::new) }
        };
        Ok(names.map(read).collect())
    }

    fn put(&self, name: &str, document: &[u8]) -> io::Result<()> {
        files::replace_private(&self.path(name), document)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        files::remove(&self.path(name))
    }
}
