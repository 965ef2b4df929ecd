//! Stopping, starting again, and not starting twice.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Write as _};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value as Json;

use super::harness::{Daemon, command, eventually, spec, write};
use super::wire::{Request, connect, read_reply, send};

/// The end of a daemon that nobody else ends.
struct Orphan(String);

impl Drop for Orphan {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.0]).stderr(Stdio::null()).status();
    }
}

#[test]
fn a_hangup_reads_the_rules_again_and_the_end_of_its_terminal_stops_it_in_order() {
    let root = tempfile::tempdir().unwrap();
    let workspace = root.path().join("workspace");
    assert!(command(&workspace, &["init"]).output().unwrap().status.success());
    write(&workspace.join("handoffd.toml"), "[policy]\nreload = \"sighup\"\n");
    // `script` gives it a terminal, and takes it away with itself.
    let line = format!("exec {} serve --workspace . --listen 127.0.0.1:0", env!("CARGO_BIN_EXE_handoffd"));
    let mut terminal = Command::new("script")
        .args(["-q", "-c", &line, "/dev/null"])
        .current_dir(&workspace)
        .env_remove("HANDOFFD_WORKSPACE")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (pid, address) = eventually("it listens", || {
        let holder: Json = serde_json::from_slice(&fs::read(workspace.join("memory/.lock")).ok()?).ok()?;
        Some((holder["pid"].as_u64()?.to_string(), holder["address"].as_str()?.parse().ok()?))
    });
    let daemon = Orphan(pid);
    let ask = |target: &str| send(address, &Request::new("GET", target));
    eventually("it is ready", || (ask("/readyz").status == 200).then_some(()));
    // Read again on this signal alone, so that what is broken is noticed by it.
    write(&workspace.join("policies/routes.json"), "{");
    assert!(Command::new("kill").args(["-HUP", &daemon.0]).status().unwrap().success());
    eventually("the rules were read again", || {
        ask("/metrics").text().contains("handoffd_policy_reload_faults_total 1").then_some(())
    });
    assert_eq!(ask("/readyz").status, 200, "the terminal is still there");
    let checkpoint = || fs::read(workspace.join("memory/checkpoint")).unwrap_or_default();
    let first = checkpoint();

    terminal.kill().unwrap();
    terminal.wait().unwrap();
    eventually("it has left a checkpoint", || (checkpoint() != first).then_some(()));
    eventually("nobody listens", || std::net::TcpStream::connect(address).is_err().then_some(()));
    eventually("it has given the workspace back", || {
        let verified = command(&workspace, &["--json", "doctor"]).output().unwrap();
        String::from_utf8_lossy(&verified.stdout).contains("none runs").then_some(())
    });
}

/// SIGINT and SIGTERM.
const STOPS: u64 = 1 << (2 - 1) | 1 << (15 - 1);

