//! What the ledger says is in force: the policy set, the routes, and how far each of those streams has come.
//!
//! Small and cheap to copy, so that the sequencer can keep one for what is durable, one for what is being
//! written, and one for what it is building, and fall back when a batch fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use super::credentials::{CredentialChange, Credentials, TokenFacts, TokenHands};
use super::epoch::Epoch;
use super::proposing::Consent;
use crate::authorization::{GrantBook, Inbox};
use crate::freeze::Freezes;
use crate::mentions::Rollout;
use crate::policy::{AgentNames, PolicySet};
use crate::promotion::{RouteRecord, Stage};
use crate::proof::Keyring;
use crate::proposal::Proposals;
use crate::wire::{Fact, FactFault, Kind, StreamId};

#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    /// The last number in the gateway's own stream.
    pub(super) gateway_seq: u64,
    pub(super) policy_digest: Option<String>,
    pub(super) credentials: Arc<Credentials>,
    /// Of a ledger that has forgotten claims: a restored one, or one that lost its end.
    pub(super) epoch: Option<Arc<Epoch>>,
    pub(super) grants: GrantBook,
    pub(super) inbox: Inbox,
    pub(super) freezes: Freezes,
    pub(super) mentions: Rollout,
    pub(super) proposals: Proposals,
    /// What was last recorded; another one, or none after a batch that failed, is recorded again.
    recorded: Option<Arc<InForce>>,
    /// Routes by their key; one that was removed keeps its place.
    routes: Arc<BTreeMap<String, RouteEntry>>,
    /// Live handoffs that have not ended, with their route. Many on a busy route, so copies share what is the same.
    flights: RedBlackTreeMapSync<Arc<str>, Arc<str>>,
}

/// A route in the ledger.
#[derive(Debug, Clone, Default)]
struct RouteEntry {
    record: RouteRecord,
    /// The last number in its stream.
    stream_seq: u64,
    /// The last entry with which a handoff on it ended, since the start.
    last_outcome: u64,
    /// It has been live; what was handed over then may be under way still, whatever the route is by now.
    was_live: bool,
    /// As it was each time that it became another one while it was live; few, because a person lets each of them go live.
    former: Vec<RouteRecord>,
}

impl RouteEntry {
    fn take(&mut self, fact: &Fact<'_>, stream_seq: u64) {
        let may_end = matches!(fact.kind, Kind::RouteDeclared | Kind::RouteRemoved);
        let before = (may_end && self.record.stage == Stage::Live).then(|| self.record.clone());
        self.record.take(fact);
        self.stream_seq = stream_seq;
        self.was_live |= self.record.stage == Stage::Live;
        self.former.extend(before.filter(|before| since(before) != since(&self.record)));
    }
}

/// The entry since which a route is the one that it is; nothing if it is gone.
fn since(record: &RouteRecord) -> Option<u64> {
    record.declared.as_ref().map(|declared| declared.since)
}

/// All that decisions rest on, as the gateway read it from the workspace.
#[derive(Debug)]
pub struct InForce {
    pub policies: Arc<PolicySet>,
    pub keyring: Arc<Keyring>,
    /// The tokens that are not revoked.
    pub tokens: Vec<TokenFacts>,
    /// Those that were revoked, by their id, where several gateways share them.
    pub revoked: Vec<String>,
    /// Who made and revoked them, where a person did.
    pub hands: TokenHands,
    /// Why nothing may be decided by it, though it is all that there is.
    pub withheld: Option<String>,
    /// Routes of the set are not those of its files: what was judged by the files is judged again.
    pub overlaid: bool,
    /// The yes that its policy set has, where a changed one needs one.
    pub consent: Option<Consent>,
}

/// What of the rules comes into force for everybody where several gateways share a ledger: what somebody changed here. The
/// rest was found here: if the ledger says otherwise, the ledger is right. Alone, all that is put in force is.
#[derive(Debug, Clone, Default)]
pub struct Putting {
    pub policies: Loading,
    pub keys: Loading,
}

