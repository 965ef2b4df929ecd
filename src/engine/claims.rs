//! What has been claimed: by whom, and with which decision.
//!
//! An index over the ledger, rebuilt from it. Everything that is taken can be given back until its batch is
//! durable; after that it is taken for ever.

use std::collections::HashMap;
use std::sync::Arc;

use super::facts::Facts;
use super::record::Decided;

#[derive(Debug, Default)]
pub(super) struct ClaimIndex {
    handoffs: HashMap<String, Known>,
    /// By source agent and idempotencyKey.
    keys: HashMap<(String, String), KeyClaim>,
    messages: HashMap<String, String>,
    /// Accepted mentions by correlationId.
    mentions: HashMap<String, u32>,
    /// What the batch that is being written, and the one behind it, would have to give back.
    in_flight: Vec<Undo>,
    building: Vec<Undo>,
}

/// What is known of a handoffId.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) source_agent: Option<String>,
    pub(super) correlation_id: String,
    pub(super) target_agent: Option<String>,
    pub(super) parent_handoff_id: Option<String>,
    pub(super) attempts: u32,
    /// The decision, if it was accepted or waits; a refused handoff claims nothing.
    pub(super) accepted: Option<Arc<Decided>>,
}

#[derive(Debug, Clone)]
pub(super) struct KeyClaim {
    pub(super) content_digest: String,
    pub(super) handoff_id: String,
}

#[derive(Debug)]
enum Undo {
    Handoff(String, Option<Known>),
    Key((String, String)),
    Message(String),
    Mention(String),
}

impl ClaimIndex {
    pub(super) fn handoff(&self, handoff_id: &str) -> Option<&Known> {
        self.handoffs.get(handoff_id)
    }

    pub(super) fn key(&self, source_agent: &str, idempotency_key: &str) -> Option<&KeyClaim> {
        self.keys.get(&(source_agent.to_owned(), idempotency_key.to_owned()))
    }

    pub(super) fn message(&self, message_id: &str) -> Option<&str> {
        self.messages.get(message_id).map(String::as_str)
    }

    pub(super) fn mentions(&self, correlation_id: &str) -> u32 {
        self.mentions.get(correlation_id).copied().unwrap_or(0)
    }

    /// The handoffs before this one, nearest first, each with its parent; ends where the chain does.
    pub(super) fn ancestors<'c>(&'c self, parent: &'c str) -> impl Iterator<Item = &'c Known> {
        let mut next = self.handoff(parent);
        std::iter::from_fn(move || {
            let known = next?;
            next = known.parent_handoff_id.as_deref().and_then(|parent| self.handoff(parent));
            Some(known)
        })
    }

    /// Takes what a decision claims. A refused handoff only uses up an attempt.
    pub(super) fn take(&mut self, facts: &Facts, correlation_id: &str, accepted: Option<Arc<Decided>>) {
        let before = self.handoffs.get(&facts.handoff_id).cloned();
        self.building.push(Undo::Handoff(facts.handoff_id.clone(), before.clone()));
        let known = match (before, &accepted) {
            // The id is already somebody's: only the attempt counts.
            (Some(known), None) => Known { attempts: facts.attempt, ..known },
            _ => Known {
                source_agent: facts.source_agent.clone(),
                correlation_id: correlation_id.to_owned(),
                target_agent: facts.target_agent.clone(),
                parent_handoff_id: facts.parent_handoff_id.clone(),
                attempts: facts.attempt,
                accepted: accepted.clone(),
            },
        };
        self.handoffs.insert(facts.handoff_id.clone(), known);
        if accepted.is_none() {
            return;
        }
        if let (Some(source), Some(key)) = (&facts.source_agent, &facts.idempotency_key) {
            let (content_digest, handoff_id) = (facts.content_digest.clone(), facts.handoff_id.clone());
            let key = (source.clone(), key.clone());
            self.building.push(Undo::Key(key.clone()));
            self.keys.insert(key, KeyClaim { content_digest, handoff_id });
        }
        if let Some(message_id) = &facts.message_id {
            self.building.push(Undo::Message(message_id.clone()));
            self.messages.insert(message_id.clone(), facts.handoff_id.clone());
            self.building.push(Undo::Mention(correlation_id.to_owned()));
            *self.mentions.entry(correlation_id.to_owned()).or_default() += 1;
        }
    }

    /// The batch goes to the writer.
    pub(super) fn ship(&mut self) {
        self.in_flight = std::mem::take(&mut self.building);
    }

    /// It is durable: nothing of it is given back any more.
    pub(super) fn keep(&mut self) {
        self.in_flight.clear();
    }

    /// It failed: it and what was built on it give back what they took.
    pub(super) fn give_back(&mut self) {
        let mut taken = std::mem::take(&mut self.in_flight);
        taken.append(&mut self.building);
        for undo in taken.into_iter().rev() {
            match undo {
                Undo::Handoff(id, Some(before)) => drop(self.handoffs.insert(id, before)),
                Undo::Handoff(id, None) => drop(self.handoffs.remove(&id)),
                Undo::Key(key) => drop(self.keys.remove(&key)),
                Undo::Message(id) => drop(self.messages.remove(&id)),
                Undo::Mention(id) => {
                    if let Some(count) = self.mentions.get_mut(&id) {
                        *count = count.saturating_sub(1);
                    }
                }
            }
        }
    }
}
