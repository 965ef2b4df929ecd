//! Who may ask for what.

use serde_json::{Value as Json, json};

use super::harness::{Daemon, ROUTER, eventually, location, lost_spec, spec};
use super::wire::Request;

/// A TaskSpec in the name of another source.
fn from(source: &str, name: &str) -> Json {
    let mut spec = spec(name);
    spec["source"]["agentId"] = source.into();
    spec
}

#[test]
fn each_of_twenty_agents_submits_only_as_itself() {
    let daemon = Daemon::new();
    let agents: Vec<String> = (0..20).map(|n| format!("agent-{n:02}")).collect();
    for (own, agent) in agents.iter().enumerate() {
        let token = daemon.token(agent, "orchestrator", Some(agent));
        let specs: Vec<Json> =
            agents.iter().map(|source| from(source, &format!("{agent}_{source}"))).collect();
        let decided = daemon.post_as(&token, "/v1/handoffs/batch", json!(specs)).json();
        for (source, decision) in decided["decisions"].as_array().unwrap().iter().enumerate() {
            if source == own {
                assert_eq!(decision["decision"], "allowed", "{agent}: {decision}");
            } else {
                assert_eq!(decision["decision"], "denied");
                assert_eq!(decision["reasons"][0]["code"], "A2A_SOURCE_MISMATCH", "{agent} as {source}");
                // What the caller sent is said back, whoever it belongs to.
                assert_eq!(decision["handoffId"], specs[source]["handoffId"], "{agent} as {source}");
            }
        }
        // One by one, and when it only asks, it is no different.
        let foreign = from(&agents[(own + 1) % 20], &format!("{agent}_again"));
        let refused = daemon.post_as(&token, "/v1/handoffs", &foreign);
        assert_eq!((refused.status, refused.code().as_str()), (403, "A2A_SOURCE_MISMATCH"));
        assert_eq!((&refused.json()["handoffId"], refused.header("location")), (&foreign["handoffId"], None));
        assert_eq!(daemon.post_as(&token, "/v1/handoffs/check", &foreign).code(), "A2A_SOURCE_MISMATCH");
    }
    // What was refused for its source took nothing from that source.
    let late = daemon.token("late", "orchestrator", Some("agent-00"));
    assert_eq!(daemon.post_as(&late, "/v1/handoffs", from("agent-00", "agent-19_again")).status, 201);
}

#[test]
fn an_administrator_submits_as_anybody_but_never_live() {
    let daemon = Daemon::new();
    let mut live = from("anybody", "admin_0001");
    assert_eq!(daemon.submit(&live).status, 201);
    live = from("anybody", "admin_0002");
    live["mode"] = "live".into();
    let codes = daemon.submit(&live).json()["reasons"].to_string();
    assert!(codes.contains("A2A_SOURCE_MISMATCH"), "{codes}");
}

/// Every operation that needs a token, and the roles that may ask for it.
const MAY: &[(&str, &str)] = &[
    ("submitHandoff", "orchestrator admin"),
    ("submitBatch", "orchestrator admin"),
    ("checkHandoff", "orchestrator operator admin"),
    ("listHandoffs", "orchestrator agent operator harness auditor admin"),
    ("getHandoff", "orchestrator agent operator harness auditor admin"),
    ("streamHandoff", "orchestrator agent operator harness auditor admin"),
    ("getEvidence", "orchestrator agent operator harness auditor admin"),
    ("reportEvent", "orchestrator agent operator"),
    ("convertEvidence", "orchestrator agent operator harness auditor admin"),
    ("rpc", "orchestrator agent operator harness auditor admin"),
    ("rpcWithSlash", "orchestrator agent operator harness auditor admin"),
    ("streamTask", "orchestrator agent operator harness auditor admin"),
    ("listAuthorizations", "operator auditor admin"),
    ("makeAuthorization", "operator"),
    ("getAuthorization", "operator auditor admin"),
    ("revokeAuthorization", "operator"),
    ("listApprovals", "operator auditor admin"),
    ("getApproval", "operator auditor admin"),
    ("answerApproval", "operator"),
    ("listFreezes", "operator auditor admin"),
    ("freeze", "operator admin"),
    ("unfreeze", "operator"),
    ("getMentionPhase", "operator auditor admin"),
    ("moveMentionPhase", "operator"),
    ("listMentions", "operator auditor admin"),
    ("getMentionMetrics", "operator auditor admin"),
    ("markMention", "operator"),
    ("listEntries", "operator auditor admin"),
    ("getEntry", "operator auditor admin"),
    ("streamEntries", "operator auditor admin"),
    ("exportLedger", "operator auditor admin"),
    ("verifyLedger", "operator auditor admin"),
    ("getCheckpoint", "operator auditor admin"),
    ("getState", "operator auditor admin"),
    ("getPolicies", "operator auditor admin"),
    ("answerPolicies", "operator"),
    ("reload", "admin"),
    ("makeConsoleLink", "operator auditor admin"),
    ("listTokens", "admin"),
    ("makeToken", "operator admin"),
    ("revokeToken", "operator admin"),
    ("listKeys", "admin"),
    ("addKey", "admin"),
    ("removeKey", "admin"),
    ("listRoutes", "orchestrator agent operator harness auditor admin"),
    ("getRoute", "orchestrator agent operator harness auditor admin"),
    ("decideGate", "operator harness"),
    ("rollBackRoute", "operator"),
    ("blockRoute", "operator"),
    ("unblockRoute", "operator"),
];

