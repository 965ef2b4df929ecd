//! One key, and what it can do: sign, or tell whether a signature is its own.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::digest::{from_hex, to_hex};
use super::secret::Secret;
use crate::timestamp::Timestamp;

/// How a proof is made. The wire name ends in `-v1`, the command line's does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    HmacSha256,
    Ed25519,
}

impl Algorithm {
    /// The name in an envelope's proof.
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac-sha256-v1",
            Self::Ed25519 => "ed25519-v1",
        }
    }

    pub fn from_wire_name(name: &str) -> Option<Self> {
        [Self::HmacSha256, Self::Ed25519].into_iter().find(|algorithm| algorithm.wire_name() == name)
    }

    /// The name in a keyring and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::Ed25519 => "ed25519",
        }
    }

    /// The number of hex digits in a signature.
    fn signature_digits(self) -> usize {
        match self {
            Self::HmacSha256 => 64,
            Self::Ed25519 => 128,
        }
    }

    /// Whether a signature could be one at all, whoever signed.
    pub fn check_form(self, signature: &str) -> Result<(), SignatureFault> {
        let digits = self.signature_digits();
        if signature.len() != digits {
            return Err(SignatureFault::Length { digits, found: signature.chars().count() });
        }
        if !signature.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(SignatureFault::NotHex);
        }
        Ok(())
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::HmacSha256, Self::Ed25519]
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| format!("`{name}` is not an algorithm; use hmac-sha256 or ed25519"))
    }
}

/// What a key may be used for; a key for one purpose proves nothing for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A principal signs delegation envelopes.
    Envelope,
    /// The gateway signs what it dispatches on a route.
    Dispatch,
    /// A caller signs its API requests.
    Request,
}

impl Purpose {
    pub const ALL: [Self; 3] = [Self::Envelope, Self::Dispatch, Self::Request];

    pub fn name(self) -> &'static str {
        match self {
            Self::Envelope => "envelope",
            Self::Dispatch => "dispatch",
            Self::Request => "request",
        }
    }
}

impl FromStr for Purpose {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|purpose| purpose.name() == name)
            .ok_or_else(|| format!("`{name}` is not a purpose; use envelope, dispatch or request"))
    }
}

/// Why a signature is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureFault {
    Length { digits: usize, found: usize },
    NotHex,
    Wrong,
}

/// A key with its owner, its purpose and the time in which it counts.
pub struct Key {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) purpose: Purpose,
    pub(super) not_before: Option<Timestamp>,
    pub(super) not_after: Option<Timestamp>,
    material: Material,
}

enum Material {
    /// The keyed state is kept, so that a proof starts from it instead of hashing the key again.
    Hmac(Secret, Box<Hmac<Sha256>>),
    /// Only the public half: the gateway holds nothing that could forge a principal's signature.
    Ed25519(Box<VerifyingKey>),
}

impl Key {
    pub fn hmac(id: &str, owner: &str, purpose: Purpose, secret: Secret) -> Option<Self> {
        if secret.expose().is_empty() {
            return None;
        }
        let keyed = Hmac::<Sha256>::new_from_slice(secret.expose()).ok()?;
        Some(Self::new(id, owner, purpose, Material::Hmac(secret, Box::new(keyed))))
    }

    /// A key known by its public half, 64 hex digits.
    pub fn ed25519(id: &str, owner: &str, purpose: Purpose, public_hex: &str) -> Option<Self> {
        let public = VerifyingKey::from_bytes(&from_hex(public_hex)?).ok()?;
        // A weak key would verify signatures that nobody made.
        if public.is_weak() {
            return None;
        }
        Some(Self::new(id, owner, purpose, Material::Ed25519(Box::new(public))))
    }

    fn new(id: &str, owner: &str, purpose: Purpose, material: Material) -> Self {
        Self {
            id: id.to_owned(),
            owner: owner.to_owned(),
            purpose,
            not_before: None,
            not_after: None,
            material,
        }
    }

