//! The gateway's public keys as a JSON Web Key Set (RFC 7517, RFC 8037).

use serde_json::{Value as Json, json};

use crate::json::Value;
use crate::ledger::gateway_key_id;
use crate::proof::{Key, Purpose, from_base64url, from_hex, to_base64url, to_hex};

/// The set of these public Ed25519 keys (64 hex digits each), newest first; a text that is no key is left out.
pub fn jwks<'k>(public_keys: impl IntoIterator<Item = &'k str>) -> Json {
    let keys: Vec<Json> = public_keys
        .into_iter()
        .filter_map(|hex| {
            let bytes: [u8; 32] = from_hex(hex)?;
            Some(json!({
                "kty": "OKP",
                "crv": "Ed25519",
                "x": to_base64url(&bytes),
                "kid": gateway_key_id(hex),
                "use": "sig",
                "alg": "EdDSA",
            }))
        })
        .collect();
    json!({"keys": keys})
}

/// Keys of gateways that a receiver trusts, by their ids.
#[derive(Debug)]
pub struct Jwks {
    keys: Vec<Key>,
}

/// A document that is no key set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JwksFault;

impl std::fmt::Display for JwksFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("is not a JSON Web Key Set: it has no list `keys`")
    }
}

impl std::error::Error for JwksFault {}

impl Jwks {
    /// Reads a key set. Keys of other kinds and for other uses are passed over, as the RFC asks.
    pub fn read(document: Value<'_>) -> Result<Self, JwksFault> {
        let keys = document.get("keys").filter(|keys| keys.is_array()).ok_or(JwksFault)?;
        Ok(Self { keys: keys.items().filter_map(key).collect() })
    }

    pub(super) fn of_id<'k>(&'k self, id: &'k str) -> impl Iterator<Item = &'k Key> {
        self.keys.iter().filter(move |key| key.id() == id)
    }
}

fn key(jwk: Value<'_>) -> Option<Key> {
    let text = |name: &str| jwk.get(name).and_then(|value| value.as_str());
    let is = |name: &str, wanted: &[&str]| {
        jwk.get(name).is_none() || text(name).is_some_and(|it| wanted.contains(&it))
    };
    if text("kty") != Some("OKP") || text("crv") != Some("Ed25519") {
        return None;
    }
    // RFC 9864 has a name of its own for EdDSA with this curve.
    if !is("use", &["sig"]) || !is("alg", &["EdDSA", "Ed25519"]) {
        return None;
    }
    let public: [u8; 32] = from_base64url(text("x")?)?;
    Key::ed25519(text("kid")?, "gateway", Purpose::Dispatch, &to_hex(&public))
}
