//! The command line as users meet it: the built binary, real files, exit codes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

const NOW: &str = "2026-02-18T19:38:00Z";

/// A fresh workspace, as `handoffd init` makes it.
struct Workspace(tempfile::TempDir);

impl Workspace {
    fn new() -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        let made = workspace.run(&["init"]);
        assert!(made.status.success(), "{made:?}");
        workspace
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
        command
            .current_dir(self.path())
            .args(arguments)
            .env_remove("HANDOFFD_WORKSPACE")
            .env("NO_COLOR", "1");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    fn exit(&self, arguments: &[&str]) -> i32 {
        self.run(arguments).status.code().unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "a test lays out files")]
    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path().join(path), text).unwrap();
    }

    fn json(&self, arguments: &[&str]) -> Json {
        let output = self.run(arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    fn add_demo_key(&self) {
        let arguments = [
            "key",
            "add",
            "--owner",
            "user:main",
            "--id",
            "demo-user-main-1",
            "--secret-file",
            "docs/examples/demo.key",
        ];
        assert_eq!(self.exit(&arguments), 0);
    }

    /// The key with which the shipped route signs what it sends.
    fn add_dispatch_key(&self) {
        let arguments = [
            "key",
            "add",
            "--purpose",
            "dispatch",
            "--owner",
            "crypto-sage",
            "--id",
            "crypto-sage-dispatch-1",
        ];
        assert_eq!(self.exit(&arguments), 0);
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn codes(decision: &Json) -> Vec<&str> {
    decision["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap()).collect()
}

fn outcome<'j>(decision: &'j Json, gate: &str) -> &'j str {
    let gates = decision["gates"].as_array().unwrap();
    gates.iter().find(|entry| entry["gate"] == gate).unwrap()["outcome"].as_str().unwrap()
}

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
    let seed = include_str!("fixtures/seed-003-section-3.5.json");
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
fn what_sign_signs_passes_d1_d2_and_d4() {
    let workspace = Workspace::new();
    let key = ["key", "add", "--owner", "user:main", "--id", "rita-1"];
    assert_eq!(workspace.exit(&key), 0);
    assert_eq!(workspace.exit(&key), 2, "an id is used once");
    workspace.add_dispatch_key();
    let mut spec: Json = serde_json::from_str(include_str!("fixtures/seed-003-section-3.5.json")).unwrap();
    spec["authorship"]["envelope"].as_object_mut().unwrap().remove("proof");
    workspace.write("spec.json", spec.to_string());
    for extra in [&[][..], &["--bind"], &["--ttl", "90s"], &["--key-id", "rita-1"]] {
        let mut arguments = vec!["sign", "spec.json", "--now", "2026-02-18T19:37:30Z"];
        arguments.extend(extra);
        let signed = workspace.run(&arguments);
        assert!(signed.status.success(), "{signed:?}");
        workspace.write("signed.json", &signed.stdout);
        let decision = workspace.json(&["check", "signed.json", "--now", NOW, "--json"]);
        assert_eq!(codes(&decision), [""; 0], "{extra:?}");
        for gate in ["G0", "safety", "D1", "D2", "D3", "D4"] {
            assert_eq!(outcome(&decision, gate), "pass", "{gate}");
        }
        assert_eq!(decision["decision"], "needs_approval");
    }
    let signed = workspace.json(&["sign", "spec.json", "--now", "2026-02-18T19:37:30Z", "--bind"]);
    assert_eq!(signed["authorship"]["envelope"]["ttl"]["expiresAt"], "2026-02-18T19:47:30Z");
    assert_eq!(
        signed["audit"]["delegation"]["envelopeHash"],
        signed["authorship"]["envelope"]["proof"]["hash"]
    );
    assert_eq!(signed["authorship"]["envelope"]["binding"]["messageId"], "1473395000000000001");
}

#[test]
fn an_ed25519_principal_signs_with_a_key_that_the_gateway_does_not_have() {
    let workspace = Workspace::new();
    let added = workspace.run(&["key", "add", "--owner", "user:main", "--id", "pair:1", "--alg", "ed25519"]);
    assert!(added.status.success(), "{added:?}");
    let seed = workspace.path().join("memory/pair_1.ed25519");
    assert_eq!(fs::metadata(&seed).unwrap().permissions().mode() & 0o777, 0o600);
    let private = fs::read_to_string(&seed).unwrap();
    let ring = fs::read_to_string(workspace.path().join("memory/keyring.json")).unwrap();
    assert!(!ring.contains(private.trim()), "the private half is not in the keyring");

    let signed = workspace.run(&["sign", "docs/examples/taskspec-delegated-read.json", "--keep-ttl"]);
    assert!(signed.status.success(), "{signed:?}");
    workspace.write("signed.json", &signed.stdout);
    assert_eq!(workspace.exit(&["check", "signed.json", "--now", NOW]), 0);

    // The principal took its key away; another one does not fit.
    fs::remove_file(&seed).unwrap();
    workspace.write("other.seed", "0".repeat(64));
    let sign = |extra: &[&str]| {
        let mut arguments = vec!["sign", "docs/examples/taskspec-delegated-read.json"];
        arguments.extend(extra);
        let output = workspace.run(&arguments);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(sign(&[]), (Some(2), "error: ./memory/pair_1.ed25519: does not exist\n".to_owned()));
    let (code, message) = sign(&["--secret-file", "other.seed"]);
    assert_eq!(
        (code, message.as_str()),
        (Some(2), "error: other.seed: is not the private half of key `pair:1`\n")
    );
}

/// The rule of DESIGN for other languages: HMAC over sorted, compact JSON.
#[test]
fn a_signature_made_by_python_verifies() {
    const SCRIPT: &str = r#"
import hashlib, hmac, json, sys
spec = json.load(open("docs/examples/taskspec-delegated-read.json"))
envelope = spec["authorship"]["envelope"]
del envelope["proof"]
key = open("docs/examples/demo.key", "rb").read().removesuffix(b"\n")
text = json.dumps(envelope, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
digest = "sha256:" + hashlib.sha256(text).hexdigest()
envelope["proof"] = {"algorithm": "hmac-sha256-v1", "hash": digest, "keyId": "demo-user-main-1",
                     "signature": hmac.new(key, text, hashlib.sha256).hexdigest()}
spec["audit"]["delegation"]["envelopeHash"] = digest
json.dump(spec, sys.stdout)
"#;
    let workspace = Workspace::new();
    workspace.add_demo_key();
    let python = Command::new("python3").args(["-c", SCRIPT]).current_dir(workspace.path()).output().unwrap();
    assert!(python.status.success(), "{python:?}");
    workspace.write("python.json", &python.stdout);
    assert_eq!(workspace.exit(&["check", "python.json", "--now", NOW]), 0);
    let altered = stdout(&python)
        .replace("\"issuedAt\": \"2026-02-18T19:36:30Z\"", "\"issuedAt\": \"2026-02-18T19:36:31Z\"");
    workspace.write("python.json", altered);
    assert_eq!(workspace.exit(&["check", "python.json", "--now", NOW]), 1);
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
fn keys_are_listed_without_their_secrets_and_can_be_removed() {
    let workspace = Workspace::new();
    let empty = stdout(&workspace.run(&["key", "list"]));
    assert!(empty.starts_with("no keys yet"), "{empty}");
    workspace.add_demo_key();
    let add = [
        "key",
        "add",
        "--owner",
        "route",
        "--id",
        "r2",
        "--purpose",
        "dispatch",
        "--not-after",
        "2026-01-01T00:00:00Z",
    ];
    assert_eq!(workspace.exit(&add), 0);
    let shown = stdout(&workspace.run(&["key", "list"]));
    let expected = "\
id                owner      purpose   algorithm    valid
demo-user-main-1  user:main  envelope  hmac-sha256  yes
r2                route      dispatch  hmac-sha256  no, ended 2026-01-01T00:00:00Z
";
    assert_eq!(shown, expected);
    assert_eq!(workspace.exit(&["key", "remove", "demo-user-main-1"]), 0);
    assert_eq!(workspace.exit(&["key", "remove", "demo-user-main-1"]), 2);
    let decision =
        workspace.json(&["check", "docs/examples/taskspec-delegated-read.json", "--now", NOW, "--json"]);
    assert_eq!(codes(&decision), ["A2A_KEY_UNKNOWN"]);
    for bad in [
        &["--alg", "rot13"][..],
        &["--purpose", "love"],
        &["--secret-file", "missing"],
        &["--alg", "ed25519", "--public-key", "00"],
        &["--public-key", "00"],
        &["--not-before", "2026-01-01T00:00:00Z", "--not-after", "2025-01-01T00:00:00Z"],
    ] {
        let mut arguments = vec!["key", "add", "--owner", "x", "--id", "bad"];
        arguments.extend(bad);
        assert_eq!(workspace.exit(&arguments), 2, "{bad:?}");
    }
    assert_eq!(workspace.json(&["key", "list", "--json"]).as_array().unwrap().len(), 1, "nothing half done");
}

#[test]
fn keys_added_at_the_same_time_are_all_kept() {
    let workspace = Workspace::new();
    let ids: Vec<String> = (0..12).map(|n| format!("key-{n}")).collect();
    let children: Vec<_> = ids
        .iter()
        .map(|id| {
            workspace
                .command(&["key", "add", "--owner", "user:main", "--id", id])
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(workspace.json(&["key", "list", "--json"]).as_array().unwrap().len(), ids.len());
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
    let add = [
        "--workspace",
        mirror,
        "key",
        "add",
        "--owner",
        "user:main",
        "--id",
        "demo-user-main-1",
        "--secret-file",
        &format!("{mirror}/docs/examples/demo.key"),
    ];
    assert_eq!(workspace.exit(&add), 0);
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
    let schema: Json = serde_json::from_str(include_str!("../docs/schemas/decision.schema.json")).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let workspace = Workspace::new();
    workspace.add_demo_key();
    workspace.write("empty.json", "{}");
    workspace.write("seed.json", include_str!("fixtures/seed-003-section-3.5.json"));
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

/// The ledger as it is left by a gateway that decided two handoffs, seen through the command line.
#[test]
fn the_ledger_can_be_exported_shown_and_compared_with_the_state() {
    use handoffd::engine::{Asker, Candidate, Ruling};
    use handoffd::gateway::Gateway;
    use std::sync::Arc;
    let workspace = Workspace::new();
    assert_eq!(workspace.exit(&["audit", "export"]), 2, "there is nothing yet");
    let policies = Arc::new(handoffd::policy::Workspace::new(workspace.path()).load_policies().unwrap());
    let gateway = Gateway::open(workspace.path(), "127.0.0.1:7420").unwrap();
    let in_force = handoffd::engine::InForce::of_files(policies.clone(), Arc::default(), Vec::new());
    gateway.engine().put_in_force_and_wait(Arc::new(in_force)).unwrap();
    let canonical =
        fs::read_to_string(workspace.path().join("docs/examples/taskspec-canonical.json")).unwrap();
    for body in [
        canonical.clone(),
        canonical
            .replace("\"authorized-harness\"", "\"agent\"")
            .replace("_0001", "_0002")
            .replace("9001", "9002"),
    ] {
        let ruling = Ruling {
            policies: policies.clone(),
            keyring: Arc::default(),
            asker: Asker::Agent("decision-router".into()),
        };
        let now = handoffd::timestamp::Timestamp::parse(NOW).unwrap();
        gateway.engine().submit_and_wait(Candidate::judge(body.into(), ruling, now).unwrap()).unwrap();
    }
    // Beside a running gateway.
    let export = stdout(&workspace.run(&["audit", "export"]));
    let lines: Vec<Json> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<String> = lines
        .iter()
        .map(|line| {
            serde_json::from_str::<Json>(line["wire"].as_str().unwrap()).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let expected = [
        "policy.loaded",
        "route.declared",
        "task.created",
        "gate.decided",
        "task.available",
        "task.created",
        "gate.decided",
        "task.rejected",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(stdout(&workspace.run(&["audit", "export", "--from", "7"])).lines().count(), 2);
    let shown = workspace.json(&["audit", "show", "7"]);
    assert_eq!(shown["wire"]["payload"]["codes"], serde_json::json!(["POLICY_SELF_TEST"]));
    assert_eq!(shown["hcs"]["running_hash"], lines[6]["hcs"]["running_hash"]);
    assert_eq!(workspace.exit(&["audit", "show", "9"]), 2);
    assert_eq!(workspace.exit(&["state", "verify"]), 0);
    let held = workspace.run(&["state", "restore"]);
    assert_eq!(held.status.code(), Some(2));
    assert!(String::from_utf8(held.stderr).unwrap().contains("is held by process"), "the gateway is running");
    gateway.close().unwrap();

    assert_eq!(workspace.json(&["audit", "checkpoint"])["sequence"], 8);
    let listed = workspace.json(&["audit", "list", "--type", "gate.decided", "--json"]);
    let sequences: Vec<u64> =
        listed["entries"].as_array().unwrap().iter().map(|row| row["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, [7, 4]);
    let first = workspace.json(&["audit", "list", "--limit", "3", "--json"]);
    let second = workspace.json(&[
        "audit",
        "list",
        "--limit",
        "9",
        "--cursor",
        first["next"].as_str().unwrap(),
        "--json",
    ]);
    assert_eq!((second["entries"].as_array().unwrap().len(), &second["next"]), (5, &Json::Null));
    let refused =
        stdout(&workspace.run(&["audit", "list", "--code", "POLICY_SELF_TEST", "--type", "gate.decided"]));
    assert!(refused.contains("task:hs_20260218_router_0002:attempt:1  denied POLICY_SELF_TEST"), "{refused}");
    assert_eq!(stdout(&workspace.run(&["audit", "list", "--handoff", "hs_nobody"])), "no entries\n");
    assert_eq!(workspace.exit(&["audit", "list", "--cursor", "x"]), 2);
    let verified = workspace.json(&["audit", "verify", "--json"]);
    assert_eq!(
        (&verified["verified"], &verified["entries"], &verified["checkpoints"]),
        (&Json::from(true), &Json::from(8), &Json::from(1))
    );
    assert_eq!(verified["viewsSequence"], 8);
    // A row that somebody edited with SQLite; the views are deleted, and can be.
    let views = workspace.path().join("memory/views.db");
    let whole = fs::read(&views).unwrap();
    let edited = rusqlite::Connection::open(&views).unwrap();
    edited.execute("UPDATE handoffs SET attempts = 7 WHERE handoff = 6", []).unwrap();
    drop(edited);
    let found = workspace.run(&["audit", "verify"]);
    assert_eq!(
        (found.status.code(), stdout(&found).as_str()),
        (
            Some(1),
            "bad  the views differ from the ledger in table `handoffs`, handoff 6: `attempts` is 7, and the ledger \
             gives 1\n"
        )
    );
    workspace.write("memory/views.db", "no database, though it is long enough to be one".repeat(20));
    assert_eq!(workspace.exit(&["audit", "verify"]), 1);
    fs::remove_file(&views).unwrap();
    assert_eq!(workspace.json(&["audit", "verify", "--json"])["viewsSequence"], Json::Null);
    workspace.write("memory/views.db", whole);
    // An export, verified by the program and by plain Python; cut, it is noticed by whoever kept the checkpoint.
    workspace.write("export.jsonl", &export);
    workspace.write("cut.jsonl", export.lines().take(5).map(|line| format!("{line}\n")).collect::<String>());
    assert_eq!(workspace.exit(&["audit", "verify", "--export", "export.jsonl"]), 0);
    assert_eq!(workspace.exit(&["audit", "verify", "--export", "cut.jsonl"]), 0, "nobody kept anything");
    let kept = ["--checkpoint", "memory/checkpoint"];
    assert_eq!(workspace.exit(&["audit", "verify", "--export", "export.jsonl", kept[0], kept[1]]), 0);
    assert_eq!(workspace.exit(&["audit", "verify", "--export", "cut.jsonl", kept[0], kept[1]]), 1);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/verify-ledger.py");
    let python =
        Command::new("python3").arg(script).arg(workspace.path().join("export.jsonl")).output().unwrap();
    assert!(stdout(&python).starts_with("ok: 8 entries, gw_"), "{python:?}");
    // One digit of one entry.
    let segment = workspace.path().join("memory/ledger/00000000000000000001.jsonl");
    let whole = fs::read_to_string(&segment).unwrap();
    workspace.write(
        "memory/ledger/00000000000000000001.jsonl",
        whole.replacen("policy.loaded", "policy.loadee", 1),
    );
    let found = workspace.run(&["audit", "verify"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(stdout(&found).starts_with("bad  "), "{found:?}");
    workspace.write("memory/ledger/00000000000000000001.jsonl", &whole);
    let state = workspace.json(&["state", "show"]);
    assert_eq!(state["activeHandoffs"].as_object().unwrap().len(), 1);
    workspace.write(
        "memory/orchestration-state.json",
        fs::read_to_string(workspace.path().join("memory/orchestration-state.json"))
            .unwrap()
            .replace("queued", "done"),
    );
    for command in ["state", "audit"] {
        let found = workspace.run(&[command, "verify"]);
        assert_eq!(found.status.code(), Some(1));
        let said = stdout(&found);
        assert!(said.ends_with("/status: expected \"queued\", found \"done\"\n"), "{said}");
        let found = workspace.run(&[command, "verify", "--json"]);
        let said: serde_json::Value = serde_json::from_str(&stdout(&found)).unwrap();
        assert!(said["pointer"].as_str().unwrap().starts_with("/activeHandoffs/"), "{said}");
        assert_eq!((&said["expected"], &said["found"]), (&"\"queued\"".into(), &"\"done\"".into()));
    }
    assert_eq!(workspace.exit(&["state", "restore"]), 0);
    assert_eq!(workspace.exit(&["state", "verify"]), 0);
    assert_eq!(workspace.json(&["state", "show"]), state);
}

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
