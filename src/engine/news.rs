//! What others appended to the ledger, taken in as a restart would take it.

use std::collections::BTreeSet;

use super::EngineFault;
use super::sequencer::{Sequencer, missing};
use super::task::Task;
use crate::ledger::{Entry, Head};
use crate::timestamp::Timestamp;

impl Sequencer {
    /// Takes in the entries that follow the last durable one: all of them, or none after a fault. Nothing of our own is
    /// being built or written: it would have been decided without them.
    pub(super) fn follow(&mut self, entries: &[Entry]) -> Result<(), EngineFault> {
        let group = self.half_a_group();
        self.follow_all(entries).inspect_err(|_| self.unfollow(group))
    }

    fn follow_all(&mut self, entries: &[Entry]) -> Result<(), EngineFault> {
        let Some(last) = entries.last() else { return Ok(()) };
        let (mut touched, mut next) = (BTreeSet::new(), self.shipped_head().sequence + 1);
        for entry in entries {
            if entry.sequence != next {
                return Err(missing(next));
            }
            touched.extend(self.follow_one(entry)?);
            next += 1;
        }
        let head = Head { sequence: last.sequence, running_hash: last.running_hash };
        let at = Timestamp::parse(&last.consensus_timestamp).ok_or_else(|| missing(last.sequence))?;
        // Read before anything is settled: what was taken in and could not be watched would be forgotten.
        let mut tasks = Vec::with_capacity(touched.len());
        for handoff_id in touched {
            tasks.extend(self.index().task(&handoff_id)?);
        }
        self.followed(head, at);
        self.compare();
        tasks.iter().for_each(|task| self.watch_handoff(task));
        self.overlay_pins();
        Ok(())
    }

    /// What has to be known of a handoff that others moved: when to look at it, and that it is under way.
    fn watch_handoff(&mut self, task: &Task) {
        let handoff_id = &task.handoff_id;
        if let (true, true, Some(route_key)) = (task.is_live(), task.is_in_flight(), &task.route_key) {
            self.take_off(route_key, handoff_id);
        }
        let waits = self.building().inbox.find(handoff_id).is_ok();
        if waits || task.lease_ends().is_some() || (task.is_live() && task.is_in_flight()) {
            let now = self.now();
            self.look_again(now, handoff_id);
        }
    }
}
