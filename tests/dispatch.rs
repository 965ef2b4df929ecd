//! What an allowed handoff takes along: payloads of both profiles, signed and not.
//!
//! UPDATE=1 writes `tests/golden/dispatch/`. A changed golden file is a changed contract with every receiver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::cell::Cell;
use std::fs;
use std::path::Path;

use handoffd::answer::Answer;
use handoffd::contract::{Sealed, TaskSpec};
use handoffd::dispatch::{
    Dispatch, DispatchFault, Receipt, ReceiptFacts, Settled, payload, preview, receipt_until,
};
use handoffd::evidence::{HandoffPacket, of_handoff};
use handoffd::gates::{Caller, Claims, Decision, Ground, judge};
use handoffd::json::read;
use handoffd::ledger::RunningHash;
use handoffd::limits;
use handoffd::policy::{PolicySet, Route, Workspace};
use handoffd::proof::{Digest, Key, Keyring, Purpose, Secret, Seed};
use handoffd::sealing::{Seal, Signer, seal};
use handoffd::timestamp::Timestamp;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const DIRECT: &str = include_str!("../docs/examples/taskspec-canonical.json");
const MENTION: &str = include_str!("../docs/examples/taskspec-delegated-read.json");
const LIVE: &str = include_str!("../docs/examples/taskspec-delegated-human-proxy.json");
const NOW: &str = "2026-02-18T19:38:00.123456789Z";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn json_of(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

/// A delegated handoff that no mention triggered.
fn delegated() -> Json {
    let mut spec = json_of(MENTION);
    let authorship = spec["authorship"].as_object_mut().unwrap();
    authorship.remove("mentionDelegationMode");
    authorship.remove("mentionDelegation");
    spec
}

fn signing_key() -> Key {
    let secret = Secret::new(b"shared with the receiver".to_vec());
    Key::hmac("crypto-sage-dispatch-1", "crypto-sage", Purpose::Dispatch, secret).unwrap()
}

fn keyring() -> Keyring {
    let mut keyring = Keyring::default();
    let secret = Secret::from_file_bytes(include_bytes!("../docs/examples/demo.key").to_vec());
    keyring.add(Key::hmac("demo-user-main-1", "user:main", Purpose::Envelope, secret).unwrap()).unwrap();
    keyring.add(signing_key()).unwrap();
    keyring
}

fn route(profile: &str, signed: bool) -> Route {
    let mut route =
        json!({"capability": "execution-plane", "primaryAgentId": "crypto-sage", "profile": profile});
    if signed {
        route["signingKeyId"] = json!("crypto-sage-dispatch-1");
    }
    serde_json::from_value(route).unwrap()
}

fn settled(topic: &str, decided_at: Timestamp) -> Settled {
    Settled { decided_at, running_hash: RunningHash::genesis(topic) }
}

fn dispatch_with(
    spec: &Json,
    route: &Route,
    settled: &Settled,
    keyring: &Keyring,
) -> Result<Dispatch, DispatchFault> {
    let body = spec.to_string();
    let document = read(body.as_bytes(), limits::TASK_SPEC).unwrap();
    payload(&TaskSpec::read(&document).0, route, settled, keyring, settled.decided_at)
}

fn payload_of(dispatch: &Dispatch) -> Json {
    serde_json::from_str(dispatch.text()).unwrap()
}

fn dispatch(spec: &Json, route: &Route) -> Json {
    let settled = settled("0.0.1", at(NOW));
    payload_of(&dispatch_with(spec, route, &settled, &keyring()).unwrap())
}

/// Compares a payload with its golden file, or writes that if UPDATE is set.
fn golden(name: &str, payload: &Json) {
    let file = root().join(format!("tests/golden/dispatch/{name}.json"));
    let text = serde_json::to_string_pretty(payload).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test that writes what it checks")]
        fs::write(&file, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), text, "{name}");
}

#[test]
fn every_profile_and_kind_of_handoff_has_a_golden_payload() {
    let kinds = [("direct", json_of(DIRECT)), ("delegated", delegated()), ("mention", json_of(MENTION))];
    for (kind, spec) in &kinds {
        golden(&format!("plain-{kind}"), &dispatch(spec, &route("plain", false)));
        golden(&format!("execution-plane-{kind}"), &dispatch(spec, &route("execution-plane.v1", false)));
        golden(
            &format!("execution-plane-{kind}-signed"),
            &dispatch(spec, &route("execution-plane.v1", true)),
        );
    }
    golden("execution-plane-live-signed", &dispatch(&json_of(LIVE), &route("execution-plane.v1", true)));
    assert_eq!(fs::read_dir(root().join("tests/golden/dispatch")).unwrap().count(), 10);
}

