//! Callers that mean no good, and one that does, at the same time.

use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::harness::{Daemon, eventually, location, short_or_long, spec};
use super::wire::{PATIENCE, Request, connect, is_closed_within, read_reply, send};

/// A caller that behaves: what it asks for is decided. Says how long that took.
fn behaves(daemon: &Daemon, name: &str) -> Duration {
    let asked = Instant::now();
    assert_eq!(daemon.submit(&spec(name)).status, 201, "{name}");
    asked.elapsed()
}

/// What 99 of 100 waited at most, in milliseconds.
fn p99_ms(mut waited: Vec<Duration>) -> f64 {
    waited.sort_unstable();
    waited.get(waited.len() * 99 / 100).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

/// A daemon that gives nobody more time than this.
fn hasty(timeout: &str) -> Daemon {
    Daemon::with(&format!(
        "[server]\nheader_timeout = \"{timeout}\"\nrequest_timeout = \"{timeout}\"\nconnections_max = 2000\n"
    ))
}

#[test]
fn callers_that_dawdle_are_cut_off_and_others_are_served_meanwhile() {
    let count = short_or_long(200, 1_000);
    // The first must not be cut off before the last are connected.
    let daemon = hasty(if count > 200 { "10s" } else { "1500ms" });
    let quiet: Vec<Duration> =
        (0..short_or_long(20, 500)).map(|n| behaves(&daemon, &format!("quiet_{n:04}"))).collect();
    let head = format!("POST /v1/handoffs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n", daemon.admin);
    let body = format!("{head}Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n");
    // Headers, a body, the first word of HTTP/2, and nothing at all: each a byte at a time, or not even that.
    let drips: [&[u8]; 4] = [head.as_bytes(), body.as_bytes(), b"PRI * HTTP/2.0", b""];
    let mut connections: Vec<(TcpStream, usize, usize)> =
        (0..count).map(|n| (connect(daemon.address), n % drips.len(), 0)).collect();
    for (stream, kind, _) in &mut connections {
        if *kind == 1 {
            stream.write_all(drips[1]).unwrap();
        }
    }
    eventually("all are connected", || {
        (daemon.metric("handoffd_connections")? >= count as f64).then_some(())
    });
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut meanwhile = Vec::new();
            let began = Instant::now();
            while !over.load(Ordering::Acquire) && began.elapsed() < PATIENCE {
                meanwhile.push(behaves(&daemon, &format!("meanwhile_{:04}", meanwhile.len())));
            }
            assert!(meanwhile.len() > 3, "it was served {} times", meanwhile.len());
            // For whoever reads the output; how fast this machine is, no test can say.
            let (served, before, then) = (meanwhile.len(), p99_ms(quiet), p99_ms(meanwhile));
            eprintln!("p99 {before:.1} ms quiet, {then:.1} ms beside {count} that dawdle ({served} served)");
        });
        for _ in 0..4 {
            for (stream, kind, sent) in &mut connections {
                let next =
                    drips[*kind].get(*sent).copied().filter(|_| *kind != 1).or((*kind == 1).then_some(b' '));
                // One that was cut off already takes nothing more.
                if let Some(byte) = next {
                    let _ = stream.write_all(&[byte]);
                }
                *sent += 1;
            }
            // How slow they are is what this is about: there is nothing to wait for but time.
            std::thread::sleep(Duration::from_millis(500));
        }
        for (stream, kind, _) in &mut connections {
            assert!(is_closed_within(stream, PATIENCE), "drip {kind}");
        }
        over.store(true, Ordering::Release);
    });
    drop(connections);
    eventually("their places are free", || (daemon.metric("handoffd_connections")? < 5.0).then_some(()));
    assert_eq!(daemon.get("/readyz").status, 200);
}

#[test]
fn an_idle_connection_is_closed_and_a_used_one_is_kept() {
    let daemon = hasty("1500ms");
    let mut stream = connect(daemon.address);
    for _ in 0..3 {
        stream.write_all(&Request::new("GET", "/healthz").bytes()).unwrap();
        assert_eq!(read_reply(&mut BufReader::new(&stream)).unwrap().status, 200);
    }
    assert!(is_closed_within(&mut stream, PATIENCE));
}

/// With every place taken by somebody who says nothing, a caller waits until the first of them is cut off.
#[test]
fn places_that_nobody_uses_become_free() {
    let daemon = Daemon::with("[server]\nheader_timeout = \"1s\"\nconnections_max = 8\n");
    let silent: Vec<TcpStream> = (0..16).map(|_| connect(daemon.address)).collect();
    behaves(&daemon, "patient_0001");
    drop(silent);
}

