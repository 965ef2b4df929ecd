//! The parts of the document, each serialized when it changes and not again.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::promotion::{Declared, GateStatus, PromotionGate, RouteRecord, Stage};
use crate::proof::{Members, object, write_object, write_text};

/// A handoff that is under way, or ended a short while ago.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ActiveHandoff<'h> {
    #[serde(borrow)]
    pub(super) status: Cow<'h, str>,
    #[serde(borrow)]
    pub(super) mode: Cow<'h, str>,
    #[serde(borrow)]
    pub(super) source_agent: Cow<'h, str>,
    #[serde(borrow)]
    pub(super) target_agent: Cow<'h, str>,
    #[serde(borrow)]
    pub(super) route_key: Cow<'h, str>,
    #[serde(borrow)]
    pub(super) last_updated_at: Cow<'h, str>,
    pub(super) last_error_code: Option<String>,
}

impl ActiveHandoff<'_> {
    pub(super) fn show(&self, handoff_id: &str) -> Shown {
        let mut text = String::with_capacity(320);
        write_text(&mut text, handoff_id);
        text.push(':');
        let named = text.len();
        write_object(&mut text, |members| {
            members.text_or_null("lastErrorCode", self.last_error_code.as_deref());
            members.text("lastUpdatedAt", &self.last_updated_at);
            members.text("mode", &self.mode);
            members.text("routeKey", &self.route_key);
            members.text("sourceAgent", &self.source_agent);
            members.text("status", &self.status);
            members.text("targetAgent", &self.target_agent);
        });
        // Kept for as long as the handoff is shown, and there may be many.
        text.shrink_to_fit();
        Shown { named, text }
    }
}

/// A handoff as a member of the object of handoffs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Shown {
    /// How long the name in front is.
    named: usize,
    text: String,
}

impl Shown {
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The handoff again.
    pub(super) fn read(&self) -> Option<ActiveHandoff<'_>> {
        serde_json::from_str(self.text.get(self.named..)?).ok()
    }
}

/// The object of handoffs.
pub(super) fn write_shown<'s>(text: &mut String, handoffs: impl Iterator<Item = &'s Shown>) {
    text.push('{');
    for (n, handoff) in handoffs.enumerate() {
        text.push_str(if n > 0 { "," } else { "" });
        text.push_str(&handoff.text);
    }
    text.push('}');
}

/// A route of the routing table.
pub(super) fn render_route(route: &Declared) -> String {
    object(128, |members| {
        members.text("capability", &route.capability);
        members.text_or_null("fallbackAgentId", route.fallback_agent_id.as_deref());
        members.text("primaryAgentId", &route.primary_agent_id);
    })
}

/// How far a route has come.
pub(super) fn render_promotion(record: &RouteRecord) -> String {
    object(192, |members| {
        write_approved(members, Some(record));
        members.flag("blocked", record.blocked);
        members.flag("canary", record.canary.is_some());
        write_stages(members, Some(record));
    })
}

fn write_approved(members: &mut Members<'_>, record: Option<&RouteRecord>) {
    let approved = record.and_then(|record| record.approved());
    members.text_or_null("approvedAt", approved.map(|(_, at)| at.to_string()).as_deref());
    members.text_or_null("approvedBy", approved.map(|(name, _)| name));
}

fn write_stages(members: &mut Members<'_>, record: Option<&RouteRecord>) {
    let candidate = record.map_or(Some(Stage::Simulated), |record| record.candidate_stage());
    members.text_or_null("candidateStage", candidate.map(Stage::as_str));
    members.text("currentStage", record.map_or(Stage::Dev, |record| record.stage).as_str());
    let status = record.map_or(GateStatus::Pending, |record| record.status);
    members.text("gateStatus", status.as_str());
    let last = record.and_then(|record| record.last_gate_passed());
    members.text_or_null("lastGatePassed", last.map(PromotionGate::as_str));
}

/// The promotion block: the least advanced route speaks for all, so that a reader that knows only the top
/// level errs on the safe side.
pub(super) fn write_promotion<'r>(
    text: &mut String,
    least: Option<&RouteRecord>,
    routes: impl Iterator<Item = (&'r str, &'r str)>,
) {
    write_object(text, |members| {
        write_approved(members, least);
        write_stages(members, least);
        members.with("routes", |text| write_map(text, routes));
    });
}

/// The rollback block: the newest one there was.
pub(super) fn write_rollback(text: &mut String, newest: Option<&RouteRecord>) {
    write_object(text, |members| {
        let last = newest.and_then(|record| record.last_rollback.as_ref());
        members.text_or_null("lastRollbackAt", last.map(|last| last.at.to_string()).as_deref());
        members.text_or_null("lastRollbackReason", last.map(|last| last.reason.as_str()));
        members.text_or_null("planRef", newest.and_then(|record| record.plan_ref()));
        members.flag("required", true);
    });
}

/// An object of fragments by their names.
pub(super) fn write_map<'r>(text: &mut String, fragments: impl Iterator<Item = (&'r str, &'r str)>) {
    text.push('{');
    for (n, (name, fragment)) in fragments.enumerate() {
        if n > 0 {
            text.push(',');
        }
        write_text(text, name);
        text.push(':');
        text.push_str(fragment);
    }
    text.push('}');
}
