//! Who may do the work of a handoff.

use super::routes::Route;

/// Who may do the work of a handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// The target, and whoever else its route names.
    Route,
    /// In somebody's name only those whom that person signed for: the target, and the fallback that the TaskSpec names.
    Named { fallback_agent: Option<String> },
}

impl Reach {
    /// The same without whoever else the route names.
    #[must_use]
    pub fn named(&self) -> Self {
        match self {
            Self::Route => Self::Named { fallback_agent: None },
            Self::Named { .. } => self.clone(),
        }
    }

    /// Who may do it instead of the target, if anybody may; `route` is its route as it is now.
    pub fn fallback<'r>(&'r self, route: Option<&'r Route>) -> Option<&'r str> {
        match self {
            Self::Route => route.and_then(|route| route.fallback_agent_id.as_deref()),
            Self::Named { fallback_agent } => fallback_agent.as_deref(),
        }
    }

    /// Who may do it: the target, and who else the route names. In somebody's name only those whom that person signed
    /// for, each under any of its names.
    pub fn claimants<'r>(&'r self, target: Option<&'r str>, route: Option<&'r Route>) -> Vec<&'r str> {
        let fallback = self.fallback(route);
        let own = |route: &&Route| match self {
            Self::Route => true,
            Self::Named { .. } => route.own_names().any(|name| [target, fallback].contains(&Some(name))),
        };
        target
            .into_iter()
            .chain(fallback)
            .chain(route.filter(own).into_iter().flat_map(Route::own_names))
            .collect()
    }
}
