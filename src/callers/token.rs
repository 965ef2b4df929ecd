//! A token: the text that a caller shows, and what is kept of it.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

use super::role::{Role, Standing};
use crate::proof::{Digest, to_hex};
use crate::timestamp::Timestamp;
use crate::wire::Sender;

/// What every token's text begins with, so that a secret scanner finds one:
/// `hd_(orc|agt|opr|hrn|aud|adm)_[A-Za-z0-9_-]{43}`.
const PREFIX: &str = "hd_";

/// 32 random bytes, six bits a character.
const RANDOM_CHARS: usize = 43;

/// The name of a token: 1 to 64 of `A-Z a-z 0-9 . _ : @ -`. What begins with `tok_` is an id, not a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:@-".contains(&byte);
        // What looks like an id could not be told from one where either may be given.
        if (1..=64).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with(TokenId::PREFIX) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a name has 1 to 64 letters, digits, or . _ : @ - and does not begin with tok_".to_owned())
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A token's fingerprint, fit for lists, logs and the ledger: `tok_` and 16 hex digits.
///
/// It follows from the token, so that whoever finds one can name it without showing it; the token has 256
/// random bits and does not follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId([u8; 8]);

impl TokenId {
    const PREFIX: &'static str = "tok_";

    /// The id of the token with that hash. Hashed once more: an id shows no part of what is stored.
    pub(super) fn of(hash: &Digest) -> Self {
        let again = Digest::of(hash.as_bytes());
        let mut id = [0; 8];
        for (to, from) in id.iter_mut().zip(again.as_bytes()) {
            *to = *from;
        }
        Self(id)
    }

    /// The id that a text has, if it could be a token at all.
    pub fn of_text(text: &str) -> Option<Self> {
        hash_of(text).map(|hash| Self::of(&hash))
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PREFIX)?;
        f.write_str(&to_hex(&self.0))
    }
}

/// The text that a caller shows. It exists when it is made and when it is shown, and is never stored.
pub struct TokenText(Zeroizing<String>);

impl TokenText {
    fn new(role: Role, random: &[u8; 32]) -> Self {
        // As long as it will be, so that growing leaves no copy behind.
        let mut text = Zeroizing::new(String::with_capacity(64));
        text.push_str(PREFIX);
        text.push_str(role.short());
        text.push('_');
        write_url_safe(&mut text, random);
        Self(text)
    }

    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Base 64 with `-` and `_`, without padding.
fn write_url_safe(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for three in bytes.chunks(3) {
        let number =
            three.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..=three.len() {
            let digit = number >> (18 - 6 * place) & 63;
            text.extend(DIGITS.get(digit as usize).map(|byte| char::from(*byte)));
        }
    }
}

/// What is kept of a token's text; nothing for a text that cannot be one.
///
/// A plain SHA-256: a slow hash protects words that people choose, and 256 random bits cannot be guessed at
/// any speed. A slow one would only let strangers keep us busy.
pub(super) fn hash_of(text: &str) -> Option<Digest> {
    let rest = text.strip_prefix(PREFIX)?;
    let (short, random) = rest.split_once('_')?;
    let sound = Role::ALL.into_iter().any(|role| role.short() == short)
        && random.len() == RANDOM_CHARS
        && random.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    sound.then(|| Digest::of(text.as_bytes()))
}

/// Who asks: what a token says about its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    token_id: TokenId,
    name: Name,
    standing: Standing,
}

impl Caller {
    pub fn token_id(&self) -> TokenId {
        self.token_id
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    pub fn role(&self) -> Role {
        self.standing.role()
    }

    pub fn agent_id(&self) -> Option<&str> {
        self.standing.agent_id()
    }

    /// As whom it sends Wire events.
    pub fn wire_sender(&self) -> Sender<'_> {
        match (self.role(), self.agent_id()) {
            (Role::Operator, _) => Sender::Human(self.name.as_str()),
            (Role::Harness, _) => Sender::Runner(self.name.as_str()),
            (_, Some(agent_id)) => Sender::Agent(agent_id),
            // An auditor or an admin has no voice of its own.
            (_, None) => Sender::System,
        }
    }

    /// The person that speaks; only operators are people.
    pub fn human(&self) -> Option<&str> {
        (self.role() == Role::Operator).then_some(self.name.as_str())
    }
}

/// A token as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub(super) caller: Caller,
    pub(super) hash: Digest,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) revoked_at: Option<Timestamp>,
    /// The person who made it; nothing where an administrator did.
    pub(super) made_by: Option<Name>,
    /// The person who revoked it.
    pub(super) revoked_by: Option<Name>,
}

impl Token {
    /// Makes a token of 32 random bytes; the text is given out once.
    pub fn make(
        name: Name,
        standing: Standing,
        created_at: Timestamp,
        expires_at: Option<Timestamp>,
        random: &[u8; 32],
    ) -> (Self, TokenText) {
        let text = TokenText::new(standing.role(), random);
        let hash = Digest::of(text.expose().as_bytes());
        (Self::stored(name, standing, hash, created_at, expires_at, None), text)
    }

    pub(super) fn stored(
        name: Name,
        standing: Standing,
        hash: Digest,
        created_at: Timestamp,
        expires_at: Option<Timestamp>,
        revoked_at: Option<Timestamp>,
    ) -> Self {
        let caller = Caller { token_id: TokenId::of(&hash), name, standing };
        Self { caller, hash, created_at, expires_at, revoked_at, made_by: None, revoked_by: None }
    }

    /// Its short id, fit for showing.
    pub fn fingerprint(&self) -> TokenId {
        self.caller.token_id
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    pub fn name(&self) -> &Name {
        &self.caller.name
    }

    pub fn role(&self) -> Role {
        self.caller.role()
    }

    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    pub fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    pub fn revoked_at(&self) -> Option<Timestamp> {
        self.revoked_at
    }

    /// The person who made it; nothing where an administrator did.
    pub fn made_by(&self) -> Option<&Name> {
        self.made_by.as_ref()
    }

    /// The person who revoked it; nothing where an administrator did, or nobody.
    pub fn revoked_by(&self) -> Option<&Name> {
        self.revoked_by.as_ref()
    }

    /// Revoked is revoked, whatever the clock says since.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|until| now < until)
    }
}

// The hash is no secret, but nobody who reads a log needs it.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({} {}, {})", self.caller.token_id, self.caller.name, self.role())
    }
}
