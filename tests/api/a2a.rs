//! A2A over `/rpc`, in both versions: handing over, retrying, asking, canceling, and whose task it is.

use serde_json::{Value as Json, json};

use super::conversation::{BOTH, Conversation, Version};
use super::harness::{Daemon, ROUTER, command, lost_spec, spec, write};
use super::route::{Agent, Scene};
use super::wire::Request;

fn id_of(task: &Json) -> &str {
    task["id"].as_str().unwrap()
}

#[test]
fn the_card_is_for_everybody_and_kept_by_its_etag() {
    let daemon = Daemon::new();
    let reply = daemon.send(&Request::new("GET", "/.well-known/agent-card.json"));
    assert_eq!((reply.status, reply.header("cache-control")), (200, Some("public, max-age=300")));
    let card = reply.json();
    let rpc = format!("http://{}/rpc", daemon.address);
    assert_eq!(
        (&card["name"], &card["url"], &card["endpoints"]["jsonrpc"]),
        (&json!("handoffd"), &json!(rpc), &json!(rpc))
    );
    for method in ["message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe"] {
        assert!(card["methods"].as_array().unwrap().contains(&json!(method)), "{method}");
    }
    let etag = reply.header("etag").unwrap().to_owned();
    for known in [etag.clone(), format!("\"other\", {etag}"), format!("W/{etag}"), "*".to_owned()] {
        let again =
            daemon.send(&Request::new("GET", "/.well-known/agent-card.json").header("If-None-Match", &known));
        assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(etag.as_str())));
    }
    let other = Request::new("GET", "/.well-known/agent-card.json").header("If-None-Match", "\"other\"");
    assert_eq!(daemon.send(&other).status, 200);
    let public = Daemon::with("[a2a]\npublic_url = 'https://gate.example/h/'\n");
    let card = public.send(&Request::new("GET", "/.well-known/agent-card.json")).json();
    assert_eq!(card["url"], "https://gate.example/h/rpc");
}

#[test]
fn the_extended_card_says_what_a_caller_may_do() {
    let talk = Conversation::new();
    for (version, token, role) in [
        (Version::Old, &talk.router, "orchestrator"),
        (Version::New, &talk.sage, "agent"),
        (Version::New, &talk.daemon.admin, "admin"),
    ] {
        let method = version.method("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard");
        let card = talk.result_as(token, method, json!({}));
        let params = &card["capabilities"]["extensions"][0]["params"];
        assert_eq!(params["role"], role);
        let may = |act: &str| params["may"].as_array().unwrap().contains(&json!(act));
        assert_eq!(
            (may("submit"), may("approve"), may("manage-tokens")),
            (role != "agent", false, role == "admin")
        );
    }
}

#[test]
fn a_task_spec_in_a_data_part_is_a_handoff_like_any_other() {
    let talk = Conversation::new();
    for (version, name) in BOTH.into_iter().zip(["hand_0001", "hand_0002"]) {
        let spec = spec(name);
        let task = talk.hand(version, name, &spec);
        assert_eq!((&task["id"], &task["contextId"]), (&spec["handoffId"], &spec["correlationId"]));
        assert_eq!(task["status"]["state"], version.state("submitted"));
        assert_eq!(task["metadata"]["handoffId"], spec["handoffId"]);
        assert_eq!(task["history"][0]["messageId"], name);
        assert_eq!(task.get("kind").is_some(), version == Version::Old);
        // The same decision as the one that HTTP gives, and nothing to dispatch by.
        let decided = talk.daemon.post_as(&talk.router, "/v1/handoffs", &spec).json();
        assert_eq!((&decided["decision"], &decided["replayed"]), (&json!("allowed"), &json!(true)));
        assert!(!task.to_string().contains("receipt") && !task.to_string().contains("dispatch"));
        talk.work(&spec);
        let done = talk.get(version, id_of(&task));
        assert_eq!(done["status"]["state"], version.state("completed"));
        assert_eq!(done["artifacts"][0]["artifactId"], "report");
        assert_eq!(done["artifacts"][0]["metadata"]["version"], 1);
    }
    let told = talk.daemon.events();
    let said: Vec<&Json> = told.iter().filter(|event| event["type"] == "message.sent").collect();
    assert_eq!(said.len(), 2);
    assert_eq!(said[0]["sender"], format!("agent:{ROUTER}"));
    assert_eq!(said[0]["payload"]["metadata"]["a2a.handoff"], "hs_20260218_hand_0001");
    assert!(!said[0].to_string().contains("taskSpecVersion"), "the words stay out of the ledger");
}

