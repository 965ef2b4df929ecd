//! What agents report: taken in once, in order, by whoever may, and there after a restart.

use super::*;
use crate::wire::{Sender, SentEvent, Side, State, WireCode};

/// An event as an agent sends it, for the first attempt at a handoff of the canonical cycle.
fn event(handoff_id: &str, seq: u64, kind: &str, sender: &str, payload: Json) -> Json {
    let (category, terminal) = kind.parse::<crate::wire::Kind>().unwrap().state().unwrap();
    json!({
        "wire": "1.1", "wire_id": format!("wire_{}{seq:08}", handoff_id.replace('_', "")), "type": kind,
        "ts": "2026-02-18T19:38:05Z", "sender": sender, "payload": payload,
        "state": {"category": category.as_str(), "terminal": terminal},
        "stream": {"stream_id": format!("task:{handoff_id}:attempt:1"), "stream_seq": seq,
            "context_id": "corr_strategy_cycle_9001", "correlation_id": "corr_strategy_cycle_9001"},
    })
}

fn report(engine: &EngineHandle, event: &Json) -> Result<Reported, ReportRefusal> {
    let handoff_id = event["stream"]["stream_id"].as_str().unwrap().split(':').nth(1).unwrap().to_owned();
    let event = SentEvent::parse(&event.to_string()).unwrap();
    // The router hands over, and takes work of its own from nobody.
    let is_source = event.envelope().unwrap().sender() == Sender::Agent("decision-router");
    let side = if is_source { Side::Source } else { Side::Target };
    engine.report_and_wait(Report { handoff_id, event, side }).unwrap()
}

#[track_caller]
fn taken(engine: &EngineHandle, event: &Json, state: State) -> Reported {
    let reported = report(engine, event).unwrap();
    assert_eq!((reported.state, reported.replayed), (state, false), "{event}");
    reported
}

#[track_caller]
fn refused(engine: &EngineHandle, event: &Json, code: WireCode, expected: Option<u64>) {
    match report(engine, event) {
        Err(ReportRefusal::Refused { fault, expected: told }) => {
            assert_eq!((fault.code, told), (code, expected), "{event}");
        }
        other => panic!("{other:?} for {event}"),
    }
}

const TARGET: &str = "agent:crypto-sage";

fn artifact() -> Json {
    json!({"artifact_id": "report", "uri": "s3://reports/1", "version": 1,
        "hash": format!("sha256:{}", "0".repeat(64))})
}

fn completed() -> Json {
    json!({"artifact_ids": ["report"], "verification": {"mechanical": "pass"}})
}

/// An engine with the shipped policies in force, and one allowed handoff.
fn engine_with(directory: &Path, world: &TestWorld, id: &str) -> EngineHandle {
    let engine = start(directory, world);
    engine.put_in_force_and_wait(in_force(policies(), Keyring::default())).unwrap();
    let spec = handoff(id, &format!("key-{id}"));
    let decided = engine.submit_and_wait(candidate(&spec, "decision-router", world)).unwrap();
    assert_eq!(decided.decision, Decision::Allowed, "{:?}", decided.reasons);
    engine
}

#[test]
fn a_handoff_lives_on_and_a_restart_goes_on_where_it_was() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let id = "hs_00000001";
    let mut engine = engine_with(directory.path(), &world, id);
    let steps = [
        (4, "task.claimed", json!({}), State::Claimed),
        (5, "task.started", json!({}), State::Working),
        (6, "task.blocked", json!({"reason": "no funds"}), State::Blocked),
        (7, "task.started", json!({}), State::Working),
        (8, "artifact.ready", artifact(), State::Working),
        (9, "task.complete", completed(), State::Completed),
    ];
    for (seq, kind, payload, state) in &steps {
        let event = event(id, *seq, kind, TARGET, payload.clone());
        let first = taken(&engine, &event, *state);
        // Whatever was taken in is known again, also by whoever comes after a restart.
        engine.stop();
        engine = start(directory.path(), &world);
        engine.put_in_force_and_wait(in_force(policies(), Keyring::default())).unwrap();
        let again = report(&engine, &event).unwrap();
        assert_eq!(again, Reported { replayed: true, ..first });
        // The same id with other content is another event.
        let mut other = event.clone();
        other["ts"] = json!("2026-02-18T19:38:06Z");
        refused(&engine, &other, WireCode::Duplicate, None);
    }
    let late = event(id, 10, "task.started", TARGET, json!({}));
    refused(&engine, &late, WireCode::Terminal, None);
    engine.stop();
}

