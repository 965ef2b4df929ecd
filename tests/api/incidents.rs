//! Failures that people had with systems like this one, tried here. `docs/incidents.md` lists them all; those that other
//! tests show are not shown again.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value as Json, json};

use super::delegated::{CHANNEL, House, codes, mention, signed};
use super::harness::{Daemon, ROUTER, command, eventually, location, spec, write};
use super::route::{Agent, KEY, Scene};
use super::wire::Reply;

const STATE: &str = "memory/orchestration-state.json";

fn state(daemon: &Daemon) -> Json {
    serde_json::from_slice(&fs::read(daemon.path(STATE)).unwrap()).unwrap()
}

/// What the state file says of a handoff.
fn status(daemon: &Daemon, spec: &Json) -> Json {
    state(daemon)["activeHandoffs"][spec["handoffId"].as_str().unwrap()]["status"].clone()
}

fn created(daemon: &Daemon, spec: &Json) -> usize {
    let is_it = |event: &&Json| {
        event["type"] == "task.created" && event["payload"]["handoff_id"] == spec["handoffId"]
    };
    daemon.events().iter().filter(is_it).count()
}

fn stop(daemon: &mut Daemon) {
    daemon.signal("TERM");
    assert!(daemon.wait().success());
}

#[test]
fn the_same_task_sent_33_times_is_decided_once_and_is_one_dispatch() {
    let scene = signing();
    assert_eq!(add_signing_key(&scene).status, 201);
    let spec = spec("thirty_three");
    let send = || scene.daemon.post_as(&scene.router, "/v1/handoffs", &spec).json();
    let replies: Vec<Json> = std::thread::scope(|scope| {
        let sent: Vec<_> = (0..33).map(|_| scope.spawn(send)).collect();
        sent.into_iter().map(|reply| reply.join().unwrap()).collect()
    });
    assert_eq!(replies.iter().filter(|reply| reply["replayed"] == false).count(), 1);
    // Whoever was answered holds the same payload, made once, for the same entry.
    for reply in &replies {
        assert_eq!(reply["decision"], "allowed", "{reply}");
        assert!(reply["dispatch"]["auth"]["nonce"].is_string(), "{reply}");
        assert_eq!(
            (&reply["ledger"], &reply["dispatch"]),
            (&replies[0]["ledger"], &replies[0]["dispatch"]),
            "{reply}"
        );
    }
    assert_eq!(created(&scene.daemon, &spec), 1);
    // Asking again is answered from what is claimed: the ledger ends where it did.
    let before = scene.daemon.events().len();
    assert_eq!(send()["replayed"], true);
    assert_eq!(scene.daemon.events().len(), before);
}

const SIGNING_KEY: &str = "crypto-sage-dispatch-1";

/// A route whose dispatches have to be signed, with a key that is not there yet.
fn signing() -> Scene {
    Scene::with("", |route| {
        route["signingKeyId"] = SIGNING_KEY.into();
        route["requireSignature"] = true.into();
    })
}

fn add_signing_key(scene: &Scene) -> Reply {
    let key = json!({"keyId": SIGNING_KEY, "owner": "crypto-sage", "purpose": "dispatch",
        "secret": "shared with the receiver"});
    scene.daemon.post("/v1/keys", key)
}

fn event(spec: &Json, seq: u64, kind: &str, (category, terminal): (&str, bool), payload: Json) -> Json {
    json!({
        "wire": "1.1", "wire_id": format!("wire_incident{seq:04}{}", kind.replace(['.', '_'], "")),
        "type": kind, "ts": "2026-02-18T19:38:05Z", "sender": "agent:crypto-sage", "payload": payload,
        "state": {"category": category, "terminal": terminal},
        "stream": {"stream_id": format!("task:{}:attempt:1", spec["handoffId"].as_str().unwrap()),
            "stream_seq": seq, "context_id": spec["correlationId"], "correlation_id": spec["correlationId"]},
    })
}

