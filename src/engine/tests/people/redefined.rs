//! Live work under way on a route that has become another one, or is gone.

use super::*;

impl Scene {
    fn redefine(&mut self, change: impl FnOnce(&mut Route)) {
        self.rules = rules(change);
        self.engine.put_in_force_and_wait(self.rules.clone()).unwrap();
    }

    /// The table does not have the route any more.
    fn remove(&mut self) {
        let none = tempfile::tempdir().unwrap();
        std::fs::create_dir(none.path().join("policies")).unwrap();
        let table = none.path().join("policies/routes.json");
        crate::os::files::create_public(&table, br#"{"routes": {}}"#).unwrap();
        let policies = Workspace::new(none.path()).load_policies().unwrap();
        self.put(&Arc::new(policies), Keyring::default());
        assert!(self.record().declared.is_none());
    }
}

fn newcomer(route: &mut Route) {
    route.primary_agent_id = "newcomer".into();
}

const CHANGES: [fn(&mut Scene); 2] = [|scene| scene.redefine(newcomer), Scene::remove];

/// What is under way is what the ledger says, whoever reads it: a rollback stops it, and no agent goes on with it.
#[test]
fn a_rollback_ends_live_work_whose_route_is_another_one_by_now_also_after_a_restart() {
    for change in CHANGES {
        for restart in RESTARTS {
            let mut scene = Scene::new();
            scene.go_live();
            assert_eq!(scene.submit(&scene.spec(2)).decision, Decision::NeedsApproval);
            let spec = scene.live(1);
            change(&mut scene);
            assert_eq!(scene.record().stage, Stage::Dev);
            restart(&mut scene);
            // What waits for a person is not under way yet.
            assert_eq!(scene.engine.in_flight(ROUTE), ["hs_00000001"]);
            let ask = rollback(Some(false));
            let done = scene.engine.roll_back(ROUTE.into(), ask, false, rita()).unwrap().unwrap();
            assert_eq!(done.plan.rolled_back, ["hs_00000001"]);
            match scene.report(&spec, 8, "task.claimed", json!({})) {
                Err(ReportRefusal::Refused { fault, .. }) => assert_eq!(fault.code.as_str(), "WIRE_TERMINAL"),
                other => panic!("{other:?}"),
            }
            restart(&mut scene);
            assert!(scene.engine.in_flight(ROUTE).is_empty());
            scene.engine.stop();
        }
    }
}

/// An agent tries to claim what is next in its stream after a yes. A stranger is not even told that there is something.
fn claims(scene: &Scene, agent: &str, spec: &Json, seq: u64) -> bool {
    let id = spec["handoffId"].as_str().unwrap();
    let event = json!({
        "wire": "1.1", "wire_id": format!("wire_{}{}", id.replace('_', ""), agent.replace('-', "")),
        "type": "task.claimed", "ts": "2026-02-18T19:38:05Z", "sender": format!("agent:{agent}"), "payload": {},
        "state": {"category": "working", "terminal": false},
        "stream": {"stream_id": format!("task:{id}:attempt:1"), "stream_seq": seq,
            "context_id": spec["correlationId"], "correlation_id": spec["correlationId"]},
    });
    let event = SentEvent::parse(&event.to_string()).unwrap();
    let report = Report { handoff_id: id.to_owned(), event, side: Side::Target };
    match scene.engine.report_and_wait(report).unwrap() {
        Ok(reported) => reported.state == State::Claimed,
        Err(ReportRefusal::Unknown) => false,
        other => panic!("{other:?}"),
    }
}

const NAMES: [&str; 4] = ["crypto-sage", "blockchain-operator", "crypto-sage-dr", "newcomer"];

/// Who of them may claim live work when the route was changed behind the yes.
fn claimers(change: fn(&mut Scene), restart: fn(&mut Scene)) -> Vec<&'static str> {
    let may = |agent: &&str| {
        let mut scene = Scene::new();
        scene.go_live();
        let spec = scene.live(1);
        change(&mut scene);
        restart(&mut scene);
        let may = claims(&scene, agent, &spec, 7);
        scene.engine.stop();
        may
    };
    NAMES.into_iter().filter(may).collect()
}

/// Nobody has tried whoever is on the route by now; the target is who it was, under its names of then.
#[test]
fn live_work_is_for_those_who_were_tried_whatever_its_route_is_by_now() {
    let target = ["crypto-sage", "blockchain-operator"];
    type Change = fn(&mut Scene);
    let changes: [(Change, &[&str]); 7] = [
        (|_| {}, &["crypto-sage", "blockchain-operator", "crypto-sage-dr"]),
        // What the gates do not depend on is as the table has it.
        (|scene| scene.redefine(|route| route.fallback_agent_id = None), &target),
        (
            |scene| scene.redefine(|route| route.fallback_agent_id = Some("newcomer".into())),
            &["crypto-sage", "blockchain-operator", "newcomer"],
        ),
        (|scene| scene.redefine(newcomer), &target),
        // Under which the target is still known.
        (
            |scene| {
                scene.redefine(|route| {
                    route.aliases.push(std::mem::replace(&mut route.primary_agent_id, "newcomer".into()));
                })
            },
            &target,
        ),
        (Scene::remove, &target),
        // Twice another one, and once gone in between: what it was in the decision counts.
        (
            |scene| {
                scene.redefine(newcomer);
                scene.remove();
                scene.redefine(|route| route.aliases = vec!["newcomer".into()]);
            },
            &target,
        ),
    ];
    for (n, (change, expected)) in changes.into_iter().enumerate() {
        for restart in RESTARTS {
            assert_eq!(claimers(change, restart), expected, "change {n}");
        }
    }
}

/// What goes live again is for those who were tried then.
#[test]
fn what_is_decided_for_the_route_as_it_is_now_is_for_its_agents() {
    for restart in RESTARTS {
        let mut scene = Scene::new();
        scene.go_live();
        let before = scene.live(1);
        scene.redefine(|route| {
            route.aliases.push(std::mem::replace(&mut route.primary_agent_id, "newcomer".into()))
        });
        scene.go_live();
        let since = scene.live(2);
        restart(&mut scene);
        assert!(!claims(&scene, "newcomer", &before, 7));
        assert!(claims(&scene, "newcomer", &since, 7));
        assert!(claims(&scene, "crypto-sage", &before, 7));
        scene.engine.stop();
    }
}
