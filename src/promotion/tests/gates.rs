//! Each rule of each gate: what passes, and what fails for that reason alone.

use super::*;
use crate::contract::Mode;

/// What is missing, in a few words of it.
fn check(outcome: &GateOutcome, expected: &str) {
    let missing: Vec<&str> = outcome.missing.iter().map(|missing| missing.what.as_str()).collect();
    if expected == "passed" {
        assert!(outcome.passed && missing.is_empty(), "{missing:?}");
    } else {
        assert!(
            !outcome.passed && missing.len() == 1 && missing[0].contains(expected),
            "{missing:?}, not {expected}"
        );
        assert!(outcome.missing.iter().all(|missing| !missing.hint.is_empty()));
    }
}

#[test]
fn g0_needs_a_handoff_that_passed_every_contract_check_since_the_route_was_defined() {
    let mut stream = Stream::default();
    let before = stream.elsewhere();
    stream.load(Some(&route_of(&worker())));
    let since = stream.elsewhere();
    let g0 = |sequence: u64, codes: &[&str]| {
        let codes = codes.iter().map(|code| (*code).to_owned()).collect();
        let decision = ContractDecision { handoff_id: "hs_contract".into(), sequence, codes };
        evaluate(&stream.record, &Findings::Contract(&[decision])).unwrap()
    };
    let passed = g0(since, &[]);
    check(&passed.outcome, "passed");
    assert_eq!((passed.outcome.evidence, passed.handoff_id.as_deref()), (vec![since], Some("hs_contract")));
    check(&g0(since, &["POLICY_STAGE_NOT_REACHED"]).outcome, "passed");
    for codes in [
        &["A2A_ROUTE_TARGET_MISMATCH"][..],
        &["POLICY_FROZEN", "EXECUTION_SCHEMA_INVALID"],
        // Not valid in the schema, which states these rules, too.
        &["POLICY_ROLLBACK_PLAN_MISSING"],
        &["POLICY_STAGE_NOT_REACHED", "POLICY_SELF_TEST"],
    ] {
        check(&g0(since, codes).outcome, "no handoff on this route");
    }
    check(&g0(before, &[]).outcome, "no handoff on this route");
    check(&evaluate(&stream.record, &Findings::Contract(&[])).unwrap().outcome, "no handoff on this route");
}

#[test]
fn g1_needs_a_primary_that_answers_and_a_fallback_for_what_is_critical() {
    let ok = || Probe::Answered { status: 204 };
    let silent = || Probe::Silent { why: "timed out".into() };
    let g1 = |change: Json, primary: Probe, fallback: Probe| {
        let stream = Stream::up_to(&with(worker(), change), PromotionGate::G0);
        evaluate(&stream.record, &Findings::Routing(&Probes { primary, fallback })).unwrap().outcome
    };
    let none = || Probe::NotConfigured;
    let critical = json!({"critical": true, "fallbackAgentId": "other"});
    let probed = json!({"critical": true, "fallbackAgentId": "other", "fallbackProbeUrl": "http://b/"});
    check(&g1(json!({}), ok(), none()), "passed");
    check(&g1(json!({}), Probe::Answered { status: 503 }, none()), "the primary `worker` answered 503");
    check(&g1(json!({}), Probe::Answered { status: 302 }, none()), "the primary `worker` answered 302");
    check(&g1(json!({}), silent(), none()), "the primary `worker` did not answer: timed out");
    check(&g1(json!({}), none(), none()), "the route has no `probeUrl`");
    check(&g1(json!({"probeUrl": null}), ok(), none()), "the route has no `probeUrl`");
    check(&g1(json!({"critical": true}), ok(), none()), "critical and the route has no fallback");
    check(&g1(critical, ok(), none()), "passed");
    check(&g1(probed.clone(), ok(), ok()), "passed");
    check(&g1(probed.clone(), ok(), silent()), "the fallback `other` did not answer");
    check(&g1(probed.clone(), ok(), none()), "the fallback `other` has not been asked yet");
    check(&g1(json!({}), Probe::NotAsked, none()), "the primary `worker` has not been asked yet");
    // What is not critical stands without its fallback.
    check(&g1(with(probed, json!({"critical": false})), ok(), silent()), "passed");
}

