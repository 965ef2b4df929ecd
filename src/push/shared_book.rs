//! The book where gateways share it: what is kept is in their database, and in memory is what this gateway tells.

use std::collections::HashSet;
use std::io;

use super::book::{Book, BookFault, lock};
use super::owner::Owner;
use super::registration::{Delivery, Registration};
use super::shared::SharedShelf;
use super::stored;
use crate::a2a::TaskId;
use crate::limits;

impl Book {
    pub(super) fn set_shared(
        &self,
        shelf: &SharedShelf,
        mut registration: Registration,
    ) -> Result<Option<Registration>, BookFault> {
        let (replaced, delivered) = shelf.set(&registration)?;
        registration.delivered = delivered;
        replaced.iter().for_each(|known| self.drop_one(&known.task, &known.push_id));
        self.adopt(registration);
        Ok(replaced)
    }

    /// As all gateways are shown them; of what this one tells it knows more than it has written down.
    pub(super) fn list_shared(
        &self,
        shelf: &SharedShelf,
        task: &TaskId,
        owner: &Owner,
    ) -> io::Result<Vec<Registration>> {
        let mut all = shelf.list(task, owner)?;
        for known in all.iter_mut().filter(|known| known.delivery.is_open()) {
            if let Some(own) = self.open_one(task, &known.push_id) {
                *known = own;
            }
        }
        Ok(all)
    }

    /// Should it not be written down, it is this gateway's to tell once more.
    pub(super) fn end_shared(
        &self,
        shelf: &SharedShelf,
        task: &TaskId,
        push_id: &str,
        how: Delivery,
    ) -> Option<Registration> {
        let mut ended = self.open_one(task, push_id)?;
        self.drop_one(task, push_id);
        ended.delivery = how;
        ended.forget_secrets();
        shelf.end(&ended).is_ok_and(|is_ours| is_ours).then_some(ended)
    }

    /// Says that it goes on, and drops and takes in what was lost and won since the last time.
    pub(super) fn keep_shared(&self, shelf: &SharedShelf) -> io::Result<Vec<TaskId>> {
        let (told, kept) = {
            let mut state = lock(&self.state);
            state.kept += 1;
            let ahead = std::mem::take(&mut state.ahead);
            let known = state.tasks.values().flatten().filter(|known| ahead.contains(&known.push_id));
            let told: Vec<_> = known.map(|known| (known.push_id.clone(), stored::progress(known))).collect();
            (told, state.kept)
        };
        let held = shelf.hold(&told).inspect_err(|_| {
            lock(&self.state).ahead.extend(told.iter().map(|(push_id, _)| push_id.clone()));
        })?;
        let held: HashSet<String> = held.into_iter().collect();
        let new: Vec<String> = {
            let mut state = lock(&self.state);
            for of_task in state.tasks.values_mut() {
                of_task.retain(|known| held.contains(&known.push_id));
            }
            state.tasks.retain(|_, of_task| !of_task.is_empty());
            let known: HashSet<&String> =
                state.tasks.values().flatten().map(|known| &known.push_id).collect();
            let is_new = |push_id: &&String| !known.contains(push_id) && !state.broken.contains(*push_id);
            held.iter().filter(is_new).cloned().collect()
        };
        if kept % limits::PUSH_FORGET_EVERY == 1 {
            shelf.forget()?;
        }
        let mut tasks = Vec::new();
        for taken in if new.is_empty() { Vec::new() } else { shelf.held(&new)? } {
            match taken {
                Ok(known) => {
                    tasks.push(known.task.clone());
                    self.adopt(known);
                }
                Err(push_id) => {
                    tracing::error!(push_id, "a push config cannot be read; nobody is told");
                    lock(&self.state).broken.insert(push_id);
                }
            }
        }
        Ok(tasks)
    }

    fn adopt(&self, registration: Registration) {
        let mut state = lock(&self.state);
        state.tasks.entry(registration.task.clone()).or_default().push(registration);
    }

    /// It is not this gateway's to tell any more.
    pub(super) fn drop_one(&self, task: &TaskId, push_id: &str) {
        let mut state = lock(&self.state);
        let Some(of_task) = state.tasks.get_mut(task) else { return };
        of_task.retain(|known| known.push_id != push_id);
        if of_task.is_empty() {
            state.tasks.remove(task);
        }
    }
}
