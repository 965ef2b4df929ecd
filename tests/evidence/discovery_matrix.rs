//! The negative matrix of G4-A, N1 to N7, and the two paths it guards.

use serde_json::{Value, json};

use super::support::{BOTH_MODES, data, delegation_with, discovery};

/// Discovery is the same in both modes and for every type of event, so every case is tried on all of them.
fn check(attributes: &Value, words: &str) {
    for event_type in ["agent.capabilities", "task.requested", "task.updated", "artifact.shared"] {
        let packet = delegation_with(json!({
            "event_type": event_type,
            "artifact": {"id": "x"},
            "attributes": attributes,
        }));
        check_packet(&packet, words);
    }
}

fn check_packet(packet: &Value, words: &str) {
    for mode in BOTH_MODES {
        let data = data(packet, mode).unwrap_or_else(|error| panic!("{error}\n{packet:#}"));
        assert_eq!(data["discovery"], discovery(words), "{packet:#}");
    }
}

#[test]
fn the_two_surfaces_are_visible_independently_of_each_other() {
    let (yes, no) = (json!({"visible": true}), json!({"visible": false}));
    check(&json!({"assay_g4": {"agent_card": yes}}), "card");
    check(&json!({"assay_g4": {"extended_card_access": yes}}), "extended");
    check(&json!({"assay_g4": {"agent_card": yes, "extended_card_access": yes}}), "card extended");
    check(&json!({"assay_g4": {"agent_card": yes, "extended_card_access": no}}), "card");
    check(&json!({"assay_g4": {"agent_card": no, "extended_card_access": yes}}), "extended");
    check(&json!({"assay_g4": {"agent_card": yes, "extended_card_access": "yes"}}), "card");
}

#[test]
fn g4_n1_other_attributes_show_no_card() {
    check(&json!({"priority": "high", "session": "alpha"}), "default");
    check(&json!({"agent_card": {"visible": true}, "extended_card_access": {"visible": true}}), "default");
    check(&json!({"assay": {"agent_card": {"visible": true}}, "visible": true}), "default");
    check(&json!({"Assay_G4": {"agent_card": {"visible": true}}}), "default");
    check(&json!({"x": {"assay_g4": {"agent_card": {"visible": true}}}}), "default");
}

#[test]
fn g4_n2_the_namespace_in_another_shape_shows_no_card() {
    for namespace in [
        json!("visible"),
        json!(true),
        json!(1),
        json!([]),
        json!([{"agent_card": {"visible": true}}]),
        json!({}),
        json!({"visible": true}),
        json!({"agent_card": true}),
        json!({"agent_card": {}}),
        json!({"agent_card": [{"visible": true}]}),
        json!({"agent_card": {"visible": "true"}}),
        json!({"agent_card": {"visible": 1}}),
        json!({"agent_card": {"visible": {"visible": true}}}),
        json!({"agent_card": {"Visible": true}}),
        json!({"agent_card": {"visible": false}}),
    ] {
        check(&json!({"assay_g4": namespace}), "default");
    }
    for attributes in [json!("assay_g4"), json!(1), json!(["assay_g4"])] {
        check(&attributes, "default");
    }
}

#[test]
fn g4_n3_unmapped_keys_and_their_count_show_no_card() {
    let packet = delegation_with(json!({
        "assay_g4": {"agent_card": {"visible": true}},
        "agent_card": {"visible": true},
        "discovery": discovery("card extended"),
        "card": true,
    }));
    check_packet(&packet, "default");
    for mode in BOTH_MODES {
        assert_eq!(data(&packet, mode).unwrap()["unmapped_fields_count"], 4);
    }
}

#[test]
fn g4_n4_a_card_seen_in_attributes_alone_has_the_source_kind_attributes() {
    check(
        &json!({"assay_g4": {"agent_card": {"visible": true, "url": "https://a.example", "valid": false}}}),
        "card",
    );
    // There is no typed path yet: nothing in the typed parts stands above the attributes, or beside them.
    let packet = delegation_with(json!({
        "event_type": "agent.capabilities",
        "agent": {"id": "a", "capabilities": ["agent_card"], "agent_card": {"visible": true}},
    }));
    check_packet(&packet, "default");
}

#[test]
fn g4_n5_without_the_namespace_both_modes_show_the_same_defaults() {
    check(&json!({"priority": "high"}), "default");
    check(&json!({}), "default");
    check_packet(&delegation_with(json!({"event_type": "agent.capabilities"})), "default");
}

#[test]
fn g4_n6_signature_material_is_never_visible() {
    let shown = json!({"visible": true});
    check(
        &json!({
            "assay_g4": {
                "signature_material": shown,
                "signature": shown,
                "agent_card": {"visible": true, "signature_material_visible": true, "signature": "AAAA"},
                "extended_card_access": shown,
            },
            "signature_material_visible": true,
        }),
        "card extended",
    );
}

#[test]
fn g4_n7_the_source_kind_follows_the_card_and_nothing_else() {
    check(&json!({"assay_g4": {"agent_card": {"visible": true}}}), "card");
    check(&json!({"assay_g4": {"agent_card": {"visible": false}}}), "default");
    // Attributes are there and even say something; but not about the card.
    check(&json!({"assay_g4": {"extended_card_access": {"visible": true}}}), "extended");
}
