//! The engine on a disk of its own, with a clock that the test moves: groups, claims, order, restarts.

mod ahead;
mod alone;
mod beside;
mod ending;
mod epochs;
pub(super) mod failing;
mod people;
mod proposing;
mod remembering;
mod reporting;
mod sharing;
mod speaking;

use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

use super::*;
use crate::gates::{Code, Decision, Gate, Outcome};
use crate::ledger::{AppendFault, Batch, Entries, Head, RealDisk, SegmentLog};
use crate::policy::{PolicySet, Workspace};
use crate::proof::Keyring;

const CANONICAL: &str = include_str!("../../docs/examples/taskspec-canonical.json");
const READ: &str = include_str!("../../docs/examples/taskspec-delegated-read.json");

/// A clock that the test moves, and ids that count up.
#[derive(Clone)]
pub(super) struct TestWorld(Arc<AtomicU64>, Arc<AtomicU64>);

impl TestWorld {
    pub(super) fn new() -> Self {
        Self(Arc::default(), Arc::default())
    }

    fn at(&self, seconds: u64) {
        self.0.store(seconds, Ordering::Relaxed);
    }
}

impl World for TestWorld {
    fn now(&self) -> Timestamp {
        let start = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
        start.plus_seconds(i64::try_from(self.0.load(Ordering::Relaxed)).unwrap())
    }

    fn random(&mut self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&self.1.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        bytes
    }
}

fn policies() -> Arc<PolicySet> {
    static SET: Mutex<Option<Arc<PolicySet>>> = Mutex::new(None);
    let mut set = SET.lock().unwrap();
    set.get_or_insert_with(|| Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap()))
        .clone()
}

fn ruling(caller: &str) -> Ruling {
    Ruling { policies: policies(), keyring: Arc::new(Keyring::default()), asker: Asker::Agent(caller.into()) }
}

fn in_force(policies: Arc<PolicySet>, keyring: Keyring) -> Arc<InForce> {
    Arc::new(InForce::of_files(policies, Arc::new(keyring), Vec::new()))
}

pub(super) fn candidate(spec: &Json, caller: &str, world: &TestWorld) -> Candidate {
    Candidate::judge(spec.to_string().into(), ruling(caller), world.now()).unwrap()
}

/// The canonical handoff under another id and key.
pub(super) fn handoff(id: &str, key: &str) -> Json {
    let mut spec: Json = serde_json::from_str(CANONICAL).unwrap();
    spec["handoffId"] = json!(id);
    spec["audit"]["idempotencyKey"] = json!(key);
    spec
}

fn start_with(
    log: Box<dyn Log>,
    last: Option<Timestamp>,
    directory: &Path,
    world: &TestWorld,
) -> EngineHandle {
    let head = log.head().sequence;
    let history = Entries::read(directory, 1, head).unwrap();
    let history = history.map(|entry| entry.map_err(|fault| EngineFault::BadLedger(fault.to_string())));
    EngineHandle::start(Setup::new(log, last, Box::new(world.clone())), history).unwrap()
}

pub(super) fn open(directory: &Path) -> SegmentLog {
    SegmentLog::open(Arc::new(RealDisk), directory, "gw_test", &[]).unwrap().0
}

fn start(directory: &Path, world: &TestWorld) -> EngineHandle {
    let log = open(directory);
    let last = log.last_timestamp();
    start_with(Box::new(log), last, directory, world)
}

/// Waits for what the sequencer does by itself; a test that waits in vain fails.
pub(super) fn eventually(mut is: impl FnMut() -> bool) {
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is() {
        assert!(std::time::Instant::now() < patience, "in vain");
        std::thread::yield_now();
    }
}

fn codes(decided: &Decided) -> Vec<Code> {
    decided.reasons.iter().map(|reason| reason.code).collect()
}

