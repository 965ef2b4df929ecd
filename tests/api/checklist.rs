//! Promotion from the command line: the checklist, the gates, the way back, and the standard's quick check.

use std::fs;

use serde_json::{Value as Json, json};

use super::harness::write;
use super::route::{Agent, KEY, Scene};

impl Scene {
    /// Runs a command with the operator's token: its exit code, and what it says on standard output.
    fn as_rita(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.daemon.cli(&[arguments, &["--token", &self.rita]].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let code = output.status.code().unwrap();
        (code, if code == 2 { told } else { said })
    }

    fn conformance(&self, arguments: &[&str]) -> (i32, Vec<(String, String)>) {
        let output = self.daemon.cli(&[&["conformance", "--json"], arguments].concat());
        let shown: Json =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let lines = shown["lines"].as_array().unwrap().iter().map(|line| {
            let why = line["why"].as_array().unwrap().iter().map(|why| why.as_str().unwrap());
            (line["outcome"].as_str().unwrap().to_owned(), why.collect::<Vec<_>>().join("; "))
        });
        (output.status.code().unwrap(), lines.collect())
    }
}

/// The marks of a checklist, in order.
fn marks(checklist: &str) -> String {
    checklist.lines().filter_map(|line| line.strip_prefix("  ")?.chars().next()).collect()
}

#[test]
fn the_checklist_shows_where_a_route_stands_and_evaluates_the_next_gate() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    // Anybody with a token may look; nobody is asked anything where there is no terminal.
    let shown = scene.daemon.cli_ok(&["promote", KEY]);
    assert!(shown.starts_with(&format!("{KEY}  dev, on the way to simulated\n")), "{shown}");
    assert_eq!(marks(&shown).replace(' ', ""), "✗····", "{shown}");
    assert!(shown.contains("no handoff on this route has passed every contract check"), "{shown}");
    assert!(shown.contains("hint: submit a TaskSpec for the route in mode `dev`"), "{shown}");
    assert_eq!(scene.state().0, "dev - pending");
    assert!(scene.daemon.cli_ok(&["route", "list"]).starts_with(&format!("{KEY}  dev        G0 is next: ")));

    let (code, told) = scene.as_rita(&["promote", KEY, "--yes"]);
    assert_eq!(code, 1, "{told}");
    assert!(told.starts_with("✗ G0 failed; the route is at dev"), "{told}");
    scene.complete("cli_dev", "dev");
    let (code, told) = scene.as_rita(&["promote", KEY, "--yes", "--reason", "it went through"]);
    assert_eq!((code, told.starts_with("✓ G0 passed; the route is at dev ")), (0, true), "{told}");
    let (code, told) = scene.as_rita(&["promote", KEY, "g1"]);
    assert_eq!((code, told.starts_with("✓ G1 passed; the route is at simulated ")), (0, true), "{told}");
    // In order, and by a person: an administrator is none.
    let (code, told) = scene.as_rita(&["promote", KEY, "G3"]);
    assert_eq!((code, told.contains("ROUTE_GATE_OUT_OF_ORDER")), (2, true), "{told}");
    let admin = scene.daemon.cli(&["promote", KEY, "G2"]);
    assert_eq!(admin.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&admin.stderr).contains("AUTH_FORBIDDEN"), "{admin:?}");

    for n in 0..3 {
        scene.complete(&format!("cli_sim_{n}"), "simulated");
    }
    assert!(
        scene.daemon.cli_ok(&["route", "show", KEY]).contains("G2 simulation      ready to be evaluated")
    );
    assert_eq!(scene.as_rita(&["promote", KEY, "G2"]).0, 0);
    let evidence = ["--handoff", "hs_20260218_cli_sim_2", "--run-id", "run-7", "--report", "s3://e2e/7"];
    assert_eq!(scene.as_rita(&[&["promote", KEY, "G3"][..], &evidence].concat()).0, 0);
    let (code, told) = scene.as_rita(&["promote", KEY, "G4", "--json"]);
    let told: Json = serde_json::from_str(&told).unwrap();
    assert_eq!((code, &told["status"], &told["canary"]["of"]), (0, &json!("passed"), &json!(5)));
    let shown = scene.daemon.cli_ok(&["route", "show", KEY]);
    assert_eq!(marks(&shown).replace(' ', ""), "✓✓✓✓✓c", "{shown}");
    assert!(shown.contains("in canary") && shown.contains("canary: 0 of 5"), "{shown}");
    assert!(shown.contains("✓ G3 authorized E2E  human:rita "), "{shown}");
    assert_eq!(scene.as_rita(&["promote", KEY]).0, 0);
}

