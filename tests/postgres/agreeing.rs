//! Rules and tokens that replicas share: which are in force, and which replica must not decide.

use std::fs;

use serde_json::json;

use crate::cluster::{Cluster, until};
use crate::replicas::{Connection, Replica, fleet, write};
use crate::specs::plain;
use crate::wire::Request;

pub(crate) const POLICY: &str = "policies/delegation/user-main-v1.json";

/// Waits until a replica is not ready, and says so of this file.
#[track_caller]
pub(crate) fn is_withheld(replica: &Replica, file: &str) {
    until(|| {
        let (status, ready) = replica.ready();
        status == 503 && ready["failing"].to_string().contains(file)
    });
    let refused = replica.post("/v1/handoffs", &plain("withheld"));
    assert_eq!((refused.status, refused.code().as_str()), (503, "ENGINE_RULES_DIFFER"), "{refused:?}");
    let checked = replica.post("/v1/handoffs/check", &plain("withheld"));
    assert_eq!(checked.status, 503, "{checked:?}");
}

#[track_caller]
pub(crate) fn is_ready(replica: &Replica, name: &str) {
    until(|| replica.ready().0 == 200);
    let decided = replica.post("/v1/handoffs", &plain(name));
    assert_eq!(decided.status, 201, "{decided:?}");
}

pub(crate) fn edit(replica: &Replica, lifetime: u64) {
    let path = replica.path(POLICY);
    let mut policy: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    policy["maxTtlSeconds"] = lifetime.into();
    write(&path, policy.to_string());
}

#[test]
fn a_replica_whose_files_differ_decides_nothing_and_names_the_file() {
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let mut fleet = fleet(&url, 1);
    // One that comes with another file does not put it in force.
    let mut other = Replica::lay_out(&url);
    edit(&other, 700);
    other.spawn();
    other.hear();
    is_withheld(&other, POLICY);
    // The log says it as well, to its end.
    until(|| other.log().contains(&format!("these files differ: {POLICY}")));
    is_ready(&fleet[0], "agree1");
    // Brought to the same contents, it is ready.
    fs::copy(fleet[0].path(POLICY), other.path(POLICY)).unwrap();
    is_ready(&other, "agree2");
    // An edit on a running replica is in force for all, and the others wait until they have it.
    edit(&fleet[0], 800);
    is_withheld(&other, POLICY);
    is_ready(&fleet[0], "agree3");
    edit(&other, 800);
    is_ready(&other, "agree4");
    // One that starts with other files and says that they are to count.
    other.kill();
    edit(&other, 900);
    other.spawn_with(&["--put-in-force"]);
    other.meet();
    is_ready(&other, "agree5");
    is_withheld(&fleet[0], POLICY);
    // The kill switch works all the same.
    let all = json!({"scope": "all", "reason": "a drill"});
    assert_eq!(fleet[0].post("/v1/freeze", &all).status, 200);
    until(|| other.post("/v1/handoffs", &plain("agree6")).code() == "POLICY_FROZEN");
    fleet.clear();
}

#[test]
fn a_key_with_another_secret_or_none_keeps_a_replica_from_deciding() {
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let first = fleet(&url, 1).remove(0);
    let mut other = Replica::lay_out(&url);
    other.cli(&["key", "remove", "user-main-test"]);
    other.spawn();
    other.hear();
    is_withheld(&other, "memory/keyring.json");
    // Under the same name, and another one.
    write(&other.path("../secret"), "another secret of the same principal");
    let secret = other.path("../secret").display().to_string();
    other.kill();
    other.cli(&["key", "add", "--owner", "user:main", "--id", "user-main-test", "--secret-file", &secret]);
    other.spawn();
    other.hear();
    is_withheld(&other, "memory/keyring.json has other secrets");
    fs::copy(first.path("memory/keyring.json"), other.path("memory/keyring.json")).unwrap();
    is_ready(&other, "keys1");
    is_ready(&first, "keys2");
}

