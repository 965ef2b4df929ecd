//! The negative matrix of K1-A, N1 to N7, and the one rule it guards.

use handoffd::evidence::Mode;
use serde_json::{Value, json};

use super::support::{BOTH_MODES, data, delegation, delegation_with, handoff};

fn check(packet: &Value, mode: Mode, words: &str) {
    let data = data(packet, mode).unwrap_or_else(|error| panic!("{error}\n{packet:#}"));
    assert_eq!(data["handoff"], handoff(words), "{packet:#}");
}

fn check_both(packet: &Value, words: &str) {
    BOTH_MODES.into_iter().for_each(|mode| check(packet, mode, words));
}

fn check_refused(packet: &Value, mode: Mode, error: &str) {
    assert_eq!(data(packet, mode), Err(error.to_owned()), "{packet:#}");
}

#[test]
fn a_typed_delegation_is_visible_with_the_references_it_carries() {
    check_both(&delegation(), "visible task message");
    check_both(&delegation_with(json!({"message": null})), "visible task");
    check_both(&delegation_with(json!({"message": {"role": "assistant"}})), "visible task");
    check_both(&delegation_with(json!({"message": {"id": 7}})), "visible task");
    check_both(&delegation_with(json!({"message": {"id": ""}})), "visible task message");
    check_both(&delegation_with(json!({"agent": {"id": "a"}, "timestamp": null})), "visible task message");
}

#[test]
fn k1_n1_a_shared_artifact_shows_no_handoff_even_with_a_task_id() {
    let shared = json!({"event_type": "artifact.shared", "artifact": {"id": "plan", "name": "plan.md"}});
    check_both(&delegation_with(shared.clone()), "default");
    let mut bare = delegation_with(shared);
    bare["task"] = json!({"id": "handoff-42"});
    check_both(&bare, "default");
}

#[test]
fn k1_n2_a_packet_that_falls_back_to_a_message_shows_no_handoff() {
    for event_type in
        [json!("task.delegated"), json!("message"), json!("Task.Requested"), json!(""), json!(7)]
    {
        let packet = delegation_with(json!({"event_type": event_type}));
        check(&packet, Mode::Lenient, "default");
        check_refused(
            &packet,
            Mode::Strict,
            "strict_lossiness_violation: unsupported event_type in strict mode",
        );
        let mut without_message = packet;
        without_message.as_object_mut().unwrap().shift_remove("message");
        let data = data(&without_message, Mode::Lenient).unwrap();
        assert_eq!(data["message"], json!({"id": "unknown-message"}));
        assert_eq!(data["handoff"], handoff("default"));
    }
}

#[test]
fn k1_n3_strict_refuses_a_task_request_without_a_task_id() {
    for task in
        [json!(null), json!({}), json!({"kind": "delegation"}), json!({"id": null}), json!("handoff-42")]
    {
        let packet = delegation_with(json!({"task": task}));
        check_refused(&packet, Mode::Strict, "measurement: missing required field: task.id");
    }
}

#[test]
fn k1_n4_lenient_shows_a_delegation_without_a_task_id_but_no_task_reference() {
    let packet = delegation_with(json!({"task": {"kind": "delegation"}}));
    check(&packet, Mode::Lenient, "visible message");
    let packet = delegation_with(json!({"task": {"id": 42, "kind": "delegation"}, "message": null}));
    check(&packet, Mode::Lenient, "visible");
    assert_eq!(data(&packet, Mode::Lenient).unwrap()["task"]["id"], "unknown-task");

    // What upstream really calls unknown-task is a reference like any other.
    let literal = delegation_with(json!({"task": {"id": "unknown-task", "kind": "delegation"}}));
    check_both(&literal, "visible task message");
}

#[test]
fn k1_n5_a_task_request_of_another_kind_or_none_shows_no_handoff() {
    for kind in ["analysis", "Delegation", "DELEGATION", " delegation", "delegation\n", "delegations", ""] {
        check_both(&delegation_with(json!({"task": {"id": "t", "kind": kind}})), "default");
    }
    for kind in [json!(null), json!(true), json!(1), json!(["delegation"]), json!({"delegation": true})] {
        check_both(&delegation_with(json!({"task": {"id": "t", "kind": kind}})), "default");
    }
    check_both(&delegation_with(json!({"task": {"id": "t"}})), "default");
}

#[test]
fn k1_n6_roles_attributes_discovery_and_unmapped_keys_show_no_handoff() {
    let task = json!({"id": "t", "status": "delegation", "type": "delegation"});
    for other in [
        json!({"agent": {"id": "a", "role": "delegation", "kind": "delegation"}}),
        json!({"attributes": {"kind": "delegation", "task": {"kind": "delegation"}}}),
        json!({"attributes": {"handoff": {"visible": true, "source_kind": "typed_payload"}}}),
        json!({"attributes": {"assay_g4": {"agent_card": {"visible": true}}}}),
        json!({"kind": "delegation", "delegation": true, "handoff": {"visible": true}, "discovery": {}}),
        json!({"message": {"id": "m", "role": "assistant", "kind": "delegation"}}),
        json!({"artifact": {"id": "x", "kind": "delegation"}}),
    ] {
        let mut packet = delegation_with(other);
        packet["task"] = task.clone();
        check_both(&packet, "default");
    }
}

#[test]
fn k1_n7_a_task_update_shows_no_handoff() {
    let packet = delegation_with(json!({"event_type": "task.updated"}));
    check_both(&packet, "default");
    check(
        &delegation_with(json!({"event_type": "task.updated", "task": {"kind": "delegation"}})),
        Mode::Lenient,
        "default",
    );
}
