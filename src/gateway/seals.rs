//! Keeps the seals of full segments over a restart.

use std::path::PathBuf;
use std::sync::Arc;

use super::Files;
use crate::ledger::{Entry, Follower, Notice, Seals};
use crate::limits;
use crate::os::files;
use crate::proof::Seed;

/// Writes them down when a segment is full, or was found changed and good; then hands the entries on.
pub(super) struct SealKeeper<F> {
    next: F,
    keeping: Keeping,
}

/// What is kept, and where.
#[derive(Debug, Clone)]
pub(super) struct Keeping {
    pub(super) seals: Seals,
    pub(super) topic_id: String,
    pub(super) path: PathBuf,
    pub(super) seed: Arc<Seed>,
}

impl Keeping {
    /// Without them the next start reads more. One that could not be written is made up for by the next.
    pub(super) fn write(&self) {
        if let Some(text) = self.seals.news(&self.topic_id, &self.seed) {
            let _ = files::replace_private(&self.path, text.as_bytes());
        }
    }
}

impl<F> SealKeeper<F> {
    pub(super) fn new(next: F, keeping: Keeping) -> Self {
        Self { next, keeping }
    }
}

impl<F: Follower> Follower for SealKeeper<F> {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        self.keeping.write();
        self.next.durable(entries)
    }

    fn idle(&mut self) -> Option<Notice> {
        self.keeping.write();
        self.next.idle()
    }
}

/// Those that were kept; none where they are not of this ledger, or not by this gateway.
pub(super) fn read(files_of: &Files, topic_id: Option<&str>, public_hex: &str) -> Seals {
    let text = files::read_bounded(&files_of.seals(), limits::SEALS_BYTES_MAX).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    Seals::read(&text, topic_id.unwrap_or_default(), public_hex)
}
