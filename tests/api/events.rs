//! The life of a handoff after it was allowed, as agents report it.

use serde_json::{Value as Json, json};

use super::harness::{Daemon, ROUTER, location, spec};
use super::wire::Reply;

const TARGET: &str = "crypto-sage";
const FALLBACK: &str = "crypto-sage-dr";

/// A daemon with an allowed handoff, and those who have to do with it.
struct Scene {
    daemon: Daemon,
    spec: Json,
    source: String,
    target: String,
    fallback: String,
}

impl Scene {
    fn new(name: &str) -> Self {
        let daemon = Daemon::new();
        let source = daemon.token("router", "orchestrator", Some(ROUTER));
        let target = daemon.token("sage", "agent", Some(TARGET));
        let fallback = daemon.token("sage-dr", "agent", Some(FALLBACK));
        let spec = spec(name);
        assert_eq!(daemon.post_as(&source, "/v1/handoffs", &spec).status, 201);
        Self { daemon, spec, source, target, fallback }
    }

    fn event(&self, seq: u64, kind: &str, sender: &str, payload: Json) -> Json {
        let handoff_id = self.spec["handoffId"].as_str().unwrap();
        let state = match kind {
            "task.claimed" | "task.started" | "artifact.ready" => ("working", false),
            "task.blocked" => ("input_required", false),
            "task.complete" => ("completed", true),
            "task.failed" => ("failed", true),
            "task.cancelled" => ("canceled", true),
            other => panic!("{other}"),
        };
        json!({
            "wire": "1.1", "wire_id": format!("wire_{seq:04}{}", kind.replace('.', "")), "type": kind,
            "ts": "2026-02-18T19:38:05Z", "sender": sender, "payload": payload,
            "state": {"category": state.0, "terminal": state.1},
            "stream": {"stream_id": format!("task:{handoff_id}:attempt:1"), "stream_seq": seq,
                "context_id": self.spec["correlationId"], "correlation_id": self.spec["correlationId"]},
        })
    }

    fn send(&self, token: &str, event: &Json) -> Reply {
        self.daemon.post_as(token, &format!("{}/events", location(&self.spec)), event)
    }

    #[track_caller]
    fn taken(&self, event: &Json, status: &str) {
        let reply = self.send(&self.target, event);
        assert_eq!((reply.status, reply.json()["status"].as_str()), (201, Some(status)), "{reply:?}");
    }

    #[track_caller]
    fn refused(&self, token: &str, event: &Json, status: u16, code: &str) -> Json {
        let reply = self.send(token, event);
        assert_eq!((reply.status, reply.json()["code"].as_str()), (status, Some(code)), "{reply:?}");
        reply.json()
    }

    /// What the list, the page and the state file say of it.
    fn stands(&self) -> (String, String) {
        let shown = self.daemon.get(&location(&self.spec)).json()["status"].as_str().unwrap().to_owned();
        let state = self.daemon.get("/v1/state").json();
        let active = &state["activeHandoffs"][self.spec["handoffId"].as_str().unwrap()];
        let code = active["lastErrorCode"].as_str().map(|code| format!(" {code}")).unwrap_or_default();
        (shown, format!("{}{code}", active["status"].as_str().unwrap()))
    }
}

fn artifact(id: &str) -> Json {
    json!({"artifact_id": id, "uri": "s3://reports/1", "version": 1, "hash": format!("sha256:{}", "0".repeat(64))})
}

#[test]
fn a_target_reports_until_the_work_is_done() {
    let scene = Scene::new("events_0001");
    let sender = format!("agent:{TARGET}");
    assert_eq!(scene.stands(), ("available".into(), "queued".into()));
    let steps = [
        (4, "task.claimed", json!({}), "claimed", "running"),
        (5, "task.started", json!({}), "working", "running"),
        (6, "task.blocked", json!({"reason": "waiting for a quote"}), "blocked", "blocked"),
        (7, "task.started", json!({}), "working", "running"),
        (8, "artifact.ready", artifact("report"), "working", "running"),
        (
            9,
            "task.complete",
            json!({"artifact_ids": ["report"], "verification": {"mechanical": "pass"}}),
            "completed",
            "done",
        ),
    ];
    for (seq, kind, payload, shown, state) in steps {
        let event = scene.event(seq, kind, &sender, payload);
        scene.taken(&event, shown);
        assert_eq!(scene.stands(), (shown.into(), state.into()));
        let again = scene.send(&scene.target, &event);
        assert_eq!((again.status, again.json()["replayed"].as_bool()), (200, Some(true)), "{again:?}");
    }
    let late = scene.event(10, "task.started", &sender, json!({}));
    scene.refused(&scene.target, &late, 409, "WIRE_TERMINAL");
    // The timeline has each event once, with who sent it, and the ledger verifies.
    let timeline = scene.daemon.get(&location(&scene.spec)).json()["history"][0]["timeline"].clone();
    let senders: Vec<&str> =
        timeline.as_array().unwrap().iter().map(|entry| entry["sender"].as_str().unwrap()).collect();
    assert_eq!(senders.len(), 9);
    assert!(senders[3..].iter().all(|sender| *sender == "agent:crypto-sage"));
    scene.daemon.cli_ok(&["audit", "verify"]);
}

