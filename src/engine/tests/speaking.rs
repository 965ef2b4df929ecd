//! Messages over A2A: claimed with what they do, given back with it, and remembered.

use super::failing::gated;
use super::*;
use crate::ledger::Entry;
use crate::proof::Digest;
use crate::wire::Side;

/// A message of the router's; `spec` is the TaskSpec that it hands over.
fn saying(message_id: &str, words: &str, to: Addressee) -> Saying {
    let digest = Digest::of(words.as_bytes());
    Saying {
        caller: "orchestrator:decision-router".into(),
        sender: "agent:decision-router".into(),
        side: Side::Source,
        message_id: message_id.to_owned(),
        content: digest,
        words: words.into(),
        payload: json!({"message_id": message_id, "metadata": {}, "role": "agent",
            "parts": [{"kind": "data", "digest": digest.to_string()}]}),
        context_id: "ctx_1".to_owned(),
        to,
    }
}

fn handing(message_id: &str, spec: &Json, asked: Option<&str>, world: &TestWorld) -> Saying {
    let candidate = Box::new(candidate(spec, "decision-router", world));
    let (asked, otherwise) = (asked.map(str::to_owned), "task_otherwise".to_owned());
    saying(message_id, &spec.to_string(), Addressee::Gates { candidate, asked, otherwise })
}

fn say(engine: &EngineHandle, saying: Saying) -> Result<Said, EngineFault> {
    let (told, heard) = channel();
    engine.say(saying, Box::new(move |said| drop(told.send(said))))?;
    heard.recv().unwrap()
}

fn place(asked: Option<&str>, handoff: Option<(&str, u32)>) -> SaidPlace {
    SaidPlace {
        asked: asked.map(str::to_owned),
        handoff: handoff.map(|(handoff_id, attempt)| (handoff_id.to_owned(), attempt)),
    }
}

#[track_caller]
fn taken(said: Result<Said, EngineFault>) -> SaidPlace {
    match said {
        Ok(Said::Taken { place, .. }) => place,
        other => panic!("{other:?}"),
    }
}

/// What a message wrote is what the ledger then has: whoever said it is shown that without reading it back.
#[test]
fn what_a_message_wrote_comes_with_its_answer() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let nobody = Addressee::Nobody { asked: "task_1".to_owned(), begins: true };
    let first = handing("m1", &handoff("hs_00000001", "key-00000001"), None, &world);
    let mut told: Vec<Vec<Entry>> = Vec::new();
    for saying in [
        first.clone(),
        saying("m2", "hello", nobody),
        handing("m3", &handoff("hs_00000002", "key-00000002"), Some("task_1"), &world),
    ] {
        match say(&engine, saying) {
            Ok(Said::Taken { written, .. }) => told.push(written),
            other => panic!("{other:?}"),
        }
    }
    before(say(&engine, first));
    engine.stop();
    assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), [4, 1, 4]);
    let kept: Vec<Entry> = Entries::read(directory.path(), 1, 9).unwrap().map(Result::unwrap).collect();
    assert_eq!(told.concat(), kept);
}

