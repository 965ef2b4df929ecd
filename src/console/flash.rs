//! What a person is told on the next page: that what they asked for was done.
//!
//! Kept beside the session and not in the address, so that no link can make a page say that something was done.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::callers::Session;
use crate::limits;

#[derive(Debug, Default)]
pub(super) struct Flashes {
    by_session: Mutex<HashMap<String, String>>,
}

impl Flashes {
    pub(super) fn put(&self, session: &Session, told: String) {
        let mut all = self.by_session.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= limits::SESSIONS_MAX {
            all.clear();
        }
        all.insert(session.form_word.clone(), told);
    }

    pub(super) fn take(&self, session: &Session) -> Option<String> {
        let mut all = self.by_session.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&session.form_word)
    }
}
