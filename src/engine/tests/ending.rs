//! Whoever does the engine's work panics: it has ended, says so, and leaves nobody waiting.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::Duration;

use super::*;
use crate::ledger::{Entry, Follower, Notice};

/// What a test brings along that panics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Policy,
    Append,
    Look,
    Follower,
}

/// Panics where it is told to, on the thread that it is told to.
#[derive(Clone)]
struct Trap(What, &'static str);

impl Trap {
    fn spring(&self, what: What) {
        if self.0 == what && std::thread::current().name() == Some(self.1) {
            panic!("{what:?} on {}", self.1);
        }
    }
}

struct TrappedWorld(TestWorld, Trap);

impl World for TrappedWorld {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn random(&mut self) -> [u8; 10] {
        self.1.spring(What::Policy);
        self.0.random()
    }
}

/// Waits for a word before each append.
struct TrappedLog(SegmentLog, Receiver<()>, Trap);

impl Log for TrappedLog {
    fn topic_id(&self) -> &str {
        self.0.topic_id()
    }

    fn head(&self) -> Head {
        self.0.head()
    }

    fn append(&mut self, after: Head, batch: &Batch) -> Result<(), AppendFault> {
        let _ = self.1.recv();
        self.2.spring(What::Append);
        self.0.append(after, batch)
    }

    fn check(&mut self) -> Result<(), AppendFault> {
        self.2.spring(What::Look);
        self.0.check()
    }
}

/// Holds something that is let go of with it.
struct TrappedFollower {
    trap: Trap,
    _held: Arc<()>,
}

impl Follower for TrappedFollower {
    fn durable(&mut self, _entries: &[Entry]) -> Option<Notice> {
        self.trap.spring(What::Follower);
        None
    }
}

type Word = Result<Arc<Decided>, EngineFault>;

fn asked(id: &str, world: &TestWorld) -> (Candidate, Reply, Receiver<Word>) {
    let (sender, receiver): (Sender<Word>, _) = channel();
    let spec = handoff(id, &format!("key-{id}"));
    (candidate(&spec, "decision-router", world), Box::new(move |result| drop(sender.send(result))), receiver)
}

fn check(what: What, thread: &'static str, says: &str) {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let ((say, words), held, trap) = (channel(), Arc::new(()), Trap(what, thread));
    let log = TrappedLog(open(directory.path()), words, trap.clone());
    let setup = Setup::new(Box::new(log), None, Box::new(TrappedWorld(world.clone(), trap.clone())))
        .followed_by(Box::new(TrappedFollower { trap, _held: held.clone() }));
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    let (tell, told) = channel();
    engine.when_ended(move |why| tell.send(why.to_owned()).unwrap());
    let mut waiting = Vec::new();
    if thread == "caller" {
        say.send(()).unwrap();
        std::thread::scope(|scope| {
            // The sequencer's thread may still be on its way to sleep: then it is not alone.
            let own = || loop {
                let (candidate, _, _) = asked("hs_ending_001", &world);
                match catch_unwind(AssertUnwindSafe(|| engine.decide_here(candidate.into()))) {
                    Ok(Here::InLine(_)) => std::thread::yield_now(),
                    decided => return decided.map(drop),
                }
            };
            let caller = std::thread::Builder::new().name(thread.to_owned());
            assert!(caller.spawn_scoped(scope, own).unwrap().join().unwrap().is_err());
        });
    } else {
        // The first one goes to the writer's thread, and the second is in the batch behind it, so that the first is told by
        // the teller's thread. The third comes after that.
        let (first, reply, answer) = asked("hs_ending_001", &world);
        waiting.push(answer);
        engine.submit_together(vec![(first, reply)]).unwrap();
        let is_over = || engine.ended().is_some();
        eventually(|| engine.shared.desk.lock().shipped_head().sequence == 3 || is_over());
        for id in ["hs_ending_002", "hs_ending_003"] {
            let (next, reply, answer) = asked(id, &world);
            // One that has ended takes nobody.
            if engine.submit(next, reply).is_ok() {
                waiting.push(answer);
            }
            let is_decided = || engine.dry_run(asked(id, &world).0).is_ok_and(|run| run.replay_of.is_some());
            eventually(|| is_decided() || is_over());
            say.send(()).unwrap_or_default();
        }
        say.send(()).unwrap_or_default();
    }
    let case = format!("{what:?} on {thread}");
    for answer in &waiting {
        let word = answer.recv_timeout(Duration::from_secs(30));
        assert_ne!(word, Err(RecvTimeoutError::Timeout), "{case}: somebody waits for ever");
    }
    assert_eq!(told.recv_timeout(Duration::from_secs(30)).unwrap(), format!("{says} has panicked"), "{case}");
    assert_eq!(engine.ended(), Some(&*format!("{says} has panicked")), "{case}");
    engine.stop();
    assert_eq!((engine.waiting(), Arc::strong_count(&held)), (0, 1), "{case}: nothing is left of it");
    let (late, reply, _) = asked("hs_ending_004", &world);
    assert_eq!(engine.submit(late, reply), Err(EngineFault::Stopped), "{case}");
    // Whoever asks late hears of it at once.
    let (tell, told) = channel();
    engine.when_ended(move |why| tell.send(why.to_owned()).unwrap());
    assert!(told.try_recv().is_ok(), "{case}");
    // What was acknowledged is there, and the next one goes on.
    drop(engine);
    let engine = start(directory.path(), &world);
    let (again, _, _) = asked("hs_ending_001", &world);
    assert_eq!(engine.submit_and_wait(again).unwrap().decision, Decision::Allowed, "{case}");
    engine.stop();
}

#[test]
fn an_engine_that_panics_ends_says_so_and_leaves_nobody_waiting() {
    check(What::Policy, "sequencer", "the sequencer");
    check(What::Append, "ledger-writer", "the writer");
    check(What::Look, "ledger-writer", "the writer");
    check(What::Follower, "teller", "the teller");
    for what in [What::Policy, What::Append, What::Follower] {
        check(what, "caller", "who was decided alone");
    }
}

#[test]
fn one_that_was_told_to_stop_has_not_ended_by_itself() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let (tell, told) = channel();
    engine.when_ended(move |why| tell.send(why.to_owned()).unwrap());
    engine.submit_and_wait(asked("hs_ending_001", &world).0).unwrap();
    engine.stop();
    assert_eq!((engine.ended(), told.try_recv().is_err()), (None, true));
}
