//! Verdicts: what a broken proof, a wider TaskSpec or a strange document comes to, and how long a pass holds.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::contract::{content_digest, task_spec_digest};
use crate::json::read;
use crate::limits;
use crate::policy::Workspace;
use crate::proof::{Key, Purpose, Secret};
use crate::sealing::{Seal, Signer, seal};

const READ: &str = include_str!("../../docs/examples/taskspec-delegated-read.json");
const CANONICAL: &str = include_str!("../../docs/examples/taskspec-canonical.json");
const NOW: &str = "2026-02-18T19:38:00Z";
const KEY_ID: &str = "demo-user-main-1";

/// The key with which the shipped route signs.
fn dispatch_key() -> Key {
    let secret = Secret::new(b"shared with the receiver".to_vec());
    Key::hmac("crypto-sage-dispatch-1", "crypto-sage", Purpose::Dispatch, secret).unwrap()
}

struct Bench {
    policies: PolicySet,
    keyring: Keyring,
}

impl Bench {
    fn new() -> Self {
        let policies = Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap();
        let mut keyring = Keyring::default();
        let secret = Secret::from_file_bytes(include_bytes!("../../docs/examples/demo.key").to_vec());
        keyring.add(Key::hmac(KEY_ID, "user:main", Purpose::Envelope, secret).unwrap()).unwrap();
        keyring.add(dispatch_key()).unwrap();
        Self { policies, keyring }
    }

    fn ground(&self) -> Ground<'_> {
        let now = Timestamp::parse(NOW).unwrap();
        Ground { policies: &self.policies, keyring: &self.keyring, caller: Caller::Unchecked, now }
    }

    fn verdict(&self, body: &[u8]) -> Option<Verdict> {
        let document = read(body, limits::TASK_SPEC).ok()?;
        Some(judge(&document, &self.ground()).verdict)
    }

    fn signed(&self, mut spec: Json) -> Json {
        let signer = Signer::Shared(self.keyring.get(KEY_ID).unwrap());
        seal(&mut spec, &Seal { signer, ttl: None, bind: false }).unwrap();
        spec
    }
}

/// Every bit of the envelope, its proof included, counts.
#[test]
fn flipping_any_one_bit_of_a_signed_envelope_is_refused() {
    let bench = Bench::new();
    let spec: Json = serde_json::from_str(READ).unwrap();
    let body = spec.to_string().into_bytes();
    assert_eq!(bench.verdict(&body).unwrap().decision(), Decision::Allowed);
    let envelope = spec["authorship"]["envelope"].to_string();
    let start = std::str::from_utf8(&body).unwrap().find(&envelope).unwrap();
    for at in start..start + envelope.len() {
        for bit in 0..8 {
            let mut flipped = body.clone();
            flipped[at] ^= 1 << bit;
            let decision = bench.verdict(&flipped).map(|verdict| verdict.decision());
            assert!(matches!(decision, None | Some(Decision::Denied)), "byte {at}, bit {bit}: {decision:?}");
        }
    }
}

/// Whether the principal vouches for it is one question, whether it may pass is another.
#[test]
fn a_proof_that_verified_is_known_whatever_else_is_wrong() {
    let bench = Bench::new();
    let check = |change: &dyn Fn(&mut Json), proven: bool| {
        let mut spec: Json = serde_json::from_str(READ).unwrap();
        change(&mut spec);
        let verdict = bench.verdict(spec.to_string().as_bytes()).unwrap();
        assert_eq!(verdict.is_proven(), proven, "{:?}", verdict.reasons());
    };
    let hash = "/authorship/envelope/proof/hash";
    check(&|_| {}, true);
    check(&|spec| spec["authorship"]["mentionDelegation"]["spare"] = json!(true), true);
    check(&|spec| spec["intent"]["operation"] = json!("not.allowed"), true);
    check(&|spec| spec["routing"]["routeKey"] = json!("no.such.route.v1"), true);
    check(&|spec| spec["authorship"]["envelope"]["principal"]["id"] = json!("user:eve"), false);
    check(&|spec| spec["authorship"]["envelope"]["ttl"]["issuedAt"] = json!("2026-02-18T19:36:31Z"), false);
    check(&|spec| *spec.pointer_mut(hash).unwrap() = json!(format!("sha256:{}", "0".repeat(64))), false);
    check(&|spec| *spec.pointer_mut(hash).unwrap() = json!(7), false);
    check(&|spec| spec["authorship"]["envelope"] = json!(7), false);
    let direct: Json = serde_json::from_str(CANONICAL).unwrap();
    assert!(!bench.verdict(direct.to_string().as_bytes()).unwrap().is_proven());
}

