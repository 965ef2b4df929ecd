//! Starts: who holds the workspace, what stops one, and what is known again after it.

mod damage;
mod keys;

use std::fs;
use std::path::Path;

use super::*;
use crate::engine::{Asker, Candidate, Ruling};
use crate::gates::Decision;
use crate::policy::Workspace;

const CANONICAL: &str = include_str!("../../docs/examples/taskspec-canonical.json");

fn decide(gateway: &Gateway, n: usize) -> Decision {
    let policies = Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap());
    let id = format!("hs_gateway_{n:04}");
    let body = CANONICAL.replace("hs_20260218_router_0001", &id).replace("idem_swap_cycle_9001", &id);
    let ruling = Ruling { policies, keyring: Arc::default(), asker: Asker::Agent("decision-router".into()) };
    let candidate = Candidate::judge(body.into(), ruling, clock::now()).unwrap();
    gateway.engine().submit_and_wait(candidate).unwrap().decision
}

fn open(workspace: &Path) -> Result<Gateway, String> {
    Gateway::open(workspace, "127.0.0.1:7420").map_err(|fault| fault.to_string())
}

#[expect(clippy::disallowed_methods, reason = "another hand")]
fn overwrite(path: &Path, text: impl AsRef<[u8]>) {
    fs::write(path, text).unwrap();
}

/// Were the indexes made when the rows were there? That is how a rebuild does it, and what makes it fast.
fn indexes_came_last(views: &Path) -> bool {
    let connection = rusqlite::Connection::open(views).unwrap();
    let question = "SELECT type FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";
    let mut statement = connection.prepare(question).unwrap();
    let made: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(made.iter().any(|kind| kind == "index"), "{made:?}");
    made.is_sorted_by(|one, next| one == "table" || next == "index")
}

#[test]
fn a_second_gateway_is_told_who_holds_the_workspace() {
    let workspace = tempfile::tempdir().unwrap();
    let first = open(workspace.path()).unwrap();
    let second = open(workspace.path()).unwrap_err();
    let pid = std::process::id();
    assert!(
        second.ends_with(&format!(
            ".lock is held by process {pid} at 127.0.0.1:7420: one gateway per workspace"
        )),
        "{second}"
    );
    assert_eq!(decide(&first, 1), Decision::Allowed);
    first.close().unwrap();
    open(workspace.path()).unwrap();
}

/// Killed between the first state file and the first entry: the ledger has no name yet, and gets another one.
#[test]
fn a_start_that_ended_before_the_first_entry_stands_in_nobodys_way() {
    let workspace = tempfile::tempdir().unwrap();
    let files = Files::of(workspace.path());
    let published = || fs::read_to_string(files.state()).unwrap();
    drop(open(workspace.path()).unwrap());
    let first = published();
    drop(open(workspace.path()).unwrap());
    assert_ne!(published(), first, "it is made again, for the ledger that there is now");
    let gateway = open(workspace.path()).unwrap();
    assert_eq!(decide(&gateway, 1), Decision::Allowed);
    gateway.close().unwrap();
    let last = published();
    drop(open(workspace.path()).unwrap());
    assert_eq!(published(), last);
    // Only the state before the first entry is anybody's.
    fs::remove_dir_all(files.ledger()).unwrap();
    fs::remove_file(files.checkpoint()).unwrap();
    let _ = fs::remove_file(files.journal());
    let gone = open(workspace.path()).unwrap_err();
    assert!(gone.contains("ends at entry 0, but entry 3 was acknowledged"), "{gone}");
}

