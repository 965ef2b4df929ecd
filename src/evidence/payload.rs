//! The event's `data`: what the adapter says about the packet.
//!
//! Owns the members and their order: the adapter, the protocol, the parts, the two contract objects, and the
//! count last. `discovery` and `handoff` are always there. A task, artifact or message is there when it has
//! an id; one without an id is left out, whatever else it holds. Deliberately absent: deciding anything
//! else. Every member has been decided before it gets here.

use std::borrow::Cow;

use serde::Serialize;

use super::attributes::Attributes;
use super::canonical::{self, Members};
use super::discovery::Discovery;
use super::handoff::Handoff;
use super::packet::Packet;
use super::parts::{Agent, Artifact, Message, Part, Task};

const ADAPTER_ID: &str = "handoffd-adapter-a2a";
const ADAPTER_VERSION: &str = env!("CARGO_PKG_VERSION");
const PROTOCOL: &str = "a2a";

/// The event's `data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Payload {
    adapter_id: &'static str,
    adapter_version: &'static str,
    protocol: &'static str,
    protocol_name: &'static str,
    protocol_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_event_type: Option<String>,
    /// Always there: without an agent id there is no event.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<Agent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<Artifact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<Attributes>,
    discovery: Discovery,
    handoff: Handoff,
    unmapped_fields_count: usize,
}

impl Payload {
    pub(super) fn build(
        packet: Packet<'_>,
        protocol_version: String,
        handoff: Handoff,
        discovery: Discovery,
        unmapped_fields_count: usize,
    ) -> Self {
        Self {
            adapter_id: ADAPTER_ID,
            adapter_version: ADAPTER_VERSION,
            protocol: PROTOCOL,
            protocol_name: PROTOCOL,
            protocol_version,
            upstream_event_type: packet.event_type.map(Cow::into_owned),
            agent: packet.agent,
            task: packet.task.filter(|task| task.id.is_some()),
            artifact: packet.artifact.filter(|artifact| artifact.id.is_some()),
            message: packet.message.filter(|message| message.id.is_some()),
            attributes: packet.attributes,
            discovery,
            handoff,
            unmapped_fields_count,
        }
    }

    /// The K1-A object.
    pub fn handoff(&self) -> &Handoff {
        &self.handoff
    }

    /// The G4-A object.
    pub fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    pub(super) fn write_canonical(&self, members: &mut Members<'_>) {
        members.text("adapter_id", self.adapter_id);
        members.text("adapter_version", self.adapter_version);
        write_part("agent", self.agent.as_ref(), members);
        write_part("artifact", self.artifact.as_ref(), members);
        if let Some(attributes) = &self.attributes {
            members.with("attributes", |text| canonical::write_value(text, attributes.value()));
        }
        members.object("discovery", |members| self.discovery.write_canonical(members));
        members.object("handoff", |members| self.handoff.write_canonical(members));
        write_part("message", self.message.as_ref(), members);
        members.text("protocol", self.protocol);
        members.text("protocol_name", self.protocol_name);
        members.text("protocol_version", &self.protocol_version);
        write_part("task", self.task.as_ref(), members);
        members.count("unmapped_fields_count", self.unmapped_fields_count as u64);
        members.text_if("upstream_event_type", self.upstream_event_type.as_deref());
    }
}

fn write_part<P: Part>(key: &'static str, part: Option<&P>, members: &mut Members<'_>) {
    if let Some(part) = part {
        members.object(key, |members| part.write_canonical(members));
    }
}