/// What stands in a block that is none was not seen, so nothing is concluded from its absence.
#[test]
fn a_safety_block_that_is_none_says_nothing_about_side_effects() {
    let mut spec: Json = serde_json::from_str(CANONICAL).unwrap();
    spec["safety"] = json!("none");
    spec["intent"]["input"] = json!({});
    let verdict = Bench::new().verdict(spec.to_string().as_bytes()).unwrap();
    let codes: Vec<Code> = verdict.reasons().iter().map(|reason| reason.code).collect();
    assert_eq!(codes, [Code::TaskspecInvalid]);
}

/// The same JSON written differently: members in another order, spaces, escapes, numbers with a point.
fn rewrite(value: &Json, out: &mut String, dice: &mut impl FnMut(usize) -> usize) {
    let space =
        |out: &mut String, dice: &mut dyn FnMut(usize) -> usize| out.push_str(["", " ", "\n\t", ""][dice(4)]);
    match value {
        Json::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            for at in (1..names.len()).rev() {
                names.swap(at, dice(at + 1));
            }
            out.push('{');
            for (n, name) in names.into_iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                space(out, dice);
                rewrite(&Json::String(name.clone()), out, dice);
                space(out, dice);
                out.push(':');
                space(out, dice);
                rewrite(&members[name], out, dice);
                space(out, dice);
            }
            out.push('}');
        }
        Json::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                space(out, dice);
                rewrite(item, out, dice);
            }
            out.push(']');
        }
        Json::String(text) => {
            out.push('"');
            for c in text.chars() {
                if dice(4) == 0 || matches!(c, '"' | '\\') || c < ' ' {
                    c.encode_utf16(&mut [0; 2])
                        .iter()
                        .for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
                } else {
                    out.push(c);
                }
            }
            out.push('"');
        }
        Json::Number(number) if dice(2) == 0 && number.is_i64() => out.push_str(&format!("{number}.0")),
        other => out.push_str(&other.to_string()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_reordering_or_re_encoding_changes_the_verdict_or_the_digest(mut seed in 1_u64.., refused in any::<bool>(), canonical in any::<bool>()) {
        let bench = Bench::new();
        let mut spec: Json = serde_json::from_str(if canonical { CANONICAL } else { READ }).unwrap();
        if refused {
            spec["safety"]["e2eActor"] = json!("agent \u{e9}\u{1f600}");
        }
        let plain = spec.to_string();
        let mut dice = |sides: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % sides as u64) as usize
        };
        let mut text = String::new();
        rewrite(&spec, &mut text, &mut dice);
        prop_assert_eq!(bench.verdict(text.as_bytes()), bench.verdict(plain.as_bytes()));
        let (one, other) = (read(plain.as_bytes(), limits::TASK_SPEC).unwrap(), read(text.as_bytes(), limits::TASK_SPEC).unwrap());
        prop_assert_eq!(task_spec_digest(&one), task_spec_digest(&other));
        prop_assert_eq!(content_digest(&one), content_digest(&other));
    }

    /// Whatever a sender and a principal agree to write, the policy file has the last word.
    #[test]
    fn widening_a_task_spec_beyond_the_policy_file_never_allows_it(
        agents in prop::collection::vec(prop_oneof![Just("stranger".to_owned()), Just("*".to_owned()), "[a-z-]{2,20}"], 0..4),
        channels in prop::collection::vec(prop_oneof![Just("discord:channel:*".to_owned()), "discord:channel:[0-9]{6,12}"], 0..4),
        tasks in prop::collection::vec(prop_oneof![Just("withdraw.all".to_owned()), Just("transfe".to_owned()), Just("*".to_owned()), "[a-z]{3,9}\\.[a-z]{3,9}"], 0..4),
        ttl_beyond in 0_i64..4,
        move_target in any::<bool>(),
        in_scope in any::<bool>(),
    ) {
        let bench = Bench::new();
        let file = bench.policies.policy("policies/delegation/user-main-v1.json").unwrap();
        let mut spec: Json = serde_json::from_str(READ).unwrap();
        let mut beyond = ttl_beyond > 0 || (move_target && !agents.is_empty());
        for (names, list, scope, covered) in [
            (&agents, "allowAgents", "agents", &file.allow_agents),
            (&channels, "allowChannels", "channels", &file.allow_channels),
            (&tasks, "allowTasks", "tasks", &file.allow_tasks),
        ] {
            for name in names {
                beyond |= !covered.cover(name);
                spec["authorship"]["delegationPolicy"][list].as_array_mut().unwrap().push(json!(name));
                if in_scope {
                    spec["authorship"]["envelope"]["scope"][scope].as_array_mut().unwrap().push(json!(name));
                }
            }
        }
        if let (true, Some(agent)) = (move_target, agents.first()) {
            spec["target"]["agentId"] = json!(agent);
            spec["authorship"]["mentionDelegation"]["targetBotId"] = json!(agent);
        }
        let issued_at = Timestamp::parse("2026-02-18T19:36:30Z").unwrap();
        if ttl_beyond > 0 {
            spec["authorship"]["envelope"]["ttl"]["expiresAt"] = json!(issued_at.plus_seconds(3600 + ttl_beyond));
        }
        let verdict = bench.verdict(bench.signed(spec).to_string().as_bytes()).unwrap();
        prop_assert_eq!(verdict.decision() == Decision::Allowed, !beyond, "{:?}", verdict.reasons());
    }

    #[test]
    fn no_document_makes_a_gate_panic(at in any::<prop::sample::Index>(), value in prop_oneof![
        Just(json!(null)), Just(json!([])), Just(json!({})), Just(json!(0)), Just(json!("")), any::<String>().prop_map(Json::from),
    ]) {
        let bench = Bench::new();
        let mut spec: Json = serde_json::from_str(READ).unwrap();
        let mut places = vec![String::new()];
        pointers(&spec, "", &mut places);
        *spec.pointer_mut(&places[at.index(places.len())]).unwrap() = value;
        let verdict = bench.verdict(spec.to_string().as_bytes()).unwrap();
        prop_assert!(verdict.reasons().iter().all(|reason| !reason.message.is_empty()));
    }
}

