//! Every status that every endpoint has, but for 202, which needs a route that has reached live.

use std::io::{BufReader, Write as _};

use serde_json::{Value as Json, json};

use super::harness::{Daemon, ROUTER, eventually, location, lost_spec, spec};
use super::wire::{Request, connect, read_reply, send};

#[test]
fn a_decision_has_the_status_of_its_kind() {
    let daemon = Daemon::new();
    let one = spec("allowed_0001");
    let allowed = daemon.submit(&one);
    assert_eq!(allowed.status, 201);
    assert_eq!(allowed.header("location"), Some(location(&one).as_str()));
    assert_eq!(allowed.json()["decision"], "allowed");
    assert_eq!(daemon.get(allowed.header("location").unwrap()).json()["handoffId"], one["handoffId"]);

    let again = daemon.submit(&one);
    assert_eq!((again.status, &again.json()["replayed"]), (200, &json!(true)));
    assert_eq!(again.json()["ledger"], allowed.json()["ledger"]);

    let denied = daemon.submit(&lost_spec("denied_0001"));
    assert_eq!((denied.status, denied.code().as_str()), (403, "A2A_ROUTE_UNKNOWN"));
    assert_eq!(denied.header("location"), None);

    let mut reused = spec("reused_0001");
    reused["handoffId"] = one["handoffId"].clone();
    let reused = daemon.submit(&reused);
    assert_eq!((reused.status, reused.code().as_str()), (409, "A2A_HANDOFF_REUSED"));

    let mut other = spec("other_0001");
    other["audit"]["idempotencyKey"] = one["audit"]["idempotencyKey"].clone();
    let other = daemon.submit(&other);
    assert_eq!((other.status, other.code().as_str()), (409, "A2A_IDEMPOTENCY_CONFLICT"));

    let mut shapeless = spec("shapeless_0001");
    shapeless["acceptance"]["doneWhen"] = json!([]);
    let shapeless = daemon.submit(&shapeless);
    assert_eq!((shapeless.status, shapeless.code().as_str()), (422, "A2A_TASKSPEC_INVALID"));

    let mut misfit = spec("misfit_0001");
    misfit["intent"]["inputSchemaRef"] = "agents/blockchain-operator/config/gone.schema.v1.json".into();
    let misfit = daemon.submit(&misfit);
    assert_eq!((misfit.status, misfit.code().as_str()), (422, "EXECUTION_SCHEMA_NOT_FOUND"));
}

#[test]
fn a_check_says_what_would_be_decided_and_writes_nothing() {
    let daemon = Daemon::new();
    let head = daemon.metric("handoffd_ledger_head").unwrap();
    let allowed = daemon.post("/v1/handoffs/check", spec("check_0001"));
    assert_eq!((allowed.status, &allowed.json()["decision"]), (200, &json!("allowed")));
    let denied = daemon.post("/v1/handoffs/check", lost_spec("check_0001"));
    assert_eq!((denied.status, &denied.json()["decision"]), (200, &json!("denied")));
    assert_eq!(daemon.metric("handoffd_ledger_head").unwrap(), head);
    assert_eq!(daemon.get(&location(&spec("check_0001"))).status, 404);
}

#[test]
fn every_answer_has_an_example_that_is_one() {
    let daemon = Daemon::new();
    let contract = daemon.contract();
    let mut lacking = Vec::new();
    for (answer, schema, example) in contract.answers() {
        // The document cannot hold itself.
        if answer == "openapi 200 application/json" {
            continue;
        }
        let status = answer.split(' ').nth(1).unwrap();
        // What is wrong with a JSON-RPC request has forms of its own; docs/a2a.md has them.
        if schema == "RpcAnswer" && status != "200" {
            continue;
        }
        if example.is_null() {
            lacking.push(answer);
            continue;
        }
        contract.validate(schema, example);
        if schema == "Problem" {
            assert_eq!(status, example["status"].to_string(), "{example}");
        }
    }
    assert!(lacking.is_empty(), "UPDATE=1 cargo test --test api makes examples for {lacking:?}");
    // A caller shows a token, or signs; what is signed is all four headers.
    let schemes = &contract.document["components"]["securitySchemes"];
    for (_, _, operation) in contract.operations() {
        for choice in operation["security"].as_array().into_iter().flatten() {
            let names: Vec<&String> = choice.as_object().unwrap().keys().collect();
            assert!(names.len() == 1 || names.len() == 4, "{names:?}");
            assert!(names.iter().all(|name| schemes[name.as_str()].is_object()), "{names:?}");
        }
    }
}

