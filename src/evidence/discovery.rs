//! G4-A: the `discovery` object.
//!
//! Owns two allowlisted paths and the precedence of sources. `attributes.assay_g4.agent_card.visible` and
//! `attributes.assay_g4.extended_card_access.visible`, each the JSON boolean `true` with objects all the way
//! down to it, set one flag each and independently. Present on every event, in both modes, whatever its type.
//!
//! Of the four source kinds, `typed_payload` and `unmapped` are reserved and not produced today: no typed
//! path and no unmapped key is frozen yet, so nothing can match them. They are in the enum and in the
//! precedence so that a later freeze cannot change the order in which sources win.
//!
//! Deliberately absent: every other attribute key, `agent.capabilities`, the count of unmapped fields, and
//! a path that sets `signature_material_visible`, which is false in every packet until a later freeze.

use std::sync::LazyLock;

use serde::Serialize;
use serde_json::Value;

use super::attributes::Attributes;
use super::canonical::{self, Members, Sha256Digest};

/// What of an agent card was visible in the packet.
///
/// The fields are private: the rules in this file are the only way to set one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Discovery {
    agent_card_visible: bool,
    agent_card_source_kind: AgentCardSourceKind,
    extended_card_access_visible: bool,
    signature_material_visible: bool,
}

/// Which class of source made the agent card visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCardSourceKind {
    /// A typed upstream path. Reserved: none is frozen, so it is not produced today.
    TypedPayload,
    /// The allowlisted path under `attributes`.
    Attributes,
    /// A named top-level key that the adapter does not map. Reserved: none is frozen, so it is not produced
    /// today.
    Unmapped,
    /// None: nothing was visible.
    Unknown,
}

impl AgentCardSourceKind {
    /// The kind as it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TypedPayload => "typed_payload",
            Self::Attributes => "attributes",
            Self::Unmapped => "unmapped",
            Self::Unknown => "unknown",
        }
    }
}

/// In which classes of source the agent card was seen.
#[derive(Debug, Clone, Copy)]
struct Sources {
    typed_payload: bool,
    attributes: bool,
    unmapped: bool,
}

impl Sources {
    /// The strongest class wins.
    fn strongest(self) -> AgentCardSourceKind {
        if self.typed_payload {
            AgentCardSourceKind::TypedPayload
        } else if self.attributes {
            AgentCardSourceKind::Attributes
        } else if self.unmapped {
            AgentCardSourceKind::Unmapped
        } else {
            AgentCardSourceKind::Unknown
        }
    }
}

impl Discovery {
    /// Every object there is today.
    const ALL: [Self; 4] = [
        Self::seen(AgentCardSourceKind::Unknown, false),
        Self::seen(AgentCardSourceKind::Attributes, false),
        Self::seen(AgentCardSourceKind::Unknown, true),
        Self::seen(AgentCardSourceKind::Attributes, true),
    ];

    const fn seen(card: AgentCardSourceKind, extended_card_access_visible: bool) -> Self {
        Self {
            agent_card_visible: !matches!(card, AgentCardSourceKind::Unknown),
            agent_card_source_kind: card,
            extended_card_access_visible,
            signature_material_visible: false,
        }
    }

    /// Observes the packet as it was sent.
    pub(super) fn observe(attributes: Option<&Attributes>) -> Self {
        let namespace = attributes.and_then(|attributes| attributes.get("assay_g4"));
        let card = Sources {
            typed_payload: false, // no typed path is frozen
            attributes: says_visible(namespace, "agent_card"),
            unmapped: false, // no unmapped key is frozen
        };
        Self::seen(card.strongest(), says_visible(namespace, "extended_card_access"))
    }

    /// The producer marked an agent card as visible.
    pub fn agent_card_visible(&self) -> bool {
        self.agent_card_visible
    }

    /// Which class of source that was seen in.
    pub fn agent_card_source_kind(&self) -> AgentCardSourceKind {
        self.agent_card_source_kind
    }

