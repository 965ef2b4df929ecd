//! Which names are of one agent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::routes::Route;

/// What each agent is called, by every one of its names.
///
/// Every decision asks, so this is made once for a set of routes. An agent with one name is not in it.
#[derive(Debug, Clone, Default)]
pub struct AgentNames(BTreeMap<Box<str>, Vec<OneAgent>>);

/// All names of one agent.
type OneAgent = Arc<[Box<str>]>;

impl AgentNames {
    /// An alias is another name of its route's primary, on whichever of these routes the primary stands. So the names of
    /// one primary are put together, and an alias that two primaries have makes no one agent of them.
    pub fn of<'r>(routes: impl Iterator<Item = &'r Route>) -> Self {
        let mut agents: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for route in routes {
            agents.entry(&route.primary_agent_id).or_default().extend(route.own_names());
        }
        let mut names = Self::default();
        for own in agents.into_values().filter(|own| own.len() > 1) {
            let all: OneAgent = own.iter().map(|name| Box::from(*name)).collect();
            for name in own {
                names.0.entry(name.into()).or_default().push(all.clone());
            }
        }
        names
    }

    /// What else the agent of this name is called.
    pub fn others<'s>(&'s self, agent_id: &'s str) -> impl Iterator<Item = &'s str> {
        let all = self.0.get(agent_id).into_iter().flatten().flat_map(|all| all.iter());
        all.map(|name| &**name).filter(move |name| *name != agent_id)
    }

    /// Everything that the agent of this name is called.
    pub fn all<'s>(&'s self, agent_id: &'s str) -> impl Iterator<Item = &'s str> {
        std::iter::once(agent_id).chain(self.others(agent_id))
    }
}
