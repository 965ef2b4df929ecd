//! Whether the files are still the ones that were written, before anything is acknowledged on top of them.

use std::io;
use std::path::Path;
use std::time::Instant;

use super::rereading::{Doubt, Reread, read_through};
use super::{Sealed, Segment, SegmentLog, name_of};
use crate::ledger::AppendFault;
use crate::ledger::chain::Head;
use crate::ledger::disk::{FileIdentity, FilePlace};
use crate::limits;

/// What a full segment looks like.
enum Look {
    AsLeft,
    /// It may be what it was, and nothing says that it is not.
    InDoubt(Doubt),
    /// Otherwise than it was left, and it is what it was.
    Whole(FileIdentity),
}

impl SegmentLog {
    /// Are all files still the ones that were written, and as they were left? The one that is appended to must be where it
    /// was, and as long, every time; the rest is asked when something stirred in the directory, and every so often.
    pub(super) fn check_files(&mut self) -> Result<(), AppendFault> {
        let is_due = self.stirring.is_due(self.current.as_ref().and_then(Segment::name));
        if is_due {
            self.check_sealed()?;
        }
        self.check_place()?;
        if is_due {
            self.check_current()?;
            self.stirring.looked();
        }
        Ok(())
    }

    /// Full segments. What was written to, or made shorter, is read through before anything is acknowledged on top of it; where
    /// only the time of the last change moved and nobody was heard writing, it is read meanwhile.
    fn check_sealed(&mut self) -> Result<(), AppendFault> {
        let mut is_new = self.hear_reread();
        let (mut before, mut doubts) = (Head::genesis(&self.topic_id), Vec::new());
        for at in 0..self.sealed.len() {
            let Some(sealed) = self.sealed.get(at) else { break };
            let head = sealed.head;
            match self.look_at(sealed, before)? {
                Look::AsLeft => {}
                Look::InDoubt(doubt) => doubts.push((at, doubt)),
                Look::Whole(found) => {
                    self.takes(at, found);
                    is_new = true;
                }
            }
            before = head;
        }
        if is_new {
            self.tell_seals();
        }
        self.rereading.begin(&self.disk, &self.topic_id, doubts).map_err(AppendFault::NotDurable)
    }

    /// Takes in what was read meanwhile. What is bad is read once more by whoever wants to append, and refused.
    fn hear_reread(&mut self) -> bool {
        let mut is_new = false;
        for (at, reread) in self.rereading.hear() {
            match (reread, self.sealed.get_mut(at)) {
                (Reread::Whole(found), Some(_)) => {
                    self.takes(at, found);
                    is_new = true;
                }
                (Reread::Bad, Some(sealed)) => sealed.is_bad = true,
                (Reread::Moved, _) | (_, None) => {}
            }
        }
        is_new
    }

    /// A full segment is what it was, and looks like this now.
    fn takes(&mut self, at: usize, found: FileIdentity) {
        if let Some(sealed) = self.sealed.get_mut(at) {
            (sealed.identity, sealed.is_bad) = (found, false);
        }
    }

    fn look_at(&self, sealed: &Sealed, before: Head) -> Result<Look, AppendFault> {
        let Sealed { path, identity: expected, head, is_bad } = sealed;
        let found = self.identity(path)?;
        if found == *expected {
            return Ok(Look::AsLeft);
        }
        if found.holds_what(expected) && !is_bad && !self.stirring.is_written(path) {
            return Ok(Look::InDoubt(Doubt { path: path.clone(), found, before, head: *head }));
        }
        // Retention makes it shorter. One that is written to is not what it was, unless the times say that it was not, which
        // whoever wrote may have set back: then it is read.
        let may_be_the_same =
            |found: FileIdentity| found.bytes < expected.bytes || found.holds_what(expected);
        let whole = self.read_through(path, before, *head, may_be_the_same)?;
        whole.map(Look::Whole).ok_or_else(|| changed(path, found.place(), expected.place()))
    }

    /// Is the segment that is appended to where it was, and as long?
    fn check_place(&mut self) -> Result<(), AppendFault> {
        let Some(segment) = &mut self.current else { return Ok(()) };
        // The file that is open cannot lose its inode to another one.
        let own = match segment.own {
            Some(own) => own,
            None => segment.file.identity().map_err(AppendFault::NotDurable)?.place(),
        };
        segment.own = Some(own);
        let expected = FilePlace { bytes: segment.durable_bytes, ..own };
        let found = self.disk.place(&segment.path).map_err(|error| missing(&segment.path, error))?;
        if found == expected { Ok(()) } else { Err(changed(&segment.path, found, expected)) }
    }

    /// The segment that is appended to. One that somebody else wrote to must still be the same from end to end.
    fn check_current(&mut self) -> Result<(), AppendFault> {
        let Some(segment) = &self.current else { return Ok(()) };
        let found = self.identity(&segment.path)?;
        let is_as_left = match segment.modified {
            Some(modified) => modified == found.modified,
            // Written by us since; whoever else did it would have been heard.
            None => true,
        };
        let mut modified = found.modified;
        if !is_as_left || self.stirring.is_touched() {
            let before =
                self.sealed.last().map_or_else(|| Head::genesis(&self.topic_id), |sealed| sealed.head);
            let expected = FilePlace { bytes: segment.durable_bytes, ..found.place() };
            let is_in_place = |found: FileIdentity| found.place() == expected;
            let whole = self.read_through(&segment.path, before, self.head, is_in_place)?;
            modified = whole.ok_or_else(|| changed(&segment.path, found.place(), expected))?.modified;
        }
        if let Some(segment) = &mut self.current {
            segment.modified = Some(modified);
        }
        Ok(())
    }

    /// Reads a file through, again while something about it changes meanwhile. What it was like then, if it is what it was.
    fn read_through(
        &self,
        path: &Path,
        before: Head,
        head: Head,
        may_be_the_same: impl Fn(FileIdentity) -> bool,
    ) -> Result<Option<FileIdentity>, AppendFault> {
        for _ in 0..limits::SEGMENT_READS_MAX {
            let found = self.identity(path)?;
            if !may_be_the_same(found) || self.judged.is_known_to_be_bad(found) {
                return Ok(None);
            }
            let began = Instant::now();
            let read = read_through(&*self.disk, path, &self.topic_id, before, head);
            let (is_whole, own) = read.map_err(AppendFault::NotDurable)?;
            if own == found && !is_whole {
                self.judged.is_bad(found, began);
            }
            if own == found {
                return Ok(is_whole.then_some(own));
            }
        }
        Ok(None)
    }

    fn identity(&self, path: &Path) -> Result<FileIdentity, AppendFault> {
        self.disk.identity(path).map_err(|error| missing(path, error))
    }
}

fn missing(path: &Path, error: io::Error) -> AppendFault {
    match error.kind() {
        io::ErrorKind::NotFound => AppendFault::Tampered(format!("{} is gone", name_of(path))),
        _ => AppendFault::NotDurable(error),
    }
}

fn changed(path: &Path, found: FilePlace, expected: FilePlace) -> AppendFault {
    let name = name_of(path);
    AppendFault::Tampered(if (found.device, found.inode) != (expected.device, expected.inode) {
        format!("{name} was replaced")
    } else if found.bytes != expected.bytes {
        format!("{name} has {} bytes instead of {}", found.bytes, expected.bytes)
    } else {
        format!("{name} was written to")
    })
}
