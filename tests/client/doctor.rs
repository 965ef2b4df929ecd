//! `doctor` as a user meets it. Each check has its own test beside it.

use crate::support::{Workspace, stdout};

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
    assert_eq!(workspace.exit(&["key", "add", "--owner", "user:main", "--id", "k-1"]), 3);
    let found = workspace.json(&["--json", "doctor"]);
    assert_eq!(found["ok"], false);
    let of = |check: &str| {
        let mut all = found["checks"].as_array().unwrap().iter().filter(|row| row["check"] == check);
        all.next().unwrap()["level"].as_str().unwrap().to_owned()
    };
    assert_eq!((of("policies"), of("daemon")), ("fail".to_owned(), "warn".to_owned()), "{found:#}");
    assert_eq!(workspace.exit(&["doctor"]), 1);
}
