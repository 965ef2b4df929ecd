//! Full segments are not asked before every append, and still nobody changes one unnoticed.

use super::*;

/// A log with so many full segments and one that has room, which has settled: nothing stirs any more.
fn settled(disk: Arc<dyn Disk>, directory: &Path, full: usize) -> SegmentLog {
    let (log, _) = SegmentLog::open(disk, directory, TOPIC, &[]).unwrap();
    let mut log = log.with_segment_bytes_max(1);
    for n in 0..full {
        append(&mut log, &format!("full {n}"), 1).unwrap();
    }
    append(&mut log, "last", 1).unwrap();
    let mut log = log.with_segment_bytes_max(u64::MAX);
    for _ in 0..3 {
        append(&mut log, "settles", 1).unwrap();
    }
    assert_eq!(segments(directory).len(), full + 1);
    log
}

fn rename(from: &Path, to: &Path) {
    RealDisk.rename(from, to).unwrap();
}

/// What somebody may do to a file, by its name.
type Change = (&'static str, fn(&Path));

#[test]
fn a_full_segment_that_somebody_touched_is_noticed_by_the_next_append() {
    let changes: [Change; 7] = [
        ("deleted", |path| fs::remove_file(path).unwrap()),
        ("moved away", |path| rename(path, &path.with_extension("moved.torn"))),
        ("cut", |path| fs::File::options().write(true).open(path).unwrap().set_len(9).unwrap()),
        ("emptied", |path| overwrite(path, b"")),
        ("written over", |path| overwrite(path, fs::read(path).unwrap().to_ascii_uppercase())),
        ("written over, and its time set back", |path| {
            let modified = fs::metadata(path).unwrap().modified().unwrap();
            overwrite(path, fs::read(path).unwrap().to_ascii_uppercase());
            let file = fs::File::options().append(true).open(path).unwrap();
            file.set_times(fs::FileTimes::new().set_modified(modified)).unwrap();
        }),
        ("replaced", |path| {
            let copy = path.with_extension("copy.torn");
            fs::copy(path, &copy).unwrap();
            rename(&copy, path);
        }),
    ];
    for (name, change) in changes {
        for which in 0..3 {
            let directory = tempfile::tempdir().unwrap();
            let mut log = settled(Arc::new(RealDisk), directory.path(), 3);
            change(&segments(directory.path())[which]);
            let fault = append(&mut log, "next", 1);
            assert!(matches!(fault, Err(AppendFault::Tampered(_))), "{name} {which}: {fault:?}");
            // Nor is it forgotten.
            let again = append(&mut log, "again", 1);
            assert!(matches!(again, Err(AppendFault::Tampered(_))), "{name} {which}: {again:?}");
        }
    }
}

#[test]
fn what_is_put_back_as_it_was_is_taken_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = settled(Arc::new(RealDisk), directory.path(), 2);
    let path = segments(directory.path()).remove(0);
    let aside = path.with_extension("away.torn");
    rename(&path, &aside);
    assert!(matches!(append(&mut log, "gone", 1), Err(AppendFault::Tampered(_))));
    rename(&aside, &path);
    append(&mut log, "back", 1).unwrap();
}

#[test]
fn a_full_segment_whose_mode_or_name_changed_is_read_and_taken() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let mut log = settled(Arc::new(RealDisk), directory.path(), 2);
    for path in segments(directory.path()) {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        append(&mut log, "mode", 1).unwrap();
        fs::hard_link(&path, path.with_extension("link.torn")).unwrap();
        append(&mut log, "name", 1).unwrap();
    }
}

#[test]
fn an_append_asks_no_more_of_the_disk_however_many_segments_are_full() {
    let asks = |full: usize| {
        let directory = tempfile::tempdir().unwrap();
        let disk = FaultyDisk::sound();
        let calls = disk.calls.clone();
        let mut log = settled(Arc::new(disk), directory.path(), full);
        // All are looked at every so often, so the least of many appends is what one asks by itself.
        let of_one = |_| {
            let before = calls.load(Ordering::Relaxed);
            append(&mut log, "counted", 1).unwrap();
            calls.load(Ordering::Relaxed) - before
        };
        (0..50).map(of_one).min().unwrap()
    };
    assert_eq!(asks(40), asks(0));
}

