//! Whether the file says what the ledger says: while it is told, while it is not, and while somebody else has a hand in it.

use std::fs::FileTimes;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::ledger::{Follower as _, Notice};
use crate::proof::Seed;

fn publish(publisher: &mut Publisher, text: &str) -> Replaced {
    publisher.publish(|document| document.push_str(text)).unwrap()
}

fn follow(path: &Path, ledger: Source) -> StateFollower {
    StateFollower::start(StateView::empty(TOPIC), Publisher::new(path), ledger).unwrap()
}

#[test]
fn publishing_is_never_torn_and_notices_another_hand() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orchestration-state.json");
    let mut publisher = Publisher::new(&path);
    assert_eq!(publisher.read().unwrap(), None);
    assert_eq!(publish(&mut publisher, "{\"n\":1}\n"), Replaced::No);
    assert_eq!(publish(&mut publisher, "{\"n\":2}\n"), Replaced::No);
    assert_eq!(publisher.read().unwrap().as_deref(), Some("{\"n\":2}\n"));
    #[expect(clippy::disallowed_methods, reason = "another hand")]
    fs::write(&path, "{\"n\":9}\n").unwrap();
    assert_eq!(publish(&mut publisher, "{\"n\":3}\n"), Replaced::Yes);
    fs::remove_file(&path).unwrap();
    assert_eq!(publish(&mut publisher, "{\"n\":4}\n"), Replaced::Yes);
    assert_eq!(publish(&mut publisher, "{\"n\":5}\n"), Replaced::No);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left aside");
}

#[test]
fn another_hand_is_noticed_while_nothing_is_decided_and_told_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orchestration-state.json");
    let mut follower = follow(&path, History::new().ledger());
    let own = fs::read_to_string(&path).unwrap();
    let inode = || crate::os::files::inode(&path).unwrap();
    let before = inode();
    assert_eq!(follower.idle(), None);
    assert_eq!(inode(), before, "what nobody touched is left alone");
    #[expect(clippy::disallowed_methods, reason = "another hand")]
    let write = |text: &str| fs::write(&path, text).unwrap();
    let hands: [&dyn Fn(); 3] =
        [&|| write("{\"schemaVersion\":9}\n"), &|| write(""), &|| fs::remove_file(&path).unwrap()];
    for hand in hands {
        hand();
        assert_eq!(follower.idle(), Some(Notice::StateReplaced));
        assert_eq!(fs::read_to_string(&path).unwrap(), own);
        assert_eq!(follower.idle(), None);
    }
}

#[test]
fn a_large_document_is_published_to_the_end_and_never_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orchestration-state.json");
    let mut history = History::new();
    for n in 0..1_500 {
        history.decision(&format!("hs_{n:08}"), "allowed", false);
    }
    let mut follower = follow(&path, history.ledger());
    let (last, before) = history.entries.split_last().unwrap();
    follower.durable(before);
    let watch = follower.watch();
    assert!(watch.document().len() > limits::STATE_BYTES_EACH_BATCH, "large enough to be published apart");
    while fs::read_to_string(&path).unwrap() != watch.document() {
        std::thread::yield_now();
    }
    // Published a moment ago, so the thread rests, and the last entry waits for it.
    follower.durable(std::slice::from_ref(last));
    drop(follower);
    assert_eq!(fs::read_to_string(&path).unwrap(), watch.document());
}

/// Told late, or not at all, it is read from the ledger, and taken in once.
#[test]
fn what_is_not_told_in_its_place_is_read_from_the_ledger() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orchestration-state.json");
    let mut history = History::new();
    for n in 0..5 {
        history.decision(&format!("hs_{n:08}"), "allowed", false);
    }
    let mut follower = follow(&path, history.ledger());
    for told in [0..2, 4..6, 2..4, 8..10] {
        let through = told.end;
        follower.durable(&history.entries[told]);
        let shown = fs::read_to_string(&path).unwrap();
        assert!(through == 4 || shown.contains(&format!("\"sequence\":{through}")), "{shown}");
        assert_eq!(follower.watch().fault(), None);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), history.view().render());
}

/// A ledger that cannot be read now can be read later; an entry that cannot be taken in never can. A file that was
/// published all the same is behind.
#[test]
fn a_state_that_is_behind_says_so_until_it_is_not_whatever_is_published() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orchestration-state.json");
    let (mut history, mut late) = (History::new(), History::new());
    history.decision("hs_00000001", "allowed", false).decision("hs_00000002", "allowed", false);
    let mut follower = follow(&path, late.ledger());
    let watch = follower.watch();
    let publish = || drop(watch.snapshot(TOPIC, &Seed::from_bytes(&[7; 32])));
    follower.durable(&history.entries[2..]);
    publish();
    assert_eq!(
        watch.fault().unwrap(),
        "the ledger ends before entry 1, which was in it: it was cut or replaced"
    );
    late.decision("hs_00000001", "allowed", false).decision("hs_00000002", "allowed", false);
    follower.idle();
    assert_eq!((watch.fault(), watch.document()), (None, history.view().render()));

    late.event("task.created", "task:hs_00000003:attempt:1", &json!("no facts"));
    follower.durable(&late.entries[4..]);
    for _ in 0..2 {
        publish();
        follower.idle();
        assert_eq!(watch.fault().unwrap(), "entry 5 cannot be reduced to state");
    }
    assert_eq!(watch.document(), history.view().render());
}

/// Nobody may decide anything for a long time, and the file is what orchestrators read.
#[test]
fn what_could_not_be_published_is_published_when_it_can_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orchestration-state.json");
    let mut history = History::new();
    let mut follower = follow(&path, history.ledger());
    let watch = follower.watch();
    for count in [1, 1_500] {
        let before = history.entries.len();
        for n in 0..count {
            history.decision(&format!("hs_{count}_{n:08}"), "allowed", false);
        }
        // Nothing can be written aside, as on a full disk: what is there stays there.
        let (aside, old) = (path.with_extension("new"), fs::read_to_string(&path).unwrap());
        fs::create_dir(&aside).unwrap();
        follower.durable(&history.entries[before..]);
        while watch.fault().is_none() {
            std::thread::yield_now();
        }
        follower.idle();
        assert!(watch.fault().is_some());
        assert_eq!(fs::read_to_string(&path).unwrap(), old);
        fs::remove_dir(&aside).unwrap();
        while watch.fault().is_some() {
            assert_eq!(follower.idle(), None, "nobody else had a hand in it");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), watch.document());
    }
}

#[test]
fn another_mode_or_name_is_nobodys_edit_and_a_time_that_was_set_back_hides_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orchestration-state.json");
    let mut history = History::new();
    history.decision("hs_00000001", "allowed", false).decision("hs_00000002", "allowed", false);
    let mut follower = follow(&path, history.ledger());
    let touch = |mode, name: &str| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        fs::hard_link(&path, directory.path().join(name)).unwrap();
    };
    touch(0o600, "one");
    let inode = crate::os::files::inode(&path).unwrap();
    assert_eq!(follower.idle(), None);
    assert_eq!(crate::os::files::inode(&path).unwrap(), inode, "left alone");
    touch(0o640, "two");
    assert_eq!(follower.durable(&history.entries[..2]), None);
    touch(0o600, "three");
    assert_eq!(follower.durable(&history.entries[2..]), None);

    let own = fs::read_to_string(&path).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    #[expect(clippy::disallowed_methods, reason = "another hand")]
    fs::write(&path, own.replacen("queued", "failed", 1)).unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
    assert_eq!(follower.idle(), Some(Notice::StateReplaced));
    assert_eq!(fs::read_to_string(&path).unwrap(), own);
}