#[test]
fn one_address_has_only_so_many_connections() {
    let daemon = Daemon::with("[server]\nconnections_per_client_max = 4\n");
    let mut open: Vec<TcpStream> = Vec::new();
    let ask = |stream: &mut TcpStream| {
        stream.write_all(&Request::new("GET", "/healthz").bytes()).ok()?;
        read_reply(&mut BufReader::new(stream))
    };
    // Those of the harness may still be closing.
    let mut kept = eventually("four are open", || {
        let mut streams: Vec<TcpStream> = (0..4).map(|_| connect(daemon.address)).collect();
        streams.iter_mut().all(|stream| ask(stream).is_some()).then_some(streams)
    });
    let mut fifth = connect(daemon.address);
    assert!(ask(&mut fifth).is_none(), "a fifth is closed at once");
    assert!(kept.iter_mut().all(|stream| ask(stream).is_some()), "the four are as they were");
    open.append(&mut kept);
    open.pop();
    eventually("a place becomes free", || ask(&mut connect(daemon.address)));
}

#[test]
fn a_body_without_end_is_not_read_to_its_end() {
    let daemon = Daemon::new();
    const GIB: usize = 1024 * 1024 * 1024;
    let before = daemon.resident_kib();
    for (target, announced) in [
        ("/v1/handoffs", true),
        ("/v1/handoffs", false),
        ("/v1/handoffs/batch", false),
        ("/v1/evidence/a2a", true),
    ] {
        let mut stream = connect(daemon.address);
        let request =
            Request::new("POST", target).token(&daemon.admin).header("Content-Type", "application/json");
        let request = if announced {
            request.header("Content-Length", &GIB.to_string())
        } else {
            request.header("Transfer-Encoding", "chunked")
        };
        stream.write_all(request.head().as_bytes()).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut sent = 0;
        let mut chunk = b"10000\r\n".to_vec();
        chunk.extend([b' '; 0x10000]);
        chunk.extend(b"\r\n");
        while sent < GIB && stream.write_all(&chunk).is_ok() {
            sent += chunk.len();
        }
        assert!(sent < 64 * 1024 * 1024, "{target}: {sent} bytes were taken");
    }
    let grown = daemon.resident_kib().saturating_sub(before);
    assert!(grown < 100 * 1024, "{grown} KiB");
    behaves(&daemon, "after_0001");
}

#[test]
fn documents_that_are_deep_or_wide_are_refused() {
    let daemon = Daemon::new();
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let deep_object = "{\"a\":".repeat(10_000) + "1" + &"}".repeat(10_000);
    let wide: String = (0..100_000).map(|n| format!("\"k{n}\":1,")).collect();
    let wide = format!("{{{}\"z\":1}}", wide);
    for target in ["/v1/handoffs", "/v1/handoffs/check", "/v1/handoffs/batch", "/v1/tokens", "/v1/keys"] {
        for body in [&deep, &deep_object] {
            let reply = daemon.post(target, body);
            assert_eq!((reply.status, reply.code().as_str()), (400, "A2A_BODY_INVALID"), "{target}");
        }
        let reply = daemon.post(target, &wide);
        assert!(matches!(reply.status, 400 | 413), "{target}: {}", reply.status);
    }
    let conversion = daemon.post("/v1/evidence/a2a", &deep_object);
    assert_eq!(conversion.status, 200);
    assert!(conversion.json()["error"].is_object());
    // As one TaskSpec of a batch it may be as large as this.
    let decided = daemon.post("/v1/handoffs/batch", format!("[{wide}]"));
    assert!(matches!(decided.status, 200 | 400), "{decided:?}");
    // More keys than any TaskSpec has.
    let full: String = (0..4_000).map(|n| format!("\"k{n}\":1,")).collect();
    let refused = daemon.post("/v1/handoffs", format!("{{{full}\"z\":1}}"));
    assert_eq!((refused.status, refused.code().as_str()), (422, "A2A_TASKSPEC_INVALID"));
    behaves(&daemon, "after_0001");
}

#[test]
fn a_head_that_can_be_read_in_two_ways_is_refused() {
    let daemon = Daemon::new();
    let ask = |head: &str, body: &str| {
        let mut stream = connect(daemon.address);
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        read_reply(&mut BufReader::new(&stream)).unwrap()
    };
    let bearer = format!("Authorization: Bearer {}", daemon.admin);
    let json = "Content-Type: application/json";
    let good = spec("head_0001").to_string();
    let rpc = r#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "x"}}"#;
    let refused = [
        ("GET /healthz HTTP/1.1".to_owned(), ""),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b".to_owned(), ""),
        ("GET /healthz HTTP/1.0\r\nHost: a\r\nHost: b".to_owned(), ""),
        (
            format!(
                "POST /v1/handoffs HTTP/1.1\r\nHost: a\r\n{bearer}\r\n{json}\r\nContent-Type: text/plain"
            ),
            &good,
        ),
        (format!("POST /v1/handoffs HTTP/1.1\r\nHost: a\r\n{bearer}\r\n{json}\r\n{json}"), &good),
        (format!("POST /v1/handoffs HTTP/1.1\r\nHost: a\r\n{bearer}\r\n{bearer}\r\n{json}"), &good),
        (format!("POST /rpc HTTP/1.1\r\n{bearer}\r\n{json}"), rpc),
        // Two who say who asks, also where nobody needs to.
        (format!("GET /v1/state HTTP/1.1\r\nHost: a\r\n{bearer}\r\nHandoffd-Key-Id: k"), ""),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nHandoffd-Signature: y".to_owned(), ""),
    ];
    for (head, body) in &refused {
        let reply = ask(head, body);
        assert_eq!((reply.status, reply.code().as_str()), (400, "HTTP_HEAD_INVALID"), "{head}: {reply:?}");
    }
    let half = ask("GET /healthz HTTP/1.1\r\nHost: a\r\nHandoffd-Key-Id: x", "");
    assert_eq!((half.status, half.code().as_str()), (401, "AUTH_REQUIRED"), "half a signature: {half:?}");
    // A length beside pieces says nothing, and whoever went by it is not asked again on this connection.
    let mut stream = connect(daemon.address);
    let twice = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    write!(stream, "POST /v1/reload HTTP/1.1\r\nHost: a\r\n{bearer}\r\n{twice}").unwrap();
    assert_eq!(read_reply(&mut BufReader::new(&stream)).unwrap().status, 200);
    assert!(is_closed_within(&mut stream, PATIENCE));
    let console = ask("GET /console HTTP/1.1", "");
    assert!(console.status == 400 && console.text().contains("Host"), "{console:?}");
    assert_eq!(ask("GET /healthz HTTP/1.0", "").status, 200, "before HTTP/1.1 there was no Host");
    let head = format!("POST /v1/handoffs HTTP/1.1\r\nHost: a\r\n{bearer}\r\n{json}");
    assert_eq!(ask(&head, &good).status, 201);
}

