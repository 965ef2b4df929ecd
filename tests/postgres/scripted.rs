//! The script that people play with.

use std::process::Command;

#[test]
fn the_script_starts_replicas_that_agree_and_leaves_nothing_behind() {
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/cluster"))
        .arg("--check")
        .env("HANDOFFD", env!("CARGO_BIN_EXE_handoffd"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("all replicas agree"), "{output:?}");
    let scratch = said.split("--workspace ").nth(1).unwrap().split("/replica").next().unwrap();
    assert!(!std::path::Path::new(scratch).exists(), "{scratch}");
}
