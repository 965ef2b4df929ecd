//! Safety: who vouches for it, who must say yes, what it may change, and the way back.

use super::codes::Code;
use super::verdict::Findings;
use crate::contract::{Field, Mode, TaskSpec};
use crate::json::printable;
use crate::policy::PolicySet;

pub(super) fn judge(spec: &TaskSpec<'_>, policies: &PolicySet, findings: &mut Findings) {
    e2e_actor(spec, findings);
    approval(spec, findings);
    rollback(spec, policies, findings);
    side_effects(spec, findings);
}

/// An end-to-end test counts only if somebody outside the agents vouches for it.
fn e2e_actor(spec: &TaskSpec<'_>, findings: &mut Findings) {
    if let Some(actor) = spec.safety.e2e_actor.get()
        && !matches!(actor.as_str(), "human" | "authorized-harness")
    {
        findings.refuse(
            Code::SelfTest,
            "/safety/e2eActor",
            format!("`{}` may not vouch for an end-to-end test", printable(actor.as_str())),
            "use `human` or `authorized-harness`; an agent is no witness of its own work",
        );
    }
}

fn approval(spec: &TaskSpec<'_>, findings: &mut Findings) {
    if spec.mode.get() == Some(Mode::Live)
        && spec.safety.requires_human_approval.or_default_to(false) == Some(false)
    {
        findings.refuse(
            Code::ApprovalRequired,
            "/safety/requiresHumanApproval",
            "live work must require a person's approval",
            "set safety.requiresHumanApproval to true",
        );
    }
}

fn rollback(spec: &TaskSpec<'_>, policies: &PolicySet, findings: &mut Findings) {
    const HINT: &str = "add rollback {required: true, planRef: a .md or .json file in the workspace}";
    let mut missing = |path: &str, message: String, hint: &str| {
        findings.refuse(Code::RollbackPlanMissing, path, message, hint);
    };
    let rollback = match spec.rollback {
        Field::Is(rollback) => rollback,
        Field::Absent => return missing("/rollback", "there is no rollback plan".to_owned(), HINT),
        Field::Unreadable => return,
    };
    if rollback.required.or_default_to(false) == Some(false) {
        missing(
            "/rollback/required",
            "the rollback is not required".to_owned(),
            "set rollback.required to true",
        );
    }
    match rollback.plan_ref {
        Field::Absent => missing("/rollback/planRef", "the rollback names no plan".to_owned(), HINT),
        Field::Is(plan) => {
            if let Err(fault) = policies.references().resolve(plan.as_str()) {
                let message = format!("the plan `{}` {fault}", printable(plan.as_str()));
                missing("/rollback/planRef", message, "name a .md or .json file below the workspace root");
            }
        }
        Field::Unreadable => {}
    }
}

fn side_effects(spec: &TaskSpec<'_>, findings: &mut Findings) {
    if let Some(mode @ (Mode::Dev | Mode::Simulated)) = spec.mode.get()
        && spec.safety.allow_external_side_effects.get() == Some(true)
    {
        findings.refuse(
            Code::SideEffects,
            "/safety/allowExternalSideEffects",
            format!("a {} handoff may not change the outside world", mode.as_str()),
            "leave allowExternalSideEffects out, or promote the route and use mode live",
        );
    }
}
