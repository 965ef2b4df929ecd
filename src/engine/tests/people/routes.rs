//! Freezes, the canary and rollback, of routes that went live.

use super::*;

#[test]
fn a_freeze_holds_for_all_that_comes_after_it() {
    let mut scene = Scene::new();
    scene.go_live();
    let spec = scene.live(1);
    assert!(matches!(scene.submit(&spec).pass, Pass::Dispatch { .. }));
    let ask = |scope: FreezeScope| FreezeAsk { scope, reason: "fire".into() };
    let live = FreezeScope::mode(Mode::Live);
    // An administrator may stop, which is always safe, and not let go on.
    let frozen = scene.engine.freeze(ask(live.clone()), Asking::token("admin")).unwrap();
    assert_eq!((frozen.from_sequence, frozen.held_before), (scene.engine.head(), false));
    assert!(scene.engine.freeze(ask(live.clone()), rita()).unwrap().held_before);
    scene.restart();
    assert_eq!(scene.submit(&spec).pass, Pass::Withheld);
    // In canary the slot is taken as well.
    assert_eq!(codes(&scene.submit(&scene.spec(2))), [Code::CanaryFull, Code::Frozen]);
    assert_eq!(scene.submit(&handoff("hs_00000003", "key-00000003")).decision, Decision::Allowed);
    match scene.report(&spec, 7, "task.claimed", json!({})) {
        Err(ReportRefusal::Refused { fault, .. }) => assert_eq!(fault.code.as_str(), "WIRE_HALTED"),
        other => panic!("{other:?}"),
    }
    assert!(scene.engine.unfreeze(ask(FreezeScope::ALL), rita()).unwrap().is_err());
    scene.engine.unfreeze(ask(live), rita()).unwrap().unwrap();
    assert!(matches!(scene.submit(&spec).pass, Pass::Dispatch { .. }));
    scene.report(&spec, 7, "task.claimed", json!({})).unwrap();
    scene.engine.stop();
}

#[test]
fn the_canary_takes_one_at_a_time_until_enough_ended_well() {
    let mut scene = Scene::new();
    scene.go_live();
    for n in 1..=5 {
        let spec = scene.live(n);
        let next = scene.spec(100 + n);
        refused_with(&scene.submit(&next), Code::CanaryFull);
        scene.restart();
        refused_with(&scene.submit(&next), Code::CanaryFull);
        scene.completes(&spec);
        assert_eq!(scene.record().canary.as_ref().map(|canary| canary.done), (n < 5).then_some(n as u64));
    }
    // Fully live: several at once.
    let (one, two) = (scene.live(6), scene.live(7));
    scene.fails(&one, "EXECUTION_TIMEOUT");
    assert_eq!((scene.record().stage, scene.record().blocked), (Stage::Live, false), "an ordinary failure");
    scene.fails(&two, "POLICY_SLIPPAGE");
    assert_eq!((scene.record().stage, scene.record().blocked), (Stage::Simulated, true));
    scene.engine.stop();
}

#[test]
fn a_failure_in_canary_rolls_the_route_back_and_marks_what_is_in_flight() {
    let mut scene = Scene::new();
    scene.go_live();
    let epoch = scene.record().epoch;
    let spec = scene.live(1);
    // The gateway's own code, in an agent's mouth, is a failure like any other.
    scene.fails(&spec, ROLLED_BACK);
    scene.restart();
    let record = scene.record();
    assert_eq!((record.stage, record.blocked, record.epoch), (Stage::Simulated, true, epoch + 1));
    let blocked = scene.submit(&scene.spec(2));
    assert_eq!(codes(&blocked), [Code::RouteBlocked, Code::StageNotReached]);
    scene.engine.lift(ROUTE.into(), Lift::Block, "looked at it".into(), rita()).unwrap().unwrap();
    refused_with(&scene.submit(&scene.spec(3)), Code::StageNotReached);
    assert_eq!(scene.submit(&handoff("hs_00000004", "key-00000004")).decision, Decision::Allowed);
    scene.engine.stop();
}

