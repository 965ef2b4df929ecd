//! A gateway that lives through everything, so that every kind of event is written by the gateway itself; what it leaves is
//! held to schemas, reducer, views and state like every other test's ledger (`left.rs`).

use std::collections::BTreeSet;
use std::fs;

use handoffd::wire::Kind;
use serde_json::{Value as Json, json};

use super::delegated::{SECRET, TARGET as OPERATOR, mention, sensitive, signed};
use super::harness::{Daemon, eventually, location, lost_spec, spec, write};
use super::route::{Agent, KEY, Scene};
use super::signing::from_now;
use super::wire::{Reply, Request};

const SETTINGS: &str = "[policy]\napproval = \"operator\"\n[promotion]\nsimulated_runs = 3\n[a2a]\npush_allow = [\"127.0.0.0/8\"]\n";
const MESSAGE: &str = "1473395000000000101";

#[test]
fn a_gateway_that_lives_through_everything_writes_every_kind_of_event() {
    let agent = Agent::answering("200 OK");
    let mut scene = Scene::with(SETTINGS, |route| route["probeUrl"] = agent.url().into());
    sets_of_policies(&scene);
    tokens_and_keys(&scene.daemon);
    work(&scene);
    people(&scene);
    a_conversation(&scene, &agent.url());
    the_way_to_live(&scene);
    delegated_work(&scene);
    and_back(&scene);
    somebody_edits_the_state(&scene.daemon);
    a_backup_comes_back(&mut scene.daemon);

    let told = scene.daemon.events();
    let written: BTreeSet<&str> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let never: Vec<&str> =
        Kind::ALL.iter().map(|kind| kind.as_str()).filter(|kind| !written.contains(kind)).collect();
    assert!(never.is_empty(), "no part of this test has the gateway write {never:?}");
}

#[track_caller]
fn ask(daemon: &Daemon, token: &str, method: &str, target: &str, body: &Json, status: u16) -> Reply {
    let request = Request::new(method, target).token(token);
    let request = if body.is_null() { request } else { request.json(body.to_string()) };
    let reply = daemon.send(&request);
    assert_eq!(reply.status, status, "{method} {target}: {}", reply.text());
    reply
}

/// Edits the routing table and the principal's policy, and has an operator answer.
fn edit(scene: &Scene, word: &str, change: impl FnOnce(&mut Json, &mut Json)) {
    let daemon = &scene.daemon;
    let paths =
        ["policies/routes.json", "policies/delegation/user-main-v1.json"].map(|path| daemon.path(path));
    let texts = paths.each_ref().map(|path| fs::read_to_string(path).unwrap());
    let [mut routes, mut policy] = texts.each_ref().map(|text| serde_json::from_str::<Json>(text).unwrap());
    change(&mut routes["routes"], &mut policy);
    write(&paths[0], routes.to_string());
    write(&paths[1], policy.to_string());
    ask(daemon, &daemon.admin, "POST", "/v1/reload", &Json::Null, 200);
    let shown = daemon.get("/v1/policies").json();
    assert_eq!(shown["pending"]["state"], "waiting", "{shown}");
    let answer = json!({"digest": shown["pending"]["digest"], "decision": word, "reason": "read it"});
    ask(daemon, &scene.rita, "POST", "/v1/policies/approval", &answer, 200);
    if word == "reject" {
        write(&paths[0], &texts[0]);
        write(&paths[1], &texts[1]);
        ask(daemon, &daemon.admin, "POST", "/v1/reload", &Json::Null, 200);
    }
}

/// Another route comes and goes, and the route of the scene is another one for a while, after it has passed a gate.
fn sets_of_policies(scene: &Scene) {
    edit(scene, "reject", |routes, _| routes["other.execution-plane.v1"] = routes[KEY].clone());
    edit(scene, "approve", |routes, policy| {
        routes["other.execution-plane.v1"] = routes[KEY].clone();
        policy["allowWithoutChannel"] = true.into();
    });
    edit(scene, "approve", |routes, _| {
        drop(routes.as_object_mut().unwrap().remove("other.execution-plane.v1"))
    });
    scene.complete("redefined_1", "dev");
    assert_eq!(scene.gate("G0", json!({})), "passed");
    for profile in ["plain", "execution-plane.v1"] {
        edit(scene, "approve", |routes, _| routes[KEY]["profile"] = profile.into());
    }
}

fn tokens_and_keys(daemon: &Daemon) {
    daemon.token("passing", "auditor", None);
    ask(daemon, &daemon.admin, "DELETE", "/v1/tokens/passing", &Json::Null, 200);
    for key in ["user-main-test", "user-main-gone"] {
        let key = json!({"keyId": key, "owner": "user:main", "secret": SECRET});
        ask(daemon, &daemon.admin, "POST", "/v1/keys", &key, 201);
    }
    ask(daemon, &daemon.admin, "DELETE", "/v1/keys/user-main-gone", &Json::Null, 200);
}

