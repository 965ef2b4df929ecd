//! Every durable file operation of the ledger, behind a trait that tests can make fail one call at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, makedev, statvfs, statx};

use crate::limits;
use crate::os::files::{O_NONBLOCK, open_regular};

/// What the ledger asks of a disk.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Makes a new file; one that exists is an error.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to append to it.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Puts a file in the place of another one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes names in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// What is at a path now.
    fn identity(&self, path: &Path) -> io::Result<FileIdentity>;

    /// The same without its times. Whoever asks for those has the file system note the time of the next write to the
    /// nanosecond, and times that move with every write can cost a sync as much again.
    fn place(&self, path: &Path) -> io::Result<FilePlace> {
        self.identity(path).map(|found| found.place())
    }

    /// Reads a file from end to end, and says what it was when that was done.
    fn read(&self, path: &Path) -> io::Result<(Vec<u8>, FileIdentity)>;

    /// Makes a file of so many bytes, all of them newlines and on the disk, in the place of one that may be there.
    fn make_room(&self, path: &Path, bytes: usize) -> io::Result<Box<dyn Room>>;

    /// What is free where a directory is; nothing where nobody says.
    fn space(&self, directory: &Path) -> Option<Space> {
        let _ = directory;
        None
    }
}

/// Kept for what is decided next: the largest batch and a journal. Of a small disk it is one part of so many at most.
const RESERVE_BYTES: u64 = (limits::BATCH_BYTES_MAX + limits::JOURNAL_BYTES) as u64;
const RESERVE_PARTS: u64 = 4;

/// What is free for us on a disk, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub free: u64,
    pub all: u64,
}

impl Space {
    /// What has to stay free, so that the next write does not fail for want of room.
    pub fn reserve(self) -> u64 {
        RESERVE_BYTES.min(self.all / RESERVE_PARTS)
    }

    /// Is so much free beside that?
    pub fn has(self, bytes: u64) -> bool {
        self.free >= self.reserve().saturating_add(bytes)
    }

    /// What is wrong, where less is free than has to be. The same words for every such moment.
    pub fn shortage(self) -> Option<String> {
        let reserve = self.reserve() / 1024;
        (!self.has(0)).then(|| format!("the disk is all but full: less than {reserve} KiB are free"))
    }
}

/// A file that is written over and keeps its length.
pub trait Room: Send + std::fmt::Debug {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Which file it is.
    fn place(&self) -> io::Result<FilePlace>;

    /// Returns when what was written would survive a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that is appended to.
pub trait DiskFile: Send + std::fmt::Debug {
    /// Writes all of it at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when what was written would survive a power cut.
    fn sync(&mut self) -> io::Result<()>;

    fn set_len(&mut self, bytes: u64) -> io::Result<()>;

    fn identity(&self) -> io::Result<FileIdentity>;
}

/// Which file it is, and how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePlace {
    pub device: u64,
    pub inode: u64,
    pub bytes: u64,
}

/// Which file it is, how large, and when it was last written. An inode alone may be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
    pub bytes: u64,
    /// Seconds and nanoseconds.
    pub modified: (i64, i64),
    /// When anything about it last changed, its name and owner too. Nobody can set that back.
    pub changed: (i64, i64),
}

impl FileIdentity {
    pub(super) fn place(&self) -> FilePlace {
        let Self { device, inode, bytes, .. } = *self;
        FilePlace { device, inode, bytes }
    }

    /// The same file with what was written to it, whatever it is called and whoever owns it.
    pub(super) fn holds_what(&self, other: &Self) -> bool {
        (self.device, self.inode, self.bytes, self.modified)
            == (other.device, other.inode, other.bytes, other.modified)
    }
}

impl From<fs::Metadata> for FileIdentity {
    fn from(metadata: fs::Metadata) -> Self {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Self { device: metadata.dev(), inode: metadata.ino(), bytes: metadata.len(), modified, changed }
    }
}

/// Makes a directory inside one of a workspace, and has the names of both survive a power cut, whoever made them.
pub(super) fn make_directory(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    let inside = parent(path);
    disk.sync_directory(inside)?;
    disk.sync_directory(parent(inside))
}

/// The directory that a name is in.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Holds a directory until the file is dropped: a log is opened, and a segment replaced, by one at a time.
pub(super) fn hold(directory: &Path) -> io::Result<File> {
    let file = File::open(directory)?;
    file.lock()?;
    Ok(file)
}

const PLACE: StatxFlags = StatxFlags::INO.union(StatxFlags::SIZE);

fn place_of(found: &Statx) -> FilePlace {
    let device = makedev(found.stx_dev_major, found.stx_dev_minor);
    FilePlace { device, inode: found.stx_ino, bytes: found.stx_size }
}

/// The disk itself.
#[derive(Debug, Clone, Copy)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().append(true).custom_flags(O_NONBLOCK).open(path)?))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    #[expect(clippy::disallowed_methods, reason = "synced before by its caller, and the directory after")]
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        fs::symlink_metadata(path).map(FileIdentity::from)
    }

    fn place(&self, path: &Path) -> io::Result<FilePlace> {
        Ok(place_of(&statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, PLACE)?))
    }

    fn read(&self, path: &Path) -> io::Result<(Vec<u8>, FileIdentity)> {
        let mut file = open_regular(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok((bytes, FileIdentity::from(file.metadata()?)))
    }

    fn make_room(&self, path: &Path, bytes: usize) -> io::Result<Box<dyn Room>> {
        let mut new = OpenOptions::new();
        new.write(true).create(true).truncate(true).mode(0o600).custom_flags(O_NONBLOCK);
        let mut file = new.open(path)?;
        // Written and not only reserved: a first write to reserved blocks changes the file system's records as well.
        file.write_all(&vec![b'\n'; bytes])?;
        file.sync_all()?;
        Ok(Box::new(file))
    }

    fn space(&self, directory: &Path) -> Option<Space> {
        // A file system that says nothing of the kind says that it has no blocks.
        let disk = statvfs(directory).ok().filter(|disk| disk.f_blocks > 0)?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some(Space { free: bytes(disk.f_bavail), all: bytes(disk.f_blocks) })
    }
}

impl Room for File {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn place(&self) -> io::Result<FilePlace> {
        Ok(place_of(&statx(self, c"", AtFlags::EMPTY_PATH, PLACE)?))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl DiskFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        File::set_len(self, bytes)
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.metadata().map(FileIdentity::from)
    }
}
