//! The set as one thing: made whole from file contents, or refused with everything that is wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::agents::AgentNames;
use super::delegation::DelegationPolicy;
use super::references::References;
use super::routes::Route;
use crate::contract::{Compiled, Instance, embedded_schema};
use crate::limits;
use crate::proof::{Digest, canonical_json};

/// Where the routing table is.
pub const ROUTES_PATH: &str = "policies/routes.json";

/// An immutable snapshot of all that a verdict depends on, but the keys and the time.
#[derive(Debug, Clone)]
pub struct PolicySet {
    routes: BTreeMap<String, Route>,
    /// Of these routes.
    names: Arc<AgentNames>,
    policies: BTreeMap<String, DelegationPolicy>,
    references: References,
    files: Arc<BTreeMap<String, Digest>>,
    digest: Digest,
}

/// One thing that is wrong with a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFault {
    pub file: String,
    /// JSON pointer into the file; empty for the file as a whole.
    pub pointer: String,
    pub reason: String,
}

impl std::fmt::Display for PolicyFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, pointer, reason } = self;
        if pointer.is_empty() {
            write!(f, "{file}: {reason}")
        } else {
            write!(f, "{file} at {pointer}: {reason}")
        }
    }
}

impl PolicySet {
    /// Makes a set of a routing table, the delegation policies by their paths, and the references.
    pub fn new(
        routes: &[u8],
        policies: &BTreeMap<String, Vec<u8>>,
        references: References,
    ) -> Result<Self, Vec<PolicyFault>> {
        let mut faults = Vec::new();
        let table = parse::<RouteTable>(ROUTES_PATH, routes, route_schema(), &mut faults);
        let mut parsed = BTreeMap::new();
        for (path, text) in policies {
            if let Some(policy) = parse(path, text, policy_schema(), &mut faults) {
                parsed.insert(path.clone(), policy);
            }
        }
        if let Some(table) = &table {
            faults.extend(table.routes.iter().filter_map(|(key, route)| too_large(key, route)));
            faults.extend(table.routes.iter().flat_map(|(key, route)| credentials(key, route)));
        }
        match table {
            Some(RouteTable { routes: table }) if faults.is_empty() => {
                let files = files(routes, policies, &references);
                let digest = digest(&files);
                let names = Arc::new(AgentNames::of(table.values()));
                let files = Arc::new(files);
                Ok(Self { routes: table, names, policies: parsed, references, files, digest })
            }
            _ => Err(faults),
        }
    }

    pub fn route(&self, key: &str) -> Option<&Route> {
        self.routes.get(key)
    }

    pub fn routes(&self) -> &BTreeMap<String, Route> {
        &self.routes
    }

    /// The same set with these routes instead of its own: what a rollback restored counts over the file.
    pub fn with_routes(&self, routes: impl Iterator<Item = (String, Route)>) -> Self {
        let mut set = self.clone();
        // One that the table does not have any more is gone, whatever was restored.
        for (key, route) in routes.filter(|(key, _)| self.routes.contains_key(key)) {
            set.routes.insert(key, route);
        }
        set.names = Arc::new(AgentNames::of(set.routes.values()));
        set
    }

    /// What agents are called, on whichever route.
    pub fn names(&self) -> &AgentNames {
        &self.names
    }

    /// Are these two names of one agent?
    pub fn are_one(&self, one: &str, other: &str) -> bool {
        self.names.all(one).any(|name| name == other)
    }

    pub fn policy(&self, policy_ref: &str) -> Option<&DelegationPolicy> {
        self.policies.get(policy_ref)
    }

    pub fn policy_refs(&self) -> impl Iterator<Item = &str> {
        self.policies.keys().map(String::as_str)
    }

    pub fn references(&self) -> &References {
        &self.references
    }

    /// The files that the set was made of, each with its digest.
    pub fn files(&self) -> &BTreeMap<String, Digest> {
        &self.files
    }

    /// The digest of a set that is made of these files.
    pub fn digest_of(files: &BTreeMap<String, Digest>) -> Digest {
        digest(files)
    }

    /// The digest of the set: of the canonical object that gives each file's path its digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

#[derive(serde::Deserialize)]
struct RouteTable {
    routes: BTreeMap<String, Route>,
}

/// A route that one event of the ledger could not hold.
fn too_large(key: &str, route: &Route) -> Option<PolicyFault> {
    let bytes = route.to_canonical().len();
    (bytes > limits::ROUTE_BYTES_MAX).then(|| PolicyFault {
        file: ROUTES_PATH.to_owned(),
        pointer: crate::json::pointer::join("/routes", key),
        reason: format!("the route has {bytes} bytes; a route may have {}", limits::ROUTE_BYTES_MAX),
    })
}

/// URLs that the ledger must not hold. What they say is not repeated: this is told and logged.
fn credentials(key: &str, route: &Route) -> impl Iterator<Item = PolicyFault> {
    let at = crate::json::pointer::join("/routes", key);
    route.with_credentials().map(move |member| PolicyFault {
        file: ROUTES_PATH.to_owned(),
        pointer: format!("{at}/{member}"),
        reason: format!(
            "`{member}` has a user name or a password in it (remove what stands before the `@`: the URL is \
             recorded in the ledger and shown; let the agent answer a probe without them)"
        ),
    })
}

fn parse<T: DeserializeOwned>(
    file: &str,
    text: &[u8],
    schema: &Compiled,
    faults: &mut Vec<PolicyFault>,
) -> Option<T> {
    let mut fault =
        |pointer: String, reason: String| faults.push(PolicyFault { file: file.to_owned(), pointer, reason });
    let document = match crate::json::read(text, limits::WORKSPACE_FILE) {
        Ok(document) => document,
        Err(error) => {
            fault(error.pointer.clone(), error.to_string());
            return None;
        }
    };
    let findings = schema.findings(Instance::Document(document.root()));
    if !findings.is_empty() {
        for finding in findings {
            let hint = finding.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            fault(finding.pointer, format!("{}{hint}", finding.message));
        }
        return None;
    }
    match serde_json::from_value(document.root().to_json()) {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            fault(String::new(), error.to_string());
            None
        }
    }
}

fn files(
    routes: &[u8],
    policies: &BTreeMap<String, Vec<u8>>,
    references: &References,
) -> BTreeMap<String, Digest> {
    let mut files: BTreeMap<String, Digest> =
        references.digests().map(|(path, digest)| (path.to_owned(), digest)).collect();
    files.insert(ROUTES_PATH.to_owned(), Digest::of(routes));
    for (path, text) in policies {
        files.insert(path.clone(), Digest::of(text));
    }
    files
}

fn digest(files: &BTreeMap<String, Digest>) -> Digest {
    let files: serde_json::Map<String, serde_json::Value> =
        files.iter().map(|(path, digest)| (path.clone(), digest.to_string().into())).collect();
    Digest::of(&canonical_json(&files.into()))
}

fn route_schema() -> &'static Compiled {
    static COMPILED: std::sync::OnceLock<Compiled> = std::sync::OnceLock::new();
    COMPILED.get_or_init(|| embedded_schema(include_str!("../../docs/schemas/route.schema.json")))
}

fn policy_schema() -> &'static Compiled {
    static COMPILED: std::sync::OnceLock<Compiled> = std::sync::OnceLock::new();
    COMPILED.get_or_init(|| embedded_schema(include_str!("../../docs/schemas/policy.schema.json")))
}
