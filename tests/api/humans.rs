//! What people do over HTTP: grants, answers and freezes.

use serde_json::{Value as Json, json};

use super::delegated::{CHANNEL, House, TARGET, codes, mention, sensitive, signed};
use super::harness::{Daemon, ROUTER, eventually, spec};
use super::signing::from_now;
use super::wire::{Reply, Request};

/// A grant for what [`sensitive`] asks for, used once, for an hour.
fn terms() -> Json {
    json!({"principal": "user:main", "agents": [TARGET], "operations": ["transfer"], "modes": ["simulated"],
        "expiresAt": from_now(3600)})
}

impl House {
    fn grant(&self, change: impl FnOnce(&mut Json)) -> String {
        let mut terms = terms();
        change(&mut terms);
        let made = self.daemon.post_as(&self.rita, "/v1/authorizations", terms);
        assert_eq!(made.status, 201, "{made:?}");
        let grant = made.json()["authorizationRef"].as_str().unwrap().to_owned();
        assert_eq!(made.header("location"), Some(format!("/v1/authorizations/{grant}").as_str()));
        grant
    }

    fn shown(&self, grant: &str) -> Json {
        let shown = self.daemon.get(&format!("/v1/authorizations/{grant}"));
        assert_eq!(shown.status, 200, "{shown:?}");
        shown.json()
    }

    fn revoke(&self, grant: &str, query: &str) -> Reply {
        let target = format!("/v1/authorizations/{grant}{query}");
        self.daemon.send(&Request::new("DELETE", &target).token(&self.rita))
    }

    fn freeze(&self, token: &str, method: &str, body: Json) -> Reply {
        self.daemon.send(&Request::new(method, "/v1/freeze").token(token).json(body.to_string()))
    }
}

fn told(reply: &Reply) -> (u16, String) {
    (reply.status, reply.code())
}

#[test]
fn a_grant_is_made_listed_shown_and_revoked() {
    let house = House::new();
    let daemon = &house.daemon;
    let made = daemon.post_as(&house.rita, "/v1/authorizations", terms()).json();
    let grant = made["authorizationRef"].as_str().unwrap();
    assert_eq!((&made["state"], &made["uses"], &made["used"]), (&json!("in_force"), &json!(1), &json!(0)));
    assert_eq!((&made["madeBy"], &made["routeKey"]), (&json!("rita"), &json!(null)));
    assert!(made["sequence"].as_u64().unwrap() > 0);
    assert_eq!(house.shown(grant)["authorizationRef"], grant);

    let others: Vec<String> = (0..4).map(|_| house.grant(|_| {})).collect();
    let revoked = house.revoke(grant, "?reason=the%20desk%20is%20closed");
    assert_eq!((revoked.status, revoked.json()["state"].as_str()), (200, Some("revoked")));
    assert_eq!(told(&house.revoke(grant, "")), (409, "AUTHORIZATION_REVOKED".to_owned()));

    // The newest first, in pages, by what they have come to.
    let names = |page: &Json| -> Vec<String> {
        let rows = page["authorizations"].as_array().unwrap();
        rows.iter().map(|row| row["authorizationRef"].as_str().unwrap().to_owned()).collect()
    };
    let mut expected: Vec<String> = others.iter().rev().cloned().collect();
    assert_eq!(names(&daemon.get("/v1/authorizations?state=in_force").json()), expected);
    assert_eq!(names(&daemon.get("/v1/authorizations?state=revoked").json()), [grant]);
    assert_eq!(names(&daemon.get("/v1/authorizations?state=spent").json()), Vec::<String>::new());
    expected.push(grant.to_owned());
    let (mut listed, mut target) = (Vec::new(), "/v1/authorizations?limit=2".to_owned());
    for _ in 0..3 {
        let page = daemon.get(&target).json();
        listed.extend(names(&page));
        let Some(next) = page["next"].as_str() else { break };
        target = format!("/v1/authorizations?limit=2&cursor={next}");
    }
    assert_eq!(listed, expected);

    for bad in ["?state=gone", "?cursor=nonsense", "?limit=0"] {
        assert_eq!(
            told(&daemon.get(&format!("/v1/authorizations{bad}"))),
            (400, "HTTP_QUERY_INVALID".to_owned())
        );
    }
    let unknown = "authz_01KHSA7E5V0000000000000004";
    assert_eq!(told(&house.revoke(unknown, "")), (404, "AUTHORIZATION_UNKNOWN".to_owned()));
    assert_eq!(told(&daemon.get("/v1/authorizations/nonsense")), (404, "AUTHORIZATION_UNKNOWN".to_owned()));
    // Who and why is in the ledger.
    let events = daemon.events();
    let event = events.iter().find(|event| event["type"] == "authorization.revoked").unwrap();
    assert_eq!(
        (&event["sender"], &event["payload"]["reason"]),
        (&json!("human:rita"), &json!("the desk is closed"))
    );
}

