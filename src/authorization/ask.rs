//! Asking for a grant: the body of the request, and who may make which.

use std::fmt;

use serde::Deserialize;

use super::grant::Terms;
use super::person::Person;
use crate::contract::{BodySchema, Finding, Mode};
use crate::json::{Document, printable};
use crate::limits;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// The body of `POST /v1/authorizations`.
pub static GRANT_BODY: BodySchema =
    BodySchema::new(include_str!("../../docs/schemas/authorization.schema.json"));

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Body {
    principal: String,
    agents: Vec<String>,
    operations: Vec<String>,
    modes: Vec<Mode>,
    #[serde(default)]
    channels: Vec<String>,
    route_key: Option<String>,
    expires_at: Timestamp,
    uses: Option<u32>,
    intent_hash: Option<Digest>,
}

/// The terms that somebody asks for, or everything that is wrong with them. `maker_principal` is the principal that this
/// person also is.
pub fn grant_ask(
    document: &Document<'_>,
    now: Timestamp,
    maker_principal: Option<&str>,
) -> Result<Terms, Vec<Finding>> {
    let body: Body = GRANT_BODY.read(document)?;
    let terms = Terms {
        agents: body.agents,
        channels: body.channels,
        expires_at: body.expires_at,
        intent_hash: body.intent_hash,
        modes: body.modes,
        operations: body.operations,
        principal: body.principal,
        route_key: body.route_key,
        uses: body.uses.unwrap_or(1),
    };
    let mut findings = Vec::new();
    if terms.expires_at <= now {
        let message = format!("it would have ended at {}; it is {now}", terms.expires_at);
        findings.push(Finding::new("/expiresAt", message, "name a time in the future"));
    }
    if terms.expires_at > now.plus_seconds(limits::GRANT_S_MAX) {
        let days = limits::GRANT_S_MAX / 86_400;
        let message = format!("it would last until {}; it is {now}", terms.expires_at);
        findings.push(Finding::new("/expiresAt", message, format!("at most {days} days from now")));
    }
    if let Some(over) = terms.bytes_too_many(maker_principal) {
        let message = format!("its names take {over} bytes more than an entry of the ledger has room for");
        findings.push(Finding::new("", message, "make several grants with fewer names each"));
    }
    if findings.is_empty() { Ok(terms) } else { Err(findings) }
}

/// May this person make a grant of these terms?
///
/// It stands in for an approval later on, so whoever could not approve the handoff cannot make its grant: not the
/// principal, and nobody who goes by the name of an agent that it is for.
pub fn may_make(person: &Person, terms: &Terms) -> Result<(), GrantFault> {
    if person.goes_by(&terms.principal) {
        return Err(GrantFault::Own { as_what: "principal", id: terms.principal.clone() });
    }
    match terms.agents.iter().find(|agent| person.goes_by(agent)) {
        Some(agent) => Err(GrantFault::Own { as_what: "agent", id: agent.clone() }),
        None => Ok(()),
    }
}

/// Why a grant is not made or revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantFault {
    /// Whoever asks is no person.
    NotHuman,
    /// It is the person's own.
    Own {
        as_what: &'static str,
        id: String,
    },
    /// There are as many as can be kept.
    Full,
    Unknown {
        name: String,
    },
    Revoked {
        name: String,
        at: Timestamp,
    },
}

impl GrantFault {
    /// Wire contract: a code is never renamed and never reused.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotHuman => "AUTHORIZATION_NOT_HUMAN",
            Self::Own { .. } => "AUTHORIZATION_OWN",
            Self::Full => "AUTHORIZATION_FULL",
            Self::Unknown { .. } => "AUTHORIZATION_UNKNOWN",
            Self::Revoked { .. } => "AUTHORIZATION_REVOKED",
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotHuman => "use the token of an operator, which an admin makes for a person by name",
            Self::Own { .. } => "ask another operator to make it",
            Self::Full => "fewer grants with more uses; each is kept for 60 days after it was made",
            Self::Unknown { .. } => "GET /v1/authorizations lists them",
            Self::Revoked { .. } => "nothing to do",
        }
    }
}

impl fmt::Display for GrantFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHuman => f.write_str("only a person can make a grant"),
            Self::Own { as_what, id } => {
                write!(f, "nobody grants their own: you are the {as_what} `{}`", printable(id))
            }
            Self::Full => write!(f, "there are {} grants, and no more are kept", limits::GRANTS_MAX),
            Self::Unknown { name } => write!(f, "there is no grant `{}`", printable(name)),
            Self::Revoked { name, at } => write!(f, "`{}` was revoked at {at}", printable(name)),
        }
    }
}

impl std::error::Error for GrantFault {}
