//! Receipts: proof for the receiving agent, offline, that what it was sent was allowed, and for itself.
//!
//! Signed with the gateway's Ed25519 key over the RFC 8785 form of the receipt without `signature`, in hex like
//! every other signature here. `docs/receipts.md` says how others check one.

use serde::Serialize;

use super::{ALLOWED, Jwks};
use crate::json::{Value, printable};
use crate::ledger::{RunningHash, gateway_key_id};
use crate::limits;
use crate::proof::{Algorithm, Digest, Seed, canonical, canonical_where, from_hex, object};
use crate::timestamp::Timestamp;

/// A signed receipt. Only [`Receipt::sign`] makes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    handoff_id: String,
    decision: &'static str,
    task_spec_digest: Digest,
    dispatch_digest: Digest,
    target: String,
    sequence: u64,
    running_hash: String,
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic_id: Option<String>,
    key_id: String,
    signature: String,
}

/// What a receipt says.
#[derive(Debug, Clone, Copy)]
pub struct ReceiptFacts<'a> {
    pub handoff_id: &'a str,
    /// Of the TaskSpec as it was submitted.
    pub task_spec_digest: Digest,
    /// Of the payload as it is sent.
    pub dispatch_digest: Digest,
    pub target: &'a str,
    /// The `gate.decided` entry.
    pub sequence: u64,
    pub running_hash: RunningHash,
    pub topic_id: Option<&'a str>,
    pub expires_at: Timestamp,
}

/// Until when a receipt made at `now` holds, if the verdict behind it holds until then.
pub fn receipt_until(now: Timestamp, verdict_until: Option<Timestamp>) -> Timestamp {
    let until = now.plus_seconds(limits::RECEIPT_S);
    verdict_until.map_or(until, |verdict| verdict.min(until))
}

impl Receipt {
    /// A receipt for an allowed handoff.
    pub fn sign(facts: &ReceiptFacts<'_>, seed: &Seed) -> Self {
        let mut receipt = Self {
            handoff_id: facts.handoff_id.to_owned(),
            decision: ALLOWED,
            task_spec_digest: facts.task_spec_digest,
            dispatch_digest: facts.dispatch_digest,
            target: facts.target.to_owned(),
            sequence: facts.sequence,
            running_hash: facts.running_hash.to_string(),
            // Cut to milliseconds, which every language reads: never later than it should be.
            expires_at: facts.expires_at.to_milliseconds(),
            topic_id: facts.topic_id.map(str::to_owned),
            key_id: gateway_key_id(&seed.public_hex()),
            signature: String::new(),
        };
        receipt.signature = seed.sign(receipt.signed_text().as_bytes());
        receipt
    }

    fn signed_text(&self) -> String {
        object(512, |members| {
            members.text("decision", self.decision);
            members.text("dispatchDigest", &self.dispatch_digest.to_string());
            members.text("expiresAt", &self.expires_at);
            members.text("handoffId", &self.handoff_id);
            members.text("keyId", &self.key_id);
            members.text("runningHash", &self.running_hash);
            members.count("sequence", self.sequence);
            members.text("target", &self.target);
            members.text("taskSpecDigest", &self.task_spec_digest.to_string());
            members.text_if("topicId", self.topic_id.as_deref());
        })
    }
}

/// What the receipt is held against. What is not given is not compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct Presented<'a> {
    pub dispatch: Option<Value<'a>>,
    pub task_spec: Option<Value<'a>>,
    /// Who the receiver is.
    pub target: Option<&'a str>,
}

/// A receipt that holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    pub handoff_id: String,
    pub target: String,
    pub sequence: u64,
    pub running_hash: String,
    pub expires_at: Timestamp,
    pub key_id: String,
}

/// Why a receipt proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptFault {
    /// A member is missing or is not what it should be.
    Malformed {
        member: &'static str,
    },
    /// Only an allowed handoff has a receipt.
    NotAllowed {
        decision: String,
    },
    UnknownKey {
        key_id: String,
    },
    BadSignature,
    OtherTarget {
        target: String,
    },
    ChangedTaskSpec,
    ChangedDispatch,
    Expired {
        at: Timestamp,
    },
}

impl ReceiptFault {
    /// The word for programs; never renamed.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "malformed",
            Self::NotAllowed { .. } => "not_allowed",
            Self::UnknownKey { .. } => "unknown_key",
            Self::BadSignature => "bad_signature",
            Self::OtherTarget { .. } => "other_target",
            Self::ChangedTaskSpec => "changed_task_spec",
            Self::ChangedDispatch => "changed_dispatch",
            Self::Expired { .. } => "expired",
        }
    }
}

