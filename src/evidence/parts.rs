//! The four typed objects of a packet: agent, task, artifact, message.
//!
//! Owns which members each has. A part is read, completed and emitted as the same value: what is here was
//! sent as that JSON type or put there by lenient mode. Deliberately absent: every other member, which is
//! dropped without being counted, since only top-level keys count as unmapped.

use serde::Serialize;

use super::canonical::Members;

/// Where the value of a known member goes.
pub(super) enum Slot<'p> {
    Text(&'p mut Option<String>),
    Texts(&'p mut Option<Vec<String>>),
}

/// An object of which the adapter knows some members.
pub(super) trait Part: Default {
    /// The place for this member, if the part has it.
    fn slot(&mut self, member: &str) -> Option<Slot<'_>>;

    fn write_canonical(&self, members: &mut Members<'_>);
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Agent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// The strings among those sent, sorted by bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Task {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Artifact {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Message {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
}

impl Part for Agent {
    fn slot(&mut self, member: &str) -> Option<Slot<'_>> {
        match member {
            "id" => Some(Slot::Text(&mut self.id)),
            "name" => Some(Slot::Text(&mut self.name)),
            "role" => Some(Slot::Text(&mut self.role)),
            "capabilities" => Some(Slot::Texts(&mut self.capabilities)),
            _ => None,
        }
    }

    fn write_canonical(&self, members: &mut Members<'_>) {
        if let Some(capabilities) = &self.capabilities {
            members.texts("capabilities", capabilities);
        }
        members.text_if("id", self.id.as_deref());
        members.text_if("name", self.name.as_deref());
        members.text_if("role", self.role.as_deref());
    }
}

impl Part for Task {
    fn slot(&mut self, member: &str) -> Option<Slot<'_>> {
        match member {
            "id" => Some(Slot::Text(&mut self.id)),
            "status" => Some(Slot::Text(&mut self.status)),
            "kind" => Some(Slot::Text(&mut self.kind)),
            _ => None,
        }
    }

    fn write_canonical(&self, members: &mut Members<'_>) {
        members.text_if("id", self.id.as_deref());
        members.text_if("kind", self.kind.as_deref());
        members.text_if("status", self.status.as_deref());
    }
}

impl Part for Artifact {
    fn slot(&mut self, member: &str) -> Option<Slot<'_>> {
        match member {
            "id" => Some(Slot::Text(&mut self.id)),
            "name" => Some(Slot::Text(&mut self.name)),
            "media_type" => Some(Slot::Text(&mut self.media_type)),
            _ => None,
        }
    }

    fn write_canonical(&self, members: &mut Members<'_>) {
        members.text_if("id", self.id.as_deref());
        members.text_if("media_type", self.media_type.as_deref());
        members.text_if("name", self.name.as_deref());
    }
}

impl Part for Message {
    fn slot(&mut self, member: &str) -> Option<Slot<'_>> {
        match member {
            "id" => Some(Slot::Text(&mut self.id)),
            "role" => Some(Slot::Text(&mut self.role)),
            _ => None,
        }
    }

    fn write_canonical(&self, members: &mut Members<'_>) {
        members.text_if("id", self.id.as_deref());
        members.text_if("role", self.role.as_deref());
    }
}
