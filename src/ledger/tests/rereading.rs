//! Full segments of which only the time of their last change moved are read again while decisions go on.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::*;

/// Only a bound for the case that it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A disk that reads when the test lets it, and one that somebody is at while it reads.
#[derive(Debug)]
struct Slow {
    /// A word for each reading; all may be read when nobody is left to say one.
    words: Mutex<Receiver<()>>,
    is_touched: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
}

impl Disk for Slow {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.open(path)
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
        if path.extension().is_none() {
            // The journal.
            return RealDisk.read(path);
        }
        self.reads.fetch_add(1, Ordering::AcqRel);
        let _ = self.words.lock().unwrap().recv();
        let before = self.identity(path)?;
        while self.is_touched.load(Ordering::Acquire) && self.identity(path)? == before {
            set_mode(path, 0o400);
        }
        RealDisk.read(path)
    }

    fn make_room(&self, path: &Path, bytes: usize) -> io::Result<Box<dyn Room>> {
        RealDisk.make_room(path, bytes)
    }
}

/// A log with three full segments on such a disk, and what the test holds of it.
struct Place {
    root: tempfile::TempDir,
    log: SegmentLog,
    seals: Seals,
    kept: String,
    is_touched: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
}

fn place(words: Receiver<()>) -> Place {
    let (root, seals) = (tempfile::tempdir().unwrap(), Seals::default());
    let (is_touched, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let disk = Slow { words: Mutex::new(words), is_touched: is_touched.clone(), reads: reads.clone() };
    let (directory, journal) = (root.path().join("ledger"), root.path().join("journal"));
    let (log, _) = SegmentLog::open_with_journal(
        Arc::new(disk),
        &directory,
        &journal,
        TOPIC,
        &[],
        (seals.clone(), &mut |_, _| {}),
    )
    .unwrap();
    let mut log = log.with_segment_bytes_max(900);
    for name in ["a", "b", "c", "d"] {
        append(&mut log, name, 3).unwrap();
    }
    let place = Place {
        root,
        log: log.with_segment_bytes_max(u64::MAX),
        seals,
        kept: String::new(),
        is_touched,
        reads,
    };
    assert_eq!((place.paths().len(), place.reads.load(Ordering::Acquire)), (4, 0));
    place
}

impl Place {
    fn paths(&self) -> Vec<PathBuf> {
        segments(&self.root.path().join("ledger"))
    }

    /// Appends until it is so.
    fn appends_until(&mut self, mut is: impl FnMut(&Self) -> bool) {
        let began = Instant::now();
        while !is(self) {
            assert!(began.elapsed() < PATIENCE, "in vain");
            append(&mut self.log, "goes on", 1).unwrap();
            let news = self.seals.news(TOPIC, &Seed::from_bytes(&[7; 32]));
            self.kept = news.unwrap_or_else(|| self.kept.clone());
        }
    }

    /// Are all full segments known as they are now?
    fn is_settled(&self) -> bool {
        let times: Vec<_> =
            self.paths().iter().take(3).map(|path| RealDisk.identity(path).unwrap().changed).collect();
        let seals = self.kept.lines().nth(1).unwrap_or("[]");
        let seals: Vec<serde_json::Value> = serde_json::from_str(seals).unwrap();
        seals.iter().map(|seal| seal["changed"].clone()).eq(times.iter().map(|time| serde_json::json!(time)))
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn decisions_go_on_while_full_segments_are_read_again_because_of_a_mode_or_a_name() {
    let (say, words) = channel();
    let mut place = place(words);
    for path in &place.paths()[..3] {
        set_mode(path, 0o400);
        fs::hard_link(path, path.with_extension("link.torn")).unwrap();
    }
    let (tell, told) = channel();
    let goes_on = std::thread::spawn(move || {
        // One is being read, and nobody waits for it.
        place.appends_until(|place| place.reads.load(Ordering::Acquire) == 1);
        append(&mut place.log, "meanwhile", 1).unwrap();
        tell.send(()).unwrap();
        place
    });
    told.recv_timeout(PATIENCE).expect("an append waits for the reading");
    let mut place = goes_on.join().unwrap();
    drop(say);
    place.appends_until(Place::is_settled);
    assert_eq!(place.reads.load(Ordering::Acquire), 3);
}

/// As under a `chown -R` that is still running.
#[test]
fn a_full_segment_that_changes_while_it_is_read_is_looked_at_again() {
    let (say, words) = channel();
    drop(say);
    let mut place = place(words);
    place.is_touched.store(true, Ordering::Release);
    set_mode(&place.paths()[1], 0o600);
    place.appends_until(|place| place.reads.load(Ordering::Acquire) >= 3);
    assert!(!place.is_settled());
    place.is_touched.store(false, Ordering::Release);
    place.appends_until(Place::is_settled);
}

/// Through another name of the file, which is not heard, and with the time set back that can be set.
#[test]
fn an_edit_that_nobody_heard_and_whose_time_was_set_back_is_found_all_the_same() {
    let (say, words) = channel();
    drop(say);
    let mut place = place(words);
    let path = place.paths().remove(1);
    let other_name = place.root.path().join("other");
    fs::hard_link(&path, &other_name).unwrap();
    let (text, modified) = (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap());
    let write = |text: &[u8]| {
        overwrite(&other_name, text);
        let file = fs::File::options().append(true).open(&other_name).unwrap();
        file.set_times(fs::FileTimes::new().set_modified(modified)).unwrap();
    };
    write(&text.to_ascii_uppercase());
    let began = Instant::now();
    let found = loop {
        if let Err(fault) = append(&mut place.log, "on top", 1) {
            break fault;
        }
        assert!(began.elapsed() < PATIENCE, "it is not found");
    };
    assert!(matches!(&found, AppendFault::Tampered(why) if why.ends_with("was written to")), "{found:?}");
    set_mode(&path, 0o600);
    for _ in 0..3 {
        assert!(
            matches!(append(&mut place.log, "on top", 1), Err(AppendFault::Tampered(_))),
            "nor is it forgotten"
        );
    }
    write(&text);
    append(&mut place.log, "put right", 1).unwrap();
}
