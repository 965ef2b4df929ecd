//! What a Wire stream looks like to clients: tasks and events through whole lives, in both versions.

use handoffd::a2a::{Life, Message, Shown, TaskId, Version, body, input_required, resume_from, send_result};
use handoffd::timestamp::Timestamp;
use handoffd::wire::{Contracts, Envelope, Kind, State};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::stage::{Stage, fixture, golden};

const CREATED: &[&str] = &["task.created", "gate.decided"];
const WAITING: &[&str] = &["task.created", "gate.decided", "approval.requested"];
const AVAILABLE: &[&str] = &["task.created", "gate.decided", "task.available"];
const CLAIMED: &[&str] = &["task.created", "gate.decided", "task.available", "task.claimed"];
const WORKING: &[&str] =
    &["task.created", "gate.decided", "task.available", "task.claimed", "task.started", "artifact.ready"];
const BLOCKED: &[&str] =
    &["task.created", "gate.decided", "task.available", "task.claimed", "task.started", "task.blocked"];

fn stage() -> Stage {
    Stage::new(Life::new(Contracts::embedded()))
}

fn said(text: &str) -> Message {
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}).to_string();
    Message::read(Version::V1_0, body(message.as_bytes()).unwrap().root(), "/params/message").unwrap()
}

fn task(stage: &Stage, version: Version) -> Json {
    stage.life.to_json(&Shown::whole(version, &[])).unwrap()
}

/// Every event that may come in every state, with what both versions are shown. A message before there is a task is not.
#[test]
fn every_event_in_every_state_is_shown_as_the_contract_says() {
    let mut lines = Vec::new();
    for path in [&[][..], CREATED, WAITING, AVAILABLE, CLAIMED, WORKING, BLOCKED] {
        for kind in
            Kind::ALL.iter().copied().filter(|kind| kind.state().is_some() || *kind == Kind::MessageSent)
        {
            for sender in ["", " by system"] {
                let mut stage = stage();
                stage.play(path);
                let before = stage.stream_state();
                let shown = stage.updates.len();
                let step = format!("{kind}{sender}");
                // The one who reports is said only where the gateway may report, too.
                let sent_by = fixture(kind)["sender"].clone();
                let differs = !sender.is_empty() && (sent_by == "system" || kind == Kind::MessageSent);
                if differs || !stage.try_play(&step, Some(&said("hello"))) {
                    continue;
                }
                let from = before.map_or("-", State::as_str);
                let line = match stage.updates.get(shown) {
                    None => format!("{from} {step}: not shown"),
                    Some(update) => {
                        let told = update.to_stream_event(Contracts::embedded());
                        let [old, new] =
                            Version::ALL.map(|version| task(&stage, version)["status"]["state"].clone());
                        let (old, new) = (old.as_str().unwrap().to_owned(), new.as_str().unwrap().to_owned());
                        assert_eq!(new, format!("TASK_STATE_{}", old.to_uppercase().replace('-', "_")));
                        format!("{from} {step}: {} {old}", told.event)
                    }
                };
                lines.push(line);
            }
        }
    }
    let expected = "\
- task.created: task submitted
- message.sent: not shown
created task.available: status submitted
created task.rejected: final rejected
created task.cancelled: final canceled
created approval.requested: status auth-required
created message.sent: status submitted
waiting task.available: status submitted
waiting task.rejected: final rejected
waiting task.cancelled: final canceled
waiting message.sent: status auth-required
available task.claimed: status working
available task.failed by system: final failed
available task.cancelled: final canceled
available message.sent: status submitted
claimed task.available: status working
claimed task.started: status working
claimed task.blocked: status input-required
claimed task.blocked by system: status input-required
claimed task.failed: final failed
claimed task.failed by system: final failed
claimed task.cancelled: final canceled
claimed message.sent: status working
working task.available: status working
working task.blocked: status input-required
working task.blocked by system: status input-required
working artifact.ready: artifact working
working task.complete: final completed
working task.failed: final failed
working task.failed by system: final failed
working task.cancelled: final canceled
working message.sent: status working
blocked task.available: status working
blocked task.started: status working
blocked task.failed: final failed
blocked task.failed by system: final failed
blocked task.cancelled: final canceled
blocked message.sent: status input-required";
    assert_eq!(lines.join("\n"), expected);
}

/// A stream whose handoff was refused, for another reason than the fixtures have.
fn refuse(stage: &mut Stage, before: &[&str]) {
    stage.play(before);
    for kind in [Kind::GateDecided, Kind::TaskRejected] {
        let mut event = fixture(kind);
        event["payload"]["codes"] = json!(["POLICY_AGENT_DENIED"]);
        if kind == Kind::GateDecided {
            event["payload"]["decision"] = json!("denied");
            event["payload"].as_object_mut().unwrap().shift_remove("evidenceDigest");
        }
        assert!(stage.take(event, None), "{kind} was refused");
    }
}