/// Agents choose the ids of what they report. One that is used for another handoff, too, is no reason to find fault with
/// the ledger.
#[test]
fn an_id_counts_in_its_own_stream() {
    let scene = Scene::new("events_0008");
    let sender = format!("agent:{TARGET}");
    let claim = scene.event(4, "task.claimed", &sender, json!({}));
    scene.taken(&claim, "claimed");
    let other = Scene { spec: spec("events_0009"), ..scene };
    assert_eq!(other.daemon.post_as(&other.source, "/v1/handoffs", &other.spec).status, 201);
    let same = other.event(4, "task.claimed", &sender, json!({}));
    assert_eq!(same["wire_id"], claim["wire_id"]);
    other.taken(&same, "claimed");
    other.daemon.cli_ok(&["audit", "verify"]);
}

/// One agent hands over here and takes work there, and has a token for each.
#[test]
fn a_token_speaks_for_its_own_side_of_a_handoff() {
    let scene = Scene::new("events_0010");
    let claim =
        |scene: &Scene, agent: &str| scene.event(4, "task.claimed", &format!("agent:{agent}"), json!({}));
    let cancel = |scene: &Scene, seq, agent: &str| {
        scene.event(seq, "task.cancelled", &format!("agent:{agent}"), json!({"reason": "not needed"}))
    };
    // The target's orchestrator and the source's worker have nothing to do with it, and are not shown it either.
    let orchestrator = scene.daemon.token("sage-hands-over", "orchestrator", Some(TARGET));
    let worker = scene.daemon.token("router-works", "agent", Some(ROUTER));
    let head = scene.daemon.events().len();
    for (token, event) in [
        (&orchestrator, claim(&scene, TARGET)),
        (&orchestrator, cancel(&scene, 4, TARGET)),
        (&worker, claim(&scene, ROUTER)),
        (&worker, cancel(&scene, 4, ROUTER)),
    ] {
        assert_eq!(scene.daemon.get_as(token, &location(&scene.spec)).status, 404);
        scene.refused(token, &event, 404, "HTTP_NOT_FOUND");
    }
    // What is the other side's to say.
    scene.refused(&scene.source, &claim(&scene, ROUTER), 403, "WIRE_SENDER");
    scene.refused(&scene.target, &cancel(&scene, 4, TARGET), 403, "WIRE_SENDER");
    assert_eq!(scene.daemon.events().len(), head);
    scene.taken(&claim(&scene, TARGET), "claimed");
    assert_eq!(scene.send(&scene.source, &cancel(&scene, 5, ROUTER)).status, 201);

    // Where one agent is both, each of its tokens is still for one side.
    let mut own = spec("events_0011");
    own["source"]["agentId"] = TARGET.into();
    let own = Scene { spec: own, ..scene };
    assert_eq!(own.daemon.post_as(&orchestrator, "/v1/handoffs", &own.spec).status, 201);
    let told = own.refused(&orchestrator, &claim(&own, TARGET), 403, "WIRE_SENDER");
    assert_eq!(told["hint"], "send it with a token of role agent, of the agent that does the work");
    own.taken(&claim(&own, TARGET), "claimed");
    own.refused(&own.target, &cancel(&own, 5, TARGET), 403, "WIRE_SENDER");
    assert_eq!(own.send(&orchestrator, &cancel(&own, 5, TARGET)).status, 201);
}

