//! One delegation policy: what a principal may hand to whom.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::names::{Names, pattern_covers};
use crate::contract::{RiskClass, Word as _};

/// A file of `policies/delegation/`. It is the authority; a TaskSpec may narrow it, never widen it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DelegationPolicy {
    pub principals: Names,
    pub allow_agents: Names,
    pub allow_channels: Names,
    pub allow_tasks: Names,
    #[serde(default)]
    pub allow_without_channel: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ttl_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    risk_floor: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    require_binding: Vec<String>,
}

impl DelegationPolicy {
    /// The least classification a sender may give to an operation; the gravest of all that apply.
    pub fn floor(&self, operation: &str) -> Option<RiskClass> {
        self.risk_floor
            .iter()
            .filter(|(pattern, _)| pattern_covers(pattern, operation))
            .filter_map(|(_, class)| RiskClass::from_word(class))
            .max()
    }

    /// Is any operation given a least classification?
    pub(crate) fn has_floor(&self) -> bool {
        !self.risk_floor.is_empty()
    }

    /// Must envelopes of any class be bound to their handoff?
    pub(crate) fn has_binding(&self) -> bool {
        !self.require_binding.is_empty()
    }

    /// Must an envelope of this class be bound to its handoff?
    pub fn requires_binding(&self, class: RiskClass) -> bool {
        self.require_binding.iter().any(|name| name == class.as_str())
    }
}
