//! Notices when the workspace's rules change: policies, what TaskSpecs refer to, keys and tokens.
//!
//! The operating system tells of changes; they are let to settle, for an editor writes a file in several steps,
//! and then everything is read again. Where it tells of none (some network file systems), the files are read every
//! so often all the same.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use notify::{Event, EventKind, RecursiveMode, Watcher as _};

use crate::limits;
use crate::policy::Workspace;

/// Tells when something may have changed.
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    bells: Receiver<()>,
    ring: Sender<()>,
    watcher: Option<notify::RecommendedWatcher>,
}

/// Rings the bell by hand: a signal asks for the files to be read.
#[derive(Debug, Clone)]
pub struct Bell(Sender<()>);

impl Bell {
    pub fn ring(&self) {
        // A watch that has gone has nobody to tell.
        let _ = self.0.send(());
    }
}

impl Watch {
    /// Watches a workspace; `by_itself` is false where only the bell is to be heard.
    pub fn over(workspace: &Path, by_itself: bool) -> Self {
        let (ring, bells) = channel();
        let root = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let watcher = if by_itself { watcher(root.join("memory"), ring.clone()) } else { None };
        let mut watch = Self { root, bells, ring, watcher };
        watch.look();
        watch
    }

    pub fn bell(&self) -> Bell {
        Bell(self.ring.clone())
    }

    /// Waits until something may have changed.
    pub fn wait(&mut self) {
        let patience = Duration::from_millis(limits::RELOAD_POLL_MS);
        if self.watcher.is_some() {
            if self.bells.recv_timeout(patience).is_err() {
                return;
            }
        } else if self.bells.recv().is_err() {
            return;
        }
        // Quiet for a moment, or changing all the time: read it either way.
        let settle = Duration::from_millis(limits::RELOAD_SETTLE_MS);
        for _ in 0..limits::RELOAD_SETTLE_MAX {
            if self.bells.recv_timeout(settle).is_err() {
                break;
            }
        }
        self.look();
    }

    /// Watches each directory that rules may be in; those that are watched already stay so. What is left out of the
    /// policy set can be huge, so it is left out here too.
    fn look(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        for directory in [self.root.clone(), self.root.join("memory")] {
            let _ = watcher.watch(&directory, RecursiveMode::NonRecursive);
        }
        for name in Workspace::reference_directories(&self.root) {
            let _ = watcher.watch(&self.root.join(name), RecursiveMode::Recursive);
        }
    }
}

fn watcher(memory: PathBuf, ring: Sender<()>) -> Option<notify::RecommendedWatcher> {
    let is_rule = move |path: &PathBuf| {
        // The daemon's own files change all the time; of memory/ only keys and tokens are rules.
        !path.starts_with(&memory)
            || path.file_name().is_some_and(|name| name == "keyring.json" || name == "tokens.json")
    };
    let heard = move |event: notify::Result<Event>| {
        let matters = event.map_or(true, |event| {
            !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(&is_rule)
        });
        if matters {
            let _ = ring.send(());
        }
    };
    notify::recommended_watcher(heard).ok()
}