#[test]
fn a_plain_payload_is_the_task_spec_but_for_what_the_gateway_writes() {
    assert_eq!(dispatch(&json_of(DIRECT), &route("plain", true)), json_of(DIRECT));
    let mut forged = json_of(MENTION);
    for (name, value) in
        [("decision", "denied"), ("validatedAt", "1999-01-01T00:00:00Z"), ("recordedBy", "me")]
    {
        forged["audit"]["delegation"][name] = json!(value);
    }
    let mut sent = dispatch(&forged, &route("plain", false));
    assert_eq!(sent, dispatch(&json_of(MENTION), &route("plain", false)));
    let mut written = sent["audit"]["delegation"].take();
    for (name, value) in
        [("decision", "allowed"), ("validatedAt", "2026-02-18T19:38:00.123Z"), ("recordedBy", "handoffd")]
    {
        assert_eq!(written.as_object_mut().unwrap().shift_remove(name), Some(json!(value)));
    }
    assert_eq!(written, json_of(MENTION)["audit"]["delegation"]);
    // It is still a TaskSpec.
    let text = dispatch(&forged, &route("plain", false)).to_string();
    assert!(TaskSpec::read(&read(text.as_bytes(), limits::TASK_SPEC).unwrap()).1);
}

/// A person approves what they see, so what they see is what is sent, but for the proof that it may be.
#[test]
fn what_is_shown_before_a_yes_is_what_is_sent_after_it_without_auth() {
    for spec in [json_of(DIRECT), json_of(MENTION), json_of(LIVE)] {
        for profile in ["plain", "execution-plane.v1"] {
            let body = spec.to_string();
            let document = read(body.as_bytes(), limits::TASK_SPEC).unwrap();
            let route = route(profile, true);
            let shown = preview(&TaskSpec::read(&document).0, &route, at(NOW)).unwrap();
            let mut sent = dispatch(&spec, &route);
            let auth = sent.as_object_mut().unwrap().shift_remove("auth");
            assert_eq!(auth.is_some(), profile == "execution-plane.v1");
            assert_eq!(shown, sent, "{profile}");
        }
    }
}

#[test]
fn only_live_work_with_side_effects_is_no_dry_run() {
    let check = |mode: &str, side_effects: Option<bool>, dry_run: bool| {
        let mut spec = json_of(DIRECT);
        spec["mode"] = json!(mode);
        match side_effects {
            Some(flag) => spec["safety"]["allowExternalSideEffects"] = json!(flag),
            None => drop(spec["safety"].as_object_mut().unwrap().remove("allowExternalSideEffects")),
        }
        assert_eq!(dispatch(&spec, &route("execution-plane.v1", true))["dryRun"], json!(dry_run), "{mode}");
    };
    for mode in ["dev", "simulated", "live"] {
        check(mode, None, true);
        check(mode, Some(false), true);
        check(mode, Some(true), mode != "live");
    }
}

/// What the signature covers, written by another implementation of RFC 8785.
fn signed_text(payload: &Json) -> (String, String) {
    let mut unsigned = payload.clone();
    let signature = unsigned["auth"].as_object_mut().unwrap().shift_remove("signature").unwrap();
    (serde_json_canonicalizer::to_string(&unsigned).unwrap(), signature.as_str().unwrap().to_owned())
}

#[test]
fn a_signature_covers_all_of_the_payload_but_itself() {
    let mut spec = json_of(DIRECT);
    spec["intent"]["input"] = json!({
        "\u{10000}": "U+10000", "\u{ff5e}": "U+FF5E", "10": 1e21, "9": 100.0, "é": -0.000_001, "a": [0.1, 1e-7, 5e-324],
    });
    for spec in [&spec, &json_of(MENTION)] {
        let sent = dispatch(spec, &route("execution-plane.v1", true));
        let (text, signature) = signed_text(&sent);
        assert_eq!(signing_key().verify(text.as_bytes(), &signature), Ok(()));
        assert!(signing_key().verify(text.replace("nonce", "nonsense").as_bytes(), &signature).is_err());
        let auth = &sent["auth"];
        assert_eq!(
            (&auth["scheme"], &auth["keyId"]),
            (&json!("hmac-sha256-v1"), &json!("crypto-sage-dispatch-1"))
        );
        assert_eq!(auth["timestamp"], sent["timestamp"]);
    }
}

