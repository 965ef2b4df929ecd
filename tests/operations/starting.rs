//! What a start does where policies are missing.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::daemon::{Daemon, handoffd, run};

/// Starts a daemon that must not start, and gives what it says.
#[track_caller]
fn refused(workspace: &Path, arguments: &[&str]) -> String {
    let mut child = handoffd(workspace)
        .args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json"])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that starts all the same says so, and is ended; one that does not ends by itself.
    let mut said = String::new();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    for line in lines.map_while(Result::ok) {
        said = said + &line + "\n";
        if line.contains("\"address\"") {
            child.kill().unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(3), "{said}");
    said
}

/// How many files there are in a directory and below it.
fn files_below(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

fn stop_after(workspace: &Path, submit: impl FnOnce(&Daemon)) {
    let daemon = Daemon::start(workspace, &[]);
    submit(&daemon);
    daemon.stop();
}

#[test]
fn policies_that_are_gone_are_not_replaced_by_the_example() {
    let scratch = tempfile::tempdir().unwrap();
    let (workspace, aside) = (scratch.path().join("workspace"), scratch.path().join("aside"));
    fs::create_dir(&workspace).unwrap();
    // Nobody has used it: it gets the example, and the example allows something.
    stop_after(&workspace, |daemon| assert_eq!(daemon.submit_as("hs_missing_0001"), 201));

    // A mount that failed: the directory is there, and empty; or it is gone.
    fs::rename(workspace.join("policies"), &aside).unwrap();
    for is_there in [true, false] {
        if is_there {
            fs::create_dir(workspace.join("policies")).unwrap();
        }
        let said = refused(&workspace, &[]);
        assert!(said.contains("policies/routes.json is missing"), "{said}");
        assert!(said.contains("has been served before") && said.contains("put policies/ back"), "{said}");
        assert_eq!(files_below(&workspace.join("policies")), 0, "nothing was put in their place");
        let _ = fs::remove_dir(workspace.join("policies"));
    }
    // One file of theirs is not enough.
    fs::create_dir(workspace.join("policies")).unwrap();
    fs::create_dir(workspace.join("policies/delegation")).unwrap();
    fs::write(workspace.join("policies/delegation/ours.json"), "{}").unwrap();
    refused(&workspace, &[]);
    fs::remove_dir_all(workspace.join("policies")).unwrap();

    // Put back, all is as it was.
    fs::rename(&aside, workspace.join("policies")).unwrap();
    stop_after(&workspace, |daemon| assert_eq!(daemon.submit_as("hs_missing_0001"), 200));
    // Whoever wants the example can have it.
    fs::remove_dir_all(workspace.join("policies")).unwrap();
    run(&workspace, &["init"]);
    stop_after(&workspace, |daemon| assert_eq!(daemon.submit_as("hs_missing_0002"), 201));
}

/// A name that was mistyped is no workspace; the empty volume of a container is one that nobody has used.
#[test]
fn a_directory_that_does_not_exist_is_not_made_and_one_that_is_empty_is_served() {
    let scratch = tempfile::tempdir().unwrap();
    let workspace = scratch.path().join("workspace");
    fs::write(scratch.path().join("file"), "").unwrap();
    for (name, why) in
        [("nope", "does not exist"), ("nope/below", "does not exist"), ("file", "is not a directory")]
    {
        let said = refused(scratch.path(), &["--workspace", name]);
        assert!(said.contains(&format!("{name} {why}")), "{said}");
        assert!(said.contains(&format!("handoffd init {name}")), "{said}");
        assert!(!scratch.path().join("nope").exists(), "nothing was made");
    }
    fs::create_dir(&workspace).unwrap();
    stop_after(&workspace, |daemon| assert_eq!(daemon.submit_as("hs_volume_0001"), 201));
    run(scratch.path(), &["init", "made"]);
    stop_after(&scratch.path().join("made"), |daemon| assert_eq!(daemon.submit_as("hs_made_0001"), 201));
}

/// Each of these alone says that a gateway was served there, or that somebody has policies of their own.
#[test]
fn the_example_is_for_a_workspace_that_nobody_has_used() {
    let check = |lay_out: &[(&str, &str)], arguments: &[&str], why: &str| {
        let workspace = tempfile::tempdir().unwrap();
        for (path, text) in lay_out {
            let path = workspace.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let before = files_below(workspace.path());
        let said = refused(workspace.path(), arguments);
        assert!(said.contains("policies/routes.json is missing") && said.contains(why), "{why}: {said}");
        assert!(said.contains("handoffd init"), "{said}");
        assert_eq!(files_below(workspace.path()), before, "{why}: nothing is left behind");
    };
    for trace in [
        "memory/gateway.key",
        "memory/checkpoint",
        "memory/ledger/00000000000000000001.jsonl",
        "memory/orchestration-state.json",
        "memory/state.snapshot",
        "memory/views.db",
        "memory/journal",
        "memory/seals",
        "memory/ledger.closed",
        "memory/policy-files.json",
    ] {
        check(&[(trace, "x")], &[], "has been served before");
        check(&[(trace, "x")], &["--ledger", "memory"], "has been served before");
    }
    check(&[("memory/restored.json", "{}")], &[], "was restored from a backup");
    check(&[("policies/delegation/ours.json", "{}")], &[], "policies/delegation/ours.json is not of the");
    check(
        &[("policies/tests/user-main-v1.json", "{}")],
        &[],
        "policies/tests/user-main-v1.json is not of the",
    );
    // A replica's policies are those of the others. Nobody has to be asked for that.
    let nowhere = ["--ledger", "postgres://nobody@127.0.0.1:1/nothing"];
    check(&[], &nowhere, "needs the policies of all its replicas");

    // Settings, keys and what a start that was killed left of the example are no policies.
    let example = include_str!("../../policies/delegation/user-main-v1.json");
    let workspace = tempfile::tempdir().unwrap();
    fs::create_dir_all(workspace.path().join("policies/delegation")).unwrap();
    fs::create_dir_all(workspace.path().join("memory/ledger")).unwrap();
    fs::write(workspace.path().join("policies/delegation/user-main-v1.json"), example).unwrap();
    fs::write(workspace.path().join("handoffd.toml"), "").unwrap();
    stop_after(workspace.path(), |daemon| assert_eq!(daemon.submit_as("hs_untouched_0001"), 201));
}

/// Half a file would be taken for the whole at the next start.
#[test]
fn an_example_that_there_was_no_room_for_is_made_when_there_is() {
    let workspace = tempfile::tempdir().unwrap();
    // A write beyond a limit on the size of files fails, as on a full disk.
    let line = "trap '' XFSZ; exec prlimit --fsize=600: \"$0\" serve --listen 127.0.0.1:0";
    let full = std::process::Command::new("sh")
        .args(["-c", line, env!("CARGO_BIN_EXE_handoffd")])
        .current_dir(workspace.path())
        .env_remove("HANDOFFD_WORKSPACE")
        .output()
        .unwrap();
    assert_eq!(full.status.code(), Some(3), "{full:?}");
    stop_after(workspace.path(), |daemon| assert_eq!(daemon.submit_as("hs_room_0001"), 201));
    run(workspace.path(), &["policy", "test"]);
}