#[test]
fn a_role_may_do_what_is_its_own_and_nothing_else() {
    let daemon = Daemon::new();
    let tokens: Vec<(&str, String)> = ["orchestrator", "agent", "operator", "harness", "auditor", "admin"]
        .into_iter()
        .map(|role| {
            let agent = matches!(role, "orchestrator" | "agent").then_some(ROUTER);
            (role, daemon.token(&format!("one-{role}"), role, agent))
        })
        .collect();
    let mut seen = 0;
    for (template, method, operation) in daemon.contract().operations() {
        if operation.get("security").is_none() {
            continue;
        }
        let id = operation["operationId"].as_str().unwrap();
        let (_, may) = MAY.iter().find(|(known, _)| *known == id).unwrap_or_else(|| panic!("who may {id}?"));
        seen += 1;
        // Nothing that they name is there, and a stream that may be read is asked for in a wrong way: it would go on.
        let target = template.replace("{sequence}", "999999").replace("{id}", "hs_nothing_here");
        let target = target.replace("{token}", "nobody").replace("{key}", "nothing");
        let target = target.replace("{ref}", "authz_nothing").replace("{message}", "1473395000000000001");
        let target = target.replace("{gate}", "G0");
        let target = if id == "streamEntries" { format!("{target}?from=0") } else { target };
        for (role, token) in &tokens {
            let reply = daemon.send(&Request::new(&method, &target).token(token));
            let forbidden = reply.status == 403 && reply.code() == "AUTH_FORBIDDEN";
            let allowed = may.split(' ').any(|word| word == *role);
            assert_eq!(forbidden, !allowed, "{role} {method} {target}: {reply:?}");
            if forbidden {
                let who = may.replace(' ', " or ");
                assert_eq!(reply.json()["hint"], format!("this takes a token of role {who}"), "{target}");
            }
        }
    }
    assert_eq!(seen, MAY.len());
}

#[test]
fn an_operator_registers_harnesses_and_nobody_else() {
    let mut daemon = Daemon::new();
    let rita = daemon.token("rita", "operator", None);
    let make = |daemon: &Daemon, token: &str, name: &str, role: &str| {
        let agent = matches!(role, "orchestrator" | "agent").then_some(ROUTER);
        daemon.post_as(token, "/v1/tokens", json!({"name": name, "role": role, "agentId": agent}))
    };
    let revoke = |daemon: &Daemon, token: &str, which: &str| {
        daemon.send(&Request::new("DELETE", &format!("/v1/tokens/{which}")).token(token))
    };
    for role in ["orchestrator", "agent", "operator", "auditor", "admin"] {
        let refused = make(&daemon, &rita, &format!("own-{role}"), role);
        assert_eq!((refused.status, refused.code().as_str()), (403, "AUTH_FORBIDDEN"), "{role}");
    }
    let made = make(&daemon, &rita, "e2e-1", "harness");
    assert_eq!(made.status, 201, "{made:?}");
    let harness = made.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(daemon.get_as(&harness, "/v1/handoffs").status, 200);
    assert_eq!(make(&daemon, &daemon.admin, "e2e-2", "harness").status, 201);

    // Another's token is not theirs to revoke, by whatever it is named; nor is one that is not there.
    let id = daemon.get("/v1/tokens").json()["tokens"][0]["tokenId"].as_str().unwrap().to_owned();
    for which in ["admin", "rita", &id] {
        assert_eq!(
            (revoke(&daemon, &rita, which).status, revoke(&daemon, &rita, which).code()),
            (403, "AUTH_FORBIDDEN".into())
        );
    }
    assert_eq!(revoke(&daemon, &rita, "nobody").status, 404);
    assert_eq!(revoke(&daemon, &rita, "e2e-1").status, 200);
    assert_eq!(revoke(&daemon, &rita, "e2e-1").status, 404, "it is revoked");
    assert_eq!(daemon.get_as(&harness, "/v1/handoffs").status, 401);
    assert_eq!(revoke(&daemon, &daemon.admin, "e2e-2").status, 200);

    // The ledger says who it was, once, also after a restart.
    let told = |daemon: &Daemon| -> Vec<String> {
        let events = daemon.events();
        let of_tokens = events
            .iter()
            .filter(|event| event["payload"]["name"].as_str().is_some_and(|name| name.starts_with("e2e")));
        let text = |event: &Json, name: &str| event[name].as_str().unwrap().to_owned();
        of_tokens.map(|event| format!("{} by {}", text(event, "type"), text(event, "sender"))).collect()
    };
    let expected = [
        "token.created by human:rita",
        "token.created by system",
        "token.revoked by human:rita",
        "token.revoked by system",
    ];
    assert_eq!(told(&daemon), expected);
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    daemon.restart_after_stop();
    assert_eq!(told(&daemon), expected);
    daemon.cli_ok(&["audit", "verify"]);
}