#[test]
fn a_decision_is_a_group_of_events_that_a_restart_reads_back() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let spec = handoff("hs_00000001", "key-00000001");
    let first = engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap();
    assert_eq!((first.decision, first.attempt, first.replayed), (Decision::Allowed, 1, false));
    assert_eq!(first.ledger.sequence, 2);
    let again = engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap();
    assert_eq!(*again, Decided { replayed: true, ..(*first).clone() });
    engine.stop();

    let entries: Vec<Json> = Entries::read(directory.path(), 1, 3)
        .unwrap()
        .map(|entry| serde_json::from_str(&entry.unwrap().wire).unwrap())
        .collect();
    let kinds: Vec<&str> = entries.iter().map(|wire| wire["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["task.created", "gate.decided", "task.available"]);
    for (n, wire) in entries.iter().enumerate() {
        assert_eq!(wire["stream"]["stream_id"], "task:hs_00000001:attempt:1");
        assert_eq!(wire["stream"]["stream_seq"], n + 1);
        assert_eq!(wire["stream"]["context_id"], spec["correlationId"]);
        if n > 0 {
            assert_eq!(wire["stream"]["causation_id"], entries[n - 1]["wire_id"]);
        }
    }
    assert_eq!(open(directory.path()).head().sequence, 3, "the replay appended nothing");

    let engine = start(directory.path(), &world);
    let after = engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap();
    assert_eq!(*after, Decided { replayed: true, ..(*first).clone() });
    engine.stop();
    assert_eq!(
        engine.submit_and_wait(candidate(&spec, "decision-router", &world)),
        Err(EngineFault::Stopped)
    );
}

#[test]
fn ids_and_keys_stand_for_one_handoff() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let mut engine = start(directory.path(), &world);
    let base = handoff("hs_00000001", "key-00000001");
    let mut restart = false;
    let mut check = |change: &dyn Fn(&mut Json), caller: &str, expected: &[Code], attempt: u32| {
        let mut spec = base.clone();
        change(&mut spec);
        let decided = engine.submit_and_wait(candidate(&spec, caller, &world)).unwrap();
        assert_eq!((codes(&decided).as_slice(), decided.attempt), (expected, attempt), "{spec}");
        // Half of the cases are decided by an engine that has to remember.
        restart = !restart;
        if restart {
            engine.stop();
            engine = start(directory.path(), &world);
        }
    };
    let agent = "decision-router";
    check(&|_| {}, agent, &[], 1);
    // Other content under the same key, the same id under another key.
    check(
        &|spec| spec["intent"]["summary"] = json!("x"),
        agent,
        &[Code::IdempotencyConflict, Code::HandoffReused],
        2,
    );
    check(&|spec| spec["audit"]["idempotencyKey"] = json!("key-00000002"), agent, &[Code::HandoffReused], 3);
    check(&|spec| spec["handoffId"] = json!("hs_00000002"), agent, &[Code::IdempotencyConflict], 1);
    // Idempotency is per source agent.
    let other = |spec: &mut Json| {
        spec["handoffId"] = json!("hs_00000003");
        spec["source"]["agentId"] = json!("other-router");
    };
    check(&other, "other-router", &[], 1);
    // A refused handoff claims nothing: corrected, the same id is the next attempt.
    let wrong = |spec: &mut Json| {
        spec["handoffId"] = json!("hs_00000004");
        spec["audit"]["idempotencyKey"] = json!("key-00000004");
        spec["safety"]["e2eActor"] = json!("agent");
    };
    check(&wrong, agent, &[Code::SelfTest], 1);
    check(&wrong, agent, &[Code::SelfTest], 2);
    let elsewhere = |spec: &mut Json| {
        wrong(spec);
        spec["safety"]["e2eActor"] = json!("human");
        spec["correlationId"] = json!("corr_another_cycle");
    };
    check(&elsewhere, agent, &[Code::HandoffReused], 3);
    let corrected = |spec: &mut Json| {
        wrong(spec);
        spec["safety"]["e2eActor"] = json!("human");
    };
    check(&corrected, agent, &[], 4);
    // One whose cycle could not be read is the same one after a restart.
    let unread = |spec: &mut Json| {
        spec["handoffId"] = json!("hs_00000006");
        spec["correlationId"] = json!(5);
    };
    for attempt in 1..=3 {
        check(&unread, agent, &[Code::TaskspecInvalid, Code::IdempotencyConflict], attempt);
    }
    // A stranger cannot use up somebody's id, whatever it says.
    let squat = |spec: &mut Json| spec["handoffId"] = json!("hs_00000005");
    check(&squat, "stranger", &[Code::SourceMismatch], 1);
    let own = |spec: &mut Json| {
        spec["handoffId"] = json!("hs_00000005");
        spec["audit"]["idempotencyKey"] = json!("key-00000005");
        spec["correlationId"] = json!("corr_another_cycle");
    };
    check(&own, agent, &[], 1);
}