/// However many there are, and however little time a request has.
#[test]
fn messages_that_wait_are_answered_within_their_request() {
    let talk = Conversation::on(Daemon::with("[server]\nrequest_timeout = '1s'\n"));
    for (version, name) in BOTH.into_iter().zip(["wait_old", "wait_new"]) {
        let method = version.method("message/send", "SendMessage");
        let params = |n: usize| {
            let name = format!("{name}_{n:04}");
            json!({"message": version.handing(&name, &spec(&name))})
        };
        let alone = version.task(&talk.result(method, params(0)));
        assert_eq!(alone["status"]["state"], version.state("submitted"), "nobody has taken it yet");
        let sends: Vec<Json> = (1..=6)
            .map(|n| json!({"jsonrpc": "2.0", "id": n, "method": method, "params": params(n)}))
            .collect();
        let reply = talk.daemon.post_as(&talk.router, "/rpc", json!(sends));
        assert_eq!(reply.status, 200, "{reply:?}");
        let answers = reply.json().as_array().unwrap().clone();
        assert_eq!(answers.len(), 6);
        for (n, answer) in (1..).zip(&answers) {
            let task = version.task(&answer["result"]);
            assert_eq!(
                (&answer["id"], &task["status"]["state"]),
                (&json!(n), &json!(version.state("submitted")))
            );
        }
    }
}