fn pointers(value: &Json, at: &str, found: &mut Vec<String>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let place = format!("{at}/{name}");
        pointers(member, &place, found);
        found.push(place);
    }
}

/// What the schema states as the standard's rules and what the gates say are the same thing.
#[test]
fn a_broken_rule_of_the_schema_has_the_code_that_the_schema_names() {
    let bench = Bench::new();
    let schema: Json = serde_json::from_str(crate::contract::TASK_SPEC_SCHEMA).unwrap();
    let full = crate::contract::Compiled::new(schema.clone()).unwrap();
    let rules = schema["$defs"]["rules"].as_object().unwrap();
    assert_eq!(rules.len(), 7);
    for rule in rules.keys() {
        let mut spec: Json =
            serde_json::from_str(include_str!("../../docs/examples/taskspec-delegated-human-proxy.json"))
                .unwrap();
        match rule.as_str() {
            "e2eActor" => spec["safety"]["e2eActor"] = json!("agent"),
            "liveNeedsApproval" => spec["safety"]["requiresHumanApproval"] = json!(false),
            "rollbackPlan" => spec["rollback"]["required"] = json!(false),
            "sideEffects" => spec["mode"] = json!("simulated"),
            "confirmation" => spec["authorship"]["risk"]["requiresConfirmation"] = json!(false),
            "authorization" => {
                spec["authorship"]["risk"].as_object_mut().unwrap().remove("authorizationRef");
                spec["audit"]["delegation"]["authorizationRef"] = json!(null);
            }
            _ => {
                spec = serde_json::from_str(CANONICAL).unwrap();
                spec["authorship"] = json!({"mentionDelegationMode": "gated"});
            }
        }
        let body = spec.to_string();
        let document = read(body.as_bytes(), limits::TASK_SPEC).unwrap();
        assert!(
            !full.is_valid(crate::contract::Instance::Document(document.root())),
            "the schema states {rule}"
        );
        let verdict = bench.verdict(spec.to_string().as_bytes()).unwrap();
        let codes: Vec<&str> = verdict.reasons().iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!(codes, [rules[rule]["$comment"].as_str().unwrap()], "{rule}");
        // Such a TaskSpec is not valid, so it is no evidence for G0; what other gates say is nothing against one.
        assert!(crate::promotion::breaks_contract(codes[0]), "{rule}");
    }
    let of_schema = |code: &&Code| {
        let family = ["A2A_", "EXECUTION_SCHEMA_"].iter().any(|family| code.as_str().starts_with(family));
        family || rules.values().any(|rule| rule["$comment"] == code.as_str())
    };
    let by_promotion = |code: &&Code| crate::promotion::breaks_contract(code.as_str());
    let expected: Vec<Code> = Code::ALL.iter().filter(of_schema).copied().collect();
    let found: Vec<Code> = Code::ALL.iter().filter(by_promotion).copied().collect();
    assert_eq!(found, expected);
}

