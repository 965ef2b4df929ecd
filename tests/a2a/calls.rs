//! Every method of both versions, with the parameters that it takes and those that it refuses.

use handoffd::a2a::{Ask, Call, Incoming, Method, RpcError, Version, body, read_requests};
use serde_json::{Value as Json, json};

fn call(method: &str, params: &Json) -> Result<Call, RpcError> {
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    match read_requests(&body(text.as_bytes()).unwrap(), None).unwrap() {
        Incoming::One(request) => request.call,
        Incoming::Batch(_) => panic!("one request is no batch"),
    }
}

/// The code and the pointer of a refusal.
fn refusal(method: &str, params: &Json) -> (i32, String) {
    let error = call(method, params).map(|call| call.method).expect_err(&format!("{method} {params}"));
    let finding = error.findings.first();
    assert!(finding.is_none_or(|finding| finding.hint.as_ref().is_some_and(|hint| !hint.is_empty())));
    (error.code.number(), finding.map(|finding| finding.pointer.clone()).unwrap_or_default())
}

fn message(version: Version) -> Json {
    match version {
        Version::V0_3 => {
            json!({"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hello"}]})
        }
        Version::V1_0 => json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}),
    }
}

/// Parameters that a method takes.
fn params(method: Method, version: Version) -> Json {
    let task = "hs_12345678";
    match (method, version) {
        (Method::SendMessage | Method::StreamMessage, _) => json!({"message": message(version)}),
        (Method::GetTask | Method::CancelTask | Method::Subscribe, _) => json!({"id": task}),
        (Method::SetPush, Version::V0_3) => {
            json!({"taskId": task, "pushNotificationConfig": {"url": "https://hooks.example/a"}})
        }
        (Method::SetPush, Version::V1_0) => {
            json!({"taskId": task, "id": "p1", "url": "https://hooks.example/a"})
        }
        (Method::GetPush | Method::DeletePush, Version::V0_3) => {
            json!({"id": task, "pushNotificationConfigId": "p1"})
        }
        (Method::GetPush | Method::DeletePush, Version::V1_0) => json!({"taskId": task, "id": "p1"}),
        (Method::ListPush, Version::V0_3) => json!({"id": task}),
        (Method::ListPush, Version::V1_0) => json!({"taskId": task}),
        (Method::ListTasks | Method::ExtendedCard, _) => json!({}),
        (Method::Embeddings | Method::Rerank | Method::Chat, _) => json!({"model": "m", "input": ["x"]}),
    }
}

#[test]
fn both_sets_of_methods_are_read_into_the_same_calls() {
    let mut read = 0;
    for version in Version::ALL {
        for method in Method::ALL {
            let Some(name) = method.name(version) else { continue };
            let call =
                call(name, &params(method, version)).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_eq!((call.method, call.version), (method, version));
            let fits = match method {
                Method::SendMessage => matches!(call.ask, Ask::Send(_)),
                Method::StreamMessage => matches!(call.ask, Ask::Stream(_)),
                Method::GetTask => matches!(call.ask, Ask::GetTask { history_length: None, .. }),
                Method::ListTasks => {
                    matches!(&call.ask, Ask::ListTasks(list) if list.page_size == 50 && !list.include_artifacts)
                }
                Method::CancelTask => matches!(call.ask, Ask::CancelTask { .. }),
                Method::Subscribe => matches!(call.ask, Ask::Subscribe { .. }),
                Method::SetPush => {
                    matches!(&call.ask, Ask::SetPush { config, .. } if config.url == "https://hooks.example/a")
                }
                Method::GetPush => {
                    matches!(&call.ask, Ask::GetPush { config_id: Some(id), .. } if id == "p1")
                }
                Method::ListPush => matches!(call.ask, Ask::ListPush { page_size: None, .. }),
                Method::DeletePush => {
                    matches!(&call.ask, Ask::DeletePush { config_id, .. } if config_id == "p1")
                }
                Method::ExtendedCard => matches!(call.ask, Ask::ExtendedCard),
                Method::Embeddings | Method::Rerank | Method::Chat => {
                    matches!(&call.ask, Ask::Ai { params } if params.0["model"] == "m")
                }
            };
            assert!(fits, "{name} became {:?}", call.ask);
            read += 1;
        }
    }
    // Ten of 0.3, eleven of 1.0, and three of our own.
    assert_eq!(read, 24);
}

#[test]
fn every_member_that_a_method_needs_is_missed_where_it_should_stand() {
    for version in Version::ALL {
        for method in Method::ALL {
            let Some(name) = method.name(version) else { continue };
            let whole = params(method, version);
            let optional = |member: &str| {
                method.is_ai()
                    // 0.3 asks for the first config that way, and a client may leave the naming to us.
                    || (method == Method::GetPush && member == "pushNotificationConfigId")
                    || (method == Method::SetPush && member == "id")
            };
            for member in whole.as_object().unwrap().keys().filter(|member| !optional(member)) {
                for absent in [None, Some(Json::Null)] {
                    let mut params = whole.clone();
                    match absent {
                        None => drop(params.as_object_mut().unwrap().shift_remove(member)),
                        Some(null) => params[member] = null,
                    }
                    assert_eq!(refusal(name, &params), (-32602, format!("/params/{member}")), "{name}");
                }
                let mut params = whole.clone();
                params[member] = json!([]);
                let (code, pointer) = refusal(name, &params);
                assert_eq!((code, pointer), (-32602, format!("/params/{member}")), "{name}");
            }
        }
    }
}

