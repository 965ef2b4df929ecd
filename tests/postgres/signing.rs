//! Signed requests at several replicas: a nonce counts once among all of them.

use std::sync::{Arc, Barrier};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::cluster::{Cluster, until, url};
use crate::proxy::Proxy;
use crate::replicas::{Replica, fleet_with, write};
use crate::wire::{Reply, Request};

const SECRET: &str = "the secret of a caller that signs";

fn knows_the_key(replica: &Replica) {
    write(&replica.path("../request-secret"), SECRET);
    let secret = replica.path("../request-secret").display().to_string();
    let add = ["key", "add", "--owner", "router-1", "--id", "router-sign-1", "--purpose", "request"];
    replica.cli(&[&add[..], &["--secret-file", &secret]].concat());
}

/// A read, put together by hand as `docs/api.md` says.
fn signed(nonce: &str) -> Request {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (now, digest) = (crate::specs::now().to_milliseconds(), hex(&Sha256::digest(b"")));
    let text = format!(
        r#"{{"bodyDigest":"sha256:{digest}","keyId":"router-sign-1","method":"GET","nonce":"{nonce}","path":"/v1/handoffs","timestamp":"{now}"}}"#
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(text.as_bytes());
    Request::new("GET", "/v1/handoffs")
        .header("Handoffd-Key-Id", "router-sign-1")
        .header("Handoffd-Nonce", nonce)
        .header("Handoffd-Timestamp", &now)
        .header("Handoffd-Signature", &hex(&mac.finalize().into_bytes()))
}

fn orchestrator(fleet: &[Replica]) {
    let token =
        fleet[0].token(&json!({"name": "router-1", "role": "orchestrator", "agentId": "decision-router"}));
    let ask = Request::new("GET", "/v1/handoffs").token(&token);
    for replica in fleet {
        until(|| replica.connection().ask(&ask).is_some_and(|reply| reply.status == 200));
    }
}

#[test]
fn a_signed_request_is_taken_by_one_replica_and_by_no_other() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let fleet = fleet_with(&cluster.url(&database), 3, knows_the_key);
    orchestrator(&fleet);
    // One after the other.
    let first = signed("nonce-once");
    let answers: Vec<u16> = fleet.iter().map(|one| one.connection().ask(&first).unwrap().status).collect();
    assert_eq!(answers, [200, 401, 401]);
    // All at once.
    let rounds = crate::short_or_long(100, 5_000);
    let at_once = Arc::new(Barrier::new(fleet.len()));
    let requests: Arc<Vec<Request>> =
        Arc::new((0..rounds).map(|n| signed(&format!("nonce-{n:06}"))).collect());
    let askers: Vec<_> = fleet
        .iter()
        .map(|replica| {
            let (requests, at_once, mut connection) =
                (requests.clone(), at_once.clone(), replica.connection());
            std::thread::spawn(move || -> Vec<Reply> {
                let ask = |request: &Request| {
                    at_once.wait();
                    connection.ask(request).unwrap()
                };
                requests.iter().map(ask).collect()
            })
        })
        .collect();
    let answers: Vec<Vec<Reply>> = askers.into_iter().map(|asker| asker.join().unwrap()).collect();
    for n in 0..rounds {
        let (taken, refused): (Vec<&Reply>, Vec<&Reply>) =
            answers.iter().map(|answers| &answers[n]).partition(|reply| reply.status == 200);
        assert_eq!(taken.len(), 1, "round {n}: {refused:?}");
        assert!(refused.iter().all(|reply| reply.code() == "AUTH_NONCE_REUSED"), "{refused:?}");
    }
    // Neither the nonces nor who used them are in the table.
    let kept = cluster.psql(&database, "select string_agg(n::text, ' ') from handoffd_nonces n");
    assert!(!kept.contains("nonce-") && !kept.contains("router"), "{kept}");
}

#[test]
fn a_replica_that_cannot_ask_the_others_takes_no_signed_request() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let proxy = Proxy::to(cluster.port);
    let far = fleet_with(&url(proxy.port, &database), 1, knows_the_key);
    orchestrator(&far);
    assert_eq!(far[0].connection().ask(&signed("nonce-0001")).unwrap().status, 200);
    proxy.refuse(true);
    proxy.cut_all();
    let refused = far[0].connection().ask(&signed("nonce-0002")).unwrap();
    assert_eq!((refused.status, refused.code().as_str()), (503, "ENGINE_NOT_DURABLE"), "{refused:?}");
    proxy.refuse(false);
    let mut n = 3;
    until(|| {
        n += 1;
        far[0].connection().ask(&signed(&format!("nonce-{n:04}"))).unwrap().status == 200
    });
}
