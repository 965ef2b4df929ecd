//! Push notifications, from the config that a client sets to the webhook that hears of its task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use serde_json::{Value as Json, json};

use super::conversation::{BOTH, Conversation, Version, work};
use super::harness::{Daemon, ROUTER, eventually, spec};
use super::receiver::{Answer, Received, Receiver};
use super::wire::Request;

const LOCAL: &str = "[a2a]\npush_allow = ['127.0.0.0/8']\n";

fn local() -> Conversation {
    Conversation::on(Daemon::with(LOCAL))
}

/// The parameters that set a config.
fn setting(version: Version, task: &str, id: &str, url: &str) -> Json {
    match version {
        Version::Old => json!({"taskId": task, "pushNotificationConfig": {
            "id": id, "url": url, "token": "hush-token",
            "authentication": {"schemes": ["Bearer"], "credentials": "hush-credentials"}}}),
        Version::New => json!({"taskId": task, "id": id, "url": url, "token": "hush-token",
            "authentication": {"scheme": "Bearer", "credentials": "hush-credentials"}}),
    }
}

fn set(talk: &Conversation, version: Version, params: Json) -> Json {
    talk.result(method(version, "set"), params)
}

fn method(version: Version, what: &str) -> &'static str {
    match (version, what) {
        (Version::Old, "set") => "tasks/pushNotificationConfig/set",
        (Version::Old, "get") => "tasks/pushNotificationConfig/get",
        (Version::Old, "list") => "tasks/pushNotificationConfig/list",
        (Version::Old, _) => "tasks/pushNotificationConfig/delete",
        (Version::New, "set") => "CreateTaskPushNotificationConfig",
        (Version::New, "get") => "GetTaskPushNotificationConfig",
        (Version::New, "list") => "ListTaskPushNotificationConfigs",
        (Version::New, _) => "DeleteTaskPushNotificationConfig",
    }
}

fn names(version: Version, task: &str, id: &str) -> Json {
    match version {
        Version::Old => json!({"id": task, "pushNotificationConfigId": id}),
        Version::New => json!({"taskId": task, "id": id}),
    }
}

fn state(talk: &Conversation, version: Version, task: &str, id: &str) -> String {
    let shown = talk.result(method(version, "get"), names(version, task, id));
    shown["metadata"]["delivery"]["state"].as_str().unwrap().to_owned()
}

/// What a notification is about: the state of the task, or the artifact.
fn told(received: &Received) -> String {
    let body = received.json();
    let inner = ["task", "statusUpdate", "artifactUpdate"].iter().find_map(|name| body.get(*name));
    let body = inner.unwrap_or(&body);
    let word = body.pointer("/status/state").or(body.pointer("/artifact/artifactId"));
    word.unwrap().as_str().unwrap().trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-")
}

fn all_told(receiver: &Receiver) -> Vec<String> {
    receiver.received().iter().map(told).collect()
}

/// A whole life, as it is told: it began, it can be claimed, it was, and so on.
const WHOLE: [&str; 6] = ["submitted", "submitted", "working", "working", "report", "completed"];

