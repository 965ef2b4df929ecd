//! Backup and restore beside a running daemon, and what else it keeps on disk.

use std::fs;
use std::os::unix::net::UnixDatagram;

use serde_json::Value as Json;

use crate::daemon::{Daemon, handoffd, run, until, workspace};

#[test]
fn a_running_daemon_is_backed_up_and_restored_elsewhere() {
    let (old, new) = (workspace(), tempfile::tempdir().unwrap());
    let daemon = Daemon::start(old.path(), &[]);
    assert_eq!(daemon.submit_as("hs_backup_0001"), 201);
    let to = new.path().join("backup");
    let to = to.to_str().unwrap();
    let made: Json =
        serde_json::from_slice(&run(old.path(), &["backup", "--to", to, "--json"]).stdout).unwrap();
    let policies: Json = serde_json::from_str(&daemon.get("/v1/policies").1).unwrap();
    assert_eq!(made["policyDigest"], policies["digest"]);
    assert_eq!(daemon.submit_as("hs_backup_0002"), 201);
    let old_token = daemon.token();
    daemon.stop();

    let restored = new.path().join("workspace");
    fs::create_dir(&restored).unwrap();
    run(&restored, &["restore", "--from", to]);
    let twice = handoffd(&restored).args(["restore", "--from", to]).output().unwrap();
    assert_eq!(twice.status.code(), Some(2));
    // Without its policies it does not start, and does not put an example in their place.
    let bare = handoffd(&restored).args(["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(bare.status.code(), Some(3));
    let said = String::from_utf8_lossy(&bare.stderr).into_owned();
    assert!(said.contains("restored from a backup") && said.contains("put policies/ back"), "{said}");
    assert!(!restored.join("policies").exists());

    for name in ["policies", "agents", "docs"] {
        let copied =
            std::process::Command::new("cp").arg("-r").arg(old.path().join(name)).arg(&restored).status();
        assert!(copied.unwrap().success());
    }
    let daemon = Daemon::start(&restored, &[]);
    assert_ne!(daemon.token(), old_token, "the admin token is a new one");
    let (_, page) = daemon.get("/v1/audit?type=epoch.begun");
    let page: Json = serde_json::from_str(&page).unwrap();
    assert_eq!(page["entries"].as_array().unwrap().len(), 1, "{page}");
    // What came after the backup is forgotten, what came before is known.
    assert_eq!((daemon.submit_as("hs_backup_0001"), daemon.submit_as("hs_backup_0002")), (200, 201));
    daemon.stop();
    run(&restored, &["audit", "verify"]);
}

#[test]
fn the_sink_writes_a_line_for_every_entry_and_says_when_it_cannot() {
    let workspace = workspace();
    let lines = workspace.path().join("memory/lines.jsonl");
    std::os::unix::fs::symlink("/dev/full", &lines).unwrap();
    let daemon = Daemon::start(workspace.path(), &[("HANDOFFD_SINK_PATH", "memory/lines.jsonl")]);
    assert_eq!(daemon.submit_as("hs_lines_0001"), 201);
    let mut answer = (0, String::new());
    until(|| {
        answer = daemon.get("/readyz");
        answer.1.contains("\"what\":\"sink\"")
    });
    assert_eq!(answer.0, 200, "decisions go on");
    let (_, metrics) = daemon.get("/metrics");
    assert!(!metrics.contains("\nhandoffd_sink_behind_entries 0\n"), "{metrics}");
    assert!(!metrics.contains("\nhandoffd_sink_faults_total 0\n"), "{metrics}");
    fs::remove_file(&lines).unwrap();
    until(|| daemon.get("/metrics").1.contains("\nhandoffd_sink_behind_entries 0\n"));
    assert!(!daemon.get("/readyz").1.contains("\"what\":\"sink\""));
    daemon.stop();
    let text = fs::read_to_string(&lines).unwrap();
    let sequences: Vec<u64> = text
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap()["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
    assert!(text.contains("\"handoffId\":\"hs_lines_0001\""));

    let wrong = handoffd(workspace.path())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("HANDOFFD_SINK_PATH", "policies/lines.jsonl")
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("[sink] path"), "{wrong:?}");
}

#[test]
fn a_service_manager_is_told_when_it_is_ready_and_when_it_stops() {
    let workspace = workspace();
    let path = workspace.path().join("memory/notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let heard = || {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let daemon = Daemon::start(workspace.path(), &[("NOTIFY_SOCKET", path.to_str().unwrap())]);
    assert_eq!(heard(), "READY=1");
    assert_eq!(daemon.get("/healthz").0, 200);
    daemon.stop();
    assert_eq!(heard(), "STOPPING=1");
}
