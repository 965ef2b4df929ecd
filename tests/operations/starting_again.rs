//! A start that came to nothing, and the one after it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

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
