//! Keys: kept, listed, removed, and what is signed with them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use super::support::{NOW, Workspace, codes, outcome, stdout};

#[test]
fn what_sign_signs_passes_d1_d2_and_d4() {
    let workspace = Workspace::new();
    let key = ["key", "add", "--owner", "user:main", "--id", "rita-1"];
    assert_eq!(workspace.exit(&key), 0);
    assert_eq!(workspace.exit(&key), 2, "an id is used once");
    workspace.add_dispatch_key();
    let mut spec: Json = serde_json::from_str(include_str!("../fixtures/seed-003-section-3.5.json")).unwrap();
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

/// The rule for other languages: HMAC over sorted, compact JSON.
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
