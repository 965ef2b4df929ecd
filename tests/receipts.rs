//! Receipts, as a receiver checks them: with the library, on the command line, and with the programs that
//! `docs/receipts.md` shows, which are taken from the page and run.
//!
//! Needs `node` and a `python3` (or `$PYTHON`) that has `cryptography`; `scripts/test` installs them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use handoffd::dispatch::{Jwks, Presented, Receipt, ReceiptFacts, jwks, receipt_until, verify};
use handoffd::json::{Document, read};
use handoffd::ledger::RunningHash;
use handoffd::limits;
use handoffd::proof::{Digest, Seed};
use handoffd::timestamp::Timestamp;
use serde_json::{Value as Json, json};

const NOW: &str = "2026-02-18T19:38:00.5Z";
const TASK_SPEC: &str = include_str!("../docs/examples/taskspec-canonical.json");

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn seed() -> Seed {
    Seed::from_bytes(&[7; 32])
}

fn digest(value: &Json) -> Digest {
    Digest::of(serde_json_canonicalizer::to_string(value).unwrap().as_bytes())
}

/// A payload with everything on which implementations of RFC 8785 differ.
fn dispatch() -> Json {
    json!({
        "operation": "transfer", "intent": {
            "\u{10000}": 1, "\u{ff5e}": 2, "10": 1e21, "9": 100.0, "01": -0.0, "é": -0.000_001, "": 1e-7,
            "numbers": [0.1, 5e-324, 1.797_693_134_862_315_7e308, 333_333_333.333_333_3, 123_456_789_012_345_680_000.0,
                9_007_199_254_740_992_i64, -1.5e-9, 1e20],
            "text": "\u{0}\u{1f}\u{7f}\"\\/\n\t\u{8}\u{c}\r€😀 \u{2028}", "flags": [true, false, null], "empty": [{}, []],
        },
        "auth": {"signature": "00"},
    })
}

fn receipt_for(target: &str, until: Timestamp, seed: &Seed) -> Json {
    let facts = ReceiptFacts {
        handoff_id: "hs_20260218_0001",
        task_spec_digest: digest(&serde_json::from_str(TASK_SPEC).unwrap()),
        dispatch_digest: digest(&dispatch()),
        target,
        sequence: 42,
        running_hash: RunningHash::genesis("0.0.1"),
        topic_id: Some("0.0.1"),
        expires_at: until,
    };
    serde_json::to_value(Receipt::sign(&facts, seed)).unwrap()
}

fn receipt() -> Json {
    receipt_for("crypto-sage", receipt_until(at(NOW), None), &seed())
}

fn key_set() -> Json {
    jwks([Seed::from_bytes(&[8; 32]).public_hex().as_str(), seed().public_hex().as_str()])
}

/// Signs a receipt that says what no gateway would say.
fn signed_again(mut receipt: Json) -> Json {
    receipt.as_object_mut().unwrap().shift_remove("signature");
    let signature = seed().sign(serde_json_canonicalizer::to_string(&receipt).unwrap().as_bytes());
    receipt["signature"] = json!(signature);
    receipt
}

fn document(text: &str) -> Document<'_> {
    read(text.as_bytes(), limits::RECEIPT_FILE).unwrap()
}

/// What a receiver has in hand.
struct Case {
    receipt: Json,
    dispatch: Json,
    task_spec: Json,
    jwks: Json,
    target: &'static str,
    now: &'static str,
}

impl Case {
    fn good() -> Self {
        let task_spec = serde_json::from_str(TASK_SPEC).unwrap();
        Self {
            receipt: receipt(),
            dispatch: dispatch(),
            task_spec,
            jwks: key_set(),
            target: "crypto-sage",
            now: NOW,
        }
    }

    /// `good`, or the kind of the fault.
    fn verify(&self) -> &'static str {
        let texts = [&self.receipt, &self.dispatch, &self.task_spec, &self.jwks].map(Json::to_string);
        let [receipt, dispatch, task_spec, keys] = texts.each_ref().map(|text| document(text));
        let presented = Presented {
            dispatch: Some(dispatch.root()),
            task_spec: Some(task_spec.root()),
            target: Some(self.target),
        };
        let keys = Jwks::read(keys.root()).unwrap();
        match verify(receipt.root(), &presented, &keys, at(self.now)) {
            Ok(verified) => {
                assert_eq!((verified.handoff_id.as_str(), verified.sequence), ("hs_20260218_0001", 42));
                "good"
            }
            Err(fault) => {
                assert!(!fault.to_string().is_empty());
                fault.kind()
            }
        }
    }
}