/// Everything that both kinds of clients see of a life.
fn record(stage: &Stage, version: Version, history: &[Message]) -> Json {
    let contracts = Contracts::embedded();
    let events: Vec<Json> = stage
        .updates
        .iter()
        .map(|update| json!({"id": update.id(), "final": update.is_final(), "result": update.to_json(contracts, version)}))
        .collect();
    let task = stage.life.to_json(&Shown::whole(version, history)).unwrap();
    json!({"stream": events, "answer": send_result(task, version)})
}

#[test]
fn a_whole_life_is_what_clients_have_seen() {
    let mut completed = stage();
    completed.play(WAITING).play(&[
        "approval.granted",
        "gate.decided",
        "task.available",
        "task.claimed",
        "task.started",
    ]);
    completed.play(&["task.blocked"]);
    assert!(completed.try_play("message.sent", Some(&said("the feed is back"))));
    completed.play(&["task.started", "artifact.ready", "task.available", "task.claimed", "task.started"]);
    completed.play(&["artifact.ready", "task.complete"]);

    let answer = json!({
        "decision": "denied", "handoffId": "hs_20260218_router_0001", "attempt": 2, "replayed": false,
        "gates": [{"gate": "D1", "outcome": "fail"}],
        "reasons": [{"gate": "D1", "code": "POLICY_AGENT_DENIED", "path": "/target/agentId", "message": "no", "hint": "ask"}],
        "policyDigest": "sha256:2222222222222222222222222222222222222222222222222222222222222222",
        "dispatch": {"secret": "work"}, "receipt": {"signature": "x"}, "audit": {"delegation": {}},
    });
    let life = Life::new(Contracts::embedded()).decided(&answer);
    let mut rejected = Stage::in_stream(life, "task:hs_20260218_router_0001:attempt:2");
    refuse(&mut rejected, &["task.created"]);

    let mut cancelled = stage();
    cancelled.play(CLAIMED).play(&["task.cancelled by human:rita"]);

    for version in Version::ALL {
        let name = |life: &str| format!("{life}-{}.json", version.as_str());
        golden(&name("completed"), &record(&completed, version, &[said("please swap")]));
        golden(&name("rejected"), &record(&rejected, version, &[]));
        golden(&name("cancelled"), &record(&cancelled, version, &[]));
    }
    let stream: Vec<Json> = completed
        .updates
        .iter()
        .map(|update| update.to_stream_event(Contracts::embedded()))
        .map(|told| json!({"event": told.event, "id": told.id, "data": told.data}))
        .collect();
    golden("completed-stream.json", &json!(stream));
}

#[test]
fn a_refused_handoff_shows_its_decision_and_nothing_to_act_on() {
    let answer = json!({"decision": "denied", "reasons": [{"code": "POLICY_AGENT_DENIED"}], "dispatch": {"x": 1}, "receipt": {"y": 2}});
    let expected = json!({"decision": "denied", "reasons": [{"code": "POLICY_AGENT_DENIED"}]});
    let mut stage = Stage::new(Life::new(Contracts::embedded()).decided(&answer));
    refuse(&mut stage, &["task.created"]);
    let task_1_0 = task(&stage, Version::V1_0);
    assert_eq!(task_1_0["artifacts"][0]["parts"][0]["data"], expected);
    assert_eq!(task_1_0["status"]["message"]["parts"][1]["data"], expected);
    assert_eq!(
        task(&stage, Version::V0_3)["artifacts"][0]["parts"][0],
        json!({"kind": "data", "data": expected})
    );
    // Without the answer at hand, the stream tells what it can.
    let mut alone = self::stage();
    refuse(&mut alone, &["task.created"]);
    let shown = &task(&alone, Version::V1_0)["artifacts"][0]["parts"][0]["data"];
    assert_eq!(
        (&shown["decision"], &shown["reasons"][0]["code"]),
        (&json!("denied"), &json!("POLICY_AGENT_DENIED"))
    );
    // So it does when the caller was answered before a person said no.
    let waits = json!({"decision": "needs_approval", "reasons": []});
    let mut late = Stage::new(Life::new(Contracts::embedded()).decided(&waits));
    refuse(&mut late, &["task.created", "gate.decided", "approval.requested", "approval.rejected"]);
    assert_eq!(&task(&late, Version::V1_0)["artifacts"][0]["parts"][0]["data"]["decision"], "denied");
    // An allowed one has none.
    let mut allowed = Stage::new(Life::new(Contracts::embedded()).decided(&answer));
    allowed.play(AVAILABLE);
    assert_eq!(task(&allowed, Version::V1_0).get("artifacts"), None);
}

