//! What holds for packets that nobody wrote: grown from the vocabulary of the contracts, or bent from one
//! that works.

use handoffd::evidence::{Limits, Mode, convert};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use serde_json::Value;

use super::support::{BOTH_MODES, answer, canonical, delegation_with};

fn config() -> ProptestConfig {
    // A failing case is in the message; nothing is written beside the tests.
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) }
}

/// Strings that mean something to the adapter, mixed with ones that do not.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => select(vec![
            "a2a", "0.2", "0.3.1", "1.0", "task.requested", "task.requested", "task.updated",
            "artifact.shared", "agent.capabilities", "message", "delegation", "delegation", "Delegation", "unknown-task",
            "2026-03-01T08:30:00+02:00", "true", "",
        ])
        .prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => select(vec![
            "id", "kind", "role", "name", "status", "capabilities", "media_type", "assay_g4", "agent_card",
            "extended_card_access", "signature_material", "visible", "task", "attributes", "handoff",
        ])
        .prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

/// JSON text, with duplicate keys now and then, which a `Value` could not hold.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => Just("true".to_owned()),
        1 => select(vec!["null", "false", "0", "1", "-1.5", "1e999"]).prop_map(str::to_owned),
        3 => word().prop_map(|word| quoted(&word)),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            4 => vec((key(), inner), 0..5).prop_map(|members| object(&members)),
        ]
    })
}