#[test]
fn what_is_not_ones_own_looks_as_if_it_were_not_there() {
    let daemon = Daemon::new();
    let (theirs, denied) = (spec("theirs_0001"), lost_spec("theirs_0002"));
    assert_eq!(daemon.submit(&theirs).status, 201);
    assert_eq!(daemon.submit(&denied).status, 403);
    let source = daemon.token("source", "orchestrator", Some(ROUTER));
    let target = daemon.token("target", "agent", Some("crypto-sage"));
    let strangers = [
        daemon.token("stranger-1", "orchestrator", Some("other-router")),
        // The target as a source, and the source as a target.
        daemon.token("stranger-2", "orchestrator", Some("crypto-sage")),
        daemon.token("stranger-3", "agent", Some(ROUTER)),
    ];
    for token in [&source, &target] {
        assert_eq!(daemon.get_as(token, &location(&theirs)).status, 200);
        assert_eq!(daemon.get_as(token, &format!("{}/evidence", location(&theirs))).status, 200);
    }
    for stranger in &strangers {
        for hidden in [&theirs, &denied] {
            for tail in ["", "/stream", "/evidence", "/stream?attempt=7"] {
                let there = daemon.get_as(stranger, &format!("{}{tail}", location(hidden)));
                let nowhere = daemon.get_as(stranger, &format!("{}{tail}", location(&spec("nothing_0001"))));
                assert_eq!((there.status, &there.body), (404, &nowhere.body), "{tail}");
            }
        }
        for query in ["", "?agent=decision-router", "?agent=crypto-sage", "?decision=denied"] {
            let listed = daemon.get_as(stranger, &format!("/v1/handoffs{query}")).json();
            assert_eq!(listed, json!({"handoffs": [], "next": null}), "{query}");
        }
    }
    let own = daemon.get_as(&source, "/v1/handoffs").json();
    assert_eq!(own["handoffs"].as_array().unwrap().len(), 2);
}

