//! Signed requests: a caller that would rather not send its token signs each request with a key.
//!
//! A key of purpose `request` belongs to the *name of a token*: role and agent come from the roster, and
//! revoking the token ends what the key can do. The signature is over the canonical JSON object
//! `{bodyDigest, keyId, method, nonce, path, timestamp}`, hex HMAC-SHA256 or Ed25519.

use std::fmt;

use super::roster::Roster;
use super::token::Caller;
use crate::json::printable;
use crate::limits;
use crate::proof::{Digest, Key, Keyring, Purpose, object};
use crate::timestamp::Timestamp;

pub const KEY_ID_HEADER: &str = "handoffd-key-id";
pub const NONCE_HEADER: &str = "handoffd-nonce";
pub const TIMESTAMP_HEADER: &str = "handoffd-timestamp";
pub const SIGNATURE_HEADER: &str = "handoffd-signature";

/// Why it is not known who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFault {
    /// Neither a token nor a signature, or not all of a signature.
    Required {
        missing: Option<&'static str>,
    },
    /// There is no such token, or it is revoked, or expired: one face for a stranger.
    TokenUnknown,
    /// The nonce or the timestamp is not written as it must be.
    Malformed {
        header: &'static str,
    },
    /// Not signed with that key, or there is no such key: again one face.
    SignatureInvalid,
    /// Signed too long ago, or too far ahead.
    TimestampWindow,
    /// Signed before what has been forgotten by now, or before the gateway started.
    TimestampForgotten,
    NonceReused,
    /// More nonces than we remember. None is forgotten before its time, so nothing more is taken.
    TooManyNonces,
}

impl RequestFault {
    /// Wire contract: a code is never renamed and never reused.
    pub fn code(self) -> &'static str {
        match self {
            Self::Required { .. } => "AUTH_REQUIRED",
            Self::TokenUnknown => "AUTH_TOKEN_UNKNOWN",
            Self::Malformed { .. } | Self::SignatureInvalid => "AUTH_SIGNATURE_INVALID",
            Self::TimestampWindow | Self::TimestampForgotten => "AUTH_TIMESTAMP_WINDOW_EXCEEDED",
            Self::NonceReused => "AUTH_NONCE_REUSED",
            Self::TooManyNonces => "AUTH_NONCES_EXHAUSTED",
        }
    }

    /// What the caller can do next.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Required { .. } => {
                "send `Authorization: Bearer <token>`, or all four Handoffd- headers of a signed request"
            }
            Self::TokenUnknown => "ask an administrator for a token: handoffd token new",
            Self::Malformed { .. } => {
                "a nonce is 8 to 128 of A-Z a-z 0-9 . _ : -, a timestamp an RFC 3339 date-time"
            }
            Self::SignatureInvalid => {
                "sign the canonical JSON of bodyDigest, keyId, method, nonce, path and timestamp, as sent, with a key of purpose request"
            }
            Self::TimestampWindow => "set the clock, and sign each request when it is sent",
            Self::TimestampForgotten => {
                "sign the request again, with a new nonce and the time of now; if it is refused for more than two minutes, an \
                 operator looks at /readyz"
            }
            Self::NonceReused => "take a new nonce for every request",
            Self::TooManyNonces => "send fewer signed requests, or show a token instead",
        }
    }
}

impl fmt::Display for RequestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required { missing: None } => f.write_str("the request does not say who asks"),
            Self::Required { missing: Some(header) } => {
                write!(f, "the request is signed, but the header {header} is missing")
            }
            Self::TokenUnknown => f.write_str("the token is not known"),
            Self::Malformed { header } => write!(f, "the header {header} is not written as it must be"),
            Self::SignatureInvalid => f.write_str("the request is not signed with the key it names"),
            Self::TimestampWindow => write!(
                f,
                "the request was not signed within {} seconds of the gateway's time",
                limits::SKEW_S
            ),
            Self::TimestampForgotten => {
                f.write_str("the request was signed before the time from which nonces are remembered")
            }
            Self::NonceReused => f.write_str("the nonce has been used before"),
            Self::TooManyNonces => f.write_str("too many signed requests to remember their nonces"),
        }
    }
}

/// The headers that a signed request has, all of them.
const HEADERS: [&str; 4] = [KEY_ID_HEADER, NONCE_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER];

