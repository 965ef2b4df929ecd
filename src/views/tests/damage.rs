//! Damage that SQLite does not see: whatever became of the file, nothing that was claimed is taken for "not claimed".

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use super::super::*;
use super::history::*;
use super::{Place, TOPIC, holding};

const HANDOFFS: u8 = 12;

/// Handoffs with keys and messages, a few of them refused; some tried twice, some decided again.
fn some_claims() -> History {
    let submission = |n: u8, decision| {
        Step::Submit(Submission {
            handoff: n,
            source: Some(n % 3),
            target: 1,
            route: Some(0),
            correlation: n % 4,
            key: Some(n),
            message: n.is_multiple_of(2).then_some(n),
            parent: None,
            decision,
            codes: Vec::new(),
        })
    };
    let mut steps: Vec<Step> =
        (0..HANDOFFS).map(|n| submission(n, DECISIONS[usize::from(n) % DECISIONS.len()])).collect();
    steps.extend([submission(2, "allowed"), submission(3, "denied"), Step::Again(1, 0, "allowed")]);
    steps.extend([Step::Message(0), Step::PolicyLoaded, Step::Event(0, 0, "task.claimed")]);
    History::of(&steps)
}

/// The bytes of a whole file without a journal.
fn file_of(history: &History) -> Vec<u8> {
    let place = Place::new();
    drop(holding(&place.path, &history.entries));
    assert!(!place.path.with_extension("db-wal").exists(), "all of it is in the file");
    fs::read(&place.path).unwrap()
}

/// What every question about a claim is answered.
fn answers(claims: Claims<'_>) -> Result<Vec<String>, ViewsFault> {
    let mut answers = Vec::new();
    for n in 0..HANDOFFS + 1 {
        let handoff = claims.handoff(&handoff_id(n))?.map(|mut claim| {
            // No decision rests on when the one before was made: its entry is read.
            claim.accepted.iter_mut().for_each(|accepted| accepted.decided_at.clear());
            claim
        });
        answers.push(format!("{handoff:?}"));
        answers.push(format!("{:?}", claims.key(&agent(n % 3), &key(n))?));
        answers.push(format!("{:?}", claims.message(&message_id(n))?));
        answers.push(format!("{:?}", claims.mentions(&correlation_id(n))?));
    }
    Ok(answers)
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    AtOpening,
    AtNames,
    AtQuestions,
    Nothing,
}

