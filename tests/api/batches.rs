//! Many TaskSpecs in one request.

use serde_json::{Value as Json, json};

use super::harness::{Daemon, ROUTER, lost_spec, spec};

/// A batch takes as many turns as it has TaskSpecs, and one that no burst holds takes them all and owes the rest.
#[test]
fn a_batch_counts_as_what_it_carries() {
    let daemon = Daemon::with("[server]\nrequests_per_second = 1\nrequest_burst = 10\n");
    let router = daemon.token("router-1", "orchestrator", Some(ROUTER));
    let batch = |name: &str, count: usize| {
        let specs: Json = (0..count).map(|n| spec(&format!("{name}_{n:04}"))).collect();
        daemon.post_as(&router, "/v1/handoffs/batch", specs)
    };
    assert_eq!(batch("few", 8).status, 200);
    let refused = batch("more", 8);
    assert_eq!((refused.status, refused.code().as_str()), (429, "HTTP_RATE_LIMITED"));
    assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() > 1, "{refused:?}");
    // One who has been quiet is let in with more than that, and then waits for all of it.
    let quiet = daemon.token("router-2", "orchestrator", Some(ROUTER));
    let many: Json = (0..100).map(|n| spec(&format!("many_{n:04}"))).collect();
    assert_eq!(daemon.post_as(&quiet, "/v1/handoffs/batch", many).status, 200);
    let refused = daemon.get_as(&quiet, "/v1/handoffs");
    assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() > 60, "{refused:?}");
    // So does a batch over JSON-RPC.
    let third = daemon.token("router-3", "orchestrator", Some(ROUTER));
    let asks: Json = (0..12)
        .map(|n| json!({"jsonrpc": "2.0", "id": n, "method": "tasks/get", "params": {"id": "hs_none"}}))
        .collect();
    assert_eq!(daemon.post_as(&third, "/rpc", &asks).status, 200);
    assert_eq!(daemon.post_as(&third, "/rpc", &asks).status, 429);
}

#[test]
fn a_thousand_are_decided_in_their_order_and_made_durable_together() {
    let daemon = Daemon::new();
    let specs: Vec<Json> =
        (0..1_000)
            .map(|n| {
                if n % 10 == 7 { lost_spec(&format!("batch_{n:04}")) } else { spec(&format!("batch_{n:04}")) }
            })
            .collect();
    let before = daemon.segment().len();
    let reply = daemon.post("/v1/handoffs/batch", json!(specs));
    assert_eq!(reply.status, 200);
    let decisions = reply.json()["decisions"].as_array().unwrap().clone();
    assert_eq!(decisions.len(), 1_000);
    let mut last = 0;
    for (n, decision) in decisions.iter().enumerate() {
        assert_eq!(decision["handoffId"], specs[n]["handoffId"]);
        assert_eq!(decision["decision"], if n % 10 == 7 { "denied" } else { "allowed" });
        let sequence = decision["ledger"]["sequence"].as_u64().unwrap();
        assert!(sequence > last, "{n}");
        last = sequence;
    }
    let lines = daemon.segment();
    let commits = lines[before..].iter().filter(|line| line.starts_with("{\"commit\"")).count();
    assert_eq!(commits, 1);
    // Sent again, it is all there already; what was denied is tried again.
    let again = daemon.post("/v1/handoffs/batch", json!(specs)).json();
    let replayed =
        again["decisions"].as_array().unwrap().iter().filter(|decision| decision["replayed"] == true).count();
    assert_eq!(replayed, 900);
    assert_eq!(daemon.get("/v1/audit/verify").json()["verified"], true);
}

#[test]
fn a_batch_has_between_one_and_a_thousand_readable_task_specs() {
    let daemon = Daemon::new();
    let head = daemon.metric("handoffd_ledger_head");
    let many: Vec<Json> = (0..1_001).map(|n| spec(&format!("many_{n:04}"))).collect();
    let reply = daemon.post("/v1/handoffs/batch", json!(many));
    assert_eq!((reply.status, &reply.json()["pointer"]), (413, &json!("/1000")));
    for body in ["[]", "{}", "null", "[", "[{\"a\":1,\"a\":2}]"] {
        let reply = daemon.post("/v1/handoffs/batch", body);
        assert_eq!((reply.status, reply.code().as_str()), (400, "A2A_BODY_INVALID"), "{body}");
    }
    // One that is far too large spoils them all: nothing is decided by halves.
    let mut huge = spec("huge_0001");
    huge["intent"]["summary"] = "x".repeat(300 * 1024).into();
    let reply = daemon.post("/v1/handoffs/batch", json!([spec("beside_0001"), huge]));
    assert_eq!(reply.status, 400, "{reply:?}");
    assert!(reply.json()["pointer"].as_str().unwrap().starts_with("/1"));
    assert_eq!(daemon.metric("handoffd_ledger_head"), head);
    // One that is no TaskSpec is refused for itself.
    let mixed = daemon.post("/v1/handoffs/batch", json!([7, spec("mixed_0001"), {}])).json();
    let words: Vec<&Json> =
        mixed["decisions"].as_array().unwrap().iter().map(|decision| &decision["decision"]).collect();
    assert_eq!(words, ["denied", "allowed", "denied"]);
}

#[test]
fn duplicates_inside_a_batch_are_decided_once() {
    let daemon = Daemon::new();
    let one = spec("double_0001");
    let mut conflict = spec("double_0002");
    conflict["audit"]["idempotencyKey"] = one["audit"]["idempotencyKey"].clone();
    let decided = daemon.post("/v1/handoffs/batch", json!([one, one, conflict, one])).json();
    let found: Vec<(String, bool)> = decided["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|decision| (decision["decision"].as_str().unwrap().to_owned(), decision["replayed"] == true))
        .collect();
    let expected = [("allowed", false), ("allowed", true), ("denied", false), ("allowed", true)];
    assert_eq!(found, expected.map(|(word, replayed)| (word.to_owned(), replayed)));
    let first = &decided["decisions"][0]["ledger"];
    assert_eq!([&decided["decisions"][1]["ledger"], &decided["decisions"][3]["ledger"]], [first, first]);
    assert_eq!(daemon.metric("handoffd_decisions_total{decision=\"allowed\"}"), Some(1.0));
    assert_eq!(daemon.metric("handoffd_replays_total"), Some(2.0));
}
