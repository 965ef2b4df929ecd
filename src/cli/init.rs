//! `handoffd init`: makes a workspace that works as it is.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::printer::{DIM, GREEN};
use super::{Context, Exit, Failure};
use crate::os::files;

/// Make a workspace: policies, an input schema, a runbook, examples.
///
/// Files that exist are kept as they are.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// The directory; the workspace if not given
    directory: Option<PathBuf>,
}

macro_rules! shipped {
    ($($path:literal),* $(,)?) => { [$(($path, include_str!(concat!("../../", $path)))),*] };
}

/// The files of the shipped workspace, byte for byte: what we test is what a user gets.
const SHIPPED: [(&str, &str); 14] = shipped![
    "agents/blockchain-operator/config/execution-plane.schema.v1.json",
    "agents/blockchain-operator/docs/a2a-protocol.md",
    "agents/blockchain-operator/docs/runbook.md",
    "docs/checklists/crypto-sage-orchestrator-checklist.md",
    "docs/examples/README.md",
    "docs/examples/demo.key",
    "docs/examples/taskspec-canonical.json",
    "docs/examples/taskspec-delegated-human-proxy.json",
    "docs/examples/taskspec-delegated-read.json",
    "docs/examples/taskspec-minimal.json",
    "memory/README.md",
    "policies/delegation/user-main-v1.json",
    "policies/routes.json",
    "policies/tests/user-main-v1.json",
];

const MEMORY_IGNORED: (&str, &str) = ("memory/.gitignore", include_str!("../../memory/.gitignore"));

impl Init {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let root = self.directory.as_deref().unwrap_or(context.workspace.root());
        let Scaffold { made, kept } = scaffold(root)?;
        if context.printer.is_json() {
            context.printer.value(&serde_json::json!({"workspace": root, "made": made, "kept": kept}));
            return Ok(Exit::Done);
        }
        for path in &made {
            context.printer.line(&format!("{GREEN}made{GREEN:#}  {path}"));
        }
        for path in &kept {
            context.printer.line(&format!("{DIM}kept  {path}{DIM:#}"));
        }
        let flag =
            if root == Path::new(".") { String::new() } else { format!(" --workspace {}", root.display()) };
        context.printer.line(&format!(
            "\nTry:  handoffd check{flag} {}",
            root.join("docs/examples/taskspec-canonical.json").display()
        ));
        Ok(Exit::Done)
    }
}

/// What was made, and what was there already.
pub(super) struct Scaffold {
    pub(super) made: Vec<&'static str>,
    kept: Vec<&'static str>,
}

/// Makes what a workspace lacks; files that exist are kept as they are.
pub(super) fn scaffold(root: &Path) -> Result<Scaffold, Failure> {
    let (mut made, mut kept) = (Vec::new(), Vec::new());
    for (path, text) in SHIPPED.into_iter().chain([MEMORY_IGNORED]) {
        match write(root, path, text) {
            Ok(true) => made.push(path),
            Ok(false) => kept.push(path),
            Err(error) => return Err(Failure(format!("{}: {error}", root.join(path).display()))),
        }
    }
    Ok(Scaffold { made, kept })
}

/// Is this file as we ship it?
pub(super) fn is_shipped(root: &Path, path: &Path) -> bool {
    let mut shipped = SHIPPED.iter().filter(|(name, _)| root.join(name) == path);
    shipped.any(|(_, text)| files::read_bounded(path, text.len()).is_ok_and(|found| found == text.as_bytes()))
}

/// True if the file was made, false if there is one.
fn write(root: &Path, path: &str, text: &str) -> io::Result<bool> {
    let file = root.join(path);
    if let Some(parent) = file.parent() {
        // Others may not put rules in place, whatever the caller's umask lets them do.
        DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
    }
    match files::create_public(&file, text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