/// Mostly a packet with every part in place, each of them possibly replaced, repeated or joined by others.
fn packet() -> impl Strategy<Value = String> {
    let path = select(vec!["agent_card", "extended_card_access", "signature_material"]);
    let shown = (path, select(vec!["true", "true", "false", "1", "\"true\""]))
        .prop_map(|(surface, value)| format!(r#"{{"assay_g4":{{"{surface}":{{"visible":{value}}}}}}}"#));
    let member = prop_oneof![
        2 => word().prop_map(|word| ("event_type".to_owned(), quoted(&word))),
        2 => json_text().prop_map(|json| ("task".to_owned(), json)),
        2 => select(vec!["delegation", "delegation", "analysis"])
            .prop_map(|kind| ("task".to_owned(), format!(r#"{{"kind":"{kind}"}}"#))),
        2 => shown.prop_map(|json| ("attributes".to_owned(), json)),
        1 => json_text().prop_map(|json| ("attributes".to_owned(), json)),
        2 => (select(vec!["agent", "message", "artifact"]), json_text())
            .prop_map(|(key, json)| (key.to_owned(), json)),
        1 => (key(), json_text()),
        1 => word().prop_map(|word| ("version".to_owned(), quoted(&word))),
        1 => word().prop_map(|word| ("timestamp".to_owned(), quoted(&word))),
    ];
    (any::<bool>(), vec(member, 0..6)).prop_map(|(whole, mut members)| {
        let start = if whole {
            delegation_with(serde_json::json!({}))
        } else {
            serde_json::json!({"protocol": "a2a", "version": "0.2"})
        };
        let start = start.as_object().unwrap().iter().map(|(key, value)| (key.clone(), value.to_string()));
        members.splice(0..0, start);
        object(&members)
    })
}

/// A packet with some of its bytes changed, dropped or doubled.
fn bent() -> impl Strategy<Value = Vec<u8>> {
    (packet(), vec((any::<Index>(), any::<u8>(), 0..4_u8), 1..4)).prop_map(|(packet, bends)| {
        let mut bytes = packet.into_bytes();
        for (at, byte, how) in bends {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes[at] ^= 0x20,
                _ => bytes.truncate(at.max(1)),
            }
        }
        bytes
    })
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn object(members: &[(String, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(key, json)| format!("{}:{json}", quoted(key))).collect();
    format!("{{{}}}", members.join(","))
}

/// What every conversion must hold to, whatever came in.
fn check(bytes: &[u8]) {
    let [strict, lenient] = BOTH_MODES.map(|mode| answer(bytes, mode));
    if strict.get("ok").is_some() {
        assert_eq!(strict, lenient, "lenient changes nothing that strict takes");
    }
    let packet = match serde_json::from_slice::<Value>(bytes) {
        Ok(packet) => packet,
        Err(error) => {
            let message = format!("invalid A2A payload JSON: {error}");
            assert_eq!(strict["error"]["message"], message);
            assert_eq!(lenient["error"]["message"], message);
            return;
        }
    };
    for ok in [strict, lenient].iter().filter_map(|answer| answer.get("ok")) {
        check_emitted(&packet, ok);
    }
}

/// Both contracts once more, read off the packet with nothing but JSON pointers.
fn check_emitted(packet: &Value, ok: &Value) {
    let data = &ok["events"][0]["data"];
    let text = |pointer: &str| packet.pointer(pointer).and_then(Value::as_str);
    let object = |pointer: &str| packet.pointer(pointer).is_some_and(Value::is_object);

    let visible = text("/event_type") == Some("task.requested") && text("/task/kind") == Some("delegation");
    let handoff = &data["handoff"];
    assert_eq!(handoff["visible"], visible);
    assert_eq!(handoff["source_kind"], if visible { "typed_payload" } else { "unknown" });
    assert_eq!(handoff["task_ref_visible"], visible && text("/task/id").is_some());
    assert_eq!(handoff["message_ref_visible"], visible && text("/message/id").is_some());

    let says_visible = |surface: &str| {
        object("/attributes")
            && object("/attributes/assay_g4")
            && object(&format!("/attributes/assay_g4/{surface}"))
            && packet.pointer(&format!("/attributes/assay_g4/{surface}/visible")) == Some(&Value::Bool(true))
    };
    let card = says_visible("agent_card");
    let discovery = &data["discovery"];
    assert_eq!(discovery["agent_card_visible"], card);
    assert_eq!(discovery["agent_card_source_kind"], if card { "attributes" } else { "unknown" });
    assert_eq!(discovery["extended_card_access_visible"], says_visible("extended_card_access"));
    assert_eq!(discovery["signature_material_visible"], false);

    let known = [
        "protocol",
        "version",
        "event_type",
        "timestamp",
        "agent",
        "task",
        "artifact",
        "message",
        "attributes",
    ];
    let unknown = packet.as_object().unwrap().keys().filter(|key| !known.contains(&key.as_str())).count();
    let notes = ok["lossiness"]["notes"].as_array().unwrap().len();
    assert_eq!(data["unmapped_fields_count"], unknown + notes);
    assert_eq!(ok["lossiness"]["unmapped_fields_count"], unknown + notes);
    assert_eq!(ok["digests"]["payload_canonical"], canonical(data));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_packet_shows_more_than_the_frozen_rules_allow(packet in packet()) {
        check(packet.as_bytes());
    }

    #[test]
    fn a_bent_packet_is_refused_in_the_words_of_the_parser_or_read_by_the_rules(bytes in bent()) {
        check(&bytes);
    }

    #[test]
    fn arbitrary_bytes_never_stop_the_adapter(bytes in vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn a_limit_refuses_or_changes_nothing(
        packet in packet(),
        bytes in 0..1_000_usize,
        depth in 0..8_usize,
        items in 0..5_usize,
    ) {
        let limits =
            Limits { packet_bytes_max: Some(bytes), depth_max: Some(depth), array_items_max: Some(items) };
        for mode in BOTH_MODES {
            let free = convert(packet.as_bytes(), mode, &Limits::default());
            match convert(packet.as_bytes(), mode, &limits) {
                Err(error) if error.message.contains("over the limit") => {}
                bound => prop_assert_eq!(bound, free),
            }
        }
    }
}

/// Guards the properties above against growing packets that never get through.
#[test]
fn the_packets_of_these_properties_are_often_emitted_and_often_visible() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut emitted, mut handoffs, mut cards) = (0, 0, 0);
    for _ in 0..400 {
        let packet = packet().new_tree(&mut runner).unwrap().current();
        if let Ok(conversion) = convert(packet.as_bytes(), Mode::Lenient, &Limits::default()) {
            emitted += 1;
            handoffs += u32::from(conversion.event().data().handoff().visible());
            cards += u32::from(conversion.event().data().discovery().agent_card_visible());
        }
    }
    assert!(emitted > 150 && handoffs > 50 && cards > 10, "{emitted} {handoffs} {cards}");
}