/// `tests/fixtures/dispatch-hmac.json`: what an existing receiver computes, with `auth` as this one writes it.
#[test]
fn a_receiver_computes_the_same_signature() {
    let vectors = json_of(include_str!("fixtures/dispatch-hmac.json"));
    let vectors = vectors.as_array().unwrap();
    assert!(vectors.len() >= 5);
    for vector in vectors {
        let secret = Secret::new(vector["secret"].as_str().unwrap().as_bytes().to_vec());
        let key = Key::hmac("bot-alpha", "bot", Purpose::Dispatch, secret).unwrap();
        let body = vector["payloadText"].as_str().unwrap();
        let canonical = handoffd::proof::canonical_json(&json_of(body));
        assert_eq!(String::from_utf8(canonical.clone()).unwrap(), vector["canonical"], "{}", vector["name"]);
        assert_eq!(key.sign(&canonical).unwrap(), vector["hex"], "{}", vector["name"]);
    }
}

#[test]
fn the_digest_is_of_the_payload_as_it_is_sent_and_read_again() {
    for (spec, route) in [
        (DIRECT, route("execution-plane.v1", true)),
        (MENTION, route("plain", false)),
        (LIVE, route("plain", false)),
    ] {
        let made = dispatch_with(&json_of(spec), &route, &settled("0.0.1", at(NOW)), &keyring()).unwrap();
        let text = serde_json::to_string_pretty(&payload_of(&made)).unwrap();
        let received = read(text.as_bytes(), limits::RECEIPT_FILE).unwrap();
        assert_eq!(made.digest(), Digest::of(&handoffd::proof::canonical(received.root())));
        let other = serde_json_canonicalizer::to_string(&payload_of(&made)).unwrap();
        assert_eq!(made.text(), other, "what is sent is what was hashed");
        assert_eq!(made.digest(), Digest::of(other.as_bytes()));
    }
}

#[test]
fn a_decision_has_one_payload_and_another_decision_another_nonce() {
    let route = route("execution-plane.v1", true);
    let make = |topic: &str, time: &str| {
        dispatch_with(&json_of(MENTION), &route, &settled(topic, at(time)), &keyring()).unwrap()
    };
    let first = make("0.0.1", NOW);
    assert_eq!(first, make("0.0.1", NOW));
    let second = make("0.0.2", NOW);
    assert_ne!(payload_of(&first)["auth"]["nonce"], payload_of(&second)["auth"]["nonce"]);
    assert_ne!(first.digest(), second.digest());
    // Asked for later, it is the same payload.
    let body = json_of(MENTION).to_string();
    let document = read(body.as_bytes(), limits::TASK_SPEC).unwrap();
    let spec = TaskSpec::read(&document).0;
    let later = at(NOW).plus_seconds(100);
    assert_eq!(payload(&spec, &route, &settled("0.0.1", at(NOW)), &keyring(), later).unwrap(), first);
}

#[test]
fn a_payload_that_must_be_signed_and_cannot_be_is_not_made() {
    let route = route("execution-plane.v1", true);
    let make = |spec: &Json| dispatch_with(spec, &route, &settled("0.0.1", at(NOW)), &Keyring::default());
    assert!(matches!(make(&json_of(LIVE)), Err(DispatchFault::Signature(_))));
    let unsigned = make(&json_of(DIRECT)).unwrap();
    assert_eq!(payload_of(&unsigned).get("auth"), None);
    let mut torn = json_of(DIRECT);
    torn["audit"]["requestId"] = json!(7);
    assert_eq!(make(&torn), Err(DispatchFault::NotWhole));
}

fn shipped() -> PolicySet {
    Workspace::new(root()).load_policies().unwrap()
}

