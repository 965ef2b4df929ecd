//! Each kind of finding, and what it says.

use std::collections::BTreeSet;

use handoffd::ledger::verify::{Checkpoint, Finding, FindingKind, verify_export, verify_segments};
use serde_json::{Value, json};

use super::support::*;

/// A ledger of three entries: a body, two entries and a commit line, then one entry and its commit line.
fn small() -> Ledger {
    let mut ledger = Ledger::started();
    ledger.body("{\"objective\": \"prüfen\"}");
    ledger.event(&canonical(&wire(1, "task:hf-1:attempt:1", 1, json!({}))));
    ledger.event(&canonical(&wire(2, "task:hf-1:attempt:1", 2, json!({}))));
    ledger.commit();
    ledger.segments.push(Vec::new());
    ledger.event(&canonical(&wire(3, "task:hf-2:attempt:1", 1, json!({}))));
    ledger.commit();
    ledger
}

fn in_segments(ledger: &Ledger) -> Finding {
    let dir = tempfile::tempdir().unwrap();
    ledger.write(dir.path());
    verify_segments(dir.path(), &[], &mut |_| ()).unwrap_err()
}

fn in_export(ledger: &Ledger) -> Finding {
    verify_export(ledger.export().as_bytes(), &[]).unwrap_err()
}

/// Replaces text in one line of the first segment.
fn line(n: usize, from: &str, to: &str) -> Finding {
    let mut ledger = small();
    let line = &mut ledger.segments[0][n - 1];
    assert!(line.contains(from), "{line}");
    *line = line.replacen(from, to, 1);
    in_segments(&ledger)
}

/// Rewrites the second entry's wire text and computes the chain again.
fn wire_text(edit: impl FnOnce(String) -> String) -> Finding {
    let finding = in_segments(&small().with_wire(2, edit).rechained());
    assert_eq!((finding.line, finding.sequence), (Some(3), Some(2)));
    finding
}

/// Changes the second entry's wire text as a value, and keeps it canonical.
fn wire_value(edit: impl FnOnce(&mut Value)) -> Finding {
    wire_text(|text| {
        let mut value = serde_json::from_str(&text).unwrap();
        edit(&mut value);
        canonical(&value)
    })
}

fn checkpoint(text: &str) -> Finding {
    match Checkpoint::parse(text.as_bytes()) {
        Ok(claimed) => claimed.verify(&public_keys()).unwrap_err(),
        Err(finding) => finding,
    }
}

fn against(text: &str) -> Finding {
    let checkpoint = Checkpoint::parse(text.as_bytes()).unwrap().verify(&public_keys()).unwrap();
    verify_export(small().export().as_bytes(), &[checkpoint]).unwrap_err()
}

/// A number for each kind, without gaps. A kind that is added does not compile until it is here.
fn number(kind: &FindingKind) -> usize {
    match kind {
        FindingKind::Unreadable { .. } => 0,
        FindingKind::SegmentName => 1,
        FindingKind::SegmentStart { .. } => 2,
        FindingKind::SegmentUncommitted { .. } => 3,
        FindingKind::LineUnended => 4,
        FindingKind::LineTooLong { .. } => 5,
        FindingKind::LineUnknown => 6,
        FindingKind::LineForm { .. } => 7,
        FindingKind::Topic => 8,
        FindingKind::Sequence { .. } => 9,
        FindingKind::TimestampForm => 10,
        FindingKind::TimestampOrder => 11,
        FindingKind::RunningHash { .. } => 12,
        FindingKind::WireTooLong { .. } => 13,
        FindingKind::WireForm { .. } => 14,
        FindingKind::WireEnvelope { .. } => 15,
        FindingKind::WireVersion => 16,
        FindingKind::WireId => 17,
        FindingKind::WireIdRepeated => 18,
        FindingKind::StreamSeq { .. } => 19,
        FindingKind::BodyDigest => 20,
        FindingKind::CommitEmpty => 21,
        FindingKind::CommitSequence { .. } => 22,
        FindingKind::CommitHash { .. } => 23,
        FindingKind::CheckpointForm => 24,
        FindingKind::CheckpointKey => 25,
        FindingKind::CheckpointSignature => 26,
        FindingKind::CheckpointTopic { .. } => 27,
        FindingKind::CheckpointHash { .. } => 28,
        FindingKind::Truncated { .. } => 29,
    }
}
const KINDS: usize = 30;

