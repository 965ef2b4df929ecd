//! Claims of one kind that are in memory, each with the entry that the views must have applied before it may go.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Shelf<V> {
    items: HashMap<Arc<str>, Item<V>>,
    /// In the order in which they were put: the entry, and the name.
    order: VecDeque<(u64, Arc<str>)>,
}

#[derive(Debug, Clone)]
pub(super) struct Item<V> {
    /// The entry that made it so.
    sequence: u64,
    value: V,
}

impl<V> Default for Shelf<V> {
    fn default() -> Self {
        Self { items: HashMap::new(), order: VecDeque::new() }
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

    /// Puts a claim that entry `sequence` makes, and says what was there before.
    pub(super) fn put(&mut self, name: &Arc<str>, sequence: u64, value: V) -> Option<Item<V>> {
        self.order.push_back((sequence, name.clone()));
        self.items.insert(name.clone(), Item { sequence, value })
    }

    /// Puts back what was there before.
    pub(super) fn restore(&mut self, name: Arc<str>, before: Option<Item<V>>) {
        match before {
            Some(item) => {
                // Its own place in the order may be gone by now.
                self.order.push_front((item.sequence, name.clone()));
                self.items.insert(name, item);
            }
            None => drop(self.items.remove(&name)),
        }
    }

    /// Lets the oldest go until `kept` are left, but none that the views have not applied.
    pub(super) fn forget(&mut self, applied: u64, kept: usize) {
        while self.order.len() > kept
            && self.order.front().is_some_and(|(sequence, _)| *sequence <= applied)
            && let Some((sequence, name)) = self.order.pop_front()
        {
            // One that was put again stays until that entry is applied.
            if self.items.get(&name).is_some_and(|item| item.sequence <= sequence) {
                self.items.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        let mut again = shelf(&[("a", 2), ("b", 5)]);
        let before = again.put(&name, 8, 8);
        again.forget(5, 0);
        again.restore(name, before);
        assert_eq!(again.get("a"), Some(&2));
        check(again, 5, 0, &[]);
    }
}
