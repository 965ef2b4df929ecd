//! A snapshot gives what the ledger gives, or nothing.

use super::*;
use crate::proof::Seed;

fn history() -> History {
    let mut history = History::new();
    let route =
        json!({"capability": "work", "fallback_agent_id": null, "primary_agent_id": "x1", "stage": "dev"});
    history.event("route.declared", "phase:route.v1", &route);
    for n in 0..20 {
        let decision = ["allowed", "denied", "needs_approval"][n % 3];
        history.decision(&format!("hs_{n:08}"), decision, n % 2 == 0);
    }
    history.event("route.removed", "phase:route.v1", &json!({}));
    history
}

fn key() -> Seed {
    Seed::from_bytes(&[7; 32])
}

#[test]
fn going_on_from_a_snapshot_gives_what_the_whole_ledger_gives() {
    let history = history();
    let (whole, published) = (history.view().render(), Published::AsOf(history.head.sequence));
    let mut view = StateView::empty(TOPIC);
    for (n, entry) in history.entries.iter().enumerate() {
        // At every entry, also between what was created and its decision.
        let text = seal_snapshot(&view, TOPIC, &key()).unwrap();
        let from = open_snapshot(&text, TOPIC, &key().public_hex()).unwrap();
        assert_eq!((from.head(), from.bytes()), (view.head(), view.bytes()));
        let behind = history.entries[n..].iter().cloned().map(Ok);
        let (again, found) = rebuild_from(from, behind, Some(&whole)).unwrap();
        assert_eq!(
            (again.render(), again.bytes(), found),
            (whole.clone(), history.view().bytes(), published.clone())
        );
        view.apply(entry).unwrap();
    }
}

#[test]
fn a_snapshot_that_is_not_this_gateways_own_is_not_used() {
    let view = history().view();
    let text = seal_snapshot(&view, TOPIC, &key()).unwrap();
    let opens = |text: &str| open_snapshot(text, TOPIC, &key().public_hex()).is_some();
    assert!(opens(&text));
    assert!(open_snapshot(&text, "gw_other", &key().public_hex()).is_none(), "another ledger");
    assert!(open_snapshot(&text, TOPIC, &Seed::from_bytes(&[8; 32]).public_hex()).is_none(), "another key");
    assert!(!opens(&text.replacen("\"reducer\":\"sha256:", "\"reducer\":\"sha256:0", 1)));
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        assert!(!String::from_utf8(bytes).is_ok_and(|changed| opens(&changed)), "byte {at}");
        assert!(!opens(&text[..at]), "cut at {at}");
    }
}

/// A reducer that changed must not go on from what another one left. Its text is part of a snapshot, so every file
/// that says what entries are reduced to has to be named there.
#[test]
fn every_file_of_the_reducer_is_part_of_a_snapshot() {
    let others = ["adopt", "difference", "follow", "mod", "publish", "rebuild", "snapshot", "tests"];
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/state");
    let snapshot = fs::read_to_string(directory.join("snapshot.rs")).unwrap();
    for entry in fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(room) = name.strip_suffix(".rs") else { continue };
        let included = snapshot.contains(&format!("include_str!(\"{name}\")"));
        assert_ne!(included, others.contains(&room), "{name}");
    }
}
