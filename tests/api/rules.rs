//! Policies, keys and tokens that change while the daemon runs.

use std::fs;

use serde_json::{Value as Json, json};

use super::delegated::{self, House, mention};
use super::harness::{Daemon, ROUTER, eventually, spec, write};
use super::signing::{KEY_ID, SECRET, signed};
use super::wire::Request;

/// Adds a route, which makes another policy set.
fn with_route(daemon: &Daemon, key: &str) -> String {
    let text = fs::read_to_string(daemon.path("policies/routes.json")).unwrap();
    let mut routes: Json = serde_json::from_str(&text).unwrap();
    routes["routes"][key] = routes["routes"]["crypto-sage.execution-plane.v1"].clone();
    routes.to_string()
}

fn digest(daemon: &Daemon) -> String {
    daemon.get("/v1/policies").json()["digest"].as_str().unwrap().to_owned()
}

fn loads(daemon: &Daemon) -> Vec<Json> {
    let mut events = daemon.events();
    events.retain(|event| event["type"] == "policy.loaded");
    events.into_iter().map(|event| event["payload"].clone()).collect()
}

#[test]
fn what_is_wrong_with_a_changed_file_is_one_line_of_the_log_and_what_holds_is_said() {
    let daemon = Daemon::new();
    let routes = json!({"routes": {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}, "d": {"x": 1}}, "y": 1});
    write(&daemon.path("policies/routes.json"), routes.to_string());
    let line = eventually("it is logged", || {
        let log = daemon.log();
        log.lines().find(|line| line.contains("changed rules are not in force")).map(str::to_owned)
    });
    let why = serde_json::from_str::<Json>(&line).unwrap()["why"].as_str().unwrap().to_owned();
    assert!(why.starts_with("the policy set is broken: policies/routes.json"), "{why}");
    assert!(why.ends_with(" more") && why.contains("; and "), "{why}");
    assert!(!why.contains("\\u{") && !why.contains('…') && !why.contains('\n'), "{why}");
    write(&daemon.path("policies/routes.json"), "{\n\"routes\": 1 1}");
    eventually("so is where it is", || daemon.log().contains("(line 2, column 13)").then_some(()));
    write(&daemon.path("policies/routes.json"), include_str!("../../policies/routes.json"));

    // Tokens as they were still count, and nobody says otherwise.
    let good = fs::read_to_string(daemon.path("memory/tokens.json")).unwrap();
    write(&daemon.path("memory/tokens.json"), "{");
    let why = eventually("the broken tokens are seen", || {
        let ready = daemon.get("/readyz").json();
        let of = ready["degraded"].as_array().unwrap().first().cloned();
        of.filter(|one| one["why"].as_str().unwrap().contains("tokens.json"))
    });
    assert!(!why["why"].as_str().unwrap().contains("no token counts"), "{why}");
    assert!(why["hint"].as_str().unwrap().contains("the tokens before stay in force"), "{why}");
    assert_eq!(daemon.get("/v1/state").status, 200);
    write(&daemon.path("memory/tokens.json"), good);
}

#[test]
fn a_start_with_broken_tokens_says_that_nobody_can_be_let_in() {
    let mut daemon = Daemon::new();
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    write(&daemon.path("memory/tokens.json"), "{");
    let output = daemon.cli(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("nobody can be let in, so nothing is served") && said.contains("tokens.json"),
        "{said}"
    );
}

