//! Canaries: two hundred secrets, planted wherever somebody can put one, and looked for wherever nobody may find it.
//!
//! What a thing is decides where it may be seen. A **secret** (a token, a key, a header, a body that was not taken) is
//! seen by nobody after it was sent. The **work** (what a TaskSpec asks for) is kept beside the ledger for those who have
//! to do with it. **Words** (what agents report, what people give as reasons) are in the ledger, for those who may read
//! it. None of them is in the log, in metrics, or in an answer to somebody else.

use std::fs;
use std::sync::Mutex;

use serde_json::{Value as Json, json};

use super::console::{PAGES, Visitor};
use super::harness::{Daemon, ROUTER, location, spec};
use super::wire::Request;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Secret,
    Work,
    Words,
}

/// Everything that was planted, and what it is.
#[derive(Default)]
struct Canaries(Mutex<Vec<(Kind, String, String)>>);

impl Canaries {
    /// A new one, of letters and digits that stand nowhere else.
    fn plant(&self, kind: Kind, place: &str) -> String {
        let mut all = self.0.lock().unwrap();
        let text =
            format!("canary{:04}zq{:08x}", all.len(), 0x9e37_79b9_u32.wrapping_mul(all.len() as u32 + 1));
        all.push((kind, place.to_owned(), text.clone()));
        text
    }

    /// One that somebody else chose.
    fn is(&self, kind: Kind, place: &str, text: &str) {
        self.0.lock().unwrap().push((kind, place.to_owned(), text.to_owned()));
    }

    /// None of these kinds is in there.
    #[track_caller]
    fn absent(&self, kinds: &[Kind], surface: &str, text: &str) {
        for (kind, place, canary) in self.0.lock().unwrap().iter().filter(|(kind, ..)| kinds.contains(kind)) {
            assert!(!text.contains(canary), "{kind:?} of {place} is in {surface}: {text}");
        }
    }