/// Every endpoint that reads answers with 200; the shapes are compared with the document on the way.
#[test]
fn everything_that_can_be_read_is_read() {
    let daemon = Daemon::new();
    let one = spec("read_0001");
    assert_eq!(daemon.submit(&one).status, 201);
    assert_eq!(daemon.submit(&lost_spec("read_0002")).status, 403);
    let place = location(&one);
    let mut read = Vec::new();
    for (template, method, operation) in daemon.contract().operations() {
        // A grant, and a handoff that waits for a person, are shown where there is one.
        let is_elsewhere = matches!(template, "/v1/authorizations/{ref}" | "/v1/approvals/{id}");
        let is_stream = template.ends_with("/stream") || template.starts_with("/stream");
        if method != "GET" || is_stream || is_elsewhere {
            continue;
        }
        let target = template.replace("/v1/handoffs/{id}", &place).replace("{sequence}", "1");
        let target = target.replace("{key}", "crypto-sage.execution-plane.v1");
        let reply = daemon.get(&target);
        assert_eq!(reply.status, 200, "{target}: {reply:?}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        read.push(operation["operationId"].as_str().unwrap());
    }
    assert_eq!(read.len(), 26, "{read:?}");

    let listed = daemon.get("/v1/handoffs?decision=denied&limit=1").json();
    assert_eq!(listed["handoffs"][0]["codes"], json!(["A2A_ROUTE_UNKNOWN"]));
    let page = daemon.get("/v1/audit?type=gate.decided&limit=1").json();
    let next = page["next"].as_str().unwrap();
    let second = daemon.get(&format!("/v1/audit?type=gate.decided&limit=1&cursor={next}")).json();
    assert!(second["entries"][0]["sequence"].as_u64() < page["entries"][0]["sequence"].as_u64());
    assert_eq!(daemon.get("/v1/audit/verify").json()["verified"], true);
    let shown = daemon.get(&place).json();
    let kinds: Vec<&Json> =
        shown["history"][0]["timeline"].as_array().unwrap().iter().map(|entry| &entry["type"]).collect();
    assert_eq!(kinds, ["task.created", "gate.decided", "task.available"]);
    let evidence = daemon.post("/v1/evidence/a2a?mode=lenient", json!({"protocol": "a2a"}));
    assert_eq!(evidence.status, 200);
}

#[test]
fn tokens_and_keys_are_made_listed_and_taken_away() {
    let daemon = Daemon::new();
    let token = daemon.token("router-1", "orchestrator", Some(ROUTER));
    let taken = daemon.post("/v1/tokens", json!({"name": "router-1", "role": "auditor"}));
    assert_eq!((taken.status, taken.code().as_str()), (409, "HTTP_CONFLICT"));
    assert_eq!(taken.json()["pointer"], "/name");
    // Everything that is wrong, each with its place; what is over before it began is no conflict.
    let wrong = json!({"name": "x", "role": "king", "colour": 1, "expiresAt": "2020-01-01T00:00:00Z"});
    let bad = daemon.post("/v1/tokens", wrong);
    assert_eq!((bad.status, bad.code().as_str()), (422, "ACT_INVALID"));
    let places: Vec<Json> =
        bad.json()["faults"].as_array().unwrap().iter().map(|one| one["pointer"].clone()).collect();
    assert_eq!(places, ["/colour", "/expiresAt", "/role"]);
    assert!(daemon.get("/v1/tokens").text().find(&token).is_none());
    let remove = |what: &str| daemon.send(&Request::new("DELETE", what).token(&daemon.admin));
    assert_eq!(remove("/v1/tokens/router-1").status, 200);
    assert_eq!(remove("/v1/tokens/router-1").status, 404);
    assert_eq!(remove("/v1/tokens/nobody").status, 404);

    let secret = "a secret of some length";
    let key = json!({"keyId": "user-main-2", "owner": "user:main", "secret": secret});
    assert_eq!(daemon.post("/v1/keys", &key).status, 201);
    assert_eq!(daemon.post("/v1/keys", &key).status, 409);
    assert_eq!(daemon.post("/v1/keys", json!({"keyId": "k", "owner": "o", "secret": "short"})).status, 400);
    assert!(daemon.get("/v1/keys").text().find(secret).is_none());
    assert_eq!(remove("/v1/keys/user-main-2").status, 200);
    assert_eq!(remove("/v1/keys/user-main-2").status, 404);
    let reloaded = daemon.send(&Request::new("POST", "/v1/reload").token(&daemon.admin));
    assert_eq!((reloaded.status, &reloaded.json()["changed"]), (200, &json!(false)));
}

#[test]
fn what_cannot_be_read_is_a_problem() {
    let daemon = Daemon::new();
    for (body, pointer) in [
        ("", ""),
        ("{", ""),
        ("{\"mode\": 1, \"mode\": 2}", "/mode"),
        ("{\"n\": 1e400}", "/n"),
        ("{\"s\": \"\\ud800\"}", "/s"),
    ] {
        let reply = daemon.post("/v1/handoffs", body);
        assert_eq!((reply.status, reply.code().as_str()), (400, "A2A_BODY_INVALID"), "{body}");
        assert_eq!(reply.json()["pointer"], pointer, "{body}");
    }
    let request = Request::new("POST", "/v1/handoffs").token(&daemon.admin).json([b'"', 0xff, b'"']);
    assert_eq!(daemon.send(&request).code(), "A2A_BODY_INVALID");
    for target in [
        "/v1/handoffs?colour=red",
        "/v1/handoffs?status=sideways",
        "/v1/handoffs?code=nope",
        "/v1/audit?code=policy_self_test",
        "/v1/audit?type=nope",
        "/v1/audit/stream?type=nope",
        "/v1/handoffs?limit=0",
        "/v1/handoffs?limit=1&limit=2",
        "/v1/handoffs?from=yesterday",
        "/v1/handoffs?agent=%ff",
        "/v1/handoffs?cursor=nonsense",
        "/v1/audit/stream?from=-1",
        "/readyz?verbose",
    ] {
        let reply = daemon.get(target);
        assert_eq!((reply.status, reply.code().as_str()), (400, "HTTP_QUERY_INVALID"), "{target}");
    }
    let far = Request::new("GET", "/v1/audit/stream").token(&daemon.admin);
    let reply = daemon.send(&far.header("Last-Event-ID", "yesterday"));
    assert_eq!((reply.status, reply.code().as_str()), (400, "HTTP_REQUEST_INVALID"));
}

#[test]
fn a_body_where_none_is_taken_is_refused() {
    let daemon = Daemon::new();
    let with = |method: &str, target: &str, body: &str| {
        daemon.send(&Request::new(method, target).token(&daemon.admin).json(body))
    };
    let token = daemon.token("once", "auditor", None);
    let long = format!("{{\"reason\": \"{}\"}}", "x".repeat(100));
    for (method, target) in
        [("POST", "/v1/reload"), ("POST", "/v1/console/links"), ("DELETE", "/v1/tokens/once")]
    {
        for body in ["{\"part\": 1}", "[]", "x", &long] {
            let reply = with(method, target, body);
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (413, "HTTP_BODY_TOO_LARGE"),
                "{target} {body}"
            );
            assert_eq!(reply.json()["detail"], "this endpoint takes no body");
        }
    }
    assert_eq!(daemon.get_as(&token, "/v1/state").status, 200, "nothing was revoked");
    assert_eq!(with("POST", "/v1/reload", "").status, 200);
    assert_eq!(with("POST", "/v1/reload", " {}\n").status, 200);
    // A list is for another endpoint.
    let list = daemon.post("/v1/handoffs/check", json!([spec("list_0001")]));
    assert!(list.json()["reasons"][0]["hint"].as_str().unwrap().contains("/v1/handoffs/batch"), "{list:?}");
}

