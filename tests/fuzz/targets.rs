//! What is fuzzed, and what must hold of it for any bytes.

use std::collections::BTreeSet;

use handoffd::a2a::{ErrorCode, Incoming, Version, body, failed, read_requests};
use handoffd::evidence::{Limits, Mode, convert};
use handoffd::gates::{Caller, Decision, Ground, judge};
use handoffd::json::{BodyFaultKind, Bounds, read};
use handoffd::ledger::verify::verify_export;
use handoffd::limits;
use handoffd::policy::Workspace;
use handoffd::proof::{Key, Keyring, Purpose, Secret, canonical};
use handoffd::timestamp::Timestamp;
use handoffd::wire::SentEvent;
use serde_json::Value as Json;

use crate::mutate::{fuzz, small_files};
use crate::support::Ledger;

const BOUNDS: Bounds = Bounds { bytes_max: 64 * 1024, levels_max: 64 };

/// The same, where a number is the double that it stands for: `100.0` is 100.
fn alike(ours: &Json, theirs: &Json) -> bool {
    match (ours, theirs) {
        (Json::Number(ours), Json::Number(theirs)) => ours.as_f64() == theirs.as_f64(),
        (Json::Array(ours), Json::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| alike(ours, theirs))
        }
        (Json::Object(ours), Json::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().all(|(name, ours)| theirs.get(name).is_some_and(|theirs| alike(ours, theirs)))
        }
        (ours, theirs) => ours == theirs,
    }
}

#[test]
fn the_strict_reader_reads_what_others_read_or_says_why_not() {
    let mut seeds = small_files("docs/examples");
    seeds.extend(small_files("tests/fixtures/evidence/corpus"));
    fuzz("strict-json", seeds, 6_000, |bytes| {
        let theirs: Result<Json, _> = serde_json::from_slice(bytes);
        match read(bytes, BOUNDS) {
            Ok(document) => {
                let theirs = theirs.expect("what is read strictly is read by others");
                assert!(alike(&document.root().to_json(), &theirs), "{theirs}");
                let text = canonical(document.root());
                let again = read(&text, BOUNDS).expect("the canonical form is strict JSON");
                assert_eq!(canonical(again.root()), text, "the canonical form is a fixed point");
                assert_eq!(text, serde_json_canonicalizer::to_vec(&theirs).unwrap());
            }
            // What others read and we do not, we can name.
            Err(fault) if theirs.is_ok() => assert!(
                matches!(
                    fault.kind,
                    BodyFaultKind::DuplicateKey { .. }
                        | BodyFaultKind::NumberNotKept { .. }
                        | BodyFaultKind::TooDeep { .. }
                        | BodyFaultKind::TooLarge { .. }
                ),
                "{fault:?}"
            ),
            Err(fault) => assert!(!fault.to_string().is_empty() && !fault.hint().is_empty()),
        }
    });
}

/// The ground on which the shipped examples hold.
struct Shipped {
    policies: handoffd::policy::PolicySet,
    keyring: Keyring,
    schema: jsonschema::Validator,
}

impl Shipped {
    fn new() -> Self {
        let root = env!("CARGO_MANIFEST_DIR");
        let mut keyring = Keyring::default();
        let secret = Secret::from_file_bytes(include_bytes!("../../docs/examples/demo.key").to_vec());
        keyring.add(Key::hmac("demo-user-main-1", "user:main", Purpose::Envelope, secret).unwrap()).unwrap();
        let schema: Json =
            serde_json::from_str(include_str!("../../docs/schemas/task-spec.schema.json")).unwrap();
        Self {
            policies: Workspace::new(root).load_policies().unwrap(),
            keyring,
            schema: jsonschema::options().should_validate_formats(true).build(&schema).unwrap(),
        }
    }

    fn judge(&self, bytes: &[u8]) -> Option<(Decision, BTreeSet<&'static str>)> {
        let now = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
        let ground =
            Ground { policies: &self.policies, keyring: &self.keyring, caller: Caller::Unchecked, now };
        let document = read(bytes, limits::TASK_SPEC).ok()?;
        let verdict = judge(&document, &ground).verdict;
        let codes = verdict.reasons().iter().map(|reason| reason.code.as_str()).collect();
        Some((verdict.decision(), codes))
    }
}

