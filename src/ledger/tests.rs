//! The ledger in files: appending, torn tails, damage, and disks that fail at any call.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

mod filling;
mod journaling;
mod reading;
mod rereading;
mod retention;
mod sealing;
mod stirring;
mod tailing;

use super::*;
use crate::proof::{Digest, Seed};
use crate::timestamp::Timestamp;

const TOPIC: &str = "gw_test \"é\"";

fn at(second: u32) -> Timestamp {
    Timestamp::parse(&format!("2026-02-18T19:38:{:02}Z", second % 60)).unwrap()
}

fn open(directory: &Path, remembered: &[Head]) -> Result<(SegmentLog, Option<Torn>), OpenFault> {
    SegmentLog::open(Arc::new(RealDisk), directory, TOPIC, remembered)
}

/// A batch of `events` entries with a body each, told apart by `name`.
fn batch(log: &SegmentLog, name: &str, events: usize) -> Batch {
    let mut builder = BatchBuilder::new(log.topic_id(), log.head(), log.last_timestamp());
    for n in 0..events {
        let body = format!("{{\"name\": \"{name}\", \"n\": {n}}}\n");
        builder.body(Digest::of(body.as_bytes()), &body);
        builder.event(format!("{{\"name\":\"{name}\",\"n\":{n}}}"), at(7));
    }
    builder.seal().unwrap()
}

fn append(log: &mut SegmentLog, name: &str, events: usize) -> Result<Head, AppendFault> {
    let batch = batch(log, name, events);
    log.append(log.head(), &batch).map(|()| log.head())
}

fn wires(directory: &Path, head: Head) -> Vec<String> {
    Entries::read(directory, 1, head.sequence).unwrap().map(|entry| entry.unwrap().wire).collect()
}

fn expected(names: &[(&str, usize)]) -> Vec<String> {
    names
        .iter()
        .flat_map(|(name, events)| (0..*events).map(move |n| format!("{{\"name\":\"{name}\",\"n\":{n}}}")))
        .collect()
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    super::segments::list(directory).unwrap().into_iter().map(|(_, path)| path).collect()
}

#[expect(clippy::disallowed_methods, reason = "a test damages files")]
fn overwrite(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::write(path, bytes).unwrap();
}

#[test]
fn what_was_appended_is_read_back_in_order_across_segments_and_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let (log, torn) = open(directory.path(), &[]).unwrap();
    assert_eq!((log.head(), torn), (Head::genesis(TOPIC), None));
    let mut log = log.with_segment_bytes_max(600);
    let mut heads = Vec::new();
    for (name, events) in [("a", 1), ("b", 3), ("c", 2), ("d", 1)] {
        heads.push(append(&mut log, name, events).unwrap());
    }
    assert_eq!(segments(directory.path()).len(), 3, "it rolled");
    let (mut log, torn) = open(directory.path(), &heads).unwrap();
    assert_eq!((log.head(), torn), (heads[3], None));
    append(&mut log, "e", 1).unwrap();
    let all = expected(&[("a", 1), ("b", 3), ("c", 2), ("d", 1), ("e", 1)]);
    assert_eq!(wires(directory.path(), log.head()), all);
    for from in 1..=8 {
        let some: Vec<u64> =
            Entries::read(directory.path(), from, 7).unwrap().map(|entry| entry.unwrap().sequence).collect();
        assert_eq!(some, (from..=7).collect::<Vec<_>>());
    }
}

#[test]
fn an_append_succeeds_only_on_the_head_it_was_built_on() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), &[]).unwrap();
    let (first, rival) = (batch(&log, "a", 2), batch(&log, "b", 1));
    let before = log.head();
    log.append(before, &first).unwrap();
    assert!(matches!(log.append(before, &rival), Err(AppendFault::Conflict { head }) if head == log.head()));
    assert!(matches!(log.append(log.head(), &rival), Err(AppendFault::Conflict { .. })));
    assert_eq!(wires(directory.path(), log.head()), expected(&[("a", 2)]));
}

#[test]
fn a_clock_that_is_set_back_does_not_turn_time_around() {
    let head = Head::genesis(TOPIC);
    let mut builder = BatchBuilder::new(TOPIC, head, Some(at(30)));
    let times: Vec<String> =
        [31, 20, 20, 32].map(|second| builder.event("{}".to_owned(), at(second)).consensus_timestamp).into();
    assert_eq!(
        times,
        [
            "2026-02-18T19:38:31.000000000Z",
            "2026-02-18T19:38:31.000000001Z",
            "2026-02-18T19:38:31.000000002Z",
            "2026-02-18T19:38:32.000000000Z"
        ]
    );
}

