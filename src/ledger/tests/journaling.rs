//! Small batches are durable in the journal, whatever becomes of the segment that is not synced yet.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;

/// Room for three batches of one page, so that it is rewound often.
const SMALL_JOURNAL: usize = 3 * 4096;

fn open_journaled(root: &Path, remembered: &[Head]) -> (SegmentLog, Option<Torn>) {
    open_on(Arc::new(RealDisk), root, remembered).unwrap()
}

fn open_on(
    disk: Arc<dyn Disk>,
    root: &Path,
    remembered: &[Head],
) -> Result<(SegmentLog, Option<Torn>), OpenFault> {
    let (directory, journal) = (root.join("ledger"), root.join("journal"));
    SegmentLog::open_with_journal(
        disk,
        &directory,
        &journal,
        TOPIC,
        remembered,
        (Seals::default(), &mut |_, _| {}),
    )
}

/// The process ends without a word: the files stay as they are.
fn kill(log: SegmentLog) {
    std::mem::forget(log);
}

#[test]
fn what_a_power_cut_takes_from_the_segment_is_put_back_from_the_journal() {
    for cut in [0, 1, 700, 1500] {
        let root = tempfile::tempdir().unwrap();
        let (mut log, _) = open_journaled(root.path(), &[]);
        let heads = ["a", "b", "c", "d"].map(|name| append(&mut log, name, 2).unwrap());
        kill(log);
        let path = segments(&root.path().join("ledger")).remove(0);
        let whole = fs::read(&path).unwrap();
        overwrite(&path, &whole[..cut]);
        let (mut log, torn) = open_journaled(root.path(), &[heads[3]]);
        assert_eq!((log.head(), torn), (heads[3], None), "{cut}");
        assert_eq!(fs::read(&path).unwrap(), whole, "{cut}");
        assert!(!root.path().join("journal").exists(), "its work is done");
        append(&mut log, "e", 1).unwrap();
        let all = expected(&[("a", 2), ("b", 2), ("c", 2), ("d", 2), ("e", 1)]);
        assert_eq!(wires(&root.path().join("ledger"), log.head()), all, "{cut}");
    }
}

#[test]
fn at_rest_there_are_segments_alone_and_a_killed_log_leaves_its_journal_to_the_next() {
    let root = tempfile::tempdir().unwrap();
    let journal = root.path().join("journal");
    let (mut log, _) = open_journaled(root.path(), &[]);
    assert!(!journal.exists(), "it is made when it is needed");
    append(&mut log, "a", 1).unwrap();
    assert!(journal.exists());
    drop(log);
    assert!(!journal.exists());

    let (mut log, _) = open_journaled(root.path(), &[]);
    let head = append(&mut log, "b", 1).unwrap();
    kill(log);
    let left = fs::read(&journal).unwrap();
    let (log, torn) = open_journaled(root.path(), &[head]);
    assert_eq!((log.head(), torn), (head, None));
    drop(log);
    // One that was already read, and could not be taken away, changes nothing.
    overwrite(&journal, &left);
    let (mut log, _) = open_journaled(root.path(), &[head]);
    assert_eq!(log.head(), head);
    append(&mut log, "c", 1).unwrap();
    assert_eq!(wires(&root.path().join("ledger"), log.head()), expected(&[("a", 1), ("b", 1), ("c", 1)]));
}

#[test]
fn a_ledger_that_does_not_open_keeps_its_journal() {
    let root = tempfile::tempdir().unwrap();
    let (mut log, _) = open_journaled(root.path(), &[]);
    let head = append(&mut log, "a", 1).unwrap();
    kill(log);
    let later = Head { sequence: 9, ..head };
    let refused = open_on(Arc::new(RealDisk), root.path(), &[later]);
    assert!(matches!(refused, Err(OpenFault::Truncated { sequence: 1, expected: 9 })));
    assert!(root.path().join("journal").exists());
}

