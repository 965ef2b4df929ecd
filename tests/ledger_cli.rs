//! The ledger's files under the command line's hands, beside a writer that is at work.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use handoffd::ledger::{BatchBuilder, Log as _, RealDisk, SegmentLog};
use handoffd::proof::Digest;
use handoffd::timestamp::Timestamp;
use serde_json::Value as Json;

const TOPIC: &str = "gw_cli";

fn ledger(workspace: &Path) -> PathBuf {
    let path = workspace.join("memory/ledger");
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A log whose segments are full after one batch.
fn open(workspace: &Path) -> SegmentLog {
    let (log, _) = SegmentLog::open(Arc::new(RealDisk), &ledger(workspace), TOPIC, &[]).unwrap();
    log.with_segment_bytes_max(1)
}

/// An entry and its body, in a batch of their own.
fn append(log: &mut SegmentLog, kind: &str, handoff: &str, time: Timestamp) {
    let mut builder = BatchBuilder::new(TOPIC, log.head(), log.last_timestamp());
    let sequence = log.head().sequence + 1;
    let body = format!("{{\"n\": {sequence}}}");
    builder.body(Digest::of(body.as_bytes()), &body);
    let stream = format!("task:{handoff}:attempt:1");
    builder.event(
        format!(
            "{{\"payload\":{{\"codes\":[\"A2A_TEST\"],\"decision\":\"denied\"}},\"sender\":\"system\",\"stream\":\
             {{\"context_id\":\"c\",\"correlation_id\":\"c\",\"stream_id\":\"{stream}\",\"stream_seq\":{sequence}}},\
             \"ts\":\"2026-02-18T19:38:00Z\",\"type\":\"{kind}\",\"wire\":\"1.1\",\"wire_id\":\"wire_{sequence:08}\"}}"
        ),
        time,
    );
    let batch = builder.seal().unwrap();
    log.append(log.head(), &batch).unwrap();
}

fn command(workspace: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
    command.current_dir(workspace).args(arguments).env_remove("HANDOFFD_WORKSPACE").env("NO_COLOR", "1");
    command
}

fn run(workspace: &Path, arguments: &[&str]) -> Output {
    command(workspace, arguments).output().unwrap()
}

fn json(workspace: &Path, arguments: &[&str]) -> Json {
    let output = run(workspace, arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn long_ago() -> Timestamp {
    Timestamp::parse("2020-02-18T19:38:00Z").unwrap()
}

#[test]
fn old_bodies_are_purged_beside_a_writer() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    assert_eq!(run(root, &["ledger", "purge", "--older-than", "90d"]).status.code(), Some(2), "nothing yet");
    let mut log = open(root);
    for _ in 0..3 {
        append(&mut log, "gate.decided", "hs_1", long_ago());
    }
    let counted = json(root, &["ledger", "purge", "--older-than", "1d", "--dry-run", "--json"]);
    assert_eq!(
        (&counted["bodies"], &counted["dryRun"]),
        (&Json::from(2), &Json::from(true)),
        "not the last one"
    );
    let young = json(root, &["ledger", "purge", "--older-than", "36500d", "--json"]);
    assert_eq!((&young["bodies"], &young["segments"]), (&Json::from(0), &Json::from(0)));
    let dropped = run(root, &["ledger", "purge", "--older-than", "1d"]);
    let said = String::from_utf8(dropped.stdout).unwrap();
    assert!(said.starts_with("dropped 2 bodies, "), "{said}");
    append(&mut log, "gate.decided", "hs_1", long_ago());
    assert_eq!(run(root, &["audit", "verify"]).status.code(), Some(0));
    for wrong in ["", "0d", "-1d", "40000d", "soon"] {
        let output = run(root, &["ledger", "purge", "--older-than", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

/// What `audit tail` prints, line by line, while it runs.
struct Running {
    child: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Running {
    fn start(workspace: &Path, arguments: &[&str]) -> Self {
        use std::io::BufRead as _;
        let mut child = command(workspace, arguments).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits for the next line.
    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

#[test]
fn tail_prints_entries_as_they_are_committed() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    let mut log = open(root);
    for n in 1..=12 {
        append(&mut log, "gate.decided", &format!("hs_{n}"), long_ago());
    }
    let first: Vec<String> = String::from_utf8(run(root, &["audit", "tail", "--no-follow"]).stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(first.len(), 10, "the last ten");
    assert!(first[0].starts_with("       3  2020-02-18T19:38:00.00000000"), "{first:?}");
    assert!(first[0].ends_with("Z  gate.decided        task:hs_3:attempt:1  denied A2A_TEST"), "{first:?}");

    let mut all = Running::start(root, &["audit", "tail", "--from", "12", "--json"]);
    let mut one = Running::start(root, &["audit", "tail", "--type", "task.failed", "--handoff", "hs_14"]);
    let export = |n: usize| {
        let text = String::from_utf8(run(root, &["audit", "export"]).stdout).unwrap();
        text.lines().nth(n - 1).unwrap().to_owned()
    };
    assert_eq!(all.line(), export(12));
    for n in 13..=15 {
        append(&mut log, "gate.decided", &format!("hs_{n}"), long_ago());
        append(&mut log, "task.failed", &format!("hs_{n}"), long_ago());
        let (decided, failed) = (2 * n - 13, 2 * n - 12);
        assert_eq!((all.line(), all.line()), (export(decided), export(failed)), "{n}");
    }
    let line = one.line();
    assert!(line.contains("task.failed         task:hs_14:attempt:1"), "{line}");
    // A reader that goes away ends it, at the latest with the next entry.
    drop(all.lines);
    append(&mut log, "gate.decided", "hs_16", long_ago());
    assert_eq!(all.child.wait().unwrap().code(), Some(0));
    one.child.kill().unwrap();
    one.child.wait().unwrap();
}

#[expect(clippy::disallowed_methods, reason = "somebody edits a file")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    write(path, &text.replace(from, to));
}

fn serve_for_a_moment(root: &Path) {
    use handoffd::gateway::Gateway;
    let policies = handoffd::policy::Workspace::new(root).load_policies().unwrap();
    let gateway = Gateway::open(root, "127.0.0.1:7420").unwrap();
    let in_force = handoffd::engine::InForce::of_files(Arc::new(policies), Arc::default(), Vec::new());
    gateway.engine().put_in_force_and_wait(Arc::new(in_force)).unwrap();
    gateway.close().unwrap();
}

#[test]
fn a_routing_edit_is_adopted_into_the_policies_and_recorded_at_the_next_start() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    assert!(run(root, &["init"]).status.success());
    serve_for_a_moment(root);
    let (state, routes) = (root.join("memory/orchestration-state.json"), root.join("policies/routes.json"));
    let declared = std::fs::read_to_string(&routes).unwrap();
    let said = |arguments: &[&str]| {
        let output = run(root, arguments);
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(said(&["state", "adopt"]), (0, "nothing was edited\n".to_owned()));

    // What cannot be adopted is named, and nothing is changed.
    edit(&state, "\"currentStage\":\"simulated\"", "\"currentStage\":\"live\"");
    let (code, text) = said(&["state", "adopt", "--yes"]);
    assert_eq!(code, 1);
    assert!(text.starts_with("not adopted /promotion  a stage is earned"), "{text}");
    assert_eq!(
        (run(root, &["state", "verify"]).status.code(), std::fs::read_to_string(&routes).unwrap()),
        (Some(1), declared.clone())
    );

    // An agent that no route may name is refused before anything is written.
    edit(&state, "\"primaryAgentId\":\"crypto-sage\"", "\"primaryAgentId\":\"\"");
    assert_eq!(said(&["state", "adopt", "--yes"]).0, 2);
    assert_eq!(std::fs::read_to_string(&routes).unwrap(), declared);

    edit(&state, "\"primaryAgentId\":\"\"", "\"primaryAgentId\":\"crypto-sage-2\"");
    assert_eq!(said(&["state", "adopt"]).0, 2, "nobody can be asked");
    assert_eq!(std::fs::read_to_string(&routes).unwrap(), declared);
    edit(&state, "\"fallbackAgentId\":\"crypto-sage-dr\"", "\"fallbackAgentId\":null");
    let adopted = json(root, &["state", "adopt", "--yes", "--json"]);
    assert_eq!(adopted["adopted"].as_array().unwrap().len(), 2);
    assert_eq!(adopted["adopted"][0]["field"], "fallbackAgentId");
    assert_eq!(
        (&adopted["adopted"][1]["from"], &adopted["adopted"][1]["to"]),
        (&Json::from("crypto-sage"), &Json::from("crypto-sage-2"))
    );
    assert_eq!(adopted["notAdopted"][0]["pointer"], "/promotion");
    assert_eq!(run(root, &["state", "verify"]).status.code(), Some(0), "the ledger's view is back");
    let table = json(root, &["state", "show"])["routingTable"]["crypto-sage.execution-plane.v1"].clone();
    assert_eq!(table["primaryAgentId"], "crypto-sage", "it is not in force yet");
    serve_for_a_moment(root);
    let shown = json(root, &["state", "show"]);
    let table = &shown["routingTable"]["crypto-sage.execution-plane.v1"];
    // Another agent does the work now: the route begins again, whatever it is declared for.
    assert_eq!(
        (&table["primaryAgentId"], &shown["promotion"]["currentStage"]),
        (&Json::from("crypto-sage-2"), &Json::from("dev"))
    );
    let tail =
        String::from_utf8(run(root, &["audit", "tail", "--no-follow", "--type", "route.declared"]).stdout)
            .unwrap();
    assert_eq!(tail.lines().count(), 2, "the ledger has both: {tail}");
}

#[test]
fn a_list_without_views_says_that_they_are_missing_and_not_that_the_ledger_is_empty() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    let views = root.join("memory/views.db");
    let list = || {
        let output = run(root, &["audit", "list"]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = list();
    assert_eq!(code, Some(2));
    assert!(said.ends_with("ledger has no entries yet\n"), "{said}");

    let mut log = open(root);
    (0..3).for_each(|_| append(&mut log, "gate.decided", "hs_1", long_ago()));
    let (code, said) = list();
    assert_eq!(code, Some(2));
    assert!(
        said.contains("views.db is missing, and the ledger has 3 entries; `handoffd serve` makes the views"),
        "{said}"
    );
    // Commands that read the ledger itself do without, and are what the message names.
    assert_eq!(json(root, &["audit", "show", "3"])["hcs"]["sequence_number"], 3);
    let tail = run(root, &["audit", "tail", "--from", "1", "--no-follow"]);
    assert_eq!(String::from_utf8(tail.stdout).unwrap().lines().count(), 3);

    std::fs::File::create(&views).unwrap();
    let (code, said) = list();
    assert_eq!(code, Some(2));
    assert!(
        said.contains("the views must be rebuilt") && said.contains("`handoffd serve` makes the views"),
        "{said}"
    );

    // Views that were left behind, and that nobody brings on.
    std::fs::remove_file(&views).unwrap();
    let entries = handoffd::ledger::Entries::read(&ledger(root), 1, 2).unwrap().map(Result::unwrap);
    drop(handoffd::views::Views::rebuild(&views, TOPIC, entries).unwrap());
    let (code, said) = list();
    assert_eq!(code, Some(0));
    assert!(said.contains("the list does not go up to entry 3"), "{said}");
    append(&mut log, "gate.decided", "hs_1", long_ago());
    let entries = handoffd::ledger::Entries::read(&ledger(root), 1, 4).unwrap().map(Result::unwrap);
    drop(handoffd::views::Views::rebuild(&views, TOPIC, entries).unwrap());
    assert_eq!(list(), (Some(0), String::new()));
}

#[test]
fn a_segment_that_is_missing_is_named_by_whoever_comes_to_it() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    assert!(run(root, &["init"]).status.success());
    let mut log = open(root);
    (0..6).for_each(|_| append(&mut log, "gate.decided", "hs_1", long_ago()));
    drop(log);
    // Without its key a ledger is refused for that.
    let key = root.join("memory/gateway.key");
    write(&key, &format!("{}\n", "7".repeat(64)));
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let said = |arguments: &[&str]| {
        let Output { status, stdout, stderr } = run(root, arguments);
        let lines = String::from_utf8(stdout).unwrap().lines().count();
        (status.code().unwrap(), lines, String::from_utf8(stderr).unwrap())
    };
    let name = |n: u64| format!("{n:020}.jsonl");
    // In the middle, where it is come to from behind and from within; then the first one.
    for (gone, from, through, read) in [(vec![3, 4], 3, 4, 2), (vec![1, 2], 1, 4, 0)] {
        for n in gone {
            std::fs::remove_file(ledger(root).join(name(n))).unwrap();
        }
        let missing = format!("entries {from} to {through} are missing: there is no ");
        let check = |arguments: &[&str], lines: usize, missing: &str| {
            let (code, printed, said) = said(arguments);
            assert_eq!((code, printed), (2, lines), "{arguments:?}: {said}");
            assert!(said.contains(missing) && said.contains(&name(from)), "{arguments:?}: {said}");
        };
        check(&["audit", "tail", "--from", "1", "--no-follow"], read, &missing);
        check(&["audit", "tail", "--from", "1"], read, &missing);
        check(&["audit", "export"], read, &missing);
        let (code, _, refused) = said(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(code, 3, "{refused}");
        assert!(refused.contains(&missing) && refused.contains("keep the directory"), "{refused}");
    }
    // From within, it begins where it was asked to.
    let missing = format!("entries 4 to 4 are missing: there is no {}", ledger(root).join(name(4)).display());
    for arguments in [&["audit", "tail", "--from", "4"][..], &["audit", "show", "4"]] {
        let (code, _, said) = said(arguments);
        assert_eq!(code, 2, "{arguments:?}");
        assert!(said.contains(missing.rsplit('/').next().unwrap()), "{arguments:?}: {said}");
    }
}

#[test]
fn a_ledger_is_copied_to_no_place_that_is_none_and_not_onto_itself() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    let mut log = open(root);
    (0..3).for_each(|_| append(&mut log, "gate.decided", "hs_1", long_ago()));
    drop(log);
    let copy = |from: &str, to: &str| {
        let output = run(root, &["ledger", "copy", "--from", from, "--to", to]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let before: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();

    for (from, to, flag) in [
        (".", "postgress://u:hunter2@db/x", "--to"),
        (".", "mysql://u:hunter2@x", "--to"),
        ("Postgres://u:hunter2@db/x", "away", "--from"),
    ] {
        let (code, said) = copy(from, to);
        assert_eq!(code, Some(2), "{said}");
        let why = format!("{flag} takes a workspace's directory or a postgres:// URL");
        assert!(said.contains(&why) && !said.contains("hunter2"), "{said}");
    }
    let whole = root.to_str().unwrap();
    let url = "postgres://u:hunter2@127.0.0.1:1/d";
    let same = url.replace("postgres:", "postgresql:");
    for (from, to) in [(".", "."), (".", "./memory/.."), (".", whole), (url, url), (url, &same)] {
        let (code, said) = copy(from, to);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("source and target are the same"), "{said}");
    }
    let after: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(after, before, "nothing was made");
    assert!(!root.join("memory/ledger.closed").exists(), "and nothing was closed");

    // A directory is a place, and is closed for it.
    assert_eq!(copy(".", "away"), (Some(0), String::new()));
    assert!(root.join("memory/ledger.closed").exists());
}

#[test]
fn a_finding_is_told_with_its_code_and_where_it_is() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    let mut log = open(root);
    (0..3).for_each(|_| append(&mut log, "gate.decided", "hs_1", long_ago()));
    drop(log);
    let segment = "00000000000000000002.jsonl";
    edit(&ledger(root).join(segment), "gate.decided", "gate.decidee");

    let found = json(root, &["audit", "verify", "--json"]);
    assert_eq!(
        (&found["verified"], &found["code"], &found["segment"], &found["entry"]),
        (&Json::from(false), &Json::from("running_hash"), &Json::from(segment), &Json::from(2)),
        "{found}"
    );
    assert!(found["line"].is_u64() && found["finding"].is_string(), "{found}");
    let output = run(root, &["audit", "verify"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("bad  segment ") && said.ends_with(" (running_hash)\n"), "{said}");

    // What is not known is left out: a checkpoint by itself is in no segment.
    write(&root.join("kept.json"), "{}");
    let found = json(root, &["audit", "verify", "--checkpoint", "kept.json", "--json"]);
    let told: Vec<_> = found.as_object().unwrap().keys().collect();
    assert_eq!((&found["code"], told.len()), (&Json::from("checkpoint_form"), 3), "{found}");
}

#[test]
fn a_list_of_nothing_and_a_decision_that_is_none_are_refused() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    let mut log = open(root);
    append(&mut log, "gate.decided", "hs_1", long_ago());
    let entries = handoffd::ledger::Entries::read(&ledger(root), 1, 1).unwrap().map(Result::unwrap);
    drop(handoffd::views::Views::rebuild(&root.join("memory/views.db"), TOPIC, entries).unwrap());
    let list = |flag: &str, value: &str| {
        let output = run(root, &["audit", "list", flag, value]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (flag, value) in [("--limit", "0"), ("--decision", "denyed")] {
        let (code, said) = list(flag, value);
        assert!(code == Some(2) && said.contains(&format!("invalid value '{value}'")), "{code:?}: {said}");
    }
    assert_eq!(list("--limit", "1"), (Some(0), String::new()));
    for decision in ["allowed", "denied", "expired", "needs_approval"] {
        assert_eq!(list("--decision", decision), (Some(0), String::new()), "{decision}");
    }
}

#[test]
fn files_that_were_copied_to_a_database_are_not_taken_for_the_ledger() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    let mut log = open(root);
    (0..3).for_each(|_| append(&mut log, "gate.decided", "hs_1", long_ago()));
    drop(log);
    let commands: [&[&str]; 6] = [
        &["audit", "verify"],
        &["audit", "show", "1"],
        &["audit", "tail", "--no-follow"],
        &["ledger", "purge", "--older-than", "90d", "--dry-run"],
        &["backup", "--to", "kept"],
        &["token", "list"],
    ];
    let refused = |part: &str| {
        for command in commands {
            let output = run(root, command);
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.code() == Some(2) && said.contains(part), "{command:?}: {said}");
        }
    };
    let mark = root.join("memory/ledger.closed");
    write(&mark, r#"{"closed":"copied","to":"postgres://db:5432/x"}"#);
    refused(
        "it was copied to `postgres://db:5432/x`, which takes its place; set HANDOFFD_LEDGER_URL or `[ledger] url`",
    );
    // It can still be taken away, with a word on what it is.
    let export = run(root, &["audit", "export"]);
    assert_eq!(String::from_utf8(export.stdout).unwrap().lines().count(), 3);
    assert!(String::from_utf8(export.stderr).unwrap().contains("it was copied to"));

    std::fs::remove_file(&mark).unwrap();
    assert_eq!(run(root, &["audit", "show", "1"]).status.code(), Some(0), "the mark alone was in the way");

    write(&root.join("handoffd.toml"), "[ledger\n");
    refused("the settings cannot be used, so it is not known where the ledger is\n  handoffd.toml, line 1: ");
}
