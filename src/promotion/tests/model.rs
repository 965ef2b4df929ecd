//! Promotion explored exhaustively: everything that can happen to a route, in every order, beside a model that is a
//! handful of flags and knows nothing of sequences, digests or epochs.
//!
//! Worlds that cannot be told apart by anything that happens later are explored once, so that every path to the depth
//! is covered. It starts at several places on the way to live, because from the beginning live is ten steps away.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;
use crate::contract::Mode;

/// Routing tables: `a` differs from `A` in what the gates do not depend on, `B` in its primary.
fn table(letter: char) -> Route {
    route_of(&match letter {
        'A' => worker(),
        'a' => with(worker(), json!({"fallbackAgentId": "other", "stage": "simulated"})),
        _ => with(worker(), json!({"primaryAgentId": "other", "stage": "simulated"})),
    })
}

fn is_declared_simulated(letter: char) -> bool {
    letter != 'A'
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Load(Option<char>),
    /// A handoff passes the contract checks.
    Contract,
    /// A simulated handoff ends well, or with a policy code.
    Completes,
    Violates,
    /// Evidence is attached by an operator, or by the target itself.
    Attach,
    AttachOwn,
    /// The slow checks of a gate begin; they end well, or the primary is silent.
    Begin(PromotionGate),
    BeginSilent,
    /// Their answer is recorded.
    Record,
    LiveBegins,
    LiveCompletes,
    LiveFails,
    RollBack {
        block: bool,
    },
    LiftBlock,
    LiftPin,
}

pub(super) const ACTS: [Act; 22] = [
    Act::Load(Some('A')),
    Act::Load(Some('a')),
    Act::Load(Some('B')),
    Act::Load(None),
    Act::Contract,
    Act::Completes,
    Act::Violates,
    Act::Attach,
    Act::AttachOwn,
    Act::Begin(PromotionGate::G0),
    Act::Begin(PromotionGate::G1),
    Act::Begin(PromotionGate::G2),
    Act::Begin(PromotionGate::G3),
    Act::Begin(PromotionGate::G4),
    Act::BeginSilent,
    Act::Record,
    Act::LiveBegins,
    Act::LiveCompletes,
    Act::LiveFails,
    Act::RollBack { block: true },
    Act::RollBack { block: false },
    Act::LiftBlock,
];

/// What a route is, in flags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Model {
    letter: Option<char>,
    previous: Option<char>,
    pin: Option<char>,
    blocked: bool,
    /// How many gates are earned, in order.
    earned: usize,
    simulated: bool,
    live: bool,
    /// In canary: how many ended well, and whether the slot is taken.
    canary: Option<(u64, bool)>,
    contract: bool,
    completed: bool,
    violated: bool,
    run: bool,
    attached: bool,
    attached_own: bool,
    /// A gate that is being evaluated: which, whether it will pass, for which table, whether something came in between.
    begun: Option<(PromotionGate, bool, Option<char>, bool)>,
}

impl Model {
    fn stage(&self) -> Stage {
        match (self.live, self.simulated) {
            (true, _) => Stage::Live,
            (false, true) => Stage::Simulated,
            (false, false) => Stage::Dev,
        }
    }

    fn allows(&self, mode: Mode) -> bool {
        let open = self.letter.is_some() && !self.blocked;
        open && match mode {
            Mode::Dev => true,
            Mode::Simulated => self.simulated || self.live,
            Mode::Live => self.live && self.earned == 5 && self.canary.is_none_or(|(_, held)| !held),
        }
    }

    fn something_came_in_between(&mut self) {
        if let Some((.., stale)) = &mut self.begun {
            *stale = true;
        }
    }

    fn starts_again(&mut self) {
        self.earned = 0;
        (self.simulated, self.live, self.canary) = (false, false, None);
        (self.contract, self.attached, self.attached_own) = (false, false, false);
        self.something_came_in_between();
    }

    /// Simulated work needs G1 or a declaration.
    fn settle(&mut self) {
        if self.earned < 2 && !self.letter.is_some_and(is_declared_simulated) {
            self.simulated = false;
        }
    }

