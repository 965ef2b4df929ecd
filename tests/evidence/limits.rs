//! The limits an operator may set, and the one that is always there.

use handoffd::evidence::{Limits, Mode};
use serde_json::json;

use super::support::{answer, answer_within, delegation, delegation_with};

fn message(packet: &[u8], limits: Limits) -> Option<String> {
    let answer = answer_within(packet, Mode::Strict, &limits);
    let error = answer.get("error")?;
    assert_eq!(error["kind"], "measurement");
    Some(error["message"].as_str().unwrap().to_owned())
}

#[test]
fn no_limit_is_set_by_default() {
    let limits = Limits::default();
    assert_eq!((limits.packet_bytes_max, limits.depth_max, limits.array_items_max), (None, None, None));
    let large = delegation_with(json!({"x": vec!["x".repeat(1_000); 2_000]}));
    assert_eq!(message(large.to_string().as_bytes(), limits), None);
}

#[test]
fn a_packet_passes_at_each_limit_and_not_beyond_it() {
    let packet = delegation_with(json!({"attributes": {"a": {"b": ["x", "y", "z"]}}})).to_string();
    let packet = packet.as_bytes();
    let bytes = |max| Limits { packet_bytes_max: Some(max), ..Limits::default() };
    let depth = |max| Limits { depth_max: Some(max), ..Limits::default() };
    let items = |max| Limits { array_items_max: Some(max), ..Limits::default() };

    assert_eq!(message(packet, bytes(packet.len())), None);
    let over = message(packet, bytes(packet.len() - 1)).unwrap();
    assert!(over.starts_with("packet bytes over the limit: "), "{over}");
    assert_eq!(message(packet, depth(4)), None);
    assert_eq!(message(packet, depth(3)).unwrap(), "packet depth over the limit: `4`, at most `3`");
    assert_eq!(message(packet, items(3)), None);
    assert_eq!(message(packet, items(2)).unwrap(), "array items over the limit: `3`, at most `2`");
}

#[test]
fn size_is_checked_before_json_and_shape_after_it() {
    let all = Limits { packet_bytes_max: Some(4), depth_max: Some(0), array_items_max: Some(0) };
    assert!(message(b"[[[[[", all).unwrap().starts_with("packet bytes over the limit"));
    assert!(message(b"[[[[", all).unwrap().starts_with("invalid A2A payload JSON"));
    assert!(message(b"[1]", all).unwrap().starts_with("packet depth over the limit"));
    assert!(message(b"1", all).unwrap().starts_with("protocol must be"));
}

#[test]
fn limits_that_are_kept_change_nothing() {
    let packet = delegation().to_string();
    let limits = Limits { packet_bytes_max: Some(65_536), depth_max: Some(2), array_items_max: Some(0) };
    assert_eq!(
        answer_within(packet.as_bytes(), Mode::Strict, &limits),
        answer(packet.as_bytes(), Mode::Strict)
    );
}

#[test]
fn one_hundred_and_twenty_seven_nested_containers_pass_and_one_more_does_not() {
    let nested = |containers: usize| {
        // The packet itself is the outermost.
        let value = format!("{}{}", "[".repeat(containers - 1), "]".repeat(containers - 1));
        delegation_with(json!({"attributes": "here"})).to_string().replace("\"here\"", &value)
    };
    assert_eq!(message(nested(127).as_bytes(), Limits::default()), None);
    let over = message(nested(128).as_bytes(), Limits::default()).unwrap();
    assert!(over.starts_with("invalid A2A payload JSON: recursion limit exceeded"), "{over}");
}