#[test]
fn what_was_allowed_does_not_go_out_again_while_its_route_is_blocked() {
    let mut scene = Scene::new();
    scene.go_live();
    // Simulated: a rollback ends what is live, and leaves this as it is.
    let spec = handoff("hs_00000001", "key-00000001");
    assert!(matches!(scene.submit(&spec).pass, Pass::Dispatch { .. }));
    let ask = rollback(Some(true));
    scene.engine.roll_back(ROUTE.into(), ask, false, rita()).unwrap().unwrap();
    scene.restart();
    assert_eq!((scene.submit(&spec).pass, scene.submit(&spec).decision), (Pass::Withheld, Decision::Allowed));
    scene.engine.lift(ROUTE.into(), Lift::Block, "looked at it".into(), rita()).unwrap().unwrap();
    assert!(matches!(scene.submit(&spec).pass, Pass::Dispatch { .. }));
    scene.engine.stop();
}

/// Whoever hands work over must not be able to end a run that goes badly before anybody says so.
#[test]
fn a_source_that_takes_work_back_in_canary_has_failed_it() {
    let cancel = |scene: &Scene, spec: &Json, seq| {
        let payload = json!({"reason": "changed my mind"});
        scene.report_as("agent:decision-router", spec, seq, "task.cancelled", payload).unwrap();
        (
            scene.record().stage,
            scene.record().canary.as_ref().map(|canary| (canary.done, canary.holder.is_some())),
        )
    };
    let scene = Scene::new();
    scene.go_live();
    // Nobody has begun: nothing went badly.
    let unclaimed = scene.live(1);
    assert_eq!(cancel(&scene, &unclaimed, 7), (Stage::Live, Some((0, false))));
    let claimed = scene.live(2);
    let next = scene.works_on(&claimed);
    assert_eq!(cancel(&scene, &claimed, next), (Stage::Simulated, None));
    assert!(scene.record().blocked);
    scene.engine.stop();

    // An operator may.
    let scene = Scene::new();
    scene.go_live();
    let claimed = scene.live(1);
    let next = scene.works_on(&claimed);
    let payload = json!({"reason": "wrong recipient"});
    scene.report_as("human:rita", &claimed, next, "task.cancelled", payload).unwrap();
    assert_eq!((scene.record().stage, scene.record().blocked), (Stage::Live, false));
    scene.engine.stop();
}

#[test]
fn silence_in_canary_is_failure() {
    let scene = Scene::new();
    scene.go_live();
    let spec = scene.live(1);
    // The ledger's time is a little ahead of the clock, and so is what it counts from.
    scene.world.at(15 * 60 + 1);
    eventually(|| scene.record().stage != Stage::Live);
    match scene.report(&spec, 8, "task.claimed", json!({})) {
        Err(ReportRefusal::Refused { fault, .. }) => assert_eq!(fault.code.as_str(), "WIRE_HALTED"),
        other => panic!("{other:?}"),
    }
    assert!(scene.record().blocked);
    scene.engine.stop();
}

/// It may have happened, so no other agent gets it: it stands blocked until the claimer is back or an operator has looked.
#[test]
fn live_work_that_is_silent_for_too_long_is_blocked_and_given_to_nobody() {
    let scene = Scene::new();
    scene.go_live();
    for n in 1..=5 {
        let spec = scene.live(n);
        scene.completes(&spec);
    }
    let spec = scene.live(6);
    scene.report(&spec, 7, "task.claimed", json!({})).unwrap();
    let head = scene.engine.head();
    // The ledger's time is a little ahead of the clock, and so is what it counts from.
    scene.world.at(15 * 60 + 1);
    eventually(|| scene.engine.head() > head);
    match scene.report(&spec, 9, "task.claimed", json!({})) {
        Err(ReportRefusal::Refused { fault, .. }) => assert_eq!(fault.code.as_str(), "WIRE_TRANSITION"),
        other => panic!("{other:?}"),
    }
    // Outside the canary one that is silent takes the route from nobody else.
    assert_eq!((scene.record().stage, scene.record().blocked), (Stage::Live, false));
    assert_eq!(scene.report(&spec, 9, "task.started", json!({})).unwrap().state, State::Working);
    scene.engine.stop();
    let entries = Entries::read(&scene.ledger(), head + 1, head + 1).unwrap();
    let wires: Vec<Json> = entries.map(|entry| serde_json::from_str(&entry.unwrap().wire).unwrap()).collect();
    assert_eq!((&wires[0]["type"], &wires[0]["sender"]), (&json!("task.blocked"), &json!("system")));
}

