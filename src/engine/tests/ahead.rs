//! Those who make an answer ready: told when it is durable, and done when those who follow show it.

use std::sync::mpsc::TryRecvError;

use super::failing::gated;
use super::*;
use crate::ledger::{Entry, Follower, Notice};

/// Somebody who follows, and takes as long as the test wants.
struct Slow(Receiver<()>);

impl Follower for Slow {
    fn durable(&mut self, _entries: &[Entry]) -> Option<Notice> {
        // A test that has ended holds nobody up.
        let _ = self.0.recv();
        None
    }
}

#[test]
fn an_answer_is_made_ready_when_it_is_durable_and_leaves_when_it_is_shown() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let (say, words) = channel();
    let (let_go, slow) = channel();
    let setup = Setup::new(gated(directory.path(), words), None, Box::new(world.clone()))
        .followed_by(Box::new(Slow(slow)));
    let engine = EngineHandle::start(setup, std::iter::empty()).unwrap();
    let submit = |id: &str| {
        let ((ahead, durable), (sender, shown)) = (channel(), channel());
        let spec = handoff(id, &format!("key-{id}"));
        engine
            .submit_ahead(
                candidate(&spec, "decision-router", &world).into(),
                Box::new(move |decided| ahead.send(decided).unwrap()),
                Box::new(move |result| sender.send(result).unwrap()),
            )
            .unwrap();
        (durable, shown)
    };

    // What did not become durable is told to nobody ahead of time.
    let (durable, shown) = submit("hs_ahead_001");
    say.send(false).unwrap();
    assert!(matches!(shown.recv().unwrap(), Err(EngineFault::NotDurable(_))));
    assert_eq!(durable.try_recv().unwrap_err(), TryRecvError::Disconnected);

    let (durable, shown) = submit("hs_ahead_001");
    assert_eq!(durable.try_recv().unwrap_err(), TryRecvError::Empty, "nothing was written yet");
    say.send(true).unwrap();
    let ready = durable.recv().unwrap();
    assert_eq!((ready.decision, ready.replayed), (Decision::Allowed, false));
    assert_eq!(shown.try_recv().unwrap_err(), TryRecvError::Empty, "nobody shows it yet");
    let_go.send(()).unwrap();
    assert_eq!(shown.recv().unwrap().unwrap().ledger, ready.ledger);

    // What was decided before is said at once, and once.
    let (durable, shown) = submit("hs_ahead_001");
    assert!(shown.recv().unwrap().unwrap().replayed);
    assert_eq!(durable.try_recv().unwrap_err(), TryRecvError::Disconnected);
    drop((say, let_go));
    engine.stop();
}
