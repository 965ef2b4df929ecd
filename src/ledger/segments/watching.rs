//! Whether the files are still the ones that were written, before anything is acknowledged on top of them.

use std::io;
use std::path::Path;
use std::time::Instant;

use super::{Sealed, Segment, SegmentLog, name_of};
use crate::ledger::AppendFault;
use crate::ledger::chain::Head;
use crate::ledger::disk::{FileIdentity, FilePlace};
use crate::ledger::recovery::scan;

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

    fn check_sealed(&mut self) -> Result<(), AppendFault> {
        let mut before = Head::genesis(&self.topic_id);
        let mut is_new = false;
        for at in 0..self.sealed.len() {
            let Some(Sealed { path, identity, head }) = self.sealed.get(at) else { break };
            let (expected, head) = (*identity, *head);
            let found = self.identity(path)?;
            if found != expected {
                // Retention makes it shorter. One that is written to is not what it was, unless the times say that it was
                // not, which whoever wrote may have set back: then it is read.
                let may_be_the_same = found.bytes < expected.bytes || found.holds_what(&expected);
                if !may_be_the_same || !self.is_the_same_chain(path, found, before, head)? {
                    return Err(changed(path, found.place(), expected.place()));
                }
                if let Some(sealed) = self.sealed.get_mut(at) {
                    sealed.identity = found;
                }
                is_new = true;
            }
            before = head;
        }
        if is_new {
            self.tell_seals();
        }
        Ok(())
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
        if !is_as_left || self.stirring.is_touched() {
            let before =
                self.sealed.last().map_or_else(|| Head::genesis(&self.topic_id), |sealed| sealed.head);
            if !self.is_the_same_chain(&segment.path, found, before, self.head)? {
                let expected = FilePlace { bytes: segment.durable_bytes, ..found.place() };
                return Err(changed(&segment.path, found.place(), expected));
            }
        }
        if let Some(segment) = &mut self.current {
            segment.modified = Some(found.modified);
        }
        Ok(())
    }

    /// Followed through it, the chain ends where it did, and every body that is left is the one it says it is: retention
    /// drops bodies from full segments, and somebody may have put right what they had touched.
    fn is_the_same_chain(
        &self,
        path: &Path,
        found: FileIdentity,
        before: Head,
        head: Head,
    ) -> Result<bool, AppendFault> {
        if self.judged.is_known_to_be_bad(found) {
            return Ok(false);
        }
        let began = Instant::now();
        let (text, own) = self.disk.read(path).map_err(AppendFault::NotDurable)?;
        let scan = scan(&text, &self.topic_id, before, |_| {});
        let whole = scan.bad_line.is_none() && scan.durable_bytes == text.len() as u64 && scan.head == head;
        if !whole && own == found {
            self.judged.is_bad(found, began);
        }
        Ok(whole && own == found)
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
