//! `memory/signed-until.json`: up to which timestamps signed requests may have been taken.
//!
//! INVARIANT (taken once): no signed request is answered before the file says that its timestamp may have been taken, so
//! the process that finds the file refuses it. It is written a little ahead, so that a caller that signs all the time
//! costs a write every few seconds; an orderly stop takes that back.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::callers::Taken;
use crate::limits;
use crate::os::{clock, files};
use crate::timestamp::Timestamp;

#[derive(Debug)]
pub(super) struct Until {
    known: Arc<Mutex<Known>>,
    line: Sender<Wanted>,
}

#[derive(Debug)]
struct Known {
    /// What the file says.
    durable: Taken,
    /// What was taken indeed, as far as it matters.
    taken: Taken,
}

#[derive(Debug)]
enum Wanted {
    Reach { key_id: String, signed_at: Timestamp, answer: oneshot::Sender<bool> },
    Finish { done: Sender<()> },
}

impl Until {
    /// What the file says is what was taken before. Where a gateway was served and there is no file that can be read, nobody
    /// knows.
    pub(super) fn start(path: PathBuf, was_served: bool, now: Timestamp) -> io::Result<(Self, Taken)> {
        let read = match files::read_private(&path, limits::WORKSPACE_FILE.bytes_max) {
            Ok(bytes) => Taken::parse(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !was_served => Some(Taken::default()),
            Err(_) => None,
        };
        if read.is_none() {
            tracing::warn!(
                file = %path.display(),
                "it cannot be read which signed requests were taken before; those signed in the next {} s are refused",
                limits::SKEW_S
            );
        }
        let before = read.unwrap_or_else(|| Taken::unknown(now));
        // Whoever cannot write it cannot take a signed request later; and one that is killed at once has left it.
        files::replace_private(&path, &before.to_file())?;
        let known = Arc::new(Mutex::new(Known { durable: before.clone(), taken: before.clone() }));
        let (line, waiting) = channel();
        let shared = known.clone();
        std::thread::Builder::new()
            .name("signed-until".into())
            .spawn(move || keep(&path, &shared, &waiting))?;
        Ok((Self { known, line }, before))
    }

    /// True when the file says that a request of this key with this timestamp may have been taken.
    pub(super) async fn reach(&self, key_id: &str, signed_at: Timestamp) -> bool {
        {
            let mut known = lock(&self.known);
            known.taken.cover(key_id, signed_at);
            if known.durable.covers(key_id, signed_at) {
                return true;
            }
        }
        let (answer, answered) = oneshot::channel();
        let wanted = Wanted::Reach { key_id: key_id.to_owned(), signed_at, answer };
        self.line.send(wanted).is_ok() && answered.await.unwrap_or(false)
    }

    /// Leaves what was taken indeed, and takes no more.
    pub(super) fn finish(&self) {
        let (done, finished) = channel();
        if self.line.send(Wanted::Finish { done }).is_ok() {
            // The line ends with the answer, or without one.
            let _ = finished.recv();
        }
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(path: &Path, known: &Mutex<Known>, waiting: &Receiver<Wanted>) {
    while let Ok(first) = waiting.recv() {
        let (mut answers, mut ended) = (Vec::new(), None);
        let mut next = lock(known).durable.clone();
        // All that wait, with one write.
        for wanted in std::iter::once(first).chain(waiting.try_iter()) {
            match wanted {
                Wanted::Reach { key_id, signed_at, answer } => {
                    next.cover(&key_id, signed_at.plus_seconds(limits::SIGNED_UNTIL_AHEAD_S));
                    answers.push(answer);
                }
                Wanted::Finish { done } => ended = Some(done),
            }
        }
        if ended.is_some() {
            let mut known = lock(known);
            // From here on only what this covers needs no file.
            next = known.taken.clone();
            known.durable = next.clone();
        }
        let now = clock::now();
        next.fold(now);
        let written = files::replace_private(path, &next.to_file());
        match &written {
            Ok(()) => {
                let mut known = lock(known);
                known.durable = next;
                known.taken.fold(now);
            }
            Err(error) => {
                tracing::error!(%error, "signed requests are refused: it cannot be written which were taken");
                if ended.is_some() {
                    // Nothing can be made durable any more, so nothing counts as if it were.
                    lock(known).durable = Taken::default();
                }
            }
        }
        for answer in answers {
            let _ = answer.send(written.is_ok());
        }
        if ended.is_some() {
            return;
        }
    }
}
