//! The pages that name tests name tests that there are.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use handoffd::callers::Role;
use handoffd::gates::Gate;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names of all test functions below a directory.
fn tests_below(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            for after in text.split("#[test]\n").skip(1) {
                let name = after.trim_start().strip_prefix("fn ").and_then(|rest| rest.split('(').next());
                found.extend(name.map(str::to_owned));
            }
        }
    }
}

fn all_tests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for directory in ["src", "tests"] {
        tests_below(&root().join(directory), &mut found);
    }
    assert!(found.len() > 500, "{}", found.len());
    found
}

/// What stands in backticks.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_incident_is_shown_by_a_test_that_there_is() {
    let tests = all_tests();
    let page = fs::read_to_string(root().join("docs/incidents.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    assert_eq!(rows.len(), 19);
    for row in rows {
        let shown_by = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        assert!(named(shown_by).count() >= 1, "{row}");
        for name in named(shown_by) {
            assert!(tests.contains(name), "docs/incidents.md names `{name}`, which is no test");
        }
    }
}

#[test]
fn the_threat_model_has_the_whole_list_and_names_a_test_that_there_is() {
    let page = fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    for n in 1..=10 {
        assert_eq!(page.matches(&format!("| ASI{n:02} ")).count(), 1, "ASI{n:02}");
    }
    let tests = all_tests();
    assert!(named(&page).any(|name| tests.contains(name)));
    for role in Role::ALL {
        let row = format!("\n| {role}");
        assert!(page.contains(&row), "{role} has no row");
    }
    for gate in Gate::ALL {
        assert!(page.contains(&format!("\n| {}", gate.id())), "{} has no row", gate.id());
    }
    for gate in ["G0 ", "G1 ", "G2 ", "G3 ", "G4 "] {
        assert!(page.contains(&format!("\n| {gate}")), "{gate}has no row");
    }
}
