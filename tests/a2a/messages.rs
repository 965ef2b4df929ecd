//! Messages of both versions, and the TaskSpec in them.

use handoffd::a2a::{Ask, Incoming, Message, Submission, Version, body, read_requests};
use handoffd::wire::{Envelope, SenderClass};
use serde_json::{Value as Json, json};

use super::stage::fixture;

fn sent(version: Version, message: &Json) -> Result<Submission, (i32, String)> {
    let method = match version {
        Version::V0_3 => "message/send",
        Version::V1_0 => "SendMessage",
    };
    let text =
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}).to_string();
    let document = body(text.as_bytes()).unwrap();
    let Ok(Incoming::One(request)) = read_requests(&document, None) else { panic!("no request") };
    match request.call {
        Ok(call) => match call.ask {
            Ask::Send(sent) => Ok(*sent),
            other => panic!("{other:?}"),
        },
        Err(error) => {
            let pointer = error.findings.first().map(|finding| finding.pointer.clone()).unwrap_or_default();
            Err((error.code.number(), pointer))
        }
    }
}

fn read(version: Version, message: &Json) -> Message {
    sent(version, message).unwrap_or_else(|refusal| panic!("{refusal:?}: {message}")).message
}

/// The same message in both versions' shapes.
fn both(parts_0_3: Json, parts_1_0: Json) -> [(Version, Json); 2] {
    let rest = json!({
        "messageId": "m1", "contextId": "corr_1", "taskId": "hs_12345678", "referenceTaskIds": ["hs_87654321~2"],
        "metadata": {"skill": "submit"}, "extensions": ["https://x.example"],
    });
    let with = |kind: Option<&str>, role: &str, parts: Json| {
        let mut message = rest.clone();
        message["role"] = json!(role);
        message["parts"] = parts;
        if let Some(kind) = kind {
            message["kind"] = json!(kind);
        }
        message
    };
    [
        (Version::V0_3, with(Some("message"), "user", parts_0_3)),
        (Version::V1_0, with(None, "ROLE_USER", parts_1_0)),
    ]
}

fn every_part() -> [(Version, Json); 2] {
    both(
        json!([
            {"kind": "text", "text": "hello"},
            {"kind": "data", "data": {"b": 1, "a": 2.5}, "metadata": {"n": 1}},
            {"kind": "file", "file": {"uri": "https://x.example/f", "mimeType": "text/csv", "name": "f.csv"}},
            {"kind": "file", "file": {"bytes": "aGk="}},
        ]),
        json!([
            {"text": "hello"},
            {"data": {"a": 2.5, "b": 1.0}, "metadata": {"n": 1}},
            {"url": "https://x.example/f", "mediaType": "text/csv", "filename": "f.csv"},
            {"raw": "aGk="},
        ]),
    )
}

#[test]
fn a_message_says_the_same_in_either_shape() {
    let [(_, old), (_, new)] = every_part();
    let messages = [read(Version::V0_3, &old), read(Version::V1_0, &new)];
    assert_eq!(messages[0], messages[1]);
    assert_eq!(messages[0].content_digest(), messages[1].content_digest());
    // Written again, each is what it was; numbers count by their value.
    let [ours_0_3, ours_1_0] = [messages[1].to_json(Version::V0_3), messages[0].to_json(Version::V1_0)];
    assert_eq!(read(Version::V0_3, &ours_0_3), messages[0]);
    assert_eq!(read(Version::V1_0, &ours_1_0), messages[0]);
    assert_eq!(ours_0_3, old);
    // 0.3 has objects only.
    let list = read(Version::V1_0, &json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"data": [1]}]}));
    assert_eq!(list.to_json(Version::V0_3)["parts"][0], json!({"kind": "data", "data": {"value": [1]}}));
}

#[test]
fn other_content_under_the_same_message_id_is_another_message() {
    let [(version, message), _] = every_part();
    let before = read(version, &message).content_digest();
    for (pointer, value) in [
        ("/contextId", json!("corr_2")),
        ("/taskId", json!("hs_12345678~2")),
        ("/referenceTaskIds/0", json!("hs_87654321")),
        ("/parts/0/text", json!("hello ")),
        ("/parts/1/data/a", json!(2.25)),
        ("/parts/2/file/uri", json!("https://x.example/g")),
        ("/parts/3/file/bytes", json!("aGo=")),
        ("/metadata/skill", json!("check")),
    ] {
        let mut other = message.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        assert_ne!(read(version, &other).content_digest(), before, "{pointer}");
    }
}

