//! `scripts/verify-ledger.py`, which shares no line with the Rust verifier, comes to the same conclusions.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use handoffd::ledger::verify::{Checkpoint, verify_export};
use serde_json::{Value, json};

use super::support::*;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/verify-ledger.py")
}

/// Runs the script as people do: the exit code and what it printed.
fn python(arguments: &[&str], stdin: &[u8]) -> (i32, String) {
    run(Command::new("python3").arg(script()).args(arguments), stdin)
}

fn run(command: &mut Command, stdin: &[u8]) -> (i32, String) {
    let mut child = command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It stops reading at the first difference.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}

/// Loads the script once and has it check many pairs of files: starting Python takes longer than checking.
const MANY: &str = r#"
import runpy, sys
check = runpy.run_path(sys.argv[1])["check"]
for line in sys.stdin:
    checkpoint, export = line.split()
    with open(checkpoint, "rb") as kept, open(export, "rb") as stream:
        print(check(stream, kept.read(), bytes.fromhex(sys.argv[2]))[0])
"#;

/// Exports, each with a checkpoint file's text, on which both verifiers must say the same.
#[derive(Default)]
struct Cases(Vec<(String, Vec<u8>)>);

impl Cases {
    fn add(&mut self, checkpoint: &str, export: &[u8]) {
        self.0.push((checkpoint.to_owned(), export.to_vec()));
    }

    /// How many went well.
    fn agree(&self) -> usize {
        let dir = tempfile::tempdir().unwrap();
        let mut list = String::new();
        for (n, (checkpoint, export)) in self.0.iter().enumerate() {
            let file = |kind: &str| dir.path().join(format!("{n}.{kind}"));
            write(&file("checkpoint"), checkpoint.as_bytes());
            write(&file("export"), export);
            list += &format!("{} {}\n", file("checkpoint").display(), file("export").display());
        }
        let mut command = Command::new("python3");
        let (exit, said) = run(command.args(["-c", MANY]).arg(script()).arg(public_key()), list.as_bytes());
        assert_eq!(exit, 0);
        assert_eq!(said.lines().count(), self.0.len());
        let mut well = 0;
        for ((checkpoint, export), said) in self.0.iter().zip(said.lines()) {
            let claimed = Checkpoint::parse(checkpoint.as_bytes());
            let expected = match claimed.and_then(|claimed| claimed.verify(&public_keys())) {
                Ok(checkpoint) => rust(export, &[checkpoint]),
                Err(finding) => format!("bad: … ({})", finding.kind.code()),
            };
            let what = || format!("{checkpoint}\n{}", String::from_utf8_lossy(export));
            assert_eq!(without_words(said), expected, "{}", what());
            well += usize::from(expected.starts_with("ok"));
        }
        well
    }
}

/// What the script should print: all of it if it goes well, else the place and the code.
fn rust(export: &[u8], checkpoints: &[Checkpoint]) -> String {
    match verify_export(export, checkpoints) {
        Ok(report) => {
            let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let (topic, hash) = (or_none(report.topic_id), or_none(report.last_running_hash));
            format!("ok: {} entries, {topic}, {hash}", report.entries)
        }
        Err(finding) => {
            let line = finding.line.map(|line| format!("line {line}, ")).unwrap_or_default();
            format!("bad: {line}entry {}: … ({})", finding.sequence.unwrap(), finding.kind.code())
        }
    }
}

fn without_words(said: &str) -> String {
    if said.starts_with("ok") {
        return said.to_owned();
    }
    let place = said.find("entry ").and_then(|at| Some(at + said[at..].find(": ")? + 2));
    format!("{}… {}", &said[..place.unwrap_or("bad: ".len())], &said[said.rfind('(').unwrap()..])
}

