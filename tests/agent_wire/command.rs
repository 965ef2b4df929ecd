//! `handoffd wire validate` and `handoffd wire reduce`, as users meet them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use handoffd::wire::Contracts;
use serde_json::{Value as Json, json};

use super::support::{Stage, fixtures, root};

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    #[expect(clippy::disallowed_methods, reason = "a test lays out files")]
    fn write(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn wire(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_handoffd"))
        .current_dir(root())
        .arg("wire")
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn exit_and_json(arguments: &[&str]) -> (i32, Json) {
    let output = wire(&[arguments, &["--json"]].concat());
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().unwrap(), value)
}

fn fixture(name: &str) -> String {
    format!("tests/fixtures/agent-wire/v1.1/{name}.json")
}

/// A task that was done, as events.
fn happy() -> Vec<Json> {
    let fixtures = fixtures();
    let mut stage = Stage::new(Contracts::embedded(), &fixtures);
    let steps =
        ["task.created", "task.available", "task.claimed", "task.started", "artifact.ready", "task.complete"];
    steps
        .iter()
        .map(|step| {
            let event = stage.event(&json!(step));
            stage.take(&event);
            event
        })
        .collect()
}

#[test]
fn validate_says_which_schema_which_rule_and_where() {
    let valid = wire(&["validate", &fixture("task-started.valid"), &fixture("gate-decided.valid")]);
    assert_eq!(valid.status.code(), Some(0));
    assert_eq!(String::from_utf8(valid.stdout).unwrap().lines().count(), 2);

    let file = fixture("task-complete.invalid-verification-fail");
    let invalid = wire(&["validate", &file]);
    assert_eq!(invalid.status.code(), Some(1));
    let expected = format!(
        "\
invalid  {file}:1
  WIRE_INVALID at /payload/verification/mechanical
    `mechanical` must be `pass`, not `fail`
    hint: must be `pass`: work that failed its checks is reported with task.failed
    rule: task-complete.schema.json#/properties/payload/properties/verification/properties/mechanical/const
"
    );
    assert_eq!(String::from_utf8(invalid.stdout).unwrap(), expected);

    let (exit, rows) = exit_and_json(&["validate", &file, &fixture("task-started.valid")]);
    assert_eq!(exit, 1);
    assert_eq!((&rows[0]["valid"], &rows[1]["valid"]), (&json!(false), &json!(true)));
    assert_eq!(rows[0]["reasons"][0]["code"], "WIRE_INVALID");
    assert_eq!(rows[0]["reasons"][0]["path"], "/payload/verification/mechanical");
    assert_eq!((&rows[1]["type"], &rows[1]["reasons"]), (&json!("task.started"), &json!([])));
}

#[test]
fn reduce_reads_an_array_lines_and_an_export() {
    let directory = Directory::new();
    let events = happy();
    let array = serde_json::to_string_pretty(&events).unwrap();
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    let export: String = events
        .iter()
        .enumerate()
        .map(|(n, event)| {
            format!("{}\n", json!({"hcs": {"sequence_number": n + 1}, "wire": event.to_string()}))
        })
        .collect();
    for (name, text) in [("a.json", array), ("b.jsonl", lines), ("c.jsonl", export)] {
        let path = directory.write(name, &text);
        assert_eq!(wire(&["validate", &path]).status.code(), Some(0), "{name}");
        let (exit, state) = exit_and_json(&["reduce", &path]);
        assert_eq!(exit, 0, "{name}");
        let stream = &state["streams"]["task:hs_20260218_router_0001:attempt:1"];
        assert_eq!(stream["task_state"], "completed", "{name}");
        assert_eq!(stream["artifact_ids"], json!(["art_swap_report"]));
        assert_eq!(stream["verification"], json!({"mechanical": "pass"}));
        assert_eq!(
            (&state["rejected"], &state["contexts"]["corr_20260218_swap_cycle_9001"]["open"]),
            (&json!([]), &json!(0))
        );
        let told = String::from_utf8(wire(&["reduce", &path]).stdout).unwrap();
        let expected = "\
task:hs_20260218_router_0001:attempt:1
  task_state     completed
  terminal       true
  artifact_count 1
  artifact_ids   [\"art_swap_report\"]
  blocked        false
  verification   {\"mechanical\":\"pass\"}
";
        assert_eq!(told, expected, "{name}");
    }
}

#[test]
fn reduce_lists_what_was_refused_and_goes_on() {
    let directory = Directory::new();
    let mut events = happy();
    events.swap(3, 4);
    let path = directory.write("events.json", &Json::from(events).to_string());
    let (exit, state) = exit_and_json(&["reduce", &path]);
    assert_eq!(exit, 1);
    let codes: Vec<_> = state["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["event"].as_u64().unwrap(), row["reasons"][0]["code"].as_str().unwrap()))
        .collect();
    assert_eq!(codes, [(4, "WIRE_SEQUENCE"), (6, "WIRE_SEQUENCE")]);
    assert_eq!(state["streams"]["task:hs_20260218_router_0001:attempt:1"]["task_state"], "working");
}

#[test]
fn what_cannot_be_read_is_no_event() {
    let directory = Directory::new();
    for (name, text) in [
        ("empty", ""),
        ("broken", "{\"wire\": "),
        ("twice", "{\"wire\": \"1.1\", \"wire\": \"1.1\"}"),
        ("half", "{}\n{\"wire\": \n"),
        ("array", "[{}"),
    ] {
        let path = directory.write(name, text);
        for command in ["validate", "reduce"] {
            let output = wire(&[command, &path]);
            assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
            assert!(String::from_utf8(output.stderr).unwrap().contains(name));
        }
    }
    assert_eq!(wire(&["validate", "nowhere.json"]).status.code(), Some(2));
    // Readable, and no event: that is an answer.
    for text in ["{}", "5", "[5, null, {}]", "\"x\"\n"] {
        let path = directory.write("other", text);
        assert_eq!(wire(&["validate", &path]).status.code(), Some(1), "{text}");
        assert_eq!(wire(&["reduce", &path]).status.code(), Some(1), "{text}");
    }
}
