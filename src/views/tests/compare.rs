//! An edited table is found at the first row that was edited.

use proptest::prelude::*;
use rusqlite::Connection;

use super::super::*;
use super::history::*;
use super::{Place, TOPIC, holding};

fn check(path: &Path, history: &History) -> Option<Difference> {
    let through = |sequence: u64| history.entries[..sequence as usize].to_vec();
    compare(path, TOPIC, through).unwrap()
}

fn some_history() -> History {
    let submission = |n: u8| Submission {
        handoff: n,
        source: Some(0),
        target: 1,
        route: Some(0),
        correlation: n,
        key: Some(n),
        message: None,
        parent: None,
        decision: DECISIONS[usize::from(n) % 4],
        codes: if n % 4 == 2 { vec!["A2A_ROUTE_UNKNOWN"] } else { Vec::new() },
    };
    History::of(&(0..20).map(|n| Step::Submit(submission(n))).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables_that_follow_the_ledger_have_no_difference(steps in steps(), behind in 0..4_usize) {
        let history = History::of(&steps);
        let place = Place::new();
        let applied = history.entries.len().saturating_sub(behind);
        holding(&place.path, &history.entries[..applied]);
        prop_assert_eq!(check(&place.path, &history), None);
    }
}

#[test]
fn the_first_difference_is_named_by_table_row_and_column() {
    let history = some_history();
    let value = |column: &str, found: &str, expected: &str| DifferenceKind::Value {
        column: column.to_owned(),
        found: found.to_owned(),
        expected: expected.to_owned(),
    };
    for (edit, table, row, kind) in [
        (
            "UPDATE entries SET attempt = 9 WHERE sequence IN (4, 7)",
            "entries",
            "sequence 4",
            value("attempt", "9", "1"),
        ),
        (
            "UPDATE entries SET attempt = NULL WHERE sequence = 4",
            "entries",
            "sequence 4",
            value("attempt", "nothing", "1"),
        ),
        ("DELETE FROM entries WHERE sequence = 5", "entries", "sequence 5", DifferenceKind::Missing),
        (
            "DELETE FROM handoffs WHERE handoff = (SELECT max(handoff) FROM handoffs)",
            "handoffs",
            "",
            DifferenceKind::Missing,
        ),
        (
            "INSERT INTO handoff_codes VALUES (1, 999)",
            "handoff_codes",
            "code 1, handoff 999",
            DifferenceKind::Spare,
        ),
        ("INSERT INTO words VALUES (999, 'x')", "words", "id 999", DifferenceKind::Spare),
        ("UPDATE applied SET running_hash = 'ff'", "applied", "one 1", value("running_hash", "`ff`", "")),
        (
            "UPDATE attempts SET parent = 'hs_\u{1b}[2J' WHERE created = 1",
            "attempts",
            "created 1",
            value("parent", "`hs_\\u{1b}[2J`", "nothing"),
        ),
    ] {
        let place = Place::new();
        drop(holding(&place.path, &history.entries));
        assert_eq!(check(&place.path, &history), None);
        assert_eq!(Connection::open(&place.path).unwrap().execute(edit, []).unwrap().min(1), 1, "{edit}");
        let difference = check(&place.path, &history).unwrap();
        assert_eq!(difference.table, table, "{edit}");
        assert!(difference.row == row || row.is_empty(), "{edit}: {difference}");
        match (difference.kind, kind) {
            (
                DifferenceKind::Value { column, found, .. },
                DifferenceKind::Value { column: c, found: f, expected },
            ) if expected.is_empty() => assert_eq!((column, found), (c, f)),
            (is, should) => assert_eq!(is, should, "{edit}"),
        }
    }
}

#[test]
fn tables_that_claim_more_than_they_hold_are_damaged() {
    let history = some_history();
    let place = Place::new();
    drop(holding(&place.path, &history.entries));
    Connection::open(&place.path).unwrap().execute("UPDATE applied SET sequence = sequence - 1", []).unwrap();
    let fault = compare(&place.path, TOPIC, |_| Vec::new()).unwrap_err();
    assert!(matches!(fault, ViewsFault::NeedsRebuild(Rebuild::Damaged(_))), "{fault}");
}
