//! Why a grant does not carry a handoff: what the sender is told.
//!
//! Nothing here says who made or revoked a grant, or why: an operator's words are not for the agents.

use crate::json::printable;
use crate::timestamp::Timestamp;

/// The code of a refusal, as `gates` lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantCode {
    Unknown,
    /// An expiry, and no other fault.
    Expired,
    Revoked,
    Spent,
    Scope,
}

impl GrantCode {
    pub const ALL: [Self; 5] = [Self::Unknown, Self::Expired, Self::Revoked, Self::Spent, Self::Scope];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "POLICY_AUTHORIZATION_UNKNOWN",
            Self::Expired => "POLICY_AUTHORIZATION_EXPIRED",
            Self::Revoked => "POLICY_AUTHORIZATION_REVOKED",
            Self::Spent => "POLICY_AUTHORIZATION_SPENT",
            Self::Scope => "POLICY_AUTHORIZATION_SCOPE",
        }
    }
}

/// One reason why a grant does not carry a handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRefusal {
    pub code: GrantCode,
    /// JSON pointer into the TaskSpec.
    pub path: &'static str,
    pub message: String,
    pub hint: &'static str,
}

const REFERENCE: &str = "/authorship/risk/authorizationRef";
const ASK: &str = "ask an operator for a new grant and name that one";

impl GrantRefusal {
    pub(super) fn unknown(authorization_ref: &str) -> Self {
        let message = format!("there is no grant `{}`", printable(authorization_ref));
        Self {
            code: GrantCode::Unknown,
            path: REFERENCE,
            message,
            hint: "name a grant that an operator made",
        }
    }

    pub(super) fn expired(until: Timestamp, now: Timestamp) -> Self {
        let message = format!("the grant counted until {until}; it is {now}");
        Self { code: GrantCode::Expired, path: REFERENCE, message, hint: ASK }
    }

    /// Made before a new epoch began: how often it was used since may be forgotten.
    pub(super) fn void(made_at: Timestamp, since: Timestamp) -> Self {
        let message = format!(
            "the grant is of {made_at}; the ledger has forgotten claims and began a new epoch at {since}, which \
             makes it void"
        );
        Self { code: GrantCode::Expired, path: REFERENCE, message, hint: ASK }
    }

    pub(super) fn revoked(at: Timestamp) -> Self {
        let message = format!("the grant was revoked at {at}");
        Self { code: GrantCode::Revoked, path: REFERENCE, message, hint: ASK }
    }

    pub(super) fn spent(uses: u32) -> Self {
        let times = if uses == 1 { "once".to_owned() } else { format!("{uses} times") };
        let message = format!("the grant could be used {times}, and was");
        Self { code: GrantCode::Spent, path: REFERENCE, message, hint: ASK }
    }

    pub(super) fn scope(path: &'static str, message: String, hint: &'static str) -> Self {
        Self { code: GrantCode::Scope, path, message, hint }
    }
}
