//! What people decide, in ledger order and after restarts: a route on its way to live, and approvals.

mod granted;
mod redefined;
mod routes;

use super::remembering::forgetful;
use super::*;
use crate::authorization::{Answer, ApprovalAsk, ApprovalFault};
use crate::contract::Mode;
use crate::freeze::{FreezeAsk, FreezeScope};
use crate::mentions::{Phase, PhaseAsk};
use crate::policy::Route;
use crate::promotion::{
    Attached, ContractDecision, E2eHandoff, Findings, Lift, Operator, Probe, Probes, ROLLED_BACK,
    RollbackAsk, RollbackBy, RouteRecord, SimulatedEnd, SimulatedOutcome, Simulation, Stage, Voucher,
    evaluate, read_plan,
};
use crate::proof::{Key, Purpose, Secret};
use crate::wire::{SentEvent, Side, State};

/// Nothing, a restart, and one after which only the views know what was decided.
const RESTARTS: [fn(&mut Scene); 3] = [|_| {}, Scene::restart, Scene::restart_forgetful];

const ROUTE: &str = "crypto-sage.execution-plane.v1";

/// The shipped set, with a route that can be probed and signs nothing.
fn rules(change: impl FnOnce(&mut Route)) -> Arc<InForce> {
    let set = policies();
    let mut route = set.route(ROUTE).unwrap().clone();
    route.probe_url = Some("http://127.0.0.1:1/".to_owned());
    route.signing_key_id = None;
    route.require_signature = Some(false);
    change(&mut route);
    let set = set.with_routes([(ROUTE.to_owned(), route)].into_iter());
    in_force(Arc::new(set), Keyring::default())
}

struct Scene {
    directory: tempfile::TempDir,
    world: TestWorld,
    engine: EngineHandle,
    rules: Arc<InForce>,
}

fn rita() -> Asking {
    Asking::person_of("rita", None)
}

/// What rita asks for when she sets a route back.
fn rollback(block: Option<bool>) -> RollbackAsk {
    let by = RollbackBy::Operator("rita".into());
    RollbackAsk { by, block, reason: "no".into(), code: None, handoff_id: None }
}

