//! A full segment that somebody touched while nobody was looking is not put in force as it lies there.

use std::fs::FileTimes;
use std::time::{Duration, SystemTime};

use super::*;
const SEED: [u8; 32] = [7; 32];

/// A ledger with three full segments and one that is appended to, and the text of its seals.
struct Sealed {
    root: tempfile::TempDir,
    heads: Vec<Head>,
    text: String,
}

impl Sealed {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let seals = Seals::default();
        let (log, _) = open_sealed(root.path(), &seals).unwrap();
        let mut log = log.with_segment_bytes_max(900);
        let heads = ["a", "b", "c", "d"].map(|name| append(&mut log, name, 3).unwrap()).to_vec();
        drop(log);
        let sealed = Self { root, heads, text: seals.news(TOPIC, &seed()).unwrap() };
        assert_eq!(sealed.segments().len(), 4);
        assert_eq!(sealed.start().unwrap(), 0, "they look as they did");
        sealed
    }

    fn segments(&self) -> Vec<PathBuf> {
        segments(&self.root.path().join("ledger"))
    }

    /// How many full segments a start read through, with the seals as they were kept.
    fn start(&self) -> Result<usize, OpenFault> {
        self.start_with(&self.text)
    }

    fn start_with(&self, text: &str) -> Result<usize, OpenFault> {
        let seals = Seals::read(text, TOPIC, &seed().public_hex());
        let (log, _) = open_sealed(self.root.path(), &seals)?;
        assert_eq!(Some(&log.head()), self.heads.last());
        Ok(seals.read_through())
    }
}

fn seed() -> Seed {
    Seed::from_bytes(&SEED)
}

fn open_sealed(root: &Path, seals: &Seals) -> Result<(SegmentLog, Option<Torn>), OpenFault> {
    let (directory, journal) = (root.join("ledger"), root.join("journal"));
    SegmentLog::open_with_journal(
        Arc::new(RealDisk),
        &directory,
        &journal,
        TOPIC,
        &[],
        (seals.clone(), &mut |_, _| {}),
    )
}

/// Changes a file in place, and sets back the time that programs can set.
fn edit_unseen(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    edit(&mut bytes);
    overwrite(path, bytes);
    set_modified(path, modified);
}

fn set_modified(path: &Path, modified: SystemTime) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
}

