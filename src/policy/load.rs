//! Reads a workspace: the one part of this room that touches the disk.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::outline::outline;
use super::references::{Reference, ReferenceFile, References};
use super::set::{PolicyFault, PolicySet, ROUTES_PATH};
use crate::limits;
use crate::os::{files, turns};
use crate::proof::{Digest, Keyring};

/// A directory with `policies/`, `memory/` and the files that TaskSpecs refer to.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
}

/// Why a workspace cannot be used. Nothing is allowed under one that cannot.
#[derive(Debug)]
pub enum WorkspaceFault {
    /// There is no such directory, or it has no routing table.
    NotAWorkspace { path: PathBuf, why: String },
    /// The same, where a gateway has gone by one before: the example would stand in the place of somebody's rules.
    PoliciesLost { path: PathBuf, why: String },
    /// The policy set is broken; all that is wrong with it.
    Policy(Vec<PolicyFault>),
    /// The keyring cannot be used.
    Keyring { path: PathBuf, why: String },
    /// There is more than a set may hold.
    TooMuch(String),
}

impl std::fmt::Display for WorkspaceFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAWorkspace { path, why } => {
                write!(f, "{} is not a workspace: {why}; `handoffd init` makes one", path.display())
            }
            Self::PoliciesLost { path, why } => {
                let path = path.display();
                write!(f, "{path} has been served before, and {why}: put policies/ back as they were")
            }
            Self::Policy(faults) => {
                write!(f, "the policy set is broken")?;
                faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
            }
            Self::Keyring { path, why } => write!(f, "{} {why}", path.display()),
            Self::TooMuch(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for WorkspaceFault {}

impl Workspace {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn keyring_path(&self) -> PathBuf {
        self.root.join("memory/keyring.json")
    }

    /// Reads the policy set, whole or not at all.
    pub fn load_policies(&self) -> Result<PolicySet, WorkspaceFault> {
        self.load_with(None)
    }

    /// Would the policy set be whole with this routing table? Changes nothing.
    pub fn check_routes(&self, routes: &[u8]) -> Result<PolicySet, WorkspaceFault> {
        self.load_with(Some(routes))
    }

    fn load_with(&self, routes: Option<&[u8]>) -> Result<PolicySet, WorkspaceFault> {
        let root = self.root.canonicalize().map_err(|error| self.not_a_workspace(error.to_string()))?;
        let declared = read_within(&root, ROUTES_PATH).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.without_routes(&error),
            _ => unusable(ROUTES_PATH, &error),
        })?;
        let policies = delegation_files(&root)?;
        let references = Walk::over(&root)?;
        PolicySet::new(routes.unwrap_or(&declared), &policies, references).map_err(WorkspaceFault::Policy)
    }

    /// Reads the keyring; a workspace without one has no keys.
    pub fn load_keyring(&self) -> Result<Keyring, WorkspaceFault> {
        self.load_keyring_if_any().map(Option::unwrap_or_default)
    }

    /// The same, for whoever has to know that there is none.
    pub(crate) fn load_keyring_if_any(&self) -> Result<Option<Keyring>, WorkspaceFault> {
        let path = self.keyring_path();
        let bytes = match files::read_private(&path, limits::WORKSPACE_FILE.bytes_max) {
            Ok(bytes) => zeroize::Zeroizing::new(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(WorkspaceFault::Keyring { path, why: plain(&error) }),
        };
        let keyring = Keyring::parse(&bytes).map(Some);
        keyring.map_err(|fault| WorkspaceFault::Keyring { path, why: fault.to_string() })
    }

    /// Changes the keyring: two programs that do take turns, and the second one sees what the first one did.
    pub(crate) fn change_keyring(
        &self,
        change: impl FnOnce(&mut Keyring) -> Result<(), String>,
    ) -> Result<(), String> {
        let path = self.keyring_path();
        let io = |error: io::Error| format!("{}: {}", path.display(), plain(&error));
        let _turn = turns::take(&self.root, ".keyring.lock").map_err(io)?;
        let mut keyring = self.load_keyring().map_err(|fault| fault.to_string())?;
        change(&mut keyring)?;
        files::replace_private(&path, &keyring.to_file()).map_err(io)
    }

    /// The directories at the root that may hold what TaskSpecs refer to.
    pub(crate) fn reference_directories(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        directories
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.') && !is_left_out("", name))
            .collect()
    }

    fn without_routes(&self, error: &io::Error) -> WorkspaceFault {
        // A first start leaves both, and nobody removes them.
        let was_served =
            ["memory/gateway.key", "memory/.lock"].iter().any(|path| self.root.join(path).exists());
        if was_served {
            let why = format!("{ROUTES_PATH} {}", plain(error));
            return WorkspaceFault::PoliciesLost { path: self.root.clone(), why };
        }
        self.not_a_workspace(format!("{ROUTES_PATH}: {}", plain(error)))
    }

    fn not_a_workspace(&self, why: String) -> WorkspaceFault {
        WorkspaceFault::NotAWorkspace { path: self.root.clone(), why }
    }
}