/// The length says nothing, and nor does the file: what is in it does.
#[test]
fn what_somebody_wrote_over_in_the_segment_that_grows_is_noticed_until_it_is_put_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = settled(Arc::new(RealDisk), directory.path(), 1);
    let path = segments(directory.path()).pop().unwrap();
    let text = fs::read(&path).unwrap();
    // Within one step of the file system's clock or not: it is heard.
    let write_over = |bytes: &[u8]| {
        use std::io::Write as _;
        fs::File::options().write(true).open(&path).unwrap().write_all(bytes).unwrap();
    };
    write_over(&text.to_ascii_uppercase());
    for _ in 0..2 {
        assert!(matches!(append(&mut log, "next", 1), Err(AppendFault::Tampered(_))));
    }
    write_over(&text);
    append(&mut log, "next", 1).unwrap();
}

/// A change through another name of the file is not heard, but it has a time.
#[test]
fn what_nobody_hears_is_found_by_its_time_where_nothing_was_appended_since() {
    let directory = tempfile::tempdir().unwrap();
    drop(settled(Arc::new(RealDisk), directory.path(), 1));
    let path = segments(directory.path()).pop().unwrap();
    let elsewhere = tempfile::tempdir_in(directory.path().parent().unwrap()).unwrap();
    let other_name = elsewhere.path().join("other");
    fs::hard_link(&path, &other_name).unwrap();
    let (mut log, _) = SegmentLog::open(Arc::new(RealDisk), directory.path(), TOPIC, &[]).unwrap();
    let left = RealDisk.identity(&path).unwrap().modified;
    while RealDisk.identity(&path).unwrap().modified == left {
        use std::io::Write as _;
        let text = fs::read(&path).unwrap().to_ascii_uppercase();
        fs::File::options().write(true).open(&other_name).unwrap().write_all(&text).unwrap();
    }
    assert!(matches!(append(&mut log, "next", 1), Err(AppendFault::Tampered(_))));
}

/// Whoever asks a file for its times has the next write to it timed to the nanosecond, and the one to the journal with it:
/// there are file systems where the sync of the journal then writes those times out as well.
#[test]
fn an_append_does_not_ask_for_the_times_of_the_segment_that_grows() {
    let directory = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::sound();
    let times = disk.times.clone();
    let mut log = settled(Arc::new(disk), directory.path(), 1);
    let of_one = |_| {
        let before = times.load(Ordering::Relaxed);
        append(&mut log, "counted", 1).unwrap();
        times.load(Ordering::Relaxed) - before
    };
    // Every so often it does, so the least of many appends is what one asks by itself.
    assert_eq!((0..50).map(of_one).min().unwrap(), 0);
    // Whatever else is asked, one that is not where it was is noticed by the next append.
    let path = segments(directory.path()).pop().unwrap();
    rename(directory.path(), &directory.path().with_extension("away"));
    let gone = append(&mut log, "next", 1);
    rename(&directory.path().with_extension("away"), directory.path());
    assert!(matches!(&gone, Err(AppendFault::Tampered(why)) if why.ends_with("is gone")), "{gone:?}");
    assert!(path.exists());
    append(&mut log, "back", 1).unwrap();
}

/// Cut off where a full one ends, written over where one grows: both have to be read to be judged.
#[test]
fn a_segment_that_stays_bad_is_not_read_for_every_append() {
    let cut = |path: &Path, text: &[u8]| {
        fs::File::options().write(true).open(path).unwrap().set_len(text.len() as u64 - 1).unwrap();
    };
    let write_over = |path: &Path, text: &[u8]| {
        let before = RealDisk.identity(path).unwrap().modified;
        while RealDisk.identity(path).unwrap().modified == before {
            overwrite(path, text.to_ascii_uppercase());
        }
    };
    for (which, change) in [&cut as &dyn Fn(&Path, &[u8]), &write_over].into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let disk = FaultyDisk::sound();
        let reads = disk.reads.clone();
        let mut log = settled(Arc::new(disk), directory.path(), 1);
        let path = segments(directory.path()).remove(which);
        let text = fs::read(&path).unwrap();
        let left = fs::metadata(&path).unwrap().modified().unwrap();
        change(&path, &text);
        let mut refused = || {
            assert!(matches!(append(&mut log, "next", 1), Err(AppendFault::Tampered(_))));
            reads.load(Ordering::Relaxed)
        };
        // At once, and a second time when the clock of the files has gone on.
        assert_eq!([refused(), refused()], [1, 1]);
        let tries = (0..5_000_000).position(|_| refused() == 2);
        assert!(tries.is_some_and(|tries| tries > 0), "{tries:?}");
        assert!((0..100).all(|_| refused() == 2));
        // A full one must be as it was left. One that grows looks as if nothing had been done to it since it was
        // judged, but for the time that nobody can set.
        let judged = fs::metadata(&path).unwrap().modified().unwrap();
        overwrite(&path, &text);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(if which == 0 { left } else { judged }).unwrap();
        append(&mut log, "put right", 1).unwrap();
    }
}
