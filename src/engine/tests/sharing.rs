//! Engines that share a ledger: what one of them takes in of another's, and what it says meanwhile.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::engine::past::Past;
use crate::ledger::{Bell, Entry, Keeping};
use crate::views::{AskedClaim, Claimed, HandoffClaim, KeyClaim, MessageClaim};

/// A ledger that several engines append to.
#[derive(Clone)]
struct Store(Arc<Mutex<(Head, Vec<Entry>)>>);

/// One engine's way to it.
struct Common {
    store: Store,
    known: Head,
    /// Called before each look for what others appended.
    looks: Box<dyn FnMut() + Send>,
    bell: Mutex<Option<Receiver<()>>>,
}

/// Rings when the test does.
struct Ring(Receiver<()>);

impl Bell for Ring {
    fn wait(&mut self) -> Option<u64> {
        if self.0.recv().is_err() {
            // The test is over, and so is this thread when the process ends.
            std::thread::park();
        }
        None
    }
}

impl Store {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((Head::genesis("gw_test"), Vec::new()))))
    }

    fn log(&self, looks: impl FnMut() + Send + 'static) -> Common {
        let known = self.0.lock().unwrap().0;
        Common { store: self.clone(), known, looks: Box::new(looks), bell: Mutex::new(None) }
    }

    fn start(&self, log: Common, world: &TestWorld, past: Option<Box<dyn Past>>) -> EngineHandle {
        let setup = Setup { past, ..Setup::new(Box::new(log), None, Box::new(world.clone())) };
        EngineHandle::start(setup, std::iter::empty()).unwrap()
    }
}

impl Log for Common {
    fn topic_id(&self) -> &str {
        "gw_test"
    }

    fn head(&self) -> Head {
        self.known
    }

    fn keeping(&self) -> Keeping {
        Keeping::Shared
    }

    fn append(&mut self, after: Head, batch: &Batch) -> Result<(), AppendFault> {
        let mut store = self.store.0.lock().unwrap();
        if store.0 != after {
            return Err(AppendFault::Conflict { head: store.0 });
        }
        store.0 = batch.head();
        store.1.extend_from_slice(batch.entries());
        Ok(())
    }

    fn check(&mut self) -> Result<(), AppendFault> {
        Ok(())
    }

    fn behind(&mut self, after: Head) -> Result<Vec<Entry>, AppendFault> {
        (self.looks)();
        let store = self.store.0.lock().unwrap();
        Ok(store.1.iter().filter(|entry| entry.sequence > after.sequence).cloned().collect())
    }

    fn bell(&self) -> Option<Box<dyn Bell>> {
        Some(Box::new(Ring(self.bell.lock().unwrap().take()?)))
    }
}

/// Views that know nothing but that one handoffId may have been seen, and cannot be read for a while.
struct Unreadable(Arc<AtomicBool>);

impl Unreadable {
    fn read<T: Default>(&self) -> Result<T, EngineFault> {
        match self.0.load(Ordering::Acquire) {
            true => Err(EngineFault::NotDurable("the database is away".to_owned())),
            false => Ok(T::default()),
        }
    }
}

impl Past for Unreadable {
    fn applied(&self) -> u64 {
        0
    }

    fn names_max(&self) -> Result<u64, EngineFault> {
        Ok(1)
    }

    fn names(&self, tell: &mut dyn FnMut(Claimed<'_>)) -> Result<(), EngineFault> {
        tell(Claimed::Handoff("hs_00000001"));
        Ok(())
    }

    fn handoff(&self, _: &str) -> Result<Option<HandoffClaim>, EngineFault> {
        self.read()
    }

    fn key(&self, _: &str, _: &str) -> Result<Option<KeyClaim>, EngineFault> {
        self.read()
    }

    fn message(&self, _: &str) -> Result<Option<String>, EngineFault> {
        self.read()
    }

    fn mentions(&self, _: &str) -> Result<u32, EngineFault> {
        self.read()
    }

    fn said(&self, _: &str, _: &str) -> Result<Option<MessageClaim>, EngineFault> {
        self.read()
    }

    fn asked(&self, _: &str) -> Result<Option<AskedClaim>, EngineFault> {
        self.read()
    }

    fn entry(&self, _: u64) -> Result<Entry, EngineFault> {
        Err(EngineFault::BadLedger("there is none".to_owned()))
    }

    fn in_flight(&self, _: &str) -> Result<Vec<String>, EngineFault> {
        self.read()
    }

    fn stream(&self, _: &str) -> Result<Vec<Entry>, EngineFault> {
        self.read()
    }

    fn under_way(&self) -> Result<Vec<String>, EngineFault> {
        self.read()
    }

    fn standing(&self) -> Result<Vec<Entry>, EngineFault> {
        self.read()
    }
}

fn ask(engine: &EngineHandle, id: &str, world: &TestWorld) -> Result<Arc<Decided>, EngineFault> {
    let spec = handoff(id, &format!("key-{id}"));
    engine.submit_and_wait(candidate(&spec, "decision-router", world))
}

#[test]
fn what_was_decided_is_told_again_while_another_one_appends_all_the_time() {
    let (store, world) = (Store::new(), TestWorld::new());
    let busy = store.start(store.log(|| {}), &world, None);
    let first = ask(&busy, "hs_00000001", &world).unwrap();
    // Whenever the other one looks, there is more.
    let (looks, others) = (Arc::new(AtomicU64::new(0)), busy.clone());
    let (counted, its_world) = (looks.clone(), world.clone());
    let log = store.log(move || {
        let n = counted.fetch_add(1, Ordering::Relaxed);
        if n < 50 {
            ask(&others, &format!("hs_more_{n:04}"), &its_world).unwrap();
        }
    });
    let log = Common { known: Head::genesis("gw_test"), ..log };
    let patient = store.start(log, &world, None);
    let again = ask(&patient, "hs_00000001", &world).unwrap();
    assert!(again.replayed && again.ledger == first.ledger);
    assert!(looks.load(Ordering::Relaxed) < 5, "it waits for a look that finds nothing");
    patient.stop();
    busy.stop();
}

#[test]
fn what_could_not_be_read_for_a_while_is_taken_in_when_it_can() {
    let (store, world) = (Store::new(), TestWorld::new());
    let other = store.start(store.log(|| {}), &world, None);
    let (ring, bell) = channel();
    let away = Arc::new(AtomicBool::new(false));
    let log = Common { bell: Mutex::new(Some(bell)), ..store.log(|| {}) };
    let engine = store.start(log, &world, Some(Box::new(Unreadable(away.clone()))));

    away.store(true, Ordering::Release);
    let first = ask(&other, "hs_00000001", &world).unwrap();
    ask(&other, "hs_00000002", &world).unwrap();
    ring.send(()).unwrap();
    while engine.fault().is_none() {
        std::thread::yield_now();
    }
    assert!(matches!(ask(&engine, "hs_00000003", &world), Err(EngineFault::NotDurable(_))));
    away.store(false, Ordering::Release);
    // It comes back by itself: whoever asks again gets a decision some time.
    let mut decided = ask(&engine, "hs_00000003", &world);
    while decided.is_err() {
        std::thread::yield_now();
        decided = ask(&engine, "hs_00000003", &world);
    }
    let decided = decided.unwrap();
    assert_eq!((decided.ledger.sequence, decided.attempt, engine.fault()), (8, 1, None));
    // What was taken in was taken in once, and whole.
    let again = ask(&engine, "hs_00000001", &world).unwrap();
    assert!(again.replayed && again.ledger == first.ledger && again.attempt == 1);
    engine.stop();
    other.stop();
}
