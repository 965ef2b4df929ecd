//! What waits for a person, from the question to the answer, on a route that is live.

use serde_json::{Value as Json, json};

use super::harness::{ROUTER, eventually, spec, write};
use super::route::{Agent, Scene, failed};
use super::wire::Reply;

pub(crate) fn live(name: &str) -> Json {
    let mut spec = spec(name);
    spec["mode"] = "live".into();
    spec["safety"]["requiresHumanApproval"] = true.into();
    spec
}

/// A route that is live, whose payloads are signed.
fn live_scene() -> (Agent, Scene) {
    let agent = Agent::answering("200 OK");
    let url = agent.url();
    let scene = Scene::with("", |route| {
        route["probeUrl"] = url.into();
        route["signingKeyId"] = "crypto-sage-dispatch-1".into();
        route["requireSignature"] = true.into();
    });
    let key = json!({"keyId": "crypto-sage-dispatch-1", "owner": "crypto-sage", "purpose": "dispatch",
        "secret": "shared with the receiver"});
    assert_eq!(scene.daemon.post("/v1/keys", key).status, 201);
    scene.go_live();
    (agent, scene)
}

fn submit(scene: &Scene, query: &str, spec: &Json) -> Reply {
    scene.daemon.post_as(&scene.router, &format!("/v1/handoffs{query}"), spec)
}

/// A TaskSpec as a file, for the command line.
fn file_of(scene: &Scene, spec: &Json) -> String {
    let path = scene.daemon.path("submitted.spec");
    write(&path, spec.to_string());
    path.to_str().unwrap().to_owned()
}

fn waiting(scene: &Scene) -> Vec<Json> {
    scene.daemon.get("/v1/approvals").json()["approvals"].as_array().unwrap().clone()
}

#[test]
fn whoever_waits_is_answered_when_a_person_has() {
    let (_agent, scene) = live_scene();
    let daemon = &scene.daemon;
    for (name, word, status, decision) in
        [("no_0001", "reject", 403, "denied"), ("yes_0001", "approve", 201, "allowed")]
    {
        let spec = live(name);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| submit(&scene, "?wait=30s", &spec));
            let shown = eventually("it waits", || waiting(&scene).pop());
            assert_eq!(
                (&shown["handoffId"], &shown["mode"], &shown["needed"]),
                (&spec["handoffId"], &json!("live"), &json!(1))
            );
            assert_eq!(shown["taskSpec"], spec);
            assert_eq!(shown["wouldDispatch"]["operation"], spec["intent"]["operation"]);
            assert!(shown["wouldDispatch"].get("auth").is_none());
            let place = format!("/v1/approvals/{}", spec["handoffId"].as_str().unwrap());
            assert_eq!(daemon.get(&place).json()["taskSpec"], spec);
            assert_eq!(daemon.metric("handoffd_approvals_waiting "), Some(1.0));
            let said = daemon.cli_ok(&["approvals", "show", spec["handoffId"].as_str().unwrap()]);
            assert!(said.contains("what the target would be sent") && !said.contains("\"auth\""), "{said}");
            let answered = scene.answer(&scene.rita, &spec, word);
            assert_eq!(
                (answered.status, &answered.json()["decision"]),
                (200, &json!(decision)),
                "{answered:?}"
            );
            assert!(answered.json().get("dispatch").is_none() && answered.json().get("receipt").is_none());
            let told = asked.join().unwrap();
            assert_eq!((told.status, &told.json()["decision"]), (status, &json!(decision)), "{told:?}");
            assert_eq!(told.json()["replayed"], false);
            assert_eq!(told.json().get("receipt").is_some(), status == 201);
            assert_eq!(told.json()["dispatch"]["auth"].is_object(), status == 201);
        });
        let again = scene.answer(&scene.rita, &spec, "approve");
        assert_eq!((again.status, again.code().as_str()), (409, "APPROVAL_NOT_WAITING"));
    }
}

