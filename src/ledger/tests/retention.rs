//! Bodies go by age; everything else stays, whoever is writing and whatever fails.

use super::*;

/// A sound event, so that the verifier can be asked too.
fn wire(sequence: u64) -> String {
    format!(
        "{{\"payload\":{{}},\"sender\":\"system\",\"stream\":{{\"context_id\":\"c\",\"correlation_id\":\"c\",\
         \"stream_id\":\"s\",\"stream_seq\":{sequence}}},\"ts\":\"2026-02-18T19:38:00Z\",\"type\":\"note\",\
         \"wire\":\"1.1\",\"wire_id\":\"wire_{sequence:08}\"}}"
    )
}

fn body(sequence: u64) -> String {
    format!("{{\"body of\": {sequence}}}\n")
}

/// A batch of two entries with a body each, at this second.
fn append_at(log: &mut SegmentLog, second: u32) -> Result<Head, AppendFault> {
    let mut builder = BatchBuilder::new(TOPIC, log.head(), log.last_timestamp());
    for n in 1..=2 {
        let sequence = log.head().sequence + n;
        let body = body(sequence);
        builder.body(Digest::of(body.as_bytes()), &body);
        builder.event(wire(sequence), at(second));
    }
    let batch = builder.seal().unwrap();
    log.append(log.head(), &batch).map(|()| log.head())
}

/// Six batches at the seconds 0 to 5, two a segment: three segments with entries 1, 5 and 9 first.
fn six_batches(directory: &Path) -> SegmentLog {
    let (log, _) = open(directory, &[]).unwrap();
    let mut log = log.with_segment_bytes_max(2_400);
    for second in 0..6 {
        append_at(&mut log, second).unwrap();
    }
    assert_eq!(segments(directory).len(), 3);
    log
}

fn purge(directory: &Path, second: u32, mode: PurgeMode) -> Purged {
    purge_bodies(&RealDisk, directory, at(second), mode).unwrap()
}

/// The entries whose bodies are there.
fn bodies(directory: &Path, through: u64) -> Vec<u64> {
    let kept = |sequence: &u64| {
        let body = body(*sequence);
        read_body(directory, *sequence, Digest::of(body.as_bytes())).unwrap() == Some(body)
    };
    (1..=through).filter(kept).collect()
}

/// Every line but the bodies.
fn chain_lines(directory: &Path) -> Vec<String> {
    let text: String = segments(directory).iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    text.lines().filter(|line| !line.starts_with("{\"digest\"")).map(str::to_owned).collect()
}

fn check(directory: &Path, before: u32, expected: Purged, left: &[u64]) {
    let chain = chain_lines(directory);
    let through = wires(directory, Head { sequence: u64::MAX, ..Head::genesis(TOPIC) }).len() as u64;
    let untouched = bodies(directory, through);
    assert_eq!(purge(directory, before, PurgeMode::Count), expected);
    assert_eq!(bodies(directory, through), untouched, "counting changes nothing");
    assert_eq!(purge(directory, before, PurgeMode::Drop), expected);
    assert_eq!(bodies(directory, through), left);
    assert_eq!(chain_lines(directory), chain, "the chain is the same, byte for byte");
    let report = verify::verify_segments(directory, &[], &mut |_| {}).unwrap();
    assert_eq!((report.entries, report.bodies), (through, left.len() as u64));
    assert_eq!(purge(directory, before, PurgeMode::Drop), Purged::default(), "there is nothing left to drop");
}

#[test]
fn bodies_that_are_old_enough_go_from_every_segment_but_the_last() {
    let directory = tempfile::tempdir().unwrap();
    let head = six_batches(directory.path()).head();
    let line = format!("{{\"digest\":\"{}\",\"body\":\"{{\\\"body of\\\": 1}}\\n\"}}\n", Digest::of(b""));
    let bytes = line.len() as u64;
    let dropped = |segments, bodies| Purged { segments, bodies, bytes: bodies * bytes };
    let all: Vec<u64> = (1..=12).collect();
    check(directory.path(), 0, dropped(0, 0), &all);
    // The batch at second 1 is not older than second 1.
    check(directory.path(), 1, dropped(1, 2), &all[2..]);
    check(directory.path(), 3, dropped(2, 4), &all[6..]);
    check(directory.path(), 59, dropped(1, 2), &all[8..]);
    assert_eq!(open(directory.path(), &[head]).unwrap().0.head(), head);
}

/// What somebody does to a segment, told how it was before the purge.
type Change<'c> = &'c dyn Fn(&Path, &str);