#[test]
fn a_token_counts_everywhere_until_it_is_revoked_anywhere() {
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let fleet = fleet(&url, 3);
    let token = fleet[0].operator("rita");
    let ask = Request::new("GET", "/v1/approvals").token(&token);
    let status = |replica: &Replica| replica.connection().ask(&ask).map(|reply| reply.status);
    for replica in &fleet {
        until(|| status(replica) == Some(200));
    }
    // A name is given once.
    let again = fleet[1].post("/v1/tokens", &json!({"name": "rita", "role": "operator"}));
    assert_eq!(again.status, 409, "{again:?}");
    let revoke = Request::new("DELETE", "/v1/tokens/rita").token(&fleet[2].admin);
    assert_eq!(fleet[2].connection().ask(&revoke).unwrap().status, 200);
    for replica in &fleet {
        until(|| status(replica) == Some(401));
    }
    // The ledger has each once, and every replica's administrator.
    let export = fleet[0].get("/v1/audit/export").unwrap().text();
    for (kind, times) in [("token.created", 4), ("token.revoked", 1)] {
        let said = format!("\\\"type\\\":\\\"{kind}\\\"");
        assert_eq!(export.matches(&said).count(), times, "{kind}");
    }
    // Receipts of any replica can be checked with the keys that any other shows.
    let keys = |replica: &Replica| {
        let mut keys: Vec<String> = replica.json("/.well-known/jwks.json")["keys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| key["kid"].to_string())
            .collect();
        keys.sort();
        keys
    };
    until(|| fleet.iter().all(|replica| keys(replica).len() == 3));
    assert!(fleet.iter().all(|replica| keys(replica) == keys(&fleet[0])));
}

#[test]
fn a_token_that_another_replica_has_just_made_is_not_unknown() {
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let fleet = fleet(&url, 2);
    for n in 0..8 {
        let token = fleet[n % 2].operator(&format!("rita-{n}"));
        let ask = Request::new("GET", "/v1/approvals").token(&token);
        assert_eq!(fleet[(n + 1) % 2].connection().ask(&ask).unwrap().status, 200, "{n}");
    }
    // One that nobody made is unknown all the same, and many of them cost no more looks than one.
    let ask = Request::new("GET", "/v1/approvals").token("hfd_nobody");
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked = (0..20).map(|_| scope.spawn(|| fleet[1].connection().ask(&ask).unwrap().status));
        asked.collect::<Vec<_>>().into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses, [401; 20]);
}

#[test]
fn commands_beside_a_replica_read_the_shared_ledger_and_the_shared_roster() {
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let fleet = fleet(&url, 2);
    for replica in &fleet {
        // What the flag says to `serve`, the settings say to every command.
        let settings = fs::read_to_string(replica.path("handoffd.toml")).unwrap();
        write(&replica.path("handoffd.toml"), format!("{settings}[ledger]\nurl = \"{url}\"\n"));
    }
    is_ready(&fleet[0], "commands1");
    until(|| fleet[1].head() == fleet[0].head());
    let exported = fleet[1].cli(&["audit", "export"]);
    assert_eq!(exported, fleet[0].get("/v1/audit/export").unwrap().text());
    assert_eq!(
        fleet[1].cli(&["audit", "show", "1", "--json"]),
        fleet[0].cli(&["audit", "show", "1", "--json"])
    );
    fleet[1].cli(&["state", "verify"]);
    let verified = fleet[1].cli(&["audit", "verify", "--json"]);
    assert!(verified.contains("\"verified\": true") || verified.contains("\"verified\":true"), "{verified}");
    assert_eq!(fleet[1].cli(&["audit", "tail", "--from", "1", "--no-follow", "--json"]), exported);
    let token = fleet[1].cli(&["token", "new", "--name", "rita", "--role", "operator"]);
    let ask = Request::new("GET", "/v1/approvals").token(token.trim());
    for replica in &fleet {
        until(|| replica.connection().ask(&ask).is_some_and(|reply| reply.status == 200));
    }
}

