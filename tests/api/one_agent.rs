//! One agent by all its names: who counts as an end of a handoff, and who may look at it.

use serde_json::{Value as Json, json};

use super::approvals::live;
use super::delegated::{House, SECRET, codes, mention, sensitive, signed};
use super::harness::{ROUTER, location, spec, write};
use super::route::{Agent, Scene};
use super::signing::from_now;
use super::streams::{Event, Events, to_the_end};
use super::wire::Request;

/// Another route of the primary that is shipped, and what that is called there.
const SIDE: &str = "crypto-sage.side.v1";
const SIDE_NAME: &str = "sage-of-the-side";

fn with_side_names(table: &mut Json) {
    let side = |primary: &str, alias: &str| json!({"capability": "side", "primaryAgentId": primary, "aliases": [alias]});
    table["routes"][SIDE] = side("crypto-sage", SIDE_NAME);
    table["routes"]["fallback.side.v1"] = side("crypto-sage-dr", "dr-of-the-side");
    table["routes"]["router.side.v1"] = side(ROUTER, "router-of-the-side");
}

/// A route whose agents all have another name on another route.
fn scene(settings: &str, change: impl FnOnce(&mut Json)) -> (Agent, Scene) {
    let agent = Agent::answering("200 OK");
    let scene = Scene::with(settings, |route| {
        route["probeUrl"] = agent.url().into();
        change(route);
    });
    let path = scene.daemon.path("policies/routes.json");
    let mut table: Json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    with_side_names(&mut table);
    write(&path, table.to_string());
    assert_eq!(scene.daemon.post("/v1/reload", "").status, 200);
    (agent, scene)
}

/// The same, where a principal's work is taken without a mention.
fn delegated_scene(settings: &str, change: impl FnOnce(&mut Json)) -> (Agent, Scene) {
    let (agent, scene) = scene(settings, change);
    let path = scene.daemon.path("policies/delegation/user-main-v1.json");
    let mut policy: Json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    policy["allowWithoutChannel"] = true.into();
    policy["allowAgents"] = json!(["*"]);
    write(&path, policy.to_string());
    assert_eq!(scene.daemon.post("/v1/reload", "").status, 200);
    let key = json!({"keyId": "user-main-test", "owner": "user:main", "secret": SECRET});
    assert_eq!(scene.daemon.post("/v1/keys", key).status, 201);
    (agent, scene)
}

/// A principal's work that reads, with this fallback if any.
fn reads(name: &str, mode: &str, fallback: Option<&str>) -> Json {
    signed(mention(name, "1473395000000000201"), |spec| {
        spec["mode"] = mode.into();
        spec["safety"]["requiresHumanApproval"] = (mode == "live").into();
        let authorship = spec["authorship"].as_object_mut().unwrap();
        authorship.remove("mentionDelegationMode");
        authorship.remove("mentionDelegation");
        if let Some(fallback) = fallback {
            let agents = json!([spec["target"]["agentId"], fallback]);
            spec["routing"]["fallbackAgentId"] = fallback.into();
            spec["authorship"]["delegationPolicy"]["allowAgents"] = agents.clone();
            spec["authorship"]["envelope"]["scope"]["agents"] = agents;
        }
    })
}

