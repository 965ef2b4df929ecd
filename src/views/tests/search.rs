//! Filters, pages and cursors.

use proptest::prelude::*;

use super::super::*;
use super::history::*;
use super::{Place, holding};
use crate::timestamp::Timestamp;

/// Every page of a list, one after the other.
fn pages<T>(rows_max: usize, mut read: impl FnMut(Option<Cursor>) -> Page<T>) -> Vec<T> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = read(cursor);
        assert!(page.rows.len() <= rows_max, "a page is bounded");
        assert!(page.next.is_none() || page.rows.len() == rows_max, "only the last page is short");
        all.extend(page.rows);
        // As text, as a caller would give it back.
        let Some(next) = page.next.map(|cursor| cursor.to_string().parse().unwrap()) else { return all };
        cursor = Some(next);
    }
}

fn check_entries(reader: &Reader, history: &History, filter: &EntryFilter<'_>, rows_max: usize) {
    let found = pages(rows_max, |cursor| reader.entries(filter, cursor, rows_max).unwrap());
    let is = |wanted: Option<&str>, found: Option<&str>| wanted.is_none() || wanted == found;
    let of = |wanted: Option<&str>, names: &[String]| {
        wanted.is_none_or(|wanted| names.iter().any(|name| name == wanted))
    };
    let holds = |row: &&EntryRow| {
        let (agents, routes) = &history.concerned[row.sequence as usize - 1];
        of(filter.agent, agents)
            && of(filter.route, routes)
            && is(filter.kind, Some(&row.kind))
            && is(filter.stream_id, Some(&row.stream_id))
            && is(filter.handoff_id, row.handoff_id.as_deref())
            && is(filter.correlation_id, Some(&row.correlation_id))
            && is(filter.decision, row.decision.as_deref())
            && filter.code.is_none_or(|code| row.codes.iter().any(|other| other == code))
            && within(&row.consensus_timestamp, filter.from, filter.to)
    };
    let expected: Vec<EntryRow> = history.rows.iter().rev().filter(holds).cloned().collect();
    assert_eq!(found, expected, "{filter:?}");
}

fn check_handoffs(reader: &Reader, history: &History, filter: &HandoffFilter<'_>, rows_max: usize) {
    let found = pages(rows_max, |cursor| reader.handoffs(filter, cursor, rows_max).unwrap());
    let is = |wanted: Option<&str>, found: Option<&str>| wanted.is_none() || wanted == found;
    let holds = |row: &HandoffRow| {
        let now = &row.current;
        filter.status.is_none_or(|status| now.status == status)
            && (is(filter.agent, now.source_agent.as_deref())
                || is(filter.agent, now.target_agent.as_deref()))
            && is(filter.route, now.route_key.as_deref())
            && is(filter.decision, now.decision.as_deref())
            && filter.code.is_none_or(|code| now.codes.iter().any(|other| other == code))
            && is(filter.correlation_id, Some(&now.correlation_id))
            && is(filter.handoff_id, Some(&row.handoff_id))
            && within(&row.created_at, filter.from, filter.to)
    };
    let expected: Vec<HandoffRow> =
        history.handoffs().into_iter().map(|(row, _)| row).filter(holds).collect();
    assert_eq!(found, expected, "{filter:?}");
}

fn within(time: &str, from: Option<Timestamp>, to: Option<Timestamp>) -> bool {
    let time = Timestamp::parse(time).unwrap();
    from.is_none_or(|from| time >= from) && to.is_none_or(|to| time < to)
}