#[test]
fn what_is_refused_is_rejected_with_every_reason() {
    let talk = Conversation::new();
    for (version, name) in BOTH.into_iter().zip(["lost_0001", "lost_0002"]) {
        let spec = lost_spec(name);
        let task = talk.hand(version, name, &spec);
        assert_eq!(task["status"]["state"], version.state("rejected"));
        let parts = &task["status"]["message"]["parts"];
        assert!(parts[0]["text"].as_str().unwrap().starts_with("rejected: "), "{parts}");
        let decision = &task["artifacts"][0]["parts"][0]["data"];
        assert_eq!((&decision["decision"], &decision["handoffId"]), (&json!("denied"), &spec["handoffId"]));
        let reason = &decision["reasons"][0];
        assert_eq!(
            (&reason["code"], &reason["path"]),
            (&json!("A2A_ROUTE_UNKNOWN"), &json!("/routing/routeKey"))
        );
        assert!(reason["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
        // Later, what the ledger tells: the codes.
        let later = talk.get(version, id_of(&task));
        assert_eq!(later["status"]["state"], version.state("rejected"));
        assert_eq!(later["artifacts"][0]["parts"][0]["data"]["reasons"][0]["code"], "A2A_ROUTE_UNKNOWN");
        // Corrected and sent again it is the next attempt, and a task of its own.
        let task = talk.hand(version, &format!("{name}.again"), &super::harness::spec(name));
        assert_eq!(task["id"], format!("{}~2", spec["handoffId"].as_str().unwrap()));
        assert_eq!(task["status"]["state"], version.state("submitted"));
        assert_eq!(talk.get(version, id_of(&task))["id"], task["id"]);
    }
}

#[test]
fn a_task_spec_that_can_be_no_handoff_of_the_callers_is_a_rejected_task_too() {
    let mut talk = Conversation::new();
    let mut foreign = spec("foreign_0001");
    foreign["source"]["agentId"] = "somebody-else".into();
    let task = talk.hand(Version::New, "m-foreign", &foreign);
    assert!(id_of(&task).starts_with("task_"), "{task}");
    let check = |talk: &Conversation, task: &Json| {
        assert_eq!(task["status"]["state"], "TASK_STATE_REJECTED");
        let decision = &task["artifacts"][0]["parts"][0]["data"];
        assert_eq!(decision["reasons"][0]["code"], "A2A_SOURCE_MISMATCH", "{task}");
        assert_eq!(talk.error("CancelTask", json!({"id": task["id"]})), -32002);
    };
    check(&talk, &task);
    check(&talk, &talk.get(Version::New, id_of(&task)));
    // One with many faults of one kind says that once, and has a reason for each.
    let unlike = talk.hand(Version::New, "m-unlike", &json!({"taskSpecVersion": "9.9"}));
    let codes = "rejected: A2A_TASKSPEC_INVALID, POLICY_ROLLBACK_PLAN_MISSING";
    assert_eq!(unlike["status"]["message"]["parts"][0]["text"], codes);
    let reasons = &unlike["artifacts"][0]["parts"][0]["data"]["reasons"];
    assert!(reasons.as_array().unwrap().len() > 5, "{unlike}");
    // The source itself is not kept from its own.
    assert_eq!(talk.daemon.submit(&foreign).status, 201);
    restart(&mut talk);
    check(&talk, &talk.get(Version::New, id_of(&task)));
}

fn restart(talk: &mut Conversation) {
    talk.daemon.signal("TERM");
    talk.daemon.wait();
    talk.daemon.restart_after_stop();
}

#[test]
fn what_waits_for_a_person_is_auth_required_until_somebody_says_yes() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.go_live();
    let Scene { daemon, rita, router, sage, .. } = scene;
    let talk = Conversation { daemon, router, sage };
    for (version, name, word, state) in
        [(Version::Old, "ask_0001", "approve", "submitted"), (Version::New, "ask_0002", "reject", "rejected")]
    {
        let mut spec = spec(name);
        spec["mode"] = "live".into();
        spec["safety"]["requiresHumanApproval"] = true.into();
        let task = talk.hand(version, name, &spec);
        assert_eq!(task["status"]["state"], version.state("auth-required"), "{task}");
        let place = format!("/v1/approvals/{}", id_of(&task));
        let body = json!({"decision": word, "reason": "between us"});
        assert_eq!(talk.daemon.post_as(&rita, &place, body).status, 200);
        let task = talk.get(version, id_of(&task));
        assert_eq!(task["status"]["state"], version.state(state));
        assert!(!task.to_string().contains("between us"), "an operator's reason is not the client's");
        if state == "submitted" {
            talk.work(&spec);
        }
    }
}

#[test]
fn a_message_without_a_task_spec_begins_a_task_that_waits_for_it() {
    let mut talk = Conversation::new();
    for (n, version) in (1..).zip(BOTH) {
        let send = version.method("message/send", "SendMessage");
        let asked =
            version.task(&talk.result(send, version.at_once(version.text(&format!("hello-{n}"), "please"))));
        let (id, context) = (id_of(&asked).to_owned(), asked["contextId"].clone());
        assert!(id.starts_with("task_"));
        assert_eq!(asked["status"]["state"], version.state("input-required"));
        let hint = asked["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        assert!(hint.contains("data part"), "{hint}");
        // Quoting a TaskSpec is talk, and so is what nobody can read.
        let mut quoted = version.text(&format!("quoted-{n}"), &spec("quoted_0001").to_string());
        quoted["taskId"] = id.as_str().into();
        let still = version.task(&talk.result(send, version.at_once(quoted)));
        assert_eq!(
            (&still["id"], &still["status"]["state"]),
            (&json!(id), &json!(version.state("input-required")))
        );
        assert!(still["status"]["message"]["parts"][0]["text"].as_str().unwrap().contains("inside a text"));
        assert_eq!(still["history"].as_array().unwrap().len(), 2);
        restart(&mut talk);
        assert_eq!(talk.get(version, &id)["status"]["state"], version.state("input-required"));
        // A stranger cannot go on with it.
        let stranger = talk.daemon.token(&format!("stranger-{n}"), "orchestrator", Some("other-router"));
        let mut taken = version.handing(&format!("mine-{n}"), &spec("mine_0001"));
        taken["taskId"] = id.as_str().into();
        assert_eq!(talk.error_as(&stranger, send, version.at_once(taken)).0, -32001);
        let spec = spec(&format!("follow_000{n}"));
        let mut message = version.handing(&format!("spec-{n}"), &spec);
        message["taskId"] = id.as_str().into();
        let task = version.task(&talk.result(send, version.at_once(message.clone())));
        assert_eq!((&task["id"], &task["metadata"]["handoffId"]), (&json!(id), &spec["handoffId"]));
        assert_eq!(task["status"]["state"], version.state("submitted"));
        assert_eq!(task["history"].as_array().unwrap().len(), 3);
        // Sent again it is the same; a second TaskSpec is none of this task's.
        assert_eq!(version.task(&talk.result(send, version.at_once(message)))["id"], id);
        let mut second = version.handing(&format!("second-{n}"), &super::harness::spec("second_0001"));
        second["taskId"] = id.as_str().into();
        assert_eq!(talk.error(send, version.at_once(second.clone())), -32602);
        talk.work(&spec);
        assert_eq!(talk.get(version, &id)["status"]["state"], version.state("completed"));
        assert_eq!(talk.error(send, version.at_once(second)), -32004);
        assert_ne!(context, json!(null));
    }
}

#[test]
fn a_message_id_stands_for_one_message_of_one_caller() {
    let mut talk = Conversation::new();
    let first = spec("once_0001");
    let task = talk.hand(Version::Old, "same", &first);
    let before = talk.daemon.events().len();
    // In either version's shape, and after a restart.
    assert_eq!(talk.hand(Version::New, "same", &first)["id"], task["id"]);
    restart(&mut talk);
    let events = talk.daemon.events().len();
    assert_eq!(talk.hand(Version::Old, "same", &first)["id"], task["id"]);
    assert_eq!(talk.daemon.events().len(), events);
    assert!(events >= before);
    let other = Version::Old.at_once(Version::Old.handing("same", &spec("once_0002")));
    let (code, error) = talk.error_as(&talk.router, "message/send", other);
    assert_eq!(
        (code, &error["data"]["findings"][0]["pointer"]),
        (-32602, &json!("/params/message/messageId"))
    );
    assert_eq!(talk.daemon.get("/v1/handoffs/hs_20260218_once_0002").status, 404, "nothing was decided");
    // A refused one is not decided again either.
    let lost = lost_spec("once_0003");
    let rejected = talk.hand(Version::Old, "lost", &lost);
    assert_eq!(talk.hand(Version::Old, "lost", &lost)["id"], rejected["id"]);
    // Another caller's messages have ids of their own.
    let admin = talk.daemon.admin.clone();
    let theirs = Version::Old.at_once(Version::Old.handing("same", &spec("once_0004")));
    assert_eq!(talk.result_as(&admin, "message/send", theirs)["status"]["state"], "submitted");
}

#[test]
fn of_many_sends_of_one_message_one_decides() {
    let talk = Conversation::new();
    let spec = spec("race_0001");
    let tasks: Vec<Json> = std::thread::scope(|scope| {
        let sends: Vec<_> =
            (0..32).map(|_| scope.spawn(|| talk.hand(Version::New, "racing", &spec))).collect();
        sends.into_iter().map(|send| send.join().unwrap()).collect()
    });
    assert!(tasks.iter().all(|task| task["id"] == spec["handoffId"]));
    let events = talk.daemon.events();
    for kind in ["message.sent", "task.created"] {
        assert_eq!(events.iter().filter(|event| event["type"] == kind).count(), 1, "{kind}");
    }
}

#[test]
fn a_send_waits_until_the_task_has_got_somewhere() {
    let talk = Conversation::new();
    for (version, name) in BOTH.into_iter().zip(["wait_0001", "wait_0002"]) {
        let spec = spec(name);
        let send = version.method("message/send", "SendMessage");
        let params = json!({"message": version.handing(name, &spec)});
        let task = std::thread::scope(|scope| {
            let sent = scope.spawn(|| version.task(&talk.result(send, params)));
            super::harness::eventually("it is decided", || {
                (talk.daemon.get(&super::harness::location(&spec)).status == 200).then_some(())
            });
            talk.work(&spec);
            sent.join().unwrap()
        });
        assert_eq!(task["status"]["state"], version.state("completed"), "{task}");
    }
    // Nobody works on this one: the task as it is, before the client gives up.
    let spec = spec("wait_0003");
    let task = talk.result("message/send", json!({"message": Version::Old.handing("wait_0003", &spec)}));
    assert_eq!(task["status"]["state"], "submitted");
}

#[test]
fn a_task_is_canceled_from_every_open_state_and_never_twice() {
    let talk = Conversation::new();
    let stages = super::conversation::work();
    let blocked = [stages[0].clone(), stages[1].clone(), ("task.blocked", json!({"reason": "no quote"}))];
    let ways: [(&str, &[(&str, Json)]); 4] =
        [("available", &[]), ("claimed", &stages[..1]), ("working", &stages[..2]), ("blocked", &blocked)];
    for version in BOTH {
        for (name, way) in &ways {
            let spec = spec(&format!("cancel_{version:?}_{name}").to_lowercase());
            let task = talk.hand(version, &format!("{name}-{version:?}"), &spec);
            for (kind, payload) in *way {
                assert_eq!(talk.report(&spec, kind, payload.clone()).status, 201);
            }
            let cancel = version.method("tasks/cancel", "CancelTask");
            let canceled = talk.result(cancel, json!({"id": task["id"]}));
            assert_eq!(canceled["status"]["state"], version.state("canceled"), "{name}");
            assert_eq!(canceled["metadata"]["canceled"], true);
            assert_eq!(talk.error(cancel, json!({"id": task["id"]})), -32002, "{name}");
            // What the target says after that is refused.
            let late = talk.report(&spec, "task.claimed", json!({}));
            assert_eq!((late.status, late.code().as_str()), (409, "WIRE_TERMINAL"));
        }
        let send = version.method("message/send", "SendMessage");
        let asked =
            version.task(&talk.result(send, version.at_once(version.text(&format!("bye-{version:?}"), "x"))));
        let cancel = version.method("tasks/cancel", "CancelTask");
        assert_eq!(
            talk.result(cancel, json!({"id": asked["id"]}))["status"]["state"],
            version.state("canceled")
        );
        assert_eq!(talk.error(cancel, json!({"id": asked["id"]})), -32002);
        assert_eq!(talk.get(version, id_of(&asked))["status"]["state"], version.state("canceled"));
        assert_eq!(talk.error(cancel, json!({"id": "hs_20260218_nothing"})), -32001);
    }
}

#[test]
fn whoever_follows_a_handoff_hears_what_is_said_in_it() {
    let talk = Conversation::new();
    let spec = spec("say_0001");
    let task = talk.hand(Version::New, "begin", &spec);
    assert_eq!(talk.report(&spec, "task.claimed", json!({})).status, 201);
    let mut events = talk.plain_stream(&format!("/stream/{}?from=5", id_of(&task)), &[]);
    let mut words = Version::New.text("more", "use the second quote");
    words["taskId"] = task["id"].clone();
    let said = Version::New.task(&talk.result("SendMessage", Version::New.at_once(words)));
    assert_eq!(said["history"].as_array().unwrap().len(), 2);
    let event = events.next_event().unwrap();
    assert_eq!((event.id, event.kind.as_str()), (Some(5), "status"));
    assert_eq!(event.json()["status"]["message"]["parts"][0]["text"], "use the second quote");
    // The target reads what was said to it, and not the TaskSpec's message.
    let seen = talk.result_as(&talk.sage, "GetTask", json!({"id": task["id"]}));
    let history = seen["history"].as_array().unwrap();
    assert_eq!((history.len(), &history[0]["messageId"]), (1, &json!("more")));
}

#[test]
fn tasks_are_listed_by_what_happened_last() {
    let talk = Conversation::new();
    for n in 1..=5 {
        talk.hand(Version::New, &format!("list-{n}"), &spec(&format!("list_000{n}")));
    }
    talk.hand(Version::New, "list-lost", &lost_spec("list_lost1"));
    let asked =
        talk.result("SendMessage", Version::New.at_once(Version::New.text("list-asked", "x")))["task"]
            .clone();
    assert_eq!(talk.report(&spec("list_0002"), "task.claimed", json!({})).status, 201);
    let ids = |listed: &Json| -> Vec<String> {
        listed["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| id_of(task).replace("hs_20260218_list_", ""))
            .collect()
    };
    let all = talk.result("ListTasks", json!({}));
    assert_eq!(ids(&all), ["0002", id_of(&asked), "lost1", "0005", "0004", "0003", "0001"]);
    assert_eq!(
        (&all["totalSize"], &all["nextPageToken"], &all["pageSize"]),
        (&json!(7), &json!(""), &json!(50))
    );
    assert!(all["tasks"].as_array().unwrap().iter().all(|task| task.get("artifacts").is_none()));
    // Page by page it is the same.
    let (mut token, mut seen) = (String::new(), Vec::new());
    loop {
        let page = talk.result("ListTasks", json!({"pageSize": 3, "pageToken": token}));
        assert_eq!(page["totalSize"], 7);
        seen.extend(ids(&page));
        token = page["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ids(&all));
    let by = |params: Json| ids(&talk.result("ListTasks", params));
    assert_eq!(by(json!({"status": "TASK_STATE_WORKING"})), ["0002"]);
    assert_eq!(by(json!({"status": "TASK_STATE_REJECTED"})), ["lost1"]);
    assert_eq!(by(json!({"status": "TASK_STATE_INPUT_REQUIRED"})), [id_of(&asked)]);
    assert_eq!(by(json!({"contextId": "corr_list_0004"})), ["0004"]);
    assert_eq!(by(json!({"contextId": asked["contextId"]})), [id_of(&asked)]);
    assert_eq!(by(json!({"contextId": "nothing"})), [""; 0]);
    let since = all["tasks"][1]["status"]["timestamp"].as_str().unwrap();
    assert!(by(json!({"statusTimestampAfter": since})).len() <= 2);
    let lost = talk.result(
        "ListTasks",
        json!({"status": "TASK_STATE_REJECTED", "includeArtifacts": true, "historyLength": 0}),
    );
    assert_eq!(lost["tasks"][0]["artifacts"][0]["artifactId"], "decision");
    assert!(lost["tasks"][0].get("history").is_none());
    for bad in [
        json!({"pageToken": "x"}),
        json!({"pageSize": 0}),
        json!({"pageSize": 101}),
        json!({"status": "working"}),
    ] {
        assert_eq!(talk.error("ListTasks", bad.clone()), -32602, "{bad}");
    }
}

#[test]
fn nobody_sees_or_cancels_what_is_not_theirs() {
    let talk = Conversation::new();
    let (theirs, lost) = (spec("theirs_0001"), lost_spec("theirs_0002"));
    let tasks = [
        talk.hand(Version::New, "m1", &theirs),
        talk.hand(Version::New, "m2", &lost),
        talk.result("SendMessage", Version::New.at_once(Version::New.text("m3", "x")))["task"].clone(),
    ];
    let strangers = [
        talk.daemon.token("stranger-1", "orchestrator", Some("other-router")),
        talk.daemon.token("stranger-2", "orchestrator", Some("crypto-sage")),
        talk.daemon.token("stranger-3", "agent", Some(ROUTER)),
    ];
    for stranger in &strangers {
        for task in &tasks {
            for (method, nothing) in [
                ("tasks/get", "hs_20260218_nothing"),
                ("GetTask", "hs_20260218_nothing"),
                ("tasks/cancel", "hs_20260218_nothing"),
                ("CancelTask", "hs_20260218_nothing"),
                ("tasks/resubscribe", "hs_20260218_nothing"),
                ("SubscribeToTask", "hs_20260218_nothing"),
            ] {
                let (code, there) = talk.error_as(stranger, method, json!({"id": task["id"]}));
                let (_, nowhere) = talk.error_as(stranger, method, json!({"id": nothing}));
                assert_eq!(code, -32001, "{method} {task}");
                let same = there.to_string().replace(id_of(task), nothing);
                assert_eq!(same, nowhere.to_string());
            }
            let stream = talk.daemon.get_as(stranger, &format!("/stream/{}", id_of(task)));
            assert_eq!(stream.status, 404);
        }
        let listed = talk.result_as(stranger, "ListTasks", json!({}));
        assert_eq!((&listed["tasks"], &listed["totalSize"]), (&json!([]), &json!(0)));
    }
    // The target sees the handoff and nothing that was refused; an auditor sees and does not act.
    assert_eq!(talk.result_as(&talk.sage, "ListTasks", json!({}))["tasks"].as_array().unwrap().len(), 2);
    let auditor = talk.daemon.token("ada", "auditor", None);
    assert_eq!(talk.result_as(&auditor, "ListTasks", json!({}))["totalSize"], 3);
    let (code, error) = talk.error_as(&auditor, "tasks/cancel", json!({"id": tasks[0]["id"]}));
    assert_eq!((code, &error["data"]["codes"][0]), (-32004, &json!("AUTH_FORBIDDEN")));
    let message = Version::Old.at_once(Version::Old.handing("m4", &spec("theirs_0003")));
    assert_eq!(talk.error_as(&auditor, "message/send", message).0, -32004);
    // An operator cancels by name.
    let rita = talk.daemon.token("rita", "operator", None);
    assert_eq!(
        talk.result_as(&rita, "tasks/cancel", json!({"id": tasks[0]["id"]}))["status"]["state"],
        "canceled"
    );
    let last = talk.daemon.events().pop().unwrap();
    assert_eq!((&last["type"], &last["sender"]), (&json!("task.cancelled"), &json!("human:rita")));
}

#[test]
fn an_anonymous_caller_plays_in_dev_and_simulated_only() {
    let talk = Conversation::on(Daemon::with("[a2a]\nanonymous = true\n"));
    let ask = |method: &str, params: Json| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = Request::new("POST", "/rpc").header("Host", "localhost").json(body.to_string());
        let reply = talk.daemon.send(&request);
        assert_eq!(reply.status, 200);
        reply.json()
    };
    let hand = |id: &str, spec: &Json| {
        ask("message/send", Version::Old.at_once(Version::Old.handing(id, spec)))["result"].clone()
    };
    let task = hand("anon", &spec("anon_0001"));
    assert_eq!(task["status"]["state"], "submitted", "{task}");
    let mut live = spec("anon_0002");
    live["mode"] = "live".into();
    let refused = hand("anon-live", &live);
    assert_eq!(refused["status"]["state"], "rejected");
    assert!(refused.to_string().contains("A2A_SOURCE_MISMATCH"));
    // It sees what it handed over itself, and nothing else.
    let theirs = talk.hand(Version::Old, "theirs", &spec("anon_0003"));
    assert_eq!(ask("tasks/get", json!({"id": theirs["id"]}))["error"]["code"], -32001);
    assert_eq!(ask("tasks/cancel", json!({"id": theirs["id"]}))["error"]["code"], -32001);
    assert_eq!(ask("ListTasks", json!({}))["result"]["totalSize"], 2);
    assert_eq!(ask("tasks/get", json!({"id": task["id"]}))["result"]["status"]["state"], "submitted");
    assert_eq!(ask("tasks/cancel", json!({"id": task["id"]}))["result"]["status"]["state"], "canceled");
    assert_eq!(ask("GetExtendedAgentCard", json!({}))["error"]["code"], -32007);
    // A token that is wrong stays wrong, and no other surface opens.
    let get = r#"{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}"#;
    assert_eq!(talk.daemon.send(&Request::new("POST", "/rpc").token("hd_orc_x").json(get)).status, 401);
    // So does a part of a signature, or what is no text.
    for (name, value) in [
        ("Handoffd-Key-Id", "x"),
        ("Handoffd-Nonce", "nonce-0001"),
        ("Handoffd-Timestamp", "now"),
        ("Handoffd-Signature", "x"),
        ("Handoffd-Signature", "\u{e9}"),
        ("Authorization", "\u{e9}"),
    ] {
        let shown = Request::new("POST", "/rpc").header(name, value).json(get);
        assert_eq!(talk.daemon.send(&shown).status, 401, "{name}: {value}");
    }
    for (method, target) in [
        ("GET", "/v1/handoffs"),
        ("GET", "/v1/approvals"),
        ("POST", "/v1/approvals/hs_20260218_anon_0001"),
        ("POST", "/v1/handoffs"),
        ("POST", "/v1/handoffs/hs_20260218_anon_0001/events"),
        ("POST", "/v1/freeze"),
    ] {
        assert_eq!(talk.daemon.send(&Request::new(method, target).json("{}")).status, 401, "{target}");
    }
}

/// A page of another site that a browser here has open, under a name that leads here; and a proxy.
#[test]
fn whoever_is_not_here_or_means_somebody_else_needs_a_token() {
    let daemon = Daemon::with("[a2a]\nanonymous = true\npublic_url = 'https://gate.example/'\n");
    let message = Version::Old.at_once(Version::Old.handing("m", &spec("rebound_0001")));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message}).to_string();
    let own = daemon.address.to_string();
    let ask = |headers: &[(&str, &str)]| {
        let request = Request::new("POST", "/rpc").json(&body);
        daemon.send(&headers.iter().fold(request, |request, (name, value)| request.header(name, value)))
    };
    let head = daemon.events().len();
    for headers in [
        &[("Host", "evil.example"), ("Origin", "http://evil.example"), ("X-Forwarded-For", "192.0.2.7")][..],
        &[("Host", "evil.example"), ("Origin", "http://evil.example")],
        &[("Host", "evil.example")],
        &[("Host", &own), ("Origin", "http://evil.example")],
        &[("Host", &own), ("X-Forwarded-For", "192.0.2.7")],
        &[("Host", &own), ("Forwarded", "for=192.0.2.7")],
    ] {
        let reply = ask(headers);
        assert_eq!(reply.status, 401, "{headers:?}: {reply:?}");
        let stream = headers.iter().fold(Request::new("GET", "/stream/task_x"), |request, (name, value)| {
            request.header(name, value)
        });
        assert_eq!(daemon.send(&stream).status, 401, "{headers:?}");
    }
    assert_eq!(daemon.events().len(), head);
    for host in [own.as_str(), "localhost:1", "[::1]", "gate.example"] {
        let reply = ask(&[("Host", host)]);
        assert_eq!((reply.status, reply.json().get("result").is_some()), (200, true), "{host}: {reply:?}");
    }
}

#[test]
fn nobody_is_let_in_without_a_token_on_an_address_that_others_reach() {
    let root = tempfile::tempdir().unwrap();
    assert!(command(root.path(), &["init"]).output().unwrap().status.success());
    write(&root.path().join("handoffd.toml"), "[a2a]\nanonymous = true\n");
    let refused = command(root.path(), &["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("[a2a] anonymous"), "{refused:?}");
    let closed = Daemon::new();
    let get = r#"{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}"#;
    assert_eq!(closed.send(&Request::new("POST", "/rpc").json(get)).status, 401);
}
