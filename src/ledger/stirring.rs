//! Hears that somebody touched files of the ledger, so that full segments need not be asked one by one before every
//! append: a ledger of years has thousands of them. And remembers what was found bad, so that it is not read for every
//! append that is refused because of it.
//!
//! The kernel notes a change before the call that made it returns, so whatever was done before an append is heard by it.
//! What it does not note (a change through another name of the file, or on another machine) is found by the look that
//! is due every [`limits::SEALED_LOOK_MS`] whatever was heard.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use super::disk::FileIdentity;
use crate::limits;

/// Where changes of a directory's files are heard, and when they were last looked at.
#[derive(Debug)]
pub(super) struct Stirring {
    /// Nothing where the kernel does not tell.
    ear: Option<OwnedFd>,
    looked: Option<Instant>,
}

impl Stirring {
    /// Listens from now on. A directory that cannot be listened at is looked at every time.
    pub(super) fn of(directory: &Path) -> Self {
        Self { ear: listen(directory).ok(), looked: None }
    }

    /// Is it time to look at all files? `own` is the one that is appended to, which is looked at every time anyway.
    pub(super) fn is_due(&mut self, own: Option<&str>) -> bool {
        const LOOK: Duration = Duration::from_millis(limits::SEALED_LOOK_MS);
        if self.ear.as_ref().is_none_or(|ear| heard(ear, own)) {
            self.looked = None;
        }
        self.looked.is_none_or(|looked| looked.elapsed() >= LOOK)
    }

    /// All files were found as they were left. Whoever finds them otherwise looks again next time.
    pub(super) fn looked(&mut self) {
        self.looked = Some(Instant::now());
    }
}

/// A file that was read through and found to be another's work, so that it is not read again for every append while it
/// stays as it is.
///
/// A file may be put right within the same step of the clock that it was last touched in, and then looks the same. So it is
/// read a second time when that step is over: from then on whatever is done to it shows.
#[derive(Debug, Default)]
pub(super) struct Judged(Cell<Option<Judgement>>);

#[derive(Debug, Clone, Copy)]
struct Judgement {
    found: FileIdentity,
    /// When it was first read.
    since: Instant,
    is_final: bool,
}

impl Judged {
    pub(super) fn is_known_to_be_bad(&self, found: FileIdentity) -> bool {
        self.0.get().is_some_and(|known| known.found == found && (known.is_final || !is_over(known.since)))
    }

    /// It is bad, by a reading that began then and found it unchanged at its end.
    pub(super) fn is_bad(&self, found: FileIdentity, began: Instant) {
        let before = self.0.get().filter(|known| known.found == found);
        let since = before.map_or(began, |known| known.since);
        self.0.set(Some(Judgement { found, since, is_final: began.duration_since(since) >= STEP }));
    }
}

const STEP: Duration = Duration::from_millis(limits::FILE_CLOCK_STEP_MS);

fn is_over(since: Instant) -> bool {
    since.elapsed() >= STEP
}

fn listen(directory: &Path) -> io::Result<OwnedFd> {
    let ear = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let changes = WatchFlags::MODIFY
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE
        | WatchFlags::MOVE_SELF;
    inotify::add_watch(&ear, directory, changes | WatchFlags::ONLYDIR)?;
    Ok(ear)
}

/// Takes all that was noted since, and says whether any of it is about another file than `own`.
fn heard(ear: &OwnedFd, own: Option<&str>) -> bool {
    let mut room = [std::mem::MaybeUninit::uninit(); 4096];
    let mut notes = Reader::new(ear, &mut room);
    let mut others = false;
    loop {
        match notes.next() {
            Ok(note) => {
                let is_own = note
                    .file_name()
                    .is_some_and(|name| own.is_some_and(|own| name.to_bytes() == own.as_bytes()));
                others |= !is_own || note.events().contains(ReadFlags::QUEUE_OVERFLOW);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return others,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}
