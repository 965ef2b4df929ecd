//! A route on its way from dev to live and back, as operators, agents and harnesses meet it.

use handoffd::timestamp::Timestamp;
use serde_json::{Value as Json, json};

use super::harness::{ROUTER, eventually, spec, write};
use super::route::{Agent, KEY, Scene, TARGET, completed, failed};
use super::wire::Reply;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The whole standard, from a route that nobody knows to one that is live.
#[test]
fn a_route_is_walked_from_dev_to_live() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    assert_eq!(scene.state().0, "dev - pending");
    assert_eq!(
        scene.gate("G0", json!({})),
        "no handoff on this route has passed every contract check since it was defined"
    );
    assert_eq!(scene.state().0, "dev - failed");
    // Nothing but dev is to be had yet.
    assert_eq!(scene.submit("early_sim", "simulated").1.code(), "POLICY_STAGE_NOT_REACHED");
    assert_eq!(scene.submit("early_live", "live").1.code(), "POLICY_STAGE_NOT_REACHED");

    // G0: somebody hands something over, in dev.
    scene.complete("dev_0001", "dev");
    assert_eq!(scene.gate("G0", json!({"reason": "the first one went through"})), "passed");
    assert_eq!(scene.state().0, "dev G0 passed");

    // G1: the agents of the route are asked whether they are there.
    let before = scene.route();
    assert_eq!(before["missing"][0]["what"], "the primary `crypto-sage` has not been asked yet");
    assert_eq!(scene.gate("G1", json!({})), "passed");
    assert_eq!(*agent.modes.lock().unwrap(), ["dev"]);
    assert_eq!(scene.state().0, "simulated G1 passed");

    // G2: three simulated handoffs that end well.
    assert_eq!(scene.submit("live_0001", "live").1.code(), "POLICY_STAGE_NOT_REACHED");
    let mut last = String::new();
    for n in 0..3 {
        assert_eq!(
            scene.gate("G2", json!({})),
            format!("{n} of 3 simulated handoffs were accepted and completed since G1")
        );
        last = scene.complete(&format!("sim_{n:04}"), "simulated");
    }
    assert_eq!(scene.gate("G2", json!({})), "passed");
    assert_eq!(scene.state().0, "simulated G2 passed");

    // G3: a person saw one of them work, end to end.
    assert_eq!(scene.gate("G3", json!({})), "no evidence of an authorized end-to-end run is attached");
    let evidence = json!({"handoffId": last, "evidence": {"runId": "run-7", "traceId": TRACE}, "reason": "seen it myself"});
    assert_eq!(scene.gate("G3", evidence), "passed");
    assert_eq!(scene.state().0, "simulated G3 passed");

    // G4: a person lets it go live, and knows how to go back.
    let missing = scene.route()["missing"].clone();
    assert_eq!(missing[0]["what"], "no operator approves it by name");
    assert_eq!(scene.gate("G4", json!({"reason": "agreed with the desk"})), "passed");
    assert_eq!(scene.state().0, "live G4 pending canary");
    let route = scene.route();
    assert_eq!(route["canary"], json!({"done": 0, "of": 5, "handoffId": null, "since": null}));
    assert_eq!((&route["approvedBy"], &route["nextGate"]), (&json!("rita"), &Json::Null));
    assert_eq!(route["lastOutcome"]["reason"], "agreed with the desk");
    let shown: Vec<String> = route["gates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gate| {
            format!(
                "{} {} {}",
                gate["gate"].as_str().unwrap(),
                gate["status"].as_str().unwrap(),
                gate["by"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        shown.join(", "),
        ["G0", "G1", "G2", "G3", "G4"].map(|gate| format!("{gate} passed human:rita")).join(", ")
    );
    assert_eq!(route["gates"][3]["handoffId"], last);
    assert_eq!(route["gates"][4]["planRef"], "agents/blockchain-operator/docs/runbook.md");

    // Live at last; a person still has to say yes to each.
    let (_, live) = scene.submit("live_0002", "live");
    assert_eq!((live.status, live.json()["decision"].as_str()), (202, Some("needs_approval")), "{live:?}");
    assert_eq!(scene.ask(&scene.rita, "G0", json!({})).code(), "ROUTE_GATE_OUT_OF_ORDER");
    let cards = scene.daemon.get("/v1/routes").json();
    assert_eq!((&cards["routes"][0]["stage"], &cards["routes"][0]["missing"]), (&json!("live"), &json!([])));
    scene.daemon.cli_ok(&["audit", "verify"]);
    scene.daemon.cli_ok(&["state", "verify"]);
}

#[test]
fn no_gate_is_skipped_and_an_earlier_one_starts_anew() {
    let agent = Agent::answering("204 No Content");
    let scene = Scene::new(Some(agent.url()));
    let refused = |gate: &str, next: &str| {
        let reply = scene.ask(&scene.rita, gate, json!({}));
        let told = reply.json();
        assert_eq!(
            (reply.status, reply.code().as_str(), &told["next"]),
            (409, "ROUTE_GATE_OUT_OF_ORDER", &json!(next))
        );
    };
    for gate in ["G1", "G2", "G3", "G4"] {
        refused(gate, "G0");
    }
    scene.through("G2");
    refused("G4", "G3");
    // Evidence that comes with a gate whose turn it is not is not kept.
    let head = scene.daemon.events().len();
    let stranger = json!({"handoffId": "hs_20260218_walk_dev_9", "evidence": {"runId": "r"}});
    assert_eq!(scene.ask(&scene.rita, "G3", stranger).status, 400);
    assert_eq!(scene.daemon.events().len(), head);
    // G1 once more: what lies behind it must be earned again.
    assert_eq!(scene.gate("G1", json!({})), "passed");
    assert_eq!(scene.state().0, "simulated G1 passed");
    refused("G3", "G2");
    assert!(scene.gate("G2", json!({})).starts_with("0 of 3 "));
    let unknown = scene.daemon.post_as(&scene.rita, "/v1/routes/nowhere.v1/gates/G0", "{}");
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "HTTP_NOT_FOUND"));
    assert!(matches!(scene.ask(&scene.rita, "G7", json!({})).status, 400 | 404));
}

