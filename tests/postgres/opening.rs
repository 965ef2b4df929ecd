//! A server is used only if what it acknowledges stays.

use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use handoffd::ledger::Log as _;
use handoffd::ledger::postgres::{Database, PostgresFault, PostgresLog, SharedKind};

use crate::cluster::{Cluster, until};
use crate::replicas::Replica;
use crate::{TOPIC, append};

#[track_caller]
fn refused(url: &str, why: &str) {
    match Database::open(url, TOPIC) {
        Err(PostgresFault::Refused(found)) => assert!(found.contains(why), "{found}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_would_lose_what_it_acknowledged_is_refused() {
    let cluster = Cluster::start();
    let name = cluster.database();
    let url = cluster.url(&name);
    for (level, refused_for) in [
        ("off", Some("synchronous_commit is off: a decision would be acknowledged before it is on the disk")),
        (
            "local",
            Some("synchronous_commit is local: a decision would be acknowledged before any standby has it"),
        ),
        ("remote_write", Some("synchronous_commit is remote_write: a decision would be acknowledged before")),
        ("remote_apply", None),
        ("on", None),
    ] {
        cluster.psql(&name, &format!("alter database {name} set synchronous_commit = {level}"));
        match refused_for {
            Some(why) => refused(&url, why),
            None => drop(Database::open(&url, TOPIC).unwrap()),
        }
    }
    let database = Database::open(&url, TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "a", 1).unwrap();
    log.check().unwrap();
    cluster.set("fsync", "off");
    refused(&url, "fsync is off: a power cut would lose decisions");
    // Changed beneath a connection, it is noticed.
    assert!(log.check().unwrap_err().to_string().contains("fsync is off"));
    cluster.set("fsync", "on");
    log.check().unwrap();

    cluster.psql("postgres", "create database latin encoding 'LATIN1' template template0 locale 'C'");
    refused(&cluster.url("latin"), "its encoding is not UTF8");
}

#[test]
fn a_standby_is_never_asked() {
    let cluster = Cluster::start();
    let name = cluster.database();
    let database = Database::open(&cluster.url(&name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "a", 1).unwrap();
    let standby = cluster.standby();
    assert!(standby.data().join("standby.signal").is_file());
    assert_eq!(standby.psql(&name, "select count(*) from handoffd_entries"), "1", "it could answer");
    refused(&standby.url(&name), "it is a standby");
    // Of two addresses, the primary's is taken.
    let both = format!("postgres://handoffd@127.0.0.1:{},127.0.0.1:{}/{name}", standby.port, cluster.port);
    let database = Database::open(&both, TOPIC).unwrap();
    append(&mut PostgresLog::open(&database, &[]).unwrap(), "b", 1).unwrap();
}

#[test]
fn replicas_that_start_together_make_the_tables_once_and_agree_on_the_name() {
    const REPLICAS: usize = 8;
    let cluster = Cluster::shared();
    let name = cluster.database();
    let url = cluster.url(&name);
    let start = Barrier::new(REPLICAS);
    let topics: Vec<String> = std::thread::scope(|scope| {
        let (url, start) = (&url, &start);
        let opening: Vec<_> = (0..REPLICAS)
            .map(|n| {
                scope.spawn(move || {
                    start.wait();
                    Database::open(url, &format!("gw_{n}")).unwrap().topic_id().to_owned()
                })
            })
            .collect();
        opening.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(topics.iter().all(|topic| *topic == topics[0]), "{topics:?}");
    assert_eq!(steps(&cluster, &name), "1 2 3 4");

    cluster.psql(&name, "insert into handoffd_migrations (step) values (1000)");
    refused(&url, "it was used by a newer one");
}

/// A server whose role may have few connections: those who read wait for each other, and nobody waits who appends.
#[test]
fn many_who_read_share_few_connections_and_leave_those_of_who_appends() {
    const READERS: usize = 60;
    let cluster = Cluster::shared();
    let name = cluster.database();
    // 4 to read, one to append, and one that is kept for a moment when all are back.
    cluster.psql("postgres", "create role few login connection limit 6");
    cluster.psql("postgres", &format!("alter database {name} owner to few"));
    let database = Database::open(&cluster.url(&name).replace("handoffd@", "few@"), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "a", 3).unwrap();
    let held = cluster.holding(&name, "handoffd_shared");
    let asking = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                scope.spawn(|| {
                    asking.fetch_add(1, Ordering::Relaxed);
                    database.shared(SharedKind::GatewayKey)
                })
            })
            .collect();
        until(|| asking.load(Ordering::Relaxed) == READERS);
        let waiting =
            "select count(*) from pg_locks where relation = 'handoffd_shared'::regclass and not granted";
        until(|| cluster.psql(&name, waiting).parse::<usize>().unwrap() >= 4);
        // Whoever looks for what others appended, and appends, does not stand in that line.
        assert!(log.behind(log.head()).unwrap().is_empty());
        append(&mut log, "b", 1).unwrap();
        assert_eq!(cluster.psql(&name, waiting), "4");
        drop(held);
        for reader in readers {
            assert!(reader.join().unwrap().unwrap().is_empty());
        }
    });
}

fn steps(cluster: &Cluster, name: &str) -> String {
    cluster.psql(name, "select string_agg(step::text, ' ' order by step) from handoffd_migrations")
}

#[test]
fn a_ledger_of_an_older_handoffd_gets_the_tables_that_it_lacks_and_keeps_what_it_has() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let url = cluster.url(&name);
    let before = {
        let database = Database::open(&url, TOPIC).unwrap();
        append(&mut PostgresLog::open(&database, &[]).unwrap(), "a", 3).unwrap();
        database.head().unwrap()
    };
    // As the first version left it.
    cluster.psql(&name, "drop table handoffd_push, handoffd_tellers, handoffd_nonces, handoffd_losses");
    cluster.psql(&name, "alter table handoffd_ledger drop column epoch_since");
    cluster.psql(&name, "delete from handoffd_migrations where step > 1");
    let opening: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            std::thread::spawn(move || Database::open(&url, "gw_other").unwrap().head().unwrap())
        })
        .collect();
    assert!(opening.into_iter().all(|one| one.join().unwrap() == before));
    assert_eq!(steps(&cluster, &name), "1 2 3 4");
    assert_eq!(cluster.psql(&name, "select count(*) from handoffd_push"), "0");
}

