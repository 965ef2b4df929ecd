//! Claims that are no longer in memory: an engine that forgets answers like one that never does.

mod room;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;
use crate::views::{FollowedViews, Reader, Views, ViewsFault};
use room::{Tales, Told};

/// Applies what is durable to the views at once, unless it is told to hold it back.
struct Applying {
    views: Views,
    applied: Arc<AtomicU64>,
    held: Arc<AtomicBool>,
    waiting: Vec<Entry>,
}

impl Applying {
    fn apply(&mut self) {
        if !self.held.load(Ordering::Acquire) {
            self.views.apply(self.waiting.drain(..)).unwrap();
            self.applied.store(self.views.applied().map_or(0, |(sequence, _)| sequence), Ordering::Release);
        }
    }
}

impl Follower for Applying {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        self.waiting.extend_from_slice(entries);
        self.apply();
        None
    }
}

/// The file that `Applying` writes to.
struct Followed {
    file: PathBuf,
    applied: Arc<AtomicU64>,
    opening: Arc<AtomicU64>,
}

impl FollowedViews for Followed {
    fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    fn opening(&self) -> u64 {
        self.opening.load(Ordering::Acquire)
    }

    fn open(&self) -> Result<Reader, ViewsFault> {
        Reader::open(&self.file)
    }

    // Whoever asked is told, too, and a test looks at that.
    fn is_damaged(&self, _opening: u64, _why: &str) {}
}