#[test]
fn two_aliases_of_one_primary_on_two_routes_are_one_agent() {
    let house = House::prepared(|policy, table| {
        policy["allowAgents"] = json!(["*"]);
        with_side_names(table);
    });
    let up = json!({"phase": "gated-read", "reason": "drill"}).to_string();
    let request = Request::new("PUT", "/v1/mentions/phase").token(&house.rita).json(up);
    assert_eq!(house.daemon.send(&request).status, 200);
    let from = |name: &str, message: &str, source: &str| {
        signed(mention(name, message), |spec| {
            spec["source"]["agentId"] = source.into();
            spec["authorship"]["envelope"]["delegateAgent"] = json!({"agentId": source});
            spec["authorship"]["mentionDelegation"]["originBotId"] = source.into();
        })
    };
    let check = |spec: &Json, expected: &[&str]| {
        let decided = house.daemon.submit(spec).json();
        assert_eq!(codes(&decided), expected, "{decided}");
    };
    check(&from("names_0001", "1473395000000000101", ROUTER), &[]);
    check(&from("names_0002", "1473395000000000102", "crypto-sage"), &["POLICY_MENTION_LOOP"]);
    check(&from("names_0003", "1473395000000000103", SIDE_NAME), &["POLICY_MENTION_LOOP"]);
    // And nobody makes a grant for it who goes by the other one.
    let grant = |token: &str| {
        let terms = json!({"principal": "user:main", "agents": ["blockchain-operator"], "operations": ["transfer"],
            "modes": ["simulated"], "expiresAt": from_now(600)});
        let made = house.daemon.post_as(token, "/v1/authorizations", terms);
        made.json()["authorizationRef"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
    };
    let used = |name: &str, maker: &str| signed(sensitive(name, &grant(maker)), |_| {});
    check(&used("names_0004", &house.daemon.token("bo", "operator", None)), &[]);
    let own = house.daemon.token(SIDE_NAME, "operator", None);
    check(&used("names_0005", &own), &["POLICY_AUTHORIZATION_SCOPE"]);
}

#[test]
fn nobody_approves_work_that_they_do_under_another_name() {
    let (_agent, scene) = scene("", |_| {});
    scene.go_live();
    let mut work = live("other_0001");
    work["target"]["agentId"] = "blockchain-operator".into();
    let waits = scene.daemon.post_as(&scene.router, "/v1/handoffs", &work);
    assert_eq!(waits.status, 202, "{waits:?}");
    let by = |name: &str, work: &Json| {
        let answered = scene.answer(&scene.daemon.token(name, "operator", None), work, "approve");
        (answered.status, answered.code())
    };
    let own = (403, "APPROVAL_OWN".to_owned());
    for name in ["blockchain-operator", "crypto-sage", SIDE_NAME, "router-of-the-side"] {
        assert_eq!(by(name, &work), own, "{name}");
    }
    let approved = scene.answer(&scene.rita, &work, "approve");
    assert_eq!(approved.json()["decision"], "allowed", "{approved:?}");
}

/// Direct work may be done by anybody whom its route names; a principal's only by those whom it was signed for.
#[test]
fn nobody_approves_work_that_they_may_do_instead_of_the_target() {
    let (_agent, scene) = delegated_scene("[promotion]\ncanary_runs = 1\n", |_| {});
    scene.go_live();
    let check = |work: &Json, name: &str, word: &str| {
        let token = scene.daemon.token(name, "operator", None);
        let told = scene.answer(&token, work, "approve");
        let word_of = |told: &Json| told["decision"].as_str().or(told["code"].as_str()).map(str::to_owned);
        assert_eq!(word_of(&told.json()).as_deref(), Some(word), "{name}: {told:?}");
        assert_eq!(
            scene
                .daemon
                .send(&Request::new("DELETE", &format!("/v1/tokens/{name}")).token(&scene.daemon.admin))
                .status,
            200
        );
    };
    let waits = |work: &Json| {
        let told = scene.daemon.post_as(&scene.router, "/v1/handoffs", work);
        assert_eq!(told.status, 202, "{told:?}");
    };
    let direct = live("instead_0001");
    waits(&direct);
    check(&direct, "crypto-sage-dr", "APPROVAL_OWN");
    check(&direct, "dr-of-the-side", "APPROVAL_OWN");
    // What is handed to the fallback may be done by the route's own agent.
    let mut to_the_fallback = live("instead_0002");
    to_the_fallback["target"]["agentId"] = "crypto-sage-dr".into();
    waits(&to_the_fallback);
    check(&to_the_fallback, "crypto-sage", "APPROVAL_OWN");
    check(&to_the_fallback, SIDE_NAME, "APPROVAL_OWN");
    let named = reads("instead_0003", "live", Some("crypto-sage-dr"));
    waits(&named);
    check(&named, "crypto-sage-dr", "APPROVAL_OWN");
    check(&named, "dr-of-the-side", "APPROVAL_OWN");
    // Whom nobody signed for has no part in it.
    let unnamed = reads("instead_0004", "live", None);
    waits(&unnamed);
    check(&unnamed, "dr-of-the-side", "allowed");
}

#[test]
fn the_fallback_makes_no_grant_for_itself_under_another_name() {
    let house = House::prepared(|policy, table| {
        policy["allowAgents"] = json!(["*"]);
        with_side_names(table);
    });
    let agents = json!(["blockchain-operator", "crypto-sage-dr"]);
    let check = |name: &str, maker: &str, fallback: bool, expected: &[&str]| {
        let maker = house.daemon.person(name, maker);
        let terms = json!({"principal": "user:main", "agents": agents, "operations": ["transfer"],
            "modes": ["simulated"], "expiresAt": from_now(600)});
        let made = house.daemon.post_as(&maker, "/v1/authorizations", terms).json();
        let work = signed(sensitive(name, made["authorizationRef"].as_str().unwrap()), |spec| {
            if fallback {
                spec["routing"]["fallbackAgentId"] = "crypto-sage-dr".into();
                spec["authorship"]["delegationPolicy"]["allowAgents"] = agents.clone();
                spec["authorship"]["envelope"]["scope"]["agents"] = agents.clone();
            }
        });
        assert_eq!(house.codes(&work), expected, "{name}");
    };
    check("granted_0001", "user:bo", true, &[]);
    check("granted_0002", "dr-of-the-side", true, &["POLICY_AUTHORIZATION_SCOPE"]);
    check("granted_0003", "dr-of-the-side", false, &[]);
}

/// An operator who makes a harness, as the agent of this name if any.
fn harness_of(scene: &Scene, maker: &str, name: &str, agent: Option<&str>) -> String {
    let mut asked = json!({"name": name, "role": "harness"});
    if let Some(agent) = agent {
        asked["agentId"] = agent.into();
    }
    let made = scene.daemon.post_as(maker, "/v1/tokens", asked);
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["token"].as_str().unwrap().to_owned()
}

#[test]
fn nobody_vouches_for_a_run_under_another_name_or_through_a_harness_of_theirs() {
    let (_agent, scene) = scene("", |_| {});
    scene.through("G2");
    let evidence = json!({"handoffId": "hs_20260218_walk_sim_1", "evidence": {"runId": "run-7"}});
    let person = |name: &str| scene.daemon.token(name, "operator", None);
    let tied = |name: &str, principal: &str| scene.daemon.person(name, principal);
    let head = scene.daemon.events().len();
    for token in [
        person(SIDE_NAME),
        person("router-of-the-side"),
        person("dr-of-the-side"),
        tied("ivan", SIDE_NAME),
        harness_of(&scene, &scene.rita, "bench-a", Some(SIDE_NAME)),
        harness_of(&scene, &scene.rita, "bench-b", Some("router-of-the-side")),
        harness_of(&scene, &person("crypto-sage"), "bench-c", None),
        harness_of(&scene, &person(ROUTER), "bench-d", None),
        harness_of(&scene, &tied("ines", SIDE_NAME), "bench-e", None),
    ] {
        let reply = scene.ask(&token, "G3", evidence.clone());
        assert_eq!((reply.status, reply.code().as_str()), (403, "ROUTE_EVIDENCE_OWN"), "{reply:?}");
    }
    let wrote =
        |kind: &str| scene.daemon.events().iter().skip(head).filter(|event| event["type"] == kind).count();
    assert_eq!(wrote("promotion.evidence"), 0);

    // What stood behind it is recorded, and looked at again when the gate is decided.
    let mut run = spec("harnessed");
    run["mode"] = "simulated".into();
    run["safety"]["e2eActor"] = "authorized-harness".into();
    assert_eq!(scene.daemon.post_as(&scene.router, "/v1/handoffs", &run).status, 201);
    let bo = scene.daemon.person("bo", "user:bo");
    let bench = harness_of(&scene, &bo, "bench-f", Some("tester"));
    let on = json!({"handoffId": run["handoffId"], "evidence": {"runId": "run-8"}});
    assert_eq!(scene.ask(&bench, "G3", on).status, 200);
    let events = scene.daemon.events();
    let attached = events.iter().rfind(|event| event["type"] == "promotion.evidence").unwrap();
    let behind = ["agent_id", "registered_by", "principal"].map(|name| attached["payload"][name].clone());
    assert_eq!(behind, ["tester", "bo", "user:bo"].map(Json::from));
    scene.redefine(|route| route["aliases"] = json!(["blockchain-operator", "tester"]));
    assert_eq!(
        scene.gate("G3", json!({})),
        "evidence on `hs_20260218_harnessed` does not count: `tester` is one of its own ends"
    );
    assert_eq!(scene.gate("G3", evidence), "passed");
}

#[test]
fn no_agent_of_a_route_lets_it_go_live() {
    let (_agent, scene) = scene("", |_| {});
    scene.through("G3");
    let own = |token: String, name: &str| {
        let told = scene.ask(&token, "G4", json!({"reason": "go"})).json();
        assert_eq!(told["status"], "failed", "{told}");
        let what = told["missing"][0]["what"].as_str().unwrap();
        assert_eq!(what, format!("the operator `{name}` is an agent of the route: `{name}`"));
    };
    for name in ["crypto-sage", "blockchain-operator", "crypto-sage-dr", SIDE_NAME, "dr-of-the-side"] {
        own(scene.daemon.token(name, "operator", None), name);
    }
    let told = scene.ask(&scene.daemon.person("ivan", "crypto-sage-dr"), "G4", json!({})).json();
    assert_eq!(told["missing"][0]["what"], "the operator `ivan` is an agent of the route: `crypto-sage-dr`");
    assert_eq!(scene.state().0, "simulated G3 failed");
    // Who hands the work over is another agent.
    let router = scene.daemon.token(ROUTER, "operator", None);
    assert_eq!(scene.ask(&router, "G4", json!({})).json()["status"], "passed");
}

#[test]
fn a_taskspec_that_is_not_valid_is_no_evidence_for_g0() {
    let (_agent, scene) = scene("", |_| {});
    let without = |name: &str, change: fn(&mut Json), code: &str| {
        let mut work = spec(name);
        work["mode"] = "dev".into();
        change(&mut work);
        let refused = scene.daemon.post_as(&scene.router, "/v1/handoffs", &work);
        assert_eq!((refused.status, codes(&refused.json())), (403, vec![code.to_owned()]), "{refused:?}");
        assert_eq!(
            scene.gate("G0", json!({})),
            "no handoff on this route has passed every contract check since it was defined"
        );
    };
    without(
        "no_plan",
        |work| drop(work.as_object_mut().unwrap().remove("rollback")),
        "POLICY_ROLLBACK_PLAN_MISSING",
    );
    without("self_test", |work| work["safety"]["e2eActor"] = "agent".into(), "POLICY_SELF_TEST");
    without(
        "effects",
        |work| work["safety"]["allowExternalSideEffects"] = true.into(),
        "POLICY_SIDE_EFFECTS",
    );
    // A valid one that was refused for another reason is evidence.
    assert_eq!(scene.submit("early_sim", "simulated").1.code(), "POLICY_STAGE_NOT_REACHED");
    assert_eq!(scene.gate("G0", json!({})), "passed");
}

fn rpc_get(scene: &Scene, token: &str, id: &str) -> Json {
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": id}});
    scene.daemon.post_as(token, "/rpc", asked).json()
}

/// Who may not touch a principal's work does not read it, either.
#[test]
fn delegated_work_is_seen_by_those_whom_the_person_signed_for() {
    let (_agent, mut scene) = delegated_scene("", |route| route["stage"] = "simulated".into());
    let fallback = scene.daemon.token("dr", "agent", Some("crypto-sage-dr"));
    let named = reads("seen_0001", "simulated", Some("crypto-sage-dr"));
    let unnamed = reads("seen_0002", "simulated", None);
    let refused = signed(reads("seen_0003", "simulated", None), |spec| spec["intent"]["input"] = json!({}));
    let mut direct = spec("seen_0004");
    direct["mode"] = "simulated".into();
    for (work, status) in [(&named, 201), (&unnamed, 201), (&refused, 422), (&direct, 201)] {
        let told = scene.daemon.post_as(&scene.router, "/v1/handoffs", work);
        assert_eq!(told.status, status, "{told:?}");
    }
    let words = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {
        "message": {"kind": "message", "role": "user", "messageId": "words-1", "taskId": unnamed["handoffId"],
            "parts": [{"kind": "text", "text": "the account is 8YxS"}]},
        "configuration": {"blocking": false}}});
    let said = scene.daemon.post_as(&scene.router, "/rpc", words).json();
    assert!(said.get("error").is_none(), "{said}");
    let look = |scene: &Scene, token: &str, work: &Json, sees: bool| {
        let id = work["handoffId"].as_str().unwrap();
        let place = location(work);
        for target in [place.clone(), format!("{place}/evidence")] {
            let status = scene.daemon.get_as(token, &target).status;
            assert_eq!(status == 200, sees && (target == place || work != &refused), "{target}: {status}");
        }
        if !sees {
            for target in [format!("{place}/stream"), format!("/stream/{id}")] {
                assert_eq!(scene.daemon.get_as(token, &target).status, 404, "{target}");
            }
        }
        let task = rpc_get(scene, token, id);
        assert_eq!(task.get("result").is_some(), sees, "{task}");
        assert_eq!(task["error"]["code"] == -32001, !sees, "{task}");
    };
    let check = |scene: &Scene| {
        look(scene, &fallback, &unnamed, false);
        look(scene, &fallback, &refused, false);
        look(scene, &fallback, &named, true);
        look(scene, &fallback, &direct, true);
        // The target by another of its names.
        look(scene, &scene.sage, &unnamed, true);
        look(scene, &scene.router, &unnamed, true);
    };
    check(&scene);
    // The tables are made again, and say the same.
    scene.daemon.signal("TERM");
    assert!(scene.daemon.wait().success());
    std::fs::remove_file(scene.daemon.path("memory/views.db")).unwrap();
    scene.daemon.restart_after_stop();
    check(&scene);
}