#[test]
fn a_webhook_hears_of_everything_that_happens_to_its_task() {
    let talk = local();
    for (version, name) in BOTH.into_iter().zip(["push_0001", "push_0002"]) {
        let receiver = Receiver::willing();
        let spec = spec(name);
        let task = talk.hand(version, name, &spec)["id"].as_str().unwrap().to_owned();
        let shown = set(&talk, version, setting(version, &task, "c1", &receiver.url("/hook")));
        let config = match version {
            Version::Old => &shown["pushNotificationConfig"],
            Version::New => &shown,
        };
        assert_eq!((&config["id"], &config["url"]), (&json!("c1"), &json!(receiver.url("/hook"))));
        assert_eq!(shown["taskId"], task);
        assert!(!shown.to_string().contains("hush"), "{shown}");
        // Where it stands is told first, and then whatever happens.
        eventually("where it stands", || (receiver.received().len() == 1).then_some(()));
        talk.work(&spec);
        eventually("all is told", || (state(&talk, version, &task, "c1") == "done").then_some(()));
        assert_eq!(all_told(&receiver), WHOLE[1..]);
        let last = receiver.received().pop().unwrap();
        assert_eq!(last.header("authorization"), Some("Bearer hush-credentials"));
        assert_eq!(last.header("x-a2a-notification-token"), Some("hush-token"));
        let kind = last.header("content-type").unwrap();
        assert_eq!(kind, version.method("application/json", "application/a2a+json"));
        // Signed with the key that everybody can get.
        let keys = talk.daemon.send(&Request::new("GET", "/.well-known/jwks.json")).json();
        let signature = last.header("handoffd-signature").unwrap();
        assert_eq!(signature.split('.').count(), 3);
        assert_eq!(keys["keys"].as_array().unwrap().len(), 1);
    }
    // The ledger knows that somebody was told, and neither where nor with what.
    let export = talk.daemon.get("/v1/audit/export").text();
    assert!(!export.contains("hush") && !export.contains("/hook"));
    assert!(!talk.daemon.log().contains("hush"));
    let of = |kind: &str| -> Vec<Json> {
        talk.daemon.events().into_iter().filter(|event| event["type"] == kind).collect()
    };
    let created = of("push.created");
    assert_eq!(created.len(), 2);
    // Recorded once all is told, and nobody waits for it.
    let removed = eventually("their ends are recorded", || {
        let removed = of("push.removed");
        (removed.len() == 2).then_some(removed)
    });
    assert_eq!(created[0]["sender"], format!("agent:{ROUTER}"));
    assert_eq!(created[0]["payload"]["task_id"], "hs_20260218_push_0001");
    assert_eq!(created[0]["payload"]["push_id"], removed[0]["payload"]["push_id"]);
    assert_eq!(removed[0]["payload"]["reason"], "its task has ended");
    let metric = |line: &str| talk.daemon.metric(line);
    assert_eq!(metric("handoffd_push_attempts_total{outcome=\"delivered\"}"), Some(10.0));
    assert_eq!(metric("handoffd_push_attempt_seconds_count{outcome=\"delivered\"}"), Some(10.0));
    assert_eq!(metric("handoffd_push_configs_ended_total{outcome=\"done\"}"), Some(2.0));
    assert_eq!(metric("handoffd_push_configs_open"), Some(0.0));
    let card = talk.daemon.send(&Request::new("GET", "/.well-known/agent-card.json")).json();
    assert_eq!(card["capabilities"]["pushNotifications"], true);
}

#[test]
fn a_config_that_comes_with_a_message_hears_of_its_task_from_the_beginning() {
    let talk = local();
    for (version, name, member) in [
        (Version::Old, "with_0001", "pushNotificationConfig"),
        (Version::New, "with_0002", "taskPushNotificationConfig"),
        (Version::New, "with_0003", "pushNotificationConfig"),
    ] {
        let receiver = Receiver::willing();
        let spec = spec(name);
        let mut params = version.at_once(version.handing(name, &spec));
        params["configuration"][member] = json!({"url": receiver.url("/")});
        let send = version.method("message/send", "SendMessage");
        let task = version.task(&talk.result(send, params.clone()))["id"].as_str().unwrap().to_owned();
        // The same message again is the same task and the same config: nobody is told twice.
        assert_eq!(version.task(&talk.result(send, params))["id"], task.as_str());
        talk.work(&spec);
        eventually("all is told", || (state(&talk, version, &task, &task) == "done").then_some(()));
        assert_eq!(all_told(&receiver), WHOLE, "{name}");
    }
}

#[test]
fn a_task_that_began_without_a_task_spec_is_told_under_its_own_name() {
    let talk = local();
    let version = Version::New;
    let (handed, canceled) = (Receiver::willing(), Receiver::willing());
    let begin = |id: &str, receiver: &Receiver| {
        let mut params = version.at_once(version.text(id, "hello"));
        params["configuration"]["taskPushNotificationConfig"] = json!({"id": "c", "url": receiver.url("/")});
        version.task(&talk.result("SendMessage", params))["id"].as_str().unwrap().to_owned()
    };
    let task = begin("ask_1", &handed);
    assert!(task.starts_with("task_"));
    let spec = spec("asked_0001");
    let mut message = version.handing("ask_2", &spec);
    message["taskId"] = json!(task);
    talk.result("SendMessage", version.at_once(message));
    talk.work(&spec);
    eventually("all is told", || (state(&talk, version, &task, "c") == "done").then_some(()));
    assert_eq!(all_told(&handed), WHOLE);
    assert!(handed.received().iter().all(|one| one.json().to_string().contains(&task)));

    let task = begin("ask_3", &canceled);
    talk.result("CancelTask", json!({"id": task}));
    eventually("its end is told", || (state(&talk, version, &task, "c") == "done").then_some(()));
    assert_eq!(all_told(&canceled), ["canceled"]);
}