#[test]
fn a_task_spec_passes_only_if_the_schema_takes_it_and_however_it_is_written() {
    let shipped = Shipped::new();
    let mut seeds = small_files("docs/examples");
    seeds.extend(small_files("docs/examples/refused"));
    fuzz("task-spec", seeds, 3_000, |bytes| {
        let Some((decision, codes)) = shipped.judge(bytes) else { return };
        assert_eq!(codes.is_empty(), matches!(decision, Decision::Allowed | Decision::NeedsApproval));
        let value: Json = serde_json::from_slice(bytes).unwrap();
        let fits = shipped.schema.is_valid(&value);
        assert!(fits || !codes.is_empty(), "a document that the schema refuses has a reason against it");
        assert!(!fits || !codes.contains("A2A_TASKSPEC_INVALID"), "{codes:?}");
        // The order and the spelling of members mean nothing.
        let document = read(bytes, limits::TASK_SPEC).unwrap();
        assert_eq!(shipped.judge(&canonical(document.root())), Some((decision, codes)));
    });
}

#[test]
fn an_evidence_packet_is_told_alike_each_time_and_lenient_takes_what_strict_takes() {
    fuzz("evidence", small_files("tests/fixtures/evidence/corpus"), 3_000, |bytes| {
        let none = Limits::default();
        let [strict, lenient] = [Mode::Strict, Mode::Lenient].map(|mode| convert(bytes, mode, &none));
        assert_eq!(convert(bytes, Mode::Strict, &none), strict);
        match (&strict, &lenient) {
            (Ok(strict), Ok(lenient)) => assert_eq!(strict, lenient, "nothing was missing"),
            (Ok(_), Err(error)) => panic!("strict took it, lenient did not: {error}"),
            (Err(_), _) => {}
        }
        if let Ok(lenient) = lenient {
            let event = serde_json::to_value(&lenient).unwrap();
            let payload = &event["events"][0]["data"];
            for member in ["visible", "source_kind", "task_ref_visible", "message_ref_visible"] {
                assert!(payload["handoff"].get(member).is_some(), "{member} is always there: {event}");
            }
            // Not RFC 8785: numbers stay as they were written, `100.0` too.
            let text = lenient.digests().payload_canonical();
            let mut sorted: Json = serde_json::from_str(text).unwrap();
            sorted.sort_all_objects();
            assert_eq!(sorted.to_string(), text);
        }
    });
}

#[test]
fn a_wire_event_that_is_taken_has_one_text() {
    fuzz("wire", small_files("tests/fixtures/agent-wire/v1.1"), 3_000, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        match SentEvent::parse(text) {
            Ok(event) => {
                assert!(event.text().len() <= limits::EVENT_BYTES_MAX);
                assert!(event.envelope().is_some());
                let again = SentEvent::parse(event.text()).expect("what was taken is taken again");
                assert_eq!(again.text(), event.text());
                let value: Json = serde_json::from_str(text).unwrap();
                assert_eq!(serde_json_canonicalizer::to_string(&value).unwrap(), event.text());
            }
            Err(faults) => assert!(!faults.is_empty()),
        }
    });
}

#[test]
fn every_json_rpc_body_is_answered_with_a_code_of_the_protocol() {
    let known: BTreeSet<i32> = ErrorCode::ALL.iter().map(|code| code.number()).collect();
    fuzz("json-rpc", Vec::new(), 6_000, |bytes| {
        let answers = |incoming: Incoming| match incoming {
            Incoming::One(request) => vec![request],
            Incoming::Batch(requests) => {
                assert!((1..=limits::A2A_BATCH_MAX).contains(&requests.len()));
                requests
            }
        };
        for asked in [None, Some("0.3"), Some("1.0"), Some("9")] {
            let document = match body(bytes) {
                Ok(document) => document,
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::Parse);
                    continue;
                }
            };
            let requests = match read_requests(&document, asked) {
                Ok(incoming) => answers(incoming),
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::InvalidRequest);
                    continue;
                }
            };
            for request in requests {
                let Err(error) = request.call else { continue };
                assert!(known.contains(&error.code.number()));
                // What nobody is waiting for is not answered, and what is malformed always is.
                let Some(id) = request.id else { continue };
                for version in [Version::V0_3, Version::V1_0] {
                    let answer = failed(&id, &error, version);
                    assert_eq!(answer["error"]["code"], error.code.number());
                    assert!(matches!(answer["id"], Json::Null | Json::String(_) | Json::Number(_)));
                }
            }
        }
    });
}

#[test]
fn no_changed_export_verifies_against_a_checkpoint() {
    let honest = Ledger::honest();
    let (export, checkpoint) = (honest.export(), honest.checkpoint());
    let checkpoints = std::slice::from_ref(&checkpoint);
    assert!(verify_export(export.as_bytes(), checkpoints).is_ok());
    // A forger who computes the chain again does no better.
    let forged = honest.with_wire(9, |wire| wire.replace("1.1", "1.0")).rechained().export();
    fuzz("export", vec![export.clone().into_bytes(), forged.into_bytes()], 600, |bytes| {
        if verify_export(bytes, checkpoints).is_ok() {
            assert_eq!(String::from_utf8_lossy(bytes), export, "a changed export was accepted");
        }
    });
}