#[test]
fn a_writer_goes_on_beside_a_purge_and_still_notices_what_is_none() {
    let purged = |change: Change<'_>| {
        let directory = tempfile::tempdir().unwrap();
        let mut log = six_batches(directory.path());
        let path = segments(directory.path()).remove(0);
        let before = fs::read_to_string(&path).unwrap();
        assert_eq!(purge(directory.path(), 2, PurgeMode::Drop).bodies, 4);
        change(&path, &before);
        append_at(&mut log, 6).and_then(|_| append_at(&mut log, 7)).map(|head| {
            assert_eq!(open(directory.path(), &[head]).unwrap().0.head(), head);
            head.sequence
        })
    };
    assert_eq!(purged(&|_, _| {}).unwrap(), 16);
    let lines = |path: &Path| -> Vec<String> {
        fs::read_to_string(path).unwrap().split_inclusive('\n').map(str::to_owned).collect()
    };
    let changes: [(&str, Change<'_>); 4] = [
        ("an entry is missing", &|path, _| overwrite(path, lines(path)[1..].concat())),
        ("the last batch is missing", &|path, _| overwrite(path, lines(path)[..3].concat())),
        ("an entry is another one", &|path, _| {
            overwrite(path, fs::read_to_string(path).unwrap().replacen("note", "nota", 1));
        }),
        ("a body is another one", &|path, before| {
            let changed = before.replacen("body of\\\": 1", "body of\\\": 9", 1);
            overwrite(
                path,
                changed
                    .split_inclusive('\n')
                    .filter(|line| !line.contains("body of\\\": 2"))
                    .collect::<String>(),
            );
        }),
    ];
    for (what, change) in changes {
        let fault = purged(change);
        assert!(matches!(fault, Err(AppendFault::Tampered(_))), "{what}: {fault:?}");
    }
}

/// From each disk call on nothing works any more, as if the process had been killed there.
#[test]
fn a_purge_that_is_cut_short_leaves_the_old_segment_or_the_new_one() {
    let (mut old, mut new) = (0, 0);
    for kind in [Fault::InputOutput, Fault::ShortWrite] {
        for fails in 0.. {
            let directory = tempfile::tempdir().unwrap();
            let head = six_batches(directory.path()).head();
            let chain = chain_lines(directory.path());
            let calls = Arc::new(AtomicUsize::new(0));
            let disk = FaultyDisk {
                calls: calls.clone(),
                fails: (fails..fails + 100).collect(),
                kind,
                ..FaultyDisk::sound()
            };
            let result = purge_bodies(&disk, directory.path(), at(2), PurgeMode::Drop);
            assert_eq!(chain_lines(directory.path()), chain, "{kind:?} {fails}");
            let left = bodies(directory.path(), 12);
            match left.len() {
                12 => old += 1,
                8 => new += 1,
                other => panic!("{kind:?} {fails}: {other} bodies"),
            }
            // Readers and the verifier pass over what was left behind, and the next start removes it.
            verify::verify_segments(directory.path(), &[], &mut |_| {}).unwrap();
            let (mut log, torn) = open(directory.path(), &[head]).unwrap();
            assert_eq!((log.head(), torn), (head, None));
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "{kind:?} {fails}");
            append_at(&mut log, 6).unwrap();
            assert_eq!(purge(directory.path(), 2, PurgeMode::Drop).bodies + 8, left.len() as u64);
            append_at(&mut log, 7).unwrap();
            if calls.load(Ordering::Relaxed) <= fails {
                assert_eq!(result.unwrap().bodies, 4);
                break;
            }
            assert!(result.is_err(), "{kind:?} {fails}");
        }
    }
    assert!(old >= 10 && new >= 2, "{old} times the old one, {new} times the new one");
}

#[test]
fn a_segment_that_is_damaged_is_not_purged() {
    let directory = tempfile::tempdir().unwrap();
    six_batches(directory.path());
    let path = segments(directory.path()).remove(0);
    let text = fs::read_to_string(&path).unwrap();
    for (damaged, line) in [
        (text.replacen("{\"hcs\"", "{\"hcx\"", 1), 2),
        (text.replacen("{\"commit\"", "{\"comma\"", 1), 5),
        (text[..text.len() - 1].to_owned(), 10),
        (text.rsplit_once("{\"commit\"").unwrap().0.to_owned(), 9),
    ] {
        overwrite(&path, &damaged);
        match purge_bodies(&RealDisk, directory.path(), at(9), PurgeMode::Drop) {
            Err(PurgeFault::Ledger(EntriesFault::Damaged { line: found, .. })) => assert_eq!(found, line),
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    }
}
