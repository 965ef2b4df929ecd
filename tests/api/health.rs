//! What is wrong is said, soon, and it goes away when it has been put right.
//!
//! Disks are made to fail in ways that need no privileges and that stop root as well: a limit on the size of files
//! (which every write runs into, as into a full disk), and directories that are not where they were.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value as Json, json};

use super::harness::{Daemon, eventually, location, lost_spec, spec};

/// Waits until it says that it cannot decide, and gives what it says.
fn red(daemon: &Daemon) -> Json {
    eventually("it turns red", || {
        let reply = daemon.get("/readyz");
        (reply.status == 503).then(|| reply.json())
    })
}

fn red_now(daemon: &Daemon) -> Json {
    let reply = daemon.get("/readyz");
    assert_eq!(reply.status, 503, "{reply:?}");
    reply.json()
}

fn green(daemon: &Daemon) {
    eventually("it turns green", || {
        let reply = daemon.get("/readyz");
        (reply.status == 200 && reply.json()["status"] == "ready").then_some(())
    });
}

#[expect(clippy::disallowed_methods, reason = "a test moves files about")]
fn rename(from: PathBuf, to: PathBuf) {
    fs::rename(from, to).unwrap();
}

/// From now on no file of the daemon may be larger than this.
fn limit_files(daemon: &Daemon, bytes: &str) {
    let pid = daemon.pid().to_string();
    let set = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:")]).output().unwrap();
    assert!(set.status.success(), "{set:?}");
}

fn not_durable(daemon: &Daemon, spec: &Json) {
    let refused = daemon.submit(spec);
    assert_eq!((refused.status, refused.code().as_str()), (503, "ENGINE_NOT_DURABLE"));
    assert_eq!(refused.header("retry-after"), Some("1"));
}

#[test]
fn while_nothing_can_be_written_nothing_is_allowed_and_it_recovers_by_itself() {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("disk_0001")).status, 201);
    green(&daemon);
    limit_files(&daemon, "0");
    // Nobody has to be refused for it to be noticed.
    let found = red(&daemon);
    assert_eq!(found["failing"][0]["what"], "disk");
    not_durable(&daemon, &spec("disk_0002"));
    assert!(daemon.metric("handoffd_append_faults_total").unwrap() >= 1.0);
    // What was decided before is answered as before: nothing needs to be written for it.
    assert_eq!(daemon.submit(&spec("disk_0001")).status, 200);
    limit_files(&daemon, "unlimited");
    green(&daemon);
    assert_eq!(daemon.submit(&spec("disk_0002")).status, 201, "it was never decided");
    assert_eq!(daemon.get(&location(&spec("disk_0002"))).json()["attempts"], 1);
    assert_eq!(daemon.get("/v1/audit/verify").json()["verified"], true);
}

/// The file is what orchestrators read, and nobody may decide anything for a long time.
#[test]
fn a_state_file_that_could_not_be_written_recovers_without_another_decision() {
    let daemon = Daemon::new();
    green(&daemon);
    let aside = daemon.path("memory/orchestration-state.new");
    fs::create_dir(&aside).unwrap();
    assert_eq!(daemon.submit(&spec("state_0001")).status, 201);
    let ready = daemon.get("/readyz").json();
    assert_eq!(ready["degraded"][0]["what"], "state", "{ready}");
    fs::remove_dir(&aside).unwrap();
    green(&daemon);
    let file = fs::read_to_string(daemon.path("memory/orchestration-state.json")).unwrap();
    assert!(file.contains("hs_20260218_state_0001"), "{file}");
}

/// The probe's own file can be written, and all else but the ledger: its segment is at the limit, and somebody has taken the
/// name of the next one.
#[test]
fn while_the_ledger_alone_cannot_be_written_it_says_so_until_it_can() {
    let daemon = Daemon::new();
    for n in 0..4 {
        assert_eq!(daemon.submit(&spec(&format!("alone_{n:04}"))).status, 201);
    }
    green(&daemon);
    let bytes: usize = daemon.segment().iter().map(|line| line.len() + 1).sum();
    let next = daemon.get("/readyz").json()["ledger"]["sequence"].as_u64().unwrap() + 1;
    let name = format!("{next:020}.jsonl");
    let taken = daemon.path(&format!("memory/ledger/{name}"));
    fs::File::create(&taken).unwrap();
    limit_files(&daemon, &(bytes + 100).to_string());
    not_durable(&daemon, &spec("alone_1000"));
    eventually("it is named", || red(&daemon).to_string().contains(&name).then_some(()));
    let said = || daemon.log().matches("nothing is decided").count();
    let before = said();
    limit_files(&daemon, "unlimited");
    // Time enough for several looks, none of which finds it well.
    for _ in 0..1_000 {
        let found = red_now(&daemon);
        assert_eq!(found["failing"][0]["what"], "ledger", "{found}");
    }
    not_durable(&daemon, &spec("alone_1000"));
    assert_eq!(said(), before, "{}", daemon.log());
    fs::remove_file(&taken).unwrap();
    green(&daemon);
    assert_eq!(daemon.submit(&spec("alone_1000")).status, 201);
    assert_eq!(daemon.get("/v1/audit/verify").json()["verified"], true);
}

