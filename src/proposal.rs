//! A changed policy set that waits for a person's yes: what was proposed, and what was answered.
//!
//! A proposal is a digest over another: the set that the files have, and the one in force that it would replace. The
//! answer is to that and to nothing else; once another set is in force, whatever was proposed before is void.
//!
//! Deliberately absent: the sets themselves and the files, which the gateway knows.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use crate::contract::{BodySchema, Finding};
use crate::json::Document;
use crate::limits;
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::wire::{Fact, FactFault, Kind, Payload, Sender};

/// The body of `POST /v1/policies/approval`.
pub static PROPOSAL_BODY: BodySchema =
    BodySchema::new(include_str!("../docs/schemas/policy-approval.schema.json"));

/// What a person answers to which set, and why.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposalAsk {
    pub digest: Digest,
    pub decision: Answer,
    pub reason: String,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Approve,
    Reject,
}

impl ProposalAsk {
    /// The answer, or everything that is wrong with the body.
    pub fn read(document: &Document<'_>) -> Result<Self, Vec<Finding>> {
        PROPOSAL_BODY.read(document)
    }
}

/// The payload of `policy.proposed`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyProposed {
    pub digest: Digest,
    /// Of the set in force.
    pub previous_digest: Digest,
}

/// The payload of `policy.approved` and of `policy.rejected`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyAnswered {
    pub digest: Digest,
    pub reason: String,
}

impl PolicyProposed {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text("digest", &self.digest.to_string());
        payload.text("previous_digest", &self.previous_digest.to_string());
    }
}

impl PolicyAnswered {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text("digest", &self.digest.to_string());
        payload.text("reason", &self.reason);
    }
}

/// A set that was proposed and is not in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub digest: Digest,
    /// The set in force that it would replace.
    pub previous: Digest,
    pub at: Timestamp,
    pub sequence: u64,
    /// The no that it was given, if it was.
    pub rejected: Option<Rejection>,
}

/// A person's no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub by: String,
    pub at: Timestamp,
    pub reason: String,
    pub sequence: u64,
}

/// All that was proposed over the set in force. There are few, and one that is copied is a pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposals(Arc<BTreeMap<Digest, Proposal>>);

impl Proposals {
    /// Takes in what the ledger says.
    pub fn take(&mut self, fact: &Fact<'_>) -> Result<(), FactFault> {
        match fact.kind {
            Kind::PolicyProposed => {
                let PolicyProposed { digest, previous_digest: previous } = fact.read()?;
                let all = Arc::make_mut(&mut self.0);
                // What was proposed over another set is void.
                all.retain(|other, proposal| *other != digest && proposal.previous == previous);
                while all.len() >= limits::PROPOSALS_KEPT_MAX {
                    let oldest = all.values().min_by_key(|proposal| proposal.sequence);
                    let Some(oldest) = oldest.map(|proposal| proposal.digest) else { break };
                    all.remove(&oldest);
                }
                let (at, sequence) = (fact.at, fact.sequence);
                all.insert(digest, Proposal { digest, previous, at, sequence, rejected: None });
            }
            Kind::PolicyApproved => {
                let PolicyAnswered { digest, .. } = fact.read()?;
                Arc::make_mut(&mut self.0).remove(&digest);
            }
            Kind::PolicyRejected => {
                let PolicyAnswered { digest, reason } = fact.read()?;
                let Sender::Human(by) = fact.sender else {
                    return Err(fact.fault("nobody but a person rejects"));
                };
                let (by, at, sequence) = (by.to_owned(), fact.at, fact.sequence);
                if let Some(proposal) = Arc::make_mut(&mut self.0).get_mut(&digest) {
                    proposal.rejected = Some(Rejection { by, at, reason, sequence });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What was proposed with this digest over the set in force.
    pub fn find(&self, digest: Digest, in_force: Option<&str>) -> Option<&Proposal> {
        let over = |proposal: &&Proposal| in_force.is_some_and(|text| proposal.previous.is_written(text));
        self.0.get(&digest).filter(over)
    }

    /// Does exactly this wait for an answer?
    pub fn may_answer(&self, digest: Digest, in_force: Option<&str>) -> Result<&Proposal, Unanswerable> {
        let Some(proposal) = self.find(digest, in_force) else {
            let is_in_force = in_force.is_some_and(|text| digest.is_written(text));
            return Err(Unanswerable::NotWaiting { asked: digest, is_in_force });
        };
        match &proposal.rejected {
            None => Ok(proposal),
            Some(Rejection { at, .. }) => Err(Unanswerable::Rejected { asked: digest, at: *at }),
        }
    }
}

/// Why an answer is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswerable {
    /// Whoever answers is no person.
    NotHuman,
    /// Nothing waits, or nothing with this digest over what is in force.
    NotWaiting { asked: Digest, is_in_force: bool },
    /// The files are another set by now.
    OtherSet { asked: Digest, waiting: Digest },
    /// The files cannot be loaded as they are now.
    Unreadable { asked: Digest, why: String },
    /// Somebody said no before.
    Rejected { asked: Digest, at: Timestamp },
}

impl Unanswerable {
    /// Wire contract: a code is never renamed and never reused.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotHuman => "POLICY_NOT_HUMAN",
            Self::NotWaiting { .. } => "POLICY_NOT_WAITING",
            Self::OtherSet { .. } | Self::Unreadable { .. } => "POLICY_OTHER_SET",
            Self::Rejected { .. } => "POLICY_REJECTED",
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotHuman => "an operator answers, with a token in their own name",
            Self::NotWaiting { is_in_force: true, .. } => "nothing to do",
            Self::NotWaiting { is_in_force: false, .. } => {
                "GET /v1/policies says what waits, if anything does"
            }
            Self::OtherSet { .. } => "look at what changed since, and answer with the digest that waits now",
            Self::Unreadable { .. } => {
                "correct the files; what they say then is proposed anew if it is another set"
            }
            Self::Rejected { .. } => {
                "change the files: what is changed, or put back and changed again, is proposed anew"
            }
        }
    }
}

impl fmt::Display for Unanswerable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHuman => f.write_str("only a person can answer"),
            Self::NotWaiting { asked, is_in_force: true } => write!(f, "{asked} is in force already"),
            Self::NotWaiting { asked, is_in_force: false } => {
                write!(f, "{asked} does not wait for an answer")
            }
            Self::OtherSet { asked, waiting } => {
                write!(f, "the files are not {asked}: the set that waits is {waiting}")
            }
            Self::Unreadable { asked, why } => write!(f, "the files are no longer {asked}: {why}"),
            Self::Rejected { asked, at } => write!(f, "{asked} was rejected at {at}"),
        }
    }
}

impl std::error::Error for Unanswerable {}

#[cfg(test)]
mod tests;
