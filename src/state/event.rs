//! What an entry says, as far as the state shows it.
//!
//! Entries are read on the writer's thread, before anybody is answered. So texts are borrowed from the entry, and a
//! payload is passed over, until its type has something to say.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::view::StateFault;
use crate::ledger::Entry;
use crate::wire::StreamId;

/// What every event has.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'e> {
    #[serde(borrow)]
    pub(super) wire_id: Cow<'e, str>,
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'e, str>,
    #[serde(borrow)]
    pub(super) sender: Cow<'e, str>,
    #[serde(borrow)]
    pub(super) stream: Stream<'e>,
    /// There must be one.
    #[serde(rename = "payload")]
    _payload: IgnoredAny,
}

#[derive(Debug, Deserialize)]
pub(super) struct Stream<'e> {
    #[serde(borrow)]
    pub(super) stream_id: Cow<'e, str>,
    pub(super) stream_seq: u64,
}

/// The facts of a handoff.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Created {
    pub(super) handoff_id: String,
    pub(super) mode: Option<String>,
    pub(super) operation: Option<String>,
    pub(super) route_key: Option<String>,
    pub(super) source_agent: Option<String>,
    pub(super) target_agent: Option<String>,
    pub(super) delegation: Option<Delegation>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Delegation {
    pub(super) authorization_ref: Option<String>,
    pub(super) delegate_agent: Option<String>,
    pub(super) envelope_hash: Option<String>,
    pub(super) policy_ref: Option<String>,
    pub(super) principal: Option<String>,
    pub(super) risk_classification: Option<String>,
}

/// What was decided.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Decided<'e> {
    #[serde(default, borrow)]
    pub(super) decision: Cow<'e, str>,
}

/// Why it ended as it did: the first code of a decision, or the code of a failure.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Why {
    #[serde(default)]
    codes: Json,
    #[serde(default)]
    code: Json,
}

impl Why {
    pub(super) fn first_code(&self) -> Option<String> {
        self.codes.get(0).and_then(Json::as_str).map(str::to_owned)
    }

    pub(super) fn code(&self) -> Option<String> {
        self.code.as_str().map(str::to_owned)
    }
}

impl<'e> Event<'e> {
    pub(super) fn of(entry: &'e Entry) -> Result<Self, StateFault> {
        serde_json::from_str(&entry.wire).map_err(|_| StateFault { sequence: entry.sequence })
    }

    /// The handoff that its stream is about.
    pub(super) fn handoff_id(&self) -> Option<&str> {
        match StreamId::parse(&self.stream.stream_id)? {
            StreamId::Handoff { handoff_id, .. } => Some(handoff_id),
            _ => None,
        }
    }
}

/// What an event of its type says.
pub(super) fn payload<'e, Payload: Deserialize<'e>>(entry: &'e Entry) -> Result<Payload, StateFault> {
    #[derive(Deserialize)]
    struct With<Payload> {
        payload: Payload,
    }
    let with: With<Payload> =
        serde_json::from_str(&entry.wire).map_err(|_| StateFault { sequence: entry.sequence })?;
    Ok(with.payload)
}
