//! `doctor` as a user meets it. Each check has its own test beside it.

use crate::support::{Workspace, stderr, stdout};

#[test]
fn a_workspace_that_is_served_has_nothing_that_fails() {
    let workspace = Workspace::served();
    let output = workspace.run(&["doctor"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("ok    daemon") && line.ends_with("is ready")),
        "{text}"
    );
    assert!(text.lines().any(|line| line.starts_with("warn  delegation")), "{text}");
}

#[test]
fn what_fails_is_the_exit_code_and_the_daemon_says_so_too() {
    let workspace = Workspace::served();
    workspace.write("policies/routes.json", "{");
    // The gateway goes by the set before it, and says so when it has tried this one.
    assert_eq!(workspace.reload(), 409);
    let found = workspace.json(&["--json", "doctor"]);
    assert_eq!(found["ok"], false);
    let of = |check: &str| {
        let mut all = found["checks"].as_array().unwrap().iter().filter(|row| row["check"] == check);
        all.next().unwrap()["level"].as_str().unwrap().to_owned()
    };
    assert_eq!((of("policies"), of("daemon")), ("fail".to_owned(), "warn".to_owned()), "{found:#}");
    assert_eq!(workspace.exit(&["doctor"]), 1);
}

/// What `doctor` says to do, done.
#[test]
fn a_running_gateway_signs_a_checkpoint_and_without_one_there_is_the_last() {
    let mut workspace = Workspace::served();
    let checkpoint = ["audit", "checkpoint"];
    std::fs::remove_file(workspace.path().join("memory/checkpoint")).unwrap();
    let found = workspace.json(&["--json", "doctor"]);
    let row = found["checks"].as_array().unwrap().iter().find(|row| row["check"] == "checkpoint").unwrap();
    assert!(row["fix"].as_str().unwrap().contains("handoffd audit checkpoint"), "{row}");
    let head =
        || workspace.json(&["--json", "audit", "list", "--limit", "1"])["entries"][0]["sequence"].clone();
    for n in 1..=2 {
        let spec = workspace.spec(n, |_| {});
        workspace.write("memory/spec.json", spec);
        assert_eq!(workspace.exit(&["submit", "memory/spec.json"]), 0);
        let signed = workspace.json(&checkpoint);
        assert_eq!(signed["sequence"], head());
        workspace.write("memory/kept.json", signed.to_string());
        assert_eq!(workspace.exit(&["audit", "verify", "--checkpoint", "memory/kept.json"]), 0);
    }
    assert!(!workspace.path().join("memory/checkpoint").exists(), "it is for whoever asked");
    let last = head();
    workspace.stop();
    assert_eq!(workspace.json(&checkpoint)["sequence"], last);
    std::fs::remove_file(workspace.path().join("memory/checkpoint")).unwrap();
    let none = workspace.run(&checkpoint);
    assert_eq!(none.status.code(), Some(2));
    let said = stderr(&none);
    assert!(said.contains("there is no checkpoint yet") && said.contains("handoffd serve"), "{said}");
}

#[test]
fn a_ledger_that_is_gone_fails_as_the_next_start_does() {
    let mut workspace = Workspace::served();
    workspace.write("memory/spec.json", workspace.spec(1, |_| {}));
    assert_eq!(workspace.exit(&["submit", "memory/spec.json"]), 0);
    workspace.stop();
    assert_eq!(workspace.exit(&["doctor"]), 0);
    std::fs::remove_dir_all(workspace.path().join("memory/ledger")).unwrap();
    let output = workspace.run(&["doctor"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let row = text.lines().find(|line| line.starts_with("fail  ledger")).unwrap();
    assert!(row.contains("memory/checkpoint has seen"), "{row}");
    assert!(!text.contains("no entries yet"), "{text}");
    assert_eq!(workspace.exit(&["serve", "--listen", "127.0.0.1:0"]), 3);
}

#[test]
fn rules_that_anybody_may_write_fail_and_what_init_makes_is_good_whatever_the_umask() {
    let directory = tempfile::tempdir().unwrap();
    let shell = |line: &str| {
        let mut shell = std::process::Command::new("sh");
        shell
            .current_dir(directory.path())
            .args(["-c", line])
            .env("HANDOFFD", env!("CARGO_BIN_EXE_handoffd"));
        let output = shell.env_remove("HANDOFFD_WORKSPACE").env("NO_COLOR", "1").output().unwrap();
        (output.status.code(), stdout(&output))
    };
    let (_, made) = shell("umask 000; $HANDOFFD init && $HANDOFFD doctor");
    assert!(!made.contains("fail  permissions"), "{made}");
    let (exit, found) = shell(
        "touch handoffd.toml; chmod 666 policies/routes.json handoffd.toml; chmod 777 policies .; $HANDOFFD doctor",
    );
    let rows: Vec<&str> = found.lines().filter(|line| line.starts_with("fail  permissions")).collect();
    assert_eq!((exit, rows.len()), (Some(1), 2), "{found}");
    assert!(
        found.contains("chmod o-w .") && found.contains("chmod go-w ./handoffd.toml ./policies"),
        "{found}"
    );
}
