//! Backups of a gateway at rest and at work, and what a restore refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value as Json;

use super::*;
use crate::engine::{Asker, Candidate, Ruling};
use crate::gateway::{Files, Gateway};
use crate::ledger::Entries;
use crate::os::{clock, files};
use crate::policy::Workspace;

const CANONICAL: &str = include_str!("../../../docs/examples/taskspec-canonical.json");

fn decide(gateway: &Gateway, n: usize) {
    let policies = Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap());
    let id = format!("hs_backup_{n:05}");
    let body = CANONICAL.replace("hs_20260218_router_0001", &id).replace("idem_swap_cycle_9001", &id);
    let ruling = Ruling { policies, keyring: Arc::default(), asker: Asker::Agent("decision-router".into()) };
    let candidate = Candidate::judge(body.into(), ruling, clock::now()).unwrap();
    gateway.engine().submit_and_wait(candidate).unwrap();
}

fn open(workspace: &Path) -> Gateway {
    Gateway::open(workspace, "nowhere").unwrap()
}

fn kinds(gateway: &Gateway) -> Vec<String> {
    let head = gateway.engine().head();
    let entries = Entries::read(&gateway.files().ledger(), 1, head).unwrap();
    let wires = entries.map(|entry| serde_json::from_str::<Json>(&entry.unwrap().wire).unwrap());
    wires.map(|wire| wire["type"].as_str().unwrap().to_owned()).collect()
}

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        for name in ["old", "new"] {
            fs::create_dir(place.at(name)).unwrap();
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn back_up(&self) -> Result<Manifest, String> {
        back_up(&Files::of(&self.at("old")), &self.at("backup"), None, &mut |_, _| {})
            .map_err(|fault| fault.to_string())
    }

    fn restore(&self) -> Result<Manifest, String> {
        restore(&self.at("backup"), &self.at("new"), &mut |_, _| {}).map_err(|fault| fault.to_string())
    }
}

#[test]
fn a_backup_is_restored_and_begins_a_new_epoch_once() {
    let place = Place::new();
    let gateway = open(&place.at("old"));
    let topic_id = gateway.topic_id().to_owned();
    (1..=3).for_each(|n| decide(&gateway, n));
    files::create_private(&place.at("old/memory/tokens.json"), b"{\"tokens\":[]}").unwrap();
    // The gateway is at work.
    let made = place.back_up().unwrap();
    assert_eq!((made.sequence, made.topic_id.as_str()), (9, topic_id.as_str()));
    let paths: Vec<_> = made.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["ledger/00000000000000000001.jsonl", "checkpoint", "gateway.key", "tokens.json"]);
    for path in &paths {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(place.at("backup").join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}");
    }
    // What is decided afterwards is forgotten.
    decide(&gateway, 4);
    let key = gateway.public_key();
    drop(gateway);

    assert_eq!(place.restore().unwrap(), made);
    let restored = open(&place.at("new"));
    assert_eq!((restored.topic_id(), restored.public_key()), (topic_id.as_str(), key));
    assert_eq!(restored.engine().head(), 10);
    assert_eq!(kinds(&restored).last().unwrap(), "epoch.begun");
    assert!(!restored.files().restored().exists());
    let wire = Entries::read(&restored.files().ledger(), 10, 10).unwrap().next().unwrap().unwrap().wire;
    let wire: Json = serde_json::from_str(&wire).unwrap();
    assert_eq!(wire["payload"]["restored_head"], 9);
    assert_eq!(wire["payload"]["restored_hash"], made.running_hash);
    assert_eq!(wire["payload"]["backup_time"], made.time);
    decide(&restored, 4);
    restored.close().unwrap();
    // A mark that a power cut brought back is known to be recorded.
    let facts = serde_json::to_vec(&wire["payload"]).unwrap();
    files::create_private(&place.at("new/memory/restored.json"), &facts).unwrap();
    let restored = open(&place.at("new"));
    assert_eq!(kinds(&restored).iter().filter(|kind| *kind == "epoch.begun").count(), 1);
    assert!(!restored.files().restored().exists());
    verify::verify_segments(&restored.files().ledger(), &[], &mut |_| {}).unwrap();
}

