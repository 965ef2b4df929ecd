//! A database that was put back from a backup and lacks its last rows.

use crate::cluster::{Cluster, until};
use crate::replicas::{all_agree, fleet};
use crate::specs::plain;

#[test]
fn a_database_that_lost_its_end_stops_every_replica_and_nobody_goes_on() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let mut fleet = fleet(&cluster.url(&database), 3);
    for n in 0..6 {
        assert_eq!(fleet[n % 3].post("/v1/handoffs", &plain(&format!("lost{n:04}"))).status, 201);
    }
    let last = all_agree(&fleet).len() as u64;
    // What a backup that was made three entries ago has.
    for table in ["handoffd_entries", "handoffd_bodies"] {
        cluster.psql(&database, &format!("delete from {table} where sequence > {}", last - 3));
    }
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