const FIRST: &str = "segment 00000000000000000001.jsonl";

#[test]
fn each_finding_says_where_it_is_and_what_was_expected() {
    let mut seen = BTreeSet::new();
    let mut codes = BTreeSet::new();
    let mut check = |finding: Finding, text: &str| {
        assert_eq!(finding.to_string(), text);
        codes.insert(finding.kind.code());
        seen.insert(number(&finding.kind));
    };
    let hash = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["hcs"]["running_hash"].as_str().unwrap().to_owned()
    };
    let small = small();
    let second = hash(&small.segments[0][2]);
    let third = hash(&small.segments[1][0]);

    let nowhere = std::path::Path::new("/nowhere/ledger");
    check(
        verify_segments(nowhere, &[], &mut |_| ()).unwrap_err(),
        "it cannot be read: No such file or directory (os error 2)",
    );
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("1.jsonl"), b"");
    check(
        verify_segments(dir.path(), &[], &mut |_| ()).unwrap_err(),
        "segment 1.jsonl: the file name is not the sequence number of its first entry in 20 digits",
    );
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("00000000000000000003.jsonl"), small.text(1).as_bytes());
    check(
        verify_segments(dir.path(), &[], &mut |_| ()).unwrap_err(),
        "segment 00000000000000000003.jsonl, entry 1: the segment begins at entry 3, expected one that begins at 1",
    );
    let mut uncommitted = small.clone();
    uncommitted.segments[0].pop();
    check(
        in_segments(&uncommitted),
        &format!(
            "{FIRST}, line 3, entry 1: no commit line follows what stands after entry 0, expected one in this segment"
        ),
    );
    check(
        verify_export(small.export().trim_end().as_bytes(), &[]).unwrap_err(),
        "line 3, entry 3: the line is cut off, expected a line feed at its end",
    );
    check(
        line(2, "{\"hcs\":", &format!("{{\"hcs\":{}", " ".repeat(70_000))),
        &format!(
            "{FIRST}, line 2, entry 1: the line is longer than 65536 bytes, which no event or commit line can be"
        ),
    );
    check(
        line(2, "{", " {"),
        &format!("{FIRST}, line 2, entry 1: the line is neither an event, a body nor a commit line"),
    );
    check(
        line(2, "\"wire\":", "\"wire\": "),
        &format!(
            "{FIRST}, line 2, entry 1: the line is not an event line in its one spelling, from column 199 on"
        ),
    );
    check(
        line(1, "ü", "\\u00fc"),
        &format!(
            "{FIRST}, line 1, entry 1: the line is not a body line in its one spelling, from column 113 on"
        ),
    );
    check(
        line(4, "}}", "} }"),
        &format!(
            "{FIRST}, line 4, entry 2: the line is not a commit line in its one spelling, from column 107 on"
        ),
    );
    check(
        line(3, "0.0.8830671", "0.0.8830672"),
        &format!("{FIRST}, line 3, entry 2: topic_id is another one than in entry 1"),
    );
    check(
        line(3, "_number\":2", "_number\":4"),
        &format!("{FIRST}, line 3, entry 2: sequence_number is 4, expected 2"),
    );
    check(
        line(3, "2026-01-01T", "2026-02-30T"),
        &format!(
            "{FIRST}, line 3, entry 2: consensus_timestamp is not a time of the form YYYY-MM-DDThh:mm:ss.nnnnnnnnnZ"
        ),
    );
    check(
        line(3, "2026-01-01T", "2025-01-01T"),
        &format!("{FIRST}, line 3, entry 2: consensus_timestamp is not later than that of the entry before"),
    );
    check(
        line(3, "\"wire\":\"{", "\"wire\":\"{ "),
        &format!(
            "{FIRST}, line 3, entry 2: running_hash differs, expected {}",
            hash(&small.with_wire(2, |text| text.replacen('{', "{ ", 1)).rechained().segments[0][2])
        ),
    );
    check(
        wire_value(|value| value["payload"]["reason"] = json!("x".repeat(8000))),
        &format!("{FIRST}, line 3, entry 2: the wire text has 8558 bytes, expected at most 8192"),
    );
    check(
        wire_text(|text| text.replacen("\"payload\":", "\"payload\": ", 1)),
        &format!(
            "{FIRST}, line 3, entry 2: the wire text is not canonical JSON with whole numbers only (RFC 8785), from byte 108 on"
        ),
    );
    check(
        wire_value(|value| value["stream"]["context_id"] = json!(null)),
        &format!("{FIRST}, line 3, entry 2: the wire text's `context_id` is missing or of the wrong type"),
    );
    check(
        wire_value(|value| value["approved"] = json!(true)),
        &format!(
            "{FIRST}, line 3, entry 2: the wire text is no object, or has a member that the Agent Wire v1.1 envelope has not"
        ),
    );
    check(
        wire_value(|value| value["wire"] = json!("1.0")),
        &format!("{FIRST}, line 3, entry 2: the wire text is of another version, expected 1.1"),
    );
    check(
        wire_value(|value| value["wire_id"] = json!("wire_é0000000")),
        &format!("{FIRST}, line 3, entry 2: wire_id is not `wire_` and 8 to 64 letters or digits"),
    );
    check(
        wire_value(|value| value["wire_id"] = json!(format!("wire_01HZY{:021}", 1))),
        &format!(
            "{FIRST}, line 3, entry 2: wire_id belongs to an earlier entry of its stream, expected one of its own"
        ),
    );
    check(
        wire_value(|value| value["stream"]["stream_seq"] = json!(3)),
        &format!("{FIRST}, line 3, entry 2: stream_seq is 3, expected 2 in its stream"),
    );
    check(
        line(1, "prüfen", "prüfer"),
        &format!("{FIRST}, line 1, entry 1: the body is not the one whose digest stands before it"),
    );
    let mut twice = small.clone();
    let commit = twice.segments[0][3].clone();
    twice.segments[0].push(commit);
    check(
        in_segments(&twice),
        &format!(
            "{FIRST}, line 5, entry 2: the commit line follows no event, expected one since the commit line before"
        ),
    );
    check(
        line(4, "\"sequence\":2", "\"sequence\":1"),
        &format!("{FIRST}, line 4, entry 2: the commit line names entry 1, expected 2"),
    );
    check(
        line(4, &second, &third),
        &format!("{FIRST}, line 4, entry 2: the commit line's running_hash differs, expected {second}"),
    );

    check(checkpoint("[]"), "the checkpoint does not have the form of one");
    let text = small.checkpoint_text();
    check(
        checkpoint(&text.replace(KEY_ID, "somebody")),
        "entry 3: the checkpoint names a key that was not given",
    );
    check(
        checkpoint(&text.replace("16:00:02Z", "16:00:03Z")),
        "entry 3: the checkpoint's signature is not that of the key it names",
    );
    check(
        against(&checkpoint_text("0.0.1", 3, &third)),
        "line 1, entry 1: topic_id is another one than in the checkpoint for entry 3",
    );
    check(
        against(&checkpoint_text(TOPIC, 2, &third)),
        &format!("line 2, entry 2: running_hash is not the one in the checkpoint, expected {third}"),
    );
    check(
        against(&checkpoint_text(TOPIC, 5, &third)),
        "entry 4: the ledger ends after 3 entries, expected 5: a checkpoint was signed for that many",
    );
    assert_eq!(seen, (0..KINDS).collect(), "each kind is produced");
    let page = include_str!("../../docs/ledger.md").split("\n## Findings\n").nth(1).unwrap();
    let listed = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(listed.collect::<BTreeSet<_>>(), codes, "each code is on the page");
}