/// An I/O error in a sentence, without the operating system's number.
pub(crate) fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_some() => "may not be read".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// Reads a file of the policy set. One that a link leads out of the workspace to is refused: it would let
/// somebody else write our policy.
fn read_within(root: &Path, file: &str) -> io::Result<Vec<u8>> {
    let path = root.join(file).canonicalize()?;
    if !path.starts_with(root) {
        return Err(io::Error::other("leads out of the workspace"));
    }
    files::read_bounded(&path, limits::WORKSPACE_FILE.bytes_max)
}

fn unusable(file: &str, error: &io::Error) -> WorkspaceFault {
    let (file, reason) = (file.to_owned(), plain(error));
    WorkspaceFault::Policy(vec![PolicyFault { file, pointer: String::new(), reason }])
}

/// `policies/delegation/*.json`; a directory that does not exist has none.
fn delegation_files(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, WorkspaceFault> {
    const DIRECTORY: &str = "policies/delegation";
    let mut policies = BTreeMap::new();
    let entries = match fs::read_dir(root.join(DIRECTORY)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(policies),
        Err(error) => return Err(unusable(DIRECTORY, &error)),
    };
    for entry in entries {
        let name = entry.map_err(|error| unusable(DIRECTORY, &error))?.file_name();
        let Some(name) = name.to_str().filter(|name| name.ends_with(".json") && !name.starts_with('.'))
        else {
            continue;
        };
        let file = format!("{DIRECTORY}/{name}");
        let text = read_within(root, &file).map_err(|error| unusable(&file, &error))?;
        policies.insert(file, text);
    }
    Ok(policies)
}

/// Finds what could be referred to.
struct Walk<'r> {
    root: &'r Path,
    found: BTreeMap<String, Reference>,
    bytes: usize,
}

impl<'r> Walk<'r> {
    fn over(root: &'r Path) -> Result<References, WorkspaceFault> {
        let mut walk = Self { root, found: BTreeMap::new(), bytes: 0 };
        walk.directory(root, "", limits::REFERENCE_LEVELS_MAX)?;
        Ok(References { found: walk.found })
    }

    fn directory(&mut self, directory: &Path, prefix: &str, levels: usize) -> Result<(), WorkspaceFault> {
        // What cannot be listed cannot be referred to; the path then does not exist for a TaskSpec.
        let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                self.found.insert(path.clone(), Reference::NotAFile);
                if levels > 0 && !is_left_out(prefix, name) {
                    self.directory(&entry.path(), &path, levels - 1)?;
                }
            } else if kind.is_symlink() {
                let reference = self.link(&entry.path());
                self.keep(path, reference)?;
            } else if !is_reference(name) {
                continue;
            } else if kind.is_file() {
                let reference = file(&entry.path());
                self.keep(path, reference)?;
            } else {
                self.keep(path, Reference::NotAFile)?;
            }
        }
        Ok(())
    }

    fn link(&self, path: &Path) -> Reference {
        let Ok(target) = path.canonicalize() else { return Reference::Unreadable };
        if !target.starts_with(self.root) {
            Reference::LeadsOut
        } else if target.is_file() {
            file(&target)
        } else {
            Reference::NotAFile
        }
    }

    fn keep(&mut self, path: String, reference: Reference) -> Result<(), WorkspaceFault> {
        if let Reference::File(ReferenceFile { json: Some(text), .. }) = &reference {
            self.bytes += text.len();
        }
        self.found.insert(path, reference);
        if self.found.len() > limits::REFERENCE_FILES_MAX || self.bytes > limits::REFERENCE_BYTES_MAX {
            return Err(WorkspaceFault::TooMuch(format!(
                "the workspace has more than {} files or {} MiB that a TaskSpec could refer to; move what is \
                 not a schema or a plan into a directory whose name begins with a dot",
                limits::REFERENCE_FILES_MAX,
                limits::REFERENCE_BYTES_MAX / (1024 * 1024),
            )));
        }
        Ok(())
    }
}

/// The daemon's own files and what tools leave behind are no references.
fn is_left_out(prefix: &str, name: &str) -> bool {
    prefix.is_empty() && matches!(name, "memory" | "target" | "node_modules")
}

/// Schemas and structured plans are JSON, documents are Markdown.
fn is_reference(name: &str) -> bool {
    name.ends_with(".json") || name.ends_with(".md")
}

fn file(path: &Path) -> Reference {
    match files::read_bounded(path, limits::WORKSPACE_FILE.bytes_max) {
        Ok(text) => {
            let digest = Digest::of(&text);
            let is_json = path.extension().is_some_and(|extension| extension == "json");
            let outline = (!is_json).then(|| outline(&text).into());
            Reference::File(ReferenceFile { digest, json: is_json.then(|| Arc::from(text)), outline })
        }
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Reference::TooLarge,
        Err(_) => Reference::Unreadable,
    }
}