/// A stream is told what its reader may see by now.
#[test]
fn an_open_stream_ends_when_its_reader_is_no_agent_of_the_route_any_more() {
    let (_agent, scene) = scene("", |_| {});
    let fallback = scene.daemon.token("dr", "agent", Some("crypto-sage-dr"));
    let (work, told) = scene.submit("open_0001", "dev");
    assert_eq!(told.status, 201, "{told:?}");
    let id = work["handoffId"].as_str().unwrap();
    let targets = [format!("{}/stream", location(&work)), format!("/stream/{id}")];
    let open = |token: &str| {
        targets
            .each_ref()
            .map(|target| Events::open(&scene.daemon, &Request::new("GET", target).token(token)))
    };
    let (theirs, own) = (open(&fallback), open(&scene.sage));
    scene.redefine(|route| route["fallbackAgentId"] = "another-dr".into());
    let event = json!({
        "wire": "1.1", "wire_id": "wire_open0001", "type": "task.claimed", "ts": "2026-02-18T19:38:05Z",
        "sender": "agent:crypto-sage", "payload": {}, "state": {"category": "working", "terminal": false},
        "stream": {"stream_id": format!("task:{id}:attempt:1"), "stream_seq": 4,
            "context_id": work["correlationId"], "correlation_id": work["correlationId"]},
    });
    assert_eq!(scene.daemon.post_as(&scene.sage, &format!("{}/events", location(&work)), event).status, 201);
    for mut events in theirs {
        let texts: Vec<String> =
            to_the_end(&mut events).iter().map(|event| event.text().to_owned()).collect();
        assert!(
            !texts.iter().any(|text| text.contains("task.claimed") || text.contains("working")),
            "{texts:?}"
        );
    }
    for mut events in own {
        let claimed =
            |event: &Event| event.text().contains("task.claimed") || event.text().contains("working");
        while !claimed(&events.next_event().unwrap()) {}
    }
}
