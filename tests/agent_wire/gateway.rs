//! What the gateway writes is Agent Wire: a real ledger, held to schemas, contracts, views and state.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use handoffd::engine::{Asker, Candidate, EngineFault, EngineHandle, InForce, Ruling, Setup, TokenFacts};
use handoffd::ledger::{Entries, Entry, Log as _, RealDisk, SegmentLog, Source};
use handoffd::os::world::RealWorld;
use handoffd::policy::{PolicySet, Workspace};
use handoffd::proof::{Key, Keyring, Purpose};
use handoffd::state::{Publisher, StateFollower, StateView};
use handoffd::timestamp::Timestamp;
use handoffd::views::{Reader, Views};
use serde_json::{Value as Json, json};

use super::reduced::Reduced;

const TOPIC: &str = "gw_wire";
const CANONICAL: &str = include_str!("../../docs/examples/taskspec-canonical.json");
const EXAMPLES: [&str; 3] = [
    include_str!("../../docs/examples/taskspec-minimal.json"),
    include_str!("../../docs/examples/taskspec-delegated-read.json"),
    include_str!("../../docs/examples/taskspec-delegated-human-proxy.json"),
];

fn token(n: u8) -> TokenFacts {
    TokenFacts {
        agent_id: (n == 1).then(|| "crypto-sage".to_owned()),
        name: format!("token-{n}"),
        principal: (n == 2).then(|| "user:rita".to_owned()),
        role: if n == 1 { "agent" } else { "operator" }.to_owned(),
        token_id: format!("tok_{n}"),
    }
}

/// The TaskSpec with each of its values taken away or made another one, so that refusals of all sorts are written.
fn bent(spec: &Json, pointer: String, found: &mut Vec<String>) {
    if let Json::Object(members) = spec {
        members.iter().for_each(|(name, value)| bent(value, format!("{pointer}/{name}"), found));
    }
    if !pointer.is_empty() {
        found.push(pointer);
    }
}

