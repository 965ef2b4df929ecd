//! The grants that there are, and whether one carries a handoff.
//!
//! The sequencer keeps three copies of the book and changes one with nearly every batch, and there may be 100,000
//! grants. A map behind an `Arc` would be copied whole each time; `rpds` has a tree whose copies share all that did
//! not change, so a copy is a pointer and a change touches some twenty nodes.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use super::ask::GrantFault;
use super::grant::{Grant, GrantRevoked, GrantUsed};
use super::reference::AuthorizationRef;
use super::refusal::GrantRefusal;
use crate::contract::Mode;
use crate::json::printable;
use crate::limits;
use crate::policy::AgentNames;
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::wire::{Fact, FactFault, Kind, Sender};

/// What the ledger says of grants. Names sort by when they were made, so the oldest come first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GrantBook {
    grants: RedBlackTreeMapSync<AuthorizationRef, Held>,
}

/// A grant, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    pub grant: Arc<Grant>,
    /// How often it was used.
    pub used: u32,
    pub revoked_at: Option<Timestamp>,
    /// Who revoked it; nobody if it was no person.
    pub revoked_by: Option<Arc<str>>,
}

/// Whether a grant still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantStanding {
    InForce,
    Revoked,
    Expired,
    Spent,
}

impl GrantStanding {
    pub const ALL: [Self; 4] = [Self::InForce, Self::Revoked, Self::Expired, Self::Spent];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::InForce => "in_force",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Spent => "spent",
        }
    }
}

/// What a grant would have to carry.
#[derive(Debug, Clone, Copy)]
pub struct Use<'u> {
    /// As the TaskSpec writes it.
    pub authorization_ref: &'u str,
    /// In whose name it is done; nobody's if it is direct.
    pub principal: Option<&'u str>,
    pub source_agent: &'u str,
    pub target_agent: &'u str,
    /// What agents are called: whoever made it must not be one of these under another name.
    pub names: &'u AgentNames,
    /// Who may do it instead, if the TaskSpec names somebody.
    pub fallback_agent: Option<&'u str>,
    pub operation: &'u str,
    /// Of the mention that triggered it, if one did.
    pub channel: Option<&'u str>,
    pub mode: Mode,
    pub route_key: &'u str,
    pub intent_hash: Digest,
    /// Now, by the ledger.
    pub at: Timestamp,
}

impl Held {
    /// How often it may still be used.
    pub fn remaining(&self) -> u32 {
        self.grant.terms.uses.saturating_sub(self.used)
    }

    /// Does it still count? `since` is when the ledger's epoch began: grants from before it are void.
    pub fn standing(&self, at: Timestamp, since: Option<Timestamp>) -> GrantStanding {
        if self.revoked_at.is_some() {
            GrantStanding::Revoked
        } else if self.grant.terms.expires_at <= at || since.is_some_and(|since| self.grant.made_at < since) {
            GrantStanding::Expired
        } else if self.remaining() == 0 {
            GrantStanding::Spent
        } else {
            GrantStanding::InForce
        }
    }
}

impl GrantBook {
    /// Takes in what the ledger says. A grant that contradicts the book does not make it wider.
    pub fn take(&mut self, fact: &Fact<'_>) -> Result<(), FactFault> {
        match fact.kind {
            Kind::AuthorizationCreated => {
                let grant = Grant::read(fact)?;
                // Made twice, it would be whole again.
                if self.grants.contains_key(&grant.authorization_ref) {
                    return Err(fact.fault("there is a grant of that name already"));
                }
                self.forget_before(fact.at.plus_seconds(-limits::GRANT_KEPT_S));
                let held = Held { grant: Arc::new(grant), used: 0, revoked_at: None, revoked_by: None };
                self.grants.insert_mut(held.grant.authorization_ref, held);
                Ok(())
            }
            Kind::AuthorizationUsed => {
                let used: GrantUsed = fact.read()?;
                let held =
                    self.change(used.authorization_ref, |held| held.used = held.used.saturating_add(1));
                match held {
                    None => Err(fact.fault("there is no such grant")),
                    Some(held) if held.used > held.grant.terms.uses => {
                        Err(fact.fault("it was used more often than it may be"))
                    }
                    Some(held) if held.remaining() != used.remaining => {
                        Err(fact.fault("its uses do not add up"))
                    }
                    Some(_) => Ok(()),
                }
            }
            Kind::AuthorizationRevoked => {
                let revoked: GrantRevoked = fact.read()?;
                let by = match fact.sender {
                    Sender::Human(name) => Some(Arc::from(name)),
                    _ => None,
                };
                let held = self.change(revoked.authorization_ref, |held| {
                    if held.revoked_at.is_none() {
                        (held.revoked_at, held.revoked_by) = (Some(fact.at), by);
                    }
                });
                held.map(drop).ok_or_else(|| fact.fault("there is no such grant"))
            }
            _ => Ok(()),
        }
    }

    /// Changes a grant, and says what it is then.
    fn change(&mut self, name: AuthorizationRef, change: impl FnOnce(&mut Held)) -> Option<Held> {
        let mut held = self.grants.get(&name)?.clone();
        change(&mut held);
        self.grants.insert_mut(name, held.clone());
        Some(held)
    }

    /// Forgets grants that were made before: they have long expired, and whoever names one is told that there is none.
    fn forget_before(&mut self, before: Timestamp) {
        while let Some((name, _)) = self.grants.first().filter(|(_, held)| held.grant.made_at < before) {
            let name = *name;
            self.grants.remove_mut(&name);
        }
    }