#[test]
fn an_event_line_has_one_spelling() {
    let honest = small().export();
    for (from, to) in [
        ("{\"hcs\":", "{ \"hcs\":"),
        ("\"sequence_number\":1,", "\"sequence_number\":1.0,"),
        ("\"sequence_number\":1,", "\"sequence_number\":1,\"sequence_number\":1,"),
        ("\"topic_id\":\"0", "\"topic_id\":\"\\u0030"),
        ("2026-01-01T", "2026-01\\u002d01T"),
        ("\"wire\":\"{", "\"wire\":\"\\u007b"),
        ("\\\"", "\\u0022"),
        ("\"}\n", "\"} \n"),
        ("\"}\n", "\" }\n"),
        ("\"}\n", "\"}\r\n"),
        ("\"}\n", "\",\"x\":1}\n"),
        ("\"}\n", "\"}{}\n"),
        ("\"}\n", "\"}\n\n"),
        ("\"}\n", "\"\n"),
        ("{\"hcs\":", "\u{feff}{\"hcs\":"),
        ("\"wire\":\"", "\"wire\":\"\\ud800"),
    ] {
        assert!(honest.contains(from), "{from}");
        let finding = verify_export(honest.replacen(from, to, 1).as_bytes(), &[]).unwrap_err();
        assert_eq!(finding.kind.code(), "line_form", "{to}");
    }
    let mut bytes = honest.into_bytes();
    bytes[300] = 0xff;
    assert_eq!(verify_export(&*bytes, &[]).unwrap_err().kind.code(), "line_form");
    let lines = small().segments[0].join("\n") + "\n";
    assert_eq!(verify_export(lines.as_bytes(), &[]).unwrap_err().kind.code(), "line_form", "events only");
}