#[test]
fn g2_needs_enough_completed_simulated_handoffs_since_g1_and_nothing_against_them() {
    let mut stream = Stream::declared(&worker());
    stream.pass_next();
    let early = stream.completed("hs_early");
    let across = stream.elsewhere();
    stream.pass_next();
    let good: Vec<_> = (0..3).map(|n| stream.completed(&format!("hs_good_{n}"))).collect();
    let other = |accepted: u64, end: SimulatedEnd, stream: &mut Stream| SimulatedOutcome {
        handoff_id: "hs_other".into(),
        accepted,
        ended: stream.elsewhere(),
        end,
    };
    let g2 = |stream: &Stream, more: &[SimulatedOutcome], take: usize| {
        let outcomes = [&good[..take], more].concat();
        let simulation = Simulation { needed: 3, outcomes: &outcomes };
        evaluate(&stream.record, &Findings::Simulation(simulation)).unwrap().outcome
    };
    let passed = g2(&stream, &[], 3);
    check(&passed, "passed");
    assert_eq!(passed.evidence, good.iter().map(|outcome| outcome.ended).collect::<Vec<_>>());
    check(&g2(&stream, &[], 2), "2 of 3 simulated handoffs");
    check(&g2(&stream, &good[..1], 2), "2 of 3 simulated handoffs");
    check(&g2(&stream, std::slice::from_ref(&early), 2), "2 of 3 simulated handoffs");
    let done = SimulatedEnd::Completed { side_effects: vec![] };
    let accepted_before = other(across, done, &mut stream);
    check(&g2(&stream, &[accepted_before], 2), "2 of 3 simulated handoffs");
    let failed = |code: &str| SimulatedEnd::Failed { code: code.into() };
    for code in ["EXECUTION_SCHEMA_INVALID", "A2A_SIGNATURE_INVALID", "POLICY_RISK"] {
        let accepted = stream.elsewhere();
        let outcome = other(accepted, failed(code), &mut stream);
        check(&g2(&stream, &[outcome], 3), &format!("`hs_other` failed with {code}"));
        // The outcome counts, whenever it was accepted; one from before the window does not.
        let outcome = other(across, failed(code), &mut stream);
        check(&g2(&stream, &[outcome], 3), "failed with");
        check(&g2(&stream, &[SimulatedOutcome { end: failed(code), ..early.clone() }], 3), "passed");
    }
    for end in [failed("EXECUTION_TIMEOUT"), SimulatedEnd::Cancelled] {
        let accepted = stream.elsewhere();
        let outcome = other(accepted, end, &mut stream);
        check(&g2(&stream, std::slice::from_ref(&outcome), 3), "passed");
        check(&g2(&stream, &[outcome], 2), "2 of 3 simulated handoffs");
    }
    let accepted = stream.elsewhere();
    let effect =
        other(accepted, SimulatedEnd::Completed { side_effects: vec!["sent 1 SOL".into()] }, &mut stream);
    check(&g2(&stream, &[effect], 3), "`hs_other` reported a side effect: `sent 1 SOL`");
}

