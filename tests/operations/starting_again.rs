//! A start that came to nothing, and the one after it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::daemon::{Daemon, handoffd, run, workspace};

/// A start that is refused, with what it says.
fn refused(workspace: &Path) -> String {
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let Output { status, stderr, .. } =
        handoffd(workspace).args(serve).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(3), "{said}");
    said
}

fn starts(workspace: &Path) {
    let daemon = Daemon::start(workspace, &[]);
    assert_eq!(daemon.submit_as("hs_starting_0001"), 201);
    daemon.stop();
    run(workspace, &["audit", "verify"]);
    run(workspace, &["state", "verify"]);
}

#[test]
fn a_first_start_that_a_typo_stopped_is_followed_by_one_that_works() {
    let workspace = workspace();
    let routes = workspace.path().join("policies/routes.json");
    let good = fs::read(&routes).unwrap();
    fs::write(&routes, "{").unwrap();
    for _ in 0..2 {
        assert!(refused(workspace.path()).contains("routes.json"));
    }
    fs::write(&routes, good).unwrap();
    starts(workspace.path());
}

#[test]
fn a_first_start_that_a_readable_keyring_stopped_is_followed_by_one_that_works() {
    let workspace = workspace();
    let keyring = workspace.path().join("memory/keyring.json");
    fs::create_dir_all(workspace.path().join("memory")).unwrap();
    fs::write(&keyring, "{\"keys\":[]}").unwrap();
    fs::set_permissions(&keyring, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused(workspace.path()).contains("keyring.json"));
    fs::set_permissions(&keyring, fs::Permissions::from_mode(0o600)).unwrap();
    starts(workspace.path());
}

#[test]
fn an_edited_state_before_the_first_entry_is_restored() {
    let workspace = workspace();
    let routes = workspace.path().join("policies/routes.json");
    let good = fs::read(&routes).unwrap();
    fs::write(&routes, "{").unwrap();
    refused(workspace.path());
    fs::write(&routes, good).unwrap();
    let state = workspace.path().join("memory/orchestration-state.json");
    let blank = fs::read_to_string(&state).unwrap();
    // A file that names an entry is all that remembers a ledger that is gone.
    let ahead = blank.replace("\"sequence\":0", "\"sequence\":7");
    fs::write(&state, &ahead).unwrap();
    let restore = handoffd(workspace.path()).args(["state", "restore"]).output().unwrap();
    assert_eq!(restore.status.code(), Some(1));
    let said = String::from_utf8_lossy(&restore.stderr);
    assert!(said.contains("the ledger ends at entry 0, but entry 7 was acknowledged"), "{said}");
    assert_eq!(fs::read_to_string(&state).unwrap(), ahead);
    for edited in [blank.replace("null", "\"G4\""), "{}".to_owned()] {
        assert_ne!(edited, blank);
        fs::write(&state, edited).unwrap();
        assert!(refused(workspace.path()).contains("`handoffd state restore` puts the ledger's view back"));
        run(workspace.path(), &["state", "restore"]);
    }
    starts(workspace.path());
}

/// Runs a command that has to end: its exit code, and what it says.
fn ends(workspace: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_handoffd"), "--workspace"]).arg(workspace).args(arguments);
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    assert_ne!(status.code(), Some(124), "{arguments:?} hangs");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// Whoever opens a pipe waits for somebody to write into it.
#[test]
fn a_pipe_in_the_place_of_a_file_holds_nobody_up() {
    let workspace = workspace();
    starts(workspace.path());
    let segment = "ledger/00000000000000000001.jsonl";
    for (name, why) in [
        ("orchestration-state.json", "is not a regular file"),
        (segment, "put the segment itself in its place"),
        ("journal", "is not a regular file"),
        (".probe", ""),
        ("views.db", ""),
        ("views.db-wal", ""),
    ] {
        let (path, aside) = (workspace.path().join("memory").join(name), workspace.path().join("aside"));
        let was_there = fs::rename(&path, &aside).is_ok();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        for arguments in [["audit", "verify"], ["state", "verify"], ["audit", "export"]] {
            ends(workspace.path(), &arguments);
        }
        if why.is_empty() {
            // It goes on without, or makes another one.
            let daemon = Daemon::start(workspace.path(), &[]);
            daemon.stop();
            let _ = fs::remove_file(&aside);
        } else {
            let (code, said) = ends(workspace.path(), &["serve", "--listen", "127.0.0.1:0"]);
            assert_eq!(code, Some(3), "{name}: {said}");
            assert!(said.contains(name) && said.contains(why), "{name}: {said}");
            fs::remove_file(&path).unwrap();
            if was_there {
                fs::rename(&aside, &path).unwrap();
            }
        }
    }
    let _ = fs::remove_file(workspace.path().join("memory/.probe"));
    run(workspace.path(), &["audit", "verify"]);
}

/// The daemon takes what a link leads to for another file than it made, so it could never append to it.
#[test]
fn a_segment_that_is_a_link_is_refused_with_what_to_do() {
    let workspace = workspace();
    starts(workspace.path());
    let segment = workspace.path().join("memory/ledger/00000000000000000001.jsonl");
    let elsewhere = workspace.path().join("elsewhere.jsonl");
    fs::rename(&segment, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &segment).unwrap();
    let said = refused(workspace.path());
    assert!(said.contains("is no file of its own but a link") && said.contains("in its place"), "{said}");
    fs::rename(&elsewhere, &segment).unwrap();
    let daemon = Daemon::start(workspace.path(), &[]);
    assert_eq!(daemon.submit_as("hs_starting_0002"), 201);
    daemon.stop();
}