/// An engine that keeps nothing in memory that the views have.
pub(super) fn forgetful(place: &Path, world: &TestWorld, held: &Arc<AtomicBool>) -> EngineHandle {
    let (ledger, file) = (place.join("ledger"), place.join("views.db"));
    let log = open(&ledger);
    let (last, head) = (log.last_timestamp(), log.head().sequence);
    let views = Views::open(&file, "gw_test").unwrap();
    let applied = Arc::new(AtomicU64::new(views.applied().map_or(0, |(sequence, _)| sequence)));
    let behind = || Entries::read(&ledger, applied.load(Ordering::Acquire) + 1, head).unwrap();
    let waiting = behind().map(Result::unwrap).collect();
    let history: Vec<_> =
        behind().map(|entry| entry.map_err(|fault| EngineFault::BadLedger(fault.to_string()))).collect();
    let followed = Followed { file, applied: applied.clone(), opening: Arc::default() };
    let source = crate::ledger::Source::files(&ledger);
    let past = ViewsPast::new(Box::new(followed), source, "gw_test").unwrap();
    let mut setup = Setup::new(Box::new(log), last, Box::new(world.clone()))
        .followed_by(Box::new(Applying { views, applied, held: held.clone(), waiting }))
        .remembered_by(Box::new(past));
    setup.claims_at_hand = 0;
    EngineHandle::start(setup, history.into_iter()).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Submit {
        id: u8,
        key: u8,
        cycle: u8,
        content: u8,
        source: u8,
        parent: Option<u8>,
        live: bool,
    },
    /// Time goes on; what was allowed may run out.
    Wait,
    Hold(bool),
    Restart,
    Rules(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let submit = (0..5u8, 0..5u8, 0..2u8, 0..2u8, 0..2u8, proptest::option::weighted(0.4, 0..5u8), 0..5u8);
    let submit = submit.prop_map(|(id, key, cycle, content, source, parent, live)| Step::Submit {
        id,
        key,
        cycle,
        content,
        source,
        parent,
        live: live == 0,
    });
    let step = prop_oneof![
        16 => submit,
        1 => Just(Step::Wait),
        2 => any::<bool>().prop_map(Step::Hold),
        2 => Just(Step::Restart),
        1 => any::<bool>().prop_map(Step::Rules),
    ];
    proptest::collection::vec(step, 1..40)
}

fn spec_of(step: &Step) -> Option<Json> {
    let Step::Submit { id, key, cycle, content, source, parent, live } = step else { return None };
    let mut spec = handoff(&format!("hs_{id:08}"), &format!("key-{key:08}"));
    let agents = ["crypto-sage", "crypto-sage-dr"];
    spec["source"]["agentId"] = json!(agents[usize::from(*source)]);
    spec["target"]["agentId"] = json!(agents[usize::from(1 - source)]);
    spec["correlationId"] = json!(format!("corr_{cycle:08}"));
    spec["intent"]["summary"] = json!(format!("content {content}"));
    if let Some(parent) = parent {
        spec["parentHandoffId"] = json!(format!("hs_{parent:08}"));
    }
    if *live {
        spec["mode"] = json!("live");
    }
    Some(spec)
}

fn key(id: &str) -> Keyring {
    let mut ring = Keyring::default();
    let secret = crate::proof::Secret::new(b"shared with the receiver".to_vec());
    ring.add(crate::proof::Key::hmac(id, "crypto-sage", crate::proof::Purpose::Dispatch, secret).unwrap())
        .unwrap();
    ring
}

fn dry(engine: &EngineHandle, candidate: Candidate) -> DryRun {
    engine.dry_run(candidate).unwrap()
}

/// More with LONG=1 in the environment.
fn cases() -> u32 {
    if std::env::var_os("LONG").is_some() { 256 } else { 12 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_engine_that_forgets_at_once_answers_like_one_that_never_does(steps in steps()) {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (own, forgetful_world) = (TestWorld::new(), TestWorld::new());
        let held = Arc::new(AtomicBool::new(false));
        let mut remembers = start(&one.path().join("ledger"), &own);
        let mut forgets = forgetful(other.path(), &forgetful_world, &held);
        let mut seconds = 0;
        for step in &steps {
            match step {
                Step::Wait => {
                    seconds += 200;
                    own.at(seconds);
                    forgetful_world.at(seconds);
                }
                Step::Hold(hold) => held.store(*hold, Ordering::Release),
                Step::Restart => {
                    remembers.stop();
                    forgets.stop();
                    remembers = start(&one.path().join("ledger"), &own);
                    forgets = forgetful(other.path(), &forgetful_world, &held);
                }
                Step::Rules(first) => {
                    let rules = in_force(policies(), key(if *first { "sage-1" } else { "sage-2" }));
                    remembers.put_in_force_and_wait(rules.clone()).unwrap();
                    forgets.put_in_force_and_wait(rules).unwrap();
                }
                Step::Submit { .. } => {
                    let spec = spec_of(step).unwrap();
                    let caller = spec["source"]["agentId"].as_str().unwrap();
                    let judged = |world: &TestWorld| candidate(&spec, caller, world);
                    prop_assert_eq!(
                        dry(&remembers, judged(&own)),
                        dry(&forgets, judged(&forgetful_world))
                    );
                    let first = remembers.submit_and_wait(judged(&own)).unwrap();
                    prop_assert_eq!(first, forgets.submit_and_wait(judged(&forgetful_world)).unwrap());
                }
            }
        }
        remembers.stop();
        forgets.stop();
        let entries = |place: &Path| -> Vec<Entry> {
            Entries::read(&place.join("ledger"), 1, u64::MAX).unwrap().map(Result::unwrap).collect()
        };
        prop_assert_eq!(entries(one.path()), entries(other.path()));
    }
}

/// Many at once, then a restart after which the views alone know of them: one winner each, then as now.
#[test]
fn claims_that_only_the_views_hold_have_one_winner_still() {
    let (place, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let held = Arc::new(AtomicBool::new(false));
    let (keys, copies) = (120, 3);
    let mut winners: HashMap<usize, Arc<Decided>> = HashMap::new();
    for round in 0..2 {
        let engine = forgetful(place.path(), &world, &held);
        let decided: Mutex<Vec<(usize, Arc<Decided>)>> = Mutex::default();
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let (engine, decided, world) = (engine.clone(), &decided, &world);
                scope.spawn(move || {
                    for n in (0..keys * copies).filter(|n| n % 16 == thread) {
                        let key = n / copies;
                        let mut spec = handoff(&format!("hs_race_{key:05}"), &format!("key-race-{key:05}"));
                        spec["intent"]["summary"] = json!(format!("copy {}", n % copies));
                        let answer =
                            engine.submit_and_wait(candidate(&spec, "decision-router", world)).unwrap();
                        decided.lock().unwrap().push((key, answer));
                    }
                });
            }
        });
        engine.stop();
        let mut accepted = 0;
        for (key, decided) in decided.into_inner().unwrap() {
            if decided.decision != Decision::Allowed {
                assert_eq!(codes(&decided), [Code::IdempotencyConflict, Code::HandoffReused]);
                continue;
            }
            accepted += 1;
            assert_eq!(decided.replayed, round > 0);
            let first = winners.entry(key).or_insert_with(|| decided.clone());
            assert_eq!(*decided, Decided { replayed: round > 0, ..(**first).clone() });
        }
        assert_eq!((accepted, winners.len()), (keys, keys), "round {round}");
    }
}