#[test]
fn damage_that_the_journal_does_not_cover_stops_the_log_from_opening() {
    let root = tempfile::tempdir().unwrap();
    let (mut log, _) = open_journaled(root.path(), &[]);
    // Synced in the segment, and no more in the journal.
    append(&mut log, "a", 2).unwrap();
    append(&mut log, &"b".repeat(40_000), 1).unwrap();
    let heads = ["c", "d"].map(|name| append(&mut log, name, 1).unwrap());
    kill(log);
    let path = segments(&root.path().join("ledger")).remove(0);
    let mut text = fs::read(&path).unwrap();
    text[50] ^= 1;
    overwrite(&path, &text);
    let refused = open_on(Arc::new(RealDisk), root.path(), &[]).map(|(log, _)| log.head());
    assert!(matches!(refused, Err(OpenFault::Damaged { line: 1, after: 0, .. })), "{refused:?}");
    text[50] ^= 1;
    // What it covers is put right.
    let last = text.len() - 200;
    text[last] ^= 1;
    overwrite(&path, &text);
    assert_eq!(open_journaled(root.path(), &[heads[1]]).0.head(), heads[1]);
}

#[test]
fn a_disk_that_has_no_room_for_a_journal_does_without() {
    let root = tempfile::tempdir().unwrap();
    // There is no such directory.
    let (directory, journal) = (root.path().join("ledger"), root.path().join("missing/journal"));
    let (mut log, _) = SegmentLog::open_with_journal(
        Arc::new(RealDisk),
        &directory,
        &journal,
        TOPIC,
        &[],
        (Seals::default(), &mut |_, _| {}),
    )
    .unwrap();
    append(&mut log, "a", 1).unwrap();
    append(&mut log, "b", 1).unwrap();
    assert_eq!(wires(&directory, log.head()), expected(&[("a", 1), ("b", 1)]));
    assert!(!journal.exists());
}

/// Each disk call of a run fails once, in three ways; then the disk works again.
#[test]
fn with_a_journal_too_what_is_not_durable_is_not_acknowledged_and_the_log_recovers_by_itself() {
    let faults = each_call_fails_once(&|disk, directory| {
        let (log, _) = open_on(disk, directory.parent().unwrap(), &[])?;
        Ok(log.with_segment_bytes_max(1_400).with_journal_bytes(SMALL_JOURNAL))
    });
    assert!(faults > 60, "{faults} faults were met");
}

/// A disk whose process, or whose power, goes at a call: from there on nothing is done any more. A process that is gone
/// leaves the files as they are. Without power, what was not synced may have reached the disk, page by page, or not.
#[derive(Debug, Clone)]
struct MortalDisk(Arc<Mutex<Mortal>>);

#[derive(Debug)]
struct Mortal {
    /// Calls until the end.
    left: usize,
    /// One before that which fails.
    fails: usize,
    /// What is on the disk for sure, by path.
    synced: BTreeMap<PathBuf, Vec<u8>>,
    /// Names that may be there or not.
    in_doubt: Vec<PathBuf>,
}

#[derive(Debug)]
struct MortalFile<F> {
    disk: MortalDisk,
    path: PathBuf,
    file: F,
}

impl MortalDisk {
    /// A disk with what is in these directories, all of it synced.
    fn with(root: &Path) -> Self {
        let mut synced = BTreeMap::new();
        for directory in [root.to_owned(), root.join("ledger")] {
            for entry in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    synced.insert(entry.path(), fs::read(entry.path()).unwrap());
                }
            }
        }
        Self(Arc::new(Mutex::new(Mortal { left: 0, fails: 0, synced, in_doubt: Vec::new() })))
    }

    /// Serves another process for so many calls, with one that fails.
    fn serve(&self, left: usize, fails: usize) {
        let mut mortal = self.0.lock().unwrap();
        (mortal.left, mortal.fails) = (left, fails);
    }

    fn call(&self) -> io::Result<()> {
        let mut mortal = self.0.lock().unwrap();
        mortal.left = mortal.left.checked_sub(1).ok_or(io::Error::other("no power"))?;
        if mortal.left == mortal.fails { Err(io::Error::other("a fault")) } else { Ok(()) }
    }

    fn made(&self, path: &Path) {
        let mut mortal = self.0.lock().unwrap();
        mortal.synced.insert(path.to_owned(), Vec::new());
        mortal.in_doubt.push(path.to_owned());
    }

    fn sync(&self, path: &Path) {
        // Of a file without a name nothing is found again.
        if let Ok(text) = fs::read(path) {
            self.0.lock().unwrap().synced.insert(path.to_owned(), text);
        }
    }

    fn open<F>(&self, path: &Path, file: F) -> MortalFile<F> {
        MortalFile { disk: self.clone(), path: path.to_owned(), file }
    }

    /// Lays out, in another directory, what is left when the power is back.
    fn left_of(&self, root: &Path, other: &Path, mut any: impl FnMut(usize) -> usize) {
        fs::create_dir_all(other.join("ledger")).unwrap();
        let mortal = self.0.lock().unwrap();
        for (path, synced) in &mortal.synced {
            let now = fs::read(path).ok();
            if now.is_none() && !mortal.in_doubt.contains(path)
                || mortal.in_doubt.contains(path) && any(2) == 0
            {
                continue;
            }
            let now = now.unwrap_or_else(|| synced.clone());
            let (short, long) = (synced.len().min(now.len()), synced.len().max(now.len()));
            let mut text = vec![0; short + any(long - short + 1)];
            for (n, page) in text.chunks_mut(4096).enumerate() {
                let from = if any(2) == 0 { synced } else { &now };
                let at = (n * 4096).min(from.len());
                let bytes = page.len().min(from.len() - at);
                page[..bytes].copy_from_slice(&from[at..at + bytes]);
            }
            overwrite(&other.join(path.strip_prefix(root).unwrap()), text);
        }
    }
}

