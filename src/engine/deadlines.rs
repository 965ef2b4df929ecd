//! When to look at which handoff.
//!
//! Hints: whoever looks finds out whether there is anything to do, so nothing has to be taken back when a batch fails;
//! what was looked at for it is looked at again.
//! There is one for a handoff, however often it moves, so that a busy one does not fill memory.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::timestamp::Timestamp;

#[derive(Debug, Default)]
pub(super) struct Deadlines {
    by_time: BTreeSet<(Timestamp, Arc<str>)>,
    by_name: HashMap<Arc<str>, Timestamp>,
}

impl Deadlines {
    /// Looks at a handoff at that time; if it is to be looked at before that anyway, whoever does will see.
    pub(super) fn look_again(&mut self, at: Timestamp, handoff_id: &str) {
        match self.by_name.get_key_value(handoff_id) {
            Some((_, before)) if *before <= at => {}
            Some((name, before)) => {
                let (name, before) = (name.clone(), *before);
                self.by_time.remove(&(before, name.clone()));
                self.by_time.insert((at, name.clone()));
                self.by_name.insert(name, at);
            }
            None => {
                let name: Arc<str> = handoff_id.into();
                self.by_time.insert((at, name.clone()));
                self.by_name.insert(name, at);
            }
        }
    }

    /// The next handoff whose time has come.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Arc<str>> {
        self.by_time.first().filter(|(at, _)| *at <= now)?;
        let (_, name) = self.by_time.pop_first()?;
        self.by_name.remove(&name);
        Some(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }
}

/// What was looked at, and led to something that is not durable yet: if that fails it has to be looked at again.
#[derive(Debug, Default)]
pub(super) struct Looked {
    in_flight: Vec<Arc<str>>,
    building: Vec<Arc<str>>,
}

impl Looked {
    pub(super) fn add(&mut self, handoff_id: Arc<str>) {
        self.building.push(handoff_id);
    }

    pub(super) fn ship(&mut self) {
        self.in_flight = std::mem::take(&mut self.building);
    }

    pub(super) fn keep(&mut self) {
        self.in_flight.clear();
    }

    pub(super) fn drop_building(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.building)
    }

    pub(super) fn give_back(&mut self) -> Vec<Arc<str>> {
        let mut all = std::mem::take(&mut self.in_flight);
        all.append(&mut self.building);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::parse("2026-02-18T19:38:00Z").unwrap().plus_seconds(seconds)
    }

    #[test]
    fn a_handoff_is_looked_at_once_at_the_earliest_time_that_was_asked_for() {
        let mut deadlines = Deadlines::default();
        for seconds in [30, 20, 40, 25] {
            deadlines.look_again(at(seconds), "a");
        }
        deadlines.look_again(at(10), "b");
        assert_eq!((deadlines.by_time.len(), deadlines.by_name.len()), (2, 2));
        assert_eq!(deadlines.due(at(9)), None);
        assert_eq!(deadlines.due(at(10)).as_deref(), Some("b"));
        assert_eq!(deadlines.due(at(19)), None);
        assert_eq!(deadlines.due(at(60)).as_deref(), Some("a"));
        assert!(deadlines.due(at(60)).is_none() && deadlines.is_empty() && deadlines.by_name.is_empty());
        // Looked at, it can be asked for again.
        deadlines.look_again(at(70), "a");
        assert_eq!(deadlines.due(at(70)).as_deref(), Some("a"));
    }
}
