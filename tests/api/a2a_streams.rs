//! A2A streams: in order, numbered, and resumed from anywhere without loss or repeats.

use serde_json::{Value as Json, json};

use super::conversation::{BOTH, Conversation, Version, work};
use super::harness::{lost_spec, spec};
use super::streams::{Events, to_the_end};
use super::wire::Request;

/// What is left of a stream, up to its end: the number, and the state or the artifact that is told.
fn rest(events: &mut Events, version: Version) -> Vec<(Option<u64>, String)> {
    std::iter::from_fn(|| events.next_event())
        .map(|event| (event.id, told(&event.json()["result"], version)))
        .collect()
}

fn told(result: &Json, version: Version) -> String {
    let (task, status, artifact) = match version {
        Version::Old => (result, result, result),
        Version::New => (&result["task"], &result["statusUpdate"], &result["artifactUpdate"]),
    };
    let state = task["status"]["state"].as_str().or(status["status"]["state"].as_str());
    let state = state.map(|state| state.to_lowercase().replace("task_state_", "").replace('_', "-"));
    state
        .or(artifact["artifact"]["artifactId"].as_str().map(str::to_owned))
        .unwrap_or_else(|| panic!("{result}"))
}

/// The whole life of a handoff that is worked on, as a stream tells it.
const LIFE: [(u64, &str); 6] =
    [(1, "submitted"), (3, "submitted"), (4, "working"), (5, "working"), (6, "report"), (7, "completed")];

fn from(first: u64) -> Vec<(Option<u64>, String)> {
    LIFE.iter().filter(|(id, _)| *id >= first).map(|(id, word)| (Some(*id), (*word).to_owned())).collect()
}

#[test]
fn a_message_is_streamed_to_the_end_of_its_task() {
    let talk = Conversation::new();
    for (version, name) in BOTH.into_iter().zip(["stream_0001", "stream_0002"]) {
        let spec = spec(name);
        let method = version.method("message/stream", "SendStreamingMessage");
        let mut events = talk.stream(method, json!({"message": version.handing(name, &spec)}), &[]);
        let first = events.next_event().unwrap();
        assert_eq!((first.id, told(&first.json()["result"], version)), (Some(1), "submitted".to_owned()));
        assert_eq!(first.json()["id"], 7);
        let second = events.next_event().unwrap();
        assert_eq!(second.id, Some(3));
        talk.work(&spec);
        assert_eq!(rest(&mut events, version), from(4));
        if version == Version::Old {
            let mut again =
                talk.plain_stream(&format!("/stream/{}", spec["handoffId"].as_str().unwrap()), &[]);
            let all: Vec<(Option<u64>, String)> = std::iter::from_fn(|| again.next_event())
                .map(|event| (event.id, event.kind.clone()))
                .collect();
            let kinds = ["task", "status", "status", "status", "artifact", "final"];
            let expected: Vec<_> =
                LIFE.iter().zip(kinds).map(|((id, _), kind)| (Some(*id), kind.to_owned())).collect();
            assert_eq!(all, expected);
        }
    }
}

#[test]
fn what_is_refused_or_has_no_task_spec_ends_its_stream_at_once() {
    let talk = Conversation::new();
    for (version, name) in BOTH.into_iter().zip(["lost_0001", "lost_0002"]) {
        let method = version.method("message/stream", "SendStreamingMessage");
        let mut events =
            talk.stream(method, json!({"message": version.handing(name, &lost_spec(name))}), &[]);
        let words = rest(&mut events, version);
        assert_eq!(words, [(Some(1), "submitted".to_owned()), (Some(3), "rejected".to_owned())]);
        let mut events =
            talk.stream(method, json!({"message": version.text(&format!("x-{name}"), "hello")}), &[]);
        assert_eq!(rest(&mut events, version), [(None, "input-required".to_owned())]);
    }
}

