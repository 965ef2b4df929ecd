//! Engines that share a log decide what one engine alone decides, timers included.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use handoffd::engine::{
    Asker, Asking, Candidate, EngineFault, EngineHandle, InForce, Report, Ruling, Setup, World,
};
use handoffd::freeze::{FreezeAsk, FreezeScope};
use handoffd::ledger::postgres::{Database, PostgresLog};
use handoffd::ledger::{Entry, Log, RealDisk, SegmentLog, Source};
use handoffd::policy::{PolicySet, Workspace};
use handoffd::proof::Keyring;
use handoffd::state::rebuild;
use handoffd::timestamp::Timestamp;
use handoffd::wire::{SentEvent, Side};
use serde_json::{Value as Json, json};

use crate::cluster::{Cluster, until};

const TOPIC: &str = "gw_engines";
const CANONICAL: &str = include_str!("../../docs/examples/taskspec-canonical.json");

/// A clock that the test moves, and ids that count up.
#[derive(Clone)]
struct TestWorld {
    seconds: Arc<AtomicU64>,
    ids: Arc<AtomicU64>,
}

impl World for TestWorld {
    fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.seconds.load(Ordering::Relaxed)).unwrap();
        Timestamp::parse("2026-02-18T19:38:00Z").unwrap().plus_seconds(seconds)
    }

    fn random(&mut self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&self.ids.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        bytes
    }
}

struct House {
    policies: Arc<PolicySet>,
    keyring: Arc<Keyring>,
    world: TestWorld,
}

impl House {
    fn new() -> Self {
        let policies = Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap());
        let world = TestWorld { seconds: Arc::default(), ids: Arc::default() };
        Self { policies, keyring: Arc::new(Keyring::default()), world }
    }

    fn start(&self, log: impl Log + 'static, last: Option<Timestamp>, source: &Source) -> EngineHandle {
        let history = source.entries(1, log.head().sequence).unwrap();
        let history = history.map(|entry| entry.map_err(|fault| EngineFault::BadLedger(fault.to_string())));
        let setup = Setup::new(Box::new(log), last, Box::new(self.world.clone()));
        let engine = EngineHandle::start(setup, history).unwrap();
        let rules = InForce::of_files(self.policies.clone(), self.keyring.clone(), Vec::new());
        engine.put_in_force_and_wait(Arc::new(rules)).unwrap();
        engine
    }

    fn alone(&self, directory: &Path) -> EngineHandle {
        let (log, _) = SegmentLog::open(Arc::new(RealDisk), directory, TOPIC, &[]).unwrap();
        let last = log.last_timestamp();
        self.start(log, last, &Source::files(directory))
    }

    fn beside(&self, database: &Database) -> EngineHandle {
        let log = PostgresLog::open(database, &[]).unwrap().keeping_turns();
        let last = log.last_timestamp();
        self.start(log, last, &Source::Database(database.clone()))
    }

    fn candidate(&self, id: u64, key: u64, change: impl FnOnce(&mut Json)) -> Candidate {
        let mut spec: Json = serde_json::from_str(CANONICAL).unwrap();
        spec["handoffId"] = format!("hs_{id:08}").into();
        spec["audit"]["idempotencyKey"] = format!("key_{key:08}").into();
        change(&mut spec);
        let asker = Asker::Agent("decision-router".into());
        let ruling = Ruling { policies: self.policies.clone(), keyring: self.keyring.clone(), asker };
        Candidate::judge(spec.to_string().into(), ruling, self.world.now()).unwrap()
    }
}

