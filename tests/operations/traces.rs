//! Traces, told to a collector that listens in the test.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value as Json, json};

use crate::daemon::{CANONICAL, Daemon, until, workspace};

/// What a collector was sent: the head of the request, and its body.
type Sent = (String, Json);

/// A collector: its address, and what it hears.
fn collector() -> (String, Receiver<Sent>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                while let Some(sent) = take(stream.as_ref().unwrap()) {
                    sender.send(sent).unwrap();
                }
            });
        }
    });
    (address, heard)
}

/// Reads one request and answers it; nothing when the connection has ended.
fn take(mut stream: &TcpStream) -> Option<Sent> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
        });
        if body.len() >= length.unwrap() {
            let sent = (head.to_owned(), serde_json::from_str(body).unwrap());
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
            return Some(sent);
        }
    }
}

fn attribute(span: &Json, key: &str) -> Json {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|attribute| attribute["key"] == key);
    found.map_or(Json::Null, |attribute| attribute["value"].clone())
}

#[test]
fn a_submitted_handoff_is_told_to_the_collector_under_its_callers_span() {
    let (address, heard) = collector();
    let workspace = workspace();
    let endpoint = format!("http://{address}/");
    let daemon = Daemon::start(
        workspace.path(),
        &[
            ("HANDOFFD_OTLP_ENDPOINT", &endpoint),
            ("HANDOFFD_OTLP_HEADERS", "x-api-key=hush"),
            ("HANDOFFD_OTLP_SERVICE_NAME", "gateway-1"),
        ],
    );
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    // Not sampled: not told.
    let unsampled = format!("00-{}-b7ad6b7169203331-00", "1".repeat(32));
    assert_eq!(daemon.submit("{}", Some(&unsampled)).0, 422);
    let (status, decision) = daemon.submit(CANONICAL, Some(&format!("00-{TRACE}-b7ad6b7169203331-01")));
    assert_eq!(status, 201);
    daemon.stop();

    let (head, body) = heard.recv().unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("x-api-key: hush"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
    let resource = &body["resourceSpans"][0];
    assert_eq!(attribute(&resource["resource"], "service.name")["stringValue"], "gateway-1");
    let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<_> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["submitHandoff", "read", "judge", "commit", "answer"]);
    let root = &spans[0];
    assert_eq!((&root["kind"], &root["parentSpanId"]), (&2.into(), &"b7ad6b7169203331".into()));
    assert_eq!(attribute(root, "http.response.status_code")["intValue"], "201");
    assert_eq!(attribute(root, "handoffd.decision")["stringValue"], "allowed");
    assert_eq!(attribute(root, "handoffd.handoff_id")["stringValue"], decision["handoffId"]);
    let time = |span: &Json, name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    for span in spans {
        assert_eq!(span["traceId"], TRACE);
        assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
        assert!(time(span, "startTimeUnixNano") >= time(root, "startTimeUnixNano"));
        assert!(time(span, "endTimeUnixNano") <= time(root, "endTimeUnixNano"));
        if span["name"] != "submitHandoff" {
            assert_eq!(span["parentSpanId"], root["spanId"]);
        }
    }
    assert!(heard.try_recv().is_err(), "the trace that is not sampled was told");
}

#[test]
fn a_collector_that_is_gone_costs_spans_and_nothing_else() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let workspace = workspace();
    let daemon = Daemon::start(workspace.path(), &[("HANDOFFD_OTLP_ENDPOINT", &format!("http://{gone}"))]);
    assert_eq!(daemon.submit_as("hs_traced_0001"), 201);
    until(|| daemon.get("/metrics").1.contains("\nhandoffd_spans_dropped_total 1\n"));
    assert_eq!(daemon.submit_as("hs_traced_0002"), 201);
    daemon.stop();
}