/// A token whose making is not in the ledger is nobody's: its text is in no answer.
#[test]
fn a_token_that_could_not_be_put_in_force_is_taken_back() {
    let daemon = Daemon::new();
    for name in ["token_0001", "token_0002"] {
        assert_eq!(daemon.submit(&spec(name)).status, 201);
    }
    let bytes: usize = daemon.segment().iter().map(|line| line.len() + 1).sum();
    limit_files(&daemon, &(bytes + 100).to_string());
    let new = serde_json::json!({"name": "reader", "role": "auditor"});
    let refused = daemon.post("/v1/tokens", &new);
    assert_eq!((refused.status, refused.code().as_str()), (503, "ENGINE_NOT_DURABLE"), "{refused:?}");
    let counts = |reply: Json| {
        reply["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .any(|token| token["name"] == "reader" && token["valid"] == true)
    };
    assert!(!counts(daemon.get("/v1/tokens").json()));
    limit_files(&daemon, "unlimited");
    green(&daemon);
    let made = eventually("its name is free", || {
        Some(daemon.post("/v1/tokens", &new)).filter(|made| made.status != 503)
    });
    assert_eq!(made.status, 201, "{made:?}");
    assert!(counts(daemon.get("/v1/tokens").json()));
}

/// Room for the beginning of an entry and not for its end.
#[test]
fn an_entry_that_was_written_by_half_is_as_if_it_had_never_been() {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("half_0001")).status, 201);
    let before = daemon.segment();
    let bytes: usize = before.iter().map(|line| line.len() + 1).sum();
    limit_files(&daemon, &(bytes + 700).to_string());
    not_durable(&daemon, &spec("half_0002"));
    eventually("the half is taken away", || (daemon.segment() == before).then_some(()));
    limit_files(&daemon, "unlimited");
    green(&daemon);
    assert_eq!(daemon.submit(&spec("half_0002")).status, 201);
    assert_eq!(daemon.get("/v1/audit/verify").json()["verified"], true);
}

#[test]
fn a_ledger_that_is_not_where_it_was_is_noticed() {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("moved_0001")).status, 201);
    let elsewhere = tempfile::tempdir_in(daemon.path("memory")).unwrap();
    rename(daemon.path("memory/ledger"), elsewhere.path().join("ledger"));
    let found = red(&daemon);
    assert_eq!(found["failing"][0]["what"], "ledger");
    not_durable(&daemon, &spec("moved_0002"));
    rename(elsewhere.path().join("ledger"), daemon.path("memory/ledger"));
    green(&daemon);
    assert_eq!(daemon.submit(&spec("moved_0002")).status, 201);
}

#[test]
fn a_ledger_that_somebody_touched_is_noticed_and_trusted_again_when_it_is_put_back() {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("touched_0001")).status, 201);
    let segment = daemon.path("memory/ledger/00000000000000000001.jsonl");
    let aside = daemon.path("aside.jsonl");
    let whole = fs::read(&segment).unwrap();
    let check = |n: usize, what: &str, touch: &dyn Fn(), put_back: &dyn Fn()| {
        touch();
        let found = red(&daemon);
        assert_eq!(found["failing"][0]["what"], "ledger");
        assert!(found["failing"][0]["why"].as_str().unwrap().contains(what), "{what}: {found}");
        not_durable(&daemon, &spec(&format!("touched_1_{n:04}")));
        // Whoever puts it back has left a trace.
        eventually("the log tells", || daemon.log().contains(what).then_some(()));
        put_back();
        green(&daemon);
        eventually("the log tells", || (daemon.log().matches("well again").count() >= n).then_some(()));
    };
    let keep = || fs::hard_link(&segment, &aside).unwrap();
    let put_back = || rename(aside.clone(), segment.clone());
    check(
        1,
        "is gone",
        &|| {
            keep();
            fs::remove_file(&segment).unwrap();
        },
        &put_back,
    );
    check(
        2,
        "was replaced",
        &|| {
            keep();
            fs::remove_file(&segment).unwrap();
            fs::copy(&aside, &segment).unwrap();
        },
        &put_back,
    );
    let cut = |bytes: usize| {
        let file = fs::File::options().write(true).open(&segment).unwrap();
        file.set_len(bytes as u64).unwrap();
    };
    let add = || {
        use std::io::Write as _;
        fs::File::options().append(true).open(&segment).unwrap().write_all(b"{}\n").unwrap();
    };
    check(3, "bytes instead of", &add, &|| cut(whole.len()));
    assert_eq!(fs::read(&segment).unwrap(), whole);
    assert_eq!(daemon.submit(&spec("touched_0002")).status, 201);
    assert_eq!(daemon.get("/v1/audit/verify").json()["verified"], true);
}