/// Nothing, each value that comes up, and one that never does.
fn some_of<'v>(values: impl Iterator<Item = &'v str>) -> Vec<Option<&'v str>> {
    let mut all: Vec<Option<&str>> = values.map(Some).chain([None, Some("never")]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_applied_is_found_by_every_filter_and_by_nothing_else(
        steps in steps(),
        rows_max in 1..6usize,
        (from, span) in (0..60u64, 0..60u64),
    ) {
        let (place, history) = (Place::new(), History::of(&steps));
        let _views = holding(&place.path, &history.entries);
        let reader = Reader::open(&place.path).unwrap();
        let rows = &history.rows;
        let (from, to) = (Some(time_of(from)), Some(time_of(from + span)));

        let codes = some_of(rows.iter().flat_map(|row| row.codes.iter().map(String::as_str)));
        let decisions = some_of(rows.iter().filter_map(|row| row.decision.as_deref()));
        let correlations = some_of(rows.iter().map(|row| row.correlation_id.as_str()));
        let ids = some_of(rows.iter().filter_map(|row| row.handoff_id.as_deref()));

        let all = EntryFilter::default();
        let mut filters = vec![EntryFilter { from, ..all }, EntryFilter { to, ..all }];
        filters.extend(codes.iter().map(|&code| EntryFilter { code, ..all }));
        filters.extend(decisions.iter().map(|&decision| EntryFilter { decision, ..all }));
        filters.extend(correlations.iter().map(|&correlation_id| EntryFilter { correlation_id, ..all }));
        filters.extend(ids.iter().map(|&handoff_id| EntryFilter { handoff_id, ..all }));
        filters.extend(some_of(rows.iter().map(|row| &*row.kind)).iter().map(|&kind| EntryFilter { kind, ..all }));
        let agents = some_of(history.concerned.iter().flat_map(|(agents, _)| agents).map(String::as_str));
        let routes = some_of(history.concerned.iter().flat_map(|(_, routes)| routes).map(String::as_str));
        filters.extend(agents.iter().map(|&agent| EntryFilter { agent, ..all }));
        filters.extend(routes.iter().map(|&route| EntryFilter { route, ..all }));
        let streams = some_of(rows.iter().map(|row| row.stream_id.as_str()));
        filters.extend(streams.iter().map(|&stream_id| EntryFilter { stream_id, ..all }));
        for (n, filter) in filters.iter().enumerate() {
            check_entries(&reader, &history, filter, rows_max);
            // And with another one on top, so that each is also asked of rows that an index has found.
            let code = codes[n % codes.len()];
            let decision = decisions[n % decisions.len()];
            check_entries(&reader, &history, &EntryFilter { code, decision, from, to, ..*filter }, rows_max);
            let (agent, route) = (agents[n % agents.len()], routes[n / 3 % routes.len()]);
            check_entries(&reader, &history, &EntryFilter { agent, from, to, ..*filter }, rows_max);
            check_entries(&reader, &history, &EntryFilter { route, from, to, ..*filter }, rows_max);
            check_entries(&reader, &history, &EntryFilter { agent, route, ..*filter }, rows_max);
            let handoff_id = ids[n % ids.len()];
            check_entries(&reader, &history, &EntryFilter { kind: Some("gate.decided"), handoff_id, ..*filter }, 3);
        }

        let handoffs = history.handoffs();
        let now = || handoffs.iter().map(|(row, _)| &row.current);
        let agents = some_of(now().flat_map(|row| row.source_agent.iter().chain(&row.target_agent)).map(|id| &**id));
        let routes = some_of(now().filter_map(|row| row.route_key.as_deref()));
        let all = HandoffFilter::default();
        let mut filters = vec![HandoffFilter { from, ..all }, HandoffFilter { to, ..all }];
        filters.extend(Status::ALL.map(|status| HandoffFilter { status: Some(status), ..all }));
        filters.extend(agents.iter().map(|&agent| HandoffFilter { agent, ..all }));
        filters.extend(routes.iter().map(|&route| HandoffFilter { route, ..all }));
        filters.extend(decisions.iter().map(|&decision| HandoffFilter { decision, ..all }));
        filters.extend(codes.iter().map(|&code| HandoffFilter { code, ..all }));
        filters.extend(correlations.iter().map(|&correlation_id| HandoffFilter { correlation_id, ..all }));
        filters.extend(ids.iter().map(|&handoff_id| HandoffFilter { handoff_id, ..all }));
        for (n, filter) in filters.iter().enumerate() {
            check_handoffs(&reader, &history, filter, rows_max);
            let (agent, code) = (agents[n % agents.len()], codes[n % codes.len()]);
            check_handoffs(&reader, &history, &HandoffFilter { agent, from, to, ..*filter }, rows_max);
            check_handoffs(&reader, &history, &HandoffFilter { code, route: routes[0], ..*filter }, rows_max);
        }

        for (row, attempts) in handoffs {
            let detail = reader.handoff(&row.handoff_id).unwrap();
            assert_eq!(detail, Some(HandoffDetail { handoff: row, attempts }));
        }
        for row in rows {
            assert_eq!(reader.entry(row.sequence).unwrap().as_ref(), Some(row));
        }
        assert_eq!(reader.entry(rows.len() as u64 + 1).unwrap(), None);
        assert_eq!(reader.entry(u64::MAX).unwrap(), None);
        assert_eq!(reader.handoff("never").unwrap(), None);
    }

    #[test]
    fn pages_neither_skip_nor_repeat_while_entries_are_applied(steps in steps(), rows_max in 1..4usize) {
        let place = Place::new();
        let all = History::of(&steps);
        let half = all.entries.len() / 2;
        let mut views = holding(&place.path, &all.entries[..half]);
        let reader = Reader::open(&place.path).unwrap();
        let mut later = all.entries[half..].iter().cloned();
        let found = pages(rows_max, |cursor| {
            views.apply(later.by_ref().take(2)).unwrap();
            reader.entries(&EntryFilter::default(), cursor, rows_max).unwrap()
        });
        // Whatever was there when the first page was read comes once, in order, and nothing else.
        let first = found.first().map_or(0, |row| row.sequence);
        let sequences: Vec<u64> = found.iter().map(|row| row.sequence).collect();
        assert_eq!(sequences, (1..=first).rev().collect::<Vec<_>>());

        let rest: Vec<Entry> = later.collect();
        views.apply(rest).unwrap();
        let ids: Vec<String> = all.handoffs().into_iter().map(|(row, _)| row.handoff_id).collect();
        let mut more = all;
        let found = pages(rows_max, |cursor| {
            let before = more.entries.len();
            // A new attempt at every handoff there is, and a new handoff.
            for (n, step) in steps.iter().enumerate() {
                if let Step::Submit(submission) = step {
                    let handoff = if n == 0 { 200 } else { submission.handoff };
                    more.step(&Step::Submit(Submission { handoff, ..submission.clone() }));
                }
            }
            let page = reader.handoffs(&HandoffFilter::default(), cursor, rows_max).unwrap();
            views.apply(more.entries[before..].to_vec()).unwrap();
            page
        });
        let found: Vec<String> = found.into_iter().map(|row| row.handoff_id).collect();
        assert_eq!(found, ids);
    }
}