    /// Limits the time in which the key counts: from `not_before` on, until just before `not_after`.
    pub fn valid_between(mut self, not_before: Option<Timestamp>, not_after: Option<Timestamp>) -> Self {
        self.not_before = not_before;
        self.not_after = not_after;
        self
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn owner(&self) -> &str {
        &self.owner
    }

    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    pub fn not_before(&self) -> Option<Timestamp> {
        self.not_before
    }

    pub fn not_after(&self) -> Option<Timestamp> {
        self.not_after
    }

    pub fn algorithm(&self) -> Algorithm {
        match self.material {
            Material::Hmac(..) => Algorithm::HmacSha256,
            Material::Ed25519(_) => Algorithm::Ed25519,
        }
    }

    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.not_before.is_none_or(|from| from <= now) && self.not_after.is_none_or(|until| now < until)
    }

    /// Is this the key's signature over `message`? Compared in constant time.
    pub fn verify(&self, message: &[u8], signature: &str) -> Result<(), SignatureFault> {
        self.algorithm().check_form(signature)?;
        match &self.material {
            Material::Hmac(_, keyed) => {
                let tag: [u8; 32] = from_hex(signature).ok_or(SignatureFault::NotHex)?;
                let mut mac = Hmac::clone(keyed);
                mac.update(message);
                mac.verify_slice(&tag).map_err(|_| SignatureFault::Wrong)
            }
            Material::Ed25519(public) => {
                let bytes: [u8; 64] = from_hex(signature).ok_or(SignatureFault::NotHex)?;
                let signature = Signature::from_bytes(&bytes);
                // Strict: no second encoding of a signature passes as another one.
                public.verify_strict(message, &signature).map_err(|_| SignatureFault::Wrong)
            }
        }
    }

    /// Signs with a shared secret; `None` for a key of which only the public half is here.
    pub fn sign(&self, message: &[u8]) -> Option<String> {
        match &self.material {
            Material::Hmac(_, keyed) => {
                let mut mac = Hmac::clone(keyed);
                mac.update(message);
                Some(to_hex(&mac.finalize().into_bytes()))
            }
            Material::Ed25519(_) => None,
        }
    }

    /// Tells this key from others of the same name, without telling the key: short, and different in every context.
    pub fn fingerprint(&self, context: &str) -> String {
        let context = format!("handoffd/key-fingerprint/v1 {context}");
        let long = match &self.material {
            Material::Hmac(..) => self.sign(context.as_bytes()).unwrap_or_default(),
            Material::Ed25519(public) => to_hex(public.as_bytes()),
        };
        long.get(..16).unwrap_or_default().to_owned()
    }

    /// What a keyring file keeps of the key: its member name, and the value in hex.
    pub(super) fn stored(&self) -> (&'static str, zeroize::Zeroizing<String>) {
        match &self.material {
            Material::Hmac(secret, _) => ("secret", zeroize::Zeroizing::new(to_hex(secret.expose()))),
            Material::Ed25519(public) => ("publicKey", zeroize::Zeroizing::new(to_hex(public.as_bytes()))),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} of {}, {}, [secret])", self.id, self.owner, self.purpose.name())
    }
}

/// The private half of an Ed25519 key, which stays with the principal.
pub struct Seed(SigningKey);

impl Seed {
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(bytes))
    }

    /// Reads a seed as `handoffd key add` writes it: 64 hex digits, or the 32 bytes themselves.
    pub fn from_secret(secret: &Secret) -> Option<Self> {
        if let Ok(raw) = <&[u8; 32]>::try_from(secret.expose()) {
            return Some(Self::from_bytes(raw));
        }
        let text = std::str::from_utf8(secret.expose()).ok()?;
        from_hex(text).map(|bytes| Self::from_bytes(&bytes))
    }

    /// The public half, 64 hex digits.
    pub fn public_hex(&self) -> String {
        to_hex(self.0.verifying_key().as_bytes())
    }

    pub fn sign(&self, message: &[u8]) -> String {
        to_hex(&self.0.sign(message).to_bytes())
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
