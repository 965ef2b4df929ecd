//! A server in a process of its own, with whatever it starts: it ends with the bench, however that ends, and tells what
//! it has used.

use std::ffi::OsStr;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long one may take to end when asked, and then to be quiet behind a load.
const END_MAX: Duration = Duration::from_secs(5);
const SETTLE_MAX: Duration = Duration::from_secs(10);

/// A program that is asked to end when the bench is gone, also when nobody could clean up behind it. It hangs on the
/// thread that starts it, so start it on the main thread.
pub(crate) fn tied(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HANDOFFD_") {
            command.env_remove(name);
        }
    }
    command
}

pub(crate) struct Process {
    child: Child,
}

#[derive(Clone, Copy)]
pub(crate) struct Usage {
    /// Processor time so far, in seconds.
    pub(crate) cpu_s: f64,
    /// What is in memory; what several processes share counts once.
    pub(crate) resident_mib: f64,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self { child: command.spawn().unwrap() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stdout(&mut self) -> std::process::ChildStdout {
        self.child.stdout.take().unwrap()
    }

    /// Whether it is still there.
    pub(crate) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let all = tree(self.child.id());
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < END_MAX {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Whoever did not hear it from the first one.
        for id in all.into_iter().filter(|id| stat(*id).is_some()) {
            let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
        }
    }
}

/// What a process and all below it have used, the ones that have ended included.
pub(crate) fn usage(root: u32) -> Usage {
    let (mut ticks, mut kib) = (0.0, 0.0);
    for id in tree(root) {
        // It may just have ended.
        let Some(fields) = stat(id) else { continue };
        ticks += fields[11..15].iter().sum::<f64>();
        let smaps = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
        let shared = smaps.lines().find_map(|line| line.strip_prefix("Pss:"));
        let shared = shared.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib += shared.unwrap_or(fields[21] * 4.0);
    }
    Usage { cpu_s: ticks / 100.0, resident_mib: kib / 1024.0 }
}

/// Waits until a server has done what it does behind its answers, so that the next one has the machine to itself.
pub(crate) fn settle(root: u32) -> Usage {
    let began = Instant::now();
    let (mut before, mut quiet) = (usage(root), 0);
    while quiet < 2 && began.elapsed() < SETTLE_MAX {
        std::thread::sleep(Duration::from_millis(100));
        let now = usage(root);
        quiet = if now.cpu_s - before.cpu_s < 0.015 { quiet + 1 } else { 0 };
        before = now;
    }
    before
}

/// The process and all below it.
fn tree(root: u32) -> Vec<u32> {
    let all: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|id| Some((id, parent(id)?)))
        .collect();
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(above) = tree.get(next).copied() {
        tree.extend(all.iter().filter(|(_, parent)| *parent == above).map(|(id, _)| *id));
        next += 1;
    }
    tree
}

fn parent(id: u32) -> Option<u32> {
    Some(*stat(id)?.get(1)? as u32)
}

/// The fields behind the name of the program, which may have anything in it.
fn stat(id: u32) -> Option<Vec<f64>> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some(fields.map(|field| field.parse().unwrap_or(0.0)).collect())
}