#[test]
fn only_a_handoff_without_reasons_claims_anything() {
    let bench = Bench::new();
    let claims = |spec: &Json| {
        let text = spec.to_string();
        let document = read(text.as_bytes(), limits::TASK_SPEC).unwrap();
        let judgement = judge(&document, &bench.ground());
        Claims::of(&judgement.spec, &judgement.verdict)
    };
    let mut spec: Json =
        serde_json::from_str(include_str!("../../docs/examples/taskspec-delegated-human-proxy.json"))
            .unwrap();
    let claimed = claims(&spec).unwrap();
    assert_eq!(claimed.message_id.as_deref(), Some("1473395000000000001"));
    assert_eq!(claimed.mode.as_str(), "live");
    assert!(!claimed.needs_approval);
    let grant = claimed.grant.unwrap();
    assert_eq!(
        (grant.authorization_ref.as_str(), grant.operation.as_str()),
        ("authz_20260218_user-main_009", "transfer")
    );
    assert_eq!(
        (grant.principal_id.as_deref(), grant.channel.as_deref()),
        (Some("user:main"), Some("discord:channel:1473392629055098942"))
    );
    spec["safety"]["e2eActor"] = json!("agent");
    assert_eq!(claims(&spec), None);

    let mut live: Json = serde_json::from_str(CANONICAL).unwrap();
    live["mode"] = json!("live");
    let claimed = claims(&live).unwrap();
    assert!(claimed.needs_approval && claimed.grant.is_none() && claimed.message_id.is_none());
}

#[test]
fn a_pass_says_until_when_it_holds() {
    let bench = Bench::new();
    let until = |spec: &str| bench.verdict(spec.as_bytes()).unwrap().holds_until().map(|at| at.to_string());
    assert_eq!(until(CANONICAL), None);
    // The mention ends at 19:41:58, before the envelope does.
    assert_eq!(until(READ).as_deref(), Some("2026-02-18T19:41:58Z"));
    let mut ring = Keyring::default();
    let secret = Secret::from_file_bytes(include_bytes!("../../docs/examples/demo.key").to_vec());
    let key = Key::hmac(KEY_ID, "user:main", Purpose::Envelope, secret).unwrap();
    ring.add(key.valid_between(None, Timestamp::parse("2026-02-18T19:38:01Z"))).unwrap();
    let bench = Bench { keyring: ring, ..bench };
    let verdict = bench.verdict(READ.as_bytes()).unwrap();
    assert_eq!(verdict.decision(), Decision::Allowed);
    assert_eq!(verdict.holds_until().map(|at| at.to_string()).as_deref(), Some("2026-02-18T19:38:01Z"));
}

#[test]
fn an_admin_may_name_any_source_but_not_for_live_work() {
    let bench = Bench::new();
    let codes = |mode: &str, caller| {
        let mut spec: Json = serde_json::from_str(CANONICAL).unwrap();
        spec["mode"] = json!(mode);
        let text = spec.to_string();
        let document = read(text.as_bytes(), limits::TASK_SPEC).unwrap();
        let verdict = judge(&document, &Ground { caller, ..bench.ground() }).verdict;
        verdict.reasons().iter().map(|reason| reason.code).collect::<Vec<_>>()
    };
    assert_eq!(codes("simulated", Caller::AnySourceButLive), []);
    assert_eq!(codes("live", Caller::AnySourceButLive), [Code::SourceMismatch]);
    assert_eq!(codes("live", Caller::Agent("decision-router")), []);
}

