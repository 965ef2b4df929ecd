//! What an operator asks for: another phase, or that a mention was none.

use serde::Deserialize;

use super::phase::Phase;
use crate::contract::{BodySchema, Finding};
use crate::json::Document;

/// The body of `PUT /v1/mentions/phase`.
pub static PHASE_BODY: BodySchema =
    BodySchema::new(include_str!("../../docs/schemas/mention-phase.schema.json"));

/// The body of `POST /v1/mentions/{messageId}/false-positive`.
pub static FALSE_POSITIVE_BODY: BodySchema =
    BodySchema::new(include_str!("../../docs/schemas/mention-false-positive.schema.json"));

/// The phase that mentions shall be in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseAsk {
    pub phase: Phase,
    pub reason: String,
}

/// A mention that was none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FalsePositiveAsk {
    /// Which one, where the message led to several handoffs.
    pub handoff_id: Option<String>,
    pub reason: String,
}

impl PhaseAsk {
    /// What is asked for, or everything that is wrong with the body.
    pub fn read(document: &Document<'_>) -> Result<Self, Vec<Finding>> {
        PHASE_BODY.read(document)
    }
}

impl FalsePositiveAsk {
    /// What is asked for, or everything that is wrong with the body.
    pub fn read(document: &Document<'_>) -> Result<Self, Vec<Finding>> {
        FALSE_POSITIVE_BODY.read(document)
    }
}