/// Power goes at any byte of the batch that was being written (every byte with LONG=1), or loses any page of it.
#[test]
fn a_torn_tail_is_set_aside_and_nothing_acknowledged_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), &[]).unwrap();
    append(&mut log, "a", 2).unwrap();
    let acknowledged = append(&mut log, "b", 1).unwrap();
    let path = segments(directory.path()).remove(0);
    let durable = fs::read(&path).unwrap().len();
    append(&mut log, &"c".repeat(1500), 4).unwrap();
    drop(log);
    let whole = fs::read(&path).unwrap();

    let check = |left: &[u8], what: &str| {
        overwrite(&path, left);
        let (mut log, torn) =
            open(directory.path(), &[acknowledged]).unwrap_or_else(|fault| panic!("{what}: {fault}"));
        assert_eq!(log.head(), acknowledged, "{what}");
        let tail = &left[durable..];
        match torn {
            None => assert!(tail.is_empty(), "{what}"),
            Some(torn) => {
                assert_eq!(fs::read(&torn.file).unwrap(), tail, "{what}");
                fs::remove_file(&torn.file).unwrap();
            }
        }
        append(&mut log, "d", 1).unwrap();
        assert_eq!(wires(directory.path(), log.head()), expected(&[("a", 2), ("b", 1), ("d", 1)]), "{what}");
    };
    let step = if std::env::var_os("LONG").is_some() { 1 } else { 23 };
    for cut in (durable..whole.len()).step_by(step) {
        check(&whole[..cut], &format!("cut at {cut}"));
    }
    for page in durable / 4096..=whole.len() / 4096 {
        let mut holed = whole.clone();
        let (start, end) = ((page * 4096).max(durable), ((page + 1) * 4096).min(whole.len()));
        holed[start..end].fill(0);
        check(&holed, &format!("page {page} missing"));
    }
    overwrite(&path, &whole);
    assert_eq!(
        open(directory.path(), &[acknowledged]).unwrap().0.head().sequence,
        7,
        "the whole batch counts"
    );
}

#[test]
fn a_first_batch_that_was_torn_leaves_an_empty_log() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), &[]).unwrap();
    append(&mut log, "a", 1).unwrap();
    let path = segments(directory.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        overwrite(&path, &whole[..cut]);
        let (mut log, _) = open(directory.path(), &[]).unwrap();
        assert_eq!(log.head().sequence, 0, "{cut}");
        append(&mut log, "b", 1).unwrap();
        assert_eq!(wires(directory.path(), log.head()), expected(&[("b", 1)]), "{cut}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn damage_to_what_was_acknowledged_stops_the_log_from_opening() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), &[]).unwrap();
    let heads = ["a", "b", "c", "d"].map(|name| append(&mut log, name, 2).unwrap());
    drop(log);
    let path = segments(directory.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    // Every byte, one bit each: with a record of the last entry nothing goes unnoticed.
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1 << (place % 7);
        overwrite(&path, &damaged);
        let fault = open(directory.path(), &[heads[3]]).map(|(log, _)| log.head());
        assert!(fault.is_err(), "byte {place}: {fault:?}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was set aside");
    // Without any record, two batches behind the place still say that it was no torn tail.
    let mut damaged = whole.clone();
    damaged[whole.len() / 3] ^= 1;
    overwrite(&path, &damaged);
    assert!(matches!(open(directory.path(), &[]), Err(OpenFault::Damaged { .. })));
    // A log that is shorter than, or different from, what somebody remembers.
    overwrite(&path, &whole);
    let later = Head { sequence: 9, ..heads[3] };
    assert!(matches!(
        open(directory.path(), &[later]),
        Err(OpenFault::Truncated { sequence: 8, expected: 9 })
    ));
    let other = Head { sequence: 4, ..heads[3] };
    assert!(matches!(open(directory.path(), &[other]), Err(OpenFault::Different { sequence: 4 })));
    overwrite(&directory.path().join("notes.txt"), "x");
    assert!(matches!(open(directory.path(), &[]), Err(OpenFault::Foreign { .. })));
}

#[test]
fn a_missing_segment_stops_the_log_from_opening() {
    let directory = tempfile::tempdir().unwrap();
    let (log, _) = open(directory.path(), &[]).unwrap();
    let mut log = log.with_segment_bytes_max(1);
    for name in ["a", "b", "c"] {
        append(&mut log, name, 1).unwrap();
    }
    drop(log);
    fs::remove_file(&segments(directory.path())[1]).unwrap();
    assert!(matches!(open(directory.path(), &[]), Err(OpenFault::Gap { expected: 2, .. })));
}

#[test]
fn files_that_somebody_changed_are_noticed_before_anything_is_acknowledged() {
    for (sealed, change) in
        [false, true].into_iter().flat_map(|sealed| [0, 1, 2, 3].map(|change| (sealed, change)))
    {
        let directory = tempfile::tempdir().unwrap();
        let (log, _) = open(directory.path(), &[]).unwrap();
        let mut log = log.with_segment_bytes_max(if sealed { 1 } else { u64::MAX });
        append(&mut log, "a", 1).unwrap();
        append(&mut log, "b", 1).unwrap();
        let path = segments(directory.path()).remove(0);
        let text = fs::read(&path).unwrap();
        match change {
            0 => fs::remove_file(&path).unwrap(),
            1 => {
                fs::remove_file(&path).unwrap();
                overwrite(&path, &text);
            }
            2 => overwrite(&path, &text[..text.len() - 1]),
            _ => overwrite(&path, [&text[..], b"x"].concat()),
        }
        let fault = append(&mut log, "c", 1);
        assert!(matches!(fault, Err(AppendFault::Tampered(_))), "{sealed} {change}: {fault:?}");
    }
}

/// A disk that fails some of its calls, once each.
#[derive(Debug)]
struct FaultyDisk {
    calls: Arc<AtomicUsize>,
    /// How often a file was read from end to end.
    reads: Arc<AtomicUsize>,
    /// How often a file was asked for its times.
    times: Arc<AtomicUsize>,
    fails: Vec<usize>,
    kind: Fault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    NoSpace,
    InputOutput,
    ShortWrite,
}

impl FaultyDisk {
    /// One that never fails.
    fn sound() -> Self {
        let (calls, reads, times) = Default::default();
        Self { calls, reads, times, fails: Vec::new(), kind: Fault::InputOutput }
    }

    fn call(&self) -> io::Result<()> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        if !self.fails.contains(&number) {
            return Ok(());
        }
        Err(match self.kind {
            Fault::NoSpace => io::ErrorKind::StorageFull.into(),
            Fault::InputOutput | Fault::ShortWrite => io::Error::from_raw_os_error(5),
        })
    }

    fn again(&self) -> Self {
        let (calls, reads, times) = (self.calls.clone(), self.reads.clone(), self.times.clone());
        Self { calls, reads, times, fails: self.fails.clone(), kind: self.kind }
    }

    fn wrap(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FaultyFile { disk: self.again(), file })
    }
}