impl Disk for MortalDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.call()?;
        let file = RealDisk.create(path)?;
        self.made(path);
        Ok(Box::new(self.open(path, file)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.call()?;
        Ok(Box::new(self.open(path, RealDisk.open(path)?)))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.remove(path)?;
        self.0.lock().unwrap().in_doubt.push(path.to_owned());
        Ok(())
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::Error::other("nothing is renamed"))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        let mut mortal = self.0.lock().unwrap();
        mortal.in_doubt.retain(|name| name.parent() != Some(path));
        mortal.synced.retain(|name, _| name.parent() != Some(path) || name.exists());
        Ok(())
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        self.call()?;
        RealDisk.identity(path)
    }

    fn read(&self, path: &Path) -> io::Result<(Vec<u8>, FileIdentity)> {
        self.call()?;
        RealDisk.read(path)
    }

    fn make_room(&self, path: &Path, bytes: usize) -> io::Result<Box<dyn Room>> {
        self.call()?;
        let room = RealDisk.make_room(path, bytes)?;
        self.made(path);
        self.sync(path);
        Ok(Box::new(self.open(path, room)))
    }
}

impl DiskFile for MortalFile<Box<dyn DiskFile>> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.disk.call()?;
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.call()?;
        self.disk.sync(&self.path);
        Ok(())
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        self.disk.call()?;
        self.file.set_len(bytes)
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.disk.call()?;
        self.file.identity()
    }
}