#[test]
fn what_was_allowed_is_not_done_before_an_agent_has_shown_it() {
    let daemon = Daemon::new();
    let sage = daemon.token("sage", "agent", Some("crypto-sage"));
    let spec = spec("never_ran");
    let report =
        |event: Json| -> Reply { daemon.post_as(&sage, &format!("{}/events", location(&spec)), event) };
    let taken = |seq: u64, kind: &str, payload: Json| {
        let reply = report(event(&spec, seq, kind, ("working", false), payload));
        assert_eq!(reply.status, 201, "{reply:?}");
    };
    let complete = |seq: u64, artifacts: Json, verification: Json| {
        let done = json!({"artifact_ids": artifacts, "verification": verification});
        let reply = report(event(&spec, seq, "task.complete", ("completed", true), done));
        (reply.status, reply.code())
    };
    let passed = || json!({"mechanical": "pass"});
    let refused = |status: u16, code: &str| (status, code.to_owned());
    assert_eq!(daemon.submit(&spec).status, 201);
    assert_eq!(status(&daemon, &spec), "queued", "allowed is no success");
    // Nobody has claimed it, so nobody can have done it.
    assert_eq!(complete(4, json!(["report"]), passed()), refused(409, "WIRE_TRANSITION"));
    taken(4, "task.claimed", json!({}));
    taken(5, "task.started", json!({}));
    // It runs, but has nothing to show for it.
    assert_eq!(complete(6, json!(["report"]), passed()), refused(422, "WIRE_ARTIFACT"));
    assert_eq!(complete(6, json!([]), passed()), refused(422, "WIRE_INVALID"));
    let artifact = json!({"artifact_id": "report", "uri": "s3://reports/1", "version": 1,
        "hash": format!("sha256:{}", "0".repeat(64))});
    taken(6, "artifact.ready", artifact);
    // There is something, and nobody says that it passed its checks.
    assert_eq!(complete(7, json!(["report"]), json!({"mechanical": "fail"})), refused(422, "WIRE_INVALID"));
    assert_eq!(complete(7, json!(["report"]), json!({})), refused(422, "WIRE_INVALID"));
    assert_eq!(complete(7, json!(["report", "other"]), passed()), refused(422, "WIRE_ARTIFACT"));
    assert_eq!(status(&daemon, &spec), "running");
    assert_eq!(complete(7, json!(["report"]), passed()).0, 201);
    assert_eq!(status(&daemon, &spec), "done");
}

#[test]
fn a_refusal_keeps_nobody_from_sending_the_corrected_handoff() {
    let daemon = Daemon::new();
    let mut spec = spec("review_loop");
    spec["safety"]["e2eActor"] = "crypto-sage".into();
    for attempt in 1..=2 {
        let refused = daemon.submit(&spec).json();
        assert_eq!((&refused["decision"], &refused["attempt"]), (&json!("denied"), &json!(attempt)));
    }
    spec["safety"]["e2eActor"] = "human".into();
    let allowed = daemon.submit(&spec).json();
    assert_eq!((&allowed["decision"], &allowed["attempt"]), (&json!("allowed"), &json!(3)), "{allowed}");
}

/// A route that is live, where a person has so long to answer.
fn reviewed(wait: &str) -> (Agent, Scene) {
    let agent = Agent::answering("200 OK");
    let url = agent.url();
    let settings = format!("[approvals]\nwait = \"{wait}\"\n");
    let scene = Scene::with(&settings, |route| route["probeUrl"] = url.into());
    scene.go_live();
    (agent, scene)
}

#[test]
fn what_a_reviewer_sent_back_comes_again_under_an_id_of_its_own() {
    let (_agent, scene) = reviewed("15m");
    let send = |spec: &Json| scene.daemon.post_as(&scene.router, "/v1/handoffs", spec);
    let (first, reply) = scene.submit("reviewed_0001", "live");
    assert_eq!(reply.status, 202);
    assert_eq!(scene.answer(&scene.rita, &first, "reject").json()["decision"], "denied");
    // What was reviewed stays what it was, whoever asks again and however often.
    let again = send(&first);
    assert_eq!((again.status, again.code().as_str()), (200, "POLICY_APPROVAL_REJECTED"), "{again:?}");
    assert_eq!(again.json()["replayed"], true);
    // The corrected one is another handoff; the answer says so.
    let mut corrected = first.clone();
    corrected["intent"]["summary"] = "what the reviewer asked for".into();
    corrected["audit"]["idempotencyKey"] = "idem_reviewed_0002".into();
    let reused = send(&corrected);
    assert_eq!((reused.status, reused.code().as_str()), (409, "A2A_HANDOFF_REUSED"), "{reused:?}");
    let hint = reused.json()["reasons"][0]["hint"].to_string();
    assert!(hint.contains("new"), "{hint}");
    corrected["handoffId"] = "hs_20260218_reviewed_0002".into();
    let waits = send(&corrected);
    assert_eq!((waits.status, &waits.json()["attempt"]), (202, &json!(1)), "{waits:?}");
    assert_eq!(scene.answer(&scene.rita, &corrected, "approve").json()["decision"], "allowed");
}

