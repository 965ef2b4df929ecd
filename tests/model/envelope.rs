//! D2: the envelope that a principal signed, its proof, and what the sender states of it for the audit log.

use super::*;

/// D2, but for the proof.
pub(super) fn envelope(spec: &Json, file: Option<&Json>, now: Timestamp, codes: &mut BTreeSet<&'static str>) {
    let text = |path: &str| field(spec, path).text();
    let scope = |member: &str| field(spec, &format!("authorship.envelope.scope.{member}")).texts();
    let lists = [("agents", "allowAgents"), ("channels", "allowChannels"), ("tasks", "allowTasks")];
    for (member, list) in lists {
        let own = field(spec, &format!("authorship.delegationPolicy.{list}")).texts();
        if let (Some(scope), Some(own)) = (scope(member), own)
            && scope.iter().any(|name| !own.contains(name))
        {
            codes.insert("POLICY_SCOPE_EXCEEDED");
        }
    }
    let acts = [
        (text("target.agentId"), "agents"),
        (text("routing.fallbackAgentId"), "agents"),
        (mention(spec, "channel"), "channels"),
        (text("intent.operation"), "tasks"),
    ];
    let has_envelope = matches!(field(spec, "authorship.envelope"), Field::Is(_));
    for (name, member) in acts {
        if let (true, Some(name), Some(scope)) = (has_envelope, name, scope(member))
            && !scope.contains(&name)
        {
            codes.insert("POLICY_SCOPE_EXCEEDED");
        }
    }
    for (theirs, own) in [("agentId", "source.agentId"), ("sessionId", "source.sessionId")] {
        if let (Some(theirs), Some(own)) =
            (text(&format!("authorship.envelope.delegateAgent.{theirs}")), text(own))
            && theirs != own
        {
            codes.insert("POLICY_DELEGATE_MISMATCH");
        }
    }
    let issued = field(spec, "authorship.envelope.ttl.issuedAt").instant();
    let expires = field(spec, "authorship.envelope.ttl.expiresAt").instant();
    let backwards = issued.zip(expires).is_some_and(|(issued, expires)| expires <= issued);
    // A clock may be a little ahead; an envelope that ends before it begins has no such excuse.
    if issued.is_some_and(|issued| issued > now.plus_seconds(120) || (backwards && issued > now)) {
        codes.insert("POLICY_ENVELOPE_NOT_YET_VALID");
    }
    if expires.is_some_and(|expires| expires <= now) {
        codes.insert("POLICY_ENVELOPE_EXPIRED");
    }
    let most = file.and_then(|file| file.get("maxTtlSeconds")).and_then(Json::as_i64);
    if let (Some(issued), Some(expires), Some(most)) = (issued, expires, most)
        && expires > issued.plus_seconds(most)
    {
        codes.insert("POLICY_ENVELOPE_TTL_TOO_LONG");
    }
    binding(spec, file, codes);
}

pub(super) fn binding(spec: &Json, file: Option<&Json>, codes: &mut BTreeSet<&'static str>) {
    if !matches!(field(spec, "authorship.envelope"), Field::Is(_)) {
        return;
    }
    let bound = |member: &str| field(spec, &format!("authorship.envelope.binding.{member}"));
    let intent = field(spec, "intent");
    let own = [
        ("handoffId", field(spec, "handoffId").text().map(str::to_owned), false),
        (
            "intentHash",
            match intent {
                Field::Is(intent) => Some(sha256(intent)),
                _ => None,
            },
            false,
        ),
        ("messageId", mention(spec, "messageId").map(str::to_owned), is_gated(spec) == Some(false)),
        ("channel", mention(spec, "channel").map(str::to_owned), is_gated(spec) == Some(false)),
    ];
    for (member, own, surely_none) in own {
        if let Some(bound) = bound(member).text() {
            let differs = own.as_deref().is_some_and(|own| own != bound);
            let gone = matches!(member, "messageId" | "channel")
                && is_gated(spec) == Some(true)
                && matches!(field(spec, "authorship.mentionDelegation"), Field::Is(_))
                && field(spec, &format!("authorship.mentionDelegation.{member}")).is_absent();
            if differs || surely_none || gone {
                codes.insert("POLICY_BINDING_MISMATCH");
            }
        }
    }
    let class = field(spec, "authorship.risk.classification").text();
    let demands =
        |file: &Json| class.is_some_and(|class| texts(file, "requireBinding").contains(&class.to_owned()));
    if file.is_some_and(demands) && field(spec, "authorship.envelope.binding") != Field::Unreadable {
        let mut members = vec!["handoffId", "intentHash"];
        if is_gated(spec) == Some(true) {
            members.extend(["messageId", "channel"]);
        }
        if members.into_iter().any(|member| bound(member).is_absent()) {
            codes.insert("POLICY_BINDING_MISMATCH");
        }
    }
}

