//! Stopping, starting again, and not starting twice.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value as Json;

use super::harness::{Daemon, eventually, spec};
use super::wire::{Request, connect, read_reply};

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
