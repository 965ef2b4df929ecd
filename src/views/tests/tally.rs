//! What is counted for an overview, and the way from a handoff to those it led to.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::Value as Json;

use super::super::*;
use super::history::*;
use super::{Place, TOPIC, dump, holding};
use crate::timestamp::Timestamp;

fn beginning() -> Timestamp {
    Timestamp::from_unix_nanoseconds(0)
}

/// Decisions and codes of a ledger, counted from its texts alone.
fn counted(history: &History) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut decisions, mut codes) = (BTreeMap::new(), BTreeMap::new());
    for entry in &history.entries {
        let wire: Json = serde_json::from_str(&entry.wire).unwrap();
        if wire["type"] != "gate.decided" {
            continue;
        }
        let minute = &entry.consensus_timestamp[..16];
        let decision = wire["payload"]["decision"].as_str().unwrap();
        *decisions.entry(format!("{minute} {decision}")).or_default() += 1;
        for code in wire["payload"]["codes"].as_array().into_iter().flatten() {
            *codes.entry(code.as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    (decisions, codes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decisions_and_codes_are_counted_once_each(steps in steps(), cut in 0..40_usize) {
        let history = History::of(&steps);
        let place = Place::new();
        // In two transactions: what was counted before is added to.
        let cut = cut.min(history.entries.len());
        let mut views = holding(&place.path, &history.entries[..cut]);
        views.apply(history.entries[cut..].to_vec()).unwrap();
        let reader = Reader::open(&place.path).unwrap();
        let (decisions, codes) = counted(&history);
        let found: BTreeMap<String, u64> = reader.decisions_since(beginning()).unwrap().into_iter()
            .map(|row| (format!("{} {}", &row.minute.to_nanoseconds()[..16], row.decision), row.count))
            .collect();
        prop_assert_eq!(found, decisions);
        let found = reader.top_codes_since(beginning(), 100).unwrap();
        prop_assert!(found.is_sorted_by_key(|(_, count)| std::cmp::Reverse(*count)));
        prop_assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), codes);
    }

    #[test]
    fn a_file_from_before_the_counts_comes_to_the_same(steps in steps()) {
        let history = History::of(&steps);
        let place = Place::new();
        drop(holding(&place.path, &history.entries));
        // Whom entries and attempts concern cannot be told from the other tables, and the file then says that it is unfinished.
        let rest = || -> Vec<String> {
            let lines = dump(&Connection::open(&place.path).unwrap()).into_iter();
            let unfilled = ["runs ", "acts ", "applied ", "attempts "];
            lines.filter(|line| !unfilled.iter().any(|table| line.starts_with(table))).collect()
        };
        let before = rest();
        Connection::open(&place.path).unwrap().execute_batch(
            "DROP TABLE acts; DROP TABLE runs; DROP TABLE decision_minutes; DROP TABLE code_hours; DROP INDEX attempts_by_parent;
             ALTER TABLE attempts DROP COLUMN delegated; ALTER TABLE attempts DROP COLUMN fallback;
             ALTER TABLE applied DROP COLUMN claims;
             ALTER TABLE entry_codes DROP COLUMN kind; ALTER TABLE entry_codes DROP COLUMN decision;
             PRAGMA user_version = 2;",
        ).unwrap();
        let fault = Views::open(&place.path, TOPIC).unwrap_err();
        prop_assert!(matches!(fault, ViewsFault::NeedsRebuild(Rebuild::Unfinished)), "{fault}");
        prop_assert_eq!(rest(), before);
    }
}

fn submission(handoff: u8, parent: Option<u8>, decision: &'static str) -> Step {
    Step::Submit(Submission {
        handoff,
        source: Some(0),
        target: 1,
        route: Some(0),
        correlation: 0,
        key: Some(handoff),
        message: None,
        parent,
        decision,
        codes: if decision == "denied" { vec!["POLICY_AGENT_DENIED"] } else { Vec::new() },
    })
}

#[test]
fn a_handoff_leads_to_those_that_name_it_each_once() {
    let place = Place::new();
    let steps = [
        submission(0, None, "allowed"),
        submission(1, Some(0), "denied"),
        submission(1, Some(0), "allowed"),
        submission(2, Some(0), "allowed"),
    ];
    let _views = holding(&place.path, &History::of(&steps).entries);
    let reader = Reader::open(&place.path).unwrap();
    assert_eq!(reader.children_of(&handoff_id(0), 10).unwrap(), [handoff_id(1), handoff_id(2)]);
    assert_eq!(reader.children_of(&handoff_id(0), 1).unwrap(), [handoff_id(1)]);
    assert!(reader.children_of(&handoff_id(1), 10).unwrap().is_empty());
}

#[test]
fn what_is_in_flight_is_counted_as_far_as_it_is_looked_at() {
    let place = Place::new();
    let steps: Vec<Step> = (0..5).map(|n| submission(n, None, "allowed")).collect();
    let _views = holding(&place.path, &History::of(&steps).entries);
    let reader = Reader::open(&place.path).unwrap();
    let count = |route: Option<&str>, max| reader.about_in_flight(route, None, max).unwrap();
    assert_eq!(count(None, 10), (5, true));
    assert_eq!(count(None, 3), (3, false));
    assert_eq!(count(Some(&route(0)), 10), (5, true));
    assert_eq!(count(Some("no such route"), 10), (0, true));
}

#[test]
fn what_was_decided_before_is_left_out() {
    let place = Place::new();
    let history = History::of(&[submission(0, None, "denied")]);
    let _views = holding(&place.path, &history.entries);
    let reader = Reader::open(&place.path).unwrap();
    let at = Timestamp::parse(&history.entries[0].consensus_timestamp).unwrap();
    assert_eq!(reader.decisions_since(at).unwrap().len(), 1);
    assert!(reader.decisions_since(at.plus_seconds(120)).unwrap().is_empty());
    assert_eq!(reader.top_codes_since(at, 5).unwrap(), [("POLICY_AGENT_DENIED".to_owned(), 1)]);
    assert!(reader.top_codes_since(at.plus_seconds(7200), 5).unwrap().is_empty());
}