/// What a violation spoiled is not spoiled for ever: passing G1 again starts the window anew.
#[test]
fn g1_passed_again_begins_another_window() {
    let mut stream = Stream::up_to(&worker(), PromotionGate::G1);
    let accepted = stream.elsewhere();
    let end = SimulatedEnd::Failed { code: "POLICY_RISK".into() };
    let bad = SimulatedOutcome { handoff_id: "hs_bad".into(), accepted, ended: stream.elsewhere(), end };
    let spoiled = [bad.clone(), stream.completed("hs_good")];
    let g2 = Findings::Simulation(Simulation { needed: 1, outcomes: &spoiled });
    check(&stream.decide("human:rita", &g2), "hs_bad");
    assert_eq!(
        (stream.record.status, stream.record.last_gate_passed()),
        (GateStatus::Failed, Some(PromotionGate::G1))
    );
    let probes = Probes { primary: Probe::Answered { status: 200 }, fallback: Probe::NotConfigured };
    check(&stream.decide("human:rita", &Findings::Routing(&probes)), "passed");
    let outcomes = [bad, stream.completed("hs_again")];
    let g2 = Findings::Simulation(Simulation { needed: 1, outcomes: &outcomes });
    check(&stream.decide("human:rita", &g2), "passed");
    // And a gate that fails when it is asked again takes those behind it along.
    let silent = Probes { primary: Probe::Silent { why: "refused".into() }, fallback: Probe::NotConfigured };
    check(&stream.decide("human:rita", &Findings::Routing(&silent)), "did not answer");
    assert_eq!((stream.record.stage, stream.record.next_gate()), (Stage::Dev, Some(PromotionGate::G1)));
}

fn g3_of(stream: &Stream, handoff: &E2eHandoff, names: &AgentNames) -> GateAnswer {
    let handoffs = std::slice::from_ref(handoff);
    evaluate(&stream.record, &Findings::E2e { handoffs, names }).unwrap()
}

/// What agents are called, by routes like these.
fn names_of(routes: &[(&str, &str)]) -> AgentNames {
    let route = |(primary, alias): &(&str, &str)| {
        route_of(&json!({"capability": "side", "primaryAgentId": primary, "aliases": [alias]}))
    };
    let routes: Vec<Route> = routes.iter().map(route).collect();
    AgentNames::of(routes.iter())
}

#[test]
fn nobody_vouches_for_a_run_of_theirs_under_any_name_and_through_no_harness() {
    let names = names_of(&[("worker", "w3"), ("router", "r2"), ("dr", "dr2"), ("other", "o2")]);
    let route = with(worker(), json!({"fallbackAgentId": "dr"}));
    let check_as = |sender: &str, [agent_id, registered_by, principal]: [Option<&str>; 3], expected: &str| {
        let mut stream = Stream::up_to(&route, PromotionGate::G2);
        let handoff = stream.run("hs_e2e_0001");
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (agent_id, registered_by) = (owned(agent_id), owned(registered_by));
        stream.attach_as(
            sender,
            Voucher { agent_id, registered_by, principal: owned(principal) },
            "hs_e2e_0001",
        );
        check(&g3_of(&stream, &handoff, &names).outcome, expected);
        assert_eq!(stream.replayed(), stream.record);
    };
    const OWN: &str = "is one of its own ends";
    for own in ["worker", "w3", "router", "r2", "dr", "dr2"] {
        check_as(&format!("human:{own}"), [None; 3], OWN);
        check_as("human:rita", [None, None, Some(own)], OWN);
        check_as("runner:nightly", [Some(own), None, None], OWN);
        check_as("runner:nightly", [None, Some(own), None], OWN);
        check_as("runner:nightly", [None, Some("bo"), Some(own)], OWN);
    }
    check_as("human:o2", [None, None, Some("other")], "passed");
    check_as("runner:nightly", [Some("o2"), Some("rita"), Some("user:rita")], "passed");
    // An entry of a time before these were recorded.
    check_as("runner:nightly", [None; 3], "passed");
}

