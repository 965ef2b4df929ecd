//! The routing table.

use serde::{Deserialize, Serialize};

use crate::proof::canonical_json;

/// A route: a capability, the agents that offer it, and how far it has come by declaration.
///
/// Written, it has only the members that say something, so that one route has one form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    pub capability: String,
    pub primary_agent_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_agent_id: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub critical: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub stage: Stage,
    #[serde(default, skip_serializing_if = "is_default")]
    pub profile: Profile,
    /// The input schemas that TaskSpecs on it may name; any of the workspace, where none is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_schema_refs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_probe_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing_key_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_signature: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_plan_ref: Option<String>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub approvers: u8,
}

fn one() -> u8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_one(number: &u8) -> bool {
    *number == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The stage a route is declared for; live is earned, never declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    #[default]
    Dev,
    Simulated,
}

/// What the target of a route receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
    /// The canonical text of its one form.
    pub fn to_canonical(&self) -> Vec<u8> {
        // A struct of texts, flags and small numbers always becomes JSON.
        canonical_json(&serde_json::to_value(self).unwrap_or_default())
    }

    /// May a TaskSpec on it name this input schema?
    pub fn takes_input_of(&self, schema_ref: &str) -> bool {
        self.input_schema_refs.is_empty() || self.input_schema_refs.iter().any(|one| one == schema_ref)
    }

    /// All names of the route's own agent.
    pub fn own_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.primary_agent_id).chain(&self.aliases).map(String::as_str)
    }

    /// The members with a URL that names a user or a password. A route is recorded for ever and shown, with its URLs.
    pub(super) fn with_credentials(&self) -> impl Iterator<Item = &'static str> {
        let urls = [("probeUrl", &self.probe_url), ("fallbackProbeUrl", &self.fallback_probe_url)];
        urls.into_iter()
            .filter(|(_, url)| url.as_deref().is_some_and(names_somebody))
            .map(|(member, _)| member)
    }

    /// Everybody to whom work on this route may be handed.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.own_names().chain(self.fallback_agent_id.as_deref())
    }

    /// May work on this route be handed to that agent?
    pub fn reaches(&self, agent_id: &str) -> bool {
        self.agents().any(|name| name == agent_id)
    }
}

/// Does somebody's name stand before the host?
fn names_somebody(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}
