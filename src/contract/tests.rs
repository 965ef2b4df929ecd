//! The TaskSpec read and explained: all faults at once, in sentences, and the same by types and by schema.

use serde_json::{Map, Value as Json, json};

use super::*;
use crate::json::{Document, read};
use crate::limits;

const CANONICAL: &str = include_str!("../../docs/examples/taskspec-canonical.json");
const DELEGATED: &str = include_str!("../../docs/examples/taskspec-delegated-human-proxy.json");
const MINIMAL: &str = include_str!("../../docs/examples/taskspec-minimal.json");

fn with_document<T>(spec: &Json, f: impl FnOnce(&Document<'_>) -> T) -> T {
    let text = spec.to_string();
    f(&read(text.as_bytes(), limits::TASK_SPEC).unwrap())
}

fn version_1_1() -> Json {
    let mut spec: Json = serde_json::from_str(CANONICAL).unwrap();
    let review = json!({
        "taskSpecVersion": "1.1", "loop_id": "loop_abc12345", "proposed_by": "decision-router",
        "risk_profile": "low", "review_depth": 1, "review_feedback_required": false,
        "auto_approve_window": 86400, "review_reason": "", "parentHandoffId": "hs_12345678",
    });
    spec.as_object_mut().unwrap().extend(review.as_object().unwrap().clone());
    spec
}

fn bases() -> Vec<Json> {
    let mut delegated: Json = serde_json::from_str(DELEGATED).unwrap();
    delegated["authorship"]["envelope"]["binding"] = json!({
        "handoffId": "hs_12345678", "intentHash": format!("sha256:{}", "0a".repeat(32)),
        "messageId": "123456", "channel": "discord:thread:123456",
    });
    delegated["audit"]["delegation"]["recordedBy"] = json!("handoffd");
    let parse = |text| serde_json::from_str(text).unwrap();
    vec![parse(CANONICAL), parse(DELEGATED), parse(MINIMAL), delegated, version_1_1()]
}

#[test]
fn all_that_is_wrong_is_said_at_once_in_sentences() {
    let mut spec: Json = serde_json::from_str(DELEGATED).unwrap();
    spec["handoffID"] = json!("x");
    spec["mode"] = json!("prod");
    spec["createdAt"] = json!("18.02.2026 at nineteen");
    spec["source"]["agentId"] = json!("x");
    spec["intent"]["input"] = json!("x");
    spec["acceptance"]["doneWhen"] = json!(["ok", 5]);
    spec["authorship"]["mentionDelegation"]["ttlSeconds"] = json!(4000);
    spec["authorship"]["mentionDelegation"]["dedupeBy"] = json!("author");
    spec["authorship"]["mentionDelegation"].as_object_mut().unwrap().remove("channel");
    spec["audit"].as_object_mut().unwrap().remove("delegation");
    spec["review_depth"] = json!(3);
    let findings = with_document(&spec, |document| {
        assert!(!TaskSpec::read(document).1);
        shape_findings(document)
    });
    let lines: Vec<String> = findings
        .iter()
        .map(|f| format!("{} | {} | {}", f.pointer, f.message, f.hint.as_deref().unwrap_or("-")))
        .collect();
    let expected = "\
/acceptance/doneWhen/0 | item 0 of `doneWhen` has 2 characters; it needs at least 3 | what must hold when it is done: at least one sentence of 3 to 280 characters
/acceptance/doneWhen/1 | item 1 of `doneWhen` must be a string, not `5` | what must hold when it is done: at least one sentence of 3 to 280 characters
/audit/delegation | `delegation` is missing | `delegated-human-proxy` needs a delegationPolicy, an envelope, a risk block and audit.delegation
/authorship/mentionDelegation/channel | `channel` is missing | where the mention was seen: `discord:channel:` or `discord:thread:` and 6 to 30 digits
/authorship/mentionDelegation/dedupeBy | `dedupeBy` must be `messageId`, not `author` | always `messageId`
/authorship/mentionDelegation/ttlSeconds | `ttlSeconds` must be at most 3600, not `4000` | for how many seconds the mention counts, 5 to 3600
/createdAt | `createdAt` is `18.02.2026 at nineteen`, which is not an RFC 3339 date-time | when the TaskSpec was made, an RFC 3339 date-time such as `2026-02-18T19:31:00Z`
/handoffID | `handoffID` is not a member of the document | did you mean `handoffId`?
/intent/input | `input` must be an object, not `x` | the operation's input, an object that its schema describes
/mode | `mode` must be one of `dev`, `simulated`, `live`, not `prod` | how real it is: `dev`, `simulated` or `live`
/review_depth | `review_depth` may not stand here | `taskSpecVersion` `1.1` brings the review fields and requires them; they are not part of `1.0`
/source/agentId | `agentId` has 1 character; it needs at least 2 | the agent that hands the work over, 2 to 64 characters";
    assert_eq!(lines, expected.lines().collect::<Vec<_>>());
}

#[test]
fn every_embedded_schema_compiles_and_has_no_second_meaning() {
    for name in
        ["agent-card", "task-spec", "route", "policy", "policy-test", "decision", "orchestration-state"]
    {
        let path = format!("{}/docs/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read(&path).unwrap();
        let document = read(&text, limits::WORKSPACE_FILE).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        Compiled::new(document.root().to_json()).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}

#[test]
fn what_identifies_content_leaves_out_what_the_gateway_writes() {
    let spec: Json = serde_json::from_str(DELEGATED).unwrap();
    let mut written = spec.clone();
    written["audit"]["delegation"]["decision"] = json!("allowed");
    written["audit"]["delegation"]["validatedAt"] = json!("2026-02-18T19:38:00Z");
    written["audit"]["delegation"]["recordedBy"] = json!("handoffd");
    let digests = |spec: &Json| {
        with_document(spec, |doc| {
            let both = (task_spec_digest(doc), content_digest(doc));
            let sealed = Sealed::of(doc);
            assert_eq!((sealed.task_spec_digest, sealed.content_digest), both);
            both
        })
    };
    let (as_sent, content) = digests(&spec);
    let (as_written, same_content) = digests(&written);
    assert_eq!(as_sent, content);
    assert_eq!(content, same_content);
    assert_ne!(as_sent, as_written);
    // The same names anywhere else are content like any other.
    for pointer in ["/intent/input", "/audit/delegation/policyRef"] {
        let mut other = spec.clone();
        match other.pointer_mut(pointer).unwrap() {
            Json::Object(input) => drop(input.insert("decision".into(), json!("x"))),
            text => *text = json!("x"),
        }
        assert_ne!(digests(&other).1, content, "{pointer}");
    }
}

/// A small generator that gives the same walk on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

/// Values that sit on some edge of the contract.
fn edges(dice: &mut Dice) -> Json {
    let long = |n: usize| json!("x".repeat(n));
    let lengths = [0, 1, 2, 3, 4, 5, 6, 7, 8, 19, 20, 40, 41, 64, 65, 128, 129, 160, 161, 180, 181, 256, 257];
    match dice.roll(12) {
        0 => Json::Null,
        1 => json!(dice.roll(2) == 0),
        2 => json!(*dice.pick(&[-1, 0, 1, 4, 5, 10, 11, 3600, 3601, 86400, 86401])),
        3 => json!(*dice.pick(&[0.5, 5.0, 10.5, 3600.0, 1e300])),
        4 => json!([]),
        5 => json!(["x"]),
        6 => json!({}),
        7 => json!(["balance.read", long(*dice.pick(&lengths))]),
        8 => json!("é".repeat(*dice.pick(&lengths))),
        9 | 10 => long(*dice.pick(
            &[&lengths[..], &[260, 261, 280, 281, 300, 301, 500, 501, 1000, 1001, 1024, 1025]].concat(),
        )),
        _ => json!(*dice.pick(&[
            "1.0",
            "1.1",
            "dev",
            "live",
            "simulated",
            "direct",
            "capability",
            "gated",
            "disabled",
            "human",
            "low",
            "delegated-human-proxy",
            "authorized-harness",
            "service-account",
            "read",
            "sensitive",
            "messageId",
            "hs_12345678",
            "hs_1234567",
            "hs_1234567é",
            "loop_abc12345",
            "loop_ABC12345",
            "123456",
            "12345",
            "١٢٣٤٥٦",
            "discord:channel:123456",
            "discord:thread:1234567890123456789012345678901",
            "discord:dm:123456",
            "discord:channel:123456\n",
            "2026-02-18T19:31:00Z",
            "2026-02-18T19:31:00+25:00",
            "2026-02-30T00:00:00Z",
            "2026-02-18t19:31:00z",
            "2026-02-18T19:31:60Z",
            "sha256:abc",
            "2026-02-18T19:31:00.123456789+01:00",
        ])),
    }
}

/// Every object in a document, by pointer.
fn objects(value: &Json, at: &str, found: &mut Vec<String>) {
    match value {
        Json::Object(members) => {
            found.push(at.to_owned());
            members.iter().for_each(|(name, member)| objects(member, &format!("{at}/{name}"), found));
        }
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| objects(item, &format!("{at}/{n}"), found))
        }
        _ => {}
    }
}

fn mutate(spec: &mut Json, dice: &mut Dice) {
    let mut places = Vec::new();
    objects(spec, "", &mut places);
    let place: String = dice.pick(&places).clone();
    let block: &mut Map<String, Json> = spec.pointer_mut(&place).unwrap().as_object_mut().unwrap();
    let names: Vec<String> = block.keys().cloned().collect();
    let known = [
        "mode",
        "required",
        "planRef",
        "risk",
        "mentionDelegation",
        "binding",
        "loop_id",
        "review_reason",
        "delegation",
        "type",
        "x",
    ];
    match (dice.roll(8), names.is_empty()) {
        (0, false) => drop(block.shift_remove(dice.pick(&names))),
        (1, false) => {
            let value = block.shift_remove(dice.pick(&names)).unwrap();
            block.insert((*dice.pick(&known)).to_owned(), value);
        }
        (2, _) => drop(block.insert((*dice.pick(&known)).to_owned(), edges(dice))),
        (3, false) => {
            let donor = block[dice.pick(&names)].clone();
            block.insert(dice.pick(&names).clone(), donor);
        }
        (_, false) => drop(block.insert(dice.pick(&names).clone(), edges(dice))),
        (_, true) => drop(block.insert("x".to_owned(), edges(dice))),
    }
}

/// The typed reading and the schema are one contract: they never disagree on yes or no.
///
/// 20,000 mutated TaskSpecs; 200,000 with LONG=1 in the environment.
#[test]
fn the_typed_reading_and_the_schema_never_disagree() {
    let count = if std::env::var_os("LONG").is_some() { 200_000 } else { 20_000 };
    let bases = bases();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut accepted, mut refused) = (0, 0);
    for base in &bases {
        assert!(with_document(base, |document| TaskSpec::read(document).1), "{base}");
        assert!(with_document(base, |document| shape_findings(document).is_empty()), "{base}");
    }
    for _ in 0..count {
        let mut spec = dice.pick(&bases).clone();
        for _ in 0..=dice.roll(3) {
            mutate(&mut spec, &mut dice);
        }
        let (sound, findings) =
            with_document(&spec, |document| (TaskSpec::read(document).1, shape_findings(document)));
        assert_eq!(sound, findings.is_empty(), "{findings:#?}\n{spec}");
        *if sound { &mut accepted } else { &mut refused } += 1;
    }
    // Both sides must have been tried, or the test has shown nothing.
    assert!(accepted > count / 50 && refused > count / 2, "{accepted} accepted, {refused} refused");
}

#[test]
fn lengths_count_characters_not_bytes() {
    for (text, sound) in
        [("é".repeat(64), true), ("é".repeat(65), false), ("😀".repeat(2), true), ("😀".to_owned(), false)]
    {
        assert_eq!(AgentId::parse(&text).is_some(), sound, "{text}");
    }
}

/// The validator's own test of what it relies on in a representation of JSON.
#[test]
fn our_documents_are_json_to_the_schema_validator() {
    let text = jsonschema::json::conformance::document().to_string();
    let document = read(text.as_bytes(), limits::TASK_SPEC).unwrap();
    jsonschema::json::conformance::assert_conformance::<Tree>(&Instance::Document(document.root()));
}

#[test]
fn a_body_that_is_wrong_in_many_places_is_told_of_some() {
    let mut spec = bases().remove(0);
    for n in 0..5_000 {
        spec[format!("unknown{n}")] = json!(0);
    }
    let findings = with_document(&spec, |document| {
        embedded_schema(include_str!("../../docs/schemas/task-spec.schema.json"))
            .findings(Instance::Document(document.root()))
    });
    assert_eq!(findings.len(), crate::limits::SCHEMA_REASONS_MAX);
}