#[test]
fn a_grant_that_does_not_say_what_it_must_is_not_made() {
    let house = House::new();
    let refused = |change: fn(&mut Json), pointers: &[&str]| {
        let mut terms = terms();
        change(&mut terms);
        let reply = house.daemon.post_as(&house.rita, "/v1/authorizations", terms);
        assert_eq!(told(&reply), (422, "ACT_INVALID".to_owned()), "{reply:?}");
        let faults = reply.json()["faults"].as_array().unwrap().clone();
        let found: Vec<&str> = faults.iter().map(|fault| fault["pointer"].as_str().unwrap()).collect();
        assert_eq!(found, pointers);
        assert!(faults.iter().all(|fault| fault["hint"].is_string()), "{faults:?}");
    };
    refused(|terms| terms["expiresAt"] = from_now(-1).into(), &["/expiresAt"]);
    refused(|terms| terms["expiresAt"] = from_now(31 * 86_400).into(), &["/expiresAt"]);
    refused(|terms| terms["uses"] = 0.into(), &["/uses"]);
    refused(|terms| terms["modes"] = json!(["production"]), &["/modes/0"]);
    refused(|terms| terms["extra"] = true.into(), &["/extra"]);
    let mut nothing = terms();
    nothing.as_object_mut().unwrap().remove("agents");
    assert_eq!(house.daemon.post_as(&house.rita, "/v1/authorizations", nothing).status, 422);
    let twice = r#"{"principal": "user:main", "principal": "user:other"}"#;
    let reply = house.daemon.post_as(&house.rita, "/v1/authorizations", twice);
    assert_eq!(told(&reply), (400, "A2A_BODY_INVALID".to_owned()));
    assert_eq!(house.daemon.get("/v1/authorizations").json()["authorizations"], json!([]));
}

#[test]
fn nobody_grants_their_own() {
    let house = House::new();
    let operator = |name: &str, principal: Option<&str>| {
        let new = json!({"name": name, "role": "operator", "principal": principal});
        let new = if principal.is_some() { new } else { json!({"name": name, "role": "operator"}) };
        house.daemon.post("/v1/tokens", new).json()["token"].as_str().unwrap().to_owned()
    };
    let own = (403, "AUTHORIZATION_OWN".to_owned());
    for token in [
        operator("main", Some("user:main")),
        operator("user:main", None),
        operator(TARGET, None),
        operator("other", Some(TARGET)),
    ] {
        assert_eq!(told(&house.daemon.post_as(&token, "/v1/authorizations", terms())), own);
    }
    let bo = operator("bo", Some("user:bo"));
    assert_eq!(house.daemon.post_as(&bo, "/v1/authorizations", terms()).status, 201);
}