/// D2, the proof: until when the key that proves it counts, if it is proven at all.
pub(super) fn proof(
    spec: &Json,
    rules: &Rules,
    now: Timestamp,
    codes: &mut BTreeSet<&'static str>,
) -> Option<Option<Timestamp>> {
    let text = |member: &str| field(spec, &format!("authorship.envelope.{member}")).text();
    let Field::Is(envelope) = field(spec, "authorship.envelope") else { return None };
    if !matches!(field(spec, "authorship.envelope.proof"), Field::Is(_)) {
        return None;
    }
    let signed = signed_part(envelope);
    let hash = text("proof.hash");
    let right = format!("sha256:{}", hex(&Sha256::digest(&signed)));
    if hash.is_some_and(|hash| hash != right) {
        codes.insert("POLICY_ENVELOPE_HASH_MISMATCH");
    }
    let algorithm = text("proof.algorithm")?;
    let digits = match algorithm {
        "hmac-sha256-v1" => 64,
        "ed25519-v1" => 128,
        _ => {
            codes.insert("POLICY_PROOF_ALGORITHM");
            return None;
        }
    };
    let signature = text("proof.signature");
    let formed = signature.is_some_and(|signature| {
        signature.len() == digits && signature.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    });
    if signature.is_some() && !formed {
        codes.insert("A2A_SIGNATURE_INVALID");
    }
    let (principal, key_id) = (text("principal.id")?, text("proof.keyId"));
    let usable = |key: &&KeyFacts| {
        key.owner == principal
            && key.purpose == "envelope"
            && key.algorithm == algorithm
            && key_id.is_none_or(|id| key.id == id)
            && key.counts_at(now)
    };
    if !rules.keys.iter().any(|key| usable(&key)) {
        codes.insert("A2A_KEY_UNKNOWN");
        return None;
    }
    if !formed {
        return None;
    }
    let signs = |key: &&KeyFacts| Some(key.sign(&signed).as_str()) == signature;
    let key = rules.keys.iter().filter(usable).find(signs);
    if key.is_none() {
        codes.insert("A2A_SIGNATURE_INVALID");
    }
    key.map(|key| key.until)
}

/// D2, what the sender states for the audit log.
pub(super) fn audit(spec: &Json, codes: &mut BTreeSet<&'static str>) {
    let stated = |member: &str| field(spec, &format!("audit.delegation.{member}"));
    if !matches!(field(spec, "audit.delegation"), Field::Is(_)) {
        return;
    }
    let pairs = [
        ("policyRef", "authorship.delegationPolicy.policyRef"),
        ("envelopeHash", "authorship.envelope.proof.hash"),
        ("riskClassification", "authorship.risk.classification"),
    ];
    for (member, path) in pairs {
        if let (Some(stated), Some(own)) = (stated(member).text(), field(spec, path).text())
            && stated != own
        {
            codes.insert("POLICY_AUDIT_MISMATCH");
        }
    }
    if !matches!(field(spec, "authorship.risk"), Field::Is(_)) {
        return;
    }
    let own = field(spec, "authorship.risk.authorizationRef");
    let stated = stated("authorizationRef");
    if own != Field::Unreadable && stated != Field::Unreadable && stated.text() != own.text() {
        codes.insert("POLICY_AUDIT_MISMATCH");
    }
}