#[track_caller]
fn before(said: Result<Said, EngineFault>) -> SaidPlace {
    match said {
        Ok(Said::Before(place)) => place,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_is_claimed_with_the_decision_that_it_leads_to() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let mut engine = start(directory.path(), &world);
    let (spec, other) = (handoff("hs_00000001", "key-00000001"), handoff("hs_00000002", "key-00000002"));
    let here = place(None, Some(("hs_00000001", 1)));
    assert_eq!(taken(say(&engine, handing("m1", &spec, None, &world))), here);
    for restarted in [false, true] {
        if restarted {
            engine.stop();
            engine = start(directory.path(), &world);
        }
        let head = engine.head();
        assert_eq!(before(say(&engine, handing("m1", &spec, None, &world))), here);
        assert!(matches!(say(&engine, handing("m1", &other, None, &world)), Ok(Said::OtherContent)));
        assert_eq!(engine.head(), head, "nothing was written");
        // Another caller's message of that id is another message.
        let mut theirs = handing("m1", &spec, None, &world);
        theirs.caller = format!("admin:{restarted}").into();
        assert_eq!(taken(say(&engine, theirs)), here, "the same handoff, given again");
    }
    // The group of the decision, and the message behind it.
    engine.stop();
    let entries: Vec<Json> = Entries::read(directory.path(), 1, 4)
        .unwrap()
        .map(|entry| serde_json::from_str(&entry.unwrap().wire).unwrap())
        .collect();
    let kinds: Vec<&str> = entries.iter().map(|wire| wire["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["task.created", "gate.decided", "task.available", "message.sent"]);
    assert_eq!(entries[3]["payload"]["metadata"]["a2a.handoff"], "hs_00000001");
}

#[test]
fn a_task_without_a_task_spec_is_gone_on_with_once_and_by_its_own_caller() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let mut engine = start(directory.path(), &world);
    let nobody =
        |id: &str, task: &str, begins| saying(id, id, Addressee::Nobody { asked: task.to_owned(), begins });
    assert_eq!(taken(say(&engine, nobody("m1", "task_1", true))), place(Some("task_1"), None));
    assert_eq!(taken(say(&engine, nobody("m2", "task_1", false))), place(Some("task_1"), None));
    let mut theirs = nobody("m3", "task_1", false);
    theirs.caller = "orchestrator:other".into();
    assert!(matches!(say(&engine, theirs), Ok(Said::Unknown)));
    assert!(matches!(say(&engine, nobody("m3", "task_9", false)), Ok(Said::Unknown)));
    engine.stop();
    engine = start(directory.path(), &world);
    let spec = handoff("hs_00000001", "key-00000001");
    let here = place(Some("task_1"), Some(("hs_00000001", 1)));
    assert_eq!(taken(say(&engine, handing("m4", &spec, Some("task_1"), &world))), here);
    engine.stop();
    engine = start(directory.path(), &world);
    assert_eq!(before(say(&engine, handing("m4", &spec, Some("task_1"), &world))), here);
    assert!(matches!(say(&engine, nobody("m5", "task_1", false)), Ok(Said::Over)));
    let other = handoff("hs_00000002", "key-00000002");
    assert!(matches!(say(&engine, handing("m6", &other, Some("task_1"), &world)), Ok(Said::Over)));
    // One that can be no handoff of this caller's is refused, and stays what it was begun as.
    let foreign = {
        let mut spec = handoff("hs_00000003", "key-00000003");
        spec["source"]["agentId"] = json!("other-router");
        spec
    };
    assert_eq!(
        taken(say(&engine, handing("m7", &foreign, None, &world))),
        place(Some("task_otherwise"), None)
    );
    assert!(matches!(say(&engine, nobody("m8", "task_otherwise", false)), Ok(Said::Over)));
    engine.stop();
}

#[test]
fn what_cannot_be_made_durable_was_not_said() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let (word, words) = channel();
    let engine = start_with(gated(directory.path(), words), None, directory.path(), &world);
    let spec = handoff("hs_00000001", "key-00000001");
    word.send(false).unwrap();
    assert!(matches!(say(&engine, handing("m1", &spec, None, &world)), Err(EngineFault::NotDurable(_))));
    word.send(true).unwrap();
    assert_eq!(
        taken(say(&engine, handing("m1", &spec, None, &world))),
        place(None, Some(("hs_00000001", 1))),
        "neither the message nor the handoff was taken"
    );
    engine.stop();
}

#[test]
fn a_cancellation_is_reported_like_any_other_event() {
    let (directory, world) = (tempfile::tempdir().unwrap(), TestWorld::new());
    let engine = start(directory.path(), &world);
    let spec = handoff("hs_00000001", "key-00000001");
    taken(say(&engine, handing("m1", &spec, None, &world)));
    let cancel_as = |side: Side, attempt: u32, sender: &str| {
        let (told, heard) = channel();
        let place = ("hs_00000001".to_owned(), attempt);
        engine.cancel(place, (sender.into(), side), "over", move |answer| drop(told.send(answer))).unwrap();
        heard.recv().unwrap().unwrap()
    };
    let cancel = |attempt, sender| cancel_as(Side::Source, attempt, sender);
    assert_eq!(cancel(2, "agent:decision-router"), Err(Uncanceled::Over), "there is no such attempt");
    assert_eq!(cancel(1, "agent:stranger"), Err(Uncanceled::Unknown));
    let target = cancel_as(Side::Target, 1, "agent:crypto-sage");
    assert!(matches!(target, Err(Uncanceled::Refused(_))), "the target may not");
    // A name on the other side is nobody's here.
    assert_eq!(cancel(1, "agent:crypto-sage"), Err(Uncanceled::Unknown));
    assert_eq!(cancel_as(Side::Target, 1, "agent:decision-router"), Err(Uncanceled::Unknown));
    assert_eq!(cancel(1, "agent:decision-router"), Ok(()));
    assert_eq!(cancel(1, "agent:decision-router"), Err(Uncanceled::Over));
    // Nothing is said in what has ended.
    let late = Addressee::Followers { handoff_id: "hs_00000001".to_owned(), attempt: 1 };
    assert!(matches!(say(&engine, saying("m2", "late", late)), Ok(Said::Over)));
    engine.stop();
}
