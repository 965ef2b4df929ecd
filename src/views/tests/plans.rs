//! Every statement that answers somebody is served by an index.

use super::super::filter::{ENTRIES, HANDOFFS};
use super::super::query::{By, List, Wanted};
use super::super::{
    EntryFilter, HandoffFilter, Reader, Status, attempt, claims, filter, messages, names, rows, runs,
    standing, tally, words,
};
use super::history::*;
use super::{Place, TOPIC, holding};

/// The plan of a statement; a table that is read from end to end, or sorted, fails.
fn plan(reader: &Reader, sql: &str) -> Vec<String> {
    let mut statement = reader.connection().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    for parameter in 1..=statement.parameter_count() {
        statement.raw_bind_parameter(parameter, 1).unwrap();
    }
    let mut plan = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = plan.next().unwrap() {
        let step: String = row.get(3).unwrap();
        let whole_table = step.contains("SCAN") && !step.contains("CONSTANT ROW");
        assert!(!whole_table && !step.contains("TEMP B-TREE"), "{step}\n{sql}");
        steps.push(step);
    }
    assert!(!steps.is_empty(), "{sql}");
    steps
}

/// The first filter drives its own index; a search that only minds the range of keys would read every row in it.
fn check_list(reader: &Reader, list: List, wanted: Option<Wanted>, filters: u32) {
    let wanted = wanted.expect("every filter of this test finds something");
    assert!(wanted.len() >= filters as usize);
    let sql = list.statement(&wanted);
    let steps = plan(reader, &sql);
    let driver = match wanted.first() {
        None => "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)".to_owned(),
        Some((By::Column(column), _)) if *column == list.key => {
            "USING INTEGER PRIMARY KEY (rowid=?)".to_owned()
        }
        // Two ends, so that neither what is newer than the page nor what is older than asked for is read.
        Some((By::Run, _)) => "(whose=? AND first>? AND first<?)".to_owned(),
        Some((By::Column(column) | By::Only(column) | By::Member(_, column), _)) => {
            format!("({column}=? AND ")
        }
    };
    assert!(steps[0].contains(&driver), "{steps:?} is not by {driver}\n{sql}");
    if matches!(wanted.first(), Some((By::Run, _))) {
        let within = "t USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)";
        assert!(steps.iter().any(|step| step.ends_with(within)), "{steps:?}\n{sql}");
    }
}

#[test]
fn every_combination_of_filters_is_served_by_an_index() {
    let place = Place::new();
    let submission = Submission {
        handoff: 0,
        source: Some(0),
        target: 1,
        route: Some(0),
        correlation: 0,
        key: Some(0),
        message: Some(0),
        parent: None,
        decision: "denied",
        codes: vec!["POLICY_AGENT_DENIED"],
    };
    let history = History::of(&[Step::Submit(submission), Step::PolicyLoaded]);
    let _views = holding(&place.path, &history.entries);
    let reader = Reader::open(&place.path).unwrap();
    let store = reader.connection();
    let (id, correlation, agent, route) = (handoff_id(0), correlation_id(0), agent(0), route(0));
    let streams = [format!("task:{id}:attempt:1"), format!("project:{TOPIC}")];
    for bits in 0..256u32 {
        let with = |bit: u32, text| (bits & (1 << bit) != 0).then_some(text);
        let handoffs = HandoffFilter {
            status: (bits & 64 != 0).then_some(Status::Rejected),
            agent: with(0, &*agent),
            route: with(1, &*route),
            decision: with(2, "denied"),
            code: with(3, "POLICY_AGENT_DENIED"),
            correlation_id: with(4, &*correlation),
            handoff_id: with(5, &*id),
            ..HandoffFilter::default()
        };
        check_list(&reader, HANDOFFS, handoffs.resolve(store).unwrap(), (bits & 127).count_ones());
        let entries = EntryFilter {
            kind: with(0, "gate.decided"),
            stream_id: with(1, &*streams[usize::from(bits & 4 != 0)]),
            handoff_id: with(2, &*id),
            correlation_id: with(3, &*correlation),
            code: with(4, "POLICY_AGENT_DENIED"),
            decision: with(5, "denied"),
            agent: with(6, &*agent),
            route: with(7, &*route),
            ..EntryFilter::default()
        };
        check_list(&reader, ENTRIES, entries.resolve(store).unwrap(), bits.count_ones());
    }
}

