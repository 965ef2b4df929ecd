//! Seals a delegated TaskSpec: what a principal does before an orchestrator may act in its name.
//!
//! Used by `handoffd sign` and by policy tests. It only writes what a principal or sender states; whether
//! that holds is for the gates to say.

use serde_json::{Map, Value as Json, json};

use crate::proof::{Algorithm, Digest, Key, Seed, canonical_json};
use crate::timestamp::Timestamp;

/// How to seal.
#[derive(Debug)]
pub struct Seal<'s> {
    pub signer: Signer<'s>,
    /// From when and until when the envelope shall hold; as it stands if not given.
    pub ttl: Option<(Timestamp, Timestamp)>,
    /// Tie the envelope to this handoff, its intent and its mention.
    pub bind: bool,
}

/// Whose hand signs.
#[derive(Debug)]
pub enum Signer<'s> {
    /// A secret that principal and gateway share.
    Shared(&'s Key),
    /// The principal's own private key, and the id under which the gateway knows its public half.
    Private { key_id: &'s str, seed: &'s Seed },
}

impl Signer<'_> {
    fn key_id(&self) -> &str {
        match self {
            Self::Shared(key) => key.id(),
            Self::Private { key_id, .. } => key_id,
        }
    }

    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Shared(_) => Algorithm::HmacSha256,
            Self::Private { .. } => Algorithm::Ed25519,
        }
    }

    fn sign(&self, message: &[u8]) -> Option<String> {
        match self {
            Self::Shared(key) => key.sign(message),
            Self::Private { seed, .. } => Some(seed.sign(message)),
        }
    }
}

/// Writes ttl, binding and proof into `authorship.envelope`, and what follows from them into
/// `audit.delegation`.
pub fn seal(spec: &mut Json, seal: &Seal<'_>) -> Result<(), String> {
    let binding = seal.bind.then(|| binding(spec));
    let envelope = spec
        .pointer_mut("/authorship/envelope")
        .and_then(Json::as_object_mut)
        .ok_or("there is no authorship.envelope to sign; only a delegated TaskSpec is signed")?;
    if let Some((issued_at, expires_at)) = seal.ttl {
        put(envelope, "ttl", json!({"issuedAt": issued_at, "expiresAt": expires_at}));
    }
    if let Some(binding) = binding {
        put(envelope, "binding", binding);
    }
    // Removed and put back last, so that a signed envelope reads as people expect it to.
    envelope.shift_remove("proof");
    let signed = canonical_json(&Json::Object(envelope.clone()));
    let hash = Digest::of(&signed).to_string();
    let signature = seal.signer.sign(&signed).ok_or("only the public half of this key is known here")?;
    let proof = json!({
        "algorithm": seal.signer.algorithm().wire_name(),
        "signature": signature,
        "hash": hash,
        "keyId": seal.signer.key_id(),
    });
    put(envelope, "proof", proof);
    state_for_audit(spec, &hash);
    Ok(())
}

/// What ties an envelope to one handoff: its id, its intent and, for a mention, message and channel.
fn binding(spec: &Json) -> Json {
    let mut binding = Map::new();
    if let Some(handoff_id) = spec.get("handoffId") {
        put(&mut binding, "handoffId", handoff_id.clone());
    }
    if let Some(intent) = spec.get("intent") {
        put(&mut binding, "intentHash", Digest::of(&canonical_json(intent)).to_string().into());
    }
    for member in ["messageId", "channel"] {
        if let Some(value) = spec.pointer("/authorship/mentionDelegation").and_then(|block| block.get(member))
        {
            put(&mut binding, member, value.clone());
        }
    }
    binding.into()
}

/// The audit block states what authorship says; a sender that already wrote one keeps its other words.
fn state_for_audit(spec: &mut Json, hash: &str) {
    let stated = [
        ("policyRef", "/authorship/delegationPolicy/policyRef"),
        ("riskClassification", "/authorship/risk/classification"),
        ("authorizationRef", "/authorship/risk/authorizationRef"),
    ]
    .map(|(member, pointer)| (member, spec.pointer(pointer).cloned()));
    let Some(audit) = spec.get_mut("audit").and_then(Json::as_object_mut) else { return };
    let delegation = audit.entry("delegation").or_insert_with(|| Map::new().into());
    let Some(delegation) = delegation.as_object_mut() else { return };
    for (member, value) in stated {
        if let Some(value) = value
            && !delegation.contains_key(member)
        {
            put(delegation, member, value);
        }
    }
    put(delegation, "envelopeHash", hash.into());
}

fn put(object: &mut Map<String, Json>, member: &str, value: Json) {
    object.insert(member.to_owned(), value);
}
