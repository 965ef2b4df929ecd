//! Whatever becomes of a connection: what was acknowledged is there, and nothing is there twice.

use handoffd::ledger::postgres::{Database, PostgresLog};
use handoffd::ledger::{AppendFault, Head, Log as _};

use crate::cluster::{Cluster, until, url};
use crate::proxy::{Cut, Proxy};
use crate::{TOPIC, append, batch, batch_on, entries, head_of, wire};

#[test]
fn a_commit_whose_answer_was_lost_is_found_to_have_landed() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let proxy = Proxy::to(cluster.port);
    let database = Database::open(&url(proxy.port, &name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "a", 1).unwrap();
    proxy.cut_next(Cut::CommitAnswer);
    let head = append(&mut log, "b", 2).unwrap();
    assert!(proxy.has_cut());
    assert_eq!(append(&mut log, "c", 1).unwrap().sequence, head.sequence + 1);
    let wires: Vec<String> = entries(&database).into_iter().map(|entry| entry.wire).collect();
    assert_eq!(wires, [wire("a", 1), wire("b", 2), wire("b", 3), wire("c", 4)]);
}

#[test]
fn a_commit_that_never_reached_the_server_is_not_acknowledged() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let proxy = Proxy::to(cluster.port);
    let database = Database::open(&url(proxy.port, &name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    let before = append(&mut log, "a", 1).unwrap();
    proxy.cut_next(Cut::Commit);
    assert!(matches!(append(&mut log, "b", 1), Err(AppendFault::NotDurable(_))));
    assert!(proxy.has_cut());
    assert_eq!((log.head(), database.head().unwrap().0), (before, before));
    append(&mut log, "c", 1).unwrap();
    assert_eq!(cluster.psql(&name, "select count(*) from handoffd_entries"), "2");
}

#[test]
fn what_cannot_be_found_out_is_reported_so_and_found_out_later() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let proxy = Proxy::to(cluster.port);
    let database = Database::open(&url(proxy.port, &name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap().with_settle_ms(300);
    let before = append(&mut log, "a", 1).unwrap();
    let lost = batch(&log, "b", 1);
    proxy.cut_next(Cut::CommitAnswer);
    proxy.refuse(true);
    assert!(matches!(log.append(before, &lost), Err(AppendFault::Unsettled(_))));
    assert!(matches!(log.check(), Err(AppendFault::Unsettled(_))));
    assert!(
        matches!(log.append(before, &lost), Err(AppendFault::Unsettled(_))),
        "and nothing goes in before"
    );
    proxy.refuse(false);
    log.check().unwrap();
    assert_eq!(log.head(), lost.head());
    // Whoever goes on where it was before is told like any loser, and finds its own entry.
    let next = batch_on(TOPIC, before, Some(lost.last_timestamp()), "c", 1);
    assert!(matches!(log.append(before, &next), Err(AppendFault::Conflict { head }) if head == lost.head()));
    assert_eq!(entries(&database).len(), 2);
}

/// The backends that wait for something now, but for those who ask.
fn waiting(cluster: &Cluster, what: &str) -> Vec<String> {
    let sql = format!("select pid from pg_stat_activity where wait_event = '{what}' order by pid");
    cluster.psql("postgres", &sql).lines().map(str::to_owned).collect()
}

#[test]
fn a_commit_that_is_still_under_way_is_waited_for() {
    let cluster = Cluster::start();
    let name = cluster.database();
    let proxy = Proxy::to(cluster.port);
    let database = Database::open(&url(proxy.port, &name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "a", 1).unwrap();
    // A standby that does not exist: commits wait.
    cluster.set("synchronous_standby_names", "nobody");
    proxy.cut_next(Cut::AfterCommit);
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| append(&mut log, "b", 1));
        until(|| proxy.has_cut() && waiting(&cluster, "SyncRep").len() == 1);
        // The one that asks what became of it waits for the one that is under way.
        until(|| waiting(&cluster, "relation").len() == 1);
        assert!(!appending.is_finished());
        cluster.set("synchronous_standby_names", "");
        assert_eq!(appending.join().unwrap().unwrap().sequence, 2);
    });
    assert_eq!(entries(&database).len(), 2);
}

#[test]
fn a_wait_for_a_standby_that_somebody_cancels_is_no_success() {
    let cluster = Cluster::start();
    let name = cluster.database();
    let database = Database::open(&cluster.url(&name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "a", 1).unwrap();
    cluster.set("synchronous_standby_names", "nobody");
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| append(&mut log, "b", 1));
        until(|| waiting(&cluster, "SyncRep").len() == 1);
        let first = waiting(&cluster, "SyncRep").remove(0);
        cluster.psql("postgres", &format!("select pg_cancel_backend({first})"));
        // Now the entry can be seen, and no standby has it: it is asked for again, and waits again.
        until(|| waiting(&cluster, "SyncRep").iter().any(|pid| *pid != first));
        assert_eq!(cluster.psql(&name, "select count(*) from handoffd_entries"), "2");
        assert!(!appending.is_finished(), "nobody is told before a standby has it");
        cluster.set("synchronous_standby_names", "");
        appending.join().unwrap().unwrap();
    });
    append(&mut log, "c", 1).unwrap();
    assert_eq!(entries(&database).len(), 3);
}