#[test]
fn stage_mention_phase_and_grants_are_decided_in_order() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let mut live = handoff("hs_00000001", "key-00000001");
    live["mode"] = json!("live");
    // In live the route must be able to sign.
    let mut ring = Keyring::default();
    let secret = crate::proof::Secret::new(b"shared with the receiver".to_vec());
    let purpose = crate::proof::Purpose::Dispatch;
    ring.add(crate::proof::Key::hmac("crypto-sage-dispatch-1", "crypto-sage", purpose, secret).unwrap())
        .unwrap();
    let signs = Ruling { keyring: Arc::new(ring), ..ruling("decision-router") };
    let live = Candidate::judge(live.to_string().into(), signs, world.now()).unwrap();
    let decided = engine.submit_and_wait(live).unwrap();
    assert_eq!(
        (codes(&decided).as_slice(), decided.decision),
        ([Code::StageNotReached].as_slice(), Decision::Denied)
    );

    let mention: Json = serde_json::from_str(READ).unwrap();
    let decided = engine.submit_and_wait(candidate(&mention, "decision-router", &world)).unwrap();
    assert!(codes(&decided).contains(&Code::MentionPhase), "{:?}", codes(&decided));
    engine.stop();
}

#[test]
fn a_chain_of_handoffs_is_followed_and_ended() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let hop = |n: usize, parent: Option<usize>| {
        let mut spec = handoff(&format!("hs_hop_{n:05}"), &format!("key-hop-{n:05}"));
        // The work goes to and fro between two agents that the route reaches.
        let agents = ["crypto-sage", "crypto-sage-dr"];
        spec["source"]["agentId"] = json!(agents[n % 2]);
        spec["target"]["agentId"] = json!(agents[(n + 1) % 2]);
        if let Some(parent) = parent {
            spec["parentHandoffId"] = json!(format!("hs_hop_{parent:05}"));
        }
        spec
    };
    let submit = |spec: &Json| {
        let caller = spec["source"]["agentId"].as_str().unwrap();
        codes(&engine.submit_and_wait(candidate(spec, caller, &world)).unwrap())
    };
    assert_eq!(submit(&hop(0, None)), []);
    for n in 1..=8 {
        assert_eq!(submit(&hop(n, Some(n - 1))), [], "hop {n}");
    }
    assert_eq!(submit(&hop(9, Some(8))), [Code::LoopDetected]);
    // A parent must exist, be accepted, lead here, and belong to the same cycle.
    assert_eq!(submit(&hop(21, Some(99))), [Code::ParentInvalid]);
    assert_eq!(submit(&hop(22, Some(9))), [Code::ParentInvalid], "it was refused");
    assert_eq!(submit(&hop(24, Some(2))), [Code::ParentInvalid], "its target is not this source");
    let mut elsewhere = hop(25, Some(2));
    elsewhere["correlationId"] = json!("corr_another_cycle");
    assert_eq!(submit(&elsewhere), [Code::ParentInvalid]);
    engine.stop();
}

/// Many threads, every key several times at once: one winner each, and the same after a restart.
#[test]
fn whatever_comes_at_once_is_decided_once() {
    let keys = if std::env::var_os("LONG").is_some() { 10_000 } else { 600 };
    let (threads, copies) = (64, 3);
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let decided: Mutex<Vec<(usize, Arc<Decided>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (engine, decided, world) = (engine.clone(), &decided, &world);
            scope.spawn(move || {
                let mut own = Vec::new();
                for n in 0..keys * copies {
                    // Every key is worked on by several threads at about the same time.
                    if n % threads == thread {
                        let key = n / copies;
                        // The copies differ in content, so that only one of them can be accepted.
                        let mut spec = handoff(&format!("hs_race_{key:05}"), &format!("key-race-{key:05}"));
                        spec["intent"]["summary"] = json!(format!("copy {}", n % copies));
                        own.push((
                            key,
                            engine.submit_and_wait(candidate(&spec, "decision-router", world)).unwrap(),
                        ));
                    }
                }
                decided.lock().unwrap().extend(own);
            });
        }
    });
    engine.stop();
    let decided = decided.into_inner().unwrap();
    let mut winners = vec![0; keys];
    for (key, decided) in &decided {
        match decided.decision {
            Decision::Allowed => winners[*key] += 1,
            _ => assert_eq!(codes(decided), [Code::IdempotencyConflict, Code::HandoffReused]),
        }
    }
    assert!(winners.iter().all(|wins| *wins == 1), "one winner each");

    let engine = start(directory.path(), &world);
    for key in (0..keys).step_by(17) {
        for copy in 0..copies {
            let mut spec = handoff(&format!("hs_race_{key:05}"), &format!("key-race-{key:05}"));
            spec["intent"]["summary"] = json!(format!("copy {copy}"));
            let after = engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap();
            assert!(after.replayed || after.decision == Decision::Denied, "{after:?}");
        }
    }
    engine.stop();
}

