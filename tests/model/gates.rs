//! What the gates say of a TaskSpec, rule by rule as the table of gates has them.

use std::collections::{BTreeMap, BTreeSet};

use ed25519_dalek::{Signer as _, SigningKey};
use handoffd::timestamp::Timestamp;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::shape::{Field, field, is_delegated, is_gated, is_sound};

mod envelope;

use envelope::{audit, envelope, proof};

/// All that a verdict rests on besides the TaskSpec and the time.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    /// By routeKey, as `policies/routes.json` has them.
    pub(crate) routes: BTreeMap<String, Json>,
    /// By policyRef.
    pub(crate) policies: BTreeMap<String, Json>,
    pub(crate) keys: Vec<KeyFacts>,
}

#[derive(Clone)]
pub(crate) struct KeyFacts {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) purpose: &'static str,
    pub(crate) algorithm: &'static str,
    /// The shared secret, or the seed of an Ed25519 key.
    pub(crate) secret: [u8; 32],
    pub(crate) from: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

impl KeyFacts {
    fn counts_at(&self, now: Timestamp) -> bool {
        self.from.is_none_or(|from| now >= from) && self.until.is_none_or(|until| now < until)
    }

    pub(crate) fn sign(&self, message: &[u8]) -> String {
        if self.algorithm == "ed25519-v1" {
            return hex(&SigningKey::from_bytes(&self.secret).sign(message).to_bytes());
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).unwrap();
        mac.update(message);
        hex(&mac.finalize().into_bytes())
    }
}

/// Who submits.
#[derive(Clone, PartialEq)]
pub(crate) enum Submitter {
    Agent(String),
    Administrator,
}

/// Whose yes is asked for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Yes {
    Nobodys,
    ByGrant,
    APersons,
}

#[derive(Clone)]
pub(crate) struct Verdict {
    pub(crate) codes: BTreeSet<&'static str>,
    /// When something that it rests on ends.
    pub(crate) until: Option<Timestamp>,
    pub(crate) yes: Yes,
    /// The principal's signature was checked and is right.
    pub(crate) proven: bool,
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn canonical(value: &Json) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).unwrap()
}

pub(crate) fn sha256(value: &Json) -> String {
    format!("sha256:{}", hex(&Sha256::digest(canonical(value))))
}

/// By which two submissions are the same: all but what the gateway writes.
pub(crate) fn content(spec: &Json) -> Vec<u8> {
    let mut spec = spec.clone();
    if let Some(delegation) = spec.pointer_mut("/audit/delegation").and_then(Json::as_object_mut) {
        for name in ["decision", "validatedAt", "recordedBy"] {
            delegation.remove(name);
        }
    }
    canonical(&spec)
}

/// The envelope that is signed.
pub(crate) fn signed_part(envelope: &Json) -> Vec<u8> {
    let mut envelope = envelope.clone();
    envelope.as_object_mut().unwrap().remove("proof");
    canonical(&envelope)
}

fn texts(value: &Json, name: &str) -> Vec<String> {
    let items = value.get(name).and_then(Json::as_array);
    items.into_iter().flatten().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Is a name on an operator's list, where a last `*` stands for anything?
fn covers(list: &[String], name: &str) -> bool {
    list.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => pattern == name,
    })
}

pub(crate) fn reaches(route: &Json, agent: &str) -> bool {
    agents(route).contains(agent)
}

/// Everybody whom a route names.
pub(crate) fn agents(route: &Json) -> BTreeSet<String> {
    let named = ["primaryAgentId", "fallbackAgentId"].map(|member| route[member].as_str().map(str::to_owned));
    named.into_iter().flatten().chain(texts(route, "aliases")).collect()
}

/// All names of the agent of this name. A route's aliases are other names of its primary, which is one agent wherever it
/// is met; an alias that two primaries have makes no one agent of them.
pub(crate) fn names<'r>(routes: impl Iterator<Item = &'r Json> + Clone, agent: &str) -> BTreeSet<String> {
    let own = |route: &Json| -> BTreeSet<String> {
        let primary = route["primaryAgentId"].as_str().unwrap().to_owned();
        texts(route, "aliases").into_iter().chain([primary]).collect()
    };
    let mut names = BTreeSet::from([agent.to_owned()]);
    for one in routes.clone().filter(|route| own(route).contains(agent)) {
        let of_it = routes.clone().filter(|route| route["primaryAgentId"] == one["primaryAgentId"]);
        names.extend(of_it.flat_map(own));
    }
    names
}

const CLASSES: [&str; 4] = ["read", "diagnostic", "sensitive", "live"];

