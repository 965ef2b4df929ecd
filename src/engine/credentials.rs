//! What the ledger says of tokens and keys: that they were made and taken away, never the secrets.
//!
//! The files in `memory/` are what is in force; whenever they are put in force, what changed since the ledger
//! last spoke of them is recorded. So a key that was removed while nothing ran is in the ledger too.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::proof::{Key, Keyring};
use crate::wire::{Kind, Payload, Sender};

/// The payload of `token.created`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFacts {
    pub agent_id: Option<String>,
    pub name: String,
    pub principal: Option<String>,
    pub role: String,
    pub token_id: String,
}

/// The payload of `key.added`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyFacts {
    algorithm: String,
    key_id: String,
    not_after: Option<String>,
    not_before: Option<String>,
    owner: String,
    purpose: String,
}

impl KeyFacts {
    fn of(key: &Key) -> Self {
        Self {
            algorithm: key.algorithm().name().to_owned(),
            key_id: key.id().to_owned(),
            not_after: key.not_after().map(|time| time.to_string()),
            not_before: key.not_before().map(|time| time.to_string()),
            owner: key.owner().to_owned(),
            purpose: key.purpose().name().to_owned(),
        }
    }
}

/// The people who made and revoked tokens, by the token's id. Most are an administrator's work, who is nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenHands {
    pub made: BTreeMap<String, String>,
    pub revoked: BTreeMap<String, String>,
}

impl TokenHands {
    /// Who says that this is so.
    pub(super) fn sender_of(&self, change: &CredentialChange) -> Sender<'_> {
        let person = match change {
            CredentialChange::TokenCreated(token) => self.made.get(&token.token_id),
            CredentialChange::TokenRevoked(token) => self.revoked.get(&token.token_id),
            CredentialChange::KeyAdded(_) | CredentialChange::KeyRemoved(_) => None,
        };
        person.map_or(Sender::System, |person| Sender::Human(person))
    }
}

/// What the ledger knows of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Credentials {
    tokens: BTreeMap<String, TokenFacts>,
    keys: BTreeMap<String, KeyFacts>,
    /// Tokens that are gone for ever: an id is never given to another one.
    revoked: BTreeSet<String>,
}

/// Something that the ledger does not know yet.
#[derive(Debug)]
pub(super) enum CredentialChange {
    TokenCreated(TokenFacts),
    TokenRevoked(TokenFacts),
    KeyAdded(KeyFacts),
    KeyRemoved(KeyFacts),
}

impl CredentialChange {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::TokenCreated(_) => Kind::TokenCreated,
            Self::TokenRevoked(_) => Kind::TokenRevoked,
            Self::KeyAdded(_) => Kind::KeyAdded,
            Self::KeyRemoved(_) => Kind::KeyRemoved,
        }
    }

    /// Members in the order of their names.
    pub(super) fn write(&self, payload: &mut Payload<'_, '_>) {
        match self {
            Self::TokenCreated(token) => {
                payload.text_or_null("agent_id", token.agent_id.as_deref());
                payload.text("name", &token.name);
                payload.text_or_null("principal", token.principal.as_deref());
                payload.text("role", &token.role);
                payload.text("token_id", &token.token_id);
            }
            Self::TokenRevoked(token) => {
                payload.text("name", &token.name);
                payload.text("token_id", &token.token_id);
            }
            Self::KeyAdded(key) => {
                payload.text("algorithm", &key.algorithm);
                payload.text("key_id", &key.key_id);
                payload.text_or_null("not_after", key.not_after.as_deref());
                payload.text_or_null("not_before", key.not_before.as_deref());
                payload.text("owner", &key.owner);
                payload.text("purpose", &key.purpose);
            }
            Self::KeyRemoved(key) => {
                payload.text("key_id", &key.key_id);
                payload.text("owner", &key.owner);
            }
        }
    }
}

