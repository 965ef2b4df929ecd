//! What a replica keeps for itself is made again from the ledger.

use std::fs;

use crate::cluster::Cluster;
use crate::replicas::{all_agree, fleet};
use crate::specs::plain;

#[test]
fn a_replica_that_lost_its_views_and_its_state_makes_them_again_and_shows_how_far_it_is() {
    let cluster = Cluster::shared();
    let mut fleet = fleet(&cluster.url(&cluster.database()), 2);
    for n in 0..40 {
        assert_eq!(fleet[n % 2].post("/v1/handoffs", &plain(&format!("again{n:04}"))).status, 201);
    }
    all_agree(&fleet);
    let memory = fleet[0].path("memory");
    // Only its key is its own; without it, it would be another replica.
    let own = ["gateway.key", "keyring.json", "admin.token"];
    for round in 0..2 {
        fleet[0].kill();
        assert_eq!(fleet[1].post("/v1/handoffs", &plain(&format!("meanwhile{round}"))).status, 201);
        for entry in fs::read_dir(&memory).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_file() && !own.contains(&name.as_str()) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        assert!(!memory.join("views.db").exists() && !memory.join("orchestration-state.json").exists());
        if round == 0 {
            let seen = fleet[0].seen_to_start();
            assert!(seen.contains("reading the ledger ["), "{seen}");
        } else {
            fleet[0].spawn();
            fleet[0].meet();
        }
    }
    let again = fleet[0].post("/v1/handoffs", &plain("again0001"));
    assert_eq!((again.status, &again.json()["replayed"]), (200, &true.into()), "{again:?}");
    all_agree(&fleet);
}