/// Whether one part does.
#[derive(Debug, Clone, Default)]
pub enum Loading {
    /// It joins what is in force.
    #[default]
    Not,
    /// In the place of this, and of nothing else: what others have changed since is not undone.
    Over(Arc<InForce>),
    /// Whatever is in force.
    OverAnything,
}

impl Putting {
    pub const EVERYTHING: Self = Self { policies: Loading::OverAnything, keys: Loading::OverAnything };
}

impl InForce {
    /// As the workspace has it.
    pub fn of_files(policies: Arc<PolicySet>, keyring: Arc<Keyring>, tokens: Vec<TokenFacts>) -> Self {
        Self {
            policies,
            keyring,
            tokens,
            revoked: Vec::new(),
            hands: TokenHands::default(),
            withheld: None,
            overlaid: false,
            consent: None,
        }
    }
}

/// What the ledger does not say yet.
#[derive(Debug)]
pub(super) struct Changes {
    /// The digest before, if the policy set is another one.
    pub(super) policies: Option<Option<String>>,
    pub(super) credentials: Vec<CredentialChange>,
}

/// Which entries of a type tell what is in force: what a start reads, and what is taken in as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// What they say is in the claims, or is of no consequence to what is decided.
    Nothing,
    ByTheLast,
    /// Tokens and keys, which [`Standing::adopt`] records.
    ByAllCredentials,
    /// Taken in by [`Standing::take`].
    ByAll,
    /// Taken in by [`Standing::take`] where somebody waits for a person; a start reads that handoff's stream.
    ByItsHandoff,
}

pub(super) fn told_by(kind: Kind) -> Told {
    match kind {
        Kind::PolicyLoaded | Kind::EpochBegun => Told::ByTheLast,
        Kind::TokenCreated | Kind::TokenRevoked | Kind::KeyAdded | Kind::KeyRemoved => Told::ByAllCredentials,
        Kind::RouteDeclared
        | Kind::RouteRemoved
        | Kind::PromotionDecided
        | Kind::PromotionAdvanced
        | Kind::PromotionCanary
        | Kind::PromotionReset
        | Kind::PromotionEvidence
        | Kind::RollbackExecuted
        | Kind::RollbackLifted
        | Kind::AuthorizationCreated
        | Kind::AuthorizationUsed
        | Kind::AuthorizationRevoked
        | Kind::PolicyProposed
        | Kind::PolicyApproved
        | Kind::PolicyRejected
        | Kind::FreezeSet
        | Kind::FreezeLifted
        | Kind::MentionChanged
        | Kind::MentionObserved
        | Kind::MentionMarked => Told::ByAll,
        Kind::ApprovalRequested
        | Kind::ApprovalGranted
        | Kind::ApprovalRejected
        | Kind::TaskAvailable
        | Kind::TaskRejected
        | Kind::TaskCancelled => Told::ByItsHandoff,
        Kind::TaskCreated
        | Kind::TaskClaimed
        | Kind::TaskStarted
        | Kind::TaskBlocked
        | Kind::ArtifactReady
        | Kind::TaskComplete
        | Kind::TaskFailed
        | Kind::GateDecided
        | Kind::StateReplaced
        | Kind::PushCreated
        | Kind::PushRemoved
        | Kind::MessageSent => Told::Nothing,
    }
}

/// Does [`Standing::take`] keep anything of what events of this type say?
pub(super) fn concerns(kind: Kind) -> bool {
    matches!(told_by(kind), Told::ByAll | Told::ByItsHandoff)
}

