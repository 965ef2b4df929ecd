//! Callers: who may ask, and for what.
//!
//! Owns the tokens ([`Roster`]), what each [`Role`] may do ([`Act`]), signed requests ([`SignedRequest`],
//! [`Nonces`], [`Taken`]), and the [`Sessions`] of people who look at pages. Core but for `file`, the one hand, which keeps `memory/tokens.json` and
//! `memory/admin.token`. Time and randomness come in as arguments.
//!
//! Deliberately absent: HTTP, whose headers and status codes are a door's, and the engine: that a caller may
//! submit does not say that its handoff is allowed.

mod file;
mod nonces;
mod request;
mod rights;
mod role;
mod roster;
mod sessions;
mod stored;
mod taken;
mod token;

pub use file::{AdminFile, SharedRoster, TokenFault, TokenFiles};
pub use nonces::Nonces;
pub use request::{
    KEY_ID_HEADER, NONCE_HEADER, RequestFault, SIGNATURE_HEADER, SignedRequest, TIMESTAMP_HEADER, Verified,
    Vouched,
};
pub use rights::Act;
pub use role::{Role, Standing, StandingFault};
pub use roster::{Roster, RosterFault};
pub use sessions::{Look, Session, SessionSecret, Sessions};
pub use stored::StoredFault;
pub use taken::Taken;
pub use token::{Caller, Name, Token, TokenId, TokenText};

#[cfg(test)]
mod tests;
