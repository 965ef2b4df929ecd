//! Appends that fail or take long, a line that is full, and a stop: nobody is told what is not durable, and nothing is left of it.

use super::*;

/// A log that asks before each append, and fails where it may not.
pub(super) struct Guarded<M> {
    log: SegmentLog,
    may: M,
}

impl<M: FnMut() -> bool + Send + 'static> Guarded<M> {
    pub(super) fn boxed(directory: &Path, may: M) -> Box<dyn Log> {
        Box::new(Self { log: open(directory), may })
    }
}

impl<M: FnMut() -> bool + Send> Log for Guarded<M> {
    fn topic_id(&self) -> &str {
        self.log.topic_id()
    }

    fn head(&self) -> Head {
        self.log.head()
    }

    fn check(&mut self) -> Result<(), AppendFault> {
        self.log.check()
    }

    fn append(&mut self, after: Head, batch: &Batch) -> Result<(), AppendFault> {
        if (self.may)() {
            return self.log.append(after, batch);
        }
        Err(AppendFault::NotDurable(std::io::ErrorKind::StorageFull.into()))
    }
}

/// One that waits for a word before each append, and fails when told to.
pub(in crate::engine) fn gated(directory: &Path, words: Receiver<bool>) -> Box<dyn Log> {
    Guarded::boxed(directory, move || words.recv() == Ok(true))
}

#[test]
fn a_batch_that_fails_takes_the_one_behind_it_along_and_gives_everything_back() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let (say, words) = channel();
    let engine = start_with(gated(directory.path(), words), None, directory.path(), &world);
    let asked = |id: &str| {
        let (sender, receiver) = channel();
        let spec = handoff(id, &format!("key-{id}"));
        let reply: Reply = Box::new(move |result| drop(sender.send(result)));
        ((candidate(&spec, "decision-router", &world), reply), receiver)
    };
    let submit = |id: &str| {
        let ((candidate, reply), receiver) = asked(id);
        engine.submit(candidate, reply).unwrap();
        receiver
    };
    // The first is being written; the second, and a replay of the first, are decided behind it. One that comes alone would be
    // written where it was decided, with nobody behind it.
    let (together, first) = asked("hs_00000001");
    engine.submit_together(vec![together]).unwrap();
    let waiting = [first, submit("hs_00000002"), submit("hs_00000001")];
    say.send(false).unwrap();
    for (n, receiver) in waiting.iter().enumerate() {
        let fault = receiver.recv().unwrap().unwrap_err();
        assert!(matches!(fault, EngineFault::NotDurable(_)), "{n}: {fault}");
    }
    // The disk works again: nothing is left of what failed.
    for _ in 0..8 {
        say.send(true).unwrap();
    }
    for id in ["hs_00000001", "hs_00000002"] {
        let decided = submit(id).recv().unwrap().unwrap();
        assert_eq!(
            (decided.decision, decided.attempt, decided.replayed),
            (Decision::Allowed, 1, false),
            "{id}"
        );
    }
    engine.stop();
    assert_eq!(open(directory.path()).head().sequence, 6);
}

/// Written where it was decided, it gives everything back before anybody is told, as a batch does.
#[test]
fn one_that_came_alone_and_failed_gives_everything_back() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let (say, words) = channel();
    let engine = start_with(gated(directory.path(), words), None, directory.path(), &world);
    let submit = |id: &str| {
        let (sender, receiver) = channel();
        let spec = handoff(id, &format!("key-{id}"));
        let reply: Reply = Box::new(move |result| drop(sender.send(result)));
        engine.submit(candidate(&spec, "decision-router", &world), reply).unwrap();
        receiver
    };
    let alone = submit("hs_00000001");
    say.send(false).unwrap();
    assert!(matches!(alone.recv().unwrap(), Err(EngineFault::NotDurable(_))));
    // Everything was given back before it was told.
    say.send(true).unwrap();
    let again = submit("hs_00000001").recv().unwrap().unwrap();
    assert_eq!((again.decision, again.attempt, again.replayed), (Decision::Allowed, 1, false));
    say.send(true).unwrap();
    assert_eq!(submit("hs_00000002").recv().unwrap().unwrap().decision, Decision::Allowed);
    engine.stop();
    assert_eq!(open(directory.path()).head().sequence, 6);
}

#[test]
fn a_line_that_is_too_long_is_refused_at_once() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let (say, words) = channel();
    let log = gated(directory.path(), words);
    let setup = Setup { waiting_max: 3, ..Setup::new(log, None, Box::new(world.clone())) };
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    let submit = |n: usize| {
        let spec = handoff(&format!("hs_0000000{n}"), &format!("key-0000000{n}"));
        engine.submit(candidate(&spec, "decision-router", &world), Box::new(drop))
    };
    let taken: Vec<bool> = (0..5).map(|n| submit(n).is_ok()).collect();
    assert_eq!(taken, [true, true, true, false, false]);
    assert_eq!(submit(5), Err(EngineFault::Busy));
    for _ in 0..4 {
        say.send(true).unwrap();
    }
    engine.stop();
    assert_eq!(open(directory.path()).head().sequence, 9);
}

/// The last one is written where it was decided, and nobody tells that thread that it was.
#[test]
fn a_stop_that_is_heard_with_the_last_decision_is_not_forgotten() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let setup = Setup::new(Box::new(open(directory.path())), None, Box::new(world.clone()));
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    let spec = handoff("hs_00000001", "key-00000001");
    let last = candidate(&spec, "decision-router", &world);
    // Nothing is decided while the desk is held, so both are in line when it is let go.
    let held = engine.shared.desk.lock();
    engine.submit(last, Box::new(drop)).unwrap();
    engine.shared.inbox.send(Message::Stop).unwrap();
    drop(held);
    engine.stop();
    assert_eq!(open(directory.path()).head().sequence, 3);
}

/// The views keep times in 64 bits: an entry that they cannot take in would keep every later start from coming to its end.
#[test]
fn nothing_is_decided_while_the_clock_tells_a_time_that_no_entry_can_have() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start_with(Box::new(open(directory.path())), None, directory.path(), &world);
    let submit = |n: u64| {
        let spec = handoff(&format!("hs_0000000{n}"), &format!("key-{n}"));
        engine.submit_and_wait(candidate(&spec, "decision-router", &world))
    };
    submit(1).unwrap();
    let head = engine.head();
    // Three hundred years.
    world.at(300 * 366 * 86_400);
    let fault = submit(2).unwrap_err();
    assert!(matches!(&fault, EngineFault::NotDurable(why) if why.contains("the clock says")), "{fault}");
    assert_eq!((engine.head(), engine.fault()), (head, None));
    world.at(60);
    assert_eq!(submit(2).unwrap().attempt, 1, "it was never decided");
}
