//! Which key signs what goes out on a route, and what a signature covers.
//!
//! Asked at admission and again at dispatch, with the same answer for the same keys and time: a receiver that
//! demands signatures is never sent something that it will refuse.

use crate::contract::Mode;
use crate::json::printable;
use crate::policy::{Profile, Route};
use crate::proof::{Algorithm, Digest, Key, Keyring, Purpose};
use crate::timestamp::Timestamp;

/// How payloads are signed.
pub(super) const SCHEME: &str = "hmac-sha256-v1";

/// Why there is no key to sign with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SigningFault {
    /// The route's profile has no place for a signature.
    Plain,
    /// The route names no key.
    NotNamed,
    Unknown {
        id: String,
    },
    Purpose {
        id: String,
    },
    Algorithm {
        id: String,
    },
    /// The receiver takes 6 to 128 letters, digits and . _ : - for a key's id.
    Id {
        id: String,
    },
    NotYetValid {
        id: String,
    },
    Expired {
        id: String,
    },
}

impl SigningFault {
    pub fn message(&self) -> String {
        let key = |id: &str, what: &str| format!("the route's signing key `{}` {what}", printable(id));
        match self {
            Self::Plain => {
                "the route demands signatures, but what its profile `plain` sends has none".to_owned()
            }
            Self::NotNamed => {
                "the receiver demands signatures, and the route names no signing key".to_owned()
            }
            Self::Unknown { id } => key(id, "is not known"),
            Self::Purpose { id } => key(id, "is not for dispatch"),
            Self::Algorithm { id } => key(id, "is not an hmac-sha256 key"),
            Self::Id { id } => key(id, "has an id that the receiver does not take"),
            Self::NotYetValid { id } => key(id, "does not count yet"),
            Self::Expired { id } => key(id, "no longer counts"),
        }
    }

    pub fn hint(&self) -> String {
        let add = |id: &str| {
            format!(
                "an administrator adds one with: handoffd key add --purpose dispatch --owner AGENT --id {}",
                printable(id)
            )
        };
        match self {
            Self::Plain => "take requireSignature off the route, or give it the profile execution-plane.v1".to_owned(),
            Self::NotNamed => "an administrator gives the route a signingKeyId in policies/routes.json".to_owned(),
            Self::Unknown { id } => add(id),
            Self::Purpose { .. } | Self::Algorithm { .. } | Self::NotYetValid { .. } | Self::Expired { .. } => {
                "an administrator adds an hmac-sha256 key of purpose dispatch and names it as the route's signingKeyId"
                    .to_owned()
            }
            Self::Id { .. } => "use a key whose id has 6 to 128 letters, digits and . _ : -".to_owned(),
        }
    }
}

/// Does the receiver demand a signature? It does in live on the execution plane, unless the route says otherwise.
pub(crate) fn is_required(route: &Route, mode: Mode) -> bool {
    route.require_signature.unwrap_or(mode == Mode::Live && route.profile == Profile::ExecutionPlaneV1)
}

/// The key that signs on this route: none if there is none that could and none is demanded.
pub(crate) fn signing_key<'k>(
    route: &Route,
    mode: Mode,
    keyring: &'k Keyring,
    now: Timestamp,
) -> Result<Option<&'k Key>, SigningFault> {
    match usable(route, keyring, now) {
        Ok(key) => Ok(Some(key)),
        Err(_) if !is_required(route, mode) => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn usable<'k>(route: &Route, keyring: &'k Keyring, now: Timestamp) -> Result<&'k Key, SigningFault> {
    if route.profile == Profile::Plain {
        return Err(SigningFault::Plain);
    }
    let id = route.signing_key_id.as_deref().ok_or(SigningFault::NotNamed)?;
    let owned = || id.to_owned();
    let key = keyring.get(id).ok_or_else(|| SigningFault::Unknown { id: owned() })?;
    if key.purpose() != Purpose::Dispatch {
        return Err(SigningFault::Purpose { id: owned() });
    }
    if key.algorithm() != Algorithm::HmacSha256 {
        return Err(SigningFault::Algorithm { id: owned() });
    }
    if !is_receiver_id(id) {
        return Err(SigningFault::Id { id: owned() });
    }
    if key.not_before().is_some_and(|from| now < from) {
        return Err(SigningFault::NotYetValid { id: owned() });
    }
    if !key.is_valid_at(now) {
        return Err(SigningFault::Expired { id: owned() });
    }
    Ok(key)
}

