//! In which order those who follow are told, whoever tells them and however slow they are.

use std::sync::mpsc::channel;

use super::*;
use crate::engine::tests::failing::gated;
use crate::engine::tests::{TestWorld, candidate, eventually, handoff, open};
use crate::engine::{Candidate, EngineHandle, Reply, Setup};
use crate::ledger::{Follower, Log as _, Notice};

/// Only a bound for the case that it fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody who follows: says where a tale ends, and takes as long as the test wants.
struct Slow {
    told: Sender<u64>,
    go_on: Receiver<()>,
}

impl Follower for Slow {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        let _ = self.told.send(entries.last().unwrap().sequence);
        // A test that has ended holds nobody up.
        let _ = self.go_on.recv();
        None
    }
}

fn asked(id: &str, world: &TestWorld) -> (Candidate, Reply) {
    (candidate(&handoff(id, &format!("key-{id}")), "decision-router", world), Box::new(drop))
}

/// A full batch has to be written before there is room for those behind it, and with a stop in between nothing more comes that
/// would have somebody look again.
#[test]
fn a_stop_waits_for_those_who_found_no_room_in_a_full_batch() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let setup = Setup::new(Box::new(open(directory.path())), None, Box::new(world.clone()));
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    let (told, heard) = channel();
    let waiting = |id: &str| {
        let told = told.clone();
        let reply: Reply = Box::new(move |result| drop(told.send(result.map(|decided| decided.decision))));
        Waiting::Decision(Asked::new(Box::new(asked(id, &world).0), reply))
    };
    let first = [waiting("hs_full_0001"), waiting("hs_full_0002"), waiting("hs_full_0003")];
    let handle = engine.clone();
    std::thread::spawn(move || {
        let mut desk = handle.shared.line.lock().ok().unwrap();
        let line = desk.as_mut().unwrap();
        let body = "x".repeat(limits::BATCH_BYTES_MAX);
        line.batch.body(crate::proof::Digest::of(body.as_bytes()), &body);
        let [full, behind @ ..] = first;
        line.decide(full);
        behind.into_iter().for_each(|one| line.take(Message::Ask(one)));
        line.take(Message::Stop);
        let _ = line.work(None);
    });
    for _ in 0..3 {
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap().unwrap(), crate::gates::Decision::Allowed);
    }
    engine.stop();
    assert_eq!(open(directory.path()).head().sequence, 9);
}

#[test]
fn a_batch_has_its_place_in_what_is_told_before_anybody_can_decide_on_top_of_it() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let ((say, words), (told, heard), (let_go, go_on)) = (channel(), channel(), channel());
    let setup = Setup::new(gated(directory.path(), words), None, Box::new(world.clone()))
        .followed_by(Box::new(Slow { told, go_on }));
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    let hear = || heard.recv_timeout(PATIENCE);
    // The first is written by the writer's thread, for only one alone is written where it was decided; the second is
    // decided behind it. So the first is told by the teller's thread, and that takes long.
    engine.submit_together(vec![asked("hs_order_001", &world)]).unwrap();
    eventually(|| engine.shared.desk.lock().shipped_head().sequence == 3);
    let (second, reply) = asked("hs_order_002", &world);
    engine.submit(second, reply).unwrap();
    eventually(|| engine.dry_run(asked("hs_order_002", &world).0).unwrap().replay_of.is_some());
    say.send(true).unwrap();
    assert_eq!(hear(), Ok(3));
    let line = &engine.shared.line.line;
    eventually(|| line.try_lock().is_ok_and(|line| line.as_ref().unwrap().sleeps));
    // Now the second becomes durable while the first is told. The line hears of that as soon as the desk is free.
    let desk = engine.shared.desk.lock();
    say.send(true).unwrap();
    eventually(|| line.try_lock().is_err());
    let_go.send(()).unwrap();
    assert_eq!(hear(), Ok(6), "its place was taken before the line heard of it");
    drop(desk);
    // Somebody decides on top of it, and is told behind it.
    say.send(true).unwrap();
    let (third, reply) = asked("hs_order_003", &world);
    engine.submit(third, reply).unwrap();
    let_go.send(()).unwrap();
    assert_eq!(hear(), Ok(9));
    drop((let_go, say));
    engine.stop();
    assert_eq!(hear(), Err(RecvTimeoutError::Disconnected), "each was told once");
}
