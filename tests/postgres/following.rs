//! Followers read everything in order, whatever they hear or miss.

use std::time::Duration;

use handoffd::ledger::postgres::{Database, PostgresFault, PostgresLog, PostgresTail};
use handoffd::ledger::{EntriesFault, Entry, Head, Log as _};

use crate::cluster::{Cluster, url};
use crate::proxy::Proxy;
use crate::{TOPIC, append, entries};

const LONG: Duration = Duration::from_secs(60);

/// Waits until so many entries came.
fn collect(tail: &mut PostgresTail, count: usize) -> Vec<Entry> {
    let mut all = Vec::new();
    while all.len() < count {
        let some = tail.wait(LONG).unwrap();
        assert!(!some.is_empty(), "nothing came");
        all.extend(some);
    }
    all
}

#[test]
fn a_tail_hands_out_every_entry_once_and_in_order_while_others_append() {
    let cluster = Cluster::shared();
    let database = Database::open(&cluster.url(&cluster.database()), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    let first = append(&mut log, "a", 3).unwrap();
    let mut tail = PostgresTail::new(&database, Head::genesis(TOPIC));
    let followed = std::thread::scope(|scope| {
        let following = scope.spawn(|| collect(&mut tail, 63));
        for _ in 0..20 {
            append(&mut log, "b", 3).unwrap();
        }
        following.join().unwrap()
    });
    assert_eq!(followed, entries(&database));
    assert_eq!(tail.head(), log.head());
    assert!(tail.wait(Duration::ZERO).unwrap().is_empty());
    // From the middle on.
    let mut later = PostgresTail::new(&database, first);
    assert_eq!(collect(&mut later, 60)[0].sequence, 4);
}

#[test]
fn a_tail_whose_line_is_cut_goes_on_where_it_was() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let proxy = Proxy::to(cluster.port);
    let direct = Database::open(&cluster.url(&name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&direct, &[]).unwrap();
    let far = Database::open(&url(proxy.port, &name), TOPIC).unwrap();
    let mut tail = PostgresTail::new(&far, Head::genesis(TOPIC));
    let mut followed = Vec::new();
    for round in 1..=5 {
        append(&mut log, "a", 2).unwrap();
        followed.extend(collect(&mut tail, 2));
        // What is appended while nobody listens is read when somebody does again.
        proxy.cut_all();
        append(&mut log, "b", 2).unwrap();
        followed.extend(collect(&mut tail, 2));
        assert_eq!(followed.len(), round * 4);
    }
    // In the middle of a wait, too.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| collect(&mut tail, 1));
        proxy.cut_all();
        append(&mut log, "c", 1).unwrap();
        followed.extend(waiting.join().unwrap());
    });
    assert_eq!(followed, entries(&direct));
}

#[test]
fn a_tail_that_cannot_ask_says_so_and_goes_on_later() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let proxy = Proxy::to(cluster.port);
    let direct = Database::open(&cluster.url(&name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&direct, &[]).unwrap();
    let far = Database::open(&url(proxy.port, &name), TOPIC).unwrap();
    let mut tail = PostgresTail::new(&far, Head::genesis(TOPIC));
    append(&mut log, "a", 1).unwrap();
    assert_eq!(collect(&mut tail, 1).len(), 1);
    proxy.refuse(true);
    proxy.cut_all();
    append(&mut log, "b", 1).unwrap();
    for _ in 0..2 {
        assert!(matches!(tail.wait(LONG), Err(PostgresFault::Unreachable(_))));
    }
    proxy.refuse(false);
    assert_eq!(collect(&mut tail, 1)[0].sequence, 2);
}

#[test]
fn an_entry_that_was_changed_in_its_table_is_not_handed_out() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let database = Database::open(&cluster.url(&name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "a", 5).unwrap();
    let check = |sql: &str, damaged: u64| {
        cluster.psql(&name, sql);
        let mut tail = PostgresTail::new(&database, Head::genesis(TOPIC));
        let fault = tail.wait(Duration::ZERO).unwrap_err();
        assert!(
            matches!(fault, PostgresFault::Damaged { sequence } if sequence == damaged),
            "{sql}: {fault}"
        );
        let faults: Vec<_> = database.entries(1, 5).filter_map(Result::err).collect();
        assert!(
            matches!(&faults[..], [EntriesFault::Database(PostgresFault::Damaged { sequence })] if *sequence == damaged),
            "{sql}: {faults:?}"
        );
    };
    check("update handoffd_entries set wire = replace(wire, 'denied', 'allowed') where sequence = 4", 4);
    check(
        "update handoffd_entries set consensus_timestamp = '2027-01-01T00:00:00.000000000Z' where sequence = 3",
        3,
    );
    check("delete from handoffd_entries where sequence = 2", 2);
}
