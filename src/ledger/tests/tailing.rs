//! Following a log through its files: what was committed, once, in order.

use super::*;

fn sequences(tail: &mut Tail) -> Vec<u64> {
    tail.look().unwrap().into_iter().map(|entry| entry.sequence).collect()
}

#[test]
fn a_tail_hands_out_each_entry_once_across_segments() {
    let directory = tempfile::tempdir().unwrap();
    let (log, _) = open(directory.path(), &[]).unwrap();
    let mut log = log.with_segment_bytes_max(900);
    let mut from_start = Tail::new(directory.path(), 0);
    let mut later = Tail::new(directory.path(), 9);
    assert_eq!(sequences(&mut from_start), [0_u64; 0]);
    let (mut seen, mut seen_later) = (Vec::new(), Vec::new());
    for n in 0..20 {
        append(&mut log, "a", 1 + n % 3).unwrap();
        if n % 4 != 1 {
            seen.extend(sequences(&mut from_start));
            assert_eq!(seen.last(), Some(&log.head().sequence), "{n}");
        }
        seen_later.extend(sequences(&mut later));
        assert_eq!(sequences(&mut later), [0_u64; 0]);
    }
    let last = log.head().sequence;
    assert_eq!(seen, (1..=last).collect::<Vec<_>>());
    assert_eq!(seen_later, (9..=last).collect::<Vec<_>>());
    for from in 1..=last + 1 {
        assert_eq!(sequences(&mut Tail::new(directory.path(), from)), (from..=last).collect::<Vec<_>>());
    }
}

/// The file grows byte by byte, as a reader may come upon it.
#[test]
fn a_tail_hands_out_nothing_before_its_commit_line() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), &[]).unwrap();
    let heads = [2, 1, 3].map(|events| append(&mut log, "a", events).unwrap().sequence);
    let path = segments(directory.path()).remove(0);
    let whole = fs::read_to_string(&path).unwrap();
    let mut tail = Tail::new(directory.path(), 1);
    let mut seen = Vec::new();
    for end in 0..=whole.len() {
        // Written in place: it stays the same file.
        overwrite(&path, &whole.as_bytes()[..end]);
        seen.extend(sequences(&mut tail));
        let committed = whole.as_bytes()[..end].split_inclusive(|byte| *byte == b'\n');
        let committed =
            committed.filter(|line| line.starts_with(b"{\"commit\"") && line.ends_with(b"\n")).count();
        let last = committed.checked_sub(1).map_or(0, |n| heads[n]);
        assert_eq!(seen, (1..=last).collect::<Vec<_>>(), "at byte {end}");
    }
    // The writer takes back what it could not make durable.
    overwrite(&path, &whole.as_bytes()[..whole.len() - 1]);
    assert!(matches!(tail.look(), Err(EntriesFault::CutBack { through: 6 })));
}

#[test]
fn a_tail_goes_on_after_a_first_batch_that_was_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), &[]).unwrap();
    append(&mut log, "a", 2).unwrap();
    let path = segments(directory.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let mut tail = Tail::new(directory.path(), 1);
    overwrite(&path, &whole[..whole.len() / 2]);
    assert_eq!(sequences(&mut tail), [0_u64; 0]);
    fs::remove_file(&path).unwrap();
    assert_eq!(sequences(&mut tail), [0_u64; 0]);
    overwrite(&path, &whole);
    assert_eq!(sequences(&mut tail), [1, 2]);
}

#[test]
fn a_tail_stops_at_damage_and_waits_at_a_torn_end() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), &[]).unwrap();
    append(&mut log, "a", 1).unwrap();
    append(&mut log, "b", 1).unwrap();
    let path = segments(directory.path()).remove(0);
    let whole = fs::read_to_string(&path).unwrap();
    let check = |text: String| {
        overwrite(&path, text);
        Tail::new(directory.path(), 1).look().map(|entries| entries.len())
    };
    assert_eq!(check(format!("{whole}\0\0\0\n")).unwrap(), 2, "nothing was committed behind it");
    assert!(matches!(
        check(whole.replacen("{\"hcs\"", "{\"hcx\"", 1)),
        Err(EntriesFault::Damaged { line: 2, .. })
    ));
    let second = whole.rfind("{\"hcs\"").unwrap();
    let missing = format!("{}{}", &whole[..second], whole[second..].split_once('\n').unwrap().1);
    assert!(
        matches!(check(missing), Err(EntriesFault::Damaged { line: 5, .. })),
        "a commit line without entries"
    );
    let other = whole.replacen("\"commit\":{\"sequence\":2", "\"commit\":{\"sequence\":3", 1);
    assert!(
        matches!(check(other), Err(EntriesFault::Damaged { line: 6, .. })),
        "a commit line for another entry"
    );
}