#[test]
fn an_event_is_refused_for_one_reason_and_changes_nothing() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let id = "hs_00000001";
    let engine = engine_with(directory.path(), &world, id);
    let claim = event(id, 4, "task.claimed", TARGET, json!({}));
    let head = engine.head();

    assert_eq!(
        report(&engine, &event("hs_99999999", 4, "task.claimed", TARGET, json!({}))),
        Err(ReportRefusal::Unknown)
    );
    let stranger = event(id, 4, "task.claimed", "agent:stranger", json!({}));
    assert_eq!(report(&engine, &stranger), Err(ReportRefusal::Unknown));
    // The source has to do with it, and may not claim what it handed over.
    refused(
        &engine,
        &event(id, 4, "task.claimed", "agent:decision-router", json!({})),
        WireCode::Sender,
        None,
    );
    refused(&engine, &event(id, 5, "task.claimed", TARGET, json!({})), WireCode::Sequence, Some(4));
    refused(&engine, &event(id, 4, "task.started", TARGET, json!({})), WireCode::Transition, None);
    let mut elsewhere = claim.clone();
    elsewhere["stream"]["context_id"] = json!("another-cycle");
    refused(&engine, &elsewhere, WireCode::Stream, None);
    let mut attempt = claim.clone();
    attempt["stream"]["stream_id"] = json!(format!("task:{id}:attempt:2"));
    refused(&engine, &attempt, WireCode::Stream, None);
    // An operator does not approve, and nobody makes a handoff available, by reporting it.
    let mut approval = claim.clone();
    approval["type"] = json!("approval.granted");
    approval["sender"] = json!("human:rita");
    approval["payload"] = json!({"task_spec_digest": format!("sha256:{}", "0".repeat(64))});
    approval.as_object_mut().unwrap().remove("state");
    refused(&engine, &approval, WireCode::Sender, None);
    assert_eq!(engine.head(), head);

    taken(&engine, &claim, State::Claimed);
    taken(&engine, &event(id, 5, "task.started", TARGET, json!({})), State::Working);
    refused(&engine, &event(id, 6, "task.complete", TARGET, completed()), WireCode::Artifact, None);
    // The fallback may claim, but not report on what another has claimed.
    refused(
        &engine,
        &event(id, 6, "task.blocked", "agent:crypto-sage-dr", json!({"reason": "x"})),
        WireCode::Sender,
        None,
    );
    engine.stop();
}

#[test]
fn of_all_who_claim_at_once_one_wins() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = engine_with(directory.path(), &world, "hs_00000001");
    for n in 2..=20 {
        let spec = handoff(&format!("hs_{n:08}"), &format!("key-{n:08}"));
        engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap();
    }
    for n in 1..=20 {
        let id = format!("hs_{n:08}");
        let claims: Vec<Json> = ["agent:crypto-sage", "agent:crypto-sage-dr", "agent:blockchain-operator"]
            .into_iter()
            .enumerate()
            .map(|(k, sender)| {
                let mut claim = event(&id, 4, "task.claimed", sender, json!({}));
                claim["wire_id"] = json!(format!("wire_claim{n:04}{k:04}"));
                claim
            })
            .collect();
        let won = std::thread::scope(|scope| {
            let threads: Vec<_> =
                claims.iter().map(|claim| scope.spawn(|| report(&engine, claim).is_ok())).collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>()
        });
        assert_eq!(won, 1, "{id}");
    }
    engine.stop();
}

#[test]
fn what_is_claimed_and_silent_for_too_long_is_available_again() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let id = "hs_00000001";
    let engine = engine_with(directory.path(), &world, id);
    taken(&engine, &event(id, 4, "task.claimed", TARGET, json!({})), State::Claimed);
    // A minute before the lease ends the claimer is heard of, which renews it.
    world.at(14 * 60);
    taken(&engine, &event(id, 5, "task.started", TARGET, json!({})), State::Working);
    world.at(28 * 60);
    let other = |seq| event(id, seq, "task.claimed", "agent:crypto-sage-dr", json!({}));
    refused(&engine, &other(6), WireCode::Transition, None);
    engine.stop();
    let head = engine.head();
    // Nobody keeps time while the daemon is down, and the ledger's time counts all the same.
    world.at(30 * 60);
    let engine = start(directory.path(), &world);
    engine.put_in_force_and_wait(in_force(policies(), Keyring::default())).unwrap();
    // The sequencer looks for what is due by itself.
    eventually(|| engine.head() > head);
    taken(&engine, &other(7), State::Claimed);
    refused(&engine, &event(id, 8, "task.complete", TARGET, completed()), WireCode::Sender, None);
    engine.stop();
    let kinds: Vec<String> = Entries::read(directory.path(), 1, head + 2)
        .unwrap()
        .map(|entry| serde_json::from_str::<Json>(&entry.unwrap().wire).unwrap())
        .filter(|wire| wire["stream"]["stream_id"].as_str().unwrap().starts_with("task:"))
        .map(|wire| format!("{} by {}", wire["type"].as_str().unwrap(), wire["sender"].as_str().unwrap()))
        .collect();
    assert_eq!(kinds[5..], ["task.available by system", "task.claimed by agent:crypto-sage-dr"]);
}

#[test]
fn a_cancelled_handoff_is_not_dispatched_again() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let id = "hs_00000001";
    let engine = engine_with(directory.path(), &world, id);
    let again = || {
        let spec = handoff(id, &format!("key-{id}"));
        engine.submit_and_wait(candidate(&spec, "decision-router", &world)).unwrap()
    };
    assert!(matches!(again().pass, Pass::Dispatch { .. }));
    let cancel =
        event(id, 4, "task.cancelled", "agent:decision-router", json!({"reason": "changed my mind"}));
    assert!(taken(&engine, &cancel, State::Cancelled).terminal);
    assert_eq!((again().pass, again().decision), (Pass::Withheld, Decision::Allowed));
    engine.stop();
}
