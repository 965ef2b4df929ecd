//! A database that was put back from a backup and lacks its last rows.

use handoffd::engine::EpochFacts;
use handoffd::gateway::{Gateway, GatewayFault, Opening, Place, Replacing, Served, move_ledger};
use handoffd::ledger::postgres::{Database, PostgresLog, Settlement};
use handoffd::ledger::{AppendFault, Log as _};
use handoffd::settings::{Given, read};
use serde_json::{Value as Json, json};

use crate::cluster::{Backup, Cluster, until};
use crate::replicas::{Replica, all_agree, fleet_with};
use crate::specs::plain;
use crate::wire::Request;
use crate::{TOPIC, append};

/// Replicas whose commands find the database, too.
fn fleet(url: &str, replicas: usize) -> Vec<Replica> {
    fleet_with(url, replicas, |replica| replica.set(&ledger(url)))
}

fn ledger(url: &str) -> String {
    format!("[ledger]\nurl = \"{url}\"\n")
}

/// One that remembers nothing.
fn fresh(url: &str) -> Replica {
    let replica = Replica::lay_out(url);
    replica.set(&ledger(url));
    replica
}

fn decide(fleet: &[Replica], from: usize, to: usize) {
    for n in from..to {
        let replica = &fleet[n % fleet.len()];
        let mut status = 0;
        // The connections to a server that was restarted are made anew.
        until(|| {
            status = replica.post("/v1/handoffs", &plain(&format!("lost{n:04}"))).status;
            status != 503
        });
        assert_eq!(status, 201);
    }
}

fn says(replica: &Replica, words: &str) -> bool {
    let (status, ready) = replica.ready();
    status == 503 && ready["failing"].to_string().contains(words)
}

/// It does not start, for this reason.
#[track_caller]
fn refuses(replica: &mut Replica, words: &str) {
    replica.spawn();
    let log = replica.ended();
    assert!(log.contains(words), "{log}");
}

fn settle(replica: &Replica, arguments: &[&str]) -> (i32, Json) {
    let (code, text) = replica.run(&[&["--json", "ledger", "settle"], arguments].concat());
    (code, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}")))
}

/// The directories that hold what was put aside.
fn aside(replica: &Replica) -> usize {
    let names = std::fs::read_dir(replica.path("memory")).unwrap();
    names.filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().starts_with("given-up-")).count()
}

fn epochs(entries: &[Json]) -> usize {
    entries.iter().filter(|event| event["type"] == "epoch.begun").count()
}

#[test]
fn a_database_that_lost_its_end_stops_every_replica_until_somebody_settles_it() {
    let cluster = Cluster::start();
    let database = cluster.database();
    let url = cluster.url(&database);
    let mut fleet = fleet(&url, 3);
    decide(&fleet, 0, 6);
    let backup = cluster.back_up();
    decide(&fleet, 6, 12);
    let last = all_agree(&fleet).len() as u64;
    cluster.put_back(&backup);
    let left = || cluster.psql(&database, "select count(*), max(sequence) from handoffd_entries");
    let before = left();
    let kept: u64 = cluster.psql(&database, "select max(sequence) from handoffd_entries").parse().unwrap();
    for (n, replica) in fleet.iter().enumerate() {
        // Asked to decide, or only asked how it is.
        if n > 0 {
            let refused = replica.post("/v1/handoffs", &plain(&format!("fork{n:04}")));
            assert_eq!((refused.status, refused.code().as_str()), (503, "ENGINE_NOT_DURABLE"), "{refused:?}");
        }
        until(|| says(replica, "put back from a backup"));
        // Nor is anything said of what was decided before: nobody knows whether it still holds.
        assert_eq!(replica.post("/v1/handoffs", &plain("lost0000")).status, 503);
    }
    // One that remembers nothing is told by those who do.
    let mut fresh = fresh(&url);
    refuses(&mut fresh, "the ledger is closed: it ends at entry");
    // One that starts again remembers, too.
    for replica in &mut fleet {
        replica.kill();
        refuses(replica, &format!("the database ends at entry {kept}, and entry {last} was there"));
    }
    assert_eq!(left(), before);

    // What is lost is shown by whoever has seen it.
    let (code, found) = settle(&fleet[0], &[]);
    assert_eq!((code, &found["settled"], &found["left"]["sequence"]), (1, &"no".into(), &kept.into()));
    assert_eq!(found["missed"].as_array().unwrap().len(), 3, "{found}");
    assert!(found["missed"].as_array().unwrap().iter().all(|missed| missed["sequence"] == last));
    let seen = &found["seenHere"];
    assert_eq!((&seen["after"], &seen["through"]), (&kept.into(), &last.into()), "{found}");
    let decisions: Vec<&str> =
        seen["decisions"].as_array().unwrap().iter().map(|one| one["handoffId"].as_str().unwrap()).collect();
    let lost: Vec<String> = (6..12).rev().map(|n| format!("hs_20260218_lost{n:04}")).collect();
    assert_eq!(decisions, lost);
    let (_, text) = fleet[0].run(&["ledger", "settle"]);
    assert!(text.contains(&format!("handoffd ledger settle --keep {kept}")), "{text}");
    assert_eq!(settle(&fresh, &[]).1["seenHere"], Json::Null);
    // It is given up only by who says what is left.
    assert_eq!(settle(&fleet[0], &["--keep", &last.to_string()]).0, 1);
    refuses(&mut fresh, "the ledger is closed: it ends at entry");
    let (code, found) = settle(&fresh, &["--keep", &kept.to_string()]);
    assert_eq!((code, &found["settled"]), (0, &"givenUp".into()));
    assert_eq!(left(), before);

    // Whichever starts first begins the epoch, and all start from what is left.
    for replica in &mut fleet {
        replica.spawn();
    }
    fresh.spawn();
    for replica in &mut fleet {
        replica.meet();
        assert_eq!(aside(replica), 1);
    }
    fresh.meet();
    fleet.push(fresh);
    lift(&fleet[0]);
    decide(&fleet, 6, 12);
    let entries = all_agree(&fleet);
    assert_eq!(epochs(&entries), 1);
    assert_eq!(entries[usize::try_from(kept).unwrap()]["type"], "epoch.begun", "before anything else");
    assert_eq!(settle(&fleet[0], &[]), (0, settle(&fleet[1], &[]).1));
    assert_eq!(settle(&fleet[0], &["--keep", "1"]).0, 1, "there is nothing to give up");
}