#[test]
fn a_state_file_that_cannot_be_written_is_survived_and_said() {
    let daemon = Daemon::new();
    let aside = daemon.path("memory/orchestration-state.new");
    fs::create_dir(&aside).unwrap();
    assert_eq!(daemon.submit(&spec("state_0001")).status, 201, "the ledger is the record");
    let found = eventually("it is noticed", || {
        let reply = daemon.get("/readyz");
        assert_eq!(reply.status, 200);
        Some(reply.json()).filter(|found| found["status"] == "degraded")
    });
    assert_eq!(found["degraded"][0]["what"], "state");
    fs::remove_dir(&aside).unwrap();
    assert_eq!(daemon.submit(&spec("state_0002")).status, 201);
    green(&daemon);
    let state = daemon.get("/v1/state").text();
    assert!(state.contains("state_0001") && state.contains("state_0002"));
}

/// What the views write for a question, until that is more than the rest of the daemon needs.
fn fill_views(daemon: &Daemon) -> u64 {
    const REST: u64 = 3 * 1024 * 1024;
    let written = || fs::metadata(daemon.path("memory/views.db-wal")).map_or(0, |metadata| metadata.len());
    for n in 0.. {
        if written() > REST {
            break;
        }
        let spec = spec(&format!("fill_{n:04}"));
        assert_eq!(daemon.submit(&spec).status, 201);
        assert_eq!(daemon.get(&location(&spec)).status, 200);
    }
    assert!(fs::metadata(daemon.path("memory/ledger/00000000000000000001.jsonl")).unwrap().len() < REST);
    written()
}

/// There is room for what is decided, and none for the views, for as long as it takes until they say so.
#[test]
fn searches_come_back_by_themselves_when_there_is_room_again() {
    let mut daemon = Daemon::new();
    let room = fill_views(&daemon).to_string();
    green(&daemon);
    let degraded = || {
        eventually("it is said", || {
            let reply = daemon.get("/readyz");
            assert_eq!(reply.status, 200, "it can still decide");
            Some(reply.json()).filter(|found| found["status"] == "degraded")
        })
    };
    for round in 1..=2 {
        let name = |n: usize| format!("room_{round}_{n:04}");
        limit_files(&daemon, &room);
        assert_eq!(daemon.submit(&spec(&name(0))).status, 201);
        let found = degraded();
        assert_eq!(found["degraded"][0]["what"], "views", "{found}");
        let refused = daemon.get(&location(&spec(&name(0))));
        assert_eq!((refused.status, refused.code().as_str()), (503, "VIEWS_UNAVAILABLE"));
        // Decisions go on, and what was claimed meanwhile stays claimed.
        for n in 1..=5 {
            assert_eq!(daemon.submit(&spec(&name(n))).status, 201);
            assert_eq!(daemon.submit(&spec(&name(n))).status, 200);
        }
        assert_eq!(degraded()["degraded"][0]["what"], "views");
        limit_files(&daemon, "unlimited");
        green(&daemon);
        for n in 0..=5 {
            assert_eq!(daemon.get(&location(&spec(&name(n)))).json()["attempts"], 1, "{}", name(n));
            assert_eq!(daemon.submit(&spec(&name(n))).status, 200);
        }
        assert_eq!(daemon.metric("handoffd_views_behind_entries"), Some(0.0));
    }
    eventually("the log tells", || (daemon.log().matches("well again").count() >= 2).then_some(()));
    assert_eq!(daemon.get("/v1/audit/verify").json()["verified"], true);
    // A stop does not wait for room, and the next start brings the views up.
    limit_files(&daemon, &room);
    assert_eq!(daemon.submit(&spec("room_3_0000")).status, 201);
    degraded();
    daemon.restart(200);
    assert_eq!(daemon.get(&location(&spec("room_3_0000"))).json()["attempts"], 1);
    green(&daemon);
}

/// Whoever had the old file open asks the new one.
#[test]
fn a_search_file_that_somebody_deleted_is_made_again_with_the_next_entry() {
    let daemon = Daemon::new();
    let attempts = |name: &str| daemon.get(&location(&spec(name))).json()["attempts"].clone();
    assert_eq!(daemon.submit(&spec("gone_0001")).status, 201);
    assert_eq!(attempts("gone_0001"), 1);
    fs::remove_file(daemon.path("memory/views.db")).unwrap();
    let found = eventually("it is said", || {
        Some(daemon.get("/readyz").json()).filter(|found| found["status"] == "degraded")
    });
    assert_eq!(found["degraded"][0]["what"], "views", "{found}");
    assert_eq!(daemon.submit(&spec("gone_0002")).status, 201);
    green(&daemon);
    assert_eq!((attempts("gone_0001"), attempts("gone_0002")), (1.into(), 1.into()));
    assert_eq!(daemon.submit(&spec("gone_0001")).status, 200);
}

