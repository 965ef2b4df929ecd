//! A person's answer to one handoff: the events it is made of, the body it comes in, and why it may not be given.

use std::fmt;

use serde::Deserialize;

use crate::contract::{BodySchema, Finding, Mode};
use crate::json::{Document, printable};
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::wire::Payload;

/// The body of `POST /v1/approvals/{handoffId}`.
pub static APPROVAL_BODY: BodySchema =
    BodySchema::new(include_str!("../../docs/schemas/approval.schema.json"));

/// The codes of `approval.rejected`: a person said no; nobody said yes in time, which is an expiry.
pub const APPROVAL_REJECTED: &str = "POLICY_APPROVAL_REJECTED";
pub const APPROVAL_EXPIRED: &str = "POLICY_APPROVAL_EXPIRED";

/// How many people must say yes to the handoff itself before it is allowed.
///
/// Outside live nobody is asked. A grant stands in for the one person that a route asks for; it is one person's word,
/// so where a route asks for two it stands in for nobody, and whoever made it may be one of the two.
pub fn people_needed(mode: Mode, covered_by_a_grant: bool, approvers: u8) -> u8 {
    let approvers = approvers.max(1);
    match mode {
        Mode::Dev | Mode::Simulated => 0,
        Mode::Live if covered_by_a_grant && approvers == 1 => 0,
        Mode::Live => approvers,
    }
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Approve,
    Reject,
}

impl Answer {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }
}

/// What a person answers, and why.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalAsk {
    #[serde(rename = "decision")]
    pub answer: Answer,
    pub reason: String,
}

impl ApprovalAsk {
    /// The answer, or everything that is wrong with the body.
    pub fn read(document: &Document<'_>) -> Result<Self, Vec<Finding>> {
        APPROVAL_BODY.read(document)
    }
}

/// The payload of `approval.requested`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequested {
    /// How many people must say yes.
    pub approvers: Option<u8>,
    /// Until when.
    pub expires_at: Option<Timestamp>,
}

/// The payload of `approval.granted`: one person's yes, to this TaskSpec and to nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalGranted {
    /// The principal that the person also is, so that two tokens of one person are not two people.
    pub principal: Option<String>,
    pub reason: Option<String>,
    /// How many more people must say yes.
    pub remaining: Option<u8>,
    pub task_spec_digest: Digest,
}

/// The payload of `approval.rejected`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRejected {
    pub code: String,
    pub reason: Option<String>,
}

impl ApprovalRequested {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        if let Some(approvers) = self.approvers {
            payload.count("approvers", u64::from(approvers));
        }
        payload.text_if("expires_at", self.expires_at.map(|time| time.to_string()).as_deref());
    }
}

impl ApprovalGranted {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text_if("principal", self.principal.as_deref());
        payload.text_if("reason", self.reason.as_deref());
        if let Some(remaining) = self.remaining {
            payload.count("remaining", u64::from(remaining));
        }
        payload.text("task_spec_digest", &self.task_spec_digest.to_string());
    }
}

impl ApprovalRejected {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text("code", &self.code);
        payload.text_if("reason", self.reason.as_deref());
    }
}

/// Why somebody's answer is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalFault {
    /// Whoever answers is no person.
    NotHuman,
    /// It was never asked, or it is settled.
    NotWaiting { handoff_id: String },
    /// The time to answer is over, whether or not that is in the ledger yet.
    Expired { until: Timestamp },
    /// It is the person's own.
    Own { as_what: &'static str, id: String },
    /// The person said yes already.
    Twice { name: String },
    /// As many wait as can be kept.
    Full,
}

impl ApprovalFault {
    /// Wire contract: a code is never renamed and never reused.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotHuman => "APPROVAL_NOT_HUMAN",
            Self::NotWaiting { .. } => "APPROVAL_NOT_WAITING",
            Self::Expired { .. } => "APPROVAL_EXPIRED",
            Self::Own { .. } => "APPROVAL_OWN",
            Self::Twice { .. } => "APPROVAL_TWICE",
            Self::Full => "APPROVAL_FULL",
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotHuman => "use the token of an operator, which an admin makes for a person by name",
            Self::NotWaiting { .. } => {
                "GET /v1/approvals lists what waits, GET /v1/handoffs/{id} what became of it"
            }
            Self::Expired { .. } => "the source may send it again under a new handoffId",
            Self::Own { .. } => "ask an operator who has no part in it; saying no is open to you",
            Self::Twice { .. } => "ask another operator; the route asks for more than one person",
            Self::Full => "answer what waits, or try again when some of it has expired",
        }
    }
}

impl fmt::Display for ApprovalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHuman => f.write_str("only a person can answer for a person"),
            Self::NotWaiting { handoff_id } => {
                write!(f, "`{}` does not wait for anybody", printable(handoff_id))
            }
            Self::Expired { until } => write!(f, "it could be answered until {until}"),
            Self::Own { as_what, id } => {
                write!(f, "nobody approves their own: you are the {as_what} `{}`", printable(id))
            }
            Self::Twice { name } => write!(f, "`{}` said yes already", printable(name)),
            Self::Full => {
                write!(f, "{} handoffs wait for a person already", crate::limits::WAITING_APPROVALS_MAX)
            }
        }
    }
}

impl std::error::Error for ApprovalFault {}
