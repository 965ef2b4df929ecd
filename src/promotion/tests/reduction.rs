//! What a route is follows from its stream.

use super::*;
use crate::contract::Mode;

fn load(stream: &mut Stream, change: Json) -> Option<RouteChange> {
    stream.load(Some(&route_of(&with(worker(), change))))
}

#[test]
fn a_routing_table_changes_only_what_is_different() {
    let mut stream = Stream::default();
    assert_eq!(stream.load(None), None);
    assert!(matches!(load(&mut stream, json!({})), Some(RouteChange::Declared(_))));
    assert_eq!(load(&mut stream, json!({})), None);
    assert!(matches!(load(&mut stream, json!({"approvers": 2})), Some(RouteChange::Redeclared(_))));
    let changed = load(&mut stream, json!({"approvers": 2, "profile": "execution-plane.v1"}));
    assert!(matches!(changed, Some(RouteChange::Redefined { from: Stage::Dev, .. })));
    assert_eq!(stream.load(None), Some(RouteChange::Removed));
    assert_eq!(stream.load(None), None);
}

#[test]
fn another_primary_profile_or_capability_sets_a_live_route_back_to_dev_and_other_edits_do_not() {
    let live = Stream::up_to(&worker(), PromotionGate::G4);
    for change in [
        json!({"primaryAgentId": "other"}),
        json!({"profile": "execution-plane.v1"}),
        json!({"capability": "other"}),
        // Not even one that is declared for more.
        json!({"capability": "other", "stage": "simulated"}),
    ] {
        let mut stream = live.clone();
        let expected = Some(Stage::Live);
        let from = match load(&mut stream, change.clone()) {
            Some(RouteChange::Redefined { from, .. }) => Some(from),
            _ => None,
        };
        assert_eq!(from, expected, "{change}");
        let record = &stream.record;
        assert_eq!((record.stage, record.next_gate()), (Stage::Dev, Some(PromotionGate::G0)));
        assert_eq!((record.status, &record.canary), (GateStatus::Pending, &None));
        assert_eq!(
            mode_allowed(record, Mode::Simulated),
            Err(StageRefusal::NotReached { reached: Stage::Dev })
        );
        let kinds: Vec<_> = stream.written.iter().rev().take(2).map(|entry| entry.0.as_str()).collect();
        assert_eq!(kinds, ["promotion.reset", "route.declared"]);
    }
    for change in [
        json!({"aliases": ["w2"]}),
        json!({"fallbackAgentId": "other"}),
        json!({"stage": "simulated"}),
        json!({"approvers": 2}),
        json!({"rollbackPlanRef": "plans/other.md"}),
    ] {
        let mut stream = live.clone();
        assert!(matches!(load(&mut stream, change.clone()), Some(RouteChange::Redeclared(_))), "{change}");
        let (before, after) = (&live.record, &stream.record);
        assert_eq!(
            (after.stage, &after.passes, &after.canary),
            (before.stage, &before.passes, &before.canary)
        );
        assert_eq!(after.previous.as_ref(), before.definition());
    }
}

#[test]
fn a_route_that_is_declared_simulated_takes_simulated_work_at_once_and_skips_no_gate() {
    let simulated = with(worker(), json!({"stage": "simulated"}));
    let mut stream = Stream::declared(&simulated);
    assert_eq!(mode_allowed(&stream.record, Mode::Simulated), Ok(()));
    let next = Some(PromotionGate::G0);
    assert_eq!(may_ask(&stream.record, PromotionGate::G2), Err(NotNow::OutOfOrder { next }));
    // Declared for less, it goes back, unless it has earned its stage; declared for more, it may go on.
    load(&mut stream, json!({}));
    assert_eq!(stream.record.stage, Stage::Dev);
    load(&mut stream, json!({"stage": "simulated"}));
    assert_eq!(stream.record.stage, Stage::Simulated);
    stream.pass_next();
    stream.pass_next();
    load(&mut stream, json!({}));
    assert_eq!((stream.record.stage, stream.record.next_gate()), (Stage::Simulated, Some(PromotionGate::G2)));
}

#[test]
fn a_canary_takes_one_live_handoff_at_a_time_and_ends_when_enough_ended_well() {
    let mut stream = Stream::up_to(&worker(), PromotionGate::G4);
    let allowed = |stream: &Stream| mode_allowed(&stream.record, Mode::Live);
    let start = |stream: &mut Stream, id: &str| {
        let event = take_slot(&stream.record, id);
        stream.write("system", event);
    };
    let end = |stream: &mut Stream, id: &str, end: CanaryEnd<'_>| {
        let events = end_canary(&stream.record, id, end);
        let written = events.len();
        stream.write("system", events);
        let canary = stream.record.canary.as_ref();
        (written, canary.map(|canary| (canary.done, canary.of)))
    };
    assert_eq!(
        (stream.record.status, stream.record.candidate_stage()),
        (GateStatus::Pending, Some(Stage::Live))
    );
    assert_eq!(allowed(&stream), Ok(()));
    start(&mut stream, "hs_live_0001");
    assert_eq!(allowed(&stream), Err(StageRefusal::CanaryFull { holder: "hs_live_0001".into() }));
    // Only live work needs the slot, and only its holder frees it.
    assert_eq!(mode_allowed(&stream.record, Mode::Simulated), Ok(()));
    assert_eq!(end(&mut stream, "hs_live_0002", CanaryEnd::Completed), (0, Some((0, 2))));
    assert_eq!(end(&mut stream, "hs_live_0001", CanaryEnd::Completed), (1, Some((1, 2))));
    start(&mut stream, "hs_live_0003");
    assert_eq!(end(&mut stream, "hs_live_0003", CanaryEnd::Cancelled), (1, Some((1, 2))));
    start(&mut stream, "hs_live_0004");
    let failed = CanaryEnd::Failed { code: Some("EXECUTION_TIMEOUT") };
    assert_eq!(end(&mut stream, "hs_live_0004", failed), (1, Some((0, 2))));
    for (id, expected) in [("hs_live_0005", (1, Some((1, 2)))), ("hs_live_0006", (2, None))] {
        start(&mut stream, id);
        assert_eq!(end(&mut stream, id, CanaryEnd::Completed), expected);
    }
    assert_eq!((stream.record.status, stream.record.candidate_stage()), (GateStatus::Passed, None));
    assert_eq!((allowed(&stream), take_slot(&stream.record, "hs_live_0007")), (Ok(()), None));
}

