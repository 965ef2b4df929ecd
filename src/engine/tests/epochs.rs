//! What a restored backup makes void.

use super::*;
use crate::engine::epoch::Epoch;
use crate::proof::{Key, Purpose, Secret};

fn facts() -> EpochFacts {
    EpochFacts { backup_time: "2026-02-18T19:00:00Z".into(), restored_head: 7, restored_hash: "0".repeat(64) }
}

/// The codes that a delegated handoff and a direct one get, in a ledger that was restored just now or never.
fn codes_in(restored: bool, restart: bool) -> (Vec<Code>, Vec<Code>) {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let mut engine = start(directory.path(), &world);
    if restored {
        engine.begin_epoch_and_wait(facts()).unwrap();
        engine.begin_epoch_and_wait(facts()).unwrap();
        assert_eq!(engine.head(), 1, "an epoch is begun once");
    }
    if restart {
        engine.stop();
        engine = start(directory.path(), &world);
    }
    let mut ring = Keyring::default();
    let secret = Secret::from_file_bytes(include_bytes!("../../../docs/examples/demo.key").to_vec());
    ring.add(Key::hmac("demo-user-main-1", "user:main", Purpose::Envelope, secret).unwrap()).unwrap();
    let ruling = Ruling { keyring: Arc::new(ring), ..ruling("decision-router") };
    let delegated = Candidate::judge(READ.into(), ruling, world.now()).unwrap();
    let ruling_again = delegated.ruling.clone();
    let checked = engine.dry_run(delegated).unwrap();
    let delegated = Candidate::judge(READ.into(), ruling_again, world.now()).unwrap();
    let decided = engine.submit_and_wait(delegated).unwrap();
    assert_eq!(checked.reasons, decided.reasons, "a dry run says the same");
    let direct = handoff("hs_00000001", "key-00000001");
    let direct = engine.submit_and_wait(candidate(&direct, "decision-router", &world)).unwrap();
    engine.stop();
    (codes(&decided), codes(&direct))
}

#[test]
fn what_was_signed_or_seen_before_a_restore_is_void() {
    assert_eq!(codes_in(false, false), (vec![Code::MentionPhase], vec![]));
    for restart in [false, true] {
        let (delegated, direct) = codes_in(true, restart);
        assert_eq!(delegated, [Code::EnvelopeExpired, Code::MentionExpired, Code::MentionPhase], "{restart}");
        // A direct handoff rests on nothing that was made before.
        assert_eq!(direct, [], "{restart}");
    }
}

#[test]
fn what_was_made_in_the_epoch_counts() {
    let candidate = candidate(&serde_json::from_str(READ).unwrap(), "decision-router", &TestWorld::new());
    let check = |since: &str, void: &[Code]| {
        let epoch = Epoch { since: Timestamp::parse(since).unwrap(), facts: facts() };
        let found: Vec<Code> = candidate.stamps.void_in(&epoch).map(|void| void.code).collect();
        assert_eq!(found, void, "{since}");
    };
    // Signed at 19:36:30, seen at 19:36:58, by clocks that may have been two minutes ahead.
    check("2026-02-18T19:34:30Z", &[]);
    check("2026-02-18T19:34:30.000000001Z", &[Code::EnvelopeExpired]);
    check("2026-02-18T19:34:58Z", &[Code::EnvelopeExpired]);
    check("2026-02-18T19:34:58.000000001Z", &[Code::EnvelopeExpired, Code::MentionExpired]);
}

/// The last instant that the gates take is void, and the first that they do not is not.
#[test]
fn whatever_could_have_been_taken_before_the_epoch_is_void_in_it() {
    let world = TestWorld::new();
    let taken = |ahead: Timestamp| {
        let mut mention: Json = serde_json::from_str(READ).unwrap();
        mention["authorship"]["mentionDelegation"]["observedAt"] = json!(ahead.to_nanoseconds());
        mention["authorship"]["envelope"]["ttl"]["issuedAt"] = json!(ahead.to_nanoseconds());
        let candidate = candidate(&mention, "decision-router", &world);
        let early = [Code::EnvelopeNotYetValid, Code::MentionFromFuture];
        let is_taken = candidate.verdict.reasons().iter().all(|reason| !early.contains(&reason.code));
        let after = Epoch { since: world.now().plus_nanosecond(), facts: facts() };
        (is_taken, candidate.stamps.void_in(&after).count())
    };
    let last = world.now().plus_seconds(crate::limits::SKEW_S);
    assert_eq!(taken(last), (true, 2));
    assert_eq!(taken(last.plus_nanosecond()), (false, 0));
}
