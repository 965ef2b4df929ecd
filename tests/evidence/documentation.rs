//! The words around the flags are part of both contracts.

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../docs/evidence.md");

/// Words that say more than that something was seen.
fn word_of_trust(text: &str) -> Option<&str> {
    let words = text.split(|character: char| !character.is_alphanumeric() && character != '_');
    words.into_iter().find(|word| {
        ["verified", "valid", "trusted", "successful", "successfully"].contains(&word.to_lowercase().as_str())
    })
}

/// The flags by the names that mean nothing else.
const FLAGS: [&str; 9] = [
    "`visible`",
    "handoff.visible",
    "\"visible\"",
    "task_ref_visible",
    "message_ref_visible",
    "agent_card_visible",
    "agent_card_source_kind",
    "extended_card_access_visible",
    "signature_material_visible",
];

/// A line that names a flag and stands within a line of a word of trust.
fn misnamed(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().enumerate().find_map(|(at, line)| {
        FLAGS.iter().any(|flag| line.contains(flag)).then_some(())?;
        let around = lines.get(at.saturating_sub(1)..(at + 2).min(lines.len()))?.join("\n");
        word_of_trust(&around).map(|word| format!("line {}: `{word}`", at + 1))
    })
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn nowhere_is_a_flag_called_verified_valid_trusted_or_successful() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for directory in ["src", "docs", "agents"] {
        files(&root.join(directory), &mut found);
    }
    for page in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"] {
        found.push(root.join(page));
    }
    let mut named = 0;
    for file in found {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        named += usize::from(FLAGS.iter().any(|flag| text.contains(flag)));
        assert_eq!(misnamed(&text), None, "{}", file.display());
    }
    assert!(named >= 5, "only {named} files name a flag");
}

/// The search finds what it is for, and nothing else.
#[test]
fn a_flag_near_a_word_of_trust_is_found() {
    for text in [
        "`visible` means that the handoff was verified",
        "a Valid handoff\nhas task_ref_visible",
        "message_ref_visible\nsays that it was successful",
        "{\"visible\": true, \"trusted\": true}",
    ] {
        assert!(misnamed(text).is_some(), "{text}");
    }
    for text in ["is_valid(task_ref_visible)", "task_ref_visible\n\nA valid envelope", "visible and valid"] {
        assert_eq!(misnamed(text), None, "{text}");
    }
}

#[test]
fn the_page_never_calls_a_flag_verified_valid_trusted_or_successful() {
    assert_eq!(word_of_trust(PAGE), None);
}

#[test]
fn the_page_speaks_of_every_field_and_of_the_reserved_kinds() {
    for field in [
        "`visible`",
        "`source_kind`",
        "`task_ref_visible`",
        "`message_ref_visible`",
        "`agent_card_visible`",
        "`agent_card_source_kind`",
        "`extended_card_access_visible`",
        "`signature_material_visible`",
    ] {
        assert!(PAGE.contains(field), "{field}");
    }
    assert!(PAGE.contains("`typed_payload` and `unmapped` are reserved"));
}
