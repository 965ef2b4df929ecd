//! Single cases: what each event does to a handoff, and which attempt speaks for it.

use super::super::event::handoff_stream;
use super::super::*;
use super::history::*;
use super::{Place, holding};

fn submission(decision: &'static str, codes: &[&'static str], route: u8) -> Step {
    Step::Submit(Submission {
        handoff: 0,
        source: Some(0),
        target: 1,
        route: Some(route),
        correlation: 0,
        key: Some(route),
        message: None,
        parent: None,
        decision,
        codes: codes.to_vec(),
    })
}

/// The handoff after some steps, in one line.
fn check(steps: &[Step], expected: &str) {
    let place = Place::new();
    let _views = holding(&place.path, &History::of(steps).entries);
    let row = Reader::open(&place.path).unwrap().handoff(&handoff_id(0)).unwrap().unwrap().handoff;
    let now = &row.current;
    let found = format!(
        "{} of {}: {}, {}{}",
        now.attempt,
        row.attempts,
        now.decision.as_deref().unwrap_or("undecided"),
        now.status,
        now.codes.iter().map(|code| format!(", {code}")).collect::<String>(),
    );
    assert_eq!(found, expected);
}

#[test]
fn a_handoff_stands_where_the_last_event_in_its_stream_put_it() {
    check(&[submission("allowed", &[], 0)], "1 of 1: allowed, available");
    check(&[submission("needs_approval", &[], 0)], "1 of 1: needs_approval, waiting");
    check(&[submission("denied", &["X"], 0)], "1 of 1: denied, rejected, X");
    check(&[submission("expired", &["X", "Y"], 0)], "1 of 1: expired, rejected, X, Y");
    for (kind, status) in [
        ("task.claimed", "claimed"),
        ("task.started", "working"),
        ("artifact.ready", "working"),
        ("task.blocked", "blocked"),
        ("task.complete", "completed"),
        ("task.cancelled", "cancelled"),
        ("task.available", "available"),
        ("message.sent", "available"),
        ("something.new", "available"),
    ] {
        let steps = [submission("allowed", &[], 0), Step::Event(0, 0, kind)];
        check(&steps, &format!("1 of 1: allowed, {status}"));
    }
    let failed = [submission("allowed", &[], 0), Step::Event(0, 0, "task.failed")];
    check(&failed, "1 of 1: allowed, failed, a \"code\", of somebody's");
    let granted = [
        submission("needs_approval", &[], 0),
        Step::Event(0, 0, "approval.granted"),
        Step::Event(0, 0, "task.available"),
    ];
    check(&granted, "1 of 1: needs_approval, available");
}

#[test]
fn the_accepted_attempt_speaks_for_a_handoff_and_before_it_the_latest() {
    let (denied, allowed) =
        (|route| submission("denied", &["X"], route), |route| submission("allowed", &[], route));
    check(&[denied(0), denied(1)], "2 of 2: denied, rejected, X");
    check(&[denied(0), allowed(1)], "2 of 2: allowed, available");
    check(&[denied(0), allowed(1), denied(2)], "2 of 3: allowed, available");
    // A later event of the accepted one counts, and so does none of the refused one's.
    let working = Step::Event(0, 1, "task.started");
    check(&[denied(0), allowed(1), denied(2), working], "2 of 3: allowed, working");
    let stray = Step::Event(0, 2, "task.cancelled");
    check(&[denied(0), allowed(1), denied(2), stray], "2 of 3: allowed, available");
}

#[test]
fn what_somebody_else_was_refused_for_never_speaks_for_a_handoff() {
    let denied = |source, correlation| {
        let Step::Submit(own) = submission("denied", &["X"], 0) else { unreachable!() };
        Step::Submit(Submission { source, correlation, ..own })
    };
    let own = || denied(Some(0), 0);
    for strange in [denied(Some(2), 0), denied(Some(0), 1), denied(None, 0)] {
        check(&[own(), strange.clone()], "1 of 2: denied, rejected, X");
        check(&[own(), strange.clone(), own()], "3 of 3: denied, rejected, X");
        let corrected = [own(), strange.clone(), submission("allowed", &[], 1), strange];
        check(&corrected, "3 of 4: allowed, available");
    }
}