#[test]
fn a_wire_text_has_one_spelling() {
    let check = |expected: &str, edit: &dyn Fn(String) -> String| {
        assert_eq!(in_export(&small().with_wire(2, edit).rechained()).kind.code(), expected);
    };
    let payload = |json: &str| {
        let with = json.to_owned();
        move |text: String| text.replacen("\"payload\":{}", &format!("\"payload\":{with}"), 1)
    };
    for form in [
        "{\"b\":1,\"a\":2}",
        "{\"a\":1,\"a\":1}",
        "{\"😀\":1,\"\u{fb33}\":2,\"a\":1}",
        "{\"\u{fb33}\":2,\"😀\":1}",
        "{\"a\":1.5}",
        "{\"a\":1.0}",
        "{\"a\":1e2}",
        "{\"a\":-0}",
        "{\"a\":01}",
        "{\"a\":9007199254740992}",
        "{\"a\":-9007199254740992}",
        "{\"a\":18446744073709551616}",
        "{\"a\":\"\\u0041\"}",
        "{\"a\":\"\\/\"}",
        "{\"a\":\"\\u001F\"}",
        "{\"a\":\"\\u000a\"}",
        "{\"a\":\"\\ud83d\\ude00\"}",
        "{\"a\":[1, 2]}",
        "{\"a\":[1,]}",
        "{\"a\":NaN}",
        "{\"a\":1",
        &format!("{{\"a\":{}{}}}", "[".repeat(63), "]".repeat(63)),
        &format!("{{\"a\":{}{}}}", "[".repeat(3000), "]".repeat(3000)),
    ] {
        check("wire_form", &payload(form));
    }
    check("wire_form", &|text| text + " ");
    check("wire_form", &|text| text + "{}");
    check("wire_form", &|_| String::new());
    check("wire_envelope", &|_| "[]".to_owned());
    check("wire_envelope", &|_| "{}".to_owned());
    check("wire_envelope", &payload("[]"));
    check("wire_envelope", &payload("null"));
    check("wire_envelope", &|text| {
        text.replacen("\"state\":{\"category\":\"working\",\"terminal\":false}", "\"state\":null", 1)
    });
    check("wire_envelope", &|text| text.replacen("[\"0.0.8830669\"]", "[1]", 1));
    check("wire_envelope", &|text| text.replacen("\"stream_seq\":2", "\"stream_seq\":\"2\"", 1));
    check("wire_envelope", &|text| text.replacen("\"stream_seq\":2", "\"stream_seq\":-2", 1));
    for ok in [
        "{\"a\":9007199254740991}",
        "{\"😀\":1,\"\u{fb33}\":2}",
        "{\"a\":\"\\u001f\\n\u{7f}\u{2028}\"}",
        &format!("{{\"a\":{}{}}}", "[".repeat(62), "]".repeat(62)),
    ] {
        let ledger = small().with_wire(2, payload(ok)).rechained();
        assert_eq!(
            verify_export(ledger.export().as_bytes(), &[]).map(|report| report.entries),
            Ok(3),
            "{ok}"
        );
    }
}