#[test]
fn g1_passes_only_when_the_agents_answer() {
    let ok = Agent::answering("200 OK");
    let lost = Agent::answering("404 Not Found");
    let elsewhere = Agent::answering("302 Found\r\nlocation: /elsewhere");
    let silent = Agent::answering("");
    let scene = Scene::with("[promotion]\nprobe_timeout = '200ms'\n", |_| {});
    scene.complete("dev_0001", "dev");
    assert_eq!(scene.gate("G0", json!({})), "passed");
    assert!(scene.gate("G1", json!({})).starts_with("the route has no `probeUrl`"));
    let cases: [(Json, &str); 7] = [
        (json!({"probeUrl": lost.url()}), "the primary `crypto-sage` answered 404"),
        (json!({"probeUrl": elsewhere.url()}), "the primary `crypto-sage` answered 302"),
        (json!({"probeUrl": silent.url()}), "the primary `crypto-sage` did not answer: "),
        (json!({"probeUrl": "http://127.0.0.1:1/"}), "the primary `crypto-sage` did not answer: "),
        (
            json!({"probeUrl": ok.url(), "fallbackProbeUrl": lost.url()}),
            "the fallback `crypto-sage-dr` answered 404",
        ),
        (
            json!({"probeUrl": ok.url(), "fallbackAgentId": null, "fallbackProbeUrl": null}),
            "the capability is critical and the route has no fallback",
        ),
        (
            json!({"probeUrl": ok.url(), "fallbackAgentId": "crypto-sage-dr", "fallbackProbeUrl": ok.url()}),
            "passed",
        ),
    ];
    for (change, expected) in cases {
        scene.redefine(|route| {
            for (name, value) in change.as_object().unwrap() {
                match value {
                    Json::Null => drop(route.as_object_mut().unwrap().remove(name)),
                    value => route[name] = value.clone(),
                }
            }
        });
        let told = scene.gate("G1", json!({}));
        assert!(told.starts_with(expected) && !told.contains("; "), "{change}: {told}");
    }
    assert_eq!(elsewhere.modes.lock().unwrap().len(), 1, "nobody is sent elsewhere");
    assert_eq!(scene.state().0, "simulated G1 passed");
}

