//! `ai/…`, with a model gateway that listens in the test and speaks as OpenAI's does.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::conversation::Conversation;
use super::harness::{Daemon, write};
use super::receiver::{Answer, Received, Receiver};
use super::wire::Request;

/// Answers by the name of the model that is asked for.
fn answer(received: &Received) -> Answer {
    let asked = received.json();
    let refused = |status: u16, code: &str, words: &str| {
        Answer::Json(status, json!({"error": {"message": words, "code": code}}))
    };
    match asked["model"].as_str().unwrap_or_default() {
        "missing" => refused(404, "model_not_found", "The model `missing` does not exist"),
        "misnamed" => refused(400, "model_not_found", "no such model"),
        "picky" => refused(400, "invalid_value", "`input` must be\u{202e} a string"),
        "locked" => refused(401, "invalid_api_key", "Incorrect API key: sk-hush"),
        "busy" => refused(429, "rate_limited", "org-hush is over its limit"),
        "broken" => Answer::Status(500),
        "slow" => Answer::Silence,
        "odd" => Answer::Json(200, json!("not an object")),
        "large" => Answer::Json(200, json!({"data": "x".repeat(20_000)})),
        _ => Answer::Json(200, json!({"path": received.target, "asked": asked})),
    }
}

fn settings(gateway: &Receiver, more: &str) -> String {
    format!(
        "[ai]\nurl = '{}'\ntimeout = '700ms'\nanswer_bytes_max = '16KiB'\n{more}",
        gateway.url("/models/")
    )
}

#[test]
fn what_is_asked_goes_to_the_model_gateway_and_its_answer_comes_back() {
    let gateway = Receiver::start(|_, received| answer(received));
    let talk = Conversation::on(Daemon::with(&settings(&gateway, "api_key = 'sk-hush'\n")));
    for (method, path, params) in [
        ("ai/embeddings", "/models/v1/embeddings", json!({"model": "m", "input": ["a", "b"]})),
        (
            "ai/rerank",
            "/models/v1/rerank",
            json!({"model": "m", "query": "q", "documents": ["a"], "top_n": 1}),
        ),
        (
            "ai/chat",
            "/models/v1/chat/completions",
            json!({"model": "m", "messages": [{"role": "user", "content": "ü"}], "stream": false}),
        ),
    ] {
        let result = talk.result(method, params.clone());
        assert_eq!((&result["path"], &result["asked"]), (&json!(path), &params), "{method}");
    }
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "ai/chat", "params": {"model": "m"}}).to_string();
    let request = Request::new("POST", "/rpc").token(&talk.router).header("traceparent", trace).json(body);
    assert_eq!(talk.daemon.send(&request).json()["result"]["asked"]["model"], "m");
    let received = gateway.received();
    assert_eq!(received[0].header("authorization"), Some("Bearer sk-hush"));
    assert_eq!(received[0].header("content-type"), Some("application/json"));
    assert!(received[0].header("traceparent").is_none());
    let passed_on = received[3].header("traceparent").unwrap();
    assert!(passed_on.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && passed_on != trace);
    // The card says so, and the key is in nothing that is shown.
    let card = talk.daemon.send(&Request::new("GET", "/.well-known/agent-card.json")).json();
    assert!(card["methods"].as_array().unwrap().contains(&json!("ai/chat")));
    assert!(!talk.daemon.log().contains("sk-hush"));
    let answered = |method: &str| {
        talk.daemon.metric(&format!("handoffd_ai_requests_total{{method=\"{method}\",outcome=\"answered\"}}"))
    };
    assert_eq!((answered("ai/embeddings"), answered("ai/chat")), (Some(1.0), Some(2.0)));
    assert_eq!(talk.daemon.metric("handoffd_ai_request_seconds_count{method=\"ai/chat\"}"), Some(2.0));
}