#[test]
fn every_refusal_has_its_code_and_changes_nothing() {
    let scene = Scene::new("events_0002");
    let sender = format!("agent:{TARGET}");
    let claim = scene.event(4, "task.claimed", &sender, json!({}));
    let head = scene.daemon.events().len();

    let next = scene.refused(
        &scene.target,
        &scene.event(6, "task.claimed", &sender, json!({})),
        409,
        "WIRE_SEQUENCE",
    );
    assert_eq!(next["expected"], 4);
    scene.refused(&scene.target, &scene.event(4, "task.started", &sender, json!({})), 409, "WIRE_TRANSITION");
    // In somebody else's name, and what is not the sender's to say.
    let told = scene.refused(&scene.fallback, &claim, 403, "WIRE_SENDER");
    assert_eq!(told["hint"], "send `agent:crypto-sage-dr`");
    let own = scene.event(4, "task.claimed", &format!("agent:{ROUTER}"), json!({}));
    scene.refused(&scene.source, &own, 403, "WIRE_SENDER");
    let mut wrong = claim.clone();
    wrong["stream"]["stream_id"] = json!("task:hs_20260218_other:attempt:1");
    scene.refused(&scene.target, &wrong, 422, "WIRE_STREAM");
    let mut invalid = claim.clone();
    invalid["payload"] = json!({"body": "the work itself"});
    invalid["state"]["category"] = json!("completed");
    let told = scene.refused(&scene.target, &invalid, 422, "WIRE_INVALID");
    assert!(told["faults"].as_array().unwrap().len() > 1, "{told}");
    assert!(told["faults"][0]["pointer"].as_str().unwrap().starts_with('/'), "{told}");
    let mut large = claim.clone();
    large["extensions"] = json!({"x.blob": "y".repeat(9_000)});
    scene.refused(&scene.target, &large, 413, "WIRE_TOO_LARGE");
    // A stranger cannot tell a handoff that is not its own from one that is not there.
    let stranger = scene.daemon.token("stranger", "agent", Some("stranger"));
    let foreign = scene.event(4, "task.claimed", "agent:stranger", json!({}));
    let unknown = scene.refused(&stranger, &foreign, 404, "HTTP_NOT_FOUND");
    let nowhere = scene.daemon.post_as(&stranger, "/v1/handoffs/hs_nowhere_0001/events", &foreign);
    assert_eq!((nowhere.status, nowhere.json()), (404, unknown));
    let auditor = scene.daemon.token("ann", "auditor", None);
    scene.refused(&auditor, &claim, 403, "AUTH_FORBIDDEN");

    scene.taken(&claim, "claimed");
    scene.taken(&scene.event(5, "task.started", &sender, json!({})), "working");
    let mut reused = scene.event(6, "task.started", &sender, json!({}));
    reused["wire_id"] = claim["wire_id"].clone();
    scene.refused(&scene.target, &reused, 409, "WIRE_DUPLICATE");
    let unready = json!({"artifact_ids": ["none"], "verification": {"mechanical": "pass"}});
    scene.refused(&scene.target, &scene.event(6, "task.complete", &sender, unready), 422, "WIRE_ARTIFACT");
    let unverified = json!({"artifact_ids": ["none"], "verification": {"mechanical": "fail"}});
    scene.refused(&scene.target, &scene.event(6, "task.complete", &sender, unverified), 422, "WIRE_INVALID");
    // Two tokens were made meanwhile, and two events taken in.
    assert_eq!(scene.daemon.events().len(), head + 4);
}

