//! A ledger moves to a database and back, and is the same ledger.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use handoffd::gateway::{Gateway, GatewayFault, WorkspaceLock};
use handoffd::ledger::postgres::{Database, PostgresLog};
use handoffd::ledger::{AppendFault, Log as _, RealDisk, SegmentLog};
use serde_json::Value as Json;

use crate::cluster::{Cluster, until};
use crate::replicas::{fleet, write};
use crate::specs::plain;
use crate::{append, batch_on};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
    command.args(arguments).env_remove("HANDOFFD_WORKSPACE").env("NO_COLOR", "1").output().unwrap()
}

fn copy(from: &str, to: &str) -> Result<Json, (i32, String)> {
    let output = run(&["ledger", "copy", "--from", from, "--to", to, "--json"]);
    match output.status.code() {
        Some(0) => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        code => Err((code.unwrap(), String::from_utf8(output.stderr).unwrap())),
    }
}

/// The same into the place of a ledger that nobody has used.
fn replace(from: &str, to: &str) -> Result<Json, (i32, String)> {
    let output = run(&["ledger", "copy", "--replace", "--from", from, "--to", to, "--json"]);
    match output.status.code() {
        Some(0) => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        code => Err((code.unwrap(), String::from_utf8(output.stderr).unwrap())),
    }
}

#[track_caller]
fn refused(from: &str, to: &str, code: i32, part: &str) {
    let (found, said) = copy(from, to).unwrap_err();
    assert!(found == code && said.contains(part), "{found}: {said}");
}

/// What the workspace's commands print.
fn said(root: &Path, arguments: &[&str]) -> (i32, Vec<u8>) {
    let root = root.to_str().unwrap();
    let output = run(&[&["--workspace", root], arguments].concat());
    (output.status.code().unwrap(), output.stdout)
}

fn export(root: &Path) -> Vec<u8> {
    let (code, text) = said(root, &["audit", "export"]);
    assert_eq!(code, 0);
    text
}

/// The segments, by name.
fn segments(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found: Vec<_> = std::fs::read_dir(root.join("memory/ledger"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().into(), std::fs::read(&path).unwrap()))
        .collect();
    found.sort();
    found
}

fn segment_log(root: &Path) -> SegmentLog {
    SegmentLog::open(Arc::new(RealDisk), &root.join("memory/ledger"), "unused", &[]).unwrap().0
}

/// A workspace that a gateway has served, with batches of many sizes in its ledger and a checkpoint beside it.
fn workspace() -> tempfile::TempDir {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    assert_eq!(said(root, &["init"]).0, 0);
    let policies = handoffd::policy::Workspace::new(root).load_policies().unwrap();
    let in_force = handoffd::engine::InForce::of_files(Arc::new(policies), Arc::default(), Vec::new());
    let gateway = Gateway::open(root, "127.0.0.1:7420").unwrap();
    gateway.engine().put_in_force_and_wait(Arc::new(in_force)).unwrap();
    gateway.close().unwrap();
    grow(root, "a", 40);
    workspace
}

fn grow(root: &Path, name: &str, batches: u64) {
    let mut log = segment_log(root);
    for n in 0..batches {
        let batch = batch_on(log.topic_id(), log.head(), log.last_timestamp(), name, n % 4 + 1);
        log.append(log.head(), &batch).unwrap();
    }
}