/// Each fault alone, with what brings it about.
fn cases() -> Vec<(&'static str, Case)> {
    let with = |change: &dyn Fn(&mut Case)| {
        let mut case = Case::good();
        change(&mut case);
        case
    };
    let mut cases = vec![
        ("good", Case::good()),
        ("good", with(&|case| case.now = "2026-02-18T19:43:00.499Z")),
        ("expired", with(&|case| case.now = "2026-02-18T19:43:00.500Z")),
        ("other_target", with(&|case| case.target = "crypto-sage-dr")),
        ("changed_dispatch", with(&|case| case.dispatch["intent"]["numbers"][0] = json!(0.2))),
        ("changed_dispatch", with(&|case| case.dispatch["auth"]["signature"] = json!("01"))),
        ("unknown_key", with(&|case| case.jwks = jwks([Seed::from_bytes(&[8; 32]).public_hex().as_str()]))),
        (
            "unknown_key",
            with(&|case| {
                case.receipt =
                    receipt_for("crypto-sage", at("2026-02-18T19:40:00Z"), &Seed::from_bytes(&[9; 32]))
            }),
        ),
        ("bad_signature", with(&|case| case.receipt["target"] = json!("crypto-sage-dr"))),
        ("bad_signature", with(&|case| case.receipt["expiresAt"] = json!("2099-01-01T00:00:00.000Z"))),
        ("bad_signature", with(&|case| case.receipt["sequence"] = json!(43))),
        ("bad_signature", with(&|case| case.receipt["more"] = json!(1))),
        ("bad_signature", with(&|case| drop(case.receipt.as_object_mut().unwrap().shift_remove("topicId")))),
        ("bad_signature", with(&|case| case.receipt["signature"] = json!("0".repeat(128)))),
        // Another gateway's key under our key's name.
        ("bad_signature", with(&|case| case.jwks["keys"][1]["x"] = case.jwks["keys"][0]["x"].clone())),
        (
            "not_allowed",
            with(&|case| {
                case.receipt["decision"] = json!("denied");
                case.receipt = signed_again(case.receipt.clone());
            }),
        ),
        (
            "good",
            with(&|case| {
                case.receipt["later"] = json!({"b": 1, "a": "a member that is not known yet"});
                case.receipt = signed_again(case.receipt.clone());
            }),
        ),
        ("malformed", with(&|case| case.receipt["expiresAt"] = json!("tomorrow"))),
        ("malformed", with(&|case| case.receipt["signature"] = json!("A".repeat(128)))),
        ("malformed", with(&|case| case.receipt = json!("receipt"))),
    ];
    for member in [
        "handoffId",
        "decision",
        "taskSpecDigest",
        "dispatchDigest",
        "target",
        "runningHash",
        "expiresAt",
        "keyId",
        "signature",
    ] {
        cases.push((
            "malformed",
            with(&|case| drop(case.receipt.as_object_mut().unwrap().shift_remove(member))),
        ));
        cases.push(("malformed", with(&|case| case.receipt[member] = json!(7))));
    }
    cases
}

#[test]
fn a_receipt_holds_for_what_it_was_made_for_and_for_nothing_else() {
    for (expected, case) in cases() {
        assert_eq!(case.verify(), expected, "{}", case.receipt);
    }
    let mut other = Case::good();
    other.task_spec["intent"]["summary"] = json!("something else");
    assert_eq!(other.verify(), "changed_task_spec");
    for (member, value) in [
        ("sequence", json!(0)),
        ("sequence", json!("42")),
        ("taskSpecDigest", json!("sha256:00")),
        ("dispatchDigest", json!("00")),
        ("runningHash", json!("zz")),
        ("topicId", json!(1)),
    ] {
        let mut case = Case::good();
        case.receipt[member] = value;
        case.receipt = signed_again(case.receipt.clone());
        assert_eq!(case.verify(), "malformed", "{member}");
    }
}