fn receiver_schema() -> jsonschema::Validator {
    let text =
        fs::read(root().join("agents/blockchain-operator/config/execution-plane.schema.v1.json")).unwrap();
    let schema: Json = serde_json::from_slice(&text).unwrap();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

/// The receiver's rules, as its protocol states them.
fn receiver_takes(payload: &Json) -> bool {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let plain = |text: &str, min: usize| {
        (min..=128).contains(&text.len())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._:-".contains(c))
    };
    let time = |text: &str| {
        let fraction =
            text.strip_suffix('Z').map(|rest| rest.split_once('.').map_or(0, |(_, digits)| digits.len()));
        fraction.is_some_and(|digits| digits <= 3) && Timestamp::parse(text).is_some()
    };
    let mut times = vec![text(&payload["timestamp"]), text(&payload["auth"]["timestamp"])];
    if let Some(mention) = payload["meta"].get("mentionDelegation") {
        times.push(text(&mention["observedAt"]));
    }
    let key = text(&payload["idempotencyKey"]).chars().count();
    plain(&text(&payload["requestId"]), 6)
        && plain(&text(&payload["correlationId"]), 6)
        && plain(&text(&payload["auth"]["keyId"]), 6)
        && plain(&text(&payload["auth"]["nonce"]), 8)
        && (8..=256).contains(&key)
        && times.iter().all(|text| time(text))
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-zA-Z0-9._:-]{6,24}", 1 => "[a-zA-Z0-9._:-]{4,7}", 1 => "[ -~]{6,24}", 1 => "\\PC{6,12}"]
}

fn observed_at() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "2026-02-18T19:36:[0-5][0-9]Z",
        1 => "2026-02-18T19:36:[0-5][0-9]\\.[0-9]{1,9}Z",
        1 => "2026-02-18T20:36:[0-5][0-9]\\+01:00",
    ]
}

/// What admission lets through, the receiver takes; what the receiver would refuse, admission refuses.
#[test]
fn what_is_allowed_is_what_the_receiver_takes() {
    let (policies, keyring, schema) = (shipped(), keyring(), receiver_schema());
    let route = policies.route("crypto-sage.execution-plane.v1").unwrap();
    let (taken, refused) = (Cell::new(0), Cell::new(0));
    let inputs = (id(), id(), id(), observed_at(), any::<bool>(), 0_u32..1_000_000_000, "[a-z]{8}");
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: 600, ..Default::default() });
    let run = runner.run(&inputs, |(request, correlation, key, observed, mention, nanoseconds, topic)| {
        let mut spec = if mention { json_of(MENTION) } else { json_of(DIRECT) };
        spec["audit"]["requestId"] = json!(request);
        spec["audit"]["idempotencyKey"] = json!(key);
        spec["correlationId"] = json!(correlation);
        if mention {
            spec["authorship"]["mentionDelegation"]["observedAt"] = json!(observed);
            let signer = Signer::Shared(keyring.get("demo-user-main-1").unwrap());
            seal(&mut spec, &Seal { signer, ttl: None, bind: false }).unwrap();
        }
        let now = at(&format!("2026-02-18T19:38:00.{nanoseconds:09}Z"));
        let body = spec.to_string();
        let document = read(body.as_bytes(), limits::TASK_SPEC).unwrap();
        let ground = Ground { policies: &policies, keyring: &keyring, caller: Caller::Unchecked, now };
        let judgement = judge(&document, &ground);
        let made = payload(&judgement.spec, route, &settled(&topic, now), &keyring, now);
        if judgement.verdict.decision() == Decision::Allowed {
            let made = payload_of(&made.unwrap());
            prop_assert!(receiver_takes(&made), "{made}");
            prop_assert!(schema.is_valid(&made), "{made}");
            taken.set(taken.get() + 1);
        } else {
            // Nothing but these members was touched, so the receiver has something against one of them.
            prop_assert!(made.map_or(true, |made| !receiver_takes(&payload_of(&made))), "{body}");
            refused.set(refused.get() + 1);
        }
        Ok(())
    });
    run.unwrap();
    assert!(taken.get() > 50 && refused.get() > 50, "{} taken, {} refused", taken.get(), refused.get());
}