/// Twenty backups while another thread decides as fast as it can: each one is whole.
#[test]
fn a_backup_of_a_gateway_at_work_is_consistent() {
    let place = Place::new();
    let gateway = open(&place.at("old"));
    decide(&gateway, 0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..).take_while(|_| !stop.load(Ordering::Relaxed)).for_each(|n| decide(&gateway, n));
        });
        let mut last = 0;
        for _ in 0..20 {
            let made = place.back_up().unwrap();
            assert!(made.sequence >= last && made.sequence.is_multiple_of(3), "{}", made.sequence);
            last = made.sequence;
            fs::remove_dir_all(place.at("backup")).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_is_not_empty_is_left_alone() {
    let place = Place::new();
    assert!(place.back_up().unwrap_err().ends_with("has no entries yet"));
    let gateway = open(&place.at("old"));
    decide(&gateway, 1);
    place.back_up().unwrap();
    assert!(place.back_up().unwrap_err().ends_with("is not empty; take a directory that is new"));
    drop(open(&place.at("new")));
    let fault = place.restore().unwrap_err();
    assert!(fault.ends_with("new/memory/ledger is not empty; take a directory that is new"), "{fault}");
}

#[test]
fn a_backup_that_was_changed_is_not_restored() {
    let place = Place::new();
    let gateway = open(&place.at("old"));
    decide(&gateway, 1);
    place.back_up().unwrap();
    let manifest = place.at("backup/manifest.json");
    let segment = place.at("backup/ledger/00000000000000000001.jsonl");
    let whole = |path: &Path| fs::read_to_string(path).unwrap();
    let check = |path: &Path, from: &str, to: &str, why: &str| {
        let text = whole(path);
        assert!(text.contains(from), "{from}");
        files::replace_private(path, text.replacen(from, to, 1).as_bytes()).unwrap();
        let fault = place.restore().unwrap_err();
        assert!(fault.contains(why), "{fault}");
        files::replace_private(path, text.as_bytes()).unwrap();
        assert!(!place.at("new/memory").exists());
    };
    check(
        &segment,
        "allowed",
        "alloved",
        "`ledger/00000000000000000001.jsonl` in the backup is not what its manifest says",
    );
    check(&manifest, "handoffd-backup/1", "handoffd-backup/9", "its format is `handoffd-backup/9`");
    check(&manifest, "\"sequence\": 3", "\"sequence\": 2", "ends with another entry than its manifest says");
    check(&manifest, "\"checkpoint\"", "\"../escape\"", "it names `../escape`");
    // Another key of the same form: the manifest agrees, the checkpoint does not.
    let text = whole(&manifest);
    let key = "07".repeat(32) + "\n";
    let own = whole(&place.at("backup/gateway.key"));
    files::replace_private(&place.at("backup/gateway.key"), key.as_bytes()).unwrap();
    let digest = |text: &str| Digest::of(text.as_bytes()).to_string();
    files::replace_private(&manifest, text.replace(&digest(&own), &digest(&key)).as_bytes()).unwrap();
    let fault = place.restore().unwrap_err();
    assert!(fault.contains("does not verify"), "{fault}");
    fs::remove_file(&manifest).unwrap();
    assert!(place.restore().unwrap_err().ends_with("is not a whole backup: there is no manifest.json"));
}

/// Killed at any point, a restore leaves nothing that opens as if it were whole.
#[test]
fn half_a_restore_does_not_open() {
    let place = Place::new();
    let gateway = open(&place.at("old"));
    (1..=2).for_each(|n| decide(&gateway, n));
    place.back_up().unwrap();
    place.restore().unwrap();
    let segment = place.at("new/memory/ledger/00000000000000000001.jsonl");
    let whole = fs::read(&segment).unwrap();
    for cut in [0, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        files::replace_private(&segment, &whole[..cut]).unwrap();
        assert!(Gateway::open(&place.at("new"), "nowhere").is_err(), "{cut}");
    }
    fs::remove_file(&segment).unwrap();
    assert!(Gateway::open(&place.at("new"), "nowhere").is_err());
    files::create_private(&segment, &whole).unwrap();
    // What a refused start set aside does not matter; nothing was acknowledged meanwhile.
    assert_eq!(open(&place.at("new")).engine().head(), 7);
}

/// Every file below a directory, with what is in it.
fn contents(directory: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut all = std::collections::BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            all.extend(contents(&entry.path()));
        } else {
            all.insert(entry.path(), fs::read(entry.path()).unwrap());
        }
    }
    all
}

/// What a gateway that is killed now leaves behind.
fn killed(from: &Path, to: &Path) {
    for (path, text) in contents(from) {
        let path = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        files::create_private(&path, &text).unwrap();
    }
}

/// Changes a letter of the last batch, in whichever file has it.
fn damage_the_last_batch(files_of: &Files) {
    for path in [files_of.ledger().join("00000000000000000001.jsonl"), files_of.journal()] {
        let mut text = fs::read(&path).unwrap();
        let at = text.windows(17).rposition(|bytes| bytes == b"\"sequence_number\"").unwrap();
        text[at + 1] = b'S';
        fs::remove_file(&path).unwrap();
        files::create_private(&path, &text).unwrap();
    }
}