/// It may have happened: with the payload at hand somebody would do it once more.
#[test]
fn live_work_that_is_blocked_does_not_go_out_again_until_it_goes_on() {
    let is_carried = |scene: &Scene, spec: &Json| {
        let again = scene.submit(spec);
        assert!(again.replayed && again.decision == Decision::Allowed, "{again:?}");
        matches!(again.pass, Pass::Dispatch { .. })
    };
    let blocks = |scene: &Scene, spec: &Json, seq| {
        let payload = json!({"reason": "sent, and nobody confirmed it"});
        assert_eq!(scene.report(spec, seq, "task.blocked", payload).unwrap().state, State::Blocked);
    };
    for restart in RESTARTS {
        let mut scene = Scene::new();
        scene.go_live();
        let spec = scene.live(1);
        let next = scene.works_on(&spec);
        assert!(is_carried(&scene, &spec));
        blocks(&scene, &spec, next);
        restart(&mut scene);
        assert!(!is_carried(&scene, &spec));
        scene.report(&spec, next + 1, "task.started", json!({})).unwrap();
        assert!(is_carried(&scene, &spec));
        // What is simulated has not happened.
        let simulated = handoff("hs_00000002", "key-00000002");
        scene.submit(&simulated);
        scene.report(&simulated, 4, "task.claimed", json!({})).unwrap();
        blocks(&scene, &simulated, 5);
        restart(&mut scene);
        assert!(is_carried(&scene, &simulated));
        scene.engine.stop();
    }
}

#[test]
fn a_rollback_beats_a_promotion_under_way_and_ends_live_work() {
    let mut scene = Scene::new();
    scene.go_live();
    let spec = scene.live(1);
    let ask = || rollback(Some(false));
    let dry = scene.engine.roll_back(ROUTE.into(), ask(), true, rita()).unwrap().unwrap();
    assert_eq!((dry.sequence, dry.plan.rolled_back.len()), (None, 1));
    assert_eq!(scene.record().stage, Stage::Live, "a dry run changes nothing");
    scene.restart();
    let done = scene.engine.roll_back(ROUTE.into(), ask(), false, rita()).unwrap().unwrap();
    assert_eq!(done.plan, dry.plan);
    assert_eq!(scene.submit(&spec).pass, Pass::Withheld);
    match scene.report(&spec, 8, "task.claimed", json!({})) {
        Err(ReportRefusal::Refused { fault, .. }) => assert_eq!(fault.code.as_str(), "WIRE_TERMINAL"),
        other => panic!("{other:?}"),
    }
    // G3 is evaluated, then the route is rolled back, then the answer comes: too late.
    let attached = Attached { run_id: Some("run-2".into()), ..Attached::default() };
    scene
        .engine
        .attach_evidence(ROUTE.into(), ("hs_e2e_0002".into(), attached, Voucher::default()), rita())
        .unwrap()
        .unwrap();
    let run = E2eHandoff {
        handoff_id: "hs_e2e_0002".into(),
        mode: Some(Mode::Simulated),
        completed: Some(scene.engine.head()),
        source_agent: "decision-router".into(),
        target_agent: "crypto-sage".into(),
        claimed_by: None,
        e2e_actor: "human".into(),
        plan_ref: None,
    };
    let answer =
        evaluate(&scene.record(), &Findings::E2e { handoffs: &[run], names: scene.rules.policies.names() })
            .unwrap();
    assert!(answer.outcome.passed, "{:?}", answer.outcome);
    scene.engine.roll_back(ROUTE.into(), ask(), false, rita()).unwrap().unwrap();
    let late = scene.engine.decide_gate(ROUTE.into(), answer, scene.engine.head(), rita()).unwrap();
    assert!(matches!(late, Err(RouteFault::Superseded(_))), "{late:?}");
    scene.engine.stop();
}

#[test]
fn another_primary_is_another_route_and_a_rollback_brings_the_old_one_back() {
    let mut scene = Scene::new();
    scene.go_live();
    scene.rules = rules(|route| route.primary_agent_id = "somebody-else".into());
    scene.engine.put_in_force_and_wait(scene.rules.clone()).unwrap();
    assert_eq!(scene.record().stage, Stage::Dev, "swapping a live route's primary: no longer live");
    assert_eq!(scene.record().passes.len(), 0);
    let ask = rollback(Some(false));
    scene.engine.roll_back(ROUTE.into(), ask, false, rita()).unwrap().unwrap();
    let pinned = scene.engine.overlaid_policies().unwrap();
    assert_eq!(pinned.route(ROUTE).unwrap().primary_agent_id, "crypto-sage");
    scene.restart();
    assert!(scene.engine.overlaid_policies().is_some());
    let mut dev = handoff("hs_00000009", "key-00000009");
    dev["mode"] = json!("dev");
    assert_eq!(scene.submit(&dev).decision, Decision::Allowed, "what was restored counts over the file");
    scene.engine.lift(ROUTE.into(), Lift::Pin, "the file is right".into(), rita()).unwrap().unwrap();
    assert!(scene.engine.overlaid_policies().is_none());
    assert_eq!(scene.record().route().unwrap().primary_agent_id, "somebody-else");
    scene.engine.stop();
}