#[test]
fn a_ledger_that_went_to_a_database_and_back_is_the_same_bytes() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let url = cluster.url(&name);
    let (home, away) = (workspace(), tempfile::tempdir().unwrap());
    let (home_text, away_text) = (home.path().to_str().unwrap(), away.path().to_str().unwrap());
    let before = export(home.path());

    let there = copy(home_text, &url).unwrap();
    let entries = u64::try_from(before.split(|byte| *byte == b'\n').count() - 1).unwrap();
    assert_eq!((&there["entries"], &there["bodies"]), (&Json::from(entries), &Json::from(100)), "{there}");
    assert_eq!((&there["resumedAt"], &there["checkpoints"]), (&Json::from(0), &Json::from(1)));
    // The source is closed, and says where it went.
    let fault = Gateway::open(home.path(), "127.0.0.1:7420").unwrap_err();
    assert!(matches!(&fault, GatewayFault::Closed { .. }));
    let said_why = fault.to_string();
    assert!(
        said_why.contains(&format!("it was copied to `postgres://127.0.0.1:{}/{name}`", cluster.port)),
        "{said_why}"
    );
    assert_eq!(export(home.path()), before, "it can still be read");
    // A second copy of it would be a second ledger.
    refused(home_text, &cluster.url(&cluster.database()), 1, "cannot be copied: it was copied to");

    // The database takes its place; when it goes on, and comes home, the files grow by what was added.
    let database = Database::open_existing(&url).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    append(&mut log, "b", 3).unwrap();
    let back = copy(&url, away_text).unwrap();
    assert_eq!((&back["entries"], &back["bodies"]), (&Json::from(entries + 3), &Json::from(103)));
    assert!(matches!(append(&mut log, "c", 1), Err(AppendFault::Closed(_))), "one ledger at a time");
    let after = export(away.path());
    assert_eq!(after.get(..before.len()), Some(before.as_slice()));

    let home_again = copy(away_text, home_text).unwrap();
    assert_eq!(home_again["resumedAt"], entries, "what was there is not copied again");
    assert_eq!(export(home.path()), after);
    assert_eq!(segments(home.path()), segments(away.path()), "bodies and commit lines, too");
    assert_eq!(said(home.path(), &["audit", "verify"]).0, 0, "against the checkpoint from before");
    Gateway::open(home.path(), "127.0.0.1:7420").unwrap().close().unwrap();
    refused(away_text, &url, 1, "cannot be copied: it was copied to");
}

#[test]
fn a_copy_that_was_cut_short_goes_on_where_it_was_and_cannot_be_used_before() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let url = cluster.url(&name);
    let home = workspace();
    let home_text = home.path().to_str().unwrap();
    let whole = copy(home_text, &url).unwrap();
    let rows = || {
        cluster.psql(&name, "select md5(string_agg(e::text, ' ' order by sequence)) from handoffd_entries e")
    };
    let bodies = || {
        cluster.psql(
            &name,
            "select md5(string_agg(b::text, ' ' order by sequence, place)) from handoffd_bodies b",
        )
    };
    let (all, all_bodies) = (rows(), bodies());
    // As it was when the last batches were still missing.
    let cut =
        cluster.psql(&name, "select max(sequence) from handoffd_entries where ends_batch and sequence < 30");
    cluster.psql(
        &name,
        &format!(
            "delete from handoffd_entries where sequence > {cut}; delete from handoffd_bodies where sequence > {cut}; \
             update handoffd_ledger set closed = '{{\"closed\":\"unfinished\",\"from\":\"x\"}}'"
        ),
    );
    let database = Database::open_existing(&url).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    let fault = append(&mut log, "b", 1).unwrap_err();
    assert!(fault.to_string().contains("has not been finished; run `handoffd ledger copy` again"), "{fault}");
    let away = tempfile::tempdir().unwrap();
    refused(&url, away.path().to_str().unwrap(), 1, "has not been finished");

    let resumed = copy(home_text, &url).unwrap();
    assert_eq!(resumed["resumedAt"].to_string(), cut);
    assert_eq!((&resumed["entries"], &resumed["runningHash"]), (&whole["entries"], &whole["runningHash"]));
    assert_eq!((rows(), bodies()), (all, all_bodies));
    assert_eq!(database.closed().unwrap(), None);
}

#[test]
fn a_target_that_does_not_fit_is_refused_and_the_source_stays_open() {
    let cluster = Cluster::shared();
    let home = workspace();
    let (root, home_text) = (home.path(), home.path().to_str().unwrap());
    let topic = segment_log(root).topic_id().to_owned();
    let is_open = || !root.join("memory/ledger.closed").exists();

    let other = cluster.url(&cluster.database());
    Database::open(&other, "gw_other").unwrap();
    refused(home_text, &other, 1, "has another ledger");
    assert!(is_open());

    let name = cluster.database();
    let used = cluster.url(&name);
    let database = Database::open(&used, &topic).unwrap();
    append(&mut PostgresLog::open(&database, &[]).unwrap(), "z", 1).unwrap();
    refused(home_text, &used, 1, "has entries and is open: somebody may be using it");
    assert!(is_open());
    // Closed, and with another history.
    cluster.psql(&name, "update handoffd_ledger set closed = '{\"closed\":\"unfinished\",\"from\":\"x\"}'");
    refused(home_text, &used, 1, "entry 1 in postgres://");
    assert!(is_open());
    assert_eq!(cluster.psql(&name, "select count(*) from handoffd_entries"), "1");

    let empty = tempfile::tempdir().unwrap();
    refused(empty.path().to_str().unwrap(), &other, 2, "has no entries yet");
    refused(&cluster.url(&cluster.database()), home_text, 3, "it has no ledger");
    // A new epoch that has not begun would be forgotten.
    let restored = root.join("memory/restored.json");
    std::fs::File::create(&restored).unwrap();
    refused(home_text, &cluster.url(&cluster.database()), 2, "its new epoch has not begun");
    std::fs::remove_file(&restored).unwrap();
    let held = WorkspaceLock::take(&root.join("memory/.lock"), "127.0.0.1:7420").unwrap();
    refused(home_text, &cluster.url(&cluster.database()), 3, "one gateway per workspace");
    drop(held);
    refused(home_text, "postgres://u:hunter2@127.0.0.1:1/d", 3, "could not be asked");
    assert!(is_open());
    assert!(copy(home_text, &cluster.url(&cluster.database())).is_ok());
}

