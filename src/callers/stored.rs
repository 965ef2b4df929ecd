//! The text of `memory/tokens.json`: `{"tokens": […]}`, read strictly, with all that is wrong named at once.

use std::fmt;

use serde::Serialize;

use super::role::{Role, Standing};
use super::roster::Roster;
use super::token::{Name, Token};
use crate::json::{self, Value, pointer, printable};
use crate::limits;
use crate::proof::{Digest, from_hex};
use crate::timestamp::Timestamp;

/// Something that is wrong with a tokens file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFault {
    /// JSON pointer of what is wrong; empty for the whole file.
    pub pointer: String,
    pub reason: String,
}

impl fmt::Display for StoredFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.reason)
        } else {
            write!(f, "at {}: {}", printable(&self.pointer), self.reason)
        }
    }
}

#[derive(Serialize)]
struct StoredRoster<'r> {
    tokens: Vec<StoredToken<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredToken<'r> {
    token_id: String,
    name: &'r str,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'r str>,
    hash: Digest,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    made_by: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_by: Option<&'r str>,
}

/// The members of a token, as [`StoredToken`] writes them.
const MEMBERS: [&str; 11] = [
    "tokenId",
    "name",
    "role",
    "agentId",
    "principal",
    "hash",
    "createdAt",
    "expiresAt",
    "revokedAt",
    "madeBy",
    "revokedBy",
];

impl Roster {
    /// The text of a tokens file; it holds hashes, no tokens.
    pub fn to_file(&self) -> Vec<u8> {
        let tokens = self
            .tokens()
            .iter()
            .map(|token| StoredToken {
                token_id: token.fingerprint().to_string(),
                name: token.name().as_str(),
                role: token.role().as_str(),
                agent_id: token.caller().agent_id(),
                principal: token.caller().standing().principal(),
                hash: token.hash,
                created_at: token.created_at,
                expires_at: token.expires_at,
                revoked_at: token.revoked_at,
                made_by: token.made_by().map(Name::as_str),
                revoked_by: token.revoked_by().map(Name::as_str),
            })
            .collect();
        let mut text = serde_json::to_vec_pretty(&StoredRoster { tokens }).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Reads the text of a tokens file, whole or not at all.
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<StoredFault>> {
        let document = json::read(bytes, limits::TOKENS_FILE).map_err(|fault| {
            vec![StoredFault { pointer: fault.pointer.clone(), reason: fault.to_string() }]
        })?;
        let mut reading = Reading::default();
        let tokens = reading.tokens(document.root());
        let mut roster = Self::default();
        for (at, token) in tokens {
            if let Err(fault) = roster.push(token) {
                reading.fault(&at, fault.to_string());
            }
        }
        if reading.faults.is_empty() { Ok(roster) } else { Err(reading.faults) }
    }
}

/// Collects what is wrong on the way.
#[derive(Default)]
struct Reading {
    faults: Vec<StoredFault>,
}

impl Reading {
    fn fault(&mut self, pointer: &str, reason: impl Into<String>) {
        // A file can be wrong in as many places as it has bytes.
        if self.faults.len() < limits::TOKENS_FAULTS_MAX {
            self.faults.push(StoredFault { pointer: pointer.to_owned(), reason: reason.into() });
        }
    }

    fn tokens(&mut self, root: Value<'_>) -> Vec<(String, Token)> {
        self.members(root, "", &["tokens"]);
        let Some(list) = root.get("tokens").filter(|list| list.is_array()) else {
            self.fault("", "is not a list of tokens: expected {\"tokens\": [...]}");
            return Vec::new();
        };
        let mut tokens = Vec::new();
        for (n, value) in list.items().enumerate() {
            let at = format!("/tokens/{n}");
            if let Some(token) = self.token(value, &at) {
                tokens.push((at, token));
            }
        }
        tokens
    }

    fn members(&mut self, value: Value<'_>, at: &str, known: &[&str]) {
        for (name, _) in value.members() {
            if !known.contains(&name) {
                self.fault(&pointer::join(at, name), "is not a member that handoffd knows");
            }
        }
    }

    fn token(&mut self, value: Value<'_>, at: &str) -> Option<Token> {
        if !value.is_object() {
            self.fault(at, "is not an object");
            return None;
        }
        self.members(value, at, &MEMBERS);
        // All members are looked at before any is missed, so that one reading names every fault.
        let name = self.needed(value, at, "name", str::parse::<Name>);
        let role = self.needed(value, at, "role", str::parse::<Role>);
        let hash = self.needed(value, at, "hash", digest);
        let token_id = self.needed(value, at, "tokenId", |text| Ok(text.to_owned()));
        let created_at = self.needed(value, at, "createdAt", instant);
        let expires_at = self.given(value, at, "expiresAt", instant);
        let revoked_at = self.given(value, at, "revokedAt", instant);
        let made_by = self.given(value, at, "madeBy", str::parse::<Name>);
        let revoked_by = self.given(value, at, "revokedBy", str::parse::<Name>);
        let agent_id = self.given(value, at, "agentId", |text| Ok(text.to_owned()));
        let principal = self.given(value, at, "principal", |text| Ok(text.to_owned()));
        let standing = match Standing::of(role?, agent_id?.as_deref(), principal?.as_deref()) {
            Ok(standing) => standing,
            Err(fault) => {
                self.fault(&pointer::join(at, fault.member()), fault.to_string());
                return None;
            }
        };
        let token = Token::stored(name?, standing, hash?, created_at?, expires_at?, revoked_at?);
        let token = Token { made_by: made_by?, revoked_by: revoked_by?, ..token };
        if token_id? != token.fingerprint().to_string() {
            self.fault(&pointer::join(at, "tokenId"), "is not the id of the token with this hash");
            return None;
        }
        Some(token)
    }

    /// A member that must be there.
    fn needed<T>(
        &mut self,
        value: Value<'_>,
        at: &str,
        member: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        match self.given(value, at, member, read)? {
            Some(found) => Some(found),
            None => {
                self.fault(&pointer::join(at, member), "is missing");
                None
            }
        }
    }

    /// A member that may be absent; the outer nothing is one that is wrong.
    fn given<T>(
        &mut self,
        value: Value<'_>,
        at: &str,
        member: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<Option<T>> {
        let Some(value) = value.get(member) else { return Some(None) };
        match value.as_str().ok_or_else(|| "is not a text".to_owned()).and_then(read) {
            Ok(found) => Some(Some(found)),
            Err(reason) => {
                self.fault(&pointer::join(at, member), reason);
                None
            }
        }
    }
}

fn digest(text: &str) -> Result<Digest, String> {
    text.strip_prefix("sha256:")
        .and_then(from_hex)
        .map(Digest::from_bytes)
        .ok_or_else(|| "is not sha256: and 64 lower-case hex digits".to_owned())
}

fn instant(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "is not an RFC 3339 date-time".to_owned())
}
