//! A database that was put back from a backup and lacks its last rows.

use crate::cluster::{Cluster, until};
use crate::replicas::{Replica, all_agree, fleet};
use crate::specs::plain;

fn decide(fleet: &[Replica], from: usize, to: usize) {
    for n in from..to {
        let replica = &fleet[n % 3];
        let mut status = 0;
        // The connections to a server that was restarted are made anew.
        until(|| {
            status = replica.post("/v1/handoffs", &plain(&format!("lost{n:04}"))).status;
            status != 503
        });
        assert_eq!(status, 201);
    }
}

#[test]
fn a_database_that_lost_its_end_stops_every_replica_and_nobody_goes_on() {
    let cluster = Cluster::start();
    let database = cluster.database();
    let mut fleet = fleet(&cluster.url(&database), 3);
    decide(&fleet, 0, 6);
    let backup = cluster.back_up();
    decide(&fleet, 6, 12);
    let last = all_agree(&fleet).len() as u64;
    cluster.put_back(&backup);
    let left = || cluster.psql(&database, "select count(*), max(sequence) from handoffd_entries");
    let before = left();
    for (n, replica) in fleet.iter().enumerate() {
        // Asked to decide, or only asked how it is.
        if n > 0 {
            let refused = replica.post("/v1/handoffs", &plain(&format!("fork{n:04}")));
            assert_eq!((refused.status, refused.code().as_str()), (503, "ENGINE_NOT_DURABLE"), "{refused:?}");
        }
        until(|| {
            let (status, ready) = replica.ready();
            status == 503 && ready["failing"].to_string().contains("put back from a backup")
        });
        // Nor is anything said of what was decided before: nobody knows whether it still holds.
        assert_eq!(replica.post("/v1/handoffs", &plain("lost0000")).status, 503);
    }
    // One that starts again remembers, too.
    for replica in &mut fleet {
        replica.kill();
        replica.spawn();
        let log = replica.ended();
        assert!(log.contains(&format!("goes up to entry {last}, which the ledger does not have")), "{log}");
    }
    assert_eq!(left(), before);
}
