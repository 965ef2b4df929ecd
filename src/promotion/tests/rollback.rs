//! Rolling back, by an operator and by itself.

use super::*;
use crate::contract::Mode;

fn steps(plan: &RollbackPlan) -> String {
    let shown = plan.steps.iter().map(|taken| match &taken.why {
        None => taken.step.as_str().to_owned(),
        Some(why) => format!("no {}: {why}", taken.step.as_str()),
    });
    shown.collect::<Vec<_>>().join("; ")
}

#[test]
fn every_step_of_a_rollback_is_done_or_skipped_with_why() {
    let mut stream = Stream::up_to(&worker(), PromotionGate::G4);
    stream.load(Some(&route_of(&with(worker(), json!({"fallbackAgentId": "other"})))));
    let plan = stream.roll_back(Some(true), &["hs_live_0001", "hs_live_0002"]);
    assert_eq!(steps(&plan), "demote; block; restore; mark");
    assert_eq!((plan.from, plan.to, plan.blocked, plan.epoch), (Stage::Live, Stage::Simulated, true, 1));
    let again = stream.roll_back(None, &[]);
    assert_eq!(
        steps(&again),
        "no demote: the route stands at simulated already; no block: the route is blocked already; no restore: an \
         earlier definition is in force already; no mark: no live handoff is in flight"
    );
    assert_eq!((again.blocked, again.epoch), (true, 2));

    let mut fresh = Stream::declared(&worker());
    let plan = fresh.roll_back(None, &[]);
    assert_eq!(
        steps(&plan),
        "no demote: the route stands at dev already; no block: it was not asked for; no restore: there is no earlier \
         definition; no mark: no live handoff is in flight"
    );
    assert_eq!((plan.to, fresh.record.stage, fresh.record.blocked), (Stage::Dev, Stage::Dev, false));
    let plan = Stream::default().roll_back(Some(true), &[]);
    assert!(steps(&plan).contains("no restore: the route is not declared"));
}

#[test]
fn a_rollback_takes_a_route_out_of_live_and_g3_and_g4_must_be_earned_again() {
    let mut stream = Stream::up_to(&worker(), PromotionGate::G4);
    stream.roll_back(None, &["hs_live_0001"]);
    let record = &stream.record;
    assert_eq!((record.stage, record.status), (Stage::Simulated, GateStatus::RolledBack));
    assert_eq!(
        (record.next_gate(), record.last_gate_passed()),
        (Some(PromotionGate::G3), Some(PromotionGate::G2))
    );
    let rollback = record.last_rollback.as_ref().unwrap();
    assert_eq!((rollback.reason.as_str(), rollback.at), ("a wrong amount", at(stream.sequence)));
    assert_eq!((rollback.in_flight, &*rollback.rolled_back), (1, &["hs_live_0001".to_owned()][..]));
    assert_eq!(rollback.by, By::Human("rita".into()));
    assert!(mode_allowed(record, Mode::Live).is_err() && mode_allowed(record, Mode::Simulated).is_ok());
    stream.pass_next();
    stream.pass_next();
    assert_eq!(stream.record.stage, Stage::Live);
}

#[test]
fn a_rollback_that_happens_by_itself_blocks_unless_it_is_said_otherwise() {
    let stream = Stream::up_to(&worker(), PromotionGate::G4);
    let blocked = |by: RollbackBy, block: Option<bool>| {
        let ask = RollbackAsk { by, block, reason: "x".into(), code: None, handoff_id: None };
        plan_rollback(&stream.record, &ask, &[]).blocked
    };
    let operator = || RollbackBy::Operator("rita".into());
    assert!(blocked(RollbackBy::Automatic, None) && blocked(operator(), Some(true)));
    assert!(!blocked(operator(), None) && !blocked(RollbackBy::Automatic, Some(false)));
}