impl std::fmt::Display for ReceiptFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed { member } => write!(f, "its `{member}` is missing or malformed"),
            Self::NotAllowed { decision } => {
                write!(f, "it is for the decision `{}`; only `allowed` has receipts", printable(decision))
            }
            Self::UnknownKey { key_id } => {
                write!(f, "it names the key `{}`, which is no key of this gateway", printable(key_id))
            }
            Self::BadSignature => write!(f, "its signature is not the gateway's: it was changed or forged"),
            Self::OtherTarget { target } => write!(f, "it is for another target, `{}`", printable(target)),
            Self::ChangedTaskSpec => write!(f, "it is for another TaskSpec than this one"),
            Self::ChangedDispatch => write!(f, "it is for another payload than this one"),
            Self::Expired { at } => write!(f, "it expired at {at}"),
        }
    }
}

impl std::error::Error for ReceiptFault {}

/// Does the receipt hold, for what is presented, under one of these keys, at this time?
///
/// The signature comes first: what a forged receipt says about targets and times means nothing. Members that
/// are not known yet are covered by the signature and otherwise passed over.
pub fn verify(
    receipt: Value<'_>,
    presented: &Presented<'_>,
    keys: &Jwks,
    now: Timestamp,
) -> Result<Verified, ReceiptFault> {
    let text = |member| {
        let value = receipt.get(member).and_then(|value| value.as_str());
        value.ok_or(ReceiptFault::Malformed { member })
    };
    let (key_id, signature) = (text("keyId")?, text("signature")?);
    let form = Algorithm::Ed25519.check_form(signature);
    form.map_err(|_| ReceiptFault::Malformed { member: "signature" })?;
    let (handoff_id, target, decision) = (text("handoffId")?, text("target")?, text("decision")?);
    let task_spec_digest = digest_text(text("taskSpecDigest")?, "taskSpecDigest")?;
    let dispatch_digest = digest_text(text("dispatchDigest")?, "dispatchDigest")?;
    let running_hash = text("runningHash")?;
    from_hex::<32>(running_hash).ok_or(ReceiptFault::Malformed { member: "runningHash" })?;
    let sequence = receipt.get("sequence").and_then(|number| u64::try_from(number.as_integer()?).ok());
    let sequence = sequence.filter(|n| *n > 0).ok_or(ReceiptFault::Malformed { member: "sequence" })?;
    let expires_at =
        Timestamp::parse(text("expiresAt")?).ok_or(ReceiptFault::Malformed { member: "expiresAt" })?;
    if receipt.get("topicId").is_some() {
        text("topicId")?;
    }

    let signed = canonical_where(receipt, |object, name| object != receipt || name != "signature");
    let mut known = keys.of_id(key_id).peekable();
    if known.peek().is_none() {
        return Err(ReceiptFault::UnknownKey { key_id: key_id.to_owned() });
    }
    if !known.any(|key| key.verify(&signed, signature).is_ok()) {
        return Err(ReceiptFault::BadSignature);
    }
    if decision != ALLOWED {
        return Err(ReceiptFault::NotAllowed { decision: decision.to_owned() });
    }
    if presented.target.is_some_and(|own| own != target) {
        return Err(ReceiptFault::OtherTarget { target: target.to_owned() });
    }
    let differs = |value: Option<Value<'_>>, digest: &str| {
        value.is_some_and(|value| !Digest::of(&canonical(value)).is_written(digest))
    };
    if differs(presented.task_spec, task_spec_digest) {
        return Err(ReceiptFault::ChangedTaskSpec);
    }
    if differs(presented.dispatch, dispatch_digest) {
        return Err(ReceiptFault::ChangedDispatch);
    }
    if expires_at <= now {
        return Err(ReceiptFault::Expired { at: expires_at });
    }
    Ok(Verified {
        handoff_id: handoff_id.to_owned(),
        target: target.to_owned(),
        sequence,
        running_hash: running_hash.to_owned(),
        expires_at,
        key_id: key_id.to_owned(),
    })
}

fn digest_text<'d>(text: &'d str, member: &'static str) -> Result<&'d str, ReceiptFault> {
    let hex = text.strip_prefix("sha256:").and_then(from_hex::<32>);
    hex.map(|_| text).ok_or(ReceiptFault::Malformed { member })
}