#[test]
fn g3_needs_a_completed_run_with_evidence_of_somebody_who_is_neither_end_of_it() {
    let check_run = |sender: &str, change: &dyn Fn(&mut E2eHandoff), expected: &str| {
        let mut stream = Stream::up_to(&with(worker(), json!({"aliases": ["w2"]})), PromotionGate::G2);
        let mut handoff = stream.run("hs_e2e_0001");
        change(&mut handoff);
        stream.attach(sender, "hs_e2e_0001");
        let answer = g3_of(&stream, &handoff, &AgentNames::default());
        check(&answer.outcome, expected);
        let expected = if expected == "passed" {
            (vec![handoff.completed.unwrap(), stream.sequence], handoff.plan_ref)
        } else {
            (vec![], None)
        };
        assert_eq!((answer.outcome.evidence, answer.plan_ref), expected);
    };
    let human = |handoff: &mut E2eHandoff| handoff.e2e_actor = "human".into();
    check_run("human:rita", &|_| {}, "passed");
    check_run("human:rita", &human, "passed");
    check_run("runner:nightly", &|_| {}, "passed");
    check_run("runner:nightly", &human, "the TaskSpec asks for a human");
    check_run("agent:worker", &|_| {}, "no operator or harness attached it");
    check_run("system", &|_| {}, "no operator or harness attached it");
    for sender in ["human:worker", "human:router", "runner:worker", "runner:router", "human:w2"] {
        check_run(sender, &|_| {}, "is one of its own ends");
    }
    check_run(
        "human:claimer",
        &|handoff| handoff.claimed_by = Some("claimer".into()),
        "is one of its own ends",
    );
    check_run("human:rita", &|handoff| handoff.completed = None, "it is not completed");
    check_run("human:rita", &|handoff| handoff.completed = Some(1), "it was completed before G1");
    // Evidence on another handoff is none.
    check_run(
        "human:rita",
        &|handoff| handoff.handoff_id = "hs_e2e_0002".into(),
        "no evidence of an authorized",
    );
}

#[test]
fn evidence_from_before_a_rollback_does_not_count_after_it() {
    let mut stream = Stream::up_to(&worker(), PromotionGate::G2);
    let handoff = stream.run("hs_e2e_0001");
    stream.attach("human:rita", "hs_e2e_0001");
    stream.roll_back(Some(false), &[]);
    let g3 = |stream: &Stream, handoff: &E2eHandoff| g3_of(stream, handoff, &AgentNames::default()).outcome;
    check(&g3(&stream, &handoff), "no evidence of an authorized");
    stream.attach("human:rita", "hs_e2e_0001");
    check(&g3(&stream, &handoff), "before the last rollback");
    let handoff = stream.run("hs_e2e_0003");
    stream.attach("human:rita", "hs_e2e_0003");
    check(&g3(&stream, &handoff), "passed");
}

#[test]
fn g4_needs_a_named_operator_and_the_routes_own_plan() {
    let stream = Stream::up_to(&worker(), PromotionGate::G3);
    let plan = |plan_ref: &str| Ok(Plan { plan_ref: plan_ref.into(), form: PlanForm::Document });
    let names = names_of(&[("worker", "w3"), ("dr", "dr2"), ("router", "r2")]);
    let g4_by = |stream: &Stream, operator: Option<Operator<'_>>, plan: &Result<Plan, PlanFault>| {
        evaluate(&stream.record, &Findings::Live { operator, names: &names, plan }).unwrap().outcome
    };
    let g4 = |stream: &Stream, name: Option<&str>, plan: &Result<Plan, PlanFault>| {
        g4_by(stream, name.map(|name| Operator { name, principal: None }), plan)
    };
    check(&g4(&stream, Some("rita"), &plan("plans/back.md")), "passed");
    check(&g4(&stream, None, &plan("plans/back.md")), "no operator approves it by name");
    check(&g4(&stream, Some(""), &plan("plans/back.md")), "no operator approves it by name");
    check(&g4(&stream, Some("rita"), &plan("plans/other.md")), "is not the route's rollback plan");
    check(&g4(&stream, Some("rita"), &Err(PlanFault::None)), "the route has no rollback plan");
    // Nobody lets their own work go live.
    let with_fallback = with(worker(), json!({"fallbackAgentId": "dr", "aliases": ["w2"]}));
    let own = Stream::up_to(&with_fallback, PromotionGate::G3);
    for name in ["worker", "w2", "w3", "dr", "dr2"] {
        check(&g4(&own, Some(name), &plan("plans/back.md")), "is an agent of the route");
        let tied = Some(Operator { name: "rita", principal: Some(name) });
        check(&g4_by(&own, tied, &plan("plans/back.md")), "the operator `rita` is an agent of the route");
    }
    check(&g4(&own, Some("r2"), &plan("plans/back.md")), "passed");
    check(&g4(&stream, Some("dr"), &plan("plans/back.md")), "passed");
    // A route without a plan of its own has the one that the handoff of G3 names.
    let stream = Stream::up_to(&with(worker(), json!({"rollbackPlanRef": null})), PromotionGate::G3);
    assert_eq!(stream.record.plan_ref(), Some("plans/of-the-handoff.md"));
    check(&g4(&stream, Some("rita"), &plan("plans/of-the-handoff.md")), "passed");
    check(&g4(&stream, Some("rita"), &plan("plans/back.md")), "is not the route's rollback plan");
}