#[test]
fn what_people_did_in_lost_entries_is_named_and_nothing_passes_until_they_say_that_it_holds() {
    let cluster = Cluster::start();
    let url = cluster.url(&cluster.database());
    let mut fleet = fleet(&url, 2);
    decide(&fleet, 0, 2);
    let (rita, worker) = (fleet[0].operator("rita"), fleet[0].operator("worker"));
    let asks = |replica: &Replica, token: &str| {
        let reply = replica.connection().ask(&Request::new("GET", "/v1/handoffs").token(token));
        reply.unwrap().status
    };
    until(|| fleet.iter().all(|replica| asks(replica, &worker) == 200));
    all_agree(&fleet);
    let backup = cluster.back_up();
    let say = |replica: &Replica, method: &str, path: &str, body: &str| {
        let mut status = 0;
        until(|| {
            let request = Request::new(method, path).token(&rita).json(body);
            status = replica.connection().ask(&request).unwrap().status;
            status != 503
        });
        status
    };
    let freeze = json!({"scope": "mode", "mode": "live", "reason": "wrong balances"}).to_string();
    assert_eq!(say(&fleet[0], "POST", "/v1/freeze", &freeze), 200);
    let down = json!({"phase": "gated-read", "reason": "a week of logs is sound"}).to_string();
    assert_eq!(say(&fleet[1], "PUT", "/v1/mentions/phase", &down), 200);
    let gone = fleet[0].connection().ask(&Request::new("DELETE", "/v1/tokens/worker").token(&fleet[0].admin));
    assert_eq!(gone.unwrap().status, 200);
    until(|| fleet.iter().all(|replica| asks(replica, &worker) == 401));
    all_agree(&fleet);
    cluster.put_back(&backup);
    for replica in &mut fleet {
        until(|| says(replica, "put back from a backup"));
        replica.signal("TERM");
        replica.ended();
    }

    let (_, found) = settle(&fleet[0], &[]);
    let acts: Vec<(&str, &str)> = found["seenHere"]["acts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|act| (act["type"].as_str().unwrap(), act["what"].as_str().unwrap()))
        .collect();
    assert_eq!(acts.len(), 3, "{found}");
    assert_eq!(acts[0], ("freeze.set", "froze mode live: wrong balances"));
    assert_eq!(acts[1], ("mention.changed", "mentions went from log-only to gated-read"));
    assert!(acts[2].0 == "token.revoked" && acts[2].1.starts_with("revoked token `worker` (tok_"), "{found}");
    let (_, text) = fleet[0].run(&["ledger", "settle"]);
    assert!(text.contains("human:rita froze mode live: wrong balances"), "{text}");
    assert!(text.contains("handoffd freeze set --mode live --reason"), "{text}");

    let kept = found["left"]["sequence"].to_string();
    let (code, found) = settle(&fleet[0], &["--keep", &kept]);
    assert_eq!((code, found["revokedAgain"].as_array().unwrap().len()), (0, 1), "{found}");
    fleet.iter_mut().for_each(Replica::spawn);
    fleet.iter_mut().for_each(Replica::meet);
    for (n, replica) in fleet.iter().enumerate() {
        assert_eq!(asks(replica, &worker), 401);
        let refused = replica.post("/v1/handoffs", &plain(&format!("epoch{n:03}")));
        assert_eq!(refused.code(), "POLICY_FROZEN", "{refused:?}");
        let freezes = replica.json("/v1/freeze");
        assert_eq!(freezes["frozen"].as_array().unwrap().len(), 1, "{freezes}");
        assert!(freezes.to_string().contains("do again what has to hold"), "{freezes}");
    }
    lift(&fleet[0]);
    decide(&fleet, 2, 4);
    // The freeze is the epoch's own: it is not set again by whoever starts later.
    fleet[1].kill_and_restart();
    assert_eq!(fleet[1].json("/v1/freeze")["frozen"], json!([]));
    all_agree(&fleet);
}

/// Two replicas that agree on more than the backup of their database has, and where that is.
fn ahead_of_a_backup(cluster: &Cluster) -> (String, Vec<Replica>, Backup) {
    let url = cluster.url(&cluster.database());
    let fleet = fleet(&url, 2);
    decide(&fleet, 0, 4);
    let backup = cluster.back_up();
    decide(&fleet, 4, 8);
    all_agree(&fleet);
    (url, fleet, backup)
}

/// Says that what has to hold was done again.
fn lift(replica: &Replica) {
    let (body, vera) =
        (json!({"scope": "all", "reason": "done again"}).to_string(), replica.operator("vera"));
    let request = Request::new("DELETE", "/v1/freeze").token(&vera).json(&body);
    let lifted = replica.connection().ask(&request).unwrap();
    assert_eq!(lifted.status, 200, "{lifted:?}");
}

#[test]
fn a_replica_that_remembers_stops_those_that_went_on_without_it() {
    let cluster = Cluster::start();
    let (url, mut old, backup) = ahead_of_a_backup(&cluster);
    // One in order, with a checkpoint of the end; one with what its files had.
    old[0].signal("TERM");
    old[0].ended();
    old[1].kill();
    cluster.put_back(&backup);
    // Nobody is there who remembers: nothing tells this database from one that lost nothing.
    let mut new = fresh(&url);
    new.spawn();
    new.meet();
    let new = [new];
    decide(&new, 100, 108);
    let left = all_agree(&new);
    refuses(&mut old[1], "is another one than was there");
    until(|| says(&new[0], "is another one than gateway"));
    assert_eq!(new[0].post("/v1/handoffs", &plain("fork0000")).status, 503);
    refuses(&mut old[0], "is another one than was there");
    refuses(&mut fresh(&url), "is another one than gateway");

    let kept = left.len().to_string();
    // Its views had all of it when it ended.
    let (_, found) = settle(&old[0], &[]);
    assert_eq!(found["seenHere"]["decisions"].as_array().unwrap().len(), 4, "{found}");
    assert_eq!(settle(&old[0], &["--keep", &kept]).0, 0);
    // The one that runs has nothing to forget: it goes on by itself when the epoch has begun.
    until(|| says(&new[0], "begins a new epoch"));
    old[0].spawn();
    old[0].meet();
    until(|| new[0].ready().0 == 200);
    // One that comes late stops nobody: what it remembers was given up.
    old[1].spawn();
    old[1].meet();
    assert_eq!((aside(&old[0]), aside(&old[1]), aside(&new[0])), (1, 1, 0));
    old.extend(new);
    lift(&old[0]);
    decide(&old, 4, 8);
    let entries = all_agree(&old);
    assert_eq!((epochs(&entries), &entries[..left.len()]), (1, &left[..]));
}

#[test]
fn replicas_go_on_by_themselves_when_the_rows_are_back() {
    let cluster = Cluster::start();
    let url = cluster.url(&cluster.database());
    let fleet = fleet(&url, 2);
    decide(&fleet, 0, 4);
    let old = cluster.back_up();
    decide(&fleet, 4, 8);
    all_agree(&fleet);
    let newest = cluster.back_up();
    cluster.put_back(&old);
    for replica in &fleet {
        until(|| says(replica, "put back from a backup"));
    }
    cluster.put_back(&newest);
    for replica in &fleet {
        until(|| replica.ready().0 == 200);
    }
    decide(&fleet, 8, 12);
    assert_eq!(epochs(&all_agree(&fleet)), 0);
}

#[test]
fn a_replica_that_still_runs_does_not_stop_an_epoch_that_began_without_it() {
    let cluster = Cluster::start();
    let (_, mut fleet, backup) = ahead_of_a_backup(&cluster);
    cluster.put_back(&backup);
    for replica in &fleet {
        until(|| says(replica, "put back from a backup"));
    }
    let kept = settle(&fleet[0], &[]).1["left"]["sequence"].to_string();
    assert_eq!(settle(&fleet[0], &["--keep", &kept]).0, 0);
    // Nobody has started again, and they know what is to be done.
    for replica in &fleet {
        until(|| says(replica, "the loss is settled: start the gateway again"));
    }
    fleet[0].kill_and_restart();
    until(|| says(&fleet[1], "was given up, and the loss is settled: start the gateway again"));
    lift(&fleet[0]);
    decide(&fleet[..1], 4, 8);
    assert_eq!(settle(&fleet[0], &[]).1["closed"], Json::Null, "it says so of itself alone");
    fleet[1].kill_and_restart();
    all_agree(&fleet);
}

#[test]
fn a_loss_that_an_outage_came_before_is_in_the_log_and_no_file_is_blamed() {
    let cluster = Cluster::start();
    let (_, mut fleet, backup) = ahead_of_a_backup(&cluster);
    cluster.fail();
    for replica in &fleet {
        until(|| replica.log().contains("nothing is decided") && replica.ready().0 == 503);
        // The roster is there, too.
        let refused = replica.post("/v1/reload", &json!({}));
        assert!(refused.text().contains("the files are not to blame"), "{refused:?}");
        until(|| replica.ready().1["degraded"].to_string().contains("the files are not to blame"));
    }
    cluster.put_back(&backup);
    for replica in &fleet {
        until(|| says(replica, "put back from a backup"));
        until(|| {
            replica
                .log()
                .contains("nothing is written before `handoffd ledger settle` says which history counts")
        });
        assert!(!replica.log().contains("correct the file"));
    }
    let kept = settle(&fleet[0], &[]).1["left"]["sequence"].to_string();
    assert_eq!(settle(&fleet[0], &["--keep", &kept]).0, 0);
    fleet[0].kill_and_restart();
    until(|| fleet[1].log().contains("was given up, and the loss is settled: start the gateway again"));
}

/// Takes rows away as a restore would, and can put them back.
const TAKE: &str = "create table taken as select * from handoffd_entries where sequence > 1; \
     delete from handoffd_entries where sequence > 1; delete from handoffd_bodies where sequence > 1";

#[test]
fn nobody_appends_behind_a_mark_and_rows_that_are_back_lift_it() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let database = Database::open(&cluster.url(&name), TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap().noting_losses_of("gw_a");
    append(&mut log, "a", 1).unwrap();
    let had = append(&mut log, "b", 2).unwrap();
    assert_eq!(database.settle_losses(None).unwrap(), Settlement::NotLost);
    cluster.psql(&name, TAKE);
    let mut ignorant = PostgresLog::open(&database, &[]).unwrap();
    assert!(matches!(log.check(), Err(AppendFault::HeadGone { .. })));
    let fault = append(&mut ignorant, "c", 1).unwrap_err();
    let said = "the ledger is closed: it ends at entry 1, and gateway `gw_a` had entry 3: it was put back";
    assert!(fault.to_string().starts_with(said), "{fault}");
    let losses = database.losses().unwrap();
    assert_eq!(
        losses.iter().map(|loss| (&*loss.gateway, loss.had, loss.found)).collect::<Vec<_>>(),
        [("gw_a", had, 1)]
    );
    for keep in [None, Some(3)] {
        assert_eq!(database.settle_losses(keep).unwrap(), Settlement::OtherHead { head: 1 });
    }
    // The rows of a newer backup: all is as it was, and needs no new epoch.
    cluster.psql(&name, "insert into handoffd_entries select * from taken");
    assert!(matches!(log.check(), Err(AppendFault::Closed(_))), "until somebody says so");
    assert_eq!(database.settle_losses(None).unwrap(), Settlement::NothingLost);
    append(&mut log, "d", 1).unwrap();
    assert!(database.losses().unwrap().is_empty());
}

#[test]
fn a_mark_holds_against_appends_that_are_under_way() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let url = cluster.url(&name);
    let database = Database::open(&url, TOPIC).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap().noting_losses_of("gw_a");
    append(&mut log, "a", 3).unwrap();
    cluster.psql(&name, TAKE);
    let (tell, told) = std::sync::mpsc::channel();
    let busy = std::thread::spawn(move || {
        let mut ignorant = PostgresLog::open(&Database::open(&url, TOPIC).unwrap(), &[]).unwrap();
        // Nobody listens any more after the first.
        let mut appends = (0..10_000).map(|_| append(&mut ignorant, "x", 1).map(|_| tell.send(()).is_ok()));
        let fault = appends.find_map(Result::err);
        assert!(matches!(fault, Some(AppendFault::Closed(_))), "{fault:?}");
        ignorant.head()
    });
    told.recv().unwrap();
    assert!(matches!(log.check(), Err(AppendFault::HeadGone { .. })));
    let marked = database.head().unwrap().0;
    assert_eq!(busy.join().unwrap(), marked);
    assert_eq!(database.head().unwrap().0, marked);
}