/// What people and the gateway say among themselves is not for clients; what an agent says of its work is.
#[test]
fn only_an_agents_own_words_are_shown() {
    const PRIVATE: &str = "rita suspects fraud";
    let check = |path: &[&str], kind: Kind, sender: &str, member: &str| {
        let mut stage = stage();
        stage.play(path);
        let mut event = fixture(kind);
        event["sender"] = json!(sender);
        event["payload"][member] = json!(PRIVATE);
        assert!(stage.take(event, None), "{kind} by {sender}");
        for version in Version::ALL {
            let mut shown = task(&stage, version).to_string();
            for update in &stage.updates {
                shown.push_str(&update.to_json(Contracts::embedded(), version).to_string());
            }
            assert!(!shown.contains("rita"), "{kind} by {sender}: {shown}");
        }
    };
    // The words themselves name nobody where they are shown.
    let agent = |path: &[&str], kind: Kind, sender: &str, member: &str| {
        let mut stage = stage();
        stage.play(path);
        let mut event = fixture(kind);
        event["sender"] = json!(sender);
        event["payload"][member] = json!("the feed is down");
        assert!(stage.take(event, None));
        assert!(task(&stage, Version::V1_0)["status"]["message"].to_string().contains("the feed is down"));
    };
    check(WORKING, Kind::TaskCancelled, "human:rita", "reason");
    check(WORKING, Kind::TaskBlocked, "system", "reason");
    check(WORKING, Kind::TaskFailed, "system", "message");
    check(WORKING, Kind::TaskAvailable, "system", "reason");
    check(WAITING, Kind::ApprovalRejected, "human:rita", "reason");
    agent(WORKING, Kind::TaskBlocked, "agent:crypto-sage", "reason");
    agent(WORKING, Kind::TaskFailed, "agent:crypto-sage", "message");
    agent(WORKING, Kind::TaskCancelled, "agent:decision-router", "reason");
}

#[test]
fn a_task_keeps_the_id_that_it_began_with() {
    let mut second =
        Stage::in_stream(Life::new(Contracts::embedded()), "task:hs_20260218_router_0001:attempt:2");
    second.play(AVAILABLE);
    assert_eq!(task(&second, Version::V1_0)["id"], "hs_20260218_router_0001~2");
    let id = TaskId::parse("task_01ARYZ6S410000000000000000").unwrap();
    let mut asked = Stage::new(Life::new(Contracts::embedded()).begun_as(&id));
    asked.play(AVAILABLE);
    let shown = task(&asked, Version::V0_3);
    assert_eq!(
        (&shown["id"], &shown["contextId"]),
        (&json!(id.to_string()), &json!("corr_20260218_swap_cycle_9001"))
    );
    assert_eq!(shown["metadata"]["handoffId"], "hs_20260218_router_0001");
    assert!(shown["metadata"]["traceparent"].as_str().unwrap().starts_with("00-0af7"));
}

#[test]
fn a_message_without_a_task_spec_waits_for_one_and_says_so() {
    let id = TaskId::parse("task_01ARYZ6S410000000000000000").unwrap();
    let at = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
    let history = [said("hello")];
    let shown = |version| input_required(&id, "ctx_1", at, &history[0], &Shown::whole(version, &history));
    let (old, new) = (shown(Version::V0_3), shown(Version::V1_0));
    assert_eq!((&old["kind"], &old["status"]["state"]), (&json!("task"), &json!("input-required")));
    assert_eq!((new.get("kind"), &new["status"]["state"]), (None, &json!("TASK_STATE_INPUT_REQUIRED")));
    assert_eq!(new["status"]["timestamp"], "2026-02-18T19:38:00.000Z");
    assert!(new["status"]["message"]["parts"][0]["text"].as_str().unwrap().contains("send the TaskSpec"));
    assert_eq!(new["status"]["message"]["role"], "ROLE_AGENT");
    assert_eq!(new["history"][0]["parts"][0]["text"], "hello");
}