/// Its handoff's stream goes by another name: who hears of it does not depend on who else gave up.
#[test]
fn one_receiver_that_is_gone_keeps_nothing_from_another_one() {
    let talk = local();
    let version = Version::New;
    let status = Arc::new(AtomicU16::new(200));
    let answers = status.clone();
    let (gone, other) =
        (Receiver::start(move |_, _| Answer::Status(answers.load(Ordering::SeqCst))), Receiver::willing());
    let task = version.task(&talk.result("SendMessage", version.at_once(version.text("two_1", "hello"))));
    let task = task["id"].as_str().unwrap().to_owned();
    set(&talk, version, setting(version, &task, "gone", &gone.url("/")));
    set(&talk, version, setting(version, &task, "other", &other.url("/")));
    let spec = spec("two_0001");
    let mut message = version.handing("two_2", &spec);
    message["taskId"] = json!(task);
    talk.result("SendMessage", version.at_once(message));
    eventually("both hear", || (gone.received().len() == 2 && other.received().len() == 2).then_some(()));
    status.store(503, Ordering::SeqCst);
    let mut rest = work().into_iter();
    let (claimed, payload) = rest.next().unwrap();
    assert_eq!(talk.report(&spec, claimed, payload).status, 201);
    eventually("one hears", || (other.received().len() == 3).then_some(()));
    status.store(410, Ordering::SeqCst);
    eventually("it is given up", || (state(&talk, version, &task, "gone") == "failed").then_some(()));
    for (kind, payload) in rest {
        assert_eq!(talk.report(&spec, kind, payload).status, 201, "{kind}");
    }
    eventually("all is told", || (state(&talk, version, &task, "other") == "done").then_some(()));
    assert_eq!(all_told(&other), WHOLE);
}

#[test]
fn configs_are_set_shown_listed_and_deleted() {
    let talk = local();
    let receiver = Receiver::willing();
    for (version, name) in BOTH.into_iter().zip(["conf_0001", "conf_0002"]) {
        let task = talk.hand(version, name, &spec(name))["id"].as_str().unwrap().to_owned();
        for id in ["c1", "c2", "c3"] {
            set(&talk, version, setting(version, &task, id, &receiver.url(&format!("/{id}"))));
        }
        let list = |more: Json| {
            let member = version.method("id", "taskId");
            let mut params = json!({member: task});
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            talk.result(method(version, "list"), params)
        };
        let ids = |configs: &Json| -> Vec<String> {
            let id =
                |one: &Json| one.pointer("/pushNotificationConfig/id").or(one.get("id")).unwrap().clone();
            configs.as_array().unwrap().iter().map(|one| id(one).as_str().unwrap().to_owned()).collect()
        };
        match version {
            Version::Old => {
                assert_eq!(ids(&list(json!({}))), ["c1", "c2", "c3"]);
                // Without a name it is the first.
                let first = talk.result(method(version, "get"), json!({"id": task}));
                assert_eq!(first["pushNotificationConfig"]["id"], "c1");
            }
            Version::New => {
                let page = list(json!({"pageSize": 2}));
                assert_eq!(ids(&page["configs"]), ["c1", "c2"]);
                let rest = list(json!({"pageSize": 2, "pageToken": page["nextPageToken"]}));
                assert_eq!(
                    (ids(&rest["configs"]), &rest["nextPageToken"]),
                    (vec!["c3".to_owned()], &json!(""))
                );
                let bad = json!({"taskId": task, "pageToken": "nonsense"});
                assert_eq!(talk.error(method(version, "list"), bad), -32602);
            }
        }
        // Set again, it is replaced; deleted, it is gone, and may be deleted again.
        set(&talk, version, setting(version, &task, "c2", &receiver.url("/other")));
        let shown = talk.result(method(version, "get"), names(version, &task, "c2"));
        assert!(shown.to_string().contains("/other"), "{shown}");
        for _ in 0..2 {
            let deleted = talk.result(method(version, "delete"), names(version, &task, "c2"));
            assert_eq!(deleted, if version == Version::Old { Json::Null } else { json!({}) });
        }
        assert_eq!(talk.error(method(version, "get"), names(version, &task, "c2")), -32001);
        let left = list(json!({}));
        assert_eq!(ids(left.get("configs").unwrap_or(&left)), ["c1", "c3"]);
    }
    // Nothing is said to a config that was deleted.
    let heard = |path: &str| receiver.received().iter().filter(|one| one.target == path).count();
    eventually("the others have heard", || (heard("/c1") == 2 && heard("/c3") == 2).then_some(()));
    let before = heard("/other");
    talk.work(&spec("conf_0001"));
    eventually("the others hear more", || (heard("/c1") == 6 && heard("/c3") == 6).then_some(()));
    assert_eq!(heard("/other"), before);
}

