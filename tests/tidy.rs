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

/// Every file of tests and benchmarks, and those of `src/` as they are.
fn for_each_file(mut f: impl FnMut(&str, &str)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for directory in ["src", "tests", "benches"] {
        sources(&root.join(directory), &mut files);
    }
    for file in files {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        f(&name, &fs::read_to_string(&file).unwrap());
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
        if name.ends_with("tests.rs") || name.contains("/tests/") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        f(&name, text.split("#[cfg(test)]\nmod tests {").next().unwrap());
    }
}

/// The rooms in layers: a room may name rooms of the layers before its own, and its own parts.
///
/// `policy/load.rs` and `ledger` also name `os`, which is every hand's.
const LAYERS: [&[&str]; 14] = [
    &["json", "timestamp"],
    &["limits"],
    &["proof"],
    &["contract", "evidence"],
    &["wire"],
    &["policy", "ledger", "sealing"],
    &["authorization", "freeze", "mentions", "promotion", "proposal"],
    &["dispatch"],
    &["callers", "gates", "settings", "state", "views", "web"],
    &["cases", "engine"],
    &["answer"],
    &["a2a"],
    &["ai", "push"],
    &["gateway", "http", "console", "cli"],
];

/// Where a room stands; `os` is beside the layers, and `main` and `lib` above them.
fn layer(room: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&room))
}

#[test]
fn dependencies_between_rooms_point_one_way() {
    for_each_source(|name, text| {
        let room = name.split(['/', '.']).next().unwrap();
        let Some(own) = layer(room) else {
            assert!(matches!(room, "os" | "main" | "lib"), "{room} is a room without a layer");
            return;
        };
        for path in text.split("crate::").skip(1) {
            let other = path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
            match layer(other) {
                Some(its) if other != room => assert!(its < own || is_door(room), "{name} names {other}"),
                None if other == "os" => assert!(is_hand(name), "{name} names os"),
                _ => {}
            }
        }
    });
}

/// Doors know everybody.
fn is_door(room: &str) -> bool {
    matches!(room, "cli" | "console" | "gateway" | "http")
}

/// The only code that touches the world.
fn is_hand(name: &str) -> bool {
    const HANDS: &[&str] = &[
        "ai.rs",
        "callers/file.rs",
        "policy/load.rs",
        "settings/load.rs",
        "ledger/bodies.rs",
        "ledger/copy.rs",
        "ledger/disk.rs",
        "ledger/entries.rs",
        "ledger/purge.rs",
        "ledger/recorded.rs",
        "ledger/recovery.rs",
        "ledger/search.rs",
        "ledger/segments.rs",
        "ledger/segments/rereading.rs",
        "ledger/segments/opening.rs",
        "ledger/stirring.rs",
        "ledger/tail.rs",
        "ledger/verify/directory.rs",
        "push/courier.rs",
        "push/shared_book.rs",
        "push/shelf.rs",
        "state/publish.rs",
        "state/follow.rs",
        "engine/mod.rs",
        "engine/threads.rs",
    ];
    HANDS.contains(&name)
        || [
            "a2a/client/",
            "os/",
            "cli/",
            "console/",
            "gateway/",
            "http/",
            "views/",
            "web/",
            "ledger/postgres/",
        ]
        .iter()
        .any(|room| name.starts_with(room))
        || name == "main.rs"
}

/// What follows the ledger takes no part in deciding, and nobody else opens its file.
#[test]
fn the_views_know_the_ledger_and_nobody_who_decides() {
    let known = ["views", "ledger", "wire", "limits", "timestamp", "json", "proof"];
    for_each_source(|name, text| {
        if name.starts_with("views/") {
            for path in text.split("crate::").skip(1) {
                let other = path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
                assert!(known.contains(&other), "{name} names {other}");
            }
        } else {
            assert!(!text.contains("rusqlite"), "{name} names rusqlite");
        }
    });
}

/// One room speaks to a database server, and what it promises is promised there.
#[test]
fn only_the_replicated_log_knows_a_database_server() {
    for_each_source(|name, text| {
        assert!(
            name.starts_with("ledger/postgres/") || !text.contains("tokio_postgres"),
            "{name} names tokio_postgres"
        );
    });
}

/// A mistake that the ledger's writer and its verifier shared would be a mistake nobody finds.
#[test]
fn the_verifier_shares_nothing_with_the_writer() {
    for_each_source(|name, text| {
        if name.starts_with("ledger/verify") {
            let foreign =
                ["crate::", "super::super::super::", "super::segments", "super::batch", "super::line::write"];
            let named: Vec<_> = foreign.iter().filter(|word| text.contains(**word)).collect();
            assert!(named.is_empty(), "{name} names {named:?}");
        }
    });
}

