//! What a daemon leaves behind, whatever its test was about: the ledger is sound, each of its events is valid, and what they
//! come to is what the views and the state say.
//!
//! The views' file and the state file are as far as the daemon had come with them when it was ended, and are compared there
//! with what the ledger gives. The reducer is compared with the views and the state of the whole ledger.

use std::fs;
use std::path::Path;

use handoffd::ledger::{Entries, inspect, verify};
use handoffd::state::{Published, rebuild};
use handoffd::views::{Reader, Views, compare, follows};

use super::reduced::Reduced;

pub(crate) fn check(workspace: &Path) {
    let memory = workspace.join("memory");
    let directory = memory.join("ledger");
    let (topic, head) = inspect(&directory).unwrap().expect("a ledger with entries");
    let verified = verify::verify_segments(&directory, &[], &mut |_| {}).unwrap();
    assert_eq!(verified.entries, head.sequence);
    let entries = || Entries::read(&directory, 1, head.sequence).unwrap();
    let mut reduced = Reduced::new();
    entries().for_each(|entry| reduced.take(&entry.unwrap()));

    let views = memory.join("views.db");
    let through = follows(&views, &topic).map_or(0, |views| views.sequence);
    if through > 0 {
        let up_to =
            |sequence| entries().map(Result::unwrap).take_while(move |entry| entry.sequence <= sequence);
        let difference = compare(&views, &topic, up_to).unwrap();
        assert!(difference.is_none(), "{}", difference.unwrap());
    }
    let aside = tempfile::tempdir().unwrap();
    let whole = if through == head.sequence { views } else { aside.path().join("views.db") };
    if through < head.sequence {
        drop(Views::rebuild(&whole, &topic, entries().map(Result::unwrap)).unwrap());
    }
    reduced.agrees_with_views(&Reader::open(&whole).unwrap());

    let file = fs::read_to_string(memory.join("orchestration-state.json")).ok();
    let (state, published) = rebuild(&topic, entries(), file.as_deref()).unwrap();
    assert!(matches!(published, Published::AsOf(_)), "the state file: {published:?}");
    reduced.agrees_with_state(&serde_json::from_str(&state.render()).unwrap());
}