#[test]
fn the_script_agrees_on_honest_exports() {
    let ledger = Ledger::honest();
    let export = ledger.export();
    assert_eq!(python(&[], export.as_bytes()), (0, rust(export.as_bytes(), &[])));
    assert_eq!(python(&[], b""), (0, rust(b"", &[])));
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    write(Path::new(&path("export")), export.as_bytes());
    write(Path::new(&path("checkpoint")), ledger.checkpoint_text().as_bytes());
    let (key, checkpoint) = (public_key(), path("checkpoint"));
    let all = [&*path("export"), "--checkpoint", &*checkpoint, "--public-key", &*key];
    assert_eq!(python(&all, b""), (0, rust(export.as_bytes(), &[ledger.checkpoint()])));
    let (exit, said) = python(&all[1..], &export.as_bytes()[..export.len() - 1]);
    assert_eq!((exit, &*without_words(&said)), (1, "bad: line 48, entry 48: … (line_unended)"));
}

#[test]
fn the_script_tells_wrong_use_from_a_bad_ledger() {
    for arguments in [&["--checkpoint", "x"][..], &["--public-key", "00"], &["/nowhere/export"], &["--what"]]
    {
        assert_eq!(python(arguments, b"").0, 2, "{arguments:?}");
    }
}

#[test]
fn the_script_agrees_on_200_mutated_exports() {
    let ledger = Ledger::honest();
    let (checkpoint, honest) = (ledger.checkpoint_text(), ledger.export());
    let mut cases = Cases::default();
    let lines: Vec<&str> = honest.lines().collect();
    let joined =
        |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes();
    let mut dice = Dice(5);
    let mut unchanged = 0;
    for round in 0..200 {
        let (a, b) = (dice.roll(lines.len()), dice.roll(lines.len()));
        let mut changed = lines.clone();
        let bytes = match round % 5 {
            0 => {
                changed.swap(a, b);
                joined(&changed)
            }
            1 => {
                changed.remove(a);
                joined(&changed)
            }
            2 => {
                changed.insert(a, lines[b]);
                joined(&changed)
            }
            3 => joined(&lines[..a]),
            _ => {
                let mut bytes = honest.clone().into_bytes();
                let at = dice.roll(bytes.len());
                bytes[at] ^= 1 << dice.roll(8);
                bytes
            }
        };
        unchanged += usize::from(bytes == honest.as_bytes());
        cases.add(&checkpoint, &bytes);
    }
    assert_eq!(cases.agree(), unchanged);
    assert!(unchanged < 5, "a line swapped with itself");
}

