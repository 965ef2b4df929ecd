//! D2: did the principal really allow this, for this agent, now?

use super::Ground;
use super::codes::Code;
use super::policy::is_listed;
use super::verdict::{Findings, earliest};
use crate::contract::{AuditDelegation, Envelope, Field, Proof, TaskSpec, intent_hash};
use crate::json::{Value, printable};
use crate::limits;
use crate::policy::DelegationPolicy;
use crate::proof::{Algorithm, Digest, KeyFault, Purpose, SignatureFault, canonical_where};
use crate::timestamp::Timestamp;

/// Returns until when the envelope and the key that proves it hold.
pub(super) fn judge(
    spec: &TaskSpec<'_>,
    file: Option<&DelegationPolicy>,
    ground: &Ground<'_>,
    findings: &mut Findings,
) -> Option<Timestamp> {
    let envelope = spec.authorship.delegation.envelope.get();
    let mut holds_until = None;
    if let Some(envelope) = &envelope {
        scope(spec, envelope, findings);
        delegate(spec, envelope, findings);
        ttl(envelope, file, ground.now, findings);
        let key_until = proof(envelope, ground, findings);
        binding(spec, envelope, file, findings);
        holds_until = earliest(envelope.expires_at.get(), key_until);
    }
    audit(spec, envelope.and_then(|envelope| envelope.proof.get()), findings);
    holds_until
}

/// The signed scope must lie within the sender's allowlists, and cover the act.
fn scope(spec: &TaskSpec<'_>, envelope: &Envelope<'_>, findings: &mut Findings) {
    let policy = spec.authorship.delegation.policy.get().unwrap_or_default();
    let mut within = |scope: Field<Value<'_>>, list: Field<Value<'_>>, member: &str| {
        let Some(scope) = scope.get() else { return };
        for (n, name) in scope.items().enumerate() {
            let name = name.as_str().unwrap_or_default();
            if !is_listed(list, name) {
                findings.refuse(
                    Code::ScopeExceeded,
                    format!("/authorship/envelope/scope/{member}/{n}"),
                    format!("the scope has `{}`, which the allowlist does not", printable(name)),
                    "sign a scope that is no wider than the TaskSpec's allowlists",
                );
            }
        }
    };
    within(envelope.scope_agents, policy.allow_agents, "agents");
    within(envelope.scope_channels, policy.allow_channels, "channels");
    within(envelope.scope_tasks, policy.allow_tasks, "tasks");

    let mut covers = |scope: Field<Value<'_>>, name: Option<&str>, member: &str, what: &str| {
        if let Some(name) = name
            && !is_listed(scope, name)
        {
            findings.refuse(
                Code::ScopeExceeded,
                format!("/authorship/envelope/scope/{member}"),
                format!("the scope does not cover {what} `{}`", printable(name)),
                "have the principal sign a scope that covers it",
            );
        }
    };
    let mention = spec.mention();
    covers(envelope.scope_agents, spec.target.agent_id.get().map(|id| id.as_str()), "agents", "the agent");
    let fallback = spec.routing.fallback_agent_id.get().map(|id| id.as_str());
    covers(envelope.scope_agents, fallback, "agents", "the fallback agent");
    let channel = mention.and_then(|mention| mention.channel.get()).map(|channel| channel.as_str());
    covers(envelope.scope_channels, channel, "channels", "the channel");
    covers(envelope.scope_tasks, spec.intent.operation.get().map(|op| op.as_str()), "tasks", "the operation");
}

/// The delegate is the source: the agent, and the session if the principal named one.
fn delegate(spec: &TaskSpec<'_>, envelope: &Envelope<'_>, findings: &mut Findings) {
    const HINT: &str =
        "an envelope is for the agent and session it names; ask the principal for one of your own";
    if let (Some(delegate), Some(source)) = (envelope.delegate_agent_id.get(), spec.source.agent_id.get())
        && delegate != source
    {
        findings.refuse(
            Code::DelegateMismatch,
            "/authorship/envelope/delegateAgent/agentId",
            format!(
                "the principal delegates to `{delegate}`, not to the source `{source}`",
                delegate = printable(delegate.as_str()),
                source = printable(source.as_str())
            ),
            HINT,
        );
    }
    if let (Some(delegate), Some(source)) = (envelope.delegate_session_id.get(), spec.source.session_id.get())
        && delegate != source
    {
        findings.refuse(
            Code::DelegateMismatch,
            "/authorship/envelope/delegateAgent/sessionId",
            "the principal delegates to another session of the source",
            HINT,
        );
    }
}