/// What an execution-plane receiver takes as an id.
pub(super) fn is_receiver_id(text: &str) -> bool {
    (6..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
}

/// A value that is used once: another for each decision, the same for each replay of one.
pub(super) fn nonce(running_hash: &[u8; 32]) -> String {
    const DOMAIN: &[u8] = b"handoffd/dispatch-nonce/v1";
    let digest = Digest::of(&[DOMAIN, running_hash].concat());
    crate::proof::to_hex(digest.as_bytes().first_chunk::<16>().unwrap_or(&[0; 16]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proof::Secret;

    fn keyring(id: &str) -> Keyring {
        let mut keyring = Keyring::default();
        let secret = Secret::new(b"shared with the receiver".to_vec());
        keyring.add(Key::hmac(id, "worker", Purpose::Dispatch, secret).unwrap()).unwrap();
        keyring
    }

    /// The id of the key that signs, `unsigned`, or the start of what is wrong.
    fn check(route: serde_json::Value, mode: Mode, key: &str, expected: &str) {
        let mut whole = json!({"capability": "work", "primaryAgentId": "worker"});
        whole.as_object_mut().unwrap().extend(route.as_object().unwrap().clone());
        let route: Route = serde_json::from_value(whole).unwrap();
        let now = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
        let found = match signing_key(&route, mode, &keyring(key), now) {
            Ok(Some(key)) => key.id().to_owned(),
            Ok(None) => "unsigned".to_owned(),
            Err(fault) => fault.message(),
        };
        assert!(found.starts_with(expected), "{found}");
    }

    #[test]
    fn a_route_says_whether_and_with_what_its_payloads_are_signed() {
        use Mode::{Dev, Live, Simulated};
        const EP: &str = "execution-plane.v1";
        for mode in [Dev, Simulated, Live] {
            check(json!({"profile": EP, "signingKeyId": "worker-1"}), mode, "worker-1", "worker-1");
            check(json!({"profile": EP, "requireSignature": false}), mode, "worker-1", "unsigned");
            check(json!({"profile": EP, "requireSignature": true}), mode, "worker-1", "the receiver demands");
            check(json!({"signingKeyId": "worker-1"}), mode, "worker-1", "unsigned");
            check(
                json!({"signingKeyId": "worker-1", "requireSignature": true}),
                mode,
                "worker-1",
                "the route demands signatures, but what its profile `plain`",
            );
        }
        for mode in [Dev, Simulated] {
            check(json!({"profile": EP}), mode, "worker-1", "unsigned");
            check(json!({"profile": EP, "signingKeyId": "worker-2"}), mode, "worker-1", "unsigned");
        }
        check(
            json!({"profile": EP}),
            Live,
            "worker-1",
            "the receiver demands signatures, and the route names",
        );
        let other = json!({"profile": EP, "signingKeyId": "worker-2"});
        check(other, Live, "worker-1", "the route's signing key `worker-2` is not known");
        let odd = json!({"profile": EP, "signingKeyId": "wörker-1"});
        check(odd, Live, "wörker-1", "the route's signing key `wörker-1` has an id that the receiver");
        let short = json!({"profile": EP, "signingKeyId": "key-1"});
        check(short, Live, "key-1", "the route's signing key `key-1` has an id that the receiver");
    }

    #[test]
    fn a_nonce_is_made_from_the_running_hash_and_tells_nothing_of_it() {
        assert_eq!(nonce(&[0; 32]), nonce(&[0; 32]));
        assert_eq!(nonce(&[0; 32]).len(), 32);
        let mut other = [0; 32];
        other[31] = 1;
        assert_ne!(nonce(&[0; 32]), nonce(&other));
        // The first half of SHA-256 over the domain word and 32 zero bytes.
        assert_eq!(nonce(&[0; 32]), "c1eca581417fc68f584dafd3c00ab2dd");
    }
}