#[test]
fn a_ledger_that_was_cut_or_deleted_after_its_checkpoint_is_noticed() {
    let workspace = tempfile::tempdir().unwrap();
    let gateway = open(workspace.path()).unwrap();
    assert_eq!((decide(&gateway, 1), decide(&gateway, 2)), (Decision::Allowed, Decision::Allowed));
    let (public_key, topic_id) = (gateway.public_key(), gateway.topic_id().to_owned());
    let checkpoint = gateway.close().unwrap().unwrap();
    assert_eq!(checkpoint.verify(&public_key).map(|head| head.sequence), Some(6));
    let gateway = open(workspace.path()).unwrap();
    assert_eq!((gateway.public_key(), gateway.topic_id().to_owned()), (public_key, topic_id), "both last");
    drop(gateway);

    let files = Files::of(workspace.path());
    let segment = fs::read_dir(files.ledger()).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&segment).unwrap();
    let state = fs::read(files.state()).unwrap();
    let check = |change: &dyn Fn(), fault: &str| {
        change();
        let found = open(workspace.path()).unwrap_err();
        assert!(found.contains(fault), "{found}");
        overwrite(&segment, &whole);
        overwrite(&files.state(), &state);
    };
    let first_commit = whole.windows(10).position(|window| window == b"{\"commit\":").unwrap();
    let end = first_commit + whole[first_commit..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    check(&|| overwrite(&segment, &whole[..end]), "the ledger ends at entry 3, but entry 6 was acknowledged");
    check(&|| fs::remove_file(&segment).unwrap(), "the ledger ends at entry 0, but entry 6 was acknowledged");
    check(&|| overwrite(&segment, &whole[..whole.len() - 40]), "is damaged");
    check(
        &|| overwrite(&files.state(), String::from_utf8(state.clone()).unwrap().replace("queued", "done")),
        "somebody edited it; `handoffd state restore`",
    );
    check(&|| overwrite(&files.state(), "{}"), "is not a state file");
    // A file that is gone or empty is simply made again.
    fs::remove_file(files.state()).unwrap();
    drop(open(workspace.path()).unwrap());
    overwrite(&files.state(), "");
    drop(open(workspace.path()).unwrap());
    assert_eq!(fs::read(files.state()).unwrap(), state);
    // A checkpoint of another key says nothing about this ledger.
    let other = Checkpoint::sign("gw_other", Head::genesis("x"), clock::now(), &Seed::from_bytes(&[9; 32]));
    overwrite(&files.checkpoint(), serde_json::to_vec(&other).unwrap());
    assert!(open(workspace.path()).unwrap_err().ends_with("is not signed by this gateway's key"));
}

/// Killed, and without its checkpoint, so that nothing is left of three decisions but the ledger and what follows it.
fn killed(workspace: &Path) -> Files {
    let gateway = open(workspace).unwrap();
    (1..=3).for_each(|n| assert_eq!(decide(&gateway, n), Decision::Allowed));
    assert!(gateway.views().wait_for(9, std::time::Duration::from_secs(30)));
    gateway.stop();
    gateway.snapshots.write().unwrap();
    drop(gateway);
    let files = Files::of(workspace);
    // It speaks of the first entries only.
    fs::remove_file(files.checkpoint()).unwrap();
    // All of them in one file, for whoever copies it.
    let views = rusqlite::Connection::open(files.views()).unwrap();
    views.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    files
}

/// Puts a file back, and takes away what SQLite would read in its place.
fn put_back(path: &Path, text: &[u8]) {
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{suffix}", path.display()));
    }
    overwrite(path, text);
}

/// The end of the segment is gone from so many commit lines before its end on; whole lines, or with half of the next.
fn cut(segment: &Path, batches: usize, is_torn: bool) {
    let text = fs::read_to_string(segment).unwrap();
    let ends: Vec<usize> = text.match_indices("{\"commit\":").map(|(at, _)| at).collect();
    let kept = &text[..ends[ends.len() - 1 - batches]];
    let whole = kept.len() + text[kept.len()..].find('\n').unwrap() + 1;
    overwrite(segment, &text[..if is_torn { whole + 40 } else { whole }]);
}

