//! One history on both sides: the same steps, and after each of them the same answers and the same standing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use handoffd::authorization::{Answer as Said_, ApprovalAsk, Terms};
use handoffd::contract::{Mode, Word as _};
use handoffd::engine::{
    Answering, Asker, Asking, Candidate, Decided, EngineHandle, EpochFacts, InForce, Pass as EnginePass,
    PromotionRules, Report, Ruling, Setup, Unanswered, World,
};
use handoffd::freeze::{FreezeAsk, FreezeScope};
use handoffd::ledger::{AppendFault, Batch, Entry, Head, Log};
use handoffd::mentions::{Phase, PhaseAsk};
use handoffd::policy::{PolicySet, Workspace};
use handoffd::promotion::{
    Attached, ContractDecision, E2eHandoff, Findings, Lift, Operator, Probe, Probes, RollbackAsk, RollbackBy,
    SimulatedEnd, SimulatedOutcome, Simulation, Voucher, evaluate, read_plan,
};
use handoffd::proof::{Digest, Key, Keyring, Purpose, Secret, Seed};
use handoffd::timestamp::Timestamp;
use handoffd::wire::{Kind, SentEvent, Side};
use serde_json::{Value as Json, json};

use crate::chance::Chance;
use crate::gates::{Rules, Submitter, agents, names};
use crate::model::{Answer, Grant, Human, Model, Pass, Said, Settled, State, TOPIC};
use crate::routes::{CANARY_OF, STAGES};
use crate::seed::{is_long, seed};
use crate::town;

/// A clock that the history moves, and ids that count up.
#[derive(Clone)]
struct Clock(Arc<AtomicI64>, Arc<AtomicU64>);

impl Clock {
    fn read(&self) -> Timestamp {
        let start = Timestamp::parse("2026-02-18T12:00:00Z").unwrap();
        let milliseconds = self.0.load(Ordering::Relaxed);
        let nanoseconds = start.unix_nanoseconds().unwrap() + milliseconds * 1_000_000;
        Timestamp::from_unix_nanoseconds(nanoseconds)
    }
}

impl World for Clock {
    fn now(&self) -> Timestamp {
        self.read()
    }

    fn random(&mut self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&self.1.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        bytes
    }
}

/// A log that only remembers: what a history costs is the deciding.
#[derive(Clone)]
struct Memory(Arc<Mutex<(Head, Vec<Entry>)>>);

impl Log for Memory {
    fn topic_id(&self) -> &str {
        TOPIC
    }

    fn head(&self) -> Head {
        self.0.lock().unwrap().0
    }

    fn append(&mut self, after: Head, batch: &Batch) -> Result<(), AppendFault> {
        let mut kept = self.0.lock().unwrap();
        assert_eq!(kept.0, after);
        kept.0 = batch.head();
        kept.1.extend(batch.entries().iter().cloned());
        Ok(())
    }

    fn check(&mut self) -> Result<(), AppendFault> {
        Ok(())
    }
}

mod people;
mod work;

struct Both {
    chance: Chance,
    clock: Clock,
    memory: Memory,
    engine: EngineHandle,
    files: Arc<PolicySet>,
    keyring: Arc<Keyring>,
    /// What was in force before.
    before: Option<(Arc<PolicySet>, Arc<Keyring>)>,
    workspace: tempfile::TempDir,
    model: Model,
    /// What was submitted, and by whom.
    sent: Vec<(Json, Submitter)>,
    number: usize,
    /// The next number in a handoff's stream, as the ledger has it.
    done: Vec<String>,
    tally: BTreeMap<&'static str, usize>,
}

const PEOPLE: [Human; 6] = [
    Human { name: "rita", principal: None },
    Human { name: "otto", principal: None },
    Human { name: "rita-2", principal: Some("rita") },
    Human { name: "ann", principal: Some("user:ann") },
    // Who are agents, too.
    Human { name: "handy", principal: Some("hand") },
    Human { name: "spare", principal: None },
];

fn asking(by: &Human) -> Asking {
    Asking::person_of(by.name, by.principal)
}

fn rita() -> Asking {
    asking(&PEOPLE[0])
}

