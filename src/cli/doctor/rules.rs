//! Settings, policies, routes, delegation and what they refer to.

use super::super::printer::counted;
use super::{Findings, Ground};
use crate::json;
use crate::limits;
use crate::policy::{InputSchema, WorkspaceFault, names_a_version};
use crate::settings::Effective;

const AFTER: &str = "not looked at until the policy set can be read";

pub(super) fn settings(ground: &Ground<'_>, findings: &mut Findings) -> String {
    match Effective::load(ground.root(), Vec::new()) {
        Ok(effective) => {
            for warning in effective.warnings {
                findings.warn(warning, "a secret is for the daemon's user alone");
            }
        }
        Err(problems) => {
            for problem in problems {
                findings.fail(problem.to_string(), "correct it: docs/settings.md has every setting");
            }
        }
    }
    "can be used".to_owned()
}

pub(super) fn policies(ground: &Ground<'_>, findings: &mut Findings) -> String {
    const FIX: &str = "correct the file: nothing is allowed under a set that cannot be read";
    match &ground.policies {
        Ok(policies) => {
            let routes = counted(policies.routes().len(), "route", "routes");
            let refs = counted(policies.policy_refs().count(), "delegation policy", "delegation policies");
            return format!("{routes}, {refs}, {}", policies.digest());
        }
        Err(WorkspaceFault::Policy(faults)) => {
            for fault in faults {
                findings.fail(fault.to_string(), FIX);
            }
        }
        Err(fault @ (WorkspaceFault::NotAWorkspace { .. } | WorkspaceFault::TooMuch(_))) => {
            findings.fail(fault.to_string(), "make it a workspace that can be read");
        }
        Err(fault @ WorkspaceFault::PoliciesLost { .. }) => {
            findings.fail(
                fault.to_string(),
                "bring them back from where they are kept; do not make others in their place",
            );
        }
        Err(fault @ WorkspaceFault::Keyring { .. }) => findings.fail(fault.to_string(), FIX),
    }
    String::new()
}

pub(super) fn routes(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let Ok(policies) = &ground.policies else { return findings.skip(AFTER) };
    if policies.routes().is_empty() {
        findings.warn("there are no routes, so nothing is allowed", "add one to policies/routes.json");
    }
    for (key, route) in policies.routes() {
        let fix = format!("set fallbackAgentId of `{key}` in policies/routes.json");
        match (&route.fallback_agent_id, route.critical) {
            (Some(_), _) => {}
            (None, true) => findings.fail(format!("the critical route `{key}` has no fallback"), fix),
            (None, false) => findings.warn(format!("route `{key}` has no fallback"), fix),
        }
    }
    "every route has a fallback".to_owned()
}

pub(super) fn delegation(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let Ok(policies) = &ground.policies else { return findings.skip(AFTER) };
    for path in policies.policy_refs() {
        let Some(policy) = policies.policy(path) else { continue };
        if !policy.has_floor() {
            findings.warn(
                format!("{path} has no riskFloor: a sender may call any operation harmless"),
                "add riskFloor, such as {\"transfer\": \"sensitive\"}",
            );
        }
        if !policy.has_binding() {
            findings.warn(
                format!("{path} has no requireBinding: an envelope fits any handoff within its scope"),
                "add requireBinding, such as [\"sensitive\", \"live\"]",
            );
        }
    }
    "every policy has a risk floor and requires binding".to_owned()
}

pub(super) fn references(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let Ok(policies) = &ground.policies else { return findings.skip(AFTER) };
    for (key, route) in policies.routes() {
        if let Some(plan) = &route.rollback_plan_ref
            && let Err(fault) = policies.references().resolve(plan)
        {
            findings.fail(
                format!("the rollback plan `{plan}` of route `{key}` {fault}"),
                "write the plan there, or correct rollbackPlanRef in policies/routes.json",
            );
        }
    }
    for (path, file) in policies.references().files() {
        let Some(text) = file.json.as_deref().filter(|text| is_schema(text)) else { continue };
        let name = path.rsplit('/').next().unwrap_or(path);
        if !names_a_version(name) && !InputSchema::compiled(file.digest, text).id_has_version {
            findings.warn(
                format!("the schema {path} has no version, so no TaskSpec may use it for its input"),
                "put a version such as v1 into its name or its $id",
            );
        }
    }
    "what routes refer to is there".to_owned()
}

/// Does it say that it is a schema?
fn is_schema(text: &[u8]) -> bool {
    let document = json::read(text, limits::WORKSPACE_FILE);
    document.is_ok_and(|document| document.root().get("$schema").is_some())
}