#[test]
fn what_is_wrong_with_a_message_is_pointed_at() {
    let check = |version: Version, pointer: &str, value: Json, expected: &str| {
        let [old, new] = every_part();
        let mut message = if version == Version::V0_3 { old.1 } else { new.1 };
        *message.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value.clone();
        let refused = sent(version, &message).map(|sent| sent.message);
        assert_eq!(refused, Err((-32602, format!("/params/message{expected}"))), "{pointer} {value}");
    };
    use Version::{V0_3, V1_0};
    for version in Version::ALL {
        for value in [json!(null), json!(""), json!(5), json!("x".repeat(129)), json!("a\u{7}")] {
            check(version, "/messageId", value, "/messageId");
        }
        check(version, "/role", json!(null), "/role");
        check(version, "/role", json!("system"), "/role");
        check(version, "/contextId", json!(["corr_1"]), "/contextId");
        check(version, "/referenceTaskIds", json!("hs_12345678"), "/referenceTaskIds");
        check(version, "/referenceTaskIds/0", json!(7), "/referenceTaskIds/0");
        check(version, "/referenceTaskIds/0", json!("elsewhere"), "/referenceTaskIds/0");
        check(version, "/metadata", json!("x"), "/metadata");
        check(version, "/parts", json!(null), "/parts");
        check(version, "/parts", json!([]), "/parts");
        check(version, "/parts", json!({"text": "x"}), "/parts");
        check(version, "/parts/0", json!("hello"), "/parts/0");
    }
    // Each version's role, and none but the sender's.
    check(V0_3, "/role", json!("ROLE_USER"), "/role");
    check(V0_3, "/role", json!("agent"), "/role");
    check(V1_0, "/role", json!("user"), "/role");
    check(V1_0, "/role", json!("ROLE_AGENT"), "/role");
    check(V0_3, "/kind", json!("task"), "/kind");
    check(V0_3, "/parts/0", json!({"text": "no kind"}), "/parts/0/kind");
    check(V0_3, "/parts/0", json!({"kind": "video"}), "/parts/0/kind");
    check(V0_3, "/parts/0", json!({"kind": "text"}), "/parts/0/text");
    check(V0_3, "/parts/0", json!({"kind": "text", "text": 1}), "/parts/0/text");
    check(V0_3, "/parts/1", json!({"kind": "data", "data": [1]}), "/parts/1/data");
    check(V0_3, "/parts/1", json!({"kind": "data"}), "/parts/1/data");
    check(V0_3, "/parts/2", json!({"kind": "file", "file": {}}), "/parts/2/file");
    check(
        V0_3,
        "/parts/2",
        json!({"kind": "file", "file": {"uri": "a:b", "bytes": "aGk="}}),
        "/parts/2/file",
    );
    check(V0_3, "/parts/2", json!({"kind": "file", "file": {"uri": "x".repeat(2_049)}}), "/parts/2/file/uri");
    check(V0_3, "/parts/2", json!({"kind": "file", "url": "a:b"}), "/parts/2/file");
    check(V1_0, "/parts/0", json!({}), "/parts/0");
    check(V1_0, "/parts/0", json!({"text": "a", "data": {}}), "/parts/0");
    check(V1_0, "/parts/0", json!({"kind": "file", "file": {"uri": "a:b"}}), "/parts/0");
    check(V1_0, "/parts/0", json!({"text": {}}), "/parts/0/text");
    check(V1_0, "/parts/0", json!({"url": ""}), "/parts/0/url");
    let many = |count: usize| json!({"messageId": "m", "role": "ROLE_USER", "parts": vec![json!({"text": "x"}); count]});
    assert_eq!(read(V1_0, &many(32)).parts.len(), 32);
    assert_eq!(sent(V1_0, &many(33)).err(), Some((-32602, "/params/message/parts".to_owned())));
    // A task that was never there is not found, rather than malformed.
    let mut lost = every_part()[1].1.clone();
    lost["taskId"] = json!("nowhere");
    assert_eq!(sent(V1_0, &lost).err(), Some((-32001, String::new())));
}

#[test]
fn a_message_in_a_log_says_nothing_of_its_content() {
    for (version, message) in every_part() {
        let shown = format!("{:?}", sent(version, &message).unwrap());
        assert!(shown.contains("m1 [Text(5 bytes), Data, Url, Raw(4 bytes)]"), "{shown}");
        for word in ["hello", "aGk=", "x.example", "submit", "f.csv"] {
            assert!(!shown.contains(word), "{shown}");
        }
    }
}

