//! What a replica puts in force for all: what was changed there, and nothing else that it happens to have.

use std::fs;

use serde_json::json;

use crate::agreeing::{POLICY, edit, is_ready, is_withheld};
use crate::cluster::{Cluster, until};
use crate::replicas::{Replica, fleet, fleet_with, write};
use crate::wire::Request;

const ROUTES: &str = "policies/routes.json";
const KEYRING: &str = "memory/keyring.json";

/// How often the ledger says this.
fn told(replica: &Replica, kind: &str) -> usize {
    let export = replica.get("/v1/audit/export").unwrap().text();
    export.matches(&format!("\\\"type\\\":\\\"{kind}\\\"")).count()
}

fn add(replica: &Replica, key_id: &str) -> u16 {
    let key = json!({"keyId": key_id, "owner": "user:main", "algorithm": "ed25519",
        "publicKey": "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"});
    replica.post("/v1/keys", &key).status
}

fn remove(replica: &Replica, key_id: &str) -> u16 {
    let remove = Request::new("DELETE", &format!("/v1/keys/{key_id}")).token(&replica.admin);
    replica.connection().ask(&remove).unwrap().status
}

/// Two replicas that have a key which may leak.
fn two(cluster: &Cluster) -> [Replica; 2] {
    let url = cluster.url(&cluster.database());
    let fleet = fleet_with(&url, 2, |replica| {
        let secret = replica.path("../secret").display().to_string();
        replica.cli(&["key", "add", "--owner", "user:main", "--id", "leaked-1", "--secret-file", &secret]);
    });
    fleet.try_into().unwrap_or_else(|_| unreachable!())
}

#[test]
fn a_key_that_is_added_where_policies_are_behind_brings_no_policies_back() {
    let cluster = Cluster::shared();
    let [one, other] = two(&cluster);
    edit(&one, 800);
    is_withheld(&other, POLICY);
    other.cli(&["key", "add", "--owner", "user:main", "--id", "extra-1", "--secret-file", "../secret"]);
    until(|| told(&one, "key.added") == 3);
    is_withheld(&one, KEYRING);
    is_withheld(&other, POLICY);
    assert_eq!(told(&one, "policy.loaded"), 2);
    fs::copy(other.path(KEYRING), one.path(KEYRING)).unwrap();
    is_ready(&one, "added1");
    fs::copy(one.path(POLICY), other.path(POLICY)).unwrap();
    is_ready(&other, "added2");
    assert_eq!((told(&one, "policy.loaded"), told(&one, "key.added")), (2, 3));
}

#[test]
fn a_key_that_is_removed_where_policies_are_behind_brings_no_policies_back() {
    let cluster = Cluster::shared();
    let [one, other] = two(&cluster);
    edit(&one, 800);
    is_withheld(&other, POLICY);
    other.cli(&["key", "remove", "leaked-1"]);
    until(|| told(&one, "key.removed") == 1);
    is_withheld(&one, KEYRING);
    is_withheld(&other, POLICY);
    assert_eq!(told(&one, "policy.loaded"), 2);
    assert_eq!(remove(&one, "leaked-1"), 200);
    is_ready(&one, "removed1");
}

#[test]
fn a_key_that_was_removed_does_not_come_back_with_the_policies_of_another_replica() {
    let cluster = Cluster::shared();
    let [one, other] = two(&cluster);
    assert_eq!(remove(&one, "leaked-1"), 200);
    is_withheld(&other, KEYRING);
    edit(&other, 800);
    until(|| told(&one, "policy.loaded") == 2);
    is_withheld(&other, KEYRING);
    assert_eq!((told(&one, "key.added"), told(&one, "key.removed")), (2, 1));
    // Nor when somebody adds one to the keys there; and whoever does so hears that it does not count.
    assert_eq!(add(&other, "extra-1"), 503);
    assert_eq!((told(&one, "key.added"), told(&one, "key.removed")), (2, 1));
    is_withheld(&one, POLICY);
    fs::copy(other.path(POLICY), one.path(POLICY)).unwrap();
    is_ready(&one, "leaked1");
    assert_eq!(remove(&other, "leaked-1"), 200);
    is_ready(&other, "leaked2");
    assert_eq!((told(&one, "key.added"), told(&one, "key.removed")), (2, 1));
}

#[test]
fn a_key_that_was_added_does_not_go_with_the_policies_of_another_replica() {
    let cluster = Cluster::shared();
    let [one, other] = two(&cluster);
    assert_eq!(add(&one, "extra-1"), 201);
    is_withheld(&other, KEYRING);
    edit(&other, 800);
    until(|| told(&one, "policy.loaded") == 2);
    is_withheld(&other, KEYRING);
    assert_eq!((told(&one, "key.added"), told(&one, "key.removed")), (3, 0));
    fs::copy(other.path(POLICY), one.path(POLICY)).unwrap();
    is_ready(&one, "extra1");
    assert_eq!(add(&other, "extra-1"), 201);
    is_ready(&other, "extra2");
    assert_eq!((told(&one, "key.added"), told(&one, "key.removed")), (3, 0));
}

#[test]
fn files_that_come_one_after_the_other_put_no_mixture_in_force() {
    let cluster = Cluster::shared();
    let fleet = fleet(&cluster.url(&cluster.database()), 2);
    let [one, other] = &fleet[..] else { unreachable!() };
    let routes = fs::read_to_string(one.path(ROUTES)).unwrap();
    write(&one.path(ROUTES), format!("{routes}\n"));
    edit(one, 800);
    let in_force = |replica: &Replica| replica.json("/v1/policies")["inForce"].to_string();
    let whole = || {
        let says = other.ready().1["failing"].to_string();
        says.contains(POLICY) && says.contains(ROUTES)
    };
    until(whole);
    let (loaded, digest) = (told(one, "policy.loaded"), in_force(one));
    fs::copy(one.path(POLICY), other.path(POLICY)).unwrap();
    // It has read the one that came, and waits for the other.
    until(|| {
        let says = other.ready().1["failing"].to_string();
        says.contains(ROUTES) && !says.contains(POLICY)
    });
    is_withheld(other, ROUTES);
    is_ready(one, "mixture1");
    assert_eq!((told(one, "policy.loaded"), in_force(one)), (loaded, digest));
    // Unless somebody says that it is meant so.
    assert_eq!(other.post("/v1/reload?part=keys", &json!({})).status, 200);
    assert_eq!(told(one, "policy.loaded"), loaded);
    assert_eq!(other.post("/v1/reload", &json!({})).status, 200);
    is_ready(other, "mixture2");
    is_withheld(one, ROUTES);
    assert_eq!(told(other, "policy.loaded"), loaded + 1);
    // And a replica that is behind, and whose files did not change, is not meant by that.
    assert_eq!(one.post("/v1/reload", &json!({})).status, 200);
    is_withheld(one, ROUTES);
    assert_eq!(told(other, "policy.loaded"), loaded + 1);
}
