//! Reads `handoffd.toml` and the environment: the one part of this room that touches the world.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::read::{Effective, Flag, Given, Problem, Source, read};
use super::{FILE, KEYS};
use crate::limits;
use crate::os::files;
use crate::policy::plain;

impl Effective {
    /// The settings of a workspace, or everything that is wrong with them.
    pub fn load(workspace: &Path, flags: Vec<Flag>) -> Result<Self, Vec<Problem>> {
        let path = workspace.join(FILE);
        let file = match files::read_bounded(&path, limits::WORKSPACE_FILE.bytes_max) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(|error| plain(&error))),
        };
        let environment = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.into_string().ok()))
            .collect();
        let mut effective = read(&Given { file, environment, flags })?;
        let has_secret = KEYS
            .iter()
            .any(|key| matches!(effective.source(key), Source::File { .. }) && effective.has_secret(key));
        if has_secret && path.metadata().is_ok_and(|metadata| metadata.mode() & 0o004 != 0) {
            effective.warnings.push(format!(
                "{FILE} has a secret in it and anybody can read it; run: chmod 600 {}",
                path.display()
            ));
        }
        Ok(effective)
    }
}
