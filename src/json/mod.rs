//! Strict JSON: one reading of a body that everybody downstream agrees on.
//!
//! Owns the reader (bytes in, [`Document`] out) and the read-only tree it yields. A body that two
//! parsers could understand differently is refused here: duplicate keys, lone surrogates, numbers
//! that a double does not give back, anything beyond the size and depth limits.
//!
//! Why not serde_json for this: its streaming interface does not hand out the text of a number, takes
//! duplicate keys silently, and builds a tree of owned maps that costs more than all gates together.
//! A differential test holds this reader to serde_json on what both must accept.
//!
//! Deliberately absent: any knowledge of TaskSpecs, and any writing of JSON (proof/canonical.rs).

mod document;
mod fault;
mod number;
pub(crate) mod pointer;
mod reader;

pub use document::{Document, Items, Members, Value};
pub use fault::{BodyFault, BodyFaultKind, Position};
pub(crate) use fault::{escaped, in_one_line, is_hidden, printable, printable_up_to};
pub(crate) use reader::plain_bytes;
pub use reader::{Bounds, read};

#[cfg(test)]
mod tests;