#[test]
fn a_past_that_cannot_be_read_is_a_fault_and_never_a_yes() {
    let (place, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let held = Arc::new(AtomicBool::new(false));
    let spec = handoff("hs_00000001", "key-00000001");
    let submit = |engine: &EngineHandle, spec: &Json| {
        engine.submit_and_wait(candidate(spec, "decision-router", &world))
    };
    let engine = forgetful(place.path(), &world, &held);
    let first = submit(&engine, &spec).unwrap();
    engine.stop();

    // The views name an entry that the ledger gives, but the decision in it cannot be had.
    let engine = forgetful(place.path(), &world, &held);
    let ledger = place.path().join("ledger");
    let aside = place.path().join("aside");
    #[expect(clippy::disallowed_methods, reason = "another hand")]
    let moved = |from: &Path, to: &Path| std::fs::rename(from, to).unwrap();
    moved(&ledger, &aside);
    let fault = submit(&engine, &spec).unwrap_err();
    assert!(fault.to_string().contains("what was decided before could not be read"), "{fault}");
    moved(&aside, &ledger);
    assert_eq!(*submit(&engine, &spec).unwrap(), Decided { replayed: true, ..(*first).clone() });
    engine.stop();

    // Names that may be claimed cannot be asked for.
    let log = open(&ledger);
    let (last, head) = (log.last_timestamp(), log.head().sequence);
    let told = Told::default();
    let spent = ("123456789".to_owned(), "cycle".to_owned());
    *told.tales.lock().unwrap() = Tales { applied: head, spent: vec![spent], unreadable: false };
    let setup =
        Setup::new(Box::new(log), last, Box::new(world.clone())).remembered_by(Box::new(told.clone()));
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    told.tales.lock().unwrap().unreadable = true;
    let mut mention: Json = serde_json::from_str(READ).unwrap();
    mention["authorship"]["mentionDelegation"]["messageId"] = json!("123456789");
    submit(&engine, &mention).unwrap_err();
    assert_eq!(engine.head(), head, "nothing was written");
    told.tales.lock().unwrap().unreadable = false;
    assert!(codes(&submit(&engine, &mention).unwrap()).contains(&Code::MentionDuplicate));
    engine.stop();
}

/// What was claimed since then left memory because the new file has it; the old one, which is still open, does not.
#[test]
fn a_past_whose_file_was_made_again_asks_the_new_one() {
    let (place, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let ledger = place.path().join("ledger");
    let engine = start(&ledger, &world);
    for n in 1..=2 {
        let spec = handoff(&format!("hs_{n:08}"), &format!("key-{n:08}"));
        engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap();
    }
    engine.stop();
    let entries = || Entries::read(&ledger, 1, 6).unwrap().map(Result::unwrap);
    let file = place.path().join("views.db");
    let mut views = Views::open(&file, "gw_test").unwrap();
    views.apply(entries().take(3)).unwrap();
    let (applied, opening) = (Arc::new(AtomicU64::new(3)), Arc::<AtomicU64>::default());
    let followed = Followed { file: file.clone(), applied: applied.clone(), opening: opening.clone() };
    let source = crate::ledger::Source::files(&ledger);
    let past = ViewsPast::new(Box::new(followed), source, "gw_test").unwrap();
    let claimed = |n: usize| past.handoff(&format!("hs_{n:08}")).unwrap().is_some();
    assert_eq!((claimed(1), claimed(2)), (true, false));
    drop(views);
    let views = Views::rebuild(&file, "gw_test", entries()).unwrap();
    assert_eq!(views.applied().unwrap().0, 6);
    // Until it is said that the new one is followed, the old one answers.
    assert_eq!((past.applied(), claimed(1), claimed(2)), (3, true, false));
    applied.store(6, Ordering::Release);
    opening.store(1, Ordering::Release);
    assert_eq!((past.applied(), claimed(1), claimed(2)), (6, true, true));
    // An older one that somebody put in its place would say of what it lacks that it never was.
    drop(views);
    let whole = std::fs::read(&file).unwrap();
    drop(Views::rebuild(&file, "gw_test", entries().take(3)).unwrap());
    opening.store(2, Ordering::Release);
    let fault = past.handoff("hs_00000002").unwrap_err();
    assert!(fault.to_string().contains("it holds entries up to 3, and 6 were applied"), "{fault}");
    crate::os::files::replace_private(&file, &whole).unwrap();
    assert!(claimed(2));
    // One that cannot be opened is a fault, also after others could be.
    std::fs::remove_file(&file).unwrap();
    opening.store(3, Ordering::Release);
    past.handoff("hs_00000002").map(drop).unwrap_err();
}

/// A database that does not answer must not keep anybody from hearing how the gateway is.
#[test]
fn what_is_in_force_is_seen_while_a_decision_waits_for_the_past() {
    let (place, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let told = Told::default();
    told.tales.lock().unwrap().spent.push(("123456789".to_owned(), "cycle".to_owned()));
    let setup = Setup::new(Box::new(open(place.path())), None, Box::new(world.clone()));
    let engine =
        EngineHandle::start(setup.remembered_by(Box::new(told.clone())), std::iter::empty()).unwrap();
    let (sender, receiver) = channel();
    let asked = told.asked.load(Ordering::Acquire);
    let unanswered = told.tales.lock().unwrap();
    let mut mention: Json = serde_json::from_str(READ).unwrap();
    mention["authorship"]["mentionDelegation"]["messageId"] = json!("123456789");
    let reply: Reply = Box::new(move |result| drop(sender.send(result)));
    engine.submit(candidate(&mention, "decision-router", &world), reply).unwrap();
    eventually(|| told.asked.load(Ordering::Acquire) > asked);
    let looks = std::thread::spawn({
        let engine = engine.clone();
        move || {
            let (inbox, freezes, route) = (engine.inbox(), engine.freezes(), engine.route("nowhere"));
            (
                engine.differs(),
                inbox.by_end().count(),
                freezes.halts(Some("nowhere"), Some(crate::contract::Mode::Live)).is_some(),
                route.is_some(),
            )
        }
    });
    eventually(|| looks.is_finished());
    assert_eq!(looks.join().unwrap(), (None, 0, false, false));
    drop(unanswered);
    assert!(codes(&receiver.recv().unwrap().unwrap()).contains(&Code::MentionDuplicate));
    engine.stop();
}

#[test]
fn a_history_with_a_hole_in_it_is_refused() {
    let (place, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(place.path(), &world);
    for n in 1..=2 {
        let spec = handoff(&format!("hs_{n:08}"), &format!("key-{n:08}"));
        engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap();
    }
    engine.stop();
    let check = |from: u64, through: u64, applied: u64, fault: Option<&str>| {
        let log = open(place.path());
        let told = Told::default();
        told.tales.lock().unwrap().applied = applied;
        let setup = Setup::new(Box::new(log), None, Box::new(world.clone())).remembered_by(Box::new(told));
        let history = Entries::read(place.path(), from, through).unwrap();
        let history = history.map(|entry| entry.map_err(|fault| EngineFault::BadLedger(fault.to_string())));
        let found = EngineHandle::start(setup, history).map(drop).map_err(|fault| fault.to_string());
        assert_eq!(found.err().as_deref(), fault);
    };
    check(1, 6, 0, None);
    check(4, 6, 3, None);
    check(7, 6, 6, None);
    let missing =
        |n: u64| format!("the ledger cannot be understood: entry {n} is missing from what was read of it");
    check(4, 6, 0, Some(&missing(1)));
    check(1, 3, 0, Some(&missing(4)));
    check(7, 6, 3, Some(&missing(4)));
}