fn rank(class: &str) -> usize {
    CLASSES.iter().position(|other| *other == class).unwrap()
}

pub(crate) fn is_grave(class: &str) -> bool {
    rank(class) >= 2
}

/// The mention of a handoff that came by one.
pub(crate) fn mention<'s>(spec: &'s Json, member: &str) -> Option<&'s str> {
    if is_gated(spec) != Some(true) {
        return None;
    }
    field(spec, &format!("authorship.mentionDelegation.{member}")).text()
}

pub(crate) fn judge(spec: &Json, rules: &Rules, submitter: &Submitter, now: Timestamp) -> Verdict {
    let mut codes = BTreeSet::new();
    let mut ends = Vec::new();
    let text = |path: &str| field(spec, path).text();
    if !is_sound(spec) {
        codes.insert("A2A_TASKSPEC_INVALID");
    }
    if let Some(source) = text("source.agentId") {
        let may = match submitter {
            Submitter::Agent(agent) => agent == source,
            Submitter::Administrator => text("mode") != Some("live"),
        };
        if !may {
            codes.insert("A2A_SOURCE_MISMATCH");
        }
    }
    if field(spec, "createdAt").instant().is_some_and(|created| created > now.plus_seconds(120)) {
        codes.insert("A2A_TIMESTAMP_WINDOW_EXCEEDED");
    }
    let route = text("routing.routeKey").and_then(|key| rules.routes.get(key));
    if text("routing.routeKey").is_some() && route.is_none() {
        codes.insert("A2A_ROUTE_UNKNOWN");
    }
    if let Some(route) = route {
        along(spec, route, &mut codes);
        ends.extend(signer(spec, route, rules, now, &mut codes));
    }
    input(spec, route, &mut codes);
    safety(spec, &mut codes);
    let mut proven = false;
    if is_delegated(spec) == Some(true) {
        let policy = text("authorship.delegationPolicy.policyRef");
        let file = policy.and_then(|policy| rules.policies.get(policy));
        if policy.is_some() && file.is_none() {
            codes.insert("POLICY_REF_UNKNOWN");
        }
        allowlists(spec, file, &mut codes);
        envelope(spec, file, now, &mut codes);
        ends.extend(field(spec, "authorship.envelope.ttl.expiresAt").instant());
        if let Some(until) = proof(spec, rules, now, &mut codes) {
            proven = text("authorship.envelope.proof.hash").is_some()
                && !codes.contains("POLICY_ENVELOPE_HASH_MISMATCH");
            ends.extend(until);
        }
        audit(spec, &mut codes);
        risk(spec, file, &mut codes);
    }
    if is_gated(spec) == Some(true) {
        ends.extend(mentioned(spec, rules, now, &mut codes));
    }
    let class = text("authorship.risk.classification");
    let asks = text("mode") == Some("live") || class.is_some_and(is_grave);
    let yes = match (asks, text("authorship.risk.authorizationRef").is_some()) {
        (false, _) => Yes::Nobodys,
        (true, true) => Yes::ByGrant,
        (true, false) => Yes::APersons,
    };
    Verdict { codes, until: ends.into_iter().min(), yes, proven }
}

/// Target, fallback and capability against the route.
fn along(spec: &Json, route: &Json, codes: &mut BTreeSet<&'static str>) {
    let text = |path: &str| field(spec, path).text();
    if text("target.agentId").is_some_and(|target| !reaches(route, target))
        || text("routing.fallbackAgentId").is_some_and(|fallback| route["fallbackAgentId"] != fallback)
    {
        codes.insert("A2A_ROUTE_TARGET_MISMATCH");
    }
    if text("target.capability").is_some_and(|capability| route["capability"] != capability) {
        codes.insert("A2A_ROUTE_CAPABILITY_MISMATCH");
    }
}

/// The key that signs what is dispatched, where the receiver demands it; until when it counts.
fn signer(
    spec: &Json,
    route: &Json,
    rules: &Rules,
    now: Timestamp,
    codes: &mut BTreeSet<&'static str>,
) -> Option<Timestamp> {
    let live = field(spec, "mode").text()? == "live";
    let plane = route["profile"] == "execution-plane.v1";
    let demanded = route.get("requireSignature").and_then(Json::as_bool).unwrap_or(live && plane);
    if !demanded {
        return None;
    }
    let named = route.get("signingKeyId").and_then(Json::as_str);
    let key = rules.keys.iter().find(|key| Some(key.id.as_str()) == named).filter(|key| {
        plane && key.purpose == "dispatch" && key.algorithm == "hmac-sha256-v1" && key.counts_at(now)
    });
    if key.is_none() {
        codes.insert("A2A_KEY_UNKNOWN");
    }
    key.and_then(|key| key.until)
}