#[test]
fn a_restored_definition_is_pinned_until_a_person_lifts_it() {
    let other = with(worker(), json!({"fallbackAgentId": "other"}));
    let mut stream = Stream::up_to(&worker(), PromotionGate::G4);
    stream.load(Some(&route_of(&other)));
    stream.roll_back(Some(true), &[]);
    let in_force = |stream: &Stream| stream.record.route().unwrap().fallback_agent_id.clone();
    assert_eq!(in_force(&stream), None);
    // The table does not count, whatever it says; a route that is taken away is gone, and comes back as pinned.
    assert_eq!(stream.load(Some(&route_of(&other))), None);
    assert_eq!(stream.load(Some(&route_of(&with(worker(), json!({"primaryAgentId": "other"}))))), None);
    stream.load(None);
    assert_eq!(mode_allowed(&stream.record, Mode::Dev), Err(StageRefusal::Blocked));
    stream.load(Some(&route_of(&other)));
    assert_eq!(in_force(&stream), None);
    // Lifting the block leaves the pin.
    stream.write("human:rita", [PhaseEvent::Lifted { what: Lift::Block, reason: "repaired".into() }]);
    assert!(!stream.record.blocked && stream.record.pin.is_some());
    assert_eq!(stream.load(Some(&route_of(&other))), None);
    stream.write("human:rita", [PhaseEvent::Lifted { what: Lift::Pin, reason: "it is wanted".into() }]);
    assert!(matches!(stream.load(Some(&route_of(&other))), Some(RouteChange::Redeclared(_))));
    assert_eq!(in_force(&stream).as_deref(), Some("other"));
}

#[test]
fn a_restored_definition_with_another_primary_has_all_its_gates_to_earn() {
    let mut stream = Stream::declared(&with(worker(), json!({"primaryAgentId": "before"})));
    stream.load(Some(&route_of(&worker())));
    while stream.record.next_gate().is_some() {
        stream.pass_next();
    }
    let plan = stream.roll_back(Some(false), &[]);
    assert_eq!((plan.to, plan.redefined), (Stage::Dev, true));
    let record = &stream.record;
    assert_eq!(record.route().unwrap().primary_agent_id, "before");
    assert_eq!((record.stage, record.next_gate()), (Stage::Dev, Some(PromotionGate::G0)));
    assert_eq!((record.status, record.previous.as_ref()), (GateStatus::RolledBack, None));
}

#[test]
fn a_rollback_raises_nothing() {
    let mut stream = Stream::declared(&with(worker(), json!({"stage": "simulated"})));
    stream.load(Some(&route_of(&worker())));
    let plan = stream.roll_back(None, &[]);
    assert!(plan.restored.is_some());
    assert_eq!((plan.to, stream.record.stage), (Stage::Dev, Stage::Dev));
}

#[test]
fn only_a_person_opens_a_blocked_route() {
    let mut stream = Stream::up_to(&worker(), PromotionGate::G4);
    stream.roll_back(Some(true), &[]);
    stream.roll_back(Some(false), &[]);
    stream.load(Some(&route_of(&with(worker(), json!({"capability": "other"})))));
    stream.load(None);
    stream.load(Some(&route_of(&worker())));
    stream.write("human:rita", [PhaseEvent::Lifted { what: Lift::Pin, reason: "x".into() }]);
    for mode in [Mode::Dev, Mode::Simulated, Mode::Live] {
        assert_eq!(mode_allowed(&stream.record, mode), Err(StageRefusal::Blocked));
    }
    stream.write("human:rita", [PhaseEvent::Lifted { what: Lift::Both, reason: "x".into() }]);
    assert_eq!(mode_allowed(&stream.record, Mode::Dev), Ok(()));
}

#[test]
fn a_rollback_with_many_in_flight_and_a_long_reason_still_fits_an_event() {
    let stream = Stream::up_to(&worker(), PromotionGate::G4);
    let in_flight: Vec<String> = (0..5_000).map(|n| format!("hs_{n:0128}")).collect();
    let ask = RollbackAsk {
        by: RollbackBy::Automatic,
        block: None,
        reason: "\u{1}".repeat(10_000),
        code: Some("X".repeat(64)),
        handoff_id: Some(in_flight[0].clone()),
    };
    let plan = plan_rollback(&stream.record, &ask, &in_flight);
    assert_eq!(plan.rolled_back.len(), 5_000);
    let payload = plan.events()[0].payload();
    assert_eq!(
        (payload["in_flight"].as_u64(), payload["rolled_back"].as_array().unwrap().len()),
        (Some(5_000), 24)
    );
    assert_eq!(payload["reason"].as_str().unwrap().chars().count(), 500);
    assert!(
        payload.to_string().len() < crate::limits::EVENT_BYTES_MAX - 1024,
        "{}",
        payload.to_string().len()
    );
}

