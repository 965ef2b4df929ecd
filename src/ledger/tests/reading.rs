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