#[test]
fn a_copy_that_does_not_verify_stays_closed() {
    let cluster = Cluster::shared();
    let home = workspace();
    let name = cluster.database();
    let url = cluster.url(&name);
    copy(home.path().to_str().unwrap(), &url).unwrap();
    // A chain that hashes well and says something that no gateway writes.
    let database = Database::open_existing(&url).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    let mut builder = handoffd::ledger::BatchBuilder::new(log.topic_id(), log.head(), log.last_timestamp());
    builder.event("{\"wire\":\"1.1\"}".to_owned(), crate::at(1));
    let batch = builder.seal().unwrap();
    log.append(log.head(), &batch).unwrap();
    let away = tempfile::tempdir().unwrap();
    refused(&url, away.path().to_str().unwrap(), 1, "the copy does not verify and stays closed");
    assert!(matches!(Gateway::open(away.path(), "127.0.0.1:7420"), Err(GatewayFault::Closed { .. })));
}

#[test]
fn a_database_that_was_served_by_mistake_is_replaced_only_when_nobody_used_it() {
    let cluster = Cluster::start();
    let name = cluster.database();
    let url = cluster.url(&name);
    let home = workspace();
    let from = home.path().to_str().unwrap();
    let expected = export(home.path());
    let mut mistaken = fleet(&url, 1);
    // Somebody is still there.
    refused(from, &url, 1, "stop the gateways that are served on it");
    let (code, said) = replace(from, &url).unwrap_err();
    assert!(code == 1 && said.contains("stop the gateways that are served on it"), "{said}");
    mistaken[0].kill();
    until(|| copy(from, &url).unwrap_err().1.contains("`--replace` deletes it"));
    let count = || cluster.psql(&name, "select count(*) from handoffd_entries");
    assert_ne!(count(), "0", "nothing was changed so far");
    let moved = replace(from, &url).unwrap();
    assert_eq!(moved["entries"].to_string(), count());
    assert_eq!(Database::open_existing(&url).unwrap().topic_id(), moved["topicId"].as_str().unwrap());
    let back = tempfile::tempdir().unwrap();
    copy(&url, back.path().to_str().unwrap()).unwrap();
    assert_eq!(export(back.path()), expected);
    assert_eq!(cluster.psql(&name, "select count(*) from handoffd_shared where kind = 'token'"), "0");
}

#[test]
fn a_database_with_a_decision_in_it_is_never_replaced() {
    let cluster = Cluster::start();
    let name = cluster.database();
    let url = cluster.url(&name);
    let home = workspace();
    let from = home.path().to_str().unwrap();
    let mut used = fleet(&url, 1);
    assert_eq!(used[0].post("/v1/handoffs", &plain("used0000")).status, 201);
    used[0].kill();
    let entries =
        || cluster.psql(&name, "select count(*), string_agg(running_hash::text, '') from handoffd_entries");
    let before = entries();
    for tried in [copy(from, &url), replace(from, &url)] {
        let (code, said) = tried.unwrap_err();
        assert!(code == 1 && said.contains("so it is never replaced"), "{said}");
    }
    assert_eq!(entries(), before);
    // Nor is a workspace: whoever wants that deletes it.
    let other = workspace();
    let (code, said) = replace(from, other.path().to_str().unwrap()).unwrap_err();
    assert!(code == 1 && said.contains("only a ledger in a database is replaced"), "{said}");
}

