//! W3C trace context: taken in, stored, passed on.

use serde_json::Value as Json;

use super::harness::{Daemon, spec};
use super::wire::{Reply, Request};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn submit(daemon: &Daemon, name: &str, traceparent: &str) -> Reply {
    let request =
        Request::new("POST", "/v1/handoffs").token(&daemon.admin).header("traceparent", traceparent);
    daemon.send(&request.json(spec(name).to_string()))
}

/// What the ledger has of it.
fn stored(daemon: &Daemon, name: &str) -> Vec<Option<Json>> {
    let stream = format!("hs_20260218_{name}");
    let mut events = daemon.events();
    events.retain(|event| event["stream"]["stream_id"].as_str().unwrap().contains(&stream));
    assert_eq!(events.len(), 3);
    events.iter().map(|event| event.pointer("/extensions/handoffd.traceparent").cloned()).collect()
}

#[test]
fn a_trace_is_taken_in_stored_and_passed_on() {
    let daemon = Daemon::new();
    let incoming = format!("00-{TRACE}-b7ad6b7169203331-01");
    let reply = submit(&daemon, "trace_0001", &incoming);
    assert_eq!(reply.status, 201);
    let outgoing = reply.header("traceparent").unwrap();
    assert!(outgoing.starts_with(&format!("00-{TRACE}-")) && outgoing.ends_with("-01"), "{outgoing}");
    assert_ne!(outgoing, incoming);
    let again = submit(&daemon, "trace_0001", &incoming);
    assert_ne!(again.header("traceparent"), Some(outgoing), "a span for each request");
    assert_eq!(stored(&daemon, "trace_0001"), [Some(incoming.as_str().into()), None, None]);
    // Of the problems too.
    let problem = daemon.send(&Request::new("GET", "/v1/state").header("traceparent", &incoming));
    assert_eq!(problem.status, 401);
    assert!(problem.header("traceparent").unwrap().contains(TRACE));
    // And of each in a batch.
    let batch =
        Request::new("POST", "/v1/handoffs/batch").token(&daemon.admin).header("traceparent", &incoming);
    assert_eq!(daemon.send(&batch.json(serde_json::json!([spec("trace_0002")]).to_string())).status, 200);
    assert_eq!(stored(&daemon, "trace_0002")[0], Some(incoming.into()));
}

#[test]
fn what_is_no_trace_is_left_alone() {
    let daemon = Daemon::new();
    let zero = "0".repeat(32);
    for (n, bad) in [
        "nonsense".to_owned(),
        format!("00-{zero}-b7ad6b7169203331-01"),
        format!("00-{TRACE}-0000000000000000-01"),
        format!("ff-{TRACE}-b7ad6b7169203331-01"),
        format!("00-{TRACE}-b7ad6b7169203331-01-more"),
        format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
        "x".repeat(4_000),
    ]
    .iter()
    .enumerate()
    {
        let name = format!("bad_trace_{n:04}");
        let reply = submit(&daemon, &name, bad);
        assert_eq!((reply.status, reply.header("traceparent")), (201, None), "{bad}");
        assert_eq!(stored(&daemon, &name), [None, None, None], "{bad}");
    }
    assert_eq!(daemon.submit(&spec("no_trace_0001")).header("traceparent"), None);
}