    fn load(&mut self, table: Option<char>) {
        let wanted = table.map(|letter| self.pin.unwrap_or(letter));
        match (self.letter, wanted) {
            (None, None) => {}
            (Some(letter), None) => {
                self.starts_again();
                self.letter = None;
                if self.pin.is_none() {
                    self.previous = Some(letter);
                }
            }
            (None, Some(new)) => {
                self.letter = Some(new);
                self.contract = false;
                self.simulated = is_declared_simulated(new);
                self.previous = self.previous.filter(|previous| *previous != new);
            }
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                if old.eq_ignore_ascii_case(&new) {
                    self.simulated |= is_declared_simulated(new);
                } else {
                    self.starts_again();
                }
                (self.letter, self.previous) = (Some(new), Some(old));
                self.settle();
            }
        }
    }

    /// Would a gate that is asked for now pass? Nothing if it is not its turn.
    fn passes(&self, gate: PromotionGate) -> Option<bool> {
        let turn = self.letter.is_some() && !self.blocked && !self.live && gate as usize <= self.earned;
        turn.then_some(match gate {
            PromotionGate::G0 => self.contract,
            PromotionGate::G1 | PromotionGate::G4 => true,
            PromotionGate::G2 => self.completed && !self.violated,
            PromotionGate::G3 => self.run && self.attached,
        })
    }

    fn decided(&mut self, gate: PromotionGate, passed: bool) {
        let at = gate as usize;
        self.earned = if passed { at + 1 } else { self.earned.min(at) };
        if passed && gate <= PromotionGate::G1 {
            (self.attached, self.attached_own) = (false, false);
        }
        if passed && gate == PromotionGate::G1 {
            self.simulated = true;
            (self.completed, self.violated, self.run) = (false, false, false);
        }
        if passed && gate == PromotionGate::G4 {
            (self.live, self.canary) = (true, Some((0, false)));
        }
        self.settle();
    }

    fn roll_back(&mut self, block: bool) {
        self.something_came_in_between();
        self.blocked |= block;
        self.earned = self.earned.min(3);
        (self.live, self.canary) = (false, None);
        (self.run, self.attached, self.attached_own) = (false, false, false);
        if let (Some(letter), None, Some(previous)) = (self.letter, self.pin, self.previous) {
            (self.pin, self.previous, self.letter) = (Some(previous), None, Some(previous));
            if !letter.eq_ignore_ascii_case(&previous) {
                self.starts_again();
            }
            self.settle();
        }
    }
}

/// A route, the views beside it, and the model.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    pub(super) stream: Stream,
    model: Model,
    begun: Option<GateAnswer>,
    contract: u64,
    completed: u64,
    violated: u64,
    path: Vec<Act>,
}

const RUNS: u64 = 2;

impl World {
    pub(super) fn reached(acts: &[Act]) -> Self {
        let mut world = Self::default();
        for act in acts {
            assert!(world.act(*act), "{act:?} cannot happen after {:?}", world.path);
        }
        world
    }

    /// Lets something happen; whether it could.
    pub(super) fn act(&mut self, act: Act) -> bool {
        self.path.push(act);
        let stream = &mut self.stream;
        let model = &mut self.model;
        match act {
            Act::Load(letter) => {
                let change = stream.load(letter.map(table).as_ref());
                model.load(letter);
                return change.is_some();
            }
            Act::Contract => {
                if model.contract {
                    return false;
                }
                self.contract = stream.elsewhere();
                model.contract = model.letter.is_some();
            }
            Act::Completes | Act::Violates => {
                if !model.allows(Mode::Simulated) {
                    return false;
                }
                let accepted = stream.elsewhere();
                if act == Act::Completes {
                    self.completed = accepted;
                    (model.completed, model.run) = (true, true);
                } else {
                    self.violated = accepted;
                    model.violated = true;
                }
                stream.elsewhere();
            }
            Act::Attach | Act::AttachOwn => {
                let (sender, known) = match act {
                    Act::Attach => ("human:rita", &mut model.attached),
                    _ => ("human:worker", &mut model.attached_own),
                };
                if *known || model.letter.is_none() {
                    return false;
                }
                *known = true;
                stream.attach(sender, "hs_run_0001");
            }
            Act::Begin(gate) => return self.begin(gate, true),
            Act::BeginSilent => return self.begin(PromotionGate::G1, false),
            Act::Record => return self.record(),
            Act::LiveBegins => {
                if mode_allowed(&stream.record, Mode::Live).is_err() {
                    return false;
                }
                let event = take_slot(&stream.record, "hs_live_0001");
                assert_eq!(event.is_some(), model.canary.is_some());
                stream.write("system", event);
                model.canary = model.canary.map(|(done, _)| (done, true));
            }
            Act::LiveCompletes => {
                let events = end_canary(&stream.record, "hs_live_0001", CanaryEnd::Completed);
                let Some((done, true)) = model.canary else {
                    assert!(events.is_empty());
                    return false;
                };
                stream.write("system", events);
                model.canary = (done + 1 < RUNS).then_some((done + 1, false));
            }
            Act::LiveFails => return self.live_fails(),
            Act::RollBack { block } => {
                stream.roll_back(Some(block), &[]);
                model.roll_back(block);
            }
            Act::LiftBlock | Act::LiftPin => {
                let (what, lifted) = match act {
                    Act::LiftBlock => (Lift::Block, std::mem::take(&mut model.blocked)),
                    _ => (Lift::Pin, model.pin.take().is_some()),
                };
                if !lifted {
                    return false;
                }
                stream.write("human:rita", [PhaseEvent::Lifted { what, reason: "repaired".into() }]);
            }
        }
        true
    }