#[test]
fn g2_fails_on_side_effects_and_on_codes_that_speak_against_the_route() {
    let agent = Agent::answering("200 OK");
    let scene =
        Scene::with("[promotion]\nsimulated_runs = 1\n", |route| route["probeUrl"] = agent.url().into());
    scene.complete("dev_0001", "dev");
    assert_eq!(scene.gate("G0", json!({})), "passed");
    let cases: [(&str, (&str, Json), &str); 5] = [
        (
            "effect",
            completed(json!(["sent 0.1 SOL"])),
            "`hs_20260218_bad_effect` reported a side effect: `sent 0.1 SOL`",
        ),
        ("policy", failed("POLICY_LIMIT"), "`hs_20260218_bad_policy` failed with POLICY_LIMIT"),
        (
            "schema",
            failed("EXECUTION_SCHEMA_INVALID"),
            "`hs_20260218_bad_schema` failed with EXECUTION_SCHEMA_INVALID",
        ),
        ("a2a", failed("A2A_SIGNATURE_INVALID"), "`hs_20260218_bad_a2a` failed with A2A_SIGNATURE_INVALID"),
        ("venue", failed("EXECUTION_TIMEOUT"), "passed"),
    ];
    for (name, last, expected) in cases {
        assert_eq!(scene.gate("G1", json!({})), "passed");
        scene.run(&format!("bad_{name}"), "simulated", last);
        scene.complete(&format!("good_{name}"), "simulated");
        // What was refused at admission says nothing about the route.
        assert_eq!(scene.submit(&format!("refused_{name}"), "live").1.status, 403);
        assert_eq!(scene.gate("G2", json!({})), expected);
    }
}

