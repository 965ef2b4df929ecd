//! Handoffs that name a grant: what goes out with them, and for how long.

use super::*;
use crate::authorization::Terms;

const GRANT_ENDS: &str = "2026-02-18T19:40:00Z";
/// When the mention of the shipped example is no longer fresh.
const MENTION_ENDS: &str = "2026-02-18T19:41:58Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

impl Scene {
    /// Of rita's, for one use of what the shipped example asks for.
    fn grants(&self, expires_at: &str) -> String {
        let owned = |text: &str| vec![text.to_owned()];
        let terms = Terms {
            agents: owned("blockchain-operator"),
            channels: Vec::new(),
            expires_at: at(expires_at),
            intent_hash: None,
            modes: vec![Mode::Simulated, Mode::Live],
            operations: owned("balance.read"),
            principal: "user:main".to_owned(),
            route_key: None,
            uses: 1,
        };
        let granted = self.engine.grant(terms, rita()).unwrap().unwrap();
        granted.held.grant.authorization_ref.to_string()
    }

    fn revokes(&self, grant: &str) {
        self.engine.revoke_grant(grant.to_owned(), None, rita()).unwrap().unwrap();
    }
}

fn naming(grant: &str, mode: &str) -> Json {
    let mut spec: Json = serde_json::from_str(READ).unwrap();
    spec["authorship"]["risk"]["authorizationRef"] = json!(grant);
    spec["audit"]["delegation"]["authorizationRef"] = json!(grant);
    spec["mode"] = json!(mode);
    spec["safety"]["requiresHumanApproval"] = json!(mode == "live");
    spec
}

/// The shipped example under a grant, allowed: by itself, by a use of the grant, or by two people beside it.
fn allowed(mode: &str, approvers: u8, ends: &str) -> (Scene, String, Json, Arc<Decided>) {
    let mut scene = Scene::with(|route| route.approvers = approvers);
    scene.take_mentions();
    let grant = scene.grants(ends);
    let spec = naming(&grant, mode);
    let mut decided = scene.submit(&spec);
    if mode == "live" && approvers == 2 {
        for person in ["rita", "bo"] {
            assert_eq!(decided.decision, Decision::NeedsApproval, "{:?}", decided.reasons);
            decided = scene.approve(&spec, Asking::person_of(person, None)).unwrap();
        }
    }
    assert_eq!(decided.decision, Decision::Allowed, "{:?}", decided.reasons);
    (scene, grant, spec, decided)
}

const WAYS: [(&str, u8); 3] = [("simulated", 1), ("live", 1), ("live", 2)];

/// A receipt holds no longer than this does.
#[test]
fn a_payload_goes_out_no_longer_than_its_grant_counts() {
    for (mode, approvers) in WAYS {
        for restart in RESTARTS {
            for (ends, until) in [(GRANT_ENDS, GRANT_ENDS), ("2026-02-18T20:00:00Z", MENTION_ENDS)] {
                let (mut scene, _, spec, first) = allowed(mode, approvers, ends);
                let carried = Pass::Dispatch { until: Some(at(until)) };
                assert_eq!(first.pass, carried, "{mode} {approvers}");
                restart(&mut scene);
                // That the grant is spent is no matter: this is what it was spent on.
                assert_eq!(scene.submit(&spec).pass, carried, "{mode} {approvers}");
                // A second before the grant ends, and that very instant.
                scene.world.at(119);
                assert_eq!(scene.submit(&spec).pass, carried, "{mode} {approvers}");
                scene.world.at(120);
                let after = if ends == GRANT_ENDS { Pass::Withheld } else { carried };
                let again = scene.submit(&spec);
                assert_eq!((again.decision, again.pass), (Decision::Allowed, after), "{mode} {approvers}");
                scene.engine.stop();
            }
        }
    }
}

#[test]
fn a_replay_carries_nothing_once_the_grant_was_revoked() {
    for (mode, approvers) in WAYS {
        for restart in RESTARTS {
            let (mut scene, grant, spec, _) = allowed(mode, approvers, GRANT_ENDS);
            // Another grant is not the one that it names.
            let other = scene.grants(GRANT_ENDS);
            scene.revokes(&other);
            assert!(matches!(scene.submit(&spec).pass, Pass::Dispatch { .. }), "{mode} {approvers}");
            scene.revokes(&grant);
            restart(&mut scene);
            let again = scene.submit(&spec);
            let said = (again.decision, again.replayed, again.pass);
            assert_eq!(said, (Decision::Allowed, true, Pass::Withheld), "{mode} {approvers}");
            scene.engine.stop();
        }
    }
}
