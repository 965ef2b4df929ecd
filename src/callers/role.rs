//! Roles, and what a caller of each role must say about itself.

use std::fmt;
use std::str::FromStr;

use crate::contract::{AgentId, PrincipalId, Text as _};
use crate::json::printable;

/// What kind of caller a token makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Submits handoffs as its own agent.
    Orchestrator,
    /// Reports on the handoffs that it was given.
    Agent,
    /// A person, by name. Nobody else speaks for a human.
    Operator,
    /// Attaches end-to-end evidence.
    Harness,
    /// Reads.
    Auditor,
    /// Makes tokens and keys; never a human.
    Admin,
}

impl Role {
    pub const ALL: [Self; 6] =
        [Self::Orchestrator, Self::Agent, Self::Operator, Self::Harness, Self::Auditor, Self::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orchestrator => "orchestrator",
            Self::Agent => "agent",
            Self::Operator => "operator",
            Self::Harness => "harness",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        }
    }

    /// The role in the text of a token, so that whoever finds one knows how bad it is.
    pub(super) fn short(self) -> &'static str {
        match self {
            Self::Orchestrator => "orc",
            Self::Agent => "agt",
            Self::Operator => "opr",
            Self::Harness => "hrn",
            Self::Auditor => "aud",
            Self::Admin => "adm",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|role| role.as_str() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            format!("`{}` is not a role; use one of {names}", printable(name))
        })
    }
}

/// A role with what belongs to it: an orchestrator without an agent, or an auditor with one, cannot be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Orchestrator { agent_id: String },
    Agent { agent_id: String },
    Operator { principal: Option<String> },
    Harness { agent_id: Option<String> },
    Auditor,
    Admin,
}

/// Why a role does not go with what was said about its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandingFault {
    AgentMissing(Role),
    AgentSpare(Role),
    AgentInvalid,
    PrincipalSpare(Role),
    PrincipalInvalid,
}

impl StandingFault {
    /// The member of a stored token that is wrong.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::AgentMissing(_) | Self::AgentSpare(_) | Self::AgentInvalid => "agentId",
            Self::PrincipalSpare(_) | Self::PrincipalInvalid => "principal",
        }
    }
}

impl fmt::Display for StandingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AgentMissing(role) => write!(f, "the role {role} needs the id of its agent"),
            Self::AgentSpare(role) => write!(f, "the role {role} has no agent"),
            Self::AgentInvalid => {
                f.write_str("the id of an agent has 2 to 64 characters and no control characters")
            }
            Self::PrincipalSpare(role) => {
                write!(f, "the role {role} has no principal; only an operator is a person")
            }
            Self::PrincipalInvalid => {
                f.write_str("a principal has 1 to 128 characters and no control characters")
            }
        }
    }
}

impl Standing {
    /// The standing of a role, if what is said goes with it.
    pub fn of(role: Role, agent_id: Option<&str>, principal: Option<&str>) -> Result<Self, StandingFault> {
        let plain = |text: &str| !text.chars().any(char::is_control);
        if agent_id.is_some_and(|id| AgentId::parse(id).is_none() || !plain(id)) {
            return Err(StandingFault::AgentInvalid);
        }
        if principal.is_some_and(|id| PrincipalId::parse(id).is_none() || !plain(id)) {
            return Err(StandingFault::PrincipalInvalid);
        }
        if principal.is_some() && role != Role::Operator {
            return Err(StandingFault::PrincipalSpare(role));
        }
        let agent_id = agent_id.map(str::to_owned);
        let needed = |id: Option<String>| id.ok_or(StandingFault::AgentMissing(role));
        Ok(Self(match role {
            Role::Orchestrator => Kind::Orchestrator { agent_id: needed(agent_id)? },
            Role::Agent => Kind::Agent { agent_id: needed(agent_id)? },
            Role::Harness => Kind::Harness { agent_id },
            Role::Operator | Role::Auditor | Role::Admin if agent_id.is_some() => {
                return Err(StandingFault::AgentSpare(role));
            }
            Role::Operator => Kind::Operator { principal: principal.map(str::to_owned) },
            Role::Auditor => Kind::Auditor,
            Role::Admin => Kind::Admin,
        }))
    }

    /// An administrator, of whom there is nothing to say.
    pub fn admin() -> Self {
        Self(Kind::Admin)
    }

    pub fn role(&self) -> Role {
        match self.0 {
            Kind::Orchestrator { .. } => Role::Orchestrator,
            Kind::Agent { .. } => Role::Agent,
            Kind::Operator { .. } => Role::Operator,
            Kind::Harness { .. } => Role::Harness,
            Kind::Auditor => Role::Auditor,
            Kind::Admin => Role::Admin,
        }
    }

    pub fn agent_id(&self) -> Option<&str> {
        match &self.0 {
            Kind::Orchestrator { agent_id } | Kind::Agent { agent_id } => Some(agent_id),
            Kind::Harness { agent_id } => agent_id.as_deref(),
            Kind::Operator { .. } | Kind::Auditor | Kind::Admin => None,
        }
    }

    /// The principal that a person also is.
    pub fn principal(&self) -> Option<&str> {
        match &self.0 {
            Kind::Operator { principal } => principal.as_deref(),
            _ => None,
        }
    }
}
