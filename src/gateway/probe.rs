//! Looks at the disk and the clock before anybody needs them, so that readiness turns red without a decision
//! having to fail first.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Gateway;
use crate::engine::EngineHandle;
use crate::json::printable;
use crate::ledger::{Disk as _, RealDisk, Seals, Source};
use crate::limits;
use crate::os::{clock, files};

/// What was found when it was last looked at.
#[derive(Debug)]
pub struct Probe {
    found: Arc<Mutex<Found>>,
    // Gone with the probe, and then the thread ends.
    _stop: Sender<()>,
}

#[derive(Debug, Default)]
struct Found {
    disk: Option<String>,
    room: Option<String>,
    clock: Option<String>,
    time: Option<String>,
    stray: Option<String>,
}

/// Where to look.
struct Ground {
    /// A file in `memory/` that is written and taken away again.
    path: PathBuf,
    engine: EngineHandle,
    ledger: Source,
    seals: Seals,
}

impl Probe {
    /// Starts to look, at a file in `memory/`, at the room on the disk, at the clock, and at the ledger's directory.
    pub fn start(gateway: &Gateway) -> std::io::Result<Self> {
        let ground = Ground {
            path: gateway.files().probe(),
            engine: gateway.engine().clone(),
            ledger: gateway.ledger().clone(),
            seals: gateway.seals.clone(),
        };
        let found = Arc::new(Mutex::new(look(&ground)));
        let (stop, stopped) = channel::<()>();
        let shared = found.clone();
        std::thread::Builder::new().name("probe".into()).spawn(move || {
            let pause = Duration::from_millis(limits::PROBE_MS);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let now = look(&ground);
                *lock(&shared) = now;
            }
        })?;
        Ok(Self { found, _stop: stop })
    }

    /// Why nothing can be written, if nothing can.
    pub fn disk(&self) -> Option<String> {
        lock(&self.found).disk.clone()
    }

    /// Why the next write may find no room, while there still is some.
    pub fn room(&self) -> Option<String> {
        lock(&self.found).room.clone()
    }

    /// What is wrong with the clock, if something is that the ledger's own time makes up for.
    pub fn clock(&self) -> Option<String> {
        lock(&self.found).clock.clone()
    }

    /// What is wrong with the clock, if nothing can be decided by it.
    pub fn time(&self) -> Option<String> {
        lock(&self.found).time.clone()
    }

    /// What lies among the segments and is none, if something does.
    pub fn stray(&self) -> Option<String> {
        lock(&self.found).stray.clone()
    }
}

fn lock(found: &Mutex<Found>) -> MutexGuard<'_, Found> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

fn look(Ground { path, engine, ledger, seals }: &Ground) -> Found {
    let disk = files::probe(path, limits::PROBE_BYTES)
        .err()
        .map(|error| format!("memory/ cannot be written: {error}"));
    let room = path.parent().into_iter().chain(ledger.directory()).find_map(shortage);
    let now = clock::now();
    let behind = engine.ledger_time().map_or(0, |last| last.seconds_since(now));
    let clock = (behind > limits::CLOCK_BEHIND_S)
        .then(|| format!("the clock is {behind} s behind the last entry of the ledger"));
    let stray = ledger.stray(seals).map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("`{}` in memory/ledger does not belong into the ledger", printable(&name))
    });
    Found { disk, room, clock, time: clock::fault(now), stray }
}

/// What is wrong with the room where a directory is, if something is.
fn shortage(directory: &Path) -> Option<String> {
    RealDisk.space(directory)?.shortage()
}
