//! The settings as an operator meets them: the page, the binary, files and variables.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

#[expect(clippy::disallowed_methods, reason = "a test lays out files")]
fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

/// Runs `serve --print-config` and more arguments in a directory that has this file and these variables.
fn print_config(file: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("handoffd.toml"), file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HANDOFFD_")) {
        command.env_remove(name);
    }
    command.current_dir(directory.path()).args(["serve", "--print-config"]).args(arguments);
    command.envs(variables.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_page_of_settings_is_made_from_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    let expected = handoffd::settings::settings_markdown();
    if std::env::var_os("UPDATE").is_some() {
        write(&path, &expected);
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/settings.md is old; run: UPDATE=1 cargo test --test settings");
}

#[test]
fn the_file_the_environment_and_the_flags_reach_the_daemon_in_that_order() {
    let file = "[server]\nlisten = '127.0.0.1:1'\nconnections_max = 7\n[log]\nlevel = 'warn'\n";
    let variables = [("HANDOFFD_SERVER_LISTEN", "127.0.0.1:2"), ("HANDOFFD_LOG_LEVEL", "error")];
    let output = print_config(file, &variables, &["--listen", "127.0.0.1:3", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = |key: &str| format!("{} {}", shown[key]["value"], shown[key]["source"]);
    assert_eq!(found("server.listen"), r#""127.0.0.1:3" "--listen""#);
    assert_eq!(found("log.level"), r#""error" "HANDOFFD_LOG_LEVEL""#);
    assert_eq!(found("server.connections_max"), r#"7 "handoffd.toml, line 3""#);
    assert_eq!(found("server.request_burst"), r#"100 "default""#);
}

#[test]
fn what_is_wrong_in_all_three_places_is_one_answer_and_exit_2() {
    let output = print_config(
        "[server]\nlisten = 5\n",
        &[("HANDOFFD_LOG_FORMAT", "xml"), ("HANDOFFD_TOKEN", "t"), ("HANDOFFD_WORKSPACE", ".")],
        &["--log-level", "loud"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = text(&output.stderr);
    for place in ["handoffd.toml, line 2: server.listen: ", "HANDOFFD_LOG_FORMAT: ", "--log-level: "] {
        assert!(said.contains(place), "{said}");
    }
    assert_eq!(said.lines().count(), 4, "{said}");
}

#[test]
fn a_secret_is_not_printed_and_its_place_is_warned_about() {
    let file = "[otlp]\nheaders = ['authorization=hunter2']\n";
    let ledger = "postgres://handoffd:hunter3@db/ledger";
    for arguments in [&["--ledger", ledger][..], &["--ledger", ledger, "--json"]] {
        let output = print_config(file, &[], arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(!said.contains("hunter"), "{said}");
        assert!(said.contains("authorization=[secret]"), "{said}");
        assert!(said.contains("postgres://handoffd:[secret]@db/ledger"), "{said}");
        assert!(said.contains("use HANDOFFD_LEDGER_URL"), "{said}");
        assert!(said.contains("chmod 600"), "{said}");
    }
    let quiet = print_config("[otlp]\nheaders = []\n[ledger]\nurl = 'segments'\n", &[], &[]);
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
}
