//! The routing table.

use serde::Deserialize;

/// A route: a capability, the agents that offer it, and how far it has come by declaration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    pub capability: String,
    pub primary_agent_id: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    pub fallback_agent_id: Option<String>,
    #[serde(default)]
    pub critical: bool,
    #[serde(default)]
    pub stage: Stage,
    #[serde(default)]
    pub profile: Profile,
    pub probe_url: Option<String>,
    pub fallback_probe_url: Option<String>,
    pub signing_key_id: Option<String>,
    pub require_signature: Option<bool>,
    pub rollback_plan_ref: Option<String>,
    #[serde(default = "one")]
    pub approvers: u8,
}

fn one() -> u8 {
    1
}

/// The stage a route is declared for; live is earned, never declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    #[default]
    Dev,
    Simulated,
}

/// What the target of a route receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Profile {
    /// The TaskSpec itself.
    #[default]
    #[serde(rename = "plain")]
    Plain,
    /// The execution plane's own envelope.
    #[serde(rename = "execution-plane.v1")]
    ExecutionPlaneV1,
}

impl Route {
    /// May work on this route be handed to that agent?
    pub fn reaches(&self, agent_id: &str) -> bool {
        self.primary_agent_id == agent_id
            || self.fallback_agent_id.as_deref() == Some(agent_id)
            || self.aliases.iter().any(|alias| alias == agent_id)
    }
}
