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

    /// Does it cover every text there could be?
    pub(crate) fn cover_everything(&self) -> bool {
        self.0.iter().any(|pattern| pattern == "*")
    }

    /// Those on the list that cover none of these.
    pub(crate) fn idle<'n>(&'n self, texts: &[&str]) -> impl Iterator<Item = &'n str> {
        let covers_one = |pattern: &str| texts.iter().any(|text| pattern_covers(pattern, text));
        self.0.iter().map(String::as_str).filter(move |pattern| !covers_one(pattern))
    }
}

/// Does an operator's pattern cover a text?
pub(super) fn pattern_covers(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => pattern == text,
    }
}
