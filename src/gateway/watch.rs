//! Notices when the workspace's rules change: policies, what TaskSpecs refer to, keys and tokens.
//!
//! The operating system tells of changes; they are let to settle, for an editor writes a file in several steps,
//! and then everything is read again. Where it tells of none (some network file systems), the files are read every
//! so often all the same. `memory/` is not watched, for the daemon itself writes there with every batch: keys and
//! tokens are looked at a few times a second instead.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::limits;
use crate::os::files::{Stamp, stamp};
use crate::policy::Workspace;

/// Tells when something may have changed.
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    bells: Receiver<Rung>,
    ring: Sender<Rung>,
    watcher: Option<RecommendedWatcher>,
    /// The files in `memory/` that are rules, as they were when they were last looked at.
    secrets: [Option<Stamp>; 2],
}

/// Who rang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rung {
    ByHand,
    ByAChange,
}

/// Rings the bell by hand: a signal asks for the files to be read.
#[derive(Debug, Clone)]
pub struct Bell(Sender<Rung>);

impl Bell {
    pub fn ring(&self) {
        // A watch that has gone has nobody to tell.
        let _ = self.0.send(Rung::ByHand);
    }
}

impl Watch {
    /// Watches a workspace; `by_itself` is false where only the bell is to be heard.
    pub fn over(workspace: &Path, by_itself: bool) -> Self {
        let (ring, bells) = channel();
        let root = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let watcher = if by_itself { watcher(root.join("memory"), ring.clone()) } else { None };
        let secrets = secrets(&root);
        let mut watch = Self { root, bells, ring, watcher, secrets };
        watch.look();
        watch
    }

    pub fn bell(&self) -> Bell {
        Bell(self.ring.clone())
    }

    /// Waits until something may have changed. True if somebody says so, and not only the files.
    pub fn wait(&mut self) -> bool {
        let Some(first) = self.heard() else { return false };
        let mut is_told = first == Rung::ByHand;
        // Quiet for a moment, or changing all the time: read it either way.
        let settle = Duration::from_millis(limits::RELOAD_SETTLE_MS);
        for _ in 0..limits::RELOAD_SETTLE_MAX {
            let Ok(rung) = self.bells.recv_timeout(settle) else { break };
            is_told |= rung == Rung::ByHand;
        }
        self.secrets = secrets(&self.root);
        self.look();
        is_told
    }

    /// Waits for a bell. Nothing if it is only time to read the files all the same.
    fn heard(&mut self) -> Option<Rung> {
        if self.watcher.is_none() {
            return self.bells.recv().ok();
        }
        let glance = Duration::from_millis(limits::RELOAD_GLANCE_MS);
        for _ in 0..limits::RELOAD_POLL_MS / limits::RELOAD_GLANCE_MS {
            if let Ok(rung) = self.bells.recv_timeout(glance) {
                return Some(rung);
            }
            if secrets(&self.root) != self.secrets {
                return Some(Rung::ByAChange);
            }
        }
        None
    }

    /// Watches each directory that rules may be in; those that are watched already stay so. What is left out of the
    /// policy set can be huge, so it is left out here too.
    fn look(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        let _ = watcher.watch(&self.root, RecursiveMode::NonRecursive);
        for name in Workspace::reference_directories(&self.root) {
            let _ = watcher.watch(&self.root.join(name), RecursiveMode::Recursive);
        }
    }
}

fn secrets(root: &Path) -> [Option<Stamp>; 2] {
    ["memory/keyring.json", "memory/tokens.json"].map(|path| stamp(&root.join(path)).ok())
}

fn watcher(memory: PathBuf, ring: Sender<Rung>) -> Option<RecommendedWatcher> {
    let heard = move |event: notify::Result<Event>| {
        // The directory itself is touched whenever something in it is.
        let matters = event.map_or(true, |event| {
            !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(|path| *path != memory)
        });
        if matters {
            // A watch that has gone has nobody to tell.
            let _ = ring.send(Rung::ByAChange);
        }
    };
    // The policy set takes nothing from behind a link to a directory; one that leads out would have everything watched
    // that is there, up to the whole machine.
    RecommendedWatcher::new(heard, Config::default().with_follow_symlinks(false)).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    /// The inodes that this process listens at, as the kernel tells them.
    fn watched() -> Vec<String> {
        let open = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
        let told = open.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect::<String>();
        let lines = told.lines().filter(|line| line.starts_with("inotify"));
        lines
            .filter_map(|line| line.split(' ').find_map(|part| part.strip_prefix("ino:")))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn what_a_link_leads_to_is_not_watched() {
        let (workspace, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (schemas, below) = (workspace.path().join("schemas/v1"), elsewhere.path().join("below"));
        fs::create_dir_all(&schemas).unwrap();
        fs::create_dir(&below).unwrap();
        symlink(elsewhere.path(), schemas.join("out")).unwrap();
        let _watch = Watch::over(workspace.path(), true);
        let is_watched =
            |path: &Path| watched().contains(&format!("{:x}", fs::metadata(path).unwrap().ino()));
        assert!(is_watched(&schemas), "directories of the workspace are watched, however deep");
        assert!(!is_watched(elsewhere.path()) && !is_watched(&below));
    }
}