#[test]
fn a_database_without_a_ledger_stays_without_one_until_somebody_makes_it() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let url = cluster.url(&name);
    match Database::open_existing(&url) {
        Err(PostgresFault::NoLedger) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(cluster.psql(&name, "select count(*) from pg_tables where tablename like 'handoffd%'"), "0");
    Database::open(&url, TOPIC).unwrap();
    assert_eq!(Database::open_existing(&url).unwrap().topic_id(), TOPIC);
    // Somebody who renames a ledger in its table breaks the chain from its very beginning.
    cluster.psql(&name, "update handoffd_ledger set topic_id = 'gw_other'");
    assert!(matches!(Database::open_existing(&url), Err(PostgresFault::Damaged { sequence: 0 })));
}

/// An authority and what it signed for a server, another authority.
fn make_certificates(directory: &Path) {
    let make = |name: &str, authority: Option<&str>, extension: &str| {
        let mut command = Command::new("openssl");
        command.current_dir(directory).args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]);
        command.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", &format!("/CN={name}")]);
        command.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
        if let Some(authority) = authority {
            command.args(["-CA", &format!("{authority}.pem"), "-CAkey", &format!("{authority}.key")]);
            command.args(["-addext", "basicConstraints=critical,CA:FALSE", "-addext", extension]);
        }
        let made = command.output().unwrap();
        assert!(made.status.success(), "{made:?}");
    };
    make("authority", None, "");
    make("server", Some("authority"), "subjectAltName=DNS:localhost");
    make("other", None, "");
}

