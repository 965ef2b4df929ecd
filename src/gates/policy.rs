//! D1: does the policy file, and do the sender's own lists, allow this principal, agent, channel and
//! task?
//!
//! The file is the authority. The lists inside a TaskSpec are the sender's words: they may narrow the
//! file, never widen it, and in them `*` is a letter like any other.

use super::codes::Code;
use super::verdict::Findings;
use crate::contract::{Field, Policy, TaskSpec};
use crate::json::{Value, printable};
use crate::policy::{DelegationPolicy, Names, PolicySet};

/// Returns the policy file, for the gates that follow.
pub(super) fn judge<'p>(
    spec: &TaskSpec<'_>,
    policies: &'p PolicySet,
    findings: &mut Findings,
) -> Option<&'p DelegationPolicy> {
    let policy = spec.authorship.delegation.policy.get()?;
    let file = file(&policy, policies, findings);
    if let Some(file) = file {
        principal(spec, file, findings);
        narrows(policy.allow_agents, &file.allow_agents, "allowAgents", findings);
        narrows(policy.allow_channels, &file.allow_channels, "allowChannels", findings);
        narrows(policy.allow_tasks, &file.allow_tasks, "allowTasks", findings);
    }
    let mut allowed = |name: Option<&str>, list, in_file: Option<&Names>, code, path: &str, what: &str| {
        let Some(name) = name else { return };
        let hint = if in_file.is_some_and(|names| !names.cover(name)) {
            "have an operator add it to the policy file, if it should be there"
        } else if !is_listed(list, name) {
            "add it to the TaskSpec's own allowlist"
        } else {
            return;
        };
        findings.refuse(code, path, format!("{what} `{}` is not allowed", printable(name)), hint);
    };
    let agents = (policy.allow_agents, file.map(|file| &file.allow_agents));
    let target = spec.target.agent_id.get().map(|id| id.as_str());
    allowed(target, agents.0, agents.1, Code::AgentDenied, "/target/agentId", "the agent");
    let fallback = spec.routing.fallback_agent_id.get().map(|id| id.as_str());
    allowed(
        fallback,
        agents.0,
        agents.1,
        Code::AgentDenied,
        "/routing/fallbackAgentId",
        "the fallback agent",
    );
    let operation = spec.intent.operation.get().map(|operation| operation.as_str());
    let tasks = file.map(|file| &file.allow_tasks);
    allowed(operation, policy.allow_tasks, tasks, Code::TaskDenied, "/intent/operation", "the operation");
    let channel = spec.mention().and_then(|mention| mention.channel.get()).map(|channel| channel.as_str());
    let channels = file.map(|file| &file.allow_channels);
    let path = "/authorship/mentionDelegation/channel";
    allowed(channel, policy.allow_channels, channels, Code::ChannelDenied, path, "the channel");

    if let Some(file) = file
        && spec.is_gated() == Some(false)
        && !file.allow_without_channel
    {
        findings.refuse(
            Code::ChannelDenied,
            "/authorship/mentionDelegationMode",
            "the policy does not allow a handoff that comes from no channel",
            "hand it over by a gated mention, or have an operator set allowWithoutChannel in the policy file",
        );
    }
    file
}

fn file<'p>(
    policy: &Policy<'_>,
    policies: &'p PolicySet,
    findings: &mut Findings,
) -> Option<&'p DelegationPolicy> {
    let policy_ref = policy.policy_ref.get()?.as_str();
    let file = policies.policy(policy_ref);
    if file.is_none() {
        findings.refuse(
            Code::RefUnknown,
            "/authorship/delegationPolicy/policyRef",
            format!("there is no policy `{}`", printable(policy_ref)),
            "name a file of policies/delegation by its path in the workspace",
        );
    }
    file
}

fn principal(spec: &TaskSpec<'_>, file: &DelegationPolicy, findings: &mut Findings) {
    let principal =
        spec.authorship.delegation.envelope.get().and_then(|envelope| envelope.principal_id.get());
    if let Some(principal) = principal
        && !file.principals.cover(principal.as_str())
    {
        findings.refuse(
            Code::PrincipalDenied,
            "/authorship/envelope/principal/id",
            format!("`{}` may not delegate under this policy", printable(principal.as_str())),
            "use a policy that lists this principal",
        );
    }
}

/// Every name on the sender's list must be on the file's.
fn narrows(list: Field<Value<'_>>, file: &Names, member: &str, findings: &mut Findings) {
    let Some(list) = list.get() else { return };
    for (n, name) in list.items().enumerate() {
        let name = name.as_str().unwrap_or_default();
        if !file.cover(name) {
            findings.refuse(
                Code::AllowlistExceeded,
                format!("/authorship/delegationPolicy/{member}/{n}"),
                format!("`{}` is not in the policy file's {member}", printable(name)),
                "a TaskSpec may narrow the policy file, never widen it",
            );
        }
    }
}

/// Is the name on a sender's list, literally? A list that could not be read says nothing here.
pub(super) fn is_listed(list: Field<Value<'_>>, name: &str) -> bool {
    match list {
        Field::Is(list) => list.items().any(|item| item.as_str() == Some(name)),
        Field::Absent | Field::Unreadable => true,
    }
}