#[test]
fn what_the_gateway_sends_out_is_told_to_the_collector_in_the_trace_that_it_belongs_to() {
    let (address, heard) = collector();
    // Both answer everybody with an empty object.
    let ((webhook, told), (models, asked)) = (collector(), collector());
    let workspace = workspace();
    let (endpoint, models) = (format!("http://{address}"), format!("http://{models}"));
    let daemon = Daemon::start(
        workspace.path(),
        &[
            ("HANDOFFD_OTLP_ENDPOINT", &endpoint),
            ("HANDOFFD_A2A_PUSH_ALLOW", "127.0.0.0/8"),
            ("HANDOFFD_AI_URL", &models),
        ],
    );
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let trace = format!("00-{TRACE}-b7ad6b7169203331-01");
    let spec: Json = serde_json::from_str(CANONICAL).unwrap();
    let message = json!({"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "data", "data": spec}]});
    let configuration =
        json!({"blocking": false, "pushNotificationConfig": {"url": format!("http://{webhook}/")}});
    let params = json!({"message": message, "configuration": configuration});
    let send = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params});
    let (_, answer) = daemon.post("/rpc", &send.to_string(), Some(&trace));
    assert_eq!(answer["result"]["status"]["state"], "submitted", "{answer}");
    let chat = json!({"jsonrpc": "2.0", "id": 2, "method": "ai/chat", "params": {"model": "m"}});
    assert_eq!(daemon.post("/rpc", &chat.to_string(), Some(&trace)).1["result"], json!({}));
    // The task began, and can be claimed.
    let sent = [told.recv().unwrap(), told.recv().unwrap(), asked.recv().unwrap()];
    until(|| daemon.get("/metrics").1.contains("handoffd_push_attempts_total{outcome=\"delivered\"} 2"));
    daemon.stop();

    let mut spans: Vec<Json> = Vec::new();
    while spans.iter().filter(|span| span["kind"] == 3).count() < 3 {
        let (_, body) = heard.recv().unwrap();
        spans.extend(body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    }
    let client: Vec<&Json> = spans.iter().filter(|span| span["kind"] == 3).collect();
    let mut names: Vec<&str> = client.iter().map(|span| span["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ai", "push", "push"]);
    for span in client {
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!(TRACE), &json!("b7ad6b7169203331")));
        // The span that the other side was told of.
        let id = span["spanId"].as_str().unwrap();
        assert!(
            sent.iter().any(|(head, _)| head.contains(&format!("traceparent: 00-{TRACE}-{id}-01"))),
            "{id}"
        );
    }
}

#[test]
fn what_is_asked_over_json_rpc_and_what_is_streamed_are_told_to_the_collector() {
    let (address, heard) = collector();
    let workspace = workspace();
    let endpoint = format!("http://{address}");
    let daemon = Daemon::start(workspace.path(), &[("HANDOFFD_OTLP_ENDPOINT", &endpoint)]);
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let trace = format!("00-{TRACE}-b7ad6b7169203331-01");
    let spec: Json = serde_json::from_str(CANONICAL).unwrap();
    let id = spec["handoffId"].as_str().unwrap();
    let message = json!({"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "data", "data": spec}]});
    for (method, params, code) in [
        ("message/send", json!({"message": message, "configuration": {"blocking": false}}), None),
        ("tasks/cancel", json!({"id": id}), None),
        ("tasks/cancel", json!({"id": id}), Some(-32002)),
    ] {
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (_, answer) = daemon.post("/rpc", &asked.to_string(), Some(&trace));
        assert_eq!(answer["error"]["code"].as_i64(), code, "{answer}");
    }
    // It has ended, so the stream does.
    let (status, text) = daemon.get_traced(&format!("/stream/{id}"), Some(&trace));
    assert!(status == 200 && text.contains("event: final"), "{text}");
    // Not sampled: not told.
    let unsampled = format!("00-{}-b7ad6b7169203331-00", "1".repeat(32));
    assert_eq!(daemon.get_traced(&format!("/stream/{id}"), Some(&unsampled)).0, 200);
    daemon.stop();

    let mut spans: Vec<Json> = Vec::new();
    while spans.len() < 4 {
        let (_, body) = heard.recv().unwrap();
        spans.extend(body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    }
    for span in &spans {
        assert_eq!(
            (&span["traceId"], &span["parentSpanId"], &span["kind"]),
            (&json!(TRACE), &json!("b7ad6b7169203331"), &json!(2))
        );
    }
    let rpc: Vec<(Json, Json)> = spans
        .iter()
        .filter(|span| span["name"] == "rpc")
        .map(|span| (attribute(span, "rpc.method"), attribute(span, "rpc.jsonrpc.error_code")))
        .collect();
    let told = |method: &str, code: &str| (json!({"stringValue": method}), json!({"intValue": code}));
    assert_eq!(rpc, [told("message/send", "0"), told("tasks/cancel", "0"), told("tasks/cancel", "-32002")]);
    assert_eq!(attribute(&spans[0], "handoffd.decision")["stringValue"], "allowed");
    assert_eq!(attribute(&spans[0], "handoffd.handoff_id")["stringValue"], id);
    let streams: Vec<&Json> = spans.iter().filter(|span| span["name"] == "stream").collect();
    assert_eq!(streams.len(), 1);
    assert_eq!(attribute(streams[0], "handoffd.task_id")["stringValue"], id);
}
