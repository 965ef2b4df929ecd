//! What is kept in memory, and for how long, on a past that a test makes up.

use super::*;
use crate::engine::claims::ClaimIndex;
use crate::engine::facts::{Facts, Recorded};
use crate::engine::tests::failing::Guarded;
use crate::views::{self, AskedClaim, Claimed, HandoffClaim, MessageClaim};

/// A past that a test makes up, and how often it was asked for.
#[derive(Clone, Default)]
pub(super) struct Told {
    pub(super) tales: Arc<Mutex<Tales>>,
    pub(super) asked: Arc<AtomicU64>,
}

#[derive(Default)]
pub(super) struct Tales {
    pub(super) applied: u64,
    pub(super) spent: Vec<(String, String)>,
    pub(super) unreadable: bool,
}

impl Told {
    fn ask<T>(&self, answer: impl FnOnce(&Tales) -> T) -> Result<T, EngineFault> {
        self.asked.fetch_add(1, Ordering::AcqRel);
        let tales = self.tales.lock().unwrap();
        if tales.unreadable { Err(EngineFault::NotDurable("unreadable".into())) } else { Ok(answer(&tales)) }
    }
}

impl Past for Told {
    fn applied(&self) -> u64 {
        self.tales.lock().unwrap().applied
    }

    fn names_max(&self) -> Result<u64, EngineFault> {
        self.ask(|tales| tales.spent.len() as u64)
    }

