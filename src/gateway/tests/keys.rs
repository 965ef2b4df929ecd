//! The gateway's key: made once, and then neither lost nor replaced without a word.

use super::*;

#[test]
fn a_key_that_is_lost_is_not_replaced_where_there_is_a_ledger() {
    let workspace = tempfile::tempdir().unwrap();
    let files = Files::of(workspace.path());
    let gateway = open(workspace.path()).unwrap();
    assert_eq!(decide(&gateway, 1), Decision::Allowed);
    drop(gateway);
    let key = fs::read(files.gateway_key()).unwrap();
    // Without a checkpoint, as versions left it that wrote the first one later; then with one.
    fs::remove_file(files.checkpoint()).unwrap();
    for has_checkpoint in [false, true] {
        assert_eq!(files.checkpoint().exists(), has_checkpoint);
        fs::remove_file(files.gateway_key()).unwrap();
        let refused = open(workspace.path()).unwrap_err();
        let why = "memory/gateway.key is missing, and this workspace has a ledger; restore it from a backup";
        assert!(refused.ends_with(why), "{refused}");
        let volatile = Opening { ledger: LedgerUrl::Memory, ..Opening::default() };
        let refused = Gateway::open_telling(workspace.path(), "x", volatile, &mut |_, _| {}).unwrap_err();
        assert!(matches!(refused, GatewayFault::LostKey(_)), "{refused}");
        assert!(!files.gateway_key().exists());
        crate::os::files::create_private(&files.gateway_key(), &key).unwrap();
        open(workspace.path()).unwrap().close().unwrap();
    }
}

/// From the first decision on, however the gateway ends.
#[test]
fn a_key_that_was_replaced_is_not_signed_with() {
    let workspace = tempfile::tempdir().unwrap();
    let files = Files::of(workspace.path());
    let gateway = open(workspace.path()).unwrap();
    assert_eq!(decide(&gateway, 1), Decision::Allowed);
    drop(gateway);
    let elsewhere = tempfile::tempdir().unwrap();
    drop(open(elsewhere.path()).unwrap());
    let own = fs::read(files.gateway_key()).unwrap();
    overwrite(&files.gateway_key(), fs::read(Files::of(elsewhere.path()).gateway_key()).unwrap());
    let refused = open(workspace.path()).unwrap_err();
    assert!(refused.ends_with("memory/checkpoint is not signed by this gateway's key"), "{refused}");
    overwrite(&files.gateway_key(), own);
    open(workspace.path()).unwrap();
}

/// A ledger by itself, wherever it was copied from: whoever has signed its entries has another key than one made now.
#[test]
fn a_key_is_not_made_for_a_ledger_that_has_entries() {
    let workspace = tempfile::tempdir().unwrap();
    let files = Files::of(workspace.path());
    let gateway = open(workspace.path()).unwrap();
    assert_eq!(decide(&gateway, 1), Decision::Allowed);
    gateway.close().unwrap();
    let key = fs::read(files.gateway_key()).unwrap();
    for entry in fs::read_dir(files.memory()).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_file() {
            fs::remove_file(entry).unwrap();
        }
    }
    let refused = open(workspace.path()).unwrap_err();
    assert!(refused.contains("gateway.key is missing, and this workspace has a ledger"), "{refused}");
    assert!(!files.gateway_key().exists());
    crate::os::files::create_private(&files.gateway_key(), &key).unwrap();
    open(workspace.path()).unwrap();

    // A start that was killed before the first entry may leave a segment that holds nothing.
    let blank = tempfile::tempdir().unwrap();
    let files = Files::of(blank.path());
    files.make_directories().unwrap();
    overwrite(&files.ledger().join("00000000000000000001.jsonl"), "");
    open(blank.path()).unwrap();
}

/// The checkpoint is gone, and the snapshot tells whose the ledger is. One that was damaged is passed over.
#[test]
fn a_key_that_was_replaced_is_known_by_the_snapshot_too() {
    let (workspace, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = Files::of(workspace.path());
    let gateway = open(workspace.path()).unwrap();
    assert_eq!(decide(&gateway, 1), Decision::Allowed);
    let key_id = crate::ledger::gateway_key_id(&gateway.public_key());
    gateway.close().unwrap();
    drop(open(elsewhere.path()).unwrap());
    let own = fs::read(files.gateway_key()).unwrap();
    overwrite(&files.gateway_key(), fs::read(Files::of(elsewhere.path()).gateway_key()).unwrap());
    fs::remove_file(files.checkpoint()).unwrap();
    let refused = open(workspace.path()).unwrap_err();
    let why = format!("memory/state.snapshot was signed with another key (`{key_id}`) than gateway.key");
    assert!(refused.contains(&why), "{refused}");
    overwrite(&files.gateway_key(), own);
    let whole = fs::read_to_string(files.state_snapshot()).unwrap();
    overwrite(&files.state_snapshot(), whole.replacen("\"signature\":\"", "\"signature\":\"00", 1));
    open(workspace.path()).unwrap();
}

#[test]
fn a_ledger_that_was_copied_into_a_new_workspace_gets_a_key() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let gateway = open(old.path()).unwrap();
    assert_eq!(decide(&gateway, 1), Decision::Allowed);
    gateway.close().unwrap();
    let [from, to] = [&old, &new].map(|place| Place::Workspace(place.path().to_owned()));
    move_ledger(&from, &to, Replacing::No, Served::Refuse, &mut |_| {}).unwrap();
    let to = Files::of(new.path());
    let made = fs::read(to.gateway_key()).unwrap();
    assert_ne!(made, fs::read(Files::of(old.path()).gateway_key()).unwrap());
    open(new.path()).unwrap().close().unwrap();
    assert_eq!(fs::read(to.gateway_key()).unwrap(), made);
    assert!(to.checkpoint().exists());
}
