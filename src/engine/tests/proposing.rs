//! A changed policy set that waits for a person's yes, where the gateway asks first.

use super::failing::gated;
use super::*;
use crate::proof::Digest;
use crate::proposal::{PolicyAnswered, PolicyProposed, Unanswerable};

/// A set with no routes but for one of this name.
fn set(name: &str) -> Arc<PolicySet> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("policies")).unwrap();
    let shipped = include_str!("../../../policies/routes.json");
    let mut routes: Json = serde_json::from_str(shipped).unwrap();
    let route = routes["routes"]["crypto-sage.execution-plane.v1"].take();
    routes["routes"] = json!({name: route});
    let path = directory.path().join("policies/routes.json");
    crate::os::files::create_public(&path, routes.to_string().as_bytes()).unwrap();
    Arc::new(Workspace::new(directory.path()).load_policies().unwrap())
}

fn asking(log: Box<dyn Log>, directory: &Path, world: &TestWorld) -> EngineHandle {
    let (head, last) = (log.head().sequence, open(directory).last_timestamp());
    let history = Entries::read(directory, 1, head).unwrap();
    let history = history.map(|entry| entry.map_err(|fault| EngineFault::BadLedger(fault.to_string())));
    let mut setup = Setup::new(log, last, Box::new(world.clone()));
    setup.asks_first = true;
    EngineHandle::start(setup, history).unwrap()
}

fn rules(policies: &Arc<PolicySet>) -> Arc<InForce> {
    in_force(policies.clone(), Keyring::default())
}

fn approved(policies: &Arc<PolicySet>, by: Asking) -> Arc<InForce> {
    let mut rules = InForce::of_files(policies.clone(), Arc::default(), Vec::new());
    rules.consent = Consent::of(by, "looked at it".to_owned());
    Arc::new(rules)
}

fn rita() -> Asking {
    Asking::person_of("rita", None)
}

fn propose(engine: &EngineHandle, policies: &PolicySet, over: &PolicySet, how: Proposing) {
    let proposed = PolicyProposed { digest: policies.digest(), previous_digest: over.digest() };
    engine.propose(proposed, how).unwrap();
}

fn reject(engine: &EngineHandle, digest: Digest, by: Asking) -> Result<u64, Unanswerable> {
    engine.reject_policies(PolicyAnswered { digest, reason: "not this one".to_owned() }, by).unwrap()
}

/// What the gateway's own stream says of policies.
fn told(directory: &Path) -> Vec<String> {
    let head = open(directory).head().sequence;
    let entries = Entries::read(directory, 1, head).unwrap();
    let wires = entries.map(|entry| serde_json::from_str::<Json>(&entry.unwrap().wire).unwrap());
    let words = |wire: Json| {
        let word = wire["type"].as_str()?.strip_prefix("policy.")?.to_owned();
        Some(format!("{word} by {}", wire["sender"].as_str()?))
    };
    wires.filter_map(words).collect()
}

fn decided(engine: &EngineHandle, id: &str, world: &TestWorld) -> Result<String, EngineFault> {
    let spec = handoff(id, &format!("key-{id}"));
    engine
        .submit_and_wait(candidate(&spec, "decision-router", world))
        .map(|decided| decided.policy_digest.clone())
}

