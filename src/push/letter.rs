//! A notification as it is sent: the body, and who sent it.
//!
//! The body is what a stream of the same version would carry. The gateway signs each one with its own key: a JWT
//! (RFC 7519, EdDSA) in a header of its own, with the digest of the body in it, so that a receiver needs nothing but
//! `/.well-known/jwks.json` to know that it is from this gateway, for this address, and unchanged (`docs/push.md`).

use bytes::Bytes;
use serde_json::json;

use super::registration::Registration;
use super::telling::Telling;
use crate::a2a::Version;
use crate::ledger::gateway_key_id;
use crate::limits;
use crate::proof::{Digest, Seed, from_hex, to_base64url};
use crate::timestamp::Timestamp;

/// The header with the signature.
pub const SIGNATURE_HEADER: &str = "handoffd-signature";

/// What is sent.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) body: Bytes,
    pub(super) content_type: &'static str,
    pub(super) signature: String,
}

impl Letter {
    pub(super) fn write(registration: &Registration, telling: &Telling, seed: &Seed, now: Timestamp) -> Self {
        let body = telling.to_json(registration.version).to_string();
        let signature = signature(registration, telling.stream_seq, body.as_bytes(), seed, now);
        let content_type = match registration.version {
            Version::V0_3 => "application/json",
            Version::V1_0 => "application/a2a+json",
        };
        Self { body: Bytes::from(body), content_type, signature }
    }
}

fn signature(
    registration: &Registration,
    stream_seq: u64,
    body: &[u8],
    seed: &Seed,
    now: Timestamp,
) -> String {
    let issued_at = now.unix_milliseconds() / 1000;
    let header = json!({"alg": "EdDSA", "kid": gateway_key_id(&seed.public_hex()), "typ": "JWT"});
    let claims = json!({
        "iss": "handoffd",
        "aud": registration.config.url,
        "sub": registration.task.to_string(),
        // The same for each try of one update: whoever has seen it has seen it.
        "jti": format!("{}.{stream_seq}", registration.push_id),
        "iat": issued_at,
        "exp": issued_at.saturating_add(limits::PUSH_SIGNATURE_S.unsigned_abs()),
        "stream_seq": stream_seq,
        "body_digest": Digest::of(body).to_string(),
    });
    let part = |json: &serde_json::Value| to_base64url(json.to_string().as_bytes());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature: Option<[u8; 64]> = from_hex(&seed.sign(signed.as_bytes()));
    let signature = signature.map(|bytes| to_base64url(&bytes)).unwrap_or_default();
    format!("{signed}.{signature}")
}
