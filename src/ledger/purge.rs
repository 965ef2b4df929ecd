//! Retention: bodies that are old enough go, and the chain stays as it is, byte for byte.
//!
//! Only segments that no writer will ever append to again are touched. Each is written aside without the bodies,
//! synced, and renamed into place: whoever looks finds the old file or the new one. It can be done beside a
//! running daemon, which takes a shorter segment for the same one only after it has followed the chain through
//! it to the hash that it remembers.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::disk::{Disk, hold};
use super::entries::{EntriesFault, damaged_at};
use super::line::{self, Line};
use super::segments::list;
use crate::timestamp::Timestamp;

/// How a segment's name ends while it is being written aside.
pub(super) const ASIDE: &str = ".aside";

const READ_BYTES: usize = 256 * 1024;

/// Shall bodies be dropped, or only counted?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeMode {
    Drop,
    Count,
}

/// What was dropped, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Purged {
    /// Segments that had any.
    pub segments: u64,
    pub bodies: u64,
    pub bytes: u64,
}

/// Why bodies could not be dropped. Segments that were done before stay done.
#[derive(Debug)]
pub enum PurgeFault {
    Ledger(EntriesFault),
    Io {
        path: PathBuf,
        error: io::Error,
    },
    /// The daemon could not read what we would write.
    NotTheOwner {
        path: PathBuf,
    },
    /// Somebody else wrote to a segment in the meantime.
    Changed {
        path: PathBuf,
    },
}

impl std::fmt::Display for PurgeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ledger(fault) => write!(f, "{fault}"),
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NotTheOwner { path } => {
                write!(
                    f,
                    "{} belongs to another user; purge as the user that owns the ledger",
                    path.display()
                )
            }
            Self::Changed { path } => {
                write!(
                    f,
                    "{} was written to while it was being purged; nothing in it was changed",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for PurgeFault {}

/// Drops the bodies of all batches whose entries are older than `before`, from every segment but the last.
pub fn purge_bodies(
    disk: &dyn Disk,
    directory: &Path,
    before: Timestamp,
    mode: PurgeMode,
) -> Result<Purged, PurgeFault> {
    let ledger = |fault| PurgeFault::Ledger(EntriesFault::Open(fault));
    let mut purged = Purged::default();
    let mut segments = list(directory).map_err(ledger)?;
    segments.pop();
    for (_, path) in segments {
        let found = sift(&path, before, &mut |_| Ok(()))?;
        purged.segments += u64::from(found.dropped.bodies > 0);
        purged.bodies += found.dropped.bodies;
        purged.bytes += found.dropped.bytes;
        if found.dropped.bodies > 0 && mode == PurgeMode::Drop {
            // INVARIANT (closed segments): while the directory is held no log is being opened, so a segment with
            // another one behind it cannot become the one that is written to.
            let io = |error| PurgeFault::Io { path: directory.to_owned(), error };
            let _held = hold(directory).map_err(io)?;
            if list(directory).map_err(ledger)?.last().is_none_or(|(_, last)| *last == path) {
                return Err(PurgeFault::Changed { path });
            }
            rewrite(disk, directory, &path, before)?;
        }
        if found.reached {
            break;
        }
    }
    Ok(purged)
}

/// What is written aside, beside its segment.
fn aside_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ASIDE);
    PathBuf::from(name)
}

fn rewrite(disk: &dyn Disk, directory: &Path, path: &Path, before: Timestamp) -> Result<(), PurgeFault> {
    let aside = aside_of(path);
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| PurgeFault::Io { path, error }
    };
    let as_it_was = disk.identity(path).map_err(io(path))?;
    // One that was cut short may have left it; nobody reads it.
    match disk.remove(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(&aside)(error)),
        _ => {}
    }
    let mut file = disk.create(&aside).map_err(io(&aside))?;
    let written = write_aside(path, &aside, before, &mut |bytes| file.append(bytes)).and_then(|()| {
        file.sync().map_err(io(&aside))?;
        if !disk.identity(path).map_err(io(path))?.holds_what(&as_it_was) {
            return Err(PurgeFault::Changed { path: path.to_owned() });
        }
        disk.rename(&aside, path).map_err(io(path))
    });
    if let Err(fault) = written {
        // If this fails as well, the next start or the next purge does it.
        let _ = disk.remove(&aside);
        return Err(fault);
    }
    disk.sync_directory(directory).map_err(io(directory))
}

fn write_aside(
    path: &Path,
    aside: &Path,
    before: Timestamp,
    append: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), PurgeFault> {
    let owner = |path: &Path| {
        let metadata = fs::metadata(path).map_err(|error| PurgeFault::Io { path: path.to_owned(), error })?;
        Ok((metadata.uid(), metadata.gid()))
    };
    if owner(aside)? != owner(path)? {
        return Err(PurgeFault::NotTheOwner { path: path.to_owned() });
    }
    let mut waiting = Vec::with_capacity(READ_BYTES);
    sift(path, before, &mut |line| {
        waiting.extend_from_slice(line);
        if waiting.len() >= READ_BYTES {
            append(&waiting)?;
            waiting.clear();
        }
        Ok(())
    })?;
    append(&waiting).map_err(|error| PurgeFault::Io { path: aside.to_owned(), error })
}

#[derive(Default)]
struct Sifted {
    dropped: Purged,
    /// It has entries that are not older.
    reached: bool,
}

/// Reads a closed segment through, hands on every line that stays, and counts those that go.
fn sift(
    path: &Path,
    before: Timestamp,
    keep: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<Sifted, PurgeFault> {
    let io = |error| PurgeFault::Io { path: path.to_owned(), error };
    let mut reader = BufReader::with_capacity(READ_BYTES, File::open(path).map_err(io)?);
    let mut sifted = Sifted::default();
    // The lines of the batch so far: whether its bodies go is known when its last entry is.
    let mut batch: Vec<u8> = Vec::new();
    let mut lines: Vec<(usize, bool)> = Vec::new();
    let mut last: Option<Timestamp> = None;
    for number in 1.. {
        let begins = batch.len();
        let bytes = reader.read_until(b'\n', &mut batch).map_err(io)?;
        if bytes == 0 {
            break;
        }
        let line = batch.get(begins..).unwrap_or_default();
        let is_body = line.starts_with(b"{\"digest\"");
        lines.push((bytes, is_body));
        if is_body && line.ends_with(b"\n") {
            continue;
        }
        let damaged = || PurgeFault::Ledger(damaged_at(path, 0, number));
        match line.strip_suffix(b"\n").and_then(line::read).ok_or_else(damaged)? {
            Line::Event(event) => {
                last = Some(Timestamp::parse(&event.consensus_timestamp).ok_or_else(damaged)?);
            }
            Line::Body(_) => {}
            Line::Commit { .. } => {
                let goes = last.is_some_and(|last| last < before);
                sifted.reached |= !goes;
                let mut rest = batch.as_slice();
                for (bytes, is_body) in lines.drain(..) {
                    let (line, behind) = rest.split_at_checked(bytes).ok_or_else(damaged)?;
                    rest = behind;
                    if is_body && goes {
                        sifted.dropped.bodies += 1;
                        sifted.dropped.bytes += bytes as u64;
                    } else {
                        keep(line).map_err(io)?;
                    }
                }
                batch.clear();
            }
        }
    }
    if batch.is_empty() {
        Ok(sifted)
    } else {
        // A closed segment ends with a commit line.
        Err(PurgeFault::Ledger(damaged_at(path, u64::MAX, 0)))
    }
}
