//! Tokens of callers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value as Json;

use super::support::{Workspace, stdout};

#[test]
fn a_token_is_printed_once_and_kept_as_a_hash() {
    let workspace = Workspace::new();
    assert!(stdout(&workspace.run(&["token", "list"])).starts_with("no tokens yet"));
    let made = workspace.run(&[
        "token",
        "new",
        "--name",
        "router",
        "--role",
        "orchestrator",
        "--agent",
        "decision-router",
        "--expires",
        "2999-01-01T00:00:00Z",
    ]);
    assert!(made.status.success(), "{made:?}");
    let token = stdout(&made);
    let token = token.strip_suffix('\n').unwrap();
    assert!(token.starts_with("hd_orc_") && token.len() == 50, "standard output is the token alone");
    assert!(String::from_utf8(made.stderr).unwrap().contains("shown this once"));
    let file = workspace.path().join("memory/tokens.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.contains("\"hash\": \"sha256:") && !kept.contains(&token[7..]));

    let operator =
        ["token", "new", "--name", "rita", "--role", "operator", "--principal", "user:rita", "--json"];
    let rita = workspace.json(&operator);
    assert!(rita["token"].as_str().unwrap().starts_with("hd_opr_"));
    let listed = workspace.json(&["token", "list", "--json"]);
    let row = &listed[0];
    assert_eq!(
        (&row["name"], &row["agentId"], &row["valid"]),
        (&"router".into(), &"decision-router".into(), &true.into())
    );
    assert_eq!((&listed[1]["principal"], &listed[1]["tokenId"]), (&"user:rita".into(), &rita["tokenId"]));
    let table = stdout(&workspace.run(&["token", "list"]));
    assert!(table.contains("router  orchestrator  decision-router  until 2999-01-01T00:00:00Z"), "{table}");
    assert!(table.contains("rita    operator      user:rita        yes"), "{table}");
    for shown in [listed.to_string(), table] {
        assert!(
            !shown.contains("sha256") && !shown.contains(&token[7..]) && !shown.contains("hash"),
            "{shown}"
        );
    }

    // By id, and by name.
    assert_eq!(workspace.exit(&["token", "revoke", rita["tokenId"].as_str().unwrap()]), 0);
    assert_eq!(workspace.exit(&["token", "revoke", "router"]), 0);
    let again = workspace.run(&["token", "revoke", "router"]);
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(String::from_utf8(again.stderr).unwrap(), "error: the token `router` is revoked already\n");
    let valid = |listed: &Json| listed.as_array().unwrap().iter().filter(|row| row["valid"] == true).count();
    assert_eq!(valid(&workspace.json(&["token", "list", "--json"])), 0);
    // A name is free again, also for another role.
    assert_eq!(workspace.exit(&["token", "new", "--name", "rita", "--role", "auditor"]), 0);
    assert_eq!(valid(&workspace.json(&["token", "list", "--json"])), 1);
}

#[test]
fn a_token_that_makes_no_sense_is_refused_and_nothing_is_written() {
    let workspace = Workspace::new();
    let check = |arguments: &[&str], message: &str| {
        let output = workspace.run(&[&["token", "new"], arguments].concat());
        let shown = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{shown}");
        assert!(shown.contains(message), "{shown}");
        assert!(!workspace.path().join("memory/tokens.json").exists());
    };
    check(&["--name", "a", "--role", "orchestrator"], "the role orchestrator needs the id of its agent");
    check(&["--name", "a", "--role", "auditor", "--agent", "crypto-sage"], "the role auditor has no agent");
    check(&["--name", "a", "--role", "admin", "--principal", "user:rita"], "only an operator is a person");
    check(&["--name", "a b", "--role", "admin"], "a name has 1 to 64");
    check(&["--name", "a", "--role", "king"], "is not a role");
    check(&["--name", "admin", "--role", "admin"], "memory/admin.token");
    check(&["--name", "a", "--role", "admin", "--expires", "2001-01-01T00:00:00Z"], "end before it begins");
    check(&["--name", "a", "--role", "admin", "--expires", "soon"], "nor 30m, 2h or 1d");
    check(&["--name", "a", "--role", "admin", "--expires", "0s"], "between 1 second and 3650 days");
}

#[test]
fn an_end_is_a_time_or_how_long_from_now() {
    let workspace = Workspace::new();
    assert_eq!(workspace.exit(&["token", "new", "--name", "a", "--role", "auditor", "--expires", "2h"]), 0);
    let key =
        ["key", "add", "--owner", "user:main", "--id", "k-1", "--not-before", "30m", "--not-after", "2h"];
    assert_eq!(workspace.exit(&key), 0);
    let listed = workspace.json(&["token", "list", "--json"]);
    assert!(listed[0]["expiresAt"].is_string() && listed[0]["valid"] == true, "{listed}");
    let listed = workspace.json(&["key", "list", "--json"]);
    assert!(
        listed[0]["notAfter"].is_string() && listed[0]["valid"] == false,
        "it counts in 30 minutes: {listed}"
    );
}

#[test]
fn revoking_a_token_names_the_keys_that_signed_for_it() {
    let workspace = Workspace::new();
    assert_eq!(workspace.exit(&["token", "new", "--name", "rita", "--role", "operator"]), 0);
    let key = ["key", "add", "--owner", "rita", "--id", "rita-requests", "--purpose", "request"];
    assert_eq!(workspace.exit(&key), 0);
    assert_eq!(workspace.exit(&["key", "add", "--owner", "rita", "--id", "rita-envelopes"]), 0);
    let revoked = workspace.run(&["token", "revoke", "rita"]);
    let notes = String::from_utf8(revoked.stderr).unwrap();
    assert!(
        notes.contains("handoffd key remove rita-requests") && !notes.contains("rita-envelopes"),
        "{notes}"
    );
}

#[test]
fn a_tokens_file_that_others_can_read_is_refused() {
    let workspace = Workspace::new();
    assert_eq!(workspace.exit(&["token", "new", "--name", "rita", "--role", "operator"]), 0);
    let file = workspace.path().join("memory/tokens.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    for arguments in [&["token", "list"][..], &["token", "revoke", "rita"]] {
        let output = workspace.run(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .contains("can be read by others (mode 644); run: chmod 600")
        );
    }
}
