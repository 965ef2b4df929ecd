//! Settings, policies, routes, delegation and what they refer to.

use super::super::printer::counted;
use super::{Findings, Ground};
use crate::policy::{DelegationPolicy, InputSchema, PolicySet, WorkspaceFault, names_a_version};
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
        reach(path, policy, policies, findings);
    }
    "every policy has a risk floor and requires binding".to_owned()
}

/// A policy that reaches further than anybody looked, and one that reaches nobody where it says that it does.
fn reach(path: &str, policy: &DelegationPolicy, policies: &PolicySet, findings: &mut Findings) {
    let lists = [
        ("allowTasks", &policy.allow_tasks, "the operations that are meant, such as \"balance.*\""),
        ("allowAgents", &policy.allow_agents, "the agents that are meant"),
    ];
    for (name, _, meant) in lists.into_iter().filter(|(_, list, _)| list.cover_everything()) {
        findings.warn(
            format!("{path} has {name} with \"*\": it allows whatever is added later, too"),
            format!("name {meant}"),
        );
    }
    let agents: Vec<&str> = policies
        .routes()
        .values()
        .flat_map(|route| route.own_names().chain(route.fallback_agent_id.as_deref()))
        .collect();
    for agent in policy.allow_agents.idle(&agents).filter(|agent| *agent != "*") {
        findings.warn(
            format!("{path} allows the agent `{agent}`, which is on no route"),
            "correct the name, add its route to policies/routes.json, or take it out of allowAgents",
        );
    }
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
    for (key, route) in policies.routes() {
        for path in &route.input_schema_refs {
            input_schema(key, path, policies, findings);
        }
    }
    "what routes refer to is there".to_owned()
}

/// A schema that a route takes input of. Of others nobody knows whether they are meant for input at all.
fn input_schema(key: &str, path: &str, policies: &PolicySet, findings: &mut Findings) {
    let file = match policies.references().resolve(path) {
        Ok(file) => file,
        Err(fault) => {
            return findings.fail(
                format!("the input schema `{path}` of route `{key}` {fault}"),
                "write the schema there, or correct inputSchemaRefs in policies/routes.json",
            );
        }
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let names_one = |text: &[u8]| InputSchema::compiled(file.digest, text).id_has_version;
    if !names_a_version(name) && !file.json.as_deref().is_some_and(names_one) {
        findings.warn(
            format!("the input schema {path} of route `{key}` has no version, so no TaskSpec may use it"),
            "put a version such as v1 into its name or its $id",
        );
    }
}
