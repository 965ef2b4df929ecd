//! The roster: all tokens, as an immutable set. A change makes another one.

use std::collections::HashMap;
use std::fmt;

use super::role::Role;
use super::token::{Caller, Name, Token, TokenId, hash_of};
use crate::json::printable;
use crate::limits;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// All tokens, also those that are no longer valid.
#[derive(Clone, Default)]
pub struct Roster {
    tokens: Vec<Token>,
    /// Where a token is, by its hash: finding one compares digests of what was shown, never secrets, so the
    /// time it takes tells nothing about any token.
    by_hash: HashMap<Digest, usize>,
    /// Where the unrevoked token of a name is.
    by_name: HashMap<Name, usize>,
}

/// Why a change to the roster is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RosterFault {
    NameTaken(Name),
    /// The name of the token in `memory/admin.token`, which nobody else shall be taken for.
    NameReserved(Role),
    /// Two tokens with one hash.
    Duplicate,
    EndsBeforeItBegins,
    TooMany,
    Unknown(String),
    AlreadyRevoked(String),
}

impl fmt::Display for RosterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken(name) => {
                write!(f, "there is a token `{name}` already; revoke it first, or take another name")
            }
            Self::NameReserved(role) => write!(
                f,
                "the name `{}` is for an admin token, not for the role {role}; take another name",
                Roster::ADMIN
            ),
            Self::Duplicate => f.write_str("there is a token with this hash already"),
            Self::EndsBeforeItBegins => f.write_str("the token would end before it begins"),
            Self::TooMany => {
                write!(f, "there are {} tokens that are not revoked; revoke some", limits::TOKENS_MAX)
            }
            Self::Unknown(which) => write!(f, "there is no token `{}`", printable(which)),
            Self::AlreadyRevoked(which) => {
                write!(f, "the token `{}` is revoked already", printable(which))
            }
        }
    }
}

// Without the hashes, which nobody who reads a log needs.
impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.tokens).finish()
    }
}

impl PartialEq for Roster {
    fn eq(&self, other: &Self) -> bool {
        self.tokens == other.tokens
    }
}

impl Eq for Roster {}

impl Roster {
    /// The name of the token in `memory/admin.token`.
    pub const ADMIN: &'static str = "admin";

    /// Whose token this is. Unknown, revoked and expired look the same.
    pub fn find(&self, token_text: &str, now: Timestamp) -> Option<&Caller> {
        let token = self.token_of(token_text)?;
        token.is_valid_at(now).then_some(token.caller())
    }

    /// The token that a text is the text of, valid or not.
    pub(super) fn token_of(&self, token_text: &str) -> Option<&Token> {
        self.tokens.get(*self.by_hash.get(&hash_of(token_text)?)?)
    }

    /// The caller of that name, if its token is valid.
    pub fn named(&self, name: &str, now: Timestamp) -> Option<&Caller> {
        let name: Name = name.parse().ok()?;
        let token = self.tokens.get(*self.by_name.get(&name)?)?;
        token.is_valid_at(now).then_some(token.caller())
    }

    /// Whose the token of this id is now, if it is valid.
    pub fn holder(&self, token_id: TokenId, now: Timestamp) -> Option<&Caller> {
        let holds = |token: &&Token| token.fingerprint() == token_id && token.is_valid_at(now);
        self.tokens.iter().find(holds).map(Token::caller)
    }

    /// Is there a token of this id that is valid?
    pub fn counts(&self, token_id: TokenId, now: Timestamp) -> bool {
        self.holder(token_id, now).is_some()
    }

    /// The person who made a token, by name, and who that is if their token is still known. The name may be another
    /// token's by now, so it is the one that had it then.
    pub fn maker_of(&self, token_id: TokenId) -> Option<(&Name, Option<&Caller>)> {
        let made = self.tokens.iter().find(|token| token.fingerprint() == token_id)?;
        let name = made.made_by()?;
        let is_maker = |token: &&Token| {
            token.role() == Role::Operator && token.name() == name && token.created_at() <= made.created_at()
        };
        Some((name, self.tokens.iter().rfind(is_maker).map(Token::caller)))
    }

    /// Is there anybody who may manage tokens and keys?
    pub fn has_admin(&self, now: Timestamp) -> bool {
        self.tokens.iter().any(|token| token.role() == Role::Admin && token.is_valid_at(now))
    }

    /// All tokens, in the order they were made.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// This roster with one more token.
    ///
    /// In a full one the token that was revoked first is forgotten: it stays refused, for it is unknown then.
    pub fn with(&self, token: Token) -> Result<Self, RosterFault> {
        let mut tokens = self.tokens.clone();
        if tokens.len() >= limits::TOKENS_MAX {
            let revoked = tokens.iter().enumerate().filter_map(|(n, token)| Some((token.revoked_at?, n)));
            let (_, first) = revoked.min().ok_or(RosterFault::TooMany)?;
            tokens.remove(first);
        }
        let mut roster = Self::default();
        for token in tokens.into_iter().chain([token]) {
            roster.push(token)?;
        }
        Ok(roster)
    }

    /// Adds a token while the roster is made.
    pub(super) fn push(&mut self, token: Token) -> Result<(), RosterFault> {
        if self.tokens.len() >= limits::TOKENS_MAX {
            return Err(RosterFault::TooMany);
        }
        if token.name().as_str() == Self::ADMIN && token.role() != Role::Admin {
            return Err(RosterFault::NameReserved(token.role()));
        }
        if token.expires_at.is_some_and(|until| until <= token.created_at) {
            return Err(RosterFault::EndsBeforeItBegins);
        }
        if self.by_hash.contains_key(&token.hash) {
            return Err(RosterFault::Duplicate);
        }
        let place = self.tokens.len();
        if token.revoked_at.is_none() {
            if self.by_name.contains_key(token.name()) {
                return Err(RosterFault::NameTaken(token.name().clone()));
            }
            self.by_name.insert(token.name().clone(), place);
        }
        self.by_hash.insert(token.hash, place);
        self.tokens.push(token);
        Ok(())
    }

    /// This roster with a token revoked, which is named by its name or its id; and the token.
    pub fn revoked(&self, which: &str, at: Timestamp) -> Result<(Self, Token), RosterFault> {
        self.revoked_by(which, at, None)
    }

    /// The same in a person's name.
    pub(super) fn revoked_by(
        &self,
        which: &str,
        at: Timestamp,
        by: Option<&Name>,
    ) -> Result<(Self, Token), RosterFault> {
        let is_it =
            |token: &Token| token.name().as_str() == which || token.fingerprint().to_string() == which;
        // A name may have been another token's before; the one that is not revoked is meant.
        let place = self.tokens.iter().position(|token| is_it(token) && token.revoked_at.is_none());
        let Some(place) = place else {
            return Err(if self.tokens.iter().any(is_it) {
                RosterFault::AlreadyRevoked(which.to_owned())
            } else {
                RosterFault::Unknown(which.to_owned())
            });
        };
        let mut roster = self.clone();
        let Some(token) = roster.tokens.get_mut(place) else {
            return Err(RosterFault::Unknown(which.to_owned()));
        };
        token.revoked_at = Some(at);
        token.revoked_by = by.cloned();
        let token = token.clone();
        roster.by_name.remove(token.name());
        Ok((roster, token))
    }
}
