//! Hears that somebody touched files of the ledger, so that they need not be asked one by one before every append: a
//! ledger of years has thousands of full segments, and asking for the times of the one that grows makes its syncs slower.
//! And remembers what was found bad, so that it is not read for every append that is refused because of it.
//!
//! The kernel notes a change before the call that made it returns, so whatever was done before an append is heard by it.
//! What it does not note (a change through another name of the file, through memory, or on another machine) is for the look
//! that is due every [`limits::SEALED_LOOK_MS`] whatever was heard.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
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
    /// Somebody else did something to the file that is appended to, and it was not found to be as it was since.
    is_touched: bool,
    /// The other files that somebody wrote to since all were found as they were left.
    written: Written,
}

#[derive(Debug)]
enum Written {
    Names(BTreeSet<Vec<u8>>),
    /// What was noted was lost, or too much to keep.
    Any,
}

impl Default for Written {
    fn default() -> Self {
        Self::Names(BTreeSet::new())
    }
}

impl Written {
    fn add(&mut self, name: &[u8]) {
        if let Self::Names(names) = self {
            names.insert(name.to_owned());
            if names.len() > limits::WRITTEN_NAMES_MAX {
                *self = Self::Any;
            }
        }
    }
}

impl Stirring {
    /// Listens from now on. A directory that cannot be listened at is looked at every time.
    pub(super) fn of(directory: &Path) -> Self {
        Self { ear: listen(directory).ok(), looked: None, is_touched: false, written: Written::default() }
    }

    /// Is it time to look at all files? `own` is the one that is appended to.
    pub(super) fn is_due(&mut self, own: Option<&str>) -> bool {
        const LOOK: Duration = Duration::from_millis(limits::SEALED_LOOK_MS);
        let heard = self.hear(own);
        if heard.own {
            self.is_touched = true;
        }
        if heard.own || heard.others || self.ear.is_none() {
            self.looked = None;
        }
        self.looked.is_none_or(|looked| looked.elapsed() >= LOOK)
    }

    /// Takes what was noted of our own append, so that what is noted next is another's doing. True where that can be told.
    pub(super) fn has_heard_own(&mut self, own: Option<&str>) -> bool {
        if self.hear(own).others {
            self.looked = None;
        }
        self.ear.is_some()
    }

    /// Did somebody else touch the file that is appended to?
    pub(super) fn is_touched(&self) -> bool {
        self.is_touched
    }

    /// Was somebody heard writing to another file?
    pub(super) fn is_written(&self, path: &Path) -> bool {
        match &self.written {
            Written::Any => true,
            Written::Names(names) => path.file_name().is_some_and(|name| names.contains(name.as_bytes())),
        }
    }

    /// All files were found as they were left. Whoever finds them otherwise looks again next time.
    pub(super) fn looked(&mut self) {
        (self.looked, self.is_touched, self.written) = (Some(Instant::now()), false, Written::default());
    }

    fn hear(&mut self, own: Option<&str>) -> Heard {
        let Some(ear) = &self.ear else { return Heard::default() };
        let heard = heard(ear, own, &mut self.written);
        if heard.is_over {
            self.ear = None;
        }
        heard
    }
}

/// What was noted since the last time.
#[derive(Debug, Default, Clone, Copy)]
struct Heard {
    /// Of the file that is appended to.
    own: bool,
    others: bool,
    /// Nothing more will be.
    is_over: bool,
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

/// Takes all that was noted since.
fn heard(ear: &OwnedFd, own: Option<&str>, written: &mut Written) -> Heard {
    let mut room = [std::mem::MaybeUninit::uninit(); 4096];
    let mut notes = Reader::new(ear, &mut room);
    let mut heard = Heard::default();
    loop {
        match notes.next() {
            Ok(note) => {
                let is_own = note
                    .file_name()
                    .is_some_and(|name| own.is_some_and(|own| name.to_bytes() == own.as_bytes()));
                // Those that were lost may have been about any file.
                let is_lost = note.events().contains(ReadFlags::QUEUE_OVERFLOW);
                if is_lost {
                    *written = Written::Any;
                } else if let (Some(name), false, true) =
                    (note.file_name(), is_own, note.events().contains(ReadFlags::MODIFY))
                {
                    written.add(name.to_bytes());
                }
                heard.own |= is_own || is_lost;
                heard.others |= !is_own || is_lost;
                heard.is_over |= note.events().contains(ReadFlags::IGNORED);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return heard,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => {
                *written = Written::Any;
                return Heard { own: true, others: true, is_over: true };
            }
        }
    }
}
