//! Profile `execution-plane.v1`: the envelope that a TaskSpec becomes for its receiver.
//!
//! The receiver is stricter than a TaskSpec about ids and times. What it would refuse is refused at
//! admission, where somebody can still mend it.

use serde_json::Value as Json;

use super::Settled;
use super::signing::{SCHEME, is_receiver_id, nonce};
use crate::contract::{Made, MentionMode, Mode, TaskSpec};
use crate::proof::Key;
use crate::timestamp::Timestamp;

/// The envelope as the input schema is to judge it, before there is a decision: with an `auth` block of the
/// same form as the one that will be there, if there will be one.
pub(crate) fn proposed<'d>(spec: &TaskSpec<'d>, now: Timestamp, key: Option<&'d Key>) -> Option<Made<'d>> {
    let auth =
        key.map(|key| Auth { key_id: key.id(), nonce: "0".repeat(32), signature: Some("0".repeat(64)) });
    map(spec, now, auth)
}

/// The envelope without what proves it.
pub(super) fn unsigned(spec: &TaskSpec<'_>, at: Timestamp) -> Option<Json> {
    Some(map(spec, at, None)?.instance().to_json())
}

/// The envelope as it is sent, in canonical form.
pub(super) fn signed(spec: &TaskSpec<'_>, settled: &Settled, key: Option<&Key>) -> Option<String> {
    let Settled { decided_at, running_hash } = settled;
    let Some(key) = key else {
        return Some(map(spec, *decided_at, None)?.canonical());
    };
    let auth = |signature| Auth { key_id: key.id(), nonce: nonce(running_hash.as_bytes()), signature };
    let unsigned = map(spec, *decided_at, Some(auth(None)))?.canonical();
    let signature = key.sign(unsigned.as_bytes())?;
    Some(map(spec, *decided_at, Some(auth(Some(signature))))?.canonical())
}

struct Auth<'a> {
    key_id: &'a str,
    nonce: String,
    /// Not there while it is being made.
    signature: Option<String>,
}

/// The one mapping; nothing if a part of the TaskSpec could not be read.
fn map<'d>(spec: &TaskSpec<'d>, at: Timestamp, auth: Option<Auth<'d>>) -> Option<Made<'d>> {
    let live = spec.mode.get()? == Mode::Live;
    let side_effects = spec.safety.allow_external_side_effects.or_default_to(false)?;
    let time = || Made::Text(at.to_milliseconds().into());
    let mut members = vec![
        ("schemaVersion", "v1".into()),
        ("plane", "execution".into()),
        ("operation", spec.intent.operation.get()?.as_str().into()),
        ("requestId", spec.audit.request_id.get()?.as_str().into()),
        ("correlationId", spec.correlation_id.get()?.as_str().into()),
        ("idempotencyKey", spec.audit.idempotency_key.get()?.as_str().into()),
        ("timestamp", time()),
        ("dryRun", Made::Bool(!(live && side_effects))),
        ("meta", meta(spec)?),
        ("intent", Made::Read(spec.intent.input.get()?)),
    ];
    if let Some(Auth { key_id, nonce, signature }) = auth {
        let mut block = vec![
            ("scheme", SCHEME.into()),
            ("keyId", key_id.into()),
            ("nonce", Made::Text(nonce.into())),
            ("timestamp", time()),
        ];
        block.extend(signature.map(|signature| ("signature", Made::Text(signature.into()))));
        members.push(("auth", Made::Object(block)));
    }
    Some(Made::Object(members))
}

