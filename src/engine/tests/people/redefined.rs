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