    /// Does the grant carry this handoff? How often it may be used once it has; or every reason why not.
    ///
    /// Asking takes nothing: a use is claimed by `authorization.used`, in the order of the ledger, by a handoff that
    /// becomes allowed.
    pub fn covers(&self, act: &Use<'_>, since: Option<Timestamp>) -> Result<u32, Vec<GrantRefusal>> {
        let Some(held) = self.find(act.authorization_ref) else {
            return Err(vec![GrantRefusal::unknown(act.authorization_ref)]);
        };
        let mut refusals = Vec::new();
        let terms = &held.grant.terms;
        if let Some(at) = held.revoked_at {
            refusals.push(GrantRefusal::revoked(at));
        }
        if terms.expires_at <= act.at {
            refusals.push(GrantRefusal::expired(terms.expires_at, act.at));
        }
        if let Some(since) = since.filter(|since| held.grant.made_at < *since) {
            refusals.push(GrantRefusal::void(held.grant.made_at, since));
        }
        let remaining = held.remaining().checked_sub(1);
        if remaining.is_none() {
            refusals.push(GrantRefusal::spent(terms.uses));
        }
        beyond_scope(&held.grant, act, &mut refusals);
        remaining.filter(|_| refusals.is_empty()).ok_or(refusals)
    }

    /// The grant of that name, as anybody writes it.
    pub fn find(&self, name: &str) -> Option<&Held> {
        self.grants.get(&name.parse().ok()?)
    }

    /// All grants that are kept, the newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Held> {
        self.grants.values().rev()
    }

    /// Those that were made before the one of that name, the newest first; all, where none is named.
    pub fn newest_before(&self, name: Option<AuthorizationRef>) -> impl Iterator<Item = &Held> {
        use std::ops::Bound::{Excluded, Unbounded};
        let below = name.map_or(Unbounded, Excluded);
        self.grants.range((Unbounded, below)).rev().map(|(_, held)| held)
    }

    /// How many are kept.
    pub fn count(&self) -> usize {
        self.grants.size()
    }

    /// Is there room for one more? What is made now takes the place of what is forgotten then.
    pub fn room(&self, at: Timestamp) -> Result<(), GrantFault> {
        let before = at.plus_seconds(-limits::GRANT_KEPT_S);
        let oldest_goes = self.grants.first().is_some_and(|(_, held)| held.grant.made_at < before);
        if self.count() < limits::GRANTS_MAX || oldest_goes { Ok(()) } else { Err(GrantFault::Full) }
    }

    /// May this grant be revoked? By any operator, for taking back is always safe; but once.
    pub fn may_revoke(&self, name: &str) -> Result<AuthorizationRef, GrantFault> {
        match self.find(name) {
            None => Err(GrantFault::Unknown { name: name.to_owned() }),
            Some(Held { revoked_at: Some(at), .. }) => {
                Err(GrantFault::Revoked { name: name.to_owned(), at: *at })
            }
            Some(held) => Ok(held.grant.authorization_ref),
        }
    }
}

/// Names every member of the handoff that the grant is not for.
fn beyond_scope(grant: &Grant, act: &Use<'_>, refusals: &mut Vec<GrantRefusal>) {
    const ASK: &str = "ask an operator for a grant that covers this handoff";
    const FALLBACK: &str = "/routing/fallbackAgentId";
    let terms = &grant.terms;
    let mut beyond = |path, message| refusals.push(GrantRefusal::scope(path, message, ASK));
    let lists = |names: &[String], name: &str| names.iter().any(|other| other == name);
    match act.principal {
        Some(principal) if principal == terms.principal => {}
        Some(principal) => {
            let message = format!("the grant is not for the principal `{}`", printable(principal));
            beyond("/authorship/envelope/principal/id", message);
        }
        None => {
            let message = "a grant is for delegated work; direct work needs a person every time".to_owned();
            beyond("/authorship/mode", message);
        }
    }
    let made_it = |agent: &str| act.names.all(agent).any(|name| grant.made_by.goes_by(name));
    if made_it(act.source_agent) {
        beyond("/source/agentId", "the source of a handoff cannot have made its grant".to_owned());
    }
    if made_it(act.target_agent) {
        beyond("/target/agentId", "the target of a handoff cannot have made its grant".to_owned());
    }
    if !lists(&terms.agents, act.target_agent) {
        let message = format!("the grant is not for the agent `{}`", printable(act.target_agent));
        beyond("/target/agentId", message);
    }
    if let Some(fallback) = act.fallback_agent {
        if made_it(fallback) {
            beyond(FALLBACK, "the fallback of a handoff cannot have made its grant".to_owned());
        }
        if !lists(&terms.agents, fallback) {
            beyond(FALLBACK, format!("the grant is not for the agent `{}`", printable(fallback)));
        }
    }
    if !lists(&terms.operations, act.operation) {
        let message = format!("the grant is not for `{}`", printable(act.operation));
        beyond("/intent/operation", message);
    }
    if !terms.channels.is_empty() && !act.channel.is_some_and(|channel| lists(&terms.channels, channel)) {
        let message = match act.channel {
            Some(channel) => format!("the grant is not for the channel `{}`", printable(channel)),
            None => "the grant is for mentions in certain channels, and this handoff has none".to_owned(),
        };
        beyond("/authorship/mentionDelegation/channel", message);
    }
    if !terms.modes.contains(&act.mode) {
        beyond("/mode", format!("the grant is not for {}", act.mode.as_str()));
    }
    if terms.route_key.as_deref().is_some_and(|key| key != act.route_key) {
        let message = format!("the grant is not for the route `{}`", printable(act.route_key));
        beyond("/routing/routeKey", message);
    }
    if terms.intent_hash.is_some_and(|hash| hash != act.intent_hash) {
        let message = format!("the grant is for one intent, and this one is {}", act.intent_hash);
        beyond("/intent", message);
    }
}