/// Mention metadata for a gated mention, so that the receiver can check it again; otherwise nothing.
fn meta<'d>(spec: &TaskSpec<'d>) -> Option<Made<'d>> {
    if !(spec.is_gated()? && spec.is_delegated()?) {
        return Some(Made::Object(Vec::new()));
    }
    let mention = spec.authorship.mention.get()?;
    let risk = spec.authorship.delegation.risk.get()?;
    let authorization_ref = risk.authorization_ref.get().map_or(Made::Null, |grant| grant.as_str().into());
    let proxy = Made::Object(vec![
        ("mode", spec.authorship.mode.get()?.as_str().into()),
        ("policyValidated", Made::Bool(true)),
        ("envelopeValidated", Made::Bool(true)),
        ("riskGatePassed", Made::Bool(true)),
        ("riskClassification", risk.classification.get()?.as_str().into()),
        ("authorizationRef", authorization_ref),
    ]);
    let block = Made::Object(vec![
        ("channel", mention.channel.get()?.as_str().into()),
        ("messageId", mention.message_id.get()?.as_str().into()),
        ("originBotId", mention.origin_bot_id.get()?.as_str().into()),
        ("targetBotId", mention.target_bot_id.get()?.as_str().into()),
        ("observedAt", mention.observed_at_text?.into()),
        ("ttlSeconds", Made::Integer(mention.ttl_seconds.get()?)),
        ("dedupeBy", "messageId".into()),
        ("delegatedHumanProxy", proxy),
    ]);
    Some(Made::Object(vec![
        ("mentionDelegationMode", MentionMode::Gated.as_str().into()),
        ("mentionDelegation", block),
    ]))
}

/// Where in the TaskSpec a member of the envelope comes from.
pub(crate) fn pointer_in_task_spec(pointer: &str) -> String {
    const FROM: [(&str, &str); 7] = [
        ("/intent", "/intent/input"),
        ("/operation", "/intent/operation"),
        ("/requestId", "/audit/requestId"),
        ("/idempotencyKey", "/audit/idempotencyKey"),
        ("/correlationId", "/correlationId"),
        ("/meta/mentionDelegation", "/authorship/mentionDelegation"),
        // The route's key is what is put there.
        ("/auth", "/routing/routeKey"),
    ];
    let source = FROM.iter().find_map(|(envelope, spec)| {
        let rest = pointer.strip_prefix(envelope)?;
        let is_it = rest.is_empty() || rest.starts_with('/');
        // A route key has nothing inside it to point at.
        let rest = if *envelope == "/auth" { "" } else { rest };
        is_it.then(|| format!("{spec}{rest}"))
    });
    // What we put there ourselves can only be wrong for the schema that was named.
    source.unwrap_or_else(|| "/intent/inputSchemaRef".to_owned())
}

/// What the receiver demands whatever the input schema says: pointer, message, hint.
pub(crate) fn receiver_findings(spec: &TaskSpec<'_>) -> Vec<(&'static str, String, &'static str)> {
    const ID_HINT: &str = "the receiver takes 6 to 128 letters, digits and . _ : -";
    let mut findings = Vec::new();
    if spec.audit.request_id.get().is_some_and(|id| !is_receiver_id(id.as_str())) {
        findings.push(("/audit/requestId", "the receiver does not take this requestId".to_owned(), ID_HINT));
    }
    if spec.correlation_id.get().is_some_and(|id| !is_receiver_id(id.as_str())) {
        findings.push((
            "/correlationId",
            "the receiver does not take this correlationId".to_owned(),
            ID_HINT,
        ));
    }
    if spec.audit.idempotency_key.get().is_some_and(|key| key.as_str().chars().count() < 8) {
        findings.push((
            "/audit/idempotencyKey",
            "the receiver does not take this idempotencyKey".to_owned(),
            "the receiver takes 8 to 256 characters",
        ));
    }
    if let Some(text) = spec.mention().and_then(|mention| mention.observed_at_text)
        && !is_utc_milliseconds(text)
    {
        findings.push((
            "/authorship/mentionDelegation/observedAt",
            "the receiver does not take this form of time".to_owned(),
            "write it in UTC, ending in Z, with at most three fraction digits",
        ));
    }
    findings
}

fn is_utc_milliseconds(text: &str) -> bool {
    let Some(text) = text.strip_suffix('Z') else { return false };
    text.split_once('.').is_none_or(|(_, fraction)| fraction.len() <= 3)
}