#[test]
fn what_is_not_there_is_said_to_be_nowhere() {
    let daemon = Daemon::new();
    for target in [
        "/",
        "/v1",
        "/v1/handofs",
        "/v1/handoffs/",
        "/v1/handoffs/hs_nobody_knows",
        "/v1/handoffs/%ff",
        "/v1/handoffs/%00",
        "/v1/audit/0",
        "/v1/audit/x",
        "/v1/audit/99999",
        "/v1/handoffs/hs_nobody_knows/stream",
        "/v1/handoffs/hs_nobody_knows/evidence",
        "/../etc/passwd",
    ] {
        let reply = daemon.get(target);
        assert_eq!((reply.status, reply.code().as_str()), (404, "HTTP_NOT_FOUND"), "{target}");
    }
    for (path, hint) in [
        ("/v1/handofs", "did you mean /v1/handoffs?"),
        ("/redyz", "did you mean /readyz?"),
        ("/nope", "GET /openapi.json lists all there are"),
        ("/x", "GET /openapi.json lists all there are"),
        ("/v1/nothing-like-it", "GET /openapi.json lists all there are"),
    ] {
        assert_eq!(daemon.get(path).json()["hint"], hint, "{path}");
    }
    let denied = lost_spec("nowhere_0001");
    assert_eq!(daemon.submit(&denied).status, 403);
    assert_eq!(daemon.get(&format!("{}/evidence", location(&denied))).status, 404);

    for (method, target, allow) in [
        ("DELETE", "/v1/handoffs", "POST, GET"),
        ("PUT", "/v1/handoffs/hs_nobody_knows", "GET"),
        ("GET", "/v1/handoffs/check", "POST"),
        ("POST", "/healthz", "GET"),
        ("GET", "/v1/reload", "POST"),
        ("OPTIONS", "/v1/tokens/x", "DELETE"),
        ("BREW", "/v1/state", "GET"),
    ] {
        let reply = daemon.send(&Request::new(method, target));
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {target}");
        assert_eq!(reply.code(), "HTTP_METHOD_NOT_ALLOWED");
    }
}