#[test]
fn the_way_back_is_one_command() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.through("G3");
    assert_eq!(scene.as_rita(&["promote", KEY, "G4"]).0, 0);
    let (code, told) = scene.as_rita(&["rollback", KEY, "--reason", "what if", "--block", "--dry-run"]);
    assert_eq!(code, 0);
    assert!(told.starts_with(&format!("dry run  {KEY} would be at simulated and blocked\n")), "{told}");
    assert!(told.contains("✓ demote   would be done"), "{told}");
    assert_eq!(scene.state().0, "live G4 pending canary");
    let (code, told) = scene.as_rita(&["rollback", KEY, "--reason", "slippage"]);
    assert_eq!(
        (code, told.starts_with(&format!("rolled back  {KEY} is at simulated\n"))),
        (0, true),
        "{told}"
    );
    assert_eq!(scene.state().0, "simulated G2 rolled_back");
    assert_eq!(scene.as_rita(&["route", "block", KEY, "--reason", "the venue is down"]).0, 0);
    assert_eq!(scene.state().0, "simulated G2 rolled_back blocked");
    let shown = scene.daemon.cli_ok(&["route", "show", KEY]);
    assert!(
        shown.contains("simulated, blocked") && shown.contains("by human:rita: the venue is down"),
        "{shown}"
    );
    assert_eq!(scene.as_rita(&["route", "unblock", KEY, "--reason", "it is back"]).0, 0);
    let (code, told) = scene.as_rita(&["route", "unblock", KEY, "--reason", "again"]);
    assert_eq!((code, told.contains("ROUTE_NOT_BLOCKED")), (2, true), "{told}");
    assert_eq!(scene.as_rita(&["rollback", "nowhere.v1", "--reason", "x"]).0, 2);
}

#[test]
fn conformance_tells_the_seven_lines_of_the_standard_beside_a_gateway_and_without_one() {
    let agent = Agent::answering("200 OK");
    let mut scene = Scene::new(Some(agent.url()));
    scene.through("G3");
    assert_eq!(scene.as_rita(&["promote", KEY, "G4"]).0, 0);
    let (code, lines) = scene.conformance(&[]);
    assert_eq!((code, lines.len()), (0, 7), "{lines:?}");
    assert!(
        lines[0].1.starts_with("4 accepted, 4 of their TaskSpecs are kept and were read again"),
        "{lines:?}"
    );
    assert_eq!(lines[3].1, "1 route, 5 gates passed in order");
    let text = scene.daemon.cli_ok(&["conformance"]);
    assert_eq!(text.lines().filter(|line| line.starts_with("✓ ")).count(), 7, "{text}");
    let (_, one) = scene.conformance(&["--correlation", "corr_walk_sim_1"]);
    assert!(one[0].1.starts_with("1 accepted"), "{one:?}");

    // A plan that is gone, and a state file that somebody edited.
    let failing = |scene: &Scene| -> Vec<usize> {
        let (code, lines) = scene.conformance(&[]);
        let failing: Vec<usize> =
            (1..).zip(&lines).filter(|(_, line)| line.0 == "fail").map(|(n, _)| n).collect();
        assert_eq!(code == 0, failing.is_empty(), "{lines:?}");
        failing
    };
    scene.daemon.signal("TERM");
    scene.daemon.wait();
    assert_eq!(failing(&scene), [0; 0]);
    let plan = scene.daemon.path("agents/blockchain-operator/docs/runbook.md");
    let text = fs::read_to_string(&plan).unwrap();
    write(&plan, text.replace("## Revert", "## Something else"));
    assert_eq!(failing(&scene), [5]);
    write(&plan, text);
    let state = scene.daemon.path("memory/orchestration-state.json");
    let text = fs::read_to_string(&state).unwrap();
    write(&state, text.replace("\"currentStage\":\"live\"", "\"currentStage\":\"dev\""));
    assert_eq!(failing(&scene), [2]);
    write(&state, text);
    assert_eq!(failing(&scene), [0; 0]);
}
