//! What the ledger says is in force: the policy set, the routes, and how far each of those streams has come.
//!
//! Small and cheap to copy, so that the sequencer can keep one for what is durable, one for what is being
//! written, and one for what it is building, and fall back when a batch fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::credentials::{CredentialChange, Credentials, TokenFacts};
use super::epoch::Epoch;
use crate::authorization::{GrantBook, Inbox};
use crate::freeze::Freezes;
use crate::mentions::Rollout;
use crate::policy::{PolicySet, Route, Stage};
use crate::proof::Keyring;
use crate::wire::{Fact, FactFault, Kind, Payload};

#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    /// The last number in the gateway's own stream.
    pub(super) gateway_seq: u64,
    pub(super) policy_digest: Option<String>,
    pub(super) credentials: Arc<Credentials>,
    /// Of a ledger that was restored from a backup.
    pub(super) epoch: Option<Arc<Epoch>>,
    pub(super) grants: GrantBook,
    pub(super) inbox: Inbox,
    pub(super) freezes: Freezes,
    pub(super) mentions: Rollout,
    /// What was last recorded; another one, or none after a batch that failed, is recorded again.
    recorded: Option<Arc<InForce>>,
    /// Routes by their key, and the last number in each one's stream; a route that was removed keeps its number.
    routes: Arc<BTreeMap<String, (Option<RouteFacts>, u64)>>,
}

/// All that decisions rest on, as the gateway read it from the workspace.
#[derive(Debug)]
pub struct InForce {
    pub policies: Arc<PolicySet>,
    pub keyring: Arc<Keyring>,
    /// The tokens that are not revoked.
    pub tokens: Vec<TokenFacts>,
}

/// What the ledger does not say yet.
#[derive(Debug)]
pub(super) struct Changes {
    /// The digest before, if the policy set is another one.
    pub(super) policies: Option<Option<String>>,
    pub(super) routes: Vec<RouteChange>,
    pub(super) credentials: Vec<CredentialChange>,
}

/// The payload of `route.declared`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteFacts {
    capability: String,
    fallback_agent_id: Option<String>,
    primary_agent_id: String,
    stage: String,
}

/// One route that is no longer what the ledger says.
#[derive(Debug)]
pub(super) struct RouteChange {
    pub(super) route_key: String,
    pub(super) stream_seq: u64,
    /// Nothing if it was removed.
    pub(super) facts: Option<RouteFacts>,
}

/// Do events of this type say anything of what [`Standing::take`] keeps? Handoffs are created and made available all
/// the time, so those are taken in only where somebody waits.
pub(super) fn concerns(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ApprovalRequested
            | Kind::ApprovalGranted
            | Kind::ApprovalRejected
            | Kind::TaskCancelled
            | Kind::TaskRejected
            | Kind::TaskAvailable
            | Kind::AuthorizationCreated
            | Kind::AuthorizationUsed
            | Kind::AuthorizationRevoked
            | Kind::FreezeSet
            | Kind::FreezeLifted
            | Kind::MentionChanged
            | Kind::MentionObserved
            | Kind::MentionMarked
    )
}

impl RouteFacts {
    fn of(route: &Route) -> Self {
        Self {
            capability: route.capability.clone(),
            fallback_agent_id: route.fallback_agent_id.clone(),
            primary_agent_id: route.primary_agent_id.clone(),
            stage: match route.stage {
                Stage::Dev => "dev".to_owned(),
                Stage::Simulated => "simulated".to_owned(),
            },
        }
    }

    pub(super) fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text("capability", &self.capability);
        payload.text_or_null("fallback_agent_id", self.fallback_agent_id.as_deref());
        payload.text("primary_agent_id", &self.primary_agent_id);
        payload.text("stage", &self.stage);
    }
}

impl Standing {
    /// Takes in what an entry says people decided, and what follows from it.
    pub(super) fn take(&mut self, fact: &Fact<'_>) -> Result<(), FactFault> {
        self.grants.take(fact)?;
        self.inbox.take(fact)?;
        self.freezes.take(fact)?;
        self.mentions.take(fact)
    }

    /// What must be recorded for this to be in force, and takes it as recorded; nothing if it is already.
    pub(super) fn adopt(&mut self, in_force: &Arc<InForce>) -> Option<Changes> {
        if self.recorded.as_ref().is_some_and(|recorded| Arc::ptr_eq(recorded, in_force)) {
            return None;
        }
        self.recorded = Some(in_force.clone());
        let InForce { policies, keyring, tokens } = &**in_force;
        let digest = policies.digest().to_string();
        let (mut before, mut routes) = (None, Vec::new());
        if self.policy_digest.as_ref() != Some(&digest) {
            before = Some(self.policy_digest.replace(digest));
            routes = self.adopt_routes(policies);
        }
        let credentials = Arc::make_mut(&mut self.credentials).adopt(tokens, keyring);
        Some(Changes { policies: before, routes, credentials })
    }

    fn adopt_routes(&mut self, policies: &PolicySet) -> Vec<RouteChange> {
        let mut changes = Vec::new();
        for (key, route) in policies.routes() {
            let facts = RouteFacts::of(route);
            let (known, stream_seq) = self.routes.get(key).cloned().unwrap_or((None, 0));
            if known.as_ref() != Some(&facts) {
                changes.push(RouteChange {
                    route_key: key.clone(),
                    stream_seq: stream_seq + 1,
                    facts: Some(facts),
                });
            }
        }
        for (key, (known, stream_seq)) in self.routes.iter() {
            if known.is_some() && policies.route(key).is_none() {
                changes.push(RouteChange { route_key: key.clone(), stream_seq: stream_seq + 1, facts: None });
            }
        }
        for change in &changes {
            self.take_route(&change.route_key, change.facts.clone(), change.stream_seq);
        }
        changes
    }

    /// Takes what the ledger says of a route.
    pub(super) fn take_route(&mut self, route_key: &str, facts: Option<RouteFacts>, stream_seq: u64) {
        Arc::make_mut(&mut self.routes).insert(route_key.to_owned(), (facts, stream_seq));
    }
}