/// A refusal, work that is stuck and fails, and work that is called off.
fn work(scene: &Scene) {
    let daemon = &scene.daemon;
    assert_eq!(daemon.post_as(&scene.router, "/v1/handoffs", lost_spec("lost_0001")).status, 403);
    let told = |handoff: &Json, token: &str, kind: &str, payload: &Json| {
        let (id, payload) = (handoff["handoffId"].as_str().unwrap(), payload.to_string());
        daemon.cli_ok(&["event", id, kind, "--payload", &payload, "--token", token]);
    };
    let (stuck, _) = scene.submit("stuck_0001", "dev");
    told(&stuck, &scene.sage, "task.claimed", &json!({}));
    told(&stuck, &scene.sage, "task.started", &json!({}));
    told(&stuck, &scene.sage, "task.blocked", &json!({"reason": "no quote"}));
    told(&stuck, &scene.sage, "task.failed", &json!({"code": "TASK_FAILED", "message": "no quote came"}));
    let (off, _) = scene.submit("off_0001", "dev");
    told(&off, &scene.router, "task.cancelled", &json!({"reason": "no longer wanted"}));
}

/// The kill switch, and the rollout of mentions.
fn people(scene: &Scene) {
    let freeze = json!({"scope": "mode", "mode": "live", "reason": "a drill"});
    ask(&scene.daemon, &scene.rita, "POST", "/v1/freeze", &freeze, 200);
    ask(&scene.daemon, &scene.rita, "DELETE", "/v1/freeze", &freeze, 200);
    let phase = json!({"phase": "gated-read", "reason": "looked at the counters"});
    ask(&scene.daemon, &scene.rita, "PUT", "/v1/mentions/phase", &phase, 200);
}

/// A mention that is let through and marked, and sensitive work under a grant.
fn delegated_work(scene: &Scene) {
    let daemon = &scene.daemon;
    let read = signed(mention("read_0001", MESSAGE), |_| {});
    ask(daemon, &daemon.admin, "POST", "/v1/handoffs", &read, 201);
    let mark = json!({"handoffId": read["handoffId"], "reason": "nobody asked for it"});
    ask(daemon, &scene.rita, "POST", &format!("/v1/mentions/{MESSAGE}/false-positive"), &mark, 200);
    let terms = json!({"principal": "user:main", "agents": [OPERATOR], "operations": ["transfer"],
        "modes": ["simulated"], "expiresAt": from_now(3600), "uses": 2});
    let grant = ask(daemon, &scene.rita, "POST", "/v1/authorizations", &terms, 201).json();
    let grant = grant["authorizationRef"].as_str().unwrap();
    let spec = signed(sensitive("grant_0001", grant), |_| {});
    ask(daemon, &daemon.admin, "POST", "/v1/handoffs", &spec, 201);
    ask(daemon, &scene.rita, "DELETE", &format!("/v1/authorizations/{grant}"), &Json::Null, 200);
}

/// A handoff that comes as an A2A message, with a webhook that is set and taken away.
fn a_conversation(scene: &Scene, hook: &str) {
    let rpc = |method: &str, params: Json| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = scene.daemon.post_as(&scene.router, "/rpc", body).json();
        assert!(answer.get("result").is_some(), "{method}: {answer}");
    };
    let spec = spec("said_0001");
    let message = json!({"kind": "message", "messageId": "m-1", "role": "user",
        "parts": [{"kind": "data", "data": spec}]});
    rpc("message/send", json!({"message": message, "configuration": {"blocking": false}}));
    let config = json!({"id": "hook", "url": hook});
    rpc(
        "tasks/pushNotificationConfig/set",
        json!({"taskId": spec["handoffId"], "pushNotificationConfig": config}),
    );
    rpc(
        "tasks/pushNotificationConfig/delete",
        json!({"id": spec["handoffId"], "pushNotificationConfigId": "hook"}),
    );
}

/// All gates, and live work that a person allows or refuses.
fn the_way_to_live(scene: &Scene) {
    scene.go_live();
    let (refused, reply) = scene.submit("refused_0001", "live");
    assert_eq!(reply.status, 202, "{reply:?}");
    assert_eq!(scene.answer(&scene.rita, &refused, "reject").status, 200);
    assert_eq!(scene.daemon.get(&location(&refused)).json()["status"], "rejected");
    scene.complete("canary_0001", "live");
}

/// A rollback, which brings the definition before back, too; then the table counts again.
fn and_back(scene: &Scene) {
    assert_eq!(scene.act("rollback", json!({"reason": "a drill", "block": true})).status, 200);
    assert_eq!(scene.act("unblock", json!({"reason": "over", "what": "both"})).status, 200);
}

fn somebody_edits_the_state(daemon: &Daemon) {
    let path = daemon.path("memory/orchestration-state.json");
    write(&path, "{}");
    eventually("the file is the ledger's view again", || {
        let text = fs::read_to_string(&path).unwrap();
        (text == daemon.get("/v1/state").text()).then_some(())
    });
}

fn a_backup_comes_back(daemon: &mut Daemon) {
    let backup = daemon.workspace().with_file_name("backup");
    let backup = backup.to_str().unwrap();
    daemon.cli_ok(&["backup", "--to", backup]);
    daemon.signal("TERM");
    assert!(daemon.wait().success(), "{}", daemon.log());
    fs::remove_dir_all(daemon.path("memory")).unwrap();
    daemon.cli_ok(&["restore", "--from", backup]);
    daemon.restart_after_stop();
}