    fn begin(&mut self, gate: PromotionGate, answers: bool) -> bool {
        let Self { stream, model, .. } = self;
        let codes = vec![];
        let contract = [ContractDecision { handoff_id: "hs_c".into(), sequence: self.contract, codes }];
        let primary =
            if answers { Probe::Answered { status: 200 } } else { Probe::Silent { why: "x".into() } };
        let probes = Probes { primary, fallback: Probe::NotConfigured };
        let ended = |accepted: u64, end| SimulatedOutcome {
            handoff_id: "hs_run_0001".into(),
            accepted,
            ended: accepted + 1,
            end,
        };
        let outcomes = [
            ended(self.completed, SimulatedEnd::Completed { side_effects: vec![] }),
            ended(self.violated, SimulatedEnd::Failed { code: "POLICY_RISK".into() }),
        ];
        let run = [E2eHandoff {
            handoff_id: "hs_run_0001".into(),
            mode: Some(Mode::Simulated),
            completed: (self.completed > 0).then_some(self.completed + 1),
            source_agent: "router".into(),
            target_agent: "worker".into(),
            claimed_by: None,
            e2e_actor: "human".into(),
            plan_ref: None,
        }];
        let plan = Ok(Plan { plan_ref: "plans/back.md".into(), form: PlanForm::Document });
        let names = AgentNames::default();
        let findings = match gate {
            PromotionGate::G0 => Findings::Contract(&contract),
            PromotionGate::G1 => Findings::Routing(&probes),
            PromotionGate::G2 => Findings::Simulation(Simulation { needed: 1, outcomes: &outcomes }),
            PromotionGate::G3 => Findings::E2e { handoffs: &run, names: &names },
            PromotionGate::G4 => Findings::Live { operator: RITA, names: &names, plan: &plan },
        };
        let expected = model.passes(gate).map(|passed| passed && answers);
        let answer = evaluate(&stream.record, &findings).ok();
        assert_eq!(answer.as_ref().map(|answer| answer.outcome.passed), expected, "{gate} {:?}", self.path);
        let Some((answer, passed)) = answer.zip(expected) else { return false };
        model.begun = Some((gate, passed, model.letter, false));
        self.begun = Some(answer);
        true
    }

    fn record(&mut self) -> bool {
        let (Some(answer), Some((gate, passed, letter, stale))) =
            (self.begun.take(), self.model.begun.take())
        else {
            return false;
        };
        let events = record_gate(&self.stream.record, &answer, RUNS);
        // Rollback wins, and so does everything else that came in between.
        assert_eq!(events.is_err(), stale || letter != self.model.letter, "{events:?} {:?}", self.path);
        if let Ok(events) = events {
            self.stream.write("human:rita", events);
            self.model.decided(gate, passed);
        }
        true
    }

    fn live_fails(&mut self) -> bool {
        let Self { stream, model, .. } = self;
        let end = LiveEnd::Failed { code: "EXECUTION_TIMEOUT", critical: true };
        let agent = stream.record.route().map(|route| route.primary_agent_id.clone());
        let agent = agent.as_deref();
        let outcome = LiveOutcome { handoff_id: "hs_live_0001", mode: Mode::Live, agent, end };
        let trigger = calls_for_rollback(&AutomaticRollback::default(), &stream.record, &outcome);
        assert_eq!(trigger.is_some(), model.live);
        let Some(trigger) = trigger else { return false };
        let ended = end_canary(&stream.record, "hs_live_0001", CanaryEnd::Failed { code: None });
        stream.write("system", ended);
        let plan = plan_rollback(&stream.record, &trigger.ask(), &["hs_live_0001".to_owned()]);
        stream.write("system", plan.events());
        model.roll_back(true);
        true
    }

    /// What must be true in every world.
    pub(super) fn check(&self) {
        let (record, model, path) = (&self.stream.record, &self.model, &self.path);
        assert_eq!(record.stage, model.stage(), "{path:?}");
        assert_eq!((record.blocked, record.passes.len()), (model.blocked, model.earned), "{path:?}");
        for mode in [Mode::Dev, Mode::Simulated, Mode::Live] {
            assert_eq!(mode_allowed(record, mode).is_ok(), model.allows(mode), "{mode:?} {path:?}");
        }
        // Gates were passed in order, each since the definition, the last two since the last rollback.
        let since = record.declared.as_ref().map_or(0, |declared| declared.since);
        let passes: Vec<u64> = record.passes.values().map(|pass| pass.sequence).collect();
        assert!(passes.is_sorted() && passes.iter().all(|sequence| *sequence > since), "{path:?}");
        let rollback = record.last_rollback.as_ref().map_or(0, |rollback| rollback.sequence);
        assert!(passes.iter().skip(3).all(|sequence| *sequence > rollback), "{path:?}");
        assert_eq!(record.stage == Stage::Live, record.next_gate().is_none(), "{path:?}");
    }

