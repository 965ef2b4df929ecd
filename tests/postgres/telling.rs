//! Webhooks of replicas: set at one, seen at another, told by one at a time, whoever is killed.

use serde_json::{Value as Json, json};

use crate::cluster::{Cluster, until};
use crate::receiver::{Received, Receiver};
use crate::replicas::{Replica, all_agree, fleet_with};
use crate::specs::plain;
use crate::wire::Request;

/// A whole life from where it stands on: it can be claimed, it was, and so on.
const WHOLE: [&str; 5] = ["submitted", "working", "working", "report", "completed"];

struct Agents {
    router: String,
    target: String,
    sage: String,
}

fn agents(fleet: &[Replica], spec: &Json) -> Agents {
    let target = spec["target"]["agentId"].as_str().unwrap().to_owned();
    let source = spec["source"]["agentId"].as_str().unwrap();
    let router = fleet[0].token(&json!({"name": "router", "role": "orchestrator", "agentId": source}));
    let sage = fleet[1].token(&json!({"name": "sage", "role": "agent", "agentId": target}));
    for (replica, token) in fleet.iter().flat_map(|one| [(one, &router), (one, &sage)]) {
        let ask = Request::new("GET", "/v1/handoffs").token(token);
        until(|| replica.connection().ask(&ask).is_some_and(|reply| reply.status != 401));
    }
    Agents { router, target, sage }
}

impl Agents {
    fn rpc(&self, replica: &Replica, method: &str, params: Json) -> Json {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let ask = Request::new("POST", "/rpc").token(&self.router).json(body.to_string());
        replica.connection().ask(&ask).unwrap().json()
    }

    fn submit(&self, replica: &Replica, spec: &Json) {
        let ask = Request::new("POST", "/v1/handoffs").token(&self.router).json(spec.to_string());
        let decided = replica.connection().ask(&ask).unwrap();
        assert_eq!(decided.status, 201, "{decided:?}");
    }

    /// Sets a config as soon as the replica knows the task.
    fn set(&self, replica: &Replica, spec: &Json, id: &str, url: &str) {
        until(|| {
            let config = json!({"id": id, "url": url, "token": "hush-token"});
            let params = json!({"taskId": spec["handoffId"], "pushNotificationConfig": config});
            self.rpc(replica, "tasks/pushNotificationConfig/set", params).get("result").is_some()
        });
    }

    fn delivery(&self, replica: &Replica, spec: &Json, id: &str) -> Json {
        let names = json!({"id": spec["handoffId"], "pushNotificationConfigId": id});
        let shown = self.rpc(replica, "tasks/pushNotificationConfig/get", names);
        shown.pointer("/result/metadata/delivery").cloned().unwrap_or_default()
    }

    /// The target reports the n-th step of its work.
    fn work(&self, replica: &Replica, spec: &Json, n: usize) {
        let hash = format!("sha256:{}", "0".repeat(64));
        let artifact = json!({"artifact_id": "report", "uri": "s3://reports/1", "version": 1, "hash": hash});
        let done = json!({"artifact_ids": ["report"], "verification": {"mechanical": "pass"}});
        let (kind, payload, category) = [
            ("task.claimed", json!({}), "working"),
            ("task.started", json!({}), "working"),
            ("artifact.ready", artifact, "working"),
            ("task.complete", done, "completed"),
        ][n]
            .clone();
        let handoff_id = spec["handoffId"].as_str().unwrap();
        let event = json!({
            "wire": "1.1", "wire_id": format!("wire_{}{n:04}", handoff_id.replace('_', "")), "type": kind,
            "ts": "2026-02-18T19:38:05Z", "sender": format!("agent:{}", self.target), "payload": payload,
            "state": {"category": category, "terminal": category == "completed"},
            "stream": {"stream_id": format!("task:{handoff_id}:attempt:1"), "stream_seq": n + 4,
                "context_id": spec["correlationId"], "correlation_id": spec["correlationId"]},
        });
        let target = format!("/v1/handoffs/{handoff_id}/events");
        let ask = Request::new("POST", &target).token(&self.sage).json(event.to_string());
        // A replica that was killed may have taken it.
        let reported = replica.connection().ask(&ask).unwrap();
        assert!(matches!(reported.status, 200 | 201), "{kind}: {reported:?}");
    }
}