#[test]
fn the_fallback_may_claim_and_an_operator_may_cancel() {
    let scene = Scene::new("events_0003");
    assert_eq!(scene.daemon.get_as(&scene.fallback, &location(&scene.spec)).status, 200);
    let claim = scene.event(4, "task.claimed", &format!("agent:{FALLBACK}"), json!({}));
    assert_eq!(scene.send(&scene.fallback, &claim).status, 201);
    let late = scene.event(5, "task.claimed", &format!("agent:{TARGET}"), json!({}));
    scene.refused(&scene.target, &late, 409, "WIRE_TRANSITION");

    let rita = scene.daemon.token("rita", "operator", None);
    let id = scene.spec["handoffId"].as_str().unwrap();
    let arguments =
        ["event", id, "task.cancelled", "--payload", r#"{"reason": "not needed"}"#, "--token", &rita];
    // The command does not know whose token it has, and the gateway says.
    let output = scene.daemon.cli(&arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("send `human:rita`"), "{output:?}");
    let told = scene.daemon.cli_ok(&[&arguments[..], &["--sender", "human:rita"]].concat());
    assert_eq!(
        told,
        format!(
            "{id} is cancelled task.cancelled is event 5 of its stream, entry {} of the ledger\n",
            scene.daemon.events().len()
        )
    );
    assert_eq!(scene.stands(), ("cancelled".into(), "failed TASK_CANCELLED".into()));
    // Submitted again it is the same decision, without anything to dispatch.
    let again = scene.daemon.post_as(&scene.source, "/v1/handoffs", &scene.spec);
    let body = again.json();
    assert_eq!((again.status, body["decision"].as_str()), (200, Some("allowed")));
    assert!(body.get("dispatch").is_none() && body.get("receipt").is_none(), "{body}");
}

#[test]
fn the_command_line_reports_a_whole_life() {
    let mut scene = Scene::new("events_0004");
    let id = scene.spec["handoffId"].as_str().unwrap().to_owned();
    let send = |scene: &Scene, kind: &str, payload: &str| {
        let token = scene.target.clone();
        let shown =
            scene.daemon.cli_ok(&["event", &id, kind, "--payload", payload, "--token", &token, "--json"]);
        serde_json::from_str::<Json>(&shown).unwrap()["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(send(&scene, "task.claimed", "{}"), "claimed");
    assert_eq!(send(&scene, "task.started", "{}"), "working");
    // A daemon that was killed goes on where it was.
    scene.daemon.signal("KILL");
    scene.daemon.wait();
    scene.daemon.restart_after_stop();
    let failed = send(&scene, "task.failed", r#"{"code": "EXECUTION_TIMEOUT", "message": "no answer"}"#);
    assert_eq!(failed, "failed");
    assert_eq!(scene.stands(), ("failed".into(), "failed EXECUTION_TIMEOUT".into()));
    let found = scene.daemon.get("/v1/handoffs?code=EXECUTION_TIMEOUT").json();
    assert_eq!(found["handoffs"].as_array().unwrap().len(), 1);
}

/// Who asks for an agent or a route sees what concerns it, on every page of the list, and nothing else.
#[test]
fn the_ledger_is_searched_by_agent_and_by_route() {
    const ROUTE: &str = "crypto-sage.execution-plane.v1";
    let scene = Scene::new("concerned_0001");
    let Scene { daemon, spec: own, fallback, .. } = &scene;
    // The fallback takes it: it is neither source nor target, and speaks for itself.
    let claimed = scene.event(4, "task.claimed", &format!("agent:{FALLBACK}"), json!({}));
    assert_eq!(scene.send(fallback, &claimed).status, 201);
    let mut lost = super::harness::lost_spec("concerned_0002");
    lost["target"]["agentId"] = "somebody-else".into();
    assert_eq!(daemon.submit(&lost).status, 403);
    let freeze = json!({"scope": "route", "routeKey": ROUTE, "reason": "a pause"});
    assert_eq!(daemon.post("/v1/freeze", freeze).status, 200);

    let (own, lost) = (own["handoffId"].as_str().unwrap(), lost["handoffId"].as_str().unwrap());
    let events = daemon.events();
    let concerned = |filter: &str| -> Vec<u64> {
        let holds = |event: &Json| {
            let stream = event["stream"]["stream_id"].as_str().unwrap();
            let (of_own, of_lost) = (stream.contains(own), stream.contains(lost));
            let frozen = event["payload"]["route_key"] == ROUTE && stream.starts_with("project:");
            match filter {
                "agent=decision-router" => of_own || of_lost,
                "agent=crypto-sage" => of_own,
                "agent=crypto-sage-dr" => event["sender"] == "agent:crypto-sage-dr",
                "agent=somebody-else" => of_lost,
                "route=nowhere.execution-plane.v1" => of_lost,
                "route=crypto-sage.execution-plane.v1" => {
                    of_own || frozen || stream == format!("phase:{ROUTE}")
                }
                "agent=decision-router&route=crypto-sage.execution-plane.v1&type=gate.decided" => {
                    of_own && event["type"] == "gate.decided"
                }
                _ => false,
            }
        };
        let numbered = (1..).zip(&events);
        numbered.filter(|(_, event)| holds(event)).map(|(sequence, _)| sequence).collect()
    };
    let sequences = |list: &Json| -> Vec<u64> {
        list["entries"].as_array().unwrap().iter().map(|entry| entry["sequence"].as_u64().unwrap()).collect()
    };
    for (filter, least) in [
        ("agent=decision-router", 7),
        ("agent=crypto-sage", 4),
        ("agent=crypto-sage-dr", 1),
        ("agent=somebody-else", 3),
        ("agent=crypto-sage.execution-plane.v1", 0),
        ("route=nowhere.execution-plane.v1", 3),
        ("route=crypto-sage.execution-plane.v1", 6),
        ("route=crypto-sage", 0),
        ("agent=decision-router&route=crypto-sage.execution-plane.v1&type=gate.decided", 1),
    ] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = daemon.get(&format!("/v1/audit?limit=2&{filter}{cursor}")).json();
            found.extend(sequences(&page));
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        found.reverse();
        assert_eq!(found, concerned(filter), "{filter}");
        assert!(found.len() >= least, "{filter}: {found:?}");
        let mut list = vec!["audit".to_owned(), "list".to_owned(), "--json".to_owned()];
        for (name, value) in filter.split('&').filter_map(|pair| pair.split_once('=')) {
            list.extend([format!("--{name}"), value.to_owned()]);
        }
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        let mut printed = sequences(&serde_json::from_str(&daemon.cli_ok(&list)).unwrap());
        printed.reverse();
        assert_eq!(printed, found, "{filter}");
    }
    let operator = daemon.token("rita", "operator", None);
    let visitor = super::console::Visitor::log_in(daemon, &operator);
    let page = visitor.get("/console/audit?agent=somebody-else&route=nowhere.execution-plane.v1").text();
    assert!(page.contains(lost) && !page.contains(own), "{page}");
    assert!(
        page.contains("value=\"somebody-else\"") && page.contains("value=\"nowhere.execution-plane.v1\"")
    );
}
