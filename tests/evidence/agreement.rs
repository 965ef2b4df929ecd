//! Agreement with the reference adapter, packet by packet.
//!
//! `tests/fixtures/evidence` holds packets (`corpus/<name>.json`, raw bytes) and the reference's answers
//! (`expected/<name>.<mode>.json`). A packet that is dropped there is compared; no code changes. Nine packets
//! are not ours to copy. They are read from beside the repository when they are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use handoffd::evidence::Mode;
use serde_json::Value;

use super::support::{BOTH_MODES, answer};

const BESIDE_THE_REPOSITORY: [&str; 9] = [
    "a2a_happy_agent_capabilities",
    "a2a_happy_agent_capabilities_g4_agent_card",
    "a2a_happy_agent_capabilities_g4_both_visible",
    "a2a_happy_agent_capabilities_g4_extended",
    "a2a_happy_artifact_shared",
    "a2a_happy_task_requested",
    "a2a_negative_invalid_event_type",
    "a2a_negative_malformed",
    "a2a_negative_missing_task_id",
];

#[test]
fn every_packet_of_the_fixtures_is_answered_as_the_reference_answers_it() {
    let home = fixtures();
    let names = packet_names(&home);
    assert!(!names.is_empty());
    names.iter().for_each(|name| compare_in_both_modes(&home, name));
}

#[test]
fn every_packet_beside_the_repository_is_answered_as_the_reference_answers_it() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/evidence");
    if !home.is_dir() {
        eprintln!("skipped, since `../shared/evidence` is not there: {}", BESIDE_THE_REPOSITORY.join(", "));
        return;
    }
    let names = packet_names(&home);
    for name in BESIDE_THE_REPOSITORY {
        assert!(names.contains(name), "`{name}` is gone from `../shared/evidence`");
    }
    names.iter().for_each(|name| compare_in_both_modes(&home, name));
}

#[test]
fn every_fixture_has_an_answer_for_each_mode_and_no_answer_is_spare() {
    let home = fixtures();
    let wanted: BTreeSet<String> = packet_names(&home)
        .iter()
        .flat_map(|name| BOTH_MODES.map(|mode| format!("{name}.{}", word(mode))))
        .collect();
    assert_eq!(stems(&home.join("expected")), wanted);
}

fn compare_in_both_modes(home: &Path, name: &str) {
    let packet = fs::read(home.join("corpus").join(format!("{name}.json"))).unwrap();
    for mode in BOTH_MODES {
        let file = home.join("expected").join(format!("{name}.{}.json", word(mode)));
        let expected: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        compare(&format!("{name}, {}", word(mode)), &answer(&packet, mode), &expected);
    }
}

fn compare(what: &str, ours: &Value, reference: &Value) {
    if reference.get("error").is_some() || ours.get("error").is_some() {
        assert_eq!(ours, reference, "{what}");
        return;
    }
    let (ours, reference) = (&ours["ok"], &reference["ok"]);
    let (our_event, reference_event) = (&ours["events"][0], &reference["events"][0]);
    assert_eq!(keys(ours), keys(reference), "{what}");
    assert_eq!(keys(our_event), keys(reference_event), "{what}");
    assert_eq!(keys(&our_event["data"]), keys(&reference_event["data"]), "{what}");
    assert_eq!(keys(&ours["digests"]), keys(&reference["digests"]), "{what}");

    for member in ["specversion", "type", "source", "id", "subject", "time", "datacontenttype", "assayrunid"]
    {
        assert_eq!(our_event[member], reference_event[member], "{what}: {member}");
    }
    assert_eq!(our_event["data"]["adapter_id"], "handoffd-adapter-a2a", "{what}");
    assert_eq!(our_event["data"]["adapter_version"], env!("CARGO_PKG_VERSION"), "{what}");
    let mut reference_data = reference_event["data"].clone();
    for member in ["adapter_id", "adapter_version"] {
        reference_data[member] = our_event["data"][member].clone();
    }
    assert_eq!(our_event["data"], reference_data, "{what}");
    assert_eq!(ours["lossiness"], reference["lossiness"], "{what}");
    for member in ["handoff_sha256", "discovery_sha256"] {
        assert_eq!(ours["digests"][member], reference["digests"][member], "{what}: {member}");
    }
}

/// In the order in which they are written.
fn keys(object: &Value) -> Vec<&String> {
    object.as_object().unwrap().keys().collect()
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/evidence")
}

fn packet_names(home: &Path) -> BTreeSet<String> {
    stems(&home.join("corpus"))
}

fn stems(directory: &Path) -> BTreeSet<String> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Strict => "strict",
        Mode::Lenient => "lenient",
    }
}