#[test]
fn a_stream_is_resumed_from_any_event_also_after_a_restart() {
    let mut talk = Conversation::new();
    let spec = spec("resume_0001");
    let id = spec["handoffId"].as_str().unwrap().to_owned();
    talk.hand(Version::Old, "m", &spec);
    talk.work(&spec);
    for restarted in [false, true] {
        if restarted {
            talk.daemon.signal("TERM");
            talk.daemon.wait();
            talk.daemon.restart_after_stop();
        }
        for first in 1..=8_u64 {
            let last = (first - 1).to_string();
            let mut old = talk.stream("tasks/resubscribe", json!({"id": id}), &[("Last-Event-ID", &last)]);
            let expected = if first > 7 { vec![(None, "completed".to_owned())] } else { from(first) };
            assert_eq!(rest(&mut old, Version::Old), expected, "{first}");
            let mut old = talk.stream("tasks/resubscribe", json!({"id": id, "from": first}), &[]);
            assert_eq!(rest(&mut old, Version::Old), expected);
            if first <= 7 {
                let mut new = talk.stream("SubscribeToTask", json!({"id": id}), &[("Last-Event-ID", &last)]);
                // The task as it is now comes first, and has no number.
                let mut with_snapshot = vec![(None, "completed".to_owned())];
                with_snapshot.extend(from(first));
                assert_eq!(rest(&mut new, Version::New), with_snapshot);
                let mut plain = talk.plain_stream(&format!("/stream/{id}?from={first}"), &[]);
                let ids: Vec<_> = std::iter::from_fn(|| plain.next_event()).map(|event| event.id).collect();
                assert_eq!(ids, from(first).into_iter().map(|(id, _)| id).collect::<Vec<_>>());
            }
        }
        // Nothing was missed of a task that has ended: that is no stream in 1.0.
        assert_eq!(talk.error("SubscribeToTask", json!({"id": id})), -32004);
        let mut now = talk.stream("tasks/resubscribe", json!({"id": id}), &[]);
        assert_eq!(rest(&mut now, Version::Old), [(None, "completed".to_owned())]);
        for bad in ["x", "-1", "1.5"] {
            let request = Request::new("GET", &format!("/stream/{id}"))
                .token(&talk.router)
                .header("Last-Event-ID", bad);
            assert_eq!(talk.daemon.send(&request).status, 400, "{bad}");
        }
    }
    // Who counts from 0 means the beginning.
    let mut plain = talk.plain_stream(&format!("/stream/{id}?from=0"), &[]);
    assert_eq!(std::iter::from_fn(|| plain.next_event()).count(), LIFE.len());
    let mut old = talk.stream("tasks/resubscribe", json!({"id": id, "from": 0}), &[]);
    assert_eq!(rest(&mut old, Version::Old), from(1));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": id}});
    let bad = Request::new("POST", "/rpc").token(&talk.router).json(body.to_string());
    let bad = bad.header("Accept", "text/event-stream").header("Last-Event-ID", "x");
    let error = talk.daemon.send(&bad).json()["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]["findings"][0]["pointer"]),
        (&json!(-32602), &json!("Last-Event-ID"))
    );
    // Without a stream in sight, 0.3 is told where to go on.
    assert_eq!(talk.result("tasks/resubscribe", json!({"id": id})), json!({"id": id, "from": 8}));
}

#[test]
fn a_client_that_is_cut_off_again_and_again_misses_nothing() {
    let talk = Conversation::new();
    let spec = spec("cut_0001");
    let id = spec["handoffId"].as_str().unwrap();
    talk.hand(Version::New, "m", &spec);
    let mut seen: Vec<u64> = Vec::new();
    let mut reports = work().into_iter();
    loop {
        let last = seen.last().copied().unwrap_or(0).to_string();
        let mut events = talk.stream("SubscribeToTask", json!({"id": id}), &[("Last-Event-ID", &last)]);
        // The snapshot, and one event; then the line is cut.
        assert_eq!(events.next_event().unwrap().id, None);
        if let Some((kind, payload)) = reports.next() {
            assert_eq!(talk.report(&spec, kind, payload).status, 201);
        }
        seen.extend(events.next_event().unwrap().id);
        if seen.last() == Some(&7) {
            break;
        }
    }
    assert_eq!(seen, LIFE.map(|(id, _)| id));
}

#[test]
fn canceling_ends_the_stream() {
    let talk = Conversation::new();
    for (version, name) in BOTH.into_iter().zip(["gone_0001", "gone_0002"]) {
        let spec = spec(name);
        let method = version.method("message/stream", "SendStreamingMessage");
        let mut events = talk.stream(method, json!({"message": version.handing(name, &spec)}), &[]);
        assert_eq!(events.next_event().unwrap().id, Some(1));
        talk.result(version.method("tasks/cancel", "CancelTask"), json!({"id": spec["handoffId"]}));
        let words = rest(&mut events, version);
        assert_eq!(words, [(Some(3), "submitted".to_owned()), (Some(4), "canceled".to_owned())]);
    }
}