#[test]
fn nobody_vouches_for_their_own_work() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.through("G2");
    let evidence = json!({"handoffId": "hs_20260218_walk_sim_1", "evidence": {"report": "s3://reports/e2e"}});
    // Those who do the work, or hand it over, have no say; nor has who only reads, or who only makes tokens.
    let auditor = scene.daemon.token("ann", "auditor", None);
    for token in [&scene.sage, &scene.router, &auditor, &scene.daemon.admin] {
        let reply = scene.ask(token, "G3", evidence.clone());
        assert_eq!((reply.status, reply.code().as_str()), (403, "AUTH_FORBIDDEN"));
        for act in ["rollback", "block", "unblock"] {
            let reply =
                scene.daemon.post_as(token, &format!("/v1/routes/{KEY}/{act}"), json!({"reason": "x"}));
            assert_eq!((reply.status, reply.code().as_str()), (403, "AUTH_FORBIDDEN"));
        }
    }
    // A harness or an operator that is an end of it under another name is still an end of it.
    let own = [
        scene.daemon.token("sage-bench", "harness", Some(TARGET)),
        scene.daemon.token("dr-bench", "harness", Some("crypto-sage-dr")),
        scene.daemon.token("router-bench", "harness", Some(ROUTER)),
        scene.daemon.token(TARGET, "operator", None),
        scene.daemon.person("ivan", ROUTER),
        scene.daemon.person("ines", "crypto-sage-dr"),
    ];
    let head = scene.daemon.events().len();
    for token in &own {
        let reply = scene.ask(token, "G3", evidence.clone());
        assert_eq!((reply.status, reply.code().as_str()), (403, "ROUTE_EVIDENCE_OWN"), "{reply:?}");
    }
    assert_eq!(scene.daemon.events().len(), head);
    // A harness attaches, and does not decide; this TaskSpec asks for a human.
    assert_eq!(scene.ask(&scene.bench, "G3", json!({})).code(), "AUTH_FORBIDDEN");
    assert_eq!(scene.ask(&scene.bench, "G0", json!({})).code(), "AUTH_FORBIDDEN");
    let attached = scene.ask(&scene.bench, "G3", evidence.clone());
    assert_eq!((attached.status, &attached.json()["status"]), (200, &json!("attached")));
    assert_eq!(
        scene.gate("G3", json!({})),
        "evidence on `hs_20260218_walk_sim_1` does not count: a harness attached it, and the TaskSpec asks for a human"
    );
    // One that asks for an authorized harness is content with it.
    let mut run = spec("harnessed");
    run["mode"] = "simulated".into();
    run["safety"]["e2eActor"] = "authorized-harness".into();
    assert_eq!(scene.daemon.post_as(&scene.router, "/v1/handoffs", &run).status, 201);
    let on = json!({"handoffId": run["handoffId"], "evidence": {"traceId": TRACE}});
    assert_eq!(scene.ask(&scene.bench, "G3", on).status, 200);
    let only = json!({"handoffId": run["handoffId"]});
    assert_eq!(
        scene.gate("G3", only),
        "evidence on `hs_20260218_harnessed` does not count: it is not completed"
    );
    for bad in [
        json!({"evidence": {"runId": "r"}}),
        json!({"handoffId": run["handoffId"], "evidence": {}}),
        json!({"handoffId": run["handoffId"], "evidence": {"traceId": "not hex"}}),
        json!({"handoffId": run["handoffId"], "evidence": {"report": "x"}}),
        json!({"handoffId": run["handoffId"], "evidence": {"runId": "r"}, "reason": ""}),
    ] {
        assert_eq!(scene.ask(&scene.rita, "G3", bad.clone()).status, 400, "{bad}");
    }
    assert_eq!(scene.ask(&scene.rita, "G2", json!({"handoffId": run["handoffId"]})).status, 400);
    assert_eq!(scene.ask(&scene.rita, "G2", json!({"evidence": {"runId": "r"}})).status, 400);
    // Who sees only their own handoffs sees where the route stands, and nothing of others' work.
    let shown = scene.daemon.get_as(&scene.sage, &format!("/v1/routes/{KEY}")).json();
    assert_eq!(shown["stage"], "simulated");
    for hidden in ["missing", "definition", "evidence", "inFlight", "lastOutcome"] {
        assert!(shown.get(hidden).is_none(), "{hidden}: {shown}");
    }
}

#[test]
fn g4_needs_a_plan_that_can_be_carried_out() {
    let agent = Agent::answering("200 OK");
    let settings = "[approvals]\nwait = '30s'\n[promotion]\ncanary_runs = 2\n";
    let scene = Scene::with(settings, |route| route["probeUrl"] = agent.url().into());
    scene.through("G3");
    write(&scene.daemon.path("docs/plan.md"), "# Plan\n\n## Triggers\n\nAny failure.\n");
    scene.redefine(|route| route["rollbackPlanRef"] = "docs/plan.md".into());
    assert_eq!(scene.gate("G4", json!({})), "the rollback plan `docs/plan.md` does not say how to revert");
    scene.redefine(|route| route["rollbackPlanRef"] = "docs/nowhere.md".into());
    assert!(scene.gate("G4", json!({})).starts_with("the rollback plan `docs/nowhere.md` "));
    assert_eq!(scene.state().0, "simulated G3 failed");
    // Without one of its own, the route has the plan of the handoff of G3.
    scene.redefine(|route| drop(route.as_object_mut().unwrap().remove("rollbackPlanRef")));
    assert_eq!(scene.gate("G4", json!({})), "passed");
    let route = scene.route();
    assert_eq!(route["planRef"], "agents/blockchain-operator/docs/runbook.md");
    assert_eq!(route["canary"]["of"], 2);
    // A live handoff waits for a person as long as the settings say.
    let live = scene.submit("live_0001", "live").1;
    assert_eq!(live.status, 202);
    let time = |name: &str| Timestamp::parse(live.json()[name].as_str().unwrap()).unwrap();
    assert_eq!(time("expiresAt").seconds_since(time("decidedAt")), 30);
}

