//! The name of a grant.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::wire::Ulid;

/// The name of a grant: `authz_` and a ULID, so that nobody can guess one and they sort by when they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthorizationRef(Ulid);

impl AuthorizationRef {
    /// The name of a grant that is made at that time, by the ledger.
    pub fn new(unix_milliseconds: u64, random: [u8; 10]) -> Self {
        Self(Ulid::new(unix_milliseconds, random))
    }
}

/// A text that is no name of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAReference;

impl FromStr for AuthorizationRef {
    type Err = NotAReference;

    fn from_str(text: &str) -> Result<Self, NotAReference> {
        text.strip_prefix("authz_").and_then(Ulid::parse).map(Self).ok_or(NotAReference)
    }
}

impl fmt::Display for AuthorizationRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "authz_{}", self.0)
    }
}

impl<'d> Deserialize<'d> for AuthorizationRef {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(|NotAReference| D::Error::custom("not the name of a grant"))
    }
}