#[test]
fn a_task_without_a_task_spec_is_followed_into_its_handoff() {
    let talk = Conversation::new();
    for (n, version) in (1..).zip(BOTH) {
        let send = version.method("message/send", "SendMessage");
        let asked =
            version.task(&talk.result(send, version.at_once(version.text(&format!("hello-{n}"), "x"))));
        let subscribe = version.method("tasks/resubscribe", "SubscribeToTask");
        let mut events = talk.stream(subscribe, json!({"id": asked["id"]}), &[]);
        assert_eq!(told(&events.next_event().unwrap().json()["result"], version), "input-required");
        let spec = spec(&format!("into_000{n}"));
        let mut message = version.handing(&format!("spec-{n}"), &spec);
        message["taskId"] = asked["id"].clone();
        talk.result(send, version.at_once(message));
        talk.work(&spec);
        assert_eq!(rest(&mut events, version), from(1));
        // One that is canceled instead ends.
        let asked = version.task(&talk.result(send, version.at_once(version.text(&format!("bye-{n}"), "x"))));
        let mut events = talk.stream(subscribe, json!({"id": asked["id"]}), &[]);
        assert_eq!(told(&events.next_event().unwrap().json()["result"], version), "input-required");
        talk.result(version.method("tasks/cancel", "CancelTask"), json!({"id": asked["id"]}));
        assert_eq!(rest(&mut events, version), [(None, "canceled".to_owned())]);
    }
}

#[test]
fn a_quiet_stream_says_that_it_is_still_there() {
    let talk = Conversation::new();
    let spec = spec("quiet_0001");
    let task = talk.hand(Version::Old, "m", &spec);
    let mut events = talk.plain_stream(&format!("/stream/{}?from=4", task["id"].as_str().unwrap()), &[]);
    let beat = events.next().unwrap();
    assert!(beat.is_comment, "{beat:?}");
    assert_eq!(talk.daemon.metric("handoffd_a2a_streams "), Some(1.0));
    talk.work(&spec);
    assert_eq!(std::iter::from_fn(|| events.next_event()).count(), 4);
    super::harness::eventually("the stream is closed", || {
        (talk.daemon.metric("handoffd_a2a_streams ") == Some(0.0)).then_some(())
    });
    assert!(talk.daemon.metric("handoffd_a2a_stream_event_seconds_count").unwrap() >= 4.0);
    assert_eq!(talk.daemon.metric("handoffd_a2a_stream_seconds_count"), Some(1.0));
}

/// As the API's streams do: nothing is told to a token that was revoked.
#[test]
fn a_stream_of_a_task_ends_with_the_token_that_opened_it() {
    let talk = Conversation::new();
    let spec = spec("token_0003");
    let id = spec["handoffId"].as_str().unwrap();
    let mut first = talk.stream("message/stream", json!({"message": Version::Old.handing("m", &spec)}), &[]);
    let told: Vec<_> = (0..2).map(|_| first.next_event().unwrap().id).collect();
    assert_eq!(told, [Some(1), Some(3)]);
    let mut now = talk.stream("SubscribeToTask", json!({"id": id}), &[]);
    assert_eq!(now.next_event().unwrap().id, None);
    let mut again = talk.stream("tasks/resubscribe", json!({"id": id, "from": 1}), &[]);
    let mut plain = talk.plain_stream(&format!("/stream/{id}?from=1"), &[]);
    for events in [&mut again, &mut plain] {
        let told: Vec<_> = (0..2).map(|_| events.next_event().unwrap().id).collect();
        assert_eq!(told, [Some(1), Some(3)]);
    }
    let revoke = Request::new("DELETE", "/v1/tokens/router").token(&talk.daemon.admin);
    assert_eq!(talk.daemon.send(&revoke).status, 200);
    assert_eq!(talk.report(&spec, "task.claimed", json!({})).status, 201);
    for events in [&mut first, &mut now, &mut again, &mut plain] {
        assert_eq!(to_the_end(events), []);
    }
}
