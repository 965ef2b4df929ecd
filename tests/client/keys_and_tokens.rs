//! `token` and `key`: in force when the command returns, and through `--url`.

use std::process::Output;

use crate::support::{Workspace, stderr, stdout};

fn status(workspace: &Workspace, token: &str) -> u16 {
    let config = ureq::Agent::config_builder().http_status_as_error(false).build();
    let agent = ureq::Agent::from(config);
    let request = agent.get(format!("{}/v1/handoffs", workspace.url()));
    request.header("authorization", format!("Bearer {token}")).call().unwrap().status().as_u16()
}

/// Rules are not watched: only what the command itself brings about is seen.
fn unwatched() -> Workspace {
    let mut workspace = Workspace::new();
    workspace.write("handoffd.toml", "[policy]\nreload = \"sighup\"\n");
    workspace.start();
    workspace
}

fn new_token(workspace: &Workspace) -> String {
    let output = workspace.run(&["token", "new", "--name", "eyes", "--role", "auditor"]);
    assert!(output.status.success(), "{output:?}");
    stdout(&output).trim().to_owned()
}

#[test]
fn a_token_counts_when_it_is_made_and_no_longer_when_it_is_revoked() {
    let workspace = unwatched();
    let token = new_token(&workspace);
    assert_eq!(status(&workspace, &token), 200);
    assert_eq!(workspace.exit(&["token", "revoke", "eyes"]), 0);
    assert_eq!(status(&workspace, &token), 401);
}

#[test]
fn the_own_admin_token_can_be_revoked_too() {
    let workspace = unwatched();
    let token = workspace.admin_token();
    assert_eq!(status(&workspace, &token), 200);
    // While there is another, nobody has to be warned.
    assert_eq!(workspace.exit(&["token", "new", "--name", "root", "--role", "admin"]), 0);
    let output = workspace.run(&["token", "revoke", "root"]);
    assert!(output.status.success() && !stderr(&output).contains("last admin"), "{output:?}");
    let output = workspace.run(&["token", "revoke", "admin"]);
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("that was the last admin token") && said.contains("--role admin"), "{said}");
    assert_eq!(status(&workspace, &token), 401);
    // From now on nobody on this machine can ask, and that is said.
    let output = workspace.run(&["token", "new", "--name", "eyes", "--role", "auditor"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("[AUTH_TOKEN_UNKNOWN]"), "{output:?}");
}

#[test]
fn without_a_daemon_the_files_are_enough() {
    let mut workspace = Workspace::new();
    let token = new_token(&workspace);
    workspace.start();
    assert_eq!(status(&workspace, &token), 200);
}

#[test]
fn a_key_counts_when_it_is_added_and_no_longer_when_it_is_removed() {
    let workspace = unwatched();
    let keys = || stdout(&elsewhere(&workspace, &["key", "list"]));
    assert!(!keys().contains("k-1"));
    assert_eq!(workspace.exit(&["key", "add", "--owner", "user:main", "--id", "k-1"]), 0);
    assert!(keys().contains("k-1"));
    assert_eq!(workspace.exit(&["key", "remove", "k-1"]), 0);
    assert!(!keys().contains("k-1"));
}

#[test]
fn what_is_changed_counts_although_other_files_are_broken_and_that_is_said() {
    let workspace = unwatched();
    let made = workspace.run(&["token", "new", "--name", "reader", "--role", "auditor"]);
    let token = stdout(&made).trim().to_owned();
    assert_eq!(status(&workspace, &token), 200, "{made:?}");
    workspace.write("policies/routes.json", "{");
    // Nobody reads them but whoever asks for it.
    let said = stderr(&workspace.run(&["key", "add", "--owner", "user:main", "--id", "k-0"]));
    assert!(!said.contains("cannot be read"), "{said}");
    assert_eq!(workspace.reload(), 409);
    for change in [
        &["key", "add", "--owner", "user:main", "--id", "k-1"][..],
        &["key", "remove", "k-1"],
        &["token", "revoke", "reader"],
    ] {
        let output = workspace.run(change);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said = stderr(&output);
        assert!(said.contains("cannot be read") && said.contains("policies/routes.json"), "{said}");
    }
    assert_eq!(status(&workspace, &token), 401);
}

/// Runs a command in a directory that is no workspace, against the gateway of this one.
fn elsewhere(workspace: &Workspace, arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let mut command = workspace.command(arguments);
    command
        .current_dir(directory.path())
        .env("HANDOFFD_URL", workspace.url())
        .env("HANDOFFD_TOKEN", workspace.admin_token())
        .output()
        .unwrap()
}

#[test]
fn tokens_are_managed_through_a_url() {
    let workspace = unwatched();
    let made = elsewhere(
        &workspace,
        &["token", "new", "--name", "router", "--role", "orchestrator", "--agent", "decision-router"],
    );
    let token = stdout(&made).trim().to_owned();
    assert_eq!(status(&workspace, &token), 200, "{made:?}");
    let listed = stdout(&elsewhere(&workspace, &["token", "list"]));
    assert!(listed.contains("router  orchestrator  decision-router  yes"), "{listed}");
    let again = elsewhere(&workspace, &["token", "new", "--name", "router", "--role", "auditor"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("[HTTP_CONFLICT]"), "{again:?}");
    let revoked = elsewhere(&workspace, &["token", "revoke", "router"]);
    assert_eq!(revoked.status.code(), Some(0), "{revoked:?}");
    assert_eq!(status(&workspace, &token), 401);
    let unknown = elsewhere(&workspace, &["token", "revoke", "a/b"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
}

#[test]
fn public_keys_are_managed_through_a_url_and_secrets_are_not() {
    let workspace = unwatched();
    let add = ["key", "add", "--owner", "user:main", "--id", "user/main 2"];
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let secret = elsewhere(&workspace, &add);
    assert_eq!(secret.status.code(), Some(2));
    assert!(stderr(&secret).contains("--public-key"), "{secret:?}");
    let added = elsewhere(&workspace, &[&add[..], &["--alg", "ed25519", "--public-key", public]].concat());
    assert_eq!(added.status.code(), Some(0), "{added:?}");
    assert!(workspace.read("memory/keyring.json").contains("user/main 2"));
    let removed = elsewhere(&workspace, &["key", "remove", "user/main 2"]);
    assert_eq!(removed.status.code(), Some(0), "{removed:?}");
    assert!(!workspace.read("memory/keyring.json").contains("user/main 2"));
}

#[test]
fn a_gateway_elsewhere_needs_a_token() {
    let workspace = Workspace::served();
    let output = workspace.run(&["token", "list", "--url", &workspace.url()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("HANDOFFD_TOKEN"), "{output:?}");
}
