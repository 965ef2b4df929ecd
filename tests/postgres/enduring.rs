//! Replicas that are killed and paused, a server that is restarted and killed, connections that are cut: under load, what
//! was acknowledged is there afterwards, once, and everybody agrees.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value as Json;

use crate::cluster::{Cluster, until, url};
use crate::proxy::{Cut, Proxy};
use crate::replicas::{Connection, Replica, all_agree, fleet};
use crate::specs::plain;

/// Where the replicas are; they listen elsewhere after a restart.
type Addresses = Mutex<Vec<(SocketAddr, String)>>;

/// The transactions that a database is in the middle of: whose each is, and since when.
fn transactions(cluster: &Cluster, database: &str) -> HashSet<String> {
    let all = format!(
        "select pid || ' since ' || xact_start from pg_stat_activity where datname = '{database}' and xact_start is not null"
    );
    cluster.psql("postgres", &all).lines().map(str::to_owned).collect()
}

/// Callers that never give up: each asks one replica after the other, until it has a decision.
struct Load<'l> {
    addresses: &'l Addresses,
    stop: AtomicBool,
    acknowledged: Mutex<HashMap<String, Json>>,
    count: AtomicUsize,
}

impl Load<'_> {
    fn call(&self, caller: usize) {
        for n in 0.. {
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            let spec = plain(&format!("load{caller}x{n:06}"));
            let decision = self.insist(caller + n, &spec);
            let handoff_id = spec["handoffId"].as_str().unwrap().to_owned();
            self.acknowledged.lock().unwrap().insert(handoff_id, decision);
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn insist(&self, first: usize, spec: &Json) -> Json {
        let (mut found, mut asked) = (Json::Null, first);
        until(|| {
            let (address, admin) = {
                let addresses = self.addresses.lock().unwrap();
                addresses[asked % addresses.len()].clone()
            };
            asked += 1;
            // One that is paused says nothing at all.
            let mut connection = Connection::to(address, &admin).within(Duration::from_secs(1));
            let reply = connection.post("/v1/handoffs", &spec.to_string());
            let Some(reply) = reply.filter(|reply| matches!(reply.status, 200 | 201)) else { return false };
            found = reply.json();
            assert_eq!(found["decision"], "allowed", "{found}");
            true
        });
        found
    }

    /// Waits until decisions have come again.
    fn goes_on(&self) {
        let before = self.count.load(Ordering::Acquire);
        until(|| self.count.load(Ordering::Acquire) >= before + 30);
    }
}

/// Nobody calls any more once the test is over, however it ends.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn note(addresses: &Addresses, place: usize, replica: &Replica) {
    addresses.lock().unwrap()[place] = (replica.address, replica.admin.clone());
}

#[test]
fn what_was_acknowledged_is_there_once_whatever_was_killed_paused_or_cut() {
    let cluster = Cluster::start();
    let database = cluster.database();
    let mut fleet = fleet(&cluster.url(&database), 3);
    let addresses: Addresses =
        Mutex::new(fleet.iter().map(|replica| (replica.address, replica.admin.clone())).collect());
    let load = Load {
        addresses: &addresses,
        stop: AtomicBool::new(false),
        acknowledged: Mutex::default(),
        count: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        let _over = Over(&load.stop);
        (0..6).for_each(|caller| {
            drop(scope.spawn({
                let load = &load;
                move || load.call(caller)
            }))
        });
        load.goes_on();
        for round in 0..crate::short_or_long(1, 20) {
            fleet[round % 3].kill_and_restart();
            note(&addresses, round % 3, &fleet[round % 3]);
            load.goes_on();
            // Until whatever it was in the middle of is over: the server lets nobody keep the others waiting, and takes its
            // turn from one that does. What the others were in the middle of ends by itself.
            let paused = &fleet[(round + 1) % 3];
            paused.signal("STOP");
            let begun = transactions(&cluster, &database);
            load.goes_on();
            until(|| transactions(&cluster, &database).is_disjoint(&begun));
            load.goes_on();
            paused.signal("CONT");
            load.goes_on();
            for _ in 0..5 {
                cluster.psql(
                    "postgres",
                    &format!(
                        "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{database}'"
                    ),
                );
                load.goes_on();
            }
            cluster.crash();
            load.goes_on();
            cluster.restart();
            load.goes_on();
        }
    });
    let events = all_agree(&fleet);
    let mut decided: HashMap<&str, Vec<u64>> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        let stream = event["stream"]["stream_id"].as_str().unwrap();
        if let Some(handoff_id) = stream.strip_prefix("task:").and_then(|task| task.split(':').next())
            && event["type"] == "gate.decided"
        {
            assert_eq!(event["payload"]["decision"], "allowed", "{event}");
            decided.entry(handoff_id).or_default().push(at as u64 + 1);
        }
    }
    let acknowledged = load.acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 300, "{}", acknowledged.len());
    for (handoff_id, decision) in &acknowledged {
        let told = decision["ledger"]["sequence"].as_u64().unwrap();
        assert_eq!(decided.get(handoff_id.as_str()), Some(&vec![told]), "{handoff_id}: {decision}");
    }
    assert_eq!(decided.len(), acknowledged.len(), "nobody else asked for anything");
}