    /// Replaying the events gives the same record.
    pub(super) fn check_replay(&self) {
        assert_eq!(self.stream.replayed(), self.stream.record, "{:?}", self.path);
    }

    /// All that the future depends on: the model, the record but for its numbers, and on which side of the windows that
    /// gates look through each number lies. Numbers to come lie behind all of them.
    fn key(&self) -> u64 {
        let record = &self.stream.record;
        let since = record.declared.as_ref().map(|declared| declared.since);
        let (simulation, e2e) = (record.simulation_window(), record.e2e_window());
        let mut hasher = DefaultHasher::new();
        let within = [
            Some(self.contract) > since,
            Some(self.completed) > simulation,
            Some(self.violated) > simulation,
            Some(self.completed) > e2e,
            self.begun.as_ref().is_some_and(|answer| answer.passes_changed == record.passes_changed),
            self.begun.as_ref().is_some_and(|answer| answer.epoch == record.epoch),
        ];
        within.hash(&mut hasher);
        let definitions =
            [record.definition(), record.previous.as_ref(), record.pin.as_ref().map(|pin| &pin.definition)];
        // Enough to tell the tables apart, and much cheaper than a digest.
        let names = |definition: &Definition| {
            (definition.route.primary_agent_id.clone(), definition.route.fallback_agent_id.clone())
        };
        definitions.map(|definition| definition.map(names)).hash(&mut hasher);
        self.begun
            .as_ref()
            .map(|answer| (answer.gate, answer.outcome.passed, answer.definition))
            .hash(&mut hasher);
        let evidence = record
            .evidence
            .iter()
            .map(|evidence| (format!("{:?}", evidence.by), Some(evidence.sequence) > e2e));
        evidence.collect::<Vec<_>>().hash(&mut hasher);
        record.passes.keys().collect::<Vec<_>>().hash(&mut hasher);
        let canary = record.canary.as_ref().map(|canary| (canary.done, canary.holder.is_some()));
        (record.stage, canary, record.blocked, record.status, &self.model).hash(&mut hasher);
        hasher.finish()
    }
}

/// Everything within so many steps; how many worlds there were, and whether one of them took live work.
fn explore(start: World, depth: usize) -> (usize, bool) {
    let (mut known, mut found_live) = (HashSet::from([start.key()]), false);
    let mut worlds = vec![start];
    for _ in 0..depth {
        let mut next = Vec::new();
        for world in &worlds {
            for act in ACTS.into_iter().chain([Act::LiftPin]) {
                let mut after = world.clone();
                if after.act(act) && known.insert(after.key()) {
                    after.check();
                    // Taking entries is a function of the record and the entry, so one in a few shows it for all.
                    if known.len() % 8 == 0 {
                        after.check_replay();
                    }
                    found_live |= after.model.allows(Mode::Live);
                    next.push(after);
                }
            }
        }
        worlds = next;
    }
    (known.len(), found_live)
}

pub(super) fn to_gate(gate: PromotionGate) -> Vec<Act> {
    let mut acts = vec![Act::Load(Some('A'))];
    for (before, gate) in [
        (vec![Act::Contract], PromotionGate::G0),
        (vec![], PromotionGate::G1),
        (vec![Act::Completes], PromotionGate::G2),
        (vec![Act::Attach], PromotionGate::G3),
        (vec![], PromotionGate::G4),
    ]
    .into_iter()
    .filter(|(_, one)| *one <= gate)
    {
        acts.extend(before);
        acts.extend([Act::Begin(gate), Act::Record]);
    }
    acts
}

/// How far is explored in everyday runs, and in long ones.
fn depth() -> usize {
    if std::env::var_os("LONG").is_some() { 11 } else { 8 }
}

fn check(start: &[Act], least_worlds: usize, reaches_live: bool) {
    let (worlds, live) = explore(World::reached(start), depth());
    assert!(worlds > least_worlds, "{worlds}");
    assert_eq!(live, reaches_live);
}

#[test]
fn from_the_beginning_no_path_breaks_a_promise() {
    check(&[], 1_000, false);
}

#[test]
fn from_simulated_no_path_breaks_a_promise() {
    check(&to_gate(PromotionGate::G1), 1_000, true);
}

#[test]
fn in_canary_no_path_breaks_a_promise() {
    check(&to_gate(PromotionGate::G4), 1_000, true);
}

#[test]
fn after_a_rollback_to_another_definition_no_path_breaks_a_promise() {
    let mut acts = to_gate(PromotionGate::G2);
    acts.extend([Act::Load(Some('a')), Act::RollBack { block: true }, Act::LiftBlock]);
    check(&acts, 1_000, true);
}