#[test]
fn what_is_signed_is_the_canonical_receipt_without_its_signature() {
    let receipt = receipt();
    assert_eq!(signed_again(receipt.clone()), receipt);
    assert_eq!(receipt["decision"], "allowed");
    assert_eq!(receipt["expiresAt"], "2026-02-18T19:43:00.500Z");
    assert_eq!(receipt["keyId"], key_set()["keys"][1]["kid"]);
}

#[test]
fn a_receipt_ends_after_five_minutes_or_when_the_verdict_does() {
    let now = at(NOW);
    assert_eq!(receipt_until(now, None), now.plus_seconds(300));
    assert_eq!(receipt_until(now, Some(now.plus_seconds(299))), now.plus_seconds(299));
    assert_eq!(receipt_until(now, Some(now.plus_seconds(301))), now.plus_seconds(300));
}

/// RFC 8037, appendix A.2.
#[test]
fn a_public_key_is_written_as_the_rfc_writes_it() {
    let set = jwks(["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "not a key"]);
    let keys = set["keys"].as_array().unwrap();
    let [key] = keys.as_slice() else { panic!("{keys:?}") };
    assert_eq!(key["x"], "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
    for (member, value) in [("kty", "OKP"), ("crv", "Ed25519"), ("use", "sig"), ("alg", "EdDSA")] {
        assert_eq!(key[member], value);
    }
    assert!(key["kid"].as_str().unwrap().starts_with("gw_"));
}

#[test]
fn keys_for_other_uses_prove_nothing() {
    for (member, value) in [("kty", "EC"), ("crv", "X25519"), ("use", "enc"), ("alg", "RS256"), ("x", "AAAA")]
    {
        let mut case = Case::good();
        case.jwks["keys"][1][member] = json!(value);
        assert_eq!(case.verify(), "unknown_key", "{member}");
    }
    let mut case = Case::good();
    case.jwks["keys"][1].as_object_mut().unwrap().retain(|member, _| member != "use" && member != "alg");
    assert_eq!(case.verify(), "good");
    assert!(Jwks::read(document("{}").root()).is_err());
}

fn write(directory: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(name);
    #[expect(clippy::disallowed_methods, reason = "a test lays out files")]
    fs::write(&path, text).unwrap();
    path
}

/// The only block of that language on the page.
fn snippet(language: &str) -> String {
    let page = include_str!("../docs/receipts.md");
    let blocks: Vec<&str> = page.split(&format!("```{language}\n")).skip(1).collect();
    let [block] = blocks.as_slice() else { panic!("{} blocks of {language}", blocks.len()) };
    block.split("\n```").next().unwrap().to_owned() + "\n"
}

/// Runs a program of the page over every case: what it prints and how it ends.
fn page_agrees(program: &str, name: &str, language: &str) {
    let directory = tempfile::tempdir().unwrap();
    let script = write(directory.path(), name, snippet(language));
    for (expected, case) in cases() {
        let decision = json!({"decision": "allowed", "receipt": case.receipt, "dispatch": case.dispatch});
        let decision = write(directory.path(), "decision.json", decision.to_string());
        let keys = write(directory.path(), "jwks.json", case.jwks.to_string());
        let output = Command::new(program)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .args([script.as_os_str(), decision.as_os_str(), keys.as_os_str()])
            .args([case.target, &case.now.replace(".5Z", ".500Z")])
            .output()
            .unwrap_or_else(|error| panic!("{program}: {error}; scripts/test installs it"));
        let said = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        let expected =
            if expected == "good" { ("good".to_owned(), 0) } else { (format!("bad: {expected}"), 1) };
        assert_eq!(
            (said.trim().to_owned(), output.status.code().unwrap()),
            expected,
            "{}\n{errors}",
            case.receipt
        );
    }
}

#[test]
fn the_python_of_the_page_comes_to_the_same_conclusions() {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    page_agrees(&python, "check_receipt.py", "python");
}

#[test]
fn the_javascript_of_the_page_comes_to_the_same_conclusions() {
    page_agrees("node", "check_receipt.mjs", "javascript");
}

fn handoffd(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
    command.current_dir(directory).env("NO_COLOR", "1").args(["receipt", "verify"]).args(arguments);
    command.output().unwrap()
}

/// The exit code, and standard output.
fn exit(directory: &Path, arguments: &[&str]) -> (i32, String) {
    let output = handoffd(directory, arguments);
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn the_command_line_says_good_or_bad_and_why() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for (expected, case) in cases() {
        write(path, "receipt.json", case.receipt.to_string());
        write(path, "dispatch.json", serde_json::to_string_pretty(&case.dispatch).unwrap());
        write(path, "task-spec.json", TASK_SPEC);
        write(path, "jwks.json", case.jwks.to_string());
        let arguments = [
            "--jwks",
            "jwks.json",
            "--dispatch",
            "dispatch.json",
            "--task-spec",
            "task-spec.json",
            "--target",
            case.target,
            "--now",
            case.now,
            "receipt.json",
            "--json",
        ];
        let (code, text) = exit(path, &arguments);
        let answer: Json = serde_json::from_str(&text).unwrap();
        if expected == "good" {
            assert_eq!((code, &answer["ok"]), (0, &json!(true)));
            assert_eq!(answer["compared"], json!(["dispatch", "taskSpec", "target"]));
        } else {
            assert_eq!((code, &answer["ok"], &answer["fault"]), (1, &json!(false), &json!(expected)));
        }
    }
}

#[test]
fn the_command_line_takes_a_whole_decision_and_speaks_to_people() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    write(path, "jwks.json", key_set().to_string());
    let decision =
        |dispatch: &Json| json!({"gates": [], "receipt": receipt(), "dispatch": dispatch}).to_string();
    write(path, "good.json", decision(&dispatch()));
    write(path, "changed.json", decision(&json!({})));
    write(path, "none.json", r#"{"decision": "denied", "gates": [], "reasons": []}"#);
    write(path, "other.json", "{}");
    write(path, "broken.json", "{");
    let common = ["--jwks", "jwks.json", "--now", NOW];
    let check = |arguments: &[&str], expected: (i32, &str)| {
        let (code, text) = exit(path, &[&common, arguments].concat());
        assert_eq!((code, text.as_str()), expected);
    };
    let good = "good  hs_20260218_0001 for crypto-sage, entry 42, until 2026-02-18T19:43:00.5Z";
    check(&["good.json"], (0, good));
    check(&["good.json", "--target", "crypto-sage"], (0, good));
    check(
        &["good.json", "--target", "another"],
        (1, "bad  the receipt does not hold: it is for another target, `crypto-sage`"),
    );
    let changed = "bad  the receipt does not hold: it is for another payload than this one";
    check(&["changed.json"], (1, changed));
    // What is given counts for more than what came along.
    check(&["good.json", "--dispatch", "other.json"], (1, changed));
    check(&["other.json"], (1, "bad  the receipt does not hold: its `keyId` is missing or malformed"));
    for unreadable in ["none.json", "broken.json", "missing.json"] {
        check(&[unreadable], (2, ""));
    }
    assert_eq!(exit(path, &["--jwks", "other.json", "good.json"]).0, 2);
    assert_eq!(exit(path, &["--jwks", "missing.json", "good.json"]).0, 2);
}

/// Answers one request with this text.
fn serve_once(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).unwrap() == 0 {
                break;
            }
            seen.push(byte[0]);
        }
        // It may hang up before it has heard everything.
        let _ = stream.write_all(answer.as_bytes());
    });
    format!("http://{address}/.well-known/jwks.json")
}

#[test]
fn keys_can_be_fetched_within_bounds() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "receipt.json", receipt().to_string());
    let code = |answer: String| {
        let url = serve_once(answer);
        exit(directory.path(), &["--jwks", &url, "--now", NOW, "receipt.json"]).0
    };
    let answer = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
    };
    let keys = key_set().to_string();
    assert_eq!(code(answer("200 OK", &keys)), 0);
    assert_eq!(code(answer("404 Not Found", &keys)), 2);
    assert_eq!(
        code(format!(
            "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            serve_once(answer("200 OK", &keys))
        )),
        2
    );
    let long = format!("{}{}", keys, " ".repeat(limits::JWKS.bytes_max));
    assert_eq!(code(answer("200 OK", &long)), 2);
}