#[test]
fn live_work_whose_receiver_demands_a_signature_needs_a_key_that_can_make_it() {
    let mut live: Json = serde_json::from_str(CANONICAL).unwrap();
    live["mode"] = json!("live");
    let check = |keys: Vec<Key>, expected: Option<&str>, until: Option<&str>| {
        let mut keyring = Keyring::default();
        keys.into_iter().for_each(|key| keyring.add(key).unwrap());
        let bench = Bench { keyring, ..Bench::new() };
        let verdict = bench.verdict(live.to_string().as_bytes()).unwrap();
        let found: Vec<_> = verdict
            .reasons()
            .iter()
            .map(|reason| (reason.code, reason.path.as_str(), reason.message.as_str()))
            .collect();
        let wanted: Vec<_> =
            expected.iter().map(|message| (Code::KeyUnknown, "/routing/routeKey", *message)).collect();
        assert_eq!(found, wanted);
        assert!(verdict.reasons().iter().all(|reason| !reason.hint.is_empty()));
        assert_eq!(verdict.holds_until().map(|at| at.to_string()).as_deref(), until);
    };
    let id = "crypto-sage-dispatch-1";
    let at = |text| Timestamp::parse(text);
    check(vec![dispatch_key()], None, None);
    let later = "2026-02-18T19:38:01Z";
    check(vec![dispatch_key().valid_between(None, at(later))], None, Some(later));
    check(vec![], Some("the route's signing key `crypto-sage-dispatch-1` is not known"), None);
    let envelope = Key::hmac(id, "crypto-sage", Purpose::Envelope, Secret::new(b"x".to_vec())).unwrap();
    check(vec![envelope], Some("the route's signing key `crypto-sage-dispatch-1` is not for dispatch"), None);
    let public = crate::proof::Seed::from_bytes(&[7; 32]).public_hex();
    let pair = Key::ed25519(id, "crypto-sage", Purpose::Dispatch, &public).unwrap();
    check(
        vec![pair],
        Some("the route's signing key `crypto-sage-dispatch-1` is not an hmac-sha256 key"),
        None,
    );
    check(
        vec![dispatch_key().valid_between(at(later), None)],
        Some("the route's signing key `crypto-sage-dispatch-1` does not count yet"),
        None,
    );
    check(
        vec![dispatch_key().valid_between(None, at(NOW))],
        Some("the route's signing key `crypto-sage-dispatch-1` no longer counts"),
        None,
    );
}

/// The end of a key that nobody demands ends no pass.
#[test]
fn simulated_work_holds_beyond_the_key_of_its_route() {
    let mut keyring = Keyring::default();
    keyring.add(dispatch_key().valid_between(None, Timestamp::parse("2026-02-18T19:38:01Z"))).unwrap();
    let bench = Bench { keyring, ..Bench::new() };
    let verdict = bench.verdict(CANONICAL.as_bytes()).unwrap();
    assert_eq!((verdict.decision(), verdict.holds_until()), (Decision::Allowed, None));
}

/// A sender must not be able to choose the schema that it is judged by where the route says which.
#[test]
fn a_route_takes_input_only_of_the_schemas_that_it_names() {
    const ROUTE: &str = "crypto-sage.execution-plane.v1";
    const OWN: &str = "agents/blockchain-operator/config/execution-plane.schema.v1.json";
    let mut bench = Bench::new();
    let codes = |bench: &Bench| -> Vec<Code> {
        let verdict = bench.verdict(CANONICAL.as_bytes()).unwrap();
        verdict.reasons().iter().map(|reason| reason.code).collect()
    };
    for (named, expected) in [
        (&[OWN][..], &[][..]),
        (&["docs/other.v1.json", OWN], &[]),
        (&["docs/other.v1.json"], &[Code::SchemaRefForbidden]),
    ] {
        let mut route = bench.policies.route(ROUTE).unwrap().clone();
        route.input_schema_refs = named.iter().map(|one| (*one).to_owned()).collect();
        bench.policies = bench.policies.with_routes([(ROUTE.to_owned(), route)].into_iter());
        assert_eq!(codes(&bench), expected, "{named:?}");
    }
}