#[test]
fn whoever_sees_only_some_attempts_is_shown_a_handoff_of_those() {
    let place = Place::new();
    let mut steps = vec![submission("denied", &["X"], 0)];
    steps.extend([Some(2), Some(2)].map(|source| {
        let Step::Submit(own) = submission("denied", &["Y"], 0) else { unreachable!() };
        Step::Submit(Submission { source, ..own })
    }));
    steps.push(submission("allowed", &[], 0));
    let history = History::of(&steps);
    let _views = holding(&place.path, &history.entries);
    let reader = Reader::open(&place.path).unwrap();
    let seen_by = |name: &str| {
        let detail = reader.handoff_by(&handoff_id(0), &|row| row.source_agent.as_deref() == Some(name));
        detail.unwrap().map(|detail| {
            let numbers: Vec<u32> = detail.attempts.iter().map(|(row, _)| row.attempt).collect();
            let entries: Vec<u64> =
                detail.attempts.iter().flat_map(|(_, sequences)| sequences.clone()).collect();
            let HandoffRow { attempts, created_at, current, .. } = detail.handoff;
            (current.attempt, attempts, created_at, numbers, entries)
        })
    };
    let at = |sequence| time_of(sequence).to_nanoseconds();
    let own = (4, 4, at(1), vec![1, 4], vec![1, 2, 3, 10, 11, 12]);
    assert_eq!(seen_by(&agent(0)), Some(own));
    assert_eq!(seen_by(&agent(2)), Some((3, 3, at(4), vec![2, 3], vec![4, 5, 6, 7, 8, 9])));
    assert_eq!(seen_by(&agent(1)), None);
}

#[test]
fn no_number_of_refusals_hides_what_became_of_a_handoff() {
    let place = Place::new();
    let mut steps = vec![submission("allowed", &[], 0)];
    let Step::Submit(own) = submission("denied", &["X"], 0) else { unreachable!() };
    let strange = Step::Submit(Submission { source: Some(2), ..own });
    // More attempts than are shown, and more entries.
    steps.extend(vec![strange; limits::VIEW_HANDOFF_ENTRIES_MAX / 3 + 1]);
    steps.push(Step::Event(0, 0, "task.complete"));
    let history = History::of(&steps);
    let _views = holding(&place.path, &history.entries);
    let detail = Reader::open(&place.path).unwrap().handoff(&handoff_id(0)).unwrap().unwrap();
    assert_eq!(detail.attempts.len(), limits::VIEW_ATTEMPTS_MAX + 1);
    assert_eq!(detail.attempts[0].0.status, Status::Completed);
    assert_eq!(detail.attempts[0].1, [1, 2, 3, history.entries.len() as u64]);
}

#[test]
fn every_status_has_one_name() {
    for status in Status::ALL {
        assert_eq!(status.as_str().parse(), Ok(status));
    }
    assert_eq!("Working".parse::<Status>(), Err(UnknownStatus));
}

#[test]
fn a_stream_is_a_handoffs_by_its_exact_name() {
    let check =
        |name: &str, expected: Option<(&str, u32)>| assert_eq!(handoff_stream(name), expected, "{name}");
    check("task:hs_12345678:attempt:2", Some(("hs_12345678", 2)));
    check("task:hs_a:attempt:1:attempt:3", Some(("hs_a:attempt:1", 3)));
    for name in [
        "task:hs_12345678",
        "task:hs_12345678:attempt:",
        "task:hs_12345678:attempt:02",
        "task:hs_12345678:attempt:+2",
        "task:hs_12345678:attempt:99999999999",
        "phase:hs_12345678:attempt:1",
        "project:gw",
    ] {
        check(name, None);
    }
}