/// Answers to the set that waits at a replica, as an operator there.
#[track_caller]
fn approve(replica: &Replica, operator: &str, digest: &str) {
    let body = json!({"digest": digest, "decision": "approve", "reason": "looked at it"}).to_string();
    let connection = || Connection::to(replica.address, operator);
    // A token that another replica made counts here soon.
    until(|| connection().ask(&Request::new("GET", "/v1/approvals").token(operator)).unwrap().status == 200);
    let answered = connection().post("/v1/policies/approval", &body).unwrap();
    assert_eq!(answered.status, 200, "{answered:?}");
}

/// What waits at a replica, once something does.
fn waiting(replica: &Replica) -> String {
    let pending = || replica.json("/v1/policies")["pending"]["digest"].as_str().map(str::to_owned);
    until(|| pending().is_some());
    pending().unwrap()
}

#[test]
fn a_changed_set_waits_at_its_replica_and_a_yes_there_is_for_all() {
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let mut fleet: Vec<Replica> = (0..2).map(|_| Replica::lay_out(&url)).collect();
    for replica in &mut fleet {
        write(&replica.path("handoffd.toml"), "[policy]\napproval = \"operator\"\n");
        replica.spawn();
        replica.meet();
    }
    let [one, other] = &mut fleet[..] else { unreachable!() };
    let rita = one.operator("rita");
    let told = |replica: &Replica, kind: &str| {
        let export = replica.get("/v1/audit/export").unwrap().text();
        export.matches(&format!("\\\"type\\\":\\\"policy.{kind}\\\"")).count()
    };
    let in_force = |replica: &Replica| replica.json("/v1/policies")["inForce"].as_str().unwrap().to_owned();
    let first = in_force(one);

    // Changed at one, it waits there, and both go on.
    edit(one, 800);
    let second = waiting(one);
    is_ready(one, "waits1");
    is_ready(other, "waits2");
    assert_eq!((in_force(one), in_force(other)), (first.clone(), first));
    assert!(other.json("/v1/policies")["pending"].is_null());
    // The same files at the other one: the same proposal.
    edit(other, 800);
    assert_eq!(waiting(other), second);
    assert_eq!((told(one, "proposed"), told(one, "loaded")), (1, 1));
    // The yes at one of them is enough where the files are the same.
    approve(one, &rita, &second);
    is_ready(one, "waits3");
    until(|| other.json("/v1/policies")["pending"].is_null());
    is_ready(other, "waits4");
    assert_eq!((told(one, "approved"), told(one, "loaded")), (1, 2));

    // A replica that is left behind decides nothing, and asks for nothing.
    edit(one, 900);
    let third = waiting(one);
    approve(one, &rita, &third);
    is_ready(one, "waits5");
    is_withheld(other, POLICY);
    // Nor does a key that is added there bring its old set back.
    let key = json!({"keyId": "user-main-2", "owner": "user:main", "algorithm": "ed25519",
        "publicKey": "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"});
    assert_eq!(other.post("/v1/keys", &key).status, 201);
    assert!(other.json("/v1/policies")["pending"].is_null());
    assert_eq!((in_force(other), told(one, "proposed")), (third.clone(), 2));
    assert_eq!(one.post("/v1/keys", &key).status, 201);
    is_ready(one, "waits6");
    fs::copy(one.path(POLICY), other.path(POLICY)).unwrap();
    is_ready(other, "waits7");
    assert_eq!(told(one, "loaded"), 3);

    // One that starts with other files and says that they are to count proposes them.
    other.kill();
    edit(other, 1000);
    other.spawn_with(&["--put-in-force"]);
    other.hear();
    is_withheld(other, POLICY);
    is_ready(one, "waits8");
    let fourth = waiting(other);
    approve(other, &rita, &fourth);
    is_ready(other, "waits9");
    is_withheld(one, POLICY);
    assert_eq!((in_force(one), told(other, "approved")), (fourth, 3));
}