/// What a signed request says in its head.
#[derive(Clone, Copy)]
pub struct SignedRequest<'r> {
    pub key_id: &'r str,
    pub nonce: &'r str,
    /// As sent: the signature is over this text.
    pub timestamp: &'r str,
    pub signature: &'r str,
    pub method: &'r str,
    /// Path and query, exactly as sent.
    pub path: &'r str,
}

impl<'r> SignedRequest<'r> {
    /// The request if any of the four headers is there; `header` gives the value of one.
    pub fn of(
        header: impl Fn(&'static str) -> Option<&'r str>,
        method: &'r str,
        path: &'r str,
    ) -> Result<Option<Self>, RequestFault> {
        if HEADERS.iter().all(|name| header(name).is_none()) {
            return Ok(None);
        }
        let needed = |name| header(name).ok_or(RequestFault::Required { missing: Some(name) });
        Ok(Some(Self {
            key_id: needed(KEY_ID_HEADER)?,
            nonce: needed(NONCE_HEADER)?,
            timestamp: needed(TIMESTAMP_HEADER)?,
            signature: needed(SIGNATURE_HEADER)?,
            method,
            path,
        }))
    }

    /// All that can be found out from the head alone, so that no body is read for whoever could not have signed it.
    pub fn vouch<'k>(self, keyring: &'k Keyring, now: Timestamp) -> Result<Vouched<'r, 'k>, RequestFault> {
        if !is_nonce(self.nonce) {
            return Err(RequestFault::Malformed { header: NONCE_HEADER });
        }
        let signed_at =
            Timestamp::parse(self.timestamp).ok_or(RequestFault::Malformed { header: TIMESTAMP_HEADER })?;
        if now.seconds_since(signed_at) > limits::SKEW_S || signed_at.seconds_since(now) > limits::SKEW_S {
            return Err(RequestFault::TimestampWindow);
        }
        let key = keyring
            .get(self.key_id)
            .filter(|key| key.purpose() == Purpose::Request && key.is_valid_at(now))
            .ok_or(RequestFault::SignatureInvalid)?;
        key.algorithm().check_form(self.signature).map_err(|_| RequestFault::SignatureInvalid)?;
        Ok(Vouched { request: self, key, signed_at })
    }

    /// The text that is signed.
    pub fn to_sign(&self, body_digest: Digest) -> String {
        object(256 + self.path.len(), |members| {
            members.text("bodyDigest", &body_digest.to_string());
            members.text("keyId", self.key_id);
            members.text("method", self.method);
            members.text("nonce", self.nonce);
            members.text("path", self.path);
            members.text("timestamp", self.timestamp);
        })
    }
}

// Without the signature, and with nothing of the query, which may hold anything.
impl fmt::Debug for SignedRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignedRequest({} by key {})", printable(self.method), printable(self.key_id))
    }
}

/// A request that names a key which counts, and says when it was signed. Whether it was signed with that key, only its
/// body tells: until then nobody is known.
#[derive(Debug)]
pub struct Vouched<'r, 'k> {
    request: SignedRequest<'r>,
    key: &'k Key,
    signed_at: Timestamp,
}

impl<'r> Vouched<'r, '_> {
    /// Who signed this request, with this body?
    pub fn verify<'a>(
        &self,
        body_digest: Digest,
        roster: &'a Roster,
        now: Timestamp,
    ) -> Result<Verified<'a>, RequestFault>
    where
        'r: 'a,
    {
        let SignedRequest { key_id, nonce, signature, .. } = self.request;
        self.key
            .verify(self.request.to_sign(body_digest).as_bytes(), signature)
            .map_err(|_| RequestFault::SignatureInvalid)?;
        // Only the holder of the key hears that its token is gone.
        let caller = roster.named(self.key.owner(), now).ok_or(RequestFault::TokenUnknown)?;
        Ok(Verified { caller, key_id, nonce, signed_at: self.signed_at })
    }
}

/// A request whose signature holds. Its caller comes out when its nonce is spent, so that no door can forget
/// to: see [`super::Nonces::spend`].
#[derive(Debug)]
pub struct Verified<'r> {
    pub(super) caller: &'r Caller,
    pub(super) key_id: &'r str,
    pub(super) nonce: &'r str,
    pub(super) signed_at: Timestamp,
}

fn is_nonce(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (8..=128).contains(&text.len()) && text.bytes().all(plain)
}
