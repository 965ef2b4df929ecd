//! Rules of the packet that the fixtures do not show, or show only once.

use handoffd::evidence::{EventKind, Limits, LossinessLevel, Mode, convert};
use serde_json::{Value, json};

use super::support::{BOTH_MODES, answer, data, delegation, delegation_with, handoff};

fn strict(packet: &Value) -> Value {
    data(packet, Mode::Strict).unwrap()
}

#[test]
fn of_duplicate_keys_the_last_wins_even_when_it_is_worth_nothing() {
    let packet = |task: &str| {
        format!(
            r#"{{"protocol":"x","protocol":"a2a","version":"0.2","event_type":"task.requested",
                "agent":{{"id":"first","id":"last"}},"task":{{"id":"t","kind":"delegation"}},{task}}}"#
        )
    };
    let emitted = answer(packet(r#""x":1,"x":2,"\u0078":3"#).as_bytes(), Mode::Strict);
    let data = &emitted["ok"]["events"][0]["data"];
    assert_eq!(data["agent"]["id"], "last");
    assert_eq!(data["unmapped_fields_count"], 1, "a key sent three times is one key");
    assert_eq!(data["handoff"], handoff("visible task"));

    let emitted =
        answer(packet(r#""task":{"id":"u","kind":"delegation","kind":null}"#).as_bytes(), Mode::Strict);
    let data = &emitted["ok"]["events"][0]["data"];
    assert_eq!(data["task"], json!({"id": "u"}));
    assert_eq!(data["handoff"], handoff("default"));

    let refused = answer(packet(r#""task":7"#).as_bytes(), Mode::Strict);
    assert_eq!(refused["error"]["message"], "missing required field: task.id");
}

#[test]
fn an_escaped_key_is_the_key_it_spells() {
    let packet =
        delegation().to_string().replace("\"kind\"", r#""\u006bind""#).replace("protocol", r"\u0070rotocol");
    let emitted = answer(packet.as_bytes(), Mode::Strict);
    assert_eq!(emitted["ok"]["events"][0]["data"]["handoff"], handoff("visible task message"));
}

#[test]
fn a_part_without_an_id_is_left_out() {
    for part in [json!({}), json!({"role": "assistant"}), json!({"id": 7, "role": "assistant"}), json!("m")] {
        assert_eq!(strict(&delegation_with(json!({"message": part}))).get("message"), None);
    }
    let data = strict(&delegation_with(json!({
        "event_type": "agent.capabilities",
        "task": {"status": "requested"},
        "artifact": {"name": "x"},
    })));
    assert_eq!((data.get("task"), data.get("artifact")), (None, None));
}

#[test]
fn an_empty_string_is_an_id_and_nothing_is_trimmed() {
    let data =
        strict(&delegation_with(json!({"task": {"id": "", "kind": "delegation"}, "agent": {"id": " a\n"}})));
    assert_eq!(data["task"]["id"], "");
    assert_eq!(data["agent"]["id"], " a\n");
    assert_eq!(data["handoff"], handoff("visible task message"));
    let emitted = answer(delegation_with(json!({"task": {"id": ""}})).to_string().as_bytes(), Mode::Strict);
    assert_eq!(emitted["ok"]["events"][0]["id"], "a2a::0");
}

#[test]
fn capabilities_are_the_strings_sorted_by_bytes() {
    let sent = json!(["b", 1, "a", null, "é", "Z", ["c"], "a", ""]);
    let packet = delegation_with(json!({"agent": {"id": "a", "capabilities": sent}}));
    assert_eq!(strict(&packet)["agent"]["capabilities"], json!(["", "Z", "a", "a", "b", "é"]));
    let packet = delegation_with(json!({"agent": {"id": "a", "capabilities": [1, 2]}}));
    assert_eq!(strict(&packet)["agent"]["capabilities"], json!([]));
    let packet = delegation_with(json!({"agent": {"id": "a", "capabilities": "a"}}));
    assert_eq!(strict(&packet)["agent"].get("capabilities"), None);
}

#[test]
fn attributes_are_emitted_in_order_whatever_their_type() {
    let sent = json!({"z": [{"b": 1, "a": ["y", "x"]}], "a": {"d": 1.0, "c": -0.0}});
    let data = strict(&delegation_with(json!({"attributes": sent})));
    assert_eq!(data["attributes"].to_string(), r#"{"a":{"c":-0.0,"d":1.0},"z":[{"a":["x","y"],"b":1}]}"#);
    for sent in [json!(true), json!("text"), json!(["b", "a"])] {
        assert!(strict(&delegation_with(json!({"attributes": sent}))).get("attributes").is_some());
    }
}

#[test]
fn a_bare_packet_is_emitted_in_lenient_mode_with_a_note_for_every_placeholder() {
    let conversion =
        convert(br#"{"protocol":"a2a","version":"0.2"}"#, Mode::Lenient, &Limits::default()).unwrap();
    let notes = conversion.lossiness().notes();
    assert_eq!(notes.len(), 3);
    assert!(notes[0].contains("unknown-agent") && notes[2].contains("unknown-message"), "{notes:?}");
    assert_eq!(conversion.lossiness().level(), LossinessLevel::High);
    assert_eq!(conversion.event().kind(), EventKind::Message);
    assert_eq!(conversion.event().time(), "2023-11-16T02:00:00Z");
}

#[test]
fn checks_that_need_no_mode_come_first_and_in_order() {
    let order = [
        (r#"{"#, "invalid A2A payload JSON: EOF while parsing an object at line 1 column 1"),
        (r#"{"version":"9"}"#, "protocol must be 'a2a'"),
        (r#"{"protocol":"a2a","version":2}"#, "missing required field: version"),
        (r#"{"protocol":"a2a","version":"9"}"#, "unsupported A2A version: 9"),
    ];
    for (packet, message) in order {
        for mode in BOTH_MODES {
            assert_eq!(answer(packet.as_bytes(), mode)["error"]["message"], message, "{packet}");
        }
    }
    let strict_order = [
        (r#"{"protocol":"a2a","version":"0.2"}"#, "missing required field: agent.id"),
        (r#"{"protocol":"a2a","version":"0.2","agent":{"id":"a"}}"#, "unsupported event_type in strict mode"),
        (
            r#"{"protocol":"a2a","version":"0.2","agent":{"id":"a"},"event_type":"task.updated"}"#,
            "missing required field: task.id",
        ),
        (
            r#"{"protocol":"a2a","version":"0.2","agent":{"id":"a"},"event_type":"artifact.shared"}"#,
            "missing required field: artifact.id",
        ),
    ];
    for (packet, message) in strict_order {
        assert_eq!(answer(packet.as_bytes(), Mode::Strict)["error"]["message"], message, "{packet}");
        assert!(answer(packet.as_bytes(), Mode::Lenient).get("ok").is_some(), "{packet}");
    }
}

/// The parser would skip these unseen if it were only asked to ignore an unknown key.
#[test]
fn a_broken_value_under_an_unknown_key_still_breaks_the_packet() {
    for value in ["1e999", r#""\ud800""#, "01", "[1,]", &"[".repeat(128)] {
        let packet = format!(r#"{{"protocol":"a2a","version":"0.2","x":{value}}}"#);
        let reason = serde_json::from_str::<Value>(&packet).unwrap_err();
        let refused = answer(packet.as_bytes(), Mode::Lenient);
        assert_eq!(refused["error"]["message"], format!("invalid A2A payload JSON: {reason}"));
    }
}
