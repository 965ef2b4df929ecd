//! Proofs: canonical JSON, digests, HMAC and Ed25519 signatures, and the keys that make them.
//!
//! Knows nothing of TaskSpecs or policies. Keys come in as an immutable [`Keyring`]; reading it from
//! disk is the command line's and the daemon's business.

mod base64url;
mod canonical;
mod digest;
mod key;
mod keyring;
mod members;
mod secret;

pub(crate) use base64url::{from_base64url, to_base64url};
pub use canonical::{canonical, canonical_json};
pub(crate) use canonical::{canonical_where, write_canonical};
pub use digest::Digest;
pub(crate) use digest::{from_hex, hex_digits, to_hex};
pub use key::{Algorithm, Key, Purpose, Seed, SignatureFault};
pub use keyring::{KeyFault, Keyring, KeyringFault};
pub(crate) use members::{Members, object, write_array, write_display, write_object, write_text};
pub use secret::Secret;

#[cfg(test)]
mod tests;