#[test]
fn the_core_has_no_files_clock_randomness_or_output() {
    for_each_source(|name, text| {
        if !is_hand(name) {
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
    for_each_file(|name, text| {
        assert!(text.starts_with("//!"), "{name} does not say what it is");
        let lines = text.lines().count();
        assert!(lines <= 600, "{name} has {lines} lines: one subject each?");
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

/// Where a test may sleep, how often, and why.
const SLEEPS: [(&str, usize, &str); 8] = [
    ("src/gateway/sink/tests.rs", 1, "asks again until something is so"),
    ("tests/api/harness.rs", 1, "asks again until there is an answer"),
    ("tests/api/hostile.rs", 1, "how slow its clients are is what it is about"),
    ("tests/client/demo.rs", 1, "asks again until the demo is under way"),
    ("tests/client/support.rs", 1, "asks again until the daemon answers"),
    ("tests/operations/daemon.rs", 1, "asks again until something is so"),
    ("tests/postgres/cluster.rs", 1, "asks again until something holds"),
    ("tests/push/stage.rs", 1, "asks again until there is an answer"),
];

/// A test waits for the thing itself. How long something takes is for the machine to say.
#[test]
fn tests_do_not_sleep() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("tests"), &mut files);
    sources(&root.join("src"), &mut files);
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let is_test = name.starts_with("tests/") || name.ends_with("tests.rs") || name.contains("/tests/");
        let tests = if is_test {
            text.as_str()
        } else {
            text.split_once("#[cfg(test)]\nmod tests {").map_or("", |(_, tests)| tests)
        };
        // In two pieces, or this file would be one that sleeps.
        let calls = ["thread", "time"].map(|of| tests.matches(&format!("{of}::sleep(")).count());
        if calls != [0, 0] {
            found.push((name, calls.iter().sum::<usize>()));
        }
    }
    found.sort();
    let allowed: Vec<(String, usize)> =
        SLEEPS.iter().map(|(name, times, _)| ((*name).to_owned(), *times)).collect();
    assert_eq!(found, allowed, "wait for the thing itself; if time is the subject, say so in the list");
}

/// Every page of the repository, by its path, with its text outside of code blocks.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directories = ["", "docs", "docs/checklists", "docs/decisions", "docs/examples", "benches/peers"];
    let entries = directories.iter().flat_map(|directory| fs::read_dir(root.join(directory)).unwrap());
    let files = entries.map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let outside = |text: &str| text.split("```").step_by(2).collect::<Vec<_>>().concat();
    files.map(|path| (path.clone(), outside(&fs::read_to_string(&path).unwrap()))).collect()
}

/// Where the links of a page lead: what stands behind `](`, but for addresses elsewhere.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let all = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    all.filter(|link| !link.contains("://"))
}

/// The anchor that a heading gets where pages are shown.
fn anchor(heading: &str) -> String {
    let letters = heading.trim().to_lowercase();
    letters
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .collect::<String>()
        .replace(' ', "-")
}

#[test]
fn every_link_in_a_page_leads_somewhere() {
    let pages = pages();
    assert!(pages.len() > 50, "{}", pages.len());
    for (path, text) in &pages {
        for link in links(text) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{} links to {link}", path.display());
            if !place.is_empty() {
                let target = fs::read_to_string(&target).unwrap();
                let headings = target.lines().filter(|line| line.starts_with('#'));
                let found = headings.map(|line| anchor(line.trim_start_matches('#'))).any(|one| one == place);
                assert!(found, "{} links to {link}", path.display());
            }
        }
    }
}

#[test]
fn every_page_is_in_its_index() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for directory in ["docs", "docs/decisions"] {
        let index = fs::read_to_string(root.join(directory).join("README.md")).unwrap();
        let listed: Vec<&str> = links(&index).collect();
        for (path, _) in pages() {
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_its = path.parent() == Some(&root.join(directory)) && name != "README.md";
            assert!(!is_its || listed.contains(&name), "{directory}/README.md does not list {name}");
        }
    }
}

/// A file that the Dockerfile copies and `.dockerignore` hides ends the build.
#[test]
fn the_image_is_built_from_what_docker_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let shown = read(".dockerignore");
    let shown: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let dockerfile = read("Dockerfile");
    let copied = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY "));
    let copied = copied.filter(|line| !line.starts_with("--from"));
    // The last word of a line is where the others go.
    let names = copied.filter_map(|line| line.rsplit_once(' ')).flat_map(|(names, _)| names.split(' '));
    let names: Vec<&str> = names.collect();
    assert!(names.contains(&"Cargo.toml"), "{names:?}");
    for name in names {
        assert!(shown.contains(&name) && root.join(name).exists(), "`{name}` is copied into the image");
    }
}