#[test]
fn the_sequencer_has_the_last_word() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    // A mention that was fresh when it was judged, and is not when it is sequenced.
    let mention: Json = serde_json::from_str(READ).unwrap();
    let late = candidate(&mention, "decision-router", &world);
    assert!(!late.verdict.reasons().iter().any(|reason| reason.code == Code::MentionExpired));
    world.at(600);
    let decided = engine.submit_and_wait(late).unwrap();
    assert!(codes(&decided).contains(&Code::MentionExpired), "{:?}", codes(&decided));

    // A key that was revoked after it was judged.
    world.at(0);
    let mut ring = Keyring::default();
    let secret =
        crate::proof::Secret::from_file_bytes(include_bytes!("../../docs/examples/demo.key").to_vec());
    let key =
        crate::proof::Key::hmac("demo-user-main-1", "user:main", crate::proof::Purpose::Envelope, secret);
    ring.add(key.unwrap()).unwrap();
    let signed = Ruling { keyring: Arc::new(ring), ..ruling("decision-router") };
    let fresh = READ.replace("hs_20260218_proxy_read_0008", "hs_20260218_proxy_read_0009");
    let early = Candidate::judge(fresh.into(), signed, world.now()).unwrap();
    assert_eq!(early.verdict.decision(), Decision::Allowed);
    engine.put_in_force_and_wait(in_force(policies(), Keyring::default())).unwrap();
    let decided = engine.submit_and_wait(early).unwrap();
    assert!(codes(&decided).contains(&Code::KeyUnknown), "{:?}", codes(&decided));
    // The clock was set back meanwhile; the ledger's time was not.
    assert!(codes(&decided).contains(&Code::MentionExpired), "{:?}", codes(&decided));

    // A set that came into force after it was judged.
    let narrow = tempfile::tempdir().unwrap();
    std::fs::create_dir(narrow.path().join("policies")).unwrap();
    let routes = br#"{"routes": {}}"#;
    crate::os::files::create_public(&narrow.path().join("policies/routes.json"), routes).unwrap();
    let set = Arc::new(Workspace::new(narrow.path()).load_policies().unwrap());
    let spec = handoff("hs_00000001", "key-00000001");
    let early = candidate(&spec, "decision-router", &world);
    assert_eq!(early.verdict.decision(), Decision::Allowed);
    engine.put_in_force_and_wait(in_force(set.clone(), Keyring::default())).unwrap();
    engine.put_in_force_and_wait(in_force(set.clone(), Keyring::default())).unwrap();
    let decided = engine.submit_and_wait(early).unwrap();
    assert!(codes(&decided).contains(&Code::RouteUnknown), "{:?}", codes(&decided));
    assert_eq!(decided.policy_digest, set.digest().to_string());
    engine.stop();
    let head = open(directory.path()).head().sequence;
    let loaded: Vec<Json> = Entries::read(directory.path(), 1, head)
        .unwrap()
        .map(|entry| serde_json::from_str(&entry.unwrap().wire).unwrap())
        .filter(|wire: &Json| wire["type"] == "policy.loaded")
        .collect();
    assert_eq!(loaded.len(), 2, "each set that comes into force is one event");
    assert_eq!(loaded[1]["payload"]["digest"], set.digest().to_string());
    assert_eq!(loaded[1]["payload"]["previous_digest"], policies().digest().to_string());
}

/// A clock that has moved on whenever it is read.
#[derive(Clone)]
struct Restless {
    nanoseconds: Arc<AtomicI64>,
    calm: TestWorld,
}

impl Restless {
    const STEP: i64 = 7;
}

impl World for Restless {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_nanoseconds(self.nanoseconds.fetch_add(Self::STEP, Ordering::Relaxed))
    }

    fn random(&mut self) -> [u8; 10] {
        self.calm.random()
    }
}

