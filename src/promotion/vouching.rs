//! G3: who vouches for a run, and whether that counts.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::evaluate::Found;
use super::findings::E2eHandoff;
use super::record::{By, Evidence, RouteRecord};
use crate::contract::Mode;
use crate::json::printable;
use crate::policy::{AgentNames, Route};

/// Who stands behind evidence, beside the name that attached it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Voucher {
    /// The agent that a harness stands for.
    pub agent_id: Option<String>,
    /// The person who registered the harness.
    pub registered_by: Option<String>,
    /// The principal that this person, or the person who attached it, also is.
    pub principal: Option<String>,
}

impl Voucher {
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let Self { agent_id, registered_by, principal } = self;
        [agent_id, registered_by, principal].into_iter().flatten().map(String::as_str)
    }
}

impl E2eHandoff {
    /// The first of these names that is the run's own: its source's, its target's, of who claimed it, or of another agent
    /// of its route. An agent's word on its own work is no evidence, under whichever name it gives it.
    pub fn own_among<'n>(
        &self,
        route: Option<&Route>,
        names: &AgentNames,
        mut among: impl Iterator<Item = &'n str>,
    ) -> Option<&'n str> {
        let ends = [Some(&self.source_agent), Some(&self.target_agent), self.claimed_by.as_ref()];
        let ends = ends.into_iter().flatten().map(String::as_str);
        let own: BTreeSet<&str> = ends
            .chain(route.into_iter().flat_map(Route::agents))
            .flat_map(|agent| names.all(agent))
            .collect();
        among.find(|name| own.contains(name))
    }
}

/// G3: a handoff was completed since G2's window began, and somebody who is neither end of it says so with evidence.
pub(super) fn end_to_end(
    record: &RouteRecord,
    handoffs: &[E2eHandoff],
    names: &AgentNames,
    found: &mut Found,
) {
    let mut against = Vec::new();
    for evidence in record.evidence.iter().rev() {
        let Some(handoff) = handoffs.iter().find(|handoff| handoff.handoff_id == evidence.handoff_id) else {
            continue;
        };
        match holds(record, evidence, handoff, names) {
            Ok(completed) => {
                found.evidence = vec![completed, evidence.sequence];
                found.handoff_id = Some(handoff.handoff_id.clone());
                found.plan_ref.clone_from(&handoff.plan_ref);
                return;
            }
            Err(why) => against
                .push(format!("evidence on `{}` does not count: {why}", printable(&handoff.handoff_id))),
        }
    }
    let hint = "have an operator, or a registered harness where `safety.e2eActor` is `authorized-harness`, attach a \
                runId, traceId or report to a handoff that was completed since G1 and since the last rollback";
    if against.is_empty() {
        found.lacks("no evidence of an authorized end-to-end run is attached", hint);
    }
    for what in against {
        found.lacks(what, hint);
    }
}

/// Does a piece of evidence count? Where the handoff was completed, or why not.
fn holds(
    record: &RouteRecord,
    evidence: &Evidence,
    handoff: &E2eHandoff,
    names: &AgentNames,
) -> Result<u64, String> {
    let name = match &evidence.by {
        By::Human(name) => name,
        By::Runner(name) if handoff.e2e_actor == "authorized-harness" => name,
        By::Runner(_) => return Err("a harness attached it, and the TaskSpec asks for a human".to_owned()),
        By::System | By::Agent(_) => return Err("no operator or harness attached it".to_owned()),
    };
    // Names may have been given to agents since it was attached.
    let said_by = std::iter::once(name.as_str()).chain(evidence.voucher.names());
    if let Some(name) = handoff.own_among(record.route(), names, said_by) {
        return Err(format!("`{}` is one of its own ends", printable(name)));
    }
    if handoff.mode.is_none_or(|mode| mode == Mode::Dev) {
        return Err("it ran in dev, which is no rehearsal of live work".to_owned());
    }
    if evidence.run_id.is_none() && evidence.trace_id.is_none() && evidence.report.is_none() {
        return Err("it has no runId, traceId or report".to_owned());
    }
    let window = record.e2e_window().unwrap_or(u64::MAX);
    match handoff.completed {
        None => Err("it is not completed".to_owned()),
        Some(completed) if completed <= window => {
            Err("it was completed before G1 or before the last rollback".to_owned())
        }
        Some(_) if evidence.sequence <= window => {
            Err("it was attached before G1 or before the last rollback".to_owned())
        }
        Some(completed) => Ok(completed),
    }
}
