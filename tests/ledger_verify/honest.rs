//! What must verify: honest ledgers of every shape, and what retention and a crash leave of them.

use handoffd::ledger::verify::{Progress, Report, verify_export, verify_segments};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::*;

fn verified(ledger: &Ledger) -> Report {
    let dir = tempfile::tempdir().unwrap();
    ledger.write(dir.path());
    verify_segments(dir.path(), &[ledger.checkpoint()], &mut |_| ()).unwrap()
}

#[test]
fn an_honest_ledger_verifies_as_segments_and_as_an_export() {
    let ledger = Ledger::honest();
    let report = verified(&ledger);
    let last: Value = serde_json::from_str(ledger.export().lines().last().unwrap()).unwrap();
    let lines = || ledger.segments.iter().flatten();
    assert_eq!(report.topic_id.as_deref(), Some(TOPIC));
    assert_eq!(report.entries, 48);
    assert_eq!(report.first_timestamp.as_deref(), Some(&*timestamp(1)));
    assert_eq!(report.last_timestamp.as_deref(), Some(&*timestamp(48)));
    assert_eq!(report.last_running_hash.as_deref(), last["hcs"]["running_hash"].as_str());
    assert_eq!(report.bodies, lines().filter(|line| is_body(line)).count() as u64);
    assert_eq!(report.batches, lines().filter(|line| is_commit(line)).count() as u64);
    assert_eq!(report.uncommitted_tail_bytes, 0);
    let export = verify_export(ledger.export().as_bytes(), &[ledger.checkpoint()]).unwrap();
    assert_eq!(export, Report { bodies: 0, batches: 0, ..report });
}

#[test]
fn an_empty_ledger_verifies_unless_a_checkpoint_knows_of_entries() {
    let dir = tempfile::tempdir().unwrap();
    let none = Report {
        topic_id: None,
        entries: 0,
        first_timestamp: None,
        last_timestamp: None,
        last_running_hash: None,
        bodies: 0,
        batches: 0,
        uncommitted_tail_bytes: 0,
    };
    let at_the_start = |hash: &[u8; 32]| {
        let text = checkpoint_text(TOPIC, 0, &hex(hash));
        [handoffd::ledger::verify::Checkpoint::parse(text.as_bytes())
            .unwrap()
            .verify(&public_keys())
            .unwrap()]
    };
    let genesis = sha256(&[b"handoffd/ledger/v1", TOPIC.as_bytes()]);
    assert_eq!(verify_segments(dir.path(), &[], &mut |_| ()), Ok(none.clone()));
    assert_eq!(verify_export(&b""[..], &[]), Ok(none.clone()));
    assert_eq!(verify_export(&b""[..], &at_the_start(&genesis)), Ok(none.clone()));
    assert_eq!(verify_export(&b""[..], &at_the_start(&[1; 32])).unwrap_err().kind.code(), "checkpoint_hash");
    let ledger = Ledger::honest();
    assert!(verify_export(ledger.export().as_bytes(), &at_the_start(&genesis)).is_ok());
    let finding = verify_export(ledger.export().as_bytes(), &at_the_start(&[1; 32])).unwrap_err();
    assert_eq!(finding.kind.code(), "checkpoint_hash");
    let finding = verify_segments(dir.path(), &[ledger.checkpoint()], &mut |_| ()).unwrap_err();
    assert_eq!(finding.kind.code(), "truncated");
    // A segment that was made and not yet written to.
    write(&dir.path().join("00000000000000000001.jsonl"), b"");
    assert_eq!(verify_segments(dir.path(), &[], &mut |_| ()), Ok(none));
}

#[test]
fn retention_may_drop_any_body_line() {
    let honest = Ledger::honest();
    let mut without = honest.clone();
    for segment in &mut without.segments {
        segment.retain(|line| !is_body(line));
    }
    assert_eq!(verified(&without), Report { bodies: 0, ..verified(&honest) });
}

