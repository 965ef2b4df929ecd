//! A route's definition, and the part of it that the gates belong to.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::policy::Route;
use crate::proof::{Digest, canonical_json};

/// A route as the routing table defines it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Route", into = "Route")]
pub struct Definition {
    pub route: Route,
    /// Of who does the work, what work it is and in which form it arrives: what the gates have tried. Everything else
    /// can be edited without trying it again.
    pub digest: Digest,
}

impl Definition {
    pub fn of(route: &Route) -> Self {
        route.clone().into()
    }

    /// The digest of all of it.
    pub fn whole_digest(&self) -> Digest {
        Digest::of(&self.route.to_canonical())
    }
}

impl From<Route> for Definition {
    fn from(route: Route) -> Self {
        let tried = json!({
            "capability": route.capability,
            "primaryAgentId": route.primary_agent_id,
            "profile": route.profile,
        });
        Self { digest: Digest::of(&canonical_json(&tried)), route }
    }
}

impl From<Definition> for Route {
    fn from(definition: Definition) -> Self {
        definition.route
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_belong_to_the_primary_the_profile_and_the_capability_and_to_nothing_else() {
        let base = json!({"capability": "work", "primaryAgentId": "worker"});
        let definition = |change: serde_json::Value| {
            let mut route = base.clone();
            route.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            Definition::of(&serde_json::from_value(route).unwrap())
        };
        let first = definition(json!({}));
        for change in [
            json!({"capability": "other"}),
            json!({"primaryAgentId": "other"}),
            json!({"profile": "execution-plane.v1"}),
        ] {
            assert_ne!(definition(change.clone()).digest, first.digest, "{change}");
        }
        for change in [
            json!({"aliases": ["w2"]}),
            json!({"fallbackAgentId": "other"}),
            json!({"critical": true}),
            json!({"stage": "simulated"}),
            json!({"probeUrl": "http://a/"}),
            json!({"fallbackProbeUrl": "http://a/"}),
            json!({"signingKeyId": "k"}),
            json!({"requireSignature": true}),
            json!({"rollbackPlanRef": "plans/back.md"}),
            json!({"approvers": 2}),
        ] {
            let other = definition(change.clone());
            assert_eq!(other.digest, first.digest, "{change}");
            assert_ne!(other.whole_digest(), first.whole_digest(), "{change}");
            let kept: Definition = serde_json::from_value(serde_json::to_value(&other).unwrap()).unwrap();
            assert_eq!(kept, other);
        }
    }
}
