//! JSON lines for a log shipper: one for every entry of the ledger, in a file that rotates.
//!
//! A thread of its own listens like any stream does, so decisions never wait for it; what it has missed it reads
//! from the ledger. `<path>.position` remembers how far it came, at most a moment behind the lines: after a crash
//! some lines are written again, none is left out. The ledger is the record; this is a copy for convenience.

mod file;
mod line;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Gateway, Listener, Told};
use crate::limits;
use crate::os::files;
use crate::settings::Sink as SinkSettings;
use file::{LineFile, with_suffix};
use line::Writer;

/// A sink at work.
#[derive(Debug)]
pub struct Sink {
    progress: Arc<Mutex<Progress>>,
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How far it has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The last entry whose line is in the file.
    pub written: u64,
    /// Why lines cannot be written now, if they cannot.
    pub fault: Option<String>,
    /// Attempts that failed.
    pub faults: u64,
}

/// Up to where lines were written. The hash tells whether that entry is still the ledger's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Position {
    topic_id: String,
    sequence: u64,
    running_hash: String,
}

impl Sink {
    /// Starts to write where the last one stopped; nothing if no path is set.
    pub fn start(gateway: &Gateway, settings: &SinkSettings) -> io::Result<Option<Self>> {
        let Some(path) = &settings.path else { return Ok(None) };
        let path = gateway.files().workspace().join(path);
        Self::check_place(&path, gateway.files().workspace())?;
        let position = remembered(gateway, &path);
        let written = position.as_ref().map_or(0, |position| position.sequence);
        let progress = Arc::new(Mutex::new(Progress { written, ..Progress::default() }));
        let (stop, stopped) = watch::channel(false);
        let (hub, engine) = (gateway.hub.clone(), gateway.engine.clone());
        let head = engine.clone();
        let work = Work {
            listen: Box::new(move |from| {
                let engine = engine.clone();
                hub.listen(from, move || engine.head())
            }),
            head: Box::new(move || head.head()),
            topic_id: gateway.topic_id().to_owned(),
            file: LineFile::new(path.clone(), settings.rotate_bytes as u64, settings.keep),
            position_path: position_path(&path),
            remembered: position,
            last: None,
            taken: written,
            writer: Writer::default(),
            lines: String::new(),
            progress: progress.clone(),
            stopped,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let thread =
            std::thread::Builder::new().name("sink".into()).spawn(move || runtime.block_on(work.follow()))?;
        Ok(Some(Self { progress, stop, thread: Mutex::new(Some(thread)) }))
    }

    /// Files in a workspace belong to its policy set, so a file there that changes all the time would change the set's
    /// digest all the time.
    pub fn check_place(path: &Path, workspace: &Path) -> io::Result<()> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (parent, root) = (real(path.parent().unwrap_or(Path::new("/"))), real(workspace));
        let memory = root.join("memory");
        if parent.starts_with(&root)
            && (!parent.starts_with(&memory) || parent.starts_with(memory.join("ledger")))
        {
            let message = format!(
                "[sink] path: {} is where the policy set or the ledger is; take a path in memory/ or outside of the workspace",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(())
    }

    pub fn progress(&self) -> Progress {
        lock(&self.progress).clone()
    }

    /// Writes what is durable, as far as that goes without waiting for a disk that fails, and ends.
    pub fn stop(&self) {
        // A thread that has ended hears nothing more.
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

fn position_path(path: &Path) -> PathBuf {
    with_suffix(path, ".position")
}

/// Where the last sink stopped. One that speaks of another ledger, or of an entry that this one does not have, as
/// after a restored backup, says nothing: all is written again.
fn remembered(gateway: &Gateway, path: &Path) -> Option<Position> {
    let bytes = files::read_bounded(&position_path(path), 4096).ok()?;
    let position: Position = serde_json::from_slice(&bytes).ok()?;
    let known = gateway
        .ledger()
        .entry(position.sequence)
        .ok()
        .flatten()
        .is_some_and(|entry| entry.running_hash.to_string() == position.running_hash);
    if known && position.topic_id == gateway.topic_id() {
        return Some(position);
    }
    tracing::warn!("the sink's position is not in this ledger; all lines are written again");
    None
}

/// What the thread has.
struct Work {
    listen: Box<dyn Fn(u64) -> Listener + Send>,
    head: Box<dyn Fn() -> u64 + Send>,
    topic_id: String,
    file: LineFile,
    position_path: PathBuf,
    /// What the position file says.
    remembered: Option<Position>,
    /// The last entry that became a line, once its line is in the file.
    last: Option<Position>,
    /// The last entry that became a line.
    taken: u64,
    writer: Writer,
    /// Lines that are not in the file yet.
    lines: String,
    progress: Arc<Mutex<Progress>>,
    stopped: watch::Receiver<bool>,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Flow {
    Go,
    Stop,
}

impl Work {
    async fn follow(mut self) {
        const REMEMBER: Duration = Duration::from_millis(limits::SINK_POSITION_MS);
        // The two entries before it may be of the same decision and say whose it is.
        let mut listener = (self.listen)((self.taken + 1).saturating_sub(2));
        let mut due = Instant::now() + REMEMBER;
        let mut stopped = self.stopped.clone();
        loop {
            let told = tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => break,
                told = listener.next() => told,
                () = tokio::time::sleep_until(due), if self.is_ahead() => {
                    if self.remember().await == Flow::Stop {
                        break;
                    }
                    due = Instant::now() + REMEMBER;
                    continue;
                }
            };
            let Some(told) = told else {
                if self.failed("the ledger could not be read").await == Flow::Stop {
                    break;
                }
                listener = (self.listen)((self.taken + 1).saturating_sub(2));
                continue;
            };
            self.take(&told);
            let enough = self.lines.len() >= limits::SINK_LINES_BYTES || !listener.has_ready();
            if enough && self.write().await == Flow::Stop {
                break;
            }
            // Busy all the time: remembered all the same.
            if Instant::now() >= due && self.is_ahead() {
                if self.remember().await == Flow::Stop {
                    break;
                }
                due = Instant::now() + REMEMBER;
            }
        }
        self.finish(listener).await;
    }

    /// The lines of what became durable before the end, within a bound.
    async fn finish(mut self, mut listener: Listener) {
        let until = Instant::now() + Duration::from_millis(limits::SINK_FINISH_MS);
        while self.taken < (self.head)() {
            match tokio::time::timeout_at(until, listener.next()).await {
                Ok(Some(told)) => self.take(&told),
                _ => break,
            }
            let enough = self.lines.len() >= limits::SINK_LINES_BYTES || !listener.has_ready();
            if enough && self.write_once().is_err() {
                return;
            }
        }
        if self.write_once().is_ok() {
            let _ = self.remember_once();
        }
    }

    fn take(&mut self, told: &Told) {
        let sequence = told.entry.sequence;
        let before = self.lines.len();
        self.writer.line(told, &mut self.lines);
        if sequence <= self.taken {
            // Its line was written before; it only tells whose the next one is.
            self.lines.truncate(before);
            return;
        }
        self.taken = sequence;
        self.last = Some(Position {
            topic_id: self.topic_id.clone(),
            sequence,
            running_hash: told.entry.running_hash.to_string(),
        });
    }

    /// Writes the lines that are waiting, however long that takes. Meanwhile the listener falls behind, and reads
    /// the ledger afterwards.
    async fn write(&mut self) -> Flow {
        while let Err(error) = self.write_once() {
            if self.failed(&format!("lines cannot be written: {error}")).await == Flow::Stop {
                return Flow::Stop;
            }
        }
        Flow::Go
    }

    fn write_once(&mut self) -> io::Result<()> {
        self.file.write(&mut self.lines)?;
        let mut progress = lock(&self.progress);
        progress.written = self.taken;
        progress.fault = None;
        Ok(())
    }

    /// Are lines in the file that the position does not know of?
    fn is_ahead(&self) -> bool {
        self.last.is_some() && self.last != self.remembered
    }

    async fn remember(&mut self) -> Flow {
        // What is waiting first: the position speaks of lines that are there.
        if self.write().await == Flow::Stop {
            return Flow::Stop;
        }
        while let Err(error) = self.remember_once() {
            if self.failed(&format!("the position cannot be written: {error}")).await == Flow::Stop {
                return Flow::Stop;
            }
        }
        lock(&self.progress).fault = None;
        Flow::Go
    }

    fn remember_once(&mut self) -> io::Result<()> {
        if !self.is_ahead() {
            return Ok(());
        }
        self.file.sync()?;
        let text = serde_json::to_vec(&self.last).map_err(io::Error::other)?;
        files::replace_private(&self.position_path, &text)?;
        self.remembered.clone_from(&self.last);
        Ok(())
    }

    /// Says what is wrong, and waits a moment.
    async fn failed(&self, why: &str) -> Flow {
        {
            let mut progress = lock(&self.progress);
            if progress.fault.is_none() {
                tracing::error!(why, "the sink is behind; decisions go on");
            }
            progress.fault = Some(why.to_owned());
            progress.faults += 1;
        }
        let mut stopped = self.stopped.clone();
        let pause = Duration::from_millis(limits::SINK_RETRY_MS);
        match tokio::time::timeout(pause, stopped.wait_for(|stop| *stop)).await {
            Err(_) => Flow::Go,
            Ok(_) => Flow::Stop,
        }
    }
}

#[cfg(test)]
mod tests;