impl Standing {
    /// Takes in what an entry says people decided, and what follows from it.
    pub(super) fn take(&mut self, fact: &Fact<'_>, stream_seq: u64) -> Result<(), FactFault> {
        if let StreamId::Route { route_key } = fact.stream {
            let routes = Arc::make_mut(&mut self.routes);
            routes.entry(route_key.to_owned()).or_default().take(fact, stream_seq);
            return Ok(());
        }
        self.grants.take(fact)?;
        self.inbox.take(fact)?;
        self.freezes.take(fact)?;
        self.mentions.take(fact)?;
        self.proposals.take(fact)
    }

    /// Takes over what was recorded, in another form.
    pub(super) fn carry_over(&mut self, in_force: Option<&Arc<InForce>>) {
        if self.recorded.is_some() {
            self.recorded = in_force.cloned();
        }
    }

    /// What must be recorded for this to be in force, and takes it as recorded; nothing if it is already.
    pub(super) fn adopt(&mut self, in_force: &Arc<InForce>, asks_first: bool) -> Option<Changes> {
        if self.recorded.as_ref().is_some_and(|recorded| Arc::ptr_eq(recorded, in_force)) {
            return None;
        }
        self.recorded = Some(in_force.clone());
        let InForce { policies, keyring, tokens, .. } = &**in_force;
        let waits = self.waits(in_force, asks_first).is_some();
        let digest = policies.digest().to_string();
        let mut before = None;
        if !waits && self.policy_digest.as_ref() != Some(&digest) {
            before = Some(self.policy_digest.replace(digest));
        }
        let credentials = Arc::make_mut(&mut self.credentials).adopt(tokens, keyring);
        Some(Changes { policies: before, credentials })
    }

    /// The same where several gateways share the ledger, and one of them may know more tokens than another.
    pub(super) fn adopt_shared(
        &mut self,
        in_force: &Arc<InForce>,
        putting: &Putting,
        asks_first: bool,
    ) -> Changes {
        self.recorded = Some(in_force.clone());
        let InForce { policies, keyring, tokens, revoked, .. } = &**in_force;
        let loads_keys = self.loads_keys(in_force, putting);
        let loads_policies =
            self.waits(in_force, asks_first).is_none() && self.loads_policies(in_force, putting);
        let credentials = Arc::make_mut(&mut self.credentials);
        let mut changes = credentials.adopt_tokens(tokens, revoked);
        if loads_keys {
            changes.extend(credentials.adopt_keys(keyring));
        }
        let digest = policies.digest().to_string();
        let before = loads_policies.then(|| self.policy_digest.replace(digest));
        Changes { policies: before, credentials: changes }
    }

    /// Does this policy set take the place of another one, for everybody?
    pub(super) fn loads_policies(&self, in_force: &InForce, putting: &Putting) -> bool {
        if self.has_policies_of(in_force) {
            return false;
        }
        let loads = match &putting.policies {
            Loading::Not => false,
            Loading::Over(before) => self.has_policies_of(before),
            Loading::OverAnything => true,
        };
        loads || self.is_first(in_force)
    }

    /// Are these the keys for everybody? Those that others have with other secrets never are.
    pub(super) fn loads_keys(&self, in_force: &InForce, putting: &Putting) -> bool {
        let loads = match &putting.keys {
            Loading::Not => false,
            Loading::Over(before) => self.has_keys_of(before),
            Loading::OverAnything => true,
        };
        (loads && in_force.withheld.is_none()) || self.is_first(in_force)
    }

    /// Nothing is in force yet: the first who comes says what is.
    fn is_first(&self, in_force: &InForce) -> bool {
        self.policy_digest.is_none() && in_force.withheld.is_none()
    }

    pub(super) fn has_policies_of(&self, in_force: &InForce) -> bool {
        self.policy_digest.as_ref().is_some_and(|digest| in_force.policies.digest().is_written(digest))
    }

    pub(super) fn has_keys_of(&self, in_force: &InForce) -> bool {
        in_force.withheld.is_none() && self.credentials.differing_keys(&in_force.keyring).is_empty()
    }

