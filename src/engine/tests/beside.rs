//! What comes beside single handoffs: several together, questions, and the rules themselves.

use super::*;

#[test]
fn several_are_decided_in_order_and_made_durable_together() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let (sender, replies) = channel();
    // The third uses the first one's id with other content; the fourth is the first one again.
    let specs = [
        ("hs_00000001", "key-1"),
        ("hs_00000002", "key-2"),
        ("hs_00000001", "key-3"),
        ("hs_00000001", "key-1"),
    ];
    let candidates = specs
        .iter()
        .map(|(id, key)| {
            let sender = sender.clone();
            let spec = handoff(id, &format!("{key}-00000"));
            let reply: Reply = Box::new(move |result| sender.send(result.unwrap()).unwrap());
            (candidate(&spec, "decision-router", &world), reply)
        })
        .collect();
    engine.submit_together(candidates).unwrap();
    let decided: Vec<Arc<Decided>> = replies.iter().take(4).collect();
    let words: Vec<_> = decided.iter().map(|one| (one.decision, one.replayed)).collect();
    assert_eq!(
        words,
        [
            (Decision::Allowed, false),
            (Decision::Allowed, false),
            (Decision::Denied, false),
            (Decision::Allowed, true)
        ]
    );
    engine.stop();
    let text = std::fs::read_to_string(directory.path().join("00000000000000000001.jsonl")).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("{\"commit\"")).count(), 1, "one batch");
}

#[test]
fn a_dry_run_says_what_would_be_decided_and_leaves_nothing_behind() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let dry = |spec: &Json| engine.dry_run(candidate(spec, "decision-router", &world)).unwrap();
    let spec = handoff("hs_00000001", "key-00000001");
    for _ in 0..2 {
        let run = dry(&spec);
        assert_eq!((run.decision, run.attempt, run.replay_of), (Decision::Allowed, 1, None));
    }
    assert_eq!(engine.head(), 0);
    let first = engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap();
    let again = dry(&spec).replay_of.unwrap();
    assert_eq!(*again, Decided { replayed: true, ..(*first).clone() });
    let reused = dry(&handoff("hs_00000001", "key-00000002"));
    assert_eq!(reused.decision, Decision::Denied);
    assert_eq!(reused.reasons[0].code, Code::HandoffReused);
    let outcome = |gate: Gate| reused.gates.iter().find(|(other, _)| *other == gate).unwrap().1;
    assert_eq!(outcome(Gate::Identity), Outcome::Fail);
    assert_eq!(outcome(Gate::Stage), Outcome::Pass);
    assert_eq!(outcome(Gate::Lineage), Outcome::NotApplicable);
    assert_eq!((engine.head(), engine.waiting()), (3, 0));
}

#[test]
fn a_dry_run_does_not_wait_for_a_sequencer_that_is_held_up_unless_it_may() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let mut asked = candidate(&handoff("hs_00000001", "key-00000001"), "decision-router", &world);
    let held = engine.shared.desk.lock();
    assert!(engine.dry_run_soon(&mut asked).is_none());
    std::thread::scope(|scope| {
        let waits =
            scope.spawn(|| engine.dry_run(candidate(&handoff("hs_2", "key-2"), "decision-router", &world)));
        drop(held);
        assert!(waits.join().unwrap().is_ok());
    });
    assert_eq!(engine.dry_run_soon(&mut asked).unwrap().unwrap().decision, Decision::Allowed);
}

#[test]
fn tokens_and_keys_are_recorded_when_they_change_and_only_then() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let token = |name: &str| TokenFacts {
        agent_id: None,
        name: name.to_owned(),
        principal: None,
        role: "auditor".to_owned(),
        token_id: format!("tok_{name}"),
    };
    let ring = || {
        let mut ring = Keyring::default();
        let secret = crate::proof::Secret::new(vec![7; 32]);
        let key = crate::proof::Key::hmac("key-one", "user:main", crate::proof::Purpose::Envelope, secret);
        ring.add(key.unwrap()).unwrap();
        ring
    };
    let put = |engine: &EngineHandle, keyring: Keyring, names: &[&str]| {
        let tokens = names.iter().map(|name| token(name)).collect();
        let in_force = InForce::of_files(policies(), Arc::new(keyring), tokens);
        engine.put_in_force_and_wait(Arc::new(in_force)).unwrap();
    };
    let mut engine = start(directory.path(), &world);
    put(&engine, Keyring::default(), &["ada"]);
    put(&engine, ring(), &["ada", "bob"]);
    engine.stop();
    engine = start(directory.path(), &world);
    // The same again after a restart says nothing new.
    put(&engine, ring(), &["ada", "bob"]);
    put(&engine, Keyring::default(), &["bob"]);
    engine.stop();
    let head = open(directory.path()).head().sequence;
    let wires: Vec<Json> = Entries::read(directory.path(), 1, head)
        .unwrap()
        .map(|entry| serde_json::from_str(&entry.unwrap().wire).unwrap())
        .collect();
    let said: Vec<(&str, &Json)> = wires
        .iter()
        .filter(|wire| wire["stream"]["stream_id"] == "project:gw_test")
        .map(|wire| (wire["type"].as_str().unwrap(), &wire["payload"]))
        .collect();
    let kinds: Vec<&str> = said.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        ["policy.loaded", "token.created", "token.created", "key.added", "token.revoked", "key.removed"]
    );
    assert_eq!(said[4].1["name"], "ada");
    assert_eq!(said[3].1["owner"], "user:main");
    assert!(!wires.iter().any(|wire| wire.to_string().contains("0707")), "no secret");
}
