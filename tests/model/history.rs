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
    Attached, ContractDecision, E2eHandoff, Findings, Lift, Probe, Probes, RollbackAsk, RollbackBy,
    SimulatedEnd, SimulatedOutcome, Simulation, evaluate, read_plan,
};
use handoffd::proof::{Digest, Key, Keyring, Purpose, Secret, Seed};
use handoffd::timestamp::Timestamp;
use handoffd::wire::{Kind, SentEvent, Side};
use serde_json::{Value as Json, json};

use crate::chance::Chance;
use crate::gates::{Rules, Submitter};
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

const PEOPLE: [Human; 4] = [
    Human { name: "rita", principal: None },
    Human { name: "otto", principal: None },
    Human { name: "rita-2", principal: Some("rita") },
    Human { name: "ann", principal: Some("user:ann") },
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
        let repeats = !self.sent.is_empty() && self.chance.percent(18);
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
        let dry = self.chance.percent(10);
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
        let judged =
            Candidate::judge_dry(spec.to_string().into(), ruling.clone(), self.clock.read()).unwrap();
        let dry = self.engine.dry_run(judged).unwrap();
        assert_eq!(self.engine.head(), head);
        // What it would be answered, by a model that forgets it again.
        let expected = self.model.clone().submit(spec, submitter, None, now);
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

    fn answer(&mut self) {
        let waiting: Vec<String> = self.model.waiting.keys().cloned().collect();
        let Some(handoff_id) = (!waiting.is_empty()).then(|| self.chance.one(&waiting).clone()) else {
            return;
        };
        let mut spec = self.model.handoffs[&handoff_id].accepted.as_ref().unwrap().spec.clone();
        if self.chance.percent(8) {
            spec["intent"]["input"]["amount"] = json!(999);
        }
        let yes = self.chance.percent(85);
        let by = self.chance.one(&PEOPLE).clone();
        let human = !self.chance.percent(6);
        let ask = ApprovalAsk {
            answer: if yes { Said_::Approve } else { Said_::Reject },
            reason: "seen".to_owned(),
        };
        let text = String::from_utf8(crate::gates::canonical(&spec)).unwrap();
        let asking = if human { asking(&by) } else { Asking::token("admin") };
        self.note(format!("answer {handoff_id}: {yes} by {by:?}, human {human}"));
        let now = self.now();
        let answering = Answering { handoff_id: handoff_id.clone(), ask, task_spec: text.into(), by: asking };
        let found = match self.engine.answer(answering).unwrap() {
            Ok(decided) => Settled::Decided(said(&decided)),
            Err(Unanswered::Fault(fault)) => Settled::Refused(fault.code()),
            Err(Unanswered::Held(reasons)) => {
                Settled::Held(reasons.iter().map(|reason| reason.code.as_str()).collect())
            }
            Err(Unanswered::OtherTaskSpec) => Settled::OtherTaskSpec,
        };
        let expected = self.model.answer(&handoff_id, yes, human.then_some(&by), &spec, now);
        self.model.tick(now);
        if let Settled::Decided(answer) = &found {
            *self
                .tally
                .entry(match answer.decision {
                    "allowed" => "approved",
                    _ => "not approved",
                })
                .or_default() += 1;
        }
        self.same(found, expected);
    }

    fn grant(&mut self) {
        let some = |chance: &mut Chance, all: &[&str]| -> Vec<String> {
            let mut names: Vec<String> =
                all.iter().filter(|_| chance.percent(75)).map(|&name| name.to_owned()).collect();
            if names.is_empty() {
                names.push(all[0].to_owned());
            }
            names
        };
        let chance = &mut self.chance;
        let by = chance.one(&PEOPLE).clone();
        let terms = Terms {
            agents: some(chance, &["worker", "worker-dr", "helper"]),
            channels: if chance.percent(30) { some(chance, &town::CHANNELS) } else { Vec::new() },
            expires_at: self.clock.read().plus_seconds(*chance.one(&[60, 600, 6_000])),
            intent_hash: chance.percent(5).then(|| Digest::of(b"another")),
            modes: some(chance, &["live", "simulated", "dev"])
                .iter()
                .map(|word| Mode::from_word(word).unwrap())
                .collect(),
            operations: some(chance, &town::OPERATIONS),
            principal: (*chance.one(&town::PRINCIPALS)).to_owned(),
            route_key: chance.percent(20).then(|| (*chance.one(&town::ROUTES)).to_owned()),
            uses: u32::try_from(1 + chance.below(3)).unwrap(),
        };
        let now = self.now();
        self.note(format!("grant by {by:?}: {terms:?}"));
        let made = self.engine.grant(terms.clone(), asking(&by)).unwrap();
        let own = by.name == terms.principal
            || by.principal == Some(terms.principal.as_str())
            || terms.agents.iter().any(|agent| by.name == agent);
        self.same(made.is_err(), own);
        if let Ok(made) = made {
            let grant = Grant {
                principal: terms.principal,
                agents: terms.agents,
                operations: terms.operations,
                modes: terms.modes.iter().map(|mode| mode.as_str().to_owned()).collect(),
                channels: terms.channels,
                route: terms.route_key,
                intent: terms.intent_hash.map(|hash| hash.to_string()),
                expires: terms.expires_at,
                uses: terms.uses,
                made_by: by.clone(),
                made_at: now,
                revoked: false,
            };
            self.model.grants.insert(made.held.grant.authorization_ref.to_string(), grant);
        }
        self.model.tick(now);
    }

    fn revoke(&mut self) {
        let names: Vec<String> = self.model.grants.keys().cloned().collect();
        let Some(name) = (!names.is_empty()).then(|| self.chance.one(&names).clone()) else { return };
        self.note(format!("revoke {name}"));
        let found = self.engine.revoke_grant(name.clone(), None, rita()).unwrap().is_ok();
        let grant = self.model.grants.get_mut(&name).unwrap();
        let expected = !std::mem::replace(&mut grant.revoked, true);
        self.same(found, expected);
    }

    fn freeze(&mut self) {
        let scope = match self.chance.below(5) {
            0 => FreezeScope::ALL,
            1 | 2 => FreezeScope::mode(*self.chance.one(&[Mode::Dev, Mode::Simulated, Mode::Live])),
            _ => {
                let key = self.chance.one(&town::ROUTES);
                FreezeScope::route(key)
            }
        };
        let named = (scope.route_key.clone(), scope.mode.map(|mode| mode.as_str().to_owned()));
        self.note(format!("freeze {named:?}"));
        let ask = FreezeAsk { scope, reason: "stop".to_owned() };
        let found = self.engine.freeze(ask, rita()).unwrap().held_before;
        let expected = !self.model.freezes.insert(named);
        self.same(found, expected);
    }

    fn unfreeze(&mut self) {
        let all: Vec<_> = self.model.freezes.iter().cloned().collect();
        let Some((route_key, mode)) = (!all.is_empty()).then(|| self.chance.one(&all).clone()) else {
            return;
        };
        self.note(format!("unfreeze {route_key:?} {mode:?}"));
        let scope = FreezeScope {
            route_key: route_key.clone(),
            mode: mode.as_deref().map(|word| Mode::from_word(word).unwrap()),
        };
        assert!(self.engine.unfreeze(FreezeAsk { scope, reason: "on".to_owned() }, rita()).unwrap().is_ok());
        self.model.freezes.remove(&(route_key, mode));
    }

    fn phase(&mut self) {
        let up = (self.model.phase + 1).min(2);
        let to = if self.chance.percent(75) { up } else { self.chance.below(3) };
        self.note(format!("phase {to}"));
        let ask = PhaseAsk { phase: Phase::ALL[to], reason: "on".to_owned() };
        let found = self.engine.move_phase(ask, rita()).unwrap().is_ok();
        let expected = to < self.model.phase || to == self.model.phase + 1;
        if expected {
            self.model.phase = to;
        }
        self.same(found, expected);
    }

    /// Has a route pass its next gate, with findings that could not be better.
    fn promote(&mut self, key: &str) {
        let Some(record) = self.engine.route(key) else { return };
        let next = self.model.routes[key].passed;
        let head = self.engine.head();
        let decision =
            ContractDecision { handoff_id: "hs_contract".into(), sequence: head + 1, codes: Vec::new() };
        let answered = || Probe::Answered { status: 200 };
        let probes = Probes { primary: answered(), fallback: answered() };
        let outcome = |n: u64| SimulatedOutcome {
            handoff_id: format!("hs_simulated_{n}"),
            accepted: head + n,
            ended: head + n,
            end: SimulatedEnd::Completed { side_effects: Vec::new() },
        };
        let outcomes = [outcome(1), outcome(2), outcome(3)];
        let decisions = [decision];
        let plan = read_plan(self.files.references(), record.plan_ref());
        let mut runs = Vec::new();
        let mut record = record;
        if next == 3 {
            let attached = Attached { run_id: Some("run-1".into()), ..Attached::default() };
            let evidence = ("hs_e2e_0001".to_owned(), attached);
            self.engine.attach_evidence(key.to_owned(), evidence, rita()).unwrap().unwrap();
            record = self.engine.route(key).unwrap();
            runs.push(E2eHandoff {
                handoff_id: "hs_e2e_0001".into(),
                mode: Some(Mode::Simulated),
                completed: Some(self.engine.head()),
                source_agent: "router".into(),
                target_agent: "worker".into(),
                claimed_by: Some("worker".into()),
                e2e_actor: "human".into(),
                plan_ref: None,
            });
        }
        let findings = match next {
            0 => Findings::Contract(&decisions),
            1 => Findings::Routing(&probes),
            2 => Findings::Simulation(Simulation { needed: 3, outcomes: &outcomes }),
            3 => Findings::E2e(&runs),
            _ => Findings::Live { operator: Some("rita"), plan: &plan },
        };
        let Ok(answer) = evaluate(&record, &findings) else { return };
        assert!(answer.outcome.passed, "{:?}", answer.outcome);
        self.note(format!("promote {key}: gate {next}"));
        self.engine.decide_gate(key.to_owned(), answer, self.engine.head(), rita()).unwrap().unwrap();
        self.model.routes.get_mut(key).unwrap().pass(next);
        *self.tally.entry("gates passed").or_default() += 1;
    }

    fn roll_back(&mut self) {
        let key = *self.chance.one(&town::ROUTES);
        let block = self.chance.percent(50);
        if self.engine.route(key).is_none() {
            return;
        }
        self.note(format!("roll back {key}, block {block}"));
        let ask = RollbackAsk {
            by: RollbackBy::Operator("rita".to_owned()),
            block: Some(block),
            reason: "back".to_owned(),
            code: None,
            handoff_id: None,
        };
        self.engine.roll_back(key.to_owned(), ask, false, rita()).unwrap().unwrap();
        self.model.roll_back(key, block);
        *self.tally.entry("rollbacks").or_default() += 1;
    }

    fn lift(&mut self, key: &str) {
        if self.engine.route(key).is_none() {
            return;
        }
        self.note(format!("lift {key}"));
        let found = self.engine.lift(key.to_owned(), Lift::Both, "on".to_owned(), rita()).unwrap().is_ok();
        let expected = self.model.lift(key);
        self.same(found, expected);
    }

    /// An agent works on a handoff, as far as it comes.
    fn work(&mut self) {
        let open: Vec<(String, Option<String>, Option<String>)> = self
            .model
            .handoffs
            .iter()
            .filter_map(|(id, known)| {
                Some((id.clone(), known.target.clone(), known.source.clone(), known.accepted.as_ref()?))
            })
            .filter(|(.., accepted)| accepted.state != State::Over)
            .map(|(id, target, source, _)| (id, target, source))
            .collect();
        let Some((id, target, source)) = (!open.is_empty()).then(|| self.chance.one(&open).clone()) else {
            return;
        };
        let claimer = self.model.handoffs[&id].accepted.as_ref().unwrap().claimer.clone();
        let mut agent = claimer.or(target).unwrap_or_default();
        if self.chance.percent(15) {
            agent = (*self.chance.one(&town::AGENTS)).to_owned();
        }
        let code = self.chance.one(&["BOOM", "POLICY_TASK_DENIED", "ROUTE_ROLLED_BACK"]);
        let failed = Said::Failed { code, critical: self.chance.percent(20) };
        let steps: Vec<Said> = match self.chance.below(10) {
            0 => vec![Said::Claimed],
            1 => vec![Said::Started],
            2 => vec![Said::Claimed, Said::Started, Said::Blocked],
            3 => vec![failed],
            4 => vec![Said::Claimed, Said::Started, failed],
            5 => {
                agent = source.unwrap_or_default();
                vec![Said::Cancelled]
            }
            _ => vec![Said::Claimed, Said::Started, Said::Artifact, Said::Completed],
        };
        let is_source = matches!(steps.first(), Some(Said::Cancelled));
        // Now and then with a token for the other side, all of it: a completion names what was announced before.
        let side = if is_source != self.chance.percent(5) { Side::Source } else { Side::Target };
        for step in steps {
            self.report(&id, &agent, side, &step);
        }
    }

    fn report(&mut self, id: &str, agent: &str, side: Side, step: &Said) {
        let accepted = self.model.handoffs[id].accepted.as_ref().unwrap();
        let stream_id = format!("task:{id}:attempt:{}", accepted.attempt);
        let mut seq = 0;
        let mut context = String::new();
        for entry in &self.memory.0.lock().unwrap().1 {
            if !entry.wire.contains(&stream_id) {
                continue;
            }
            let wire: Json = serde_json::from_str(&entry.wire).unwrap();
            if wire["stream"]["stream_id"] == stream_id.as_str() {
                seq = wire["stream"]["stream_seq"].as_u64().unwrap();
                context = wire["stream"]["context_id"].as_str().unwrap().to_owned();
            }
        }
        let digest = format!("sha256:{}", "0".repeat(64));
        let (kind, payload) = match step {
            Said::Claimed => ("task.claimed", json!({})),
            Said::Started => ("task.started", json!({})),
            Said::Artifact => (
                "artifact.ready",
                json!({"artifact_id": format!("a{seq}"), "uri": "s3://a", "version": 1, "hash": digest}),
            ),
            Said::Blocked => ("task.blocked", json!({"reason": "what now"})),
            Said::Completed => (
                "task.complete",
                json!({"artifact_ids": [format!("a{}", seq - 1)], "verification": {"mechanical": "pass"}}),
            ),
            Said::Failed { code, critical } => {
                ("task.failed", json!({"code": code, "message": "it failed", "critical": critical}))
            }
            Said::Cancelled => ("task.cancelled", json!({"reason": "not needed"})),
        };
        let (category, terminal) = kind.parse::<Kind>().unwrap().state().unwrap();
        let event = json!({
            "wire": "1.1", "wire_id": format!("wire_r{:010}", self.done.len()), "type": kind,
            "ts": self.clock.read().to_string(), "sender": format!("agent:{agent}"), "payload": payload,
            "state": {"category": category.as_str(), "terminal": terminal},
            "stream": {"stream_id": stream_id, "stream_seq": seq + 1, "context_id": context, "correlation_id": context},
        });
        self.note(format!("{agent} reports {step:?} of {id} for the {side:?}"));
        let event = SentEvent::parse(&event.to_string()).unwrap();
        let now = self.now();
        let found = self.engine.report_and_wait(Report { handoff_id: id.to_owned(), event, side }).unwrap();
        let expected = self.model.report(id, agent, side == Side::Source, step, now);
        self.model.tick(now);
        *self.tally.entry("reports taken").or_default() += usize::from(expected);
        if found.is_ok() != expected {
            self.note(format!("{found:?}"));
        }
        self.same(found.is_ok(), expected);
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
        "rollbacks",
        "reports taken",
    ] {
        assert!(tally.get(what).is_some_and(|times| *times >= 5), "{what}: {tally:?}");
    }
    eprintln!("{histories} histories: {tally:?}");
}