fn ttl(envelope: &Envelope<'_>, file: Option<&DelegationPolicy>, now: Timestamp, findings: &mut Findings) {
    let (issued_at, expires_at) = (envelope.issued_at.get(), envelope.expires_at.get());
    let ends_first = issued_at.zip(expires_at).is_some_and(|(issued_at, expires_at)| expires_at <= issued_at);
    if let Some(issued_at) = issued_at
        && (issued_at > now.plus_seconds(limits::SKEW_S) || (ends_first && issued_at > now))
    {
        findings.refuse(
            Code::EnvelopeNotYetValid,
            "/authorship/envelope/ttl/issuedAt",
            format!("the envelope holds from {issued_at} on; it is {now}"),
            "send it when it holds, and check the clocks",
        );
    }
    if let Some(expires_at) = expires_at
        && expires_at <= now
    {
        findings.refuse(
            Code::EnvelopeExpired,
            "/authorship/envelope/ttl/expiresAt",
            format!("the envelope ended at {expires_at}; it is {now}"),
            "ask the principal for a new envelope",
        );
    }
    if let (Some(issued_at), Some(expires_at)) = (issued_at, expires_at)
        && let Some(seconds_max) = file.and_then(|file| file.max_ttl_seconds)
        && expires_at.seconds_since(issued_at) > seconds_max
    {
        findings.refuse(
            Code::EnvelopeTtlTooLong,
            "/authorship/envelope/ttl",
            format!(
                "the envelope holds for {} seconds; the policy allows {seconds_max}",
                expires_at.seconds_since(issued_at)
            ),
            "have the principal sign a shorter one",
        );
    }
}

const SIGNATURE: &str = "/authorship/envelope/proof/signature";

/// Hash and signature over the canonical envelope. Returns until when the key counts.
fn proof(envelope: &Envelope<'_>, ground: &Ground<'_>, findings: &mut Findings) -> Option<Timestamp> {
    let proof = envelope.proof.get()?;
    let block = envelope.block?;
    let signed = canonical_where(block, |object, name| object != block || name != "proof");

    let hash_fits = proof.hash.get().map(|hash| Digest::of(&signed).is_written(hash.as_str()));
    if let (Some(hash), Some(false)) = (proof.hash.get(), hash_fits) {
        findings.refuse(
            Code::EnvelopeHashMismatch,
            "/authorship/envelope/proof/hash",
            hash_message(hash.as_str()),
            "hash is sha256: and the 64 lower-case hex digits of SHA-256 over the canonical (RFC 8785) envelope without proof",
        );
    }

    let name = proof.algorithm.get()?;
    let Some(algorithm) = Algorithm::from_wire_name(name.as_str()) else {
        findings.refuse(
            Code::ProofAlgorithm,
            "/authorship/envelope/proof/algorithm",
            format!("`{}` is not an algorithm that is accepted", printable(name.as_str())),
            "use hmac-sha256-v1 or ed25519-v1",
        );
        return None;
    };
    // The form is wrong whoever signed, so it is said even where no key is known.
    let signature = proof.signature.get().map(|signature| signature.as_str());
    let form = signature.map(|signature| algorithm.check_form(signature));
    if let Some(Err(fault)) = form {
        refuse_signature(fault, findings);
    }
    let owner = envelope.principal_id.get()?;
    let key_id = proof.key_id.get().map(|id| id.as_str());
    let keys = ground.keyring.usable(owner.as_str(), Purpose::Envelope, algorithm, key_id, ground.now);
    let mut keys = match keys {
        Ok(keys) => keys,
        Err(fault) => {
            refuse_key(fault, owner.as_str(), algorithm, key_id, findings);
            return None;
        }
    };
    let (Some(signature), Some(Ok(()))) = (signature, form) else { return None };
    match keys.find(|key| key.verify(&signed, signature).is_ok()) {
        Some(key) => {
            if hash_fits == Some(true) {
                findings.prove();
            }
            key.not_after()
        }
        None => {
            refuse_signature(SignatureFault::Wrong, findings);
            None
        }
    }
}

fn hash_message(hash: &str) -> String {
    match hash.strip_prefix("sha256:") {
        None => "the hash does not begin with `sha256:`".to_owned(),
        Some(digits) if digits.len() != 64 => {
            format!("the hash has {} hex digits; a SHA-256 has 64", digits.chars().count())
        }
        Some(_) => "the hash is not that of the envelope".to_owned(),
    }
}

fn refuse_signature(fault: SignatureFault, findings: &mut Findings) {
    let (message, hint) = match fault {
        SignatureFault::Length { digits, found } => (
            format!("the signature has {found} hex digits; this algorithm gives {digits}"),
            "send the whole signature, not a truncated one",
        ),
        SignatureFault::NotHex => {
            ("the signature is not lower-case hex".to_owned(), "write it in digits and the letters a to f")
        }
        SignatureFault::Wrong => (
            "the signature is not the principal's over this envelope".to_owned(),
            "sign the canonical (RFC 8785) envelope without proof, and change nothing in it afterwards",
        ),
    };
    findings.refuse(Code::SignatureInvalid, SIGNATURE, message, hint);
}