#[test]
fn what_nobody_has_answered_in_time_is_open_nowhere() {
    let (_agent, scene) = reviewed("10s");
    let (spec, reply) = scene.submit("expired_0001", "live");
    assert_eq!(reply.status, 202);
    // By itself: nobody asks for it, and nothing else is decided.
    let ended = eventually("its time is over", || {
        scene
            .daemon
            .events()
            .into_iter()
            .find(|event| event["payload"]["codes"][0] == "POLICY_APPROVAL_EXPIRED")
    });
    assert_eq!(ended["payload"]["decision"], "expired", "{ended}");
    eventually("the state file has no place for it", || {
        let shown = status(&scene.daemon, &spec);
        (shown != "needs_approval").then_some(())
    });
    assert_eq!(scene.daemon.get("/v1/approvals").json()["approvals"], json!([]));
    let shown = scene.daemon.get(&location(&spec)).json();
    assert_eq!(shown["decision"], "expired", "{shown}");
    let late = scene.answer(&scene.rita, &spec, "approve");
    assert_eq!((late.status, late.code().as_str()), (409, "APPROVAL_NOT_WAITING"), "{late:?}");
}

#[test]
fn a_state_file_that_is_gone_empty_or_torn_is_made_again_from_the_ledger() {
    let mut daemon = Daemon::new();
    let spec = spec("torn_state");
    assert_eq!(daemon.submit(&spec).status, 201);
    let damages: [fn(&std::path::Path); 3] = [
        |path| fs::remove_file(path).unwrap(),
        |path| write(path, ""),
        |path| {
            let text = fs::read_to_string(path).unwrap();
            write(path, &text[..text.len() / 2]);
        },
    ];
    for damage in damages {
        stop(&mut daemon);
        damage(&daemon.path(STATE));
        daemon.restart_after_stop();
        assert_eq!(status(&daemon, &spec), "queued");
    }
}