impl Scene {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Route)) -> Self {
        let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
        let engine = start(&directory.path().join("ledger"), &world);
        let rules = rules(change);
        engine.put_in_force_and_wait(rules.clone()).unwrap();
        Self { directory, world, engine, rules }
    }

    fn ledger(&self) -> std::path::PathBuf {
        self.directory.path().join("ledger")
    }

    /// What was decided, claimed and recorded is there after a restart.
    fn restart(&mut self) {
        self.restart_as(|scene| start(&scene.ledger(), &scene.world));
    }

    /// The same where all of it has left memory, and only the views know it.
    fn restart_forgetful(&mut self) {
        self.restart_as(|scene| forgetful(scene.directory.path(), &scene.world, &Arc::default()));
    }

    fn restart_as(&mut self, start: impl FnOnce(&Self) -> EngineHandle) {
        let (routes, inbox) = (self.engine.routes(), self.engine.inbox());
        let (grants, freezes) = (self.engine.grants(), self.engine.freezes());
        self.engine.stop();
        self.engine = start(self);
        self.engine.put_in_force_and_wait(self.rules.clone()).unwrap();
        assert_eq!(self.engine.routes(), routes);
        assert_eq!(self.engine.inbox().count(), inbox.count());
        assert_eq!((self.engine.grants(), self.engine.freezes()), (grants, freezes));
    }

    fn put(&mut self, policies: &Arc<PolicySet>, keyring: Keyring) {
        self.put_all(policies.clone(), Arc::new(keyring));
    }

    fn put_all(&mut self, policies: Arc<PolicySet>, keyring: Arc<Keyring>) {
        self.rules = Arc::new(InForce::of_files(policies, keyring, Vec::new()));
        self.engine.put_in_force_and_wait(self.rules.clone()).unwrap();
    }

    /// Goes live, and takes what the principal of the shipped examples signed.
    fn take_mentions(&mut self) {
        let mut ring = Keyring::default();
        let secret = Secret::from_file_bytes(include_bytes!("../../../docs/examples/demo.key").to_vec());
        ring.add(Key::hmac("demo-user-main-1", "user:main", Purpose::Envelope, secret).unwrap()).unwrap();
        self.put(&self.rules.policies.clone(), ring);
        self.go_live();
        for phase in [Phase::GatedRead, Phase::GatedLive] {
            self.engine.move_phase(PhaseAsk { phase, reason: "tried it".into() }, rita()).unwrap().unwrap();
        }
    }

    fn record(&self) -> RouteRecord {
        self.engine.route(ROUTE).unwrap()
    }

    /// Passes the gates with findings that could not be better.
    fn go_live(&self) {
        let after = self.engine.head();
        let decision =
            ContractDecision { handoff_id: "hs_contract".into(), sequence: after + 1, codes: Vec::new() };
        self.pass(&Findings::Contract(&[decision]));
        let answered = || Probe::Answered { status: 200 };
        self.pass(&Findings::Routing(&Probes { primary: answered(), fallback: answered() }));
        let after = self.engine.head();
        let outcome = |n: u64| SimulatedOutcome {
            handoff_id: format!("hs_simulated_{n}"),
            accepted: after + n,
            ended: after + n,
            end: SimulatedEnd::Completed { side_effects: Vec::new() },
        };
        let outcomes = [outcome(1), outcome(2), outcome(3)];
        self.pass(&Findings::Simulation(Simulation { needed: 3, outcomes: &outcomes }));
        let attached = Attached { run_id: Some("run-1".into()), ..Attached::default() };
        let evidence = ("hs_e2e_0001".to_owned(), attached, Voucher::default());
        self.engine.attach_evidence(ROUTE.into(), evidence, rita()).unwrap().unwrap();
        let run = E2eHandoff {
            handoff_id: "hs_e2e_0001".into(),
            mode: Some(Mode::Simulated),
            completed: Some(self.engine.head()),
            source_agent: "decision-router".into(),
            target_agent: "crypto-sage".into(),
            claimed_by: Some("crypto-sage".into()),
            e2e_actor: "human".into(),
            plan_ref: None,
        };
        let names = self.rules.policies.names();
        self.pass(&Findings::E2e { handoffs: &[run], names });
        let plan = read_plan(self.rules.policies.references(), self.record().plan_ref());
        let operator = Some(Operator { name: "rita", principal: None });
        self.pass(&Findings::Live { operator, names, plan: &plan });
        assert_eq!(self.record().stage, Stage::Live);
    }

    fn pass(&self, findings: &Findings<'_>) {
        let answer = evaluate(&self.record(), findings).unwrap();
        assert!(answer.outcome.passed, "{:?}", answer.outcome);
        self.engine.decide_gate(ROUTE.into(), answer, self.engine.head(), rita()).unwrap().unwrap();
    }

    fn spec(&self, n: usize) -> Json {
        let mut spec = handoff(&format!("hs_{n:08}"), &format!("key-{n:08}"));
        spec["mode"] = json!("live");
        spec
    }

    fn submit(&self, spec: &Json) -> Arc<Decided> {
        let InForce { policies, keyring, .. } = &*self.rules;
        let asker = Asker::Agent("decision-router".into());
        let ruling = Ruling { policies: policies.clone(), keyring: keyring.clone(), asker };
        let candidate = Candidate::judge(spec.to_string().into(), ruling, self.world.now()).unwrap();
        self.engine.submit_and_wait(candidate).unwrap()
    }

    fn answer(&self, spec: &Json, answer: Answer, by: Asking) -> Result<Arc<Decided>, Unanswered> {
        let handoff_id = spec["handoffId"].as_str().unwrap().to_owned();
        let ask = ApprovalAsk { answer, reason: "looked at it".into() };
        // The body that is kept beside the ledger is the canonical one.
        let task_spec = String::from_utf8(crate::proof::canonical_json(spec)).unwrap();
        self.engine.answer(Answering { handoff_id, ask, task_spec: task_spec.into(), by }).unwrap()
    }

    fn approve(&self, spec: &Json, by: Asking) -> Result<Arc<Decided>, Unanswered> {
        self.answer(spec, Answer::Approve, by)
    }

    /// A live handoff that was approved.
    fn live(&self, n: usize) -> Json {
        let spec = self.spec(n);
        let asked = self.submit(&spec);
        assert_eq!(asked.decision, Decision::NeedsApproval, "{:?}", asked.reasons);
        assert_eq!(self.approve(&spec, rita()).unwrap().decision, Decision::Allowed);
        spec
    }

    fn report(&self, spec: &Json, seq: u64, kind: &str, payload: Json) -> Result<Reported, ReportRefusal> {
        self.report_as("agent:crypto-sage", spec, seq, kind, payload)
    }

    fn report_as(
        &self,
        sender: &str,
        spec: &Json,
        seq: u64,
        kind: &str,
        payload: Json,
    ) -> Result<Reported, ReportRefusal> {
        let id = spec["handoffId"].as_str().unwrap();
        let (category, terminal) = kind.parse::<crate::wire::Kind>().unwrap().state().unwrap();
        let event = json!({
            "wire": "1.1", "wire_id": format!("wire_{}{seq:08}", id.replace('_', "")), "type": kind,
            "ts": "2026-02-18T19:38:05Z", "sender": sender, "payload": payload,
            "state": {"category": category.as_str(), "terminal": terminal},
            "stream": {"stream_id": format!("task:{id}:attempt:1"), "stream_seq": seq,
                "context_id": "corr_strategy_cycle_9001", "correlation_id": "corr_strategy_cycle_9001"},
        });
        let event = SentEvent::parse(&event.to_string()).unwrap();
        let side = if sender == "agent:crypto-sage" { Side::Target } else { Side::Source };
        self.engine.report_and_wait(Report { handoff_id: id.to_owned(), event, side }).unwrap()
    }

    fn works_on(&self, spec: &Json) -> u64 {
        // Its own three, the yes, the second decision and that it is available.
        self.report(spec, 7, "task.claimed", json!({})).unwrap();
        self.report(spec, 8, "task.started", json!({})).unwrap();
        9
    }

    fn completes(&self, spec: &Json) {
        let next = self.works_on(spec);
        let artifact = json!({"artifact_id": "a", "uri": "s3://a", "version": 1, "hash": format!("sha256:{}", "0".repeat(64))});
        self.report(spec, next, "artifact.ready", artifact).unwrap();
        let done = json!({"artifact_ids": ["a"], "verification": {"mechanical": "pass"}});
        assert_eq!(self.report(spec, next + 1, "task.complete", done).unwrap().state, State::Completed);
    }

    fn fails(&self, spec: &Json, code: &str) {
        let next = self.works_on(spec);
        self.report(spec, next, "task.failed", json!({"code": code, "message": "x"})).unwrap();
    }
}

