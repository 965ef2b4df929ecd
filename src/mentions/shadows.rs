//! Shadow claims: messages that only the phase held back, so that a second handoff of one is counted as a duplicate.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use crate::proof::Digest;

/// What is remembered of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shadow {
    /// Nothing: it would be the first.
    First,
    /// The very same content came before: an identical replay, which is not observed again.
    Same,
    /// It would have been used before, for something else.
    Duplicate,
}

/// Names in the order in which they came, at most so many: the newest push the oldest out. Its copies share what did
/// not change, as the book of grants does.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Newest<V: Clone + PartialEq> {
    max: usize,
    by_name: RedBlackTreeMapSync<Arc<str>, V>,
    /// By the entry of the ledger that brought them.
    in_order: RedBlackTreeMapSync<u64, Arc<str>>,
}

pub(super) type Shadows = Newest<Digest>;

impl<V: Clone + PartialEq> Newest<V> {
    pub(super) fn at_most(max: usize) -> Self {
        Self { max, by_name: RedBlackTreeMapSync::new_sync(), in_order: RedBlackTreeMapSync::new_sync() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&V> {
        self.by_name.get(name)
    }

    pub(super) fn count(&self) -> usize {
        self.by_name.size()
    }

    /// Remembers a name, unless it is known.
    pub(super) fn add(&mut self, name: &str, value: V, sequence: u64) {
        if self.by_name.contains_key(name) {
            return;
        }
        let name: Arc<str> = Arc::from(name);
        self.by_name.insert_mut(name.clone(), value);
        self.in_order.insert_mut(sequence, name);
        while self.by_name.size() > self.max {
            let Some((oldest, name)) = self.in_order.first() else { return };
            let (oldest, name) = (*oldest, name.clone());
            self.in_order.remove_mut(&oldest);
            self.by_name.remove_mut(&name);
        }
    }
}