#[test]
fn a_rollback_is_rehearsed_carried_out_and_lifted_by_a_person() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.through("G3");
    assert_eq!(scene.gate("G4", json!({})), "passed");

    let steps = |reply: &Reply| -> String {
        assert_eq!(reply.status, 200, "{reply:?}");
        let told = reply.json();
        let steps = told["steps"].as_array().unwrap().iter();
        steps
            .map(|step| format!("{} {}", step["step"].as_str().unwrap(), step["outcome"].as_str().unwrap()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let head = scene.daemon.events().len();
    let dry = scene.act("rollback", json!({"reason": "what if", "dryRun": true, "block": true}));
    assert_eq!(steps(&dry), "demote done, block done, restore skipped, mark skipped");
    assert_eq!((&dry.json()["stage"], dry.json().get("sequence")), (&json!("simulated"), None));
    assert_eq!(scene.daemon.events().len(), head);
    assert_eq!(scene.state().0, "live G4 pending canary");

    let done = scene.act("rollback", json!({"reason": "slippage"}));
    assert_eq!(steps(&done), "demote done, block skipped, restore skipped, mark skipped");
    let (line, rollback) = scene.state();
    assert_eq!(line, "simulated G2 rolled_back");
    assert_eq!(rollback["lastRollbackReason"], "slippage");
    assert!(rollback["lastRollbackAt"].is_string(), "{rollback}");
    assert_eq!(scene.route()["lastRollback"]["by"], "human:rita");
    assert_eq!(scene.submit("after_0001", "live").1.code(), "POLICY_STAGE_NOT_REACHED");
    // What G3 and G4 rested on from before does not count any more.
    assert_eq!(scene.gate("G3", json!({})), "no evidence of an authorized end-to-end run is attached");

    assert_eq!(scene.act("unblock", json!({"reason": "x"})).code(), "ROUTE_NOT_BLOCKED");
    let blocked = scene.act("block", json!({"reason": "the venue is down"}));
    assert_eq!(steps(&blocked), "demote skipped, block done, restore skipped, mark skipped");
    assert_eq!(scene.state().0, "simulated G2 rolled_back blocked");
    assert_eq!(scene.submit("blocked_0001", "dev").1.code(), "A2A_ROUTE_BLOCKED");
    let refused = scene.ask(&scene.rita, "G3", json!({}));
    assert_eq!((refused.status, refused.code().as_str()), (409, "ROUTE_BLOCKED"));
    assert_eq!(scene.route()["missing"][0]["what"], "the route is blocked");
    let opened = scene.act("unblock", json!({"reason": "it is back", "what": "both"}));
    assert_eq!((opened.status, &opened.json()["blocked"]), (200, &json!(false)));
    assert_eq!(scene.submit("open_0001", "dev").1.status, 201);
    assert_eq!(scene.state().0, "simulated G2 rolled_back");

    for bad in [
        json!({}),
        json!({"reason": ""}),
        json!({"reason": "x".repeat(501)}),
        json!({"reason": "x", "why": 1}),
    ] {
        assert_eq!(scene.act("rollback", bad.clone()).status, 400, "{bad}");
    }
    assert_eq!(scene.act("unblock", json!({"reason": "x", "what": "everything"})).status, 400);
    let unknown = scene.daemon.post_as(&scene.rita, "/v1/routes/nowhere.v1/rollback", json!({"reason": "x"}));
    assert_eq!(unknown.status, 404);
    scene.daemon.cli_ok(&["state", "verify"]);
}

#[test]
fn a_rollback_or_an_edit_beats_a_gate_that_is_being_looked_at() {
    let (agent, tell) = Agent::waiting();
    let scene =
        Scene::with("[promotion]\nprobe_timeout = '5s'\n", |route| route["probeUrl"] = agent.url().into());
    scene.complete("dev_0001", "dev");
    assert_eq!(scene.gate("G0", json!({})), "passed");
    let asked = |n: usize| {
        eventually("the agent is asked", || (agent.modes.lock().unwrap().len() == n).then_some(()));
    };
    let meanwhile = |n: usize, act: &dyn Fn()| {
        std::thread::scope(|scope| {
            let gate = scope.spawn(|| scene.ask(&scene.rita, "G1", json!({})));
            asked(n);
            act();
            tell.send(()).unwrap();
            gate.join().unwrap()
        })
    };
    let beaten = meanwhile(1, &|| assert_eq!(scene.act("rollback", json!({"reason": "stop"})).status, 200));
    assert_eq!((beaten.status, beaten.code().as_str()), (409, "ROUTE_SUPERSEDED"), "{beaten:?}");
    let beaten = meanwhile(2, &|| scene.redefine(|route| route["approvers"] = 2.into()));
    assert_eq!((beaten.status, beaten.code().as_str()), (409, "ROUTE_SUPERSEDED"), "{beaten:?}");
    let beaten = meanwhile(3, &|| assert_eq!(scene.act("block", json!({"reason": "stop"})).status, 200));
    assert_eq!(beaten.status, 409, "{beaten:?}");
    assert_eq!(scene.act("unblock", json!({"reason": "go on", "what": "both"})).status, 200);
    assert_eq!(scene.state().0, "dev G0 rolled_back");
    // A handoff that ends meanwhile is only looked at too; the agent is not asked again for it.
    let passed = meanwhile(4, &|| drop(scene.complete("dev_0002", "dev")));
    assert_eq!((passed.status, &passed.json()["status"]), (200, &json!("passed")), "{passed:?}");
    assert_eq!(agent.modes.lock().unwrap().len(), 4);
}

#[test]
fn another_primary_sets_a_live_route_back_to_dev_and_a_rollback_restores_the_one_before() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.through("G3");
    assert_eq!(scene.gate("G4", json!({})), "passed");
    let first = scene.route()["definitionDigest"].clone();
    // What has nothing to do with who does the work leaves the gates as they are.
    scene.redefine(|route| route["approvers"] = 2.into());
    assert_eq!(scene.state().0, "live G4 pending canary");
    scene.redefine(|route| route["primaryAgentId"] = "stranger".into());
    eventually("the route is set back", || (scene.state().0 == "dev - pending").then_some(()));
    assert_eq!(scene.submit("swapped_0001", "live").1.status, 403);
    assert_ne!(scene.route()["definitionDigest"], first);

    let back = scene.act("rollback", json!({"reason": "who is this"}));
    assert_eq!(back.json()["steps"][2], json!({"step": "restore", "outcome": "done"}), "{back:?}");
    let route = scene.route();
    assert_eq!((&route["definition"]["primaryAgentId"], route["pin"].is_object()), (&json!(TARGET), true));
    scene.complete("restored_0001", "dev");
    // The table counts again when somebody lifts that.
    let lifted = scene.act("unblock", json!({"reason": "it is known now", "what": "pin"}));
    assert_eq!((lifted.status, &lifted.json()["pinned"]), (200, &json!(false)));
    assert_eq!(scene.route()["definition"]["primaryAgentId"], "stranger");
    scene.daemon.cli_ok(&["state", "verify"]);
}
