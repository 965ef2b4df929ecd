//! Delegated TaskSpecs that hold now, signed by a principal whose key the daemon knows.

use std::fs;
use std::path::Path;

use handoffd::proof::{Key, Purpose, Secret};
use handoffd::sealing::{Seal, Signer, seal};
use handoffd::timestamp::Timestamp;
use serde_json::{Value as Json, json};

use super::harness::{Daemon, write};
use super::signing::from_now;

pub(crate) const SECRET: &str = "the secret of the principal user:main";
const POLICY: &str = "policies/delegation/user-main-v1.json";
pub(crate) const CHANNEL: &str = "discord:channel:1473392629055098942";
pub(crate) const TARGET: &str = "blockchain-operator";

/// A daemon that knows the principal's key and takes delegated work without a mention, and an operator.
pub(crate) struct House {
    pub(crate) daemon: Daemon,
    pub(crate) rita: String,
}

impl House {
    pub(crate) fn new() -> Self {
        Self::prepared(|_, _| {})
    }

    /// With changes to the policy and to the routing table.
    pub(crate) fn prepared(change: impl FnOnce(&mut Json, &mut Json)) -> Self {
        let prepare = |workspace: &Path| {
            let paths = [workspace.join(POLICY), workspace.join("policies/routes.json")];
            let [mut policy, mut table]: [Json; 2] =
                paths.each_ref().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap());
            policy["allowWithoutChannel"] = true.into();
            change(&mut policy, &mut table);
            write(&paths[0], policy.to_string());
            write(&paths[1], table.to_string());
        };
        let daemon = Daemon::prepared(tempfile::tempdir().unwrap(), "", prepare);
        let key = json!({"keyId": "user-main-test", "owner": "user:main", "secret": SECRET});
        assert_eq!(daemon.post("/v1/keys", key).status, 201);
        let rita = daemon.token("rita", "operator", None);
        Self { daemon, rita }
    }

    /// The codes of a handoff's refusal; none if it is allowed.
    #[track_caller]
    pub(crate) fn codes(&self, spec: &Json) -> Vec<String> {
        codes(&self.daemon.submit(spec).json())
    }
}

/// The codes of a Decision's reasons, each once.
pub(crate) fn codes(decision: &Json) -> Vec<String> {
    let reasons = decision["reasons"].as_array().unwrap_or_else(|| panic!("{decision}"));
    let mut codes: Vec<String> =
        reasons.iter().map(|reason| reason["code"].as_str().unwrap().to_owned()).collect();
    codes.sort();
    codes.dedup();
    codes
}

/// Changes a TaskSpec, and has the principal sign it as it is then.
pub(crate) fn signed(mut spec: Json, change: impl FnOnce(&mut Json)) -> Json {
    change(&mut spec);
    let secret = Secret::new(SECRET.as_bytes().to_vec());
    let key = Key::hmac("user-main-test", "user:main", Purpose::Envelope, secret).unwrap();
    let at = |seconds| Timestamp::parse(&from_now(seconds)).unwrap();
    spec["audit"]["delegation"] = json!({"authorizationRef": null});
    if let Some(grant) = spec.pointer("/authorship/risk/authorizationRef").cloned() {
        spec["audit"]["delegation"]["authorizationRef"] = grant;
    }
    let ttl = Some((at(-2), at(600)));
    seal(&mut spec, &Seal { signer: Signer::Shared(&key), ttl, bind: false }).unwrap();
    spec
}

fn named(text: &str, name: &str) -> Json {
    let mut spec: Json = serde_json::from_str(text).unwrap();
    spec["handoffId"] = format!("hs_20260218_{name}").into();
    spec["correlationId"] = format!("corr_{name}").into();
    spec["audit"]["requestId"] = format!("req_{name}").into();
    spec["audit"]["idempotencyKey"] = format!("idem_{name}").into();
    spec
}

/// Sensitive work that no mention triggered, simulated, with this grant. Not signed yet.
pub(crate) fn sensitive(name: &str, grant: &str) -> Json {
    let mut spec = named(include_str!("../../docs/examples/taskspec-delegated-human-proxy.json"), name);
    spec["mode"] = "simulated".into();
    spec["safety"] = json!({"e2eActor": "human"});
    spec["authorship"]["risk"] =
        json!({"classification": "sensitive", "requiresConfirmation": true, "authorizationRef": grant});
    let authorship = spec["authorship"].as_object_mut().unwrap();
    authorship.remove("mentionDelegationMode");
    authorship.remove("mentionDelegation");
    spec
}

/// A mention for work that reads, observed a moment ago. Not signed yet.
pub(crate) fn mention(name: &str, message_id: &str) -> Json {
    let mut spec = named(include_str!("../../docs/examples/taskspec-delegated-read.json"), name);
    let observed = Timestamp::parse(&from_now(-1)).unwrap();
    spec["authorship"]["mentionDelegation"]["messageId"] = message_id.into();
    spec["authorship"]["mentionDelegation"]["observedAt"] = observed.to_milliseconds().into();
    spec
}
