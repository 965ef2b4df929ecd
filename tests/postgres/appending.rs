//! One conditional append is the whole protocol.

use std::sync::Barrier;

use handoffd::ledger::postgres::{Database, PostgresFault, PostgresLog, PostgresTail};
use handoffd::ledger::{AppendFault, Closing, Head, Log as _, OpenFault, PurgeMode};
use handoffd::proof::Digest;
use handoffd::timestamp::Timestamp;

use crate::cluster::Cluster;
use crate::{TOPIC, append, at, batch, batch_on, body, entries, head_of, wire};

#[test]
fn what_was_appended_is_read_back_by_whoever_opens_it_next() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let database = Database::open(&cluster.url(&name), TOPIC).unwrap();
    assert_eq!((database.topic_id(), database.head().unwrap()), (TOPIC, (Head::genesis(TOPIC), None)));
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    let heads: Vec<Head> =
        [("a", 1), ("b", 3), ("c", 2)].map(|(name, events)| append(&mut log, name, events).unwrap()).into();
    log.check().unwrap();

    let again = Database::open(&cluster.url(&name), "another_topic").unwrap();
    assert_eq!(again.topic_id(), TOPIC, "a ledger keeps its name");
    let log = PostgresLog::open(&again, &heads).unwrap();
    assert_eq!((log.head(), log.last_timestamp().unwrap() > at(7)), (heads[2], true));
    let expected = [("a", 1), ("b", 2), ("b", 3), ("b", 4), ("c", 5), ("c", 6)];
    let wires: Vec<String> = entries(&again).into_iter().map(|entry| entry.wire).collect();
    assert_eq!(wires, expected.map(|(name, n)| wire(name, n)));
    for from in 1..=7 {
        let some: Vec<u64> = again.entries(from, 5).map(|entry| entry.unwrap().sequence).collect();
        assert_eq!(some, (from..=5).collect::<Vec<_>>());
    }

    // What somebody remembers has to be there.
    let beyond = Head { sequence: 7, ..heads[2] };
    let other = Head { sequence: 4, ..heads[2] };
    assert!(matches!(
        PostgresLog::open(&again, &[heads[0], beyond]),
        Err(PostgresFault::Open(OpenFault::Truncated { sequence: 6, expected: 7 }))
    ));
    assert!(matches!(
        PostgresLog::open(&again, &[other]),
        Err(PostgresFault::Open(OpenFault::Different { sequence: 4 }))
    ));
}

#[test]
fn bodies_are_found_by_their_entry_and_go_by_age_without_the_chain() {
    let cluster = Cluster::shared();
    let database = Database::open(&cluster.url(&cluster.database()), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    for (name, second) in [("a", 10), ("b", 20), ("c", 30)] {
        let mut builder = handoffd::ledger::BatchBuilder::new(TOPIC, log.head(), log.last_timestamp());
        for n in 1..=2 {
            let text = body(name, n);
            builder.body(Digest::of(text.as_bytes()), &text);
        }
        let sequence = log.head().sequence + 1;
        builder.event(wire(name, sequence), at(second));
        builder.event(wire(name, sequence + 1), at(second));
        let batch = builder.seal().unwrap();
        log.append(log.head(), &batch).unwrap();
    }
    let read =
        |sequence, name, n| database.read_body(sequence, Digest::of(body(name, n).as_bytes())).unwrap();
    // Like in files: from the batch that the entry is in, and no other.
    for (sequence, name, found) in
        [(3, "b", true), (4, "b", true), (2, "b", false), (5, "b", false), (1, "a", true)]
    {
        assert_eq!(read(sequence, name, 2), found.then(|| body(name, 2)), "{sequence} {name}");
    }
    let before = entries(&database);
    let purge = |time: Timestamp, mode| {
        let purged = database.purge_bodies(time, mode).unwrap();
        (purged.bodies, purged.bytes > 0)
    };
    assert_eq!(purge(at(10), PurgeMode::Drop), (0, false));
    // The second entry of a batch is a nanosecond later: the batch is not older as a whole.
    assert_eq!(purge(at(10).plus_nanosecond(), PurgeMode::Drop), (0, false));
    assert_eq!(purge(at(21), PurgeMode::Count), (4, true));
    assert_eq!(purge(at(21), PurgeMode::Drop), (4, true));
    assert_eq!((read(1, "a", 1), read(4, "b", 1)), (None, None));
    assert_eq!(read(5, "c", 1), Some(body("c", 1)));
    assert_eq!(entries(&database), before);
    append(&mut log, "d", 1).unwrap();
}

#[test]
fn of_two_writers_on_one_head_one_wins_and_the_other_is_told_the_real_head() {
    const ROUNDS: usize = 60;
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let start = Barrier::new(2);
    let race = |name: &'static str| {
        let database = Database::open(&url, TOPIC).unwrap();
        let mut log = PostgresLog::open(&database, &[]).unwrap();
        let (mut head, mut last) = (log.head(), None);
        let mut outcomes = Vec::new();
        for _ in 0..ROUNDS {
            let batch = batch_on(TOPIC, head, last, name, 2);
            start.wait();
            outcomes.push(match log.append(head, &batch) {
                Ok(()) => {
                    head = batch.head();
                    None
                }
                Err(AppendFault::Conflict { head: real }) => {
                    head = real;
                    Some(real)
                }
                Err(fault) => panic!("{fault}"),
            });
            last = database.head().unwrap().1;
        }
        outcomes
    };
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| race("b"));
        (race("a"), other.join().unwrap())
    });
    let entries = entries(&Database::open(&url, TOPIC).unwrap());
    assert_eq!(entries.len(), 2 * ROUNDS);
    for round in 0..ROUNDS {
        let (winner, loser) = match (one[round], other[round]) {
            (None, Some(real)) => ("a", real),
            (Some(real), None) => ("b", real),
            both => panic!("round {round}: {both:?}"),
        };
        let last = &entries[2 * round + 1];
        assert_eq!((head_of(last), &last.wire), (loser, &wire(winner, last.sequence)), "{round}");
    }
}

