//! A disk that is full, or nearly: the log goes on or it stops, and does not do both by turns.

use std::sync::atomic::AtomicU64;

use super::*;

/// What a disk holds, and what the journal of these tests takes of it.
const ALL: u64 = 256 * 1024;
const JOURNAL: usize = 32 * 1024;

/// A disk that is small. What others have on it is the test's to say.
#[derive(Debug, Clone)]
struct SmallDisk {
    root: PathBuf,
    others: Arc<AtomicU64>,
    /// Some have a quota, and say that there is room.
    tells: bool,
}

impl SmallDisk {
    fn free(&self) -> u64 {
        let directories = [self.root.clone(), self.root.join("ledger")];
        let entries = directories.iter().flat_map(|directory| fs::read_dir(directory).into_iter().flatten());
        let files = entries.map(|entry| entry.unwrap().metadata().unwrap()).filter(fs::Metadata::is_file);
        let used = files.map(|file| file.len()).sum::<u64>() + self.others.load(Ordering::Relaxed);
        ALL.saturating_sub(used)
    }

    /// Others take all that is free but so much.
    fn leave(&self, bytes: u64) {
        self.others.store(0, Ordering::Relaxed);
        self.others.store(self.free().saturating_sub(bytes), Ordering::Relaxed);
    }

    fn wrap(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(SmallFile { disk: self.clone(), file })
    }
}

#[derive(Debug)]
struct SmallFile {
    disk: SmallDisk,
    file: Box<dyn DiskFile>,
}

/// As much as there is room for, and whether that is all.
fn fits(free: u64, bytes: usize) -> (usize, io::Result<()>) {
    let room = usize::try_from(free).unwrap().min(bytes);
    (room, if room == bytes { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) })
}

impl Disk for SmallDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.create(path).map(|file| self.wrap(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.open(path).map(|file| self.wrap(file))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(path)
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        RealDisk.identity(path)
    }

    fn read(&self, path: &Path) -> io::Result<(Vec<u8>, FileIdentity)> {
        RealDisk.read(path)
    }

    fn make_room(&self, path: &Path, bytes: usize) -> io::Result<Box<dyn Room>> {
        let (room, fits) = fits(self.free(), bytes);
        let made = RealDisk.make_room(path, room)?;
        fits.map(|()| made)
    }

    fn space(&self, _directory: &Path) -> Option<Space> {
        self.tells.then(|| Space { free: self.free(), all: ALL })
    }
}

impl DiskFile for SmallFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (room, fits) = fits(self.disk.free(), bytes.len());
        self.file.append(&bytes[..room])?;
        fits
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.file.identity()
    }
}

/// A log with a few entries and a journal, on a disk with room.
struct Small {
    root: tempfile::TempDir,
    disk: SmallDisk,
    log: SegmentLog,
}

impl Small {
    fn new(tells: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        let disk = SmallDisk { root: root.path().to_owned(), others: Arc::default(), tells };
        let (directory, journal) = (root.path().join("ledger"), root.path().join("journal"));
        let log = SegmentLog::open_with_journal(
            Arc::new(disk.clone()),
            &directory,
            &journal,
            TOPIC,
            &[],
            (Seals::default(), &mut |_, _| {}),
        );
        let mut small = Self { root, disk, log: log.unwrap().0.with_journal_bytes(JOURNAL) };
        assert_eq!(small.appends(3), [true; 3]);
        assert!(small.has_journal());
        small
    }

    fn has_journal(&self) -> bool {
        self.root.path().join("journal").exists()
    }

    fn segments(&self) -> usize {
        segments(&self.root.path().join("ledger")).len()
    }

    /// Which of so many batches were taken.
    fn appends(&mut self, batches: usize) -> Vec<bool> {
        (0..batches).map(|_| append(&mut self.log, "small", 1).is_ok()).collect()
    }
}

#[test]
fn on_a_disk_that_is_full_nothing_is_taken_until_there_is_room_to_go_on() {
    let mut small = Small::new(true);
    small.disk.leave(0);
    assert_eq!(small.appends(20), [false; 20], "what the journal held is not for one batch more");
    let why = small.log.check().unwrap_err().to_string();
    assert!(why.ends_with("the disk is all but full: less than 64 KiB are free"), "{why}");
    assert_eq!((small.segments(), small.has_journal()), (1, false));
    // Room for many batches, and less than has to be free.
    small.disk.leave(ALL / 4 - 1);
    assert_eq!(small.appends(3), [false; 3]);
    small.disk.leave(ALL / 4);
    small.log.check().unwrap();
    assert_eq!(small.appends(3), [true; 3]);
    assert_eq!((small.segments(), small.has_journal()), (2, false), "what there is room for is batches");
    small.disk.leave(ALL / 4 + 2 * JOURNAL as u64);
    assert_eq!(small.appends(3), [true; 3]);
    assert_eq!((small.segments(), small.has_journal()), (2, true));
    let (head, directory) = (small.log.head(), small.root.path().join("ledger"));
    drop(small.log);
    assert_eq!(wires(&directory, head).len(), 9);
    assert_eq!(open(&directory, &[head]).unwrap().0.head(), head);
}

