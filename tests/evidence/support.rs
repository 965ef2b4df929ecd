//! One place that knows the API: packet in, JSON out.

use handoffd::evidence::{Limits, Mode, convert};
use serde_json::{Value, json};

pub(super) const BOTH_MODES: [Mode; 2] = [Mode::Strict, Mode::Lenient];

/// The answer as a door would write it: `{"ok": …}` or `{"error": …}`.
pub(super) fn answer(bytes: &[u8], mode: Mode) -> Value {
    answer_within(bytes, mode, &Limits::default())
}

pub(super) fn answer_within(bytes: &[u8], mode: Mode, limits: &Limits) -> Value {
    match convert(bytes, mode, limits) {
        Ok(conversion) => json!({ "ok": conversion }),
        Err(error) => json!({ "error": error }),
    }
}

/// The emitted `data`, or the error as `<kind>: <message>`.
pub(super) fn data(packet: &Value, mode: Mode) -> Result<Value, String> {
    let mut answer = answer(packet.to_string().as_bytes(), mode);
    match answer.get("error") {
        Some(error) => {
            Err(format!("{}: {}", error["kind"].as_str().unwrap(), error["message"].as_str().unwrap()))
        }
        None => Ok(answer["ok"]["events"][0]["data"].take()),
    }
}

/// A packet that asks for a delegation and leaves nothing out.
pub(super) fn delegation() -> Value {
    json!({
        "protocol": "a2a",
        "version": "0.3.0",
        "event_type": "task.requested",
        "timestamp": "2026-03-01T08:30:00Z",
        "agent": {"id": "agent://crypto-sage", "role": "orchestrator"},
        "task": {"id": "handoff-42", "status": "requested", "kind": "delegation"},
        "message": {"id": "message-7", "role": "assistant"},
    })
}

/// The delegation with these top-level members put in or replaced; null takes a member out.
pub(super) fn delegation_with(changes: Value) -> Value {
    let mut packet = delegation();
    let members = packet.as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.shift_remove(key);
        } else {
            members.insert(key.clone(), value.clone());
        }
    }
    packet
}

/// The `handoff` object that `words` stand for: `default`, or `visible` and which references.
pub(super) fn handoff(words: &str) -> Value {
    let has = |word: &str| words.split(' ').any(|other| other == word);
    assert!(has("default") != has("visible"), "`{words}`");
    json!({
        "visible": has("visible"),
        "source_kind": if has("visible") { "typed_payload" } else { "unknown" },
        "task_ref_visible": has("task"),
        "message_ref_visible": has("message"),
    })
}

/// The `discovery` object that `words` stand for: `default`, or `card`, `extended`, or both.
pub(super) fn discovery(words: &str) -> Value {
    let has = |word: &str| words.split(' ').any(|other| other == word);
    assert!(has("default") != (has("card") || has("extended")), "`{words}`");
    json!({
        "agent_card_visible": has("card"),
        "agent_card_source_kind": if has("card") { "attributes" } else { "unknown" },
        "extended_card_access_visible": has("extended"),
        "signature_material_visible": false,
    })
}

/// Canonical JSON the slow way: sort whatever is there, then print. Shares no code with the product.
pub(super) fn canonical(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}