#[test]
fn a_good_edit_is_in_force_and_a_bad_one_is_not_and_everybody_sees_it() {
    let daemon = Daemon::new();
    let first = digest(&daemon);
    let on_new_route = |name: &str| {
        let mut spec = spec(name);
        spec["routing"]["routeKey"] = "new.execution-plane.v1".into();
        spec
    };
    assert_eq!(daemon.submit(&on_new_route("new_0001")).code(), "A2A_ROUTE_UNKNOWN");
    let original = fs::read_to_string(daemon.path("policies/routes.json")).unwrap();
    write(&daemon.path("policies/routes.json"), with_route(&daemon, "new.execution-plane.v1"));
    let second = eventually("the edit is in force", || Some(digest(&daemon)).filter(|now| *now != first));
    assert_eq!(daemon.submit(&on_new_route("new_0002")).status, 201);
    let seen = loads(&daemon);
    assert_eq!(seen[0], json!({"digest": first, "previous_digest": null}));
    assert_eq!(seen[1], json!({"digest": second, "previous_digest": first}));
    assert_eq!(daemon.metric(&format!("handoffd_policy{{digest=\"{second}\"}}")), Some(1.0));
    assert_eq!(daemon.metric(&format!("handoffd_policy{{digest=\"{first}\"}}")), None);
    assert_eq!(daemon.metric("handoffd_policy_reload_failing"), Some(0.0));

    write(&daemon.path("policies/delegation/user-main-v1.json"), "{\"half\": ");
    let ready = eventually("the bad edit is seen", || {
        let ready = daemon.get("/readyz");
        assert_eq!(ready.status, 200, "it can still decide");
        Some(ready.json()).filter(|ready| ready["status"] == "degraded")
    });
    let degraded = &ready["degraded"][0];
    assert_eq!(degraded["what"], "policies");
    assert!(
        degraded["why"].as_str().unwrap().contains("policies/delegation/user-main-v1.json"),
        "{degraded}"
    );
    assert_eq!(ready["policyDigest"], second);
    let policies = daemon.get("/v1/policies").json();
    assert_eq!((&policies["digest"], &policies["lastLoad"]["outcome"]), (&json!(second), &json!("failed")));
    assert!(policies["lastLoad"]["why"].as_str().unwrap().contains("user-main-v1.json"));
    assert_eq!(daemon.metric("handoffd_policy_reload_failing"), Some(1.0));
    assert!(daemon.metric("handoffd_policy_reload_faults_total").unwrap() >= 1.0);
    assert!(daemon.log().contains("user-main-v1.json"));
    // The set before it decides, and the ledger says nothing else.
    assert_eq!(daemon.submit(&on_new_route("new_0003")).status, 201);
    assert_eq!(loads(&daemon).len(), 2);

    // All or nothing: a good routing table beside a bad policy changes nothing either.
    write(&daemon.path("policies/routes.json"), original);
    let asked = daemon.send(&Request::new("POST", "/v1/reload").token(&daemon.admin));
    assert_eq!((asked.status, asked.code().as_str()), (409, "RULES_BROKEN"), "{asked:?}");
    assert_eq!(digest(&daemon), second);

    let good = include_str!("../../policies/delegation/user-main-v1.json");
    write(&daemon.path("policies/delegation/user-main-v1.json"), good);
    eventually("it is mended", || (digest(&daemon) == first).then_some(()));
    let ready = eventually("all is well again", || {
        Some(daemon.get("/readyz").json()).filter(|ready| ready["status"] == "ready")
    });
    assert_eq!(ready["degraded"], json!([]));
    eventually("the log says so", || daemon.log().contains("well again").then_some(()));
    assert_eq!(daemon.metric("handoffd_policy_reload_failing"), Some(0.0));
    assert_eq!(daemon.submit(&on_new_route("new_0004")).code(), "A2A_ROUTE_UNKNOWN");
    assert_eq!(loads(&daemon)[2], json!({"digest": first, "previous_digest": second}));
}