/// Whoever settles the journal for a command would cut off what `serve` refuses to touch.
#[test]
fn no_command_cuts_off_what_a_start_refuses_to() {
    let place = Place::new();
    let gateway = open(&place.at("old"));
    (1..=3).for_each(|n| decide(&gateway, n));
    killed(&place.at("old"), &place.at("killed"));
    drop(gateway);
    let files_of = Files::of(&place.at("killed"));
    damage_the_last_batch(&files_of);
    let before = contents(&files_of.ledger());
    let journal = fs::read(files_of.journal()).unwrap();
    let back_up = |keep| back_up(&files_of, &place.at("backup"), keep, &mut |_, _| {});
    let moved = || {
        use crate::gateway::{Place as Where, Replacing, Served, move_ledger};
        let at = |name| Where::Workspace(place.at(name));
        move_ledger(&at("killed"), &at("moved"), Replacing::No, Served::Refuse, &mut |_| {})
    };
    let said = [
        Gateway::open(&place.at("killed"), "nowhere").err().unwrap().to_string(),
        back_up(None).unwrap_err().to_string(),
        back_up(Some(5)).unwrap_err().to_string(),
        crate::gateway::hold_settled(&files_of, &crate::ledger::Source::files(&files_of.ledger()))
            .unwrap_err()
            .to_string(),
        moved().unwrap_err().to_string(),
    ];
    for (n, said) in said.iter().enumerate() {
        match n {
            2 => assert_eq!(said, "what is left ends at entry 6; nothing was copied"),
            _ => assert!(said.starts_with("the ledger is damaged in 0"), "{n}: {said}"),
        }
        assert!(!said.contains("move it away"), "{n}: {said}");
    }
    assert_eq!(contents(&files_of.ledger()), before, "it is as it was");
    assert_eq!(fs::read(files_of.journal()).unwrap(), journal);
    assert!(!place.at("backup").exists());
    // Whoever knows what is given up goes on without it, and in a new epoch.
    assert_eq!(back_up(Some(6)).unwrap().sequence, 6);
    assert_eq!(contents(&files_of.ledger()), before, "it is as it was");
    place.restore().unwrap();
    let restored = open(&place.at("new"));
    assert_eq!(kinds(&restored).last().unwrap(), "epoch.begun");
}

/// Where the state file alone is wrong, the ledger is whole: what its journal has is put back, and all of it is copied.
#[test]
fn an_edited_state_file_keeps_nobody_from_a_whole_backup() {
    let place = Place::new();
    let gateway = open(&place.at("old"));
    (1..=3).for_each(|n| decide(&gateway, n));
    killed(&place.at("old"), &place.at("killed"));
    drop(gateway);
    let files_of = Files::of(&place.at("killed"));
    // A power cut took the last batch from the segment.
    let segment = files_of.ledger().join("00000000000000000001.jsonl");
    let whole = fs::read_to_string(&segment).unwrap();
    let (kept, _) = whole.trim_end().rsplit_once("{\"commit\":").unwrap();
    let kept = &kept[..kept.rfind("{\"commit\":").unwrap()];
    fs::remove_file(&segment).unwrap();
    files::create_private(&segment, kept.as_bytes()).unwrap();
    let state = fs::read_to_string(files_of.state()).unwrap();
    let edited = state.replace("\"sequence\":9", "\"sequence\":10");
    fs::remove_file(files_of.state()).unwrap();
    files::create_private(&files_of.state(), edited.as_bytes()).unwrap();
    let made = back_up(&files_of, &place.at("backup"), None, &mut |_, _| {}).unwrap();
    assert_eq!(made.sequence, 9);
    assert_eq!(fs::read_to_string(&segment).unwrap(), whole);
}

/// A batch that is in its segment and not synced yet is cut off again if that fails: no backup may speak of it.
#[test]
fn what_nobody_has_been_told_of_is_in_no_backup() {
    let place = Place::new();
    let gateway = open(&place.at("old"));
    decide(&gateway, 1);
    killed(&place.at("old"), &place.at("later"));
    let later = open(&place.at("later"));
    decide(&later, 2);
    let segment = |name| place.at(name).join("memory/ledger/00000000000000000001.jsonl");
    let longer = fs::read(segment("later")).unwrap();
    let own = fs::read(segment("old")).unwrap();
    use std::io::Write as _;
    let mut appends = fs::OpenOptions::new().append(true).open(segment("old")).unwrap();
    appends.write_all(longer.strip_prefix(own.as_slice()).unwrap()).unwrap();
    assert_eq!(crate::ledger::inspect(&place.at("old/memory/ledger")).unwrap().unwrap().1.sequence, 6);
    assert_eq!(place.back_up().unwrap().sequence, 3);
}