#[test]
fn whoever_waits_in_vain_is_told_that_it_still_waits() {
    let (_agent, scene) = live_scene();
    let spec = live("vain_0001");
    let told = submit(&scene, "?wait=1s", &spec);
    assert_eq!((told.status, &told.json()["replayed"]), (202, &json!(false)), "{told:?}");
    let again = submit(&scene, "?wait=1s", &spec);
    assert_eq!((again.status, &again.json()["replayed"]), (200, &json!(true)), "{again:?}");
    assert_eq!(again.json()["decision"], "needs_approval");

    // A freeze holds it, and it goes on waiting.
    let daemon = &scene.daemon;
    let freeze = json!({"scope": "all", "reason": "drill"});
    assert_eq!(daemon.post("/v1/freeze", &freeze).status, 200);
    let held = scene.answer(&scene.rita, &spec, "approve");
    assert_eq!((held.status, held.json()["code"].as_str()), (409, Some("APPROVAL_HELD")), "{held:?}");
    assert_eq!(held.json()["reasons"][0]["code"], "POLICY_FROZEN");
    let request =
        super::wire::Request::new("DELETE", "/v1/freeze").token(&scene.rita).json(freeze.to_string());
    assert_eq!(daemon.send(&request).status, 200);
    // Nobody approves their own.
    let source = daemon.token(ROUTER, "operator", None);
    let own = scene.answer(&source, &spec, "approve");
    assert_eq!((own.status, own.code().as_str()), (403, "APPROVAL_OWN"));
    let other = live("vain_0002");
    assert_eq!(submit(&scene, "", &other).status, 202);
    let page = daemon.get("/v1/approvals?limit=1").json();
    assert_eq!((&page["approvals"][0]["handoffId"], &page["total"]), (&spec["handoffId"], &json!(2)));
    let rest = daemon.get(&format!("/v1/approvals?limit=1&cursor={}", page["next"].as_str().unwrap())).json();
    assert_eq!((&rest["approvals"][0]["handoffId"], &rest["next"]), (&other["handoffId"], &json!(null)));
    let cli = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--token", &scene.rita]);
        let output = daemon.cli(&all);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (_, listed) = cli(&["approvals", "list"]);
    assert!(listed.contains("hs_20260218_vain_0001  live"), "{listed}");
    let (code, said) = cli(&["approvals", "approve", "hs_20260218_vain_0001", "--reason", "fine"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("hs_20260218_vain_0001 is allowed"), "{said}");
    assert_eq!(cli(&["approvals", "reject", "hs_20260218_vain_0002", "--reason", "no"]).0, Some(0));
    assert_eq!(waiting(&scene), Vec::<Json>::new());
}

#[test]
fn the_command_line_waits_for_a_person() {
    let (_agent, scene) = live_scene();
    let daemon = &scene.daemon;
    let router = daemon.token("router-cli", "orchestrator", Some(ROUTER));
    // Nobody answers: it says that it still waits.
    let vain = live("cli_vain_1");
    let file = file_of(&scene, &vain);
    let told = daemon.cli(&["submit", &file, "--wait", "1s", "--token", &router]);
    assert_eq!(told.status.code(), Some(4), "{told:?}");
    assert_eq!(scene.answer(&scene.rita, &vain, "reject").status, 200);
    for (name, word, code) in [("cli_no_0001", "reject", 1), ("cli_yes_01", "approve", 0)] {
        let spec = live(name);
        let file = file_of(&scene, &spec);
        std::thread::scope(|scope| {
            let asked =
                scope.spawn(|| daemon.cli(&["--json", "submit", &file, "--wait", "1h", "--token", &router]));
            eventually("it waits", || waiting(&scene).pop());
            assert_eq!(scene.answer(&scene.rita, &spec, word).status, 200);
            let told = asked.join().unwrap();
            assert_eq!(told.status.code(), Some(code), "{}", String::from_utf8_lossy(&told.stderr));
            let answer: Json = serde_json::from_slice(&told.stdout).unwrap();
            assert_eq!(
                (answer["replayed"].as_bool(), answer["receipt"].is_object()),
                (Some(false), code == 0)
            );
        });
    }
    for wrong in [&["--wait", "0s"][..], &["--wait", "2d"], &["--wait", "1s", "--check"]] {
        let all: Vec<&str> = ["submit", &file].iter().chain(wrong).copied().collect();
        assert_eq!(daemon.cli(&all).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_gateway_that_stops_does_not_wait_for_people() {
    let (_agent, scene) = live_scene();
    let spec = live("stop_0001");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| submit(&scene, "?wait=60s", &spec));
        eventually("it waits", || waiting(&scene).pop());
        scene.daemon.signal("TERM");
        let told = asked.join().unwrap();
        assert!(matches!(told.status, 202 | 503), "{told:?}");
    });
}

#[test]
fn a_token_that_was_revoked_while_it_waited_is_handed_nothing() {
    let (_agent, scene) = live_scene();
    let spec = live("gone_0001");
    let daemon = &scene.daemon;
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| submit(&scene, "?wait=30s", &spec));
        eventually("it waits", || waiting(&scene).pop());
        let revoke = super::wire::Request::new("DELETE", "/v1/tokens/router").token(&daemon.admin);
        assert_eq!(daemon.send(&revoke).status, 200);
        assert_eq!(scene.answer(&scene.rita, &spec, "approve").status, 200);
        let told = asked.join().unwrap();
        assert_eq!((told.status, told.code().as_str()), (401, "AUTH_TOKEN_UNKNOWN"));
    });
}

