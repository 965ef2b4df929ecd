//! What identifies a TaskSpec, an intent and a piece of content.

use crate::json::{Document, Value};
use crate::proof::{Digest, canonical, canonical_where};

/// The digest of a TaskSpec as it was submitted.
pub fn task_spec_digest(document: &Document<'_>) -> Digest {
    Digest::of(&canonical(document.root()))
}

/// The digest by which two submissions are the same: all but what the gateway writes itself into
/// `audit.delegation`.
pub fn content_digest(document: &Document<'_>) -> Digest {
    let root = document.root();
    let delegation = root.get("audit").and_then(|audit| audit.get("delegation"));
    Digest::of(&canonical_where(root, |object, name| Some(object) != delegation || !is_the_gateways(name)))
}

/// A TaskSpec in its canonical form, with the digests that it goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The canonical text, whose digest is `task_spec_digest`.
    pub text: String,
    pub task_spec_digest: Digest,
    pub content_digest: Digest,
    /// Nothing where there is no intent.
    pub intent_hash: Option<Digest>,
}

impl Sealed {
    pub fn of(document: &Document<'_>) -> Self {
        // Canonical text is UTF-8 by construction.
        let text = String::from_utf8(canonical(document.root())).unwrap_or_default();
        let task_spec_digest = Digest::of(text.as_bytes());
        let delegation = document.root().get("audit").and_then(|audit| audit.get("delegation"));
        let written = delegation.is_some_and(|block| block.members().any(|(name, _)| is_the_gateways(name)));
        // One and the same where the sender left the gateway's members alone.
        let content_digest = if written { content_digest(document) } else { task_spec_digest };
        let intent_hash = document.root().get("intent").filter(|intent| intent.is_object()).map(intent_hash);
        Self { text, task_spec_digest, content_digest, intent_hash }
    }
}

/// Members of `audit.delegation` that are the gateway's to write.
fn is_the_gateways(name: &str) -> bool {
    matches!(name, "decision" | "validatedAt" | "recordedBy")
}

/// The hash of an intent that an envelope's binding or a grant can be tied to.
pub fn intent_hash(intent: Value<'_>) -> Digest {
    Digest::of(&canonical(intent))
}