/// Everything that an engine writes today, in one ledger.
fn ledger(directory: &std::path::Path, state_file: &std::path::Path) -> Vec<Entry> {
    let (log, _) = SegmentLog::open(Arc::new(RealDisk), directory, TOPIC, &[]).unwrap();
    let follower =
        StateFollower::start(StateView::empty(TOPIC), Publisher::new(state_file), Source::files(directory))
            .unwrap();
    let setup =
        Setup::new(Box::new(log), None, Box::new(RealWorld::default())).followed_by(Box::new(follower));
    let engine = EngineHandle::start(setup, std::iter::empty::<Result<Entry, EngineFault>>()).unwrap();

    let workspace = Workspace::new(env!("CARGO_MANIFEST_DIR"));
    let policies = Arc::new(workspace.load_policies().unwrap());
    let mut keyring = Keyring::default();
    let secret = handoffd::proof::Secret::new(b"0123456789abcdef0123456789abcdef".to_vec());
    let until = Timestamp::parse("2099-01-01T00:00:00Z");
    let key = Key::hmac("demo-user-main-1", "user:main", Purpose::Envelope, secret).unwrap();
    keyring.add(key.valid_between(None, until)).unwrap();
    let keyring = Arc::new(keyring);
    let put = |policies: &Arc<PolicySet>, keyring: &Arc<Keyring>, tokens: Vec<TokenFacts>| {
        let (policies, keyring) = (policies.clone(), keyring.clone());
        engine.put_in_force_and_wait(Arc::new(InForce::of_files(policies, keyring, tokens))).unwrap();
    };
    put(&policies, &keyring, vec![token(1), token(2)]);

    let now = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
    let submit = |spec: &Json, caller: &str| {
        let ruling = Ruling {
            policies: policies.clone(),
            keyring: keyring.clone(),
            asker: Asker::Agent(caller.to_owned().into()),
        };
        let candidate = Candidate::judge(spec.to_string().into(), ruling, now).unwrap();
        let trace = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        engine.submit_and_wait(candidate.traced(trace)).unwrap();
    };
    let canonical: Json = serde_json::from_str(CANONICAL).unwrap();
    submit(&canonical, "decision-router");
    for example in EXAMPLES {
        submit(&serde_json::from_str(example).unwrap(), "decision-router");
    }
    let delegated: Json = serde_json::from_str(EXAMPLES[2]).unwrap();
    for (family, spec) in [canonical, delegated].iter().enumerate() {
        let mut pointers = Vec::new();
        bent(spec, String::new(), &mut pointers);
        for (n, pointer) in pointers.iter().enumerate() {
            for (m, value) in
                [Json::Null, json!("live"), json!("é\n\"x\"".repeat(90))].into_iter().enumerate()
            {
                let mut spec = spec.clone();
                spec["handoffId"] = json!(format!("hs_bent_{family}_{n:04}_{m}"));
                spec["audit"]["idempotencyKey"] = json!(format!("key_bent_{family}_{n:04}_{m}"));
                *spec.pointer_mut(pointer).unwrap() = value;
                submit(&spec, "decision-router");
            }
        }
    }
    // Somebody edits the state file; then tokens, keys and routes go.
    #[expect(clippy::disallowed_methods, reason = "another hand")]
    fs::write(state_file, "{}").unwrap();
    let mut last: Json = serde_json::from_str(CANONICAL).unwrap();
    for n in 0..2 {
        last["handoffId"] = json!(format!("hs_last_{n:04}"));
        last["audit"]["idempotencyKey"] = json!(format!("key_last_{n:04}"));
        submit(&last, "decision-router");
    }
    let empty = tempfile::tempdir().unwrap();
    fs::create_dir(empty.path().join("policies")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test lays out files")]
    fs::write(empty.path().join("policies/routes.json"), "{\"routes\": {}}").unwrap();
    let none = Arc::new(Workspace::new(empty.path()).load_policies().unwrap());
    put(&none, &Arc::default(), vec![token(2)]);
    engine.stop();

    let (log, _) = SegmentLog::open(Arc::new(RealDisk), directory, TOPIC, &[]).unwrap();
    Entries::read(directory, 1, log.head().sequence).unwrap().map(Result::unwrap).collect()
}

#[test]
fn every_event_that_the_engine_writes_is_valid_and_reduces_to_what_views_and_state_say() {
    let directory = tempfile::tempdir().unwrap();
    let state_file = directory.path().join("orchestration-state.json");
    let entries = ledger(&directory.path().join("ledger"), &state_file);

    let mut reduced = Reduced::new();
    entries.iter().for_each(|entry| reduced.take(entry));
    let kinds: BTreeSet<&str> = reduced.kinds.iter().map(|kind| kind.as_str()).collect();
    let written = [
        "gate.decided",
        "key.added",
        "key.removed",
        "policy.loaded",
        "route.declared",
        "route.removed",
        "state.replaced",
        "task.available",
        "task.created",
        "task.rejected",
        "token.created",
        "token.revoked",
    ];
    assert!(written.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    assert!(entries.len() > 500, "{}", entries.len());

    // The views say the same of every attempt.
    let path = directory.path().join("views.db");
    drop(Views::rebuild(&path, TOPIC, entries.iter().cloned()).unwrap());
    let reader = Reader::open(&path).unwrap();
    reduced.agrees_with_views(&reader);
    // And the state file of every handoff that is not refused.
    let published: Json = serde_json::from_slice(&fs::read(&state_file).unwrap()).unwrap();
    reduced.agrees_with_state(&published);
    let active = published["activeHandoffs"].as_object().unwrap().len();
    assert!(active > 2 && active < reduced.attempts().count());
    // The gateway's own streams, too: what is in force at the end.
    let (_, _, project) = reduced.reducer.projects().next().unwrap();
    assert_eq!(project.tokens, BTreeSet::from(["tok_2".to_owned()]));
    assert!(project.keys.is_empty() && project.policy_digest.is_some());
    assert!(reduced.reducer.routes().all(|(_, _, route)| !route.declared));
}