#[test]
fn where_nobody_may_be_told_nothing_is_set_and_nothing_is_decided() {
    let receiver = Receiver::willing();
    let talk = Conversation::new();
    for (version, name) in BOTH.into_iter().zip(["not_0001", "not_0002"]) {
        let task = talk.hand(version, name, &spec(name))["id"].as_str().unwrap().to_owned();
        let port = receiver.address.port();
        for url in [
            receiver.url("/"),
            format!("https://127.0.0.1:{port}/"),
            format!("http://2130706433:{port}/"),
            format!("http://localhost:{port}/"),
            format!("https://[::ffff:127.0.0.1]:{port}/"),
            "http://169.254.169.254/latest/meta-data".to_owned(),
            "http://93.184.215.14/".to_owned(),
            "https://user:secret@93.184.215.14/".to_owned(),
            "https://93.184.215.14:22/".to_owned(),
        ] {
            let params = setting(version, &task, "c1", &url);
            let (code, error) = talk.error_as(&talk.router, method(version, "set"), params);
            assert_eq!(code, -32602, "{url}: {error}");
            let at = version.method("/params/pushNotificationConfig/url", "/params/url");
            assert!(error["data"].to_string().contains(at), "{url}: {error}");
            // With a message it is refused before anything is decided.
            let lost = format!("{name}_lost");
            let mut params = version.at_once(version.handing(&lost, &spec(&lost)));
            params["configuration"]["pushNotificationConfig"] = json!({"url": url});
            assert_eq!(talk.error(version.method("message/send", "SendMessage"), params), -32602);
            assert_eq!(talk.daemon.get(&format!("/v1/handoffs/hs_20260218_{lost}")).status, 404);
        }
        let mut params = setting(version, &task, "c1", "https://93.184.215.14/");
        let config =
            if version == Version::Old { &mut params["pushNotificationConfig"] } else { &mut params };
        config["authentication"]["credentials"] = json!("a\r\nX-Other: b");
        assert_eq!(talk.error(method(version, "set"), params), -32602);
    }
    assert_eq!(receiver.connections(), 0);
    assert_eq!(talk.daemon.events().iter().filter(|event| event["type"] == "push.created").count(), 0);
}