#[test]
fn whatever_has_seen_an_entry_stops_the_start_of_a_ledger_that_lost_it() {
    let place = tempfile::tempdir().unwrap();
    let files = killed(place.path());
    let segment = fs::read_dir(files.ledger()).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&segment).unwrap();
    let seen: Vec<_> = [files.views(), files.state_snapshot(), files.state()]
        .into_iter()
        .map(|path| (fs::read(&path).unwrap(), path))
        .collect();
    for (_, path) in &seen {
        // It alone has seen the end, which is gone, or another one by now.
        for (_, other) in &seen {
            let _ = fs::remove_file(other);
        }
        let (text, _) = seen.iter().find(|(_, other)| other == path).unwrap();
        let refused = |why: &str| {
            let found = fs::read(&segment).ok();
            put_back(path, text);
            let refused = open(place.path()).unwrap_err();
            assert!(refused.contains(why), "{}: {refused}", path.display());
            assert!(refused.contains(&format!("{} has seen ", path.display())), "{refused}");
            assert_eq!(fs::read(&segment).ok(), found, "nothing was cut off or put in its place");
            assert_eq!(fs::read(path).unwrap(), *text, "and it still knows");
        };
        cut(&segment, 1, false);
        refused("the ledger ends at entry 6, but entry 9 was acknowledged");
        overwrite(&segment, &whole);
        cut(&segment, 1, true);
        refused("the ledger is damaged in");
        fs::remove_file(&segment).unwrap();
        refused("the ledger ends at entry 0, but entry 9 was acknowledged");
        overwrite(&segment, &whole);
        cut(&segment, 1, false);
        fs::remove_file(path).unwrap();
        let gateway = open(place.path()).unwrap();
        assert_eq!(decide(&gateway, 9), Decision::Allowed);
        gateway.stop();
        drop(gateway);
        fs::remove_file(files.checkpoint()).unwrap();
        for (_, other) in &seen {
            let _ = fs::remove_file(other);
        }
        refused("entry 9 is not the one that was acknowledged");
        overwrite(&segment, &whole);
    }
    // Whole again, it starts, and whoever saw less is no worse for it.
    for (text, path) in &seen {
        put_back(path, text);
    }
    let gateway = open(place.path()).unwrap();
    assert_eq!((gateway.engine().head(), gateway.views().applied()), (9, 9));
    assert_eq!(decide(&gateway, 4), Decision::Allowed);
    gateway.stop();
    drop(gateway);
    for (text, path) in &seen {
        put_back(path, text);
        drop(open(place.path()).unwrap());
    }
}

/// A checkpoint speaks of an entry in a segment that a start does not read through.
#[test]
fn an_entry_of_a_full_segment_is_held_against_what_has_seen_it() {
    let ledger = tempfile::tempdir().unwrap();
    let gateway = open(ledger.path()).unwrap();
    assert_eq!(decide(&gateway, 1), Decision::Allowed);
    let source = gateway.ledger().clone();
    let entry = source.entry(2).unwrap().unwrap();
    let files = Files::of(ledger.path());
    let record = |running_hash| {
        let head = Head { sequence: 2, running_hash };
        Record::new(PathBuf::from("memory/checkpoint"), head, remembering::Witness::Signed)
    };
    remembering::hold(&files, &source, &[record(entry.running_hash)]).unwrap();
    let other = record(Head::genesis("gw_other").running_hash);
    let refused = remembering::hold(&files, &source, &[other]).unwrap_err().to_string();
    assert!(
        refused.starts_with("entry 2 is not the one that was acknowledged: memory/checkpoint has seen it")
    );
}

#[test]
fn whatever_is_left_of_a_ledger_says_that_the_workspace_is_not_new() {
    let place = tempfile::tempdir().unwrap();
    let files = killed(place.path());
    let seed = gateway_seed(&files.gateway_key()).unwrap();
    let mut left = vec![files.state_snapshot(), files.views(), files.state(), files.ledger()];
    while let Some(first) = left.first().cloned() {
        assert_eq!(remembering::any(&files, &seed).unwrap(), Some(first.clone()));
        left.remove(0);
        if first.is_dir() { fs::remove_dir_all(&first).unwrap() } else { fs::remove_file(&first).unwrap() }
    }
    files.make_directories().unwrap();
    assert_eq!(remembering::any(&files, &seed).unwrap(), None);
    overwrite(&files.journal(), "\n");
    assert_eq!(remembering::any(&files, &seed).unwrap(), Some(files.journal()));
    // Another workspace's, by another key: it says nothing of this one.
    fs::remove_file(files.journal()).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    overwrite(&files.state_snapshot(), fs::read(killed(elsewhere.path()).state_snapshot()).unwrap());
    assert_eq!(remembering::any(&files, &seed).unwrap(), None);
}