#[test]
fn an_encrypted_connection_is_made_only_to_the_server_that_was_meant() {
    let cluster = Cluster::start();
    let name = cluster.database();
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    let file = |name: &str| directory.path().join(name).display().to_string();
    let url = |host: &str, parameters: &str| {
        format!("postgres://handoffd@{host}:{}/{name}?{parameters}", cluster.port)
    };
    let trusted = format!("sslmode=verify-full&sslrootcert={}", file("authority.pem"));
    let unreachable = |url: &str, why: &str| match Database::open(url, TOPIC) {
        Err(PostgresFault::Unreachable(found)) => assert!(found.contains(why), "{found}"),
        other => panic!("{other:?}"),
    };
    // A server without TLS is not spoken to in plain text instead.
    unreachable(&url("localhost", &trusted), "server does not support TLS; set `ssl = on`");
    cluster.encrypt(&directory.path().join("server.pem"), &directory.path().join("server.key"));
    let database = Database::open(&url("localhost", &trusted), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "a", 1).unwrap();
    let encrypted = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid) \
         where ssl and application_name = 'handoffd'";
    assert_eq!(cluster.psql(&name, encrypted), "2", "the one that asks and the one that appends");
    unreachable(&url("127.0.0.1", &trusted), "not valid for name");
    unreachable(&url("127.0.0.1", &trusted), "must stand in the certificate's subjectAltName");
    let other = format!("sslmode=require&sslrootcert={}", file("other.pem"));
    unreachable(&url("localhost", &other), "names the authority that signed the server's certificate");
    unreachable(
        &url("localhost", "sslmode=require"),
        "names the authority that signed the server's certificate",
    );
    assert!(Database::open(&url("127.0.0.1", "sslmode=disable"), TOPIC).is_ok(), "if it is asked for");
    // The authority's own certificate at the server.
    cluster.encrypt(&directory.path().join("authority.pem"), &directory.path().join("authority.key"));
    until(|| match Database::open(&url("localhost", &trusted), TOPIC) {
        Err(PostgresFault::Unreachable(found)) => found.contains("an authority is used as the server's own"),
        _ => false,
    });
}

#[test]
fn a_start_says_where_it_asked_and_what_to_do() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    cluster.psql("postgres", "create role mere login");
    cluster.psql("postgres", "create role crowded login connection limit 0");
    let says = |url: &str, parts: &[&str]| {
        let replica = Replica::lay_out(url);
        replica.set(&format!("[ledger]\nurl = \"{url}\"\n"));
        let said = [replica.run(&["serve", "--listen", "127.0.0.1:0"]).1, replica.run(&["doctor"]).1];
        for part in parts {
            assert!(said[0].contains(part), "{part}: {}", said[0]);
        }
        assert!(said[1].contains("have the database answer"), "{}", said[1]);
        assert!(!said[1].contains("audit verify"), "{}", said[1]);
        assert!(said.iter().all(|said| !said.contains("hunter2")), "{said:?}");
    };
    let at = format!("postgres://127.0.0.1:{}/{name}: ", cluster.port);
    let of = |role: &str| cluster.url(&name).replace("handoffd@", &format!("{role}:hunter2@"));
    says(&of("mere"), &[&at, "permission denied for schema public", "must own the schema"]);
    says(&of("crowded"), &[&at, "too many connections", "each replica needs 10 connections"]);
    says(
        "postgres://u:hunter2@127.0.0.1:1/d",
        &["postgres://127.0.0.1:1/d: ", "Connection refused", "is PostgreSQL running there"],
    );
    says(&cluster.url("nowhere"), &["postgres://127.0.0.1:", "create the database, in UTF-8"]);
    says(
        "postgres://u@127.0.0.1/d?sslmode=verify-full&sslrootcert=tls/no%20where.pem",
        &["/workspace/tls/no where.pem"],
    );
}

#[test]
fn a_role_that_did_not_make_the_tables_is_told_what_it_needs_and_needs_no_more() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let url = cluster.url(&name);
    drop(Database::open(&url, TOPIC).unwrap());
    cluster.psql("postgres", "create role guest login");
    let of_guest = url.replace("handoffd@", "guest@");
    let fault = Database::open(&of_guest, TOPIC).unwrap_err().to_string();
    assert!(fault.contains("select, insert, update and delete on its handoffd_ tables"), "{fault}");
    cluster.psql(&name, "grant select, insert, update, delete on all tables in schema public to guest");
    let database = Database::open(&of_guest, TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "a", 1).unwrap();
    log.check().unwrap();
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_out_of_reach() {
    let fault = Database::open("postgres://u:hunter2@127.0.0.1:1/d", TOPIC).unwrap_err();
    assert!(matches!(fault, PostgresFault::Unreachable(_)));
    assert!(!fault.to_string().contains("hunter2"), "{fault}");
}