#[test]
fn a_live_route_is_rolled_back_by_what_speaks_against_it_and_by_nothing_else() {
    let canary = Stream::up_to(&with(worker(), json!({"aliases": ["w2"]})), PromotionGate::G4);
    let mut live = canary.clone();
    for id in ["hs_live_0001", "hs_live_0002"] {
        let event = take_slot(&live.record, id);
        live.write("system", event);
        let events = end_canary(&live.record, id, CanaryEnd::Completed);
        live.write("system", events);
    }
    assert!(live.record.canary.is_none());
    let check_with =
        |settings: &AutomaticRollback, mode, agent, end, in_live: Option<&str>, in_canary: Option<&str>| {
            let outcome = LiveOutcome { handoff_id: "hs_live_0009", mode, agent: Some(agent), end };
            for (stream, expected) in [(&live, in_live), (&canary, in_canary)] {
                let trigger = calls_for_rollback(settings, &stream.record, &outcome);
                assert_eq!(trigger.is_some(), expected.is_some(), "{outcome:?} {trigger:?}");
                if let (Some(trigger), Some(expected)) = (trigger, expected) {
                    assert!(trigger.reason.contains(expected), "{trigger:?}");
                    assert_eq!(trigger.ask().handoff_id.as_deref(), Some("hs_live_0009"));
                }
            }
        };
    let check = |agent, end, in_live, in_canary| {
        check_with(&AutomaticRollback::default(), Mode::Live, agent, end, in_live, in_canary);
    };
    let failed = |code, critical| LiveEnd::Failed { code, critical };
    let in_canary = Some("failed in canary");
    check("worker", LiveEnd::Completed, None, None);
    check("w2", LiveEnd::Completed, None, None);
    check("worker", LiveEnd::Cancelled, None, None);
    check("worker", failed("EXECUTION_TIMEOUT", false), None, in_canary);
    check("worker", failed("EXECUTION_TIMEOUT", true), Some("critically"), Some("critically"));
    check("worker", failed("POLICY_RISK", false), Some("failed with POLICY_RISK"), Some("failed with"));
    check("worker", failed("EXECUTION_SCHEMA_INVALID", false), Some("failed with"), Some("failed with"));
    check("worker", failed("A2A_TIMEOUT", false), None, in_canary);
    check("worker", LiveEnd::Silent, None, Some("nothing was heard"));
    check("stranger", LiveEnd::Completed, Some("no agent of the route"), Some("no agent of the route"));
    check("stranger", LiveEnd::Refused { code: "POLICY_RISK" }, None, None);
    check("worker", LiveEnd::Refused { code: "POLICY_RISK" }, None, None);
    // Each can be switched off, and codes can be chosen.
    let off = AutomaticRollback {
        codes: vec!["MY_CODE".into()],
        critical: false,
        wrong_agent: false,
        canary: false,
    };
    check_with(&off, Mode::Live, "worker", failed("POLICY_RISK", true), None, None);
    check_with(&off, Mode::Live, "stranger", LiveEnd::Completed, None, None);
    check_with(&off, Mode::Live, "worker", LiveEnd::Silent, None, None);
    check_with(&off, Mode::Live, "worker", failed("MY_CODE", false), Some("MY_CODE"), Some("MY_CODE"));
    check_with(&off, Mode::Live, "worker", failed("MY_CODE_2", false), None, None);
    // Work that was not live says nothing about live, and what is rolled back already is not rolled back again.
    check_with(
        &AutomaticRollback::default(),
        Mode::Simulated,
        "worker",
        failed("POLICY_RISK", true),
        None,
        None,
    );
    let mut back = live.clone();
    back.roll_back(None, &[]);
    let end = failed("POLICY_RISK", true);
    let outcome = LiveOutcome { handoff_id: "hs_live_0009", mode: Mode::Live, agent: Some("worker"), end };
    assert_eq!(calls_for_rollback(&AutomaticRollback::default(), &back.record, &outcome), None);
}