#[test]
fn a_disk_that_fills_is_told_of_while_there_is_room_for_the_next_batch() {
    const MIB: u64 = 1024 * 1024;
    let least = (crate::limits::BATCH_BYTES_MAX + crate::limits::JOURNAL_BYTES) as u64;
    for (all, reserve) in [(1024 * 1024 * MIB, least), (4 * least, least), (12 * MIB, 3 * MIB), (0, 0)] {
        assert_eq!(Space { free: reserve, all }.shortage(), None, "{all}");
        let short = reserve.checked_sub(1).map(|free| Space { free, all }.shortage().unwrap());
        let why = format!("the disk is all but full: less than {} KiB are free", reserve / 1024);
        assert_eq!(short, (reserve > 0).then_some(why), "{all}");
    }
    let space = RealDisk.space(Path::new("/")).unwrap();
    assert!(space.free <= space.all && space.all > 0);
    assert_eq!(RealDisk.space(Path::new("/proc")), None, "it has no blocks");
    assert_eq!(RealDisk.space(Path::new("/missing")), None);
}

/// Nobody says that there is no room, so what there is is used up, and not by a journal.
#[test]
fn where_room_ends_without_a_word_it_is_used_for_batches() {
    let mut small = Small::new(false);
    small.disk.leave(0);
    let taken = small.appends(100);
    assert!(!taken[0], "it is full");
    let then = taken[1..].iter().position(|taken| !taken).unwrap();
    assert!(then > 20, "{then} batches in the room that the journal had");
    assert!(taken[1 + then..].iter().all(|taken| !taken), "and no more: {taken:?}");
    assert!(small.segments() <= 3, "{}", small.segments());
    assert!(!small.has_journal());
    small.disk.leave(ALL / 2);
    assert_eq!(small.appends(3), [true; 3]);
}

/// A full segment is followed by one whose name somebody has taken: nobody is told that all is well before that is put right.
#[test]
fn a_log_that_has_no_segment_to_go_on_with_says_so_until_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let (log, _) = open(directory.path(), &[]).unwrap();
    let mut log = log.with_segment_bytes_max(1);
    let head = append(&mut log, "a", 1).unwrap();
    let taken = directory.path().join("00000000000000000002.jsonl");
    overwrite(&taken, "");
    log.check().unwrap();
    for _ in 0..3 {
        for fault in [append(&mut log, "b", 1).unwrap_err(), log.check().unwrap_err()] {
            let fault = fault.to_string();
            assert!(fault.contains("00000000000000000002.jsonl is there"), "{fault}");
        }
    }
    assert_eq!(log.head(), head);
    fs::remove_file(&taken).unwrap();
    log.check().unwrap();
    append(&mut log, "b", 1).unwrap();
    assert_eq!(wires(directory.path(), log.head()), expected(&[("a", 1), ("b", 1)]));
}

/// What is there under a segment's name is one only if the log has made it.
#[test]
fn a_segment_that_the_log_did_not_make_is_a_stray() {
    let root = tempfile::tempdir().unwrap();
    let (directory, seals) = (root.path().join("ledger"), Seals::default());
    let opened = SegmentLog::open_with_journal(
        Arc::new(RealDisk),
        &directory,
        &root.path().join("journal"),
        TOPIC,
        &[],
        (seals.clone(), &mut |_, _| {}),
    );
    let mut log = opened.unwrap().0.with_segment_bytes_max(1);
    let source = Source::files(&directory);
    assert_eq!(source.stray(&seals), None);
    for name in ["a", "b", "c"] {
        append(&mut log, name, 2).unwrap();
        assert_eq!(source.stray(&seals), None, "{name}");
    }
    for name in
        ["00000000000000000000", "00000000000000000002", "00000000000000000007", "00000000000000000200"]
    {
        let stray = directory.join(name).with_extension("jsonl");
        overwrite(&stray, "");
        assert_eq!(source.stray(&seals), Some(stray.clone()));
        fs::remove_file(stray).unwrap();
    }
    assert_eq!(source.stray(&seals), None);
}