#[test]
fn an_edited_state_file_is_noticed_although_its_times_were_left_alone() {
    let mut daemon = Daemon::new();
    let spec = spec("edited_state");
    assert_eq!(daemon.submit(&spec).status, 201);
    stop(&mut daemon);
    let path = daemon.path(STATE);
    let text = fs::read_to_string(&path).unwrap();
    let edited = text.replace("\"queued\"", "\"done\"");
    assert_ne!(edited, text);
    write(&path, &edited);
    let started = command(&daemon.workspace(), &["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(!started.status.success() && said.contains("somebody edited it"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), edited, "it is left for people to look at");
    daemon.cli_ok(&["state", "restore"]);
    daemon.restart_after_stop();
    assert_eq!(status(&daemon, &spec), "queued");
}

#[test]
fn many_writers_at_once_lose_no_handoff_from_the_state_file() {
    let daemon = Daemon::new();
    let names: Vec<String> =
        (0..16).flat_map(|t| (0..8).map(move |n| format!("shared_{t:02}_{n}"))).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (daemon, is_over) = (&daemon, &is_over);
        // Whoever reads meanwhile finds a whole file, and never fewer handoffs than before.
        scope.spawn(move || {
            let mut seen = 0;
            while !is_over.load(Ordering::Acquire) {
                let shown = state(daemon)["activeHandoffs"].as_object().unwrap().len();
                assert!(shown >= seen, "{shown} after {seen}");
                seen = shown;
            }
        });
        let writers: Vec<_> = names
            .chunks(8)
            .map(|part| {
                scope.spawn(move || {
                    for name in part {
                        let spec = spec(name);
                        assert_eq!(daemon.submit(&spec).status, 201);
                        assert_eq!(status(daemon, &spec), "queued", "it is there when the reply is");
                    }
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Release);
        assert!(ended.iter().all(Result::is_ok));
    });
    let state = state(&daemon);
    let shown: BTreeSet<&String> = state["activeHandoffs"].as_object().unwrap().keys().collect();
    let sent: Vec<String> = names.iter().map(|name| format!("hs_20260218_{name}")).collect();
    assert_eq!(shown, sent.iter().collect());
}

#[test]
fn a_refused_duplicate_leaves_the_first_decision_as_it_was() {
    let agent = Agent::answering("200 OK");
    let mut scene = Scene::new(Some(agent.url()));
    scene.go_live();
    let other = |spec: &Json| {
        let mut other = spec.clone();
        other["audit"]["idempotencyKey"] = format!("other_{}", spec["handoffId"].as_str().unwrap()).into();
        other["intent"]["summary"] = "something else".into();
        other
    };
    // Its first attempt is refused as well, so that the one that counts is neither the first nor the last.
    let mut wrong = spec("first_0001");
    wrong["mode"] = "simulated".into();
    wrong["safety"]["e2eActor"] = "crypto-sage".into();
    assert_eq!(scene.daemon.post_as(&scene.router, "/v1/handoffs", wrong).status, 403);
    let (allowed, first) = scene.submit("first_0001", "simulated");
    assert_eq!((first.status, &first.json()["attempt"]), (201, &json!(2)));
    let (waits, first) = scene.submit("first_0002", "live");
    assert_eq!(first.status, 202);
    for round in 0..2 {
        for (spec, decision, shown) in
            [(&allowed, "allowed", "queued"), (&waits, "needs_approval", "needs_approval")]
        {
            let refused = scene.daemon.post_as(&scene.router, "/v1/handoffs", other(spec));
            assert_eq!((refused.status, refused.code().as_str()), (409, "A2A_HANDOFF_REUSED"), "{refused:?}");
            let again = scene.daemon.post_as(&scene.router, "/v1/handoffs", spec).json();
            assert_eq!((&again["decision"], &again["replayed"]), (&json!(decision), &json!(true)), "{round}");
            assert_eq!(again.get("expiresAt").is_some(), decision == "needs_approval", "{round}: {again}");
            assert_eq!(status(&scene.daemon, spec), shown);
        }
        let waiting = scene.daemon.get("/v1/approvals").json();
        assert_eq!(waiting["approvals"][0]["handoffId"], waits["handoffId"], "{round}: {waiting}");
        // Killed so soon that the refusal is read back from the ledger itself.
        assert_eq!(scene.daemon.post_as(&scene.router, "/v1/handoffs", other(&waits)).status, 409);
        scene.daemon.signal("KILL");
        scene.daemon.wait();
        scene.daemon.restart_after_stop();
    }
    let approved = scene.answer(&scene.rita, &waits, "approve");
    assert_eq!(approved.json()["decision"], "allowed", "{approved:?}");
    // What the ledger says of all that can be read again.
    stop(&mut scene.daemon);
    scene.daemon.restart_after_stop();
    assert_eq!(scene.daemon.post_as(&scene.router, "/v1/handoffs", &waits).json()["decision"], "allowed");
}

#[test]
fn a_fallback_whose_key_is_missing_is_refused_before_anything_is_sent() {
    let scene = signing();
    let to_fallback = |name: &str| {
        let mut spec = spec(name);
        spec["target"]["agentId"] = "crypto-sage-dr".into();
        scene.daemon.post_as(&scene.router, "/v1/handoffs", spec)
    };
    let refused = to_fallback("fallback_0001");
    assert_eq!((refused.status, refused.code().as_str()), (403, "A2A_KEY_UNKNOWN"), "{refused:?}");
    let hint = refused.json()["reasons"][0]["hint"].to_string();
    assert!(hint.contains("handoffd key add") && hint.contains(SIGNING_KEY), "{hint}");
    assert_eq!(add_signing_key(&scene).status, 201);
    let allowed = to_fallback("fallback_0001").json();
    assert_eq!(allowed["dispatch"]["auth"]["keyId"], SIGNING_KEY, "{allowed}");
}

/// The route from the agent of [`KEY`] back to who hands it its work.
const BACK: &str = "decision-router.execution-plane.v1";

/// Two bots that answer each other, as one of them would send it.
fn round(n: usize, cycle: &str, parent: Option<&Json>) -> Json {
    let bots = [ROUTER, "blockchain-operator"];
    let (from, to) = (bots[n % 2], bots[(n + 1) % 2]);
    let message = format!("1473395000{}{n:05}", cycle.len());
    signed(mention(&format!("{cycle}_{n:04}"), &message), |spec| {
        spec["correlationId"] = format!("corr_{cycle}").into();
        if let Some(parent) = parent {
            spec["parentHandoffId"] = parent["handoffId"].clone();
        }
        spec["source"]["agentId"] = from.into();
        spec["target"]["agentId"] = to.into();
        spec["routing"]["routeKey"] = if to == ROUTER { BACK } else { KEY }.into();
        let authorship = &mut spec["authorship"];
        authorship["delegationPolicy"]["allowAgents"] = json!([to]);
        authorship["envelope"]["delegateAgent"] = json!({"agentId": from});
        authorship["envelope"]["scope"]["agents"] = json!([to]);
        authorship["mentionDelegation"]["channel"] = CHANNEL.into();
        authorship["mentionDelegation"]["originBotId"] = from.into();
        authorship["mentionDelegation"]["targetBotId"] = to.into();
    })
}

#[test]
fn a_mention_loop_of_42_rounds_ends_at_the_ninth_or_the_second() {
    let house = House::prepared(|policy, table| {
        policy["allowAgents"].as_array_mut().unwrap().push(ROUTER.into());
        let mut back = table["routes"][KEY].clone();
        back["primaryAgentId"] = ROUTER.into();
        back.as_object_mut().unwrap().remove("aliases");
        table["routes"][BACK] = back;
    });
    let up = json!({"phase": "gated-read", "reason": "drill"});
    let request =
        super::wire::Request::new("PUT", "/v1/mentions/phase").token(&house.rita).json(up.to_string());
    assert_eq!(house.daemon.send(&request).status, 200);
    // Bots that hide where their work comes from.
    for n in 0..42 {
        let decided = house.daemon.submit(&round(n, "hidden", None)).json();
        let expected: &[&str] = if n < 8 { &[] } else { &["POLICY_LOOP_DETECTED"] };
        assert_eq!(codes(&decided), expected, "round {n}: {decided}");
    }
    // Bots that say it.
    let first = round(0, "said", None);
    assert_eq!(house.codes(&first), Vec::<String>::new());
    assert_eq!(house.codes(&round(1, "said", Some(&first))), ["POLICY_LOOP_DETECTED"]);
    // An alias is another name of one bot: it neither answers itself under it, nor stands in a chain twice.
    let renamed = |name: &str, from: &str, to: &str, parent: Option<&Json>| {
        let mut spec = round(0, name, parent);
        spec["source"]["agentId"] = from.into();
        spec["target"]["agentId"] = to.into();
        signed(spec, |spec| {
            let authorship = &mut spec["authorship"];
            authorship["delegationPolicy"]["allowAgents"] = json!([to]);
            authorship["envelope"]["delegateAgent"] = json!({"agentId": from});
            authorship["envelope"]["scope"]["agents"] = json!([to]);
            authorship["mentionDelegation"]["originBotId"] = from.into();
            authorship["mentionDelegation"]["targetBotId"] = to.into();
        })
    };
    let own = renamed("renamed_own", "crypto-sage", "blockchain-operator", None);
    assert_eq!(house.codes(&own), ["POLICY_MENTION_LOOP"]);
    let first = renamed("alias", ROUTER, "crypto-sage", None);
    assert_eq!(house.codes(&first), Vec::<String>::new());
    let mut back = round(1, "aliased", Some(&first));
    back["correlationId"] = first["correlationId"].clone();
    back["source"]["agentId"] = "crypto-sage".into();
    let onward = signed(back, |spec| {
        spec["target"]["agentId"] = "blockchain-operator".into();
        spec["routing"]["routeKey"] = KEY.into();
        spec["source"]["agentId"] = "crypto-sage".into();
        let authorship = &mut spec["authorship"];
        authorship["delegationPolicy"]["allowAgents"] = json!(["blockchain-operator"]);
        authorship["envelope"]["delegateAgent"] = json!({"agentId": "crypto-sage"});
        authorship["envelope"]["scope"]["agents"] = json!(["blockchain-operator"]);
        authorship["mentionDelegation"]["originBotId"] = "crypto-sage".into();
        authorship["mentionDelegation"]["targetBotId"] = "blockchain-operator".into();
    });
    assert_eq!(house.codes(&onward), ["POLICY_LOOP_DETECTED", "POLICY_MENTION_LOOP"]);
}
