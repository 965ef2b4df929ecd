//! What an allowed handoff takes along: the payload for its target, and a receipt for it.
//!
//! Pure: a payload is made from the TaskSpec, the route, the keys and what the ledger says about the
//! decision. Nothing is drawn at random and nothing is stored, so the same decision gives the same payload
//! however often it is asked for (`docs/decisions/011-dispatch-is-derived.md`).
//!
//! One mapping serves admission and dispatch: what the gates validated is what is sent.
//!
//! Deliberately absent: whether a handoff may still be dispatched. Only a committed `allowed` has a payload,
//! an `auth` block or a receipt, and the engine knows which those are.

mod delegation;
pub(crate) mod execution_plane;
mod jwks;
mod plain;
mod receipt;
pub(crate) mod signing;

use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::contract::TaskSpec;
use crate::ledger::RunningHash;
use crate::policy::{Profile, Route};
use crate::proof::{Digest, Keyring};
use crate::timestamp::Timestamp;

pub use delegation::AuditDelegation;
pub use jwks::{Jwks, JwksFault, jwks};
pub use receipt::{Presented, Receipt, ReceiptFacts, ReceiptFault, Verified, receipt_until, verify};
pub use signing::SigningFault;

/// The word of the one decision that takes anything along.
pub const ALLOWED: &str = "allowed";

/// What a committed decision gives to the payload: when it was made, and where it stands in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    pub decided_at: Timestamp,
    /// Of the `gate.decided` entry.
    pub running_hash: RunningHash,
}

/// What the target is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// In RFC 8785 form, so that it is hashed, signed and sent as one and the same text.
    text: String,
    digest: Digest,
}

/// Why there is no payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DispatchFault {
    /// A part of the TaskSpec could not be read; one that was allowed has none.
    NotWhole,
    /// The receiver demands a signature, and no key can make it now.
    Signature(SigningFault),
}

impl std::fmt::Display for DispatchFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotWhole => write!(f, "a part of the TaskSpec could not be read"),
            Self::Signature(fault) => write!(f, "the payload cannot be signed: {}", fault.message()),
        }
    }
}

impl std::error::Error for DispatchFault {}

impl Dispatch {
    /// The payload, in its canonical form.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same, to be put into an answer as it is.
    pub fn into_raw(self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.text).ok()
    }

    /// Over the RFC 8785 form of the payload as it is sent, `auth` included.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// What would be sent if the handoff were allowed at that time: what a person looks at before saying yes. It has no
/// `auth`, so that it is of no use to anybody else.
pub fn preview(spec: &TaskSpec<'_>, route: &Route, at: Timestamp) -> Option<Json> {
    match route.profile {
        Profile::Plain => plain::fill(spec, at),
        Profile::ExecutionPlaneV1 => execution_plane::unsigned(spec, at),
    }
}

/// The payload of an allowed handoff on its route, signed with the key that the route names now.
pub fn payload(
    spec: &TaskSpec<'_>,
    route: &Route,
    settled: &Settled,
    keyring: &Keyring,
    now: Timestamp,
) -> Result<Dispatch, DispatchFault> {
    let mode = spec.mode.get().ok_or(DispatchFault::NotWhole)?;
    let key = signing::signing_key(route, mode, keyring, now).map_err(DispatchFault::Signature)?;
    let text = match route.profile {
        Profile::Plain => plain::filled(spec, settled.decided_at),
        Profile::ExecutionPlaneV1 => execution_plane::signed(spec, settled, key),
    };
    let text = text.ok_or(DispatchFault::NotWhole)?;
    let digest = Digest::of(text.as_bytes());
    Ok(Dispatch { text, digest })
}