/// The files of the town: which schema they are, if any.
fn input(spec: &Json, route: Option<&Json>, codes: &mut BTreeSet<&'static str>) {
    let Some(path) = field(spec, "intent.inputSchemaRef").text() else { return };
    if path.starts_with('/') || path.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        codes.insert("EXECUTION_SCHEMA_REF_FORBIDDEN");
        return;
    }
    let of_envelopes = match path {
        "schemas/order.schema.v1.json" => false,
        "schemas/envelope.schema.v1.json" => true,
        "schemas/order.schema.json" => {
            codes.insert("EXECUTION_SCHEMA_UNVERSIONED");
            false
        }
        _ => {
            codes.insert("EXECUTION_SCHEMA_NOT_FOUND");
            return;
        }
    };
    let Some(route) = route else { return };
    let fits = match field(spec, "intent.input") {
        Field::Is(input) => {
            let amount = input.get("amount").and_then(Json::as_i64);
            Some(amount.is_some_and(|amount| (0..=1000).contains(&amount)))
        }
        _ => None,
    };
    // The receiver's own rules are not about the input.
    let bad = if route["profile"] == "execution-plane.v1" {
        of_receiver(spec) || fits.is_some_and(|fits| can_be_mapped(spec) && !(of_envelopes && fits))
    } else {
        fits.is_some_and(|fits| of_envelopes || !fits)
    };
    if bad {
        codes.insert("EXECUTION_SCHEMA_INVALID");
    }
}

/// Only what can be made whole can be shown to the schema of envelopes.
fn can_be_mapped(spec: &Json) -> bool {
    let is = |path: &str| matches!(field(spec, path), Field::Is(_));
    let mut needed =
        vec!["mode", "intent.operation", "audit.requestId", "correlationId", "audit.idempotencyKey"];
    let mentions = match (is_gated(spec), is_delegated(spec)) {
        (Some(false), _) => false,
        (Some(true), Some(delegated)) => delegated,
        _ => return false,
    };
    if mentions {
        needed.extend([
            "authorship.mentionDelegation.channel",
            "authorship.mentionDelegation.messageId",
            "authorship.mentionDelegation.originBotId",
            "authorship.mentionDelegation.targetBotId",
            "authorship.mentionDelegation.observedAt",
            "authorship.mentionDelegation.ttlSeconds",
            "authorship.risk.classification",
        ]);
    }
    needed.into_iter().all(is) && field(spec, "safety.allowExternalSideEffects") != Field::Unreadable
}

/// Does the execution plane's receiver refuse something of it?
fn of_receiver(spec: &Json) -> bool {
    let odd = |path: &str| {
        let takes = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
        let id = field(spec, path).text();
        id.is_some_and(|id| !(6..=128).contains(&id.len()) || !id.chars().all(takes))
    };
    let key = field(spec, "audit.idempotencyKey").text();
    let observed = mention(spec, "observedAt");
    odd("audit.requestId")
        || odd("correlationId")
        || key.is_some_and(|key| key.chars().count() < 8)
        || observed.is_some_and(|text| {
            let fraction =
                text.trim_end_matches('Z').split_once('.').map_or(0, |(_, fraction)| fraction.len());
            !text.ends_with('Z') || fraction > 3
        })
}

fn safety(spec: &Json, codes: &mut BTreeSet<&'static str>) {
    let text = |path: &str| field(spec, path).text();
    if text("safety.e2eActor").is_some_and(|actor| actor != "human" && actor != "authorized-harness") {
        codes.insert("POLICY_SELF_TEST");
    }
    let approval = field(spec, "safety.requiresHumanApproval");
    if text("mode") == Some("live") && (approval.is_absent() || approval.flag() == Some(false)) {
        codes.insert("POLICY_APPROVAL_REQUIRED");
    }
    let mode_is_tame = matches!(text("mode"), Some("dev" | "simulated"));
    if mode_is_tame && field(spec, "safety.allowExternalSideEffects").flag() == Some(true) {
        codes.insert("POLICY_SIDE_EFFECTS");
    }
    let block = field(spec, "rollback");
    let (required, plan) = (field(spec, "rollback.required"), field(spec, "rollback.planRef"));
    let no_plan = match block {
        Field::Absent => true,
        Field::Unreadable => false,
        Field::Is(_) => {
            required.is_absent()
                || required.flag() == Some(false)
                || plan.is_absent()
                || plan.text().is_some_and(|plan| plan != "docs/plan.md")
        }
    };
    if no_plan {
        codes.insert("POLICY_ROLLBACK_PLAN_MISSING");
    }
}