fn refuse_key(
    fault: KeyFault,
    owner: &str,
    algorithm: Algorithm,
    key_id: Option<&str>,
    findings: &mut Findings,
) {
    let path = if key_id.is_some() {
        "/authorship/envelope/proof/keyId"
    } else {
        "/authorship/envelope/principal/id"
    };
    let named = key_id.map(|id| format!(" `{}`", printable(id))).unwrap_or_default();
    let which = format!("{} key{named} of `{}` for envelopes", algorithm.name(), printable(owner));
    let message = match fault {
        KeyFault::Unknown => format!("there is no {which}"),
        KeyFault::NotYetValid => format!("the {which} does not count yet"),
        KeyFault::Expired => format!("the {which} no longer counts"),
    };
    let hint =
        format!("an administrator adds one with: handoffd key add --owner {} --id KEYID", printable(owner));
    findings.refuse(Code::KeyUnknown, path, message, hint);
}

/// What the signature covers beyond the envelope must be this handoff; a policy may demand that it does.
fn binding(
    spec: &TaskSpec<'_>,
    envelope: &Envelope<'_>,
    file: Option<&DelegationPolicy>,
    findings: &mut Findings,
) {
    const PATH: &str = "/authorship/envelope/binding";
    let binding = match envelope.binding {
        Field::Is(binding) => binding,
        Field::Absent => Default::default(),
        Field::Unreadable => return,
    };
    let mut mismatch = |member: &str, what: &str| {
        findings.refuse(
            Code::BindingMismatch,
            format!("{PATH}/{member}"),
            format!("the envelope is bound to another {what}"),
            "an envelope that is bound is for one handoff only; ask the principal for one for this handoff",
        );
    };
    if let (Some(bound), Some(own)) = (binding.handoff_id.get(), spec.handoff_id.get())
        && bound != own
    {
        mismatch("handoffId", "handoff");
    }
    if let (Some(bound), Some(intent)) = (binding.intent_hash.get(), spec.intent.block)
        && !intent_hash(intent).is_written(bound.as_str())
    {
        mismatch("intentHash", "intent");
    }
    // Where it is not known whether there is a mention, or what it says, the shape has spoken already.
    let mention = match (spec.is_gated(), spec.authorship.mention) {
        (Some(true), Field::Is(mention)) => Some((mention.message_id, mention.channel)),
        (Some(false), _) => Some((Field::Absent, Field::Absent)),
        _ => None,
    };
    if let Some((message_id, channel)) = mention {
        if let Some(bound) = binding.message_id.get()
            && (message_id.is_absent() || message_id.get().is_some_and(|own| own != bound))
        {
            mismatch("messageId", "message");
        }
        if let Some(bound) = binding.channel.get()
            && (channel.is_absent() || channel.get().is_some_and(|own| own != bound))
        {
            mismatch("channel", "channel");
        }
    }

    let class = spec.authorship.delegation.risk.get().and_then(|risk| risk.classification.get());
    if let (Some(file), Some(class)) = (file, class)
        && file.requires_binding(class)
    {
        let gated = spec.is_gated() == Some(true);
        let demanded = [
            ("handoffId", binding.handoff_id.is_absent()),
            ("intentHash", binding.intent_hash.is_absent()),
            ("messageId", gated && binding.message_id.is_absent()),
            ("channel", gated && binding.channel.is_absent()),
        ];
        for (member, absent) in demanded {
            if absent {
                findings.refuse(
                    Code::BindingMismatch,
                    format!("{PATH}/{member}"),
                    format!("the policy demands that a {} envelope is bound to its {member}", class.as_str()),
                    "sign with: handoffd sign --bind",
                );
            }
        }
    }
}

/// What the sender states for the audit log must be what it sends.
fn audit(spec: &TaskSpec<'_>, proof: Option<Proof<'_>>, findings: &mut Findings) {
    let Some(stated) = spec.audit.delegation.get() else { return };
    let AuditDelegation { policy_ref, envelope_hash, risk_classification, authorization_ref } = stated;
    let delegation = &spec.authorship.delegation;
    let mut mismatch = |member: &str, source: &str| {
        findings.refuse(
            Code::AuditMismatch,
            format!("/audit/delegation/{member}"),
            format!("`{member}` is not what {source} says"),
            "state in audit.delegation what authorship says",
        );
    };
    if let (Some(stated), Some(policy)) = (policy_ref.get(), delegation.policy.get())
        && policy.policy_ref.get().is_some_and(|actual| actual != stated)
    {
        mismatch("policyRef", "authorship.delegationPolicy");
    }
    if let (Some(stated), Some(proof)) = (envelope_hash.get(), proof)
        && proof.hash.get().is_some_and(|actual| actual != stated)
    {
        mismatch("envelopeHash", "authorship.envelope.proof");
    }
    let Some(risk) = delegation.risk.get() else { return };
    if let Some(stated) = risk_classification.get()
        && risk.classification.get().is_some_and(|actual| actual != stated)
    {
        mismatch("riskClassification", "authorship.risk");
    }
    let actual = match risk.authorization_ref {
        Field::Is(actual) => Some(actual.as_str()),
        Field::Absent => None,
        Field::Unreadable => return,
    };
    if authorization_ref.or_default_to(None).is_some_and(|stated| stated != actual) {
        mismatch("authorizationRef", "authorship.risk");
    }
}
