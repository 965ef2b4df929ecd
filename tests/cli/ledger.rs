//! The ledger and the state file, read by commands.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use super::support::{NOW, Workspace, stdout};

/// The ledger as it is left by a gateway that decided two handoffs, seen through the command line.
#[test]
fn the_ledger_can_be_exported_shown_and_compared_with_the_state() {
    use handoffd::engine::{Asker, Candidate, Ruling};
    use handoffd::gateway::Gateway;
    use std::sync::Arc;
    let workspace = Workspace::new();
    assert_eq!(workspace.exit(&["audit", "export"]), 2, "there is nothing yet");
    let policies = Arc::new(handoffd::policy::Workspace::new(workspace.path()).load_policies().unwrap());
    let gateway = Gateway::open(workspace.path(), "127.0.0.1:7420").unwrap();
    let in_force = handoffd::engine::InForce::of_files(policies.clone(), Arc::default(), Vec::new());
    gateway.engine().put_in_force_and_wait(Arc::new(in_force)).unwrap();
    let canonical =
        fs::read_to_string(workspace.path().join("docs/examples/taskspec-canonical.json")).unwrap();
    for body in [
        canonical.clone(),
        canonical
            .replace("\"authorized-harness\"", "\"agent\"")
            .replace("_0001", "_0002")
            .replace("9001", "9002"),
    ] {
        let ruling = Ruling {
            policies: policies.clone(),
            keyring: Arc::default(),
            asker: Asker::Agent("decision-router".into()),
        };
        let now = handoffd::timestamp::Timestamp::parse(NOW).unwrap();
        gateway.engine().submit_and_wait(Candidate::judge(body.into(), ruling, now).unwrap()).unwrap();
    }
    // Beside a running gateway.
    let export = stdout(&workspace.run(&["audit", "export"]));
    let lines: Vec<Json> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<String> = lines
        .iter()
        .map(|line| {
            serde_json::from_str::<Json>(line["wire"].as_str().unwrap()).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let expected = [
        "policy.loaded",
        "route.declared",
        "task.created",
        "gate.decided",
        "task.available",
        "task.created",
        "gate.decided",
        "task.rejected",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(stdout(&workspace.run(&["audit", "export", "--from", "7"])).lines().count(), 2);
    let shown = workspace.json(&["audit", "show", "7"]);
    assert_eq!(shown["wire"]["payload"]["codes"], serde_json::json!(["POLICY_SELF_TEST"]));
    assert_eq!(shown["hcs"]["running_hash"], lines[6]["hcs"]["running_hash"]);
    assert_eq!(workspace.exit(&["audit", "show", "9"]), 2);
    assert_eq!(workspace.exit(&["state", "verify"]), 0);
    let held = workspace.run(&["state", "restore"]);
    assert_eq!(held.status.code(), Some(3), "as a start that finds it held");
    assert!(String::from_utf8(held.stderr).unwrap().contains("is held by process"), "the gateway is running");
    gateway.close().unwrap();

    assert_eq!(workspace.json(&["audit", "checkpoint"])["sequence"], 8);
    let listed = workspace.json(&["audit", "list", "--type", "gate.decided", "--json"]);
    let sequences: Vec<u64> =
        listed["entries"].as_array().unwrap().iter().map(|row| row["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, [7, 4]);
    let first = workspace.json(&["audit", "list", "--limit", "3", "--json"]);
    let second = workspace.json(&[
        "audit",
        "list",
        "--limit",
        "9",
        "--cursor",
        first["next"].as_str().unwrap(),
        "--json",
    ]);
    assert_eq!((second["entries"].as_array().unwrap().len(), &second["next"]), (5, &Json::Null));
    let refused =
        stdout(&workspace.run(&["audit", "list", "--code", "POLICY_SELF_TEST", "--type", "gate.decided"]));
    assert!(refused.contains("task:hs_20260218_router_0002:attempt:1  denied POLICY_SELF_TEST"), "{refused}");
    assert_eq!(stdout(&workspace.run(&["audit", "list", "--handoff", "hs_nobody"])), "no entries\n");
    assert_eq!(workspace.exit(&["audit", "list", "--cursor", "x"]), 2);
    let verified = workspace.json(&["audit", "verify", "--json"]);
    assert_eq!(
        (&verified["verified"], &verified["entries"], &verified["checkpoints"]),
        (&Json::from(true), &Json::from(8), &Json::from(1))
    );
    assert_eq!((&verified["viewsSequence"], &verified["stateSequence"]), (&Json::from(8), &Json::from(8)));
    how_far_the_state_is_said(&workspace);
    // A row that somebody edited with SQLite; the views are deleted, and can be.
    let views = workspace.path().join("memory/views.db");
    let whole = fs::read(&views).unwrap();
    let edited = rusqlite::Connection::open(&views).unwrap();
    edited.execute("UPDATE handoffs SET attempts = 7 WHERE handoff = 6", []).unwrap();
    drop(edited);
    let found = workspace.run(&["audit", "verify"]);
    assert_eq!(
        (found.status.code(), stdout(&found).as_str()),
        (
            Some(1),
            "bad  the views differ from the ledger in table `handoffs`, handoff 6: `attempts` is 7, and the ledger \
             gives 1\n"
        )
    );
    workspace.write("memory/views.db", "no database, though it is long enough to be one".repeat(20));
    assert_eq!(workspace.exit(&["audit", "verify"]), 1);
    fs::remove_file(&views).unwrap();
    assert_eq!(workspace.json(&["audit", "verify", "--json"])["viewsSequence"], Json::Null);
    // A disk that was full when they were to be made for the first time.
    workspace.write("memory/views.db", "");
    assert_eq!(workspace.json(&["audit", "verify", "--json"])["viewsSequence"], Json::Null);
    workspace.write("memory/views.db", whole);
    // An export, verified by the program and by plain Python; cut, it is noticed by whoever kept the checkpoint.
    workspace.write("export.jsonl", &export);
    workspace.write("cut.jsonl", export.lines().take(5).map(|line| format!("{line}\n")).collect::<String>());
    assert_eq!(workspace.exit(&["audit", "verify", "--export", "export.jsonl"]), 0);
    assert_eq!(workspace.exit(&["audit", "verify", "--export", "cut.jsonl"]), 0, "nobody kept anything");
    let kept = ["--checkpoint", "memory/checkpoint"];
    assert_eq!(workspace.exit(&["audit", "verify", "--export", "export.jsonl", kept[0], kept[1]]), 0);
    assert_eq!(workspace.exit(&["audit", "verify", "--export", "cut.jsonl", kept[0], kept[1]]), 1);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/verify-ledger.py");
    let python =
        Command::new("python3").arg(script).arg(workspace.path().join("export.jsonl")).output().unwrap();
    assert!(stdout(&python).starts_with("ok: 8 entries, gw_"), "{python:?}");
    // One digit of one entry.
    let segment = workspace.path().join("memory/ledger/00000000000000000001.jsonl");
    let whole = fs::read_to_string(&segment).unwrap();
    workspace.write(
        "memory/ledger/00000000000000000001.jsonl",
        whole.replacen("policy.loaded", "policy.loadee", 1),
    );
    let found = workspace.run(&["audit", "verify"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(stdout(&found).starts_with("bad  "), "{found:?}");
    workspace.write("memory/ledger/00000000000000000001.jsonl", &whole);
    let state = workspace.json(&["state", "show"]);
    assert_eq!(state["activeHandoffs"].as_object().unwrap().len(), 1);
    workspace.write(
        "memory/orchestration-state.json",
        fs::read_to_string(workspace.path().join("memory/orchestration-state.json"))
            .unwrap()
            .replace("queued", "done"),
    );
    for command in ["state", "audit"] {
        let found = workspace.run(&[command, "verify"]);
        assert_eq!(found.status.code(), Some(1));
        let said = stdout(&found);
        assert!(said.ends_with("/status: expected \"queued\", found \"done\"\n"), "{said}");
        let found = workspace.run(&[command, "verify", "--json"]);
        let said: serde_json::Value = serde_json::from_str(&stdout(&found)).unwrap();
        assert!(said["pointer"].as_str().unwrap().starts_with("/activeHandoffs/"), "{said}");
        assert_eq!((&said["expected"], &said["found"]), (&"\"queued\"".into(), &"\"done\"".into()));
    }
    // The number alone: it is said where, by both.
    let text = serde_json::to_string(&state).unwrap();
    workspace.write("memory/orchestration-state.json", text.replace("\"sequence\":8", "\"sequence\":9"));
    for command in ["state", "audit"] {
        let found = workspace.run(&[command, "verify"]);
        assert_eq!(found.status.code(), Some(1));
        let said = stdout(&found);
        assert!(
            said.ends_with("file names entry 9, and the ledger ends at entry 8: at /ledger/sequence\n"),
            "{said}"
        );
        let found = workspace.run(&[command, "verify", "--json"]);
        let said: serde_json::Value = serde_json::from_str(&stdout(&found)).unwrap();
        let at = (&said["entry"], &said["pointer"], &said["expected"], &said["found"]);
        assert_eq!(at, (&9.into(), &"/ledger/sequence".into(), &"8".into(), &"9".into()));
    }
    assert_eq!(workspace.exit(&["state", "restore"]), 0);
    assert_eq!(workspace.exit(&["state", "verify"]), 0);
    an_entry_that_no_gateway_writes_is_a_finding(&workspace);
    lost_entries_stay_remembered(&workspace);
    what_cannot_be_read_is_named(&workspace);
    assert_eq!(workspace.json(&["state", "show"]), state);
}

/// The chain of such a ledger is whole: somebody computed it again.
fn an_entry_that_no_gateway_writes_is_a_finding(workspace: &Workspace) {
    use handoffd::ledger::RunningHash;
    let other = tempfile::tempdir().unwrap();
    let at = |name: &str| other.path().join(name);
    fs::create_dir_all(at("memory/ledger")).unwrap();
    let segment = "memory/ledger/00000000000000000001.jsonl";
    let ledger = fs::read_to_string(workspace.path().join(segment)).unwrap();
    let mut hash = None;
    let mut lines = String::new();
    for line in ledger.lines() {
        if line.starts_with("{\"body\"") || line.starts_with("{\"digest\"") {
            lines += &format!("{line}\n");
            continue;
        }
        let mut entry: Json = serde_json::from_str(line).unwrap();
        if let Some(wire) = entry["wire"].as_str() {
            let wire = wire.replace("phase:", "phrase:");
            let hcs = &entry["hcs"];
            let topic_id = hcs["topic_id"].as_str().unwrap();
            let before = hash.unwrap_or_else(|| RunningHash::genesis(topic_id));
            let time = hcs["consensus_timestamp"].as_str().unwrap();
            hash = Some(before.then(hcs["sequence_number"].as_u64().unwrap(), time, &wire));
            entry["wire"] = wire.into();
            entry["hcs"]["running_hash"] = hash.unwrap().to_string().into();
        } else {
            entry["commit"]["running_hash"] = hash.unwrap().to_string().into();
        }
        lines += &format!("{entry}\n");
    }
    write(&at(segment), &lines);
    let root = ["--workspace", other.path().to_str().unwrap()];
    let found = workspace.run(&[&root[..], &["audit", "verify", "--json"]].concat());
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    let said: Json = serde_json::from_str(&stdout(&found)).unwrap();
    assert_eq!((&said["verified"], &said["entry"]), (&Json::from(false), &Json::from(2)), "{said}");
    assert_eq!(said["finding"], "entry 2 cannot be reduced to state");
    let found = workspace.run(&[&root[..], &["audit", "verify"]].concat());
    assert_eq!(stdout(&found), "bad  entry 2 cannot be reduced to state\n");
}

/// A state file that is missing or behind is no difference, and nobody takes it for one that was compared at the end.
fn how_far_the_state_is_said(workspace: &Workspace) {
    const STATE: &str = "memory/orchestration-state.json";
    let path = workspace.path().join(STATE);
    let whole = fs::read(&path).unwrap();
    let said = |ends: &str, sequence: Json, of_state: Option<&str>| {
        let found = workspace.run(&["audit", "verify"]);
        assert_eq!(found.status.code(), Some(0));
        let text = stdout(&found);
        let last = text.trim_end().rsplit(", ").next().unwrap();
        assert!(if ends.is_empty() { last.starts_with("running hash ") } else { last == ends }, "{text}");
        assert_eq!(workspace.json(&["audit", "verify", "--json"])["stateSequence"], sequence);
        let found = workspace.run(&["state", "verify"]);
        assert_eq!(found.status.code(), Some(i32::from(of_state.is_some())));
        assert!(stdout(&found).contains(of_state.unwrap_or("the file is what the ledger gives at entry")));
    };
    said("", 8.into(), None);
    fs::remove_file(&path).unwrap();
    said("state: missing", Json::Null, Some("the file is not there"));
    workspace.write(STATE, "");
    said("state: missing", Json::Null, Some("the file holds nothing of this ledger"));
    // As of an entry before the last one: what a gateway published that was killed then.
    let behind = tempfile::tempdir().unwrap();
    let at = |name: &str| behind.path().join(name);
    for name in ["memory/gateway.key", "memory/checkpoint"] {
        fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        fs::copy(workspace.path().join(name), at(name)).unwrap();
    }
    fs::remove_file(at("memory/checkpoint")).unwrap();
    let segment = "memory/ledger/00000000000000000001.jsonl";
    let ledger = fs::read_to_string(workspace.path().join(segment)).unwrap();
    let commits: Vec<usize> = ledger.match_indices("{\"commit\":").map(|(at, _)| at).collect();
    let kept = commits[commits.len() - 2];
    fs::create_dir_all(at("memory/ledger")).unwrap();
    write(&at(segment), &ledger[..kept + ledger[kept..].find('\n').unwrap() + 1]);
    let found = workspace.run(&["--workspace", behind.path().to_str().unwrap(), "state", "restore"]);
    assert!(found.status.success(), "{found:?}");
    workspace.write(STATE, fs::read(at("memory/orchestration-state.json")).unwrap());
    said("state: at 5 of 8", 5.into(), None);
    workspace.write(STATE, whole);
}

#[expect(clippy::disallowed_methods, reason = "a test lays out files")]
fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

/// Whatever alone still tells of an entry that the ledger lost is not replaced, and every command says what it is.
fn lost_entries_stay_remembered(workspace: &Workspace) {
    const SEGMENT: &str = "memory/ledger/00000000000000000001.jsonl";
    const STATE: &str = "memory/orchestration-state.json";
    let path = |name: &str| workspace.path().join(name);
    let whole = fs::read_to_string(path(SEGMENT)).unwrap();
    let commits: Vec<usize> = whole.match_indices("{\"commit\":").map(|(at, _)| at).collect();
    let kept = commits[commits.len() - 2];
    let cut = &whole[..kept + whole[kept..].find('\n').unwrap() + 1];
    let witnesses = ["memory/checkpoint", "memory/state.snapshot", "memory/views.db", STATE];
    // Made again, and all of them in one file, for whoever puts it back.
    drop(handoffd::gateway::Gateway::open(workspace.path(), "127.0.0.1:7420").unwrap());
    let views = rusqlite::Connection::open(path("memory/views.db")).unwrap();
    views.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(views);
    let take_away = || {
        let beside = ["memory/views.db-wal", "memory/views.db-shm"];
        witnesses.iter().chain(&beside).for_each(|name| drop(fs::remove_file(path(name))));
    };
    let seen: Vec<Vec<u8>> = witnesses.iter().map(|name| fs::read(path(name)).unwrap()).collect();
    for (segment, ends) in [(Some(cut), "ends at entry 5"), (None, "ends at entry 0")] {
        match segment {
            Some(text) => workspace.write(SEGMENT, text),
            None => fs::remove_dir_all(path("memory/ledger")).unwrap(),
        }
        for (witness, text) in witnesses.iter().zip(&seen) {
            take_away();
            workspace.write(witness, text);
            // A state file to put something in the place of, which is not the one that remembers.
            if *witness != STATE && segment.is_some() {
                workspace.write(STATE, String::from_utf8_lossy(&seen[3]).replace("queued", "done"));
            }
            for command in
                [["state", "restore"], ["state", "adopt"], ["audit", "export"], ["audit", "verify"]]
            {
                let found = workspace.run(&command);
                let said = String::from_utf8_lossy(&found.stderr) + String::from_utf8_lossy(&found.stdout);
                assert_eq!(found.status.code(), Some(1), "{witness} {command:?}: {said}");
                if *witness == "memory/checkpoint" && segment.is_some() && command == ["audit", "verify"] {
                    assert!(said.contains("truncated"), "{said}");
                    continue;
                }
                let why = format!("{ends}, but entry 8 was acknowledged: ");
                assert!(said.contains(&why), "{witness} {command:?}: {said}");
                assert!(said.contains(&format!("{witness} has seen it")), "{witness} {command:?}: {said}");
            }
            assert_eq!(fs::read(path(witness)).unwrap(), *text, "it still remembers");
        }
    }
    // All that is left was kept elsewhere: a ledger that is gone is as short as one that is empty.
    take_away();
    workspace.write("kept.json", &seen[0]);
    for _ in 0..2 {
        let found = workspace.run(&["audit", "verify", "--checkpoint", "kept.json", "--json"]);
        assert_eq!(found.status.code(), Some(1), "{found:?}");
        let said: Json = serde_json::from_str(&stdout(&found)).unwrap();
        assert_eq!(said["code"], "truncated", "{said}");
        let _ = fs::create_dir(path("memory/ledger"));
    }
    workspace.write(SEGMENT, &whole);
    take_away();
    witnesses.iter().zip(seen).for_each(|(name, text)| workspace.write(name, text));
    assert_eq!(workspace.exit(&["audit", "verify"]), 0);
}

fn what_cannot_be_read_is_named(workspace: &Workspace) {
    let path = |name: &str| workspace.path().join(name);
    let refused = |arguments: &[&str], parts: &[&str]| {
        let found = workspace.run(arguments);
        let said = String::from_utf8(found.stderr).unwrap();
        assert!(found.status.code().is_some_and(|code| code >= 2), "{arguments:?}: {said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "{arguments:?}: {part} in {said}"));
    };
    let state = fs::read(path("memory/orchestration-state.json")).unwrap();
    fs::remove_file(path("memory/orchestration-state.json")).unwrap();
    fs::create_dir(path("memory/orchestration-state.json")).unwrap();
    for command in [["state", "verify"], ["state", "restore"], ["audit", "verify"]] {
        refused(&command, &["memory/orchestration-state.json: ", "move it away, and a start makes it again"]);
    }
    refused(&["serve", "--listen", "127.0.0.1:0"], &["memory/orchestration-state.json: ", "move it away"]);
    fs::remove_dir(path("memory/orchestration-state.json")).unwrap();
    workspace.write("memory/orchestration-state.json", state);

    workspace.write("memory/ledger/notes.txt", "x");
    let moved = ["memory/ledger/notes.txt does not belong into the ledger", "move it out of that directory"];
    refused(&["serve", "--listen", "127.0.0.1:0"], &moved);
    fs::remove_file(path("memory/ledger/notes.txt")).unwrap();

    let key = fs::read(path("memory/gateway.key")).unwrap();
    fs::remove_file(path("memory/gateway.key")).unwrap();
    refused(&["audit", "verify"], &["memory/gateway.key is missing, and this workspace has a ledger"]);
    workspace.write("memory/gateway.key", key);
    fs::set_permissions(path("memory/gateway.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();

    workspace.write("memory/checkpoint", "");
    refused(
        &["serve", "--listen", "127.0.0.1:0"],
        &["memory/checkpoint: is not a checkpoint", "put the right one back from a backup"],
    );
}
