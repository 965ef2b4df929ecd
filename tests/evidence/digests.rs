//! The digests: golden values for every object that can occur, and that they hold still.

use handoffd::evidence::{Limits, Mode, convert};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::support::{BOTH_MODES, answer, canonical, delegation, delegation_with, discovery, handoff};

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The object that `packet` emits under `member` in lenient mode, with its digest.
fn check(member: &str, packet: &Value, object: &Value, golden: &str) {
    let emitted = answer(packet.to_string().as_bytes(), Mode::Lenient);
    assert_eq!(emitted["ok"]["events"][0]["data"][member], *object, "{packet:#}");
    assert_eq!(emitted["ok"]["digests"][format!("{member}_sha256")], golden, "{packet:#}");
    assert_eq!(sha256(&canonical(object)), golden, "the golden value is not of this object");
}

#[test]
fn each_of_the_five_handoff_objects_has_its_golden_digest() {
    let check = |changes: Value, words: &str, golden: &str| {
        check("handoff", &delegation_with(changes), &handoff(words), golden);
    };
    check(
        json!({"event_type": "task.updated"}),
        "default",
        "60e992b4881c03d816cd94929856d8c8cade113f62273d42a8a75412533a294a",
    );
    check(
        json!({"message": null, "task": {"kind": "delegation"}}),
        "visible",
        "d38c94c8e5bc2259dbae7a2b92bf1cfa6d0f57cb011b1b7e70dc6f9277330b5b",
    );
    check(
        json!({"message": null}),
        "visible task",
        "c956bc2d9e8ddd8e2f914f1b0ea5393625fd354248c614a0251687f816d0d623",
    );
    check(
        json!({"task": {"kind": "delegation"}}),
        "visible message",
        "0be260743587b9594018a4ab7809560157be088be0372a8ae7c7faa6a744effe",
    );
    check(
        json!({}),
        "visible task message",
        "e478af7359a254678c90b5eb2737d63f79c6d667a2b5c4bc323442f07d09d33b",
    );
}

#[test]
fn each_of_the_four_discovery_objects_has_its_golden_digest() {
    let check = |namespace: Value, words: &str, golden: &str| {
        let packet = delegation_with(json!({"attributes": {"assay_g4": namespace}}));
        check("discovery", &packet, &discovery(words), golden);
    };
    let shown = json!({"visible": true});
    check(json!({}), "default", "26b4d9c0105f4cc26d4b413e7b6b27effe5829f9f319a60b91ca490fd7776a13");
    check(
        json!({"agent_card": shown}),
        "card",
        "93f5c26d149e7400d38104c4479f332df4df23df0d1f4d25aef252aac87b9769",
    );
    check(
        json!({"extended_card_access": shown}),
        "extended",
        "13e23c6783de838b52ca92d787569bccd3cadc0f8900f1bf76b42262959f77ba",
    );
    check(
        json!({"agent_card": shown, "extended_card_access": shown}),
        "card extended",
        "9d0f24e430e00ee3ec1bc595cb59e6e7d7d5b12c0c90e102ea4d26ad3890e665",
    );
}

#[test]
fn converting_the_same_bytes_again_gives_the_same_bytes() {
    let shown = json!({"visible": true});
    for packet in [
        delegation(),
        delegation_with(json!({"attributes": {"b": ["y", "x"], "assay_g4": {"agent_card": shown}}})),
        delegation_with(
            json!({"attributes": {"assay_g4": {"agent_card": shown, "extended_card_access": shown}}}),
        ),
        delegation_with(json!({"event_type": "agent.capabilities", "x": 1})),
    ] {
        let bytes = packet.to_string().into_bytes();
        for mode in BOTH_MODES {
            let first = convert(&bytes, mode, &Limits::default()).unwrap();
            let written = serde_json::to_vec(&first).unwrap();
            for _ in 0..8 {
                let again = convert(&bytes, mode, &Limits::default()).unwrap();
                assert_eq!(again, first);
                assert_eq!(serde_json::to_vec(&again).unwrap(), written);
            }
        }
    }
}

#[test]
fn the_order_and_spacing_of_a_packet_change_the_raw_digest_only() {
    let compact = delegation_with(json!({"attributes": {"a": 1, "b": {"c": 2, "d": 3}}}));
    let mut backwards = serde_json::Map::new();
    for (key, value) in compact.as_object().unwrap().iter().rev() {
        backwards.insert(key.clone(), value.clone());
    }
    let pretty = serde_json::to_string_pretty(&backwards).unwrap();
    let one = convert(compact.to_string().as_bytes(), Mode::Strict, &Limits::default()).unwrap();
    let other = convert(pretty.as_bytes(), Mode::Strict, &Limits::default()).unwrap();
    assert_eq!(one.event(), other.event());
    assert_eq!(one.digests().payload(), other.digests().payload());
    assert_ne!(one.lossiness().raw_payload_ref(), other.lossiness().raw_payload_ref());
    assert_ne!(one.digests().batch(), other.digests().batch());
}

/// Recomputes all digests from the written answer with a canonical form that shares no code with ours.
#[test]
fn every_digest_can_be_recomputed_from_what_is_emitted() {
    let awkward =
        json!({"é\u{1}": ["\"", "\\", "\u{7f}"], "n": [1.0, -0.0, 1e-7, u64::MAX, i64::MIN], "": null});
    for packet in
        [delegation(), delegation_with(json!({"attributes": awkward, "x": 1, "agent": {"name": "\n"}}))]
    {
        let bytes = packet.to_string().into_bytes();
        let ok = answer(&bytes, Mode::Lenient)["ok"].take();
        let data = &ok["events"][0]["data"];
        let digests = &ok["digests"];
        assert_eq!(digests["payload_canonical"], canonical(data));
        assert_eq!(digests["payload_sha256"], sha256(&canonical(data)));
        assert_eq!(digests["handoff_sha256"], sha256(&canonical(&data["handoff"])));
        assert_eq!(digests["discovery_sha256"], sha256(&canonical(&data["discovery"])));
        let batch = json!({"events": ok["events"], "lossiness": ok["lossiness"]});
        assert_eq!(digests["batch_sha256"], sha256(&canonical(&batch)));
        assert_eq!(ok["lossiness"]["raw_payload_ref"]["sha256"], sha256(str::from_utf8(&bytes).unwrap()));
    }
}