#[test]
fn a_commit_whose_answer_is_lost_is_settled_before_anybody_is_told() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let proxy = Proxy::to(cluster.port);
    let near = fleet(&cluster.url(&database), 1).remove(0);
    let far = fleet(&url(proxy.port, &database), 1).remove(0);
    for (n, cut) in [Cut::CommitAnswer, Cut::Commit, Cut::AfterCommit].into_iter().enumerate() {
        let spec = plain(&format!("settled{n:04}"));
        proxy.cut_next(cut);
        // Known to be there, or known not to be and done again: either way it is decided.
        let decided = far.post("/v1/handoffs", &spec);
        assert_eq!(decided.status, 201, "{n}: {decided:?}");
        assert!(proxy.has_cut(), "{n}");
        let again = near.post("/v1/handoffs", &spec).json();
        assert_eq!((&again["replayed"], &again["ledger"]), (&true.into(), &decided.json()["ledger"]), "{n}");
    }
    // Out of reach it is not ready, and names the database and not itself, also when it no longer knows what others do.
    proxy.refuse(true);
    proxy.cut_all();
    let failing = || far.ready().1["failing"].to_string();
    until(|| failing().contains("could not be asked"));
    assert_eq!(
        far.post("/v1/handoffs", &plain("settled0000")).status,
        503,
        "not even what it has decided before"
    );
    assert_eq!(near.post("/v1/handoffs", &plain("settled9999")).status, 201);
    proxy.refuse(false);
    until(|| far.ready().0 == 200);
    let replayed = far.post("/v1/handoffs", &plain("settled9999"));
    assert_eq!((replayed.status, &replayed.json()["replayed"]), (200, &true.into()), "{replayed:?}");
    all_agree(&[near, far]);
}

/// An entry can be seen before a standby has it, if the session that waited for the standby is ended.
#[test]
fn what_no_standby_has_is_not_answered_by_another_replica_either() {
    let cluster = Cluster::start();
    let database = cluster.database();
    let fleet = fleet(&cluster.url(&database), 2);
    let [one, other] = &fleet[..] else { panic!() };
    let there = || cluster.psql(&database, "select count(*) from handoffd_entries");
    let spec = plain("nobody0001");
    let before = there();
    cluster.set("synchronous_standby_names", "nobody");
    let mut asking = one.connection().within(Duration::from_millis(100));
    assert!(asking.post("/v1/handoffs", &spec.to_string()).is_none(), "it waits for the standby");
    let waits = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep' \
         and query = 'commit'";
    until(|| {
        cluster.psql("postgres", waits);
        there() != before
    });
    // It is there to be read, and could be gone with this server.
    let mut asking = other.connection().within(Duration::from_secs(3));
    let early = asking.post("/v1/handoffs", &spec.to_string());
    assert!(early.as_ref().is_none_or(|reply| reply.status == 503), "{early:?}");
    // Nobody has to write for that to be noticed.
    let why = "no synchronous standby";
    until(|| fleet.iter().all(|replica| replica.ready().0 == 503));
    until(|| other.ready().1["failing"].to_string().contains(why));
    cluster.set("synchronous_standby_names", "");
    until(|| fleet.iter().all(|replica| replica.ready().0 == 200));
    let decided = other.post("/v1/handoffs", &spec).json();
    assert_eq!((&decided["decision"], &decided["replayed"]), (&"allowed".into(), &true.into()), "{decided}");
    all_agree(&fleet);
}

/// Others append without a pause: whoever only follows never finds that there is nothing new, and is up to date all the same.
#[test]
fn a_replica_that_only_follows_stays_ready_while_another_is_busy() {
    let cluster = Cluster::shared();
    let fleet = fleet(&cluster.url(&cluster.database()), 2);
    let [busy, follows] = &fleet[..] else { panic!() };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = busy.connection();
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let decided =
                    connection.post("/v1/handoffs", &plain(&format!("busy{n:06}")).to_string()).unwrap();
                assert_eq!(decided.status, 201, "{decided:?}");
            }
        });
        // Twice as long as it may be behind. That it never is in all this time is what is to be shown: there is nothing that
        // would come, and the time is the subject.
        let begun = std::time::Instant::now();
        let red = loop {
            let (status, ready) = follows.ready();
            if status != 200 || begun.elapsed() > Duration::from_secs(4) {
                break (status != 200).then_some(ready);
            }
        };
        stop.store(true, Ordering::Relaxed);
        assert_eq!(red, None);
    });
    all_agree(&fleet);
}

/// A server that is there and says nothing.
#[test]
fn a_database_that_hangs_is_named_and_not_the_replica() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let fleet = fleet(&cluster.url(&database), 1);
    let held = cluster.holding(&database, "handoffd_ledger");
    let failing = || fleet[0].ready().1["failing"].to_string();
    until(|| failing() != "[]");
    let said = failing();
    assert!(said.contains("the ledger's database has not answered for"), "{said}");
    assert!(!said.contains("has not seen the end of the ledger"), "{said}");
    drop(held);
    until(|| fleet[0].ready().0 == 200);
}

#[test]
fn a_replica_that_is_stopped_while_its_database_is_away_says_what_it_could_not_leave() {
    let cluster = Cluster::start();
    let mut fleet = fleet(&cluster.url(&cluster.database()), 1);
    let decided = fleet[0].connection().post("/v1/handoffs", &plain("away0001").to_string()).unwrap();
    assert_eq!(decided.status, 201, "{decided:?}");
    cluster.fail();
    fleet[0].signal("TERM");
    let said = fleet[0].ended();
    let why = "error: the last checkpoint could not be left: the ledger's database could not be asked: ";
    assert!(said.contains(why), "{said}");
    // What was acknowledged is there all the same, and it starts as after any other end.
    cluster.crash();
    fleet[0].spawn();
    fleet[0].meet();
    all_agree(&fleet);
}