#[test]
fn nothing_is_decided_at_or_after_an_expiry_that_it_was_found_to_be_before() {
    let directory = tempfile::tempdir().unwrap();
    let calm = TestWorld::new();
    let nanoseconds = Arc::new(AtomicI64::new(calm.now().unix_nanoseconds().unwrap()));
    let world = Restless { nanoseconds: nanoseconds.clone(), calm };
    let setup = Setup::new(Box::new(open(directory.path())), None, Box::new(world));
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    let mut expired = 0;
    for n in 0..60 {
        let mut spec: Json = serde_json::from_str(READ).unwrap();
        spec["handoffId"] = json!(format!("hs_restless_{n:04}"));
        spec["audit"]["idempotencyKey"] = json!(format!("key-restless-{n:04}"));
        let mention = &mut spec["authorship"]["mentionDelegation"];
        let judged_at = Timestamp::from_unix_nanoseconds(nanoseconds.load(Ordering::Relaxed));
        let until = Timestamp::from_unix_nanoseconds(judged_at.unix_nanoseconds().unwrap() + n + 1);
        let observed_at = until.plus_seconds(-mention["ttlSeconds"].as_i64().unwrap());
        mention["observedAt"] = json!(observed_at.to_nanoseconds());
        let early = Candidate::judge(spec.to_string().into(), ruling("decision-router"), judged_at).unwrap();
        assert!(!early.verdict.reasons().iter().any(|reason| reason.code == Code::MentionExpired));
        let decided = engine.submit_and_wait(early).unwrap();
        let is_late = Timestamp::parse(&decided.decided_at).unwrap() >= until;
        assert_eq!(codes(&decided).contains(&Code::MentionExpired), is_late, "{n}: {}", decided.decided_at);
        expired += usize::from(is_late);
    }
    assert!((1..60).contains(&expired), "{expired}");
    engine.stop();
}

fn start_with_state(directory: &Path, file: &Path, world: &TestWorld) -> EngineHandle {
    use crate::ledger::Source;
    use crate::state::{Publisher, StateFollower, rebuild};
    let log = open(directory);
    let (last, head) = (log.last_timestamp(), log.head().sequence);
    let history = || {
        let entries = Entries::read(directory, 1, head).unwrap();
        entries.map(|entry| entry.map_err(|fault| EngineFault::BadLedger(fault.to_string())))
    };
    let publisher = Publisher::new(file);
    let (view, _) =
        rebuild("gw_test", Entries::read(directory, 1, head).unwrap(), publisher.read().unwrap().as_deref())
            .unwrap();
    let follower = StateFollower::start(view, publisher, Source::files(directory)).unwrap();
    let setup = Setup::new(Box::new(log), last, Box::new(world.clone())).followed_by(Box::new(follower));
    EngineHandle::start(setup, history()).unwrap()
}

#[test]
fn what_a_reply_says_is_already_in_the_state_file() {
    use crate::state::{Published, rebuild};
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let file = directory.path().join("orchestration-state.json");
    let ledger = directory.path().join("ledger");
    let read = || -> Json { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let mut engine = start_with_state(&ledger, &file, &world);
    engine.put_in_force_and_wait(in_force(policies(), Keyring::default())).unwrap();
    for n in 0..20 {
        let spec = handoff(&format!("hs_state_{n:03}"), &format!("key-state-{n:03}"));
        let decided = engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap();
        let state = read();
        assert!(state["ledger"]["sequence"].as_u64().unwrap() >= decided.ledger.sequence);
        assert_eq!(state["activeHandoffs"][format!("hs_state_{n:03}")]["status"], "queued");
        assert_eq!(
            state["routingTable"]["crypto-sage.execution-plane.v1"]["fallbackAgentId"],
            "crypto-sage-dr"
        );
        if n == 10 {
            engine.stop();
            engine = start_with_state(&ledger, &file, &world);
            engine.put_in_force_and_wait(in_force(policies(), Keyring::default())).unwrap();
        }
    }
    // Another hand edits it while the engine runs: put right with the next decision, and the ledger says so.
    #[expect(clippy::disallowed_methods, reason = "another hand")]
    std::fs::write(&file, "{}").unwrap();
    for n in 20..22 {
        let spec = handoff(&format!("hs_state_{n:03}"), &format!("key-state-{n:03}"));
        engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap();
    }
    assert_eq!(read()["activeHandoffs"].as_object().unwrap().len(), 22);
    engine.stop();
    let head = open(&ledger).head().sequence;
    let kinds: Vec<String> = Entries::read(&ledger, 1, head)
        .unwrap()
        .map(|entry| {
            serde_json::from_str::<Json>(&entry.unwrap().wire).unwrap()["type"].as_str().unwrap().to_owned()
        })
        .collect();
    let count = |kind: &str| kinds.iter().filter(|other| *other == kind).count();
    assert_eq!((count("state.replaced"), count("policy.loaded"), count("route.declared")), (1, 1, 1));
    // Replaying from nothing gives exactly the file.
    let entries = Entries::read(&ledger, 1, head).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(rebuild("gw_test", entries, Some(&text)).unwrap().1, Published::AsOf(head));
}