impl Room for MortalFile<Box<dyn Room>> {
    fn place(&self) -> io::Result<FilePlace> {
        self.disk.call()?;
        self.file.place()
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.call()?;
        self.file.write_at(offset, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.call()?;
        self.disk.sync(&self.path);
        Ok(())
    }
}

/// Somebody takes the journal away under a log that runs, and then the power goes.
#[test]
fn a_journal_that_was_taken_away_holds_nothing_and_is_not_relied_on() {
    type Take = fn(&Path);
    let ways: [Take; 3] = [
        |journal| fs::remove_file(journal).unwrap(),
        |journal| RealDisk.rename(journal, &journal.with_extension("moved")).unwrap(),
        |journal| {
            let other = journal.with_extension("other");
            overwrite(&other, "\n".repeat(1 << 20));
            RealDisk.rename(&other, journal).unwrap();
        },
    ];
    for (n, take) in ways.into_iter().enumerate() {
        for is_idle in [false, true] {
            let root = tempfile::tempdir().unwrap();
            let journal = root.path().join("journal");
            let disk = MortalDisk::with(root.path());
            disk.serve(usize::MAX, usize::MAX);
            let (mut log, _) = open_on(Arc::new(disk.clone()), root.path(), &[]).unwrap();
            let mut batches = vec![("a", 1), ("b", 1)];
            for (name, events) in &batches {
                append(&mut log, name, *events).unwrap();
            }
            take(&journal);
            disk.0.lock().unwrap().synced.remove(&journal);
            if is_idle {
                log.check().unwrap();
            } else {
                append(&mut log, "c", 1).unwrap();
                batches.push(("c", 1));
            }
            let left = |disk: &MortalDisk| {
                let other = tempfile::tempdir().unwrap();
                disk.left_of(root.path(), other.path(), |_| 0);
                let (log, _) = open_journaled(other.path(), &[]);
                wires(&other.path().join("ledger"), log.head())
            };
            assert_eq!(left(&disk), expected(&batches), "{n}");
            // There is another one from here on.
            append(&mut log, "d", 1).unwrap();
            batches.push(("d", 1));
            assert_eq!(left(&disk), expected(&batches), "{n}");
            assert!(fs::read_to_string(&journal).unwrap().contains(r#"\"d\""#), "{n}");
            kill(log);
        }
    }
}

/// Power goes at any call, again and again in the life of one ledger, with any pages of what was not synced missing, and
/// after another call has failed. In between the process alone is killed: what the next one finds in the files need not be
/// on the disk.
#[test]
fn a_power_cut_at_any_call_takes_nothing_that_was_acknowledged() {
    let lives = if std::env::var_os("LONG").is_some() { 1_000 } else { 40 };
    let (mut cuts, mut kills, mut kept, mut put_back) = (0, 0, 0, 0);
    for life in 0..lives {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(life + 1);
        let mut any = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut root = tempfile::tempdir().unwrap();
        // What was acknowledged, and what was refused behind it, of which one may be there when the power is back.
        let (mut acknowledged, mut head, mut refused) = (Vec::new(), None::<Head>, Vec::new());
        let mut number = 0;
        let mut disk = MortalDisk::with(root.path());
        for round in 0..18 {
            let calls = 1 + any(60);
            disk.serve(calls, any(2 * calls));
            let what = format!("life {life}, round {round}");
            let has_journal = root.path().join("journal").exists();
            let opened = open_on(Arc::new(disk.clone()), root.path(), head.as_slice());
            if let Err(fault) = &opened {
                assert!(matches!(fault, OpenFault::Io { .. }), "{what}: {fault}");
            }
            if let Ok((log, _)) = opened {
                let found = wires(&root.path().join("ledger"), log.head());
                let more = found.get(expected(&borrowed(&acknowledged)).len());
                let is_it = |batch: &(String, usize)| {
                    more.is_some_and(|wire| wire.contains(&format!("\"{}\"", batch.0)))
                };
                acknowledged.extend(std::mem::take(&mut refused).into_iter().find(is_it));
                assert_eq!(found, expected(&borrowed(&acknowledged)), "{what}");
                put_back += usize::from(has_journal);
                head = Some(log.head());
                let mut log = log.with_segment_bytes_max(20_000).with_journal_bytes(SMALL_JOURNAL);
                loop {
                    number += 1;
                    // Mostly small, some that fill pages, some that go into the segment at once.
                    let length = [1, 1, 1, 2_000, 9_000, 40_000][any(6)];
                    let batch = (format!("{number}-{}", "x".repeat(length)), 1 + any(3));
                    match append(&mut log, &batch.0, batch.1) {
                        Ok(now) => {
                            acknowledged.push(batch);
                            head = Some(now);
                            refused.clear();
                            kept += 1;
                        }
                        Err(_) => refused.push(batch),
                    }
                    if disk.0.lock().unwrap().left == 0 {
                        break;
                    }
                }
                // It can leave nothing in order any more; what it has open is given back.
                drop(log);
            }
            if any(3) == 0 {
                kills += 1;
                continue;
            }
            let other = tempfile::tempdir().unwrap();
            disk.left_of(root.path(), other.path(), &mut any);
            root = other;
            disk = MortalDisk::with(root.path());
            cuts += 1;
        }
    }
    assert!(
        cuts >= 10 * lives && kills >= 4 * lives && kept > 100 && put_back > 100,
        "{cuts} {kills} {kept} {put_back}"
    );
}

fn borrowed(batches: &[(String, usize)]) -> Vec<(&str, usize)> {
    batches.iter().map(|(name, events)| (name.as_str(), *events)).collect()
}
