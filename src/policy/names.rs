//! An operator's list of names, in which a trailing `*` stands for any ending.

use serde::{Deserialize, Serialize};

/// A list of names; an empty one covers nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Names(Vec<String>);

impl Names {
    /// Is this text on the list? Byte for byte: no case folding, no trimming.
    pub fn cover(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| pattern_covers(pattern, text))
    }
}

/// Does an operator's pattern cover a text?
pub(super) fn pattern_covers(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => pattern == text,
    }
}
