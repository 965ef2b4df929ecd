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

/// Both of the above; one and the same where the sender left the gateway's members alone.
pub fn both_digests(document: &Document<'_>) -> (Digest, Digest) {
    let whole = task_spec_digest(document);
    let delegation = document.root().get("audit").and_then(|audit| audit.get("delegation"));
    let written = delegation.is_some_and(|block| block.members().any(|(name, _)| is_the_gateways(name)));
    (whole, if written { content_digest(document) } else { whole })
}

/// Members of `audit.delegation` that are the gateway's to write.
fn is_the_gateways(name: &str) -> bool {
    matches!(name, "decision" | "validatedAt" | "recordedBy")
}

/// The hash of an intent that an envelope's binding or a grant can be tied to.
pub fn intent_hash(intent: Value<'_>) -> Digest {
    Digest::of(&canonical(intent))
}