#[test]
fn a_page_is_never_larger_than_its_limit() {
    let place = Place::new();
    let steps: Vec<Step> = (0..=crate::limits::VIEW_PAGE_ROWS_MAX).map(|_| Step::PolicyLoaded).collect();
    let _views = holding(&place.path, &History::of(&steps).entries);
    let reader = Reader::open(&place.path).unwrap();
    for (asked, given) in [(0, 1), (1, 1), (7, 7), (usize::MAX, crate::limits::VIEW_PAGE_ROWS_MAX)] {
        assert_eq!(reader.entries(&EntryFilter::default(), None, asked).unwrap().rows.len(), given);
    }
}

#[test]
fn only_what_a_page_ended_with_is_a_cursor() {
    let check = |text: &str, expected: Option<u64>| {
        assert_eq!(text.parse().ok().map(Cursor::number), expected, "{text:?}");
    };
    check("c0", Some(0));
    check("c1f", Some(31));
    check("cffffffffffffffff", Some(u64::MAX));
    for text in ["", "c", "1f", "C1f", "c1F", "c01", "c+1", "c-1", "c1 ", "c10000000000000000", "cé"] {
        check(text, None);
    }
    // One that lies beyond everything is as good as none.
    let place = Place::new();
    let history = History::of(&[Step::PolicyLoaded]);
    let _views = holding(&place.path, &history.entries);
    let reader = Reader::open(&place.path).unwrap();
    let cursor = "cffffffffffffffff".parse().ok();
    assert_eq!(reader.entries(&EntryFilter::default(), cursor, 5).unwrap().rows, history.rows);
}