#[test]
fn a_full_segment_that_was_edited_while_nobody_looked_is_not_put_in_force() {
    for at in 0..3 {
        let sealed = Sealed::new();
        edit_unseen(&sealed.segments()[at], |bytes| {
            let digit = bytes.windows(8).position(|some| some == br#"\"n\":0}"#).unwrap();
            bytes[digit + 6] = b'8';
        });
        let refused = sealed.start();
        let after = sealed.heads.get(at.wrapping_sub(1)).map_or(0, |head| head.sequence);
        assert!(
            matches!(refused, Err(OpenFault::Damaged { after: found, .. }) if found == after),
            "{at}: {refused:?}"
        );
    }
}

#[test]
fn a_full_segment_whose_end_is_another_chain_is_not_put_in_force() {
    let (sealed, other) = (Sealed::new(), tempfile::tempdir().unwrap());
    let (log, _) = open_sealed(other.path(), &Seals::default()).unwrap();
    let mut log = log.with_segment_bytes_max(900);
    for name in ["A", "B", "C", "D"] {
        append(&mut log, name, 3).unwrap();
    }
    drop(log);
    // All of it, so that the chain is whole from the first line to the last.
    for (path, put) in sealed.segments().iter().zip(segments(&other.path().join("ledger"))) {
        let text = fs::read(put).unwrap();
        edit_unseen(path, |bytes| *bytes = text);
    }
    let refused = sealed.start();
    assert!(matches!(refused, Err(OpenFault::Different { sequence: 3 })), "{refused:?}");
}

#[test]
fn a_full_segment_that_was_touched_and_is_whole_is_read_and_taken() {
    let sealed = Sealed::new();
    let paths = sealed.segments();
    edit_unseen(&paths[0], |_| ());
    assert_eq!(sealed.start().unwrap(), 1, "written over with what it was");
    set_modified(&paths[1], SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
    assert_eq!(sealed.start().unwrap(), 2, "another time");
    let aside = sealed.root.path().join("aside");
    fs::copy(&paths[2], &aside).unwrap();
    fs::remove_file(&paths[2]).unwrap();
    fs::copy(&aside, &paths[2]).unwrap();
    assert_eq!(sealed.start().unwrap(), 3, "another file");
}

#[test]
fn seals_that_this_gateway_did_not_sign_for_this_ledger_are_not_used() {
    let sealed = Sealed::new();
    let (statement, list) = sealed.text.split_once('\n').unwrap();
    let foreign = Seed::from_bytes(&[8; 32]);
    let none = Seals::read(&sealed.text, "gw_other", &seed().public_hex());
    let (log, _) = open_sealed(sealed.root.path(), &none).unwrap();
    drop(log);
    let by_another = none.news(TOPIC, &foreign).unwrap();
    let for_another = Seals::read(&sealed.text, TOPIC, &seed().public_hex());
    drop(open_sealed(sealed.root.path(), &for_another).unwrap());
    for (why, text) in [
        ("none", String::new()),
        ("of another gateway", by_another),
        ("edited", format!("{statement}\n{}", list.replacen("\"bytes\":", "\"bytes\":1", 1))),
        ("cut", sealed.text[..sealed.text.len() - 1].to_owned()),
        ("junk", "{}\n[]\n".to_owned()),
    ] {
        assert_eq!(sealed.start_with(&text).unwrap(), 3, "{why}");
    }
    let elsewhere = Seals::read(&sealed.text, "gw_other", &seed().public_hex());
    drop(open_sealed(sealed.root.path(), &elsewhere).unwrap());
    assert_eq!(elsewhere.read_through(), 3, "of another ledger");
}

/// After a `chown -R`, a restore or an upgrade all of them have to be read.
#[test]
fn a_start_that_is_killed_goes_on_with_the_segments_that_it_has_not_read() {
    let sealed = Sealed::new();
    let (mut told, mut kept) = (Vec::new(), Vec::new());
    let none = Seals::default();
    let (directory, journal) = (sealed.root.path().join("ledger"), sealed.root.path().join("journal"));
    let mut tell = |seen: u64, all: u64| {
        told.push((seen, all));
        kept.push(none.news(TOPIC, &seed()).unwrap());
    };
    let reading = (none.clone(), &mut tell as &mut dyn FnMut(u64, u64));
    drop(
        SegmentLog::open_with_journal(Arc::new(RealDisk), &directory, &journal, TOPIC, &[], reading).unwrap(),
    );
    assert_eq!(told, [(1, 3), (2, 3), (3, 3)]);
    let left: Vec<usize> = kept.iter().map(|text| sealed.start_with(text).unwrap()).collect();
    assert_eq!(left, [2, 1, 0]);
    // One that was touched takes nothing from what is known of the others.
    edit_unseen(&sealed.segments()[1], |_| ());
    let known = Seals::read(&sealed.text, TOPIC, &seed().public_hex());
    let mut kept = Vec::new();
    let mut tell = |seen: u64, _: u64| kept.push((seen, known.news(TOPIC, &seed()).unwrap()));
    let reading = (known.clone(), &mut tell as &mut dyn FnMut(u64, u64));
    drop(
        SegmentLog::open_with_journal(Arc::new(RealDisk), &directory, &journal, TOPIC, &[], reading).unwrap(),
    );
    let [(2, text)] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!(sealed.start_with(text).unwrap(), 0);
}

#[test]
fn there_is_news_when_a_segment_is_full_and_when_one_was_touched() {
    let root = tempfile::tempdir().unwrap();
    let seals = Seals::default();
    let (log, _) = open_sealed(root.path(), &seals).unwrap();
    let mut log = log.with_segment_bytes_max(900);
    append(&mut log, "a", 3).unwrap();
    assert!(seals.news(TOPIC, &seed()).is_none(), "nothing is full");
    append(&mut log, "b", 3).unwrap();
    let text = seals.news(TOPIC, &seed()).unwrap();
    assert!(seals.news(TOPIC, &seed()).is_none(), "it was told");
    // The daemon that runs reads it through, and takes it as it is now.
    let path = segments(&root.path().join("ledger")).remove(0);
    edit_unseen(&path, |_| ());
    append(&mut log, "c", 1).unwrap();
    let touched = seals.news(TOPIC, &seed()).unwrap();
    assert_ne!(touched, text);
    drop(log);
    let kept = Seals::read(&touched, TOPIC, &seed().public_hex());
    drop(open_sealed(root.path(), &kept).unwrap());
    assert_eq!(kept.read_through(), 0);
}

/// A failed batch seals a segment early; a start that finds nothing behind it goes on in it, and may be unable to write that
/// down.
#[test]
fn a_segment_that_was_taken_up_again_after_it_was_sealed_is_read_and_taken() {
    let root = tempfile::tempdir().unwrap();
    let seals = Seals::default();
    let (log, _) = open_sealed(root.path(), &seals).unwrap();
    let mut log = log.with_segment_bytes_max(900);
    append(&mut log, "a", 3).unwrap();
    append(&mut log, "b", 3).unwrap();
    let old = seals.news(TOPIC, &seed()).unwrap();
    drop(log);
    fs::remove_file(segments(&root.path().join("ledger")).remove(1)).unwrap();
    let (mut log, _) = open_sealed(root.path(), &Seals::default()).unwrap();
    append(&mut log, "c", 3).unwrap();
    let mut log = log.with_segment_bytes_max(900);
    let last = append(&mut log, "d", 3).unwrap();
    drop(log);
    assert_eq!(segments(&root.path().join("ledger")).len(), 2);
    let kept = Seals::read(&old, TOPIC, &seed().public_hex());
    let (log, _) = open_sealed(root.path(), &kept).unwrap();
    assert_eq!((log.head(), kept.read_through()), (last, 1));
}