    /// Why a policy set may not come into force yet, where a changed one needs a person's yes. The first one of a ledger
    /// changes nothing.
    pub(super) fn waits(&self, in_force: &InForce, asks_first: bool) -> Option<String> {
        let theirs = self.policy_digest.as_ref().filter(|_| asks_first && in_force.consent.is_none())?;
        let own = in_force.policies.digest();
        (!own.is_written(theirs))
            .then(|| format!("the policy set in force is {theirs}, and the files are {own}"))
    }

    /// Why the rules that a gateway has are not those that the ledger says are in force.
    pub(super) fn differs(&self, in_force: &InForce) -> Option<String> {
        if in_force.withheld.is_some() {
            return in_force.withheld.clone();
        }
        let own = in_force.policies.digest().to_string();
        if self.policy_digest.as_ref() != Some(&own) {
            let theirs = self.policy_digest.as_deref().unwrap_or("none");
            return Some(format!("the policy set in force is {theirs}, and the one here is {own}"));
        }
        let keys = self.credentials.differing_keys(&in_force.keyring);
        (!keys.is_empty())
            .then(|| format!("memory/keyring.json differs from the keys in force: {}", keys.join(", ")))
    }

    /// Every route that there is, or was.
    pub(super) fn routes(&self) -> impl Iterator<Item = (&str, &RouteRecord)> {
        self.routes.iter().map(|(key, route)| (key.as_str(), &route.record))
    }

    /// The routes that are live or have been, also those that are gone.
    pub(super) fn routes_once_live(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().filter(|(_, route)| route.was_live).map(|(key, _)| key.as_str())
    }

    /// What agents are called, by the routes as the ledger has them. Made anew: only a person's answer asks for it.
    pub(super) fn names(&self) -> AgentNames {
        AgentNames::of(self.routes.values().filter_map(|route| route.record.route()))
    }

    pub(super) fn route(&self, route_key: &str) -> Option<&RouteRecord> {
        self.routes.get(route_key).map(|route| &route.record)
    }

    /// Has a route become another one since this entry, or gone?
    pub(super) fn is_another_since(&self, route_key: &str, sequence: u64) -> bool {
        self.route(route_key).is_some_and(|route| since(route).is_none_or(|since| since > sequence))
    }

    /// The last that a route was of what it was in this entry, in which it was live; nothing if that is not known.
    pub(super) fn former(&self, route_key: &str, sequence: u64) -> Option<&RouteRecord> {
        let was_then = |record: &&RouteRecord| since(record).is_some_and(|since| since <= sequence);
        self.routes.get(route_key)?.former.iter().rev().find(was_then)
    }

    /// The last number in a route's stream.
    pub(super) fn route_seq(&self, route_key: &str) -> u64 {
        self.routes.get(route_key).map_or(0, |route| route.stream_seq)
    }

    /// The last entry with which a handoff on the route ended.
    pub(super) fn last_outcome(&self, route_key: &str) -> u64 {
        self.routes.get(route_key).map_or(0, |route| route.last_outcome)
    }

    /// Live handoffs on a route that have not ended.
    pub(super) fn in_flight(&self, route_key: &str) -> Vec<String> {
        let on_route = |(_, key): &(&Arc<str>, &Arc<str>)| &***key == route_key;
        self.flights.iter().filter(on_route).map(|(handoff_id, _)| handoff_id.to_string()).collect()
    }

    /// A live handoff has become allowed.
    pub(super) fn take_off(&mut self, route_key: &str, handoff_id: &str) {
        self.flights.insert_mut(handoff_id.into(), route_key.into());
    }

    /// A handoff has ended, by this entry.
    pub(super) fn land(&mut self, route_key: &str, handoff_id: &str, sequence: u64) {
        self.flights.remove_mut(handoff_id);
        if let Some(route) = Arc::make_mut(&mut self.routes).get_mut(route_key) {
            route.last_outcome = sequence;
        }
    }
}
