//! The house rules that a compiler does not check.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Each file of `src/` with its path below it and its text without tests.
fn for_each_source(mut f: impl FnMut(&str, &str)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 30);
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        if name.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        f(&name, text.split("#[cfg(test)]\nmod tests {").next().unwrap());
    }
}

/// What each room may not name: dependencies point one way.
const ARROWS: [(&str, &[&str]); 9] = [
    (
        "json/",
        &[
            "contract", "policy", "gates", "dispatch", "cli", "os", "evidence", "proof", "answer", "cases",
            "sealing",
        ],
    ),
    (
        "timestamp.rs",
        &[
            "contract", "policy", "gates", "dispatch", "cli", "os", "evidence", "proof", "answer", "cases",
            "sealing", "json",
        ],
    ),
    (
        "proof/",
        &["contract", "policy", "gates", "dispatch", "cli", "os", "evidence", "answer", "cases", "sealing"],
    ),
    ("contract/", &["policy", "gates", "dispatch", "cli", "os", "evidence", "answer", "cases", "sealing"]),
    ("dispatch/", &["policy", "gates", "cli", "os", "evidence", "answer", "cases", "sealing"]),
    ("policy/", &["gates", "dispatch", "cli", "evidence", "answer", "cases", "sealing"]),
    ("gates/", &["cli", "os", "evidence", "answer", "cases", "sealing"]),
    ("evidence/", &["contract", "policy", "gates", "dispatch", "cli", "os", "answer", "cases", "sealing"]),
    (
        "os/",
        &[
            "contract", "policy", "gates", "dispatch", "cli", "evidence", "proof", "answer", "cases",
            "sealing",
        ],
    ),
];

#[test]
fn dependencies_between_rooms_point_one_way() {
    for_each_source(|name, text| {
        for (room, forbidden) in ARROWS {
            if !name.starts_with(room) {
                continue;
            }
            for other in forbidden {
                // The one hand in that room: it reads the workspace from disk.
                if name == "policy/load.rs" && *other == "os" {
                    continue;
                }
                let named = [format!("crate::{other}::"), format!("crate::{other};")];
                assert!(!named.iter().any(|path| text.contains(path)), "{name} names {other}");
            }
        }
    });
}

#[test]
fn the_core_has_no_files_clock_randomness_or_output() {
    for_each_source(|name, text| {
        let hands = name.starts_with("os/")
            || name.starts_with("cli/")
            || matches!(name, "policy/load.rs" | "main.rs");
        if !hands {
            for word in [
                "std::fs",
                "std::net",
                "std::env::var",
                "getrandom::",
                "now_utc",
                "SystemTime",
                "std::thread",
                "println!",
                "tracing::",
            ] {
                assert!(!text.contains(word), "{name} uses {word}");
            }
        }
    });
}

#[test]
fn every_source_file_opens_with_what_it_owns_and_stays_readable() {
    for_each_source(|name, text| {
        assert!(text.starts_with("//!"), "{name} does not say what it is");
        let lines = text.lines().count();
        // The list of codes is one table.
        assert!(lines <= 600 || name == "gates/codes.rs", "{name} has {lines} lines: one subject each?");
    });
}

#[test]
fn nothing_is_left_undone() {
    // Written apart, so that this file does not find itself.
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
        concat!("un", "implemented!"),
        concat!("to", "do!("),
    ];
    for_each_source(|name, text| {
        for word in words {
            assert!(!text.contains(word), "{name} has {word}");
        }
    });
}