#[test]
fn a_query_made_right_after_a_reply_sees_that_decision() {
    use crate::views::HandoffFilter;
    use std::time::Duration;
    let workspace = tempfile::tempdir().unwrap();
    let patience = Duration::from_secs(30);
    let gateway = open(workspace.path()).unwrap();
    let ids = |gateway: &Gateway| -> Vec<String> {
        let page = gateway.reader().unwrap().handoffs(&HandoffFilter::default(), None, 100).unwrap();
        page.rows.into_iter().map(|row| row.handoff_id).collect()
    };
    for n in 1..=5 {
        decide(&gateway, n);
        assert!(gateway.views().wait_for(3 * n as u64, patience), "{:?}", gateway.views().fault());
        assert_eq!(ids(&gateway).len(), n);
    }
    assert!(
        !gateway.views().wait_for(999, Duration::ZERO),
        "what is not there is not waited for without end"
    );
    let seen = ids(&gateway);
    gateway.close().unwrap();
    let path = Files::of(workspace.path()).views();
    assert!(!indexes_came_last(&path), "rows and indexes grew together");
    // Deleted, empty, damaged, or of another ledger: made again.
    for change in 0..4 {
        match change {
            0 => fs::remove_file(&path).unwrap(),
            1 => overwrite(&path, ""),
            2 => overwrite(&path, "not a database, but long enough to look at".repeat(100)),
            _ => {
                let elsewhere = tempfile::tempdir().unwrap();
                open(elsewhere.path()).unwrap().close().unwrap();
                fs::copy(Files::of(elsewhere.path()).views(), &path).map(drop).unwrap();
            }
        }
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{suffix}", path.display()));
        }
        let mut told = Vec::new();
        let gateway = Gateway::open_telling(workspace.path(), "x", Opening::default(), &mut |done, all| {
            told.push((done, all));
        })
        .unwrap();
        assert_eq!(ids(&gateway), seen, "{change}");
        assert_eq!(told, [(0, 15)], "{change}");
        gateway.close().unwrap();
        assert!(indexes_came_last(&path), "{change}: applied piece by piece");
    }
}

#[test]
fn a_start_goes_on_from_the_snapshot_and_an_edited_file_is_found_all_the_same() {
    let workspace = tempfile::tempdir().unwrap();
    let files = Files::of(workspace.path());
    let gateway = open(workspace.path()).unwrap();
    let topic_id = gateway.topic_id().to_owned();
    (1..=3).for_each(|n| assert_eq!(decide(&gateway, n), Decision::Allowed));
    gateway.close().unwrap();
    let seed = gateway_seed(&files.gateway_key()).unwrap();
    let starts_at = |published: Option<&str>| {
        snapshots::start_from(&files, &Source::files(&files.ledger()), &topic_id, &seed, published)
            .unwrap()
            .0
            .head()
            .sequence
    };
    let state = fs::read_to_string(files.state()).unwrap();
    let snapshot = fs::read_to_string(files.state_snapshot()).unwrap();
    assert_eq!((starts_at(Some(&state)), starts_at(None)), (9, 9));
    let edited = state.replace("queued", "done");
    overwrite(&files.state(), &edited);
    assert!(open(workspace.path()).unwrap_err().contains("somebody edited it"));
    // A published file from before the snapshot can only be measured by the whole ledger.
    let earlier = state.replace("\"sequence\":9", "\"sequence\":6");
    assert_eq!(starts_at(Some(&earlier)), 0);
    overwrite(&files.state(), &state);
    // Gone on from one that is behind; or from the ledger where there is none that is sound.
    let gateway = open(workspace.path()).unwrap();
    assert_eq!(decide(&gateway, 4), Decision::Allowed);
    drop(gateway);
    let state = fs::read(files.state()).unwrap();
    assert_eq!(starts_at(None), 9, "the gateway was not closed, so the snapshot is the old one");
    for text in [snapshot.as_str(), &snapshot.replace("queued", "failed"), ""] {
        overwrite(&files.state_snapshot(), text);
        drop(open(workspace.path()).unwrap());
        assert_eq!(fs::read(files.state()).unwrap(), state);
    }
    // Of another ledger's past: the same key and topic, but not this running hash.
    let other = crate::state::StateView::empty(&topic_id);
    let foreign = crate::state::seal_snapshot(&other, &topic_id, &seed).unwrap();
    overwrite(&files.state_snapshot(), foreign);
    assert_eq!(starts_at(None), 0);
}