/// The signals that a process has somebody for; the others end it where it stands.
fn caught(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

#[test]
fn told_to_stop_as_soon_as_it_says_that_it_is_ready_it_stops_in_order() {
    let root = tempfile::tempdir().unwrap();
    let workspace = root.path().join("workspace");
    assert!(command(&workspace, &["init"]).output().unwrap().status.success());
    let path = root.path().join("manager");
    let manager = UnixDatagram::bind(&path).unwrap();
    // Without an answer to it a test that waits in vain would wait for ever.
    manager.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let heard = || {
        let mut bytes = [0; 64];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    for signal in ["-TERM", "-INT", "-TERM", "-INT"] {
        let mut serve = command(&workspace, &["serve", "--listen", "127.0.0.1:0"]);
        let mut daemon = serve.env("NOTIFY_SOCKET", &path).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(heard(), "READY=1");
        // Read rather than tried: a signal that is sent from here comes later than one that a manager sends.
        assert_eq!(caught(daemon.id()) & STOPS, STOPS);
        assert!(Command::new("kill").args([signal, &daemon.id().to_string()]).status().unwrap().success());
        assert_eq!(daemon.wait().unwrap().code(), Some(0), "{signal}");
        assert_eq!(heard(), "STOPPING=1");
    }
}

#[test]
fn told_to_stop_under_load_it_keeps_every_promise() {
    let mut daemon = Daemon::new();
    let count = AtomicUsize::new(0);
    let (address, admin) = (daemon.address, daemon.admin.clone());
    let acknowledged: BTreeSet<String> = std::thread::scope(|scope| {
        let ask = |thread: usize| {
            let mut told = Vec::new();
            // One connection, used again and again, until there is nobody at the other end.
            let mut stream = connect(address);
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            for n in 0.. {
                let spec = spec(&format!("load_{thread}_{n:04}"));
                let request = Request::new("POST", "/v1/handoffs").token(&admin).json(spec.to_string());
                if stream.write_all(&request.bytes()).is_err() {
                    break;
                }
                let Some(reply) = read_reply(&mut reader) else { break };
                if reply.status == 503 {
                    continue;
                }
                assert_eq!(reply.status, 201);
                assert_eq!(reply.json()["decision"], "allowed");
                told.push(spec["handoffId"].as_str().unwrap().to_owned());
                count.fetch_add(1, Ordering::Relaxed);
            }
            told
        };
        let threads: Vec<_> = (0..6).map(|thread| scope.spawn(move || ask(thread))).collect();
        eventually("there is load", || (count.load(Ordering::Relaxed) > 60).then_some(()));
        daemon.signal("TERM");
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let status = daemon.wait();
    assert_eq!(status.code(), Some(0), "{}", daemon.log());

    // The checkpoint is of the very end.
    let checkpoint: Json =
        serde_json::from_slice(&fs::read(daemon.path("memory/checkpoint")).unwrap()).unwrap();
    let lines = daemon.segment();
    let last: Json = serde_json::from_str(lines.last().unwrap()).unwrap();
    let sequence = &last["commit"]["sequence"];
    assert!(sequence.is_u64());
    assert!(checkpoint.to_string().contains(&format!(":{sequence}")), "{checkpoint} at {sequence}");
    daemon.cli_ok(&["audit", "verify"]);

    daemon.restart_after_stop();
    let allowed: BTreeSet<String> = daemon
        .events()
        .iter()
        .filter(|event| event["type"] == "task.available")
        .map(|event| event["stream"]["stream_id"].as_str().unwrap().to_owned())
        .collect();
    for id in &acknowledged {
        assert!(allowed.iter().any(|stream| stream.contains(id.as_str())), "{id} was promised");
    }
    assert_eq!(daemon.submit(&spec("load_0_0000")).json()["replayed"], true);
    assert_eq!(daemon.submit(&spec("load_fresh_0000")).status, 201);
}

#[test]
fn a_second_daemon_on_the_workspace_says_who_has_it_and_leaves() {
    let daemon = Daemon::new();
    let second = daemon.cli(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(3));
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains(&format!("process {}", daemon.pid())), "{said}");
    assert!(said.contains(&daemon.address.to_string()), "{said}");
    // The first one has not noticed.
    assert_eq!(daemon.submit(&spec("first_0001")).status, 201);
    // Nor can another workspace have its address.
    let other = tempfile::tempdir().unwrap();
    let taken =
        super::harness::command(other.path(), &["serve", "--listen", &daemon.address.to_string()]).output();
    let taken = taken.unwrap();
    assert_eq!(taken.status.code(), Some(3));
    assert!(String::from_utf8(taken.stderr).unwrap().contains("in use"));
}

#[test]
fn an_open_connection_that_is_idle_does_not_keep_it_from_stopping() {
    let mut daemon = Daemon::new();
    let idle = connect(daemon.address);
    let mut used = connect(daemon.address);
    used.write_all(&Request::new("GET", "/healthz").bytes()).unwrap();
    assert_eq!(read_reply(&mut BufReader::new(&used)).unwrap().status, 200);
    daemon.signal("INT");
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(!daemon.log().contains("did not finish in time"), "{}", daemon.log());
    drop(idle);
}

/// Whoever stops it says so twice where it does not stop at once, and is told what it waits for.
#[test]
fn told_to_stop_twice_it_waits_for_nobody_and_keeps_what_it_promised() {
    let mut daemon = Daemon::with(
        "[server]\nrequest_timeout = \"10m\"\nheader_timeout = \"10m\"\nshutdown_timeout = \"10m\"\n",
    );
    let one = spec("promised_0001");
    assert_eq!(daemon.submit(&one).status, 201);
    let mut stuck = connect(daemon.address);
    let request = Request::new("POST", "/v1/handoffs").token(&daemon.admin).header("Content-Length", "10");
    stuck.write_all(request.header("Content-Type", "application/json").head().as_bytes()).unwrap();
    daemon.signal("INT");
    eventually("it says what it waits for", || {
        daemon.log().contains("waiting for requests that are under way").then_some(())
    });
    daemon.signal("INT");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert!(daemon.log().contains("what is under way is cut off"), "{}", daemon.log());
    daemon.cli_ok(&["audit", "verify"]);
    daemon.restart_after_stop();
    assert_eq!(daemon.submit(&one).json()["replayed"], true);
}

/// What was not synced in the segment goes with the power; here all behind the first batch, and a page of zeros stays.
#[test]
fn what_a_power_cut_took_from_the_segment_is_put_back_before_anything_is_served_or_backed_up() {
    for reads_first in ["serve", "backup"] {
        let mut daemon = Daemon::new();
        let specs = ["cut_0001", "cut_0002", "cut_0003"].map(spec);
        let answers = specs.each_ref().map(|spec| daemon.submit(spec).json());
        daemon.signal("KILL");
        daemon.wait();
        let path = daemon.path("memory/ledger/00000000000000000001.jsonl");
        let whole = fs::read(&path).unwrap();
        let first = whole.windows(9).position(|bytes| bytes == b"{\"commit\"").unwrap();
        let end = first + whole[first..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
        write(&path, [&whole[..end], &[0; 100]].concat());
        if reads_first == "backup" {
            let to = daemon.path("../backup");
            daemon.cli_ok(&["backup", "--to", to.to_str().unwrap()]);
            let copied = fs::read(to.join("ledger/00000000000000000001.jsonl")).unwrap();
            assert_eq!(copied, whole, "what was acknowledged is in the copy");
        }
        daemon.restart_after_stop();
        assert!(fs::read(&path).unwrap().starts_with(&whole), "{reads_first}");
        for (spec, answer) in specs.iter().zip(answers) {
            let again = daemon.submit(spec);
            let json = again.json();
            assert_eq!((again.status, &json["ledger"]), (200, &answer["ledger"]), "{reads_first}: {json}");
        }
        daemon.cli_ok(&["audit", "verify"]);
    }
}