impl Credentials {
    /// What must be recorded for these to be in force, and takes it as recorded.
    pub(super) fn adopt(&mut self, tokens: &[TokenFacts], keyring: &Keyring) -> Vec<CredentialChange> {
        let tokens: BTreeMap<_, _> =
            tokens.iter().map(|token| (token.token_id.clone(), token.clone())).collect();
        let keys = facts_of(keyring);
        let mut changes = Vec::new();
        // What is gone first: an id whose facts changed is one that was taken away and made anew.
        changes.extend(differing(&self.tokens, &tokens).map(CredentialChange::TokenRevoked));
        changes.extend(differing(&self.keys, &keys).map(CredentialChange::KeyRemoved));
        changes.extend(differing(&tokens, &self.tokens).map(CredentialChange::TokenCreated));
        changes.extend(differing(&keys, &self.keys).map(CredentialChange::KeyAdded));
        self.revoked.extend(self.tokens.keys().filter(|id| !tokens.contains_key(*id)).cloned());
        (self.tokens, self.keys) = (tokens, keys);
        changes
    }

    /// What must be recorded of tokens that several gateways share. What is missing may only be unknown here: a token is
    /// gone when it was revoked, and then for ever.
    pub(super) fn adopt_tokens(
        &mut self,
        tokens: &[TokenFacts],
        revoked: &[String],
    ) -> Vec<CredentialChange> {
        let mut changes = Vec::new();
        for id in revoked {
            if let Some(token) = self.tokens.remove(id) {
                self.revoked.insert(id.clone());
                changes.push(CredentialChange::TokenRevoked(token));
            }
        }
        for token in tokens {
            let id = &token.token_id;
            if !self.tokens.contains_key(id) && !self.revoked.contains(id) {
                self.tokens.insert(id.clone(), token.clone());
                changes.push(CredentialChange::TokenCreated(token.clone()));
            }
        }
        changes
    }

    /// What must be recorded for these keys to be in force.
    pub(super) fn adopt_keys(&mut self, keyring: &Keyring) -> Vec<CredentialChange> {
        let keys = facts_of(keyring);
        let mut changes: Vec<_> = differing(&self.keys, &keys).map(CredentialChange::KeyRemoved).collect();
        changes.extend(differing(&keys, &self.keys).map(CredentialChange::KeyAdded));
        self.keys = keys;
        changes
    }

    /// The ids of keys that are not the same here and in the ledger.
    pub(super) fn differing_keys(&self, keyring: &Keyring) -> Vec<String> {
        let keys = facts_of(keyring);
        let both = differing(&self.keys, &keys).chain(differing(&keys, &self.keys));
        let ids: BTreeSet<String> = both.map(|facts| facts.key_id).collect();
        ids.into_iter().collect()
    }

    /// Takes in what the ledger says; nothing if it is not ours.
    pub(super) fn take(&mut self, kind: &str, payload: serde_json::Value) -> Option<()> {
        let id = |name: &str| payload.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
        match kind {
            "token.revoked" => {
                let id = id("token_id")?;
                self.revoked.insert(id.clone());
                self.tokens.remove(&id).map(drop)
            }
            "key.removed" => self.keys.remove(&id("key_id")?).map(drop),
            "token.created" => {
                let token: TokenFacts = serde_json::from_value(payload).ok()?;
                self.tokens.insert(token.token_id.clone(), token);
                Some(())
            }
            _ => {
                let key: KeyFacts = serde_json::from_value(payload).ok()?;
                self.keys.insert(key.key_id.clone(), key);
                Some(())
            }
        }
    }
}

fn facts_of(keyring: &Keyring) -> BTreeMap<String, KeyFacts> {
    keyring.keys().iter().map(|key| (key.id().to_owned(), KeyFacts::of(key))).collect()
}

/// Those that are not in the other map, or not the same there.
fn differing<'c, T: Clone + PartialEq>(
    these: &'c BTreeMap<String, T>,
    those: &'c BTreeMap<String, T>,
) -> impl Iterator<Item = T> + 'c {
    these.iter().filter(|(id, facts)| those.get(*id) != Some(facts)).map(|(_, facts)| facts.clone())
}
