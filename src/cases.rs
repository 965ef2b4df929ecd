//! Table tests of policies: TaskSpecs changed in a few places, and what must come of them.
//!
//! Pure but for the files it asks for: `handoffd policy test` and the tests of the gates run the same
//! code over the same format (`docs/schemas/policy-test.schema.json`).

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::contract::{Compiled, Instance, embedded_schema};
use crate::gates::{Caller, Ground, Reason, judge};
use crate::limits;
use crate::policy::PolicySet;
use crate::proof::{Algorithm, Key, Keyring, Purpose, Secret, Seed};
use crate::sealing::{Seal, Signer, seal};
use crate::timestamp::Timestamp;

/// Reads a file of the workspace by its path.
pub type ReadFile<'r> = &'r dyn Fn(&str) -> Result<Vec<u8>, String>;

/// A file of cases.
#[derive(Debug, Deserialize)]
pub struct CaseFile {
    base: Option<String>,
    now: Option<String>,
    #[serde(default)]
    keys: Vec<CaseKey>,
    pub cases: Vec<Case>,
}

/// One case.
#[derive(Debug, Deserialize)]
pub struct Case {
    pub name: String,
    base: Option<String>,
    now: Option<String>,
    #[serde(rename = "as")]
    caller: Option<String>,
    patch: Option<Json>,
    sign: Option<String>,
    #[serde(default)]
    bind: bool,
    tamper: Option<Json>,
    pub expect: Expectation,
}

/// A decision and the codes of its reasons, as a test states or finds them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Expectation {
    pub decision: String,
    #[serde(default)]
    pub codes: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseKey {
    key_id: String,
    owner: String,
    purpose: Option<String>,
    algorithm: Option<String>,
    secret: Option<String>,
    secret_file: Option<String>,
    not_before: Option<String>,
    not_after: Option<String>,
}

/// What came of a case.
#[derive(Debug)]
pub struct CaseResult {
    pub found: Expectation,
    pub reasons: Vec<Reason>,
    /// The TaskSpec that was judged.
    pub spec: Json,
}

/// A case file that is ready to run.
#[derive(Debug)]
pub struct Suite {
    pub file: CaseFile,
    keyring: Keyring,
    seeds: Vec<(String, Seed)>,
}

impl Suite {
    /// Reads a case file.
    pub fn parse(text: &[u8], read: ReadFile<'_>) -> Result<Self, String> {
        let document = crate::json::read(text, limits::WORKSPACE_FILE).map_err(|fault| fault.to_string())?;
        let findings = schema().findings(Instance::Document(document.root()));
        if let Some(finding) = findings.first() {
            return Err(format!("at {}: {}", finding.pointer, finding.message));
        }
        let file: CaseFile =
            serde_json::from_value(document.root().to_json()).map_err(|error| error.to_string())?;
        let mut suite = Self { file, keyring: Keyring::default(), seeds: Vec::new() };
        for n in 0..suite.file.keys.len() {
            suite.add_key(n, read)?;
        }
        Ok(suite)
    }

    fn add_key(&mut self, n: usize, read: ReadFile<'_>) -> Result<(), String> {
        let Some(stored) = self.file.keys.get(n) else { return Ok(()) };
        let bad = |why: &str| format!("key `{}` {why}", stored.key_id);
        let secret = match (&stored.secret, &stored.secret_file) {
            (Some(secret), None) => Secret::new(secret.clone().into_bytes()),
            (None, Some(path)) => Secret::from_file_bytes(read(path)?),
            _ => return Err(bad("needs either secret or secretFile")),
        };
        let purpose = stored.purpose.as_deref().map_or(Ok(Purpose::Envelope), str::parse)?;
        let algorithm = stored.algorithm.as_deref().map_or(Ok(Algorithm::HmacSha256), str::parse)?;
        let key = match algorithm {
            Algorithm::HmacSha256 => Key::hmac(&stored.key_id, &stored.owner, purpose, secret),
            Algorithm::Ed25519 => {
                let seed =
                    Seed::from_secret(&secret).ok_or_else(|| bad("has a seed that is not 64 hex digits"))?;
                let key = Key::ed25519(&stored.key_id, &stored.owner, purpose, &seed.public_hex());
                self.seeds.push((stored.key_id.clone(), seed));
                key
            }
        };
        let at = |text: &Option<String>| text.as_deref().and_then(Timestamp::parse);
        let key = key.ok_or_else(|| bad("cannot be used"))?;
        let key = key.valid_between(at(&stored.not_before), at(&stored.not_after));
        self.keyring.add(key).map_err(|fault| fault.to_string())
    }

    /// Runs one case. An error means that the case itself makes no sense.
    pub fn run(&self, case: &Case, policies: &PolicySet, read: ReadFile<'_>) -> Result<CaseResult, String> {
        let base = case.base.as_ref().or(self.file.base.as_ref()).ok_or("there is no base TaskSpec")?;
        let text = read(base)?;
        let document =
            crate::json::read(&text, limits::TASK_SPEC).map_err(|fault| format!("{base}: {fault}"))?;
        let mut spec = document.root().to_json();
        if let Some(patch) = &case.patch {
            merge(&mut spec, patch);
        }
        if let Some(key_id) = &case.sign {
            let signer =
                self.signer(key_id).ok_or_else(|| format!("there is no key `{key_id}` to sign with"))?;
            seal(&mut spec, &Seal { signer, ttl: None, bind: case.bind })?;
        }
        if let Some(tamper) = &case.tamper {
            merge(&mut spec, tamper);
        }
        let now = case.now.as_ref().or(self.file.now.as_ref()).ok_or("there is no time")?;
        let now = Timestamp::parse(now).ok_or("the time is not RFC 3339")?;
        let caller = case.caller.as_deref().map_or(Caller::Unchecked, Caller::Agent);
        let body = spec.to_string();
        let document =
            crate::json::read(body.as_bytes(), limits::TASK_SPEC).map_err(|fault| fault.to_string())?;
        let ground = Ground { policies, keyring: &self.keyring, caller, now };
        let verdict = judge(&document, &ground).verdict;
        let found = Expectation {
            decision: verdict.decision().as_str().to_owned(),
            codes: verdict.reasons().iter().map(|reason| reason.code.as_str().to_owned()).collect(),
        };
        Ok(CaseResult { found, reasons: verdict.reasons().to_vec(), spec })
    }

    fn signer<'s>(&'s self, key_id: &'s str) -> Option<Signer<'s>> {
        let seed = self.seeds.iter().find(|(id, _)| id == key_id);
        match seed {
            Some((_, seed)) => Some(Signer::Private { key_id, seed }),
            None => self.keyring.get(key_id).map(Signer::Shared),
        }
    }
}

/// RFC 7396: members of an object are merged, null removes one, anything else replaces.
fn merge(target: &mut Json, patch: &Json) {
    let Json::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Json::Object(serde_json::Map::new());
    }
    let Json::Object(members) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            members.shift_remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Json::Null), change);
        }
    }
}

fn schema() -> &'static Compiled {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED.get_or_init(|| embedded_schema(include_str!("../docs/schemas/policy-test.schema.json")))
}
