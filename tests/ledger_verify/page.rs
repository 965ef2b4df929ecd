//! `docs/ledger.md`: its worked example is what it says it is.

use handoffd::ledger::verify::{Checkpoint, PublicKeys, verify_export, verify_segments};
use serde_json::Value;

use super::support::*;

const PAGE: &str = include_str!("../../docs/ledger.md");

/// The fenced blocks of one language, in order.
fn blocks(language: &str) -> Vec<&'static str> {
    let parts = PAGE.split("\n```").enumerate().filter(|(n, _)| n % 2 == 1);
    parts.filter_map(|(_, block)| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn the_hashes_on_the_page_follow_from_its_lines() {
    let segment = blocks("jsonl")[0];
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("| n | SHA-256"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('|').map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    let events: Vec<Value> = segment.lines().filter(|line| is_event(line)).map(parsed).collect();
    assert_eq!((events.len(), rows.len()), (3, 4));
    let topic = events[0]["hcs"]["topic_id"].as_str().unwrap();
    let mut hash = sha256(&[b"handoffd/ledger/v1", topic.as_bytes()]);
    assert!(PAGE.contains(&format!("the 29 bytes `handoffd/ledger/v1{topic}`")));
    assert_eq!(rows[0][1..4], ["0", "", &*hex(&hash)]);
    for (n, event) in events.iter().enumerate() {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let timestamp = text(&event["hcs"]["consensus_timestamp"]);
        let wire_hash = sha256(&[text(&event["wire"]).as_bytes()]);
        hash = sha256(&[&hash, &(n as u64 + 1).to_be_bytes(), timestamp.as_bytes(), &wire_hash]);
        assert_eq!(rows[n + 1][1..4], [&*(n + 1).to_string(), &*hex(&wire_hash), &*hex(&hash)]);
        assert_eq!(text(&event["hcs"]["running_hash"]), hex(&hash));
    }
    let body = parsed(segment.lines().next().unwrap());
    let digest = format!("sha256:{}", hex(&sha256(&[body["body"].as_str().unwrap().as_bytes()])));
    assert_eq!(body["digest"], *digest);
    let second = blocks("json")[0];
    assert_eq!(events[1]["wire"], second);
    assert_eq!(parsed(second)["payload"]["taskSpecDigest"], *digest);
}

#[test]
fn the_ledger_on_the_page_verifies_against_its_checkpoint() {
    let (segment, json) = (format!("{}\n", blocks("jsonl")[0]), blocks("json"));
    let public = PAGE.split("The public key is `").nth(1).unwrap().split('`').next().unwrap();
    let mut keys = PublicKeys::default();
    keys.add("gateway-2026", public).unwrap();
    let checkpoint = [Checkpoint::parse(json[1].as_bytes()).unwrap().verify(&keys).unwrap()];
    let mut signed = parsed(json[1]);
    signed.as_object_mut().unwrap().remove("signature");
    assert_eq!(canonical(&signed), json[2]);
    let seed: [u8; 32] = std::array::from_fn(|n| n as u8);
    assert_eq!(hex(ed25519_dalek::SigningKey::from_bytes(&seed).verifying_key().as_bytes()), public);

    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("00000000000000000001.jsonl"), segment.as_bytes());
    let report = verify_segments(dir.path(), &checkpoint, &mut |_| ()).unwrap();
    assert_eq!((report.entries, report.bodies, report.batches), (3, 1, 1));
    let export: String =
        segment.lines().filter(|line| is_event(line)).map(|line| format!("{line}\n")).collect();
    assert_eq!(verify_export(export.as_bytes(), &checkpoint).unwrap().entries, 3);
}