#[test]
fn a_set_that_replaces_another_needs_the_yes_that_goes_with_it() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = asking(Box::new(open(directory.path())), directory.path(), &world);
    let (first, second) = (set("first.execution-plane.v1"), set("second.execution-plane.v1"));
    engine.put_in_force_and_wait(rules(&first)).unwrap();
    assert_eq!(engine.policy_digest(), Some(first.digest()), "the first replaces nothing");
    assert_eq!(engine.differs(), None);
    // However it is put, nothing is decided by it and the ledger does not say that it is in force.
    for put in [EngineHandle::put_in_force_and_wait, EngineHandle::join_and_wait] {
        put(&engine, rules(&second)).unwrap();
        assert!(matches!(decided(&engine, "hs_00000001", &world), Err(EngineFault::Waits(_))));
        assert!(engine.differs().unwrap().contains(&second.digest().to_string()));
        assert_eq!(engine.policy_digest(), Some(first.digest()));
    }
    let head = engine.head();
    // Not proposed; not a person; proposed over another set; rejected.
    let check = |rules: Arc<InForce>, code: &str| {
        let fault = engine.approve_policies(rules).unwrap().unwrap_err();
        assert_eq!(fault.code(), code, "{fault}");
    };
    check(approved(&second, rita()), "POLICY_NOT_WAITING");
    propose(&engine, &second, &second, Proposing::Changed);
    check(approved(&second, rita()), "POLICY_NOT_WAITING");
    assert_eq!(engine.head(), head, "nothing of it was recorded");
    propose(&engine, &second, &first, Proposing::Changed);
    check(approved(&second, Asking::token("admin")), "POLICY_NOT_HUMAN");
    assert_eq!(reject(&engine, second.digest(), Asking::token("admin")), Err(Unanswerable::NotHuman));
    reject(&engine, second.digest(), rita()).unwrap();
    check(approved(&second, rita()), "POLICY_REJECTED");
    // Found again it stays rejected; the files changed, and it waits again.
    propose(&engine, &second, &first, Proposing::Found);
    check(approved(&second, rita()), "POLICY_REJECTED");
    propose(&engine, &second, &first, Proposing::Changed);
    engine.approve_policies(approved(&second, rita())).unwrap().unwrap();
    assert_eq!(engine.differs(), None);
    assert_eq!(decided(&engine, "hs_00000001", &world), Ok(second.digest().to_string()));
    engine.stop();
    let expected = [
        "loaded by system",
        "proposed by system",
        "rejected by human:rita",
        "proposed by system",
        "approved by human:rita",
        "loaded by system",
    ];
    assert_eq!(told(directory.path()), expected);

    // After a restart: what is in force needs nothing, what waits is known, with what became of it.
    let engine = asking(Box::new(open(directory.path())), directory.path(), &world);
    engine.put_in_force_and_wait(rules(&second)).unwrap();
    assert_eq!(engine.differs(), None);
    propose(&engine, &first, &second, Proposing::Changed);
    reject(&engine, first.digest(), rita()).unwrap();
    engine.stop();
    let engine = asking(Box::new(open(directory.path())), directory.path(), &world);
    engine.put_in_force_and_wait(rules(&first)).unwrap();
    assert!(matches!(decided(&engine, "hs_00000002", &world), Err(EngineFault::Waits(_))));
    let proposal = engine.proposal(first.digest()).unwrap();
    assert_eq!(proposal.rejected.unwrap().by, "rita");
}

#[test]
fn an_approval_that_is_not_durable_is_none() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let (say, words) = channel();
    let engine = asking(gated(directory.path(), words), directory.path(), &world);
    let (first, second) = (set("first.execution-plane.v1"), set("second.execution-plane.v1"));
    [true, true].into_iter().for_each(|word| say.send(word).unwrap());
    engine.put_in_force_and_wait(rules(&first)).unwrap();
    propose(&engine, &second, &first, Proposing::Changed);
    say.send(false).unwrap();
    let fault = engine.approve_policies(approved(&second, rita())).unwrap_err();
    assert!(matches!(fault, EngineFault::NotDurable(_)), "{fault}");
    // Taken back, the set before it decides, and the one that was not approved still waits.
    assert_eq!(engine.put_back(rules(&first), second.digest()), Ok(true));
    say.send(true).unwrap();
    assert_eq!(decided(&engine, "hs_00000001", &world), Ok(first.digest().to_string()));
    assert!(engine.proposal(second.digest()).unwrap().rejected.is_none());
    // Should a decision come before it is taken back, the yes is written with the load: it is in force after all.
    say.send(false).unwrap();
    engine.approve_policies(approved(&second, rita())).unwrap_err();
    say.send(true).unwrap();
    assert_eq!(decided(&engine, "hs_00000002", &world), Ok(second.digest().to_string()));
    assert_eq!(engine.put_back(rules(&first), second.digest()), Ok(false));
    assert_eq!(engine.policy_digest(), Some(second.digest()));
    engine.stop();
    let expected = ["loaded by system", "proposed by system", "approved by human:rita", "loaded by system"];
    assert_eq!(told(directory.path()), expected);
}

#[test]
fn without_asking_first_every_set_is_in_force_at_once() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let (first, second) = (set("first.execution-plane.v1"), set("second.execution-plane.v1"));
    for policies in [&first, &second] {
        engine.put_in_force_and_wait(rules(policies)).unwrap();
        assert_eq!((engine.policy_digest(), engine.differs()), (Some(policies.digest()), None));
    }
    engine.stop();
    assert_eq!(told(directory.path()), ["loaded by system", "loaded by system"]);
}