#[test]
fn a_canary_handoff_is_overdue_at_its_deadline_and_not_before() {
    let mut stream = Stream::up_to(&worker(), PromotionGate::G4);
    assert_eq!(overdue(&stream.record, at(1_000_000), 900), None);
    let event = take_slot(&stream.record, "hs_live_0001");
    stream.write("system", event);
    let taken = stream.sequence;
    let late = |after: u64| overdue(&stream.record, at(taken + after), 900).map(|holder| &*holder.handoff_id);
    assert_eq!((late(0), late(899), late(900)), (None, None, Some("hs_live_0001")));
}

#[test]
fn only_a_person_lets_a_route_go_live() {
    let stream = Stream::up_to(&worker(), PromotionGate::G3);
    let digest = stream.record.definition().unwrap().digest;
    let payload = json!({"gate": "G4", "outcome": "passed", "route_digest": digest, "epoch": 0});
    for (sender, next) in [("system", Some(PromotionGate::G4)), ("human:rita", None)] {
        let mut record = stream.record.clone();
        take(&mut record, &(Kind::PromotionDecided, sender.to_owned(), stream.sequence + 1, payload.clone()));
        assert_eq!(record.next_gate(), next);
    }
}

/// Whatever stage a stream tells, live work needs the gates as well.
#[test]
fn a_stage_without_its_gates_is_not_enough_for_live_work() {
    let mut stream = Stream::up_to(&worker(), PromotionGate::G3);
    let (from, to, gate) = (Stage::Simulated, Stage::Live, PromotionGate::G4);
    stream.write("system", [PhaseEvent::Advanced { from, to, gate, epoch: 0, canary_of: None }]);
    let expected = Err(StageRefusal::NotReached { reached: Stage::Simulated });
    assert_eq!(mode_allowed(&stream.record, Mode::Live), expected);
}

#[test]
fn entries_for_another_definition_or_of_another_kind_change_nothing() {
    let stream = Stream::up_to(&worker(), PromotionGate::G1);
    let check = |kind: Kind, payload: Json| {
        let mut record = stream.record.clone();
        take(&mut record, &(kind, "human:rita".to_owned(), stream.sequence + 1, payload.clone()));
        assert_eq!(record, stream.record, "{kind} {payload}");
    };
    let other = format!("sha256:{}", "4".repeat(64));
    check(Kind::PromotionDecided, json!({"gate": "G2", "outcome": "passed", "route_digest": other}));
    check(Kind::PromotionDecided, json!({"gate": "G2", "outcome": "passed"}));
    check(Kind::PromotionDecided, json!({"gate": "G9", "outcome": "passed", "route_digest": other}));
    check(Kind::PromotionCanary, json!({"handoff_id": "hs_x", "outcome": "taken", "done": 0, "epoch": 0}));
    check(Kind::PromotionEvidence, json!({}));
    check(Kind::PromotionAdvanced, json!({"to": "production"}));
    check(Kind::TaskComplete, json!({}));
}

#[test]
fn a_record_is_kept_and_read_back_and_copies_share_what_they_hold() {
    let mut stream = Stream::up_to(&worker(), PromotionGate::G4);
    stream.load(Some(&route_of(&with(worker(), json!({"fallbackAgentId": "other"})))));
    let event = take_slot(&stream.record, "hs_live_0001");
    stream.write("system", event);
    stream.attach("runner:nightly", "hs_e2e_0009");
    let check = |record: &RouteRecord| {
        let kept = serde_json::to_string(record).unwrap();
        assert_eq!(&serde_json::from_str::<RouteRecord>(&kept).unwrap(), record);
    };
    check(&RouteRecord::default());
    check(&stream.record);
    let copy = stream.record.clone();
    assert!(std::ptr::eq(&raw const *copy, &raw const *stream.record));
    stream.roll_back(None, &["hs_live_0001"]);
    check(&stream.record);
    assert_ne!(copy, stream.record);
    assert_eq!(stream.replayed(), stream.record);
}

#[test]
fn evidence_is_bounded_and_the_newest_stays() {
    let mut stream = Stream::declared(&worker());
    for n in 0..crate::limits::ROUTE_EVIDENCE_MAX + 3 {
        stream.attach("runner:nightly", &format!("hs_run_{n:04}"));
    }
    let evidence = &stream.record.evidence;
    assert_eq!(evidence.len(), crate::limits::ROUTE_EVIDENCE_MAX);
    assert_eq!(evidence[0].handoff_id, "hs_run_0003");
}
