//! The files in the workspace that a TaskSpec may refer to.
//!
//! They are read with the set and belong to its digest, so that a gate never opens a file and two
//! verdicts under the same digest were judged by the same text. What a path leads to was found out when
//! the set was read: a link out of the workspace is known as such, and is never followed.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use moka::sync::Cache;

use super::outline::Section;
use crate::contract::Compiled;
use crate::limits;
use crate::proof::Digest;

/// Everything below the workspace root that could be referred to, by its path.
#[derive(Debug, Clone, Default)]
pub struct References {
    pub(super) found: BTreeMap<String, Reference>,
}

/// What a path in the workspace leads to.
#[derive(Debug, Clone)]
pub enum Reference {
    File(ReferenceFile),
    /// A link that leaves the workspace; so does everything below it.
    LeadsOut,
    /// A directory, a pipe, a device, a link to a directory.
    NotAFile,
    TooLarge,
    Unreadable,
}

/// A file that can be referred to.
#[derive(Debug, Clone)]
pub struct ReferenceFile {
    pub digest: Digest,
    /// The text of a JSON file, which could be a schema; of others the digest is enough.
    pub json: Option<Arc<[u8]>>,
    /// The sections of a Markdown file, which could be a plan.
    pub outline: Option<Arc<[Section]>>,
}

/// Why a path could not be referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceFault {
    /// Absolute, or with `..`, `.`, empty segments, backslashes or control characters.
    NotPlain,
    LeadsOut,
    NotFound,
    NotAFile,
    TooLarge,
    Unreadable,
}

impl std::fmt::Display for ReferenceFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotPlain => "is not a plain path below the workspace",
            Self::LeadsOut => "leads out of the workspace",
            Self::NotFound => "does not exist in the workspace",
            Self::NotAFile => "is not a file",
            Self::TooLarge => "is larger than a reference may be",
            Self::Unreadable => "could not be read",
        })
    }
}

/// A path with one spelling: relative, forward slashes, no `.` or `..`, nothing hidden in it.
pub(crate) fn is_plain(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(|c: char| c == '\\' || c.is_control())
        && path.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
}

impl References {
    /// The file at a path of the workspace.
    pub fn resolve(&self, path: &str) -> Result<&ReferenceFile, ReferenceFault> {
        if !is_plain(path) {
            return Err(ReferenceFault::NotPlain);
        }
        match self.found.get(path) {
            Some(Reference::File(file)) => Ok(file),
            Some(Reference::LeadsOut) => Err(ReferenceFault::LeadsOut),
            Some(Reference::NotAFile) => Err(ReferenceFault::NotAFile),
            Some(Reference::TooLarge) => Err(ReferenceFault::TooLarge),
            Some(Reference::Unreadable) => Err(ReferenceFault::Unreadable),
            None if self.is_below_a_way_out(path) => Err(ReferenceFault::LeadsOut),
            None => Err(ReferenceFault::NotFound),
        }
    }

    /// The files that can be referred to, by their paths.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &ReferenceFile)> {
        self.found.iter().filter_map(|(path, reference)| match reference {
            Reference::File(file) => Some((path.as_str(), file)),
            _ => None,
        })
    }

    fn is_below_a_way_out(&self, path: &str) -> bool {
        path.match_indices('/').any(|(at, _)| {
            path.get(..at).is_some_and(|parent| matches!(self.found.get(parent), Some(Reference::LeadsOut)))
        })
    }

    pub(super) fn digests(&self) -> impl Iterator<Item = (&str, Digest)> {
        self.files().map(|(path, file)| (path, file.digest))
    }
}

/// An input schema, compiled, or why it cannot be.
#[derive(Debug)]
pub struct InputSchema {
    pub compiled: Result<Compiled, String>,
    /// Is there a version in its `$id`?
    pub id_has_version: bool,
}

impl InputSchema {
    /// The schema of that text, compiled once and kept while it is among the most used.
    ///
    /// Keyed by content, so that neither another path nor a later set can bring back an old text.
    pub fn compiled(digest: Digest, text: &[u8]) -> Arc<Self> {
        static CACHE: OnceLock<Cache<Digest, Arc<InputSchema>>> = OnceLock::new();
        CACHE
            .get_or_init(|| Cache::new(limits::COMPILED_SCHEMAS_MAX))
            .get_with(digest, || Arc::new(Self::compile(text)))
    }

    fn compile(text: &[u8]) -> Self {
        let schema = crate::json::read(text, limits::WORKSPACE_FILE)
            .map(|document| document.root().to_json())
            .map_err(|fault| fault.to_string());
        let id = schema.as_ref().ok().and_then(|schema| schema.get("$id")?.as_str());
        let id_has_version = id.is_some_and(names_a_version);
        let compiled = schema.and_then(|schema| {
            if is_a_schema(&schema) {
                Compiled::new(schema)
            } else {
                Err("it has no keyword of JSON Schema".to_owned())
            }
        });
        Self { compiled, id_has_version }
    }
}

/// Any JSON object passes as a schema that allows everything; one that constrains nothing is none to us.
fn is_a_schema(schema: &serde_json::Value) -> bool {
    const KEYWORDS: [&str; 18] = [
        "$ref",
        "type",
        "properties",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "minProperties",
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "enum",
        "const",
        "if",
        "not",
    ];
    schema.as_object().is_some_and(|members| KEYWORDS.iter().any(|keyword| members.contains_key(*keyword)))
}

/// Is there a `v<N>` in the text, standing by itself?
pub(crate) fn names_a_version(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| {
        word.strip_prefix('v')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    })
}