#[test]
fn a_config_is_its_setters_and_the_task_its_callers() {
    let talk = local();
    let receiver = Receiver::willing();
    let task = talk.hand(Version::New, "whose_0001", &spec("whose_0001"))["id"].as_str().unwrap().to_owned();
    set(&talk, Version::New, setting(Version::New, &task, "c1", &receiver.url("/router")));
    let stranger = talk.daemon.token("stranger", "orchestrator", Some("other-router"));
    let rita = talk.daemon.token("rita", "operator", None);
    let all = [
        ("set", setting(Version::New, &task, "c2", &receiver.url("/stranger"))),
        ("get", names(Version::New, &task, "c1")),
        ("list", json!({"taskId": task})),
        ("delete", names(Version::New, &task, "c1")),
    ];
    for (what, params) in all {
        // One who does not see the task does not see that there is one.
        assert_eq!(talk.error_as(&stranger, method(Version::New, what), params.clone()).0, -32001, "{what}");
    }
    // One who sees the task sees its own configs, and deletes nobody else's.
    assert_eq!(talk.error_as(&rita, method(Version::New, "get"), names(Version::New, &task, "c1")).0, -32001);
    talk.result_as(
        &rita,
        method(Version::New, "set"),
        setting(Version::New, &task, "c1", &receiver.url("/rita")),
    );
    talk.result_as(&rita, method(Version::New, "delete"), names(Version::New, &task, "c1"));
    assert_eq!(state(&talk, Version::New, &task, "c1"), "active");

    // An agent whose tokens are revoked is told nothing more; another token of the same agent is as good.
    eventually("it was told", || (!receiver.received().is_empty()).then_some(()));
    let second = talk.daemon.token("router-2", "orchestrator", Some(ROUTER));
    let gone = talk.daemon.send(&Request::new("DELETE", "/v1/tokens/router").token(&talk.daemon.admin));
    assert_eq!(gone.status, 200, "{gone:?}");
    let spec = spec("whose_0001");
    let [claimed, started, ..] = work();
    assert_eq!(talk.report(&spec, claimed.0, claimed.1).status, 201);
    let heard = || receiver.received().iter().filter(|one| one.target == "/router").count();
    eventually("the other token counts", || (heard() == 2).then_some(()));
    let shown = talk.result_as(&second, method(Version::New, "get"), names(Version::New, &task, "c1"));
    assert_eq!(shown["metadata"]["delivery"]["state"], "active");
    let gone = talk.daemon.send(&Request::new("DELETE", "/v1/tokens/router-2").token(&talk.daemon.admin));
    assert_eq!(gone.status, 200);
    assert_eq!(talk.report(&spec, started.0, started.1).status, 201);
    let failed = "handoffd_push_configs_ended_total{outcome=\"failed\"}";
    eventually("it has ended", || (talk.daemon.metric(failed) == Some(1.0)).then_some(()));
    assert_eq!(heard(), 2);
}

#[test]
fn after_a_crash_nothing_is_missing_and_the_order_holds() {
    let up = Arc::new(AtomicBool::new(true));
    let is_up = up.clone();
    let receiver =
        Receiver::start(move |_, _| Answer::Status(if is_up.load(Ordering::SeqCst) { 200 } else { 503 }));
    let mut talk = local();
    let spec = spec("crash_0001");
    let task = talk.hand(Version::New, "crash_0001", &spec)["id"].as_str().unwrap().to_owned();
    set(&talk, Version::New, setting(Version::New, &task, "c1", &receiver.url("/")));
    eventually("where it stands", || (receiver.received().len() == 1).then_some(()));
    up.store(false, Ordering::SeqCst);
    let [claimed, started, artifact, done] = work();
    assert_eq!(talk.report(&spec, claimed.0, claimed.1).status, 201);
    eventually("it is tried again", || (state(&talk, Version::New, &task, "c1") == "retrying").then_some(()));
    talk.daemon.signal("KILL");
    talk.daemon.wait();
    let before = receiver.received().len();
    talk.daemon.restart_after_stop();
    up.store(true, Ordering::SeqCst);
    for (kind, payload) in [started, artifact, done] {
        assert_eq!(talk.report(&spec, kind, payload).status, 201);
    }
    eventually("all is told", || (state(&talk, Version::New, &task, "c1") == "done").then_some(()));
    // From where it was, or from a little before; in order, and nothing left out.
    let numbers: Vec<u64> = receiver.received()[before..]
        .iter()
        .map(|one| {
            let body = one.json();
            let inner = ["statusUpdate", "artifactUpdate"].iter().find_map(|name| body.get(*name)).cloned();
            inner.map_or(1, |inner| inner["metadata"]["streamSeq"].as_u64().unwrap())
        })
        .collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert!([4, 5, 6, 7].iter().all(|number| numbers.contains(number)), "{numbers:?}");
    assert_eq!(all_told(&receiver).last().map(String::as_str), Some("completed"));
}