/// Opens the file as a start does. If nothing is found, every answer is as it was.
fn found_in(path: &Path, expected: &[String]) -> Found {
    let Ok(views) = Views::open(path, TOPIC) else { return Found::AtOpening };
    if views.applied().is_none() {
        // Of an empty file, which has to be filled.
        return Found::AtOpening;
    }
    let Ok(reader) = Reader::open(path) else { return Found::AtOpening };
    if let Err(fault) = reader.claims().names(&mut |_| {}) {
        assert!(matches!(fault, ViewsFault::NeedsRebuild(Rebuild::Damaged(_))), "{fault}");
        return Found::AtNames;
    }
    match answers(reader.claims()) {
        Ok(answers) => {
            assert_eq!(answers, expected);
            Found::Nothing
        }
        Err(fault) => {
            assert!(matches!(fault, ViewsFault::NeedsRebuild(Rebuild::Damaged(_))), "{fault}");
            Found::AtQuestions
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test damages files")]
fn found_after(bytes: &[u8], expected: &[String]) -> Found {
    let place = Place::new();
    fs::write(&place.path, bytes).unwrap();
    found_in(&place.path, expected)
}

fn expected(history: &History) -> Vec<String> {
    let place = Place::new();
    answers(holding(&place.path, &history.entries).claims()).unwrap()
}

#[test]
fn a_claim_in_which_one_bit_is_another_is_found_before_the_first_question() {
    let history = some_claims();
    let (file, expected) = (file_of(&history), expected(&history));
    assert_eq!(found_after(&file, &expected), Found::Nothing);
    for name in [handoff_id(0), key(0), message_id(0), agent(0), correlation_id(0)] {
        let places: Vec<usize> =
            (0..file.len() - name.len()).filter(|at| file[*at..].starts_with(name.as_bytes())).collect();
        let mut found = 0;
        for at in places {
            let mut other = file.clone();
            other[at + name.len() - 1] ^= 0x40;
            // What is in no row any more stands in some pages still, and is nobody's.
            found += usize::from(found_after(&other, &expected) == Found::AtNames);
        }
        assert!(found >= 2, "{name} stands in a row and in an index");
    }
}

#[test]
fn no_bit_of_the_file_makes_a_claim_forgotten() {
    let history = some_claims();
    let (file, expected) = (file_of(&history), expected(&history));
    let mut found_in_names = 0;
    // A step that has no factor in common with the number of bits, so that every part of the file has its turn.
    for n in 0..400 {
        let bit = n * 100_003 % (file.len() * 8);
        let mut other = file.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        found_in_names += usize::from(found_after(&other, &expected) == Found::AtNames);
    }
    assert!(found_in_names > 0);
}

#[test]
fn no_page_without_its_content_makes_a_claim_forgotten() {
    let history = some_claims();
    let (file, expected) = (file_of(&history), expected(&history));
    for page in 0..file.len() / 4096 {
        let mut other = file.clone();
        other[page * 4096..][..4096].fill(0);
        found_after(&other, &expected);
    }
}

#[test]
fn rows_that_somebody_took_away_or_changed_are_missed() {
    let history = some_claims();
    let expected = expected(&history);
    for sql in [
        "DELETE FROM handoffs WHERE handoff = 1",
        "DELETE FROM attempts WHERE created = 1",
        "DELETE FROM attempts WHERE created = 1; DELETE FROM handoff_agents WHERE handoff = 1;
         DELETE FROM handoffs WHERE handoff = 1",
        "UPDATE attempts SET accepted = 0 WHERE created = 1",
        "UPDATE attempts SET content_digest = NULL WHERE created = 1",
        "UPDATE attempts SET decided = decided + 3 WHERE created = 1",
        "UPDATE attempts SET idempotency_key = idempotency_key || 'x' WHERE created = 1",
        "UPDATE attempts SET message_id = NULL WHERE created = 1",
        "UPDATE handoffs SET accepted = NULL WHERE handoff = 1",
        "UPDATE handoffs SET handoff_id = handoff_id || 'x' WHERE handoff = 1",
        "UPDATE correlations SET mentions = 0",
        "UPDATE words SET text = text || 'x' WHERE id = (SELECT source FROM attempts WHERE created = 1)",
        "UPDATE applied SET claims = claims + 1",
    ] {
        let place = Place::new();
        drop(holding(&place.path, &history.entries));
        let changed = Connection::open(&place.path).unwrap();
        changed.execute_batch(sql).unwrap();
        assert!(changed.changes() > 0, "{sql}");
        drop(changed);
        assert_eq!(found_in(&place.path, &expected), Found::AtNames, "{sql}");
    }
}

/// A row that a name leads to and that is not there is no answer either, should it go while nobody looks.
#[test]
fn a_name_that_leads_nowhere_is_a_fault() {
    let (place, history) = (Place::new(), some_claims());
    let views = holding(&place.path, &history.entries);
    let gone = |sql: &str| Connection::open(&place.path).unwrap().execute_batch(sql).unwrap();
    gone("DELETE FROM attempts WHERE created = 1");
    let damaged = |fault: ViewsFault| matches!(fault, ViewsFault::NeedsRebuild(Rebuild::Damaged(_)));
    assert!(damaged(views.claims().handoff(&handoff_id(0)).unwrap_err()));
    let id = handoff_id(4);
    gone(&format!("DELETE FROM handoffs WHERE handoff_id = '{id}'"));
    assert!(damaged(views.claims().key(&agent(1), &key(4)).unwrap_err()));
    assert!(damaged(views.claims().message(&message_id(4)).unwrap_err()));
}

#[test]
fn an_attempt_that_is_created_twice_is_told_once() {
    let (place, mut history) = (Place::new(), some_claims());
    let mut views = holding(&place.path, &history.entries);
    assert_eq!(views.take_doubled(), None);
    let first = history.entries[0].clone();
    let last = history.entries.last().unwrap().sequence;
    let again = Entry { sequence: last + 1, consensus_timestamp: later(&history), ..first };
    views.apply([again.clone()]).unwrap();
    assert_eq!(views.take_doubled(), Some(last + 1));
    assert_eq!(views.take_doubled(), None);
    drop(views);
    history.entries.push(again);
    let mut views = Views::rebuild(&place.path, TOPIC, history.entries).unwrap();
    assert_eq!(views.take_doubled(), Some(last + 1));
    views.claims().names(&mut |_| {}).unwrap();
}

fn later(history: &History) -> String {
    let last = &history.entries.last().unwrap().consensus_timestamp;
    crate::timestamp::Timestamp::parse(last).unwrap().plus_nanosecond().to_nanoseconds()
}
