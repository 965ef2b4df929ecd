//! Reading from the middle: what is found there is what a reader from the start comes upon.

use std::io::Cursor;

use proptest::prelude::*;

use super::super::search;
use super::*;

/// Batches of events with bodies of different sizes before some of them, as a segment's text.
fn text(batches: &[Vec<usize>]) -> String {
    let mut text = String::new();
    let (mut head, mut last) = (Head::genesis(TOPIC), None);
    for bodies in batches {
        let mut builder = BatchBuilder::new(TOPIC, head, last);
        for (n, bytes) in bodies.iter().enumerate() {
            // A body can hold what looks like a line of ours.
            let body = format!("\n{{\"hcs\":{{{}", "x".repeat(*bytes));
            if n % 3 != 2 {
                builder.body(Digest::of(body.as_bytes()), &body);
            }
            builder.event(format!("{{\"n\":{n},\"x\":\"{}\"}}", "y".repeat(bytes % 90)), at(7));
        }
        let batch = builder.seal().unwrap();
        (head, last) = (batch.head(), Some(batch.last_timestamp()));
        text.push_str(batch.text());
    }
    text
}

/// Where each event line begins.
fn places(text: &str) -> Vec<u64> {
    let mut at = 0;
    let mut places = Vec::new();
    for line in text.split_inclusive('\n') {
        if line.starts_with("{\"hcs\"") {
            places.push(at);
        }
        at += line.len() as u64;
    }
    places
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_entry_is_found_where_a_reader_from_the_start_meets_it(
        batches in prop::collection::vec(prop::collection::vec(0..900_usize, 1..6), 1..25),
        window in prop::sample::select(vec![0_u64, 1, 100, 5_000]),
        torn in 0..200_usize,
    ) {
        let mut text = text(&batches);
        let places = places(&text);
        // What a writer is in the middle of writing stands behind it.
        let tail = text.get(..torn.min(text.len())).unwrap_or_default().to_owned();
        text.push_str(tail.rsplit('\n').next().unwrap_or_default());
        for (n, place) in places.iter().enumerate() {
            let sequence = n as u64 + 1;
            let found = search::find(Cursor::new(text.as_bytes()), sequence, window).unwrap();
            prop_assert!(found == 0 || text.as_bytes()[found as usize - 1] == b'\n', "a line begins there");
            prop_assert!(found <= *place, "{sequence} is at {place}, not behind {found}");
            prop_assert!(place - found <= window.max(8 * 1024), "{sequence} is at {place}, far from {found}");
        }
    }
}

#[test]
fn entries_from_any_number_on_are_the_same_as_those_of_a_scan() {
    let directory = tempfile::tempdir().unwrap();
    let (log, _) = open(directory.path(), &[]).unwrap();
    let mut log = log.with_segment_bytes_max(120_000);
    for n in 0..80 {
        append(&mut log, &format!("{n}-{}", "z".repeat(n * 53 % 3_000)), 1 + n % 4).unwrap();
    }
    assert!(segments(directory.path()).len() >= 3, "several segments, each longer than a window");
    let read = |from, through| -> Vec<Entry> {
        Entries::read(directory.path(), from, through).unwrap().map(Result::unwrap).collect()
    };
    let last = log.head().sequence;
    let all = read(1, last);
    assert_eq!(all.len() as u64, last);
    for from in 1..=last {
        assert_eq!(read(from, from), all[from as usize - 1..from as usize], "{from}");
        assert_eq!(read(from, last), all[from as usize - 1..], "from {from}");
    }
    assert_eq!(read(last + 1, last), []);
}

