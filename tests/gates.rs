//! The gates, over the files of `tests/cases/`: a new case needs no code.
//!
//! UPDATE=1 writes what is made from the same list: `docs/codes.md`, the TaskSpecs in
//! `docs/examples/refused/` and the reasons in `tests/golden/refusals/`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use handoffd::cases::{Case, CaseResult, Suite};
use handoffd::gates::{Code, Gate, codes_markdown};
use handoffd::policy::{PolicySet, Workspace};
use serde_json::Value as Json;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    fs::read(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

fn policies() -> PolicySet {
    Workspace::new(root()).load_policies().unwrap()
}

/// Runs every case of every file, in order.
fn for_each_case(mut f: impl FnMut(&str, &Case, CaseResult)) {
    let policies = policies();
    for directory in ["tests/cases", "policies/tests"] {
        let mut files: Vec<PathBuf> =
            fs::read_dir(root().join(directory)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let suite =
                Suite::parse(&fs::read(&file).unwrap(), &read).unwrap_or_else(|why| panic!("{name}: {why}"));
            for case in &suite.file.cases {
                let result = suite
                    .run(case, &policies, &read)
                    .unwrap_or_else(|why| panic!("{name}: {}: {why}", case.name));
                f(&name, case, result);
            }
        }
    }
}

#[test]
fn every_case_is_decided_as_it_says() {
    let mut wrong = Vec::new();
    for_each_case(|file, case, result| {
        if case.expect != result.found {
            wrong.push(format!(
                "{file}: {}\n  expected {:?}\n  found {:?}\n  {:?}",
                case.name, case.expect, result.found, result.reasons
            ));
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Codes that need the ledger or a caller's bytes: shown elsewhere.
fn is_pure(code: Code) -> bool {
    !matches!(
        code,
        Code::BodyInvalid
            | Code::RouteBlocked
            | Code::ApprovalRejected
            | Code::ApprovalExpired
            | Code::AuthorizationUnknown
            | Code::AuthorizationExpired
            | Code::AuthorizationRevoked
            | Code::AuthorizationSpent
            | Code::AuthorizationScope
            | Code::MentionDuplicate
            | Code::MentionPhase
    ) && Gate::PURE.contains(&code.gate())
}

/// For each code the case that shows it best: alone if there is one, otherwise with what comes along.
fn shown() -> BTreeMap<&'static str, CaseResult> {
    let mut shown: BTreeMap<&'static str, CaseResult> = BTreeMap::new();
    for_each_case(|_, _, result| {
        for code in
            Code::ALL.iter().map(|code| code.as_str()).filter(|code| result.found.codes.contains(*code))
        {
            let better = shown.get(code).is_none_or(|best| best.found.codes.len() > result.found.codes.len());
            if better {
                shown.insert(
                    code,
                    CaseResult {
                        found: result.found.clone(),
                        reasons: result.reasons.clone(),
                        spec: result.spec.clone(),
                    },
                );
            }
        }
    });
    shown
}

#[test]
fn every_gate_and_every_code_that_needs_no_ledger_is_shown_by_a_case() {
    let shown: BTreeSet<&str> = shown().into_keys().collect();
    let pure: BTreeSet<&str> =
        Code::ALL.iter().filter(|code| is_pure(**code)).map(|code| code.as_str()).collect();
    assert_eq!(shown, pure);
}

/// Compares a file with what it is made from, or writes it if UPDATE is set.
fn holds(path: &str, expected: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test that writes what it checks")]
        fs::write(&file, expected).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "{path} is not what it is made from; run: UPDATE=1 cargo test --test gates");
}

/// No file more and none less than there are names.
fn holds_only(directory: &str, names: &BTreeSet<String>) {
    let found: BTreeSet<String> = fs::read_dir(root().join(directory))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(&found, names, "{directory}");
}

#[test]
fn every_code_has_a_task_spec_that_shows_it_and_golden_reasons() {
    let shown = shown();
    let pretty = |value: &Json| serde_json::to_string_pretty(value).unwrap() + "\n";
    let mut names: BTreeSet<String> = BTreeSet::new();
    for (code, result) in &shown {
        holds(&format!("docs/examples/refused/{code}.json"), &pretty(&result.spec));
        let golden = serde_json::json!({"decision": result.found.decision, "reasons": result.reasons});
        holds(&format!("tests/golden/refusals/{code}.json"), &pretty(&golden));
        names.insert(format!("{code}.json"));
    }
    holds_only("tests/golden/refusals", &names);
    names.insert("A2A_BODY_INVALID.json".to_owned());
    holds_only("docs/examples/refused", &names);
}

#[test]
fn the_page_of_codes_is_made_from_the_list() {
    let examples = |code: Code| is_pure(code) || code == Code::BodyInvalid;
    holds("docs/codes.md", &codes_markdown(examples));
}

#[test]
fn every_path_of_the_checklist_resolves() {
    let text =
        fs::read_to_string(root().join("docs/checklists/crypto-sage-orchestrator-checklist.md")).unwrap();
    let mut paths = 0;
    for word in text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.contains('/') && !word.contains([' ', ':', '<']))
    {
        // The daemon writes it; there is none before its first start.
        if word != "memory/orchestration-state.json" {
            assert!(root().join(word).is_file(), "{word}");
            paths += 1;
        }
    }
    assert!(paths >= 10, "the checklist names {paths} paths");
}

#[test]
fn the_protocol_page_lists_the_operations_of_the_schema() {
    let schema: Json = serde_json::from_slice(
        &read("agents/blockchain-operator/config/execution-plane.schema.v1.json").unwrap(),
    )
    .unwrap();
    let operations: BTreeSet<&str> = schema["properties"]["operation"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let page = String::from_utf8(read("agents/blockchain-operator/docs/a2a-protocol.md").unwrap()).unwrap();
    let table = page.split("\n## Operations").nth(1).unwrap().split("\n## ").next().unwrap();
    let listed: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name))
        .collect();
    assert_eq!(listed, operations);
}