#[test]
fn whoever_uses_anothers_handoff_id_sees_only_what_it_sent_itself() {
    let daemon = Daemon::new();
    let owner = daemon.token("owner", "orchestrator", Some(ROUTER));
    let stranger = daemon.token("stranger", "orchestrator", Some("other-router"));
    let elsewhere = daemon.token("elsewhere", "orchestrator", Some("third-router"));
    let first = lost_spec("cross_0001");
    let place = location(&first);
    assert_eq!(daemon.post_as(&owner, "/v1/handoffs", &first).status, 403);
    let mut foreign = from("other-router", "cross_0001");
    foreign["correlationId"] = "their_cycle".into();
    foreign["audit"]["idempotencyKey"] = "their_key".into();
    let reused = daemon.post_as(&stranger, "/v1/handoffs", &foreign);
    assert_eq!((reused.status, reused.code().as_str()), (409, "A2A_HANDOFF_REUSED"), "{reused:?}");

    // What each is shown of it: how it stands, how many attempts, and which of them.
    let shown = |token: &str| {
        let reply = daemon.get_as(token, &place);
        let json = if reply.status == 200 { reply.json() } else { return Err(reply.status) };
        let history: Vec<u64> = json["history"]
            .as_array()
            .unwrap()
            .iter()
            .map(|attempt| attempt["attempt"].as_u64().unwrap())
            .collect();
        Ok((json["attempt"].as_u64().unwrap(), json["attempts"].as_u64().unwrap(), history))
    };
    assert_eq!(shown(&owner), Ok((1, 2, vec![1])));
    assert_eq!(shown(&stranger), Ok((2, 2, vec![2])));
    assert_eq!(shown(&daemon.admin), Ok((1, 2, vec![1, 2])));
    assert_eq!(shown(&elsewhere), Err(404));
    let told = daemon.get_as(&stranger, &place).json();
    assert_eq!(told["correlationId"], "their_cycle");
    assert_eq!(told["createdAt"], told["history"][0]["timeline"][0]["at"], "and not when the first began");
    let key = first["audit"]["idempotencyKey"].as_str().unwrap();
    let cycle = first["correlationId"].as_str().unwrap();
    for hidden in [ROUTER, key, cycle] {
        assert!(!told.to_string().contains(hidden), "{hidden} in {told}");
    }

    // The streams of attempts are their own, too; those of refused ones have ended.
    let stream = |token: &str, tail: &str| {
        let reply = daemon.get_as(token, &format!("{place}/stream{tail}"));
        let body = String::from_utf8_lossy(&reply.body).into_owned();
        (reply.status, body.contains("attempt:1"), body.contains("attempt:2"))
    };
    assert_eq!(stream(&owner, ""), (200, true, false));
    assert_eq!(stream(&stranger, ""), (200, false, true));
    assert_eq!(stream(&owner, "?attempt=2").0, 404);
    assert_eq!(stream(&stranger, "?attempt=1").0, 404);
    assert_eq!(stream(&elsewhere, "").0, 404);
    assert_eq!(daemon.get_as(&stranger, &format!("{place}/evidence")).status, 404);

    // In a list a handoff is its owner's.
    let listed = |token: &str, query: &str| {
        let json = daemon.get_as(token, &format!("/v1/handoffs{query}")).json();
        let rows = json["handoffs"].as_array().unwrap().clone();
        rows.iter().map(|row| row["attempt"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&owner, ""), [1]);
    assert!(listed(&stranger, "").is_empty());
    assert_eq!(listed(&daemon.admin, "?agent=decision-router"), [1]);
    assert!(listed(&daemon.admin, "?code=A2A_HANDOFF_REUSED").is_empty());

    // The owner goes on as if nobody had tried, and the other one hears nothing of that.
    let corrected = spec("cross_0001");
    assert_eq!(daemon.post_as(&owner, "/v1/handoffs", &corrected).status, 201);
    assert_eq!(shown(&owner), Ok((3, 3, vec![1, 3])));
    assert_eq!(daemon.get_as(&owner, &format!("{place}/evidence")).status, 200);
    assert_eq!(shown(&stranger), Ok((2, 2, vec![2])));
    assert_eq!(stream(&stranger, "?attempt=3").0, 404);
    assert_eq!(daemon.get_as(&stranger, &format!("{place}/evidence")).status, 404);
    let target = daemon.token("target", "agent", Some("crypto-sage"));
    assert_eq!(listed(&target, ""), [3]);
}

#[test]
fn a_token_that_has_expired_or_was_revoked_counts_no_longer() {
    let daemon = Daemon::new();
    let ask = |token: &str| {
        let reply = daemon.get_as(token, "/v1/handoffs");
        (reply.status, if reply.status == 200 { String::new() } else { reply.code() })
    };
    let refused = || (401, "AUTH_TOKEN_UNKNOWN".to_owned());
    let with_end = |name: &str, until: &str| {
        let made = daemon.post("/v1/tokens", json!({"name": name, "role": "auditor", "expiresAt": until}));
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["token"].as_str().unwrap().to_owned()
    };
    let over = json!({"name": "over", "role": "auditor", "expiresAt": "2020-01-01T00:00:00Z"});
    assert_eq!(daemon.post("/v1/tokens", over).status, 422, "one that never counts is not made");
    assert_eq!(ask(&with_end("long", "2199-01-01T00:00:00Z")), (200, String::new()));
    let soon = super::signing::from_now(2);
    let brief = with_end("brief", &soon);
    eventually("the token expires", || (ask(&brief) == refused()).then_some(()));

    let token = daemon.token("gone", "auditor", None);
    assert_eq!(ask(&token), (200, String::new()));
    assert_eq!(daemon.send(&Request::new("DELETE", "/v1/tokens/gone").token(&daemon.admin)).status, 200);
    assert_eq!(ask(&token), refused());
    // Its name is not for the next one to have, and what it was can still be seen.
    let listed = daemon.get("/v1/tokens").json();
    let gone =
        listed["tokens"].as_array().unwrap().iter().find(|token| token["name"] == "gone").unwrap().clone();
    assert_eq!((gone["valid"].clone(), gone["revokedAt"].is_string()), (json!(false), true));
    assert!(!daemon.log().contains(&token) && !daemon.log().contains(&daemon.admin));
}