#[test]
fn what_goes_wrong_there_has_a_code_of_its_own_here() {
    let gateway = Receiver::start(|_, received| answer(received));
    let talk = Conversation::on(Daemon::with(&settings(&gateway, "api_key = 'sk-hush'\n")));
    let check = |model: &str, code: i64, own: &str, says: &str| {
        let (found, error) = talk.error_as(&talk.router, "ai/chat", json!({"model": model}));
        assert_eq!((found, &error["data"]["codes"][0]), (code, &json!(own)), "{model}: {error}");
        assert!(error["message"].as_str().unwrap().contains(says), "{model}: {error}");
        assert!(!error.to_string().contains("hush"), "{error}");
    };
    check("missing", -32602, "AI_MODEL_NOT_FOUND", "The model `missing` does not exist");
    check("misnamed", -32602, "AI_MODEL_NOT_FOUND", "no such model");
    check("picky", -32602, "AI_REQUEST_REFUSED", "`input` must be\\u{202e} a string");
    check("slow", -32603, "AI_TIMEOUT", "in time");
    for model in ["locked", "busy", "broken", "odd", "large"] {
        check(model, -32603, "AI_UNAVAILABLE", "cannot be asked");
    }
    let (code, error) = talk.error_as(&talk.router, "ai/chat", json!({"model": "m", "stream": true}));
    assert_eq!((code, &error["data"]["findings"][0]["pointer"]), (-32004, &json!("/params/stream")));
    assert!(gateway.received().iter().all(|received| received.json()["stream"].is_null()));
    let counted = |outcome: &str| {
        talk.daemon.metric(&format!("handoffd_ai_requests_total{{method=\"ai/chat\",outcome=\"{outcome}\"}}"))
    };
    assert_eq!(
        (counted("model_not_found"), counted("timed_out"), counted("unavailable"), counted("unsupported")),
        (Some(2.0), Some(1.0), Some(5.0), Some(1.0))
    );
}

#[test]
fn a_gateway_that_is_gone_is_unavailable_and_one_that_is_not_configured_is_unsupported() {
    // Nobody listens there any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let talk = Conversation::on(Daemon::with(&format!("[ai]\nurl = 'http://{gone}'\n")));
    let (code, error) = talk.error_as(&talk.router, "ai/embeddings", json!({"model": "m"}));
    assert_eq!((code, &error["data"]["codes"][0]), (-32603, &json!("AI_UNAVAILABLE")));

    let talk = Conversation::new();
    for method in ["ai/embeddings", "ai/rerank", "ai/chat"] {
        let (code, error) = talk.error_as(&talk.router, method, json!({"model": "m"}));
        assert_eq!((code, error["message"].as_str()), (-32004, Some("no model gateway is configured")));
    }
    let card = talk.daemon.send(&Request::new("GET", "/.well-known/agent-card.json")).json();
    assert!(!card["methods"].as_array().unwrap().contains(&json!("ai/chat")));
}

#[test]
fn only_callers_of_the_roles_that_may_are_served() {
    let gateway = Receiver::start(|_, received| answer(received));
    let asks = |talk: &Conversation, token: &str| -> Json {
        let answer = talk.rpc_as(token, "ai/chat", json!({"model": "m"}));
        answer["error"]["data"]["codes"][0].clone()
    };
    let talk = Conversation::on(Daemon::with(&settings(&gateway, "")));
    let rita = talk.daemon.token("rita", "operator", None);
    let auditor = talk.daemon.token("eyes", "auditor", None);
    for token in [&talk.router, &talk.daemon.admin, &rita] {
        assert_eq!(asks(&talk, token), Json::Null);
    }
    for token in [&talk.sage, &auditor] {
        assert_eq!(asks(&talk, token), "AUTH_FORBIDDEN");
    }
    assert_eq!(gateway.received().len(), 3);

    let settings = settings(&gateway, "roles = ['agent']\n[a2a]\nanonymous = true\n");
    let talk = Conversation::on(Daemon::with(&settings));
    assert_eq!((asks(&talk, &talk.sage), asks(&talk, &talk.router)), (Json::Null, "AUTH_FORBIDDEN".into()));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ai/chat", "params": {"model": "m"}});
    let nobody = Request::new("POST", "/rpc").header("Host", "localhost").json(body.to_string());
    let nobody = talk.daemon.send(&nobody).json();
    assert_eq!(nobody["error"]["code"], -32004, "{nobody}");
    assert_eq!(gateway.received().len(), 4);
}

#[test]
fn the_key_can_be_in_a_file_that_nobody_else_reads() {
    let gateway = Receiver::start(|_, received| answer(received));
    let settings = settings(&gateway, "api_key_file = 'ai.key'\n");
    let daemon = Daemon::prepared(tempfile::tempdir().unwrap(), &settings, |workspace| {
        write(&workspace.join("ai.key"), "sk-filed\n");
        chmod(&workspace.join("ai.key"), 0o600);
    });
    let mut talk = Conversation::on(daemon);
    talk.result("ai/chat", json!({"model": "m"}));
    assert_eq!(gateway.received()[0].header("authorization"), Some("Bearer sk-filed"));

    talk.daemon.signal("TERM");
    assert!(talk.daemon.wait().success());
    chmod(&talk.daemon.path("ai.key"), 0o644);
    let refused = talk.daemon.cli(&["serve", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("can be read by others"), "{said}");
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
