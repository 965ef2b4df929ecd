//! Which outcomes of live handoffs roll a route back by themselves.

use super::record::RouteRecord;
use super::rollback::{RollbackAsk, RollbackBy};
use super::stage::Stage;
use crate::contract::Mode;
use crate::json::printable;

/// What rolls a route back by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutomaticRollback {
    /// Codes of failures, with a trailing `*` for any ending.
    pub codes: Vec<String>,
    /// A failure that was reported as critical.
    pub critical: bool,
    /// Another agent than the route's did the work.
    pub wrong_agent: bool,
    /// Any failure in canary, silence too.
    pub canary: bool,
}

impl Default for AutomaticRollback {
    fn default() -> Self {
        let codes = ["POLICY_*", "EXECUTION_SCHEMA_*"].map(str::to_owned).to_vec();
        Self { codes, critical: true, wrong_agent: true, canary: true }
    }
}

/// What became of a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveOutcome<'o> {
    pub handoff_id: &'o str,
    pub mode: Mode,
    /// Who did the work, if anybody took it.
    pub agent: Option<&'o str>,
    pub end: LiveEnd<'o>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveEnd<'o> {
    /// It was never accepted: anybody could cause that, so it says nothing about the route.
    Refused {
        code: &'o str,
    },
    Completed,
    Failed {
        code: &'o str,
        critical: bool,
    },
    /// Nothing was heard of it by its deadline.
    Silent,
    Cancelled,
    /// Its source cancelled it when an agent had begun. In canary that is a failure: whoever asks for the work could end
    /// each run that goes badly before anybody says so, and the agent may be at it still.
    Withdrawn,
}

/// Why a route is rolled back by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub reason: String,
    pub code: Option<String>,
    pub handoff_id: String,
}

impl Trigger {
    pub fn ask(self) -> RollbackAsk {
        let Self { reason, code, handoff_id } = self;
        RollbackAsk { by: RollbackBy::Automatic, block: None, reason, code, handoff_id: Some(handoff_id) }
    }
}

/// Does this outcome roll the route back? Only while it is live: what is rolled back already is not rolled back again.
pub fn calls_for_rollback(
    settings: &AutomaticRollback,
    record: &RouteRecord,
    outcome: &LiveOutcome<'_>,
) -> Option<Trigger> {
    if outcome.mode != Mode::Live || record.stage != Stage::Live {
        return None;
    }
    let id = printable(outcome.handoff_id);
    let in_canary = settings.canary && record.canary.is_some();
    let stranger = outcome.agent.filter(|agent| !record.route().is_some_and(|route| route.reaches(agent)));
    let (reason, code) = match (outcome.end, stranger) {
        (LiveEnd::Refused { .. } | LiveEnd::Cancelled, _) => return None,
        (LiveEnd::Withdrawn, _) if in_canary => {
            (format!("`{id}` was cancelled by its source in canary, with work under way"), None)
        }
        (LiveEnd::Withdrawn, _) => return None,
        (_, Some(agent)) if settings.wrong_agent => {
            (format!("`{id}` was done by `{}`, which is no agent of the route", printable(agent)), None)
        }
        (LiveEnd::Failed { code, critical: true }, _) if settings.critical => {
            (format!("`{id}` failed critically with {}", printable(code)), Some(code))
        }
        (LiveEnd::Failed { code, .. }, _) if settings.codes.iter().any(|pattern| covers(pattern, code)) => {
            (format!("`{id}` failed with {}", printable(code)), Some(code))
        }
        (LiveEnd::Failed { code, .. }, _) if in_canary => {
            (format!("`{id}` failed in canary with {}", printable(code)), Some(code))
        }
        (LiveEnd::Silent, _) if in_canary => {
            (format!("nothing was heard of `{id}` by the canary's deadline"), None)
        }
        _ => return None,
    };
    Some(Trigger { reason, code: code.map(str::to_owned), handoff_id: outcome.handoff_id.to_owned() })
}

fn covers(pattern: &str, code: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => code.starts_with(start),
        None => pattern == code,
    }
}
