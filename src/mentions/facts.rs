//! The payloads of `mention.observed`, `mention.changed` and `mention.marked`.

use serde::Deserialize;

use super::phase::Phase;
use crate::contract::RiskClass;
use crate::proof::Digest;
use crate::wire::Payload;

/// A mention was judged.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MentionObserved {
    /// The codes of all reasons against it but the phase's, each once.
    pub codes: Vec<String>,
    pub content_digest: Option<Digest>,
    pub handoff_id: String,
    pub message_id: Option<String>,
    /// The phase in which it was judged.
    pub phase: Option<Phase>,
    pub risk_classification: Option<RiskClass>,
    /// The decision, the phase left aside: `allowed`, `denied`, `expired` or `needs_approval`.
    pub would_be: String,
}

/// Mentions are in another phase.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MentionChanged {
    /// The refusal that dropped the phase, if one did.
    pub code: Option<String>,
    pub from: Phase,
    pub reason: String,
    pub to: Phase,
}

/// A person marked a mention as none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MentionMarked {
    pub handoff_id: String,
    pub message_id: Option<String>,
    pub reason: Option<String>,
}

impl MentionObserved {
    /// Would it have been let through, had the phase allowed it?
    pub fn would_pass(&self) -> bool {
        matches!(self.would_be.as_str(), "allowed" | "needs_approval")
    }

    /// Was the phase all that held it back?
    pub fn is_held_back(&self) -> bool {
        let let_through = |(phase, class): (Phase, RiskClass)| phase.lets_through(class);
        self.would_pass() && !self.phase.zip(self.risk_classification).is_some_and(let_through)
    }

    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.texts("codes", &self.codes);
        payload.text_if("content_digest", self.content_digest.map(|digest| digest.to_string()).as_deref());
        payload.text("handoff_id", &self.handoff_id);
        payload.text_if("message_id", self.message_id.as_deref());
        payload.text_if("phase", self.phase.map(Phase::as_str));
        payload.text_if("risk_classification", self.risk_classification.map(RiskClass::as_str));
        payload.text("would_be", &self.would_be);
    }
}

impl MentionChanged {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text_if("code", self.code.as_deref());
        payload.text("from", self.from.as_str());
        payload.text("reason", &self.reason);
        payload.text("to", self.to.as_str());
    }
}

impl MentionMarked {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text("handoff_id", &self.handoff_id);
        payload.text_if("message_id", self.message_id.as_deref());
        payload.text_if("reason", self.reason.as_deref());
    }
}