    /// All that came of these words are in there: what is looked for can be found.
    #[track_caller]
    fn present(&self, kind: Kind, surface: &str, text: &str) {
        for (_, place, canary) in self.0.lock().unwrap().iter().filter(|(other, ..)| *other == kind) {
            assert!(text.contains(canary), "{place} is not in {surface}");
        }
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

const ALL: [Kind; 3] = [Kind::Secret, Kind::Work, Kind::Words];

/// A TaskSpec with a canary in every member that says what the work is.
fn loaded(canaries: &Canaries, name: &str) -> Json {
    let work = |place: &str| canaries.plant(Kind::Work, place);
    let mut spec = spec(name);
    spec["source"]["sessionId"] = work("source.sessionId").into();
    spec["intent"]["summary"] = work("intent.summary").into();
    spec["acceptance"]["doneWhen"] = json!([work("doneWhen"), work("doneWhen")]);
    spec["acceptance"]["expectedArtifacts"] = json!([work("expectedArtifacts")]);
    spec["rollback"]["trigger"] = work("rollback.trigger").into();
    spec["audit"]["traceId"] = work("audit.traceId").into();
    let memo: Json = (0..8)
        .map(|_| (work("a name in input"), json!(work("a value in input"))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    spec["intent"]["input"]["memo"] = memo;
    spec
}

fn report(spec: &Json, seq: u64, kind: &str, category: &str, payload: Json) -> Json {
    json!({
        "wire": "1.1", "wire_id": format!("wire_canary{seq:08}"), "type": kind,
        "ts": "2026-02-18T19:38:05Z", "sender": "agent:crypto-sage", "payload": payload,
        "state": {"category": category, "terminal": false},
        "stream": {"stream_id": format!("task:{}:attempt:1", spec["handoffId"].as_str().unwrap()),
            "stream_seq": seq, "context_id": spec["correlationId"], "correlation_id": spec["correlationId"]},
    })
}

/// Opens the input schema for a memo, so that canaries get through it.
fn house() -> Daemon {
    let settings = "[log]\nlevel = \"trace\"\n[sink]\npath = \"memory/sink.jsonl\"\n[a2a]\npush_allow = [\"127.0.0.0/8\"]\n";
    Daemon::prepared(tempfile::tempdir().unwrap(), settings, |workspace| {
        let path = workspace.join("agents/blockchain-operator/config/execution-plane.schema.v1.json");
        let text = fs::read_to_string(&path).unwrap();
        super::harness::write(
            &path,
            text.replace("\"additionalProperties\": false", "\"additionalProperties\": true"),
        );
    })
}

fn rpc(daemon: &Daemon, token: &str, method: &str, params: Json) -> Json {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    super::wire::send(daemon.address, &Request::new("POST", "/rpc").token(token).json(body)).json()
}

/// What is said over A2A, and where a client wants to be told; the tasks that came of it.
fn over_a2a(daemon: &Daemon, canaries: &Canaries, router: &str) -> Vec<String> {
    // Nobody listens there, so that what is told of failed deliveries is seen, too.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut tasks = Vec::new();
    for n in 0..4 {
        let work = |place: &str| canaries.plant(Kind::Work, place);
        let secret = |place: &str| canaries.plant(Kind::Secret, place);
        let data = json!({work("a name in a message"): work("a value in a message")});
        let message = json!({"kind": "message", "messageId": format!("m-canary-{n}"), "role": "user",
            "parts": [{"kind": "text", "text": work("a message")}, {"kind": "data", "data": data}]});
        let task = rpc(daemon, router, "message/send", json!({"message": message}));
        let id = task["result"]["id"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
        let config = json!({"taskId": id, "pushNotificationConfig": {"id": "canary",
            "url": format!("http://{silent}/{}", secret("the path of a webhook")),
            "token": secret("the token of a webhook"),
            "authentication": {"schemes": ["Bearer"], "credentials": secret("the credentials of a webhook")}}});
        let set = rpc(daemon, router, "tasks/pushNotificationConfig/set", config);
        assert!(set.get("result").is_some(), "{set}");
        tasks.push(id);
    }
    tasks
}

#[test]
fn two_hundred_canaries_are_found_nowhere() {
    let canaries = Canaries::default();
    let daemon = house();
    let plant = |kind: Kind, place: &str| canaries.plant(kind, place);

    // Tokens and keys.
    let mut tokens = Vec::new();
    for n in 0..20 {
        let role = ["orchestrator", "agent", "operator", "harness", "auditor"][n % 5];
        let agent = match role {
            "orchestrator" => Some(ROUTER.to_owned()),
            "agent" => Some("crypto-sage".to_owned()),
            _ => None,
        };
        let token = daemon.token(&format!("token-{n:02}"), role, agent.as_deref());
        canaries.is(Kind::Secret, role, &token);
        tokens.push(token);
    }
    canaries.is(Kind::Secret, "admin", &daemon.admin);
    let [router, sage, rita, _, auditor] = [0, 1, 2, 3, 4].map(|n| tokens[n].clone());
    for n in 0..20 {
        let purpose = ["envelope", "dispatch", "request"][n % 3];
        let mut key = json!({"keyId": format!("canary-key-{n:02}"), "owner": "user:main", "purpose": purpose,
            "secret": plant(Kind::Secret, "a shared secret")});
        if purpose == "request" {
            key["owner"] = "token-00".into();
        }
        let added = daemon.post("/v1/keys", key);
        canaries.absent(&[Kind::Secret], "the answer to a new key", &added.text());
    }

    // Headers and queries that nobody asked for.
    for n in 0..15 {
        let name = ["Cookie", "X-Api-Key", "User-Agent", "Referer", "X-Forwarded-For"][n % 5];
        let target = format!("/v1/routes?secret={}", plant(Kind::Secret, "a query"));
        let request = Request::new("GET", &target).header(name, &plant(Kind::Secret, name));
        // Without a token, with a wrong one, with one for something else.
        let wrong = plant(Kind::Secret, "a wrong token");
        let request = match n % 3 {
            0 => request,
            1 => request.token(&wrong),
            _ => request.token(&format!("hd_{wrong}")),
        };
        let reply = daemon.send(&request);
        canaries.absent(&[Kind::Secret], "the answer to a stranger", &reply.text());
    }

    // Work that is taken, and work that is not.
    let taken: Vec<Json> = (0..4).map(|n| loaded(&canaries, &format!("canary_{n:04}"))).collect();
    for spec in &taken {
        let reply = daemon.post_as(&router, "/v1/handoffs", spec);
        assert_eq!(reply.status, 201, "{reply:?}");
    }
    for n in 0..10 {
        let mut spec = spec(&format!("refused_{n:04}"));
        spec[plant(Kind::Secret, "an unknown member")] = plant(Kind::Secret, "its value").into();
        spec["mode"] = plant(Kind::Secret, "a mode that is none").into();
        assert_eq!(daemon.post_as(&router, "/v1/handoffs", spec).status, 422);
        let torn = format!("{{\"handoffId\": \"{}", plant(Kind::Secret, "a torn body"));
        assert_eq!(daemon.post_as(&router, "/v1/handoffs", torn).status, 400);
    }

    // What agents and people say.
    let words = |place: &str| plant(Kind::Words, place);
    let first = &taken[0];
    let artifact = json!({"artifact_id": words("artifact_id"), "uri": format!("s3://{}/1", words("uri")),
        "version": 1, "hash": format!("sha256:{}", "0".repeat(64))});
    let told = [
        ("task.claimed", "working", json!({})),
        ("task.started", "working", json!({})),
        ("artifact.ready", "working", artifact),
        ("task.blocked", "input_required", json!({"reason": words("task.blocked")})),
    ];
    for (seq, (kind, category, payload)) in (4..).zip(told) {
        let event = report(first, seq, kind, category, payload);
        let reply = daemon.post_as(&sage, &format!("{}/events", location(first)), event);
        assert_eq!(reply.status, 201, "{reply:?}");
    }
    let freeze = json!({"scope": "mode", "mode": "live", "reason": words("freeze.set")});
    assert_eq!(daemon.post_as(&rita, "/v1/freeze", &freeze).status, 200);
    let phase = json!({"phase": "gated-read", "reason": words("mention.changed")}).to_string();
    let moved = daemon.send(&Request::new("PUT", "/v1/mentions/phase").token(&rita).json(phase));
    assert_eq!(moved.status, 200);
    let cancelled = json!({
        "wire": "1.1", "wire_id": "wire_canary99999999", "type": "task.cancelled",
        "ts": "2026-02-18T19:38:05Z", "sender": format!("agent:{ROUTER}"),
        "payload": {"reason": words("task.cancelled")}, "state": {"category": "canceled", "terminal": true},
        "stream": {"stream_id": format!("task:{}:attempt:1", taken[1]["handoffId"].as_str().unwrap()),
            "stream_seq": 4, "context_id": taken[1]["correlationId"], "correlation_id": taken[1]["correlationId"]},
    });
    let reply = daemon.post_as(&router, &format!("{}/events", location(&taken[1])), cancelled);
    assert_eq!(reply.status, 201, "{reply:?}");
    let tasks = over_a2a(&daemon, &canaries, &router);
    assert!(canaries.count() >= 200, "{}", canaries.count());

    look_at_the_console(&daemon, &canaries, &taken, &rita);
    look_everywhere(&daemon, &canaries, (&taken, &tasks), &auditor);
}

/// An operator is shown work and words, and never a secret; whoever has no session is shown nothing.
fn look_at_the_console(daemon: &Daemon, canaries: &Canaries, taken: &[Json], operator: &str) {
    let visitor = Visitor::log_in(daemon, operator);
    canaries.is(Kind::Secret, "a session", visitor.cookie.split_once('=').unwrap().1);
    let own = taken.iter().map(|spec| format!("/console/handoffs/{}", spec["handoffId"].as_str().unwrap()));
    for page in PAGES.iter().map(|page| (*page).to_owned()).chain(own) {
        canaries.absent(&[Kind::Secret], &page, &visitor.get(&page).text());
        let closed = super::wire::send(daemon.address, &Request::new("GET", &page));
        canaries.absent(&ALL, &format!("{page} without a session"), &closed.text());
    }
}

fn look_everywhere(
    daemon: &Daemon,
    canaries: &Canaries,
    (taken, tasks): (&[Json], &[String]),
    auditor: &str,
) {
    // Somebody who has nothing to do with any of it.
    let stranger = daemon.token("stranger", "orchestrator", Some("stranger"));
    let mut places: Vec<String> = [
        "/v1/handoffs",
        "/v1/routes",
        "/v1/state",
        "/v1/policies",
        "/v1/tokens",
        "/v1/keys",
        "/v1/approvals",
        "/v1/authorizations",
        "/v1/audit",
        "/v1/audit/export",
        "/v1/mentions",
        "/v1/mentions/phase",
        "/v1/freeze",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/.well-known/jwks.json",
    ]
    .map(str::to_owned)
    .to_vec();
    for spec in taken {
        places.push(location(spec));
        places.push(format!("{}/evidence", location(spec)));
    }
    for place in &places {
        let request = Request::new("GET", place).token(&stranger);
        canaries.absent(
            &ALL,
            &format!("{place} for a stranger"),
            &super::wire::send(daemon.address, &request).text(),
        );
        let request = Request::new("GET", place);
        canaries.absent(
            &ALL,
            &format!("{place} for nobody"),
            &super::wire::send(daemon.address, &request).text(),
        );
    }
    for task in tasks {
        for (method, params) in [
            ("tasks/get", json!({"id": task})),
            ("tasks/pushNotificationConfig/list", json!({"id": task})),
            ("tasks/cancel", json!({"id": task})),
            ("tasks/list", json!({})),
        ] {
            let told = rpc(daemon, &stranger, method, params).to_string();
            canaries.absent(&ALL, &format!("{method} for a stranger"), &told);
        }
    }
    // Those who may read all that is recorded see words, but no work and no secret in lists and exports.
    let hidden = [Kind::Secret, Kind::Work];
    for place in [
        "/v1/handoffs",
        "/v1/audit",
        "/v1/audit/export",
        "/v1/state",
        "/v1/tokens",
        "/v1/keys",
        "/v1/policies",
    ] {
        for token in [auditor, &daemon.admin] {
            let reply = super::wire::send(daemon.address, &Request::new("GET", place).token(token));
            canaries.absent(&hidden, place, &reply.text());
        }
    }
    let export = daemon.cli_ok(&["audit", "export"]);
    assert!(export.lines().count() > 50);
    canaries.absent(&hidden, "audit export", &export);
    canaries.present(Kind::Words, "audit export", &export);
    canaries.absent(
        &hidden,
        "the state file",
        &fs::read_to_string(daemon.path("memory/orchestration-state.json")).unwrap(),
    );
    canaries.absent(
        &[Kind::Secret],
        "memory/tokens.json",
        &fs::read_to_string(daemon.path("memory/tokens.json")).unwrap(),
    );
    let sink = super::harness::eventually("the sink has lines", || {
        fs::read_to_string(daemon.path("memory/sink.jsonl")).ok().filter(|text| text.lines().count() > 50)
    });
    canaries.absent(&hidden, "the sink", &sink);
    canaries.absent(&ALL, "/metrics", &daemon.get("/metrics").text());
    let log = daemon.log();
    assert!(log.contains("TRACE") || log.contains("\"level\""), "it logs");
    canaries.absent(&ALL, "the log", &log);
}