#[test]
fn a_workspace_of_another_ledger_stops_nobody() {
    let cluster = Cluster::shared();
    let (url, other) = (cluster.url(&cluster.database()), cluster.url(&cluster.database()));
    let mut here = fleet(&url, 1);
    decide(&here, 0, 2);
    let mut there = fleet(&other, 1);
    there[0].signal("TERM");
    there[0].ended();
    // Given the wrong address.
    let mut lost = there.remove(0).at(&url);
    refuses(&mut lost, "this workspace was served on another ledger");
    decide(&here, 2, 4);
    // And that of a database which nobody has made a ledger in: none is made.
    let empty = cluster.database();
    here[0].signal("TERM");
    here[0].ended();
    refuses(&mut here.remove(0).at(&cluster.url(&empty)), "and the database has none");
    assert_eq!(cluster.psql(&empty, "select count(*) from pg_tables where tablename like 'handoffd%'"), "0");
}

/// Without the checkpoint, what else a gateway that was killed has left says that it has a ledger.
#[test]
fn a_workspace_with_a_ledger_makes_no_other_one_in_an_empty_database() {
    let cluster = Cluster::shared();
    let workspace = tempfile::tempdir().unwrap();
    let memory = workspace.path().join("memory");
    let empty = cluster.database();
    let url = cluster.url(&empty);
    let given = |url: &str| {
        let given = Given { file: Some(Ok(ledger(url).into_bytes())), ..Given::default() };
        let opening = Opening { ledger: read(&given).unwrap().settings.ledger.url, ..Opening::default() };
        Gateway::open_telling(workspace.path(), "127.0.0.1:0", opening, &mut |_, _| {})
    };
    let gateway = Gateway::open(workspace.path(), "127.0.0.1:0").unwrap();
    gateway.engine().begin_epoch_and_wait(facts()).unwrap();
    gateway.engine().stop();
    let topic_id = gateway.topic_id().to_owned();
    drop(gateway);
    std::fs::remove_file(memory.join("checkpoint")).unwrap();
    for left in ["views.db", "orchestration-state.json", "ledger"] {
        let refused = given(&url).unwrap_err();
        assert!(matches!(refused, GatewayFault::NoLedger(_)), "{left}: {refused}");
        if left != "ledger" {
            std::fs::remove_file(memory.join(left)).unwrap();
        }
    }
    assert_eq!(cluster.psql(&empty, "select count(*) from pg_tables where tablename like 'handoffd%'"), "0");
    // Nor does it go on with somebody else's.
    let other = cluster.url(&cluster.database());
    Database::open(&other, "gw_other").unwrap();
    let refused = given(&other).unwrap_err();
    assert!(matches!(refused, GatewayFault::OtherLedger { .. }), "{refused}");
    // The right way.
    let (from, to) = (Place::Workspace(workspace.path().to_owned()), Place::Database(url.clone()));
    move_ledger(&from, &to, Replacing::No, Served::Refuse, &mut |_| {}).unwrap();
    let gateway = given(&url).unwrap();
    assert_eq!((gateway.topic_id(), gateway.engine().head()), (topic_id.as_str(), 1));
}

fn facts() -> EpochFacts {
    EpochFacts { backup_time: "2026-02-18T19:00:00Z".into(), restored_head: 0, restored_hash: "0".repeat(64) }
}
