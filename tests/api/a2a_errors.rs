//! What goes wrong over `/rpc`: the right code in the right form, in batches too, and in the trace that it belongs to.

use serde_json::json;

use super::conversation::{Conversation, Version};
use super::harness::spec;
use super::wire::Request;

#[test]
fn malformed_requests_of_every_kind_get_the_right_code() {
    let talk = Conversation::new();
    let post = |body: &str| talk.daemon.post_as(&talk.router, "/rpc", body);
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("nonsense", -32700),
        ("{\"a\": 1, \"a\": 2}", -32700),
        ("[1", -32700),
        ("[]", -32600),
        ("1", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc": "1.0", "id": 1, "method": "tasks/get"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": {}, "method": "tasks/get"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": 5}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": "x"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/got", "params": {}}"#, -32601),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/get"}"#, -32602),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": []}"#, -32602),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": 5}}"#, -32602),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}"#, -32602),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "hs_20260218_none"}}"#,
            -32001,
        ),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "ai/chat", "params": {}}"#, -32004),
    ] {
        let reply = post(body);
        assert_eq!(
            (reply.status, reply.json()["error"]["code"].as_i64()),
            (200, Some(code)),
            "{body}: {reply:?}"
        );
    }
    let get = r#"{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "hs_20260218_none"}}"#;
    for (version, code) in
        [("1.0", -32001), ("0.3", -32001), ("", -32001), ("2.0", -32009), ("latest", -32009)]
    {
        let request =
            Request::new("POST", "/rpc").token(&talk.router).json(get).header("A2A-Version", version);
        assert_eq!(talk.daemon.send(&request).json()["error"]["code"], code, "{version}");
    }
    let request = Request::new("POST", "/rpc?A2A-Version=9.9").token(&talk.router).json(get);
    let error = talk.daemon.send(&request).json()["error"].clone();
    assert_eq!(error["code"], -32009);
    let violation = &error["data"][1]["fieldViolations"][0];
    assert_eq!(violation["field"], "A2A-Version");
    assert_eq!(
        violation["description"],
        "A2A `9.9` is not spoken here; send `A2A-Version: 0.3` or `A2A-Version: 1.0`; without the header it is 0.3"
    );
    // What the door itself refuses is said in the same voice.
    let request =
        Request::new("POST", "/rpc/").token(&talk.router).header("Content-Type", "text/plain").body(get);
    let reply = talk.daemon.send(&request);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (200, &json!(-32005)));
    for request in
        [Request::new("POST", "/rpc").json(get), Request::new("POST", "/rpc").token("hd_orc_x").json(get)]
    {
        let reply = talk.daemon.send(&request);
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (401, &json!(-32603)));
        assert!(reply.header("www-authenticate").is_some());
        // In the form of the version that was asked for.
        assert!(reply.json()["error"]["data"]["codes"].is_array(), "{reply:?}");
        let data = talk.daemon.send(&request.header("A2A-Version", "1.0")).json()["error"]["data"].clone();
        assert_eq!(data[0]["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{data}");
        assert!(data[0]["metadata"]["hint"].is_string(), "{data}");
        // No BadRequest: clients would take that for wrong parameters.
        assert_eq!(data.as_array().unwrap().len(), 1, "{data}");
    }
    let large = format!("{{\"x\": \"{}\"}}", "y".repeat(1 << 20));
    let reply = post(&large);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (200, &json!(-32600)));
}

#[test]
fn a_batch_is_answered_in_order_and_notifications_are_not() {
    let talk = Conversation::new();
    let spec = spec("batch_0001");
    let get =
        json!({"jsonrpc": "2.0", "id": "b", "method": "tasks/get", "params": {"id": spec["handoffId"]}});
    let send = json!({"jsonrpc": "2.0", "method": "message/send",
        "params": {"message": Version::Old.handing("silent", &spec)}});
    let stream = json!({"jsonrpc": "2.0", "id": 3, "method": "message/stream",
        "params": {"message": Version::Old.text("s", "x")}});
    let batch = json!([send, get, 1, stream]);
    let reply = talk.daemon.post_as(&talk.router, "/rpc", &batch);
    let answers = reply.json();
    assert_eq!(answers.as_array().unwrap().len(), 3, "{answers}");
    assert_eq!((&answers[0]["id"], &answers[0]["result"]["id"]), (&json!("b"), &spec["handoffId"]));
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!((&answers[2]["id"], &answers[2]["error"]["code"]), (&json!(3), &json!(-32004)));
    let silent = talk.daemon.post_as(&talk.router, "/rpc", &send);
    assert_eq!((silent.status, silent.body.len()), (202, 0));
    // An answer has the id of its request, whatever that is; only one that cannot be read has none.
    for (id, expected) in [
        (json!(null), json!(null)),
        (json!(1.5), json!(1.5)),
        (json!(-7), json!(-7)),
        (json!(""), json!("")),
        (json!("a"), json!("a")),
        (json!(true), json!(null)),
        (json!([1]), json!(null)),
    ] {
        let asked =
            json!({"jsonrpc": "2.0", "id": id, "method": "tasks/get", "params": {"id": spec["handoffId"]}});
        assert_eq!(talk.daemon.post_as(&talk.router, "/rpc", &asked).json()["id"], expected, "{id}");
    }
    let silent = talk.daemon.post_as(&talk.router, "/rpc", json!([send]));
    assert_eq!((silent.status, silent.body.len()), (202, 0));
}

#[test]
fn traces_are_kept_with_the_task_and_told_with_errors() {
    let talk = Conversation::new();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send",
        "params": Version::Old.at_once(Version::Old.handing("traced", &spec("trace_0001")))});
    let request =
        Request::new("POST", "/rpc").token(&talk.router).json(body.to_string()).header("traceparent", parent);
    let reply = talk.daemon.send(&request);
    assert_eq!(reply.json()["result"]["metadata"]["traceparent"], parent);
    assert!(reply.header("traceparent").unwrap().contains("4bf92f3577b34da6a3ce929d0e0e4736"));
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "hs_20260218_none"}});
    let request =
        Request::new("POST", "/rpc").token(&talk.router).json(body.to_string()).header("traceparent", parent);
    assert_eq!(talk.daemon.send(&request).json()["error"]["data"]["traceparent"], parent);
}