#[test]
fn who_does_not_say_who_it_is_is_told_to() {
    let daemon = Daemon::new();
    for (template, method, operation) in daemon.contract().operations() {
        let target = template
            .replace("{sequence}", "1")
            .replace("{id}", "x")
            .replace("{token}", "x")
            .replace("{key}", "x");
        let request = Request::new(&method, &target);
        let needs_token = operation.get("security").is_some();
        let bare = daemon.send(&request);
        assert_eq!(bare.status == 401, needs_token, "{method} {target}: {bare:?}");
        if !needs_token {
            continue;
        }
        assert_eq!(bare.code(), "AUTH_REQUIRED");
        assert!(bare.header("www-authenticate").unwrap().starts_with("Bearer"));
        for authorization in
            ["Bearer nonsense", "Bearer ", "Basic YTpi", &format!("Bearer {}x", daemon.admin)]
        {
            let reply = daemon.send(&request.clone().header("Authorization", authorization));
            assert_eq!((reply.status, reply.code().as_str()), (401, "AUTH_TOKEN_UNKNOWN"), "{authorization}");
            let told = reply.text().contains("is not Bearer and a token");
            assert_eq!(
                told,
                ["Bearer ", "Basic YTpi"].contains(&authorization),
                "{authorization}: {reply:?}"
            );
        }
    }
    let whatever =
        Request::new("GET", "/v1/state").header("Authorization", &format!("bEARER  {}", daemon.admin));
    assert_eq!(daemon.send(&whatever).status, 200);
}

#[test]
fn bodies_have_a_type_and_a_size() {
    let daemon = Daemon::with("[server]\nrequest_timeout = \"500ms\"\n");
    let post = || Request::new("POST", "/v1/handoffs").token(&daemon.admin);
    let body = spec("typed_0001").to_string();
    for kind in ["text/plain", "application/xml", "application/json; charset=latin1", "application/jsonx", ""]
    {
        let reply = daemon.send(&post().header("Content-Type", kind).body(&body));
        assert_eq!((reply.status, reply.code().as_str()), (415, "HTTP_MEDIA_TYPE"), "{kind}");
    }
    assert_eq!(daemon.send(&post().body(&body)).status, 415);
    for encoding in ["gzip", "br", "identity, gzip"] {
        let reply = daemon.send(&post().header("Content-Encoding", encoding).json(&body));
        assert_eq!((reply.status, &reply.json()["pointer"]), (415, &json!("Content-Encoding")), "{encoding}");
    }
    let plain = post()
        .header("Content-Encoding", "identity")
        .header("Content-Type", "Application/JSON; charset=UTF-8");
    assert_eq!(daemon.send(&plain.body(&body)).status, 201);

    // Announced: refused before any of it is sent.
    let mut stream = connect(daemon.address);
    let head =
        post().header("Content-Type", "application/json").header("Content-Length", "1073741824").head();
    stream.write_all(head.as_bytes()).unwrap();
    let reply = read_reply(&mut BufReader::new(stream)).unwrap();
    assert_eq!((reply.status, reply.code().as_str()), (413, "HTTP_BODY_TOO_LARGE"));

    // Not announced: refused when it has become too much.
    let mut stream = connect(daemon.address);
    let head =
        post().header("Content-Type", "application/json").header("Transfer-Encoding", "chunked").head();
    stream.write_all(head.as_bytes()).unwrap();
    let mut chunk = b"10000\r\n".to_vec();
    chunk.extend([b' '; 0x10000]);
    chunk.extend(b"\r\n");
    for _ in 0..5 {
        let _ = stream.write_all(&chunk);
    }
    let reply = read_reply(&mut BufReader::new(stream)).unwrap();
    assert_eq!((reply.status, reply.code().as_str()), (413, "HTTP_BODY_TOO_LARGE"));

    // Announced, and never sent.
    let mut stream = connect(daemon.address);
    let head = post().header("Content-Type", "application/json").header("Content-Length", "10").head();
    stream.write_all(head.as_bytes()).unwrap();
    let reply = read_reply(&mut BufReader::new(stream)).unwrap();
    assert_eq!((reply.status, reply.code().as_str()), (408, "HTTP_TIMEOUT"));

    // Cut off: nobody is left to be told, and nothing is decided.
    let mut stream = connect(daemon.address);
    stream.write_all(head.as_bytes()).unwrap();
    drop(stream);
    assert_eq!(daemon.metric("handoffd_decisions_total{decision=\"allowed\"}"), Some(1.0));
}