/// Wire texts under a chain that was computed again: here only the rules of the text can speak.
#[test]
fn the_script_agrees_on_forged_wire_texts() {
    let ledger = Ledger::honest();
    let checkpoint = ledger.checkpoint_text();
    let mut cases = Cases::default();
    let mut check = |edit: &dyn Fn(String) -> String| {
        cases.add(&checkpoint, ledger.with_wire(20, edit).rechained().export().as_bytes());
    };
    for (from, to) in [
        ("\"offset\":-5", "\"offset\":-0"),
        ("\"offset\":-5", "\"offset\":-5.0"),
        ("\"offset\":-5", "\"offset\":1e400"),
        ("\"offset\":-5", "\"offset\":9007199254740992"),
        ("\"offset\":-5", "\"offset\":-5,\"offset\":-5"),
        ("\"offset\":-5", "\"offset\":NaN"),
        ("\"offset\":-5", "\"offset\":true"),
        ("\"empty\":[]", "\"empty\": []"),
        ("\"empty\":[]", "\"empty\":[\"\\ud800\"]"),
        ("\"empty\":[]", "\"empty\":[\"\\u0041\"]"),
        ("\"empty\":[]", "\"empty\":[\"\\u001F\"]"),
        ("\"empty\":[]", "\"empty\":[\"\\/\"]"),
        ("\"empty\":[]", "\"empty\":[\"\u{2028}\u{7f}\"]"),
        ("{\"empty\":[]", "{\"z\":1,\"empty\":[]"),
        ("\"stream_seq\":", "\"stream_seq\":1"),
        ("\"stream_seq\":", "\"stream_seq\":-"),
        ("\"wire\":\"1.1\"", "\"wire\":\"1.2\""),
        ("\"wire\":\"1.1\"", "\"wire\":1"),
        ("\"wire\":\"1.1\",", ""),
        ("\"wire_id\":\"wire_", "\"wire_id\":\"wire-"),
        ("\"sender\":\"agent:", "\"sender\":\""),
        ("[\"0.0.8830669\"]", "[null]"),
        ("\"type\":\"task.started\"", "\"type\":null"),
        ("\"terminal\":false}", "\"terminal\":false,\"x\":0}"),
        ("\"ts\":", "\"tr\":0,\"ts\":"),
    ] {
        check(&|text| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
    }
    check(&|text| text + "\n");
    check(&|_| "[]".to_owned());
    check(&|_| "0".to_owned());
    check(&|text| text.replacen("[]", &format!("{}{}", "[".repeat(62), "]".repeat(62)), 1));
    check(&|text| text.replacen("[]", &format!("{}{}", "[".repeat(63), "]".repeat(63)), 1));
    check(&|text| text.replacen("[]", &format!("{}{}", "[".repeat(3000), "]".repeat(3000)), 1));
    check(&|text| text.replacen("wartet", &"w".repeat(9000), 1));
    check(&|text| text.replacen("wartet", &"w".repeat(80_000), 1));
    check(&|text| text.replacen(&format!("HZY{:021}", 20), &format!("HZY{:021}", 19), 1));
    assert_eq!(cases.agree(), 0);
}

#[test]
fn the_script_agrees_on_checkpoints() {
    let ledger = Ledger::honest();
    let export = ledger.export();
    let honest: Value = serde_json::from_str(&ledger.checkpoint_text()).unwrap();
    let (mut well, mut bad) = (Cases::default(), Cases::default());
    let mut check = |text: &str| bad.add(text, export.as_bytes());
    let with = |name: &str, value: Value| {
        let mut changed = honest.clone();
        changed[name] = value;
        changed.to_string()
    };
    for (sequence, line) in [(48, 47), (30, 29), (1, 0)] {
        let line: Value = serde_json::from_str(export.lines().nth(line).unwrap()).unwrap();
        let hash = line["hcs"]["running_hash"].as_str().unwrap();
        well.add(&checkpoint_text(TOPIC, sequence, hash), export.as_bytes());
    }
    let signature = honest["signature"].as_str().unwrap();
    let mut dice = Dice(6);
    for _ in 0..12 {
        let at = dice.roll(128);
        let digit = if &signature[at..=at] == "0" { "1" } else { "0" };
        let changed = format!("{}{digit}{}", &signature[..at], &signature[at + 1..]);
        check(&with("signature", json!(changed)));
    }
    // The same signature with the group order added to its second half, which a lax verifier takes.
    let order = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
    let byte = |text: &str, n: usize| u16::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap();
    let mut carry = 0;
    let sum: String = (0..32)
        .map(|n| {
            carry += byte(&signature[64..], n) + byte(order, n);
            let digit = format!("{:02x}", carry & 255);
            carry >>= 8;
            digit
        })
        .collect();
    check(&with("signature", json!(format!("{}{sum}", &signature[..64]))));
    check(&with("time", json!("2026-05-06T16:00:03Z")));
    check(&with("sequence", json!(-1)));
    check(&with("sequence", json!(true)));
    check(&with("more", json!(1)));
    check("[]");
    check("{");
    check(&checkpoint_text("0.0.1", 48, &"0".repeat(64)));
    check(&checkpoint_text(TOPIC, 49, &"0".repeat(64)));
    check(&checkpoint_text(TOPIC, 30, &"0".repeat(64)));
    check(&checkpoint_text(TOPIC, 0, &"0".repeat(64)));
    assert_eq!((well.agree(), bad.agree()), (3, 0));
}