fn event(id: u64, seq: u64, kind: &str, payload: &Json) -> Report {
    let handoff_id = format!("hs_{id:08}");
    let (category, terminal) = kind.parse::<handoffd::wire::Kind>().unwrap().state().unwrap();
    let text = json!({
        "wire": "1.1", "wire_id": format!("wire_{id:08}{seq:08}"), "type": kind,
        "ts": "2026-02-18T19:38:05Z", "sender": "agent:crypto-sage", "payload": payload,
        "state": {"category": category.as_str(), "terminal": terminal},
        "stream": {"stream_id": format!("task:{handoff_id}:attempt:1"), "stream_seq": seq,
            "context_id": "corr_strategy_cycle_9001", "correlation_id": "corr_strategy_cycle_9001"},
    });
    Report { handoff_id, event: SentEvent::parse(&text.to_string()).unwrap(), side: Side::Target }
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// One step of a history, and what came of it.
fn step(house: &House, engine: &EngineHandle, dice: &mut Dice) -> String {
    let (id, other, what) = (dice.below(12), dice.below(12), dice.below(20));
    house.world.seconds.fetch_add(dice.below(3), Ordering::Relaxed);
    match what {
        0..=8 => {
            // Sometimes under another key, with another content, or with a parent.
            let (key, note, parent) = (if what < 3 { other } else { id }, dice.below(4), dice.below(6));
            let decided = engine
                .submit_and_wait(house.candidate(id, key, |spec| {
                    spec["intent"]["summary"] = format!("note {}", note.min(1)).into();
                    if parent == 0 {
                        spec["parentHandoffId"] = format!("hs_{other:08}").into();
                    }
                    if note == 3 {
                        spec["routing"]["routeKey"] = "nowhere.execution-plane.v1".into();
                    }
                }))
                .unwrap();
            let codes: Vec<&str> = decided.reasons.iter().map(|reason| reason.code.as_str()).collect();
            format!(
                "{:?} {} {} {codes:?} {:?}",
                decided.decision, decided.attempt, decided.replayed, decided.ledger.sequence
            )
        }
        9..=16 => {
            let seq = 4 + dice.below(4);
            let (kind, payload) = match dice.below(4) {
                0 | 1 => ("task.claimed", json!({})),
                2 => ("task.started", json!({})),
                _ => ("task.failed", json!({"code": "E_TEST", "message": "it did not work"})),
            };
            format!("{:?}", engine.report_and_wait(event(id, seq, kind, &payload)).unwrap())
        }
        17 => {
            let ask = FreezeAsk { scope: FreezeScope::ALL, reason: "a drill".to_owned() };
            format!("{:?}", engine.freeze(ask, Asking::person_of("rita", None)).unwrap())
        }
        _ => {
            let ask = FreezeAsk { scope: FreezeScope::ALL, reason: "over".to_owned() };
            format!("{:?}", engine.unfreeze(ask, Asking::person_of("rita", None)).unwrap())
        }
    }
}

/// Entries with their ids in the order in which they were first named: whoever comes too late draws again.
fn told(entries: &[Entry]) -> Vec<String> {
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut named = |id: &Json| {
        let next = names.len();
        Json::from(*names.entry(id.to_string()).or_insert(next))
    };
    let mut told = Vec::new();
    for entry in entries {
        let mut wire: Json = serde_json::from_str(&entry.wire).unwrap();
        wire["wire_id"] = named(&wire["wire_id"]);
        if let Some(cause) = wire.pointer_mut("/stream/causation_id") {
            *cause = named(cause);
        }
        told.push(format!("{} {} {wire}", entry.sequence, entry.consensus_timestamp));
    }
    told
}

#[test]
fn engines_that_take_turns_on_a_shared_log_decide_what_one_alone_decides() {
    let cluster = Cluster::shared();
    for seed in 0..crate::short_or_long(2, 40) as u64 {
        let directory = tempfile::tempdir().unwrap();
        let house = House::new();
        let alone = house.alone(directory.path());
        let mut dice = Dice(seed);
        let steps = 250;
        let expected: Vec<String> = (0..steps).map(|_| step(&house, &alone, &mut dice)).collect();
        alone.stop();

        let url = cluster.url(&cluster.database());
        let house = House::new();
        let databases: Vec<Database> = (0..2).map(|_| Database::open(&url, TOPIC).unwrap()).collect();
        let engines: Vec<EngineHandle> = databases.iter().map(|database| house.beside(database)).collect();
        let (mut dice, mut whose) = (Dice(seed), Dice(seed + 1_000));
        for (n, expected) in expected.iter().enumerate() {
            let engine = &engines[usize::try_from(whose.below(2)).unwrap()];
            assert_eq!(&step(&house, engine, &mut dice), expected, "step {n} of history {seed}");
        }
        engines.iter().for_each(EngineHandle::stop);
        let source = Source::files(directory.path());
        let all = |source: &Source| -> Vec<Entry> {
            source.entries(1, alone.head()).unwrap().map(Result::unwrap).collect()
        };
        let (files, stored) = (all(&source), all(&Source::Database(databases[0].clone())));
        assert_eq!(told(&files), told(&stored));
        assert_eq!(databases[0].head().unwrap().0.sequence, alone.head(), "and nothing more");
        let state = |entries: Vec<Entry>| {
            let (view, _) = rebuild(TOPIC, entries.into_iter().map(Ok), None).unwrap();
            let mut state: Json = serde_json::from_str(&view.render()).unwrap();
            // The hash is over ids that differ, and audit rows name them.
            state["ledger"]["runningHash"] = Json::Null;
            state["delegationAuditLog"] = Json::Null;
            state
        };
        assert_eq!(state(files), state(stored));
    }
}

#[test]
fn a_timer_that_two_engines_have_goes_off_once() {
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let house = House::new();
    let databases: Vec<Database> = (0..2).map(|_| Database::open(&url, TOPIC).unwrap()).collect();
    let engines: Vec<EngineHandle> = databases.iter().map(|database| house.beside(database)).collect();
    let handoffs = 20;
    for id in 0..handoffs {
        let (one, other) =
            (&engines[usize::try_from(id % 2).unwrap()], &engines[usize::try_from((id + 1) % 2).unwrap()]);
        one.submit_and_wait(house.candidate(id, id, |_| {})).unwrap();
        other.report_and_wait(event(id, 4, "task.claimed", &json!({}))).unwrap().unwrap();
    }
    // Nobody is heard of: both engines notice, and both would say so.
    house.world.seconds.fetch_add(16 * 60, Ordering::Relaxed);
    let source = Source::Database(databases[0].clone());
    let ended = || {
        let (head, _) = databases[0].head().unwrap();
        let all: Vec<Entry> = source.entries(1, head.sequence).unwrap().map(Result::unwrap).collect();
        all.iter().filter(|entry| entry.wire.contains("nothing was heard")).count() as u64
    };
    until(|| ended() >= handoffs);
    // Both have seen it, and both have had the time to say it again.
    until(|| engines.iter().all(|engine| engine.head() == databases[0].head().unwrap().0.sequence));
    engines.iter().for_each(EngineHandle::stop);
    assert_eq!(ended(), handoffs);
}