#[test]
fn what_follows_the_last_commit_line_is_a_tail_and_no_part_of_the_ledger() {
    let honest = Ledger::honest();
    let report = verified(&honest);
    let (checkpoint, export) = ([honest.checkpoint()], honest.export());
    let mut longer = honest.clone();
    longer.body("half a batch");
    longer.event(&canonical(&wire(49, "phase:crypto-sage.execution-plane.v1", 1, json!({}))));
    let tail = longer.text(2)[honest.text(2).len()..].to_owned();
    let event = export.lines().last().unwrap();
    let dir = tempfile::tempdir().unwrap();
    honest.write(dir.path());
    let zeros = "\0".repeat(5000);
    let long_body = format!("{{\"digest\":\"sha256:{}\",\"body\":\"{}", "0".repeat(64), "x".repeat(200_000));
    // Every cut of an honest tail, and what a power cut may leave.
    let cuts = (0..=tail.len()).filter(|cut| tail.is_char_boundary(*cut)).map(|cut| tail[..cut].to_owned());
    let others = [&*zeros, "\n\n", &*format!("{event}\n"), "{\"commit\":{\"sequence\":48}}\n", &*long_body];
    for tail in cuts.chain(others.map(str::to_owned)) {
        write(&dir.path().join(honest.name(2)), format!("{}{tail}", honest.text(2)).as_bytes());
        let expected = Report { uncommitted_tail_bytes: tail.len() as u64, ..report.clone() };
        assert_eq!(verify_segments(dir.path(), &checkpoint, &mut |_| ()), Ok(expected), "{tail}");
    }
}

#[test]
fn what_was_set_aside_is_not_looked_at() {
    let ledger = Ledger::honest();
    let dir = tempfile::tempdir().unwrap();
    ledger.write(dir.path());
    write(&dir.path().join(format!("{}.torn", ledger.name(2))), b"{\"hcs\":");
    assert!(verify_segments(dir.path(), &[ledger.checkpoint()], &mut |_| ()).is_ok());
}

#[test]
fn progress_is_told_segment_by_segment_and_ends_at_the_whole() {
    let ledger = Ledger::honest();
    let dir = tempfile::tempdir().unwrap();
    ledger.write(dir.path());
    let mut told = Vec::new();
    verify_segments(dir.path(), &[], &mut |progress| told.push(progress)).unwrap();
    let bytes: u64 = (0..3).map(|n| ledger.text(n).len() as u64).sum();
    assert_eq!(told.iter().map(|progress| progress.entries).collect::<Vec<_>>(), [17, 37, 48]);
    let whole = Progress { segments_done: 3, segments: 3, bytes_done: bytes, bytes, entries: 48 };
    assert_eq!(told.last(), Some(&whole));
}

/// A body is read in parts of 64 KiB: the place where it is parted must not matter.
#[test]
fn a_body_may_be_of_any_size() {
    for pad in 0..24 {
        let mut ledger = Ledger::started();
        let body = format!("{}{}", "x".repeat(pad), "é\"\\\n\u{1f}😀€".repeat(20_000));
        ledger.body(&body);
        ledger.event(&canonical(&wire(1, "task:hf-1:attempt:1", 1, json!({}))));
        ledger.commit();
        let report = verified(&ledger);
        assert_eq!((report.bodies, report.uncommitted_tail_bytes), (1, 0), "padded by {pad}");
    }
}

/// Values as a Wire text may carry them: whole numbers, any text, any names.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_wire_text_verifies_exactly_when_it_is_canonical(payload in any_value()) {
        let value = wire(1, "task:hf-1:attempt:1", 1, json!({"any": payload}));
        let export_of = |text: &str| {
            let mut ledger = Ledger::started();
            ledger.event(text);
            ledger.export()
        };
        let text = canonical(&value);
        prop_assume!(text.len() <= 8192);
        prop_assert!(verify_export(export_of(&text).as_bytes(), &[]).is_ok());
        // The same value as serde_json writes it is in the order of its making.
        let other = value.to_string();
        prop_assert_eq!(verify_export(export_of(&other).as_bytes(), &[]).unwrap_err().kind.code(), "wire_form");
    }

    #[test]
    fn any_text_may_be_a_body(body in any::<String>()) {
        let mut ledger = Ledger::started();
        ledger.body(&body);
        ledger.event(&canonical(&wire(1, "task:hf-1:attempt:1", 1, json!({}))));
        ledger.commit();
        prop_assert_eq!(verified(&ledger).bodies, 1);
    }
}
