//! Claims of one kind that are in memory, each with the entry that the views must have applied before it may go.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Shelf<V> {
    items: HashMap<Arc<str>, Item<V>>,
    /// In the order in which they were put: the entry, and the name.
    order: VecDeque<(u64, Arc<str>)>,
    /// The place of the first of them: how many have left the order.
    first_place: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Item<V> {
    /// The entry that made it so.
    sequence: u64,
    /// Which one it was, of all that were put.
    place: u64,
    value: V,
}

impl<V> Default for Shelf<V> {
    fn default() -> Self {
        Self { items: HashMap::new(), order: VecDeque::new(), first_place: 0 }
    }
}

impl<V> Shelf<V> {
    pub(super) fn get(&self, name: &str) -> Option<&V> {
        self.items.get(name).map(|item| &item.value)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &V)> {
        self.items.iter().map(|(name, item)| (&**name, &item.value))
    }

    /// How many there are, those that were put more than once counted as often.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    fn next_place(&self) -> u64 {
        self.first_place + self.order.len() as u64
    }

    /// Puts a claim that entry `sequence` makes, and says what was there before.
    pub(super) fn put(&mut self, name: &Arc<str>, sequence: u64, value: V) -> Option<Item<V>> {
        let place = self.next_place();
        self.order.push_back((sequence, name.clone()));
        self.items.insert(name.clone(), Item { sequence, place, value })
    }

    /// Takes back the claim that was put last, of those that were not taken back, and puts back what was there before,
    /// unless the views have that by now.
    pub(super) fn restore(&mut self, name: Arc<str>, before: Option<Item<V>>) {
        let taken_back = self.items.remove(&name);
        if taken_back.is_some_and(|item| item.place + 1 == self.next_place()) {
            // What is not durable is not applied, so it has not left.
            self.order.pop_back();
        }
        if let Some(item) = before.filter(|item| item.place >= self.first_place) {
            self.items.insert(name, item);
        }
    }

    /// Lets the oldest go until `kept` are left, but none that the views have not applied.
    pub(super) fn forget(&mut self, applied: u64, kept: usize) {
        while self.order.len() > kept
            && self.order.front().is_some_and(|(sequence, _)| *sequence <= applied)
            && let Some((sequence, name)) = self.order.pop_front()
        {
            self.first_place += 1;
            // One that was put again stays until that entry is applied.
            if self.items.get(&name).is_some_and(|item| item.sequence <= sequence) {
                self.items.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shelf(put: &[(&str, u64)]) -> Shelf<u64> {
        let mut shelf = Shelf::default();
        for (name, sequence) in put {
            shelf.put(&Arc::from(*name), *sequence, *sequence);
        }
        shelf
    }

    #[track_caller]
    fn check(mut shelf: Shelf<u64>, applied: u64, kept: usize, left: &[&str]) {
        shelf.forget(applied, kept);
        let mut names: Vec<&str> = shelf.items.keys().map(|name| &**name).collect();
        names.sort_unstable();
        assert_eq!(names, left);
    }

    #[test]
    fn only_what_is_applied_goes_and_the_oldest_first() {
        let put = [("a", 2), ("b", 5), ("c", 8)];
        check(shelf(&put), 0, 0, &["a", "b", "c"]);
        check(shelf(&put), 5, 0, &["c"]);
        check(shelf(&put), 4, 0, &["b", "c"]);
        check(shelf(&put), 8, 2, &["b", "c"]);
        check(shelf(&put), 8, 0, &[]);
        // Put again by a later entry: that one counts.
        check(shelf(&[("a", 2), ("b", 5), ("a", 8)]), 5, 0, &["a"]);
        check(shelf(&[("a", 2), ("b", 5), ("a", 8)]), 8, 0, &[]);
    }

    #[test]
    fn what_is_put_back_can_go_too() {
        let name: Arc<str> = Arc::from("a");
        for (applied, left) in [(1, Some(&2)), (2, None), (5, None)] {
            let mut again = shelf(&[("a", 2), ("b", 5)]);
            let before = again.put(&name, 8, 8);
            again.forget(applied, 0);
            again.restore(name.clone(), before);
            assert_eq!(again.get("a"), left, "what has left is in the views");
            check(again, 5, 0, &[]);
        }
    }

    #[test]
    fn what_was_taken_back_takes_no_room() {
        let mut shelf = shelf(&[("a", 2)]);
        for _ in 0..5 {
            let names = ["a", "b", "a"].map(Arc::<str>::from);
            let before = names.each_ref().map(|name| shelf.put(name, 9, 9));
            assert_eq!(shelf.len(), 4);
            for (name, before) in names.into_iter().zip(before).rev() {
                shelf.restore(name, before);
            }
            assert_eq!((shelf.len(), shelf.items.len(), shelf.get("a")), (1, 1, Some(&2)));
        }
        check(shelf, 2, 0, &[]);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Put(u8),
        /// The batch that is being built is durable.
        Keep,
        /// It failed.
        GiveBack,
        /// The views come so much nearer, and all that can leave leaves, but for so many.
        Forget(u64, usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0..6u8).prop_map(Step::Put),
            2 => Just(Step::Keep),
            2 => Just(Step::GiveBack),
            2 => (0..8u64, 0..4usize).prop_map(|(nearer, kept)| Step::Forget(nearer, kept)),
        ];
        proptest::collection::vec(step, 1..80)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Held against a list of all that was ever kept: whatever the views have not applied is there, as it was put last,
        /// and nothing counts that is not.
        #[test]
        fn a_shelf_holds_what_is_not_applied_and_counts_nothing_else(steps in steps()) {
            let mut shelf = Shelf::default();
            let (mut kept, mut building, mut undo) = (Vec::new(), Vec::new(), Vec::new());
            let (mut durable, mut applied) = (0, 0);
            for step in steps {
                match step {
                    Step::Put(n) => {
                        let name: Arc<str> = n.to_string().into();
                        let sequence = durable + building.len() as u64 + 1;
                        undo.push((name.clone(), shelf.put(&name, sequence, sequence)));
                        building.push((sequence, name));
                    }
                    Step::Keep => {
                        durable += building.len() as u64;
                        kept.append(&mut building);
                        undo.clear();
                    }
                    Step::GiveBack => {
                        building.clear();
                        undo.drain(..).rev().for_each(|(name, before)| shelf.restore(name, before));
                    }
                    Step::Forget(nearer, at_hand) => {
                        applied = durable.min(applied + nearer);
                        shelf.forget(applied, at_hand);
                    }
                }
                let live = || kept.iter().chain(&building).filter(|(sequence, _)| *sequence > applied);
                for (_, name) in live() {
                    let last = live().filter(|(_, other)| other == name).map(|(sequence, _)| *sequence).max();
                    prop_assert_eq!(shelf.get(name).copied(), last);
                }
                prop_assert!(shelf.len() >= live().count() && shelf.len() >= shelf.items.len());
                prop_assert!(shelf.len() <= kept.len() + building.len());
            }
            undo.drain(..).rev().for_each(|(name, before)| shelf.restore(name, before));
            shelf.forget(durable, 0);
            prop_assert_eq!((shelf.len(), shelf.items.len()), (0, 0), "all of it can leave");
        }
    }
}