    fn names(&self, tell: &mut dyn FnMut(Claimed<'_>)) -> Result<(), EngineFault> {
        self.ask(|tales| {
            for (message_id, correlation_id) in &tales.spent {
                tell(Claimed::Message(message_id));
                tell(Claimed::Cycle(correlation_id));
            }
        })
    }

    fn handoff(&self, _: &str) -> Result<Option<HandoffClaim>, EngineFault> {
        self.ask(|_| None)
    }

    fn key(&self, _: &str, _: &str) -> Result<Option<views::KeyClaim>, EngineFault> {
        self.ask(|_| None)
    }

    fn message(&self, message_id: &str) -> Result<Option<String>, EngineFault> {
        self.ask(|tales| tales.spent.iter().find(|(id, _)| id == message_id).map(|(id, _)| id.clone()))
    }

    fn said(&self, _caller: &str, _message_id: &str) -> Result<Option<MessageClaim>, EngineFault> {
        self.ask(|_| None)
    }

    fn asked(&self, _task_id: &str) -> Result<Option<AskedClaim>, EngineFault> {
        self.ask(|_| None)
    }

    fn mentions(&self, correlation_id: &str) -> Result<u32, EngineFault> {
        self.ask(|tales| tales.spent.iter().filter(|(_, id)| id == correlation_id).count() as u32)
    }

    fn entry(&self, _: u64) -> Result<Entry, EngineFault> {
        Err(EngineFault::NotDurable("unreadable".into()))
    }

    fn in_flight(&self, _: &str) -> Result<Vec<String>, EngineFault> {
        self.ask(|_| Vec::new())
    }

    fn stream(&self, _: &str) -> Result<Vec<Entry>, EngineFault> {
        Err(EngineFault::NotDurable("unreadable".into()))
    }

    fn under_way(&self) -> Result<Vec<String>, EngineFault> {
        self.ask(|_| Vec::new())
    }

    fn standing(&self) -> Result<Vec<Entry>, EngineFault> {
        self.ask(|_| Vec::new())
    }
}

fn mention(n: usize) -> (Facts, Arc<Decided>) {
    let facts = json!({
        "attempt": 1, "content_digest": "sha256:0", "delegation": null, "handoff_id": format!("hs_{n:08}"),
        "idempotency_key": format!("key-{n:08}"), "intent_hash": null, "message_id": format!("msg-{n:08}"),
        "mode": null, "operation": null, "parent_handoff_id": null, "route_key": null,
        "source_agent": "decision-router", "target_agent": null, "task_spec_digest": "sha256:0",
    });
    let decided = Decided {
        decision: Decision::Allowed,
        handoff_id: Some(format!("hs_{n:08}")),
        correlation_id: None,
        attempt: 1,
        decided_at: String::new(),
        replayed: false,
        gates: Vec::new(),
        reasons: Vec::new(),
        policy_digest: String::new(),
        task_spec_digest: crate::proof::Digest::of(b""),
        tag: None,
        ledger: LedgerPlace { sequence: n as u64, running_hash: Head::genesis("gw_test").running_hash },
        pass: Pass::Withheld,
    };
    (serde_json::from_value::<Recorded>(facts).unwrap().into_facts().0, Arc::new(decided))
}

fn take(index: &mut ClaimIndex, n: usize, cycle: &str) {
    let (facts, decided) = mention(n);
    let before = index.before(&facts, cycle).unwrap();
    index.take(&facts, None, cycle, Some(decided), before, n as u64);
}

#[test]
fn messages_and_mentions_are_counted_across_what_is_forgotten() {
    let told = Told::default();
    let mut index = ClaimIndex::on(Some(Box::new(told.clone())), 0).unwrap();
    let mentions = |index: &ClaimIndex| index.before(&mention(99).0, "cycle").unwrap().mentions;
    for n in 1..=4 {
        take(&mut index, n, "cycle");
        index.ship();
        if n == 4 {
            // A batch that fails gives back what it counted on top of the past.
            index.give_back();
            assert_eq!(mentions(&index), 3);
            assert!(!index.is_spent("msg-00000004").unwrap());
            break;
        }
        // The views apply it, and only then it leaves memory.
        index.keep();
        assert_eq!(mentions(&index), n as u32, "not applied yet");
        let spent = (format!("msg-{n:08}"), "cycle".to_owned());
        told.tales.lock().unwrap().spent.push(spent);
        told.tales.lock().unwrap().applied = n as u64;
        index.keep();
        assert_eq!(mentions(&index), n as u32, "applied");
        assert!((1..=n).all(|n| index.is_spent(&format!("msg-{n:08}")).unwrap()));
    }
    // A start knows the names from the views alone.
    let index = ClaimIndex::on(Some(Box::new(told)), 0).unwrap();
    assert_eq!(mentions(&index), 3);
    assert!(index.is_spent("msg-00000003").unwrap() && !index.is_spent("msg-00000004").unwrap());
}

#[test]
fn memory_is_bounded_when_the_views_stop_and_free_again_when_they_go_on() {
    let told = Told::default();
    let mut index = ClaimIndex::on(Some(Box::new(told.clone())), 0).unwrap();
    index.in_memory_max = 100;
    for n in 1..=100 {
        index.room().unwrap();
        take(&mut index, n, "cycle");
        if n % 10 == 0 {
            index.ship();
            index.keep();
        }
    }
    let full = index.room().unwrap_err();
    assert!(full.to_string().contains("the views have stopped at entry 0"), "{full}");
    assert!(index.is_spent("msg-00000001").unwrap(), "nothing was forgotten");
    told.tales.lock().unwrap().applied = 10;
    index.room().unwrap();
    // All in memory, and nobody to leave it to: then there is no bound to keep.
    let mut alone = ClaimIndex::on(None, 0).unwrap();
    alone.in_memory_max = 100;
    (1..=200).for_each(|n| take(&mut alone, n, "cycle"));
    alone.room().unwrap();
}

/// A disk that fails for long must not fill memory with what nobody has claimed.
#[test]
fn what_failed_batches_claimed_takes_no_room() {
    let told = Told::default();
    let mut index = ClaimIndex::on(Some(Box::new(told.clone())), 0).unwrap();
    index.in_memory_max = 100;
    for n in 1..=1000 {
        index.room().unwrap();
        take(&mut index, n, "cycle");
        let said = MessageClaim { content: None, asked: None, handoff: None };
        index.take_said("router", &format!("msg-{n:08}"), said, n as u64);
        // Written, with another one behind it, or dropped before it is.
        match n % 3 {
            0 => index.drop_building(),
            1 => index.ship(),
            _ => index.give_back(),
        }
    }
    index.give_back();
    assert!(index.handoff("hs_00000001").unwrap().is_none());
    // It works again: there is all the room there was.
    for n in 1..=100 {
        index.room().unwrap();
        take(&mut index, n, "cycle");
    }
    index.room().unwrap_err();
}

#[test]
fn a_disk_that_fails_for_long_leaves_room_for_what_comes_after() {
    let (place, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let fails = Arc::new(AtomicBool::new(true));
    let may = {
        let fails = fails.clone();
        move || !fails.load(Ordering::Acquire)
    };
    let setup = Setup::new(Guarded::boxed(place.path(), may), None, Box::new(world.clone()))
        .remembered_by(Box::new(Told::default()));
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    engine.shared.desk.lock().index_mut().in_memory_max = 20;
    let submit = |n: usize| {
        let spec = handoff(&format!("hs_{n:08}"), &format!("key-{n:08}"));
        engine.submit_and_wait(candidate(&spec, "decision-router", &world))
    };
    for n in 0..60 {
        let fault = submit(n).unwrap_err().to_string();
        assert!(!fault.contains("memory holds no more claims"), "{n}: {fault}");
    }
    fails.store(false, Ordering::Release);
    assert_eq!(submit(0).unwrap().decision, Decision::Allowed);
    engine.stop();
}
