//! Files that are gone while the daemon runs, and what it goes by then.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::harness::{Daemon, eventually};
use super::wire::Request;

#[expect(clippy::disallowed_methods, reason = "a test moves files about")]
fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    fs::rename(from, to).unwrap();
}

/// What `/readyz` says of this; nothing if it is well.
fn degraded(daemon: &Daemon, what: &str) -> Option<Json> {
    let ready = daemon.get("/readyz").json();
    ready["degraded"].as_array().unwrap().iter().find(|one| one["what"] == what).cloned()
}

/// Nobody is let out by a file that somebody moved; whoever wants that says so with a command.
#[test]
fn tokens_and_keys_stay_in_force_without_their_files_and_everybody_sees_it() {
    let daemon = Daemon::new();
    let token = daemon.token("eyes", "auditor", None);
    daemon.cli_ok(&["key", "add", "--owner", "user:main", "--id", "k-1"]);
    let new_token = ["token", "new", "--name", "more", "--role", "auditor"];
    let new_key = ["key", "add", "--owner", "user:main", "--id", "k-2"];
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let key = json!({"keyId": "k-3", "owner": "user:main", "algorithm": "ed25519", "publicKey": public});
    for (what, file, command, target, body) in [
        ("tokens", "tokens.json", &new_token[..], "/v1/tokens", json!({"name": "more", "role": "auditor"})),
        ("keys", "keyring.json", &new_key[..], "/v1/keys", key),
    ] {
        let (path, aside) = (daemon.path("memory").join(file), daemon.path("aside"));
        rename(&path, &aside);
        let trouble = eventually("it is missed", || degraded(&daemon, what));
        let why = trouble["why"].as_str().unwrap();
        assert!(why.contains(file) && why.contains("is gone, and had "), "{trouble}");
        assert!(trouble["hint"].as_str().unwrap().contains("stay in force"), "{trouble}");
        assert_eq!(daemon.get_as(&token, "/v1/state").status, 200);
        assert!(daemon.get("/v1/keys").text().contains("k-1"));
        // A file that begins again would have nothing else in it.
        let refused = daemon.post(target, body);
        assert_eq!((refused.status, refused.code().as_str()), (409, "RULES_BROKEN"), "{refused:?}");
        let refused = daemon.cli(command);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(String::from_utf8(refused.stderr).unwrap().contains("is gone"));
        assert!(!path.exists());
        let doctor = daemon.cli(&["doctor"]);
        let found = String::from_utf8(doctor.stdout).unwrap();
        let says = |word: &str| found.lines().any(|line| line.starts_with(word) && line.contains(file));
        assert!(says("warn  daemon"), "{found}");
        assert!(what != "tokens" || says("fail  tokens") && doctor.status.code() == Some(1), "{found}");
        rename(&aside, &path);
        eventually("all is well again", || degraded(&daemon, what).is_none().then_some(()));
        daemon.cli_ok(command);
    }
    let kinds: Vec<Json> = daemon.events().iter().map(|event| event["type"].clone()).collect();
    assert!(!kinds.contains(&"token.revoked".into()) && !kinds.contains(&"key.removed".into()), "{kinds:?}");
    // One who wants to let somebody out says so.
    let revoke = Request::new("DELETE", "/v1/tokens/eyes").token(&daemon.admin);
    assert_eq!(daemon.send(&revoke).status, 200);
    assert_eq!(daemon.get_as(&token, "/v1/state").status, 401);
}

/// A start has nothing to go on with, so it lets nobody in but an admin of its own making.
#[test]
fn a_start_without_the_file_of_the_tokens_lets_nobody_in_and_says_so() {
    let mut daemon = Daemon::new();
    let (token, admin) = (daemon.token("eyes", "auditor", None), daemon.admin.clone());
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    fs::remove_file(daemon.path("memory/tokens.json")).unwrap();
    let doctor = String::from_utf8(daemon.cli(&["doctor"]).stdout).unwrap();
    assert!(doctor.lines().any(|line| line.starts_with("fail  tokens")), "{doctor}");
    daemon.restart_after_stop();
    assert!(daemon.log().contains("the file of the tokens is gone"), "{}", daemon.log());
    for gone in [&token, &admin] {
        assert_eq!(daemon.get_as(gone, "/v1/state").status, 401);
    }
    assert_eq!(daemon.get("/v1/state").status, 200);
    let revoked = daemon.events().iter().filter(|event| event["type"] == "token.revoked").count();
    assert_eq!(revoked, 2);
}

/// What `init` makes is not what was there.
#[test]
fn policies_that_are_gone_are_to_be_put_back_and_not_made_anew() {
    let mut daemon = Daemon::new();
    rename(daemon.path("policies"), daemon.path("aside"));
    let trouble = eventually("they are missed", || degraded(&daemon, "policies"));
    let good =
        |text: &str| text.contains("put policies/ back as they were") && !text.contains("handoffd init");
    assert!(good(trouble["why"].as_str().unwrap()), "{trouble}");
    assert_eq!(degraded(&daemon, "policies").unwrap(), trouble);
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    for command in [&["doctor"][..], &["check", "docs/examples/taskspec-minimal.json"], &["policy", "test"]] {
        let output = daemon.cli(command);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(good(&said), "{command:?}: {said}");
    }
    rename(daemon.path("aside"), daemon.path("policies"));
    daemon.restart_after_stop();
}