#[test]
fn a_ledger_that_lost_its_end_is_noticed_by_everybody_who_remembers_it_and_never_forked() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let database = Database::open(&cluster.url(&name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    let mut idle = PostgresLog::open(&database, &[]).unwrap();
    let first = append(&mut log, "a", 1).unwrap();
    let remembered = append(&mut log, "b", 2).unwrap();
    assert!(matches!(append(&mut idle, "x", 1), Err(AppendFault::Conflict { head }) if head == remembered));
    let mut tail = PostgresTail::new(&database, remembered);

    // As after a restore from a backup that was made before.
    cluster.psql(
        &name,
        "delete from handoffd_entries where sequence > 1; delete from handoffd_bodies where sequence > 1",
    );
    let rows = || {
        cluster.psql(&name, "select string_agg(sequence::text, ' ' order by sequence) from handoffd_entries")
    };
    for _ in 0..2 {
        let fault = append(&mut log, "c", 1).unwrap_err();
        assert!(
            matches!(fault, AppendFault::HeadGone { after, found } if (after, found) == (remembered, first))
        );
        assert!(
            fault.to_string().starts_with("the database ends at entry 1, and entry 3 was there: "),
            "{fault}"
        );
        assert!(matches!(log.check(), Err(AppendFault::HeadGone { .. })));
        assert!(matches!(
            tail.wait(std::time::Duration::ZERO),
            Err(PostgresFault::Gone { remembered: 3, found: 1 })
        ));
    }
    assert_eq!(rows(), "1");

    // Somebody who knows nothing goes on from the backup: those who remember do not follow, even when the numbers fit
    // again.
    assert!(matches!(idle.check(), Err(AppendFault::HeadGone { .. })), "it was told of entry 3");
    let mut ignorant = PostgresLog::open(&database, &[]).unwrap();
    append(&mut ignorant, "d", 3).unwrap();
    assert!(matches!(append(&mut log, "c", 1), Err(AppendFault::HeadGone { .. })));
    let mut tail = PostgresTail::new(&database, remembered);
    let fault = tail.wait(std::time::Duration::ZERO).unwrap_err();
    assert!(matches!(fault, PostgresFault::Gone { remembered: 3, found: 4 }));
    assert!(fault.to_string().starts_with("entry 3 in the database is another one"), "{fault}");
    let built_on_the_lost = batch_on(TOPIC, remembered, Some(at(9)), "e", 1);
    let mut fresh = PostgresLog::open(&database, &[]).unwrap();
    assert!(matches!(
        fresh.append(remembered, &built_on_the_lost),
        Err(AppendFault::HeadGone { after, .. }) if after == remembered
    ));
    assert_eq!(rows(), "1 2 3 4");
}

#[test]
fn nothing_is_appended_to_a_ledger_once_it_is_closed() {
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let database = Database::open(&url, TOPIC).unwrap();
    let begun = Barrier::new(2);
    let closing = Closing::Copied { to: "elsewhere".to_owned() };
    let (appended, seen) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let database = Database::open(&url, TOPIC).unwrap();
            let mut log = PostgresLog::open(&database, &[]).unwrap();
            append(&mut log, "a", 1).unwrap();
            begun.wait();
            for _ in 0..10_000 {
                match append(&mut log, "a", 1) {
                    Ok(_) => {}
                    Err(AppendFault::Closed(why)) => return (log.head(), why),
                    Err(fault) => panic!("{fault}"),
                }
            }
            panic!("it was never closed")
        });
        begun.wait();
        database.set_closed(Some(&closing)).unwrap();
        let seen = database.head().unwrap().0;
        (writer.join().unwrap(), seen)
    });
    assert_eq!(appended.0, seen, "what was there when it was closed is all there is");
    assert_eq!(appended.1, "it was copied to `elsewhere`, which takes its place");
    assert_eq!(database.closed().unwrap(), Some(closing));
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    assert!(matches!(log.check(), Err(AppendFault::Closed(_))));
    database.set_closed(None).unwrap();
    log.check().unwrap();
    append(&mut log, "b", 1).unwrap();
}

#[test]
fn a_batch_that_was_built_on_another_head_than_it_is_appended_to_is_refused() {
    let cluster = Cluster::shared();
    let database = Database::open(&cluster.url(&cluster.database()), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    let first = batch(&log, "a", 1);
    let head = append(&mut log, "b", 1).unwrap();
    assert!(matches!(log.append(head, &first), Err(AppendFault::Conflict { head: real }) if real == head));
    let other_topic = batch_on("gw_other", Head::genesis("gw_other"), None, "c", 1);
    assert!(matches!(log.append(Head::genesis("gw_other"), &other_topic), Err(AppendFault::HeadGone { .. })));
}
