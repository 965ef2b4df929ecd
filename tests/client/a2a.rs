//! `handoffd a2a` against a gateway: what it prints, and how it ends.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value as Json, json};

use crate::support::{Workspace, stderr, stdout};

fn write_spec(workspace: &Workspace, n: usize, change: impl FnOnce(&mut Json)) -> String {
    workspace.write("spec.json", workspace.spec(n, change));
    format!("hs_20260218_router_{n:04}")
}

fn report(workspace: &Workspace, token: &str, handoff: &str, kind: &str, payload: &Json) {
    let arguments = ["event", handoff, kind, "--payload", &payload.to_string()];
    let output = workspace.command(&arguments).env("HANDOFFD_TOKEN", token).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn sage(workspace: &Workspace) -> String {
    let made =
        workspace.run(&["token", "new", "--name", "sage", "--role", "agent", "--agent", "crypto-sage"]);
    stdout(&made).trim().to_owned()
}

#[test]
fn a_card_is_shown_to_everybody_and_what_one_may_do_to_whom_it_concerns() {
    let workspace = Workspace::served();
    let known = stdout(&workspace.run(&["a2a", "discover"]));
    assert!(known.contains("agent       handoffd") && known.contains("1.0 is used here"), "{known}");
    assert!(known.contains("you         admin"), "{known}");
    let url = workspace.url();
    // Elsewhere, without a token: the card is public.
    let unknown = workspace.run(&["a2a", "discover", "--url", &url, "--protocol", "0.3"]);
    let text = stdout(&unknown);
    assert!(unknown.status.success() && text.contains("0.3 is used here"), "{unknown:?}");
    assert!(!text.contains("you  ") && stderr(&unknown).contains("with a token"), "{unknown:?}");
    let card = workspace.json(&[
        "--json",
        "a2a",
        "discover",
        "--url",
        &format!("{url}/.well-known/agent-card.json"),
    ]);
    assert_eq!(card["name"], "handoffd");
}

#[test]
fn the_exit_code_says_what_became_of_a_task() {
    let workspace = Workspace::served();
    let check = |arguments: &[&str], expected: i32, said: &str| {
        let mut all = vec!["a2a"];
        all.extend(arguments);
        let output = workspace.run(&all);
        let text = stdout(&output) + &stderr(&output);
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {text}");
        assert!(text.contains(said), "{arguments:?}: {text}");
    };
    for protocol in ["newest", "0.3"] {
        let n = if protocol == "0.3" { 10 } else { 20 };
        let speak = ["--protocol", protocol];
        let with = |arguments: &[&'static str]| [&speak[..], arguments].concat();
        let id: &str = &write_spec(&workspace, n, |_| {});
        check(&with(&["send", "spec.json", "--no-wait"]), 0, "submitted");
        check(&[&speak[..], &["get", id]].concat(), 0, "submitted");
        check(&[&speak[..], &["cancel", id]].concat(), 0, "canceled");
        check(&[&speak[..], &["get", id]].concat(), 1, "canceled");
        // It has ended, and there is nothing left to cancel.
        check(&[&speak[..], &["cancel", id]].concat(), 1, "-32002");
        check(&[&speak[..], &["resubscribe", id, "--from", "1"]].concat(), 1, "canceled");
        write_spec(&workspace, n + 1, |spec| spec["routing"]["routeKey"] = json!("nowhere.v1"));
        check(&with(&["send", "spec.json"]), 1, "A2A_ROUTE_UNKNOWN");
        check(&with(&["stream", "spec.json"]), 1, "rejected");
        // Something is asked of whoever sent it.
        check(&with(&["send", "--text", "please"]), 4, "input-required");
        check(&with(&["get", "hs_nothing_0001"]), 2, "-32001");
        check(&with(&["send", "missing.json"]), 2, "missing.json");
        workspace.write("twice.json", r#"{"a": 1, "a": 2}"#);
        check(&with(&["send", "twice.json"]), 2, "A2A_BODY_INVALID");
    }
    check(&["send"], 2, "required");
    check(&["discover", "--url", "http://127.0.0.1:9"], 3, "nobody listens");
    check(&["discover", "--url", "https://user:word@agent.example"], 2, "--url has a user");
    let url = workspace.url();
    check(&["get", "hs_nothing_0001", "--url", &url], 2, "HANDOFFD_TOKEN");
}

#[test]
fn a_message_id_of_ones_own_makes_sending_again_safe() {
    let workspace = Workspace::served();
    write_spec(&workspace, 1, |_| {});
    let send = ["--json", "a2a", "send", "spec.json", "--no-wait", "--message-id", "mine-1"];
    let (first, again) = (workspace.json(&send), workspace.json(&send));
    assert_eq!(first["id"], "hs_20260218_router_0001");
    assert_eq!((&first["id"], &first["kind"]), (&again["id"], &again["kind"]));
    // Other content under the same id is not taken for it, and the program is told in JSON.
    write_spec(&workspace, 2, |_| {});
    let refused = workspace.json(&send);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[test]
fn a_task_is_followed_to_its_end_and_from_any_event_on() {
    let workspace = Workspace::served();
    let sage = sage(&workspace);
    let id = write_spec(&workspace, 1, |_| {});
    let mut following = workspace
        .command(&["--json", "a2a", "stream", "spec.json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Json>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((next()["kind"].as_str(), next()["kind"].as_str()), (Some("task"), Some("status-update")));
    let artifact = json!({"artifact_id": "report", "uri": "s3://reports/1", "version": 1,
        "hash": format!("sha256:{}", "0".repeat(64))});
    let done = json!({"artifact_ids": ["report"], "verification": {"mechanical": "pass"}});
    for (kind, payload, told) in [
        ("task.claimed", json!({}), "status-update"),
        ("task.started", json!({}), "status-update"),
        ("artifact.ready", artifact, "artifact-update"),
        ("task.complete", done, "status-update"),
    ] {
        report(&workspace, &sage, &id, kind, &payload);
        let event = next();
        assert_eq!(event["kind"], told, "{event}");
    }
    assert_eq!(following.wait().unwrap().code(), Some(0));
    assert!(lines.next().is_none());
    for (from, expected) in [("1", "task 3 4 5 6 7"), ("5", "5 6 7"), ("7", "7")] {
        let output = workspace.run(&["--json", "a2a", "resubscribe", &id, "--from", from]);
        let told: Vec<String> = stdout(&output)
            .lines()
            .map(|line| serde_json::from_str::<Json>(line).unwrap())
            .map(|event| {
                event["metadata"]["streamSeq"].as_u64().map_or("task".to_owned(), |seq| seq.to_string())
            })
            .collect();
        assert_eq!(told.join(" "), expected, "{output:?}");
    }
    let people = stdout(&workspace.run(&["a2a", "resubscribe", &id, "--from", "6"]));
    assert!(people.contains("artifact  report  s3://reports/1") && people.contains("completed"), "{people}");
}