/// What may be sent is what was decided, along the route that it was decided for.
#[test]
fn a_replay_carries_nothing_along_a_route_that_was_set_back_or_became_another() {
    let carried = |scene: &Scene, spec: &Json| {
        let again = scene.submit(spec);
        assert!(again.replayed && again.decision == Decision::Allowed, "{again:?}");
        matches!(again.pass, Pass::Dispatch { .. })
    };
    let put = |scene: &mut Scene, change: fn(&mut Route)| {
        scene.rules = rules(change);
        scene.engine.put_in_force_and_wait(scene.rules.clone()).unwrap();
    };
    let mut scene = Scene::new();
    scene.go_live();
    let live = scene.live(1);
    let mut dev = handoff("hs_00000002", "key-00000002");
    dev["mode"] = json!("dev");
    assert_eq!(scene.submit(&dev).decision, Decision::Allowed);
    // Its own slot in the canary is not held against it, nor is an edit that leaves the route what it is.
    assert!(carried(&scene, &live) && carried(&scene, &dev));
    put(&mut scene, |route| route.approvers = 2);
    assert!(carried(&scene, &live) && carried(&scene, &dev));
    // Another primary, under which the target is still known: live has to be earned again, and what was decided was
    // decided for the route that there was.
    put(&mut scene, |route| {
        route.aliases.push(std::mem::replace(&mut route.primary_agent_id, "newcomer".into()));
    });
    assert_eq!(scene.record().stage, Stage::Dev);
    assert!(!carried(&scene, &live) && !carried(&scene, &dev));
    scene.restart();
    assert!(!carried(&scene, &live) && !carried(&scene, &dev));
    // What is decided from now on is of this route.
    let mut next = handoff("hs_00000003", "key-00000003");
    next["mode"] = json!("dev");
    assert_eq!(scene.submit(&next).decision, Decision::Allowed);
    assert!(carried(&scene, &next));
    scene.engine.stop();
}

/// What a door has read may be older than what its handoff was decided by.
#[test]
fn whoever_answers_goes_by_what_is_decided_by() {
    let mut scene = Scene::new();
    let before = scene.rules.clone();
    let is_now = |scene: &Scene, rules: &Arc<InForce>| Arc::ptr_eq(&scene.engine.governing(&before), rules);
    assert!(is_now(&scene, &before));
    // The same set with another keyring.
    scene.put(&before.policies, Keyring::default());
    assert!(is_now(&scene, &scene.rules) && !is_now(&scene, &before));

    // Routes that a rollback restored are in it, and leave with the pin; what was judged by them is judged again, though
    // the digest of both sets is that of the same files.
    let mut route = scene.rules.policies.route(ROUTE).unwrap().clone();
    route.primary_agent_id = "another".to_owned();
    let set = scene.rules.policies.with_routes([(ROUTE.to_owned(), route)].into_iter());
    scene.put(&Arc::new(set), Keyring::default());
    scene.engine.roll_back(ROUTE.into(), rollback(None), false, rita()).unwrap().unwrap();
    let pinned = scene.engine.governing(&scene.rules);
    assert!(pinned.overlaid && pinned.policies.route(ROUTE).unwrap().primary_agent_id == "crypto-sage");
    let ruling = Ruling {
        policies: pinned.policies.clone(),
        keyring: pinned.keyring.clone(),
        asker: Asker::Agent("decision-router".into()),
    };
    let spec = handoff("hs_00000001", "key-00000001");
    let candidate = Candidate::judge(spec.to_string().into(), ruling, scene.world.now()).unwrap();
    assert!(candidate.still_holds(Some(&pinned), scene.world.now()));
    scene.engine.lift(ROUTE.into(), Lift::Pin, "looked at it".into(), rita()).unwrap().unwrap();
    let lifted = scene.engine.governing(&pinned);
    assert!(!lifted.overlaid && lifted.policies.digest() == pinned.policies.digest());
    assert!(!candidate.still_holds(Some(&lifted), scene.world.now()));
    scene.engine.stop();
}