#[test]
fn addresses_and_headers_have_a_size() {
    let daemon = Daemon::new();
    let long = format!("/v1/handoffs?agent={}", "a".repeat(5_000));
    let reply = daemon.get(&long);
    assert_eq!((reply.status, reply.code().as_str()), (414, "HTTP_URI_TOO_LONG"));
    // A little too much is told in our words; far too much, or too many, by the HTTP library in none.
    let heavy = |bytes: usize| Request::new("GET", "/healthz").header("X-Heavy", &"h".repeat(bytes));
    assert_eq!(daemon.send(&heavy(16 * 1024 - 200)).status, 200);
    for bytes in [16 * 1024, 28 * 1024] {
        let reply = daemon.send(&heavy(bytes));
        assert_eq!((reply.status, reply.code().as_str()), (431, "HTTP_HEADERS_TOO_LARGE"));
    }
    assert_eq!(send(daemon.address, &heavy(64 * 1024)).status, 431);
    let many =
        (0..200).fold(Request::new("GET", "/healthz"), |request, n| request.header(&format!("X-{n}"), "1"));
    assert_eq!(send(daemon.address, &many).status, 431);
}

#[test]
fn a_caller_that_asks_too_often_is_told_when_to_come_back() {
    let daemon = Daemon::with("[server]\nrequests_per_second = 1\nrequest_burst = 3\n");
    let replies: Vec<_> = (0..8).map(|_| daemon.get("/v1/state")).collect();
    let refused = replies.iter().find(|reply| reply.status == 429).expect("one is refused");
    assert_eq!(refused.code(), "HTTP_RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(replies.iter().take(3).all(|reply| reply.status == 200));
    // Nobody else's requests count.
    assert_eq!(daemon.get("/readyz").status, 200);
}

#[test]
fn when_too_many_decisions_wait_callers_are_told_to_come_back() {
    let daemon = Daemon::with("[server]\nwaiting_decisions_max = 1\n");
    // Many who come together and find nobody waiting are let in, however few places there are.
    let crowd = |n: usize| -> Json { (0..300).map(|m| spec(&format!("crowd_{n}_{m:04}"))).collect() };
    assert_eq!(daemon.post("/v1/handoffs/batch", crowd(0)).status, 200);
    let found = std::sync::atomic::AtomicBool::new(false);
    let busy = std::thread::scope(|scope| {
        let (daemon, found) = (&daemon, &found);
        scope.spawn(move || {
            let mut n = 1;
            while !found.load(std::sync::atomic::Ordering::Acquire) {
                daemon.post("/v1/handoffs/batch", crowd(n));
                n += 1;
            }
        });
        // While they are decided there is no place for anybody else.
        let busy = eventually("there is no place", || {
            let reply = daemon.submit(&spec("busy_0002"));
            (reply.status == 503).then_some(reply)
        });
        found.store(true, std::sync::atomic::Ordering::Release);
        busy
    });
    assert_eq!((busy.code().as_str(), busy.header("retry-after")), ("ENGINE_BUSY", Some("1")));
    let before = daemon.metric("handoffd_decisions_total{decision=\"allowed\"}").unwrap();
    // A flood: each is decided or told to come back, and once is enough for each.
    let statuses = std::thread::scope(|scope| {
        let one = |thread: usize| (0..10).map(move |n| (thread, n));
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let daemon = &daemon;
                let ask = move || {
                    one(thread)
                        .map(|(t, n)| daemon.submit(&spec(&format!("flood_{t}_{n:04}"))).status)
                        .collect::<Vec<_>>()
                };
                scope.spawn(ask)
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(statuses.iter().all(|status| matches!(status, 201 | 503)), "{statuses:?}");
    let allowed = statuses.iter().filter(|status| **status == 201).count();
    let after = daemon.metric("handoffd_decisions_total{decision=\"allowed\"}");
    assert_eq!(after, Some(before + allowed as f64));
    assert_eq!(daemon.submit(&spec("busy_0001")).status, 201);
}