/// Each file that remembers an entry is held against the ledger by itself, and the one that differs is named.
#[test]
fn a_state_file_that_names_another_entry_is_what_was_edited_where_all_else_agrees() {
    let workspace = tempfile::tempdir().unwrap();
    let files = Files::of(workspace.path());
    let gateway = open(workspace.path()).unwrap();
    (1..=3).for_each(|n| assert_eq!(decide(&gateway, n), Decision::Allowed));
    gateway.close().unwrap();
    let whole = fs::read_to_string(files.state()).unwrap();
    let hash = whole.split("\"runningHash\":\"").nth(1).unwrap().get(..64).unwrap().to_owned();
    let number = |n: u64| whole.replace("\"sequence\":9", &format!("\"sequence\":{n}"));
    let zeros = whole.replace(&hash, &"0".repeat(64));
    let refused = |text: &str| {
        overwrite(&files.state(), text);
        let refused = open(workspace.path()).unwrap_err();
        assert!(refused.contains("memory/orchestration-state.json "), "{refused}");
        refused
    };
    let edited = |text: &str, how: &str| {
        let refused = refused(text);
        assert!(refused.contains(how), "{refused}");
        assert!(refused.contains("somebody edited it; `handoffd state restore`"), "{refused}");
        assert!(!refused.contains("checkpoint has seen"), "{refused}");
    };
    edited(&zeros, "has another running hash for entry 9 than the ledger, which ");
    edited(&number(10), "names entry 10 with the running hash of entry 9");
    edited(&number(6), "names entry 6 with the running hash of entry 9");
    // The hash alone was changed: nothing signed goes so far, and the file says nothing else of another entry.
    fs::remove_file(files.checkpoint()).unwrap();
    fs::remove_file(files.state_snapshot()).unwrap();
    edited(&zeros, "is what the ledger gives at entry 9, but for the running hash");
    // It may as well be all that tells of entries that are lost.
    let both = number(10).replace(&hash, &"0".repeat(64));
    for (text, lost) in [
        (both.clone(), "the ledger ends at entry 9, but entry 10 was acknowledged"),
        (zeros.replace("queued", "done"), "entry 9 is not the one that was acknowledged"),
    ] {
        let refused = refused(&text);
        assert!(refused.contains(lost) && !refused.contains("state restore"), "{refused}");
        assert!(refused.ends_with("move it away: a start makes it again"), "{refused}");
    }
    // Where something was set aside, that is what the file speaks of.
    overwrite(&files.ledger().join("00000000000000000001.jsonl.1.torn"), "torn");
    assert!(!refused(&both).contains("move it away"));
}

#[test]
fn what_was_decided_before_a_restart_is_known_after_it() {
    let workspace = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let gateway = open(workspace.path()).unwrap();
        // The same keys with the same content each time: decided once.
        (1..=5).for_each(|n| assert_eq!(decide(&gateway, n), Decision::Allowed));
        gateway.close().unwrap();
    }
    let (_, head) = crate::ledger::inspect(&Files::of(workspace.path()).ledger()).unwrap().unwrap();
    assert_eq!(head.sequence, 15);
}

#[test]
fn views_that_are_deleted_while_in_use_are_noticed_and_made_again() {
    let workspace = tempfile::tempdir().unwrap();
    let path = Files::of(workspace.path()).views();
    let gateway = open(workspace.path()).unwrap();
    assert_eq!(decide(&gateway, 1), Decision::Allowed);
    assert!(gateway.views_trouble().is_none());
    let whole = fs::read(&path).unwrap();
    overwrite(&path, "");
    assert!(gateway.views_trouble().is_some(), "there is nothing left in it");
    overwrite(&path, &whole);
    assert!(gateway.views_trouble().is_none());
    fs::remove_file(&path).unwrap();
    assert!(gateway.views_trouble().is_some());
    overwrite(&path, "");
    assert!(gateway.views_trouble().is_some(), "a file of the same name is another file");
    fs::remove_file(&path).unwrap();
    // What is decided does not depend on it, and what was claimed stays claimed.
    assert_eq!((decide(&gateway, 2), decide(&gateway, 2)), (Decision::Allowed, Decision::Allowed));
    let head = gateway.engine().head();
    gateway.close().unwrap();
    let gateway = open(workspace.path()).unwrap();
    assert!(gateway.views_trouble().is_none());
    assert_eq!((gateway.engine().head(), gateway.views().applied()), (head, head));
    assert!(gateway.reader().unwrap().handoff("hs_gateway_0002").unwrap().is_some());
    assert_eq!(decide(&gateway, 2), Decision::Allowed);
    assert_eq!(gateway.engine().head(), head, "the same key with the same content");
}