/// A code may be a fifth of the ledger: what is asked with it must not cost a read of each of its entries.
#[test]
fn a_code_is_looked_through_without_its_entries() {
    let statement = |filters: &[By]| {
        let wanted: Wanted = filters.iter().map(|by| (*by, 1)).collect();
        ENTRIES.statement(&wanted)
    };
    let place = Place::new();
    let _views = holding(&place.path, &[]);
    let reader = Reader::open(&place.path).unwrap();
    let code = By::Member("entry_codes", "code");
    let (decision, kind, stream) = (By::Column("decision"), By::Column("kind"), By::Column("stream"));
    for filters in [&[code][..], &[code, decision], &[code, kind], &[code, decision, kind]] {
        assert_eq!(plan(&reader, &statement(filters)).len(), 1, "{filters:?}");
    }
    assert_eq!(plan(&reader, &statement(&[code, stream])).len(), 2, "what does not stand beside it is read");
}

#[test]
fn every_single_answer_and_claim_is_one_read_by_an_index() {
    let place = Place::new();
    let _views = holding(&place.path, &[]);
    let reader = Reader::open(&place.path).unwrap();
    for sql in [
        rows::ENTRY,
        rows::HANDOFF,
        rows::ATTEMPT,
        rows::ATTEMPTS_OF,
        rows::ENTRIES_OF,
        claims::HANDOFF,
        claims::KEY,
        claims::MESSAGE,
        claims::MENTIONS,
        filter::ATTEMPT,
        filter::LAST,
        filter::TIME,
        words::WORD,
        words::CORRELATION,
        words::HANDOFF,
        attempt::HEAD,
        attempt::ATTEMPT,
        messages::ASKED_ROW,
        tally::MINUTES,
        standing::NEWEST_OPEN,
        runs::NEWEST,
    ] {
        plan(&reader, sql);
    }
}

#[test]
fn what_is_in_flight_is_found_by_its_status() {
    let place = Place::new();
    let _views = holding(&place.path, &[]);
    let reader = Reader::open(&place.path).unwrap();
    for sql in [
        format!("SELECT count(*) {}", standing::OPEN),
        format!("SELECT h.handoff {} ORDER BY h.handoff DESC LIMIT ?4", standing::OPEN),
    ] {
        let steps = plan(&reader, &sql);
        assert!(steps[0].contains("handoffs_by_status (status=?)"), "{steps:?}");
    }
}

fn first_step(reader: &Reader, sql: &str) -> String {
    let mut statement = reader.connection().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    statement.query_row([], |row| row.get(3)).unwrap()
}

/// What is compared at a start is what look-ups find a name by, and then what they read.
#[test]
fn names_are_read_from_indexes_alone_and_what_they_lead_to_from_rows_alone() {
    let place = Place::new();
    let _views = holding(&place.path, &[]);
    let reader = Reader::open(&place.path).unwrap();
    let indexes = [
        "words USING COVERING INDEX sqlite_autoindex_words_1",
        "correlations USING COVERING INDEX sqlite_autoindex_correlations_1",
        "handoffs USING COVERING INDEX sqlite_autoindex_handoffs_1",
        "attempts USING COVERING INDEX attempts_by_key",
        "attempts USING COVERING INDEX attempts_by_message",
        "messages USING COVERING INDEX sqlite_autoindex_messages_1",
        "asked USING COVERING INDEX sqlite_autoindex_asked_1",
        "USING INDEX attempts_by_message",
    ];
    assert_eq!(names::statements_of_indexes().count(), indexes.len());
    for (sql, index) in names::statements_of_indexes().zip(indexes) {
        let step = first_step(&reader, sql);
        assert!(step.contains(index), "{step}\n{sql}");
    }
    for sql in names::statements_of_rows() {
        let step = first_step(&reader, sql);
        assert!(step.starts_with("SCAN ") && !step.contains("INDEX"), "{step}\n{sql}");
    }
}
