//! Whoever finds nobody else in line is decided, written and answered on its own thread.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use super::failing::gated;
use super::*;
use crate::ledger::{Entry, Follower, Notice};

/// Remembers on which thread it was told.
struct Threads(Arc<Mutex<Vec<Option<String>>>>);

impl Follower for Threads {
    fn durable(&mut self, _entries: &[Entry]) -> Option<Notice> {
        self.0.lock().unwrap().push(std::thread::current().name().map(str::to_owned));
        None
    }
}

fn decide(engine: &EngineHandle, id: &str, world: &TestWorld) -> Here {
    let spec = handoff(id, &format!("key-{id}"));
    engine.decide_here(candidate(&spec, "decision-router", world).into())
}

/// The same by somebody who comes when whoever was served before has gone: it is told before the line is free.
fn decide_alone(engine: &EngineHandle, id: &str, world: &TestWorld) -> Result<Arc<Decided>, EngineFault> {
    loop {
        if let Here::Decided(result) = decide(engine, id, world) {
            return result;
        }
        std::thread::yield_now();
    }
}

fn named<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

#[test]
fn nobody_else_is_woken_for_one_who_comes_alone() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let told = Arc::new(Mutex::new(Vec::new()));
    let setup = Setup::new(Box::new(open(directory.path())), None, Box::new(world.clone()));
    let setup = setup.followed_by(Box::new(Threads(told.clone())));
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    let decided = named("caller", || decide_alone(&engine, "hs_alone_001", &world)).unwrap();
    assert_eq!((decided.decision, decided.replayed), (Decision::Allowed, false));
    assert_eq!(*told.lock().unwrap(), [Some("caller".to_owned())]);
    assert_eq!((engine.head(), engine.waiting()), (3, 0));
    // What was decided here counts for those who come in line, and the other way round.
    let spec = handoff("hs_alone_001", "key-hs_alone_001");
    let (sender, receiver) = channel();
    let reply = Box::new(move |result| drop(sender.send(result)));
    engine.submit(candidate(&spec, "decision-router", &world), reply).unwrap();
    assert!(receiver.recv().unwrap().unwrap().replayed);
    assert!(decide_alone(&engine, "hs_alone_001", &world).unwrap().replayed);
    engine.stop();
    assert!(
        matches!(decide(&engine, "hs_alone_002", &world), Here::InLine(_)),
        "nothing is decided any more"
    );
}

#[test]
fn one_who_is_not_alone_goes_into_the_line_and_is_decided_there() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let (say, words) = channel();
    let engine = start_with(gated(directory.path(), words), None, directory.path(), &world);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| decide_alone(&engine, "hs_alone_001", &world));
        while engine.waiting() == 0 {
            std::thread::yield_now();
        }
        // It waits for the disk. Who comes now is in line, and decided when that is done.
        let Here::InLine(second) = decide(&engine, "hs_alone_002", &world) else { panic!("decided beside") };
        let (sender, receiver) = channel();
        engine.submit(second, Box::new(move |result| drop(sender.send(result)))).unwrap();
        assert!(receiver.try_recv().is_err());
        say.send(false).unwrap();
        assert!(matches!(first.join().unwrap(), Err(EngineFault::NotDurable(_))));
        say.send(true).unwrap();
        let decided = receiver.recv().unwrap().unwrap();
        assert_eq!((decided.decision, decided.ledger.sequence), (Decision::Allowed, 2), "behind nothing");
        // What failed has claimed nothing.
        say.send(true).unwrap();
        let again = decide_alone(&engine, "hs_alone_001", &world).unwrap();
        assert_eq!((again.attempt, again.replayed), (1, false));
    });
    drop(say);
    engine.stop();
}

/// What the writer does while nothing is written, and the clock waits for.
enum Idle {
    /// It looks whether the ledger could be written.
    Looks,
    /// It lets those who follow look after what they keep, and they take long.
    Follows,
}

/// A ledger and somebody who follows it, who say what they are asked while nothing is written.
struct Told(SegmentLog, Sender<Idle>);

impl Log for Told {
    fn topic_id(&self) -> &str {
        self.0.topic_id()
    }

    fn head(&self) -> Head {
        self.0.head()
    }

    fn append(&mut self, after: Head, batch: &Batch) -> Result<(), AppendFault> {
        self.0.append(after, batch)
    }

    fn check(&mut self) -> Result<(), AppendFault> {
        let _ = self.1.send(Idle::Looks);
        self.0.check()
    }
}

struct Keeps {
    says: Sender<Idle>,
    takes_long: Arc<AtomicBool>,
    go_on: Receiver<()>,
}

impl Follower for Keeps {
    fn durable(&mut self, _entries: &[Entry]) -> Option<Notice> {
        None
    }

    fn idle(&mut self) -> Option<Notice> {
        if self.takes_long.load(Ordering::Acquire) {
            let _ = self.says.send(Idle::Follows);
            let _ = self.go_on.recv();
        }
        None
    }
}

/// A clock that stands still while somebody is decided, until the writer has had its chance to look after what is idle.
struct Slow {
    world: TestWorld,
    takes_long: Arc<AtomicBool>,
    hears: Option<Receiver<Idle>>,
}

impl World for Slow {
    fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn random(&mut self) -> [u8; 10] {
        if let Some(hears) = self.hears.take() {
            self.takes_long.store(true, Ordering::Release);
            while hears.try_recv().is_ok() {}
            // The second look says that the first is over, with all that it led to.
            for _ in 0..2 {
                if matches!(hears.recv().unwrap(), Idle::Follows) {
                    break;
                }
            }
        }
        self.world.random()
    }
}

#[test]
fn what_is_decided_for_one_alone_is_told_to_it_whatever_else_the_writer_does() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let ((says, hears), (let_go, go_on), takes_long) =
        (channel(), channel(), Arc::new(AtomicBool::new(false)));
    let slow = Slow { world: world.clone(), takes_long: takes_long.clone(), hears: Some(hears) };
    let log = Told(open(directory.path()), says.clone());
    let setup = Setup::new(Box::new(log), None, Box::new(slow)).followed_by(Box::new(Keeps {
        says,
        takes_long,
        go_on,
    }));
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    let decided = decide_alone(&engine, "hs_alone_001", &world);
    assert_eq!(
        decided.map(|decided| (decided.decision, decided.ledger.sequence)),
        Ok((Decision::Allowed, 2))
    );
    drop(let_go);
    engine.stop();
}