/// Lines of all lengths, from the last to the first, whatever the windows cut through.
#[test]
fn lines_are_read_backwards_as_they_stand() {
    use std::ops::ControlFlow;
    for (count, long) in [(0, 0), (1, 0), (1, 40_000), (9, 20_000), (2_000, 31), (40, 3_000)] {
        let lines: Vec<String> =
            (0..count).map(|n| format!("{n}{}\n", "-".repeat(n * 7 % (long + 1)))).collect();
        let text = lines.concat();
        let mut found = Vec::new();
        let mut expected_at = text.len();
        let end = search::backwards(Cursor::new(&text), text.len() as u64, |at, line| {
            expected_at -= line.len();
            assert_eq!(at, expected_at as u64);
            found.push(String::from_utf8(line.to_vec()).unwrap());
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(end.unwrap(), None);
        found.reverse();
        assert_eq!(found, lines, "{count} lines of up to {long}");
    }
}

/// Several bodies a batch, some as long as a TaskSpec may be, at both ends of each segment.
#[test]
fn a_body_is_read_back_by_the_entry_that_refers_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let (log, _) = open(directory.path(), &[]).unwrap();
    let mut log = log.with_segment_bytes_max(300_000);
    let mut kept: Vec<(u64, String)> = Vec::new();
    for batch in 0..24_usize {
        let mut builder = BatchBuilder::new(TOPIC, log.head(), log.last_timestamp());
        for group in 0..1 + batch % 4 {
            let length = if group == 1 { 120_000 } else { batch * 211 % 4_000 };
            let body =
                format!("{{\"batch\": {batch},\n\"group\": {group}, \"é\": \"{}\"}}", "w".repeat(length));
            builder.body(Digest::of(body.as_bytes()), &body);
            // The second entry of a group refers to it, as a decision does; the first and the third may as well.
            for n in 0..3 {
                let meta = builder.event(format!("{{\"n\":{n}}}"), at(7));
                kept.push((meta.sequence, body.clone()));
            }
        }
        let batch = builder.seal().unwrap();
        log.append(log.head(), &batch).unwrap();
    }
    assert!(segments(directory.path()).len() >= 3);
    let read = |sequence, body: &str| read_body(directory.path(), sequence, Digest::of(body.as_bytes()));
    for (sequence, body) in &kept {
        assert_eq!(read(*sequence, body).unwrap().as_ref(), Some(body), "{sequence}");
    }
    // A body of another batch, and one that nobody has.
    assert_eq!(read(kept[20].0, &kept[0].1).unwrap(), None);
    assert_eq!(read(kept[20].0, "nobody's").unwrap(), None);
    // The body of an entry that is not there was not purged: the entry is missing.
    let after = log.head().sequence + 1;
    let missing = read(after, &kept[0].1).unwrap_err();
    assert!(matches!(missing, EntriesFault::Ended { before } if before == after), "{missing}");
    // One that was changed is not handed out.
    let path = segments(directory.path()).remove(0);
    let text = fs::read_to_string(&path).unwrap();
    overwrite(&path, text.replacen("batch\\\": 3", "batch\\\": 4", 1));
    let (sequence, body) = kept.iter().find(|(_, body)| body.contains("\"batch\": 3,")).unwrap();
    let line = text.lines().position(|line| line.contains("batch\\\": 3")).unwrap() as u64 + 1;
    match read(*sequence, body) {
        Err(EntriesFault::Damaged { line: found, .. }) => assert_eq!(found, line),
        other => panic!("{other:?}"),
    }
}

/// A reader from the middle names the line that a reader from the start would name, or does not come upon it.
#[test]
fn damage_is_named_by_its_line_wherever_reading_began() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), &[]).unwrap();
    for n in 0..60 {
        append(&mut log, &format!("{n}-{}", "z".repeat(900)), 2).unwrap();
    }
    let last = log.head().sequence;
    let path = segments(directory.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    for bad in [0, 7, 150, 151, lines.len() - 1] {
        let mut damaged = lines.concat();
        let at: usize = lines[..bad].iter().map(|line| line.len()).sum();
        damaged[at] = b'#';
        overwrite(&path, &damaged);
        let (mut met, mut passed) = (0, 0);
        for from in 1..=last {
            match Entries::read(directory.path(), from, last).unwrap().find_map(Result::err) {
                Some(EntriesFault::Damaged { line, .. }) => {
                    assert_eq!(line, bad as u64 + 1, "from {from}");
                    met += 1;
                }
                Some(other) => panic!("{other}"),
                None => passed += 1,
            }
        }
        // The last line is a commit: nobody who wants entries reads that far.
        assert_eq!(met > 0, bad != lines.len() - 1, "line {bad}: {met} met it, {passed} did not");
    }
}

/// A pipe would be waited for, and what a link leads to would be taken for another file with every append.
#[test]
fn what_is_no_file_of_its_own_is_no_segment() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), &[]).unwrap();
    let head = append(&mut log, "a", 1).unwrap();
    drop(log);
    let segment = segments(directory.path()).remove(0);
    let aside = tempfile::tempdir().unwrap();
    let elsewhere = aside.path().join("segment");
    RealDisk.rename(&segment, &elsewhere).unwrap();
    let pipe =
        |path: &Path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    let link = |path: &Path| std::os::unix::fs::symlink(&elsewhere, path).unwrap();
    let folder = |path: &Path| fs::create_dir(path).unwrap();
    for (n, make) in [&pipe as &dyn Fn(&Path), &link, &folder].into_iter().enumerate() {
        make(&segment);
        let fault = open(directory.path(), &[head]).unwrap_err().to_string();
        assert!(fault.contains("00000000000000000001.jsonl: is no file of its own"), "{n}: {fault}");
        assert!(inspect(directory.path()).is_err() && Entries::read(directory.path(), 1, 1).is_err(), "{n}");
        fs::remove_file(&segment).or_else(|_| fs::remove_dir(&segment)).unwrap();
    }
    RealDisk.rename(&elsewhere, &segment).unwrap();
    assert_eq!(open(directory.path(), &[head]).unwrap().0.head(), head);
}
