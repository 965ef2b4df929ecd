//! Profile `plain`: the TaskSpec itself, with `audit.delegation` filled in.
//!
//! It carries no `auth`: a TaskSpec has no such member, and its receiver refuses unknown ones. The receipt
//! beside it is what proves where it comes from.

use serde_json::Value as Json;

use super::{ALLOWED, AuditDelegation};
use crate::contract::TaskSpec;
use crate::proof::{canonical, canonical_json};
use crate::timestamp::Timestamp;

/// The same in canonical form.
pub(super) fn filled(spec: &TaskSpec<'_>, decided_at: Timestamp) -> Option<String> {
    let text = match spec.is_delegated() {
        // Nothing is written into it.
        Some(false) => canonical(spec.block?),
        _ => canonical_json(&fill(spec, decided_at)?),
    };
    String::from_utf8(text).ok()
}

/// The TaskSpec as it was sent, but for what the gateway writes; nothing if it could not be read.
pub(super) fn fill(spec: &TaskSpec<'_>, decided_at: Timestamp) -> Option<Json> {
    let mut payload = spec.block?.to_json();
    if let Some(delegation) = AuditDelegation::of(spec, ALLOWED, decided_at) {
        let mut delegation = serde_json::to_value(delegation).ok()?;
        // Receivers take at most three fraction digits, whatever the profile.
        *delegation.get_mut("validatedAt")? = decided_at.to_milliseconds().into();
        *payload.get_mut("audit")?.get_mut("delegation")? = delegation;
    }
    Some(payload)
}
