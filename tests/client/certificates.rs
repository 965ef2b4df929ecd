//! Certificates that a command is to show, and that nobody could show.

use std::process::Command;

use crate::support::{Workspace, stderr};

fn shell(workspace: &Workspace, line: &str) {
    let made = Command::new("sh").current_dir(workspace.path()).args(["-ec", line]).output().unwrap();
    assert!(made.status.success(), "{line}: {made:?}");
}

/// A pair of X.509 v3, another key, one of v1 with its key, and what only looks like a certificate.
fn with_certificates() -> Workspace {
    let workspace = Workspace::new();
    let new = "openssl req -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=caller";
    shell(&workspace, &format!("{new} -x509 -days 2 -keyout good.key -out good.pem"));
    shell(&workspace, &format!("{new} -x509 -days 2 -keyout other.key -out other.pem"));
    shell(&workspace, &format!("{new} -keyout old.key -out old.csr"));
    shell(&workspace, "openssl x509 -req -in old.csr -signkey old.key -days 2 -out old.pem");
    shell(&workspace, "chmod 600 *.key");
    workspace
        .write("junk.pem", "-----BEGIN CERTIFICATE-----\nbm8gY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n");
    workspace
}

/// Nobody listens where it leads, so whoever gets that far says so.
#[test]
fn a_pair_that_cannot_be_shown_is_told_with_both_files_and_nothing_falls_over() {
    let workspace = with_certificates();
    let said = |cert: &str, key: &str, command: &[&str]| {
        let mut command = workspace.command(command);
        command.args(["--url", "https://127.0.0.1:1", "--cert", cert, "--key", key]);
        let output = command.env("HANDOFFD_TOKEN", "hd_adm_x").output().unwrap();
        (output.status.code(), stderr(&output))
    };
    for (cert, key, why) in [
        ("old.pem", "old.key", "X.509 v1, which TLS does not take; make a v3 one"),
        ("good.pem", "other.key", "not the key of the certificate; put both of one pair"),
        ("junk.pem", "good.key", "invalid peer certificate"),
    ] {
        for command in [&["token", "list"][..], &["freeze", "list"], &["a2a", "discover"]] {
            let (exit, said) = said(cert, key, command);
            assert_eq!(exit, Some(2), "{said}");
            assert!(said.contains(cert) && said.contains(key) && said.contains(why), "{said}");
            assert!(!said.contains("panicked"), "{said}");
        }
    }
    let (exit, said) = said("good.pem", "good.key", &["token", "list"]);
    assert_eq!(exit, Some(3), "{said}");
    assert!(said.contains("nobody listens at"), "{said}");
}
