//! `docs/schemas/task-spec.schema.json`: the contract as others read it, and our words for a refusal.

use std::sync::OnceLock;

use super::explain::{Compiled, Finding};
use super::instance::Instance;
use crate::json::Document;

/// The text of the schema.
pub const TASK_SPEC_SCHEMA: &str = include_str!("../../docs/schemas/task-spec.schema.json");

/// The part of the schema that the gates report under codes of their own.
const RULES: &str = "/$defs/rules/";

/// Everything that is wrong with a document's shape.
///
/// A broken rule of the standard (`$defs/rules`) is left out: its gate says so, under its own code.
pub fn shape_findings(document: &Document<'_>) -> Vec<Finding> {
    let mut findings = task_spec_schema().findings(Instance::Document(document.root()));
    findings.retain(|finding| !finding.schema_path.starts_with(RULES));
    findings
}

pub(crate) fn task_spec_schema() -> &'static Compiled {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED.get_or_init(|| embedded_schema(TASK_SPEC_SCHEMA))
}

/// Compiles a schema that is part of the program; a test compiles each one.
#[expect(clippy::expect_used, reason = "the text is a constant of this program and compiled in a test")]
pub(crate) fn embedded_schema(text: &str) -> Compiled {
    let schema = serde_json::from_str(text).expect("an embedded schema is JSON");
    Compiled::new(schema).expect("an embedded schema compiles")
}