#[test]
fn checkpoints_of_all_gateways_come_home_and_go_away_again() {
    let cluster = Cluster::shared();
    let (first, second, third) = (workspace(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [first, second, third] = [&first, &second, &third].map(|one| one.path());
    let text = |root: &Path| root.to_str().unwrap().to_owned();
    let url = |name: String| cluster.url(&name);
    let stored = |url: &str| {
        let mut stored = Database::open_existing(url).unwrap().checkpoints().unwrap();
        stored.sort_by(|one, two| one.key_id.cmp(&two.key_id));
        stored
    };
    let verified = |root: &Path, expected: u64| {
        let (code, report) = said(root, &["--json", "audit", "verify"]);
        let report: Json = serde_json::from_slice(&report).unwrap();
        assert_eq!((code, &report["checkpoints"]), (0, &expected.into()), "{report}");
    };
    // One gateway signed one, and another gateway goes on with the ledger and signs one, too.
    let away = url(cluster.database());
    assert_eq!(copy(&text(first), &away).unwrap()["checkpoints"], 1);
    let signed = stored(&away);
    assert_eq!(copy(&away, &text(second)).unwrap()["checkpoints"], 1);
    assert!(!second.join("memory/checkpoint").exists(), "it is not this gateway's own");
    verified(second, 1);
    Gateway::open(second, "127.0.0.1:7420").unwrap().close().unwrap();
    verified(second, 2);
    // Both go to a database, and home to a gateway that has signed none.
    let away = url(cluster.database());
    assert_eq!(copy(&text(second), &away).unwrap()["checkpoints"], 2);
    let both = stored(&away);
    assert!(both.len() == 2 && both.contains(&signed[0]), "{both:?}");
    assert_eq!(copy(&away, &text(third)).unwrap()["checkpoints"], 2);
    verified(third, 2);
    // They are held against the ledger as if they were its own, also by a start.
    let path = third.join("memory/checkpoints.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    write(&path, whole.replace(&signed[0].signature, &"0".repeat(signed[0].signature.len())));
    assert_eq!(said(third, &["audit", "verify"]).0, 1);
    let fault = Gateway::open(third, "127.0.0.1:7420").unwrap_err();
    assert!(matches!(fault, GatewayFault::BadCheckpoint(_)), "{fault}");
    write(&path, &whole);
    Gateway::open(third, "127.0.0.1:7420").unwrap().close().unwrap();
    let away = url(cluster.database());
    assert_eq!(copy(&text(third), &away).unwrap()["checkpoints"], 3);
}

#[test]
fn a_ledger_is_not_taken_from_under_gateways_that_are_served_on_it() {
    let cluster = Cluster::shared();
    let name = cluster.database();
    let url = cluster.url(&name);
    let mut replicas = fleet(&url, 2);
    let away = tempfile::tempdir().unwrap();
    let away_text = away.path().to_str().unwrap();
    refused(&url, away_text, 3, "2 gateway(s) are served on the ledger in postgres://");
    replicas.pop();
    until(|| copy(&url, away_text).unwrap_err().1.contains("1 gateway(s) are served"));
    assert_eq!(replicas[0].post("/v1/handoffs", &plain("under000")).status, 201);
    // Another ledger in the same database is another one.
    cluster.psql(&name, "create schema other");
    let other = format!("{url}?options=-csearch_path%3Dother");
    Database::open(&other, "gw_other").unwrap();
    refused(&other, away_text, 2, "has no entries yet");
    let output = run(&["ledger", "copy", "--even-if-served", "--from", &url, "--to", away_text, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    until(|| replicas[0].ready().0 == 503);
}

#[test]
fn a_copy_out_of_a_database_brings_what_its_gateway_signed_and_doctor_suspects_nobody() {
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let mut replica = fleet(&url, 1).remove(0);
    assert_eq!(replica.post("/v1/handoffs", &plain("signed0001")).status, 201);
    replica.signal("TERM");
    replica.ended();
    // As many more as make a checkpoint due.
    let database = Database::open_existing(&url).unwrap();
    let mut log = PostgresLog::open(&database, &[]).unwrap();
    for name in ["a", "b", "c", "d", "e"] {
        append(&mut log, name, 2_000).unwrap();
    }
    drop((log, database));
    let away = tempfile::tempdir().unwrap();
    assert_eq!(said(away.path(), &["init"]).0, 0);
    until(|| match copy(&url, away.path().to_str().unwrap()) {
        Ok(copied) => {
            assert_eq!(copied["checkpoints"], 1, "{copied}");
            true
        }
        // The connections of who was served last are still going.
        Err((code, _)) => {
            assert_eq!(code, 3);
            false
        }
    });
    let doctor = run(&["--workspace", away.path().to_str().unwrap(), "doctor"]);
    let text = String::from_utf8([doctor.stdout, doctor.stderr].concat()).unwrap();
    assert!(text.contains("no gateway has served the ledger here"), "{text}");
    assert!(!text.contains("somebody changed the ledger"), "{text}");
}