/// It can be turned off under a connection that appends all the time, and looks at nothing else.
#[test]
fn nothing_is_acknowledged_once_the_server_no_longer_syncs() {
    let cluster = Cluster::start();
    let name = cluster.database();
    let database = Database::open(&cluster.url(&name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "a", 1).unwrap();
    cluster.set("fsync", "off");
    // The session hears of it a moment later than those that are new.
    let mut refused = None;
    until(|| {
        refused = append(&mut log, "b", 1).err();
        refused.is_some()
    });
    let why = refused.unwrap();
    assert!(
        matches!(&why, AppendFault::NotDurable(why) if why.to_string().contains("fsync is off")),
        "{why}"
    );
    let there = log.head();
    assert!(append(&mut log, "c", 1).is_err());
    assert_eq!(cluster.psql(&name, "select max(sequence) from handoffd_entries"), there.sequence.to_string());
    cluster.set("fsync", "on");
    until(|| append(&mut log, "d", 1).is_ok());
    assert_eq!(log.head().sequence, there.sequence + 1);
}

#[test]
fn connections_that_are_ended_while_nobody_uses_them_cost_nothing() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let database = Database::open(&cluster.url(&name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    for round in 1..=3 {
        append(&mut log, "a", 1).unwrap();
        let end = format!(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity \
             where datname = '{name}' and pid <> pg_backend_pid()"
        );
        assert_ne!(cluster.psql(&name, &end), "0");
        assert_eq!(database.head().unwrap().0.sequence, round);
    }
}

#[test]
fn a_writer_that_is_stopped_in_a_transaction_does_not_hold_up_the_others_for_ever() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let (proxy, direct) = (Proxy::to(cluster.port), cluster.url(&name));
    let database = Database::open(&url(proxy.port, &name), TOPIC).unwrap();
    let mut stopped = PostgresLog::open(&database, &[]).unwrap();
    // Its commit is held back, as if its process did not run: the row is in, and nobody can see it.
    proxy.cut_next(Cut::Hold);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| append(&mut stopped, "a", 1));
        until(|| proxy.has_cut());
        let database = Database::open(&direct, TOPIC).unwrap();
        let mut other = PostgresLog::open(&database, &[]).unwrap();
        append(&mut other, "b", 1).unwrap();
        proxy.cut_all();
        assert!(matches!(held.join().unwrap(), Err(AppendFault::NotDurable(_))));
    });
    let database = Database::open(&direct, TOPIC).unwrap();
    assert_eq!(entries(&database)[0].wire, wire("b", 1));
}

/// Goes on whatever happens, like a gateway that catches up.
#[test]
fn a_server_that_crashes_under_load_has_every_acknowledged_entry_once() {
    let cluster = Cluster::start();
    let name = cluster.database();
    let database = Database::open(&cluster.url(&name), TOPIC).unwrap();
    let acknowledged = std::thread::scope(|scope| {
        let writers: Vec<_> = ["a", "b"]
            .map(|name| {
                let database = database.clone();
                scope.spawn(move || write_on(&database, name, 150))
            })
            .into();
        for at in [100, 200] {
            until(|| database.head().is_ok_and(|(head, _)| head.sequence >= at));
            cluster.crash();
        }
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<Head>>()
    });
    assert_eq!(acknowledged.len(), 300);
    let entries = entries(&database);
    for head in acknowledged {
        let entry = entries.get(usize::try_from(head.sequence).unwrap() - 1);
        assert_eq!(entry.map(head_of), Some(head), "an acknowledged entry is missing");
    }
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.wire.as_str()).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "an entry is there twice");
}

/// Appends until so many were acknowledged; says which.
fn write_on(database: &Database, name: &str, count: usize) -> Vec<Head> {
    let mut log = PostgresLog::open(database, &[]).unwrap();
    let mut acknowledged = Vec::new();
    let (mut head, mut last) = (log.head(), log.last_timestamp());
    while acknowledged.len() < count {
        let batch = batch_on(TOPIC, head, last, name, 1);
        match log.append(head, &batch) {
            Ok(()) => {
                (head, last) = (batch.head(), Some(batch.last_timestamp()));
                acknowledged.push(head);
            }
            Err(AppendFault::HeadGone { .. } | AppendFault::Tampered(_) | AppendFault::Closed(_)) => {
                panic!("the server has lost its end")
            }
            Err(_) => until(|| match database.head() {
                Ok(found) => {
                    (head, last) = found;
                    true
                }
                Err(_) => false,
            }),
        }
    }
    acknowledged
}
