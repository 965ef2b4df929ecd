//! What replicas share beside the log.

use handoffd::ledger::Checkpoint;
use handoffd::ledger::postgres::{Database, SharedFault, SharedKind};

use crate::TOPIC;
use crate::cluster::Cluster;

#[test]
fn a_document_is_changed_only_as_it_was_read() {
    let cluster = Cluster::shared();
    let database = Database::open(&cluster.url(&cluster.database()), TOPIC).unwrap();
    let names = |kind| {
        let all = database.shared(kind).unwrap();
        all.into_iter().map(|one| (one.name, one.document, one.revision)).collect::<Vec<_>>()
    };
    let document = |name: &str, text: &str, revision| (name.to_owned(), text.to_owned(), revision);
    assert_eq!(database.shared_revision().unwrap(), 0);
    assert_eq!(database.add_shared(SharedKind::Token, "b", "1").unwrap(), 1);
    assert_eq!(database.add_shared(SharedKind::Token, "a", "2").unwrap(), 2);
    assert_eq!(database.add_shared(SharedKind::KeyFingerprint, "a", "3").unwrap(), 3);
    assert!(matches!(database.add_shared(SharedKind::Token, "a", "4"), Err(SharedFault::Changed)));
    assert_eq!(database.replace_shared(SharedKind::Token, "a", "5", 2).unwrap(), 4);
    assert!(matches!(database.replace_shared(SharedKind::Token, "a", "6", 2), Err(SharedFault::Changed)));
    assert_eq!(names(SharedKind::Token), [document("a", "5", 4), document("b", "1", 1)]);
    assert_eq!(database.shared_revision().unwrap(), 4, "what was refused counts for nothing");
    assert_eq!(names(SharedKind::KeyFingerprint), [document("a", "3", 3)]);
    assert_eq!(names(SharedKind::GatewayKey), []);
}

#[test]
fn replicas_that_change_one_document_at_once_do_not_undo_each_other() {
    let cluster = Cluster::shared();
    let url = cluster.url(&cluster.database());
    let database = Database::open(&url, TOPIC).unwrap();
    database.add_shared(SharedKind::Token, "count", "0").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let database = Database::open(&url, TOPIC).unwrap();
                let mut left = 10;
                while left > 0 {
                    let one = database.shared(SharedKind::Token).unwrap().remove(0);
                    let next = (one.document.parse::<u32>().unwrap() + 1).to_string();
                    match database.replace_shared(SharedKind::Token, "count", &next, one.revision) {
                        Ok(_) => left -= 1,
                        Err(SharedFault::Changed) => {}
                        Err(SharedFault::Database(fault)) => panic!("{fault}"),
                    }
                }
            });
        }
    });
    assert_eq!(database.shared(SharedKind::Token).unwrap()[0].document, "40");
}

#[test]
fn the_newest_checkpoint_of_each_key_is_kept() {
    let cluster = Cluster::shared();
    let database = Database::open(&cluster.url(&cluster.database()), TOPIC).unwrap();
    let checkpoint = |key_id: &str, sequence| Checkpoint {
        topic_id: TOPIC.to_owned(),
        sequence,
        running_hash: "00".repeat(32),
        time: "2026-02-18T19:38:00.000000000Z".to_owned(),
        key_id: key_id.to_owned(),
        signature: "00".repeat(64),
    };
    for (key_id, sequence) in [("gw_a", 5), ("gw_b", 7), ("gw_a", 9), ("gw_a", 8)] {
        database.keep_checkpoint(&checkpoint(key_id, sequence)).unwrap();
    }
    assert_eq!(database.checkpoints().unwrap(), [checkpoint("gw_b", 7), checkpoint("gw_a", 9)]);
}
