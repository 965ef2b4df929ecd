//! `demo`: every step comes out as it is told, and nothing is left behind.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value as Json;

fn demo(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
    command.current_dir(directory).env("TMPDIR", directory).env("NO_COLOR", "1").args(arguments);
    for variable in ["HANDOFFD_WORKSPACE", "HANDOFFD_URL", "HANDOFFD_TOKEN"] {
        command.env_remove(variable);
    }
    command
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn every_step_is_as_told_and_nothing_is_left_behind() {
    let directory = tempfile::tempdir().unwrap();
    let output = demo(directory.path(), &["--json", "demo"]).output().unwrap();
    let shown: Json =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(output.status.code(), Some(0), "{shown:#}");
    let expected = [
        ("A handoff", "allowed", None),
        ("G0 contract", "denied", Some("A2A_ROUTE_TARGET_MISMATCH")),
        ("Safety", "denied", Some("POLICY_SELF_TEST")),
        ("A signed delegation", "allowed", None),
        ("D1 policy", "denied", Some("POLICY_REF_UNKNOWN")),
        ("D2 envelope", "denied", Some("POLICY_ENVELOPE_HASH_MISMATCH")),
        ("D3 risk", "denied", Some("POLICY_RISK_UNDERSTATED")),
        ("D4 mention", "denied", Some("POLICY_MENTION_LOOP")),
        ("Mention phase", "denied", Some("POLICY_MENTION_PHASE")),
        ("A duplicate", "allowed", None),
        ("A used id", "denied", Some("A2A_HANDOFF_REUSED")),
        ("Live", "denied", Some("POLICY_STAGE_NOT_REACHED")),
    ];
    // Then a route comes from dev to live, and a failure takes it back.
    let promoted = [
        ("G0: a route that nobody knows yet", "G0 passed, the route is at dev"),
        ("G1: is anybody there?", "G1 passed, the route is at simulated"),
        ("G2: three simulated runs", "G2 passed, the route is at simulated"),
        ("G3: somebody saw it work", "G3 passed, the route is at simulated"),
        ("G4: live, in canary", "G4 passed, the route is at live"),
        ("A live handoff", "needs_approval, then allowed"),
        ("It fails", "simulated, rolled back by system, blocked until a person opens it"),
    ];
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps.len(), expected.len() + promoted.len() + 1);
    for (step, (title, decision, code)) in steps.iter().zip(expected) {
        assert_eq!((&step["step"], &step["decision"]), (&title.into(), &decision.into()), "{step}");
        let codes = step["codes"].as_array().unwrap();
        assert!(code.map_or(codes.is_empty(), |code| codes.contains(&code.into())), "{step}");
        assert_eq!(step["replayed"], title == "A duplicate", "{step}");
    }
    for (step, (title, outcome)) in steps.iter().skip(expected.len()).zip(promoted) {
        assert_eq!((&step["step"], &step["outcome"]), (&title.into(), &outcome.into()), "{step}");
    }
    let last = steps.last().unwrap();
    assert!(last["finding"].is_string(), "{last:#}");
    assert!(is_empty(directory.path()));
}

#[test]
fn it_is_told_to_people_too() {
    let directory = tempfile::tempdir().unwrap();
    let output = demo(directory.path(), &["demo", "--fast"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("crypto-sage is refused: a token of role agent may not"), "{text}");
    assert!(text.contains("20 A ledger that somebody edits"), "{text}");
    assert!(text.contains("nothing is left behind"), "{text}");
}

#[test]
fn interrupted_it_leaves_nothing_behind_either() {
    // Ctrl-C, a service manager, and a terminal that is closed.
    for signal in ["-INT", "-TERM", "-HUP"] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = demo(directory.path(), &["demo"]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // It listens for the signal once it serves: the lock names the process then, and a decision follows.
        let is_under_way = || {
            let scratch = fs::read_dir(directory.path()).unwrap().flatten().next();
            scratch.is_some_and(|scratch| {
                fs::read_to_string(scratch.path().join("memory/orchestration-state.json"))
                    .is_ok_and(|text| text.contains("hs_20260218_router_0001"))
            })
        };
        while !is_under_way() {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{signal}");
        assert!(is_empty(directory.path()), "{signal}");
    }
}
