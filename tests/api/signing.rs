//! Requests that are signed instead of carrying a token.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use time::format_description::well_known::Rfc3339;

use super::harness::{Daemon, ROUTER, spec, write};
use super::wire::{Reply, Request};

pub(crate) const SECRET: &str = "the secret of a caller that signs";

pub(crate) const KEY_ID: &str = "router-sign-1";

#[expect(clippy::disallowed_methods, reason = "a caller has a clock of its own")]
pub(crate) fn from_now(seconds: i64) -> String {
    let at = time::OffsetDateTime::now_utc() + time::Duration::seconds(seconds);
    at.format(&Rfc3339).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is signed, put together by hand: a canonical JSON object, its members in the order of their names.
pub(crate) fn signature(key_id: &str, nonce: &str, timestamp: &str, request: &Request) -> String {
    let digest = hex(&Sha256::digest(request.body.as_deref().unwrap_or_default()));
    let text = format!(
        r#"{{"bodyDigest":"sha256:{digest}","keyId":"{key_id}","method":"{}","nonce":"{nonce}","path":"{}","timestamp":"{timestamp}"}}"#,
        request.method, request.target
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(text.as_bytes());
    hex(&mac.finalize().into_bytes())
}

pub(crate) fn with_headers(
    request: Request,
    key_id: &str,
    nonce: &str,
    timestamp: &str,
    signature: &str,
) -> Request {
    request
        .header("Handoffd-Key-Id", key_id)
        .header("Handoffd-Nonce", nonce)
        .header("Handoffd-Timestamp", timestamp)
        .header("Handoffd-Signature", signature)
}

pub(crate) fn signed(request: Request, nonce: &str) -> Request {
    signed_at(request, KEY_ID, nonce, 0)
}

/// By a caller whose clock runs ahead by so many seconds.
fn signed_at(request: Request, key_id: &str, nonce: &str, ahead_s: i64) -> Request {
    let time = from_now(ahead_s);
    let signature = signature(key_id, nonce, &time, &request);
    with_headers(request, key_id, nonce, &time, &signature)
}

fn submit(spec: &Json) -> Request {
    Request::new("POST", "/v1/handoffs").json(spec.to_string())
}

#[test]
fn a_signed_request_speaks_for_the_token_that_its_key_belongs_to() {
    let daemon = Daemon::new();
    daemon.token("router-1", "orchestrator", Some(ROUTER));
    let key = json!({"keyId": "router-sign-1", "owner": "router-1", "purpose": "request", "secret": SECRET});
    assert_eq!(daemon.post("/v1/keys", key).status, 201);
    let refused = |reply: Reply, code: &str| assert_eq!((reply.status, reply.code().as_str()), (401, code));

    let good = signed(submit(&spec("signed_0001")), "nonce-0001");
    assert_eq!(daemon.send(&good).status, 201);
    // The very same bytes again; and its nonce with another request.
    refused(daemon.send(&good), "AUTH_NONCE_REUSED");
    refused(daemon.send(&signed(submit(&spec("signed_0002")), "nonce-0001")), "AUTH_NONCE_REUSED");

    // The query is part of what is signed.
    let read = signed(Request::new("GET", "/v1/handoffs?limit=1"), "nonce-0002");
    assert_eq!(daemon.send(&read).json()["handoffs"].as_array().unwrap().len(), 1);
    let mut elsewhere = signed(Request::new("GET", "/v1/handoffs?limit=1"), "nonce-0003");
    elsewhere.target = "/v1/handoffs?limit=2".to_owned();
    refused(daemon.send(&elsewhere), "AUTH_SIGNATURE_INVALID");
    let mut other_method = signed(Request::new("GET", "/v1/handoffs"), "nonce-0004");
    other_method.method = "POST".to_owned();
    refused(daemon.send(&other_method), "AUTH_SIGNATURE_INVALID");
    let mut other_body = signed(submit(&spec("signed_0003")), "nonce-0005");
    other_body.body = Some(spec("signed_0004").to_string().into_bytes());
    refused(daemon.send(&other_body), "AUTH_SIGNATURE_INVALID");

    let request = submit(&spec("signed_0005"));
    for (seconds, code) in [(-180, "AUTH_TIMESTAMP_WINDOW_EXCEEDED"), (180, "AUTH_TIMESTAMP_WINDOW_EXCEEDED")]
    {
        let at = from_now(seconds);
        let proof = signature("router-sign-1", "nonce-0006", &at, &request);
        refused(
            daemon.send(&with_headers(request.clone(), "router-sign-1", "nonce-0006", &at, &proof)),
            code,
        );
    }
    let now = from_now(0);
    let proof = signature("router-sign-1", "nonce-0007", &now, &request);
    for (key_id, nonce, at, proof, code) in [
        ("no-such-key", "nonce-0007", now.as_str(), proof.as_str(), "AUTH_SIGNATURE_INVALID"),
        ("router-sign-1", "nonce-0008", &now, &proof, "AUTH_SIGNATURE_INVALID"),
        ("router-sign-1", "nonce-0007", "yesterday", &proof, "AUTH_SIGNATURE_INVALID"),
        ("router-sign-1", "short", &now, &proof, "AUTH_SIGNATURE_INVALID"),
        ("router-sign-1", "nonce-0007", &now, "00", "AUTH_SIGNATURE_INVALID"),
    ] {
        refused(daemon.send(&with_headers(request.clone(), key_id, nonce, at, proof)), code);
    }
    // None of these used the nonce up.
    assert_eq!(daemon.send(&with_headers(request, "router-sign-1", "nonce-0007", &now, &proof)).status, 201);
    let half = submit(&spec("signed_0006")).header("Handoffd-Signature", "00");
    refused(daemon.send(&half), "AUTH_REQUIRED");
    let other_half = submit(&spec("signed_0006")).header("Handoffd-Key-Id", "router-sign-1");
    refused(daemon.send(&other_half), "AUTH_REQUIRED");

    // Role and agent are the token's; and when that goes, the key is good for nothing.
    let foreign = signed(Request::new("GET", "/v1/audit"), "nonce-0010");
    assert_eq!(daemon.send(&foreign).code(), "AUTH_FORBIDDEN");
    let mut theirs = spec("signed_0007");
    theirs["source"]["agentId"] = "somebody-else".into();
    assert_eq!(daemon.send(&signed(submit(&theirs), "nonce-0011")).code(), "A2A_SOURCE_MISMATCH");
    assert_eq!(daemon.send(&Request::new("DELETE", "/v1/tokens/router-1").token(&daemon.admin)).status, 200);
    refused(daemon.send(&signed(Request::new("GET", "/v1/handoffs"), "nonce-0012")), "AUTH_TOKEN_UNKNOWN");
}

#[test]
fn a_signed_act_counts_once_also_after_a_restart_and_for_a_clock_that_runs_ahead() {
    let mut daemon = Daemon::new();
    for name in ["lifter", "other"] {
        daemon.token(name, "operator", None);
        let key = json!({"keyId": name, "owner": name, "purpose": "request", "secret": SECRET});
        assert_eq!(daemon.post("/v1/keys", key).status, 201);
    }
    let freeze = |daemon: &Daemon| {
        assert_eq!(daemon.post("/v1/freeze", json!({"scope": "all", "reason": "an incident"})).status, 200);
    };
    let lift =
        || Request::new("DELETE", "/v1/freeze").json(json!({"scope": "all", "reason": "over"}).to_string());
    let is_forgotten = |reply: Reply| {
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (401, "AUTH_TIMESTAMP_WINDOW_EXCEEDED"),
            "{reply:?}"
        );
    };
    let ends: [fn(&mut Daemon); 2] = [
        |daemon| daemon.restart(200),
        |daemon| {
            daemon.signal("KILL");
            daemon.wait();
            daemon.restart_after_stop();
        },
    ];
    for (n, end) in ends.into_iter().enumerate() {
        freeze(&daemon);
        let lifted = signed_at(lift(), "lifter", &format!("lift-0000{n}"), 60 + 30 * n as i64);
        assert_eq!(daemon.send(&lifted).status, 200);
        freeze(&daemon);
        assert_eq!(daemon.send(&lifted).code(), "AUTH_NONCE_REUSED");
        end(&mut daemon);
        is_forgotten(daemon.send(&lifted));
        // A caller whose clock runs ahead by less is not shut out by one whose runs ahead by more.
        let theirs = signed_at(lift(), "other", &format!("lift-1000{n}"), 10 * n as i64);
        assert_eq!(daemon.send(&theirs).status, 200);
    }

    // Without the file nobody knows what was taken.
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    std::fs::remove_file(daemon.path("memory/signed-until.json")).unwrap();
    daemon.restart_after_stop();
    freeze(&daemon);
    is_forgotten(daemon.send(&signed_at(lift(), "other", "lift-20000", 60)));
    assert!(daemon.log().contains("signed-until.json"), "{}", daemon.log());
    let callers = |daemon: &Daemon| {
        let degraded = daemon.get("/readyz").json()["degraded"].clone();
        degraded.as_array().unwrap().iter().find(|one| one["what"] == "callers").cloned()
    };
    assert_eq!(callers(&daemon), None, "that is over in two minutes");

    // A clock that was ahead when there was none: that takes as long as the clock was ahead.
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let until = from_now(86_400);
    write(&daemon.path("memory/signed-until.json"), json!({"all": until, "keys": {}}).to_string());
    daemon.restart_after_stop();
    is_forgotten(daemon.send(&signed_at(lift(), "other", "lift-30000", 0)));
    let said = callers(&daemon).unwrap();
    assert!(said["why"].as_str().unwrap().contains(until.get(..16).unwrap()), "{said}");
    assert!(said["hint"].as_str().unwrap().contains("memory/signed-until.json"), "{said}");
}
