//! Copies a ledger that may be in use, up to one committed entry.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::chain::Head;
use super::line::{self, Line};
use super::recovery::OpenFault;
use super::segments::list;

/// Why a ledger was not copied.
#[derive(Debug)]
pub enum CopyFault {
    Open(OpenFault),
    Io {
        path: PathBuf,
        error: io::Error,
    },
    /// The entry that the copy was to end with is not in the files: they were changed meanwhile.
    Gone {
        sequence: u64,
    },
}

impl std::fmt::Display for CopyFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Open(fault) => write!(f, "{fault}"),
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Gone { sequence } => {
                write!(f, "entry {sequence} is no longer in the ledger: it was changed while it was copied")
            }
        }
    }
}

impl std::error::Error for CopyFault {}

/// Copies the segments in `from` into the directory `to`, through the commit line of `head` and no further. What is
/// copied is durable, with its names. Returns the names of the files, in order.
pub fn copy_segments(from: &Path, to: &Path, head: Head) -> Result<Vec<String>, CopyFault> {
    let segments = list(from).map_err(CopyFault::Open)?;
    let mut names = Vec::new();
    for (first, path) in segments {
        if first > head.sequence {
            break;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let target = to.join(&name);
        // A purge puts another file in the place of this one; what is open stays whole.
        let source = File::open(&path).map_err(|error| CopyFault::Io { path: path.clone(), error })?;
        let reached = copy_segment(source, &target, head)
            .map_err(|error| CopyFault::Io { path: target.clone(), error })?;
        names.push(name);
        if reached {
            let sync = File::open(to).and_then(|directory| directory.sync_all());
            return sync.map(|()| names).map_err(|error| CopyFault::Io { path: to.to_owned(), error });
        }
    }
    Err(CopyFault::Gone { sequence: head.sequence })
}

/// True if the commit line of `head` was reached.
fn copy_segment(source: File, target: &Path, head: Head) -> io::Result<bool> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
    let (mut reader, mut writer) = (BufReader::with_capacity(256 * 1024, source), BufWriter::new(file));
    let (mut text, mut reached) = (Vec::new(), false);
    while !reached {
        text.clear();
        if reader.read_until(b'\n', &mut text)? == 0 {
            break;
        }
        writer.write_all(&text)?;
        reached = text.starts_with(b"{\"commit\":") && is_commit_of(&text, head);
    }
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(reached)
}

fn is_commit_of(text: &[u8], head: Head) -> bool {
    let read = text.strip_suffix(b"\n").and_then(line::read);
    matches!(read, Some(Line::Commit { sequence, running_hash })
        if sequence == head.sequence && head.running_hash.is_written(&running_hash))
}
