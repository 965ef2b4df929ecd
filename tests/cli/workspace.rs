//! What `init` lays out, and what is made of files in bulk.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::support::{Workspace, stdout};

/// The files that a page names: in code and in commands, from the workspace, and in links, from the page.
fn files_named(page: &Path, root: &Path) -> Vec<std::path::PathBuf> {
    let text = fs::read_to_string(page).unwrap();
    let is_file = |word: &&str| {
        word.contains('/') && [".json", ".md", ".key"].iter().any(|ending| word.ends_with(ending))
    };
    let words = text.split(|c: char| c.is_whitespace() || "`()[]|,;".contains(c)).filter(is_file);
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter(is_file);
    let links: Vec<&str> = links.collect();
    let from_root = words.filter(|word| !links.contains(word)).map(|word| root.join(word));
    from_root.chain(links.iter().map(|link| page.parent().unwrap().join(link))).collect()
}

#[test]
fn what_init_ships_names_only_files_that_are_there() {
    let workspace = tempfile::tempdir().unwrap();
    let workspace = Workspace(workspace);
    let made = workspace.json(&["init", "--json"]);
    let pages = made["made"].as_array().unwrap().iter().filter_map(|path| path.as_str());
    let mut named = 0;
    for page in pages.filter(|path| path.ends_with(".md")) {
        for file in files_named(&workspace.path().join(page), workspace.path()) {
            // What the daemon keeps is there when it runs.
            if !file.starts_with(workspace.path().join("memory")) {
                assert!(file.is_file(), "{page} names {}", file.display());
                named += 1;
            }
        }
    }
    assert!(named >= 20, "{named}");
}

#[test]
fn init_keeps_what_is_there() {
    let workspace = Workspace::new();
    workspace.write("policies/routes.json", "mine");
    let again = workspace.json(&["init", "--json"]);
    assert_eq!(again["made"], serde_json::json!([]));
    assert_eq!(fs::read_to_string(workspace.path().join("policies/routes.json")).unwrap(), "mine");
    let other = workspace.json(&["init", "elsewhere", "--json"]);
    assert_eq!(other["kept"], serde_json::json!([]));
    assert_eq!(
        workspace.exit(&[
            "--workspace",
            "elsewhere",
            "check",
            "elsewhere/docs/examples/taskspec-minimal.json"
        ]),
        0
    );
    assert_eq!(workspace.exit(&["--workspace", "elsewhere", "policy", "test"]), 0);
}

#[test]
fn policy_test_runs_the_shipped_cases_and_shows_a_diff_for_a_failing_one() {
    let workspace = Workspace::new();
    let output = workspace.run(&["policy", "test"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).ends_with("\n8 passed, 0 failed\n"), "{output:?}");
    workspace.write(
        "cases.json",
        r#"{"base": "docs/examples/taskspec-canonical.json", "now": "2026-02-18T19:38:00Z", "cases": [
            {"name": "an agent may vouch", "patch": {"safety": {"e2eActor": "agent"}}, "expect": {"decision": "allowed", "codes": ["POLICY_FROZEN"]}}]}"#,
    );
    let output = workspace.run(&["policy", "test", "cases.json"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "\
FAIL  an agent may vouch
      - decision allowed
      + decision denied
      - POLICY_FROZEN
      + POLICY_SELF_TEST
        POLICY_SELF_TEST at /safety/e2eActor: `agent` may not vouch for an end-to-end test

0 passed, 1 failed
";
    assert_eq!(stdout(&output), expected);
    workspace.write("cases.json", r#"{"cases": [{"name": "x", "expect": {"decision": "maybe"}}]}"#);
    let output = workspace.run(&["policy", "test", "cases.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("cases.json: at /cases/0/expect/decision: `decision` must be one of")
    );
    assert_eq!(workspace.exit(&["policy", "test", "--filter", "no such case"]), 2);
}

#[test]
fn completions_name_every_command() {
    let workspace = Workspace(tempfile::tempdir().unwrap());
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&workspace.run(&["completions", shell]));
        for command in ["check", "sign", "key", "policy", "init", "completions", "serve"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn packets_are_converted_one_by_one_or_in_bulk() {
    let workspace = Workspace(tempfile::tempdir().unwrap());
    let packet = r#"{"protocol":"a2a","version":"0.3.0","event_type":"task.requested","agent":{"id":"agent://a"},"task":{"kind":"delegation"}}"#;
    workspace.write("packet.json", packet);
    workspace.write("packets.jsonl", format!("{packet}\n\nnot json\n"));
    let strict = workspace.run(&["evidence", "convert", "packet.json"]);
    assert_eq!(strict.status.code(), Some(1));
    let answer: Json = serde_json::from_slice(&strict.stdout).unwrap();
    assert_eq!(
        answer,
        serde_json::json!({"error": {"kind": "measurement", "message": "missing required field: task.id"}})
    );
    let lenient = workspace.json(&["evidence", "convert", "--mode", "lenient", "packet.json"]);
    let handoff = &lenient["ok"]["events"][0]["data"]["handoff"];
    assert_eq!(handoff["visible"], true);
    assert_eq!(handoff["task_ref_visible"], false);
    let bulk = workspace.run(&["evidence", "convert", "--mode", "lenient", "packets.jsonl"]);
    assert_eq!(bulk.status.code(), Some(1));
    let lines: Vec<Json> = stdout(&bulk).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), lines[0].get("ok").is_some(), lines[1].get("error").is_some()), (2, true, true));
    assert_eq!(workspace.exit(&["evidence", "convert", "missing.json"]), 2);
}