fn start(memory: &Memory, clock: &Clock) -> EngineHandle {
    let entries = memory.0.lock().unwrap().1.clone();
    let last = entries.last().and_then(|entry| Timestamp::parse(&entry.consensus_timestamp));
    let mut setup = Setup::new(Box::new(memory.clone()), last, Box::new(clock.clone()));
    setup.promotion = PromotionRules { canary_of: CANARY_OF, ..PromotionRules::default() };
    EngineHandle::start(setup, entries.into_iter().map(Ok)).unwrap()
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn keyring(rules: &Rules) -> Keyring {
    let mut ring = Keyring::default();
    for key in &rules.keys {
        let purpose: Purpose = key.purpose.parse().unwrap();
        let made = match key.algorithm {
            "ed25519-v1" => {
                Key::ed25519(&key.id, &key.owner, purpose, &Seed::from_bytes(&key.secret).public_hex())
            }
            _ => Key::hmac(&key.id, &key.owner, purpose, Secret::new(key.secret.to_vec())),
        };
        ring.add(made.unwrap().valid_between(key.from, key.until)).unwrap();
    }
    ring
}

/// What the engine answered, in the model's words.
fn said(decided: &Decided) -> Answer {
    Answer {
        decision: decided.decision.as_str(),
        codes: decided.reasons.iter().map(|reason| reason.code.as_str()).collect(),
        attempt: decided.attempt,
        replayed: decided.replayed,
        pass: match decided.pass {
            EnginePass::None => Pass::None,
            EnginePass::Dispatch { until } => Pass::Dispatch(until),
            EnginePass::Withheld => Pass::Withheld,
            EnginePass::Waits { until } => Pass::Waits(until),
        },
    }
}

impl Both {
    fn new(seed: u64) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        let plan = include_str!("../../agents/blockchain-operator/docs/runbook.md");
        write(workspace.path(), "docs/plan.md", plan);
        for (path, schema) in town::schemas() {
            write(workspace.path(), path, &schema.to_string());
        }
        let clock = Clock(Arc::default(), Arc::default());
        let memory = Memory(Arc::new(Mutex::new((Head::genesis(TOPIC), Vec::new()))));
        let engine = start(&memory, &clock);
        write(workspace.path(), "policies/routes.json", r#"{"routes": {}}"#);
        let files = Arc::new(Workspace::new(workspace.path()).load_policies().unwrap());
        let mut both = Self {
            chance: Chance::of(seed),
            clock,
            memory,
            engine,
            files,
            keyring: Arc::default(),
            before: None,
            workspace,
            model: Model::default(),
            sent: Vec::new(),
            number: 0,
            done: Vec::new(),
            tally: BTreeMap::new(),
        };
        both.edit();
        both
    }

    fn note(&mut self, what: String) {
        self.done.push(what);
    }

    /// The ledger's time of what is written next.
    fn now(&self) -> Timestamp {
        let clock = self.clock.read();
        self.engine.ledger_time().map_or(clock, |last| clock.max(last.plus_nanosecond()))
    }

    fn put(&self) {
        let in_force = InForce::of_files(self.files.clone(), self.keyring.clone(), Vec::new());
        self.engine.put_in_force_and_wait(Arc::new(in_force)).unwrap();
    }

    /// Other policies and other keys.
    fn edit(&mut self) {
        let now = self.clock.read();
        let mut rules = town::rules(&mut self.chance, now);
        if self.number > 0 && self.chance.percent(50) {
            // Most edits touch little.
            let fresh = rules;
            rules = self.model.files.clone();
            match self.chance.below(3) {
                0 => rules.keys = fresh.keys,
                1 => rules.policies = fresh.policies,
                _ => rules.routes.extend(fresh.routes.into_iter().take(1)),
            }
        }
        let root = self.workspace.path();
        write(root, "policies/routes.json", &json!({"routes": rules.routes}).to_string());
        std::fs::remove_dir_all(root.join("policies/delegation")).ok();
        for (path, policy) in &rules.policies {
            write(root, path, &policy.to_string());
        }
        let files = Arc::new(Workspace::new(root).load_policies().unwrap());
        let ring = Arc::new(keyring(&rules));
        self.before =
            Some((std::mem::replace(&mut self.files, files), std::mem::replace(&mut self.keyring, ring)));
        self.note(format!("edit: {}", json!({"routes": rules.routes, "policies": rules.policies})));
        self.put();
        self.model.load(rules);
        let now = self.now();
        self.model.tick(now);
    }

    /// Moves the clock; then whatever is due has happened when an act that changes nothing is answered.
    fn pass_time(&mut self) {
        let milliseconds = match self.chance.below(10) {
            0..=4 => self.chance.below(5_000),
            5 | 6 => self.chance.below(120_000),
            7 => self.chance.below(1_000_000),
            _ => 0,
        };
        let mut to = self.clock.0.load(Ordering::Relaxed) + i64::try_from(milliseconds).unwrap();
        if self.chance.percent(5) {
            to = (to - 400_000).max(0);
        }
        if self.chance.percent(10)
            && let Some(end) = self.an_end()
        {
            // To the very instant.
            let start = Timestamp::parse("2026-02-18T12:00:00Z").unwrap().unix_nanoseconds().unwrap();
            let at = end.unix_nanoseconds().unwrap() - start;
            if at % 1_000_000 == 0 && at > 0 {
                to = at / 1_000_000;
            }
        }
        self.clock.0.store(to, Ordering::Relaxed);
        self.note(format!("clock: {}", self.clock.read()));
        self.nudge();
    }

    /// When something that somebody sent ends.
    fn an_end(&mut self) -> Option<Timestamp> {
        let (spec, _) = self.sent.last()?;
        let text = |path: &str| spec.pointer(path).and_then(Json::as_str).and_then(Timestamp::parse);
        text("/authorship/envelope/ttl/expiresAt")
    }

    fn nudge(&mut self) {
        let ask = FreezeAsk { scope: FreezeScope::route("no.such.route"), reason: "none".to_owned() };
        let now = self.now();
        assert!(self.engine.unfreeze(ask, rita()).unwrap().is_err());
        self.model.tick(now);
    }

    fn submit(&mut self) {
        let now = self.clock.read();
        let repeats = !self.sent.is_empty() && self.chance.percent(20);
        let (spec, submitter) = if repeats {
            let (mut spec, submitter) = self.chance.one(&self.sent).clone();
            if self.chance.percent(30) {
                town::worsen(&mut self.chance, &mut spec, now);
            }
            (spec, submitter)
        } else {
            let spec = town::spec(&mut self.chance, &self.model, &mut self.number, now);
            let submitter = match self.chance.below(20) {
                0 => Submitter::Administrator,
                1 => Submitter::Agent((*self.chance.one(&town::AGENTS)).to_owned()),
                _ => Submitter::Agent(
                    spec.pointer("/source/agentId").and_then(Json::as_str).unwrap_or("router").to_owned(),
                ),
            };
            (spec, submitter)
        };
        let asker = match &submitter {
            Submitter::Agent(agent) => Asker::Agent(agent.as_str().into()),
            Submitter::Administrator => Asker::AnySourceButLive,
        };
        // Judged under what is in force, under the files without what a rollback brought back, or under what was.
        let over = self.engine.policies_over(&self.files);
        let is_overlaid = !Arc::ptr_eq(&over, &self.files);
        let (policies, keyring, is_stale) = match (self.chance.below(10), self.before.clone()) {
            (0, Some((policies, keyring))) => (policies, keyring, true),
            (1, _) => (self.files.clone(), self.keyring.clone(), is_overlaid),
            _ => (over, self.keyring.clone(), false),
        };
        let judged_at = self.clock.read();
        let candidate =
            Candidate::judge(spec.to_string().into(), Ruling { policies, keyring, asker }, judged_at);
        let candidate = candidate.unwrap();
        // While it stands in line, time may pass.
        if self.chance.percent(15) {
            let wait = *self.chance.one(&[1, 1_000, 60_000, 301_000]);
            self.clock.0.fetch_add(wait, Ordering::Relaxed);
            // The sequencer looks at what is due by itself, too, and how soon is for the machine to say.
            self.nudge();
        }
        self.note(format!("submit (judged at {judged_at}, stale {is_stale}): {spec}"));
        let dry = self.chance.percent(15);
        let now = self.now();
        if dry {
            self.check_dry(&spec, &submitter, now);
        }
        let found = said(&self.engine.submit_and_wait(candidate).unwrap());
        let expected = self.model.submit(&spec, &submitter, (!is_stale).then_some(judged_at), now);
        self.model.tick(now);
        *self.tally.entry(found.decision).or_default() += 1;
        for code in &found.codes {
            *self.tally.entry(code).or_default() += 1;
        }
        *self.tally.entry("replayed").or_default() += usize::from(found.replayed);
        if spec["taskSpecVersion"] == "1.1" {
            let is_allowed = usize::from(found.decision == "allowed");
            let is_refused = usize::from(found.codes.contains("A2A_TASKSPEC_INVALID"));
            *self.tally.entry("allowed of 1.1").or_default() += is_allowed;
            *self.tally.entry("refused of 1.1 for its shape").or_default() += is_refused;
        }
        self.same(found, expected);
        self.sent.push((spec, submitter));
    }

    /// What is only asked about is answered as if it were submitted, and changes nothing.
    fn check_dry(&mut self, spec: &Json, submitter: &Submitter, now: Timestamp) {
        let asker = match submitter {
            Submitter::Agent(agent) => Asker::Agent(agent.as_str().into()),
            Submitter::Administrator => Asker::AnySourceButLive,
        };
        let ruling =
            Ruling { policies: self.engine.policies_over(&self.files), keyring: self.keyring.clone(), asker };
        let head = self.engine.head();
        let judged_at = self.clock.read();
        let judged = Candidate::judge_dry(spec.to_string().into(), ruling.clone(), judged_at).unwrap();
        let dry = self.engine.dry_run(judged).unwrap();
        assert_eq!(self.engine.head(), head);
        // What it would be answered, by a model that forgets it again.
        let expected = self.model.clone().submit(spec, submitter, Some(judged_at), now);
        let found = match &dry.replay_of {
            Some(again) => said(again),
            None => Answer {
                decision: dry.decision.as_str(),
                codes: dry.reasons.iter().map(|reason| reason.code.as_str()).collect(),
                attempt: dry.attempt,
                replayed: false,
                pass: match (dry.waits_until, expected.pass) {
                    (Some(until), _) => Pass::Waits(until),
                    // Nothing is handed out, so until when it would hold is not told.
                    (None, would @ Pass::Dispatch(_)) => would,
                    (None, _) => Pass::None,
                },
            },
        };
        self.note(format!("check: {found:?}"));
        *self.tally.entry("checked").or_default() += 1;
        *self.tally.entry("checked, and given again").or_default() += usize::from(found.replayed);
        self.same(found, expected);
    }

    #[track_caller]
    fn same<T: PartialEq + std::fmt::Debug>(&self, engine: T, model: T) {
        if engine != model {
            let last: Vec<&String> = self.done.iter().rev().take(12).collect();
            for line in last.into_iter().rev() {
                eprintln!("{line}");
            }
            panic!("engine: {engine:?}\n model: {model:?}");
        }
    }

    fn restart(&mut self) {
        self.note("restart".to_owned());
        self.engine.stop();
        self.engine = start(&self.memory, &self.clock);
        self.put();
        let now = self.now();
        self.model.tick(now);
        self.nudge();
    }

    fn begin_epoch(&mut self) {
        self.note("epoch".to_owned());
        let now = self.now();
        let facts = EpochFacts {
            backup_time: self.clock.read().to_string(),
            restored_head: self.engine.head(),
            restored_hash: "0".repeat(64),
        };
        self.engine.begin_epoch_and_wait(facts).unwrap();
        self.model.epoch = Some(now);
        // What waits is looked at when its time comes, or after a restart, which is when epochs begin.
        self.restart();
    }

    fn step(&mut self) {
        let key = *self.chance.one(&town::ROUTES);
        match self.chance.below(100) {
            0..=49 => self.submit(),
            50..=57 => self.answer(),
            58..=66 => self.work(),
            67..=76 => self.pass_time(),
            77..=81 => self.grant(),
            82 => self.revoke(),
            83 if self.chance.percent(60) => self.freeze(),
            83..=85 => self.unfreeze(),
            86 | 87 => self.phase(),
            88..=92 => {
                for _ in 0..*self.chance.one(&[1, 2, 5]) {
                    self.promote(key);
                }
            }
            93 => self.roll_back(),
            94 | 95 => self.lift(key),
            96 | 97 => self.edit(),
            98 => self.restart(),
            _ if self.chance.percent(25) => self.begin_epoch(),
            _ => {}
        }
        self.compare();
    }

    /// Everything that is in force, side by side.
    fn compare(&self) {
        let inbox = self.engine.inbox();
        let found: BTreeMap<String, Timestamp> =
            inbox.by_end().map(|waiting| (waiting.handoff_id.to_string(), waiting.until)).collect();
        let expected = self.model.waiting.iter().map(|(id, waiting)| (id.clone(), waiting.until)).collect();
        self.same(found, expected);
        let grants = self.engine.grants();
        let found: BTreeMap<String, (u32, bool)> = grants
            .newest_first()
            .map(|held| {
                (held.grant.authorization_ref.to_string(), (held.remaining(), held.revoked_at.is_some()))
            })
            .collect();
        let expected = self
            .model
            .grants
            .iter()
            .map(|(name, grant)| (name.clone(), (grant.uses, grant.revoked)))
            .collect();
        self.same(found, expected);
        let scopes = |freeze: &handoffd::freeze::Freeze| {
            (freeze.scope.route_key.clone(), freeze.scope.mode.map(|mode| mode.as_str().to_owned()))
        };
        let found: BTreeSet<_> = self.engine.freezes().all().map(scopes).collect();
        self.same(found, self.model.freezes.clone());
        let mentions = self.engine.mentions();
        self.same(mentions.phase(), Phase::ALL[self.model.phase]);
        let total = mentions.total();
        let found = [
            total.candidates,
            total.would_allow,
            total.loops_stopped,
            total.duplicates_stopped,
            total.expired,
        ];
        self.same(found, self.model.counters);
        for (key, record) in self.engine.routes() {
            let canary = record.canary.as_ref();
            let holder = canary
                .map(|canary| (canary.done, canary.holder.as_ref().map(|holder| holder.handoff_id.clone())));
            let found = (
                key.clone(),
                record.stage.as_str(),
                record.passes.len(),
                record.blocked,
                holder,
                record.pin.is_some(),
            );
            self.same(self.engine.in_flight(&key), self.model.in_flight(&key));
            let route = &self.model.routes[&key];
            let canary = route.canary.as_ref();
            let holder =
                canary.map(|canary| (canary.done, canary.holder.as_ref().map(|(holder, _)| holder.clone())));
            let expected =
                (key, STAGES[route.stage], route.passed, route.blocked, holder, route.pinned.is_some());
            self.same(found, expected);
        }
    }
}

fn run(seed: u64, tally: &mut BTreeMap<&'static str, usize>) {
    let mut both = Both::new(seed);
    // Most of what there is to find lies behind a route that is live.
    if both.chance.percent(75) {
        for key in town::ROUTES {
            for _ in 0..5 {
                both.promote(key);
            }
        }
    }
    if both.chance.percent(75) {
        both.phase();
        both.phase();
    }
    for _ in 0..80 {
        both.step();
    }
    both.engine.stop();
    for (what, times) in both.tally {
        *tally.entry(what).or_default() += times;
    }
}

#[test]
fn the_engine_and_the_model_never_differ() {
    let mut tally = BTreeMap::new();
    let first = seed("MODEL_SEED", 0);
    if std::env::var_os("MODEL_SEED").is_some() {
        return run(first, &mut tally);
    }
    let histories: u64 = if is_long() { 2_000 } else { 40 };
    eprintln!("{histories} histories from MODEL_SEED={first} on");
    for seed in first..first + histories {
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, &mut tally)));
        if let Err(why) = ran {
            eprintln!("MODEL_SEED={seed} shows it again");
            std::panic::resume_unwind(why);
        }
    }
    // A history in which nothing happens shows nothing.
    for what in [
        "allowed",
        "denied",
        "expired",
        "needs_approval",
        "approved",
        "not approved",
        "replayed",
        "checked",
        "checked, and given again",
        "allowed of 1.1",
        "refused of 1.1 for its shape",
        "gates passed",
        "gates withheld from agents",
        "rollbacks",
        "reports taken",
    ] {
        assert!(tally.get(what).is_some_and(|times| *times >= 5), "{what}: {tally:?}");
    }
    eprintln!("{histories} histories: {tally:?}");
}