/// What a notification is about: the state of the task, or the artifact.
fn told(received: &Received) -> String {
    let body = received.json();
    let word = body.pointer("/status/state").or(body.pointer("/artifact/artifactId"));
    word.unwrap().as_str().unwrap().to_owned()
}

fn all_told(receiver: &Receiver) -> Vec<String> {
    receiver.received().iter().map(told).collect()
}

/// The settings of replicas that tell webhooks on this machine, and soon in each other's place.
const LOCAL: &str = "[a2a]\npush_allow = ['127.0.0.0/8']\npush_timeout = '500ms'\n";

#[test]
fn a_webhook_is_told_everything_once_whichever_replica_it_was_set_at() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let fleet = fleet_with(&cluster.url(&database), 3, |replica| replica.set(LOCAL));
    let (spec, receiver) = (plain("told0001"), Receiver::willing());
    let agents = agents(&fleet, &spec);
    agents.submit(&fleet[0], &spec);
    agents.set(&fleet[1], &spec, "c1", &receiver.url("/hook"));
    let list = agents.rpc(&fleet[2], "tasks/pushNotificationConfig/list", json!({"id": spec["handoffId"]}));
    assert_eq!(list["result"].as_array().unwrap().len(), 1, "{list}");
    assert!(!list.to_string().contains("hush"), "{list}");
    until(|| receiver.received().len() == 1);
    for n in 0..4 {
        // Each step at another one.
        until(|| fleet[n % 3].head() == fleet.iter().map(Replica::head).max().unwrap());
        agents.work(&fleet[n % 3], &spec, n);
    }
    for replica in &fleet {
        until(|| agents.delivery(replica, &spec, "c1")["state"] == "done");
    }
    assert_eq!(all_told(&receiver), WHOLE);
    // Signed by the one that told, with a key that each of them shows.
    let signature = receiver.received()[0].header("handoffd-signature").unwrap().to_owned();
    assert_eq!(signature.split('.').count(), 3);
    // Deleted where it was not set.
    agents.set(&fleet[0], &spec, "c2", &receiver.url("/other"));
    let names = json!({"id": spec["handoffId"], "pushNotificationConfigId": "c2"});
    agents.rpc(&fleet[2], "tasks/pushNotificationConfig/delete", names);
    assert_eq!(agents.delivery(&fleet[1], &spec, "c2"), Json::Null);
    // What a client gave is in no ledger and in no log, and in the table only as long as it is needed.
    let events = all_agree(&fleet);
    assert!(!json!(events).to_string().contains("hush"));
    assert!(fleet.iter().all(|replica| !replica.log().contains("hush")));
    assert!(!cluster.psql(&database, "select string_agg(document, ' ') from handoffd_push").contains("hush"));
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(of("push.created"), of("push.removed"), "each is said to have ended once");
}

#[test]
fn when_the_replica_that_tells_is_killed_or_paused_another_goes_on() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let mut fleet = fleet_with(&cluster.url(&database), 3, |replica| replica.set(LOCAL));
    let agents = agents(&fleet, &plain("probe"));
    let tellers = |what: &str| cluster.psql(&database, &format!("select {what} from handoffd_push"));
    for (n, signal) in ["KILL", "STOP"].into_iter().enumerate() {
        let (spec, receiver) = (plain(&format!("gone{n:04}")), Receiver::willing());
        agents.submit(&fleet[0], &spec);
        agents.set(&fleet[n], &spec, "c1", &receiver.url("/hook"));
        until(|| receiver.received().len() == 1);
        let holder = tellers("max(holder) filter (where ended_at is null)");
        fleet[n].signal(signal);
        for step in 0..4 {
            agents.work(&fleet[2], &spec, step);
        }
        until(|| agents.delivery(&fleet[2], &spec, "c1")["state"] == "done");
        assert_ne!(tellers("max(holder) filter (where ended_at is not null)"), holder, "another one");
        if signal == "STOP" {
            fleet[n].signal("CONT");
            until(|| fleet[n].ready().0 == 200);
            assert_eq!(agents.delivery(&fleet[n], &spec, "c1")["state"], "done");
        } else {
            fleet[n].kill_and_restart();
        }
        // In order, and all of it; what was told in the last second before may have been told again.
        let mut heard = all_told(&receiver);
        if heard.len() > WHOLE.len() {
            assert_eq!(heard.remove(0), WHOLE[0]);
        }
        assert_eq!(heard, WHOLE, "{signal}");
        cluster.psql(&database, "delete from handoffd_push");
    }
    all_agree(&fleet);
}