/// Who made it is known by name and by principal when it is used, for only then its source is known.
#[test]
fn nobody_hands_work_over_under_a_grant_of_their_own() {
    let house = House::new();
    let made_by = |token: &str| {
        let made = house.daemon.post_as(token, "/v1/authorizations", terms());
        made.json()["authorizationRef"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
    };
    let check = |name: &str, grant: &str, expected: &[&str]| {
        assert_eq!(house.codes(&signed(sensitive(name, grant), |_| {})), expected, "{name}");
    };
    const SCOPE: &[&str] = &["POLICY_AUTHORIZATION_SCOPE"];
    check("made_0001", &made_by(&house.daemon.person("bo", "user:bo")), &[]);
    check("made_0002", &made_by(&house.daemon.person("ivan", ROUTER)), SCOPE);
    check("made_0003", &made_by(&house.daemon.token(ROUTER, "operator", None)), SCOPE);
    // The target's other name.
    check("made_0004", &made_by(&house.daemon.person("ines", "crypto-sage")), SCOPE);
}

/// The person signed for the target, and for the fallback only where the TaskSpec names it.
#[test]
fn work_in_a_persons_name_is_done_by_those_whom_the_person_signed_for() {
    let house = House::new();
    let claim = |name: &str, agent: &str, fallback: Option<&str>, expected: (u16, &str)| {
        let agents = json!([TARGET, "crypto-sage-dr"]);
        let grant = house.grant(|terms| terms["agents"] = agents.clone());
        let spec = signed(sensitive(name, &grant), |spec| {
            if let Some(fallback) = fallback {
                spec["routing"]["fallbackAgentId"] = fallback.into();
                spec["authorship"]["delegationPolicy"]["allowAgents"] = agents.clone();
                spec["authorship"]["envelope"]["scope"]["agents"] = agents.clone();
            }
        });
        assert_eq!(house.codes(&spec), Vec::<String>::new(), "{name}");
        let token = house.daemon.token(&format!("{agent}-{name}"), "agent", Some(agent));
        let event = json!({
            "wire": "1.1", "wire_id": format!("wire_{}", name.replace('_', "")), "type": "task.claimed",
            "ts": "2026-02-18T19:38:05Z", "sender": format!("agent:{agent}"), "payload": {},
            "state": {"category": "working", "terminal": false},
            "stream": {"stream_id": format!("task:{}:attempt:1", spec["handoffId"].as_str().unwrap()), "stream_seq": 4,
                "context_id": spec["correlationId"], "correlation_id": spec["correlationId"]},
        });
        let place = format!("{}/events", super::harness::location(&spec));
        let reply = house.daemon.post_as(&token, &place, &event);
        assert_eq!((reply.status, reply.code().as_str()), expected, "{name}: {reply:?}");
    };
    claim("claims_0001", TARGET, None, (201, ""));
    claim("claims_0002", "crypto-sage", None, (201, ""));
    claim("claims_0003", "crypto-sage-dr", None, (404, "HTTP_NOT_FOUND"));
    claim("claims_0004", "crypto-sage-dr", Some("crypto-sage-dr"), (201, ""));

    // A grant has to be for the fallback as well.
    let grant = house.grant(|_| {});
    let spec = signed(sensitive("claims_0005", &grant), |spec| {
        let agents = json!([TARGET, "crypto-sage-dr"]);
        spec["routing"]["fallbackAgentId"] = "crypto-sage-dr".into();
        spec["authorship"]["delegationPolicy"]["allowAgents"] = agents.clone();
        spec["authorship"]["envelope"]["scope"]["agents"] = agents;
    });
    assert_eq!(house.codes(&spec), ["POLICY_AUTHORIZATION_SCOPE"]);
}

/// Whatever is logged under a grant has to be covered by it; only what needs a yes uses it up.
#[test]
fn a_grant_that_is_named_where_none_is_needed_must_cover_the_work_and_is_not_used() {
    let house = House::new();
    let read = |name: &str, grant: &str| {
        signed(mention(name, "1473395000000000001"), |spec| {
            let authorship = spec["authorship"].as_object_mut().unwrap();
            authorship.remove("mentionDelegationMode");
            authorship.remove("mentionDelegation");
            authorship["risk"]["authorizationRef"] = grant.into();
        })
    };
    let check = |name: &str, grant: &str, expected: &[&str]| {
        let spec = read(name, grant);
        let dry = house.daemon.post("/v1/handoffs/check", &spec).json();
        assert_eq!(codes(&dry), expected, "{name}: {dry}");
        assert_eq!(house.codes(&spec), expected, "{name}");
    };
    let fits = house.grant(|terms| terms["operations"] = json!(["balance.read"]));
    check("read_0001", &fits, &[]);
    check("read_0002", &fits, &[]);
    assert_eq!(house.shown(&fits)["used"], 0);
    check("read_0003", "authz_of_my_own", &["POLICY_AUTHORIZATION_UNKNOWN"]);
    check("read_0004", &house.grant(|_| {}), &["POLICY_AUTHORIZATION_SCOPE"]);
    assert_eq!(house.revoke(&fits, "").status, 200);
    check("read_0005", &fits, &["POLICY_AUTHORIZATION_REVOKED"]);
}

#[test]
fn sensitive_work_needs_a_grant_that_covers_it() {
    let house = House::new();
    let check = |name: &str, grant: &str, expected: &[&str]| {
        assert_eq!(house.codes(&signed(sensitive(name, grant), |_| {})), expected, "{name}");
    };
    check("fits_0001", &house.grant(|_| {}), &[]);
    check("unknown_0001", "authz_01KHSA7E5V0000000000000004", &["POLICY_AUTHORIZATION_UNKNOWN"]);
    check("unknown_0002", "authz_of_my_own", &["POLICY_AUTHORIZATION_UNKNOWN"]);
    let revoked = house.grant(|_| {});
    assert_eq!(house.revoke(&revoked, "").status, 200);
    check("revoked_0001", &revoked, &["POLICY_AUTHORIZATION_REVOKED"]);
    let spent = house.grant(|terms| terms["uses"] = 2.into());
    check("spent_0001", &spent, &[]);
    check("spent_0002", &spent, &[]);
    check("spent_0003", &spent, &["POLICY_AUTHORIZATION_SPENT"]);
    assert_eq!(house.shown(&spent)["state"], "spent");

    // Each member on its own: one that fits is let through, one that does not is the only reason against it.
    let scope = |name: &str, change: fn(&mut Json), expected: &[&str]| {
        check(name, &house.grant(change), expected);
    };
    const SCOPE: &[&str] = &["POLICY_AUTHORIZATION_SCOPE"];
    scope("principal_0001", |terms| terms["principal"] = "user:other".into(), SCOPE);
    scope("agent_0001", |terms| terms["agents"] = json!(["crypto-sage"]), SCOPE);
    scope("agent_0002", |terms| terms["agents"] = json!(["crypto-sage", TARGET]), &[]);
    scope("operation_0001", |terms| terms["operations"] = json!(["swap.jupiter", "transfer*"]), SCOPE);
    scope("mode_0001", |terms| terms["modes"] = json!(["dev", "live"]), SCOPE);
    scope("channel_0001", |terms| terms["channels"] = json!([CHANNEL]), SCOPE);
    scope("route_0001", |terms| terms["routeKey"] = "another.route.v1".into(), SCOPE);
    scope("route_0002", |terms| terms["routeKey"] = "crypto-sage.execution-plane.v1".into(), &[]);
    scope("intent_0001", |terms| terms["intentHash"] = format!("sha256:{}", "0".repeat(64)).into(), SCOPE);

    // One that ends is good until it does.
    let brief = house.grant(|terms| {
        terms["expiresAt"] = from_now(2).into();
        terms["uses"] = 1000.into();
    });
    let mut n = 0;
    let last = eventually("the grant expires", || {
        n += 1;
        let decision =
            house.daemon.submit(&signed(sensitive(&format!("brief_{n:04}"), &brief), |_| {})).json();
        (decision["decision"] != "allowed").then_some(decision)
    });
    assert_eq!(
        (&last["decision"], codes(&last)),
        (&json!("expired"), vec!["POLICY_AUTHORIZATION_EXPIRED".to_owned()])
    );
    assert_eq!(house.shown(&brief)["state"], "expired");
}

#[test]
fn a_grant_with_one_use_is_used_once_by_a_hundred_at_once() {
    let house = House::new();
    let grant = house.grant(|_| {});
    let specs: Vec<Json> =
        (0..100).map(|n| signed(sensitive(&format!("rush_{n:04}"), &grant), |_| {})).collect();
    let daemon = &house.daemon;
    let decided: Vec<Json> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            specs.iter().map(|spec| scope.spawn(move || daemon.submit(spec).json())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let allowed = decided.iter().filter(|decision| decision["decision"] == "allowed").count();
    let spent = decided.iter().filter(|decision| codes(decision) == ["POLICY_AUTHORIZATION_SPENT"]).count();
    assert_eq!((allowed, spent), (1, 99));
    assert_eq!(house.shown(&grant)["used"], 1);
    let uses = daemon.events().iter().filter(|event| event["type"] == "authorization.used").count();
    assert_eq!(uses, 1);
}

#[test]
fn a_handoff_that_is_refused_or_given_again_spends_no_use() {
    let house = House::new();
    let grant = house.grant(|_| {});
    let used = || house.shown(&grant)["used"].clone();
    // The gates against it, and then only a claim.
    let no_plan =
        signed(sensitive("spares_0001", &grant), |spec| spec["rollback"]["planRef"] = "docs/none.md".into());
    assert_eq!(house.codes(&no_plan), ["POLICY_ROLLBACK_PLAN_MISSING"]);
    let orphan =
        signed(sensitive("spares_0002", &grant), |spec| spec["parentHandoffId"] = "hs_nobody_0001".into());
    assert_eq!(house.codes(&orphan), ["A2A_PARENT_INVALID"]);
    let checked = signed(sensitive("spares_0003", &grant), |_| {});
    assert_eq!(house.daemon.post("/v1/handoffs/check", &checked).json()["decision"], "allowed");
    assert_eq!(used(), 0);
    assert_eq!(house.daemon.submit(&checked).status, 201);
    assert_eq!(used(), 1);
    let again = house.daemon.submit(&checked);
    assert_eq!((again.status, again.json()["decision"].as_str()), (200, Some("allowed")));
    assert_eq!(used(), 1);
}

#[test]
fn a_freeze_stops_what_is_decided_after_it_until_it_is_lifted() {
    let house = House::new();
    let daemon = &house.daemon;
    let (before, simulated) = (spec("before_0001"), |name: &str| {
        let mut simulated = spec(name);
        simulated["mode"] = "simulated".into();
        simulated
    });
    let mode = before["mode"].as_str().unwrap().to_owned();
    assert_eq!(mode, "dev");
    assert_eq!(daemon.submit(&simulated("before_0002")).status, 201);
    let first = daemon.submit(&before).json();
    assert!(first["dispatch"].is_object() && first["receipt"].is_object());
    let ask = json!({"scope": "mode", "mode": mode, "reason": "wrong balances"});

    // An admin is no person, and may stop all the same.
    let frozen = house.freeze(&daemon.admin, "POST", ask.clone());
    assert_eq!(frozen.status, 200, "{frozen:?}");
    let frozen = frozen.json();
    assert_eq!(
        (&frozen["scope"], &frozen["mode"], &frozen["heldBefore"]),
        (&json!("mode"), &json!(mode), &json!(false))
    );
    assert_eq!(
        (&frozen["inFlightTotal"], &frozen["inFlight"][0]["handoffId"]),
        (&json!(1), &before["handoffId"])
    );
    assert_eq!(frozen["inFlight"][0]["status"], "available");
    let from = daemon.get(&format!("/v1/audit/{}", frozen["fromSequence"])).json();
    assert_eq!(from["wire"]["type"], "freeze.set", "{from}");
    let again = house.freeze(&house.rita, "POST", ask.clone()).json();
    assert_eq!((&again["heldBefore"], &again["fromSequence"]), (&json!(true), &frozen["fromSequence"]));

    let refused = daemon.submit(&spec("during_0001"));
    assert_eq!(told(&refused), (403, "POLICY_FROZEN".to_owned()));
    assert!(refused.json()["ledger"]["sequence"].as_u64() > frozen["fromSequence"].as_u64());
    assert_eq!(daemon.submit(&simulated("during_0002")).status, 201, "another mode goes on");
    let replayed = daemon.submit(&before).json();
    assert_eq!((&replayed["decision"], &replayed["replayed"]), (&json!("allowed"), &json!(true)));
    assert!(replayed.get("dispatch").is_none() && replayed.get("receipt").is_none(), "{replayed}");
    // What is under way cannot be claimed any more.
    let sage = daemon.token("sage", "agent", Some("crypto-sage"));
    let event = json!({
        "wire": "1.1", "wire_id": "wire_frozen0001", "type": "task.claimed", "ts": "2026-02-18T19:38:05Z",
        "sender": "agent:crypto-sage", "payload": {}, "state": {"category": "working", "terminal": false},
        "stream": {"stream_id": format!("task:{}:attempt:1", before["handoffId"].as_str().unwrap()), "stream_seq": 4,
            "context_id": before["correlationId"], "correlation_id": before["correlationId"]},
    });
    let place = format!("{}/events", super::harness::location(&before));
    assert_eq!(told(&daemon.post_as(&sage, &place, &event)), (409, "WIRE_HALTED".to_owned()));

    // Who is told what: anybody that it is frozen, operators by whom and why.
    let ready = daemon.get("/readyz").json();
    assert_eq!((&ready["status"], &ready["degraded"][0]["what"]), (&json!("degraded"), &json!("freeze")));
    let why = ready["degraded"][0]["why"].as_str().unwrap();
    assert!(why.starts_with(&format!("frozen: mode {mode} since ")) && !why.contains("balances"), "{why}");
    assert_eq!(daemon.metric("handoffd_freezes "), Some(1.0));
    let listed = daemon.get("/v1/freeze").json();
    assert_eq!(
        (&listed["frozen"][0]["by"], &listed["frozen"][0]["reason"]),
        (&json!("admin"), &json!("wrong balances"))
    );

    // Only exactly what was frozen is lifted, and only by a person.
    let all = json!({"scope": "all", "reason": "over"});
    let wrong = house.freeze(&house.rita, "DELETE", all);
    assert_eq!(told(&wrong), (409, "FREEZE_NOT_SET".to_owned()));
    assert_eq!(wrong.json()["frozen"], json!([{"scope": "mode", "mode": mode}]));
    assert_eq!(told(&house.freeze(&daemon.admin, "DELETE", ask.clone())), (403, "AUTH_FORBIDDEN".to_owned()));
    let lifted = house.freeze(&house.rita, "DELETE", ask).json();
    assert!(lifted["fromSequence"].as_u64() > frozen["fromSequence"].as_u64());
    assert_eq!(daemon.submit(&spec("during_0001")).status, 201, "the same again, as its next attempt");
    assert!(daemon.submit(&before).json()["receipt"].is_object());
    assert_eq!(daemon.get("/v1/freeze").json(), json!({"frozen": []}));
    assert_eq!(daemon.get("/readyz").json()["status"], "ready");
}

#[test]
fn a_freeze_says_exactly_what_it_stops() {
    let house = House::new();
    let daemon = &house.daemon;
    let route = "crypto-sage.execution-plane.v1";
    let frozen = |body: Json| house.freeze(&house.rita, "POST", body);
    for (body, pointer) in [
        (json!({"scope": "route", "reason": "x"}), "/routeKey"),
        (json!({"scope": "mode", "routeKey": route, "mode": "live", "reason": "x"}), "/routeKey"),
        (json!({"scope": "all", "mode": "live", "reason": "x"}), "/mode"),
        (json!({"scope": "route", "routeKey": "crypto-sage.execution-plane.v2", "reason": "x"}), "/routeKey"),
        (json!({"scope": "all", "reason": " "}), "/reason"),
    ] {
        let reply = frozen(body);
        assert_eq!(told(&reply), (422, "ACT_INVALID".to_owned()));
        assert_eq!(reply.json()["pointer"], pointer);
    }
    let hint = frozen(json!({"scope": "route", "routeKey": "crypto-sage.execution-plane.v2", "reason": "x"}));
    assert!(hint.json()["hint"].as_str().unwrap().contains(route));
    for (mut body, in_flight, stops) in [
        (json!({"scope": "all"}), 0, true),
        (json!({"scope": "route", "routeKey": route}), 1, true),
        (json!({"scope": "mode", "mode": "live"}), 0, false),
    ] {
        body["reason"] = "drill".into();
        let held = frozen(body.clone());
        assert_eq!((held.status, &held.json()["inFlightTotal"]), (200, &json!(in_flight)));
        let name = format!("drill_{}_0001", body["scope"].as_str().unwrap());
        let during = daemon.submit(&spec(&name));
        let expected = if stops { (403, "POLICY_FROZEN".to_owned()) } else { (201, String::new()) };
        assert_eq!((during.status, during.code()), expected);
        assert_eq!(house.freeze(&house.rita, "DELETE", body).status, 200);
        assert_eq!(daemon.submit(&spec(&name)).status, if stops { 201 } else { 200 });
    }
}

#[test]
fn a_freeze_holds_after_a_restart() {
    let House { mut daemon, rita } = House::new();
    let body = json!({"scope": "all", "reason": "drill"}).to_string();
    let ask = |daemon: &Daemon, method: &str| {
        daemon.send(&Request::new(method, "/v1/freeze").token(&rita).json(&body)).status
    };
    assert_eq!(ask(&daemon, "POST"), 200);
    daemon.signal("TERM");
    daemon.wait();
    daemon.restart_after_stop();
    assert_eq!(told(&daemon.submit(&spec("restart_0001"))), (403, "POLICY_FROZEN".to_owned()));
    assert_eq!(ask(&daemon, "DELETE"), 200);
    assert_eq!(daemon.submit(&spec("restart_0001")).status, 201);
}

#[test]
fn only_what_waits_can_be_answered_and_only_by_a_person() {
    let house = House::new();
    let daemon = &house.daemon;
    let settled = spec("settled_0001");
    assert_eq!(daemon.submit(&settled).status, 201);
    let place = format!("/v1/approvals/{}", settled["handoffId"].as_str().unwrap());
    let yes = json!({"decision": "approve", "reason": "looks right"});
    for place in [place.as_str(), "/v1/approvals/hs_nothing_here"] {
        assert_eq!(told(&daemon.post_as(&house.rita, place, &yes)), (409, "APPROVAL_NOT_WAITING".to_owned()));
        assert_eq!(told(&daemon.get(place)), (404, "HTTP_NOT_FOUND".to_owned()));
    }
    for bad in
        [json!({"decision": "approve"}), json!({"decision": "maybe", "reason": "x"}), json!({}), json!([])]
    {
        assert_eq!(told(&daemon.post_as(&house.rita, &place, bad)), (422, "ACT_INVALID".to_owned()));
    }
    let others = [
        daemon.admin.clone(),
        daemon.token("router", "orchestrator", Some(ROUTER)),
        daemon.token("sage", "agent", Some("crypto-sage")),
        daemon.token("harness", "harness", None),
        daemon.token("auditor", "auditor", None),
    ];
    for token in &others {
        assert_eq!(told(&daemon.post_as(token, &place, &yes)), (403, "AUTH_FORBIDDEN".to_owned()));
        assert_eq!(
            told(&daemon.post_as(token, "/v1/authorizations", terms())),
            (403, "AUTH_FORBIDDEN".to_owned())
        );
    }
    assert_eq!(daemon.get("/v1/approvals").json(), json!({"approvals": [], "total": 0, "next": null}));
    for bad in ["?cursor=x", "?cursor=1", "?limit=501"] {
        assert_eq!(told(&daemon.get(&format!("/v1/approvals{bad}"))), (400, "HTTP_QUERY_INVALID".to_owned()));
    }
    assert_eq!(daemon.metric("handoffd_approvals_waiting "), Some(0.0));
}

#[test]
fn whoever_is_willing_to_wait_is_answered_at_once_where_nobody_is_asked() {
    let daemon = Daemon::new();
    let submit = |wait: &str, spec: &Json| daemon.post(&format!("/v1/handoffs?wait={wait}"), spec);
    assert_eq!(submit("60s", &spec("wait_0001")).status, 201);
    assert_eq!(submit("60s", &spec("wait_0001")).status, 200);
    assert_eq!(submit("0s", &spec("wait_0002")).status, 201);
    for bad in ["61s", "30", "1m", "-1s", ""] {
        assert_eq!(told(&submit(bad, &spec("wait_0003"))), (400, "HTTP_QUERY_INVALID".to_owned()), "{bad}");
    }
}
