//! `check`, and who is not let through.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use super::support::{NOW, Workspace, codes, stdout};

#[test]
fn a_new_workspace_allows_the_canonical_handoff_and_the_minimal_one() {
    let workspace = Workspace::new();
    assert_eq!(workspace.exit(&["check", "docs/examples/taskspec-canonical.json"]), 0);
    assert_eq!(workspace.exit(&["check", "docs/examples/taskspec-minimal.json"]), 0);
    let shown = stdout(&workspace.run(&["check", "docs/examples/taskspec-canonical.json", "--now", NOW]));
    let expected = "\
docs/examples/taskspec-canonical.json  hs_20260218_router_0001
  G0 contract  pass
  safety       pass
  D1 policy    not applicable
  D2 envelope  not applicable
  D3 risk      not applicable
  D4 mention   not applicable
  decision     allowed at 2026-02-18T19:38:00Z

  the gateway still decides:
    handoffId       hs_20260218_router_0001
    idempotencyKey  idem_swap_cycle_9001
    stage           simulated on crypto-sage.execution-plane.v1
";
    assert_eq!(shown, expected);
}

#[test]
fn a_refusal_is_a_table_then_each_reason_with_its_hint() {
    let workspace = Workspace::new();
    workspace.add_dispatch_key();
    let seed = include_str!("../fixtures/seed-003-section-3.5.json");
    workspace.write("seed.json", seed);
    let output = workspace.run(&["check", "seed.json", "--now", "2026-02-18T19:50:00Z"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "\
seed.json  hs_20260218_proxy_0007
  G0 contract  pass
  safety       pass
  D1 policy    pass
  D2 envelope  fail
  D3 risk      pass
  D4 mention   fail
  decision     denied at 2026-02-18T19:50:00Z

  POLICY_ENVELOPE_EXPIRED at /authorship/envelope/ttl/expiresAt
    the envelope ended at 2026-02-18T19:46:30Z; it is 2026-02-18T19:50:00Z
    hint: ask the principal for a new envelope

  POLICY_ENVELOPE_HASH_MISMATCH at /authorship/envelope/proof/hash
    the hash has 32 hex digits; a SHA-256 has 64
    hint: hash is sha256: and the 64 lower-case hex digits of SHA-256 over the canonical (RFC 8785) envelope without proof

  A2A_SIGNATURE_INVALID at /authorship/envelope/proof/signature
    the signature has 32 hex digits; this algorithm gives 64
    hint: send the whole signature, not a truncated one

  A2A_KEY_UNKNOWN at /authorship/envelope/principal/id
    there is no hmac-sha256 key of `user:main` for envelopes
    hint: an administrator adds one with: handoffd key add --owner user:main --id KEYID

  POLICY_MENTION_EXPIRED at /authorship/mentionDelegation/ttlSeconds
    the mention counted until 2026-02-18T19:41:58Z; it is 2026-02-18T19:50:00Z
    hint: have the person mention the bot again
";
    assert_eq!(stdout(&output), expected);
}

#[test]
fn the_shipped_delegated_examples_hold_at_the_time_they_name() {
    let workspace = Workspace::new();
    workspace.add_demo_key();
    let proxy = "docs/examples/taskspec-delegated-human-proxy.json";
    let read = "docs/examples/taskspec-delegated-read.json";
    let unsigned = workspace.json(&["check", proxy, "--now", NOW, "--json"]);
    assert_eq!(codes(&unsigned), ["A2A_KEY_UNKNOWN"], "its receiver demands a signature");
    workspace.add_dispatch_key();
    assert_eq!(workspace.exit(&["check", proxy, "--now", NOW]), 4);
    assert_eq!(workspace.exit(&["check", read, "--now", NOW]), 0);
    assert_eq!(workspace.exit(&["check", proxy, read, "--now", NOW]), 4);
    assert_eq!(workspace.exit(&["check", proxy, read]), 1, "they are dated");
    let several = workspace.json(&["check", proxy, read, "--now", NOW, "--json"]);
    assert_eq!(several.as_array().unwrap().len(), 2);
    assert_eq!(several[0]["expiresAt"], "2026-02-18T19:41:58Z");
    assert_eq!(several[1]["audit"]["delegation"]["recordedBy"], "handoffd");
}

#[test]
fn unreadable_input_is_one_clear_line_and_exit_2() {
    let workspace = Workspace::new();
    workspace.write("empty.json", "");
    workspace.write("not.json", "{\"a\": tru}");
    workspace.write("twice.json", "{\"a\": {\"b\": 1, \"\\u0062\": 2}}");
    workspace.write("deep.json", format!("{}{}", "[".repeat(65), "]".repeat(65)));
    workspace.write("large.json", format!("\"{}\"", "x".repeat(256 * 1024)));
    workspace.write("latin.json", b"\"\xe9\"");
    let check = |file: &str, message: &str| {
        let output = workspace.run(&["check", file]);
        let shown = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), shown.as_str()),
            (Some(2), format!("error: {file}: {message}\n").as_str())
        );
        assert!(output.stdout.is_empty());
    };
    check("missing.json", "does not exist");
    check("docs", "is a directory");
    check("empty.json", "it is empty; send one JSON object [A2A_BODY_INVALID]");
    check(
        "not.json",
        "expected a JSON value, found `t` (line 1, column 7) at /a; send strict JSON (RFC 8259): no comments, trailing commas or single quotes [A2A_BODY_INVALID]",
    );
    check(
        "twice.json",
        "the key `b` stands twice in one object (line 1, column 28) at /a/b; keep one member of that name; parsers disagree on which one would count [A2A_BODY_INVALID]",
    );
    check(
        "deep.json",
        &format!(
            "it nests deeper than 64 levels (line 1, column 65) at {}; flatten the document [A2A_BODY_INVALID]",
            "/0".repeat(64)
        ),
    );
    check("large.json", "is larger than 262144 bytes");
    check("latin.json", "it is not UTF-8 from byte 1 on; encode the body as UTF-8 [A2A_BODY_INVALID]");
    // One unreadable file among several: nothing is answered by halves.
    let output = workspace.run(&["check", "docs/examples/taskspec-minimal.json", "empty.json"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert_eq!(workspace.exit(&["check"]), 2);
    assert_eq!(workspace.exit(&["check", "x.json", "--now", "yesterday"]), 2);
    assert_eq!(workspace.exit(&["chekc"]), 2);
}

#[test]
fn a_document_that_is_json_but_no_task_spec_is_a_refusal() {
    let workspace = Workspace::new();
    for text in ["{}", "[]", "5", "null"] {
        workspace.write("x.json", text);
        let decision = workspace.json(&["check", "x.json", "--json"]);
        assert_eq!(decision["decision"], "denied", "{text}");
        assert!(codes(&decision).contains(&"A2A_TASKSPEC_INVALID"), "{text}");
        assert!(decision.get("handoffId").is_none(), "members that do not apply are absent");
        assert_eq!(workspace.exit(&["check", "x.json"]), 1);
    }
}

#[test]
fn standard_input_is_a_file_like_any_other() {
    let workspace = Workspace::new();
    let file = fs::File::open(workspace.path().join("docs/examples/taskspec-minimal.json")).unwrap();
    let output = workspace.command(&["check", "-", "--as", "decision-router"]).stdin(file).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_workspace_that_cannot_be_trusted_allows_nothing() {
    let error = |workspace: &Workspace, arguments: &[&str]| {
        let output = workspace.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let check = ["check", "docs/examples/taskspec-canonical.json"];

    let workspace = Workspace::new();
    workspace.write("policies/routes.json", "{\"routes\": []}");
    let shown = error(&workspace, &check);
    assert!(shown.contains("policies/routes.json at /routes: `routes` must be an object"), "{shown}");

    let workspace = Workspace::new();
    let routes = fs::read_to_string(workspace.path().join("policies/routes.json")).unwrap();
    workspace.write("policies/routes.json", routes.replacen("crypto-sage.execution-plane.v1", "b.v1", 1));
    let shown = error(&workspace, &check);
    assert!(
        shown.contains("policies/routes.json at /routes/b.v1: the name `b.v1` has 4 characters"),
        "{shown}"
    );

    let workspace = Workspace::new();
    workspace.add_demo_key();
    let ring = workspace.path().join("memory/keyring.json");
    fs::set_permissions(&ring, fs::Permissions::from_mode(0o640)).unwrap();
    let shown = error(&workspace, &check);
    assert!(shown.contains("can be read by others (mode 640); run: chmod 600"), "{shown}");

    let workspace = Workspace::new();
    let shown = error(&workspace, &["--workspace", "docs", "check", "docs/examples/taskspec-canonical.json"]);
    assert!(
        shown.contains(
            "docs is not a workspace: policies/routes.json: does not exist; `handoffd init` makes one"
        ),
        "{shown}"
    );

    let workspace = Workspace::new();
    workspace.add_demo_key();
    let policy = "policies/delegation/user-main-v1.json";
    let good = fs::read_to_string(workspace.path().join(policy)).unwrap();
    workspace.write(policy, good.replacen('{', "{\"allowEverything\": true,", 1));
    let shown = error(&workspace, &check);
    assert!(shown.contains(policy) && shown.contains("allowEverything"), "{shown}");

    // With a set that can be read, what is not in it is not allowed either.
    workspace.write(policy, &good);
    let delegated = ["check", "docs/examples/taskspec-delegated-read.json", "--now", NOW, "--json"];
    assert_eq!(workspace.json(&delegated)["decision"], "allowed");
    let refused = |arguments: &[&str], code: &str| {
        let decision = workspace.json(arguments);
        assert_eq!(
            (&decision["decision"], codes(&decision)),
            (&Json::from("denied"), vec![code]),
            "{decision}"
        );
    };
    fs::remove_file(workspace.path().join(policy)).unwrap();
    refused(&delegated, "POLICY_REF_UNKNOWN");
    workspace.write(policy, &good);
    fs::remove_file(workspace.path().join("memory/keyring.json")).unwrap();
    refused(&delegated, "A2A_KEY_UNKNOWN");
    workspace.write("policies/routes.json", "{\"routes\": {}}");
    refused(&["check", "docs/examples/taskspec-minimal.json", "--now", NOW, "--json"], "A2A_ROUTE_UNKNOWN");
}

#[test]
fn every_refused_example_is_refused_with_its_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = Workspace(tempfile::tempdir().unwrap());
    // The checkout as it is, but for its keys: those are nobody's business.
    let mirror = workspace.path().join("mirror");
    let copied = Command::new("cp")
        .args(["-r"])
        .args(["agents", "docs", "policies"].map(|name| root.join(name)))
        .arg({
            fs::create_dir(&mirror).unwrap();
            &mirror
        })
        .status()
        .unwrap();
    assert!(copied.success());
    let mirror = mirror.to_str().unwrap();
    workspace.add_demo_key_to(&["--workspace", mirror], &format!("{mirror}/docs/examples/demo.key"));
    let mut count = 0;
    for entry in fs::read_dir(format!("{mirror}/docs/examples/refused")).unwrap() {
        let path = entry.unwrap().path();
        let code = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let file = path.to_str().unwrap();
        count += 1;
        if code == "A2A_BODY_INVALID" {
            assert_eq!(workspace.exit(&["--workspace", mirror, "check", file]), 2);
            continue;
        }
        let mut arguments = vec!["--workspace", mirror, "check", file, "--now", NOW, "--json"];
        if code == "A2A_SOURCE_MISMATCH" {
            arguments.extend(["--as", "crypto-sage"]);
        }
        let decision = workspace.json(&arguments);
        assert!(codes(&decision).contains(&code.as_str()), "{code}: {decision}");
        assert!(matches!(decision["decision"].as_str(), Some("denied" | "expired")), "{code}");
    }
    assert_eq!(count, 40);
}

/// Every answer that `check` gives has the form that `docs/schemas/decision.schema.json` promises.
#[test]
fn every_decision_fits_its_schema() {
    let schema: Json = serde_json::from_str(include_str!("../../docs/schemas/decision.schema.json")).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let workspace = Workspace::new();
    workspace.add_demo_key();
    workspace.write("empty.json", "{}");
    workspace.write("seed.json", include_str!("../fixtures/seed-003-section-3.5.json"));
    for file in [
        "empty.json",
        "seed.json",
        "docs/examples/taskspec-canonical.json",
        "docs/examples/taskspec-delegated-human-proxy.json",
        "docs/examples/taskspec-delegated-read.json",
    ] {
        let decision = workspace.json(&["check", file, "--now", NOW, "--json"]);
        let errors: Vec<String> = validator.iter_errors(&decision).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{file}: {errors:?}");
    }
}
