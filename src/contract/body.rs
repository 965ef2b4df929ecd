//! The body of an operator's act: a small document that its schema describes.
//!
//! Unlike a TaskSpec, such a body comes a few times a day, so the schema itself does the checking and its
//! descriptions are the hints; the type is read only from what the schema let pass.

use std::sync::OnceLock;

use serde::de::DeserializeOwned;

use super::explain::{Compiled, Finding};
use super::instance::Instance;
use super::schema::embedded_schema;
use crate::json::Document;

/// The schema of a body, compiled when the first one is read.
#[derive(Debug)]
pub struct BodySchema {
    text: &'static str,
    compiled: OnceLock<Compiled>,
}

impl BodySchema {
    /// A schema that is part of the program; a test compiles each one.
    pub const fn new(text: &'static str) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    /// The text of the schema, for those who describe the API.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// The body as its type, or everything that is wrong with it.
    pub fn read<T: DeserializeOwned>(&self, document: &Document<'_>) -> Result<T, Vec<Finding>> {
        let schema = self.compiled.get_or_init(|| embedded_schema(self.text));
        let findings = schema.findings(Instance::Document(document.root()));
        if !findings.is_empty() {
            return Err(findings);
        }
        // Nothing that the schema lets pass fails here, unless the two have drifted apart; then nothing is done.
        serde_json::from_value(document.root().to_json()).map_err(|error| {
            vec![Finding::new("", error.to_string(), "the schema of this body has its shape")]
        })
    }
}