#[track_caller]
fn refused_with(decided: &Decided, code: Code) {
    assert_eq!((decided.decision, codes(decided)), (Decision::Denied, vec![code]));
}

#[test]
fn a_live_handoff_waits_for_a_person_who_has_no_part_in_it() {
    let mut scene = Scene::new();
    scene.go_live();
    let spec = scene.spec(1);
    let asked = scene.submit(&spec);
    let Pass::Waits { until } = asked.pass else { panic!("{asked:?}") };
    assert_eq!(asked.decision, Decision::NeedsApproval);
    scene.restart();
    // Sent again it waits still, and nobody is asked twice.
    assert_eq!((scene.submit(&spec).pass, scene.engine.inbox().count()), (Pass::Waits { until }, 1));

    let fault = |by: Asking| match scene.approve(&spec, by) {
        Err(Unanswered::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    };
    assert_eq!(fault(Asking::token("admin")), ApprovalFault::NotHuman);
    assert_eq!(fault(Asking::harness("ci")), ApprovalFault::NotHuman);
    // The target by its own name, and by the alias that its route has for it.
    for own in ["decision-router", "crypto-sage", "blockchain-operator"] {
        assert!(matches!(fault(Asking::person_of(own, None)), ApprovalFault::Own { .. }), "{own}");
        assert!(matches!(fault(Asking::person_of("ann", Some(own))), ApprovalFault::Own { .. }), "{own}");
    }
    // Another TaskSpec is not what was asked about, and the question stands.
    let mut other = spec.clone();
    other["intent"]["input"]["amount"] = json!("250");
    assert_eq!(scene.approve(&other, rita()), Err(Unanswered::OtherTaskSpec));

    let allowed = scene.approve(&spec, rita()).unwrap();
    assert_eq!((allowed.decision, allowed.replayed), (Decision::Allowed, false));
    assert!(matches!(allowed.pass, Pass::Dispatch { .. }) && allowed.tag.is_some());
    assert!(allowed.ledger.sequence > asked.ledger.sequence);
    assert!(matches!(fault(rita()), ApprovalFault::NotWaiting { .. }));
    scene.restart();
    let again = scene.submit(&spec);
    assert_eq!((again.decision, again.replayed), (Decision::Allowed, true));
    assert_eq!(again.ledger, allowed.ledger);
    // What was approved cannot be changed: the id and the key stand for the original.
    assert_eq!(scene.submit(&other).decision, Decision::Denied);
    scene.engine.stop();
}

#[test]
fn a_no_and_silence_end_it() {
    let mut scene = Scene::new();
    scene.go_live();
    let (no, silence) = (scene.spec(1), scene.spec(2));
    scene.submit(&no);
    scene.submit(&silence);
    // Saying no only stops work, so anybody who is a person may.
    let rejected = scene.answer(&no, Answer::Reject, Asking::person_of("crypto-sage", None)).unwrap();
    refused_with(&rejected, Code::ApprovalRejected);
    scene.restart();
    let again = scene.submit(&no);
    assert!(again.replayed && !again.reasons[0].message.is_empty() && !again.reasons[0].hint.is_empty());
    refused_with(&again, Code::ApprovalRejected);

    // The ledger's time is a little ahead of the clock, and so is what it counts from.
    scene.world.at(15 * 60 + 1);
    let late = scene.approve(&silence, rita());
    assert!(matches!(
        late,
        Err(Unanswered::Fault(ApprovalFault::Expired { .. } | ApprovalFault::NotWaiting { .. }))
    ));
    eventually(|| scene.engine.inbox().count() == 0);
    assert_eq!(scene.submit(&silence).decision, Decision::Expired);
    scene.restart();
    let again = scene.submit(&silence);
    assert_eq!((again.decision, codes(&again)), (Decision::Expired, vec![Code::ApprovalExpired]));
    scene.engine.stop();
}

/// Whoever sends the id of a handoff that waits is refused, and that refusal is about them.
#[test]
fn a_refusal_under_the_same_id_takes_nothing_from_what_waits() {
    let mut scene = Scene::new();
    scene.go_live();
    let spec = scene.spec(1);
    let Pass::Waits { until } = scene.submit(&spec).pass else { panic!("it waits") };
    let mut other = spec.clone();
    other["audit"]["idempotencyKey"] = json!("key-of-another");
    other["intent"]["summary"] = json!("something else");
    for restarts in [false, true] {
        refused_with(&scene.submit(&other), Code::HandoffReused);
        assert_eq!(scene.submit(&spec).pass, Pass::Waits { until });
        if restarts {
            scene.restart();
            assert_eq!(scene.submit(&spec).pass, Pass::Waits { until }, "after a restart");
        }
    }
    assert_eq!(scene.approve(&spec, rita()).unwrap().decision, Decision::Allowed);
    assert_eq!(codes(&scene.submit(&other)), [Code::HandoffReused, Code::CanaryFull]);
    scene.restart();
    assert!(matches!(scene.submit(&spec).pass, Pass::Dispatch { .. }));
    scene.engine.stop();
}

#[test]
fn where_two_are_asked_two_different_people_must_say_yes() {
    let mut scene = Scene::with(|route| route.approvers = 2);
    scene.go_live();
    let spec = scene.spec(1);
    scene.submit(&spec);
    let ann = || Asking::person_of("ann", Some("user:ann"));
    assert_eq!(scene.approve(&spec, ann()).unwrap().decision, Decision::NeedsApproval);
    scene.restart();
    for same in [ann(), Asking::person_of("ann-at-night", Some("user:ann"))] {
        assert!(matches!(scene.approve(&spec, same), Err(Unanswered::Fault(ApprovalFault::Twice { .. }))));
    }
    assert_eq!(scene.approve(&spec, rita()).unwrap().decision, Decision::Allowed);
    scene.engine.stop();
}

/// How many must say yes is asked anew with each yes, like everything else; fewer than were asked are never enough.
#[test]
fn a_route_that_asks_for_two_by_now_gets_two() {
    let mut scene = Scene::new();
    scene.go_live();
    let (one, other) = (scene.spec(1), scene.spec(2));
    scene.submit(&one);
    let ask_for = |scene: &mut Scene, approvers| {
        let mut route = scene.rules.policies.route(ROUTE).unwrap().clone();
        route.approvers = approvers;
        let set = scene.rules.policies.with_routes([(ROUTE.to_owned(), route)].into_iter());
        scene.put(&Arc::new(set), Keyring::default());
    };
    ask_for(&mut scene, 2);
    assert_eq!(scene.approve(&one, rita()).unwrap().decision, Decision::NeedsApproval);
    assert_eq!(scene.engine.inbox().find("hs_00000001").unwrap().missing(), 1);
    scene.restart();
    assert!(matches!(scene.approve(&one, rita()), Err(Unanswered::Fault(ApprovalFault::Twice { .. }))));
    scene.submit(&other);
    ask_for(&mut scene, 1);
    let bo = || Asking::person_of("bo", None);
    assert_eq!(scene.approve(&other, bo()).unwrap().decision, Decision::NeedsApproval);
    assert_eq!(scene.approve(&one, bo()).unwrap().decision, Decision::Allowed);
    scene.engine.stop();
}

#[test]
fn a_yes_is_to_what_holds_now() {
    let scene = Scene::new();
    scene.go_live();
    let spec = scene.spec(1);
    scene.submit(&spec);
    let everything = || FreezeAsk { scope: FreezeScope::ALL, reason: "fire".into() };
    scene.engine.freeze(everything(), rita()).unwrap();
    let Err(Unanswered::Held(reasons)) = scene.approve(&spec, rita()) else { panic!("frozen") };
    assert_eq!(reasons[0].code, Code::Frozen);
    scene.engine.unfreeze(everything(), rita()).unwrap().unwrap();
    // The route is rolled back while it waits: then a yes allows nothing, and settles it.
    let ask = rollback(None);
    scene.engine.roll_back(ROUTE.into(), ask, false, rita()).unwrap().unwrap();
    refused_with(&scene.approve(&spec, rita()).unwrap(), Code::StageNotReached);
    scene.engine.stop();
}

/// What was in force when it was asked is not what counts when somebody says yes.
#[test]
fn a_yes_after_a_key_a_policy_or_the_time_has_gone_allows_nothing() {
    // The envelope does not cover the mode, so the shipped example can be made a live one.
    let mut spec: Json = serde_json::from_str(READ).unwrap();
    spec["mode"] = json!("live");
    spec["safety"]["requiresHumanApproval"] = json!(true);

    type Change = fn(&mut Scene);
    let changes: [(Change, &[Code]); 4] = [
        (|_| {}, &[]),
        (|scene| scene.put(&scene.rules.policies.clone(), Keyring::default()), &[Code::KeyUnknown]),
        (
            |scene| {
                let mut route = scene.rules.policies.route(ROUTE).unwrap().clone();
                route.aliases.clear();
                let narrowed = scene.rules.policies.with_routes([(ROUTE.to_owned(), route)].into_iter());
                let ring = scene.rules.keyring.clone();
                scene.put_all(Arc::new(narrowed), ring);
            },
            &[Code::RouteTargetMismatch],
        ),
        (|scene| scene.world.at(4 * 60), &[Code::ApprovalExpired]),
    ];
    for (change, expected) in changes {
        let mut scene = Scene::new();
        scene.take_mentions();
        let asked = scene.submit(&spec);
        assert_eq!(asked.decision, Decision::NeedsApproval, "{:?}", asked.reasons);
        change(&mut scene);
        let said = scene.approve(&spec, rita());
        if expected == [Code::ApprovalExpired] {
            eventually(|| scene.engine.inbox().count() == 0);
            assert_eq!(scene.submit(&spec).decision, Decision::Expired);
        } else {
            let decided = said.unwrap();
            assert_eq!(codes(&decided), expected);
            assert_eq!(decided.decision == Decision::Allowed, expected.is_empty());
        }
        scene.engine.stop();
    }
}

#[test]
fn what_a_fault_leaves_half_done_is_not_written_at_all() {
    let mut scene = Scene::new();
    let head = scene.engine.head();
    let half_done = scene.engine.ask_and_wait(|sequencer, batch| -> Result<(), EngineFault> {
        let set =
            crate::freeze::FreezeSet { mode: None, reason: "fire".into(), route_key: None, set_by: None };
        let rita = crate::wire::Sender::Human("rita");
        sequencer.note_own(crate::wire::Kind::FreezeSet, rita, batch, |payload| set.write(payload))?;
        assert!(sequencer.building().freezes.find(&FreezeScope::ALL).is_some());
        Err(EngineFault::NotDurable("in the middle".into()))
    });
    assert_eq!(half_done, Err(EngineFault::NotDurable("in the middle".into())));
    assert_eq!((scene.engine.head(), scene.engine.freezes().all().count()), (head, 0));
    let spec = handoff("hs_00000001", "key-00000001");
    assert_eq!(scene.submit(&spec).decision, Decision::Allowed);
    // The next event of the gateway's own stream has the number that was given back.
    scene.engine.freeze(FreezeAsk { scope: FreezeScope::ALL, reason: "fire".into() }, rita()).unwrap();
    scene.restart();
    scene.engine.stop();
}

/// A claim that is not asked does not pass, and one that can be asked in part is.
#[test]
fn claims_are_asked_with_what_can_be_read() {
    let scene = Scene::new();
    let outcome = |decided: &Decided, gate: Gate| {
        decided.gates.iter().find(|(other, _)| *other == gate).map(|(_, outcome)| *outcome).unwrap()
    };
    let numbered = std::cell::Cell::new(0);
    let submit = |change: fn(&mut Json)| {
        numbered.set(numbered.get() + 1);
        let id = format!("{:08}", numbered.get());
        let mut spec = handoff(&format!("hs_{id}"), &format!("key-{id}"));
        change(&mut spec);
        scene.submit(&spec)
    };
    let ask = |scope: &FreezeScope| FreezeAsk { scope: scope.clone(), reason: "fire".into() };
    let frozen = |scope: FreezeScope, change: fn(&mut Json)| {
        scene.engine.freeze(ask(&scope), rita()).unwrap();
        let decided = submit(change);
        scene.engine.unfreeze(ask(&scope), rita()).unwrap().unwrap();
        let is_told = codes(&decided).contains(&Code::Frozen);
        assert_eq!(is_told, outcome(&decided, Gate::Freeze) == Outcome::Fail, "{decided:?}");
        is_told
    };
    let odd_mode: fn(&mut Json) = |spec| spec["mode"] = json!("weird");
    let odd_route: fn(&mut Json) = |spec| spec["routing"]["routeKey"] = json!(7);
    assert!(frozen(FreezeScope::ALL, odd_mode) && frozen(FreezeScope::ALL, odd_route));
    assert!(frozen(FreezeScope::route(ROUTE), odd_mode));
    assert!(frozen(FreezeScope::mode(Mode::Simulated), odd_route));
    assert!(!frozen(FreezeScope::mode(Mode::Live), odd_route));
    // How far a route has come is asked where there is one, of a mode that there is.
    let unknown: fn(&mut Json) = |spec| spec["routing"]["routeKey"] = json!("nowhere.v1");
    for change in [odd_mode, odd_route, unknown] {
        assert_eq!(outcome(&submit(change), Gate::Stage), Outcome::NotApplicable);
    }
    assert_eq!(outcome(&submit(|_| {}), Gate::Stage), Outcome::Pass);
    // A block hides nothing of the stage, and needs no mode.
    let block = rollback(Some(true));
    scene.engine.roll_back(ROUTE.into(), block, false, rita()).unwrap().unwrap();
    let live = submit(|spec| spec["mode"] = json!("live"));
    assert_eq!(codes(&live), [Code::RouteBlocked, Code::StageNotReached]);
    assert_eq!((outcome(&live, Gate::Contract), outcome(&live, Gate::Stage)), (Outcome::Fail, Outcome::Fail));
    assert!(codes(&submit(odd_mode)).contains(&Code::RouteBlocked));
    scene.engine.stop();
}
