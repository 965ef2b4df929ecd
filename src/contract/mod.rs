//! The TaskSpec: its shape, its typed form, and words for what is wrong with one.
//!
//! Two readings of the same contract, held together by a differential test: the typed one
//! ([`TaskSpec::read`]) decides, in a few microseconds; the JSON Schema is the contract that others
//! validate against, and is run only when the typed reading refuses, to say everything that is wrong.
//!
//! Deliberately absent: policy. Whether a sound TaskSpec may pass is for the gates to say; what the
//! standard demands beyond the shape (`$defs/rules` in the schema) is theirs too.

mod body;
mod digests;
mod explain;
mod field;
mod instance;
mod reading;
mod schema;
mod taskspec;
mod text;

pub use body::BodySchema;
pub use digests::{Sealed, content_digest, intent_hash, task_spec_digest};
pub(crate) use explain::distance;
pub use explain::{Compiled, Finding};
pub use field::Field;
pub use instance::{Instance, InstanceMembers, Made, Number, Tree};
pub(crate) use schema::embedded_schema;
pub use schema::{TASK_SPEC_SCHEMA, shape_findings};
pub use taskspec::*;
pub use text::*;

#[cfg(test)]
mod tests;
