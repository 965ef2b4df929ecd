//! The parts of the document, each serialized when it changes and not again.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::proof::{object, write_object};

/// A handoff that is under way, or ended a short while ago.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ActiveHandoff {
    pub(super) status: Cow<'static, str>,
    pub(super) mode: String,
    pub(super) source_agent: String,
    pub(super) target_agent: String,
    pub(super) route_key: String,
    pub(super) last_updated_at: String,
    pub(super) last_error_code: Option<String>,
}

impl ActiveHandoff {
    pub(super) fn render(&self) -> String {
        object(256, |members| {
            members.text_or_null("lastErrorCode", self.last_error_code.as_deref());
            members.text("lastUpdatedAt", &self.last_updated_at);
            members.text("mode", &self.mode);
            members.text("routeKey", &self.route_key);
            members.text("sourceAgent", &self.source_agent);
            members.text("status", &self.status);
            members.text("targetAgent", &self.target_agent);
        })
    }
}

/// A route as it was declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteState {
    pub(super) capability: String,
    pub(super) primary_agent_id: String,
    pub(super) fallback_agent_id: Option<String>,
    pub(super) stage: String,
}

impl RouteState {
    pub(super) fn render_route(&self) -> String {
        object(128, |members| {
            members.text("capability", &self.capability);
            members.text_or_null("fallbackAgentId", self.fallback_agent_id.as_deref());
            members.text("primaryAgentId", &self.primary_agent_id);
        })
    }

    /// The stage that comes next, if there is one.
    fn candidate_stage(&self) -> Option<&'static str> {
        match self.stage.as_str() {
            "dev" => Some("simulated"),
            "simulated" => Some("live"),
            _ => None,
        }
    }

    pub(super) fn render_promotion(&self) -> String {
        object(192, |members| {
            members.null("approvedAt");
            members.null("approvedBy");
            members.flag("blocked", false);
            members.flag("canary", false);
            members.text_or_null("candidateStage", self.candidate_stage());
            members.text("currentStage", &self.stage);
            members.text("gateStatus", "pending");
            members.null("lastGatePassed");
        })
    }

    /// How far it has come, for finding the least advanced one.
    pub(super) fn rank(&self) -> u8 {
        match self.stage.as_str() {
            "dev" => 0,
            "simulated" => 1,
            _ => 2,
        }
    }
}

/// The promotion block: the least advanced route speaks for all, so that a reader that knows only the top
/// level errs on the safe side.
pub(super) fn write_promotion<'r>(
    text: &mut String,
    least: Option<&RouteState>,
    routes: impl Iterator<Item = (&'r str, &'r str)>,
) {
    write_object(text, |members| {
        members.null("approvedAt");
        members.null("approvedBy");
        members.text_or_null("candidateStage", least.map_or(Some("simulated"), RouteState::candidate_stage));
        members.text("currentStage", least.map_or("dev", |route| &route.stage));
        members.text("gateStatus", "pending");
        members.null("lastGatePassed");
        members.with("routes", |text| write_map(text, routes));
    });
}

/// An object of fragments by their names.
pub(super) fn write_map<'r>(text: &mut String, fragments: impl Iterator<Item = (&'r str, &'r str)>) {
    text.push('{');
    for (n, (name, fragment)) in fragments.enumerate() {
        if n > 0 {
            text.push(',');
        }
        crate::proof::write_text(text, name);
        text.push(':');
        text.push_str(fragment);
    }
    text.push('}');
}