#[test]
fn as_much_of_the_history_is_shown_as_was_asked_for() {
    let mut stage = stage();
    stage.play(WORKING);
    let history = [said("one"), said("two"), said("three")];
    let count = |history_length| {
        let shown = Shown { history_length, ..Shown::whole(Version::V1_0, &history) };
        let task = stage.life.to_json(&shown).unwrap();
        let texts = task["history"].as_array().map(|history| {
            history
                .iter()
                .map(|message| message["parts"][0]["text"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        });
        texts.unwrap_or_default().join(" ")
    };
    assert_eq!(count(None), "one two three");
    assert_eq!(count(Some(2)), "two three");
    assert_eq!(count(Some(9)), "one two three");
    assert_eq!(count(Some(0)), "");
    let without = Shown { artifacts: false, ..Shown::whole(Version::V1_0, &[]) };
    assert_eq!(stage.life.to_json(&without).unwrap().get("artifacts"), None);
    assert_eq!(task(&stage, Version::V1_0)["artifacts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_client_waits_until_there_is_something_for_it_to_do() {
    for (path, settled) in [
        (&[][..], false),
        (CREATED, false),
        (WAITING, true),
        (AVAILABLE, false),
        (WORKING, false),
        (BLOCKED, true),
    ] {
        let mut stage = stage();
        stage.play(path);
        assert_eq!((stage.life.is_settled(), stage.life.is_ended()), (settled, false), "{path:?}");
    }
    let mut ended = stage();
    ended.play(WORKING).play(&["task.complete"]);
    assert!(ended.life.is_settled() && ended.life.is_ended());
}

#[test]
fn a_stream_goes_on_where_a_client_was() {
    let check = |from: Option<&str>, last: Option<&str>, expected: Result<u64, &str>| {
        assert_eq!(resume_from(from, last).map_err(|fault| fault.name), expected, "{from:?} {last:?}");
    };
    check(None, None, Ok(1));
    check(Some("0"), None, Ok(1));
    check(Some("4"), None, Ok(4));
    check(None, Some("4"), Ok(5));
    check(Some("2"), Some("4"), Ok(5));
    check(Some("2"), Some(""), Ok(2));
    check(None, Some("18446744073709551615"), Ok(u64::MAX));
    for text in ["", "-1", "+1", "1.0", "x", "18446744073709551616"] {
        check(Some(text), None, Err("from"));
    }
    check(Some("2"), Some("x"), Err("Last-Event-ID"));
}

#[test]
fn an_event_is_told_once() {
    let mut stage = stage();
    stage.play(WORKING);
    let told = stage.updates.len();
    let mut again = fixture(Kind::TaskStarted);
    again["stream"]["stream_seq"] = json!(stage.life.stream_seq());
    let text = again.to_string();
    let envelope = Envelope::parse(&text).unwrap();
    assert_eq!((stage.life.take(&envelope, None), stage.updates.len()), (None, told));
}

/// How far a word is from the beginning, by what A2A says of it alone.
fn progress(word: &str) -> u8 {
    match word {
        "submitted" | "auth-required" => 0,
        "working" | "input-required" => 1,
        "completed" | "canceled" | "failed" | "rejected" => 2,
        other => panic!("`{other}` is no state"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any order of events that the reducer takes.
    #[test]
    fn a_task_never_goes_back_and_ends_once(steps in prop::collection::vec(0usize..18, 0..60)) {
        const STEPS: [&str; 18] = [
            "gate.decided", "approval.requested", "approval.granted", "approval.rejected", "task.available",
            "task.available", "task.claimed", "task.claimed", "task.started", "task.started", "task.blocked",
            "task.blocked by system", "artifact.ready", "message.sent", "task.failed", "task.complete",
            "task.rejected", "task.cancelled",
        ];
        let mut stage = stage();
        let words = said("hello");
        stage.play(&["task.created"]);
        for step in steps {
            // What ends a stream is rare, so that most streams live for a while.
            stage.try_play(STEPS[step], Some(&words));
        }
        let is_open = stage.stream_state().is_some_and(|state| !Contracts::embedded().is_terminal(state));
        prop_assert_eq!(!is_open, stage.life.is_ended());
        if is_open {
            stage.play(&["task.cancelled"]);
        }
        let told: Vec<_> = stage.updates.iter().map(|update| update.to_stream_event(Contracts::embedded())).collect();
        prop_assert_eq!(told.first().map(|told| told.event), Some("task"));
        prop_assert_eq!(told.iter().filter(|told| told.event == "final").count(), 1);
        prop_assert_eq!(told.last().map(|told| told.event), Some("final"));
        prop_assert!(told.last().is_some_and(|told| told.data["final"] == true));
        prop_assert!(told.windows(2).all(|pair| pair[0].id < pair[1].id));
        let words: Vec<&str> = told.iter().filter_map(|told| told.data["status"]["state"].as_str()).collect();
        prop_assert!(words.windows(2).all(|pair| progress(pair[0]) <= progress(pair[1])), "{:?}", words);
        // Whoever reads the task sees what the stream said last.
        let task = task(&stage, Version::V0_3);
        prop_assert_eq!(task["status"]["state"].as_str(), words.last().copied());
    }
}