/// Waits until queries see an entry, also where the views are mended first.
fn seen(gateway: &Gateway, sequence: u64) {
    while !gateway.views().wait_for(sequence, std::time::Duration::from_secs(1)) {
        std::thread::yield_now();
    }
}

#[test]
fn views_that_are_damaged_while_in_use_are_made_again_at_once() {
    let workspace = tempfile::tempdir().unwrap();
    let path = Files::of(workspace.path()).views();
    let gateway = open(workspace.path()).unwrap();
    assert_eq!(decide(&gateway, 1), Decision::Allowed);
    seen(&gateway, 3);
    let sql = |sql: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let gone = "memory/views.db-wal or -shm was deleted or replaced while in use";
    let damages: [&dyn Fn(); 5] = [
        // What is written next does not fit.
        &|| sql("DROP TABLE attempts"),
        // Nothing is left of it.
        &|| overwrite(&path, ""),
        &|| fs::remove_file(&path).unwrap(),
        // What was applied last stands in no file with a name any more.
        &|| {
            let [journal, _] = crate::views::beside(&path);
            fs::remove_file(journal).unwrap();
            assert_eq!(gateway.views_trouble().unwrap(), gone);
        },
        &|| {
            let [_, index] = crate::views::beside(&path);
            fs::remove_file(index).unwrap();
            assert_eq!(gateway.views_trouble().unwrap(), gone);
        },
    ];
    for (n, damage) in (2..).zip(damages) {
        damage();
        let before = gateway.views().opening();
        assert_eq!(decide(&gateway, n), Decision::Allowed, "{n}");
        let head = gateway.engine().head();
        seen(&gateway, head);
        assert_eq!((gateway.views().fault(), gateway.views().opening()), (None, before + 1), "{n}");
        assert!(gateway.views_trouble().is_none(), "{n}");
        for n in 1..=n {
            let id = format!("hs_gateway_{n:04}");
            assert!(gateway.reader().unwrap().handoff(&id).unwrap().is_some(), "{id}");
            assert_eq!(decide(&gateway, n), Decision::Allowed);
        }
        assert_eq!(gateway.engine().head(), head, "the same keys with the same content");
    }
    // It follows as it did before.
    assert_eq!(decide(&gateway, 9), Decision::Allowed);
    seen(&gateway, gateway.engine().head());
    gateway.close().unwrap();
    let gateway = open(workspace.path()).unwrap();
    assert_eq!(gateway.views().applied(), gateway.engine().head());
}

/// Counted from the start, the next snapshot would move away with every life that ends before it.
#[test]
fn short_lives_do_not_put_the_next_snapshot_off() {
    let workspace = tempfile::tempdir().unwrap();
    let due = |gateway: &Gateway, last: u64| {
        let at = last + limits::SNAPSHOT_ENTRIES;
        gateway.snapshots.is_due_at(at) && !gateway.snapshots.is_due_at(at - 1)
    };
    // Killed each time, as far as files can tell: nothing is left behind but the ledger and what follows it.
    for life in 0..3 {
        let gateway = open(workspace.path()).unwrap();
        assert!(due(&gateway, 0), "life {life}");
        decide(&gateway, life);
        drop(gateway);
    }
    let gateway = open(workspace.path()).unwrap();
    let stopped = gateway.engine().head();
    gateway.close().unwrap();
    for life in 3..6 {
        let gateway = open(workspace.path()).unwrap();
        assert!(due(&gateway, stopped), "life {life}");
        decide(&gateway, life);
        drop(gateway);
    }
    // One that does not fit is none.
    overwrite(&Files::of(workspace.path()).state_snapshot(), "{}");
    assert!(due(&open(workspace.path()).unwrap(), 0));
}