/// D1.
fn allowlists(spec: &Json, file: Option<&Json>, codes: &mut BTreeSet<&'static str>) {
    let text = |path: &str| field(spec, path).text();
    let own = |member: &str| field(spec, &format!("authorship.delegationPolicy.{member}")).texts();
    if let (Some(file), Some(principal)) = (file, text("authorship.envelope.principal.id"))
        && !covers(&texts(file, "principals"), principal)
    {
        codes.insert("POLICY_PRINCIPAL_DENIED");
    }
    for member in ["allowAgents", "allowChannels", "allowTasks"] {
        if let (Some(file), Some(own)) = (file, own(member))
            && own.iter().any(|name| !covers(&texts(file, member), name))
        {
            codes.insert("POLICY_ALLOWLIST_EXCEEDED");
        }
    }
    let acts = [
        (text("target.agentId"), "allowAgents", "POLICY_AGENT_DENIED"),
        (text("routing.fallbackAgentId"), "allowAgents", "POLICY_AGENT_DENIED"),
        (text("intent.operation"), "allowTasks", "POLICY_TASK_DENIED"),
        (mention(spec, "channel"), "allowChannels", "POLICY_CHANNEL_DENIED"),
    ];
    for (name, member, code) in acts {
        let Some(name) = name else { continue };
        let in_file = file.is_none_or(|file| covers(&texts(file, member), name));
        let in_own = own(member).is_none_or(|own| own.contains(&name));
        if !in_file || !in_own {
            codes.insert(code);
        }
    }
    if let (Some(file), Some(false)) = (file, is_gated(spec))
        && file.get("allowWithoutChannel").and_then(Json::as_bool) != Some(true)
    {
        codes.insert("POLICY_CHANNEL_DENIED");
    }
}

/// D3.
fn risk(spec: &Json, file: Option<&Json>, codes: &mut BTreeSet<&'static str>) {
    let Some(class) = field(spec, "authorship.risk.classification").text() else { return };
    if let (Some(floors), Some(operation)) = (
        file.and_then(|file| file.get("riskFloor")).and_then(Json::as_object),
        field(spec, "intent.operation").text(),
    ) {
        let understated = floors.iter().any(|(pattern, floor)| {
            covers(std::slice::from_ref(pattern), operation) && rank(class) < rank(floor.as_str().unwrap())
        });
        if understated {
            codes.insert("POLICY_RISK_UNDERSTATED");
        }
    }
    if is_grave(class) {
        let confirmation = field(spec, "authorship.risk.requiresConfirmation");
        if confirmation.is_absent() || confirmation.flag() == Some(false) {
            codes.insert("POLICY_CONFIRMATION_REQUIRED");
        }
        if field(spec, "authorship.risk.authorizationRef").is_absent() {
            codes.insert("POLICY_AUTHORIZATION_MISSING");
        }
    }
}

/// D4: until when the mention counts.
fn mentioned(
    spec: &Json,
    rules: &Rules,
    now: Timestamp,
    codes: &mut BTreeSet<&'static str>,
) -> Option<Timestamp> {
    if is_delegated(spec) == Some(false) {
        codes.insert("POLICY_MENTION_NOT_DELEGATED");
    }
    let (origin, target) = (mention(spec, "originBotId"), mention(spec, "targetBotId"));
    let is_itself =
        |origin: &str| target.is_some_and(|bot| names(rules.routes.values(), origin).contains(bot));
    if origin.is_some_and(is_itself) {
        codes.insert("POLICY_MENTION_LOOP");
    } else {
        for (bot, path) in [(origin, "source.agentId"), (target, "target.agentId")] {
            if let (Some(bot), Some(agent)) = (bot, field(spec, path).text())
                && bot != agent
            {
                codes.insert("POLICY_MENTION_BOT_MISMATCH");
            }
        }
    }
    let observed = field(spec, "authorship.mentionDelegation.observedAt").instant()?;
    if observed > now.plus_seconds(120) {
        codes.insert("POLICY_MENTION_FROM_FUTURE");
    }
    let Field::Is(seconds) = field(spec, "authorship.mentionDelegation.ttlSeconds") else { return None };
    let until = observed.plus_seconds(seconds.as_f64().unwrap() as i64);
    if until <= now {
        codes.insert("POLICY_MENTION_EXPIRED");
    }
    Some(until)
}
