//! Full segments that look as they did, but for the time of their last change: another mode, owner or name, or an edit that
//! nobody heard and whose time was set back. They are read through on a thread of its own, one after the other: there may be
//! thousands, a moment after a `chown -R`, and nobody is to wait for all of them to be decided.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::Builder;

use crate::ledger::chain::Head;
use crate::ledger::disk::{Disk, FileIdentity};
use crate::ledger::recovery::scan;

/// A full segment that is to be read through.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) path: PathBuf,
    pub(super) found: FileIdentity,
    /// The entry that it follows on, and its last one.
    pub(super) before: Head,
    pub(super) head: Head,
}

/// What reading a segment through came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reread {
    /// It is what it was, and looks like this.
    Whole(FileIdentity),
    /// It is, but something about it changed meanwhile, so it has to be looked at again.
    Moved,
    /// It is not, or cannot be read.
    Bad,
}

/// Where segments are being read through, if any are.
#[derive(Debug, Default)]
pub(super) struct Rereading(Option<Reading>);

#[derive(Debug)]
struct Reading {
    answers: Receiver<(usize, Reread)>,
    /// Those that are not answered yet.
    asked: Vec<usize>,
}

impl Rereading {
    /// What was found since the last time, by which segment it is.
    pub(super) fn hear(&mut self) -> Vec<(usize, Reread)> {
        let Some(reading) = &mut self.0 else { return Vec::new() };
        let mut heard = Vec::new();
        loop {
            match reading.answers.try_recv() {
                Ok((at, found)) => {
                    reading.asked.retain(|asked| *asked != at);
                    heard.push((at, found));
                }
                Err(TryRecvError::Empty) => return heard,
                Err(TryRecvError::Disconnected) => {
                    // Of what nobody read nobody knows that it is good.
                    heard.extend(reading.asked.iter().map(|at| (*at, Reread::Bad)));
                    self.0 = None;
                    return heard;
                }
            }
        }
    }

    /// Has segments read through, unless some are being read: then those that are still in doubt are when it is done.
    pub(super) fn begin(
        &mut self,
        disk: &Arc<dyn Disk>,
        topic_id: &str,
        doubts: Vec<(usize, Doubt)>,
    ) -> io::Result<()> {
        if self.0.is_some() || doubts.is_empty() {
            return Ok(());
        }
        let asked = doubts.iter().map(|(at, _)| *at).collect();
        let (tell, answers) = channel();
        let (disk, topic_id) = (disk.clone(), topic_id.to_owned());
        let read = move || read_all(&*disk, &topic_id, doubts, &tell);
        Builder::new().name("ledger-reader".into()).spawn(read)?;
        self.0 = Some(Reading { answers, asked });
        Ok(())
    }
}

/// Ends early when nobody wants to know any more.
fn read_all(disk: &dyn Disk, topic_id: &str, doubts: Vec<(usize, Doubt)>, tell: &Sender<(usize, Reread)>) {
    for (at, Doubt { path, found, before, head }) in doubts {
        let reread = match read_through(disk, &path, topic_id, before, head) {
            Ok((true, own)) if own == found => Reread::Whole(own),
            Ok((true, _)) => Reread::Moved,
            Ok((false, _)) | Err(_) => Reread::Bad,
        };
        if tell.send((at, reread)).is_err() {
            return;
        }
    }
}

/// Followed through it, does the chain end where it did, and is every body that is left the one it says it is? Retention
/// drops bodies from full segments, and somebody may have put right what they had touched. With what the file was like when
/// it had been read.
pub(super) fn read_through(
    disk: &dyn Disk,
    path: &Path,
    topic_id: &str,
    before: Head,
    head: Head,
) -> io::Result<(bool, FileIdentity)> {
    let (text, own) = disk.read(path)?;
    let scan = scan(&text, topic_id, before, |_| {});
    let is_whole = scan.bad_line.is_none() && scan.durable_bytes == text.len() as u64 && scan.head == head;
    Ok((is_whole, own))
}