#[test]
fn a_text_that_is_no_id_of_ours_names_no_task() {
    for id in ["hs_1", "hs_12345678~1", "hs_12345678~0", "task_1", "../../etc", "hs_12345678 "] {
        for name in
            ["tasks/get", "tasks/cancel", "tasks/resubscribe", "GetTask", "CancelTask", "SubscribeToTask"]
        {
            assert_eq!(refusal(name, &json!({"id": id})), (-32001, String::new()), "{name} {id}");
        }
    }
    let found = call("tasks/get", &json!({"id": "hs_12345678~3"})).unwrap();
    assert!(matches!(found.ask, Ask::GetTask { id, .. } if id.to_string() == "hs_12345678~3"));
}

#[test]
fn what_a_list_is_asked_for_is_bounded_and_known() {
    let list = |params: &Json| match call("ListTasks", params).map(|call| call.ask) {
        Ok(Ask::ListTasks(list)) => Ok(*list),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.findings.first().map(|finding| finding.pointer.clone()).unwrap_or_default()),
    };
    let all = json!({
        "contextId": "corr_1", "status": "TASK_STATE_WORKING", "pageSize": 100.0, "pageToken": "t", "historyLength": 0.0,
        "statusTimestampAfter": "2026-02-18T19:31:00.000Z", "includeArtifacts": true, "unknown": 1,
    });
    let read = list(&all).unwrap();
    assert_eq!((read.page_size, read.history_length, read.include_artifacts), (100, Some(0), true));
    assert_eq!(read.context_id.as_deref(), Some("corr_1"));
    let states: Vec<&str> = read.states.iter().flatten().map(|state| state.as_str()).collect();
    assert_eq!(states, ["claimed", "working"]);
    // Protocol buffers write what is absent as its zero.
    let zeros = list(
        &json!({"contextId": "", "status": "TASK_STATE_UNSPECIFIED", "pageToken": "", "statusTimestampAfter": ""}),
    );
    assert_eq!(zeros, list(&json!({})));
    for (member, value) in [
        ("pageSize", json!(0)),
        ("pageSize", json!(101)),
        ("pageSize", json!(1.5)),
        ("pageSize", json!("5")),
        ("historyLength", json!(-1)),
        ("status", json!("working")),
        ("status", json!("TASK_STATE_DONE")),
        ("statusTimestampAfter", json!("yesterday")),
        ("includeArtifacts", json!("yes")),
        ("pageToken", json!(7)),
        ("contextId", json!("x".repeat(129))),
        ("tenant", json!("acme")),
    ] {
        assert_eq!(list(&json!({member: value})).err(), Some(format!("/params/{member}")), "{value}");
    }
}

#[test]
fn a_sender_says_whether_it_waits_and_where_it_is_told() {
    let sent = |version: Version, configuration: Json| {
        let name = Method::SendMessage.name(version).unwrap();
        match call(name, &json!({"message": message(version), "configuration": configuration}))
            .map(|call| call.ask)
        {
            Ok(Ask::Send(sent)) => Ok(sent.configuration),
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                Err(error.findings.first().map(|finding| finding.pointer.clone()).unwrap_or_default())
            }
        }
    };
    let waits = |version, configuration| sent(version, configuration).unwrap().wait;
    assert!(waits(Version::V0_3, json!({})) && waits(Version::V1_0, json!({})));
    assert!(
        waits(Version::V0_3, json!({"blocking": true}))
            && waits(Version::V1_0, json!({"returnImmediately": false}))
    );
    assert!(
        !waits(Version::V0_3, json!({"blocking": false}))
            && !waits(Version::V1_0, json!({"returnImmediately": true}))
    );
    assert_eq!(sent(Version::V1_0, json!({"historyLength": 3})).unwrap().history_length, Some(3));

    let old = sent(
        Version::V0_3,
        json!({"pushNotificationConfig": {
            "id": "p", "url": "https://hooks.example", "token": "t0k", "authentication": {"schemes": ["Bearer"], "credentials": "s3cret"},
        }}),
    );
    let flat = json!({"id": "p", "url": "https://hooks.example", "token": "t0k", "authentication": {"scheme": "Bearer", "credentials": "s3cret"}});
    let new = sent(Version::V1_0, json!({"taskPushNotificationConfig": flat}));
    let also = sent(Version::V1_0, json!({"pushNotificationConfig": flat}));
    for config in [old, new, also] {
        let push = config.unwrap().push.unwrap();
        assert_eq!((push.id.as_deref(), push.scheme.as_deref()), (Some("p"), Some("Bearer")));
        assert!(push.token.is_some() && push.credentials.is_some());
        // What is secret is shown to nobody, however it is asked for.
        let shown =
            format!("{push:?} {} {}", push.to_json(Version::V0_3, "t"), push.to_json(Version::V1_0, "t"));
        assert!(!shown.contains("t0k") && !shown.contains("s3cret"), "{shown}");
        assert_eq!(
            push.to_json(Version::V1_0, "t"),
            json!({"id": "p", "url": "https://hooks.example", "authentication": {"scheme": "Bearer"}, "taskId": "t"})
        );
        assert_eq!(
            push.to_json(Version::V0_3, "t")["pushNotificationConfig"]["authentication"],
            json!({"schemes": ["Bearer"]})
        );
    }
    let pointer = |version, configuration| sent(version, configuration).err().unwrap();
    assert_eq!(pointer(Version::V0_3, json!([])), "/params/configuration");
    assert_eq!(pointer(Version::V0_3, json!({"blocking": "yes"})), "/params/configuration/blocking");
    assert_eq!(
        pointer(Version::V1_0, json!({"returnImmediately": 1})),
        "/params/configuration/returnImmediately"
    );
    for url in
        ["", "ftp://x", "https://", "hooks.example", "https://a b", "https://a\nb", "file:///etc/passwd"]
    {
        let push = json!({"pushNotificationConfig": {"url": url}});
        assert_eq!(pointer(Version::V0_3, push), "/params/configuration/pushNotificationConfig/url", "{url}");
    }
}