/// A schema that has no place for `auth` is found out at admission, not by the receiver.
#[test]
fn the_envelope_is_validated_with_the_auth_block_it_will_have() {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = directory.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test that makes its own workspace")]
        fs::write(file, text).unwrap();
    };
    let table = |signing: Json| {
        json!({"routes": {"work.v1": {
            "capability": "execution-plane", "primaryAgentId": "crypto-sage", "profile": "execution-plane.v1",
            "signingKeyId": signing,
        }}})
        .to_string()
    };
    write("schemas/narrow.v1.json", r#"{"type": "object", "properties": {"auth": false}}"#);
    write("plan.md", "go back");
    let mut spec = json_of(DIRECT);
    spec["routing"] = json!({"strategy": "direct", "routeKey": "work.v1"});
    spec["intent"]["inputSchemaRef"] = json!("schemas/narrow.v1.json");
    spec["rollback"] = json!({"required": true, "planRef": "plan.md"});
    let codes = |table: String| {
        write("policies/routes.json", &table);
        let policies = Workspace::new(directory.path()).load_policies().unwrap();
        let body = spec.to_string();
        let document = read(body.as_bytes(), limits::TASK_SPEC).unwrap();
        let keyring = keyring();
        let ground =
            Ground { policies: &policies, keyring: &keyring, caller: Caller::Unchecked, now: at(NOW) };
        let reasons = judge(&document, &ground).verdict.reasons().to_vec();
        reasons.into_iter().map(|reason| (reason.code.as_str().to_owned(), reason.path)).collect::<Vec<_>>()
    };
    assert_eq!(codes(table(json!("nobody-has-it"))), []);
    let found = codes(table(json!("crypto-sage-dispatch-1")));
    assert_eq!(found, [("EXECUTION_SCHEMA_INVALID".to_owned(), "/routing/routeKey".to_owned())]);
}

/// A dry run takes nothing along; what a committed decision does fits the schema of a Decision.
#[test]
fn what_is_taken_along_fits_the_schema_of_a_decision_and_never_goes_with_a_check() {
    let schema = json_of(include_str!("../docs/schemas/decision.schema.json"));
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let (policies, keyring, now) = (shipped(), keyring(), at(NOW));
    let route = policies.route("crypto-sage.execution-plane.v1").unwrap();
    let document = read(MENTION.as_bytes(), limits::TASK_SPEC).unwrap();
    let judgement =
        judge(&document, &Ground { policies: &policies, keyring: &keyring, caller: Caller::Unchecked, now });
    let sealed = Sealed::of(&document);
    let claims = Claims::of(&judgement.spec, &judgement.verdict);
    let mut answer = Answer::of_check(&judgement, claims.as_ref(), now);
    assert_eq!(answer.decision, Decision::Allowed);
    let written = serde_json::to_value(&answer).unwrap();
    for member in ["handoff", "dispatch", "receipt"] {
        assert_eq!(written.get(member), None, "{member}");
    }

    let settled = settled("0.0.1", now);
    let made = payload(&judgement.spec, route, &settled, &keyring, now).unwrap();
    let facts = ReceiptFacts {
        handoff_id: "hs_20260218_proxy_read_0008",
        task_spec_digest: sealed.task_spec_digest,
        dispatch_digest: made.digest(),
        target: "blockchain-operator",
        sequence: 1,
        running_hash: settled.running_hash,
        topic_id: None,
        expires_at: receipt_until(now, judgement.verdict.holds_until()),
    };
    let packet = HandoffPacket {
        handoff_id: facts.handoff_id,
        source_agent: "decision-router",
        created_at: "2026-02-18T19:37:00Z",
        message_id: Some("1473395000000000002"),
    };
    answer.handoff = Some(of_handoff(&packet).unwrap().handoff);
    answer.receipt = Some(Receipt::sign(&facts, &Seed::from_bytes(&[7; 32])));
    answer.dispatch = made.into_raw();
    let written = serde_json::to_value(&answer).unwrap();
    let errors: Vec<String> = schema.iter_errors(&written).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    // The mention ends before five minutes have passed.
    assert_eq!(written["receipt"]["expiresAt"], "2026-02-18T19:41:58.000Z");
    let seen = json!({"visible": true, "source_kind": "typed_payload", "task_ref_visible": true,
        "message_ref_visible": true});
    assert_eq!(written["handoff"], seen);
    let mut odd = written;
    odd["receipt"]["decision"] = json!("denied");
    assert!(!schema.is_valid(&odd));
}
