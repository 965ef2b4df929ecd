//! The keys a workspace knows, as an immutable set, and the text of `memory/keyring.json`.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::key::{Algorithm, Key, Purpose};
use super::secret::Secret;
use crate::limits;
use crate::timestamp::Timestamp;

/// All keys, of all owners.
#[derive(Debug, Default)]
pub struct Keyring {
    keys: Vec<Key>,
}

/// Why no key could be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFault {
    /// The owner has no such key for this purpose and algorithm.
    Unknown,
    /// It has, but it does not count yet.
    NotYetValid,
    /// It had.
    Expired,
}

/// Why a keyring file or a change to it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyringFault {
    NotAKeyring(String),
    BadKey { id: String, why: &'static str },
    Duplicate { id: String },
    TooMany,
}

impl std::fmt::Display for KeyringFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAKeyring(why) => write!(f, "is not a keyring: {why}"),
            Self::BadKey { id, why } => write!(f, "has a bad key `{id}`: {why}"),
            Self::Duplicate { id } => write!(f, "has a key `{id}` already"),
            Self::TooMany => write!(f, "has more than {} keys", limits::KEYS_MAX),
        }
    }
}

/// One key in `memory/keyring.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StoredKey {
    key_id: String,
    owner: String,
    purpose: String,
    algorithm: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    secret: Option<Zeroizing<String>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    public_key: Option<Zeroizing<String>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    not_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    not_after: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredKeyring {
    keys: Vec<StoredKey>,
}

impl Keyring {
    /// Reads the text of a keyring file.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyringFault> {
        // The parser's own words could repeat a secret; its position is enough to find the place.
        let stored: StoredKeyring = serde_json::from_slice(bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            KeyringFault::NotAKeyring(format!("see line {line}, column {column}"))
        })?;
        let mut keyring = Self::default();
        for key in stored.keys {
            keyring.add(key.into_key()?)?;
        }
        Ok(keyring)
    }

    /// The text of a keyring file; it holds secrets.
    pub fn to_file(&self) -> Zeroizing<Vec<u8>> {
        let keys = self.keys.iter().map(StoredKey::of).collect();
        let mut text = serde_json::to_vec_pretty(&StoredKeyring { keys }).unwrap_or_default();
        text.push(b'\n');
        Zeroizing::new(text)
    }

    /// Adds a key; key ids are unique in the whole ring, so that a proof's `keyId` names one key.
    pub fn add(&mut self, key: Key) -> Result<(), KeyringFault> {
        if self.keys.iter().any(|other| other.id == key.id) {
            return Err(KeyringFault::Duplicate { id: key.id });
        }
        if self.keys.len() == limits::KEYS_MAX {
            return Err(KeyringFault::TooMany);
        }
        if let (Some(from), Some(until)) = (key.not_before, key.not_after)
            && until <= from
        {
            return Err(KeyringFault::BadKey { id: key.id, why: "it ends before it begins" });
        }
        self.keys.push(key);
        Ok(())
    }

    /// Takes a key out; false if there is none of that id.
    pub fn remove(&mut self, id: &str) -> bool {
        let before = self.keys.len();
        self.keys.retain(|key| key.id != id);
        self.keys.len() < before
    }

    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    pub fn get(&self, id: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// The keys with which `owner` may have signed: of this purpose and algorithm, valid now, and of this
    /// id if one is named.
    pub fn usable<'k>(
        &'k self,
        owner: &'k str,
        purpose: Purpose,
        algorithm: Algorithm,
        id: Option<&'k str>,
        now: Timestamp,
    ) -> Result<impl Iterator<Item = &'k Key>, KeyFault> {
        let candidates = || {
            self.keys.iter().filter(move |key| {
                key.owner == owner
                    && key.purpose == purpose
                    && key.algorithm() == algorithm
                    && id.is_none_or(|id| key.id == id)
            })
        };
        if candidates().any(|key| key.is_valid_at(now)) {
            return Ok(candidates().filter(move |key| key.is_valid_at(now)));
        }
        Err(match candidates().next() {
            None => KeyFault::Unknown,
            Some(_) if candidates().any(|key| key.not_before.is_some_and(|from| now < from)) => {
                KeyFault::NotYetValid
            }
            Some(_) => KeyFault::Expired,
        })
    }
}

impl StoredKey {
    fn of(key: &Key) -> Self {
        let (member, value) = key.stored();
        let (secret, public_key) = if member == "secret" { (Some(value), None) } else { (None, Some(value)) };
        Self {
            key_id: key.id.clone(),
            owner: key.owner.clone(),
            purpose: key.purpose.name().to_owned(),
            algorithm: key.algorithm().name().to_owned(),
            secret,
            public_key,
            not_before: key.not_before.map(|at| at.to_string()),
            not_after: key.not_after.map(|at| at.to_string()),
        }
    }

    fn into_key(self) -> Result<Key, KeyringFault> {
        let bad = |why| KeyringFault::BadKey { id: self.key_id.clone(), why };
        let purpose = self.purpose.parse().map_err(|_| bad("its purpose is unknown"))?;
        let algorithm: Algorithm = self.algorithm.parse().map_err(|_| bad("its algorithm is unknown"))?;
        let key = match (algorithm, &self.secret, &self.public_key) {
            (Algorithm::HmacSha256, Some(secret), None) => {
                let secret =
                    Secret::new(from_hex_of_any_length(secret).ok_or_else(|| bad("its secret is not hex"))?);
                Key::hmac(&self.key_id, &self.owner, purpose, secret)
                    .ok_or_else(|| bad("its secret is empty"))?
            }
            (Algorithm::Ed25519, None, Some(public)) => {
                Key::ed25519(&self.key_id, &self.owner, purpose, public)
                    .ok_or_else(|| bad("its publicKey is not an Ed25519 key"))?
            }
            (Algorithm::HmacSha256, ..) => return Err(bad("hmac-sha256 has a secret and no publicKey")),
            (Algorithm::Ed25519, ..) => return Err(bad("ed25519 has a publicKey and no secret")),
        };
        let at = |text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => Timestamp::parse(text).map(Some).ok_or_else(|| bad("a date is not RFC 3339")),
        };
        Ok(key.valid_between(at(&self.not_before)?, at(&self.not_after)?))
    }
}

fn from_hex_of_any_length(text: &str) -> Option<Vec<u8>> {
    let byte = |pair: &[u8]| {
        let [byte] = super::digest::from_hex(std::str::from_utf8(pair).ok()?)?;
        Some(byte)
    };
    text.as_bytes().chunks(2).map(byte).collect()
}