#[test]
fn what_is_no_http_is_no_trouble() {
    let daemon = Daemon::new();
    let mut noise = Vec::new();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..4_096 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.push(state as u8);
    }
    for bytes in [
        &noise[..],
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/handoffs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/handoffs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ] {
        let mut stream = connect(daemon.address);
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        assert!(is_closed_within(&mut stream, PATIENCE), "{bytes:?}");
        assert_eq!(daemon.get("/readyz").status, 200);
    }
    behaves(&daemon, "after_0001");
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
}

/// Says everything that a caller can say in a way that would spoil a log, and looks at the log.
fn say_terrible_things(daemon: &Daemon) {
    let evil = "\u{1b}[31mred\u{7}\nFAKE level=ERROR\r\n\u{202e}\u{0}";
    let mut spec = spec("evil_0001");
    spec["intent"]["summary"] = evil.into();
    spec["correlationId"] = evil.into();
    spec["source"]["sessionId"] = "hd_adm_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".into();
    daemon.submit(&spec);
    spec["handoffId"] = evil.into();
    spec["routing"]["routeKey"] = evil.into();
    daemon.submit(&spec);
    daemon.post("/v1/handoffs", json!({ evil: evil }));
    daemon.post("/v1/handoffs", format!("{{\"{evil}\""));
    daemon.post("/v1/tokens", json!({"name": evil, "role": evil, evil: evil}));
    daemon.post("/v1/tokens", json!({"name": "fine", "role": "orchestrator", "agentId": evil}));
    daemon.post("/v1/keys", json!({"keyId": evil, "owner": evil, "secret": "a secret nobody may see"}));
    daemon.post("/v1/keys", json!({"keyId": "fine", "owner": "fine", "secret": "a secret nobody may see"}));
    let encoded: String = evil.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for target in [
        format!("/v1/handoffs/{encoded}"),
        format!("/{encoded}"),
        format!("/v1/handoffs?{encoded}={encoded}"),
        format!("/v1/handoffs?agent={encoded}"),
        format!("/v1/tokens/{encoded}"),
        format!("/v1/audit/{encoded}"),
    ] {
        for method in ["GET", "DELETE"] {
            daemon.send(&Request::new(method, &target).token(&daemon.admin));
        }
    }
    let bare = Request::new("GET", "/v1/state");
    send(daemon.address, &bare.clone().header("Authorization", "Bearer \u{1b}[31m"));
    send(daemon.address, &bare.clone().header("traceparent", "\t\u{9b}31m").header("User-Agent", "\u{1b}x"));
    let signature = bare.header("Handoffd-Key-Id", "\u{9b}").header("Handoffd-Signature", "x");
    send(daemon.address, &signature);
}

fn look_at_the_log(daemon: &Daemon, is_json: bool) {
    let log = daemon.log();
    assert!(!log.is_empty());
    for line in log.lines() {
        assert!(!line.chars().any(|letter| letter.is_control() || letter == '\u{202e}'), "{line:?}");
        assert!(!line.starts_with("FAKE"), "{line}");
        if is_json {
            let record: Json = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(record["level"].is_string() && record["timestamp"].is_string());
        }
    }
    for secret in [daemon.admin.as_str(), "a secret nobody may see", "hd_adm_AAAA"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
    assert!(!log.contains("panicked"));
}

#[test]
fn nothing_that_callers_say_spoils_the_log() {
    for (format, is_json) in [("json", true), ("text", false)] {
        let daemon = Daemon::with(&format!("[log]\nlevel = \"trace\"\nformat = \"{format}\"\n"));
        say_terrible_things(&daemon);
        behaves(&daemon, "after_0001");
        assert_eq!(daemon.get(&location(&spec("after_0001"))).status, 200);
        look_at_the_log(&daemon, is_json);
    }
}
