//! A grant, and the payloads of the events that it lives by.

use serde::Deserialize;

use super::person::Person;
use super::reference::AuthorizationRef;
use crate::contract::Mode;
use crate::limits;
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::wire::{Event, Fact, FactFault, Kind, Lineage, Payload, Sender, StreamId, WireId};

/// What a grant is for. An empty list of agents, operations or modes covers nothing; no channels mean any.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    pub agents: Vec<String>,
    pub channels: Vec<String>,
    pub expires_at: Timestamp,
    pub intent_hash: Option<Digest>,
    pub modes: Vec<Mode>,
    pub operations: Vec<String>,
    pub principal: String,
    pub route_key: Option<String>,
    pub uses: u32,
}

/// A grant that a person made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub authorization_ref: AuthorizationRef,
    pub terms: Terms,
    pub made_by: Person,
    /// By the ledger's time.
    pub made_at: Timestamp,
}

/// The payload of `authorization.used`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantUsed {
    pub authorization_ref: AuthorizationRef,
    pub handoff_id: String,
    /// How often it may be used after this.
    pub remaining: u32,
}

/// The payload of `authorization.revoked`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantRevoked {
    pub authorization_ref: AuthorizationRef,
    pub reason: Option<String>,
}

impl Terms {
    /// Writes the payload of `authorization.created`, with the principal that its maker also is; members in the order of
    /// their names.
    pub fn write(
        &self,
        authorization_ref: AuthorizationRef,
        maker_principal: Option<&str>,
        payload: &mut Payload<'_, '_>,
    ) {
        payload.texts("agents", &self.agents);
        payload.text("authorization_ref", &authorization_ref.to_string());
        payload.texts("channels", &self.channels);
        payload.text("expires_at", &self.expires_at.to_string());
        payload.text_if("intent_hash", self.intent_hash.map(|hash| hash.to_string()).as_deref());
        payload.text_if("maker_principal", maker_principal);
        payload.texts("modes", &self.modes.iter().map(|mode| mode.as_str()).collect::<Vec<_>>());
        payload.texts("operations", &self.operations);
        payload.text("principal", &self.principal);
        payload.text_if("route_key", self.route_key.as_deref());
        payload.count("uses", u64::from(self.uses));
    }

    /// What its event weighs beyond what an event may; nothing if it fits, whatever the token of whoever makes it is named.
    pub(super) fn bytes_too_many(&self, maker_principal: Option<&str>) -> Option<usize> {
        let at = self.expires_at;
        let stand_in = Event {
            wire_id: WireId::new(0, [0; 10]),
            kind: Kind::AuthorizationCreated,
            sender: Sender::System,
            ts: at,
            stream: StreamId::Gateway { topic_id: "" },
            stream_seq: 0,
            correlation_id: "",
            lineage: Lineage::default(),
            traceparent: None,
        };
        let grant = AuthorizationRef::new(0, [0; 10]);
        let bytes = match stand_in.to_text(|payload| self.write(grant, maker_principal, payload)) {
            Ok(text) => text.len(),
            Err(too_large) => too_large.bytes,
        };
        // Room for the sender, the gateway's topic, the numbers and a trace, none of which is known yet.
        let over = bytes.saturating_sub(limits::EVENT_BYTES_MAX - limits::EVENT_ENVELOPE_BYTES_MAX);
        (over > 0).then_some(over)
    }
}

impl Grant {
    /// The grant that `authorization.created` makes.
    pub(super) fn read(fact: &Fact<'_>) -> Result<Self, FactFault> {
        // Everything but its name and its maker is its terms, and a term that is not known might be one that narrows it.
        let mut members = fact.payload.clone();
        let mut take = |name| members.as_object_mut().and_then(|members| members.remove(name));
        let authorization_ref = take("authorization_ref").map(AuthorizationRef::deserialize);
        let maker_principal = take("maker_principal").map(String::deserialize);
        let (Some(Ok(authorization_ref)), Ok(maker_principal), Ok(terms)) =
            (authorization_ref, maker_principal.transpose(), Terms::deserialize(members))
        else {
            return Err(fact.fault("its payload is not ours"));
        };
        let made_by = Person::of(fact.sender, maker_principal.as_deref());
        let made_by = made_by.ok_or_else(|| fact.fault("no person made this grant"))?;
        Ok(Self { authorization_ref, terms, made_by, made_at: fact.at })
    }
}

impl GrantUsed {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text("authorization_ref", &self.authorization_ref.to_string());
        payload.text("handoff_id", &self.handoff_id);
        payload.count("remaining", u64::from(self.remaining));
    }
}

impl GrantRevoked {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text("authorization_ref", &self.authorization_ref.to_string());
        payload.text_if("reason", self.reason.as_deref());
    }
}