/// What a route says is in the ledger for ever and shown to many, so a password never becomes part of one.
#[test]
fn a_route_with_a_password_in_its_url_comes_into_force_nowhere() {
    let mut daemon = Daemon::with("[policy]\nreload = \"sighup\"\n");
    let first = digest(&daemon);
    let mut routes: Json = serde_json::from_str(&with_route(&daemon, "new.execution-plane.v1")).unwrap();
    let route = &mut routes["routes"]["new.execution-plane.v1"];
    route["probeUrl"] = "http://rita:hunter2@127.0.0.1:9/health".into();
    route["fallbackProbeUrl"] = "http://127.0.0.1:9/health?of=all".into();
    write(&daemon.path("policies/routes.json"), routes.to_string());
    let says_where = |what: &str, text: &str| {
        let told =
            "policies/routes.json at /routes/new.execution-plane.v1/probeUrl: `probeUrl` has a user name";
        assert!(text.contains(told) && !text.contains("hunter2"), "{what}: {text}");
        assert!(!text.contains("/fallbackProbeUrl"), "{what}: {text}");
    };
    let asked = daemon.send(&super::wire::Request::new("POST", "/v1/reload").token(&daemon.admin));
    assert_eq!((asked.status, asked.code().as_str()), (409, "RULES_BROKEN"), "{asked:?}");
    says_where("the reload", &asked.text());
    says_where("what is in force", &daemon.get("/v1/policies").text());
    says_where("readiness", &daemon.get("/readyz").text());
    assert_eq!(digest(&daemon), first);
    assert_eq!(daemon.get("/v1/routes/new.execution-plane.v1").status, 404);
    says_where("the log", &daemon.log());
    assert!(!daemon.get("/v1/audit/export").text().contains("hunter2"));

    write(&daemon.path("spec.json"), spec("url_0001").to_string());
    for command in [&["check", "spec.json"][..], &["doctor"]] {
        let output = daemon.cli(command);
        let text = [output.stdout, output.stderr].concat();
        assert!(!output.status.success());
        says_where(command[0], &String::from_utf8(text).unwrap());
    }
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let refused = daemon.cli(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(!refused.status.success());
    says_where("the start", &String::from_utf8(refused.stderr).unwrap());
}

#[test]
fn a_signal_asks_for_the_files_to_be_read_where_nobody_watches_them() {
    let daemon = Daemon::with("[policy]\nreload = \"sighup\"\n");
    let first = digest(&daemon);
    write(&daemon.path("policies/routes.json"), with_route(&daemon, "new.execution-plane.v1"));
    // Nothing tells it; a request later it is still the old set.
    assert_eq!(daemon.submit(&spec("hup_0001")).json()["policyDigest"], first);
    daemon.signal("HUP");
    let second = eventually("the signal is heard", || Some(digest(&daemon)).filter(|now| *now != first));
    assert_eq!(daemon.submit(&spec("hup_0002")).json()["policyDigest"], second);
    daemon.signal("HUP");
    assert_eq!(daemon.submit(&spec("hup_0003")).status, 201);
    assert_eq!(loads(&daemon).len(), 2, "what has not changed is not put in force again");
}

/// Whoever makes a token does not mean the policies that somebody else is in the middle of writing.
#[test]
fn a_change_of_tokens_or_keys_puts_no_policies_in_force() {
    let daemon = Daemon::with("[policy]\nreload = \"sighup\"\n");
    let first = digest(&daemon);
    write(&daemon.path("policies/routes.json"), with_route(&daemon, "new.execution-plane.v1"));
    let reload = |query: &str| {
        let request = Request::new("POST", &format!("/v1/reload{query}"));
        let reply = daemon.send(&request.token(&daemon.admin));
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    };
    let is_logged = |policies: bool| {
        let says = format!("\"policies\":{policies}");
        let log = daemon.log();
        log.lines().any(|line| line.contains("changed rules are in force") && line.contains(&says))
    };
    assert!(!is_logged(false) && !is_logged(true));
    let token = daemon.cli_ok(&["token", "new", "--name", "eyes", "--role", "auditor"]);
    assert_eq!(daemon.get_as(token.trim(), "/v1/state").status, 200);
    assert!(is_logged(false), "{}", daemon.log());
    daemon.cli_ok(&["key", "add", "--owner", "user:main", "--id", "k-1"]);
    assert!(daemon.get("/v1/keys").text().contains("k-1"));
    daemon.token("more-eyes", "auditor", None);
    let delete = Request::new("DELETE", "/v1/keys/k-1").token(&daemon.admin);
    assert_eq!(daemon.send(&delete).status, 200);
    for part in ["?part=keys", "?part=tokens"] {
        assert_eq!(reload(part)["changed"], false);
    }
    assert_eq!((digest(&daemon), loads(&daemon).len()), (first.clone(), 1));
    // Nor does one that cannot be read hold them up, or get lost from sight once somebody has asked for it.
    let good = fs::read_to_string(daemon.path("policies/routes.json")).unwrap();
    write(&daemon.path("policies/routes.json"), "{");
    assert_eq!(reload("?part=tokens")["broken"], json!([]));
    let asked = Request::new("POST", "/v1/reload?part=policies").token(&daemon.admin);
    assert_eq!(daemon.send(&asked).code(), "RULES_BROKEN");
    assert_eq!(reload("?part=tokens")["broken"][0]["part"], "policies");
    assert_eq!(degraded(&daemon), ["policies"]);

    write(&daemon.path("policies/routes.json"), good);
    assert_eq!(reload("?part=policies")["changed"], true);
    assert_ne!(digest(&daemon), first);
    assert_eq!(loads(&daemon).len(), 2);
    assert!(is_logged(true), "{}", daemon.log());
    assert_eq!(degraded(&daemon), Vec::<Json>::new());
}

#[test]
fn keys_and_tokens_from_the_command_line_count_while_it_runs() {
    let daemon = Daemon::new();
    let key = [
        "key",
        "add",
        "--owner",
        "user:main",
        "--id",
        "demo-user-main-1",
        "--secret-file",
        "docs/examples/demo.key",
    ];
    daemon.cli_ok(&key);
    eventually("the key is in force", || {
        daemon.get("/v1/keys").text().contains("demo-user-main-1").then_some(())
    });
    let token = daemon.cli_ok(&["token", "new", "--name", "reader", "--role", "auditor"]);
    let token = token.trim();
    eventually("the token counts", || (daemon.get_as(token, "/v1/state").status == 200).then_some(()));
    daemon.cli_ok(&["token", "revoke", "reader"]);
    let refused = eventually("the token counts no longer", || {
        Some(daemon.get_as(token, "/v1/state")).filter(|reply| reply.status != 200)
    });
    assert_eq!((refused.status, refused.code().as_str()), (401, "AUTH_TOKEN_UNKNOWN"));
    let kinds: Vec<Json> = daemon.events().iter().map(|event| event["type"].clone()).collect();
    for kind in ["key.added", "token.created", "token.revoked"] {
        assert!(kinds.contains(&kind.into()), "{kind} in {kinds:?}");
    }
    assert!(!daemon.get("/v1/audit/export").text().contains(token));
}

fn degraded(daemon: &Daemon) -> Vec<Json> {
    let ready = daemon.get("/readyz");
    assert_eq!(ready.status, 200, "it can still decide");
    ready.json()["degraded"].as_array().unwrap().iter().map(|one| one["what"].clone()).collect()
}

/// Whoever has to get rid of a token or a key need not mend the policies first.
#[test]
fn tokens_and_keys_come_and_go_while_the_policies_are_broken() {
    let mut daemon = Daemon::new();
    let first = digest(&daemon);
    let reader = daemon.token("reader", "auditor", None);
    daemon.token("router-1", "orchestrator", Some(ROUTER));
    let key = json!({"keyId": KEY_ID, "owner": "router-1", "purpose": "request", "secret": SECRET});
    assert_eq!(daemon.post("/v1/keys", &key).status, 201);
    let original = fs::read_to_string(daemon.path("policies/routes.json")).unwrap();
    write(&daemon.path("policies/routes.json"), "{\"half\": ");
    let asked = daemon.send(&Request::new("POST", "/v1/reload").token(&daemon.admin));
    assert_eq!((asked.status, asked.code().as_str()), (409, "RULES_BROKEN"), "{asked:?}");
    assert_eq!(degraded(&daemon), ["policies"]);
    let asked = daemon.send(&Request::new("POST", "/v1/reload?part=tokens").token(&daemon.admin));
    assert_eq!((asked.status, &asked.json()["broken"][0]["part"]), (200, &json!("policies")), "{asked:?}");

    let delete = |target: &str| daemon.send(&Request::new("DELETE", target).token(&daemon.admin));
    assert_eq!(delete("/v1/tokens/reader").status, 200);
    assert_eq!(daemon.get_as(&reader, "/v1/state").code(), "AUTH_TOKEN_UNKNOWN");
    assert_eq!(delete("/v1/tokens/reader").status, 404, "it is out already");
    let other = daemon.token("reader", "auditor", None);
    assert_eq!(daemon.get_as(&other, "/v1/state").status, 200);

    let read = |nonce: &str| daemon.send(&signed(Request::new("GET", "/v1/handoffs"), nonce));
    assert_eq!(read("nonce-0001").status, 200);
    assert_eq!(delete(&format!("/v1/keys/{KEY_ID}")).status, 200);
    assert_eq!(read("nonce-0002").code(), "AUTH_SIGNATURE_INVALID");
    let again =
        json!({"keyId": "router-sign-2", "owner": "router-1", "purpose": "request", "secret": SECRET});
    assert_eq!(daemon.post("/v1/keys", &again).status, 201);
    assert!(daemon.get("/v1/keys").text().contains("router-sign-2"));
    let from_cli = daemon.cli_ok(&["token", "new", "--name", "by-hand", "--role", "auditor"]);
    assert_eq!(daemon.get_as(from_cli.trim(), "/v1/state").status, 200);
    daemon.cli_ok(&["token", "revoke", "by-hand"]);
    assert_eq!(daemon.get_as(from_cli.trim(), "/v1/state").status, 401);
    daemon.cli_ok(&["key", "remove", "router-sign-2"]);
    assert!(!daemon.get("/v1/keys").text().contains("router-sign-2"));

    // Meanwhile the set before the broken one decides, and the ledger has all of it.
    assert_eq!(daemon.submit(&spec("kept_0001")).json()["policyDigest"], first);
    assert_eq!(loads(&daemon).len(), 1);
    let kinds: Vec<Json> = daemon.events().iter().map(|event| event["type"].clone()).collect();
    for kind in ["token.created", "token.revoked", "key.added", "key.removed"] {
        assert!(kinds.iter().filter(|one| **one == kind).count() >= 2, "{kind} in {kinds:?}");
    }
    write(&daemon.path("policies/routes.json"), original);
    daemon.restart(200);
    assert_eq!(daemon.get_as(&reader, "/v1/state").status, 401);
    assert_eq!(daemon.get_as(&other, "/v1/state").status, 200);
}

/// The other way round, too; and what was signed with a key that is gone does not pass, whatever is broken.
#[test]
fn each_part_of_the_rules_stands_by_itself() {
    let house = House::new();
    let daemon = &house.daemon;
    let (first, tokens) = (digest(daemon), daemon.path("memory/tokens.json"));
    let text = fs::read_to_string(&tokens).unwrap();
    write(&tokens, "{\"tokens\": [");
    write(&daemon.path("policies/routes.json"), with_route(daemon, "new.execution-plane.v1"));
    eventually("the routes are in force", || (digest(daemon) != first).then_some(()));
    assert_eq!(degraded(daemon), ["tokens"]);
    assert_eq!(daemon.get("/v1/policies").json()["lastLoad"]["outcome"], "loaded");
    let refused = daemon.post("/v1/tokens", json!({"name": "x", "role": "auditor"}));
    assert_eq!((refused.status, refused.code().as_str()), (409, "RULES_BROKEN"), "{refused:?}");
    write(&tokens, text);
    eventually("all is well again", || degraded(daemon).is_empty().then_some(()));

    let asks = |name: &str| house.codes(&delegated::signed(mention(name, "1473395000000000101"), |_| {}));
    assert_eq!(asks("key_0001"), ["POLICY_MENTION_PHASE"]);
    write(&daemon.path("policies/routes.json"), "{");
    let removed = daemon.send(&Request::new("DELETE", "/v1/keys/user-main-test").token(&daemon.admin));
    assert_eq!(removed.status, 200);
    assert!(asks("key_0002").contains(&"A2A_KEY_UNKNOWN".to_owned()), "it passes no more");
}
