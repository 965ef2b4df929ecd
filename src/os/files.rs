//! The few file operations that must not go wrong by halves.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Opens a regular file to read it.
///
/// Opened before it is looked at, so that what is checked is what is read; without blocking, so that a
/// named pipe cannot hold us up.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
    }
    Ok(file)
}

/// Reads a regular file of at most `bytes_max` bytes.
pub(crate) fn read_bounded(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    read_stream(open_regular(path)?, bytes_max)
}

/// Reads a regular file, however large.
pub(crate) fn read_all(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a stream of at most `bytes_max` bytes to its end.
pub(crate) fn read_stream(stream: impl io::Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let message = format!("is larger than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// O_NONBLOCK of Linux on the platforms we build for; opening a regular file ignores it.
pub(crate) const O_NONBLOCK: i32 = 0o4000;

/// Reads a file that only its owner may read; one that others can read is refused.
pub(crate) fn read_private(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mode = fs::metadata(path)?.mode();
    if mode & 0o077 != 0 {
        let message =
            format!("can be read by others (mode {:03o}); run: chmod 600 {}", mode & 0o777, path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    read_bounded(path, bytes_max)
}

/// Replaces a file by one that only its owner may read: written aside, synced, renamed, directory synced.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, 0o600)
}

/// Replaces a file that everybody may read, in the same way.
pub(crate) fn replace_public(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, 0o644)
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let aside = path.with_extension("new");
    // A crash may have left one behind; it was never in force.
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    create(&aside, bytes, mode)?;
    #[expect(clippy::disallowed_methods, reason = "the one place that renames")]
    fs::rename(&aside, path)?;
    sync_parent(path)
}

/// Makes a file that only its owner may read; one that exists is left alone and an error.
pub(crate) fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create(path, bytes, 0o600)
}

/// Makes a file; one that exists is left alone and an error.
pub(crate) fn create_public(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create(path, bytes, 0o644)
}

fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half of it would be taken for the whole by whoever comes next.
        let _ = fs::remove_file(path);
    }
    written.and_then(|()| sync_parent(path))
}

/// Removes a file for good; one that is not there is gone already.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    sync_parent(path)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Gives a file another name in its directory. Not synced, for files that are copies.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "the one place that renames")]
    fs::rename(from, to)
}

/// Can something be written here? Writes so many bytes and takes them away again.
pub(crate) fn probe(path: &Path, bytes: usize) -> io::Result<()> {
    let mut new = OpenOptions::new();
    new.write(true).create(true).truncate(true).mode(0o600).custom_flags(O_NONBLOCK);
    let mut file = new.open(path)?;
    let result = file.write_all(&vec![0; bytes]);
    drop(file);
    result.and(fs::remove_file(path))
}

/// May this process write a file, or make one in a directory, as far as permissions say?
pub(crate) fn may_write(path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// Tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    /// Moves with every change, and whoever sets the other time back moves it again.
    changed: (i64, i64),
}

impl Stamp {
    /// The same file with what was written to it, as far as the times tell that can be set.
    pub(crate) fn holds_what(&self, other: &Self) -> bool {
        (self.inode, self.bytes, self.modified) == (other.inode, other.bytes, other.modified)
    }
}

impl From<fs::Metadata> for Stamp {
    fn from(metadata: fs::Metadata) -> Self {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Self { inode: metadata.ino(), bytes: metadata.len(), modified, changed }
    }
}

/// Has a file lost all it held?
pub(crate) fn is_empty(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.len() == 0)
}

/// Can others than its owner do anything with a file? One that is not there is nobody's.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o077 != 0)
}

/// The id of the user whose a file is.
pub(crate) fn owner(path: &Path) -> io::Result<u32> {
    fs::metadata(path).map(|metadata| metadata.uid())
}

/// May this process read a file? Asked without opening it.
pub(crate) fn may_read(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, rustix::fs::Access::READ_OK)?)
}

/// Tells a file from every other, whatever its name.
pub(crate) fn inode(path: &Path) -> io::Result<u64> {
    fs::symlink_metadata(path).map(|metadata| metadata.ino())
}

pub(crate) fn stamp(path: &Path) -> io::Result<Stamp> {
    fs::symlink_metadata(path).map(Stamp::from)
}

/// Replaces a file by writing it aside and renaming: readers see the old one or the new one, never half. Not
/// synced, for files that can be made again. Returns what the new one looks like.
pub(crate) fn replace_unsynced(path: &Path, bytes: &[u8]) -> io::Result<Stamp> {
    let aside = path.with_extension("new");
    // A new file each time, exchanged with the old one: renaming over a file, or cutting one off to write it again,
    // makes some file systems write it to the disk at once, and the ledger's own writes would wait behind it.
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o644).open(&aside);
    let mut file = match open() {
        // A crash may have left one behind; it was never in force.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(&aside)?;
            open()?
        }
        opened => opened?,
    };
    file.write_all(bytes)?;
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, &aside, CWD, path, RenameFlags::EXCHANGE) {
        Ok(()) => drop(fs::remove_file(&aside)),
        // There is none yet, or the file system cannot exchange.
        #[expect(clippy::disallowed_methods, reason = "the one place that renames")]
        Err(_) => fs::rename(&aside, path)?,
    }
    // Another name is a change, too.
    file.metadata().map(Stamp::from)
}

/// What is free for us on the disk that a path is on.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Makes a directory that only its owner may enter, and those above it; one that is there is left as it is.
pub(crate) fn make_private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The names in a directory, sorted; those that are no text are nobody's of ours.
pub(crate) fn names_in(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}
