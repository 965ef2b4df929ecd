//! Bodies: of whom they are read, how much of them, and how many at once.

use std::io::{BufReader, Write as _};
use std::net::TcpStream;

use serde_json::json;

use super::harness::{Daemon, ROUTER, eventually, spec};
use super::signing::{KEY_ID, SECRET, from_now, signature, signed, with_headers};
use super::wire::{Reply, Request, connect, read_reply};

const MIB: usize = 1024 * 1024;

/// A daemon with a caller that signs.
fn with_signer(settings: &str) -> Daemon {
    let daemon = Daemon::with(settings);
    daemon.token("router-1", "orchestrator", Some(ROUTER));
    for key_id in [KEY_ID, "router-sign-2"] {
        let key = json!({"keyId": key_id, "owner": "router-1", "purpose": "request", "secret": SECRET});
        assert_eq!(daemon.post("/v1/keys", key).status, 201);
    }
    daemon
}

/// The head of a request whose body has so many bytes and is never sent.
fn announce(daemon: &Daemon, request: &Request, bytes: usize) -> TcpStream {
    let request = request.clone().header("Content-Length", &bytes.to_string());
    let mut stream = connect(daemon.address);
    stream.write_all(request.head().as_bytes()).unwrap();
    stream
}

fn answer(stream: TcpStream) -> Reply {
    read_reply(&mut BufReader::new(stream)).expect("an answer")
}

#[test]
fn no_body_is_read_of_whoever_could_not_have_signed_it() {
    let daemon = with_signer("[server]\nrequest_timeout = \"60s\"\n");
    let submit = Request::new("POST", "/v1/handoffs/batch").header("Content-Type", "application/json");
    let (now, proof) = (from_now(0), "0".repeat(64));
    let heads = [
        (submit.clone().header("Handoffd-Signature", "x"), "AUTH_REQUIRED"),
        (with_headers(submit.clone(), "nobody", "nonce-0001", &now, &proof), "AUTH_SIGNATURE_INVALID"),
        (with_headers(submit.clone(), KEY_ID, "short", &now, &proof), "AUTH_SIGNATURE_INVALID"),
        (with_headers(submit.clone(), KEY_ID, "nonce-0001", &now, "x"), "AUTH_SIGNATURE_INVALID"),
        (
            with_headers(submit.clone(), KEY_ID, "nonce-0001", &from_now(-180), &proof),
            "AUTH_TIMESTAMP_WINDOW_EXCEEDED",
        ),
        (submit.header("Authorization", "Bearer hd_adm_nobodys"), "AUTH_TOKEN_UNKNOWN"),
    ];
    for (head, code) in heads {
        let refused = answer(announce(&daemon, &head, 15 * MIB));
        assert_eq!((refused.status, refused.code().as_str()), (401, code), "{head:?}");
    }
    // Who could have is read as far as the endpoint reads.
    for (method, target, bytes) in
        [("GET", "/v1/state", 1), ("POST", "/v1/reload", 17), ("POST", "/v1/handoffs", 256 * 1024 + 1)]
    {
        let head = with_headers(Request::new(method, target), KEY_ID, "nonce-0001", &now, &proof);
        let refused = answer(announce(&daemon, &head, bytes));
        assert_eq!((refused.status, refused.code().as_str()), (413, "HTTP_BODY_TOO_LARGE"), "{target}");
    }
}

/// A signed batch that is sent but for its end.
fn unfinished(daemon: &Daemon, key_id: &str, n: usize) -> TcpStream {
    let batch = Request::new("POST", "/v1/handoffs/batch").header("Content-Type", "application/json");
    let nonce = format!("unfinished-{n}");
    let head = with_headers(batch, key_id, &nonce, &from_now(0), &"0".repeat(64));
    let mut stream = announce(daemon, &head, 16 * MIB);
    stream.write_all(&vec![b' '; 15 * MIB]).unwrap();
    stream
}

#[test]
fn what_strangers_send_has_room_of_its_own() {
    let daemon = with_signer("[server]\nrequest_timeout = \"60s\"\n");
    let submit = |key_id: &str, name: &str| {
        let request = Request::new("POST", "/v1/handoffs").json(spec(name).to_string());
        let (now, nonce) = (from_now(0), format!("nonce-{name}"));
        let proof = signature(key_id, &nonce, &now, &request);
        daemon.send(&with_headers(request, key_id, &nonce, &now, &proof))
    };
    let held: Vec<TcpStream> = (0..2).map(|n| unfinished(&daemon, KEY_ID, n)).collect();
    let refused = eventually("there is no room", || {
        let batch = Request::new("POST", "/v1/handoffs/batch").header("Content-Type", "application/json");
        let text = vec![b' '; 2 * MIB + 1];
        let reply =
            daemon.send(&with_headers(batch.body(text), KEY_ID, "nonce-full", &from_now(0), &"0".repeat(64)));
        (reply.code() != "AUTH_SIGNATURE_INVALID").then_some(reply)
    });
    assert_eq!((refused.status, refused.code().as_str()), (503, "HTTP_BUSY"), "{refused:?}");
    assert!(refused.header("retry-after").is_some());
    // Who has a token, another key, or no body at all, does not notice.
    assert_eq!(daemon.submit(&spec("beside_0001")).status, 201);
    assert_eq!(submit("router-sign-2", "beside_0002").status, 201);
    assert_eq!(daemon.send(&signed(Request::new("GET", "/v1/handoffs"), "nonce-0001")).status, 200);
    drop(held);
    let mut tried = 0;
    eventually("there is room again", || {
        tried += 1;
        let batch = Request::new("POST", "/v1/handoffs/batch").header("Content-Type", "application/json");
        let nonce = format!("again-{tried:04}");
        let text = format!("[{}]{}", spec("again_0001"), " ".repeat(8 * MIB));
        let reply = daemon.send(&signed(batch.body(text), &nonce));
        (reply.status == 200).then_some(())
    });
}
