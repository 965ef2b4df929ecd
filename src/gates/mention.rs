//! D4: a mention is only a trigger. It must be delegated, fresh, and not one bot calling itself.
//!
//! This is the form of it. Whether the message was used before, and whether mentions are let through at
//! all in this phase, are claims.

use super::codes::Code;
use super::verdict::Findings;
use crate::contract::{Mention, TaskSpec};
use crate::json::printable;
use crate::limits;
use crate::policy::PolicySet;
use crate::timestamp::Timestamp;

/// Returns until when the mention counts.
pub(super) fn judge(
    spec: &TaskSpec<'_>,
    policies: &PolicySet,
    now: Timestamp,
    findings: &mut Findings,
) -> Option<Timestamp> {
    if spec.is_delegated() == Some(false) {
        findings.refuse(
            Code::MentionNotDelegated,
            "/authorship/mode",
            "a mention by itself authorizes nothing",
            "set authorship.mode to delegated-human-proxy and send the principal's envelope",
        );
    }
    let mention = spec.authorship.mention.get()?;
    bots(spec, &mention, policies, findings);
    time(&mention, now, findings)
}

fn bots(spec: &TaskSpec<'_>, mention: &Mention<'_>, policies: &PolicySet, findings: &mut Findings) {
    let (origin, target) = (mention.origin_bot_id.get(), mention.target_bot_id.get());
    // One fault, one reason: a bot that calls itself cannot also be both ends.
    if let (Some(origin), Some(target)) = (origin, target)
        && policies.are_one(origin.as_str(), target.as_str())
    {
        let message = if origin == target {
            format!("`{}` would answer its own mention", printable(origin.as_str()))
        } else {
            let (origin, target) = (printable(origin.as_str()), printable(target.as_str()));
            format!("`{origin}` would answer its own mention: `{target}` is another name of it")
        };
        return findings.refuse(
            Code::MentionLoop,
            "/authorship/mentionDelegation/targetBotId",
            message,
            "drop the mention; originBotId and targetBotId must be two agents",
        );
    }
    let mut differs = |bot: Option<&str>, agent: Option<&str>, member: &str, end: &str| {
        if let (Some(bot), Some(agent)) = (bot, agent)
            && bot != agent
        {
            findings.refuse(
                Code::MentionBotMismatch,
                format!("/authorship/mentionDelegation/{member}"),
                format!("`{}` is not the {end} agent `{}`", printable(bot), printable(agent)),
                format!("{member} is the {end}'s agentId"),
            );
        }
    };
    let source_id = spec.source.agent_id.get().map(|id| id.as_str());
    let target_id = spec.target.agent_id.get().map(|id| id.as_str());
    differs(origin.map(|bot| bot.as_str()), source_id, "originBotId", "source");
    differs(target.map(|bot| bot.as_str()), target_id, "targetBotId", "target");
}

fn time(mention: &Mention<'_>, now: Timestamp, findings: &mut Findings) -> Option<Timestamp> {
    let observed_at = mention.observed_at.get()?;
    if observed_at > now.plus_seconds(limits::SKEW_S) {
        findings.refuse(
            Code::MentionFromFuture,
            "/authorship/mentionDelegation/observedAt",
            format!("the mention was seen at {observed_at}; it is {now}"),
            "stamp the mention when it is seen, and check the clocks",
        );
    }
    let until = observed_at.plus_seconds(mention.ttl_seconds.get()?);
    if until <= now {
        findings.refuse(
            Code::MentionExpired,
            "/authorship/mentionDelegation/ttlSeconds",
            format!("the mention counted until {until}; it is {now}"),
            "have the person mention the bot again",
        );
    }
    Some(until)
}
