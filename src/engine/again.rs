//! What is answered where the same was asked before: the decision as it now stands, and what may still go out with it.

use super::EngineFault;
use super::candidate::Candidate;
use super::decide::{holds_until, reaches, still_covered};
use super::record::{Decided, Pass};
use super::routing::mode_of;
use super::sequencer::Sequencer;
use super::standing::Standing;
use crate::gates::Decision;
use crate::timestamp::Timestamp;

impl Sequencer {
    /// The decision as it now stands, for the same key with the same content.
    pub(super) fn given_again(
        &self,
        decided: &Decided,
        candidate: &Candidate,
        now: Timestamp,
    ) -> Result<Decided, EngineFault> {
        let standing = self.building();
        let pass = match decided.decision {
            Decision::Allowed
                if is_good(candidate, standing, now) && self.may_go_out(decided, candidate)? =>
            {
                Pass::Dispatch { until: holds_until(candidate, standing) }
            }
            Decision::Allowed => Pass::Withheld,
            Decision::NeedsApproval => {
                let waiting = decided.handoff_id.as_deref().and_then(|id| standing.inbox.find(id).ok());
                waiting.map_or(Pass::Withheld, |waiting| Pass::Waits { until: waiting.until })
            }
            Decision::Denied | Decision::Expired => Pass::None,
        };
        let allowed = decided.decision == Decision::Allowed;
        let tag = decided.tag.or_else(|| allowed.then(|| candidate.tag()).flatten());
        Ok(Decided { replayed: true, pass, tag, ..decided.clone() })
    }

    /// May an allowed handoff still be dispatched? Not once it has ended, not while it is halted or may have happened, and
    /// not along a route that was set back since, or that has become another one: its payload would be another one, too.
    fn may_go_out(&self, decided: &Decided, candidate: &Candidate) -> Result<bool, EngineFault> {
        let Some(handoff_id) = &decided.handoff_id else { return Ok(false) };
        let Some(task) = self.index().task(handoff_id)? else { return Ok(false) };
        let (Some(key), Some(mode)) = (task.route_key.as_deref(), mode_of(task.mode.as_deref())) else {
            return Ok(false);
        };
        let standing = self.building();
        let is_another = standing.is_another_since(key, decided.ledger.sequence);
        // Its own slot in the canary is not held against it.
        let is_carried = !is_another && reaches(key, mode, candidate, standing).is_ok();
        Ok(is_carried && !task.is_over() && !task.may_have_happened() && self.halt(&task).is_none())
    }
}

/// Does all that a handoff rests on still count: what the gates look at, the stamps of this epoch, and the grant that it
/// names?
fn is_good(candidate: &Candidate, standing: &Standing, now: Timestamp) -> bool {
    let mut void = standing.epoch.iter().flat_map(|epoch| candidate.stamps.void_in(epoch));
    candidate.verdict.reasons().is_empty() && void.next().is_none() && still_covered(candidate, standing, now)
}