#[test]
fn a_consensus_timestamp_has_nine_digits_and_exists() {
    let first = timestamp(1);
    for other in [
        "2026-01-01T00:00:13.007654321z",
        "2026-01-01t00:00:13.007654321Z",
        "2026-01-01T00:00:13.00765432Z",
        "2026-01-01T00:00:13.0076543210Z",
        "2026-01-01T00:00:13.00765432+00:00",
        "2026-01-01T24:00:13.007654321Z",
        "2026-01-01T00:60:13.007654321Z",
        "2026-12-31T23:59:60.007654321Z",
        "2026-02-29T00:00:13.007654321Z",
        "2026-13-01T00:00:13.007654321Z",
        "2026-00-01T00:00:13.007654321Z",
        "+026-01-01T00:00:13.007654321Z",
        "",
    ] {
        let export = small().export().replacen(&first, other, 1);
        assert_eq!(
            verify_export(export.as_bytes(), &[]).unwrap_err().kind.code(),
            "timestamp_form",
            "{other}"
        );
    }
}

#[test]
fn a_checkpoint_counts_only_in_its_form_and_with_its_signature() {
    let text = small().checkpoint_text();
    assert!(Checkpoint::parse(text.as_bytes()).unwrap().verify(&public_keys()).is_ok());
    for (from, to, code) in [
        ("\"sequence\": 3", "\"sequence\": \"3\"", "checkpoint_form"),
        ("\"sequence\": 3", "\"sequence\": 9007199254740992", "checkpoint_form"),
        ("\"sequence\": 3", "\"sequence\": 3, \"sequence\": 3", "checkpoint_form"),
        ("\"sequence\": 3", "\"sequence\": 3, \"more\": 3", "checkpoint_form"),
        ("\"sequence\": 3", "\"sequence\": 2", "checkpoint_signature"),
        ("0.0.8830671", "0.0.8830672", "checkpoint_signature"),
        ("\"signature\": \"", "\"signature\": \"00", "checkpoint_form"),
        ("\"signature\"", "\"Signature\"", "checkpoint_form"),
        ("}", "", "checkpoint_form"),
    ] {
        assert!(text.contains(from), "{from}");
        assert_eq!(checkpoint(&text.replacen(from, to, 1)).kind.code(), code, "{to}");
    }
    let upper: Value = serde_json::from_str(&text).unwrap();
    let upper = json!({"running_hash": upper["running_hash"].as_str().unwrap().to_uppercase()});
    let mut shouted: Value = serde_json::from_str(&text).unwrap();
    shouted["running_hash"] = upper["running_hash"].clone();
    assert_eq!(checkpoint(&shouted.to_string()).kind.code(), "checkpoint_form");
    let mut keys = public_keys();
    assert!(keys.add("weak", &"0".repeat(64)).is_err(), "a key of small order");
    assert!(keys.add("short", "00").is_err());
    assert!(keys.add("shouted", &public_key().to_uppercase()).is_err());
}
