//! What is wrong with the file although it is written to.

use std::path::Path;

use super::{Own, ViewsProgress};
use crate::os::files::{is_empty, may_read};

/// Why nobody could open the views now, though they follow. A file that somebody deleted or replaced goes on to be written,
/// and whatever has it open sees every entry. One that was emptied is read by nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gateway) enum Trouble {
    Gone,
    /// What is in the file alone is old, or no longer fits together.
    JournalGone,
    Unreadable(String),
    /// A question met damage in it.
    Damaged(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone => f.write_str("memory/views.db was deleted, replaced or emptied while in use"),
            Self::JournalGone => {
                f.write_str("memory/views.db-wal or -shm was deleted or replaced while in use")
            }
            Self::Unreadable(why) => write!(f, "memory/views.db cannot be read: {why}"),
            Self::Damaged(why) => write!(f, "memory/views.db is damaged ({why})"),
        }
    }
}

pub(in crate::gateway) fn trouble(path: &Path, progress: &ViewsProgress) -> Option<Trouble> {
    let (own, found) = (progress.lock().files, Own::at(path));
    if found.views != own.views || is_empty(path) {
        return Some(Trouble::Gone);
    }
    if found.beside != own.beside {
        return Some(Trouble::JournalGone);
    }
    if let Some(why) = progress.damage() {
        return Some(Trouble::Damaged(why));
    }
    // Asked and not opened: closing a file gives up every lock that SQLite has on it in this process.
    may_read(path).err().map(|error| Trouble::Unreadable(error.to_string()))
}