#[derive(Debug)]
struct FaultyFile<F> {
    disk: FaultyDisk,
    file: F,
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.call()?;
        RealDisk.create(path).map(|file| self.wrap(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.call()?;
        RealDisk.open(path).map(|file| self.wrap(file))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.rename(from, to)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.sync_directory(path)
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        self.call()?;
        self.times.fetch_add(1, Ordering::Relaxed);
        RealDisk.identity(path)
    }

    fn place(&self, path: &Path) -> io::Result<FilePlace> {
        self.call()?;
        RealDisk.place(path)
    }

    fn read(&self, path: &Path) -> io::Result<(Vec<u8>, FileIdentity)> {
        self.call()?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        RealDisk.read(path)
    }

    fn make_room(&self, path: &Path, bytes: usize) -> io::Result<Box<dyn Room>> {
        self.call()?;
        let room = RealDisk.make_room(path, bytes)?;
        Ok(Box::new(FaultyFile { disk: self.again(), file: room }))
    }
}

impl Room for FaultyFile<Box<dyn Room>> {
    fn place(&self) -> io::Result<FilePlace> {
        self.disk.call()?;
        self.file.place()
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let result = self.disk.call();
        if result.is_err() && self.disk.kind == Fault::ShortWrite {
            self.file.write_at(offset, &bytes[..bytes.len() / 2])?;
        }
        result?;
        self.file.write_at(offset, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.call()?;
        self.file.sync()
    }
}

impl DiskFile for FaultyFile<Box<dyn DiskFile>> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let result = self.disk.call();
        if result.is_err() && self.disk.kind == Fault::ShortWrite {
            self.file.append(&bytes[..bytes.len() / 2])?;
        }
        result?;
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.call()?;
        self.file.sync()
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        self.disk.call()?;
        self.file.set_len(bytes)
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.disk.call()?;
        self.disk.times.fetch_add(1, Ordering::Relaxed);
        self.file.identity()
    }
}

/// Each disk call of a run fails once, in three ways; then the disk works again.
#[test]
fn what_is_not_durable_is_not_acknowledged_and_the_log_recovers_by_itself() {
    let faults = each_call_fails_once(&|disk, directory| {
        let (log, _) = SegmentLog::open(disk, directory, TOPIC, &[])?;
        Ok(log.with_segment_bytes_max(700))
    });
    assert!(faults > 60, "{faults} faults were met");
}

/// How a test opens its log on a disk.
type OpenLog = dyn Fn(Arc<FaultyDisk>, &Path) -> Result<SegmentLog, OpenFault>;

