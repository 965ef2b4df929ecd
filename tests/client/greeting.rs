//! What `serve` says at a terminal, done.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::support::{Workspace, stdout};

/// The admin token was rotated as docs/operations.md says: the one in the file counts no longer.
#[test]
fn what_a_terminal_is_told_to_try_works_after_the_admin_token_was_rotated() {
    let mut workspace = Workspace::served();
    let made = workspace.run(&["token", "new", "--name", "root", "--role", "admin"]);
    let token = stdout(&made).trim().to_owned();
    assert_eq!(workspace.exit(&["token", "revoke", "admin"]), 0);
    workspace.stop();
    // `script` gives it a terminal.
    let mut terminal = Command::new("script")
        .args(["-qfc", "exec \"$DAEMON\" serve --listen 127.0.0.1:0", "/dev/null"])
        .current_dir(workspace.path())
        .env("DAEMON", env!("CARGO_BIN_EXE_handoffd"))
        .env("NO_COLOR", "1")
        .env_remove("HANDOFFD_WORKSPACE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(terminal.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut told = String::new();
    for line in lines.by_ref() {
        told = told + line.trim_end() + "\n";
        if line.contains("Stop with Ctrl-C") {
            break;
        }
    }
    assert!(told.contains("memory/admin.token holds one that counts no longer"), "{told}");
    let curl = told.split("\n\n").find(|part| part.trim_start().starts_with("curl -s")).unwrap();
    assert!(curl.contains("Bearer $HANDOFFD_TOKEN") && !curl.contains("admin.token"), "{curl}");
    let mut asked = Command::new("sh");
    asked.args(["-c", curl]).current_dir(workspace.path()).env("HANDOFFD_TOKEN", token);
    let answer = stdout(&asked.output().unwrap());
    terminal.stdin.take().unwrap().write_all(b"\x03").unwrap();
    lines.for_each(drop);
    terminal.wait().unwrap();
    assert!(answer.contains("\"decision\""), "{curl}\n{answer}");
}