#[test]
fn gates_are_passed_in_order_and_open_the_stages() {
    let mut stream = Stream::declared(&worker());
    let stages = ["dev", "dev", "simulated", "simulated", "simulated", "live"];
    for (n, stage) in stages.into_iter().enumerate() {
        assert_eq!(stream.record.stage.as_str(), stage);
        let next = stream.record.next_gate();
        assert_eq!(next, PromotionGate::ALL.get(n).copied());
        for gate in PromotionGate::ALL {
            let in_order = next.is_some_and(|next| gate <= next);
            let expected = if in_order { Ok(()) } else { Err(NotNow::OutOfOrder { next }) };
            assert_eq!(may_ask(&stream.record, gate), expected);
        }
        for (mode, needed) in
            [(Mode::Dev, Stage::Dev), (Mode::Simulated, Stage::Simulated), (Mode::Live, Stage::Live)]
        {
            assert_eq!(mode_allowed(&stream.record, mode).is_ok(), stream.record.stage >= needed, "{stage}");
        }
        if next.is_some() {
            stream.pass_next();
        }
    }
    assert_eq!(stream.record.approved().map(|(name, _)| name), Some("rita"));
    assert_eq!(may_ask(&RouteRecord::default(), PromotionGate::G0), Err(NotNow::Undeclared));
    stream.roll_back(Some(true), &[]);
    assert_eq!(may_ask(&stream.record, PromotionGate::G3), Err(NotNow::Blocked));
    assert_eq!(stream.record.approved(), None);
}

#[test]
fn an_answer_is_recorded_only_under_what_it_was_evaluated_under() {
    let stream = Stream::up_to(&worker(), PromotionGate::G3);
    let plan = Ok(Plan { plan_ref: "plans/back.md".into(), form: PlanForm::Document });
    let answer = evaluate(
        &stream.record,
        &Findings::Live { operator: RITA, names: &AgentNames::default(), plan: &plan },
    )
    .unwrap();
    let check = |change: &dyn Fn(&mut Stream), expected: Result<(), Superseded>| {
        let mut now = stream.clone();
        change(&mut now);
        assert_eq!(may_record(&now.record, &answer), expected);
        assert_eq!(record_gate(&now.record, &answer, 5).map(drop), expected);
    };
    let load =
        |stream: &mut Stream, change: Json| drop(stream.load(Some(&route_of(&with(worker(), change)))));
    check(&|_| {}, Ok(()));
    check(&|now| load(now, json!({"rollbackPlanRef": "plans/other.md"})), Err(Superseded::Redefined));
    check(&|now| now.attach("human:omar", "hs_more"), Ok(()));
    check(&|now| drop(now.roll_back(Some(false), &[])), Err(Superseded::RolledBack { epoch: 1 }));
    check(&|now| drop(now.roll_back(Some(true), &[])), Err(Superseded::RolledBack { epoch: 1 }));
    check(&|now| load(now, json!({"primaryAgentId": "other"})), Err(Superseded::Redefined));
    check(&|now| drop(now.load(None)), Err(Superseded::Undeclared));
    check(&|now| now.pass_next(), Err(Superseded::Decided));
    // There and back again is not the same.
    check(
        &|now| {
            load(now, json!({"primaryAgentId": "other"}));
            load(now, json!({}));
        },
        Err(Superseded::Decided),
    );
}