#[test]
fn a_member_that_a_version_does_not_know_is_ignored() {
    let with = |part: Json| json!({"messageId": "m", "role": "user", "parts": [part], "later": 1});
    let plain = read(Version::V0_3, &with(json!({"kind": "text", "text": "x"})));
    let more = read(
        Version::V0_3,
        &with(json!({"kind": "text", "text": "x", "mimeType": 5, "name": {}, "data": []})),
    );
    assert_eq!(plain, more);
}

fn with_parts(parts: Json) -> Json {
    json!({"messageId": "m1", "role": "ROLE_USER", "parts": parts})
}

#[test]
fn a_task_spec_in_a_data_part_is_a_handoff_and_nowhere_else() {
    let spec = json!({"taskSpecVersion": "1.0", "handoffId": "hs_12345678", "correlationId": "corr_1"});
    let found = |parts: Json| read(Version::V1_0, &with_parts(parts)).task_spec().unwrap().map(|(n, _)| n);
    assert_eq!(found(json!([{"data": spec}])), Some(0));
    assert_eq!(found(json!([{"text": "do this"}, {"data": spec}])), Some(1));
    // One that lacks its version is decided on, and told so.
    assert_eq!(found(json!([{"data": {"intent": {}, "routing": {}}}])), Some(0));
    for parts in [
        json!([{"text": spec.to_string()}]),
        json!([{"data": {"handoffId": "hs_12345678"}}]),
        json!([{"data": [spec]}]),
        json!([{"data": {"taskSpec": spec}}]),
        json!([{"data": spec.to_string()}]),
        json!([{"raw": "e30="}, {"url": "https://x.example/task-spec.json"}]),
    ] {
        assert_eq!(found(parts.clone()), None, "{parts}");
    }
    let says = |parts: Json| read(Version::V1_0, &with_parts(parts)).what_is_missing();
    assert!(says(json!([{"text": spec.to_string()}])).contains("inside a text is not a handoff"));
    assert!(says(json!([{"text": "hello"}])).contains("send the TaskSpec"));
}

#[test]
fn one_message_is_one_handoff_in_its_own_context() {
    let spec = json!({"taskSpecVersion": "1.0", "correlationId": "corr_1"});
    let refusal = |message: &Json| sent(Version::V1_0, message).err().map(|(_, pointer)| pointer);
    let two = with_parts(json!([{"data": spec}, {"text": "and"}, {"data": spec}]));
    assert_eq!(refusal(&two).as_deref(), Some("/params/message/parts/2/data"));
    let mut message = with_parts(json!([{"data": spec}]));
    assert_eq!(refusal(&message), None);
    message["contextId"] = json!("corr_1");
    assert_eq!(refusal(&message), None);
    message["contextId"] = json!("corr_2");
    assert_eq!(refusal(&message).as_deref(), Some("/params/message/contextId"));
    // A task that a message began has a context of its own already.
    message["taskId"] = json!("task_01ARYZ6S410000000000000000");
    assert_eq!(refusal(&message), None);
}

#[test]
fn a_message_is_recorded_by_its_digests_and_not_by_its_words() {
    for (version, message) in every_part() {
        let message = read(version, &message);
        for (by, role) in [
            (SenderClass::Agent, "agent"),
            (SenderClass::Runner, "agent"),
            (SenderClass::Human, "human"),
            (SenderClass::System, "system"),
        ] {
            let payload = message.sent_payload(version, by);
            assert_eq!(payload["role"], role);
            assert_eq!(payload["metadata"]["a2a.version"], version.as_str());
            assert_eq!(payload["metadata"]["a2a.content"], message.content_digest().to_string());
            let kinds: Vec<&str> = payload["parts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| part["kind"].as_str().unwrap())
                .collect();
            assert_eq!(kinds, ["text", "data", "data", "data"]);
            assert_eq!(payload["parts"][0]["bytes"], 5);
            let text = payload.to_string();
            assert!(
                !text.contains("hello") && !text.contains("aGk=") && !text.contains("x.example"),
                "{text}"
            );
            let mut event = fixture("message.sent".parse().unwrap());
            event["payload"] = payload;
            Envelope::parse(&event.to_string()).unwrap_or_else(|faults| panic!("{faults:?}"));
        }
    }
}