/// The end of the standard: one live handoff at a time, then all, then one that fails, and the way back.
#[test]
fn a_live_route_goes_through_its_canary_and_back_when_work_fails() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.go_live();
    assert_eq!(scene.state().0, "live G4 pending canary");
    for n in 1..=5 {
        let first = live(&format!("slot_{n:04}"));
        assert_eq!(submit(&scene, "", &first).status, 202);
        // Somebody says yes to one while another is under way: that one still waits.
        scene.complete(&format!("canary_{n:04}"), "live");
        assert_eq!(scene.answer(&scene.rita, &first, "reject").status, 200);
    }
    assert_eq!(scene.state().0, "live G4 passed");
    scene.complete("live_0001", "live");

    let (kind, payload) = failed("POLICY_SLIPPAGE_EXCEEDED");
    let under_way = live("live_0002");
    assert_eq!(submit(&scene, "", &under_way).status, 202);
    assert_eq!(scene.answer(&scene.rita, &under_way, "approve").status, 200);
    let worst = scene.run("live_0003", "live", (kind, payload));
    let (line, rollback) = scene.state();
    assert_eq!(line, "simulated G2 rolled_back blocked");
    assert_eq!(rollback["lastRollbackReason"], format!("`{worst}` failed with POLICY_SLIPPAGE_EXCEEDED"));
    let state = scene.daemon.get("/v1/state").json();
    let shown = &state["activeHandoffs"][under_way["handoffId"].as_str().unwrap()];
    assert_eq!(
        (&shown["status"], &shown["lastErrorCode"]),
        (&json!("rolled_back"), &json!("ROUTE_ROLLED_BACK"))
    );
    // What was allowed and is rolled back is not dispatched again, and nothing else passes until somebody has looked.
    let again = submit(&scene, "", &under_way);
    assert_eq!((again.status, again.json().get("receipt").is_none()), (200, true));
    assert_eq!(scene.submit("late_0001", "simulated").1.code(), "A2A_ROUTE_BLOCKED");
    assert_eq!(scene.act("unblock", json!({"reason": "slippage is bounded now"})).status, 200);
    assert_eq!(scene.submit("late_0002", "live").1.code(), "POLICY_STAGE_NOT_REACHED");
    assert_eq!(scene.submit("late_0003", "simulated").1.status, 201);
    scene.daemon.cli_ok(&["audit", "verify"]);
    scene.daemon.cli_ok(&["state", "verify"]);
}
