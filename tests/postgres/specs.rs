//! TaskSpecs that the replicas of a test allow.

use handoffd::engine::World as _;
use handoffd::os::world::RealWorld;
use handoffd::proof::{Key, Purpose, Secret};
use handoffd::sealing::{Seal, Signer, seal};
use handoffd::timestamp::Timestamp;
use serde_json::{Value as Json, json};

use crate::replicas::SECRET;

pub(crate) fn now() -> Timestamp {
    RealWorld::default().now()
}

fn named(text: &str, name: &str) -> Json {
    let mut spec: Json = serde_json::from_str(text).unwrap();
    spec["handoffId"] = format!("hs_20260218_{name}").into();
    spec["correlationId"] = format!("corr_{name}").into();
    spec["audit"]["requestId"] = format!("req_{name}").into();
    spec["audit"]["idempotencyKey"] = format!("idem_{name}").into();
    spec
}

pub(crate) fn plain(name: &str) -> Json {
    named(include_str!("../../docs/examples/taskspec-minimal.json"), name)
}

/// A mention for work that reads, observed a moment ago.
pub(crate) fn mention(name: &str, message_id: &str) -> Json {
    let mut spec = named(include_str!("../../docs/examples/taskspec-delegated-read.json"), name);
    let observed = now().plus_seconds(-1);
    spec["authorship"]["mentionDelegation"]["messageId"] = message_id.into();
    spec["authorship"]["mentionDelegation"]["observedAt"] = observed.to_milliseconds().into();
    spec["createdAt"] = observed.to_milliseconds().into();
    signed(spec)
}

/// Sensitive work that no mention triggered, simulated, with this grant.
pub(crate) fn sensitive(name: &str, grant: &str) -> Json {
    let mut spec = named(include_str!("../../docs/examples/taskspec-delegated-human-proxy.json"), name);
    spec["mode"] = "simulated".into();
    spec["safety"] = json!({"e2eActor": "human"});
    spec["authorship"]["risk"] =
        json!({"classification": "sensitive", "requiresConfirmation": true, "authorizationRef": grant});
    let authorship = spec["authorship"].as_object_mut().unwrap();
    authorship.remove("mentionDelegationMode");
    authorship.remove("mentionDelegation");
    signed(spec)
}

fn signed(mut spec: Json) -> Json {
    let secret = Secret::new(SECRET.as_bytes().to_vec());
    let key = Key::hmac("user-main-test", "user:main", Purpose::Envelope, secret).unwrap();
    let at = now();
    spec["audit"]["delegation"] = json!({"authorizationRef": null});
    if let Some(grant) = spec.pointer("/authorship/risk/authorizationRef").cloned() {
        spec["audit"]["delegation"]["authorizationRef"] = grant;
    }
    let ttl = Some((at.plus_seconds(-2), at.plus_seconds(600)));
    seal(&mut spec, &Seal { signer: Signer::Shared(&key), ttl, bind: false }).unwrap();
    spec
}

/// The code of a Decision's first reason.
pub(crate) fn code(decision: &Json) -> &str {
    decision.pointer("/reasons/0/code").and_then(Json::as_str).unwrap_or_default()
}
