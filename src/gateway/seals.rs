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
    /// Without them the next start reads more. What could not be written is written with the next entries.
    pub(super) fn write(&self) {
        if let Some(text) = self.seals.news(&self.topic_id, &self.seed)
            && files::replace_private(&self.path, text.as_bytes()).is_err()
        {
            self.seals.not_kept();
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::remembering::of_files;
    use super::*;
    use crate::ledger::{BatchBuilder, Log as _, RealDisk, SegmentLog};
    use crate::timestamp::Timestamp;

    #[test]
    fn seals_that_could_not_be_written_are_written_later() {
        let workspace = tempfile::tempdir().unwrap();
        let files_of = Files::of(workspace.path());
        files_of.make_directories().unwrap();
        let seals = Seals::default();
        let (ledger, journal) = (files_of.ledger(), files_of.journal());
        let opened = SegmentLog::open_with_journal(
            Arc::new(RealDisk),
            &ledger,
            &journal,
            "gw",
            &[],
            (seals.clone(), &mut |_, _| {}),
        );
        let mut log = opened.unwrap().0.with_segment_bytes_max(1);
        for _ in 0..2 {
            let mut batch = BatchBuilder::new("gw", log.head(), log.last_timestamp());
            batch.event("{}".to_owned(), Timestamp::parse("2026-02-18T19:38:00Z").unwrap());
            log.append(log.head(), &batch.seal().unwrap()).unwrap();
        }
        let seed = Arc::new(Seed::from_bytes(&[7; 32]));
        let (path, public_hex) = (files_of.seals(), seed.public_hex());
        let keeping = Keeping { seals, topic_id: "gw".to_owned(), path: path.clone(), seed };
        let newest = || of_files(&files_of, Some(&public_hex), Some("gw")).unwrap().pop();
        // Something stands in the way.
        fs::create_dir(&path).unwrap();
        keeping.write();
        assert_eq!(newest(), None);
        fs::remove_dir(&path).unwrap();
        keeping.write();
        assert_eq!(newest().unwrap().head.sequence, 1);
    }
}