#[test]
fn what_happens_is_counted() {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("count_0001")).status, 201);
    assert_eq!(daemon.submit(&spec("count_0001")).status, 200);
    assert_eq!(daemon.submit(&lost_spec("count_0002")).status, 403);
    let mut reused = spec("count_0003");
    reused["handoffId"] = spec("count_0001")["handoffId"].clone();
    assert_eq!(daemon.submit(&reused).status, 409);
    let mut shapeless = spec("count_0004");
    shapeless["acceptance"] = json!({});
    assert_eq!(daemon.submit(&shapeless).status, 422);
    assert_eq!(daemon.post("/v1/handoffs", "{").status, 400);
    let head = daemon.events().len() as f64;
    // A question waits for the views, which otherwise gather for a moment.
    assert_eq!(daemon.get("/v1/handoffs").status, 200);
    for (line, value) in [
        ("handoffd_decisions_total{decision=\"allowed\"}", 1.0),
        ("handoffd_decisions_total{decision=\"denied\"}", 3.0),
        ("handoffd_decisions_total{decision=\"expired\"}", 0.0),
        ("handoffd_decisions_total{decision=\"needs_approval\"}", 0.0),
        ("handoffd_replays_total", 1.0),
        ("handoffd_reasons_total{gate=\"G0\",code=\"A2A_ROUTE_UNKNOWN\"}", 1.0),
        ("handoffd_reasons_total{gate=\"G0\",code=\"A2A_TASKSPEC_INVALID\"}", 1.0),
        ("handoffd_reasons_total{gate=\"identity\",code=\"A2A_HANDOFF_REUSED\"}", 1.0),
        ("handoffd_claims_refused_total", 1.0),
        ("handoffd_problems_total{code=\"A2A_BODY_INVALID\"}", 1.0),
        ("handoffd_bodies_unreadable_total", 1.0),
        ("handoffd_http_requests_total{endpoint=\"submitHandoff\",status=\"201\"}", 1.0),
        ("handoffd_http_requests_total{endpoint=\"submitHandoff\",status=\"409\"}", 1.0),
        ("handoffd_step_seconds_count{step=\"read\"}", 6.0),
        ("handoffd_step_seconds_count{step=\"judge\"}", 5.0),
        ("handoffd_step_seconds_count{step=\"commit\"}", 5.0),
        ("handoffd_step_seconds_count{step=\"answer\"}", 5.0),
        ("handoffd_ledger_head", head),
        ("handoffd_ledger_entries_total", head),
        ("handoffd_append_faults_total", 0.0),
        ("handoffd_decisions_waiting", 0.0),
        ("handoffd_views_behind_entries", 0.0),
        ("handoffd_build_info{version=", 1.0),
    ] {
        assert_eq!(daemon.metric(line), Some(value), "{line}");
    }
    for begins in [
        "handoffd_append_seconds_count",
        "handoffd_append_seconds_bucket{le=\"+Inf\"}",
        "handoffd_batch_entries_count",
        "handoffd_http_request_seconds_count",
        "handoffd_ledger_written_bytes_total",
        "handoffd_connections",
    ] {
        assert!(daemon.metric(begins).is_some_and(|value| value >= 1.0), "{begins}");
    }
    let text = daemon.get("/metrics").text();
    assert!(text.ends_with("# EOF\n"));
    assert!(!text.contains(&daemon.admin));
}

/// The ledger says that it happened, and nobody had to decide anything for it.
#[test]
fn a_state_file_that_is_edited_while_nothing_happens_is_put_right_and_recorded() {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("idle_0001")).status, 201);
    let path = daemon.path("memory/orchestration-state.json");
    let replaced = || daemon.events().iter().filter(|event| event["type"] == "state.replaced").count();
    let before = fs::read_to_string(&path).unwrap();
    assert!(before.contains("\"status\":\"queued\""), "{before}");
    for times in 1..=2 {
        // As long as what was there.
        super::harness::write(&path, before.replace("\"status\":\"queued\"", "\"status\":\"failed\""));
        eventually("the edit is recorded", || (replaced() == times).then_some(()));
        eventually("the file is the ledger's view", || {
            let state = daemon.get("/v1/state").text();
            (fs::read_to_string(&path).unwrap() == state && !state.contains("\"failed\"")).then_some(())
        });
    }
    assert_eq!(daemon.get("/v1/audit/verify").json()["verified"], true);
    assert_eq!(replaced(), 2, "what the gateway itself publishes is nobody's edit");
}