    /// The producer marked an extended card surface as visible.
    pub fn extended_card_access_visible(&self) -> bool {
        self.extended_card_access_visible
    }

    /// Always false today.
    pub fn signature_material_visible(&self) -> bool {
        self.signature_material_visible
    }

    /// SHA-256 over the canonical object; looked up, since each of the few is hashed only once.
    pub(super) fn digest(&self) -> Sha256Digest {
        static DIGESTS: LazyLock<[Sha256Digest; 4]> =
            LazyLock::new(|| Discovery::ALL.map(|object| object.hash()));
        let known = Self::ALL.iter().zip(DIGESTS.iter()).find(|(object, _)| *object == self);
        known.map_or_else(|| self.hash(), |(_, digest)| *digest)
    }

    fn hash(&self) -> Sha256Digest {
        canonical::digest(|members| self.write_canonical(members))
    }

    pub(super) fn write_canonical(&self, members: &mut Members<'_>) {
        members.text("agent_card_source_kind", self.agent_card_source_kind.as_str());
        members.flag("agent_card_visible", self.agent_card_visible);
        members.flag("extended_card_access_visible", self.extended_card_access_visible);
        members.flag("signature_material_visible", self.signature_material_visible);
    }
}

/// Is `namespace.<surface>.visible` the boolean `true`?
///
/// `Value::get` with a name looks into objects only, so a wrong shape on the way is the same as nothing.
fn says_visible(namespace: Option<&Value>, surface: &str) -> bool {
    let visible = namespace.and_then(|namespace| namespace.get(surface)?.get("visible"));
    matches!(visible, Some(Value::Bool(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made-up matches: today's rules can only ever produce the second and the last line.
    #[test]
    fn of_several_sources_the_strongest_wins() {
        fn check(typed_payload: bool, attributes: bool, unmapped: bool, kind: &str) {
            let sources = Sources { typed_payload, attributes, unmapped };
            assert_eq!(sources.strongest().as_str(), kind, "{sources:?}");
        }
        check(true, false, false, "typed_payload");
        check(false, true, false, "attributes");
        check(false, false, true, "unmapped");
        check(true, true, false, "typed_payload");
        check(true, false, true, "typed_payload");
        check(true, true, true, "typed_payload");
        check(false, true, true, "attributes");
        check(false, false, false, "unknown");
    }

    #[test]
    fn a_card_is_visible_only_through_objects_down_to_the_boolean_true() {
        fn check(attributes: Value, card: bool, extended: bool) {
            let seen = Discovery::observe(Some(&Attributes::sorted(attributes.clone())));
            assert_eq!(seen.agent_card_visible(), card, "{attributes}");
            assert_eq!(seen.extended_card_access_visible(), extended, "{attributes}");
            let kind = if card { "attributes" } else { "unknown" };
            assert_eq!(seen.agent_card_source_kind().as_str(), kind, "{attributes}");
            assert!(!seen.signature_material_visible());
        }
        let shown = serde_json::json!({"visible": true});
        check(serde_json::json!({"assay_g4": {"agent_card": shown}}), true, false);
        check(serde_json::json!({"assay_g4": {"extended_card_access": shown}}), false, true);
        check(
            serde_json::json!({"assay_g4": {"agent_card": shown, "extended_card_access": shown}}),
            true,
            true,
        );
        check(serde_json::json!({"assay_g4": {"signature_material": shown}}), false, false);
        check(serde_json::json!({"assay_g4": [{"agent_card": shown}]}), false, false);
        check(serde_json::json!([{"assay_g4": {"agent_card": shown}}]), false, false);
        check(serde_json::json!({"assay_g4": {"agent_card": {"visible": 1}}}), false, false);
        check(serde_json::json!({"assay_g4": {"agent_card": {"visible": "true"}}}), false, false);
        check(serde_json::json!({"assay_g4": {"agent_card": {"visible": [true]}}}), false, false);
        check(serde_json::json!({"agent_card": shown}), false, false);
        check(serde_json::json!(null), false, false);
        assert!(!Discovery::observe(None).agent_card_visible());
    }
}