/// Runs six batches through a log for each call that can fail and each way to fail, and counts what was refused.
fn each_call_fails_once(open_log: &OpenLog) -> usize {
    let mut faults = 0;
    for kind in [Fault::NoSpace, Fault::InputOutput, Fault::ShortWrite] {
        for fails in 0.. {
            let root = tempfile::tempdir().unwrap();
            let directory = root.path().join("ledger");
            let calls = Arc::new(AtomicUsize::new(0));
            let disk = FaultyDisk { calls: calls.clone(), fails: vec![fails], kind, ..FaultyDisk::sound() };
            let disk = Arc::new(disk);
            // A fault may hit the opening itself, which changes nothing.
            let opened = open_log(disk.clone(), &directory);
            let mut log = opened.or_else(|_| open_log(disk, &directory)).unwrap();
            let mut acknowledged = Vec::new();
            let mut refused = 0;
            for n in 0..6 {
                let name = format!("batch-{n}");
                match append(&mut log, &name, 2) {
                    Ok(_) => acknowledged.push((name, 2)),
                    Err(AppendFault::NotDurable(_)) => refused += 1,
                    Err(other) => panic!("{kind:?} {fails}: {other}"),
                }
            }
            let names: Vec<(&str, usize)> =
                acknowledged.iter().map(|(name, events)| (name.as_str(), *events)).collect();
            assert_eq!(wires(&directory, log.head()), expected(&names), "{kind:?} {fails}");
            let head = log.head();
            drop(log);
            let (log, _) =
                open(&directory, &[head]).unwrap_or_else(|fault| panic!("{kind:?} {fails}: {fault}"));
            assert_eq!(log.head(), head, "{kind:?} {fails}");
            if calls.load(Ordering::Relaxed) <= fails {
                assert_eq!(refused, 0);
                break;
            }
            assert!(refused <= 1, "{kind:?} {fails}: one fault, at most one batch");
            faults += refused;
        }
    }
    faults
}

/// The repair itself fails, at each of its calls, before the disk works again.
#[test]
fn a_repair_that_fails_is_tried_again() {
    // Which call syncs the third batch, found by counting the calls of a run without faults.
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = tempfile::tempdir().unwrap();
    let disk = FaultyDisk { calls: calls.clone(), kind: Fault::NoSpace, ..FaultyDisk::sound() };
    let (mut log, _) = SegmentLog::open(Arc::new(disk), counted.path(), TOPIC, &[]).unwrap();
    for name in ["a", "b", "c"] {
        append(&mut log, name, 1).unwrap();
    }
    // Behind it only the time is asked for.
    let third_sync = calls.load(Ordering::Relaxed) - 2;
    for behind in 1..9 {
        let directory = tempfile::tempdir().unwrap();
        let fails = vec![third_sync, third_sync + behind];
        let disk = FaultyDisk { fails, kind: Fault::NoSpace, ..FaultyDisk::sound() };
        let (mut log, _) = SegmentLog::open(Arc::new(disk), directory.path(), TOPIC, &[]).unwrap();
        let mut kept = Vec::new();
        // The last one succeeds whatever happened: it cuts off what the faults left behind.
        for name in ["a", "b", "c", "d", "e", "f"] {
            if append(&mut log, name, 1).is_ok() {
                kept.push((name, 1));
            }
        }
        assert!((4..=5).contains(&kept.len()), "{behind}: two faults, one or two batches: {kept:?}");
        assert!(!kept.contains(&("c", 1)) && kept.contains(&("f", 1)), "{behind}: {kept:?}");
        assert_eq!(wires(directory.path(), log.head()), expected(&kept), "{behind}");
        let head = log.head();
        assert_eq!(open(directory.path(), &[head]).unwrap().0.head(), head);
    }
}

#[test]
fn a_checkpoint_speaks_only_for_the_key_that_signed_it() {
    let (seed, other) = (Seed::from_bytes(&[1; 32]), Seed::from_bytes(&[2; 32]));
    let head = Head { sequence: 7, ..Head::genesis(TOPIC) };
    let checkpoint = Checkpoint::sign(TOPIC, head, at(1), &seed);
    assert_eq!(checkpoint.verify(&seed.public_hex()), Some(head));
    assert_eq!(checkpoint.verify(&other.public_hex()), None);
    for change in 0..4 {
        let mut forged = checkpoint.clone();
        match change {
            0 => forged.sequence = 6,
            1 => forged.topic_id.push('x'),
            2 => forged.running_hash = Head::genesis("x").running_hash.to_string(),
            _ => forged.time = at(2).to_nanoseconds(),
        }
        assert_eq!(forged.verify(&seed.public_hex()), None, "{change}");
    }
}
